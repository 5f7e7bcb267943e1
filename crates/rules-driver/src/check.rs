//! Nothing a caller sends is used before it went through here.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use csi::v1::volume_capability::{AccessType, MountVolume, access_mode::Mode};
use csi::v1::{CapacityRange, VolumeCapability};
use csi::{Code, Status, Thing};
use sha2::{Digest, Sha256};

use crate::config::Config;
use crate::record::Kind;

const MIB: u64 = 1 << 20;
/// The size of a volume whose request has no capacity range.
const USUAL_SIZE: u64 = 1 << 30;
/// What CSI allows for a name.
const LONGEST_NAME: usize = 128;
const LONGEST_ID: usize = 63;
/// What the kernel allows for a path.
const LONGEST_PATH: usize = 4095;
/// The mount flags we pass on, each for a reason a user may have; `ro` and `rw` are understood besides.
const FLAGS: [&str; 9] =
    ["noatime", "nodiratime", "relatime", "nodev", "noexec", "nosuid", "sync", "dirsync", "discard"];
/// What the id of a volume begins with that lives and dies with a pod.
const EPHEMERAL: &str = "eph-";
/// Parameters with this prefix describe the claim or the pod; they are not for us and change nothing.
const NOT_FOR_US: &str = "csi.storage.k8s.io/";
/// The parameters a volume can be made with.
const KIND: &str = "kind";
const FILESYSTEM: &str = "fsType";
const SIZE: &str = "size";
/// The one parameter that can be changed later.
const READ_AHEAD: &str = "readAheadKiB";
const MOST_READ_AHEAD: u32 = 64 << 10;

pub fn invalid(text: impl Into<String>) -> Status {
    Status::from_driver(Code::InvalidArgument, text)
}

/// What is refused, so that users find it. CSI allows secrets in mount flags, so that no value is repeated.
fn offender(refused: &str) -> String {
    let name = refused.split('=').next().unwrap_or_default();
    let short: String = name.chars().take(64).collect();
    format!("{short:?}")
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

/// The id of the thing with this name: the name itself if it is fit for a file name, else its hash. No name is its own id
/// that looks like such a hash.
pub fn id_for(thing: Thing, name: &str) -> String {
    let prefix = match thing {
        Thing::Volume => "vol-",
        Thing::Snapshot => "snap-",
        Thing::Group => "group-",
    };
    if is_id(name) && !name.starts_with(prefix) && !name.starts_with(EPHEMERAL) {
        return name.to_string();
    }
    hashed(prefix, name)
}

fn hashed(prefix: &str, name: &str) -> String {
    let hash = Sha256::digest(name.as_bytes());
    hash.iter().take(20).fold(String::from(prefix), |id, byte| format!("{id}{byte:02x}"))
}

/// The id under which a volume is kept that its caller gave an id to.
pub fn ephemeral_id(given: &str) -> String {
    hashed(EPHEMERAL, given)
}

/// The name of something to be made.
pub fn name<'a>(what: &str, name: &'a str) -> Result<&'a str, Status> {
    required(what, name)?;
    if name.len() > LONGEST_NAME {
        return Err(invalid(format!("{what} is longer than {LONGEST_NAME} bytes")));
    }
    Ok(name)
}

/// How a volume is to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    pub kind: Kind,
    pub filesystem: Option<&'static str>,
    pub size: Option<u64>,
}

fn filesystem(text: &str) -> Result<Option<&'static str>, Status> {
    match text {
        "" => Ok(None),
        "ext4" => Ok(Some("ext4")),
        "xfs" => Ok(Some("xfs")),
        "btrfs" => Ok(Some("btrfs")),
        _ => Err(invalid("the filesystem type is not offered; ask for ext4, xfs or btrfs")),
    }
}

/// The parameters of a volume. A size is a parameter only where nothing else says it.
pub fn parameters(config: &Config, all: &BTreeMap<String, String>, sized: bool) -> Result<Wish, Status> {
    let mut wish = Wish { kind: config.kind, ..Wish::default() };
    for (key, value) in all.iter().filter(|(key, _)| !key.starts_with(NOT_FOR_US)) {
        match key.as_str() {
            KIND => {
                wish.kind = match value.as_str() {
                    "image" => Kind::Image,
                    "directory" => Kind::Directory,
                    _ => return Err(invalid("the parameter kind is image or directory")),
                }
            }
            FILESYSTEM => wish.filesystem = filesystem(value)?,
            SIZE if sized => wish.size = Some(quantity(value)?),
            _ => {
                return Err(invalid(format!(
                    "this driver takes no parameter {}; it takes kind and fsType",
                    offender(key)
                )));
            }
        }
    }
    if config.kind == Kind::Directory && wish.kind == Kind::Image {
        return Err(invalid("this driver offers directories only; start it without --kind directory for images"));
    }
    Ok(wish)
}

/// Parameters of something that takes none.
pub fn no_parameters(all: &BTreeMap<String, String>) -> Result<(), Status> {
    if all.keys().all(|key| key.starts_with(NOT_FOR_US)) {
        Ok(())
    } else {
        Err(invalid("this call takes no parameters"))
    }
}

/// The parameters that can be changed later: how much to read ahead.
pub fn mutable(all: &BTreeMap<String, String>) -> Result<Option<u32>, Status> {
    let mut read_ahead = None;
    for (key, value) in all {
        if key != READ_AHEAD {
            return Err(invalid(format!("this driver takes no mutable parameters but {READ_AHEAD}")));
        }
        let kib = value.parse().ok().filter(|kib| *kib <= MOST_READ_AHEAD && is_plain_number(value));
        read_ahead = Some(kib.ok_or_else(|| invalid(format!("{READ_AHEAD} is a number from 0 to {MOST_READ_AHEAD}")))?);
    }
    Ok(read_ahead)
}

/// A number as we would write it ourselves.
fn is_plain_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit())
}

/// A size in bytes, or in Ki, Mi, Gi or Ti.
fn quantity(text: &str) -> Result<u64, Status> {
    let units = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40)];
    let found = units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)));
    let (number, shift) = found.unwrap_or((text, 0));
    let bytes = number.parse::<u64>().ok().filter(|_| is_plain_number(number)).and_then(|n| n.checked_mul(1 << shift));
    bytes.ok_or_else(|| invalid("the parameter size is a number of bytes, or one with Ki, Mi, Gi or Ti behind it"))
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
    /// As a device, without a filesystem of ours.
    pub block: bool,
    pub filesystem: Option<&'static str>,
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
    let nothing = MountVolume::default();
    let (block, mount) = match &capability.access_type {
        Some(AccessType::Mount(mount)) => (false, mount),
        Some(AccessType::Block(_)) => (true, &nothing),
        None => return Err(invalid("the volume capability has no access type")),
    };
    let filesystem = filesystem(&mount.fs_type)?;
    let known = |flag: &String| matches!(flag.as_str(), "ro" | "rw") || FLAGS.contains(&flag.as_str());
    if let Some(other) = mount.mount_flags.iter().find(|flag| !known(flag)) {
        let offered = FLAGS.join(", ");
        return Err(invalid(format!(
            "the mount flag {} is not offered; choose from ro, rw, {offered}",
            offender(other)
        )));
    }
    if !mount.volume_mount_group.is_empty() {
        return Err(invalid("a volume mount group is not offered"));
    }
    let (read_only, single_writer) = access(capability.access_mode.as_ref().map(|mode| mode.mode()))?;
    let (access, flags): (Vec<String>, Vec<String>) =
        mount.mount_flags.iter().cloned().partition(|flag| matches!(flag.as_str(), "ro" | "rw"));
    let mounted_read_only = access.last().is_some_and(|flag| flag == "ro");
    Ok(Use { block, filesystem, flags, mounted_read_only, read_only, single_writer })
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
pub fn smallest(filesystem: &str) -> u64 {
    match filesystem {
        "xfs" => 300 * MIB,
        "btrfs" => 128 * MIB,
        _ => 16 * MIB,
    }
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

    /// The size a new volume gets: whole mebibytes, no smaller than asked for, no smaller than `smallest`; of the usual
    /// size if nothing is asked for, or as large as what it is copied from.
    pub fn choose(self, smallest: u64, copied: Option<u64>) -> Result<u64, Status> {
        let usual = copied.unwrap_or(USUAL_SIZE);
        let usual = if self.most == 0 { usual } else { usual.min(self.most / MIB * MIB) };
        let smallest = smallest.max(copied.unwrap_or(0));
        let size = if self.least == 0 { usual } else { self.least.div_ceil(MIB).saturating_mul(MIB) }.max(smallest);
        if self.admits(size) && i64::try_from(size).is_ok() {
            Ok(size)
        } else {
            let text = format!("no volume size fits: sizes are whole mebibytes, at least {smallest} bytes");
            Err(Status::from_driver(Code::OutOfRange, text))
        }
    }
}
