use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{PersistentVolumeClaim, StorageClass, Value, names};
use csi::v1::{
    CapacityRange, CreateVolumeRequest, VolumeCapability,
    volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume, access_mode::Mode},
};
use serde_json::json;

/// What makes a claim impossible to serve, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// A reason code.
    pub code: &'static str,
    /// A clause a person can read.
    pub text: String,
}

impl Obstacle {
    fn new(code: &'static str, text: impl Into<String>) -> Obstacle {
        Obstacle { code, text: text.into() }
    }
}

/// What a class says about the volumes it makes for a claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Terms {
    /// The class's name.
    pub class: String,
    /// The class's uid.
    pub class_uid: String,
    /// What happens to the volume when its claim is gone.
    pub reclaim_policy: String,
    /// What is asked of the driver.
    pub request: Request,
}

/// A request to the driver, the same at every attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The volume's name, derived from the claim's uid.
    pub name: String,
    /// The least size.
    pub required_bytes: i64,
    /// One per access mode of the claim.
    pub capabilities: Vec<Capability>,
    /// A raw device rather than a filesystem.
    pub block: bool,
    /// The filesystem type; empty leaves it to the driver.
    pub fs_type: String,
    /// Mount options.
    pub mount_options: Vec<String>,
    /// The class's parameters, without those that speak to us.
    pub parameters: BTreeMap<String, String>,
}

/// One way in which the volume will be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Capability(pub Access);

/// Who may use the volume at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// One node, reading and writing.
    SingleNodeWriter,
    /// Many nodes, reading.
    MultiNodeReader,
    /// Many nodes, reading and writing.
    MultiNodeWriter,
}

impl Request {
    /// As the driver gets it.
    pub fn to_csi(&self) -> CreateVolumeRequest {
        CreateVolumeRequest {
            name: self.name.clone(),
            // P19: a limit is never sent.
            capacity_range: Some(CapacityRange { required_bytes: self.required_bytes, limit_bytes: 0 }),
            volume_capabilities: self.capabilities.iter().map(|capability| self.capability(*capability)).collect(),
            parameters: self.parameters.clone(),
            ..CreateVolumeRequest::default()
        }
    }

    fn capability(&self, capability: Capability) -> VolumeCapability {
        let mode = match capability.0 {
            Access::SingleNodeWriter => Mode::SingleNodeWriter,
            Access::MultiNodeReader => Mode::MultiNodeReaderOnly,
            Access::MultiNodeWriter => Mode::MultiNodeMultiWriter,
        };
        let access_type = if self.block {
            AccessType::Block(BlockVolume {})
        } else {
            AccessType::Mount(MountVolume {
                fs_type: self.fs_type.clone(),
                mount_flags: self.mount_options.clone(),
                ..MountVolume::default()
            })
        };
        VolumeCapability { access_mode: Some(AccessMode { mode: mode.into() }), access_type: Some(access_type) }
    }

    /// The part that came from the class, as recorded with the intent.
    pub fn record(&self, class_uid: &str) -> String {
        let record = json!({
            "class": class_uid,
            "fsType": self.fs_type,
            "mountOptions": self.mount_options,
            "parameters": self.parameters,
        });
        record.to_string()
    }
}

/// Reads what was recorded with the intent: the class's uid, and the request it led to.
pub(crate) fn recorded(claim: &PersistentVolumeClaim) -> Option<(String, Request)> {
    let record: Value = serde_json::from_str(claim.metadata.annotation(names::PROVISIONING_TERMS)?).ok()?;
    let class_uid = record.get("class")?.as_str()?.to_string();
    let from_class = FromClass {
        fs_type: record.get("fsType")?.as_str()?.into(),
        mount_options: serde_json::from_value(record.get("mountOptions")?.clone()).ok()?,
        parameters: serde_json::from_value(record.get("parameters")?.clone()).ok()?,
    };
    Some((class_uid, request(claim, from_class).ok()?))
}

/// What the class says about a volume for this claim.
pub(crate) fn terms(claim: &PersistentVolumeClaim, class: &StorageClass) -> Result<Terms, Obstacle> {
    if claim.spec.selector.is_some() {
        return Err(Obstacle::new("SelectorNotSupported", "a claim with a selector cannot be provisioned")); // P8
    }
    if claim.spec.data_source.is_some() || claim.spec.data_source_ref.is_some() {
        let text = "the claim asks for a volume made from another one, which is not supported";
        return Err(Obstacle::new("DataSourceNotSupported", text));
    }
    Ok(Terms {
        class: class.metadata.name.clone(),
        class_uid: class.metadata.uid.clone(),
        reclaim_policy: class.reclaim_policy().into(),
        request: request(claim, from_class(class)?)?,
    })
}

struct FromClass {
    fs_type: String,
    mount_options: Vec<String>,
    parameters: BTreeMap<String, String>,
}

fn request(claim: &PersistentVolumeClaim, from_class: FromClass) -> Result<Request, Obstacle> {
    let requested = claim.requested().ok_or_else(|| Obstacle::new("NoSize", "the claim requests no storage"))?;
    let required_bytes = requested.bytes().map_err(|error| Obstacle::new("BadSize", error.to_string()))?; // P18
    let block = match claim.volume_mode() {
        "Filesystem" => false,
        "Block" => true,
        other => return Err(Obstacle::new("BadVolumeMode", format!("volume mode {other} is not known"))),
    };
    Ok(Request {
        name: names::volume_name_for_claim(&claim.metadata.uid),
        required_bytes,
        capabilities: capabilities(claim)?,
        block,
        fs_type: from_class.fs_type,
        mount_options: from_class.mount_options,
        parameters: from_class.parameters,
    })
}

/// P15, P16: each mode on its own, by the table of sidecars 1.5.
fn capabilities(claim: &PersistentVolumeClaim) -> Result<Vec<Capability>, Obstacle> {
    if claim.spec.access_modes.is_empty() {
        return Err(Obstacle::new("NoAccessMode", "the claim names no access mode"));
    }
    let mode = |mode: &String| match mode.as_str() {
        "ReadWriteOnce" | "ReadWriteOncePod" => Ok(Capability(Access::SingleNodeWriter)),
        "ReadOnlyMany" => Ok(Capability(Access::MultiNodeReader)),
        "ReadWriteMany" => Ok(Capability(Access::MultiNodeWriter)),
        other => Err(Obstacle::new("BadAccessMode", format!("access mode {other} is not known"))),
    };
    claim.spec.access_modes.iter().map(mode).collect()
}

/// P9 … P14: which parameters go to the driver, and which speak to us.
fn from_class(class: &StorageClass) -> Result<FromClass, Obstacle> {
    let name = &class.metadata.name;
    let (mut fs_types, mut parameters) = (Vec::new(), BTreeMap::new());
    for (key, value) in &class.parameters {
        if key == names::FSTYPE_PARAMETER {
            fs_types.push(value.clone());
        } else if let Some(own) = key.strip_prefix(names::RESERVED_PARAMETER_PREFIX) {
            return Err(reserved(name, own));
        } else {
            if key.eq_ignore_ascii_case("fstype") {
                fs_types.push(value.clone());
            }
            parameters.insert(key.clone(), value.clone());
        }
    }
    if fs_types.len() > 1 {
        return Err(Obstacle::new(
            "TwoFilesystemTypes",
            format!("class {name} names a filesystem type more than once"),
        ));
    }
    let fs_type = fs_types.pop().unwrap_or_default();
    Ok(FromClass { fs_type, mount_options: class.mount_options.clone(), parameters })
}

fn reserved(class: &str, key: &str) -> Obstacle {
    if key.contains("secret-") {
        return Obstacle::new(
            "SecretsNotSupported",
            format!("class {class} asks for secrets ({key}), which is not supported"),
        );
    }
    Obstacle::new("UnknownParameter", format!("class {class} has a reserved parameter nobody knows: {key}"))
}
