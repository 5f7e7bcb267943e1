use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use api::{
    ClaimRef, CsiSource, Kind, Meta, Object, ObjectRef, Patch, PersistentVolume, PersistentVolumeClaim, Precondition,
    Quantity, VolumeSpec, Write, names,
};
use control::{Effect, Permission};
use csi::{Call, v1::DeleteVolumeRequest};
use serde_json::json;

use crate::{Made, Terms};

/// The things this controller does.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Action {
    /// Note on the claim, durably, that its volume is about to be made.
    RecordIntent {
        /// The claim.
        claim: Arc<PersistentVolumeClaim>,
        /// What the class says, as JSON.
        record: String,
    },
    /// Take over an intent found on a claim, so that no earlier write can take it away.
    AdoptIntent(Arc<PersistentVolumeClaim>),
    /// Have the driver make the volume, or say again what it made.
    CreateVolume {
        /// The claim's uid.
        uid: String,
        /// The driver's socket.
        socket: String,
        /// The request.
        request: crate::Request,
    },
    /// Record the volume as a PersistentVolume.
    CreatePv {
        /// The claim it is for.
        claim: Arc<PersistentVolumeClaim>,
        /// The driver.
        driver: String,
        /// What the class says.
        terms: Terms,
        /// What the driver made.
        made: Made,
    },
    /// Take the intent away.
    DropIntent(Arc<PersistentVolumeClaim>),
    /// Read, past the cache, what has the name of a claim's volume.
    LookForPv {
        /// The claim's uid.
        uid: String,
    },
    /// Read, past the cache, a volume that is to be deleted.
    LookAtPv {
        /// Its name.
        name: String,
        /// Its uid.
        uid: String,
    },
    /// Have the driver delete a volume.
    DeleteVolume {
        /// Of the claim or PersistentVolume it is done for.
        uid: String,
        /// The driver's socket.
        socket: String,
        /// The driver's name for it.
        volume_id: String,
    },
    /// Keep a PersistentVolume until the driver has deleted its data.
    Hold(Arc<PersistentVolume>),
    /// Stop keeping it.
    DropHold(Arc<PersistentVolume>),
    /// Delete a PersistentVolume.
    DeletePv(Arc<PersistentVolume>),
}

impl Action {
    /// The uid of the claim or volume the action is done for.
    pub fn uid(&self) -> &str {
        match self {
            Action::RecordIntent { claim, .. }
            | Action::AdoptIntent(claim)
            | Action::CreatePv { claim, .. }
            | Action::DropIntent(claim) => &claim.metadata.uid,
            Action::CreateVolume { uid, .. }
            | Action::LookForPv { uid }
            | Action::LookAtPv { uid, .. }
            | Action::DeleteVolume { uid, .. } => uid,
            Action::Hold(volume) | Action::DropHold(volume) | Action::DeletePv(volume) => &volume.metadata.uid,
        }
    }
}

impl control::Action for Action {
    fn name(&self) -> &'static str {
        match self {
            Action::RecordIntent { .. } => "RecordIntent",
            Action::AdoptIntent(_) => "AdoptIntent",
            Action::CreateVolume { .. } => "CreateVolume",
            Action::CreatePv { .. } => "CreatePv",
            Action::DropIntent(_) => "DropIntent",
            Action::LookForPv { .. } => "LookForPv",
            Action::LookAtPv { .. } => "LookAtPv",
            Action::DeleteVolume { .. } => "DeleteVolume",
            Action::Hold(_) => "Hold",
            Action::DropHold(_) => "DropHold",
            Action::DeletePv(_) => "DeletePv",
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Action::RecordIntent { claim, record } => record_intent(claim, record),
            Action::AdoptIntent(claim) => {
                let annotations = json!({ names::PROVISIONING_ADOPTED: claim.metadata.resource_version });
                let body = json!({ "metadata": { "annotations": annotations } });
                patch(claim_ref(claim), Patch::merge(Precondition::unchanged(&claim.metadata), body))
            }
            Action::CreateVolume { socket, request, .. } => {
                Effect::Call { socket: socket.clone(), call: Call::CreateVolume(request.to_csi()) }
            }
            Action::CreatePv { claim, driver, terms, made } => create_pv(claim, driver, terms, made),
            Action::DropIntent(claim) => drop_intent(claim),
            Action::LookForPv { uid } => {
                Effect::Read(ObjectRef::cluster(Kind::PersistentVolume, names::volume_name_for_claim(uid)))
            }
            Action::LookAtPv { name, .. } => Effect::Read(ObjectRef::cluster(Kind::PersistentVolume, name.as_str())),
            Action::DeleteVolume { socket, volume_id, .. } => Effect::Call {
                socket: socket.clone(),
                call: Call::DeleteVolume(DeleteVolumeRequest {
                    volume_id: volume_id.clone(),
                    ..DeleteVolumeRequest::default()
                }),
            },
            Action::Hold(volume) => {
                patch(volume_ref(volume), Patch::add_finalizer(&volume.metadata, names::PROVISIONER_FINALIZER))
            }
            Action::DropHold(volume) => {
                patch(volume_ref(volume), Patch::remove_finalizer(&volume.metadata, names::PROVISIONER_FINALIZER))
            }
            Action::DeletePv(volume) => Effect::Write(Write::Delete {
                target: volume_ref(volume),
                only_if: Precondition::same(&volume.metadata),
                grace_seconds: None,
            }),
        }
    }

    fn permissions() -> &'static [Permission] {
        const PERMISSIONS: &[Permission] = &[
            on(Kind::PersistentVolumeClaim, "patch"),
            on(Kind::PersistentVolume, "get"),
            on(Kind::PersistentVolume, "create"),
            on(Kind::PersistentVolume, "patch"),
            on(Kind::PersistentVolume, "delete"),
        ];
        PERMISSIONS
    }
}

const fn on(kind: Kind, verb: &'static str) -> Permission {
    Permission { kind, subresource: "", verb }
}

fn claim_ref(claim: &PersistentVolumeClaim) -> ObjectRef {
    ObjectRef { kind: Kind::PersistentVolumeClaim, key: claim.metadata.key() }
}

fn volume_ref(volume: &PersistentVolume) -> ObjectRef {
    ObjectRef { kind: Kind::PersistentVolume, key: volume.metadata.key() }
}

fn patch(target: ObjectRef, patch: Patch) -> Effect {
    Effect::Write(Write::Patch { target, subresource: None, patch })
}

fn record_intent(claim: &PersistentVolumeClaim, record: &str) -> Effect {
    let mut finalizers = claim.metadata.finalizers.clone();
    finalizers.push(names::PROVISIONING_INTENT.into());
    let annotations = json!({ names::PROVISIONING_TERMS: record });
    let body = json!({ "metadata": { "finalizers": finalizers, "annotations": annotations } });
    patch(claim_ref(claim), Patch::merge(Precondition::unchanged(&claim.metadata), body))
}

/// The finalizer and all that was written with it.
fn drop_intent(claim: &PersistentVolumeClaim) -> Effect {
    let rest = claim.metadata.finalizers.iter().filter(|finalizer| *finalizer != names::PROVISIONING_INTENT);
    let rest = rest.collect::<alloc::vec::Vec<_>>();
    let finalizers = if rest.is_empty() { json!(null) } else { json!(rest) };
    let annotations = json!({ names::PROVISIONING_TERMS: null, names::PROVISIONING_ADOPTED: null });
    let body = json!({ "metadata": { "finalizers": finalizers, "annotations": annotations } });
    patch(claim_ref(claim), Patch::merge(Precondition::unchanged(&claim.metadata), body))
}

/// Sidecars 2.9, "PV written".
fn create_pv(claim: &PersistentVolumeClaim, driver: &str, terms: &Terms, made: &Made) -> Effect {
    let request = &terms.request;
    // P20, P22: what the driver says, or what was asked when it does not say.
    let bytes = if made.capacity_bytes == 0 { request.required_bytes } else { made.capacity_bytes };
    let mut metadata = Meta::named(request.name.as_str());
    metadata.annotations = [
        (names::PROVISIONED_BY.into(), driver.into()),
        (names::DELETION_SECRET_NAME.into(), String::new()),
        (names::DELETION_SECRET_NAMESPACE.into(), String::new()),
    ]
    .into();
    metadata.finalizers = alloc::vec![names::PROVISIONER_FINALIZER.into()];
    let spec = VolumeSpec {
        capacity: [("storage".into(), Quantity::from_bytes(bytes))].into(),
        access_modes: claim.spec.access_modes.clone(),
        claim_ref: Some(ClaimRef::to(&claim.metadata)),
        persistent_volume_reclaim_policy: terms.reclaim_policy.clone(),
        storage_class_name: terms.class.clone(),
        mount_options: request.mount_options.clone(),
        volume_mode: Some(claim.volume_mode().into()),
        csi: Some(CsiSource {
            driver: driver.into(),
            volume_handle: made.volume_id.clone(),
            fs_type: if request.block { String::new() } else { request.fs_type.clone() }, // P14
            volume_attributes: made.context.clone(),
            ..CsiSource::default()
        }),
        ..VolumeSpec::default()
    };
    let volume = Object::from(PersistentVolume { metadata, spec, ..PersistentVolume::default() });
    Effect::Write(Write::Create { target: volume.reference(), body: volume.to_json() })
}

/// The name and the object: parameters and contexts stay out of logs.
impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = control::Action::name(self);
        match self {
            Action::RecordIntent { claim, .. }
            | Action::AdoptIntent(claim)
            | Action::CreatePv { claim, .. }
            | Action::DropIntent(claim) => write!(f, "{name}({})", claim.metadata.key()),
            Action::CreateVolume { request, .. } => write!(f, "{name}({})", request.name),
            Action::LookForPv { uid } => write!(f, "{name}(claim uid {uid})"),
            Action::LookAtPv { name: volume, .. } => write!(f, "{name}({volume})"),
            Action::DeleteVolume { volume_id, .. } => write!(f, "{name}({volume_id})"),
            Action::Hold(volume) | Action::DropHold(volume) | Action::DeletePv(volume) => {
                write!(f, "{name}({})", volume.metadata.name)
            }
        }
    }
}
