use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Node, Object};
use control::{Outcome, Refusal, Reply, Retry, Tick};

use crate::{Act, Stamp};

/// What is kept in mind about a volume on a node. Forgetting it costs an adoption or a fence, nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    /// Failures in a row.
    pub retry: Retry,
    /// Attachments (by uid) that no deletion still on its way can reach: made or adopted in this life, with no proof
    /// obtained for them since.
    pub safe: BTreeSet<String>,
    /// The proof that the volume may be detached. It is dropped when the volume is wanted again.
    pub proof: Option<Proof>,
}

/// A node object, read after the report was taken back, had the volume in neither list, or was gone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Proof {
    /// The node's uid; `None` if it was gone.
    pub node: Option<String>,
    /// The attachments that may go, in the versions they were in before the proof was sought.
    pub attachments: Vec<Stamp>,
}

/// What an action's outcome adds to or takes from memory.
pub(crate) fn remember(now: Tick, memory: Memory, did: &Act, got: &Outcome) -> Memory {
    let Memory { retry, mut safe, mut proof } = memory;
    let mut retry = retry.after(now, got);
    match did {
        Act::Create { .. } => {
            proof = None;
            if let Outcome::Done(Reply::Object(Object::VolumeAttachment(made))) = got {
                safe.clear();
                safe.insert(made.metadata.uid.clone());
            }
        }
        Act::Adopt(attachment) => {
            proof = None;
            if let Outcome::Done(_) = got {
                safe.insert(attachment.uid.clone());
            }
        }
        Act::Report { .. } => proof = None,
        Act::Unreport { unique_name, attachments, .. } | Act::Fence { unique_name, attachments, .. } => {
            safe.clear();
            proof = proof_from_answer(got, unique_name, attachments);
        }
        Act::CheckNode { attachments, .. } => {
            safe.clear();
            proof = None;
            match got {
                Outcome::Done(Reply::Gone) => proof = Some(Proof { node: None, attachments: attachments.clone() }),
                // The cache has not seen the node yet. Looking again at once would find the same cache.
                Outcome::Done(Reply::Object(_) | Reply::Nothing | Reply::Csi(_) | Reply::Host(_)) => {
                    retry = retry.after(now, &Outcome::Refused(Refusal::Conflict));
                }
                Outcome::Refused(_) | Outcome::Unknown(_) => {}
            }
        }
        Act::Delete(attachment) => {
            safe.remove(&attachment.uid);
            // One proof serves every attachment of the pair, but an answer that is not plain voids it.
            if !matches!(got, Outcome::Done(_)) {
                proof = None;
            }
        }
    }
    Memory { retry, safe, proof }
}

fn proof_from_answer(got: &Outcome, unique_name: &str, attachments: &[Stamp]) -> Option<Proof> {
    let Outcome::Done(Reply::Object(Object::Node(node))) = got else { return None };
    let node: &Node = node;
    let free = !attachments.is_empty() && !node.reports_attached(unique_name) && !node.reports_in_use(unique_name);
    free.then(|| Proof { node: Some(node.metadata.uid.clone()), attachments: attachments.to_vec() })
}
