//! One bound claim whose user asks for more room, for too much of it, for less again, and for other attributes.

use std::sync::Arc;

use api::{Kind, ObjectRef, Patch, PersistentVolumeClaim, Quantity, ResourceList, Write, names};
use csi::ControllerRpc;
use rules_resizer::{Local, Resizer};
use serde_json::{Value, json};

use crate::cluster::{Cluster, NAMESPACE};
use crate::explore::Scenario;
use crate::laws::Violation;
use crate::member::{Actor, Instance, Seat};
use crate::truth::{LARGEST, Size, TIER, Truth};
use crate::world::{UserMove, World};
use crate::worlds::attach::{CLAIM, HANDLE, VOLUME};
use crate::worlds::node::part::NodePart;
use crate::worlds::{DRIVER, put};

/// The world with the rules as they are.
pub const SCENARIO: Scenario = Scenario {
    name: "resize",
    about: "resizer and a node; a claim is asked to grow, too far and back, and to change its attributes",
    start: || start::<Resizer>(Seat::fixed(|_, _| local())),
    user,
    rest,
    waives: &[],
};

const GI: i64 = 1 << 30;
/// What the user asks for: what it has, what there is room for, and what there is not.
const SIZES: [&str; 4] = ["1Gi", "1536Mi", "2Gi", "3Gi"];
const TIERS: [&str; 2] = ["silver", "gold"];

/// The driver's resizer. What the driver calls impossible is left alone for longer than a world lasts.
pub fn local() -> Local {
    let slow_millis = 10 * 86_400_000;
    Local { slow_millis, ..Local::new(DRIVER, [ControllerRpc::ExpandVolume, ControllerRpc::ModifyVolume]) }
}

/// The world with other rules in the place of the resizer.
pub fn start<R: Actor>(seat: Seat<R>) -> World {
    let mut cluster = Cluster::new();
    furnish(&mut cluster);
    let mut truth = Truth::default();
    describe(&mut truth);
    let truth = Arc::new(truth);
    let node = Seat::<NodePart>::fixed(|_, _| ());
    let members = vec![
        Instance::start("resizer", "", seat, &cluster, &truth),
        Instance::start("node", "", node, &cluster, &truth),
    ];
    World::of(cluster, truth, members)
}

/// A claim that may grow and its volume, and classes to choose from.
pub(crate) fn furnish(cluster: &mut Cluster) {
    // Whether a claim may ask for more is for its class to say.
    let target = ObjectRef::cluster(Kind::StorageClass, "fast");
    let body = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": "fast" },
        "provisioner": DRIVER, "allowVolumeExpansion": true,
    });
    cluster.mirror(Kind::PersistentVolumeClaim, &Write::Create { target, body });
    for tier in TIERS {
        let class = json!({ "metadata": {}, "driverName": DRIVER, "parameters": { TIER: tier } });
        put(cluster, ObjectRef::cluster(Kind::VolumeAttributesClass, tier), class);
    }
    put_bound_volume(cluster);
}

/// The volume as the driver has it.
pub(crate) fn describe(truth: &mut Truth) {
    truth.sizes.insert(HANDLE.into(), Size { volume: GI, filesystem: GI });
    truth.tiers.insert(HANDLE.into(), TIERS[0].into());
}

fn put_bound_volume(cluster: &mut Cluster) {
    let size = json!({ "storage": SIZES[0] });
    let claim = json!({
        "metadata": {},
        "spec": {
            "storageClassName": "fast", "accessModes": ["ReadWriteOnce"], "resources": { "requests": size },
            "volumeName": VOLUME, "volumeAttributesClassName": TIERS[0],
        },
        "status": {
            "phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": size,
            "currentVolumeAttributesClassName": TIERS[0],
        },
    });
    put(cluster, target(), claim);
    let uid = cluster.claims().next().map(|claim| claim.metadata.uid.clone()).unwrap_or_default();
    let volume = json!({
        "metadata": {},
        "spec": {
            "capacity": size, "accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
            "persistentVolumeReclaimPolicy": "Delete", "volumeAttributesClassName": TIERS[0],
            "claimRef": {
                "kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": NAMESPACE, "name": CLAIM, "uid": uid,
            },
            "csi": { "driver": DRIVER, "volumeHandle": HANDLE, "fsType": "ext4" },
        },
        "status": { "phase": "Bound" },
    });
    put(cluster, ObjectRef::cluster(Kind::PersistentVolume, VOLUME), volume);
}

fn target() -> ObjectRef {
    ObjectRef::namespaced(Kind::PersistentVolumeClaim, NAMESPACE, CLAIM)
}

/// The user asks for another size, or for other attributes. The API server refuses sizes below what the claim has.
pub fn user(world: &World) -> Vec<UserMove> {
    let Some(claim) = world.cluster.claims().next() else { return Vec::new() };
    let patch = |label: String, spec: Value| UserMove {
        label,
        writes: vec![Write::Patch {
            target: target(),
            subresource: None,
            patch: Patch::merge(api::Precondition::default(), json!({ "spec": spec })),
        }],
    };
    let (asked, had) = (bytes(&claim.spec.resources.requests), bytes(&claim.status.capacity));
    let mut moves = Vec::new();
    for size in SIZES {
        let new = Quantity(size.into()).bytes().unwrap_or(0);
        if new != asked && new > had {
            moves.push(patch(format!("ask for {size}"), json!({ "resources": { "requests": { "storage": size } } })));
        }
    }
    let tier = claim.spec.volume_attributes_class_name.as_deref().unwrap_or_default();
    let other = TIERS.iter().find(|other| **other != tier).copied().unwrap_or_default();
    moves.push(patch(format!("ask for {other}"), json!({ "volumeAttributesClassName": other })));
    moves
}

/// The claim has what it asks for, or says that it cannot; and what it says it has is there. What the driver has called
/// impossible is left alone for longer than a world lasts, also if it is not.
pub fn rest(world: &World) -> Option<Violation> {
    let claim = world.cluster.claims().next()?;
    let size = world.truth.sizes.get(HANDLE).copied().unwrap_or_default();
    let (asked, had) = (bytes(&claim.spec.resources.requests), bytes(&claim.status.capacity));
    if asked > LARGEST {
        if !is_called_infeasible(claim) {
            return Some(Violation::NotInfeasible { asked });
        }
    } else if (had < asked || size.filesystem < asked) && !(world.truth.impossible && is_called_infeasible(claim)) {
        return Some(Violation::NotGrown { asked, has: had, filesystem: size.filesystem });
    }
    let wanted = claim.spec.volume_attributes_class_name.clone().unwrap_or_default();
    let current = claim.status.current_volume_attributes_class_name.clone().unwrap_or_default();
    let tier = world.truth.tiers.get(HANDLE).cloned().unwrap_or_default();
    let settled = current == wanted && tier == wanted && claim.status.modify_volume_status.is_none();
    if !settled && !world.truth.impossible {
        return Some(Violation::NotModified { asked: wanted, says: current, tier });
    }
    None
}

fn is_called_infeasible(claim: &PersistentVolumeClaim) -> bool {
    claim.status.allocated_resource_statuses.get("storage").is_some_and(|is| is == names::CONTROLLER_RESIZE_INFEASIBLE)
}

pub(crate) fn bytes(list: &ResourceList) -> i64 {
    list.get("storage").and_then(|size| size.bytes().ok()).unwrap_or(0)
}
