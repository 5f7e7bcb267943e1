use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use control::host::Op;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::check;

/// The version of the records this code writes. It reads the earlier ones too: version 1 knew images without a source
/// only, version 2 made every volume's bytes when the volume was made, version 3 knew snapshots of images only.
const VERSION: u32 = 4;

/// A volume, as its record says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    pub(crate) version: u32,
    /// An id that is fit for a file name.
    pub id: String,
    /// The name it was asked for under.
    pub name: String,
    /// How many bytes it holds.
    pub size: u64,
    /// How far its making or unmaking has come.
    pub state: State,
    /// The nodes it is attached to.
    #[serde(default)]
    pub nodes: BTreeMap<String, Published>,
    /// What it is made of.
    #[serde(default)]
    pub kind: Kind,
    /// The filesystem its maker asked for, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<String>,
    /// What its first bytes were copied from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The size it is growing to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growing_to: Option<u64>,
    /// How much the kernel reads ahead on it, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_ahead_kib: Option<u32>,
    /// It lives and dies with one target path.
    #[serde(default)]
    pub ephemeral: bool,
    /// Whether its bytes are there.
    #[serde(default)]
    pub bytes: Bytes,
    /// The filesystem that was put on it, which is done once and never again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formatted: Option<String>,
    /// The zone that it is in, if the nodes of this machine have zones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
}

/// Whether the bytes of a volume or snapshot are there. A volume made from nothing gets them with its first use: until
/// then it is a promise, and making or deleting it costs one record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bytes {
    /// There are none; reading would show zeros.
    None,
    /// They may be there or not. No user could write to them yet, so the driver replaces what it finds.
    Begun,
    /// They are there, and may hold a user's data.
    #[default]
    There,
}

/// What a volume is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An image file behind a loop device.
    #[default]
    Image,
    /// A plain directory.
    Directory,
}

impl Kind {
    /// What takes away the bytes of something of this kind.
    pub(crate) fn removal(self, path: String) -> Op {
        match self {
            Kind::Image => Op::RemoveFile { path },
            Kind::Directory => Op::RemoveTree { path },
        }
    }
}

/// What a volume's first bytes were copied from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The snapshot with this id.
    Snapshot(String),
    /// The volume with this id.
    Volume(String),
}

/// How far the making or unmaking of a volume or snapshot has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Its bytes may or may not be there. The driver has not acknowledged it.
    Creating,
    /// Its bytes are there.
    Ready,
    /// Its bytes may or may not be there, and are going.
    Deleting,
}

/// How a volume is attached to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    pub readonly: bool,
}

/// A snapshot, as its record says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    pub(crate) version: u32,
    /// An id that is fit for a file name.
    pub id: String,
    /// The name it was asked for under.
    pub name: String,
    /// The volume it shows.
    pub source: String,
    /// How many bytes it holds.
    pub size: u64,
    /// When it was taken, in milliseconds since 1970.
    pub created_millis: u64,
    /// How far its making or unmaking has come.
    pub state: State,
    /// The group snapshot it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What the volume is made of, and so its copy.
    #[serde(default)]
    pub kind: Kind,
    /// The filesystem the volume's maker asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<String>,
    /// Whether its bytes are there; none are if the volume had none.
    #[serde(default)]
    pub bytes: Bytes,
    /// The filesystem that was on the volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub formatted: Option<String>,
}

/// A snapshot of several volumes at one moment, as its record says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    pub(crate) version: u32,
    /// An id that is fit for a file name.
    pub id: String,
    /// The name it was asked for under.
    pub name: String,
    /// From volume to snapshot.
    pub snapshots: BTreeMap<String, String>,
    /// When it was taken, in milliseconds since 1970.
    pub created_millis: u64,
    /// How far its making or unmaking has come.
    pub state: State,
}

impl Volume {
    /// A volume that the driver has not acknowledged yet.
    pub fn creating(id: String, name: String, size: u64) -> Volume {
        Volume {
            version: VERSION,
            id,
            name,
            size,
            state: State::Creating,
            nodes: BTreeMap::new(),
            kind: Kind::Image,
            filesystem: None,
            source: None,
            growing_to: None,
            read_ahead_kib: None,
            ephemeral: false,
            bytes: Bytes::There,
            formatted: None,
            zone: None,
        }
    }

    /// What it may take of the pool.
    pub fn promised(&self) -> u64 {
        self.size.max(self.growing_to.unwrap_or(0))
    }
}

impl Snapshot {
    /// A snapshot that the driver has not acknowledged yet.
    pub fn creating(id: String, name: String, volume: &Volume, created_millis: u64) -> Snapshot {
        Snapshot {
            version: VERSION,
            id,
            name,
            source: volume.id.clone(),
            size: volume.size,
            created_millis,
            state: State::Creating,
            group: None,
            kind: volume.kind,
            filesystem: volume.filesystem.clone(),
            bytes: if volume.bytes == Bytes::There { Bytes::There } else { Bytes::None },
            formatted: volume.formatted.clone().filter(|_| volume.bytes == Bytes::There),
        }
    }
}

impl Group {
    /// A group snapshot that the driver has not acknowledged yet.
    pub fn creating(id: String, name: String, snapshots: BTreeMap<String, String>, created_millis: u64) -> Group {
        Group { version: VERSION, id, name, snapshots, created_millis, state: State::Creating }
    }
}

/// What every record has.
pub(crate) trait Record: Clone + PartialEq + Serialize + DeserializeOwned {
    /// What it is about, for people.
    const WHAT: &'static str;
    fn id(&self) -> &str;
    fn state(&self) -> State;
    fn set_version(&mut self, version: u32);
    /// What it may take of the pool.
    fn promise(&self) -> u64;
    /// What it is looked up by, besides its id.
    fn marks(&self) -> Vec<&str>;

    /// The record's bytes.
    fn to_bytes(&self) -> Vec<u8> {
        // Plain fields and string keys: there is nothing that could fail to be written.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

macro_rules! record {
    ($($type:ty, $what:literal, $promise:expr, $marks:expr;)*) => {$(
        impl Record for $type {
            const WHAT: &'static str = $what;
            fn id(&self) -> &str {
                &self.id
            }
            fn state(&self) -> State {
                self.state
            }
            fn set_version(&mut self, version: u32) {
                self.version = version;
            }
            fn promise(&self) -> u64 {
                let promise: fn(&Self) -> u64 = $promise;
                promise(self)
            }
            fn marks(&self) -> Vec<&str> {
                let marks: fn(&Self) -> Vec<&str> = $marks;
                marks(self)
            }
        }
    )*};
}
record! {
    // By the nodes it is attached to.
    Volume, "volume", Volume::promised, |one| one.nodes.keys().map(String::as_str).collect();
    // By the volume it shows.
    Snapshot, "snapshot", |one| one.size, |one| alloc::vec![one.source.as_str()];
    Group, "group snapshot", |_| 0, |_| Vec::new();
}

/// Why the file of a record was not read. `what` is the kind of thing that the record describes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum RecordError {
    /// The file does not hold a record.
    Malformed { what: &'static str, file: String, why: String },
    /// The record has another id than its file name says, or one that is not fit for a file name.
    OtherId { what: &'static str, file: String },
    /// Another version of the driver wrote it.
    Version { what: &'static str, file: String, version: u32 },
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordError::Malformed { what, file, why } => {
                write!(f, "the {what} record {file} cannot be read: {why}; restore it from a backup")
            }
            RecordError::OtherId { what, file } => write!(
                f,
                "the {what} record {file} cannot be read: it is about another {what} than its file name says; restore it from a backup"
            ),
            RecordError::Version { what, file, version } => write!(
                f,
                "the {what} record {file} has version {version}, and this driver knows version {VERSION}; run the driver that wrote it"
            ),
        }
    }
}

impl core::error::Error for RecordError {}

/// Reads a record. `file` is the name of its file.
pub(crate) fn parse<T: Record>(file: &str, bytes: &[u8]) -> Result<T, RecordError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let (what, file) = (T::WHAT, String::from(file));
    let malformed = |error: serde_json::Error| {
        let why = format!("{error}");
        RecordError::Malformed { what, file: file.clone(), why }
    };
    let Versioned { version } = serde_json::from_slice(bytes).map_err(malformed)?;
    if !(1..=VERSION).contains(&version) {
        return Err(RecordError::Version { what, file, version });
    }
    let mut record: T = serde_json::from_slice(bytes).map_err(malformed)?;
    if file.strip_suffix(".json") != Some(record.id()) || !check::is_id(record.id()) {
        return Err(RecordError::OtherId { what, file });
    }
    record.set_version(VERSION);
    Ok(record)
}
