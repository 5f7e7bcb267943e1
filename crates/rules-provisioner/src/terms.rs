//! What a claim and its class ask of the driver (sidecars 2.4 to 2.6).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{AccessMode, ObjectKey, PersistentVolumeClaim, ReclaimPolicy, StorageClass, VolumeMode, names};
use control::{Cache, Capability, Mode, Secrets};
use csi::v1::{CapacityRange, CreateVolumeRequest};
use csi::{ControllerRpc, PluginService};

use crate::source::{content_source, need};
use crate::{ContentSource, Local, Reason, Requirement, SecretRefs, secrets, topology};

type Parameters = BTreeMap<String, String>;

/// What makes a claim impossible to serve, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// A reason code.
    pub code: Reason,
    /// A clause a person can read.
    pub text: String,
}

impl Obstacle {
    fn new(code: Reason, text: impl Into<String>) -> Obstacle {
        Obstacle { code, text: text.into() }
    }
}

/// Why a claim cannot be served now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The selected node does not know the driver: another one should be selected.
    Reschedule(String),
    /// Something is missing or wrong.
    Obstacle(Obstacle),
}

impl From<Obstacle> for Unfit {
    fn from(obstacle: Obstacle) -> Unfit {
        Unfit::Obstacle(obstacle)
    }
}

/// What a class says about the volume it makes for a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Terms {
    /// The class's name.
    pub class: String,
    /// The class's uid.
    pub class_uid: String,
    /// What happens to the volume when its claim is gone.
    pub reclaim_policy: ReclaimPolicy,
    /// The class of attributes the claim asks for.
    pub attributes_class: Option<String>,
    /// The secrets of the volume.
    pub secrets: SecretRefs,
    /// What is asked of the driver.
    pub request: VolumeRequest,
}

/// A request to the driver, the same at every attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct VolumeRequest {
    /// The volume's name, derived from the claim's uid.
    pub name: String,
    /// The least size.
    pub required_bytes: i64,
    /// By whom it will be used: one per access mode of the claim.
    pub modes: Vec<Mode>,
    /// The modes are those of a driver that tells one writer on a node from many.
    pub single_node_multi_writer: bool,
    /// A raw device rather than a filesystem.
    pub block: bool,
    /// The filesystem type; empty leaves it to the driver.
    pub fs_type: String,
    pub mount_options: Vec<String>,
    /// The class's parameters, without those that speak to us.
    pub parameters: BTreeMap<String, String>,
    /// The attributes class's parameters.
    pub mutable_parameters: BTreeMap<String, String>,
    /// What it is made from.
    pub source: Option<ContentSource>,
    /// Where it should be reachable from.
    pub topology: Option<Requirement>,
}

impl VolumeRequest {
    /// As the driver gets it.
    pub fn to_csi(&self, secrets: &Secrets) -> CreateVolumeRequest {
        CreateVolumeRequest {
            name: self.name.clone(),
            // P19: a limit is never sent.
            capacity_range: Some(CapacityRange { required_bytes: self.required_bytes, limit_bytes: 0 }),
            volume_capabilities: self.modes.iter().map(|mode| self.capability(*mode).to_csi()).collect(),
            parameters: self.parameters.clone(),
            secrets: secrets.0.clone(),
            volume_content_source: self.source.as_ref().map(ContentSource::to_csi),
            accessibility_requirements: self.topology.as_ref().map(Requirement::to_csi),
            mutable_parameters: self.mutable_parameters.clone(),
        }
    }

    fn capability(&self, mode: Mode) -> Capability {
        let volume_mode = if self.block { VolumeMode::Block } else { VolumeMode::Filesystem };
        Capability::new(mode, &volume_mode, &self.fs_type, &self.mount_options)
    }
}

/// What the class says about a volume for this claim, made for the selected node if there is one. The order of the
/// checks is upstream's.
pub(crate) fn terms(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    node: Option<&str>,
    cache: &Cache,
    local: &Local,
) -> Result<Terms, Unfit> {
    let name = local.volume_name(&claim.metadata.uid);
    let bytes = requested(claim)?;
    let attributes = attributes(claim, cache, local)?;
    need(local.can(PluginService::ControllerService), local, "make volumes: it has no controller service")?;
    need(local.can(ControllerRpc::CreateDeleteVolume), local, "make volumes")?;
    if claim.spec.selector.is_some() {
        return Err(Obstacle::new(Reason::SelectorNotSupported, "a claim with a selector cannot be provisioned").into()); // P8
    }
    if local.settings.volume_name_prefix.is_empty() {
        return Err(
            Obstacle::new(Reason::NoNamePrefix, "volumes cannot be named: the volume name prefix is empty").into()
        ); // P3
    }
    let fs_type = fs_type(class, &local.settings.default_fstype)?;
    let single_node_multi_writer = local.can(ControllerRpc::SingleNodeMultiWriter);
    let (block, modes) = usage(claim, single_node_multi_writer)?;
    let source = content_source(claim, class, bytes, cache, local)?;
    let topology = topology::requirement(&claim.metadata.name, node, class, cache, local)?;
    let secrets = secrets::secrets(&class.parameters, &name, &claim.metadata)?;
    let mut parameters = own_parameters(class)?;
    if local.settings.extra_create_metadata {
        parameters.insert(names::CLAIM_NAME_PARAMETER.into(), claim.metadata.name.clone()); // P77
        parameters.insert(names::CLAIM_NAMESPACE_PARAMETER.into(), claim.metadata.namespace.clone());
        parameters.insert(names::VOLUME_NAME_PARAMETER.into(), name.clone());
    }
    let (attributes_class, mutable_parameters) = attributes.unzip();
    Ok(Terms {
        class: class.metadata.name.clone(),
        class_uid: class.metadata.uid.clone(),
        reclaim_policy: class.reclaim_policy().clone(),
        attributes_class,
        secrets,
        request: VolumeRequest {
            name,
            required_bytes: bytes,
            modes,
            single_node_multi_writer,
            block,
            fs_type,
            mount_options: class.mount_options.clone(),
            parameters,
            mutable_parameters: mutable_parameters.unwrap_or_default(),
            source,
            topology,
        },
    })
}

/// P18: whole bytes, rounded up.
pub(crate) fn requested(claim: &PersistentVolumeClaim) -> Result<i64, Obstacle> {
    let requested = claim.requested().ok_or_else(|| Obstacle::new(Reason::NoSize, "the claim requests no storage"))?;
    requested.bytes().map_err(|error| Obstacle::new(Reason::BadSize, error.to_string()))
}

/// Whether the claim wants a raw device, and by whom it is used. P15, P16: each mode on its own, by the table of
/// sidecars 1.5.
pub(crate) fn usage(
    claim: &PersistentVolumeClaim,
    single_node_multi_writer: bool,
) -> Result<(bool, Vec<Mode>), Obstacle> {
    let block = match claim.volume_mode() {
        VolumeMode::Filesystem => false,
        VolumeMode::Block => true,
        VolumeMode::Other(other) => {
            return Err(Obstacle::new(Reason::BadVolumeMode, format!("volume mode {other} is not known")));
        }
    };
    if claim.spec.access_modes.is_empty() {
        return Err(Obstacle::new(Reason::NoAccessMode, "the claim names no access mode"));
    }
    let mode = |mode: &AccessMode| {
        let bad = |why| Obstacle::new(Reason::BadAccessMode, format!("access mode {mode} cannot be served: {why}"));
        Mode::of(core::slice::from_ref(mode), single_node_multi_writer).map_err(bad)
    };
    let modes: Result<Vec<Mode>, Obstacle> = claim.spec.access_modes.iter().map(mode).collect();
    Ok((block, modes?))
}

/// P78: the attributes class the claim names, and its parameters.
fn attributes(
    claim: &PersistentVolumeClaim,
    cache: &Cache,
    local: &Local,
) -> Result<Option<(String, Parameters)>, Obstacle> {
    let named = claim.spec.volume_attributes_class_name.as_deref().filter(|name| !name.is_empty());
    let Some(name) = named.filter(|_| local.settings.attributes_classes) else { return Ok(None) };
    need(local.can(ControllerRpc::ModifyVolume), local, "give volumes attributes")?;
    let Some(class) = cache.attributes_class(&ObjectKey::cluster(name)) else {
        return Err(Obstacle::new(
            Reason::AttributesClassMissing,
            format!("volume attributes class {name} does not exist"),
        ));
    };
    if *class.driver_name != *local.driver {
        let text = format!("volume attributes class {name} is for driver {}, not {}", class.driver_name, local.driver);
        return Err(Obstacle::new(Reason::AttributesClassOfAnother, text));
    }
    Ok(Some((name.into(), class.parameters.clone())))
}

/// P10 to P13: named once, under either name, or the default.
fn fs_type(class: &StorageClass, default: &str) -> Result<String, Obstacle> {
    let names_it = |key: &str| key == names::FSTYPE_PARAMETER || key.eq_ignore_ascii_case("fstype");
    let mut named = class.parameters.iter().filter(|(key, _)| names_it(key)).map(|(_, value)| value);
    let fs_type = named.next();
    if named.next().is_some() {
        let text = format!("class {} names a filesystem type more than once", class.metadata.name);
        return Err(Obstacle::new(Reason::TwoFilesystemTypes, text));
    }
    Ok(fs_type.filter(|fs_type| !fs_type.is_empty()).cloned().unwrap_or_else(|| default.into()))
}

/// P9, P12: what goes to the driver. Reserved keys speak to us, and one nobody knows is refused.
fn own_parameters(class: &StorageClass) -> Result<Parameters, Obstacle> {
    let mut parameters = BTreeMap::new();
    for (key, value) in &class.parameters {
        if key == names::FSTYPE_PARAMETER || secrets::is_secret_parameter(key) {
            continue;
        }
        if key.starts_with(names::RESERVED_PARAMETER_PREFIX) {
            let text = format!("class {} has a reserved parameter nobody knows: {key}", class.metadata.name);
            return Err(Obstacle::new(Reason::UnknownParameter, text));
        }
        parameters.insert(key.clone(), value.clone());
    }
    Ok(parameters)
}
