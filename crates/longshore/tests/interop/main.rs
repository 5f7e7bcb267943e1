//! Our driver before the Go conformance suite, in every configuration its flags offer; and our conformance suite before
//! the Go driver and ours. Needs root and the programs of `make peers`.
#![allow(clippy::unwrap_used)]

use cluster::{backend, objects};

// What the tests on our own API server use too; not everything of it is wanted here.
#[allow(dead_code)]
#[path = "../embedded/client.rs"]
mod client;
#[path = "../embedded/cost.rs"]
mod cost;
#[allow(dead_code)]
#[path = "../embedded/world.rs"]
mod world;

mod cluster;
mod configurations;
mod flags;
mod go_suite;
mod our_suite;
mod stand;
mod translations;
