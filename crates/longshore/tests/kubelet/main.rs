//! A real node: containerd and the kubelet beside the real control plane, with our driver and sidecars as pods on it,
//! and mixed with the Go programs. Needs root, Debian's containerd and the programs of `make peers`:
//! `make interop-kubelet`.
#![allow(clippy::unwrap_used)]
#![allow(clippy::print_stdout, reason = "what was measured, and the table of the suite")]

mod install;
mod mixed;
mod objects;
mod ours;
mod scene;
#[cfg(feature = "e2e")]
mod suite;
