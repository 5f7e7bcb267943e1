use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::{CaseContext, Need};

/// The argument of every case.
pub type T = Arc<CaseContext>;

/// How a case ends before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The driver broke a promise.
    Failed(String),
    /// The case cannot be judged here.
    Skipped(String),
}

/// How a case ends.
pub type CaseResult<A = ()> = Result<A, Problem>;

/// One test of the driver.
pub struct Case {
    /// Service, method and behaviour, such as `controller/create/no-name`.
    pub name: &'static str,
    /// What the driver and the machine must offer.
    pub needs: &'static [Need],
    /// The promise, in our words.
    pub why: &'static str,
    /// csi-sanity judges this too.
    pub parity: bool,
    pub run: fn(T) -> Pin<Box<dyn Future<Output = CaseResult> + Send>>,
}

/// Ends the case: the driver broke a promise.
pub fn fail<A>(what: impl Into<String>) -> CaseResult<A> {
    Err(Problem::Failed(what.into()))
}

/// Ends the case: it cannot be judged here.
pub fn skip<A>(why: impl Into<String>) -> CaseResult<A> {
    Err(Problem::Skipped(why.into()))
}

/// Ends the case as failed unless the condition holds.
macro_rules! ensure {
    ($holds:expr, $($text:tt)+) => {
        if !$holds {
            return Err($crate::Problem::Failed(format!($($text)+)));
        }
    };
}

/// A table of cases: `parity "name" [needs] "why" |t| { judgement }`. `parity` marks what csi-sanity judges too, `beyond` what
/// it does not. A need is a capability as CSI names it, such as `Node(StageUnstageVolume)`, or another [`Need`].
macro_rules! cases {
    (@kind parity) => { true };
    (@kind beyond) => { false };
    ($($kind:ident $name:literal [$($need:ident $(($capability:ident))?),*] $why:literal |$t:ident| $body:block)*) => {
        /// The cases of this file.
        pub const CASES: &[$crate::Case] = &[$($crate::Case {
            name: $name,
            needs: &[$($crate::need::need!($need $(($capability))?)),*],
            why: $why,
            parity: cases!(@kind $kind),
            run: |$t: $crate::case::T| Box::pin(async move { let () = $body; Ok(()) }),
        }),*];
    };
}

pub(crate) use {cases, ensure};
