use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{AttachedVolume, AttachmentSource, Kind, Object, ObjectRef, Seen, Value, Write, names};
use control::{Attempt, Effect, News, Outcome, Permission, Reply};
use rules_translate::{NodeSays, Plugin};
use serde_json::json;

use crate::news;

/// Everything the attach/detach controller does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Ask for a volume to be attached.
    Create {
        /// The attachment's name.
        attachment: String,
        /// The driver that attaches.
        driver: String,
        /// The PersistentVolume's name, or the volume itself.
        source: AttachmentSource,
        /// The node's name.
        node: String,
    },
    /// Give an attachment a newer version, so that a deletion still on its way fails.
    Adopt(Seen),
    /// Tell the node that the volume is attached.
    Report {
        /// The node as it was seen.
        node: Seen,
        /// The whole list as it will be.
        list: Vec<AttachedVolume>,
        /// The PersistentVolume's name.
        volume: String,
    },
    /// Take the report back. The answer shows whether the node uses the volume.
    Unreport {
        /// The node as it was seen.
        node: Seen,
        /// The whole list as it will be.
        list: Vec<AttachedVolume>,
        /// The names under which the node may report the volume.
        names: Vec<String>,
        /// The attachments the answer may be a proof for.
        attachments: Vec<Seen>,
    },
    /// Give the node a newer version, so that a report still on its way fails. The answer shows whether the node uses
    /// the volume.
    Fence {
        /// The node as it was seen.
        node: Seen,
        /// The names under which the node may report the volume.
        names: Vec<String>,
        /// The attachments the answer may be a proof for.
        attachments: Vec<Seen>,
    },
    /// Read the Lease by which the node shows that it lives.
    ReadLease {
        /// The node's name.
        node: String,
        /// The Lease's version as it was last read.
        known: Option<String>,
    },
    /// Take the volume from a dead node: neither list of its status names it any more. What shows that the node is
    /// dead is told.
    ForceRelease {
        /// The node as it was seen.
        node: Seen,
        /// All that it will be told is attached.
        list: Vec<AttachedVolume>,
        /// All that it will be said to use.
        used: Vec<String>,
        /// The PersistentVolume's name.
        volume: String,
        /// The names under which the node may report the volume.
        names: Vec<String>,
        /// The attachments the answer may be a proof for.
        attachments: Vec<Seen>,
        /// Somebody has said that the node is out of service; if not, its time is up.
        out_of_service: bool,
        /// What shows that the node is dead.
        evidence: String,
    },
    /// Read past the cache whether the node leaves volumes of an in-tree plugin to the driver.
    AskNode {
        /// The node's name.
        node: String,
        /// The plugin that may serve there as well.
        plugin: Plugin,
        /// The uid of the pod that the answer is for.
        pod: String,
    },
    /// Make sure that a node is really gone.
    CheckNode {
        /// The node's name.
        node: String,
        /// The attachments the answer may be a proof for.
        attachments: Vec<Seen>,
    },
    /// Ask for the volume to be detached.
    Delete(Seen),
}

impl control::Action for Action {
    fn name(&self) -> &'static str {
        match self {
            Action::Create { .. } => "CreateAttachment",
            Action::Adopt(_) => "AdoptAttachment",
            Action::Report { .. } => "ReportAttached",
            Action::Unreport { .. } => "TakeReportBack",
            Action::Fence { .. } => "FenceNode",
            Action::ReadLease { .. } => "ReadLease",
            Action::ForceRelease { .. } => "ForceRelease",
            Action::AskNode { .. } => "AskNode",
            Action::CheckNode { .. } => "CheckNode",
            Action::Delete(_) => "DeleteAttachment",
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Action::Create { attachment, driver, source, node } => {
                Effect::Write(create(attachment, driver, source, node))
            }
            Action::Adopt(attachment) => Effect::Write(mark(attachment, names::ATTACHMENT_ADOPTED)),
            Action::Report { node, list, .. } | Action::Unreport { node, list, .. } => {
                Effect::Write(set_reported(node, list))
            }
            Action::Fence { node, .. } => Effect::Write(mark(node, names::DETACH_FENCE)),
            Action::ReadLease { node, .. } => {
                Effect::Read(ObjectRef::namespaced(Kind::Lease, names::NODE_LEASES, node.clone()))
            }
            Action::ForceRelease { node, list, used, .. } => Effect::Write(released(node, list, used)),
            Action::AskNode { node, .. } => Effect::Read(ObjectRef::cluster(Kind::CSINode, node.clone())),
            Action::CheckNode { node, .. } => Effect::Read(ObjectRef::cluster(Kind::Node, node.clone())),
            Action::Delete(attachment) => Effect::Write(attachment.delete()),
        }
    }

    fn attempt(&self, got: &Outcome) -> Attempt {
        match (self, got) {
            (Action::CheckNode { .. }, Outcome::Done(Reply::Gone)) => Attempt::Succeeded,
            // The cache has not seen the node yet. Looking again at once would find the same cache.
            (Action::CheckNode { .. }, Outcome::Done(_)) => Attempt::Outrun("the node is there".into()),
            (Action::AskNode { node, plugin, .. }, Outcome::Done(reply)) if !leaves(reply, *plugin) => {
                Attempt::Outrun(format!("{plugin} serves on node {node} again"))
            }
            (Action::AskNode { .. }, got) => Attempt::of_read(got),
            // Whoever said that volumes may be taken from the node is told that it lives.
            (Action::ReadLease { node, known: Some(known) }, Outcome::Done(Reply::Object(Object::Lease(lease))))
                if lease.metadata.resource_version.0 != *known =>
            {
                Attempt::Failed(format!("node {node} renews its Lease, so it lives, and nothing is taken from it"))
            }
            // That there is no Lease is an answer, too.
            (Action::ReadLease { .. }, Outcome::Done(_)) => Attempt::Neutral,
            (_, got) => Attempt::of(got),
        }
    }

    fn news(&self) -> News {
        news::news(self)
    }

    fn permissions() -> &'static [Permission] {
        const ALL: [Permission; 8] = [
            Permission::new(Kind::VolumeAttachment, "", "create"),
            Permission::new(Kind::VolumeAttachment, "", "patch"),
            Permission::new(Kind::VolumeAttachment, "", "delete"),
            Permission::new(Kind::Node, "", "get"),
            Permission::new(Kind::Node, "", "patch"),
            Permission::new(Kind::Node, "status", "patch"),
            Permission::new(Kind::CSINode, "", "get"),
            Permission::new(Kind::Lease, "", "get"),
        ];
        &ALL
    }
}

/// What was read of a node's CSINode says that the node leaves volumes of the plugin to the driver.
pub(crate) fn leaves(reply: &Reply, plugin: Plugin) -> bool {
    match reply {
        Reply::Object(Object::CSINode(node)) => NodeSays::of(Some(node)).leaves_to_csi(plugin),
        _ => false,
    }
}

fn create(attachment: &str, driver: &str, source: &AttachmentSource, node: &str) -> Write {
    let kind = Kind::VolumeAttachment;
    Write::Create {
        target: ObjectRef::cluster(kind, attachment),
        body: json!({
            "apiVersion": kind.api_version(),
            "kind": kind.name(),
            "metadata": { "name": attachment },
            "spec": { "attacher": driver, "nodeName": node, "source": source },
        }),
    }
}

/// Writes the version an object has into one of its annotations. Since the object must be unchanged and no earlier
/// mark can carry its current version, this always makes a newer version.
fn mark(object: &Seen, annotation: &str) -> Write {
    let mut annotations = serde_json::Map::new();
    annotations.insert(annotation.into(), object.version.clone().into());
    object.patch(json!({ "metadata": { "annotations": annotations } }))
}

/// The list goes out whole, under the node's version: a test of the list alone would let a report that was sent long
/// ago succeed after the list had come and gone.
fn set_reported(node: &Seen, list: &[AttachedVolume]) -> Write {
    node.patch_status(json!({ "status": { "volumesAttached": reported(list) } }))
}

/// Both lists in one write, so that its answer is a proof like any other. A node that is not dead writes its own list
/// again.
fn released(node: &Seen, list: &[AttachedVolume], used: &[String]) -> Write {
    let used = if used.is_empty() { Value::Null } else { json!(used) };
    node.patch_status(json!({ "status": { "volumesAttached": reported(list), "volumesInUse": used } }))
}

fn reported(list: &[AttachedVolume]) -> Value {
    match list.is_empty() {
        true => Value::Null,
        false => list.iter().map(AttachedVolume::to_json).collect(),
    }
}
