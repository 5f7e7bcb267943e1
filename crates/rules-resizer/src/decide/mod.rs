use alloc::format;
use alloc::string::String;

use control::{Decision, Timestamp, Why};

use crate::Reason;
use crate::action::Action;
use crate::memory::Memory;
use crate::view::{Bound, View};

mod grow;
mod modify;
pub(crate) mod target;

pub(crate) fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
    match view {
        View::Gone(claim) => settled(Reason::ClaimGone, format!("claim {claim} does not exist")),
        View::NotBound(claim) => settled(Reason::NotBound, format!("claim {claim} has no volume to resize yet")),
        View::VolumeMissing(volume) => {
            Decision::Rest(Why::waiting(Reason::VolumeMissing, format!("volume {volume} does not exist")))
        }
        View::NotOurs(volume) => {
            settled(Reason::NotOurs, format!("volume {volume} belongs to another driver or another claim"))
        }
        View::Unreadable(problem) => Decision::Rest(Why::waiting(Reason::SizeUnreadable, problem.clone())),
        View::Claim(bound) => {
            let memory = memory.about(&bound.claim.uid);
            // One call per volume at a time (reliability 68): growing comes first, and waiting for one holds up nothing of
            // the other.
            let growing = fenced(bound, &memory, grow::decide(now, bound, &memory.grow));
            growing.or(fenced(bound, &memory, modify::decide(now, bound, &memory.modify)))
        }
    }
}

/// No call is made while a write of an earlier incarnation could still change what the claim says about it: a late word
/// that the driver will never do it would be believed although the call may have done it.
fn fenced(bound: &Bound, memory: &Memory, plan: Decision<Action, Reason>) -> Decision<Action, Reason> {
    match plan {
        Decision::Do(call @ (Action::Expand { .. } | Action::Modify { .. }), _) if !memory.owned => {
            let of = call.work();
            let text = format!("going on with claim {} where an earlier incarnation stopped", bound.claim.object.key);
            Decision::Do(Action::Adopt { claim: bound.claim.clone(), of }, Why::waiting(Reason::AdoptingClaim, text))
        }
        plan => plan,
    }
}

pub(crate) fn settled(code: Reason, text: String) -> Decision<Action, Reason> {
    Decision::Rest(Why::settled(code, text))
}
