//! The Node's list of volumes in use, as the agent writes it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{JsonOp, Kind, ObjectRef, Patch, Precondition, ResourceVersion, Subresource, Write};
use control::Effect;
use serde_json::json;

/// A volume in the Node object's list of volumes in use, and the object as seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InUse {
    /// The node's name.
    pub node: String,
    /// This incarnation of the agent.
    pub incarnation: String,
    /// The volume's unique name.
    pub volume: String,
    /// The list as seen.
    pub seen: Option<Vec<String>>,
    /// The object's version as seen.
    pub version: ResourceVersion,
    /// The volume must be reported attached as well.
    pub attach_needed: bool,
}

const IN_USE_PATH: &str = "/status/volumesInUse";

impl InUse {
    pub(crate) fn report(&self) -> Effect {
        let mut list = self.seen.clone().unwrap_or_default();
        list.push(self.volume.clone());
        let mut ops = self.tests();
        if self.seen.is_none() {
            ops.push(self.version_test());
        }
        self.write(ops, &list)
    }

    /// The version is tested as well: once the Node is newer, a clearing still on its way can no longer land.
    pub(crate) fn clear(&self) -> Effect {
        let list: Vec<String> = self.seen.iter().flatten().filter(|v| **v != self.volume).cloned().collect();
        let mut ops = self.tests();
        ops.push(self.version_test());
        self.write(ops, &list)
    }

    fn tests(&self) -> Vec<JsonOp> {
        let incarnation = format!("/metadata/annotations/{}", api::names::AGENT_INCARNATION.replace('/', "~1"));
        let mut ops = alloc::vec![JsonOp::Test { path: incarnation, value: self.incarnation.clone().into() }];
        if let Some(seen) = &self.seen {
            ops.push(JsonOp::Test { path: IN_USE_PATH.into(), value: json!(seen) });
        }
        ops
    }

    fn version_test(&self) -> JsonOp {
        JsonOp::Test { path: "/metadata/resourceVersion".into(), value: self.version.clone().into() }
    }

    fn write(&self, mut ops: Vec<JsonOp>, list: &[String]) -> Effect {
        ops.push(JsonOp::Add { path: IN_USE_PATH.into(), value: json!(list) });
        Effect::Write(Write::Patch {
            target: ObjectRef::cluster(Kind::Node, self.node.clone()),
            subresource: Some(Subresource::Status),
            patch: Patch::json(Precondition::default(), ops),
        })
    }
}
