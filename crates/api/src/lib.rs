//! Kubernetes objects as plain narrow values.
//!
//! This crate knows the words of the Kubernetes API and nothing of how they travel: the table of kinds
//! ([`for_each_kind!`]), object types that keep only the fields a rule reads, exact quantities, the patches we send with their
//! preconditions, and every annotation, label and finalizer key in one place ([`names`]).
//!
//! It does not know HTTP, a clock, a cache, or any controller.
#![no_std]

extern crate alloc;

mod affinity;
mod capacity;
mod conditions;
mod container;
mod coordination_v1;
mod core_v1;
pub mod fit;
mod go;
mod grant;
mod in_tree;
mod kinds;
mod meta;
pub mod names;
mod object;
mod pod_sources;
mod quantity;
mod secret;
mod seen;
mod shared_part;
mod snapshot;
mod storage_v1;
mod time;
mod words;
mod write;

pub use affinity::*;
pub use capacity::*;
pub use conditions::Conditions;
pub use container::*;
pub use coordination_v1::*;
pub use core_v1::*;
pub use grant::*;
pub use in_tree::*;
pub use kinds::{GroupVersion, Kind, Qualified};
pub use meta::{Meta, ObjectKey, ObjectRef, OwnerReference, ResourceVersion};
pub use object::{Narrow, Object, ReadError};
pub use pod_sources::*;
pub use quantity::{BadQuantity, Quantity};
pub use secret::*;
pub use seen::Seen;
pub use shared_part::SharedPart;
pub use snapshot::*;
pub use storage_v1::*;
pub use time::Time;
pub use words::*;
pub use write::{JsonOp, Note, Patch, PatchBody, Precondition, Subresource, Write};

/// The JSON value type objects are written in.
pub use serde_json::Value;
