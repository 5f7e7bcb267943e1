//! What a controller is.
//!
//! A controller is a set of [`Rules`]: pure functions that, told the time, the facts about one key and their own
//! memory, answer *rest*, *wait until*, or *do exactly one action*, always with a reason. Somebody else performs the
//! action ([`Effect`]) and tells how it ended ([`Outcome`]).
//!
//! This crate owns the words for that ([`Decision`], [`Why`], [`Outcome`]), the facts rules look at ([`Cache`]), the
//! table of keys that a change of them concerns ([`routes!`]), the words for the machine they run on ([`host`]) and for
//! how a volume is used ([`Capability`]), the one way secrets are read and passed on ([`Secrets`]), and the tools every
//! controller needs, all told the time: the loop itself ([`Engine`]), its [`Queue`] and its back-off ([`Failures`]),
//! [`Election`], which Secrets to read again ([`FailedSecrets`]), and what shows that a node is dead ([`Pulse`]).
//!
//! It does not know any controller, any I/O, or what time it is.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod cache;
mod capability;
mod decision;
mod effect;
mod election;
mod engine;
pub mod explain;
mod failed_secrets;
pub mod host;
mod index;
mod pulse;
mod queue;
mod reads;
mod reason;
mod retry;
pub mod route;
mod rules;
mod secrets;
mod shelf;
mod turns;

pub use cache::{Cache, Change};
pub use capability::{Access, Capability, Mode};
pub use decision::{Decision, Why};
pub use effect::{Effect, Endpoint, Outcome, Refusal, Reply, TokenWish};
pub use election::{Election, ElectionStep, LeaseConfig, LeaseRead};
pub use engine::{Doing, Ended, Engine, Explanation, Fold, Next, Verdict};
pub use failed_secrets::FailedSecrets;
pub use index::{HandleOf, Index};
pub use pulse::{Pulse, PulseVerdict};
pub use queue::{BEGUN, Queue};
pub use reason::Reason;
pub use retry::{Attempt, BackOff, Failures, Lane};
pub use route::{Route, Sides, Woken};
pub use rules::{Action, EventType, Narrate, News, Permission, Rules};
pub use secrets::Secrets;

/// A moment: milliseconds since 1970, as told by whoever runs the rules. It never goes backwards within one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The moment so many milliseconds later.
    #[must_use]
    pub fn after_millis(self, millis: u64) -> Timestamp {
        Timestamp(self.0.saturating_add(millis))
    }

    /// The moment as Kubernetes writes it.
    pub fn to_time(self) -> api::Time {
        api::Time::from_unix_millis(self.0)
    }
}
