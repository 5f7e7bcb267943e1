//! What it takes to move the in-tree volumes of a cluster to CSI drivers, and how far that has come.
//!
//! An operator wants to know this before a gate is switched: which objects there are, what each becomes, what stands in
//! the way, which steps follow in which order, and how to go back. A [`Survey`] is told of one object after the other
//! and keeps what matters; [`Survey::plan`] draws the conclusions.
//!
//! Owns: the order of the steps (S4-35, S4-36), what blocks a step ([`MigrationObstacle`]), how far a migration has
//! come ([`MigrationStage`]), and what does not fit together ([`Inconsistency`]).
//! Writes and reads: nothing.
//!
//! Laws:
//! - what was not seen is unknown, and unknown is never called done: a dump without nodes says nothing of nodes;
//! - a step is done only if the objects show it;
//! - what an object becomes is what `rules-translate` makes of it, in its words where it cannot.
//!
//! Does not know: files and formats, whether objects come from a cluster or from a dump, which gates a process was
//! given: those leave marks on objects, and the marks are read.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod inconsistency;
mod item;
mod nodes;
mod obstacle;
mod places;
mod plan;
mod stage;
mod steps;
mod survey;
mod told;

#[cfg(test)]
mod tests;

pub use inconsistency::Inconsistency;
pub use item::{Becomes, Item, ItemKind, Mark};
pub use nodes::{NodesKnown, NodesSay};
pub use obstacle::MigrationObstacle;
pub use plan::{Counts, MigrationPlan, PluginPlan};
pub use stage::{ControllersSay, MigrationStage, MigrationVerdict};
pub use steps::{MigrationStep, StepState};
pub use survey::Survey;
