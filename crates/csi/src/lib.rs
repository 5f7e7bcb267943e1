//! CSI v1 and plugin registration: the messages, and one table of the RPCs ([`for_each_method!`]) from which everything
//! else here follows.
//!
//! - [`Call`], [`Response`] and [`Method`] hold any request, any response, and what is known of each method.
//! - [`Fields`] lists the fields of a message by their rules: required or not, how large, secret.
//! - [`Capabilities`] is the set of capabilities a driver reports; [`Method::capability`] is the one a method needs.
//! - [`locks`] says which calls must not run side by side.
//! - [`classify`] says whether an error is final. No other code decides that.
//!
//! To add an RPC, write it into `proto/csi.proto` and add its row to the table in `methods.rs`.
//!
//! This crate knows the wire format and its meaning. It does not know sockets, gRPC libraries, Kubernetes or time.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod answer;
mod call;
mod capabilities;
mod fields;
mod locks;
mod methods;

pub use answer::{Code, Finality, Status, classify};
pub use call::{Call, Method, Response, Service};
pub use capabilities::{
    Capabilities, ControllerRpc, DriverCapability, GroupRpc, NodeRpc, PluginService, VolumeExpansion,
};
pub use fields::{Field, Fields};
pub use locks::{Lock, Thing, locks};

/// Messages of the Container Storage Interface.
#[allow(missing_docs, clippy::all, reason = "generated from the wire format")]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/csi.v1.rs"));
}

/// Messages of kubelet's plugin registration, and of CSI registration.
#[allow(missing_docs, clippy::all, reason = "generated from the wire format")]
pub mod registration {
    include!(concat!(env!("OUT_DIR"), "/pluginregistration.rs"));
    include!(concat!(env!("OUT_DIR"), "/csiregistration.rs"));
}
