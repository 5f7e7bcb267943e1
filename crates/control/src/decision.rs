use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use crate::Tick;

/// What a controller wants for one key, now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<A> {
    /// Nothing to do until a fact changes.
    Rest(Why),
    /// Nothing to do until a fact changes or this moment comes.
    Wait(Tick, Why),
    /// Do exactly this, then look again.
    Do(A, Why),
    /// Two pieces of work of one key, one action at a time: the first, and while it rests, waits or backs off, the second.
    Either(Box<Decision<A>>, Box<Decision<A>>),
}

impl<A> Decision<A> {
    /// The reason, whatever the decision. Of two pieces of work the reason of the one that is not settled.
    pub fn why(&self) -> &Why {
        match self {
            Decision::Rest(why) | Decision::Wait(_, why) | Decision::Do(_, why) => why,
            Decision::Either(first, second) => match first.why() {
                settled if settled.settled => second.why(),
                why => why,
            },
        }
    }

    /// This, and while it rests, waits or backs off, the other.
    #[must_use]
    pub fn or(self, other: Decision<A>) -> Decision<A> {
        Decision::Either(Box::new(self), Box::new(other))
    }

    /// Resolves [`Decision::Either`] once each action was held back or not.
    #[must_use]
    pub(crate) fn first(self, hold: &mut impl FnMut(A, Why) -> Decision<A>) -> Decision<A> {
        match self {
            Decision::Do(action, why) => hold(action, why),
            rest @ (Decision::Rest(_) | Decision::Wait(..)) => rest,
            Decision::Either(first, second) => match first.first(hold) {
                act @ Decision::Do(..) => act,
                first => merge(first, second.first(hold)),
            },
        }
    }
}

/// The first of two has nothing to do now.
fn merge<A>(first: Decision<A>, second: Decision<A>) -> Decision<A> {
    match (first, second) {
        (_, act @ Decision::Do(..)) => act,
        (Decision::Wait(one, why), Decision::Wait(other, _)) => Decision::Wait(one.min(other), why),
        (wait @ Decision::Wait(..), _) | (_, wait @ Decision::Wait(..)) => wait,
        (Decision::Rest(one), Decision::Rest(other)) => {
            Decision::Rest(if one.settled && !other.settled { other } else { one })
        }
        (first, _) => first,
    }
}

/// Why a decision is what it is: feeds events, metrics, logs and `explain`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Why {
    /// One CamelCase word from a closed set, fit for a metric label or an event reason.
    pub code: &'static str,
    /// One clause a person can read, without a capital or a full stop, such as `waiting for the driver's answer`.
    pub text: String,
    /// All is as it should be: nothing is being waited for.
    pub settled: bool,
}

impl Why {
    /// Something is under way or waited for.
    pub fn waiting(code: &'static str, text: impl Into<String>) -> Why {
        Why { code, text: text.into(), settled: false }
    }

    /// Nothing is left to do for this key.
    pub fn settled(code: &'static str, text: impl Into<String>) -> Why {
        Why { code, text: text.into(), settled: true }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
