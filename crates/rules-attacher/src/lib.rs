//! One attachment: publish it or unpublish it at the driver.
//!
//! The attach/detach controller says with VolumeAttachment objects which volume should be attached where. This
//! controller makes it so for the volumes of one driver, and says so in their status.
//!
//! Owns: the finalizer `external-attacher/<driver>` on attachments and volumes, `status` of attachments, the record of
//! the node's id and the give-way mark on attachments, and the calls ControllerPublishVolume and
//! ControllerUnpublishVolume; and ListVolumes, to see what was attached or detached behind its back.
//! Writes: only those.
//! Only reads: volumes, CSINodes and nodes (for the driver's id of the node), secrets (just before a call, never kept).
//!
//! Laws (the numbers are those of the reliability reference, each has a test):
//! - the finalizers and the node's id are on the objects before the first ControllerPublishVolume, so whatever becomes
//!   of that call, the attachment stays until the driver has unpublished the volume;
//! - `attached` is written only after the driver said so, with the context of that very answer (32); an answer that did
//!   not arrive means asking again, never giving up what may exist (34);
//! - the finalizer goes only after the driver answered ControllerUnpublishVolume with success, or with not found (33),
//!   and every repetition of that call is the same, even when the node is gone;
//! - a volume for one node only is not published while another attachment of it, for another node, carries the
//!   finalizer or is attached (24). Where two carry it, one gives way, by a rule both see alike;
//! - nothing is called for an attachment that is unchanged, attached and wanted (109), unless the driver lists it as not
//!   published.
//!
//! A driver that does not publish gets the attachment confirmed at once, without finalizers and calls.
//!
//! What went wrong is told in the attachment's status, once for the same words, with the driver's code when attaching.
//!
//! A volume of an in-tree plugin that the driver has taken over is translated each time it is looked at, and stays as it is.
//!
//! Does not know: pods, claims, who wants an attachment and why, how a volume is mounted, what time it is.
#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod action;
mod build;
mod decide;
mod listing;
mod memory;
mod news;
mod reason;
mod view;
mod wakes;

#[cfg(test)]
mod tests;

pub use action::{Action, PublishRequest, Side, VolumeOnNode};
pub use listing::Listing;
pub use memory::{CallFailure, Memory};
pub use reason::Reason;
pub use view::{
    Attach, AttachObstacle, Detach, Key, Listed, ListingView, PublishContext, PublishTarget, RivalAttachment, View,
    VolumeUse,
};

use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, ObjectRef};
use control::{BackOff, Cache, Decision, EventType, Narrate, Outcome, Route, Rules, Timestamp, Why};
use csi::{Capabilities, ControllerRpc, DriverCapability};
use rules_translate::Migration;

/// The attacher of one driver.
pub struct Attacher;

/// The driver this attacher works for, how, and what the driver says it has published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Local {
    pub driver: String,
    /// What it can do.
    pub capabilities: Capabilities,
    /// The filesystem type of volumes that name none.
    pub default_fs_type: String,
    /// How often what the driver has published is compared with the attachments; 0 for never. For drivers with the
    /// controller capabilities LIST_VOLUMES and LIST_VOLUMES_PUBLISHED_NODES.
    pub list_every_millis: u64,
    /// The longest page of that list; 0 leaves it to the driver.
    pub max_entries: i32,
    /// What the driver says.
    pub listing: Listing,
    /// A provisioner of the same driver works in the same process: while it holds a volume that is being deleted, our
    /// finalizer goes with its own.
    pub provisions: bool,
    /// How long pauses after failures are.
    pub pauses: BackOff,
    /// How far the migration of each in-tree plugin has come.
    pub migration: Migration,
}

impl Local {
    /// A driver that can do this, and is never asked what it has published.
    pub fn new(
        driver: impl Into<String>,
        capabilities: impl IntoIterator<Item = impl Into<DriverCapability>>,
    ) -> Local {
        Local { driver: driver.into(), capabilities: capabilities.into_iter().collect(), ..Local::default() }
    }

    /// Whether the driver has a capability.
    pub fn can(&self, one: impl Into<DriverCapability>) -> bool {
        self.capabilities.has(one)
    }

    /// What the driver has published is compared with the attachments now and then.
    pub(crate) fn lists(&self) -> bool {
        self.can(ControllerRpc::PublishUnpublishVolume) && self.list_every_millis > 0
    }
}

impl Rules for Attacher {
    const NAME: &'static str = "attacher";

    type Key = Key;
    type Local = Local;
    type View = View;
    type Action = Action;
    type Reason = Reason;
    type Memory = Memory;

    const ROUTES: &'static [Route<Self>] = wakes::ROUTES;

    fn keys(cache: &Cache, local: &Local) -> Vec<Key> {
        wakes::keys(cache, local)
    }

    fn view(key: &Key, cache: &Cache, local: &Local) -> View {
        build::view(key, cache, local)
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        decide::decide(now, view, memory)
    }

    fn remember(now: Timestamp, memory: Memory, did: &Action, got: &Outcome) -> Memory {
        memory::remember(now, memory, did, got)
    }

    /// A whole list concerns every attachment it does not agree with.
    fn learn(local: &mut Local, did: &Action, got: &Outcome, cache: &Cache) -> Vec<Key> {
        local.listing.learn(did, got);
        match did {
            Action::List { .. } if memory::is_last_page(got) => wakes::disagreeing(cache, local),
            Action::List { .. }
            | Action::AddVolumeFinalizer { .. }
            | Action::AddAttachmentFinalizer { .. }
            | Action::ReadSecret { .. }
            | Action::Publish { .. }
            | Action::Confirm { .. }
            | Action::ReportError { .. }
            | Action::GiveWay(_)
            | Action::Recheck { .. }
            | Action::Unpublish { .. }
            | Action::RemoveAttachmentFinalizer { .. }
            | Action::RemoveVolumeFinalizer { .. }
            | Action::Detached(_) => Vec::new(),
        }
    }

    fn back_off(local: &Local) -> BackOff {
        local.pauses
    }

    fn object(key: &Key) -> ObjectRef {
        match key {
            Key::Attachment(name) => ObjectRef::cluster(Kind::VolumeAttachment, name.clone()),
            Key::Volume(name) => ObjectRef::cluster(Kind::PersistentVolume, name.clone()),
            Key::Listing(driver) => ObjectRef::cluster(Kind::CSIDriver, driver.clone()),
        }
    }
}

impl Narrate for Attacher {
    fn rest_event(key: &Key, why: &Why<Reason>) -> Option<(EventType, &'static str)> {
        news::rest_event(key, why)
    }

    fn patience(why: &Why<Reason>) -> u64 {
        news::patience(why)
    }
}
