use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use api::{
    ClaimPhase, ClaimRef, Kind, Meta, Object, ObjectKey, ObjectRef, Patch, PersistentVolume, PersistentVolumeClaim,
    Precondition, Subresource, Value, VolumePhase, Write, names,
};
use control::{Attempt, Effect, Outcome, Permission, Reply, Tick};
use serde_json::json;

/// The things this controller does.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Action {
    /// Give a claim the finalizer that protects it.
    ProtectClaim(Arc<PersistentVolumeClaim>),
    /// Take it away: nobody uses the claim.
    UnprotectClaim(Arc<PersistentVolumeClaim>),
    /// Give a volume the finalizer that protects it.
    ProtectVolume(Arc<PersistentVolume>),
    /// Take it away: the volume is not bound.
    UnprotectVolume(Arc<PersistentVolume>),
    /// Give a claim that names no class the default one.
    SetClass {
        /// The claim.
        claim: Arc<PersistentVolumeClaim>,
        /// The class.
        class: String,
    },
    /// Name the provisioner that should make the claim's volume.
    CallProvisioner {
        /// The claim.
        claim: Arc<PersistentVolumeClaim>,
        /// The provisioner.
        provisioner: String,
    },
    /// First write of a binding: the volume refers to the claim.
    Reserve {
        /// The volume.
        volume: Arc<PersistentVolume>,
        /// The claim.
        claim: Arc<PersistentVolumeClaim>,
    },
    /// Second write: the volume's phase.
    MarkVolumeBound(Arc<PersistentVolume>),
    /// Third write: the claim names the volume.
    PointClaim {
        /// The claim.
        claim: Arc<PersistentVolumeClaim>,
        /// The volume.
        volume: String,
    },
    /// Fourth write: the claim's phase and what it got.
    MarkClaimBound {
        /// The claim.
        claim: Arc<PersistentVolumeClaim>,
        /// The volume.
        volume: Arc<PersistentVolume>,
    },
    /// Report that a bound claim's volume is gone.
    MarkClaimLost(Arc<PersistentVolumeClaim>),
    /// Report that a volume is free.
    MarkAvailable(Arc<PersistentVolume>),
    /// Report that a volume's claim is gone.
    MarkReleased(Arc<PersistentVolume>),
    /// Take back a reservation, leaving a user's own part of it.
    Unreserve(Arc<PersistentVolume>),
    /// Read a claim, past the cache.
    LookForClaim {
        /// The volume that refers to it.
        volume: String,
        /// Where it should be.
        claim: ObjectKey,
        /// Its uid.
        uid: String,
    },
    /// Read a volume, past the cache.
    LookForVolume {
        /// The volume.
        volume: String,
        /// The claim that names it.
        claim_uid: String,
    },
}

impl control::Action for Action {
    fn name(&self) -> &'static str {
        match self {
            Action::ProtectClaim(_) => "ProtectClaim",
            Action::UnprotectClaim(_) => "UnprotectClaim",
            Action::ProtectVolume(_) => "ProtectVolume",
            Action::UnprotectVolume(_) => "UnprotectVolume",
            Action::SetClass { .. } => "SetClass",
            Action::CallProvisioner { .. } => "CallProvisioner",
            Action::Reserve { .. } => "Reserve",
            Action::MarkVolumeBound(_) => "MarkVolumeBound",
            Action::PointClaim { .. } => "PointClaim",
            Action::MarkClaimBound { .. } => "MarkClaimBound",
            Action::MarkClaimLost(_) => "MarkClaimLost",
            Action::MarkAvailable(_) => "MarkAvailable",
            Action::MarkReleased(_) => "MarkReleased",
            Action::Unreserve(_) => "Unreserve",
            Action::LookForClaim { .. } => "LookForClaim",
            Action::LookForVolume { .. } => "LookForVolume",
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Action::ProtectClaim(claim) => {
                patch(claim_ref(claim), None, Patch::add_finalizer(&claim.metadata, names::PVC_PROTECTION))
            }
            Action::UnprotectClaim(claim) => {
                patch(claim_ref(claim), None, Patch::remove_finalizer(&claim.metadata, names::PVC_PROTECTION))
            }
            Action::ProtectVolume(volume) => {
                patch(volume_ref(volume), None, Patch::add_finalizer(&volume.metadata, names::PV_PROTECTION))
            }
            Action::UnprotectVolume(volume) => {
                patch(volume_ref(volume), None, Patch::remove_finalizer(&volume.metadata, names::PV_PROTECTION))
            }
            Action::SetClass { claim, class } => {
                change(claim_ref(claim), &claim.metadata, None, json!({ "spec": { "storageClassName": class } }))
            }
            Action::CallProvisioner { claim, provisioner } => call_provisioner(claim, provisioner),
            Action::Reserve { volume, claim } => reserve(volume, claim),
            Action::MarkVolumeBound(volume) => set_phase(volume, VolumePhase::Bound),
            Action::PointClaim { claim, volume } => point(claim, volume),
            Action::MarkClaimBound { claim, volume } => mark_claim_bound(claim, volume),
            Action::MarkClaimLost(claim) => {
                // PV-22
                let status = json!({ "status": { "phase": ClaimPhase::Lost, "accessModes": null, "capacity": null } });
                change(claim_ref(claim), &claim.metadata, Some(Subresource::Status), status)
            }
            Action::MarkAvailable(volume) => set_phase(volume, VolumePhase::Available),
            Action::MarkReleased(volume) => set_phase(volume, VolumePhase::Released),
            Action::Unreserve(volume) => unreserve(volume),
            Action::LookForClaim { claim, .. } => {
                Effect::Read(ObjectRef { kind: Kind::PersistentVolumeClaim, key: claim.clone() })
            }
            Action::LookForVolume { volume, .. } => {
                Effect::Read(ObjectRef::cluster(Kind::PersistentVolume, volume.as_str()))
            }
        }
    }

    /// A fresh read prepares a write: it does not end a row of failures.
    fn attempt(&self, got: &Outcome) -> Attempt {
        match self {
            Action::LookForClaim { .. } | Action::LookForVolume { .. } => Attempt::of_read(got),
            _ => Attempt::of(got),
        }
    }

    fn permissions() -> &'static [Permission] {
        const PERMISSIONS: &[Permission] = &[
            Permission::new(Kind::PersistentVolumeClaim, "", "get"),
            Permission::new(Kind::PersistentVolumeClaim, "", "patch"),
            Permission::new(Kind::PersistentVolumeClaim, "status", "patch"),
            Permission::new(Kind::PersistentVolume, "", "get"),
            Permission::new(Kind::PersistentVolume, "", "patch"),
            Permission::new(Kind::PersistentVolume, "status", "patch"),
        ];
        PERMISSIONS
    }
}

fn claim_ref(claim: &PersistentVolumeClaim) -> ObjectRef {
    ObjectRef { kind: Kind::PersistentVolumeClaim, key: claim.metadata.key() }
}

fn volume_ref(volume: &PersistentVolume) -> ObjectRef {
    ObjectRef { kind: Kind::PersistentVolume, key: volume.metadata.key() }
}

fn patch(target: ObjectRef, subresource: Option<Subresource>, patch: Patch) -> Effect {
    Effect::Write(Write::Patch { target, subresource, patch })
}

fn change(target: ObjectRef, seen: &Meta, subresource: Option<Subresource>, body: Value) -> Effect {
    patch(target, subresource, Patch::merge(Precondition::unchanged(seen), body))
}

fn set_phase(volume: &PersistentVolume, phase: VolumePhase) -> Effect {
    let body = json!({ "status": { "phase": phase, "message": null, "reason": null } });
    change(volume_ref(volume), &volume.metadata, Some(Subresource::Status), body)
}

fn call_provisioner(claim: &PersistentVolumeClaim, provisioner: &str) -> Effect {
    let annotations = json!({
        names::STORAGE_PROVISIONER: provisioner,
        names::STORAGE_PROVISIONER_BETA: provisioner,
    });
    change(claim_ref(claim), &claim.metadata, None, json!({ "metadata": { "annotations": annotations } }))
}

/// PV-21: a volume that a user reserved keeps no mark of ours.
fn reserve(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> Effect {
    let mut body = json!({ "spec": { "claimRef": ClaimRef::to(&claim.metadata) } });
    if volume.spec.claim_ref.is_none() {
        body["metadata"] = json!({ "annotations": { names::BOUND_BY_CONTROLLER: "yes" } });
    }
    change(volume_ref(volume), &volume.metadata, None, body)
}

fn point(claim: &PersistentVolumeClaim, volume: &str) -> Effect {
    let mut annotations = json!({ names::BIND_COMPLETED: "yes" });
    let mut body = json!({});
    if claim.spec.volume_name != volume {
        annotations[names::BOUND_BY_CONTROLLER] = "yes".into();
        body["spec"] = json!({ "volumeName": volume });
    }
    body["metadata"] = json!({ "annotations": annotations });
    change(claim_ref(claim), &claim.metadata, None, body)
}

/// PV-24: the capacity is reported once, when the claim becomes bound; later growth is reported by who grows it.
fn mark_claim_bound(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Effect {
    let mut status = json!({ "phase": ClaimPhase::Bound, "accessModes": volume.spec.access_modes });
    if claim.status.phase != ClaimPhase::Bound {
        status["capacity"] = json!({ "storage": volume.spec.capacity.get("storage") });
    }
    change(claim_ref(claim), &claim.metadata, Some(Subresource::Status), json!({ "status": status }))
}

fn unreserve(volume: &PersistentVolume) -> Effect {
    let body = if volume.metadata.annotation(names::BOUND_BY_CONTROLLER).is_some() {
        let annotations = json!({ names::BOUND_BY_CONTROLLER: null });
        json!({ "spec": { "claimRef": null }, "metadata": { "annotations": annotations } })
    } else {
        json!({ "spec": { "claimRef": { "uid": null, "resourceVersion": null } } })
    };
    change(volume_ref(volume), &volume.metadata, None, body)
}

/// The name and the object: the rest is in the object itself.
impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = control::Action::name(self);
        match self {
            Action::ProtectClaim(claim)
            | Action::UnprotectClaim(claim)
            | Action::SetClass { claim, .. }
            | Action::CallProvisioner { claim, .. }
            | Action::PointClaim { claim, .. }
            | Action::MarkClaimBound { claim, .. }
            | Action::MarkClaimLost(claim) => write!(f, "{name}({})", claim.metadata.key()),
            Action::ProtectVolume(volume)
            | Action::UnprotectVolume(volume)
            | Action::Reserve { volume, .. }
            | Action::MarkVolumeBound(volume)
            | Action::MarkAvailable(volume)
            | Action::MarkReleased(volume)
            | Action::Unreserve(volume) => write!(f, "{name}({})", volume.metadata.name),
            Action::LookForClaim { claim, .. } => write!(f, "{name}({claim})"),
            Action::LookForVolume { volume, .. } => write!(f, "{name}({volume})"),
        }
    }
}

/// A hint kept between decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    /// What the last fresh read found.
    pub looked: Looked,
}

/// What a fresh read found out about a pair of volume and claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Looked {
    /// Nothing was read.
    #[default]
    Nothing,
    /// The other half is gone, or is another one of that name.
    Gone {
        /// The volume's name.
        volume: String,
        /// The claim's uid.
        claim: String,
    },
    /// It is there, though the cache does not show it yet.
    There {
        /// The volume's name.
        volume: String,
        /// The claim's uid.
        claim: String,
        /// When to look again if the cache has still not shown it.
        again: Tick,
    },
}

/// How long a cache may take to show what a fresh read showed, before we read again.
const CATCH_UP_MILLIS: u64 = 1_000;

impl Looked {
    /// The pair was read and the other half is gone.
    pub(crate) fn says_gone(&self, name: &str, uid: &str) -> bool {
        matches!(self, Looked::Gone { volume, claim } if volume == name && claim == uid)
    }

    /// The pair was read, the other half is there, and it is too early to read again.
    pub(crate) fn says_there(&self, name: &str, uid: &str, now: Tick) -> Option<Tick> {
        match self {
            Looked::There { volume, claim, again } if volume == name && claim == uid && now < *again => Some(*again),
            Looked::There { .. } | Looked::Gone { .. } | Looked::Nothing => None,
        }
    }
}

impl Memory {
    pub(crate) fn after(now: Tick, did: &Action, got: &Outcome) -> Memory {
        let read = |there: bool, volume: &str, claim: &str| {
            let (volume, claim) = (volume.into(), claim.into());
            match there {
                true => Looked::There { volume, claim, again: now.after_millis(CATCH_UP_MILLIS) },
                false => Looked::Gone { volume, claim },
            }
        };
        match (did, got) {
            (Action::LookForClaim { volume, uid, .. }, Outcome::Done(reply)) => {
                Memory { looked: read(shows_claim(reply, uid), volume, uid) }
            }
            (Action::LookForVolume { volume, claim_uid }, Outcome::Done(reply)) => {
                Memory { looked: read(shows_volume(reply, claim_uid), volume, claim_uid) }
            }
            // A finding serves the one write it was made for.
            (_, Outcome::Done(_) | Outcome::Refused(_) | Outcome::Unknown(_)) => Memory::default(),
        }
    }
}

fn shows_claim(reply: &Reply, uid: &str) -> bool {
    matches!(reply, Reply::Object(Object::PersistentVolumeClaim(claim)) if claim.metadata.uid == uid)
}

/// The volume is there and refers to the claim, or to none, in which case the claim may have it back.
fn shows_volume(reply: &Reply, claim_uid: &str) -> bool {
    let Reply::Object(Object::PersistentVolume(volume)) = reply else { return false };
    volume.spec.claim_ref.as_ref().is_none_or(|holder| holder.uid.is_empty() || holder.uid == claim_uid)
}
