use alloc::format;
use alloc::string::String;

use api::{Kind, Patch, SecretReference, Seen, Time, Value, Write, names};
use control::{Attempt, Capability, Effect, Lane, News, Outcome, Permission, Secrets};
use csi::{Call, v1};
use serde_json::{Map, json};

use crate::memory::still_to_undo;
use crate::{PublishContext, news};

/// Everything the attacher does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Adds our finalizer to the volume.
    AddVolumeFinalizer {
        /// The volume as it was seen.
        volume: Seen,
        finalizer: String,
    },
    /// Adds our finalizer and the node's id to the attachment.
    AddAttachmentFinalizer {
        /// The attachment as it was seen.
        attachment: Seen,
        finalizer: String,
        /// The driver's id of the node.
        node_id: String,
    },
    /// Read what is secret about a call.
    ReadSecret {
        /// The attachment's uid.
        attachment: String,
        /// What the call is for.
        side: Side,
        secret: SecretReference,
    },
    /// Ask the driver to attach.
    Publish {
        /// The attachment's uid.
        attachment: String,
        request: PublishRequest,
        /// What is secret about it.
        secrets: Secrets,
    },
    /// Say that it is attached.
    Confirm {
        /// The attachment as it was seen.
        attachment: Seen,
        /// What the driver told.
        context: PublishContext,
    },
    /// Say what went wrong.
    ReportError {
        /// The attachment as it was seen.
        attachment: Seen,
        /// Attaching or detaching.
        side: Side,
        /// Its status says it is attached, which stays.
        attached: bool,
        /// What went wrong.
        message: String,
        /// The driver's code.
        code: Option<i32>,
        time: Time,
    },
    /// Give way to another attachment: from here on this one is not published.
    GiveWay(Seen),
    /// Read the attachment past the cache before undoing anything.
    Recheck {
        /// The attachment as it was seen.
        attachment: Seen,
        finalizer: String,
    },
    /// Ask the driver to detach.
    Unpublish {
        /// The attachment's uid.
        attachment: String,
        /// Volume and node as the driver knows them.
        place: VolumeOnNode,
        /// What is secret about it.
        secrets: Secrets,
    },
    /// Take our finalizer and the give-way mark off the attachment.
    RemoveAttachmentFinalizer {
        /// The attachment as it was seen.
        attachment: Seen,
        finalizer: String,
    },
    /// Take our finalizer off the volume.
    RemoveVolumeFinalizer {
        /// The volume as it was seen.
        volume: Seen,
        finalizer: String,
        /// It is being deleted, so that nobody can put a finalizer on it any more.
        leaving: bool,
    },
    /// Say that it is not attached any more, where somebody else's finalizer keeps the attachment.
    Detached(Seen),
    /// Ask the driver what it has published, one page.
    List {
        /// The driver's name.
        driver: String,
        /// The page; empty for the first.
        token: String,
        /// The longest page; 0 leaves it to the driver.
        max_entries: i32,
    },
}

/// Which way something went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    Attach,
    Detach,
}

/// A volume and a node as the driver knows them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VolumeOnNode {
    /// The driver's name.
    pub driver: String,
    /// The volume's handle.
    pub handle: String,
    /// The node's id.
    pub node_id: String,
}

/// What the driver needs to attach.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PublishRequest {
    /// Which volume to which node.
    pub place: VolumeOnNode,
    /// How it is going to be used.
    pub capability: Capability,
    /// Not to be written to.
    pub readonly: bool,
    /// What the driver told when it made the volume.
    pub context: PublishContext,
}

impl VolumeOnNode {
    /// The finalizer of the driver's attacher.
    pub fn finalizer(&self) -> String {
        names::attacher_finalizer(&self.driver)
    }
}

impl control::Action for Action {
    fn name(&self) -> &'static str {
        match self {
            Action::AddVolumeFinalizer { .. } => "AddVolumeFinalizer",
            Action::AddAttachmentFinalizer { .. } => "AddAttachmentFinalizer",
            Action::ReadSecret { .. } => "ReadSecret",
            Action::Publish { .. } => "ControllerPublishVolume",
            Action::Confirm { .. } => "ConfirmAttached",
            Action::ReportError { side: Side::Attach, .. } => "ReportAttachError",
            Action::ReportError { side: Side::Detach, .. } => "ReportDetachError",
            Action::GiveWay(_) => "GiveWay",
            Action::Recheck { .. } => "RecheckAttachment",
            Action::Unpublish { .. } => "ControllerUnpublishVolume",
            Action::RemoveAttachmentFinalizer { .. } => "RemoveAttachmentFinalizer",
            Action::RemoveVolumeFinalizer { .. } => "RemoveVolumeFinalizer",
            Action::Detached(_) => "ConfirmDetached",
            Action::List { .. } => "ListVolumes",
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Action::AddVolumeFinalizer { volume, finalizer } => Effect::Write(volume.add_finalizer(finalizer)),
            Action::AddAttachmentFinalizer { attachment, finalizer, node_id } => {
                let annotations = annotation(names::ATTACHMENT_NODE_ID, json!(node_id));
                let body = json!({ "metadata": { "finalizers": [finalizer], "annotations": annotations } });
                Effect::Write(attachment.merge(body))
            }
            Action::ReadSecret { secret, .. } => Secrets::read(secret),
            Action::Publish { request, secrets, .. } => publish(request, secrets),
            Action::Confirm { attachment, context } => {
                Effect::Write(attachment.patch_status(json!({ "status": confirmed(context) })))
            }
            Action::ReportError { attachment, side, attached, message, code, time } => {
                Effect::Write(attachment.patch_status(failed(*side, *attached, message, *code, time)))
            }
            Action::GiveWay(attachment) => {
                let annotations = annotation(names::ATTACHMENT_GIVES_WAY, json!("true"));
                Effect::Write(attachment.patch(json!({ "metadata": { "annotations": annotations } })))
            }
            Action::Recheck { attachment, .. } => Effect::Read(attachment.object.clone()),
            Action::Unpublish { place, secrets, .. } => unpublish(place, secrets),
            Action::RemoveAttachmentFinalizer { attachment, finalizer } => {
                let annotations = annotation(names::ATTACHMENT_GIVES_WAY, Value::Null);
                let metadata =
                    json!({ "$deleteFromPrimitiveList/finalizers": [finalizer], "annotations": annotations });
                Effect::Write(attachment.merge(json!({ "metadata": metadata })))
            }
            Action::RemoveVolumeFinalizer { volume, finalizer, leaving: false } => {
                Effect::Write(volume.remove_finalizer(finalizer))
            }
            Action::RemoveVolumeFinalizer { volume, finalizer, leaving: true } => {
                let patch = Patch::remove_finalizer_of(&volume.uid, finalizer);
                Effect::Write(Write::Patch { target: volume.object.clone(), subresource: None, patch })
            }
            Action::Detached(attachment) => {
                let status = json!({ "attached": false, "attachmentMetadata": null, "detachError": null });
                Effect::Write(attachment.patch_status(json!({ "status": status })))
            }
            Action::List { driver, token, max_entries } => {
                let request = v1::ListVolumesRequest { max_entries: *max_entries, starting_token: token.clone() };
                Effect::call_driver(driver.as_str(), Call::ListVolumes(request))
            }
        }
    }

    fn attempt(&self, got: &Outcome) -> Attempt {
        match self {
            Action::ReadSecret { secret, .. } => Secrets::attempt(secret, got),
            Action::Recheck { attachment, finalizer } => match Attempt::of_read(got) {
                // The cache is behind. Looking again at once would find the same cache.
                Attempt::Neutral if !still_to_undo(got, attachment, finalizer) => {
                    Attempt::Outrun("the attachment is not to be undone".into())
                }
                attempt => attempt,
            },
            _ => Attempt::of(got),
        }
    }

    /// Telling about a failure neither waits for its end nor ends it, and a driver that refuses to attach is asked to
    /// detach at once.
    fn lane(&self) -> Lane<'_> {
        match self {
            Action::ReportError { .. } => Lane::numbered(1),
            Action::Recheck { .. }
            | Action::Unpublish { .. }
            | Action::RemoveAttachmentFinalizer { .. }
            | Action::ReadSecret { side: Side::Detach, .. } => Lane::numbered(2),
            _ => Lane::default(),
        }
    }

    fn news(&self) -> News {
        news::news(self)
    }

    fn permissions() -> &'static [Permission] {
        const ALL: [Permission; 5] = [
            Permission::new(Kind::PersistentVolume, "", "patch"),
            Permission::new(Kind::VolumeAttachment, "", "get"),
            Permission::new(Kind::VolumeAttachment, "", "patch"),
            Permission::new(Kind::VolumeAttachment, "status", "patch"),
            Permission::new(Kind::Secret, "", "get"),
        ];
        &ALL
    }
}

fn annotation(key: &str, value: Value) -> Map<alloc::string::String, Value> {
    let mut map = Map::new();
    map.insert(key.into(), value);
    map
}

fn publish(request: &PublishRequest, secrets: &Secrets) -> Effect {
    let place = &request.place;
    let call = Call::ControllerPublishVolume(v1::ControllerPublishVolumeRequest {
        volume_id: place.handle.clone(),
        node_id: place.node_id.clone(),
        volume_capability: Some(request.capability.to_csi()),
        readonly: request.readonly,
        volume_context: request.context.0.clone(),
        secrets: secrets.0.clone(),
    });
    Effect::call_driver(place.driver.as_str(), call)
}

fn unpublish(place: &VolumeOnNode, secrets: &Secrets) -> Effect {
    let call = Call::ControllerUnpublishVolume(v1::ControllerUnpublishVolumeRequest {
        volume_id: place.handle.clone(),
        node_id: place.node_id.clone(),
        secrets: secrets.0.clone(),
    });
    Effect::call_driver(place.driver.as_str(), call)
}

fn confirmed(context: &PublishContext) -> Value {
    let metadata = if context.0.is_empty() { Value::Null } else { json!(context.0) };
    json!({ "attached": true, "attachmentMetadata": metadata, "attachError": null, "detachError": null })
}

/// The longest message that the API takes, in bytes (API-5).
const LONGEST_MESSAGE: usize = 1024;

/// The beginning of a message that is too long: without it the whole error would be refused.
pub(crate) fn shortened(message: &str) -> String {
    if message.len() <= LONGEST_MESSAGE {
        return message.into();
    }
    let end = (0..=LONGEST_MESSAGE - '…'.len_utf8()).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", &message[..end])
}

fn failed(side: Side, attached: bool, message: &str, code: Option<i32>, time: &Time) -> Value {
    let mut error = json!({ "message": shortened(message), "time": time.0 });
    match side {
        Side::Attach => {
            // A code left over from an earlier error goes.
            error["errorCode"] = code.map_or(Value::Null, Value::from);
            json!({ "status": { "attached": attached, "attachError": error } })
        }
        Side::Detach => json!({ "status": { "detachError": error } }),
    }
}
