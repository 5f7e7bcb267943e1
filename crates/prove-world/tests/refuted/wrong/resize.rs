//! A resizer that believes too much.

use control::{Decision, Outcome, Refusal, Rules, Tick};
use csi::Code;
use rules_resizer::{Act, Local, Memory, Resizer, View};

use super::Astray;

/// Takes an answer that never came for a no.
pub struct UnknownIsNo;

impl Astray for UnknownIsNo {
    type Real = Resizer;
    type Local = Local;

    fn real(local: &Local) -> &Local {
        local
    }

    fn remember(now: Tick, memory: Memory, did: &Act, got: &Outcome) -> Memory {
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

    fn decide(now: Tick, view: &View, memory: &Memory) -> Decision<Act> {
        let mut memory = memory.clone();
        if let Some(grown) = &mut memory.grow.grown {
            grown.node_goes_on = false;
        }
        Resizer::decide(now, view, &memory)
    }
}
