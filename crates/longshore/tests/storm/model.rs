//! What must be true of volumes and snapshots, as far as their owner was told.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use csi::v1::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume, access_mode::Mode};
use csi::v1::volume_content_source::{SnapshotSource, Type as Source, VolumeSource};
use csi::{Call, v1};

pub const MIB: i64 = 1 << 20;
pub const NODE: &str = "n1";
/// Where the content of a block volume begins.
const OFFSET: u64 = 1 << 20;
const LENGTH: usize = 48 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Files,
    Block,
    Directory,
}

/// How far a volume has come. Each level is one call above the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Gone,
    Made,
    Attached,
    Staged,
    Published,
}

impl Level {
    pub fn above(self) -> Level {
        match self {
            Level::Gone => Level::Made,
            Level::Made => Level::Attached,
            Level::Attached => Level::Staged,
            Level::Staged | Level::Published => Level::Published,
        }
    }

    pub fn below(self) -> Level {
        match self {
            Level::Gone | Level::Made => Level::Gone,
            Level::Attached => Level::Made,
            Level::Staged => Level::Attached,
            Level::Published => Level::Staged,
        }
    }
}

/// Where a volume's first content comes from.
#[derive(Clone, Debug)]
pub enum Origin {
    Nothing,
    Snapshot(String),
    Volume(String),
}

#[derive(Clone, Debug)]
pub struct Volume {
    pub name: String,
    pub kind: Kind,
    pub origin: Origin,
    pub level: Level,
    pub size: i64,
    /// The size it was made with; requests to make it are repeated with that.
    pub first_size: i64,
    /// What was written last, if anything was.
    pub content: Option<u64>,
    pub staging: PathBuf,
    pub target: PathBuf,
}

#[derive(Clone, Debug)]
pub struct Snapshot {
    pub name: String,
    pub source: String,
    pub kind: Kind,
    pub size: i64,
    pub content: Option<u64>,
    /// It was acknowledged.
    pub there: bool,
}

impl Volume {
    /// The call that brings it one level up.
    pub fn raise(&self) -> Call {
        match self.level {
            Level::Gone => Call::CreateVolume(self.create()),
            Level::Made => Call::ControllerPublishVolume(v1::ControllerPublishVolumeRequest {
                volume_id: self.name.clone(),
                node_id: NODE.into(),
                volume_capability: self.capability(),
                ..Default::default()
            }),
            Level::Attached => Call::NodeStageVolume(v1::NodeStageVolumeRequest {
                volume_id: self.name.clone(),
                staging_target_path: text(&self.staging),
                volume_capability: self.capability(),
                ..Default::default()
            }),
            Level::Staged | Level::Published => Call::NodePublishVolume(v1::NodePublishVolumeRequest {
                volume_id: self.name.clone(),
                staging_target_path: text(&self.staging),
                target_path: text(&self.target),
                volume_capability: self.capability(),
                ..Default::default()
            }),
        }
    }

    /// The call that takes it down from a level.
    pub fn lower(&self, from: Level) -> Call {
        let volume_id = self.name.clone();
        match from {
            Level::Gone | Level::Made => {
                Call::DeleteVolume(v1::DeleteVolumeRequest { volume_id, ..Default::default() })
            }
            Level::Attached => Call::ControllerUnpublishVolume(v1::ControllerUnpublishVolumeRequest {
                volume_id,
                node_id: NODE.into(),
                ..Default::default()
            }),
            Level::Staged => {
                let staging_target_path = text(&self.staging);
                Call::NodeUnstageVolume(v1::NodeUnstageVolumeRequest { volume_id, staging_target_path })
            }
            Level::Published => {
                let target_path = text(&self.target);
                Call::NodeUnpublishVolume(v1::NodeUnpublishVolumeRequest { volume_id, target_path })
            }
        }
    }

    pub fn grow(&self, size: i64) -> Call {
        Call::ControllerExpandVolume(v1::ControllerExpandVolumeRequest {
            volume_id: self.name.clone(),
            capacity_range: at_least(size),
            volume_capability: self.capability(),
            ..Default::default()
        })
    }

    pub fn grow_here(&self) -> Call {
        Call::NodeExpandVolume(v1::NodeExpandVolumeRequest {
            volume_id: self.name.clone(),
            volume_path: text(&self.target),
            staging_target_path: text(&self.staging),
            volume_capability: self.capability(),
            ..Default::default()
        })
    }

    fn create(&self) -> v1::CreateVolumeRequest {
        let source = match &self.origin {
            Origin::Nothing => None,
            Origin::Snapshot(id) => Some(Source::Snapshot(SnapshotSource { snapshot_id: id.clone() })),
            Origin::Volume(id) => Some(Source::Volume(VolumeSource { volume_id: id.clone() })),
        };
        let kind = (self.kind == Kind::Directory).then(|| ("kind".to_string(), "directory".to_string()));
        v1::CreateVolumeRequest {
            name: self.name.clone(),
            capacity_range: at_least(self.first_size),
            volume_capabilities: self.capability().into_iter().collect(),
            parameters: kind.into_iter().collect(),
            volume_content_source: source.map(|source| v1::VolumeContentSource { r#type: Some(source) }),
            ..Default::default()
        }
    }

    fn capability(&self) -> Option<v1::VolumeCapability> {
        let access = match self.kind {
            Kind::Files | Kind::Directory => AccessType::Mount(MountVolume::default()),
            Kind::Block => AccessType::Block(BlockVolume {}),
        };
        let access_mode = Some(AccessMode { mode: Mode::SingleNodeWriter.into() });
        Some(v1::VolumeCapability { access_type: Some(access), access_mode })
    }

    /// Writes content through to the volume.
    pub fn write(&self, content: u64) -> io::Result<()> {
        let bytes = bytes(content);
        match self.kind {
            Kind::Files | Kind::Directory => {
                let mut file = File::create(self.target.join("data"))?;
                file.write_all(&bytes)?;
                file.sync_all()
            }
            Kind::Block => {
                let device = File::options().write(true).open(&self.target)?;
                device.write_all_at(&bytes, OFFSET)?;
                device.sync_all()
            }
        }
    }

    /// Says what is wrong with the content of the published volume, if anything is.
    pub fn wrong(&self) -> Option<String> {
        let found = match self.kind {
            Kind::Files | Kind::Directory => std::fs::read(self.target.join("data")),
            Kind::Block => read_device(&self.target),
        };
        match (found, self.content) {
            (Err(error), None) if error.kind() == io::ErrorKind::NotFound && self.kind != Kind::Block => None,
            (Ok(_), None) if self.kind == Kind::Block => None,
            (Ok(found), Some(content)) if found == bytes(content) => None,
            (Ok(found), Some(_)) => {
                Some(format!("{} holds {} bytes that are not those written last: {self:?}", self.name, found.len()))
            }
            (Ok(_), None) => Some(format!("{} holds a file nobody wrote: {self:?}", self.name)),
            (Err(error), _) => Some(format!("{} cannot be read: {error}: {self:?}", self.name)),
        }
    }
}

impl Snapshot {
    pub fn take(&self) -> Call {
        let (name, source_volume_id) = (self.name.clone(), self.source.clone());
        Call::CreateSnapshot(v1::CreateSnapshotRequest { name, source_volume_id, ..Default::default() })
    }

    pub fn drop(&self) -> Call {
        Call::DeleteSnapshot(v1::DeleteSnapshotRequest { snapshot_id: self.name.clone(), ..Default::default() })
    }
}

fn read_device(path: &Path) -> io::Result<Vec<u8>> {
    let mut found = vec![0; LENGTH];
    File::open(path)?.read_exact_at(&mut found, OFFSET)?;
    Ok(found)
}

/// The bytes of one content, all of them different from those of another.
fn bytes(content: u64) -> Vec<u8> {
    let mut dice = crate::dice::Dice::of(content, 7);
    (0..LENGTH / 8).flat_map(|_| dice.roll().to_le_bytes()).collect()
}

fn at_least(required_bytes: i64) -> Option<v1::CapacityRange> {
    Some(v1::CapacityRange { required_bytes, limit_bytes: 0 })
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
