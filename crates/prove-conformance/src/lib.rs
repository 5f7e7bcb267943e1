//! A conformance suite for CSI drivers. It knows of a driver nothing but its socket and what the specification promises;
//! and of one that took over an in-tree plugin, what the plugin offered and how its objects are translated
//! ([`cases::in_tree`]).
//!
//! It owns the cases ([`cases`]), the list of everything they created, and the report. It writes only below the staging and
//! target directories it is given, and through the driver; it reads the mount table.
//!
//! Laws: the suite deletes what a case created, also when the case fails, panics, runs out of time or the run is interrupted.
//! It skips a case only with a reason, and never judges a driver by a capability the driver does not have. It prints no
//! secrets. A run touches nothing that is not named after the run.
//!
//! To test another RPC, add cases to a file of `cases`; a case names the capabilities it needs as CSI does.
//!
//! It does not know how any driver works, and never looks into a driver's own files.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod ask;
mod case;
pub mod cases;
mod context;
mod host;
mod junit;
mod ledger;
mod life;
mod need;
mod report;
mod requests;
mod runner;
mod suite;

pub use ask::Ask;
pub use case::{Case, CaseResult, Problem};
pub use context::CaseContext;
pub use need::Need;
pub use report::{CaseVerdict, SuiteReport, Verdicts};
pub use runner::{Progress, run};
pub use suite::{Reported, Restart, Suite, SuiteOptions};
