//! Wrong rules, which the explorer must refute.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod dead;
mod gates;
mod kubelet;
mod planted;
mod upstream;
mod wrong;
