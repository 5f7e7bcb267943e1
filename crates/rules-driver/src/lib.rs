//! The rules of the reference driver: its response to any CSI request, one operation on the machine at a time.
//!
//! A volume is a record and a sparse image file (or a plain directory); on a node it is a loop device, a filesystem and
//! mounts. A snapshot is a record and a copy of an image or directory. For every call the caller of this crate asks a [`Run`]
//! for its next [`Step`], performs the operation, and asks again until the step is the response.
//!
//! The driver owns, in its state directory, the records of volumes, snapshots and group snapshots, the images and directories
//! of the first two, and the mounts of volumes that are not staged. It writes nothing else but the staging and target paths
//! of its calls. It only reads the mount table and the list of loop devices, which it gets as [`Facts`].
//!
//! To serve another RPC, add its capability to a [`Feature`] in `feature.rs`, and a line to the dispatch in `run.rs`.
//!
//! Laws (reliability 76 to 83): a call that is repeated after any interruption gets the same response. What the driver
//! acknowledged is on disk. No id, name or path, whatever its bytes, reaches anything but the state directory and the path
//! of the call. The driver does not delete a volume in use. Sizes add up to no more than the pool. No volume shows bytes of
//! another. Until the records are loaded, the driver says nothing about any volume.
//!
//! This crate does not know how operations are performed, which calls run side by side ([`locks`] says which may not),
//! sockets, Kubernetes, or the time, which it gets as an argument.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod bring;
mod check;
mod config;
mod controller;
mod create;
mod delete;
mod ephemeral;
mod facts;
mod feature;
mod group;
mod identity;
mod list;
mod look;
mod node;
mod record;
mod run;
mod snapshot;
#[cfg(test)]
mod tests;
mod usage;

pub use config::{Config, Services, folders, prepare};
pub use facts::{DIRECTORY, Facts, Files, Mount, RecordKind};
pub use feature::{Feature, capabilities};
pub use look::{Look, look};
pub use record::{Bytes, Group, Kind, Published, RecordError, Snapshot, Source, State, Volume};
pub use run::{METHODS, Run, Step, Trouble, busy, locks, outlasts_callers, promises, resumed, under_way};
