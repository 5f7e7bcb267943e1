//! A bound claim, a pod that uses it, and a user who deletes either at any moment.
//!
//! Binding alone: the news of the pod and the news of the deleted claim come by separate watches, in any order.

use std::sync::Arc;

use api::{Kind, ObjectRef, Precondition, Write};
use rules_binding::Binding;
use serde_json::json;

use crate::cluster::{Cluster, NAMESPACE};
use crate::explore::Scenario;
use crate::laws::Violation;
use crate::member::{Actor, Instance, Seat};
use crate::truth::Truth;
use crate::world::{UserMove, World};
use crate::worlds::put;

/// The world with the rules as they are.
pub const SCENARIO: Scenario = Scenario {
    name: "protect",
    about: "binding; a pod begins to use a claim that the user deletes at any moment",
    start: || start::<Binding>(Seat::fixed(|_, _| rules_binding::Local::default())),
    user,
    rest,
    waives: &[],
};

const CLAIM: &str = "data";
const CLASS: &str = "hand";
const POD: &str = "app";
const NODE: &str = "node-a";

/// The world with other rules in the place of binding.
pub fn start<B: Actor>(binding: Seat<B>) -> World {
    let mut cluster = Cluster::new();
    let class = json!({
        "metadata": {},
        "provisioner": "kubernetes.io/no-provisioner",
        "reclaimPolicy": "Retain",
        "volumeBindingMode": "Immediate",
    });
    put(&mut cluster, ObjectRef::cluster(Kind::StorageClass, CLASS), class);
    let volume = json!({
        "metadata": { "finalizers": ["kubernetes.io/pv-protection"] },
        "spec": {
            "storageClassName": CLASS,
            "accessModes": ["ReadWriteOnce"],
            "capacity": { "storage": "1Gi" },
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": { "driver": super::DRIVER, "volumeHandle": "v1" },
        },
    });
    put(&mut cluster, ObjectRef::cluster(Kind::PersistentVolume, "v"), volume);
    let claim = json!({
        "metadata": { "finalizers": ["kubernetes.io/pvc-protection"] },
        "spec": {
            "storageClassName": CLASS,
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    put(&mut cluster, claim_ref(), claim);
    let truth = Arc::new(Truth::default());
    let members = vec![Instance::start("binding", "", binding, &cluster, &truth)];
    World::of(cluster, truth, members)
}

fn claim_ref() -> ObjectRef {
    ObjectRef::namespaced(Kind::PersistentVolumeClaim, NAMESPACE, CLAIM)
}

fn pod_ref() -> ObjectRef {
    ObjectRef::namespaced(Kind::Pod, NAMESPACE, POD)
}

/// The user starts a pod on a node while the claim stands, ends it, and deletes the claim.
pub fn user(world: &World) -> Vec<UserMove> {
    let standing = world.cluster.claims().find(|claim| !claim.metadata.is_deleting());
    let pod = world.cluster.pods().next();
    let mut moves = Vec::new();
    if let (Some(_), None) = (standing, pod) {
        let body = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": { "name": POD, "namespace": NAMESPACE },
            "spec": {
                "nodeName": NODE,
                "containers": [{ "name": "main", "image": "host", "command": ["sleep"] }],
                "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": CLAIM } }],
            },
        });
        let writes = vec![Write::Create { target: pod_ref(), body }];
        moves.push(UserMove { label: "create a pod that uses the claim".into(), writes });
    }
    if let Some(claim) = standing {
        let only_if = Precondition::same(&claim.metadata);
        let delete = Write::Delete { target: claim_ref(), only_if, grace_seconds: None };
        moves.push(UserMove { label: "delete the claim".into(), writes: vec![delete] });
    }
    if let Some(pod) = pod {
        let only_if = Precondition::same(&pod.metadata);
        let delete = Write::Delete { target: pod_ref(), only_if, grace_seconds: Some(0) };
        moves.push(UserMove { label: "delete the pod".into(), writes: vec![delete] });
    }
    moves
}

/// A claim that is being deleted is there only while a pod uses it.
pub fn rest(world: &World) -> Option<Violation> {
    let used = world.cluster.pods().next().is_some();
    let left = world.cluster.claims().find(|claim| claim.metadata.is_deleting() && !used);
    left.map(|claim| Violation::ClaimLeft { claim: claim.metadata.name.clone() })
}
