//! A pretend machine that refuses whatever a real one would.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use control::host::{Copying, Op, Reply, Usage};

use crate::record::{Group, Snapshot, Volume, parse};
use crate::{Bytes, Config, DIRECTORY, Files, Kind, Mount, State};

/// An image: how large it is, and what was written to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    pub size: u64,
    pub content: String,
    /// Room it takes on disk for what was deleted in it.
    pub stale: u64,
    /// The filesystem on it and how large that is.
    pub filesystem: Option<(String, u64)>,
}

/// What is on disk and in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World {
    pub files: BTreeMap<String, Vec<u8>>,
    pub images: BTreeMap<String, Image>,
    pub dirs: BTreeSet<String>,
    /// What was written to directories.
    pub contents: BTreeMap<String, String>,
    /// Empty files devices are shown at.
    pub places: BTreeSet<String>,
    /// From image to device, and the device's size.
    pub loops: BTreeMap<String, (String, u64)>,
    pub read_ahead: BTreeMap<String, u32>,
    pub mounts: BTreeMap<String, Mount>,
    /// The kernel refuses to grow ext4 while it is mounted.
    pub no_online_ext4: bool,
}

impl World {
    fn on_device(&mut self, device: &str) -> &mut Image {
        let image = self.loops.iter().find(|(_, (name, _))| name == device).unwrap().0;
        self.images.get_mut(image).unwrap()
    }

    pub fn perform(&mut self, op: &Op) -> Result<Reply, String> {
        match op {
            Op::MakeDir { path } | Op::MakePlace { path } | Op::MakeScratch { path } => {
                self.dirs.insert(path.clone());
            }
            Op::RemoveDir { path } if self.mounts.contains_key(path) => return Err(format!("{path} is a mount point")),
            Op::RemoveDir { path } => {
                self.dirs.remove(path);
            }
            Op::RemoveTarget { path } => {
                assert!(!self.mounts.contains_key(path), "{path} is a mount point");
                self.dirs.remove(path);
                self.places.remove(path);
            }
            Op::RemoveTree { path } => {
                let ours = ["/state/directories/", "/state/snapshot-directories/"];
                assert!(ours.iter().any(|dir| path.starts_with(dir)), "{path} is removed with all in it");
                assert!(!self.mounts.values().any(|mount| mount.source == *path), "{path} is in use");
                self.dirs.remove(path);
                self.contents.remove(path);
            }
            Op::MakeFile { path } => {
                self.places.insert(path.clone());
            }
            Op::WriteFile { path, bytes } => {
                self.files.insert(path.clone(), bytes.clone());
            }
            Op::RemoveFile { path } => {
                assert!(!self.loops.contains_key(path), "{path} is removed under its loop device");
                self.files.remove(path);
                self.images.remove(path);
            }
            Op::CreateImage { path, size } => {
                let fresh = Image { size: *size, ..Image::default() };
                let image = self.images.entry(path.clone()).or_insert(fresh);
                assert_eq!(image.size, *size, "{path} has another size");
            }
            Op::CopyTogether { copies } => self.copy(copies)?,
            Op::GrowImage { path, size } => {
                let image = self.images.get_mut(path).ok_or("no file")?;
                image.size = image.size.max(*size);
            }
            Op::AttachLoop { image } => {
                let size = self.images.get(image).ok_or(format!("no file {image}"))?.size;
                self.loops.entry(image.clone()).or_insert((device(image), size));
                return Ok(Reply::Device(device(image)));
            }
            Op::DetachLoop { image } => {
                assert!(!self.mounts.values().any(|m| m.source == device(image)), "{image} is in use");
                self.loops.remove(image);
                self.read_ahead.remove(&device(image));
            }
            Op::RefreshLoop { image } => {
                let size = self.images[image].size;
                if let Some(attached) = self.loops.get_mut(image) {
                    attached.1 = size;
                }
            }
            Op::SetReadAhead { device, kib } => {
                assert!(self.loops.values().any(|(name, _)| name == device));
                self.read_ahead.insert(device.clone(), *kib);
            }
            Op::MakeFilesystem { device, fstype } => {
                assert!(!self.mounts.values().any(|mount| mount.source == *device), "{device} is in use");
                let image = self.on_device(device);
                let size = image.size;
                let found = image.filesystem.get_or_insert((fstype.clone(), size));
                if found.0 != *fstype {
                    return Err(format!("{device} bears {}", found.0));
                }
            }
            Op::GrowFilesystem { device, fstype, mounted_at } => return self.grow(device, fstype, mounted_at.as_ref()),
            Op::Mount { device, target, fstype, flags, read_only } => {
                assert!(flags.iter().all(|flag| flag == "noatime"), "{flags:?}");
                assert!(self.dirs.contains(target) && !self.mounts.contains_key(target), "mount at {target}");
                assert_eq!(self.on_device(device).filesystem.as_ref().map(|(name, _)| name), Some(fstype));
                let (source, fstype) = (device.clone(), fstype.clone());
                self.mounts.insert(target.clone(), Mount { source, fstype, read_only: *read_only, block: false });
            }
            Op::Bind { source, target, read_only } => {
                assert!(self.dirs.contains(target) && !self.mounts.contains_key(target), "bind at {target}");
                let directory = || {
                    assert!(self.dirs.contains(source) && source.starts_with("/state/directories/"), "{source}");
                    Mount { source: source.clone(), fstype: DIRECTORY.into(), read_only: false, block: false }
                };
                let mut mount = self.mounts.get(source).cloned().unwrap_or_else(directory);
                mount.read_only |= read_only;
                self.mounts.insert(target.clone(), mount);
            }
            Op::BindDevice { device, target, read_only } => {
                assert!(self.places.contains(target) && !self.mounts.contains_key(target), "device at {target}");
                let others = self.mounts.values().filter(|mount| mount.source == *device);
                assert!(others.into_iter().all(|mount| mount.block && mount.read_only == *read_only), "{target}");
                let (source, fstype) = (device.clone(), String::new());
                self.mounts.insert(target.clone(), Mount { source, fstype, read_only: *read_only, block: true });
            }
            Op::Unmount { target } => {
                self.mounts.remove(target);
            }
            Op::Measure { path } => return self.measure(path).map(Reply::Usage),
            Op::Discard { path } => {
                let device = self.mounts.get(path).filter(|mount| !mount.block).ok_or("not mounted")?.source.clone();
                self.on_device(&device).stale = 0;
            }
            Op::CheckFilesystem { .. } => {}
            Op::SetGroup { .. }
            | Op::MountMemory { .. }
            | Op::ShowFiles { .. }
            | Op::HostPath { .. }
            | Op::MeasureTree { .. }
            | Op::StartProcess(_)
            | Op::AskProcess { .. }
            | Op::RunHandler { .. }
            | Op::StopProcess { .. }
            | Op::ForgetProcess { .. } => panic!("no driver's business"),
        }
        Ok(Reply::Done)
    }

    fn copy(&mut self, copies: &[Copying]) -> Result<(), String> {
        for copy in copies {
            // A mounted filesystem is held still, and only where it really is.
            let device = self.loops.get(&copy.from).map(|(name, _)| name);
            let mounted = self.mounts.iter().filter(|(_, mount)| Some(&mount.source) == device && !mount.block);
            let places: Vec<&String> = mounted.map(|(at, _)| at).collect();
            assert_eq!(copy.still.is_some(), !places.is_empty(), "{copy:?}");
            assert!(copy.still.iter().all(|at| places.contains(&at)), "{copy:?}");
            if self.dirs.contains(&copy.from) {
                if self.dirs.insert(copy.to.clone())
                    && let Some(content) = self.contents.get(&copy.from).cloned()
                {
                    self.contents.insert(copy.to.clone(), content);
                }
                continue;
            }
            let image = self.images.get(&copy.from).ok_or(format!("no file {}", copy.from))?.clone();
            self.images.entry(copy.to.clone()).or_insert(image);
        }
        Ok(())
    }

    fn grow(&mut self, device: &str, fstype: &str, at: Option<&String>) -> Result<Reply, String> {
        let mounted = self.mounts.iter().any(|(target, mount)| mount.source == device && Some(target) == at);
        assert_eq!(at.is_some(), mounted, "{device} is not mounted at {at:?}");
        assert!(fstype == "ext4" || mounted, "{fstype} grows only while mounted");
        let size = self.loops.values().find(|(name, _)| name == device).unwrap().1;
        let refused = self.no_online_ext4 && fstype == "ext4" && mounted;
        let filesystem = self.on_device(device).filesystem.as_mut().unwrap();
        assert_eq!(filesystem.0, fstype);
        if refused && filesystem.1 < size {
            return Err("the kernel wants CAP_SYS_RESOURCE".into());
        }
        filesystem.1 = filesystem.1.max(size);
        Ok(Reply::Done)
    }

    fn measure(&self, path: &str) -> Result<Usage, String> {
        let stale = self.images.get(path).map_or(0, |image| image.stale);
        let bytes = match (self.mounts.get(path), self.images.get(path)) {
            (Some(mount), _) => {
                self.loops.values().find(|(name, _)| *name == mount.source).map_or(7, |(_, size)| *size)
            }
            (None, Some(image)) => image.size,
            (None, None) if self.dirs.contains(path) || path == "/state" => 7,
            (None, None) => return Err(format!("no {path}")),
        };
        Ok(Usage { bytes, bytes_used: 1 + stale, bytes_free: bytes - 1, inodes: 10, inodes_used: 1, inodes_free: 9 })
    }

    pub fn check(&self, config: &Config) {
        let files = self.record_files();
        let volumes: Vec<_> = files.volumes.iter().map(|(file, bytes)| parse::<Volume>(file, bytes).unwrap()).collect();
        let snapshots: Vec<_> =
            files.snapshots.iter().map(|(file, bytes)| parse::<Snapshot>(file, bytes).unwrap()).collect();
        let groups: Vec<_> = files.groups.iter().map(|(file, bytes)| parse::<Group>(file, bytes).unwrap()).collect();
        // Reliability 80.
        let promised = volumes.iter().map(|volume| volume.promised()).sum::<u64>();
        assert!(promised + snapshots.iter().map(|one| one.size).sum::<u64>() <= config.pool_bytes);
        for image in self.images.keys() {
            let of_volume = volumes.iter().any(|volume| config.image_path(&volume.id) == *image);
            let of_snapshot = snapshots.iter().any(|one| config.snapshot_path(Kind::Image, &one.id) == *image);
            assert!(of_volume || of_snapshot, "{image} has no record");
        }
        for id in self.dirs.iter().filter_map(|dir| dir.strip_prefix("/state/snapshot-directories/")) {
            assert!(snapshots.iter().any(|one| one.id == id), "the copy of a directory {id} has no record");
        }
        // What is mounted or shown is somebody's: its record must not say that it may be made anew.
        for volume in volumes.iter().filter(|one| one.bytes != Bytes::There) {
            let device = device(&config.image_path(&volume.id));
            let in_use = |mount: &Mount| mount.source == device || mount.source == config.directory_path(&volume.id);
            assert!(!self.mounts.values().any(in_use), "{volume:?} is in use");
        }
        // Reliability 77.
        for volume in volumes.iter().filter(|one| one.state == State::Ready && one.bytes == Bytes::There) {
            if volume.kind == Kind::Directory {
                assert!(self.dirs.contains(&config.directory_path(&volume.id)));
            } else {
                let size = self.images[&config.image_path(&volume.id)].size;
                assert!(size == volume.size || Some(size) == volume.growing_to, "{size} {volume:?}");
            }
        }
        for snapshot in snapshots.iter().filter(|one| one.state == State::Ready && one.bytes == Bytes::There) {
            let path = config.snapshot_path(snapshot.kind, &snapshot.id);
            match snapshot.kind {
                Kind::Image => assert_eq!(self.images[&path].size, snapshot.size),
                Kind::Directory => assert!(self.dirs.contains(&path)),
            }
        }
        for group in groups.iter().filter(|group| group.state == State::Ready) {
            let ready = |id: &String| snapshots.iter().any(|one| one.id == *id && one.state == State::Ready);
            assert!(group.snapshots.values().all(ready), "{group:?}");
        }
    }

    /// The filesystems on images, by name.
    pub fn filesystems(&self) -> Vec<String> {
        self.images.values().filter_map(|image| image.filesystem.as_ref()).map(|(name, _)| name.clone()).collect()
    }

    pub fn record_files(&self) -> Files {
        let inside = |dir: &str| {
            let found = self.files.iter();
            found.filter_map(|(path, bytes)| Some((path.strip_prefix(dir)?.to_string(), bytes.clone()))).collect()
        };
        Files {
            volumes: inside("/state/volumes/"),
            snapshots: inside("/state/snapshots/"),
            groups: inside("/state/groups/"),
        }
    }

    /// What the mount table and the list of loop devices say.
    pub fn seen(&self) -> (BTreeMap<String, Mount>, BTreeMap<String, String>) {
        (self.mounts.clone(), self.loops.iter().map(|(image, (name, _))| (image.clone(), name.clone())).collect())
    }
}

pub fn device(image: &str) -> String {
    format!("/dev/loop:{image}")
}
