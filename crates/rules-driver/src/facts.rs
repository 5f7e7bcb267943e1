use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use control::host::{Op, Reply};

use crate::config::Config;
use crate::record::{Group, Record, Snapshot, State, Volume, parse};

/// Something mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// What is shown: a device (also where a directory of its filesystem is shown at another place, and where the device
    /// itself is), or a directory of the driver's own.
    pub source: String,
    /// The filesystem's type.
    pub fstype: String,
    /// Read-only at this place.
    pub read_only: bool,
    /// The device itself is shown, not the filesystem on it.
    pub block: bool,
}

/// The record files, each with its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// Those of volumes.
    pub volumes: Vec<(String, Vec<u8>)>,
    /// Those of snapshots.
    pub snapshots: Vec<(String, Vec<u8>)>,
    /// Those of group snapshots.
    pub groups: Vec<(String, Vec<u8>)>,
}

/// Records of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shelf<T> {
    records: BTreeMap<String, T>,
    /// Those whose record on disk may be older than the one here.
    unsaved: BTreeSet<String>,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Shelf { records: BTreeMap::new(), unsaved: BTreeSet::new() }
    }
}

impl<T: Record> Shelf<T> {
    fn load(files: &[(String, Vec<u8>)]) -> Result<Shelf<T>, String> {
        let mut shelf = Shelf::default();
        // What is left of a write that was cut off has another name, and never counted.
        for (file, bytes) in files.iter().filter(|(file, _)| file.ends_with(".json") && !file.starts_with('.')) {
            let record: T = parse(file, bytes)?;
            shelf.records.insert(record.id().to_string(), record);
        }
        Ok(shelf)
    }

    /// Takes over what another process wrote, except where ours is newer.
    fn reload(&mut self, files: &[(String, Vec<u8>)]) -> Result<(), String> {
        let mut fresh: Shelf<T> = Shelf::load(files)?;
        for id in &self.unsaved {
            match self.records.remove(id) {
                Some(record) => fresh.records.insert(id.clone(), record),
                None => fresh.records.remove(id),
            };
        }
        self.records = fresh.records;
        Ok(())
    }

    pub(crate) fn all(&self) -> &BTreeMap<String, T> {
        &self.records
    }

    /// One that was acknowledged and is not going.
    pub(crate) fn ready(&self, id: &str) -> Option<&T> {
        self.records.get(id).filter(|record| record.state() == State::Ready)
    }

    /// Changes a record, here at once, so that no other call can promise the same bytes; on disk by [`Shelf::save`].
    pub(crate) fn put(&mut self, record: T) {
        if self.records.get(record.id()) != Some(&record) {
            self.unsaved.insert(record.id().to_string());
            self.records.insert(record.id().to_string(), record);
        }
    }

    /// The write that brings a record to disk, if it is not there.
    pub(crate) fn save(&self, id: &str, path: String) -> Option<Op> {
        let record = self.records.get(id).filter(|_| self.unsaved.contains(id))?;
        Some(Op::WriteFile { path, bytes: record.to_bytes() })
    }

    fn written(&mut self, path: &str, dir: &str) {
        if let Some(id) = id_in(path, dir) {
            self.unsaved.remove(id);
        }
    }

    fn removed(&mut self, path: &str, dir: &str) {
        let Some(id) = id_in(path, dir) else { return };
        if self.records.get(id).is_some_and(|record| record.state() == State::Deleting) {
            self.records.remove(id);
            self.unsaved.remove(id);
        }
    }
}

/// Whose record a path is.
fn id_in<'a>(path: &'a str, dir: &str) -> Option<&'a str> {
    path.strip_prefix(dir)?.strip_prefix('/')?.strip_suffix(".json")
}

/// What is known: the records, as they are to be on disk, and what the kernel says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    loaded: bool,
    pub(crate) volumes: Shelf<Volume>,
    pub(crate) snapshots: Shelf<Snapshot>,
    pub(crate) groups: Shelf<Group>,
    /// By target.
    mounts: BTreeMap<String, Mount>,
    /// From image to device.
    loops: BTreeMap<String, String>,
}

impl Facts {
    /// Facts after a start: the record files, mounts by target, and loop devices by image. An error is a sentence; until
    /// it is put right the driver is not ready (`Facts::default()`).
    pub fn load(
        files: &Files,
        mounts: BTreeMap<String, Mount>,
        loops: BTreeMap<String, String>,
    ) -> Result<Facts, String> {
        Ok(Facts {
            loaded: true,
            volumes: Shelf::load(&files.volumes)?,
            snapshots: Shelf::load(&files.snapshots)?,
            groups: Shelf::load(&files.groups)?,
            mounts,
            loops,
        })
    }

    /// Takes over what another process of this driver wrote to the same directory.
    pub fn reload(&mut self, files: &Files) -> Result<(), String> {
        self.volumes.reload(&files.volumes)?;
        self.snapshots.reload(&files.snapshots)?;
        self.groups.reload(&files.groups)
    }

    /// Takes over what the kernel says now.
    pub fn observe(&mut self, mounts: BTreeMap<String, Mount>, loops: BTreeMap<String, String>) {
        self.mounts = mounts;
        self.loops = loops;
    }

    /// The volumes, by id.
    pub fn volumes(&self) -> &BTreeMap<String, Volume> {
        self.volumes.all()
    }

    /// The snapshots, by id.
    pub fn snapshots(&self) -> &BTreeMap<String, Snapshot> {
        self.snapshots.all()
    }

    /// The group snapshots, by id.
    pub fn groups(&self) -> &BTreeMap<String, Group> {
        self.groups.all()
    }

    /// What all volumes and snapshots together promise. Each counts from the decision to make it until its record is gone.
    pub fn promised(&self) -> u64 {
        let volumes = self.volumes().values().map(Volume::promised);
        let snapshots = self.snapshots().values().map(|snapshot| snapshot.size);
        volumes.chain(snapshots).fold(0, u64::saturating_add)
    }

    pub(crate) fn loaded(&self) -> bool {
        self.loaded
    }

    /// The write that brings a volume's record to disk, if it is not there.
    pub(crate) fn save_volume(&self, config: &Config, id: &str) -> Option<Op> {
        self.volumes.save(id, config.record_path(id))
    }

    /// What is mounted at a path.
    pub(crate) fn mounted(&self, target: &str) -> Option<&Mount> {
        self.mounts.get(target)
    }

    /// The loop device of an image.
    pub(crate) fn device(&self, image: &str) -> Option<&str> {
        self.loops.get(image).map(String::as_str)
    }

    /// Everywhere something of this source is mounted.
    pub(crate) fn places<'a>(&'a self, source: &'a str) -> impl Iterator<Item = (&'a str, &'a Mount)> {
        self.mounts.iter().filter(move |(_, mount)| mount.source == source).map(|(at, mount)| (at.as_str(), mount))
    }

    /// A place where the filesystem of a source is mounted, best one that can be written to.
    pub(crate) fn filesystem_place<'a>(&'a self, source: &'a str) -> Option<(&'a str, &'a Mount)> {
        self.places(source).filter(|(_, mount)| !mount.block).min_by_key(|(_, mount)| mount.read_only)
    }

    /// Takes in that an operation was done.
    pub(crate) fn learn(&mut self, config: &Config, op: &Op, reply: &Reply) {
        match op {
            Op::WriteFile { path, .. } => {
                self.volumes.written(path, &config.records_dir());
                self.snapshots.written(path, &config.snapshots_dir());
                self.groups.written(path, &config.groups_dir());
            }
            Op::RemoveFile { path } => {
                self.volumes.removed(path, &config.records_dir());
                self.snapshots.removed(path, &config.snapshots_dir());
                self.groups.removed(path, &config.groups_dir());
            }
            Op::AttachLoop { image } => {
                if let Reply::Device(device) = reply {
                    self.loops.insert(image.clone(), device.clone());
                }
            }
            Op::DetachLoop { image } => {
                self.loops.remove(image);
            }
            Op::Mount { device, target, fstype, flags: _, read_only } => {
                let (source, fstype) = (device.clone(), fstype.clone());
                self.mounts.insert(target.clone(), Mount { source, fstype, read_only: *read_only, block: false });
            }
            Op::Bind { source, target, read_only } => {
                let mut mount = self.mounts.get(source).cloned().unwrap_or_else(|| Mount {
                    source: source.clone(),
                    fstype: DIRECTORY.to_string(),
                    read_only: false,
                    block: false,
                });
                mount.read_only |= *read_only;
                self.mounts.insert(target.clone(), mount);
            }
            Op::BindDevice { device, target, read_only } => {
                let mount = Mount { source: device.clone(), fstype: String::new(), read_only: *read_only, block: true };
                self.mounts.insert(target.clone(), mount);
            }
            Op::Unmount { target } => {
                self.mounts.remove(target);
            }
            Op::MakeDir { .. }
            | Op::RemoveDir { .. }
            | Op::CreateImage { .. }
            | Op::CopyImages { .. }
            | Op::GrowImage { .. }
            | Op::Discard { .. }
            | Op::RemoveTree { .. }
            | Op::MakeFile { .. }
            | Op::RemoveTarget { .. }
            | Op::RefreshLoop { .. }
            | Op::SetReadAhead { .. }
            | Op::CheckFilesystem { .. }
            | Op::GrowFilesystem { .. }
            | Op::Measure { .. }
            | Op::MakeFilesystem { .. }
            | Op::StartProcess(_)
            | Op::StopProcess { .. }
            | Op::ForgetProcess { .. } => {}
        }
    }
}

/// What stands for the filesystem's type where a directory of the driver's own is shown.
pub const DIRECTORY: &str = "directory";
