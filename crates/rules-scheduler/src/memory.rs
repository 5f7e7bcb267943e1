use alloc::string::String;

use api::ResourceVersion;
use control::{Outcome, Timestamp};

use crate::Action;

/// How long the watch may take to show a binding before the pod is bound once more, which changes nothing.
const WATCH_PATIENCE_MILLIS: u64 = 1_000;

/// What is kept in mind about a pod: that it was bound just now. The answer to a binding is not the pod, so the cache
/// learns of it from the watch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    /// The pod as it was bound, its node, and until when its watch is waited for.
    pub bound: Option<(ResourceVersion, String, Timestamp)>,
}

impl Memory {
    pub(crate) fn after(self, now: Timestamp, did: &Action, got: &Outcome) -> Memory {
        match (did, got) {
            (Action::Bind { pod, node, .. }, Outcome::Done(_)) => {
                let until = now.after_millis(WATCH_PATIENCE_MILLIS);
                Memory { bound: Some((pod.version.clone(), node.clone(), until)) }
            }
            (Action::Bind { .. }, Outcome::Refused(_) | Outcome::Unknown(_)) => Memory::default(),
            (Action::SelectNode { .. } | Action::ReserveVolume { .. } | Action::ReportUnschedulable { .. }, _) => self,
        }
    }

    /// The node a pod of this version was bound to, and until when the watch is waited for.
    pub(crate) fn awaits(&self, now: Timestamp, version: &ResourceVersion) -> Option<(&str, Timestamp)> {
        let (bound, node, until) = self.bound.as_ref()?;
        (bound == version && now < *until).then_some((node, *until))
    }
}
