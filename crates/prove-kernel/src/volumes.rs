//! Filesystems in images: made, checked, grown, measured.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::ToString;

use control::host::{Failure, FailureKind, Usage};

use crate::mounts::Fs;
use crate::tree::{Filesystem, Ino, Node, wrong_kind};
use crate::{Kernel, begun, refused};

const MIB: u64 = 1 << 20;

/// The smallest device the program that makes the filesystem accepts.
fn least(fstype: &str) -> Option<u64> {
    match fstype {
        "ext4" => Some(MIB),
        "xfs" => Some(300 * MIB),
        "btrfs" => Some(109 * MIB),
        _ => None,
    }
}

pub(crate) fn known(fstype: &str) -> Result<(), Failure> {
    match least(fstype) {
        Some(_) => Ok(()),
        None => {
            Err(refused(FailureKind::UnknownFilesystem, format!("the filesystem type {fstype:?} is not supported")))
        }
    }
}

fn tool_failed(tool: &str, device: &str) -> Failure {
    begun(FailureKind::ToolFailed, format!("{tool} failed on {device}"))
}

fn cannot_grow(device: &str, why: &str) -> Failure {
    refused(FailureKind::CannotGrow, format!("the filesystem on {device} cannot grow: {why}"))
}

impl Kernel {
    /// The filesystem on a device, if it bears one.
    pub(crate) fn on_device(&self, number: u32) -> Option<&Filesystem> {
        match self.nodes.get(&self.loops.get(&number)?.ino)? {
            Node::File(file) => file.filesystem.as_ref(),
            Node::Dir(_) | Node::Link(_) | Node::Device(_) => None,
        }
    }

    /// Writes what is on a device, durably.
    fn put_on_device(&mut self, number: u32, filesystem: Filesystem) {
        let Some(ino) = self.loops.get(&number).map(|entry| entry.ino) else { return };
        for nodes in [&mut self.nodes, &mut self.disk] {
            if let Some(Node::File(file)) = nodes.get_mut(&ino) {
                file.filesystem = Some(filesystem.clone());
                file.used = file.used.max(MIB);
            }
        }
        self.sync(&[filesystem.root]);
    }

    pub(crate) fn make_filesystem(&mut self, device: &str, fstype: &str) -> Result<(), Failure> {
        known(fstype)?;
        let number = self.device(device)?;
        let size = self.device_size(number);
        if size == 0 {
            return Err(wrong_kind(device, "a device with any room on it"));
        }
        if let Some(found) = self.on_device(number) {
            if found.fstype == fstype {
                return Ok(());
            }
            let why = format!("{device} holds a filesystem of type {}", found.fstype);
            return Err(refused(FailureKind::ForeignSignature, why));
        }
        if self.read_only_devices.contains(&number) || least(fstype).is_none_or(|least| size < least) {
            return Err(tool_failed("mkfs", device));
        }
        let root = self.add(Node::Dir(BTreeMap::new()));
        if fstype == "ext4" {
            let found = self.add(Node::Dir(BTreeMap::new()));
            self.link(root, "lost+found", Some(found));
            self.sync(&[found]);
        }
        self.put_on_device(number, Filesystem { fstype: fstype.to_string(), size, root });
        Ok(())
    }

    pub(crate) fn check_filesystem(&mut self, device: &str, fstype: &str) -> Result<(), Failure> {
        let number = self.device(device)?;
        known(fstype)?;
        if fstype != "ext4" {
            return Ok(());
        }
        let there = self.on_device(number).is_some_and(|found| found.fstype == fstype);
        if !there {
            return Err(wrong_kind(device, "a device with such a filesystem on it"));
        }
        // A filesystem is clean unless it is mounted to be written to.
        if self.supers.get(&number).is_some_and(|mounted| !mounted.read_only) {
            return Err(tool_failed("e2fsck", device));
        }
        Ok(())
    }

    pub(crate) fn grow_filesystem(&mut self, device: &str, fstype: &str, at: Option<&str>) -> Result<(), Failure> {
        known(fstype)?;
        let read_only = match at {
            Some(at) => Some(self.mounted_from(device, at)?),
            None if fstype == "ext4" => None,
            None => return Err(cannot_grow(device, "this filesystem grows only while it is mounted")),
        };
        let number = self.device(device)?;
        let size = self.device_size(number);
        let Some(found) = self.on_device(number).cloned() else {
            return match (fstype, size) {
                ("ext4", 0..2048) => Err(refused(FailureKind::Kernel, format!("cannot read {device}"))),
                _ => Err(wrong_kind(device, "a device with such a filesystem on it")),
            };
        };
        if found.fstype != fstype {
            return match fstype {
                "ext4" => Err(wrong_kind(device, "a device with ext4 on it")),
                _ => Err(cannot_grow(device, "it is another filesystem")),
            };
        }
        if fstype == "btrfs" && read_only == Some(true) {
            return Err(cannot_grow(device, "it is mounted read-only"));
        }
        if found.size >= size {
            return Ok(());
        }
        match (fstype, read_only) {
            ("ext4", Some(_)) if !self.grows_mounted_ext4 => {
                return Err(cannot_grow(device, "the kernel wants CAP_SYS_RESOURCE"));
            }
            (_, Some(true)) => return Err(cannot_grow(device, "it is mounted read-only")),
            ("ext4", None) if self.supers.contains_key(&number) || self.read_only_devices.contains(&number) => {
                return Err(tool_failed("e2fsck", device));
            }
            _ => {}
        }
        self.put_on_device(number, Filesystem { size, ..found });
        Ok(())
    }

    /// Whether the filesystem of a device is read-only where it is mounted. Refused if it is not mounted there.
    fn mounted_from(&self, device: &str, at: &str) -> Result<bool, Failure> {
        let number = self.device(device)?;
        let there = self.walk_dir(at)?;
        let mount = self.mounts.iter().find(|mount| mount.id == there.mount && mount.root == there.ino);
        match mount {
            Some(mount) if mount.fs == Fs::Loop(number) => Ok(self.is_read_only(mount)),
            Some(_) | None => Err(wrong_kind(at, "where this device is mounted")),
        }
    }

    pub(crate) fn discard(&mut self, path: &str) -> Result<(), Failure> {
        let at = self.walk_dir(path)?;
        if !self.is_root(at) {
            return Err(wrong_kind(path, "the root of a mounted filesystem"));
        }
        let fs = self.fs_of(at.mount);
        self.write_out(fs);
        let Fs::Loop(number) = fs else { return Ok(()) };
        let (Some(entry), Some(found)) = (self.loops.get(&number).cloned(), self.on_device(number).cloned()) else {
            return Ok(());
        };
        let used = self.used_by(found.root).saturating_add(MIB);
        for nodes in [&mut self.nodes, &mut self.disk] {
            if let Some(Node::File(file)) = nodes.get_mut(&entry.ino) {
                file.used = file.used.min(used);
            }
        }
        Ok(())
    }

    /// What the files beneath a directory take.
    fn used_by(&self, root: Ino) -> u64 {
        let sizes = Self::beneath(&self.nodes, root).into_iter().filter_map(|ino| match self.nodes.get(&ino) {
            Some(Node::File(file)) => Some(file.used),
            Some(Node::Dir(_) | Node::Link(_) | Node::Device(_)) | None => None,
        });
        sizes.sum()
    }

    /// Who owns a file is nothing that operations here ask for, so only whether it can be given away is told.
    pub(crate) fn set_group(&self, path: &str) -> Result<(), Failure> {
        let at = self.walk_existing(path)?;
        match &self.nodes[&at.ino] {
            Node::Dir(_) => Ok(()),
            Node::File(_) | Node::Device(_) | Node::Link(_) => {
                Err(refused(FailureKind::WrongKind, format!("{path} is not a directory")))
            }
        }
    }

    pub(crate) fn measure(&self, path: &str) -> Result<Usage, Failure> {
        let at = self.walk_existing(path)?;
        let (bytes, bytes_used) = match &self.nodes[&at.ino] {
            Node::Device(number) => return Ok(Usage { bytes: self.device_size(*number), ..Usage::default() }),
            Node::File(file) => return Ok(Usage { bytes: file.size, bytes_used: file.used, ..Usage::default() }),
            Node::Dir(_) | Node::Link(_) => match self.fs_of(at.mount) {
                Fs::Loop(number) => {
                    let found = self.on_device(number);
                    found.map_or((0, 0), |found| (found.size, self.used_by(found.root)))
                }
                // A machine's own disk is as large as it needs to be; a full one is a fault.
                Fs::Base | Fs::Devices | Fs::Memory(_) => (1 << 50, 1 << 40),
            },
        };
        let (inodes, inodes_used) = (1 << 20, 1);
        let bytes_free = bytes.saturating_sub(bytes_used);
        Ok(Usage { bytes, bytes_used, bytes_free, inodes, inodes_used, inodes_free: inodes - inodes_used })
    }
}
