//! From the cache to a view.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;

use api::{CsiSource, ObjectKey, PersistentVolume, VolumeAttachment, names};
use control::Cache;

use crate::index::WATCHES;
use crate::{
    Attach, Capability, Context, Detach, Key, Local, Mode, Obstacle, Place, PublishRequest, Rival, Stamp, Target, View,
    VolumeUse,
};

/// The facts about one attachment or volume.
pub(crate) fn view(key: &Key, cache: &Cache, local: &Local) -> View {
    if let Some(kind) = WATCHES.iter().find(|kind| !cache.is_synced(**kind)) {
        return View::NotSynced(*kind);
    }
    match key {
        Key::Attachment(name) => match cache.attachment(&ObjectKey::cluster(name.clone())) {
            Some(attachment) => attachment_view(attachment, cache, local),
            None => View::Gone(key.clone()),
        },
        Key::Volume(name) => match cache.volume(&ObjectKey::cluster(name.clone())) {
            Some(volume) => View::Volume(volume_use(volume, cache, local)),
            None => View::Gone(key.clone()),
        },
    }
}

fn attachment_view(attachment: &VolumeAttachment, cache: &Cache, local: &Local) -> View {
    let meta = &attachment.metadata;
    if attachment.spec.attacher != local.driver {
        return View::NotOurs(meta.name.clone());
    }
    match (local.publishes, meta.is_deleting()) {
        (false, deleting) => View::Trivial {
            attachment: Stamp::of(meta),
            unconfirmed: !deleting && !attachment.status.attached,
            rival: rival(attachment, cache, local),
        },
        (true, true) => View::Detach(detach(attachment, cache, local)),
        (true, false) => View::Attach(attach(attachment, cache, local)),
    }
}

fn attach(attachment: &VolumeAttachment, cache: &Cache, local: &Local) -> Attach {
    let meta = &attachment.metadata;
    Attach {
        attachment: Stamp::of(meta),
        node: attachment.spec.node_name.clone(),
        marked: is_marked(attachment, local),
        gives_way: meta.annotation(names::ATTACHMENT_GIVES_WAY).is_some(),
        attached: attachment.status.attached,
        error: attachment.status.attach_error.clone(),
        target: target(attachment, cache, local),
        rival: rival(attachment, cache, local),
    }
}

fn is_marked(attachment: &VolumeAttachment, local: &Local) -> bool {
    attachment.metadata.has_finalizer(&names::attacher_finalizer(&local.driver))
}

fn target(attachment: &VolumeAttachment, cache: &Cache, local: &Local) -> Target {
    let (volume, csi) = match source(attachment, cache, local) {
        Ok(found) => found,
        Err(none) => return none.target(local),
    };
    if volume.metadata.is_deleting() {
        return Target::Waiting(Obstacle::VolumeLeaving(volume.metadata.name.clone()));
    }
    let capability = match Capability::of(volume) {
        Ok(capability) => capability,
        Err(problem) => {
            return Target::Impossible(format!("volume {} cannot be attached: {problem}", volume.metadata.name));
        }
    };
    if csi.controller_publish_secret_ref.is_some() {
        return Target::Impossible(format!(
            "volume {} cannot be attached: secrets for attaching are not supported, remove controllerPublishSecretRef",
            volume.metadata.name
        ));
    }
    let Some(node_id) = node_id(attachment, cache, local) else {
        return Target::Waiting(Obstacle::NodeIdUnknown(attachment.spec.node_name.clone()));
    };
    let marked = volume.metadata.has_finalizer(&names::attacher_finalizer(&local.driver));
    Target::Ready {
        unmarked_volume: (!marked).then(|| Stamp::of(&volume.metadata)),
        recorded: recorded_node_id(attachment).is_some(),
        request: PublishRequest {
            place: place(csi, node_id, local),
            capability,
            context: Context(csi.volume_attributes.clone()),
        },
    }
}

/// Why an attachment has no volume of ours.
enum NoSource {
    Inline,
    Missing(String),
    Foreign(String),
}

impl NoSource {
    fn target(self, local: &Local) -> Target {
        match self {
            NoSource::Inline => Target::Impossible(
                "the attachment names no PersistentVolume, which is the only source supported".into(),
            ),
            NoSource::Missing(name) => Target::Waiting(Obstacle::VolumeMissing(name)),
            NoSource::Foreign(name) => {
                Target::Impossible(format!("volume {name} does not belong to driver {}", local.driver))
            }
        }
    }

    fn obstacle(self) -> Obstacle {
        match self {
            NoSource::Inline => Obstacle::VolumeMissing(String::new()),
            NoSource::Missing(name) | NoSource::Foreign(name) => Obstacle::VolumeMissing(name),
        }
    }
}

/// The volume and its CSI part.
fn source<'a>(
    attachment: &VolumeAttachment,
    cache: &'a Cache,
    local: &Local,
) -> Result<(&'a PersistentVolume, &'a CsiSource), NoSource> {
    let name = attachment.volume().ok_or(NoSource::Inline)?;
    let volume = cache.volume(&ObjectKey::cluster(name)).ok_or_else(|| NoSource::Missing(name.into()))?;
    match &volume.spec.csi {
        Some(csi) if csi.driver == local.driver => Ok((volume, csi)),
        Some(_) | None => Err(NoSource::Foreign(name.into())),
    }
}

fn place(csi: &CsiSource, node_id: String, local: &Local) -> Place {
    Place { driver: local.driver.clone(), socket: local.socket.clone(), handle: csi.volume_handle.clone(), node_id }
}

/// What is recorded wins: publish and unpublish must name the same node, whatever has become of it since.
fn node_id(attachment: &VolumeAttachment, cache: &Cache, local: &Local) -> Option<String> {
    let node = ObjectKey::cluster(attachment.spec.node_name.clone());
    recorded_node_id(attachment).or_else(|| registered_node_id(&node, cache, local)).or_else(|| {
        // The older place: an annotation of the node that maps drivers to ids.
        let ids = cache.node(&node)?.metadata.annotation(names::NODE_ID)?;
        let mut ids: BTreeMap<String, String> = serde_json::from_str(ids).ok()?;
        ids.remove(&local.driver).filter(|id| !id.is_empty())
    })
}

fn recorded_node_id(attachment: &VolumeAttachment) -> Option<String> {
    attachment.metadata.annotation(names::ATTACHMENT_NODE_ID).filter(|id| !id.is_empty()).map(String::from)
}

fn registered_node_id(node: &ObjectKey, cache: &Cache, local: &Local) -> Option<String> {
    let drivers = &cache.csi_node(node)?.spec.drivers;
    let driver = drivers.iter().find(|driver| driver.name == local.driver)?;
    (!driver.node_id.is_empty()).then(|| driver.node_id.clone())
}

/// The first attachment that stands in the way; one that goes first is preferred.
fn rival(attachment: &VolumeAttachment, cache: &Cache, local: &Local) -> Option<Rival> {
    let name = attachment.volume()?;
    let volume = cache.volume(&ObjectKey::cluster(name))?;
    if !Mode::of(volume).is_ok_and(Mode::is_exclusive) {
        return None;
    }
    let mut found: Option<Rival> = None;
    for other in cache.attachments_by_volume(name) {
        let elsewhere = other.spec.node_name != attachment.spec.node_name;
        if !elsewhere || !(is_marked(other, local) || other.status.attached) {
            continue;
        }
        let comes_first = other.status.attached || other.metadata.name < attachment.metadata.name;
        let goes_first = comes_first && !other.metadata.is_deleting();
        if found.is_none() || goes_first {
            found = Some(Rival { node: other.spec.node_name.clone(), goes_first });
        }
    }
    found
}

fn detach(attachment: &VolumeAttachment, cache: &Cache, local: &Local) -> Detach {
    if !is_marked(attachment, local) {
        return Detach::Unmarked(attachment.metadata.name.clone());
    }
    let csi = match source(attachment, cache, local) {
        Ok((_, csi)) => csi,
        Err(none) => return Detach::Stuck(none.obstacle()),
    };
    match node_id(attachment, cache, local) {
        Some(node_id) => Detach::Ready {
            attachment: Stamp::of(&attachment.metadata),
            place: place(csi, node_id, local),
            error: attachment.status.detach_error.clone(),
        },
        None => Detach::Stuck(Obstacle::NodeIdUnknown(attachment.spec.node_name.clone())),
    }
}

fn volume_use(volume: &PersistentVolume, cache: &Cache, local: &Local) -> VolumeUse {
    let name = &volume.metadata.name;
    let finalizer = names::attacher_finalizer(&local.driver);
    if !volume.metadata.has_finalizer(&finalizer) {
        return VolumeUse::Unmarked(name.clone());
    }
    if !volume.metadata.is_deleting() {
        return VolumeUse::Staying(name.clone());
    }
    match cache.attachments_by_volume(name).next() {
        Some(attachment) => VolumeUse::Attached { volume: name.clone(), attachment: attachment.metadata.name.clone() },
        None => VolumeUse::Free { volume: Stamp::of(&volume.metadata), finalizer },
    }
}
