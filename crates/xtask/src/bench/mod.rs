//! The benchmarks: `longshore up` as a whole, and the reference driver beside the Go hostpath driver.

pub mod driver;
mod life;
pub mod up;
