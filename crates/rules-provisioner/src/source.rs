//! What a volume is made from: nothing, a snapshot, or another volume (sidecars 2.8).

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use api::{
    ClaimPhase, Object, ObjectKey, PersistentVolume, PersistentVolumeClaim, Quantity, ReclaimPolicy, StorageClass,
    TypedReference, VolumePhase, VolumeSnapshot, VolumeSnapshotContent, names,
};
use control::Cache;
use csi::v1::volume_content_source::{SnapshotSource, Type, VolumeSource};
use csi::{ControllerRpc, v1};
use rules_translate::Migration;
use serde::{Deserialize, Serialize};

use crate::{Local, Obstacle, Reason};

/// What a volume is made from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ContentSource {
    /// What it is.
    pub kind: SourceKind,
    /// The namespace of the snapshot or claim.
    pub namespace: String,
    pub name: String,
    /// What the driver calls it.
    pub handle: String,
}

/// What a volume can be made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum SourceKind {
    Snapshot,
    /// The volume of another claim.
    Volume,
}

impl SourceKind {
    /// The kind of object it is.
    pub(crate) fn object(self) -> &'static str {
        match self {
            SourceKind::Snapshot => "VolumeSnapshot",
            SourceKind::Volume => "PersistentVolumeClaim",
        }
    }
}

impl ContentSource {
    /// As the driver gets it.
    pub fn to_csi(&self) -> v1::VolumeContentSource {
        let r#type = match self.kind {
            SourceKind::Snapshot => Type::Snapshot(SnapshotSource { snapshot_id: self.handle.clone() }),
            SourceKind::Volume => Type::Volume(VolumeSource { volume_id: self.handle.clone() }),
        };
        v1::VolumeContentSource { r#type: Some(r#type) }
    }
}

/// Whether the source is kept from going while it is copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceProtection {
    /// There is no source.
    NotNeeded,
    /// It carries the finalizer that holds it.
    Held(Object),
    /// It is not held yet.
    Missing(Object),
    /// It is gone, or going and not held: the driver will say what that means.
    Lost {
        /// The volume to be copied is about to be deleted, so nothing may be made from it.
        going: bool,
    },
}

/// The finalizer that holds a source of this kind.
pub(crate) fn protection(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Snapshot => names::SNAPSHOT_SOURCE_PROTECTION,
        SourceKind::Volume => names::CLONE_PROTECTION,
    }
}

/// Whether a source is held now.
pub(crate) fn hold(source: Option<&ContentSource>, cache: &Cache) -> SourceProtection {
    let Some(source) = source else { return SourceProtection::NotNeeded };
    let key = ObjectKey::new(source.namespace.as_str(), source.name.as_str());
    let found = match source.kind {
        SourceKind::Snapshot => cache.snapshot(&key).map(Object::VolumeSnapshot),
        SourceKind::Volume => cache.claim(&key).map(Object::PersistentVolumeClaim),
    };
    match found {
        Some(object) if object.meta().has_finalizer(protection(source.kind)) => SourceProtection::Held(object),
        Some(object) if !object.meta().is_deleting() => SourceProtection::Missing(object),
        Some(_) | None => SourceProtection::Lost { going: is_going(source, cache) },
    }
}

/// The volume to be copied has lost its claim and will be deleted (reliability 12).
fn is_going(source: &ContentSource, cache: &Cache) -> bool {
    let claim = format!("{}/{}", source.namespace, source.name);
    let mut volumes = cache.volumes_by_claim(&claim);
    volumes.any(|volume| volume.spec.persistent_volume_reclaim_policy == ReclaimPolicy::Delete)
}

fn wrong(code: Reason, text: String) -> Obstacle {
    Obstacle { code, text }
}

/// What the claim wants its volume made from, checked in upstream's order.
pub(crate) fn content_source(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    bytes: i64,
    cache: &Cache,
    local: &Local,
) -> Result<Option<ContentSource>, Obstacle> {
    let Some((reference, namespace)) = claim.source() else { return Ok(None) };
    if namespace != claim.metadata.namespace {
        granted(claim, reference, namespace, cache, local)?;
    }
    let group = reference.api_group.as_deref().unwrap_or("");
    let key = ObjectKey::new(namespace, reference.name.as_str());
    match (reference.kind.as_str(), group) {
        ("VolumeSnapshot" | "PersistentVolumeClaim", _) if reference.name.is_empty() => {
            Err(wrong(Reason::SourceUnnamed, "the claim's data source has no name".into()))
        }
        ("VolumeSnapshot", "snapshot.storage.k8s.io") => {
            need(local.can(ControllerRpc::CreateDeleteSnapshot), local, "make volumes from snapshots")?;
            snapshot(claim, &key, class, bytes, cache, local).map(Some)
        }
        ("VolumeSnapshot", other) => {
            Err(wrong(Reason::WrongSourceGroup, format!("{other:?} is not the group of snapshots")))
        }
        ("PersistentVolumeClaim", _) => {
            need(local.can(ControllerRpc::CloneVolume), local, "copy volumes")?;
            clone(claim, &key, class, bytes, cache, local).map(Some)
        }
        // P74: somebody else fills such volumes.
        (kind, _) => {
            Err(wrong(Reason::ExternalPopulator, format!("a volume made from a {kind} is filled by somebody else")))
        }
    }
}

/// The driver can do what the claim needs.
pub(crate) fn need(able: bool, local: &Local, what: &str) -> Result<(), Obstacle> {
    if able {
        return Ok(());
    }
    Err(wrong(Reason::DriverCannot, format!("driver {} cannot {what}", local.driver)))
}

/// P75: somebody in the source's namespace lets claims of this one refer to it.
fn granted(
    claim: &PersistentVolumeClaim,
    reference: &TypedReference,
    namespace: &str,
    cache: &Cache,
    local: &Local,
) -> Result<(), Obstacle> {
    if !local.settings.cross_namespace_sources {
        let text = "a data source in another namespace needs feature gate CrossNamespaceVolumeDataSource";
        return Err(wrong(Reason::CrossNamespaceOff, text.into()));
    }
    let group = reference.api_group.as_deref().unwrap_or("");
    let allows = |grant: &api::ReferenceGrant| {
        grant.metadata.namespace == namespace
            && grant.spec.from.iter().any(|from| {
                from.group.is_empty()
                    && from.kind == "PersistentVolumeClaim"
                    && from.namespace == claim.metadata.namespace
            })
            && grant.spec.to.iter().any(|to| {
                let named = to.name.as_deref().is_none_or(|name| name.is_empty() || name == reference.name);
                to.group == group && to.kind == reference.kind && named
            })
    };
    if cache.grants().any(|grant| allows(&grant)) {
        return Ok(());
    }
    Err(wrong(
        Reason::NotGranted,
        format!(
            "no ReferenceGrant in namespace {namespace} lets claims of namespace {} use {} {}",
            claim.metadata.namespace, reference.kind, reference.name
        ),
    ))
}

fn snapshot(
    claim: &PersistentVolumeClaim,
    key: &ObjectKey,
    class: &StorageClass,
    bytes: i64,
    cache: &Cache,
    local: &Local,
) -> Result<ContentSource, Obstacle> {
    let snapshot =
        cache.snapshot(key).ok_or_else(|| wrong(Reason::SnapshotMissing, format!("snapshot {key} does not exist")))?;
    if snapshot.metadata.is_deleting() && !snapshot.metadata.has_finalizer(names::SNAPSHOT_SOURCE_PROTECTION) {
        return Err(wrong(Reason::SnapshotBeingDeleted, format!("snapshot {key} is being deleted"))); // P59
    }
    let content = content_of(&snapshot, key, cache)?;
    let name = &content.metadata.name;
    if content.spec.driver != class.provisioner {
        let text = format!("snapshot {key} was made by {}, not by {}", content.spec.driver, class.provisioner);
        return Err(wrong(Reason::SnapshotOfAnotherDriver, text));
    }
    if snapshot.status.ready_to_use != Some(true) {
        return Err(wrong(Reason::SnapshotNotReady, format!("snapshot {key} is not ready to use")));
    }
    let Some(handle) = content.status.snapshot_handle.as_deref().filter(|handle| !handle.is_empty()) else {
        return Err(wrong(
            Reason::NoSnapshotHandle,
            format!("snapshot content {name} does not say what the driver calls it"),
        ));
    };
    large_enough(bytes, snapshot.status.restore_size.as_ref(), Reason::SmallerThanSnapshot, "the snapshot")?;
    mode_kept(claim, &content, local)?;
    Ok(ContentSource {
        kind: SourceKind::Snapshot,
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        handle: handle.into(),
    })
}

fn content_of(
    snapshot: &VolumeSnapshot,
    key: &ObjectKey,
    cache: &Cache,
) -> Result<Arc<VolumeSnapshotContent>, Obstacle> {
    let bound = snapshot.status.bound_volume_snapshot_content_name.as_deref().filter(|name| !name.is_empty());
    let Some(name) = bound else {
        return Err(wrong(Reason::SnapshotUnbound, format!("snapshot {key} is not bound to a content")));
    };
    let Some(content) = cache.snapshot_content(&ObjectKey::cluster(name)) else {
        return Err(wrong(Reason::ContentMissing, format!("snapshot content {name} does not exist")));
    };
    let held = &content.spec.volume_snapshot_ref;
    let ours = held.uid == snapshot.metadata.uid && held.namespace == key.namespace && held.name == key.name;
    if !ours {
        return Err(wrong(
            Reason::ContentOfAnother,
            format!("snapshot content {name} does not belong to snapshot {key}"),
        ));
    }
    Ok(content)
}

fn large_enough(bytes: i64, least: Option<&Quantity>, code: Reason, source: &str) -> Result<(), Obstacle> {
    let Some(least) = least.and_then(|least| least.bytes().ok()) else { return Ok(()) };
    if bytes >= least {
        return Ok(());
    }
    Err(wrong(code, format!("the claim asks for {bytes} bytes and {source} holds {least}")))
}

/// P58: a filesystem becomes a raw device, or the other way round, only where the content allows it.
fn mode_kept(claim: &PersistentVolumeClaim, content: &VolumeSnapshotContent, local: &Local) -> Result<(), Obstacle> {
    let (was, wanted) = (&content.spec.source_volume_mode, &claim.spec.volume_mode);
    let (Some(was), Some(wanted)) = (was, wanted) else { return Ok(()) };
    let allowed = content.metadata.annotation(names::ALLOW_MODE_CHANGE).is_some_and(is_true);
    if was == wanted || allowed || !local.settings.prevent_volume_mode_conversion {
        return Ok(());
    }
    let text = format!(
        "the snapshot is of a {was} volume and the claim asks for {wanted}: annotate content {} with {}=true to allow it",
        content.metadata.name,
        names::ALLOW_MODE_CHANGE
    );
    Err(wrong(Reason::VolumeModeChanged, text))
}

/// The words Kubernetes reads as true.
fn is_true(text: &str) -> bool {
    matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

fn clone(
    claim: &PersistentVolumeClaim,
    key: &ObjectKey,
    class: &StorageClass,
    bytes: i64,
    cache: &Cache,
    local: &Local,
) -> Result<ContentSource, Obstacle> {
    let source = cache.claim(key).ok_or_else(|| wrong(Reason::SourceMissing, format!("claim {key} does not exist")))?;
    if source.status.phase != ClaimPhase::Bound {
        return Err(wrong(Reason::SourceNotBound, format!("claim {key}, which is to be copied, is not bound")));
    }
    if source.metadata.is_deleting() {
        return Err(wrong(Reason::SourceBeingDeleted, format!("claim {key}, which is to be copied, is being deleted")));
    }
    if source.class().is_none() || claim.class().is_none() {
        return Err(wrong(Reason::SourceWithoutClass, format!("claim {key}, which is to be copied, has no class")));
    }
    large_enough(bytes, source.requested(), Reason::SmallerThanSource, "the source")?;
    let volume = volume_of(&source, key, cache)?;
    let handle = copyable(&volume, &source, class, &local.settings.migration)?;
    if source.volume_mode() != claim.volume_mode() {
        let text = format!("claim {key} is {} and the copy is to be {}", source.volume_mode(), claim.volume_mode());
        return Err(wrong(Reason::SourceModeDiffers, text));
    }
    Ok(ContentSource { kind: SourceKind::Volume, namespace: key.namespace.clone(), name: key.name.clone(), handle })
}

fn volume_of(
    source: &PersistentVolumeClaim,
    key: &ObjectKey,
    cache: &Cache,
) -> Result<Arc<PersistentVolume>, Obstacle> {
    let name = source.spec.volume_name.as_str();
    if name.is_empty() {
        return Err(wrong(Reason::SourceWithoutVolume, format!("claim {key}, which is to be copied, names no volume")));
    }
    let volume = cache.volume(&ObjectKey::cluster(name));
    volume.ok_or_else(|| wrong(Reason::SourceVolumeMissing, format!("volume {name} does not exist")))
}

fn copyable(
    volume: &PersistentVolume,
    source: &PersistentVolumeClaim,
    class: &StorageClass,
    migration: &Migration,
) -> Result<String, Obstacle> {
    let name = &volume.metadata.name;
    let seen = migration.as_csi(volume).ok();
    let Some(csi) = seen.as_ref().and_then(|volume| volume.spec.csi.as_ref()) else {
        return Err(wrong(Reason::SourceNotCsi, format!("volume {name} was made by no CSI driver")));
    };
    if csi.driver != class.provisioner {
        let text = format!("volume {name} was made by {}, not by {}", csi.driver, class.provisioner);
        return Err(wrong(Reason::SourceOfAnotherDriver, text));
    }
    let held = volume.spec.claim_ref.as_ref().is_some_and(|held| {
        held.uid == source.metadata.uid
            && held.namespace == source.metadata.namespace
            && held.name == source.metadata.name
    });
    if !held {
        return Err(wrong(
            Reason::SourceVolumeOfAnother,
            format!("volume {name} is not for the claim that is to be copied"),
        ));
    }
    if volume.status.phase != VolumePhase::Bound {
        return Err(wrong(Reason::SourceVolumeNotBound, format!("volume {name} is not bound")));
    }
    Ok(csi.volume_handle.clone())
}
