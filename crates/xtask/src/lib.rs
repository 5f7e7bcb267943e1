//! Chores of the project that are code: the tidy checks (as tests) and the benchmark.
//!
//! The checks read the source as text; they know nothing of what it does.

pub mod bench;
mod life;
pub mod tree;
