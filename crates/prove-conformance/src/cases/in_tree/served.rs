//! The life of a volume whose class and record are the plugin's.

use std::collections::BTreeMap;

use api::{
    AccessMode, ClaimRef, CsiSource, Meta, NodeRequirement, NodeSelector, NodeSelectorTerm, PersistentVolume, Quantity,
    StorageClass, TopologySelectorTerm, VolumeMode, VolumeNodeAffinity, VolumeSpec, names,
};
use csi::{Code, NodeRpc, v1};
use rules_translate::{
    Plugin, Translated, class_to_csi, inline_to_csi, inline_to_in_tree, volume_to_csi, volume_to_in_tree,
};
use v1::volume_capability::MountVolume;
use v1::volume_capability::access_mode::Mode;

use crate::CaseResult;
use crate::case::{T, fail, skip};
use crate::context::said;
use crate::life::{Life, Volume};
use crate::requests::{blocks, delete, detach, files_with};

/// Where pods and claims of the suite would live.
const NAMESPACE: &str = "default";

/// What a user asks of the plugin.
#[derive(Clone, Default)]
pub(crate) struct Wish {
    /// Parameters of the class, beside those that the plugin needs and the run was given.
    pub parameters: BTreeMap<String, String>,
    /// `mountOptions` of the class.
    pub mount_options: Vec<String>,
    /// `allowedTopologies` of the class.
    pub allowed_topologies: Vec<TopologySelectorTerm>,
    /// A raw device.
    pub block: bool,
    /// `readOnly` of the source.
    pub read_only: bool,
    /// As CSI says ReadWriteOnce and the others.
    pub mode: Mode,
    /// Held by a pod itself, not by a PersistentVolume.
    pub inline: bool,
}

impl Wish {
    /// One more parameter of the class.
    pub fn with(key: &str, value: &str) -> Wish {
        Wish { parameters: [(key.to_string(), value.to_string())].into(), ..Wish::plain() }
    }

    /// Files for one writing node.
    pub fn plain() -> Wish {
        Wish { mode: Mode::SingleNodeWriter, ..Wish::default() }
    }
}

/// A volume that the driver made, and what it is after its way through the plugin's words.
pub(crate) struct Served {
    /// As the driver made it.
    pub made: Volume,
    /// As the node is told of it: handle, attributes and filesystem from the plugin's record.
    pub seen: Volume,
    /// The handle with which it is attached: what the record leaves open is told by the node.
    pub attached: String,
    /// What the plugin would have written down of it.
    pub record: PersistentVolume,
    read_only: bool,
}

impl Served {
    /// The same volume by another name.
    pub fn renamed(&self, seen: Volume, attached: String) -> Served {
        Served { made: self.made.clone(), seen, attached, record: self.record.clone(), read_only: self.read_only }
    }
}

/// The plugin in whose place the driver is.
pub fn plugin(t: &T) -> CaseResult<Plugin> {
    t.suite.options.in_place_of.map_or_else(|| skip("no --in-place-of was given"), Ok)
}

/// Without these the plugin made nothing.
pub fn needed(plugin: Plugin) -> BTreeMap<String, String> {
    let pairs: &[(&str, &str)] = match plugin {
        Plugin::Rbd => &[("monitors", "127.0.0.1:6789"), ("adminSecretName", "admin"), ("pool", "rbd")],
        Plugin::AwsEbs
        | Plugin::AzureDisk
        | Plugin::AzureFile
        | Plugin::Cinder
        | Plugin::GcePd
        | Plugin::Portworx
        | Plugin::Vsphere => &[],
    };
    pairs.iter().map(|(key, value)| ((*key).to_string(), (*value).to_string())).collect()
}

/// A volume of a class of the plugin, made by the driver and recorded as the plugin's.
pub async fn made(t: &T, wish: &Wish) -> CaseResult<Served> {
    let plugin = plugin(t)?;
    let class = class(t, plugin, wish);
    let Translated { object: class, lost } =
        class_to_csi(&class).or_else(|error| fail(format!("the class cannot be translated: {error}")))?;
    lost.iter().for_each(|lost| t.warn(format!("of the class: {lost}")));
    let fs_type = fs_type(&class);
    let flags = class.mount_options.clone();
    let mount = MountVolume { fs_type: fs_type.clone(), mount_flags: flags, ..Default::default() };
    let capability = if wish.block { blocks(wish.mode) } else { files_with(wish.mode, mount) };
    let mut parameters = class.parameters.clone();
    // Meant for the provisioner.
    parameters.retain(|key, _| !key.starts_with(names::RESERVED_PARAMETER_PREFIX));
    let request = v1::CreateVolumeRequest {
        volume_capabilities: vec![capability],
        parameters,
        accessibility_requirements: requirement(&class),
        ..t.create_request()
    };
    let name = request.name.clone();
    let made = t.volume_from(request).await?;
    recorded(t, plugin, wish, &class, made, &name, &fs_type)
}

fn class(t: &T, plugin: Plugin, wish: &Wish) -> StorageClass {
    let mut parameters = needed(plugin);
    parameters.extend(t.suite.options.parameters.clone());
    parameters.extend(wish.parameters.clone());
    StorageClass {
        metadata: Meta::named("parity").into(),
        provisioner: plugin.name().into(),
        parameters,
        mount_options: wish.mount_options.clone(),
        allowed_topologies: wish.allowed_topologies.clone(),
        ..StorageClass::default()
    }
}

/// As provisioners read it.
fn fs_type(class: &StorageClass) -> String {
    let names_it = |key: &str| key == names::FSTYPE_PARAMETER || key.eq_ignore_ascii_case("fstype");
    class.parameters.iter().find(|(key, _)| names_it(key)).map(|(_, value)| value.clone()).unwrap_or_default()
}

/// Each value that the class allows is a place.
fn requirement(class: &StorageClass) -> Option<v1::TopologyRequirement> {
    let wanted = class.allowed_topologies.iter().flat_map(|term| &term.match_label_expressions);
    let places = wanted.flat_map(|one| one.values.iter().map(|value| (one.key.clone(), value.clone())));
    let places: Vec<v1::Topology> = places.map(|place| v1::Topology { segments: [place].into() }).collect();
    (!places.is_empty()).then(|| v1::TopologyRequirement { requisite: places.clone(), preferred: places })
}

/// The volume on its way through the plugin's words.
fn recorded(
    t: &T,
    plugin: Plugin,
    wish: &Wish,
    class: &StorageClass,
    made: Volume,
    name: &str,
    fs_type: &str,
) -> CaseResult<Served> {
    let volume = as_provisioned(plugin, wish, class, &made, name, fs_type);
    let words = |error| format!("{plugin} has no words for what the driver made ({}): {error}", made.id);
    let Translated { object: mut record, lost } = volume_to_in_tree(&volume).or_else(|error| fail(words(error)))?;
    if lost.iter().any(|lost| lost.field == "csi.volumeHandle") {
        return fail(format!("the driver does not say what {plugin} calls the volume it made ({})", made.id));
    }
    lost.iter().for_each(|lost| t.warn(format!("of the volume: {lost}")));
    let seen = if wish.inline {
        let own = inline_to_in_tree(name, &volume).map(|own| own.object);
        own.and_then(|own| inline_to_csi(&own, NAMESPACE))
    } else {
        set_read_only(&mut record, wish.read_only);
        volume_to_csi(&record)
    };
    let seen = seen.or_else(|error| fail(format!("the plugin's own volume cannot be translated: {error}")))?;
    let source = seen.object.spec.csi.unwrap_or_default();
    let node = &t.suite.node.node_id;
    let attached = rules_translate::repair_handle(plugin.driver(), &source.volume_handle, node)
        .or_else(|error| fail(format!("nobody can attach the volume: {error}")))?;
    if !rules_translate::same_volume(plugin.driver(), &made.id, &attached)
        && plugin != Plugin::AzureFile
        && plugin != Plugin::Rbd
    {
        return fail(format!("the driver made {}, and what the plugin wrote down leads to {attached}", made.id));
    }
    let seen = Volume {
        id: source.volume_handle,
        context: source.volume_attributes,
        capability: with_fs_type(made.capability.clone(), &source.fs_type),
        ..made.clone()
    };
    Ok(Served { made, seen, attached, record, read_only: source.read_only })
}

/// The volume as a provisioner writes it down before it is translated.
fn as_provisioned(
    plugin: Plugin,
    wish: &Wish,
    class: &StorageClass,
    made: &Volume,
    name: &str,
    fs_type: &str,
) -> PersistentVolume {
    let mut metadata = Meta::named(name);
    metadata.annotations.insert(names::PROVISIONED_BY.into(), plugin.driver().into());
    let spec = VolumeSpec {
        capacity: [("storage".to_string(), Quantity::from_bytes(made.capacity))].into(),
        access_modes: vec![access_mode(wish.mode)],
        claim_ref: Some(ClaimRef { namespace: NAMESPACE.into(), name: name.into(), ..ClaimRef::default() }.into()),
        mount_options: class.mount_options.clone(),
        volume_mode: Some(if wish.block { VolumeMode::Block } else { VolumeMode::Filesystem }),
        node_affinity: affinity(&made.answer.accessible_topology),
        csi: Some(CsiSource {
            driver: plugin.driver().into(),
            volume_handle: made.id.clone(),
            fs_type: if wish.block { String::new() } else { fs_type.to_string() },
            volume_attributes: made.context.clone(),
            ..CsiSource::default()
        }),
        ..VolumeSpec::default()
    };
    PersistentVolume { metadata: metadata.into(), spec, ..PersistentVolume::default() }
}

/// As Kubernetes says it.
fn access_mode(mode: Mode) -> AccessMode {
    match mode {
        Mode::MultiNodeReaderOnly | Mode::SingleNodeReaderOnly => AccessMode::ReadOnlyMany,
        Mode::MultiNodeMultiWriter | Mode::MultiNodeSingleWriter => AccessMode::ReadWriteMany,
        Mode::Unknown | Mode::SingleNodeWriter | Mode::SingleNodeSingleWriter | Mode::SingleNodeMultiWriter => {
            AccessMode::ReadWriteOnce
        }
    }
}

fn affinity(places: &[v1::Topology]) -> Option<VolumeNodeAffinity> {
    let term = |place: &v1::Topology| NodeSelectorTerm {
        match_expressions: place.segments.iter().map(|(key, value)| NodeRequirement::is(key, value.clone())).collect(),
        ..NodeSelectorTerm::default()
    };
    let node_selector_terms: Vec<NodeSelectorTerm> = places.iter().map(term).collect();
    (!node_selector_terms.is_empty())
        .then_some(VolumeNodeAffinity { required: Some(NodeSelector { node_selector_terms }) })
}

fn with_fs_type(mut capability: v1::VolumeCapability, fs_type: &str) -> v1::VolumeCapability {
    if let Some(v1::volume_capability::AccessType::Mount(mount)) = &mut capability.access_type {
        mount.fs_type = fs_type.into();
    }
    capability
}

/// A user writes it into the source.
fn set_read_only(record: &mut PersistentVolume, read_only: bool) {
    use api::InTreeSource as Source;
    match record.spec.in_tree.as_deref_mut() {
        Some(Source::AwsElasticBlockStore(disk)) => disk.read_only = read_only,
        Some(Source::GcePersistentDisk(disk)) => disk.read_only = read_only,
        Some(Source::AzureDisk(disk)) => disk.read_only = Some(read_only),
        Some(Source::AzureFile(share)) => share.read_only = read_only,
        Some(Source::Cinder(disk)) => disk.read_only = read_only,
        Some(Source::PortworxVolume(disk)) => disk.read_only = read_only,
        Some(Source::Rbd(image)) => image.read_only = read_only,
        Some(Source::VsphereVolume(_) | Source::Several(_)) | None => {}
    }
}

/// Attached, staged and published by what the plugin's record says.
pub async fn brought(t: &T, served: &Served) -> CaseResult<Life> {
    let attached = Volume { id: served.attached.clone(), ..served.seen.clone() };
    let publish_context = t.attach(&attached).await?;
    let staging = if t.can(NodeRpc::StageUnstageVolume) { t.staging_path()? } else { String::new() };
    if !staging.is_empty() {
        t.ok(t.stage_request(&served.seen, &publish_context, &staging)).await?;
    }
    let staged = Life { volume: served.seen.clone(), publish_context, staging, target: String::new() };
    t.publish(&staged, served.read_only).await
}

/// Taken down again, by the same names.
pub async fn taken_down(t: &T, served: &Served, life: &Life) -> CaseResult {
    use crate::requests::{unpublish, unstage};
    t.ok(unpublish(&served.seen.id, &life.target)).await?;
    if !life.staging.is_empty() {
        t.ok(unstage(&served.seen.id, &life.staging)).await?;
    }
    if t.can(csi::ControllerRpc::PublishUnpublishVolume) {
        t.ok(detach(&served.attached, &t.suite.node.node_id)).await?;
    }
    Ok(())
}

/// Deleted by the name that the plugin's record gives, and gone by the driver's own.
pub async fn deleted(t: &T, served: &Served) -> CaseResult {
    t.ok(delete(&served.seen.id)).await?;
    match t.ask(t.validate_request(&served.made)).await {
        Err(status) if status.from_driver && status.code == Code::NotFound => Ok(()),
        Ok(_) => fail(format!("deleted as {}, the volume {} is still there", served.seen.id, served.made.id)),
        Err(status) => fail(format!("whether the volume {} is gone cannot be told: {}", served.made.id, said(&status))),
    }
}
