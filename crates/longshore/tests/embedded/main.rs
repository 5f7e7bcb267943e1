//! Our sidecars as processes of their own, beside our driver, on the embedded API server: what `make interop` shows on a
//! real control plane, in seconds and without any other program.
//!
//! `longshore up` gives the API server, the binder, the attach/detach controller and a node; driver and sidecars are
//! further processes of the same binary, which meet through sockets and a kubeconfig alone.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

// What the tests on a real control plane use too.
#[path = "../interop/cluster/backend.rs"]
mod backend;
#[allow(dead_code, reason = "some of it is for control planes that have no kinds of their own")]
#[path = "../interop/cluster/objects.rs"]
mod objects;

mod apart;
mod client;
mod cost;
mod hostile;
mod life;
mod own_driver;
mod rights;
mod stops;
mod takeover;
mod world;
