use alloc::vec::Vec;

use api::{Taint, Time};
use control::{Outcome, Pulse, Reply, Timestamp};

use crate::Action;

/// What is kept in mind of a node or a pod. Forgetting it makes everything happen later, nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    /// The last sign of life of the node, or of the pod's node where the pod may be removed with it.
    pub pulse: Option<Pulse>,
    /// When the node said that it had last spoken for itself, as of that sign.
    pub heartbeat: Option<Time>,
    /// Taints on the pod's node that do not say since when they are there.
    pub noticed: Option<Noticed>,
    /// The pod's node was read and is gone.
    pub vanished: Option<Vanished>,
}

/// Taints, and when they were first seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Noticed {
    /// All of the node that end pods.
    pub taints: Vec<Taint>,
    /// By our clock.
    pub since: Timestamp,
}

/// Since when a node is gone, and when that was last read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it all")]
pub struct Vanished {
    pub since: Timestamp,
    pub read: Timestamp,
}

impl Memory {
    pub(crate) fn after(self, now: Timestamp, did: &Action, got: &Outcome) -> Memory {
        match did {
            Action::NoteLife { lease, heartbeat, .. } => {
                let pulse = Some(Pulse::of(lease.as_deref(), now));
                Memory { pulse, heartbeat: heartbeat.clone(), ..self }
            }
            Action::ReadLease { .. } => Memory { pulse: Pulse::read(self.pulse.as_ref(), now, got), ..self },
            Action::NoteTaints { taints, .. } => {
                Memory { noticed: Some(Noticed { taints: taints.clone(), since: now }), ..self }
            }
            Action::CheckNode { .. } => {
                let since = self.vanished.map_or(now, |vanished| vanished.since);
                let vanished = match got {
                    Outcome::Done(Reply::Gone) => Some(Vanished { since, read: now }),
                    Outcome::Done(_) => None,
                    // No answer shows nothing.
                    Outcome::Refused(_) | Outcome::Unknown(_) => self.vanished,
                };
                Memory { vanished, ..self }
            }
            Action::MarkUnknown { .. } | Action::SetTaints { .. } | Action::Evict { .. } | Action::Remove { .. } => {
                self
            }
        }
    }
}
