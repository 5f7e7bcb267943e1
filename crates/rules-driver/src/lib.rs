//! The reference driver's answer to any CSI request, one operation on the machine at a time.
//!
//! A volume is a record and a sparse image file (or a plain directory); on a node it is a loop device, a filesystem and
//! mounts. A snapshot is a record and a copy of an image or directory. For every call a [`Run`] is asked for its next [`Step`] until
//! that is the answer. Whoever asks performs the operations.
//!
//! It owns, in its state directory, the records of volumes, snapshots and group snapshots, the images and directories that
//! are the first two, and the mounts of volumes nobody stages; it writes nothing else but the staging and
//! target paths it is given. It only reads the mount table and the list of loop devices, handed in
//! as [`Facts`].
//!
//! Laws (reliability 76 to 83): a call repeated after any interruption ends in the same answer. What was acknowledged is
//! on disk. No id, name or path, whatever its bytes, reaches anything but the state directory and the given
//! path. A volume in use is not deleted. Sizes add up to no more than the pool. No volume shows bytes of another.
//! As long as the records are not loaded, nothing is claimed about any volume.
//!
//! It does not know how operations are performed, which calls run side by side ([`locks`] says which may not), sockets,
//! Kubernetes, or the time, which it is told.
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

pub use config::{Config, Feature, Services, folders, prepare};
pub use facts::{DIRECTORY, Facts, Files, Mount, RecordKind};
pub use look::{Look, look};
pub use record::{
    Bytes, Group, Kind, Published, Snapshot, Source, State, Volume, parse_group, parse_record, parse_snapshot,
};
pub use run::{METHODS, Run, Step, Trouble, busy, locks, promises, resumed, under_way};
