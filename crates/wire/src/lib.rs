//! The schema of Kubernetes objects, and their protobuf form (`application/vnd.kubernetes.protobuf`).
//!
//! Owns: the language that describes the fields of an object ([`Message`], [`Type`]), the tables of the kinds that rules
//! read or write ([`messages`](mod@messages)), and the two ways between protobuf and objects. [`Reader`] reads protobuf
//! through serde under the names of JSON, so every type that reads an object's JSON reads protobuf too; [`encode`] writes
//! an object's JSON as protobuf. The API server decodes, merges and documents objects by the same tables.
//!
//! Writes nothing, and only reads what it is handed.
//!
//! Laws: nothing is lost in silence. A server's answer may have fields that no table has; the reader skips those. A request
//! is read whole or refused, and an object with a field that no table has is not written as protobuf. A zero that Go writes
//! though nobody set it is left out, as it is in JSON; a pointer to zero is kept ([`Presence`]). No bytes, however spoilt,
//! make the reader panic or take more memory than they have.
//!
//! Does not know: HTTP, who sends what, what an object means.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod bytes;
mod encode;
mod error;
mod example;
pub mod messages;
mod read;
mod schema;
mod time;

#[cfg(test)]
mod tests;

pub use bytes::{Envelope, MAGIC, envelope, event, list};
pub use encode::{encode, encode_as, encode_event, encode_list};
pub use error::Error;
pub use example::example;
pub use messages::{LIST_META, STATUS, message};
pub use read::Reader;
pub use schema::{Field, Message, Presence, Type};
pub use time::canonical_time;

/// The media type.
pub const TYPE: &str = "application/vnd.kubernetes.protobuf";
