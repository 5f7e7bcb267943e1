use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::check;

/// The version of the records this code writes and reads.
const VERSION: u32 = 1;

/// A volume, as its record says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Volume {
    pub(crate) version: u32,
    /// Its id, fit for a file name.
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
}

/// How far the making or unmaking of a volume has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Its image may or may not be there. Nobody was told of the volume.
    Creating,
    /// Its image is there.
    Ready,
    /// Its image may or may not be there, and is going.
    Deleting,
}

/// How a volume is attached to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Read-only.
    pub readonly: bool,
}

impl Volume {
    /// A volume nobody was told of yet.
    pub fn creating(id: String, name: String, size: u64) -> Volume {
        Volume { version: VERSION, id, name, size, state: State::Creating, nodes: BTreeMap::new() }
    }

    /// The record's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Plain fields and string keys: there is nothing that could fail to be written.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Reads a record. `file` is its name; the error is a sentence that names it.
pub fn parse_record(file: &str, bytes: &[u8]) -> Result<Volume, String> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    let unreadable = |why: String| format!("the volume record {file} cannot be read: {why}; restore it from a backup");
    let Versioned { version } = serde_json::from_slice(bytes).map_err(|error| unreadable(format!("{error}")))?;
    if version != VERSION {
        return Err(format!(
            "the volume record {file} has version {version}, and this driver knows version {VERSION}; run the driver that wrote it"
        ));
    }
    let volume: Volume = serde_json::from_slice(bytes).map_err(|error| unreadable(format!("{error}")))?;
    if file.strip_suffix(".json") != Some(volume.id.as_str()) || !check::is_id(&volume.id) {
        return Err(unreadable(String::from("it is about another volume than its file name says")));
    }
    Ok(volume)
}
