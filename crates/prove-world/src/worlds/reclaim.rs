//! Two volumes whose claims are gone, and a user who decides at any moment to keep them.
//!
//! The provisioner alone: the news of what the user decides may be late, and so may a read past the cache.

use std::sync::Arc;

use api::{Kind, ObjectRef, Patch, Precondition, ReclaimPolicy, Write, names};
use control::Rules;
use rules_provisioner::{Local, Provisioner};
use serde_json::json;

use crate::cluster::{Cluster, NAMESPACE};
use crate::explore::Scenario;
use crate::laws::{Violation, handle};
use crate::member::{Actor, Instance, Seat};
use crate::truth::Truth;
use crate::world::{UserMove, World};
use crate::worlds::{DRIVER, provision, put};

/// The world with the rules as they are.
pub const SCENARIO: Scenario = Scenario {
    name: "reclaim",
    about: "provisioner; two released volumes that the user may keep at any moment",
    start: || start::<Provisioner>(provision::seat(|_, _| provision::local())),
    user,
    rest,
    waives: &[],
};

const VOLUMES: [&str; 2] = ["a", "b"];

/// The world with other rules in the place of the provisioner.
pub fn start<R: Actor + Rules<Local = Local>>(seat: Seat<R>) -> World {
    let mut cluster = Cluster::new();
    let mut truth = Truth::default();
    for name in VOLUMES {
        let id = format!("vol-{name}");
        let body = json!({
            "metadata": {
                "annotations": { names::PROVISIONED_BY: DRIVER },
                "finalizers": [names::PROVISIONER_FINALIZER],
            },
            "spec": {
                "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Delete",
                "claimRef": {
                    "kind": "PersistentVolumeClaim", "apiVersion": "v1",
                    "namespace": NAMESPACE, "name": name, "uid": format!("gone-{name}"),
                },
                "csi": { "driver": DRIVER, "volumeHandle": id },
            },
            "status": { "phase": "Released" },
        });
        put(&mut cluster, ObjectRef::cluster(Kind::PersistentVolume, name), body);
        truth.volumes.insert(name.into(), id);
    }
    let truth = Arc::new(truth);
    let members = vec![Instance::start("provisioner", "", seat, &cluster, &truth)];
    World::of(cluster, truth, members)
}

/// The user keeps a volume.
pub fn user(world: &World) -> Vec<UserMove> {
    let condemned =
        world.cluster.volumes().filter(|volume| volume.spec.persistent_volume_reclaim_policy == ReclaimPolicy::Delete);
    let keep = condemned.map(|volume| {
        let target = ObjectRef::cluster(Kind::PersistentVolume, volume.metadata.name.as_str());
        let body = json!({ "spec": { "persistentVolumeReclaimPolicy": "Retain" } });
        let patch = Patch::merge(Precondition::same(&volume.metadata), body);
        let writes = vec![Write::Patch { target, subresource: None, patch }];
        UserMove { label: format!("keep volume {}", volume.metadata.name), writes }
    });
    keep.collect()
}

/// What is not kept is being deleted, what the driver still has is told of by an object, and nothing is held. Binding
/// would let go of the objects.
pub fn rest(world: &World) -> Option<Violation> {
    let left = world.cluster.volumes().find(|volume| {
        let condemned =
            volume.spec.persistent_volume_reclaim_policy == ReclaimPolicy::Delete && !volume.metadata.is_deleting();
        condemned || volume.metadata.has_finalizer(names::PROVISIONER_FINALIZER)
    });
    if let Some(volume) = left {
        return Some(Violation::VolumeLeft { volume: volume.metadata.name.clone() });
    }
    let told = |id: &String| world.cluster.volumes().any(|volume| handle(volume) == *id);
    world.truth.volumes.values().find(|id| !told(id)).map(|id| Violation::HandleLeft { handle: id.clone() })
}
