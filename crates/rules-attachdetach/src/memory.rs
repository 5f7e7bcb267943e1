use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Node, Object, Seen};
use control::{Outcome, Pulse, Reply, Timestamp};

use crate::Action;
use crate::action::leaves;

/// What was read so long ago is read again before anything is taken from a node.
const STALE_MILLIS: u64 = 10_000;

/// What is kept in mind about a volume on a node. Forgetting it costs an adoption or a fence, nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    /// Attachments (by uid) that no deletion still on its way can reach: made or adopted in this incarnation, with no
    /// proof obtained for them since.
    pub safe: BTreeSet<String>,
    /// The proof that the volume may be detached. It is dropped when the volume is wanted again.
    pub proof: Option<Proof>,
    /// The last sign of life of the node, where the volume may be taken from a dead one.
    pub pulse: Option<Pulse>,
    /// The pod, by uid, for which the node was asked who serves the volume, and left it to the driver. As long as
    /// that pod is there the node is not drained, so it is not switched (S4-34).
    pub asked_for: Option<String>,
}

/// A node object, read after the report was taken back, had the volume in neither list, or was gone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proof {
    /// The node's uid; `None` if it was gone.
    pub node: Option<String>,
    /// The attachments that may go, in the versions they were in before the proof was sought.
    pub attachments: Vec<Seen>,
}

/// What an action's outcome adds to or takes from memory.
pub(crate) fn remember(now: Timestamp, memory: Memory, did: &Action, got: &Outcome) -> Memory {
    let Memory { mut safe, mut proof, mut pulse, mut asked_for } = memory;
    match did {
        Action::AskNode { plugin, pod, .. } => {
            let left = matches!(got, Outcome::Done(reply) if leaves(reply, *plugin));
            asked_for = left.then(|| pod.clone());
        }
        Action::Create { .. } => {
            proof = None;
            if let Outcome::Done(Reply::Object(Object::VolumeAttachment(made))) = got {
                safe.clear();
                safe.insert(made.metadata.uid.clone());
            }
        }
        Action::Adopt(attachment) => {
            proof = None;
            if let Outcome::Done(_) = got {
                safe.insert(attachment.uid.clone());
            }
        }
        Action::Report { .. } => proof = None,
        Action::Unreport { names, attachments, .. } | Action::Fence { names, attachments, .. } => {
            safe.clear();
            proof = proof_from_answer(got, names, attachments);
        }
        Action::ForceRelease { names, attachments, .. } => {
            safe.clear();
            proof = proof_from_answer(got, names, attachments);
            // Somebody has written to the node, perhaps the node itself: its Lease is read again.
            if !matches!(got, Outcome::Done(_)) {
                pulse =
                    pulse.map(|pulse| Pulse { read: Timestamp(pulse.read.0.saturating_sub(STALE_MILLIS)), ..pulse });
            }
        }
        Action::ReadLease { .. } => pulse = Pulse::read(pulse.as_ref(), now, got),
        Action::CheckNode { attachments, .. } => {
            safe.clear();
            let gone = matches!(got, Outcome::Done(Reply::Gone));
            proof = gone.then(|| Proof { node: None, attachments: attachments.clone() });
        }
        Action::Delete(attachment) => {
            safe.remove(&attachment.uid);
            asked_for = None;
            // One proof serves every attachment of the pair, but an answer that is not plain voids it.
            if !matches!(got, Outcome::Done(_)) {
                proof = None;
            }
        }
    }
    Memory { safe, proof, pulse, asked_for }
}

fn proof_from_answer(got: &Outcome, names: &[String], attachments: &[Seen]) -> Option<Proof> {
    let Outcome::Done(Reply::Object(Object::Node(node))) = got else { return None };
    let node: &Node = node;
    let named = |name: &String| node.reports_attached(name) || node.reports_in_use(name);
    let free = !attachments.is_empty() && !names.iter().any(named);
    free.then(|| Proof { node: Some(node.metadata.uid.clone()), attachments: attachments.to_vec() })
}
