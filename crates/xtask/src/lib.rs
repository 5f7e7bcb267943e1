//! Chores of the project that are code: the tidy checks (as tests) and the benchmarks.
//!
//! The checks read the source as text; they know nothing of what it does. The benchmarks know programs by their
//! command lines and sockets, and nothing of what is inside them.

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod bench;
pub mod image;
pub mod tidy;
pub mod tree;
