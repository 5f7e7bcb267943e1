use alloc::string::String;
use alloc::vec::Vec;

use api::{AttachedVolume, Kind, ObjectRef, Patch, Precondition, Subresource, Value, Write, names};
use control::{Action, Effect, Permission};
use serde_json::json;

/// Everything the attach/detach controller does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// Ask for a volume to be attached.
    Create {
        /// The attachment's name.
        attachment: String,
        /// The driver that attaches.
        driver: String,
        /// The PersistentVolume's name.
        volume: String,
        /// The node's name.
        node: String,
    },
    /// Give an attachment a newer version, so that a deletion still on its way fails.
    Adopt(Stamp),
    /// Tell the node that the volume is attached.
    Report {
        /// The node as it was seen.
        node: Stamp,
        /// The whole list as it will be.
        list: Vec<AttachedVolume>,
    },
    /// Take the report back. The answer shows whether the node uses the volume.
    Unreport {
        /// The node as it was seen.
        node: Stamp,
        /// The whole list as it will be.
        list: Vec<AttachedVolume>,
        /// The name under which the node reports the volume.
        unique_name: String,
        /// The attachments the answer may be a proof for.
        attachments: Vec<Stamp>,
    },
    /// Give the node a newer version, so that a report still on its way fails. The answer shows whether the node uses
    /// the volume.
    Fence {
        /// The node as it was seen.
        node: Stamp,
        /// The name under which the node reports the volume.
        unique_name: String,
        /// The attachments the answer may be a proof for.
        attachments: Vec<Stamp>,
    },
    /// Make sure that a node is really gone.
    CheckNode {
        /// The node's name.
        node: String,
        /// The attachments the answer may be a proof for.
        attachments: Vec<Stamp>,
    },
    /// Ask for the volume to be detached.
    Delete(Stamp),
}

/// An object as it was seen: which one, and in which version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its resource version.
    pub version: String,
}

impl Stamp {
    fn unchanged(&self) -> Precondition {
        Precondition { uid: Some(self.uid.clone()), resource_version: Some(self.version.clone()) }
    }
}

impl Action for Act {
    fn name(&self) -> &'static str {
        match self {
            Act::Create { .. } => "CreateAttachment",
            Act::Adopt(_) => "AdoptAttachment",
            Act::Report { .. } => "ReportAttached",
            Act::Unreport { .. } => "TakeReportBack",
            Act::Fence { .. } => "FenceNode",
            Act::CheckNode { .. } => "CheckNode",
            Act::Delete(_) => "DeleteAttachment",
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Act::Create { attachment, driver, volume, node } => Effect::Write(create(attachment, driver, volume, node)),
            Act::Adopt(attachment) => {
                Effect::Write(mark(Kind::VolumeAttachment, attachment, names::ATTACHMENT_ADOPTED))
            }
            Act::Report { node, list } | Act::Unreport { node, list, .. } => Effect::Write(set_reported(node, list)),
            Act::Fence { node, .. } => Effect::Write(mark(Kind::Node, node, names::DETACH_FENCE)),
            Act::CheckNode { node, .. } => Effect::Read(ObjectRef::cluster(Kind::Node, node.clone())),
            Act::Delete(attachment) => Effect::Write(Write::Delete {
                target: ObjectRef::cluster(Kind::VolumeAttachment, attachment.name.clone()),
                only_if: attachment.unchanged(),
                grace_seconds: None,
            }),
        }
    }

    fn permissions() -> &'static [Permission] {
        const fn right(kind: Kind, subresource: &'static str, verb: &'static str) -> Permission {
            Permission { kind, subresource, verb }
        }
        const RIGHTS: [Permission; 6] = [
            right(Kind::VolumeAttachment, "", "create"),
            right(Kind::VolumeAttachment, "", "patch"),
            right(Kind::VolumeAttachment, "", "delete"),
            right(Kind::Node, "", "get"),
            right(Kind::Node, "", "patch"),
            right(Kind::Node, "status", "patch"),
        ];
        &RIGHTS
    }
}

fn create(attachment: &str, driver: &str, volume: &str, node: &str) -> Write {
    let kind = Kind::VolumeAttachment;
    Write::Create {
        target: ObjectRef::cluster(kind, attachment),
        body: json!({
            "apiVersion": kind.api_version(),
            "kind": kind.name(),
            "metadata": { "name": attachment },
            "spec": { "attacher": driver, "nodeName": node, "source": { "persistentVolumeName": volume } },
        }),
    }
}

/// Writes the version an object has into one of its annotations. Since the object must be unchanged and no earlier
/// mark can carry its current version, this always makes a newer version.
fn mark(kind: Kind, object: &Stamp, annotation: &str) -> Write {
    let mut annotations = serde_json::Map::new();
    annotations.insert(annotation.into(), object.version.clone().into());
    Write::Patch {
        target: ObjectRef::cluster(kind, object.name.clone()),
        subresource: None,
        patch: Patch::merge(object.unchanged(), json!({ "metadata": { "annotations": annotations } })),
    }
}

/// The list goes out whole, under the node's version: a test of the list alone would let a report that was sent long
/// ago succeed after the list had come and gone.
fn set_reported(node: &Stamp, list: &[AttachedVolume]) -> Write {
    let list = match list.is_empty() {
        true => Value::Null,
        false => list.iter().map(AttachedVolume::to_json).collect(),
    };
    Write::Patch {
        target: ObjectRef::cluster(Kind::Node, node.name.clone()),
        subresource: Some(Subresource::Status),
        patch: Patch::merge(node.unchanged(), json!({ "status": { "volumesAttached": list } })),
    }
}
