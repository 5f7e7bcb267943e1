//! A claim made from another, whose user may delete either at any moment.

use std::sync::Arc;

use api::{ClaimPhase, Kind, ObjectRef, Precondition, Write, names};
use csi::ControllerRpc;
use rules_binding::Binding;
use rules_provisioner::{Local, Provisioner, Sources};
use serde_json::{Value, json};

use crate::cluster::{Cluster, NAMESPACE};
use crate::explore::Scenario;
use crate::laws::{self, Violation};
use crate::member::{Actor, Instance, Seat};
use crate::truth::Truth;
use crate::world::{UserMove, World};
use crate::worlds::provision::{on_claim, seat};
use crate::worlds::{DRIVER, put};

/// The world with the rules as they are.
pub const SCENARIO: Scenario = Scenario {
    name: "copy",
    about: "binding, provisioner and its care for sources; a claim is copied while the user deletes it or the copy",
    start: || start::<Sources>(seat(|_, _| local())),
    user,
    rest,
    waives: &[],
};

/// The same with intents on the claims, as they are where the journal has no room.
pub const ON_CLAIM: Scenario = Scenario {
    name: "copy-on-claim",
    about: "the same, with the intent on the claim instead of the journal",
    start: || {
        let build: fn(&Truth, &str) -> Local = |_, _| on_claim(local());
        start_all::<Binding, Sources>(binding(), seat(build), build)
    },
    ..SCENARIO
};

const CLASS: &str = "fast";
const SOURCE: &str = "data";
const COPY: &str = "copy";
const VOLUME: &str = "data-volume";
const HANDLE: &str = "vol-data-volume";

/// The driver's provisioner.
pub fn local() -> Local {
    Local { capabilities: Local::PLAIN.with(ControllerRpc::CloneVolume.into()), ..Local::new(DRIVER) }
}

/// The world with other rules in the place of those that let sources go.
pub fn start<R: Actor>(sources: Seat<R>) -> World {
    start_all(binding(), sources, |_, _| local())
}

fn binding() -> Seat<Binding> {
    Seat::fixed(|_, _| rules_binding::Local::default())
}

/// The world with other rules in the places of binding and of those that let sources go.
pub fn start_all<B: Actor, R: Actor>(binding: Seat<B>, sources: Seat<R>, build: fn(&Truth, &str) -> Local) -> World {
    let mut cluster = Cluster::new();
    let class =
        json!({ "metadata": {}, "provisioner": DRIVER, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate" });
    put(&mut cluster, ObjectRef::cluster(Kind::StorageClass, CLASS), class);
    put_source(&mut cluster);
    put(&mut cluster, claim(COPY), copy_body());
    let mut truth = Truth::default();
    truth.volumes.insert(VOLUME.into(), HANDLE.into());
    let truth = Arc::new(truth);
    let provisioner = seat::<Provisioner>(build);
    let members = vec![
        Instance::start("binding", "", binding, &cluster, &truth),
        Instance::start("provisioner", "", provisioner, &cluster, &truth),
        Instance::start("sources", "", sources, &cluster, &truth),
    ];
    World::of(cluster, truth, members)
}

fn claim(name: &str) -> ObjectRef {
    ObjectRef::namespaced(Kind::PersistentVolumeClaim, NAMESPACE, name)
}

fn put_source(cluster: &mut Cluster) {
    let size = json!({ "storage": "1Gi" });
    let body = json!({
        "metadata": {
            "annotations": { names::BIND_COMPLETED: "yes", names::BOUND_BY_CONTROLLER: "yes" },
        },
        "spec": {
            "storageClassName": CLASS, "accessModes": ["ReadWriteOnce"], "resources": { "requests": size },
            "volumeName": VOLUME,
        },
        "status": { "phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": size },
    });
    put(cluster, claim(SOURCE), body);
    let uid = cluster.claims().next().map(|claim| claim.metadata.uid.clone()).unwrap_or_default();
    let volume = json!({
        "metadata": {
            "annotations": { names::PROVISIONED_BY: DRIVER },
            "finalizers": [names::PV_PROTECTION, names::PROVISIONER_FINALIZER],
        },
        "spec": {
            "capacity": size, "accessModes": ["ReadWriteOnce"], "storageClassName": CLASS,
            "persistentVolumeReclaimPolicy": "Delete",
            "claimRef": {
                "kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": NAMESPACE, "name": SOURCE, "uid": uid,
            },
            "csi": { "driver": DRIVER, "volumeHandle": HANDLE, "fsType": "ext4" },
        },
        "status": { "phase": "Bound" },
    });
    put(cluster, ObjectRef::cluster(Kind::PersistentVolume, VOLUME), volume);
}

fn copy_body() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {},
        "spec": {
            "storageClassName": CLASS,
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } },
            "dataSource": { "kind": "PersistentVolumeClaim", "name": SOURCE },
        },
    })
}

/// The user deletes the source or the copy.
pub fn user(world: &World) -> Vec<UserMove> {
    let standing = world.cluster.claims().filter(|claim| !claim.metadata.is_deleting());
    standing
        .map(|claim| UserMove {
            label: format!("delete claim {}", claim.metadata.name),
            writes: vec![Write::Delete {
                target: self::claim(&claim.metadata.name),
                only_if: Precondition::same(&claim.metadata),
                grace_seconds: None,
            }],
        })
        .collect()
}

/// Whoever was deleted is gone with its volume, whoever was not has one; a copy whose source went first may have none.
pub fn rest(world: &World) -> Option<Violation> {
    if let Some(uid) = laws::entries(world).next() {
        return Some(Violation::EntryLeft { claim: uid.into() });
    }
    if let Some(claim) = world.cluster.claims().find(|claim| claim.metadata.is_deleting()) {
        return Some(Violation::ClaimLeft { claim: claim.metadata.name.clone() });
    }
    let named = |name: &str| world.cluster.claims().find(|claim| claim.metadata.name == name);
    let waiting = named(COPY).filter(|copy| copy.status.phase == ClaimPhase::Pending);
    if let Some(copy) = waiting {
        if named(SOURCE).is_some() {
            return Some(Violation::CopyNotMade {});
        }
        if copy.metadata.has_finalizer(names::PROVISIONING_INTENT) {
            return Some(Violation::IntentLeft { claim: copy.metadata.name.clone() });
        }
    }
    let volumes = world.cluster.claims().count() - usize::from(waiting.is_some());
    if world.truth.volumes.len() != volumes || world.cluster.volumes().count() != volumes {
        return Some(Violation::WrongCount { volumes: world.truth.volumes.len(), claims: volumes });
    }
    None
}
