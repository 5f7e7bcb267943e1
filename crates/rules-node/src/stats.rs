//! What is told of the volumes of this node: whose fullness can be asked for (KL-104), and how many there are.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use api::{ObjectKey, Pod};
use control::Cache;
use csi::NodeRpc;

use crate::local::Local;
use crate::{paths, served};

/// A volume that is published for a pod, and of which its driver can say how full it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedVolume {
    /// The name of the driver that can be asked.
    pub driver: String,
    /// What the driver calls the volume.
    pub handle: String,
    /// Where it is published.
    pub target: String,
    /// Where it is staged.
    pub staging: Option<String>,
    /// Whom it is published for.
    pub pod: ObjectKey,
    /// The uid of that pod.
    pub uid: String,
    /// What the pod calls the volume.
    pub name: String,
    /// The claim it comes from.
    pub claim: Option<ObjectKey>,
}

/// Every volume that is mounted here and of which its driver can say how full it is.
pub fn published_volumes(cache: &Cache, local: &Local) -> Vec<PublishedVolume> {
    let mut all = Vec::new();
    for record in local.records.values() {
        if !local.drivers.get(&record.driver).is_some_and(|driver| driver.can(NodeRpc::GetVolumeStats)) {
            continue;
        }
        let volume = cache.volume(&ObjectKey::cluster(record.volume.clone()));
        let claim = volume.and_then(|volume| volume.spec.claim_ref.clone());
        let claim = claim.map(|claim| ObjectKey::new(claim.namespace.as_str(), claim.name.as_str()));
        for (uid, publish) in record.publishes.iter().filter(|(_, publish)| local.mounts.contains(&publish.target)) {
            let pod = ObjectKey::new(publish.pod_namespace.clone(), publish.pod_name.clone());
            let object = cache.pod(&pod).filter(|pod| pod.metadata.uid == *uid);
            let name = object.and_then(|pod| name_in(&pod, claim.as_ref()?));
            all.push(PublishedVolume {
                driver: record.driver.clone(),
                handle: record.handle.clone(),
                target: publish.target.clone(),
                staging: record.staging_path.clone(),
                pod,
                uid: uid.clone(),
                name: name.unwrap_or_else(|| record.volume.clone()),
                claim: claim.clone(),
            });
        }
    }
    all
}

/// How many volumes of a driver pods should have here, and how many they have. A volume counts for each of its pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ManagedVolumes {
    /// Claims of pods on this node that have not ended.
    pub wanted: usize,
    /// What is published, or may be.
    pub published: usize,
}

/// The volumes of pods of this node, by driver.
pub fn managed_volumes(cache: &Cache, local: &Local) -> BTreeMap<String, ManagedVolumes> {
    let mut all: BTreeMap<String, ManagedVolumes> = BTreeMap::new();
    for record in local.records.values() {
        all.entry(record.driver.clone()).or_default().published += record.publishes.len();
    }
    for pod in cache.pods().filter(|pod| pod.spec.node_name == local.node && !pod.is_terminal()) {
        for claim in pod.claim_names() {
            let claim = cache.claim(&ObjectKey::new(pod.metadata.namespace.clone(), claim));
            let volume = claim.and_then(|claim| cache.volume(&ObjectKey::cluster(claim.spec.volume_name.clone())));
            let name = volume.and_then(|volume| served::unique_name(&volume, local));
            if let Some((driver, _)) = name.as_deref().and_then(paths::split_unique_name) {
                all.entry(driver.into()).or_default().wanted += 1;
            }
        }
    }
    all
}

/// What a pod calls the volume of a claim.
fn name_in(pod: &Pod, claim: &ObjectKey) -> Option<String> {
    let mut volumes = pod.spec.volumes.iter();
    let found = volumes.find(|volume| match &volume.persistent_volume_claim {
        Some(used) => used.claim_name == claim.name,
        None => volume.ephemeral.is_some() && pod.ephemeral_claim(&volume.name) == claim.name,
    });
    found.map(|volume| volume.name.clone())
}
