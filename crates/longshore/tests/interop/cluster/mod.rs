//! Our sidecars on a real control plane: kube-apiserver, kube-controller-manager, kube-scheduler, and the Go snapshot
//! controllers; beside our driver and the Go one, alone and mixed with the Go sidecars.
//!
//! The tests share one control plane and take turns on it, because a driver's name can be served only once.

mod as_pod;
pub mod backend;
mod chart;
mod chart_values;
mod closed;
mod controllers;
mod cost;
mod crew;
mod deploy;
mod handover;
mod helm;
mod hostile;
mod in_tree;
mod life;
mod metrics;
mod no_node;
mod node;
pub mod objects;
mod plane;
mod rights;
mod scene;
mod schedulers;
mod takeover;
mod together;
mod trial;
mod witness;
mod writes;
