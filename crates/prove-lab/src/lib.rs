//! A laboratory for the tests of rules: the real object store, the real engine, one model of faults, one source of chance.
//!
//! Owns: [`Lab`], which holds a `rules_store::Store`, a [`control::Cache`] that may lag behind it, and a
//! [`control::Engine`] of the rules under test; [`Fault`], what may happen to an effect; [`Dice`], seeded chance.
//!
//! Writes: nothing outside itself.
//!
//! Its laws, checked on every write: the rules hold the right to make it, and it changes something (reliability 109).
//!
//! Does not know: any rules by name, drivers, machines. A test world adds those and performs the effects that are not the
//! API's.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop here")]

mod dice;
mod fault;
mod lab;
mod user;

pub use dice::Dice;
pub use fault::Fault;
pub use lab::{Lab, assert_permitted, refusal};
