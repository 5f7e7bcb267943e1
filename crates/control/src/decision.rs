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
}

impl<A> Decision<A> {
    /// The reason, whatever the decision.
    pub fn why(&self) -> &Why {
        match self {
            Decision::Rest(why) | Decision::Wait(_, why) | Decision::Do(_, why) => why,
        }
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
