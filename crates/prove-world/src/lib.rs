//! All rules and a pretend world in one thread.
//!
//! Owns: pretend worlds (an API server that is the real `rules-store`, a driver, machines, a user), the list of what
//! may happen next in them, and the laws. It runs the very rules the binary runs, through every order of steps and every
//! fault within stated bounds, breadth first, and answers with the number of states it saw or with the shortest
//! history that breaks a law.
//!
//! Writes: nothing. It answers with a [`Report`].
//!
//! Only reads: the rules, through [`control::Rules`].
//!
//! Its laws: a state reached twice is explored once; a history it prints can be replayed step by step; what it leaves
//! out is written down with the reason (see [`mod@world`]).
//!
//! Does not know: real time, real processes, how rules decide. `laws` knows the laws and nothing of the rules.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod bounds;
mod calm;
mod canon;
mod cluster;
mod describe;
mod explore;
pub mod laws;
mod machine;
mod member;
mod plugins;
mod report;
mod shorten;
mod states;
mod step;
mod switched;
mod take;
mod truth;
mod wander;
pub mod world;
pub mod worlds;

pub use bounds::{Bounds, Budget};
pub use cluster::WrongStore;
pub use explore::{Scenario, explore};
pub use laws::{Law, Violation};
pub use machine::{KernelMachine, Shown};
pub use member::{Actor, Seat};
pub use plugins::{Plugin, Plugins};
pub use report::{Counterexample, Report};
pub use truth::{LARGEST, PretendHost, Size, Truth};
pub use wander::{WALKED, Walks, wander, wander_wide};
pub use worlds::{UnknownWorld, find, run, walked, worlds};
