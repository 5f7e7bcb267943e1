use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use crate::{Reason, Timestamp};

/// What a controller wants for one key, now: one of its actions `A`, or nothing, for one of its reasons `C`.
///
/// The engine hands out decisions whose reasons are plain names, because it has reasons of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<A, C = &'static str> {
    /// Nothing to do until a fact changes.
    Rest(Why<C>),
    /// Nothing to do until a fact changes or this moment comes.
    Wait(Timestamp, Why<C>),
    /// Do exactly this, then look again.
    Do(A, Why<C>),
    /// Two pieces of work of one key, one action at a time: the first, and while it rests, waits or backs off, the second.
    Either(Box<Decision<A, C>>, Box<Decision<A, C>>),
}

impl<A, C> Decision<A, C> {
    /// The reason, whatever the decision. Of two pieces of work the reason of the one that is not settled.
    pub fn why(&self) -> &Why<C> {
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
    pub fn or(self, other: Decision<A, C>) -> Decision<A, C> {
        Decision::Either(Box::new(self), Box::new(other))
    }
}

impl<A, C: Reason> Decision<A, C> {
    /// Chooses between two pieces of work. `hold` answers until when an action is held back, and why.
    pub(crate) fn resolve(self, hold: &mut impl FnMut(&A, &Why<C>) -> Option<(Timestamp, Why)>) -> Resolved<A, C> {
        match self {
            Decision::Rest(why) => Resolved::Rest(why),
            Decision::Wait(until, why) => Resolved::Wait(until, why.named()),
            Decision::Do(action, why) => match hold(&action, &why) {
                Some((until, held)) => Resolved::Wait(until, held),
                None => Resolved::Do(action, why),
            },
            Decision::Either(first, second) => match first.resolve(hold) {
                act @ Resolved::Do(..) => act,
                idle @ (Resolved::Rest(_) | Resolved::Wait(..)) => idle.or(second.resolve(hold)),
            },
        }
    }
}

/// A decision on one piece of work, with failures counted. A wait may be the engine's own, so only its name is kept.
pub(crate) enum Resolved<A, C> {
    Rest(Why<C>),
    Wait(Timestamp, Why),
    Do(A, Why<C>),
}

impl<A, C> Resolved<A, C> {
    /// This has nothing to do now, so the other may.
    fn or(self, other: Resolved<A, C>) -> Resolved<A, C> {
        match (self, other) {
            (_, act @ Resolved::Do(..)) => act,
            (Resolved::Wait(one, why), Resolved::Wait(other, _)) => Resolved::Wait(one.min(other), why),
            (wait @ Resolved::Wait(..), _) | (_, wait @ Resolved::Wait(..)) => wait,
            (Resolved::Rest(one), Resolved::Rest(other)) => {
                Resolved::Rest(if one.settled && !other.settled { other } else { one })
            }
            (act @ Resolved::Do(..), _) => act,
        }
    }
}

impl<A, C: Reason> From<Resolved<A, C>> for Decision<A> {
    fn from(resolved: Resolved<A, C>) -> Decision<A> {
        match resolved {
            Resolved::Rest(why) => Decision::Rest(why.named()),
            Resolved::Wait(until, why) => Decision::Wait(until, why),
            Resolved::Do(action, why) => Decision::Do(action, why.named()),
        }
    }
}

/// Why a decision is what it is: feeds events, metrics, logs and `explain`.
///
/// Rules say it with a reason of their own type; the engine and everything after it with the reason's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Why<C = &'static str> {
    /// One of the rules' reasons, or its name.
    pub code: C,
    /// One clause a person can read, without a capital or a full stop, such as `waiting for the driver's answer`.
    pub text: String,
    /// All is as it should be: nothing is being waited for.
    pub settled: bool,
}

impl<C> Why<C> {
    /// Something is under way or waited for.
    pub fn waiting(code: C, text: impl Into<String>) -> Why<C> {
        Why { code, text: text.into(), settled: false }
    }

    /// Nothing is left to do for this key.
    pub fn settled(code: C, text: impl Into<String>) -> Why<C> {
        Why { code, text: text.into(), settled: true }
    }
}

impl<C: Reason> Why<C> {
    /// The same with the reason's name instead of the reason.
    pub fn named(self) -> Why {
        Why { code: self.code.name(), text: self.text, settled: self.settled }
    }
}

impl<C> fmt::Display for Why<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
