//! Our driver before the Go conformance suite, in every configuration its flags offer; and our conformance suite before
//! the Go driver and ours. Needs root and the programs of `make peers`.
#![allow(clippy::unwrap_used)]

mod cluster;
mod configurations;
mod flags;
mod go_suite;
mod our_suite;
mod stand;
