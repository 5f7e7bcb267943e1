//! The benchmarks: `longshore up` as a whole, under load and with many pods, a pod's process beside runc, the reference
//! driver beside the Go hostpath driver, and the sidecars beside the Go sidecars.

mod document;
pub mod driver;
mod figures;
mod life;
pub mod load;
pub mod pods;
pub mod process;
pub mod sidecars;
pub mod up;
