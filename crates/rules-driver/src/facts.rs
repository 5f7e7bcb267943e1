use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use control::host::{Op, Reply};

use crate::config::Config;
use crate::record::{Group, Record, RecordError, Snapshot, State, Volume, parse};

/// Something that is mounted at a path.
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

/// The names and contents of the record files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it all")]
pub struct Files {
    pub volumes: Vec<(String, Vec<u8>)>,
    pub snapshots: Vec<(String, Vec<u8>)>,
    pub groups: Vec<(String, Vec<u8>)>,
}

/// The kind of thing that a record describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum RecordKind {
    Volume,
    Snapshot,
    Group,
}

impl RecordKind {
    /// Every kind of record there is.
    pub const ALL: [RecordKind; 3] = [RecordKind::Volume, RecordKind::Snapshot, RecordKind::Group];
}

/// Records of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shelf<T> {
    records: BTreeMap<String, T>,
    /// Those whose record on disk may be older than the one here.
    unsaved: BTreeSet<String>,
    /// What all of them together promise.
    promised: u128,
    /// Ids by what records are looked up by.
    marked: BTreeMap<String, BTreeSet<String>>,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Shelf { records: BTreeMap::new(), unsaved: BTreeSet::new(), promised: 0, marked: BTreeMap::new() }
    }
}

impl<T: Record> Shelf<T> {
    fn load(files: &[(String, Vec<u8>)]) -> Result<Shelf<T>, RecordError> {
        let mut shelf = Shelf::default();
        for (file, bytes) in files {
            shelf.reload(file, Some(bytes))?;
        }
        Ok(shelf)
    }

    /// Takes over what a record's file holds now, or that it is gone, except where ours is newer.
    fn reload(&mut self, file: &str, bytes: Option<&[u8]>) -> Result<(), RecordError> {
        // What is left of a write that was cut off has another name, and never counted.
        let Some(id) = file.strip_suffix(".json").filter(|_| !file.starts_with('.')) else { return Ok(()) };
        if self.unsaved.contains(id) {
            return Ok(());
        }
        match bytes {
            Some(bytes) => self.set(parse(file, bytes)?),
            None => self.unset(id),
        }
        Ok(())
    }

    fn set(&mut self, record: T) {
        self.unset(record.id());
        self.promised += u128::from(record.promise());
        for mark in record.marks() {
            self.marked.entry(mark.to_string()).or_default().insert(record.id().to_string());
        }
        self.records.insert(record.id().to_string(), record);
    }

    fn unset(&mut self, id: &str) {
        let Some(record) = self.records.remove(id) else { return };
        self.promised -= u128::from(record.promise());
        for mark in record.marks() {
            if let Some(ids) = self.marked.get_mut(mark) {
                ids.remove(id);
                if ids.is_empty() {
                    self.marked.remove(mark);
                }
            }
        }
    }

    /// The ids of those with a mark.
    pub(crate) fn marked(&self, mark: &str) -> impl ExactSizeIterator<Item = &String> {
        static NONE: BTreeSet<String> = BTreeSet::new();
        self.marked.get(mark).unwrap_or(&NONE).iter()
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
            self.set(record);
        }
    }

    /// The record on disk is as the one here.
    pub(crate) fn saved(&self, id: &str) -> bool {
        !self.unsaved.contains(id)
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
            self.unset(id);
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
    /// By the path they are mounted at.
    mounts: BTreeMap<String, Mount>,
    /// Targets by what they show.
    shown: BTreeMap<String, BTreeSet<String>>,
    /// From image to device.
    loops: BTreeMap<String, String>,
}

impl Facts {
    /// Facts after a start: the record files, mounts by target, and loop devices by image. Until an error is put right the
    /// driver is not ready (`Facts::default()`).
    pub fn load(
        files: &Files,
        mounts: BTreeMap<String, Mount>,
        loops: BTreeMap<String, String>,
    ) -> Result<Facts, RecordError> {
        let mut facts = Facts {
            loaded: true,
            volumes: Shelf::load(&files.volumes)?,
            snapshots: Shelf::load(&files.snapshots)?,
            groups: Shelf::load(&files.groups)?,
            ..Facts::default()
        };
        facts.observe(mounts, loops);
        Ok(facts)
    }

    /// Takes over what another process of this driver did to one record's file, which may be gone.
    pub fn reload(&mut self, shelf: RecordKind, file: &str, bytes: Option<&[u8]>) -> Result<(), RecordError> {
        match shelf {
            RecordKind::Volume => self.volumes.reload(file, bytes),
            RecordKind::Snapshot => self.snapshots.reload(file, bytes),
            RecordKind::Group => self.groups.reload(file, bytes),
        }
    }

    /// Takes over what the kernel says now about every mount and loop device.
    pub fn observe(&mut self, mounts: BTreeMap<String, Mount>, loops: BTreeMap<String, String>) {
        (self.mounts, self.shown) = (BTreeMap::new(), BTreeMap::new());
        for (target, mount) in mounts {
            self.observe_mount(&target, Some(mount));
        }
        self.loops = loops;
    }

    /// Takes over what the kernel says now about one place.
    pub fn observe_mount(&mut self, target: &str, mount: Option<Mount>) {
        if let Some(gone) = self.mounts.remove(target)
            && let Some(targets) = self.shown.get_mut(&gone.source)
        {
            targets.remove(target);
            if targets.is_empty() {
                self.shown.remove(&gone.source);
            }
        }
        if let Some(mount) = mount {
            self.shown.entry(mount.source.clone()).or_default().insert(target.to_string());
            self.mounts.insert(target.to_string(), mount);
        }
    }

    /// Takes over what the kernel says now about one image.
    pub fn observe_loop(&mut self, image: &str, device: Option<String>) {
        match device {
            Some(device) => self.loops.insert(image.to_string(), device),
            None => self.loops.remove(image),
        };
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

    /// The files that may hold another record than the one known here: those there are now, and those of records known.
    pub fn doubtful(&self, kind: RecordKind, there: Vec<String>) -> BTreeSet<String> {
        let known: Vec<&String> = match kind {
            RecordKind::Volume => self.volumes().keys().collect(),
            RecordKind::Snapshot => self.snapshots().keys().collect(),
            RecordKind::Group => self.groups().keys().collect(),
        };
        known.into_iter().map(|id| format!("{id}.json")).chain(there).collect()
    }

    /// What all volumes and snapshots together promise. Each counts from the decision to make it until its record is gone.
    pub fn promised(&self) -> u64 {
        u64::try_from(self.volumes.promised + self.snapshots.promised).unwrap_or(u64::MAX)
    }

    pub(crate) fn loaded(&self) -> bool {
        self.loaded
    }

    /// The write that brings a volume's record to disk, if it is not there.
    pub(crate) fn save_volume(&self, config: &Config, id: &str) -> Option<Op> {
        self.volumes.save(id, config.record_path(id))
    }

    /// What is mounted at a path.
    pub fn mounted(&self, target: &str) -> Option<&Mount> {
        self.mounts.get(target)
    }

    /// The loop device of an image.
    pub fn device(&self, image: &str) -> Option<&str> {
        self.loops.get(image).map(String::as_str)
    }

    /// Everywhere something of this source is mounted.
    pub fn places<'a>(&'a self, source: &'a str) -> impl Iterator<Item = (&'a str, &'a Mount)> {
        let targets = self.shown.get(source).into_iter().flatten();
        targets.filter_map(|at| Some((at.as_str(), self.mounts.get(at)?)))
    }

    /// A place where the filesystem of a source is mounted, best one that can be written to.
    pub(crate) fn filesystem_place<'a>(&'a self, source: &'a str) -> Option<(&'a str, &'a Mount)> {
        self.places(source).filter(|(_, mount)| !mount.block).min_by_key(|(_, mount)| mount.read_only)
    }

    /// Takes in that an operation was done.
    pub(crate) fn learn(&mut self, config: &Config, op: &Op, reply: &Reply) {
        match op {
            Op::WriteFile { path, .. } => {
                self.volumes.written(path, &config.record_dir(RecordKind::Volume));
                self.snapshots.written(path, &config.record_dir(RecordKind::Snapshot));
                self.groups.written(path, &config.record_dir(RecordKind::Group));
            }
            Op::RemoveFile { path } => {
                self.volumes.removed(path, &config.record_dir(RecordKind::Volume));
                self.snapshots.removed(path, &config.record_dir(RecordKind::Snapshot));
                self.groups.removed(path, &config.record_dir(RecordKind::Group));
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
                self.observe_mount(target, Some(Mount { source, fstype, read_only: *read_only, block: false }));
            }
            Op::Bind { source, target, read_only } => {
                let mut mount = self.mounts.get(source).cloned().unwrap_or_else(|| Mount {
                    source: source.clone(),
                    fstype: DIRECTORY.to_string(),
                    read_only: false,
                    block: false,
                });
                mount.read_only |= *read_only;
                self.observe_mount(target, Some(mount));
            }
            Op::BindDevice { device, target, read_only } => {
                let mount = Mount { source: device.clone(), fstype: String::new(), read_only: *read_only, block: true };
                self.observe_mount(target, Some(mount));
            }
            Op::Unmount { target } => self.observe_mount(target, None),
            Op::MakeDir { .. }
            | Op::MakePlace { .. }
            | Op::MakeScratch { .. }
            | Op::SetGroup { .. }
            | Op::RemoveDir { .. }
            | Op::CreateImage { .. }
            | Op::CopyTogether { .. }
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
            | Op::AskProcess { .. }
            | Op::RunHandler { .. }
            | Op::StopProcess { .. }
            | Op::ForgetProcess { .. }
            | Op::MountMemory { .. }
            | Op::ShowFiles { .. }
            | Op::HostPath { .. }
            | Op::MeasureTree { .. } => {}
        }
    }
}

/// What stands for the filesystem's type where a directory of the driver's own is shown.
pub const DIRECTORY: &str = "directory";
