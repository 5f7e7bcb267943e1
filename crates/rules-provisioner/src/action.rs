use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use api::{
    Kind, Object, ObjectKey, ObjectRef, Patch, PersistentVolume, PersistentVolumeClaim, Precondition, SecretReference,
    Write, names,
};
use control::{Attempt, Effect, Lane, Outcome, Permission, Secrets};
use csi::Call;
use csi::v1::{self, DeleteVolumeRequest, GetCapacityRequest};
use serde_json::json;

use crate::{InFlight, InTree, IntentLocation, Local, Made, OwnNode, Terms, VolumeRequest, intent, pv};

/// The things this controller does.
#[derive(Clone, PartialEq, Eq, Hash)]
#[allow(clippy::large_enum_variant, reason = "actions are made one at a time and moved, never collected")]
pub enum Action {
    /// Note durably that a claim's volume is about to be made.
    RecordIntent {
        claim: Arc<PersistentVolumeClaim>,
        place: IntentLocation,
        /// The terms, as they are recorded.
        record: String,
    },
    /// Take over an intent that was found, so that no earlier write can take it away.
    AdoptIntent {
        claim: Arc<PersistentVolumeClaim>,
        /// Where it was found.
        place: IntentLocation,
    },
    /// Adds the finalizer that keeps what a volume is made from until it is made.
    AddSourceFinalizer {
        /// The uid of the claim the volume is for.
        uid: String,
        /// The snapshot or claim.
        source: Object,
        /// The finalizer that keeps it.
        finalizer: &'static str,
    },
    /// Read, past every cache, a secret the next call needs.
    ReadSecret {
        /// The uid of the claim or volume the call is for.
        uid: String,
        secret: SecretReference,
        /// Without it there is no call. Otherwise the call goes out without it.
        needed: bool,
    },
    /// Have the driver make the volume, or say again what it made.
    CreateVolume {
        /// The claim's uid.
        uid: String,
        /// The driver's name.
        driver: Arc<str>,
        request: VolumeRequest,
        /// What goes with it.
        secrets: Secrets,
        /// The volume is to be recorded as an in-tree plugin would have done it.
        in_tree: Option<InTree>,
        /// All there is to know of it, where nothing is written down.
        in_flight: Option<Arc<InFlight>>,
    },
    /// Record the volume as a PersistentVolume.
    CreatePv {
        /// The claim it is for.
        claim: Arc<PersistentVolumeClaim>,
        local: Local,
        /// What the class says.
        terms: Terms,
        /// What the driver made.
        made: Made,
        /// It is recorded as an in-tree plugin would have done it.
        in_tree: Option<InTree>,
    },
    /// Take the intent away.
    DropIntent {
        claim: Arc<PersistentVolumeClaim>,
        /// Where it is.
        place: IntentLocation,
    },
    /// Have the scheduler choose another node.
    Reschedule(Arc<PersistentVolumeClaim>),
    /// Ask the driver on this node whether there is room.
    AskCapacity {
        /// The claim's uid.
        uid: String,
        /// The driver's name.
        driver: Arc<str>,
        /// The request it would get.
        request: VolumeRequest,
        node: OwnNode,
    },
    /// Take a claim for this node, before another node does.
    TakeClaim { claim: Arc<PersistentVolumeClaim>, node: String },
    /// Read, past the cache, a claim whose volume was recorded lately.
    LookAtClaim {
        /// Where it is.
        key: ObjectKey,
        uid: String,
    },
    /// Read, past the cache, what has the name of a claim's volume.
    LookForPv {
        /// The claim's uid.
        uid: String,
        name: String,
    },
    /// Read, past the cache, a volume that is to be deleted.
    LookAtPv { name: String, uid: String },
    /// List the attachments, past the cache, for a volume that is to be deleted and has been attached once.
    LookForAttachments {
        /// The volume's name.
        name: String,
        uid: String,
    },
    /// Have the driver delete a volume.
    DeleteVolume {
        /// Of the claim or PersistentVolume it is done for.
        uid: String,
        /// The driver's name.
        driver: Arc<str>,
        /// The driver's name for it.
        volume_id: String,
        /// What goes with it.
        secrets: Secrets,
        /// It was made for a claim that will not have it.
        undo: bool,
    },
    /// Adds the finalizer that keeps a PersistentVolume until its data is deleted.
    AddFinalizer { volume: Arc<PersistentVolume>, finalizer: &'static str },
    /// Removes that finalizer: the data is gone, or is kept by policy.
    RemoveFinalizer {
        volume: Arc<PersistentVolume>,
        /// Ours, and those that go with it: from a volume that is being deleted several may.
        finalizers: Vec<String>,
    },
    /// Delete a PersistentVolume.
    DeletePv(Arc<PersistentVolume>),
}

impl Action {
    /// The uid of the claim or volume the action is done for.
    pub fn uid(&self) -> &str {
        match self {
            Action::RecordIntent { claim, .. }
            | Action::AdoptIntent { claim, .. }
            | Action::CreatePv { claim, .. }
            | Action::Reschedule(claim)
            | Action::TakeClaim { claim, .. }
            | Action::DropIntent { claim, .. } => &claim.metadata.uid,
            Action::CreateVolume { uid, .. }
            | Action::AddSourceFinalizer { uid, .. }
            | Action::ReadSecret { uid, .. }
            | Action::AskCapacity { uid, .. }
            | Action::LookAtClaim { uid, .. }
            | Action::LookForPv { uid, .. }
            | Action::LookAtPv { uid, .. }
            | Action::LookForAttachments { uid, .. }
            | Action::DeleteVolume { uid, .. } => uid,
            Action::AddFinalizer { volume, .. } | Action::RemoveFinalizer { volume, .. } | Action::DeletePv(volume) => {
                &volume.metadata.uid
            }
        }
    }
}

impl control::Action for Action {
    fn name(&self) -> &'static str {
        match self {
            Action::RecordIntent { .. } => "RecordIntent",
            Action::AdoptIntent { .. } => "AdoptIntent",
            Action::AddSourceFinalizer { .. } => "AddSourceFinalizer",
            Action::ReadSecret { .. } => "ReadSecret",
            Action::CreateVolume { .. } => "CreateVolume",
            Action::CreatePv { .. } => "CreatePv",
            Action::DropIntent { .. } => "DropIntent",
            Action::Reschedule(_) => "Reschedule",
            Action::AskCapacity { .. } => "AskCapacity",
            Action::TakeClaim { .. } => "TakeClaim",
            Action::LookAtClaim { .. } => "LookAtClaim",
            Action::LookForPv { .. } => "LookForPv",
            Action::LookAtPv { .. } => "LookAtPv",
            Action::LookForAttachments { .. } => "LookForAttachments",
            Action::DeleteVolume { .. } => "DeleteVolume",
            Action::AddFinalizer { .. } => "AddFinalizer",
            Action::RemoveFinalizer { .. } => "RemoveFinalizer",
            Action::DeletePv(_) => "DeletePv",
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Action::RecordIntent { claim, place, record } => intent::write(claim, place, record),
            Action::AdoptIntent { claim, place } => intent::adopt(claim, place),
            Action::DropIntent { claim, place } => intent::withdraw(claim, place),
            Action::Reschedule(claim) => intent::reschedule(claim),
            Action::AddSourceFinalizer { source, finalizer, .. } => patch(source.reference(), hold(source, finalizer)),
            Action::ReadSecret { secret, .. } => Secrets::read(secret),
            Action::CreateVolume { driver, request, secrets, .. } => {
                Effect::call_driver(&**driver, Call::CreateVolume(request.to_csi(secrets)))
            }
            Action::CreatePv { claim, local, terms, made, in_tree } => pv::create(claim, local, terms, made, *in_tree),
            Action::AskCapacity { driver, request, node, .. } => {
                Effect::call_driver(&**driver, Call::GetCapacity(capacity_request(request, node)))
            }
            Action::TakeClaim { claim, node } => {
                let body = json!({ "metadata": { "annotations": { names::SELECTED_NODE: node } } });
                let target = ObjectRef { kind: Kind::PersistentVolumeClaim, key: claim.metadata.key() };
                patch(target, Patch::merge(Precondition::unchanged(&claim.metadata), body))
            }
            Action::LookAtClaim { key, .. } => {
                Effect::Read(ObjectRef { kind: Kind::PersistentVolumeClaim, key: key.clone() })
            }
            Action::LookForPv { name, .. } | Action::LookAtPv { name, .. } => {
                Effect::Read(ObjectRef::cluster(Kind::PersistentVolume, name.as_str()))
            }
            Action::LookForAttachments { .. } => {
                Effect::List { kind: Kind::VolumeAttachment, namespace: String::new() }
            }
            Action::DeleteVolume { driver, volume_id, secrets, .. } => {
                let request = DeleteVolumeRequest { volume_id: volume_id.clone(), secrets: secrets.0.clone() };
                Effect::call_driver(&**driver, Call::DeleteVolume(request))
            }
            Action::AddFinalizer { volume, finalizer } => {
                patch(volume_ref(volume), Patch::add_finalizer(&volume.metadata, finalizer))
            }
            Action::RemoveFinalizer { volume, finalizers } => {
                let all: Vec<&str> = finalizers.iter().map(String::as_str).collect();
                let gone = match all[..] {
                    [ours] => Patch::remove_finalizer(&volume.metadata, ours),
                    _ => Patch::remove_finalizers_of(&volume.metadata.uid, &all),
                };
                patch(volume_ref(volume), gone)
            }
            Action::DeletePv(volume) => Effect::Write(Write::Delete {
                target: volume_ref(volume),
                only_if: Precondition::same(&volume.metadata),
                grace_seconds: None,
            }),
        }
    }

    fn attempt(&self, got: &Outcome) -> Attempt {
        crate::memory::attempt(self, got)
    }

    fn lane(&self) -> Lane<'_> {
        Lane::about(self.uid())
    }

    fn news(&self) -> control::News {
        crate::news::news(self)
    }

    fn permissions() -> &'static [Permission] {
        const PERMISSIONS: &[Permission] = &[
            Permission::new(Kind::Lease, "", "create"),
            Permission::new(Kind::Lease, "", "patch"),
            Permission::new(Kind::PersistentVolumeClaim, "", "get"),
            Permission::new(Kind::PersistentVolumeClaim, "", "patch"),
            Permission::new(Kind::PersistentVolume, "", "get"),
            Permission::new(Kind::VolumeAttachment, "", "list"),
            Permission::new(Kind::PersistentVolume, "", "create"),
            Permission::new(Kind::PersistentVolume, "", "patch"),
            Permission::new(Kind::PersistentVolume, "", "delete"),
            Permission::new(Kind::VolumeSnapshot, "", "patch"),
            Permission::new(Kind::Secret, "", "get"),
        ];
        PERMISSIONS
    }
}

/// Puts the finalizer on a source. One that is there already is made sure of by a newer version of the object.
fn hold(source: &Object, finalizer: &str) -> Patch {
    let meta = source.meta();
    if !meta.has_finalizer(finalizer) {
        return Patch::add_finalizer(meta, finalizer);
    }
    let annotations = json!({ names::SOURCE_HELD: meta.resource_version });
    Patch::merge(Precondition::unchanged(meta), json!({ "metadata": { "annotations": annotations } }))
}

fn volume_ref(volume: &PersistentVolume) -> ObjectRef {
    ObjectRef { kind: Kind::PersistentVolume, key: volume.metadata.key() }
}

fn patch(target: ObjectRef, patch: Patch) -> Effect {
    Effect::Write(Write::Patch { target, subresource: None, patch })
}

/// P95: the parameters as the driver would get them, for this node.
fn capacity_request(request: &VolumeRequest, node: &OwnNode) -> GetCapacityRequest {
    let whole = request.to_csi(&Secrets::default());
    GetCapacityRequest {
        volume_capabilities: whole.volume_capabilities,
        parameters: whole.parameters,
        accessible_topology: Some(v1::Topology { segments: node.segments.clone() }),
    }
}

/// The name and the object: parameters and contexts stay out of logs.
impl fmt::Debug for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = control::Action::name(self);
        match self {
            Action::RecordIntent { claim, .. }
            | Action::AdoptIntent { claim, .. }
            | Action::CreatePv { claim, .. }
            | Action::Reschedule(claim)
            | Action::TakeClaim { claim, .. }
            | Action::DropIntent { claim, .. } => write!(f, "{name}({})", claim.metadata.key()),
            Action::CreateVolume { request, .. } | Action::AskCapacity { request, .. } => {
                write!(f, "{name}({})", request.name)
            }
            Action::AddSourceFinalizer { source, .. } => write!(f, "{name}({})", source.reference()),
            Action::ReadSecret { secret, .. } => write!(f, "{name}({}/{})", secret.namespace, secret.name),
            Action::LookAtClaim { key, .. } => write!(f, "{name}({key})"),
            Action::LookForPv { uid, .. } => write!(f, "{name}(claim uid {uid})"),
            Action::LookAtPv { name: volume, .. } | Action::LookForAttachments { name: volume, .. } => {
                write!(f, "{name}({volume})")
            }
            Action::DeleteVolume { volume_id, .. } => write!(f, "{name}({volume_id})"),
            Action::AddFinalizer { volume, .. } | Action::RemoveFinalizer { volume, .. } | Action::DeletePv(volume) => {
                write!(f, "{name}({})", volume.metadata.name)
            }
        }
    }
}
