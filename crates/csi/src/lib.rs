//! CSI v1 and plugin registration: the messages, one [`Call`] for any of them, the single table that says what an
//! answer means ([`reading`]), and the one that says what a call works on ([`locks`]).
//!
//! This crate knows the wire format and its meaning. It does not know sockets, gRPC libraries, Kubernetes or time.
#![no_std]

extern crate alloc;

mod answer;
mod call;
mod locks;

pub use answer::{Code, Reading, Status, reading};
pub use call::{Call, Method, Response};
pub use locks::{Lock, Thing, locks};

/// Messages of the Container Storage Interface.
#[allow(missing_docs, clippy::all, reason = "generated from the wire format")]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/csi.v1.rs"));
}

/// Messages by which a driver's helper registers with a node, and tells it more about the driver.
#[allow(missing_docs, clippy::all, reason = "generated from the wire format")]
pub mod registration {
    include!(concat!(env!("OUT_DIR"), "/pluginregistration.rs"));
    include!(concat!(env!("OUT_DIR"), "/csiregistration.rs"));
}
