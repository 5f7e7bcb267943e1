//! What a node does about a volume that has grown, as rules: it grows the filesystem and says so in the claim.
//!
//! A stand-in for the node agent in worlds where nothing else of it matters.

use std::fmt;
use std::sync::Arc;

use api::{
    Kind, ObjectKey, ObjectRef, Patch, PersistentVolume, PersistentVolumeClaim, Precondition, Quantity, Subresource,
    Write, names,
};
use control::{Action, BackOff, Cache, Decision, Effect, Outcome, Permission, Route, Rules, Timestamp, Why, routes};
use csi::{Call, v1};
use serde_json::json;

/// The node's part.
pub struct NodePart;

/// The claim that one decision is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(ObjectKey);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "claim {}", self.0)
    }
}

/// A claim whose volume has grown, the volume's handle, and its size.
pub type View = Option<(Arc<PersistentVolumeClaim>, String, Quantity)>;

/// What the node does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// Grow the filesystem.
    Expand {
        handle: String,
        /// Its size, as it is written.
        size: String,
    },
    Record {
        /// The claim as it was seen.
        claim: Arc<PersistentVolumeClaim>,
        /// The size it has now.
        size: String,
    },
}

impl Action for Act {
    fn name(&self) -> &'static str {
        match self {
            Act::Expand { .. } => "ExpandFilesystem",
            Act::Record { .. } => "RecordSize",
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Act::Expand { handle, .. } => {
                let request = v1::NodeExpandVolumeRequest { volume_id: handle.clone(), ..Default::default() };
                Effect::call_driver(crate::worlds::DRIVER, Call::NodeExpandVolume(request))
            }
            Act::Record { claim, size } => {
                let kept = claim.status.conditions.iter().filter(|one| one.r#type != names::FILE_SYSTEM_RESIZE_PENDING);
                let conditions: Vec<_> = kept.map(|one| json!(one)).collect();
                let status = json!({
                    "capacity": { "storage": size }, "allocatedResourceStatuses": null, "conditions": conditions,
                });
                let patch = Patch::merge(Precondition::unchanged(&claim.metadata), json!({ "status": status }));
                let target = ObjectRef { kind: Kind::PersistentVolumeClaim, key: claim.metadata.key() };
                Effect::Write(Write::Patch { target, subresource: Some(Subresource::Status), patch })
            }
        }
    }

    fn permissions() -> &'static [Permission] {
        &[Permission { kind: Kind::PersistentVolumeClaim, subresource: "status", verb: "patch" }]
    }
}

control::reasons! {
    /// Why the filesystem grows or not.
    pub enum NodePartReason {
        Growing,
        NothingGrown,
    }
}

impl Rules for NodePart {
    const NAME: &'static str = "node";
    type Key = Key;
    type Local = ();
    type View = View;
    type Action = Act;
    type Reason = NodePartReason;
    /// The size the filesystem was last grown to.
    type Memory = Option<String>;

    const ROUTES: &'static [Route<Self>] = routes![
        PersistentVolumeClaim => both(|_, woken| woken.wake_all(NodePart::keys(woken.cache, woken.local))),
        PersistentVolume => both(|_, woken| woken.wake_all(NodePart::keys(woken.cache, woken.local))),
    ];

    fn keys(cache: &Cache, (): &()) -> Vec<Key> {
        cache.claims().map(|claim| Key(claim.metadata.key())).collect()
    }

    fn view(key: &Key, cache: &Cache, (): &()) -> View {
        let claim = cache.claim(&key.0)?;
        let volume = cache.volume(&ObjectKey::cluster(claim.spec.volume_name.clone()))?;
        let handle = volume.spec.csi.as_ref()?.volume_handle.clone();
        let (had, has) = (claim.status.capacity.get("storage")?, volume.spec.capacity.get("storage")?);
        let grown = had.bytes().ok()? < has.bytes().ok()?;
        let turn = claim.status.allocated_resource_statuses.get("storage").map(String::as_str);
        (grown && turn == Some(names::NODE_RESIZE_PENDING)).then(|| (claim.clone(), handle, has.clone()))
    }

    fn decide(_: Timestamp, view: &View, memory: &Option<String>) -> Decision<Act, NodePartReason> {
        let Some((claim, handle, size)) = view else {
            return Decision::Rest(Why::settled(
                NodePartReason::NothingGrown,
                "the filesystem is as large as its volume",
            ));
        };
        let size = size.to_string();
        let why = Why::waiting(NodePartReason::Growing, "the volume has grown");
        if memory.as_ref() == Some(&size) {
            return Decision::Do(Act::Record { claim: claim.clone(), size }, why);
        }
        Decision::Do(Act::Expand { handle: handle.clone(), size }, why)
    }

    fn remember(_: Timestamp, memory: Option<String>, did: &Act, got: &Outcome) -> Option<String> {
        match (did, got) {
            (Act::Expand { size, .. }, Outcome::Done(_)) => Some(size.clone()),
            (Act::Expand { .. } | Act::Record { .. }, Outcome::Done(_) | Outcome::Refused(_) | Outcome::Unknown(_)) => {
                memory
            }
        }
    }

    fn learn((): &mut (), _: &Act, _: &Outcome, _: &Cache) -> Vec<Key> {
        Vec::new()
    }

    fn back_off((): &()) -> BackOff {
        BackOff::default()
    }

    fn object(key: &Key) -> ObjectRef {
        ObjectRef { kind: Kind::PersistentVolumeClaim, key: key.0.clone() }
    }
}
