//! From the cache to a view.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{CsiSource, ObjectKey, PersistentVolume, Seen, VolumeAttachment, VolumeSpec, names};
use control::{Cache, Capability, Mode};
use csi::ControllerRpc;
use rules_translate::Plugin;

use crate::{
    Attach, AttachObstacle, Detach, Key, Listed, ListingView, Local, PublishContext, PublishRequest, PublishTarget,
    RivalAttachment, View, VolumeOnNode, VolumeUse,
};

/// The facts about one attachment or volume.
pub(crate) fn view(key: &Key, cache: &Cache, local: &Local) -> View {
    match key {
        Key::Attachment(name) => match cache.attachment(&ObjectKey::cluster(name.clone())) {
            Some(attachment) => attachment_view(&attachment, cache, local),
            None => View::Gone(key.clone()),
        },
        Key::Volume(name) => match cache.volume(&ObjectKey::cluster(name.clone())) {
            Some(volume) => View::Volume(volume_use(&volume, cache, local)),
            None => View::Gone(key.clone()),
        },
        Key::Listing(_) => View::Listing(listing_view(local)),
    }
}

fn listing_view(local: &Local) -> ListingView {
    if !local.lists() {
        return ListingView::Off;
    }
    ListingView::On {
        driver: local.driver.clone(),
        token: local.listing.token.clone(),
        max_entries: local.max_entries,
        every_millis: local.list_every_millis,
    }
}

fn attachment_view(attachment: &VolumeAttachment, cache: &Cache, local: &Local) -> View {
    let meta = &attachment.metadata;
    if attachment.spec.attacher != local.driver {
        return View::NotOurs(meta.name.clone());
    }
    let volume = volume_of(attachment, cache);
    let volume = volume.as_deref();
    match (local.can(ControllerRpc::PublishUnpublishVolume), meta.is_deleting()) {
        (false, deleting) => View::Trivial {
            attachment: Seen::of::<VolumeAttachment>(meta),
            unconfirmed: !deleting && !attachment.status.attached,
            rival: rival(attachment, volume, cache, local),
        },
        (true, true) => View::Detach(detach(attachment, volume, cache, local)),
        (true, false) => View::Attach(attach(attachment, volume, cache, local)),
    }
}

/// The object of the volume that an attachment names.
pub(crate) fn volume_of(attachment: &VolumeAttachment, cache: &Cache) -> Option<Arc<PersistentVolume>> {
    cache.volume(&ObjectKey::cluster(attachment.volume()?))
}

fn attach(attachment: &VolumeAttachment, volume: Option<&PersistentVolume>, cache: &Cache, local: &Local) -> Attach {
    let (meta, status) = (&attachment.metadata, &attachment.status);
    Attach {
        attachment: Seen::of::<VolumeAttachment>(meta),
        node: attachment.spec.node_name.clone(),
        marked: is_marked(attachment, local),
        gives_way: meta.annotation(names::ATTACHMENT_GIVES_WAY).is_some(),
        attached: status.attached.then(|| PublishContext(status.attachment_metadata.clone())),
        listed: listed(attachment, volume, cache, local),
        error: status.attach_error.clone(),
        target: target(attachment, volume, cache, local),
        rival: rival(attachment, volume, cache, local),
        unheld_volume: unheld(attachment, volume, local),
    }
}

/// A volume that is attached and does not carry our finalizer. It may have been taken off, because nothing was attached,
/// just as this attachment came: that happens to in-tree volumes, which are let go without being deleted.
fn unheld(attachment: &VolumeAttachment, volume: Option<&PersistentVolume>, local: &Local) -> Option<(Seen, String)> {
    let volume = volume?;
    let concerned = attachment.status.attached && is_marked(attachment, local) && is_let_go_early(volume, local);
    let finalizer = names::attacher_finalizer(&local.driver);
    let lost = !volume.metadata.has_finalizer(&finalizer) && !volume.metadata.is_deleting();
    (concerned && lost).then(|| (Seen::of::<PersistentVolume>(&volume.metadata), finalizer))
}

fn is_marked(attachment: &VolumeAttachment, local: &Local) -> bool {
    attachment.metadata.has_finalizer(&names::attacher_finalizer(&local.driver))
}

/// What the driver's list says about an attachment.
pub(crate) fn listed(
    attachment: &VolumeAttachment,
    volume: Option<&PersistentVolume>,
    cache: &Cache,
    local: &Local,
) -> Listed {
    if local.listing.whole.is_none() {
        return Listed::Unknown;
    }
    match (source(attachment, volume, local), node_id(attachment, cache, local)) {
        (Ok(source), Some(node_id)) => {
            local.listing.says(&listed_handle(&local.driver, &source.csi.volume_handle, &node_id), &node_id)
        }
        (Ok(_) | Err(_), None) | (Err(_), Some(_)) => Listed::Unknown,
    }
}

/// The handle under which a driver lists a volume. What a translated one leaves open, the node's id tells (TR-23).
pub(crate) fn listed_handle<'a>(driver: &str, handle: &'a str, node_id: &str) -> Cow<'a, str> {
    let repaired = rules_translate::repair_handle(driver, handle, node_id);
    repaired.map_or(Cow::Borrowed(handle), Cow::Owned)
}

fn target(
    attachment: &VolumeAttachment,
    volume: Option<&PersistentVolume>,
    cache: &Cache,
    local: &Local,
) -> PublishTarget {
    let source = match source(attachment, volume, local) {
        Ok(found) => found,
        Err(none) => return none.target(local),
    };
    // S4-2, S4-39: what the plugin serves is not published. What was published is still unpublished, in a rollback.
    if let Some(plugin) = source.plugin.filter(|plugin| !local.migration.is_migrated(*plugin)) {
        let (name, gate) = (source.name(), plugin.gate());
        return PublishTarget::Impossible(format!("volume {name} is left to {plugin}: gate {gate} is off here"));
    }
    if let Some(volume) = source.volume.filter(|volume| volume.metadata.is_deleting()) {
        return PublishTarget::Waiting(AttachObstacle::VolumeLeaving(volume.metadata.name.clone()));
    }
    let capability = match capability(&source, local) {
        Ok(capability) => capability,
        Err(problem) => {
            return PublishTarget::Impossible(format!("volume {} cannot be attached: {problem}", source.name()));
        }
    };
    let Some(node_id) = node_id(attachment, cache, local) else {
        return PublishTarget::Waiting(AttachObstacle::NodeIdUnknown(attachment.spec.node_name.clone()));
    };
    let finalizer = names::attacher_finalizer(&local.driver);
    let unmarked = source.volume.filter(|volume| !volume.metadata.has_finalizer(&finalizer));
    PublishTarget::Ready {
        unmarked_volume: unmarked.map(|volume| Seen::of::<PersistentVolume>(&volume.metadata)),
        recorded: recorded_node_id(attachment).is_some(),
        request: PublishRequest {
            place: place(&source.csi, node_id, local),
            capability,
            // A driver that does not know the word is not told it: the node mounts it read-only.
            readonly: source.csi.read_only && local.can(ControllerRpc::PublishReadonly),
            context: PublishContext(source.csi.volume_attributes.clone()),
        },
        secret: source.csi.controller_publish_secret_ref.clone(),
    }
}

fn capability(source: &Source<'_>, local: &Local) -> Result<Capability, &'static str> {
    let spec = &source.spec;
    let mode = Mode::of(&spec.access_modes, local.can(ControllerRpc::SingleNodeMultiWriter))?;
    let named = &source.csi.fs_type;
    let fs_type = if named.is_empty() { &local.default_fs_type } else { named };
    Ok(Capability::new(mode, spec.volume_mode(), fs_type, &spec.mount_options))
}

/// What an attachment attaches, in CSI's terms.
struct Source<'a> {
    /// The object, unless the attachment holds the volume itself.
    volume: Option<&'a PersistentVolume>,
    spec: Cow<'a, VolumeSpec>,
    csi: Cow<'a, CsiSource>,
    /// The plugin it was translated from.
    plugin: Option<Plugin>,
}

impl Source<'_> {
    fn name(&self) -> &str {
        self.volume.map_or(&self.csi.volume_handle, |volume| &volume.metadata.name)
    }
}

/// Why an attachment has no volume of ours.
enum NoSource {
    Unclear,
    Missing(String),
    Foreign(String),
    Untranslatable(String),
}

impl NoSource {
    fn target(self, local: &Local) -> PublishTarget {
        match self {
            NoSource::Unclear => PublishTarget::Impossible(
                "the attachment must name a PersistentVolume or hold a CSI volume, and not both".into(),
            ),
            NoSource::Missing(name) => PublishTarget::Waiting(AttachObstacle::VolumeMissing(name)),
            NoSource::Foreign(name) => {
                PublishTarget::Impossible(format!("volume {name} does not belong to driver {}", local.driver))
            }
            NoSource::Untranslatable(problem) => PublishTarget::Impossible(problem),
        }
    }

    fn obstacle(self) -> AttachObstacle {
        match self {
            NoSource::Unclear => AttachObstacle::VolumeMissing(String::new()),
            NoSource::Missing(name) | NoSource::Foreign(name) => AttachObstacle::VolumeMissing(name),
            NoSource::Untranslatable(problem) => AttachObstacle::VolumeUnreadable(problem),
        }
    }
}

/// The volume and its CSI part. In-tree volumes of a plugin our driver has taken over are translated (S4-14).
fn source<'a>(
    attachment: &'a VolumeAttachment,
    volume: Option<&'a PersistentVolume>,
    local: &Local,
) -> Result<Source<'a>, NoSource> {
    let (volume, spec, name) = match (attachment.volume(), &attachment.spec.source.inline_volume_spec) {
        (Some(name), None) => {
            let volume = volume.ok_or_else(|| NoSource::Missing(name.into()))?;
            (Some(volume), &volume.spec, name)
        }
        (None, Some(spec)) => (None, &**spec, "held by the attachment"), // S4-18
        (Some(_), Some(_)) | (None, None) => return Err(NoSource::Unclear),
    };
    match (&spec.csi, &spec.in_tree) {
        (Some(csi), None) if csi.driver == local.driver => {
            Ok(Source { volume, spec: Cow::Borrowed(spec), csi: Cow::Borrowed(csi), plugin: None })
        }
        (None, Some(_)) => translated(volume, spec, name, local),
        (Some(_), None | Some(_)) | (None, None) => Err(NoSource::Foreign(name.into())),
    }
}

fn translated<'a>(
    volume: Option<&'a PersistentVolume>,
    spec: &VolumeSpec,
    name: &str,
    local: &Local,
) -> Result<Source<'a>, NoSource> {
    let whole = match volume {
        Some(volume) => Cow::Borrowed(volume),
        None => Cow::Owned(PersistentVolume { spec: spec.clone(), ..PersistentVolume::default() }),
    };
    let foreign = || NoSource::Foreign(name.into());
    let ours = |plugin: &Plugin| plugin.driver() == local.driver;
    let plugin = rules_translate::plugin_of(&whole).filter(ours).ok_or_else(foreign)?;
    let seen = rules_translate::volume_to_csi(&whole).map_err(|error| NoSource::Untranslatable(error.to_string()))?;
    let mut spec = seen.object.spec;
    let csi = spec.csi.take().ok_or_else(foreign)?;
    Ok(Source { volume, spec: Cow::Owned(spec), csi: Cow::Owned(csi), plugin: Some(plugin) })
}

/// A rollback: an in-tree volume that nobody has given to our driver is let go as soon as nothing is attached, so that
/// the plugin finds it as it left it (sidecars 3.5).
fn is_let_go_early(volume: &PersistentVolume, local: &Local) -> bool {
    rules_translate::plugin_of(volume).is_some() && volume.metadata.migrated_to() != Some(local.driver.as_str())
}

fn place(csi: &CsiSource, node_id: String, local: &Local) -> VolumeOnNode {
    VolumeOnNode { driver: local.driver.clone(), handle: csi.volume_handle.clone(), node_id }
}

/// Attachments of the same volume, this one among them.
pub(crate) fn siblings(attachment: &VolumeAttachment, cache: &Cache) -> Vec<Arc<VolumeAttachment>> {
    match (attachment.volume(), inline_handle(attachment)) {
        (Some(name), _) => cache.attachments_by_volume(name).collect(),
        // Few attachments hold their volume themselves, so there is no index of them.
        (None, Some(handle)) => cache.attachments().filter(|other| inline_handle(other) == Some(handle)).collect(),
        (None, None) => Vec::new(),
    }
}

fn inline_handle(attachment: &VolumeAttachment) -> Option<&str> {
    let spec = attachment.spec.source.inline_volume_spec.as_ref()?;
    spec.csi.as_ref().map(|csi| csi.volume_handle.as_str())
}

/// What is recorded wins: publish and unpublish must name the same node, whatever has become of it since.
fn node_id(attachment: &VolumeAttachment, cache: &Cache, local: &Local) -> Option<String> {
    let node = ObjectKey::cluster(attachment.spec.node_name.clone());
    recorded_node_id(attachment).or_else(|| registered_node_id(&node, cache, local)).or_else(|| {
        // The older place: an annotation of the node that maps drivers to ids.
        let node = cache.node(&node)?;
        let ids = node.metadata.annotation(names::NODE_ID)?;
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
fn rival(
    attachment: &VolumeAttachment,
    volume: Option<&PersistentVolume>,
    cache: &Cache,
    local: &Local,
) -> Option<RivalAttachment> {
    let source = source(attachment, volume, local).ok()?;
    if !Mode::of(&source.spec.access_modes, local.can(ControllerRpc::SingleNodeMultiWriter))
        .is_ok_and(Mode::is_exclusive)
    {
        return None;
    }
    let mut found: Option<RivalAttachment> = None;
    for other in siblings(attachment, cache) {
        let elsewhere = other.spec.node_name != attachment.spec.node_name;
        if !elsewhere || !(is_marked(&other, local) || other.status.attached) {
            continue;
        }
        let comes_first = other.status.attached || other.metadata.name < attachment.metadata.name;
        let goes_first = comes_first && !other.metadata.is_deleting();
        if found.is_none() || goes_first {
            found = Some(RivalAttachment { node: other.spec.node_name.clone(), goes_first });
        }
    }
    found
}

fn detach(attachment: &VolumeAttachment, volume: Option<&PersistentVolume>, cache: &Cache, local: &Local) -> Detach {
    let marked = is_marked(attachment, local);
    let seen = Seen::of::<VolumeAttachment>(&attachment.metadata);
    if !marked && !is_listed_alone(attachment, volume, cache, local) {
        return Detach::Unmarked { attachment: seen, attached: attachment.status.attached };
    }
    let error = attachment.status.detach_error.clone();
    let source = match source(attachment, volume, local) {
        Ok(source) => source,
        Err(none) => return Detach::Stuck { attachment: seen, obstacle: none.obstacle(), error },
    };
    match node_id(attachment, cache, local) {
        Some(node_id) => Detach::Ready {
            attachment: seen,
            place: place(&source.csi, node_id, local),
            marked,
            secret: source.csi.controller_publish_secret_ref.clone(),
            error,
        },
        None => {
            let obstacle = AttachObstacle::NodeIdUnknown(attachment.spec.node_name.clone());
            Detach::Stuck { attachment: seen, obstacle, error }
        }
    }
}

/// The driver lists the volume as published on the node, and no other attachment wants it there.
fn is_listed_alone(
    attachment: &VolumeAttachment,
    volume: Option<&PersistentVolume>,
    cache: &Cache,
    local: &Local,
) -> bool {
    let same_place = |other: &Arc<VolumeAttachment>| {
        other.metadata.name != attachment.metadata.name && other.spec.node_name == attachment.spec.node_name
    };
    listed(attachment, volume, cache, local) == Listed::Published && !siblings(attachment, cache).iter().any(same_place)
}

fn volume_use(volume: &PersistentVolume, cache: &Cache, local: &Local) -> VolumeUse {
    let name = &volume.metadata.name;
    let finalizer = names::attacher_finalizer(&local.driver);
    if !volume.metadata.has_finalizer(&finalizer) {
        return VolumeUse::Unmarked(name.clone());
    }
    let leaving = volume.metadata.is_deleting();
    if !leaving && !is_let_go_early(volume, local) {
        return VolumeUse::Staying(name.clone());
    }
    if leaving && local.provisions && volume.metadata.has_finalizer(names::PROVISIONER_FINALIZER) {
        return VolumeUse::Provisioners(name.clone());
    }
    match cache.attachments_by_volume(name).next() {
        Some(attachment) => VolumeUse::Attached { volume: name.clone(), attachment: attachment.metadata.name.clone() },
        None => VolumeUse::Free { volume: Seen::of::<PersistentVolume>(&volume.metadata), finalizer, leaving },
    }
}
