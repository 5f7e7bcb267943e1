//! Wrong rules, which the explorer must refute.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod dead;
mod gates;
mod kubelet;
#[path = "../page/mod.rs"]
mod page;
mod planted;
mod upstream;
mod wrong;
