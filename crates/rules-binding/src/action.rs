use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use api::{
    ClaimPhase, ClaimRef, Conditions, Kind, Meta, ObjectKey, ObjectRef, Patch, PersistentVolume, PersistentVolumeClaim,
    Pod, Precondition, Quantity, Subresource, Time, Value, VolumePhase, Write, names,
};
use control::{Attempt, Effect, Outcome, Permission};
use serde_json::json;

use crate::{Handover, MigrationMark, ephemeral};

/// Whether pods use a claim, and since when as far as we know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClaimUsage {
    /// Some pod that has not ended uses it.
    pub used: bool,
    /// When this was found out.
    pub since: Time,
}

impl ClaimUsage {
    /// The status of the condition `Unused`.
    pub(crate) fn unused(&self) -> &'static str {
        if self.used { "False" } else { "True" }
    }

    /// PV-57
    fn condition(&self) -> Value {
        let (reason, message) = match self.used {
            true => ("PodUsingPVC", "a pod uses the claim"),
            false => ("NoPodsUsingPVC", "no pod uses the claim"),
        };
        Conditions::new().set(names::UNUSED, self.unused(), reason, message, &self.since).to_json()
    }
}

/// The things this controller does.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Action {
    /// Adds the finalizer that keeps a claim while pods use it.
    AddClaimFinalizer(Arc<PersistentVolumeClaim>),
    /// Removes it: no pod uses the claim.
    RemoveClaimFinalizer(Arc<PersistentVolumeClaim>),
    /// Adds the finalizer that keeps a volume while it is bound.
    AddVolumeFinalizer(Arc<PersistentVolume>),
    /// Removes it: the volume is not bound.
    RemoveVolumeFinalizer(Arc<PersistentVolume>),
    /// Give a claim that names no class the default one.
    SetClass { claim: Arc<PersistentVolumeClaim>, class: String },
    /// Name the provisioner that should make the claim's volume.
    CallProvisioner { claim: Arc<PersistentVolumeClaim>, provisioner: String },
    /// Name the driver that should grow the claim's volume, which an in-tree plugin made.
    CallResizer {
        /// The claim that asks for more.
        claim: Arc<PersistentVolumeClaim>,
        /// The driver that has taken over the plugin.
        driver: String,
    },
    /// Make a claim from the template in a pod.
    MakeClaim {
        /// The pod, which owns it.
        pod: Arc<Pod>,
        /// The pod's volume with the template.
        volume: String,
    },
    /// First write of a binding: the volume refers to the claim.
    Reserve { volume: Arc<PersistentVolume>, claim: Arc<PersistentVolumeClaim> },
    /// Second write: the volume's phase.
    MarkVolumeBound(Arc<PersistentVolume>),
    /// Third write: the claim names the volume.
    PointClaim { claim: Arc<PersistentVolumeClaim>, volume: String },
    /// Fourth write: the claim's phase and what it got.
    MarkClaimBound {
        claim: Arc<PersistentVolumeClaim>,
        volume: Arc<PersistentVolume>,
        /// What is to be said of its use at once.
        usage: Option<ClaimUsage>,
    },
    /// Report whether pods use a bound claim.
    TellUse {
        claim: Arc<PersistentVolumeClaim>,
        /// What there is to say.
        usage: ClaimUsage,
    },
    /// Say on a claim which driver has taken over its provisioner, or that none has.
    MarkClaimMigrated { claim: Arc<PersistentVolumeClaim>, mark: MigrationMark },
    /// Say on a volume which driver has taken over its plugin, or that none has, and for whom it is held.
    MarkVolumeMigrated { volume: Arc<PersistentVolume>, mark: MigrationMark, handover: Option<Handover> },
    /// Report that a bound claim's volume is gone.
    MarkClaimLost(Arc<PersistentVolumeClaim>),
    /// Report that a volume is free.
    MarkAvailable(Arc<PersistentVolume>),
    /// Report that a volume's claim is gone.
    MarkReleased(Arc<PersistentVolume>),
    /// Report that nobody can do what a released volume's policy asks for.
    MarkFailed { volume: Arc<PersistentVolume>, message: String },
    /// Take back a reservation, leaving a user's own part of it.
    Unreserve(Arc<PersistentVolume>),
    /// Read a claim, past the cache.
    LookForClaim {
        /// The volume that refers to it.
        volume: String,
        /// Where it should be.
        claim: ObjectKey,
        uid: String,
    },
    /// List the pods that may use a claim which is being deleted, past the cache.
    LookForUsers {
        claim: ObjectKey,
        /// The claim's uid.
        uid: String,
        /// The uid of the pod that the claim was made for from a template.
        made_for: Option<String>,
    },
    /// Read a volume, past the cache.
    LookForVolume {
        volume: String,
        /// The claim that names it.
        claim_uid: String,
    },
}

impl control::Action for Action {
    fn name(&self) -> &'static str {
        match self {
            Action::AddClaimFinalizer(_) => "AddClaimFinalizer",
            Action::RemoveClaimFinalizer(_) => "RemoveClaimFinalizer",
            Action::AddVolumeFinalizer(_) => "AddVolumeFinalizer",
            Action::RemoveVolumeFinalizer(_) => "RemoveVolumeFinalizer",
            Action::SetClass { .. } => "SetClass",
            Action::CallProvisioner { .. } => "CallProvisioner",
            Action::CallResizer { .. } => "CallResizer",
            Action::MakeClaim { .. } => "MakeClaim",
            Action::Reserve { .. } => "Reserve",
            Action::MarkVolumeBound(_) => "MarkVolumeBound",
            Action::PointClaim { .. } => "PointClaim",
            Action::MarkClaimBound { .. } => "MarkClaimBound",
            Action::TellUse { .. } => "TellUse",
            Action::MarkClaimMigrated { .. } => "MarkClaimMigrated",
            Action::MarkVolumeMigrated { .. } => "MarkVolumeMigrated",
            Action::MarkClaimLost(_) => "MarkClaimLost",
            Action::MarkAvailable(_) => "MarkAvailable",
            Action::MarkReleased(_) => "MarkReleased",
            Action::MarkFailed { .. } => "MarkFailed",
            Action::Unreserve(_) => "Unreserve",
            Action::LookForClaim { .. } => "LookForClaim",
            Action::LookForUsers { .. } => "LookForUsers",
            Action::LookForVolume { .. } => "LookForVolume",
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Action::AddClaimFinalizer(claim) => {
                patch(claim_ref(claim), None, Patch::add_finalizer(&claim.metadata, names::PVC_PROTECTION))
            }
            Action::RemoveClaimFinalizer(claim) => {
                patch(claim_ref(claim), None, Patch::remove_finalizer(&claim.metadata, names::PVC_PROTECTION))
            }
            Action::AddVolumeFinalizer(volume) => {
                patch(volume_ref(volume), None, Patch::add_finalizer(&volume.metadata, names::PV_PROTECTION))
            }
            Action::RemoveVolumeFinalizer(volume) => {
                patch(volume_ref(volume), None, Patch::remove_finalizer(&volume.metadata, names::PV_PROTECTION))
            }
            Action::SetClass { claim, class } => {
                change(claim_ref(claim), &claim.metadata, None, json!({ "spec": { "storageClassName": class } }))
            }
            Action::CallProvisioner { claim, provisioner } => call_provisioner(claim, provisioner),
            Action::CallResizer { claim, driver } => {
                let annotations = json!({ names::STORAGE_RESIZER: driver });
                change(claim_ref(claim), &claim.metadata, None, json!({ "metadata": { "annotations": annotations } }))
            }
            Action::MakeClaim { pod, volume } => ephemeral::make_claim(pod, volume),
            Action::Reserve { volume, claim } => reserve(volume, claim),
            Action::MarkVolumeBound(volume) => set_phase(volume, VolumePhase::Bound, None),
            Action::PointClaim { claim, volume } => point(claim, volume),
            Action::MarkClaimBound { claim, volume, usage } => mark_claim_bound(claim, volume, usage.as_ref()),
            Action::TellUse { claim, usage } => {
                claim_status(claim, json!({ "status": { "conditions": usage.condition() } }))
            }
            Action::MarkClaimMigrated { claim, mark } => {
                let annotations = mark.annotations(&claim.metadata);
                change(claim_ref(claim), &claim.metadata, None, json!({ "metadata": { "annotations": annotations } }))
            }
            Action::MarkVolumeMigrated { volume, mark, handover } => mark_volume_migrated(volume, *mark, *handover),
            Action::MarkClaimLost(claim) => {
                // PV-22
                let status = json!({ "phase": ClaimPhase::Lost, "accessModes": null, "capacity": null,
                    "currentVolumeAttributesClassName": null });
                change(claim_ref(claim), &claim.metadata, Some(Subresource::Status), json!({ "status": status }))
            }
            Action::MarkAvailable(volume) => set_phase(volume, VolumePhase::Available, None),
            Action::MarkReleased(volume) => set_phase(volume, VolumePhase::Released, None),
            Action::MarkFailed { volume, message } => set_phase(volume, VolumePhase::Failed, Some(message)),
            Action::Unreserve(volume) => unreserve(volume),
            Action::LookForClaim { claim, .. } => {
                Effect::Read(ObjectRef { kind: Kind::PersistentVolumeClaim, key: claim.clone() })
            }
            Action::LookForUsers { claim, .. } => Effect::List { kind: Kind::Pod, namespace: claim.namespace.clone() },
            Action::LookForVolume { volume, .. } => {
                Effect::Read(ObjectRef::cluster(Kind::PersistentVolume, volume.as_str()))
            }
        }
    }

    /// A fresh read prepares a write: it does not end a row of failures.
    fn attempt(&self, got: &Outcome) -> Attempt {
        match self {
            Action::LookForClaim { .. } | Action::LookForUsers { .. } | Action::LookForVolume { .. } => {
                Attempt::of_read(got)
            }
            _ => Attempt::of(got),
        }
    }

    fn permissions() -> &'static [Permission] {
        const PERMISSIONS: &[Permission] = &[
            Permission::new(Kind::PersistentVolumeClaim, "", "get"),
            Permission::new(Kind::PersistentVolumeClaim, "", "create"),
            Permission::new(Kind::PersistentVolumeClaim, "", "patch"),
            Permission::new(Kind::PersistentVolumeClaim, "status", "patch"),
            Permission::new(Kind::Pod, "", "list"),
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

fn set_phase(volume: &PersistentVolume, phase: VolumePhase, message: Option<&str>) -> Effect {
    let body = json!({ "status": { "phase": phase, "message": message, "reason": null } });
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

/// PV-24: capacity and attributes class are reported once, when the claim becomes bound; later growth is reported by
/// who grows it. A filesystem whose growth was not finished under an earlier claim still has the size it had before.
fn mark_claim_bound(claim: &PersistentVolumeClaim, volume: &PersistentVolume, usage: Option<&ClaimUsage>) -> Effect {
    let mut status = json!({ "phase": ClaimPhase::Bound, "accessModes": volume.spec.access_modes });
    if claim.status.phase != ClaimPhase::Bound {
        let before = volume.metadata.annotation(names::PRE_RESIZE_CAPACITY).map(|text| Quantity(text.into()));
        let before = before.filter(|size| size.bytes().is_ok());
        status["capacity"] = json!({ "storage": before.as_ref().or(volume.spec.capacity.get("storage")) });
        // From then on it is the resizer's to say.
        let (has, told) =
            (&volume.spec.volume_attributes_class_name, &claim.status.current_volume_attributes_class_name);
        if has != told {
            status["currentVolumeAttributesClassName"] = json!(has);
        }
    }
    if let Some(usage) = usage {
        status["conditions"] = usage.condition();
    }
    claim_status(claim, json!({ "status": status }))
}

/// Conditions of others stay: they are merged by type.
fn claim_status(claim: &PersistentVolumeClaim, body: Value) -> Effect {
    let only_if = Precondition::unchanged(&claim.metadata);
    patch(claim_ref(claim), Some(Subresource::Status), Patch::strategic(only_if, body))
}

/// PV-50, PV-51: one write. What a driver has taken over is not held for an in-tree plugin any more, nor the other way
/// round.
fn mark_volume_migrated(volume: &PersistentVolume, mark: MigrationMark, handover: Option<Handover>) -> Effect {
    let meta = &volume.metadata;
    let mut body = json!({ "metadata": {} });
    if mark != MigrationMark::Right {
        body["metadata"]["annotations"] = mark.annotations(meta);
    }
    if let Some(Handover { gone, added }) = handover {
        let others = meta.finalizers.iter().map(String::as_str).filter(|one| *one != gone);
        body["metadata"]["finalizers"] = others.chain(added).collect();
    }
    change(volume_ref(volume), meta, None, body)
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
            Action::AddClaimFinalizer(claim)
            | Action::RemoveClaimFinalizer(claim)
            | Action::SetClass { claim, .. }
            | Action::CallProvisioner { claim, .. }
            | Action::CallResizer { claim, .. }
            | Action::PointClaim { claim, .. }
            | Action::MarkClaimBound { claim, .. }
            | Action::TellUse { claim, .. }
            | Action::MarkClaimMigrated { claim, .. }
            | Action::MarkClaimLost(claim) => write!(f, "{name}({})", claim.metadata.key()),
            Action::AddVolumeFinalizer(volume)
            | Action::RemoveVolumeFinalizer(volume)
            | Action::Reserve { volume, .. }
            | Action::MarkVolumeBound(volume)
            | Action::MarkAvailable(volume)
            | Action::MarkReleased(volume)
            | Action::MarkFailed { volume, .. }
            | Action::MarkVolumeMigrated { volume, .. }
            | Action::Unreserve(volume) => write!(f, "{name}({})", volume.metadata.name),
            Action::MakeClaim { pod, volume } => {
                write!(f, "{name}({}/{})", pod.metadata.namespace, pod.ephemeral_claim(volume))
            }
            Action::LookForClaim { claim, .. } | Action::LookForUsers { claim, .. } => write!(f, "{name}({claim})"),
            Action::LookForVolume { volume, .. } => write!(f, "{name}({volume})"),
        }
    }
}
