//! Our sidecars on a real control plane: kube-apiserver, kube-controller-manager, kube-scheduler, and the Go snapshot
//! controllers; beside our driver and the Go one, alone and mixed with the Go sidecars.
//!
//! The tests share one control plane and take turns on it, because a driver's name can be served only once.

mod as_pod;
pub mod backend;
mod chart;
mod chart_values;
mod controllers;
mod cost;
mod deploy;
mod handover;
mod helm;
mod hostile;
mod in_tree;
mod life;
mod metrics;
mod node;
pub mod objects;
mod plane;
mod rights;
mod scene;
mod takeover;
mod trial;
mod witness;
