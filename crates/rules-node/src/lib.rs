//! This node's pods: their volumes from attachment to mount and back, and their processes.
//!
//! Owns: the node's `volumesInUse`; the staging and publish paths under its root directory with the record beside them
//! (`vol_data.json`); the processes of the pods on this node; the status of those pods; the end of a deleting pod.
//!
//! Writes: Node status (`volumesInUse` only, and only while the Node carries this life of the agent), Pod status, Pod
//! deletion with grace 0.
//!
//! Only reads: claims, volumes, attachments, drivers, `volumesAttached`.
//!
//! Laws (reliability 29, 30, 39 to 50):
//! - the first node call for a volume is made only on proof: a Node object from the API itself (the answer to our own
//!   write, or a fresh read) that carries this life, reports the volume in use and, where needed, attached;
//! - the record is durable before the first node call and goes only after the last confirmed one; the volume stays in
//!   `volumesInUse` at least as long as the record;
//! - NodeUnstage only when no publish is in the record;
//! - a process starts only when each of its volumes is mounted; a volume is unpublished only after the pod is sealed:
//!   all its processes have ended and none will be started again;
//! - a pod that is merely missing from the cache is not gone: that takes a fresh read;
//! - a record that cannot be read means in use: nothing of that volume is touched.
//!
//! Volume and pod keys are looked at independently of each other, so that a hung volume delays no other. They meet only
//! in [`Local`]: a pod key says *sealed*, a volume key says *mounted*.
//!
//! Does not know: how drivers register, who attaches, what a mount is, or what time it is.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod act;
mod decide;
mod find;
mod index;
mod learn;
mod local;
mod paths;
mod pod;
mod record;
mod spec;
mod status;
#[cfg(test)]
mod tests;
mod view;
mod volume;

pub use act::Action;
pub use index::{Key, Node};
pub use learn::{Memory, Proof};
pub use local::{DriverFacts, Local};
pub use paths::{Paths, ProcessName, process_name, record_path, staging_path, target_path};
pub use record::{BadRecord, Publish, Record};
pub use spec::VolumeSpec;
pub use view::{
    Attachment, ContainerView, Mounted, NodeSide, OnNode, PodView, PodVolumeView, RecordSide, Remains, Standing, User,
    View, VolumeView,
};
