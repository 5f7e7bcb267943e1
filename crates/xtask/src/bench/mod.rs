//! The benchmarks: `longshore up` as a whole and under load, the reference driver beside the Go hostpath driver, and the sidecars beside the
//! Go sidecars.

mod document;
pub mod driver;
mod figures;
mod life;
pub mod load;
pub mod sidecars;
pub mod up;
