use alloc::format;
use alloc::string::String;

use control::{Decision, Retry, Tick, Why};

use crate::act::Act;
use crate::memory::Memory;
use crate::view::{Bound, View};
use crate::{grow, modify};

/// How long to wait before asking again whether the caches are filled.
const SYNC_PAUSE_MILLIS: u64 = 200;

pub(crate) fn decide(now: Tick, view: &View, memory: &Memory) -> Decision<Act> {
    match view {
        View::NotSynced(kind) => Decision::Wait(
            now.after_millis(SYNC_PAUSE_MILLIS),
            Why::waiting("CacheNotSynced", format!("waiting for the first list of {kind} objects")),
        ),
        View::Gone(claim) => settled("ClaimGone", format!("claim {claim} does not exist")),
        View::NotBound(claim) => settled("NotBound", format!("claim {claim} has no volume to resize yet")),
        View::VolumeMissing(volume) => {
            Decision::Rest(Why::waiting("VolumeMissing", format!("volume {volume} does not exist")))
        }
        View::NotOurs(volume) => {
            settled("NotOurs", format!("volume {volume} belongs to another driver or another claim"))
        }
        View::Unreadable(problem) => Decision::Rest(Why::waiting("SizeUnreadable", problem.clone())),
        View::Claim(bound) => {
            let memory = memory.about(&bound.claim.uid);
            fenced(bound, &memory, both(now, bound, &memory))
        }
    }
}

/// No call is made while a write of an earlier life could still change what the claim says about it: a late word that the
/// driver will never do it would be believed although the call may have done it.
fn fenced(bound: &Bound, memory: &Memory, plan: Decision<Act>) -> Decision<Act> {
    match plan {
        Decision::Do(call @ (Act::Expand { .. } | Act::Modify { .. }), _) if !memory.owned => {
            let of = call.work();
            let text = format!("going on with claim {} where an earlier life stopped", bound.claim.key);
            Decision::Do(Act::Adopt { claim: bound.claim.clone(), of }, Why::waiting("AdoptingClaim", text))
        }
        plan @ (Decision::Do(..) | Decision::Wait(..) | Decision::Rest(_)) => plan,
    }
}

/// One call per volume at a time (reliability 68): growing comes first, and waiting for one holds up nothing of the other.
fn both(now: Tick, bound: &Bound, memory: &Memory) -> Decision<Act> {
    let growing = grow::decide(now, bound, &memory.grow);
    if let Decision::Do(..) = growing {
        return growing;
    }
    match (growing, modify::decide(now, bound, &memory.modify)) {
        (_, act @ Decision::Do(..)) => act,
        (Decision::Wait(first, why), Decision::Wait(second, _)) => Decision::Wait(first.min(second), why),
        (wait @ Decision::Wait(..), Decision::Rest(_)) => wait,
        (Decision::Rest(_), wait @ Decision::Wait(..)) => wait,
        (Decision::Rest(growing), Decision::Rest(modifying)) => {
            Decision::Rest(if growing.settled && !modifying.settled { modifying } else { growing })
        }
        (act @ Decision::Do(..), Decision::Wait(..) | Decision::Rest(_)) => act,
    }
}

/// After a failure the next attempt waits its turn, and says what failed.
pub(crate) fn hold_back(now: Tick, retry: &Retry, code: &'static str, plan: Decision<Act>) -> Decision<Act> {
    match (plan, retry.pause(now)) {
        (Decision::Do(_, why), Some(until)) => {
            let failure = retry.last_failure().unwrap_or("it failed");
            Decision::Wait(until, Why::waiting(code, format!("{}: {failure}", why.text)))
        }
        (act @ Decision::Do(..), None) => act,
        (rest @ (Decision::Rest(_) | Decision::Wait(..)), Some(_) | None) => rest,
    }
}

pub(crate) fn settled(code: &'static str, text: String) -> Decision<Act> {
    Decision::Rest(Why::settled(code, text))
}
