//! The benchmarks: `longshore up` as a whole, under load and with many pods, a pod's process beside runc, the reference
//! driver beside the Go hostpath driver, the sidecars beside the Go sidecars, the controllers beside
//! kube-controller-manager, a large cluster without a server, the plan of a large migration, and the translation
//! library beside Kubernetes' own.

pub mod controllers;
mod document;
pub mod driver;
mod figures;
mod life;
pub mod load;
pub mod migrate;
pub mod pods;
pub mod process;
pub mod scale;
pub mod sidecars;
pub mod translate;
pub mod up;
