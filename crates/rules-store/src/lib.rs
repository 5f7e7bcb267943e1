//! What a Kubernetes API server does to objects, as a state machine without a clock, a disk or a socket.
//!
//! Owns: the objects of one cluster, their revisions, and the rules every write passes through: names, defaults,
//! admission, validation, optimistic locks, patches, finalizers, graceful deletion. [`Store::apply`] takes one request
//! and answers with the changes it made, in revision order, or with a [`Failure`] and no change at all.
//!
//! Writes: nothing outside itself. The caller makes the changes durable and publishes them; a second [`Store`] that is
//! shown them with [`Store::replay`] is equal to the first.
//!
//! Only reads: the time, a fresh uid and the caller's name, all of which are told in [`Context`].
//!
//! Laws (each has a test that names it):
//! - every change has a revision of its own, one more than the last; `metadata.resourceVersion` is that number;
//! - a write that changes nothing makes no change;
//! - a stale resource version or a foreign uid is a conflict and changes nothing;
//! - `uid`, `creationTimestamp`, `name` and `namespace` never change; a deletion is never taken back;
//! - an object with finalizers stays when it is deleted, and goes in the write that takes the last one away;
//! - a dependent goes, or loses the reference, in the write that takes its owner away, by uid;
//! - `generation` moves exactly when `spec` does; `/status` writes touch only `status`, other writes never touch it;
//! - access is granted only by a binding that names the subject and a role with a matching rule ([`Store::allows`]).
//!
//! Does not know: HTTP, authentication, watches and their history, durability, managed fields. Server-side apply is a
//! merge along the keyed lists of the [`schema`](schema()) that creates the object when it is missing; it records no
//! field ownership, so it takes nothing away that an earlier apply of the same manager set.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod collect;
mod create;
mod decode;
mod delete;
mod failure;
mod fields;
mod generate_name;
mod kinds;
mod meta;
mod patch;
mod path;
mod rbac;
mod request;
mod schema;
mod select;
mod size;
mod store;
mod table;
mod update;
mod validate;

pub use api::{Kind, Precondition, Subresource, Value};
pub use failure::{Failure, FieldError, FieldProblem};
pub use fields::{FieldLine, FieldStanding, FieldTable, TableEntry, fields, lines};
pub use kinds::{expired_events, missing_accounts, missing_accounts_after, root_certificates, root_certificates_after};
pub use patch::{PatchError, PatchKind, json_patch, merge_patch, strategic_merge};
pub use rbac::{Attributes, Subject};
pub use request::{Context, DeletePropagation, FieldValidation, Request, Target, WriteOptions};
pub use schema::schema;
pub use select::{FieldSelector, LabelSelector, Selector, select};
pub use store::{Applied, Change, EventType, Store, StoreKey, Stored, Tolerance};
pub use table::table;
