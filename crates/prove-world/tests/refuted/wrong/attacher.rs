//! Attachers that take a call for answered before it is made.

use control::{Decision, Rules, Timestamp};
use rules_attacher::{Action, Attacher, Local, Memory, PublishContext, Reason, View};

use super::Astray;

/// Says that a volume is attached instead of attaching it.
pub struct SaysAttached;

impl Astray for SaysAttached {
    type Real = Attacher;
    type Local = Local;

    fn real(local: &Local) -> &Local {
        local
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        match Attacher::decide(now, view, memory) {
            Decision::Do(Action::Publish { attachment, .. }, _) => {
                let published = Some((attachment, PublishContext::default()));
                Attacher::decide(now, view, &Memory { published, ..memory.clone() })
            }
            other => other,
        }
    }
}

/// Takes its finalizer off instead of detaching.
pub struct SaysDetached;

impl Astray for SaysDetached {
    type Real = Attacher;
    type Local = Local;

    fn real(local: &Local) -> &Local {
        local
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        match Attacher::decide(now, view, memory) {
            Decision::Do(Action::Unpublish { attachment, .. }, _) => {
                Attacher::decide(now, view, &Memory { unpublished: Some(attachment), ..memory.clone() })
            }
            other => other,
        }
    }
}
