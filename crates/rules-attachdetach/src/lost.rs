//! Attachments and reports of volumes that do not exist any more (AD-33). What is left of such a volume is its name in
//! a node's status, which holds the driver's name and the handle, and the name of the attachment, which follows from
//! them.

use alloc::string::String;
use alloc::vec::Vec;

use api::{AttachmentSource, Node, ObjectKey, names};
use control::Cache;

use crate::ForcePolicy;
use crate::build::{attachment_facts, node_facts};
use crate::{Attachment, Key, Pair, Unwanted, View, Want};

/// The key of a report of a volume that nobody knows: its name in the node's status, which no object can have.
pub(crate) fn key(unique_name: &str, node: &str) -> Key {
    Key::new(unique_name, node)
}

pub(crate) fn view(key: &Key, cache: &Cache) -> View {
    let Some((driver, handle)) = names::split_unique_volume_name(&key.volume) else {
        return without_volume(key, cache);
    };
    if let Some(volume) = cache.volumes_by_handle(&alloc::format!("{driver}^{handle}")).next() {
        return View::Known { key: key.clone(), by: volume.metadata.name.clone() };
    }
    let attachment_name = names::attachment_name(handle, driver, &key.node);
    let attachment = cache.attachment(&ObjectKey::cluster(attachment_name));
    // One that holds its volume itself, or whose volume is an in-tree one, is not of our making, and not lost.
    let exists = |name: &str| cache.volume(&ObjectKey::cluster(name)).is_some();
    if let Some(theirs) = attachment.as_ref().filter(|attachment| attachment.volume().is_none_or(exists)) {
        return View::Known { key: key.clone(), by: theirs.metadata.name.clone() };
    }
    let attachments = attachment.iter().map(|attachment| attachment_facts(attachment)).collect();
    View::Pair(pair(key, cache, driver, &key.volume, attachments))
}

/// An attachment that names a volume that is gone. If the node's status names a volume that an attachment of this name
/// would be for, it is that one; if not, the node neither was told of it nor uses it.
fn without_volume(key: &Key, cache: &Cache) -> View {
    let here = cache.attachments_by_volume(&key.volume).filter(|attachment| attachment.spec.node_name == key.node);
    let attachments: Vec<Attachment> = here.map(|attachment| attachment_facts(&attachment)).collect();
    let Some(one) = attachments.first().map(|attachment| String::from(attachment.seen.name())) else {
        return View::VolumeMissing { key: key.clone(), attachment: None };
    };
    // The name of one made by hand, or in the oldest style, does not follow from the handle.
    if attachments.len() > 1 || !is_of_today(&one) {
        return View::VolumeMissing { key: key.clone(), attachment: Some(one) };
    }
    let attacher = cache.attachment(&ObjectKey::cluster(one.clone())).map(|found| found.spec.attacher.clone());
    let node = cache.node(&ObjectKey::cluster(key.node.clone()));
    let unique_name = node.and_then(|node| named(&node, &one)).unwrap_or_default();
    View::Pair(pair(key, cache, &attacher.unwrap_or_default(), &unique_name, attachments))
}

fn is_of_today(attachment: &str) -> bool {
    let hash = attachment.strip_prefix("csi-");
    hash.is_some_and(|hash| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// The volume in a node's status that an attachment of this name would be for.
fn named(node: &Node, attachment: &str) -> Option<String> {
    let attached = node.status.volumes_attached.iter().flatten().map(|volume| &volume.name);
    let mut all = attached.chain(node.status.volumes_in_use.iter().flatten());
    let matches = |name: &&String| {
        let parts = names::split_unique_volume_name(name);
        parts.is_some_and(|(driver, handle)| names::attachment_name(handle, driver, &node.metadata.name) == attachment)
    };
    all.find(matches).cloned()
}

fn pair(key: &Key, cache: &Cache, driver: &str, unique_name: &str, attachments: Vec<Attachment>) -> Pair {
    let node = node_facts(cache, &key.node, unique_name, None);
    let attachment_name = attachments.first().map(|attachment| attachment.seen.name().into()).unwrap_or_default();
    Pair {
        key: key.clone(),
        driver: driver.into(),
        unique_name: unique_name.into(),
        plugin_name: None,
        asks: None,
        source: AttachmentSource::default(),
        attachment_name,
        want: Want::Unwanted(Unwanted::VolumeGone),
        node,
        attachments,
        rival: None,
        rival_pods: Vec::new(),
        driver_known: cache.driver(&ObjectKey::cluster(driver)).is_some(),
        force: ForcePolicy::Never(None),
    }
}
