//! Builds the views from the cache and the facts about this machine.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{ObjectKey, PersistentVolume, Pod, names};
use control::Cache;

use crate::local::Local;
use crate::paths::{self, Paths};
use crate::spec::VolumeSpec;
use crate::view::{
    AttachmentState, ContainerView, MountState, NodeSide, OnNode, PodView, PodVolumeView, RecordSide, Remains, User,
    UserState, View, VolumeView,
};

/// The facts about a volume.
pub fn volume(name: &str, cache: &Cache, local: &Local) -> View {
    let (driver, handle) = paths::split_unique_name(name).unwrap_or_default();
    let paths = Paths::of(&local.root, driver, handle);
    let users = users(name, driver, handle, cache, local);
    let wanted = wanted_volume(&users, driver, handle, cache);
    let (attachment, context) = attachment(driver, wanted.as_deref(), cache, local);
    let spec = wanted.map(|volume| VolumeSpec {
        publish_context: context,
        pod_info: driver_object(driver, cache).is_some_and(|d| d.spec.pod_info_on_mount.unwrap_or(false)),
        ..VolumeSpec::of(&volume)
    });
    let staged = MountState::from(local.mounts.contains(&paths.staging));
    let record = match local.records.get(name) {
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
        facts: local.drivers.get(driver).cloned(),
        stray: stray(&record, staged, &paths, driver, handle, cache, local),
        record,
        staged,
        staged_by_us: local.staged.contains(&paths.staging),
        users,
        clearing: local.clearing.get(name).copied(),
        paths,
    }))
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
        };
        users.insert(uid.clone(), user);
    }
    for volume in cache.volumes_by_handle(&format!("{driver}^{handle}")) {
        for pod in wanting_pods(&volume, cache, local) {
            let target = paths::target_path(&local.root, &pod.metadata.uid, &volume.metadata.name);
            let user = users.entry(pod.metadata.uid.clone()).or_insert_with(|| User {
                pod: pod.metadata.key(),
                service_account: String::new(),
                read_only: read_only(&pod, &volume),
                standing: UserState::Wanted,
                mounted: MountState::from(local.mounts.contains(&target)),
                target,
                recorded: false,
            });
            user.standing = UserState::Wanted;
            user.service_account = pod.spec.service_account_name.clone();
        }
    }
    users
}

/// Live pods of this node that use the claim a volume is bound to.
fn wanting_pods(volume: &PersistentVolume, cache: &Cache, local: &Local) -> Vec<Arc<Pod>> {
    let Some(claim) = &volume.spec.claim_ref else { return Vec::new() };
    let bound = volume_of_claim(&claim.namespace, &claim.name, cache);
    if bound.is_ok_and(|bound| bound.metadata.name == volume.metadata.name) {
        let term = format!("{}/{}", claim.namespace, claim.name);
        let pods = cache.pods_by_claim(&term);
        pods.filter(|pod| is_alive(pod, local)).collect()
    } else {
        Vec::new()
    }
}

/// Read-only if the volume is, or if every use in the pod is.
fn read_only(pod: &Pod, volume: &PersistentVolume) -> bool {
    let claim = volume.spec.claim_ref.as_ref().map(|claim| claim.name.as_str()).unwrap_or_default();
    let mut uses = pod.spec.volumes.iter().filter_map(|v| v.persistent_volume_claim.as_ref());
    volume.spec.csi.as_ref().is_some_and(|csi| csi.read_only)
        || uses.all(|used| used.claim_name != claim || used.read_only)
}

fn wanted_volume(
    users: &BTreeMap<String, User>,
    driver: &str,
    handle: &str,
    cache: &Cache,
) -> Option<Arc<PersistentVolume>> {
    let wanted = users.values().any(|user| user.standing == UserState::Wanted);
    cache.volumes_by_handle(&format!("{driver}^{handle}")).find(|volume| wanted && volume.spec.claim_ref.is_some())
}

fn driver_object(driver: &str, cache: &Cache) -> Option<Arc<api::CSIDriver>> {
    cache.driver(&ObjectKey::cluster(driver))
}

fn attachment(
    driver: &str,
    volume: Option<&PersistentVolume>,
    cache: &Cache,
    local: &Local,
) -> (AttachmentState, BTreeMap<String, String>) {
    if !driver_object(driver, cache).is_none_or(|driver| driver.attach_required()) {
        return (AttachmentState::NotNeeded, BTreeMap::new());
    }
    let name = volume.map(|volume| volume.metadata.name.as_str()).unwrap_or_default();
    let mut here = cache.attachments_by_volume(name).filter(|attachment| attachment.spec.node_name == local.node);
    let waiting = |text: String| (AttachmentState::Waiting(text), BTreeMap::new());
    match here.next() {
        None => waiting(format!("there is no VolumeAttachment of volume {name} to node {} yet", local.node)),
        Some(found) if found.metadata.is_deleting() => {
            waiting(format!("VolumeAttachment {} is being deleted", found.metadata.name))
        }
        Some(found) if !found.status.attached => match &found.status.attach_error {
            Some(error) => waiting(format!("attaching volume {name} fails: {}", error.message)),
            None => waiting(format!("volume {name} is not attached to node {} yet", local.node)),
        },
        Some(found) => (AttachmentState::Attached, found.status.attachment_metadata.clone()),
    }
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
    let term = format!("{driver}^{handle}");
    let volumes = cache.volumes_by_handle(&term);
    let ends: Vec<String> = volumes.map(|volume| paths::target_path("", "", &volume.metadata.name)).collect();
    let ends = ends.iter().filter_map(|end| end.strip_prefix("/pods/"));
    let mut found = ends.flat_map(|end| local.mounts.iter().filter(move |mount| mount.ends_with(end)));
    found.next().cloned()
}

/// The facts about a pod.
pub fn pod(key: &ObjectKey, cache: &Cache, local: &Local) -> View {
    let pod = cache.pod(key).filter(|pod| pod.spec.node_name == local.node);
    let uid = pod.as_ref().map(|pod| pod.metadata.uid.clone()).unwrap_or_default();
    let containers = pod.iter().flat_map(|pod| &pod.spec.containers);
    View::Pod(Box::new(PodView {
        key: key.clone(),
        root: local.root.clone(),
        sealed: local.sealed.contains(&uid),
        recorded: local.is_recorded(&uid),
        containers: containers.map(|container| container_view(&uid, &container.name, local)).collect(),
        volumes: pod.iter().flat_map(|pod| pod_volumes(pod, cache, local)).collect(),
        remains: remains(key, &uid, local),
        pod,
    }))
}

fn container_view(uid: &str, container: &str, local: &Local) -> ContainerView {
    let processes = local.pod_processes().filter(|(name, _)| name.uid == uid && name.container == container);
    let mut processes: Vec<_> =
        processes.filter_map(|(name, state)| Some((name.restart, name.print()?, state))).collect();
    processes.sort_by_key(|(restart, ..)| *restart);
    let latest = processes.pop();
    ContainerView { latest, earlier: processes.into_iter().map(|(_, name, state)| (name, state)).collect() }
}

fn pod_volumes(pod: &Arc<Pod>, cache: &Cache, local: &Local) -> Vec<(String, PodVolumeView)> {
    let view = |volume: &api::PodVolume| match (&volume.persistent_volume_claim, &volume.empty_dir) {
        (Some(claim), _) => claim_volume(pod, claim, cache, local),
        (None, Some(_)) => PodVolumeView::Directory(paths::empty_dir(&local.root, &pod.metadata.uid, &volume.name)),
        (None, None) => PodVolumeView::Unsupported,
    };
    pod.spec.volumes.iter().map(|volume| (volume.name.clone(), view(volume))).collect()
}

/// Reliability 41: ready only if the very target of this pod and volume is recorded and mounted.
fn claim_volume(pod: &Pod, claim: &api::PodClaim, cache: &Cache, local: &Local) -> PodVolumeView {
    let volume = match volume_of_claim(&pod.metadata.namespace, &claim.claim_name, cache) {
        Ok(volume) => volume,
        Err(missing) => return PodVolumeView::Waiting(missing),
    };
    let Some(csi) = &volume.spec.csi else {
        let name = &volume.metadata.name;
        return PodVolumeView::Impossible(format!("volume {name} is not of a CSI driver; use one that is"));
    };
    let record = local.records.get(&names::unique_volume_name(&csi.driver, &csi.volume_handle));
    let publish = record.and_then(|record| record.publishes.get(&pod.metadata.uid));
    match publish.filter(|publish| local.mounts.contains(&publish.target)) {
        Some(publish) => {
            PodVolumeView::Ready { path: publish.target.clone(), read_only: publish.read_only || claim.read_only }
        }
        None => PodVolumeView::Waiting(format!("volume {} is not mounted yet", volume.metadata.name)),
    }
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
        uid,
    };
    uids.into_iter().map(remains).collect()
}
