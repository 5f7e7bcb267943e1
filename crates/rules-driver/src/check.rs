//! Nothing a caller sends is used before it went through here.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use csi::v1::volume_capability::{AccessType, access_mode::Mode};
use csi::v1::{CapacityRange, VolumeCapability};
use csi::{Code, Status};
use sha2::{Digest, Sha256};

use crate::config::Config;

const MIB: u64 = 1 << 20;
/// The size of a volume nobody asked a size for.
const USUAL_SIZE: u64 = 1 << 30;
/// What CSI allows for a name.
const LONGEST_NAME: usize = 128;
const LONGEST_ID: usize = 63;
/// What the kernel allows for a path.
const LONGEST_PATH: usize = 4095;
/// The mount flags we pass on, each for a reason a user may have; `ro` and `rw` are understood besides.
const FLAGS: [&str; 9] =
    ["noatime", "nodiratime", "relatime", "nodev", "noexec", "nosuid", "sync", "dirsync", "discard"];
/// Ids of this form are made from a name's hash, so no name may be taken as its own id if it looks like one.
const HASHED: &str = "vol-";

pub fn invalid(text: impl Into<String>) -> Status {
    Status::from_driver(Code::InvalidArgument, text)
}

/// A field without which a call makes no sense.
pub fn required<'a>(what: &str, value: &'a str) -> Result<&'a str, Status> {
    if value.is_empty() { Err(invalid(format!("{what} is missing"))) } else { Ok(value) }
}

/// Fit for a file name, on any filesystem, in any message.
pub fn is_id(text: &str) -> bool {
    let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    (1..=LONGEST_ID).contains(&text.len()) && text.bytes().all(plain) && !text.starts_with('-')
}

/// The id of the volume with this name: the name itself if it is fit for a file name, else its hash.
pub fn id_for(name: &str) -> String {
    if is_id(name) && !name.starts_with(HASHED) {
        return name.to_string();
    }
    let hash = Sha256::digest(name.as_bytes());
    hash.iter().take(20).fold(String::from(HASHED), |id, byte| format!("{id}{byte:02x}"))
}

/// The name of a volume to be made.
pub fn name(name: &str) -> Result<&str, Status> {
    required("the volume's name", name)?;
    if name.len() > LONGEST_NAME {
        return Err(invalid(format!("the volume's name is longer than {LONGEST_NAME} bytes")));
    }
    Ok(name)
}

/// A path to mount at: absolute, without detours, and away from the driver's own files. A slash at the end is dropped.
pub fn path<'a>(config: &Config, what: &str, path: &'a str) -> Result<&'a str, Status> {
    let path = required(what, path)?.trim_end_matches('/');
    let Some(parts) = path.strip_prefix('/') else {
        return Err(invalid(format!("{what} must be an absolute path")));
    };
    let odd = |part: &str| matches!(part, "" | "." | "..") || part.chars().any(char::is_control);
    if path.len() > LONGEST_PATH || parts.split('/').any(odd) {
        return Err(invalid(format!("{what} must be a plain path, without . or .. or control characters")));
    }
    if contains(path, &config.state_dir) || contains(&config.state_dir, path) {
        return Err(invalid(format!("{what} must not be in or above the driver's own directory")));
    }
    Ok(path)
}

/// Two paths, one of which must not be in the other.
pub fn apart(staging: &str, target: &str) -> Result<(), Status> {
    if contains(staging, target) || contains(target, staging) {
        return Err(invalid("the target path and the staging path must not contain each other"));
    }
    Ok(())
}

/// The outer path is the inner one or above it.
fn contains(outer: &str, inner: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// How a volume is to be used, as far as we offer it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    pub fstype: &'static str,
    pub flags: Vec<String>,
    /// The mount flags say that the whole filesystem is to be read-only.
    pub mounted_read_only: bool,
    /// The access mode is one for readers.
    pub read_only: bool,
    /// The access mode allows one target path only.
    pub single_writer: bool,
}

/// A capability, or a sentence why it is not offered.
pub fn capability(capability: Option<&VolumeCapability>) -> Result<Use, Status> {
    let capability = capability.ok_or_else(|| invalid("the volume capability is missing"))?;
    let mount = match &capability.access_type {
        Some(AccessType::Mount(mount)) => mount,
        Some(AccessType::Block(_)) => return Err(invalid("raw block volumes are not offered; ask for a filesystem")),
        None => return Err(invalid("the volume capability has no access type")),
    };
    let fstype = match mount.fs_type.as_str() {
        "" | "ext4" => "ext4",
        "xfs" => "xfs",
        _ => return Err(invalid("the filesystem type is not offered; ask for ext4 or xfs")),
    };
    let known = |flag: &String| matches!(flag.as_str(), "ro" | "rw") || FLAGS.contains(&flag.as_str());
    if !mount.mount_flags.iter().all(known) {
        return Err(invalid(format!("a mount flag is not offered; choose from ro, rw, {}", FLAGS.join(", "))));
    }
    if !mount.volume_mount_group.is_empty() {
        return Err(invalid("a volume mount group is not offered"));
    }
    let (read_only, single_writer) = access(capability.access_mode.as_ref().map(|mode| mode.mode()))?;
    let (access, flags): (Vec<String>, Vec<String>) =
        mount.mount_flags.iter().cloned().partition(|flag| matches!(flag.as_str(), "ro" | "rw"));
    let mounted_read_only = access.last().is_some_and(|flag| flag == "ro");
    Ok(Use { fstype, flags, mounted_read_only, read_only, single_writer })
}

/// Whether a mode is for readers only, and whether for one place only.
fn access(mode: Option<Mode>) -> Result<(bool, bool), Status> {
    match mode {
        Some(Mode::SingleNodeWriter | Mode::SingleNodeMultiWriter) => Ok((false, false)),
        Some(Mode::SingleNodeSingleWriter) => Ok((false, true)),
        Some(Mode::SingleNodeReaderOnly) => Ok((true, false)),
        Some(Mode::MultiNodeReaderOnly | Mode::MultiNodeSingleWriter | Mode::MultiNodeMultiWriter) => {
            Err(invalid("volumes of this driver live on one node; ask for a single-node access mode"))
        }
        Some(Mode::Unknown) | None => Err(invalid("the volume capability has no access mode")),
    }
}

/// All capabilities of a volume, of which there must be one.
pub fn capabilities(all: &[VolumeCapability]) -> Result<Vec<Use>, Status> {
    if all.is_empty() {
        return Err(invalid("the volume capabilities are missing"));
    }
    all.iter().map(|one| capability(Some(one))).collect()
}

/// The least a filesystem needs.
pub fn smallest(uses: &[Use]) -> u64 {
    if uses.iter().any(|one| one.fstype == "xfs") { 300 * MIB } else { 16 * MIB }
}

/// What a caller asks of a volume's size, both ends included; 0 at the upper end means any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub least: u64,
    pub most: u64,
}

impl Range {
    pub fn of(range: Option<&CapacityRange>) -> Result<Range, Status> {
        let Some(range) = range else { return Ok(Range { least: 0, most: 0 }) };
        let out = || Status::from_driver(Code::OutOfRange, "the capacity range is impossible");
        let least = u64::try_from(range.required_bytes).map_err(|_| out())?;
        let most = u64::try_from(range.limit_bytes).map_err(|_| out())?;
        if most != 0 && least > most { Err(out()) } else { Ok(Range { least, most }) }
    }

    /// A volume of this size will do.
    pub fn admits(self, size: u64) -> bool {
        size >= self.least && (self.most == 0 || size <= self.most)
    }

    /// The size a new volume gets: whole mebibytes, no smaller than asked for, no smaller than `smallest`.
    pub fn choose(self, smallest: u64) -> Result<u64, Status> {
        let usual = if self.most == 0 { USUAL_SIZE } else { USUAL_SIZE.min(self.most / MIB * MIB) };
        let size = if self.least == 0 { usual } else { self.least.div_ceil(MIB).saturating_mul(MIB) }.max(smallest);
        if self.admits(size) && i64::try_from(size).is_ok() {
            Ok(size)
        } else {
            let text = format!("no volume size fits: sizes are whole mebibytes, at least {smallest} bytes");
            Err(Status::from_driver(Code::OutOfRange, text))
        }
    }
}
