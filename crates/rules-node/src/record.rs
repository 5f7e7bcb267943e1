use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

/// The version of the record this code writes and the newest it reads.
const VERSION: u32 = 1;
/// The lifecycle of a volume in a pod's own spec.
pub(crate) const EPHEMERAL: &str = "Ephemeral";

/// What `vol_data.json` beside a staging path says: everything that may exist of a volume on this node.
///
/// The first keys are those Kubernetes uses in its file of that name (4.6); the rest are ours.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The VolumeAttachment's name, also when there is none.
    #[serde(rename = "attachmentID")]
    pub attachment: String,
    /// The driver's name.
    #[serde(rename = "driverName")]
    pub driver: String,
    /// It was asked for as a volume of an in-tree plugin and is served by a driver in its place (seed 004).
    #[serde(rename = "migratedVolume", default)]
    pub migrated: bool,
    /// This node's name.
    #[serde(rename = "nodeName")]
    pub node: String,
    /// Where it may be published, by pod uid.
    #[serde(default)]
    pub publishes: BTreeMap<String, Publish>,
    /// The PersistentVolume's name.
    #[serde(rename = "specVolID")]
    pub volume: String,
    /// How many bytes the filesystem is known to have, so that a growth is asked for once (EX-21).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
    /// Where it may be staged; `None` for drivers that do not stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staging_path: Option<String>,
    /// Format of this file.
    pub version: u32,
    /// The driver's name for the volume.
    #[serde(rename = "volumeHandle")]
    pub handle: String,
    /// `Persistent`, or `Ephemeral` for a volume in a pod's own spec.
    #[serde(rename = "volumeLifecycleMode")]
    pub lifecycle: String,
    /// It is a raw device.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub block: bool,
}

/// One place where a volume may be published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Publish {
    pub target: String,
    /// The pod's namespace.
    pub pod_namespace: String,
    /// The pod's name.
    pub pod_name: String,
    pub read_only: bool,
}

/// Bytes that are no record. Whoever reads them treats the volume as in use (reliability 48).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRecord(pub String);

impl fmt::Display for BadRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the volume record cannot be read ({}); restore it, or unmount the volume by hand and remove it",
            self.0
        )
    }
}

impl Record {
    /// An empty record of a volume.
    pub fn of(volume: &str, driver: &str, handle: &str, node: &str) -> Record {
        Record {
            attachment: api::names::attachment_name(handle, driver, node),
            driver: driver.into(),
            migrated: false,
            node: node.into(),
            publishes: BTreeMap::new(),
            size: None,
            volume: volume.into(),
            staging_path: None,
            version: VERSION,
            handle: handle.into(),
            lifecycle: "Persistent".into(),
            block: false,
        }
    }

    /// The volume is in a pod's own spec.
    pub fn is_ephemeral(&self) -> bool {
        self.lifecycle == EPHEMERAL
    }

    /// Reads a record.
    pub fn parse(bytes: &[u8]) -> Result<Record, BadRecord> {
        let record: Record = serde_json::from_slice(bytes).map_err(|error| BadRecord(format!("{error}")))?;
        if record.version == 0 || record.version > VERSION {
            return Err(BadRecord(format!("its version is {}, only {VERSION} is known", record.version)));
        }
        if record.driver.is_empty() || record.handle.is_empty() {
            return Err(BadRecord("it names no volume".into()));
        }
        Ok(record)
    }

    /// The bytes of the record, one line.
    pub fn print(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec(self).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }

    /// The name under which nodes report the volume.
    pub fn unique_name(&self) -> String {
        crate::paths::unique_name(&self.driver, &self.handle)
    }
}
