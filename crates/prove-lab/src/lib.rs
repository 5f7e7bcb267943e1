//! A laboratory for the tests of rules: the real object store, the real engine, one model of faults, one source of chance,
//! and golden files of what the rules do in it.
//!
//! Owns: [`Lab`], which holds a `rules_store::Store`, a [`control::Cache`] that may lag behind it, and a
//! [`control::Engine`] of the rules under test; [`Fault`], what may happen to an effect; [`Dice`], seeded chance; [`Driver`], a
//! CSI driver that keeps a list of what is true; [`Machine`], files and processes; [`play_scripts`], which plays the scenarios under `src/tests/scripts` of a
//! crate; [`check_table`], which prints what is decided on every shape of a view.
//!
//! Writes: golden files of the crate under test, only when `LONGSHORE_RECORD` is set.
//!
//! Its laws, checked on every write: the rules hold the right to make it, and it changes something (reliability 109).
//!
//! Does not know: any rules by name, and their laws. A test world adds those.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop here")]

mod dice;
mod driver;
mod fault;
mod golden;
mod lab;
mod machine;
mod print;
mod script;
mod shapes;
mod short;
mod user;

pub use dice::Dice;
pub use driver::Driver;
pub use fault::Fault;
pub use lab::{Lab, assert_permitted, refusal};
pub use machine::Machine;
pub use print::{call as print_call, effect as print_effect};
pub use script::{Stage, play_scripts};
pub use shapes::{Choices, check_table, verdict, verdict_with};
