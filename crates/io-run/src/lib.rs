//! Runs any rules.
//!
//! [`Facts`] is the one cache of a process, shared by its controllers; whoever watches the API feeds it. A
//! [`Controller`] owns one set of rules: its queue, its memories, its facts from outside the API. It asks the rules,
//! has [`Hands`] perform what they decide, and tells them how it ended. It knows no controller by name and no hand.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod clock;
mod controller;
mod events;
mod facts;
mod metrics;
mod volumes;

pub use clock::Clock;
pub use control::{Explanation, Verdict};
pub use controller::{Controller, Hands, Parts};
pub use events::Events;
pub use facts::{Facts, Listener};
pub use metrics::{Acted, CallLabels, Counts, Metrics};
