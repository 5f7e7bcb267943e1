//! The reference driver's answer to any CSI request, one operation on the machine at a time.
//!
//! A volume is a record and a sparse image file; on a node it is a loop device, a filesystem and mounts. For every
//! call a [`Run`] is asked for its next [`Step`] until that is the answer. Whoever asks performs the operations.
//!
//! It owns the records `<state>/volumes/<id>.json` and the images `<state>/images/<id>.img`, and writes nothing else but
//! the staging and target paths it is given. It only reads the mount table and the list of loop devices, handed in
//! as [`Facts`].
//!
//! Laws (reliability 76 to 83): a call repeated after any interruption ends in the same answer. What was acknowledged is
//! on disk. No id, name or path, whatever its bytes, reaches anything but the state directory and the given
//! path. A volume in use is not deleted. Sizes add up to no more than the pool. No volume shows bytes of another.
//! As long as the records are not loaded, nothing is claimed about any volume.
//!
//! It does not know how operations are performed, which calls run side by side ([`lock`] says which may not), sockets,
//! Kubernetes, or time.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod check;
mod config;
mod controller;
mod facts;
mod identity;
mod node;
mod record;
mod run;
#[cfg(test)]
mod tests;

pub use config::{Config, prepare};
pub use facts::{Facts, Mount};
pub use record::{Published, State, Volume, parse_record};
pub use run::{METHODS, Run, Step, busy, lock};
