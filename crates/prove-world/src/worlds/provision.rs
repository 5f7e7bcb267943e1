//! One claim, provisioned, bound, deleted at any moment, perhaps made again under the same name.

use std::hash::Hash;
use std::sync::Arc;

use api::{ClaimPhase, Kind, ObjectRef, Precondition, VolumePhase, Write, names};
use control::Rules;
use rules_binding::Binding;
use rules_provisioner::{Intent, Local, Provisioner, Settings};
use serde_json::{Value, json};

use crate::cluster::{Cluster, NAMESPACE};
use crate::explore::Scenario;
use crate::laws::{self, Violation};
use crate::member::{Actor, Instance, Seat};
use crate::truth::Truth;
use crate::world::{UserMove, World};
use crate::worlds::{DRIVER, put};

/// The world with the rules as they are.
pub const SCENARIO: Scenario = Scenario {
    name: "provision",
    about: "binding and provisioner; a claim that the user deletes at any moment and makes again",
    start: || start::<Provisioner>(seat(|_, _| local())),
    user,
    rest,
    waives: &[],
};

/// The same with intents on the claims, as they are where the journal has no room.
pub const ON_CLAIM: Scenario = Scenario {
    name: "provision-on-claim",
    about: "the same, with the intent on the claim instead of the journal",
    start: || start::<Provisioner>(seat(|_, _| on_claim(local()))),
    ..SCENARIO
};

const CLAIM: &str = "data";
const CLASS: &str = "fast";

/// The driver's provisioner.
pub fn local() -> Local {
    Local::new(DRIVER)
}

/// How a provisioner learns about the world: what it recorded lately is all that no object says.
pub fn seat<R: Rules<Local = Local>>(build: fn(&Truth, &str) -> Local) -> Seat<R> {
    Seat { build, refresh: |_, _, _| false, digest: |local, mut canon| local.recently_provisioned.hash(&mut canon) }
}

/// The same with intents on the claims.
pub fn on_claim(local: Local) -> Local {
    let settings = Settings { intent: Intent::OnClaim, ..Settings::clone(&local.settings) };
    Local { settings: settings.into(), ..local }
}

/// The world with other rules in the place of the provisioner.
pub fn start<R: Actor>(seat: Seat<R>) -> World {
    start_with(Seat::<Binding>::fixed(|_, _| rules_binding::Local::default()), seat)
}

/// The world with other rules in the places of binding and provisioner.
pub fn start_with<B: Actor, R: Actor>(binding: Seat<B>, seat: Seat<R>) -> World {
    let mut cluster = Cluster::new();
    let class =
        json!({ "metadata": {}, "provisioner": DRIVER, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate" });
    put(&mut cluster, ObjectRef::cluster(Kind::StorageClass, CLASS), class);
    put(&mut cluster, target(), claim_body());
    let truth = Arc::new(Truth::default());
    let members = vec![
        Instance::start("binding", "", binding, &cluster, &truth),
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
pub fn rest(world: &World) -> Option<Violation> {
    if let Some(uid) = laws::entries(world).next() {
        return Some(Violation::EntryLeft { claim: uid.into() });
    }
    let Some(claim) = world.cluster.claims().next() else {
        if let Some(volume) = world.cluster.volumes().next() {
            return Some(Violation::VolumeLeft { volume: volume.metadata.name.clone() });
        }
        return world.truth.volumes.values().next().map(|id| Violation::HandleLeft { handle: id.clone() });
    };
    if claim.metadata.is_deleting() {
        return Some(Violation::ClaimLeft { claim: claim.metadata.name.clone() });
    }
    if claim.metadata.has_finalizer(names::PROVISIONING_INTENT) {
        return Some(Violation::IntentLeft { claim: claim.metadata.name.clone() });
    }
    let volumes: Vec<_> = world.cluster.volumes().collect();
    match volumes.as_slice() {
        [volume] if claim.status.phase == ClaimPhase::Bound && claim.spec.volume_name == volume.metadata.name => {
            let known = world.truth.volumes.len() == 1 && volume.status.phase == VolumePhase::Bound;
            let volumes = world.truth.volumes.values().cloned().collect();
            (!known).then_some(Violation::DriverDiffers { volumes })
        }
        _ => Some(Violation::ClaimUnserved { phase: claim.status.phase.to_string(), volumes: volumes.len() }),
    }
}
