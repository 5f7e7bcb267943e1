//! Builds the views from the cache and the facts about this machine.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{Container, EmptyDir, ObjectKey, PersistentVolume, Pod, PodVolume, Quantity, VolumeMode, names};
use control::host::{HostPathKind, ProcessState};
use control::{Cache, Timestamp};
use csi::NodeRpc;

use crate::checks::{self, CheckKey, CheckView, ContainerHealth};
use crate::group::{self, Grouped};
use crate::growth::Growth;
use crate::inline;
use crate::local::Local;
use crate::paths::{self, Paths, ProcessName};
use crate::served::{self, CsiVolume, driver_object};
use crate::spec::{self, VolumeSpec};
use crate::uses::ContainerUses;
use crate::view::{
    AttachmentState, ContainerView, MemoryVolume, MountState, NodeSide, OnNode, OwnVolume, PodView, PodVolumeView,
    RecordSide, Remains, ToldOfNode, User, UserState, View, VolumeView,
};

/// The facts about a volume.
pub fn volume(name: &str, cache: &Cache, local: &Local) -> View {
    let (driver, handle) = paths::split_unique_name(name).unwrap_or_default();
    let users = users(name, driver, handle, cache, local);
    let wanted = users.values().any(|user| user.standing == UserState::Wanted);
    let (attachment, spec) = if wanted {
        spec(driver, handle, cache, local)
    } else {
        (served::unwanted(driver, handle, cache, local), None)
    };
    let recorded = local.records.get(name);
    // What the filesystem of a volume has here is told also when its last pod is gone.
    let of_record = |one: &CsiVolume| recorded.is_some_and(|r| r.volume == one.volume.metadata.name);
    let all = || served::of_handle(driver, handle, cache, local).into_iter();
    let grown = wanted_volume(driver, handle, cache, local).or_else(|| all().find(of_record));
    let growth = grown.and_then(|one| growth(name, &one.volume, cache, local));
    let ephemeral = match (recorded, &spec) {
        (Some(record), _) => record.is_ephemeral(),
        (None, Some(spec)) => spec.ephemeral,
        (None, None) => inline::is_handle(handle) && all().next().is_none(),
    };
    let block = match (recorded, &spec) {
        (Some(record), _) => record.block.then_some(&record.volume),
        (None, spec) => spec.as_ref().filter(|spec| spec.is_block()).map(|spec| &spec.volume),
    };
    let plain = Paths::of(&local.root, driver, handle);
    let paths = match block {
        Some(volume) => plain.as_device(&local.root, driver, volume),
        None => plain,
    };
    let staged_by_us = local.staged.contains(&paths.staging);
    let staged = MountState::from(if block.is_some() { staged_by_us } else { local.mounts.contains(&paths.staging) });
    let record = match recorded {
        Some(record) => RecordSide::Present(record.clone()),
        None if local.unreadable.contains(&paths.record) => RecordSide::Unreadable,
        None => RecordSide::Missing,
    };
    View::Volume(Box::new(VolumeView {
        node: local.node.clone(),
        incarnation: local.incarnation.clone(),
        name: name.into(),
        driver: driver.into(),
        handle: handle.into(),
        node_side: node_side(name, cache, local),
        spec,
        attachment,
        ephemeral,
        facts: local.drivers.get(driver).cloned(),
        maybe_recorded: local.maybe_recorded.contains(name),
        stray: stray(&record, staged, &paths, driver, handle, cache, local),
        record,
        staged,
        staged_by_us,
        users,
        growth,
        out_of_reach: wanted_volume(driver, handle, cache, local)
            .and_then(|one| spec::out_of_reach(&one.volume, cache, local)),
        undrained: recorded.and_then(|record| served::undrained(record, local)),
        clearing: local.clearing.get(name).copied(),
        paths,
    }))
}

/// What the claim of a volume says about its growth.
fn growth(name: &str, volume: &PersistentVolume, cache: &Cache, local: &Local) -> Option<Growth> {
    let reference = volume.spec.claim_ref.as_ref()?;
    let claim = cache.claim(&ObjectKey::new(reference.namespace.clone(), reference.name.clone()))?;
    let recorded = local.records.get(name).and_then(|record| record.size);
    let ours = reference.uid == claim.metadata.uid;
    ours.then(|| Growth::of(&claim, volume, recorded, local.stuck.get(name).copied())).flatten()
}

/// A pod that has not started waits for the growth of its volume's filesystem.
fn is_growing(pod: &Pod, name: &str, volume: &PersistentVolume, cache: &Cache, local: &Local) -> bool {
    let driver = volume.spec.csi.as_ref().and_then(|csi| local.drivers.get(&csi.driver));
    driver.is_some_and(|facts| facts.can(NodeRpc::ExpandVolume))
        && growth(name, volume, cache, local).is_some_and(|growth| growth.holds_up())
        && !local.pod_processes().any(|(process, _)| process.uid == pod.metadata.uid)
}

/// What the driver is told of a volume that some pod wants, and how it is attached.
fn spec(driver: &str, handle: &str, cache: &Cache, local: &Local) -> (AttachmentState, Option<VolumeSpec>) {
    let (object, facts) = (driver_object(driver, cache), local.drivers.get(driver));
    if let Some(one) = wanted_volume(driver, handle, cache, local) {
        let (attachment, publish_context) = served::attachment(&one, cache, local);
        let migrated = one.plugin.is_some() && one.kept_from.is_none();
        let spec = VolumeSpec { publish_context, migrated, ..VolumeSpec::of(&one.volume, facts) };
        return (attachment, Some(spec.by(object.as_deref())));
    }
    let inline = inline::find(driver, handle, cache, local);
    let spec = inline.and_then(|(pod, name)| {
        let volume = pod.spec.volumes.iter().find(|volume| volume.name == name)?;
        Some(VolumeSpec::inline(&pod, volume, volume.csi.as_ref()?, facts).by(object.as_deref()))
    });
    (AttachmentState::NotNeeded, spec)
}

/// The volume of a handle that some pod wants.
fn wanted_volume(driver: &str, handle: &str, cache: &Cache, local: &Local) -> Option<CsiVolume> {
    let mut all = served::of_handle(driver, handle, cache, local).into_iter();
    all.find(|one| !wanting_pods(one, cache, local).is_empty())
}

/// The volume a claim is bound to, if both say so; otherwise a clause that says what is missing (KL-31).
pub fn volume_of_claim(namespace: &str, name: &str, cache: &Cache) -> Result<Arc<PersistentVolume>, String> {
    let Some(claim) = cache.claim(&ObjectKey::new(namespace, name)) else {
        return Err(format!("claim {name} does not exist"));
    };
    if claim.spec.volume_name.is_empty() {
        return Err(format!("claim {name} is not bound to a volume yet"));
    }
    let Some(volume) = cache.volume(&ObjectKey::cluster(claim.spec.volume_name.clone())) else {
        return Err(format!("volume {} of claim {name} does not exist", claim.spec.volume_name));
    };
    match &volume.spec.claim_ref {
        Some(owner) if owner.uid == claim.metadata.uid => Ok(volume),
        Some(_) | None => Err(format!("volume {} is not bound to claim {name}", volume.metadata.name)),
    }
}

/// The pod can still run: nobody asked for its end and it has not ended.
fn is_alive(pod: &Pod, local: &Local) -> bool {
    pod.spec.node_name == local.node
        && !pod.metadata.is_deleting()
        && !pod.is_terminal()
        && !local.sealed.contains(&pod.metadata.uid)
}

fn users(name: &str, driver: &str, handle: &str, cache: &Cache, local: &Local) -> BTreeMap<String, User> {
    let mut users: BTreeMap<String, User> = BTreeMap::new();
    for (uid, publish) in local.records.get(name).into_iter().flat_map(|record| &record.publishes) {
        let standing = if local.sealed.contains(uid) { UserState::Sealed } else { UserState::Kept };
        let user = User {
            pod: ObjectKey::new(publish.pod_namespace.clone(), publish.pod_name.clone()),
            service_account: String::new(),
            target: publish.target.clone(),
            read_only: publish.read_only,
            standing,
            mounted: MountState::from(local.mounts.contains(&publish.target)),
            recorded: true,
            mount_group: None,
            group: None,
            grouped: local.grouped.contains(&publish.target),
            vanished: local.vanished.contains(&publish.target),
            health: local.health.get(&publish.target).cloned(),
            recovered: local.recovered.contains(&publish.target),
        };
        users.insert(uid.clone(), user);
    }
    let (object, facts) = (driver_object(driver, cache), local.drivers.get(driver));
    let mut want = |pod: &Pod, target: String, volume: Grouped<'_>| {
        let user = users.entry(pod.metadata.uid.clone()).or_insert_with(|| User {
            pod: pod.metadata.key(),
            service_account: String::new(),
            read_only: volume.read_only,
            standing: UserState::Wanted,
            mounted: MountState::from(local.mounts.contains(&target)),
            grouped: local.grouped.contains(&target),
            target,
            recorded: false,
            vanished: false,
            health: None,
            recovered: false,
            mount_group: None,
            group: None,
        });
        let volume = Grouped { read_only: user.read_only, ..volume };
        user.standing = UserState::Wanted;
        user.service_account = pod.spec.service_account_name.clone();
        user.mount_group = group::for_driver(pod, facts).filter(|_| !volume.block);
        user.group = group::change(pod, &volume, object.as_deref(), facts);
    };
    for one in served::of_handle(driver, handle, cache, local) {
        for pod in wanting_pods(&one, cache, local) {
            let grouped = Grouped::of(&one.volume, read_only(&pod, &one));
            let (uid, name) = (&pod.metadata.uid, &one.volume.metadata.name);
            let target = match grouped.block {
                true => paths::block_target(&local.root, driver, uid, name),
                false => one.target(&local.root, uid),
            };
            want(&pod, target, grouped);
        }
    }
    if let Some((pod, name)) = inline::find(driver, handle, cache, local).filter(|(pod, _)| is_alive(pod, local)) {
        let csi = pod.spec.volumes.iter().find(|volume| volume.name == name).and_then(|volume| volume.csi.as_ref());
        if let Some(csi) = csi {
            want(&pod, paths::target_path(&local.root, &pod.metadata.uid, &name), Grouped::inline(csi));
        }
    }
    users
}

/// Live pods of this node that use the claim a volume is bound to, or hold the volume themselves, and for which its
/// driver may serve it.
fn wanting_pods(one: &CsiVolume, cache: &Cache, local: &Local) -> Vec<Arc<Pod>> {
    let holds = |pod: &Arc<Pod>| is_alive(pod, local) && served::is_held_by(pod, one, local);
    let mut pods = match one.held {
        true => cache.pods_by_node(&local.node).filter(holds).collect(),
        false => claiming_pods(&one.volume, cache, local),
    };
    pods.retain(|pod| one.hindered(pod, cache, local).is_none());
    pods
}

fn claiming_pods(volume: &PersistentVolume, cache: &Cache, local: &Local) -> Vec<Arc<Pod>> {
    let Some(claim) = &volume.spec.claim_ref else { return Vec::new() };
    let bound = volume_of_claim(&claim.namespace, &claim.name, cache);
    if bound.is_ok_and(|bound| bound.metadata.name == volume.metadata.name) {
        let term = format!("{}/{}", claim.namespace, claim.name);
        let pods = cache.pods_by_claim(&term);
        let owned = cache.claim(&ObjectKey::new(claim.namespace.clone(), claim.name.clone()));
        let owned = |uid: &str| owned.as_ref().is_some_and(|claim| claim.metadata.is_controlled_by(uid));
        // KL-31: a claim made from a template serves the pod it was made for.
        let its_own = |pod: &Pod| !pod.templates_claim(&claim.name) || owned(&pod.metadata.uid);
        pods.filter(|pod| is_alive(pod, local) && is_used(pod, &claim.name, volume) && its_own(pod)).collect()
    } else {
        Vec::new()
    }
}

/// Read-only if every use in the pod is (KL-71). That the volume itself says so counts when it is attached (KL-72), but
/// for one that pods hold: what it says is their use.
fn read_only(pod: &Pod, one: &CsiVolume) -> bool {
    if one.held {
        return one.csi().read_only;
    }
    let claim = one.volume.spec.claim_ref.as_ref().map(|claim| claim.name.as_str()).unwrap_or_default();
    let mut uses = pod.spec.volumes.iter().filter_map(|v| v.persistent_volume_claim.as_ref());
    !pod.templates_claim(claim) && uses.all(|used| used.claim_name != claim || used.read_only)
}

/// Some container uses the claim, and as what its volume is (KL-30, KL-31).
fn is_used(pod: &Pod, claim: &str, volume: &PersistentVolume) -> bool {
    let made = |volume: &api::PodVolume| volume.ephemeral.is_some() && pod.ephemeral_claim(&volume.name) == claim;
    let of_claim = |volume: &&api::PodVolume| {
        volume.persistent_volume_claim.as_ref().is_some_and(|used| used.claim_name == claim) || made(volume)
    };
    let mut uses = pod.spec.volumes.iter().filter(of_claim).map(|volume| ContainerUses::of(pod, &volume.name));
    uses.any(|uses| uses.any() && uses.check("", volume.volume_mode()).is_ok())
}

fn node_side(name: &str, cache: &Cache, local: &Local) -> NodeSide {
    let Some(node) = cache.node(&ObjectKey::cluster(local.node.clone())) else { return NodeSide::Missing };
    if node.metadata.annotation(names::AGENT_INCARNATION) != Some(&local.incarnation) {
        return NodeSide::NotYet;
    }
    NodeSide::Ours(OnNode {
        version: node.metadata.resource_version.clone(),
        in_use: node.status.volumes_in_use.clone(),
        listed: node.reports_in_use(name),
        attached: node.reports_attached(name),
    })
}

/// A mount of the volume although no record says so: at its staging path, or in some pod's directory.
fn stray(
    record: &RecordSide,
    staged: MountState,
    paths: &Paths,
    driver: &str,
    handle: &str,
    cache: &Cache,
    local: &Local,
) -> Option<String> {
    match record {
        RecordSide::Present(_) => return None,
        RecordSide::Missing | RecordSide::Unreadable => {}
    }
    if staged == MountState::Yes {
        return Some(paths.staging.clone());
    }
    served::of_handle(driver, handle, cache, local).into_iter().find_map(|one| {
        let end = one.target("", "");
        let end = end.strip_prefix("/pods/").unwrap_or(&end);
        let devices = format!("{}/", paths::block_publish_dir(&local.root, driver, &one.volume.metadata.name));
        local.mounts.iter().find(|mount| mount.ends_with(end) || mount.starts_with(&devices)).cloned()
    })
}

/// The facts about a pod.
pub fn pod(key: &ObjectKey, cache: &Cache, local: &Local) -> View {
    let pod = cache.pod(key).filter(|pod| pod.spec.node_name == local.node);
    let uid = pod.as_ref().map(|pod| pod.metadata.uid.clone()).unwrap_or_default();
    let init = pod.iter().flat_map(|pod| &pod.spec.init_containers);
    let containers = pod.iter().flat_map(|pod| &pod.spec.containers);
    View::Pod(Box::new(PodView {
        key: key.clone(),
        root: local.root.clone(),
        sealed: local.sealed.contains(&uid),
        recorded: local.is_recorded(&uid),
        init: init.map(|container| container_view(pod.as_deref(), container, local)).collect(),
        containers: containers.map(|container| container_view(pod.as_deref(), container, local)).collect(),
        volumes: pod.iter().flat_map(|pod| pod_volumes(pod, cache, local)).collect(),
        volume_groups: pod.iter().flat_map(|pod| volume_groups(pod, cache)).collect(),
        own_mounts: own_mounts(&uid, local),
        node: node_facts(cache, local),
        remains: remains(key, &uid, local),
        pod,
    }))
}

/// What containers can be told of the node. Without an address it is called by its name, as kubelet does.
fn node_facts(cache: &Cache, local: &Local) -> ToldOfNode {
    let Some(node) = cache.node(&ObjectKey::cluster(local.node.clone())) else { return ToldOfNode::default() };
    let address = node.status.addresses.iter().find(|address| address.r#type == "InternalIP");
    ToldOfNode {
        address: address.map(|address| address.address.clone()).unwrap_or_default(),
        allocatable: node.status.allocatable.clone(),
    }
}

/// What is mounted in the volumes that this agent makes itself.
fn own_mounts(uid: &str, local: &Local) -> Vec<String> {
    if uid.is_empty() {
        return Vec::new();
    }
    let dirs: Vec<String> = paths::own_dirs(&local.root, uid).into_iter().map(|dir| format!("{dir}/")).collect();
    local
        .mounts
        .union(&local.maybe_mounted)
        .filter(|mount| dirs.iter().any(|dir| mount.starts_with(dir)))
        .cloned()
        .collect()
}

/// The facts about a probe or hook.
pub fn check(key: &CheckKey, cache: &Cache, local: &Local) -> View {
    let pod = cache.pod(&key.pod).filter(|pod| pod.spec.node_name == local.node);
    let all = pod.iter().flat_map(|pod| pod.spec.init_containers.iter().chain(&pod.spec.containers));
    let container = all.into_iter().find(|container| container.name == key.container);
    let (Some(pod), Some(container)) = (&pod, container) else {
        let (spec, process, last, started, ending) = (None, None, None, false, false);
        return View::Check(Box::new(CheckView { key: key.clone(), spec, process, last, started, ending }));
    };
    let seen = container_view(Some(pod), container, local);
    let process = seen.latest.and_then(|(_, name, state)| match state {
        ProcessState::Running { since_millis } if since_millis > 0 => Some((name, Timestamp(since_millis))),
        _others => None,
    });
    View::Check(Box::new(CheckView {
        key: key.clone(),
        spec: checks::spec(pod, container, key.kind),
        last: process.as_ref().and_then(|(name, _)| local.checks.get(&(name.clone(), key.kind))).cloned(),
        started: seen.started,
        ending: process.as_ref().is_some_and(|(name, _)| local.ending.contains(name)),
        process,
    }))
}

fn container_view(pod: Option<&Pod>, container: &Container, local: &Local) -> ContainerView {
    let uid = pod.map(|pod| pod.metadata.uid.as_str()).unwrap_or_default();
    let ours = |name: &ProcessName| name.uid == uid && name.container == container.name;
    let processes = local.pod_processes().filter(|(name, _)| ours(name));
    let mut processes: Vec<_> =
        processes.filter_map(|(name, state)| Some((name.restart, name.print()?, state))).collect();
    processes.sort_by_key(|(restart, ..)| *restart);
    let latest = processes.pop();
    let stays =
        |pod: &&Pod| container.is_sidecar() || !pod.spec.init_containers.iter().any(|one| one.name == container.name);
    let process = latest.as_ref().map(|(restart, name, _)| (*restart, name.as_str()));
    let health = match pod.filter(stays) {
        Some(pod) => checks::health(pod, container, process, local),
        None => ContainerHealth { started: true, ready: true, unwell: None, pre_stop: None },
    };
    ContainerView {
        latest,
        started: health.started,
        ready: health.ready,
        unwell: health.unwell,
        pre_stop: health.pre_stop,
        earlier: processes.into_iter().map(|(_, name, state)| (name, state)).collect(),
    }
}

/// What became of each volume that some container uses (KL-30).
fn pod_volumes(pod: &Arc<Pod>, cache: &Cache, local: &Local) -> Vec<(String, PodVolumeView)> {
    let view = |volume: &api::PodVolume| match (&volume.persistent_volume_claim, &volume.csi, &volume.empty_dir) {
        (Some(claim), _, _) => claim_volume(pod, &volume.name, claim, cache, local),
        (None, Some(csi), _) => inline_volume(pod, &volume.name, csi, cache, local),
        (None, None, Some(empty)) => empty_dir(pod, &volume.name, empty, local),
        (None, None, None) if volume.ephemeral.is_some() => ephemeral_volume(pod, &volume.name, cache, local),
        (None, None, None) if volume.in_tree.is_some() => held_volume(pod, volume, cache, local),
        (None, None, None) => made_volume(pod, volume, local),
    };
    let used = pod.spec.volumes.iter().filter(|volume| ContainerUses::of(pod, &volume.name).any());
    used.map(|volume| (volume.name.clone(), view(volume))).collect()
}

/// A directory of the pod's own: on the disk, or in memory with the mode and the size kubelet gives it.
fn empty_dir(pod: &Pod, name: &str, empty: &EmptyDir, local: &Local) -> PodVolumeView {
    let path = paths::own_volume(&local.root, &pod.metadata.uid, paths::EMPTY_DIR, name);
    match empty.medium.as_str() {
        "" => PodVolumeView::Directory(path),
        "Memory" => {
            let mounted = MountState::from(local.mounts.contains(&path));
            let memory = Some(MemoryVolume { bytes: memory_limit(pod, empty), mode: 0o777 });
            PodVolumeView::Own(OwnVolume { path, memory, mounted, filled: false })
        }
        other => PodVolumeView::Impossible(format!("emptyDir medium {other:?} is not had here; use Memory or none")),
    }
}

/// No more than its own limit, nor than what the containers may use together if all of them are limited.
fn memory_limit(pod: &Pod, empty: &EmptyDir) -> Option<u64> {
    let bytes = |quantity: &Quantity| quantity.bytes().ok().and_then(|bytes| u64::try_from(bytes).ok());
    let limits = pod.spec.containers.iter().map(|c| c.resources.limits.get("memory").and_then(bytes));
    let all: Option<u64> = limits.sum();
    let own = empty.size_limit.as_ref().and_then(bytes);
    [own, all].into_iter().flatten().filter(|bytes| *bytes > 0).min()
}

/// A volume of files that the pod names, or a place of the machine. What may be secret is never on a disk.
fn made_volume(pod: &Pod, volume: &PodVolume, local: &Local) -> PodVolumeView {
    let sources = (&volume.config_map, &volume.secret, &volume.projected, &volume.downward_api);
    let (kind, in_memory) = match sources {
        (Some(_), ..) => (paths::CONFIG_MAP, false),
        (None, Some(_), ..) => (paths::SECRET, true),
        (None, None, Some(_), _) => (paths::PROJECTED, true),
        (None, None, None, Some(_)) => (paths::DOWNWARD_API, true),
        (None, None, None, None) => return host_path(volume),
    };
    let path = paths::own_volume(&local.root, &pod.metadata.uid, kind, &volume.name);
    let mounted = MountState::from(local.mounts.contains(&path));
    let memory = in_memory.then_some(MemoryVolume { bytes: None, mode: 0o755 });
    PodVolumeView::Own(OwnVolume { path, memory, mounted, filled: true })
}

fn host_path(volume: &PodVolume) -> PodVolumeView {
    let Some(host) = &volume.host_path else { return PodVolumeView::Unsupported };
    match HostPathKind::named(host.r#type.as_deref().unwrap_or_default()) {
        Some(kind) => PodVolumeView::HostPath { path: host.path.clone(), kind },
        None => {
            let kind = host.r#type.as_deref().unwrap_or_default();
            PodVolumeView::Impossible(format!("hostPath type {kind:?} does not exist; use one such as Directory"))
        }
    }
}

/// The volume of a claim that was made from a template; one of that name that is not the pod's is not used (KL-31).
fn ephemeral_volume(pod: &Pod, volume: &str, cache: &Cache, local: &Local) -> PodVolumeView {
    let name = pod.ephemeral_claim(volume);
    match cache.claim(&ObjectKey::new(pod.metadata.namespace.clone(), name.clone())) {
        Some(claim) if !claim.metadata.is_controlled_by(&pod.metadata.uid) => PodVolumeView::Waiting(format!(
            "claim {name} is there already and was not made for pod {}",
            pod.metadata.name
        )),
        Some(_) | None => {
            claim_volume(pod, volume, &api::PodClaim { claim_name: name, read_only: false }, cache, local)
        }
    }
}

/// Reliability 41: ready only if the very target of this pod and volume is recorded and mounted.
fn claim_volume(pod: &Pod, name: &str, claim: &api::PodClaim, cache: &Cache, local: &Local) -> PodVolumeView {
    let volume = match volume_of_claim(&pod.metadata.namespace, &claim.claim_name, cache) {
        Ok(volume) => volume,
        Err(missing) => return PodVolumeView::Waiting(missing),
    };
    let read_only = claim.read_only;
    CsiVolume::of(volume, local)
        .map_or_else(PodVolumeView::Impossible, |one| served_volume(pod, name, &one, read_only, cache, local))
}

/// S4-18: a volume of an in-tree plugin in the pod's own spec.
fn held_volume(pod: &Pod, volume: &PodVolume, cache: &Cache, local: &Local) -> PodVolumeView {
    CsiVolume::held(pod, volume, local).map_or_else(PodVolumeView::Impossible, |one| {
        served_volume(pod, &volume.name, &one, one.csi().read_only, cache, local)
    })
}

/// A volume that a driver serves, or is to serve, for a pod.
fn served_volume(
    pod: &Pod,
    name: &str,
    one: &CsiVolume,
    use_read_only: bool,
    cache: &Cache,
    local: &Local,
) -> PodVolumeView {
    let volume = &one.volume;
    if let Some(hindered) = one.hindered(pod, cache, local) {
        return hindered;
    }
    if let Err(wrong) = ContainerUses::of(pod, name).check(&volume.metadata.name, volume.volume_mode()) {
        return PodVolumeView::Impossible(wrong);
    }
    let grouped = Grouped::of(volume, read_only(pod, one));
    let csi = one.csi();
    let place = Published { driver: &csi.driver, handle: &csi.volume_handle, volume: &volume.metadata.name, grouped };
    match place.view(pod, use_read_only, cache, local) {
        PodVolumeView::Ready { .. } | PodVolumeView::Device { .. }
            if !grouped.read_only && is_growing(pod, &one.unique_name(), volume, cache, local) =>
        {
            PodVolumeView::Waiting(format!("the filesystem of volume {} is being grown", volume.metadata.name))
        }
        view => view,
    }
}

/// KL-103.
fn inline_volume(pod: &Pod, name: &str, csi: &api::InlineCsi, cache: &Cache, local: &Local) -> PodVolumeView {
    if let Err(wrong) = ContainerUses::of(pod, name).check(name, &VolumeMode::Filesystem) {
        return PodVolumeView::Impossible(wrong);
    }
    let handle = names::inline_volume_handle(&pod.metadata.uid, name);
    let place = Published { driver: &csi.driver, handle: &handle, volume: name, grouped: Grouped::inline(csi) };
    place.view(pod, csi.read_only == Some(true), cache, local)
}

/// A volume of a driver that is, or is to be, published for a pod.
struct Published<'a> {
    driver: &'a str,
    handle: &'a str,
    volume: &'a str,
    grouped: Grouped<'a>,
}

impl Published<'_> {
    /// Reliability 41: ready only if the very target of this pod and volume is recorded and mounted, and its files are
    /// the pod's group's where they are to be.
    fn view(&self, pod: &Pod, read_only: bool, cache: &Cache, local: &Local) -> PodVolumeView {
        let record = local.records.get(&paths::unique_name(self.driver, self.handle));
        let publish = record.and_then(|record| record.publishes.get(&pod.metadata.uid));
        let Some(publish) = publish.filter(|publish| local.mounts.contains(&publish.target)) else {
            return PodVolumeView::Waiting(format!("volume {} is not mounted yet", self.volume));
        };
        let grouped = Grouped { read_only: publish.read_only, ..self.grouped };
        let object = driver_object(self.driver, cache);
        if let Some(change) = group::change(pod, &grouped, object.as_deref(), local.drivers.get(self.driver))
            && !local.grouped.contains(&publish.target)
        {
            let text = format!("the files of volume {} are not given to group {} yet", self.volume, change.group);
            return PodVolumeView::Waiting(text);
        }
        let (path, read_only) = (publish.target.clone(), publish.read_only || read_only);
        match self.grouped.block {
            true => PodVolumeView::Device { path, read_only },
            false => PodVolumeView::Ready { path, read_only },
        }
    }
}

/// KL-86: groups that volumes add to every process of the pod.
fn volume_groups(pod: &Pod, cache: &Cache) -> Vec<u32> {
    let volumes = pod.claim_names().filter_map(|claim| volume_of_claim(&pod.metadata.namespace, &claim, cache).ok());
    let groups = volumes.filter_map(|volume| volume.metadata.annotation(names::SUPPLEMENTAL_GID)?.parse().ok());
    groups.filter(|group| *group != u32::MAX).collect()
}

fn remains(key: &ObjectKey, current: &str, local: &Local) -> Vec<Remains> {
    let mut uids: BTreeSet<String> = BTreeSet::new();
    uids.extend(local.pod_processes().filter(|(name, _)| &name.pod == key).map(|(name, _)| name.uid));
    for (uid, publish) in local.records.values().flat_map(|record| &record.publishes) {
        if publish.pod_namespace == key.namespace && publish.pod_name == key.name {
            uids.insert(uid.clone());
        }
    }
    uids.remove(current);
    let remains = |uid: String| Remains {
        sealed: local.sealed.contains(&uid),
        recorded: local.is_recorded(&uid),
        processes: local
            .pod_processes()
            .filter(|(name, _)| name.uid == uid)
            .filter_map(|(name, state)| Some((name.print()?, state)))
            .collect(),
        own_mounts: own_mounts(&uid, local),
        uid,
    };
    uids.into_iter().map(remains).collect()
}
