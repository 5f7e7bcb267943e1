use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;

use control::host::{Op, Reply};

use crate::config::Config;
use crate::record::{State, Volume, parse_record};

/// Something mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The device, also where a directory of its filesystem is shown at another place.
    pub device: String,
    /// The filesystem's type.
    pub fstype: String,
    /// Read-only at this place.
    pub read_only: bool,
}

/// What is known: the records, as they are to be on disk, and what the kernel says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    loaded: bool,
    volumes: BTreeMap<String, Volume>,
    /// Volumes whose record on disk may be older than the one here.
    unsaved: BTreeSet<String>,
    /// By target.
    mounts: BTreeMap<String, Mount>,
    /// From image to device.
    loops: BTreeMap<String, String>,
}

impl Facts {
    /// Facts after a start: the files of the records directory (name and bytes), mounts by target, and loop devices by
    /// image. An error is a sentence; until it is put right the driver is not ready (`Facts::default()`).
    pub fn load<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
        mounts: BTreeMap<String, Mount>,
        loops: BTreeMap<String, String>,
    ) -> Result<Facts, String> {
        let mut volumes = BTreeMap::new();
        // What is left of a write that was cut off has another name, and never counted.
        for (file, bytes) in files.into_iter().filter(|(file, _)| file.ends_with(".json") && !file.starts_with('.')) {
            let volume = parse_record(file, bytes)?;
            volumes.insert(volume.id.clone(), volume);
        }
        Ok(Facts { loaded: true, volumes, unsaved: BTreeSet::new(), mounts, loops })
    }

    /// Takes over what the kernel says now.
    pub fn observe(&mut self, mounts: BTreeMap<String, Mount>, loops: BTreeMap<String, String>) {
        self.mounts = mounts;
        self.loops = loops;
    }

    /// The volumes, by id.
    pub fn volumes(&self) -> &BTreeMap<String, Volume> {
        &self.volumes
    }

    /// What all volumes together promise. A volume counts from the decision to make it until its record is gone.
    pub fn promised(&self) -> u64 {
        self.volumes.values().fold(0, |sum, volume| sum.saturating_add(volume.size))
    }

    pub(crate) fn loaded(&self) -> bool {
        self.loaded
    }

    /// A volume that was acknowledged and is not going.
    pub(crate) fn ready(&self, id: &str) -> Option<&Volume> {
        self.volumes.get(id).filter(|volume| volume.state == State::Ready)
    }

    /// Changes a record, here at once, so that no other call can promise the same bytes; on disk by [`Facts::save`].
    pub(crate) fn put(&mut self, volume: Volume) {
        if self.volumes.get(&volume.id) != Some(&volume) {
            self.unsaved.insert(volume.id.clone());
            self.volumes.insert(volume.id.clone(), volume);
        }
    }

    /// The write that brings a volume's record to disk, if it is not there.
    pub(crate) fn save(&self, config: &Config, id: &str) -> Option<Op> {
        let volume = self.volumes.get(id).filter(|_| self.unsaved.contains(id))?;
        Some(Op::WriteFile { path: config.record_path(id), bytes: volume.to_bytes() })
    }

    /// What is mounted at a path.
    pub(crate) fn mounted(&self, target: &str) -> Option<&Mount> {
        self.mounts.get(target)
    }

    /// The loop device of an image.
    pub(crate) fn device(&self, image: &str) -> Option<&str> {
        self.loops.get(image).map(String::as_str)
    }

    /// A place where an image is mounted, other than the given ones.
    pub(crate) fn mounted_elsewhere(&self, image: &str, but: &[&str]) -> Option<&str> {
        let device = self.device(image)?;
        let mut mounts = self.mounts.iter();
        mounts.find(|(at, mount)| mount.device == device && !but.contains(&at.as_str())).map(|(at, _)| at.as_str())
    }

    /// Takes in that an operation was done.
    pub(crate) fn learn(&mut self, config: &Config, op: &Op, reply: &Reply) {
        match op {
            Op::WriteFile { path, .. } => self.unsaved.retain(|id| config.record_path(id) != *path),
            Op::RemoveFile { path } => {
                self.volumes.retain(|id, volume| volume.state != State::Deleting || config.record_path(id) != *path);
                let volumes = &self.volumes;
                self.unsaved.retain(|id| volumes.contains_key(id));
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
                let mount = Mount { device: device.clone(), fstype: fstype.clone(), read_only: *read_only };
                self.mounts.insert(target.clone(), mount);
            }
            Op::Bind { source, target, read_only } => {
                if let Some(mut mount) = self.mounts.get(source).cloned() {
                    mount.read_only |= *read_only;
                    self.mounts.insert(target.clone(), mount);
                }
            }
            Op::Unmount { target } => {
                self.mounts.remove(target);
            }
            Op::MakeDir { .. }
            | Op::RemoveDir { .. }
            | Op::CreateImage { .. }
            | Op::MakeFilesystem { .. }
            | Op::StartProcess(_)
            | Op::StopProcess { .. }
            | Op::ForgetProcess { .. } => {}
        }
    }
}
