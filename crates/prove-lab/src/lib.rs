//! A laboratory for the tests of rules: the real object store, the real engine, one model of faults, one source of
//! chance, and golden files of what the rules do in it.
//!
//! Owns: [`Lab`], which holds a `rules_store::Store`, a [`control::Cache`] that may lag behind it, and a
//! [`control::Engine`] of the rules under test; [`Fault`], what may happen to an effect; [`Dice`], seeded chance;
//! [`ScriptedDriver`], a CSI driver that keeps a list of what is true; [`ScriptedMachine`], files and processes;
//! [`play_scripts`], which plays the scenarios under `src/tests/scripts` of a crate; [`check_table`], which prints what
//! is decided on every shape of a view; [`check_wakes`], which prints whom a change wakes.
//!
//! Writes: golden files of the crate under test, only when `LONGSHORE_RECORD` is set.
//!
//! Its laws, checked on every write: the rules hold the right to make it, and it changes something (reliability 109).
//!
//! Does not know: any rules by name, and their laws. A test world adds those.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on should stop here")]

/// Makes a test world stand for the [`Lab`] in one of its fields.
#[macro_export]
macro_rules! world_of {
    ($world:ty, $field:tt: $rules:ty) => {
        impl core::ops::Deref for $world {
            type Target = $crate::Lab<$rules>;

            fn deref(&self) -> &Self::Target {
                &self.$field
            }
        }

        impl core::ops::DerefMut for $world {
            fn deref_mut(&mut self) -> &mut Self::Target {
                &mut self.$field
            }
        }
    };
}

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
mod wakes;

pub use dice::Dice;
pub use driver::ScriptedDriver;
pub use fault::Fault;
pub use lab::{Lab, assert_permitted, refusal};
pub use machine::ScriptedMachine;
pub use print::{call as print_call, effect as print_effect};
pub use script::{Scene, play_scripts};
pub use shapes::{Choices, check_table, verdict, verdict_with};
pub use wakes::{NamedChange, check_wakes, object};
