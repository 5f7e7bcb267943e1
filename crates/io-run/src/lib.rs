//! Runs the controllers of a process.
//!
//! [`Manager`] is the one way to compose a process. It holds what all controllers share: the [`SharedCache`] that
//! watches fill, the clock, events, metrics, and the [`SharedHands`] that act. Whoever adds a controller says how it
//! leads, how many keys it works on at once, and what it need not see; the manager derives the watches, leads, starts
//! over, stops and explains. Controllers may come and go while it runs, as drivers do.
//!
//! A [`Controller`] owns one set of rules: its queue, its memories, its facts from outside the API. It asks the rules,
//! has [`Hands`] perform what they decide, and tells them how it ended. This crate knows no controller by name.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod clock;
mod controller;
mod drivers;
mod events;
mod hands;
pub mod machine;
mod manager;
mod metrics;
mod operations;
mod panics;
mod plugins;
mod secret_poll;
mod shared_cache;
mod volumes;
mod watch_set;

pub use clock::Clock;
pub use control::{Explanation, Verdict};
pub use controller::{Controller, Hands, Observer, Parts};
pub use drivers::{CallCounts, DriverLine, Drivers};
pub use events::Events;
pub use hands::SharedHands;
pub use manager::{Addition, Leadership, Looks, Manager};
pub use metrics::{Acted, CallLabels, Metrics};
pub use panics::{Panicked, Panics};
pub use plugins::{InTreePlugin, PluginAnswer};
pub use secret_poll::SecretPoll;
pub use shared_cache::{Listener, SharedCache};
