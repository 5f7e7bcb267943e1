//! One claim, provisioned, bound, deleted at any moment, perhaps made again under the same name.

use std::hash::Hash;
use std::sync::Arc;

use api::{Kind, ObjectRef, Precondition, Write, names};
use rules_binding::Binding;
use rules_provisioner::{Intent, Local, Provisioner, Settings};
use serde_json::{Value, json};

use crate::cluster::{Cluster, NAMESPACE};
use crate::explore::Scenario;
use crate::laws::{self, Broken};
use crate::member::{Actor, Instance, Seat};
use crate::truth::Truth;
use crate::world::{UserMove, World};
use crate::worlds::put;

/// The world with the rules as they are.
pub const SCENARIO: Scenario = Scenario {
    name: "provision",
    about: "binding and provisioner; a claim that the user deletes at any moment and makes again",
    start: || start::<Provisioner>(Seat { build: |_, _| local(), refresh: |_, _, _| false, digest: lately }),
    user,
    rest,
    waives: &[],
};

/// The same with intents on the claims, as they are where the journal has no room.
pub const ON_CLAIM: Scenario = Scenario {
    name: "provision-on-claim",
    about: "the same, with the intent on the claim instead of the journal",
    start: || start::<Provisioner>(Seat { build: |_, _| on_claim(local()), refresh: |_, _, _| false, digest: lately }),
    ..SCENARIO
};

const DRIVER: &str = "local.csi.longshore";
const CLAIM: &str = "data";
const CLASS: &str = "fast";

/// The driver's provisioner.
pub fn local() -> Local {
    Local::new(DRIVER, "/csi.sock")
}

/// What the provisioner knows that no object says.
pub fn lately(local: &Local, mut canon: &mut dyn std::hash::Hasher) {
    local.lately.hash(&mut canon);
}

/// The same with intents on the claims.
pub fn on_claim(local: Local) -> Local {
    let settings = Settings { intent: Intent::OnClaim, ..Settings::clone(&local.settings) };
    Local { settings: settings.into(), ..local }
}

/// The world with other rules in the place of the provisioner.
pub fn start<R: Actor>(seat: Seat<R>) -> World {
    let mut cluster = Cluster::new();
    let class =
        json!({ "metadata": {}, "provisioner": DRIVER, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate" });
    put(&mut cluster, ObjectRef::cluster(Kind::StorageClass, CLASS), class);
    put(&mut cluster, target(), claim_body());
    let truth = Arc::new(Truth::default());
    let plain = Seat::<Binding> { build: |_, _| (), refresh: |(), _, _| false, digest: |(), _| {} };
    let members = vec![
        Instance::start("binding", "", plain, &cluster, &truth),
        Instance::start("provisioner", "", seat, &cluster, &truth),
    ];
    World::of(cluster, truth, members)
}

fn target() -> ObjectRef {
    ObjectRef::namespaced(Kind::PersistentVolumeClaim, NAMESPACE, CLAIM)
}

fn claim_body() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {},
        "spec": {
            "storageClassName": CLASS,
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } },
        },
    })
}

/// The user deletes the claim, or makes it again once it is gone.
pub fn user(world: &World) -> Vec<UserMove> {
    match world.cluster.claims().next() {
        None => vec![UserMove {
            label: "create the claim again".into(),
            writes: vec![Write::Create { target: target(), body: claim_body() }],
        }],
        Some(claim) if claim.metadata.is_deleting() => Vec::new(),
        Some(claim) => {
            let only_if = Precondition::same(&claim.metadata);
            let delete = Write::Delete { target: target(), only_if, grace_seconds: None };
            vec![UserMove { label: "delete the claim".into(), writes: vec![delete] }]
        }
    }
}

/// A claim has its volume; without a claim there is none, and no intent is left.
pub fn rest(world: &World) -> Option<Broken> {
    let broken = |text: String| Some(Broken::new(laws::AS_ASKED, text));
    if let Some(uid) = laws::entries(world).next() {
        return broken(format!("the journal still tells of claim {uid}"));
    }
    let Some(claim) = world.cluster.claims().next() else {
        if let Some(volume) = world.cluster.volumes().next() {
            return broken(format!("the claim is gone and volume {} is left", volume.metadata.name));
        }
        return world
            .truth
            .volumes
            .values()
            .next()
            .and_then(|id| broken(format!("the claim is gone and {id} is left")));
    };
    if claim.metadata.is_deleting() {
        return broken("the claim was deleted and is still there".into());
    }
    if claim.metadata.has_finalizer(names::PROVISIONING_INTENT) {
        return broken("the intent is still on the claim".into());
    }
    let volumes: Vec<_> = world.cluster.volumes().collect();
    match volumes.as_slice() {
        [volume] if claim.status.phase == "Bound" && claim.spec.volume_name == volume.metadata.name => {
            let known = world.truth.volumes.len() == 1 && volume.status.phase == "Bound";
            if known { None } else { broken("the driver's volumes are not those of the claim".into()) }
        }
        _ => broken(format!("the claim is {} and there are {} volumes", claim.status.phase, volumes.len())),
    }
}
