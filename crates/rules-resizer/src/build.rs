//! From the cache to a view.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{
    ClaimPhase, Condition, CsiSource, ModifyVolumeStatus, ObjectKey, PersistentVolume, PersistentVolumeClaim, Quantity,
    ResourceList, SecretReference, Seen, names,
};
use control::{Cache, Capability, Mode};
use csi::{ControllerRpc, DriverCapability, NodeRpc};

use crate::view::{
    BeforeSize, Bound, Class, DriverVolume, Expansion, Grow, Key, Modify, ModifyState, ResizeProgress, Sizes, Told,
    View,
};
use crate::{Local, wakes};

const RESIZE_CONDITIONS: [&str; 4] =
    [names::RESIZING, names::FILE_SYSTEM_RESIZE_PENDING, names::CONTROLLER_RESIZE_ERROR, names::NODE_RESIZE_ERROR];
const MODIFY_CONDITIONS: [&str; 2] = [names::MODIFYING_VOLUME, names::MODIFY_VOLUME_ERROR];

/// The facts about one claim.
pub(crate) fn view(key: &Key, cache: &Cache, local: &Local) -> View {
    let Some(claim) = cache.claim(&key.0) else { return View::Gone(key.0.clone()) };
    let volume = &claim.spec.volume_name;
    if claim.status.phase != ClaimPhase::Bound || volume.is_empty() {
        return View::NotBound(key.0.clone());
    }
    let Some(volume) = cache.volume(&ObjectKey::cluster(volume.clone())) else {
        return View::VolumeMissing(volume.clone());
    };
    if !wakes::is_ours(&volume, local) || !is_given(&volume, &claim, local) || !is_for(&volume, &claim) {
        return View::NotOurs(volume.metadata.name.clone());
    }
    let seen = match local.migration.seen_by(&local.driver, &volume) {
        Ok(seen) => seen,
        Err(problem) => return View::Unreadable(problem.to_string()),
    };
    match (sizes(&claim, &volume), &seen.spec.csi) {
        (Ok(sizes), Some(csi)) => {
            let mut bound = bound(&claim, &seen, csi, sizes, cache, local);
            // Attributes of an in-tree volume are not changed (sidecars 4.5).
            bound.modify.supported &= volume.spec.csi.is_some();
            View::Claim(Box::new(bound))
        }
        (Ok(_), None) => View::NotOurs(volume.metadata.name.clone()),
        (Err(problem), Some(_) | None) => View::Unreadable(problem),
    }
}

/// An in-tree volume is resized by whom its claim names (S4-21).
fn is_given(volume: &PersistentVolume, claim: &PersistentVolumeClaim, local: &Local) -> bool {
    volume.spec.csi.is_some() || claim.metadata.annotation(names::STORAGE_RESIZER) == Some(local.driver.as_str())
}

/// Both sides must name each other: a claim cannot grow a volume by naming it.
fn is_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let meta = &claim.metadata;
    let reference = volume.spec.claim_ref.as_ref();
    reference.is_some_and(|claim| claim.namespace == meta.namespace && claim.uid == meta.uid)
}

fn bound(
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
    csi: &CsiSource,
    sizes: Sizes,
    cache: &Cache,
    local: &Local,
) -> Bound {
    Bound {
        claim: Seen::of::<PersistentVolumeClaim>(&claim.metadata),
        volume: Seen::of::<PersistentVolume>(&volume.metadata),
        place: DriverVolume { driver: local.driver.clone(), handle: csi.volume_handle.clone() },
        grow: grow(claim, volume, csi, sizes, cache, local),
        modify: modify(claim, volume, csi, cache, local),
        slow_millis: local.slow_millis,
    }
}

fn sizes(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Result<Sizes, String> {
    let read = |list: &ResourceList, whose: &str| match list.get("storage").map(Quantity::bytes) {
        None => Ok(None),
        Some(Ok(bytes)) => Ok(Some(bytes)),
        Some(Err(bad)) => Err(format!("{whose} of claim {} is wrong: {bad}", claim.metadata.key())),
    };
    Ok(Sizes {
        requested: read(&claim.spec.resources.requests, "the requested size")?.unwrap_or(0),
        volume: read(&volume.spec.capacity, "the size of the volume")?.unwrap_or(0),
        had: read(&claim.status.capacity, "the size")?.unwrap_or(0),
        allocated: read(&claim.status.allocated_resources, "the size under way")?,
    })
}

fn grow(
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
    csi: &CsiSource,
    sizes: Sizes,
    cache: &Cache,
    local: &Local,
) -> Grow {
    let status = &claim.status;
    let text = |list: &ResourceList| list.get("storage").map(Quantity::to_string).unwrap_or_default();
    Grow {
        by: local.expansion(),
        recovers: local.recovers,
        sizes,
        progress: progress(status.allocated_resource_statuses.get("storage").map_or("", String::as_str)),
        conditions: told(&status.conditions, &RESIZE_CONDITIONS),
        not_required: claim.metadata.annotation(names::NODE_EXPANSION_NOT_REQUIRED).is_some(),
        before: match (volume.metadata.annotation(names::PRE_RESIZE_CAPACITY), local.tells_size_before) {
            (Some(_), true | false) => BeforeSize::Present,
            (None, true) => BeforeSize::Absent(text(&status.capacity)),
            (None, false) => BeforeSize::Unused,
        },
        capability: capability(volume, csi, local),
        secret: csi.controller_expand_secret_ref.clone(),
        user: local.asks_pods.then(|| user(claim, cache)).flatten(),
    }
}

/// As the volume says it: no filesystem type is made up here.
fn capability(volume: &PersistentVolume, csi: &CsiSource, local: &Local) -> Result<Capability, String> {
    let mode = Mode::of(&volume.spec.access_modes, local.capabilities.has(ControllerRpc::SingleNodeMultiWriter))
        .map_err(|problem| format!("volume {} cannot be resized: {problem}", volume.metadata.name))?;
    Ok(Capability::new(mode, volume.volume_mode(), &csi.fs_type, &volume.spec.mount_options))
}

fn user(claim: &PersistentVolumeClaim, cache: &Cache) -> Option<String> {
    let key = claim.metadata.key().to_string();
    let mut pods = cache.pods_by_claim(&key);
    pods.find(|pod| !pod.is_terminal()).map(|pod| pod.metadata.key().to_string())
}

fn progress(status: &str) -> ResizeProgress {
    match status {
        names::CONTROLLER_RESIZE_IN_PROGRESS => ResizeProgress::ControllerInProgress,
        names::CONTROLLER_RESIZE_INFEASIBLE => ResizeProgress::ControllerInfeasible,
        names::NODE_RESIZE_PENDING => ResizeProgress::NodePending,
        names::NODE_RESIZE_IN_PROGRESS => ResizeProgress::NodeInProgress,
        names::NODE_RESIZE_INFEASIBLE => ResizeProgress::NodeInfeasible,
        _unknown => ResizeProgress::None,
    }
}

fn told(conditions: &[Condition], of: &[&str]) -> Vec<Told> {
    let ours = conditions.iter().filter(|condition| of.contains(&condition.r#type.as_str()));
    ours.map(|condition| Told {
        r#type: condition.r#type.clone(),
        holds: condition.status == "True",
        message: condition.message.clone(),
        since: condition.last_transition_time.clone(),
    })
    .collect()
}

fn modify(
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
    csi: &CsiSource,
    cache: &Cache,
    local: &Local,
) -> Modify {
    let named = |name: &Option<String>| name.clone().filter(|name| !name.is_empty());
    let wanted = named(&claim.spec.volume_attributes_class_name);
    let status = claim.status.modify_volume_status.as_ref();
    let target = status.map(|status| status.target_volume_attributes_class_name.clone());
    Modify {
        supported: local.modifies(),
        wanted_class: class(&wanted, cache),
        target_class: class(&named(&target), cache),
        wanted,
        current: named(&claim.status.current_volume_attributes_class_name),
        volume_class: named(&volume.spec.volume_attributes_class_name),
        status: modify_state(status),
        conditions: told(&claim.status.conditions, &MODIFY_CONDITIONS),
        secret: modify_secret(volume, csi),
        extra: if local.extra_metadata { extra(claim, volume) } else { BTreeMap::new() },
    }
}

fn modify_state(status: Option<&ModifyVolumeStatus>) -> ModifyState {
    let Some(ModifyVolumeStatus { status, target_volume_attributes_class_name: target }) = status else {
        return ModifyState::Nothing;
    };
    match status.as_str() {
        names::MODIFY_IN_PROGRESS if !target.is_empty() => ModifyState::InProgress(target.clone()),
        names::MODIFY_INFEASIBLE => ModifyState::Infeasible(target.clone()),
        _pending => ModifyState::Pending(target.clone()),
    }
}

fn class(name: &Option<String>, cache: &Cache) -> Class {
    let Some(name) = name else { return Class::Unnamed };
    match cache.attributes_class(&ObjectKey::cluster(name.clone())) {
        None => Class::Missing(name.clone()),
        // Whose driver it names is not looked at, as in csi-resizer: the driver refuses what it does not know, and the
        // claim tells that.
        Some(class) => Class::Ready(class.parameters.clone()),
    }
}

fn modify_secret(volume: &PersistentVolume, csi: &CsiSource) -> Option<SecretReference> {
    let text = |key| volume.metadata.annotation(key).filter(|text| !text.is_empty());
    match (text(names::MODIFY_SECRET_NAME), text(names::MODIFY_SECRET_NAMESPACE)) {
        (Some(name), Some(namespace)) => Some(SecretReference { name: name.into(), namespace: namespace.into() }),
        (None | Some(_), None | Some(_)) => csi.controller_expand_secret_ref.clone(),
    }
}

fn extra(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> BTreeMap<String, String> {
    [
        (names::CLAIM_NAME_PARAMETER, &claim.metadata.name),
        (names::CLAIM_NAMESPACE_PARAMETER, &claim.metadata.namespace),
        (names::VOLUME_NAME_PARAMETER, &volume.metadata.name),
    ]
    .into_iter()
    .map(|(key, value)| (key.into(), value.clone()))
    .collect()
}

impl Local {
    /// A driver that can do this, with everything else as the Go resizer has it by default.
    pub fn new(
        driver: impl Into<String>,
        capabilities: impl IntoIterator<Item = impl Into<DriverCapability>>,
    ) -> Local {
        Local {
            driver: driver.into(),
            capabilities: capabilities.into_iter().collect(),
            attributes_classes: true,
            recovers: true,
            tells_size_before: true,
            asks_pods: true,
            extra_metadata: false,
            slow_millis: 300_000,
            migration: rules_translate::Migration::default(),
            pauses: control::BackOff::default(),
        }
    }

    /// Who expands the driver's volumes.
    pub fn expansion(&self) -> Expansion {
        if self.capabilities.has(ControllerRpc::ExpandVolume) {
            Expansion::Controller
        } else if self.capabilities.has(NodeRpc::ExpandVolume) {
            Expansion::NodeOnly
        } else {
            Expansion::None
        }
    }

    /// The driver changes attributes of volumes, and there are classes that say to what.
    pub fn modifies(&self) -> bool {
        self.attributes_classes && self.capabilities.has(ControllerRpc::ModifyVolume)
    }
}
