//! A resizer that believes too much.

use control::{Decision, Outcome, Refusal, Rules, Timestamp, Why};
use csi::Code;
use rules_resizer::{Action, Local, Memory, Reason, Resizer, View};

use super::Astray;

/// Takes an answer that never came for a no.
pub struct UnknownIsNo;

impl Astray for UnknownIsNo {
    type Real = Resizer;
    type Local = Local;

    fn real(local: &Local) -> &Local {
        local
    }

    fn remember(now: Timestamp, memory: Memory, did: &Action, got: &Outcome) -> Memory {
        let no = match got {
            Outcome::Unknown(text) => Outcome::Refused(Refusal::Driver(Code::Internal, text.clone())),
            heard => heard.clone(),
        };
        Resizer::remember(now, memory, did, &no)
    }
}

/// Takes it that the node has nothing left to do.
pub struct NodeIsSwift;

impl Astray for NodeIsSwift {
    type Real = Resizer;
    type Local = Local;

    fn real(local: &Local) -> &Local {
        local
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        let mut memory = memory.clone();
        if let Some(grown) = &mut memory.grow.grown {
            grown.node_goes_on = false;
        }
        Resizer::decide(now, view, &memory)
    }
}

/// Takes a call for answered before it is made.
pub struct GrowsOnPaper;

impl Astray for GrowsOnPaper {
    type Real = Resizer;
    type Local = Local;

    fn real(local: &Local) -> &Local {
        local
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        instead(Resizer::decide(now, view, memory), &|action, why| match action {
            Action::Expand { claim, size, .. } => {
                let mut memory = Memory { uid: claim, ..memory.clone() };
                memory.grow.grown = Some(rules_resizer::Grown { asked: size, size, node_goes_on: true });
                Resizer::decide(now, view, &memory)
            }
            Action::Modify { claim, class, .. } => {
                let mut memory = Memory { uid: claim, ..memory.clone() };
                memory.modify.modified = Some(class);
                Resizer::decide(now, view, &memory)
            }
            other => Decision::Do(other, why),
        })
    }
}

/// Asks for one byte, whatever the claim says.
pub struct AsksForLittle;

impl Astray for AsksForLittle {
    type Real = Resizer;
    type Local = Local;

    fn real(local: &Local) -> &Local {
        local
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        instead(Resizer::decide(now, view, memory), &|action, why| match action {
            Action::Expand { claim, place, capability, secrets, .. } => {
                Decision::Do(Action::Expand { claim, place, size: 1, capability, secrets }, why)
            }
            other => Decision::Do(other, why),
        })
    }
}

/// Does something else instead of an action, in either piece of work.
fn instead(
    decision: Decision<Action, Reason>,
    change: &impl Fn(Action, Why<Reason>) -> Decision<Action, Reason>,
) -> Decision<Action, Reason> {
    match decision {
        Decision::Do(action, why) => change(action, why),
        Decision::Either(first, second) => instead(*first, change).or(instead(*second, change)),
        idle @ (Decision::Rest(_) | Decision::Wait(..)) => idle,
    }
}
