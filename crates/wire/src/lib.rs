//! Objects in the binary form of Kubernetes: what `application/vnd.kubernetes.protobuf` means.
//!
//! Owns: the tables that say which number, name and form each field has, and the two ways between bytes and objects. Bytes
//! are read through serde under the names of JSON ([`Reader`]), so that every type that reads an object's JSON reads this
//! form too; and an object's JSON is written in this form ([`encode`]).
//!
//! Writes nothing, and only reads what it is handed.
//!
//! Laws: nothing is lost in silence. What a server answers may have fields that nobody here reads; those are skipped. What
//! is sent to a server is read whole or refused, and an object with a field that no table knows is not written in this form.
//! What Go writes out though nobody set it is left out, as it is in JSON; where empty is a value ([`Form::Set`]) it is kept.
//! No bytes, however spoilt, make it panic or take more memory than they have.
//!
//! Does not know: HTTP, who sends what, what an object means.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod bytes;
mod encode;
mod error;
mod form;
mod meta;
mod read;
pub mod requests;
mod time;
mod volumes;

#[cfg(test)]
mod tests;

pub use bytes::{Envelope, MAGIC, envelope, event, list};
pub use encode::encode;
pub use error::Error;
pub use form::{Form, Message};
pub use meta::{LIST_META, STATUS};
pub use read::Reader;
pub use volumes::message;

/// The media type.
pub const TYPE: &str = "application/vnd.kubernetes.protobuf";
