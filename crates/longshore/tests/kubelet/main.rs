//! A real node: containerd and the kubelet beside the real control plane, with our driver and sidecars as pods on it,
//! as deployed and from the chart, with our controllers, and mixed with the Go programs. Needs root, Debian's
//! containerd, the programs of `make peers` and what `make image chart` makes: `make interop-kubelet`.
#![allow(clippy::unwrap_used)]
#![allow(clippy::print_stdout, reason = "what was measured, and the table of the suite")]

mod chart;
mod controllers;
#[path = "../interop/cluster/helm.rs"]
mod helm;
mod install;
mod mixed;
mod objects;
mod ours;
mod scene;
mod steps;
#[cfg(feature = "e2e")]
mod suite;
