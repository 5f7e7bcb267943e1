//! Judges any CSI driver from outside: nothing is known of it but its socket and what the specification promises.
//!
//! It owns the cases ([`cases`]), the memory of everything they created, and the report. It writes only below the
//! staging and target directories it is given, and through the driver; it reads the mount table.
//!
//! Laws: what a case creates is taken away again, also when the case fails, panics, runs out of time or the run is
//! interrupted. A case is skipped only with a reason, and a driver is never judged by what it does not offer. Secrets
//! are never printed. A run touches nothing that is not named after the run.
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
pub use case::{Case, Outcome, Problem};
pub use context::Context;
pub use need::{Abilities, Need};
pub use report::{Report, Verdict, Verdicts};
pub use runner::{Progress, run};
pub use suite::{Options, Restart, Suite};
