//! The mount table: mounts, binds, what is shared with copies, unmounting.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use control::host::{Failure, FailureKind, Mounted};

use crate::tree::{At, DEVICES, Ino, Node, ROOT, wrong_kind};
use crate::{Kernel, begun, refused, volumes};

/// The mount flags of `io-host`, those of a mount first and then those of a whole filesystem.
const MOUNT_FLAGS: [&str; 6] = ["noatime", "nodiratime", "relatime", "nodev", "noexec", "nosuid"];
const FILESYSTEM_FLAGS: [&str; 3] = ["sync", "dirsync", "discard"];

/// What a mount is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Fs {
    Base,
    Devices,
    Loop(u32),
    /// In memory, by its root.
    Memory(Ino),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mount {
    pub id: u32,
    /// On what, through which mount. The root of all is on nothing.
    pub at: Option<At>,
    /// What is seen there.
    pub root: Ino,
    pub fs: Fs,
    pub source: String,
    pub target: String,
    pub read_only: bool,
    pub flags: BTreeSet<String>,
    /// Those of one group see each other's mounts.
    pub group: Option<u32>,
}

/// A mounted filesystem, wherever and however often.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Super {
    pub read_only: bool,
    pub flags: BTreeSet<String>,
}

fn otherwise(target: &str) -> Failure {
    refused(FailureKind::MountedOtherwise, format!("{target} has another mount than the one asked for"))
}

fn busy(what: &str) -> Failure {
    refused(FailureKind::Busy, format!("{what} is busy"))
}

/// The smallest number none of these is.
fn free(taken: impl Iterator<Item = u32> + Clone) -> u32 {
    (1..).find(|number| !taken.clone().any(|other| other == *number)).unwrap_or(u32::MAX)
}

impl Kernel {
    pub(crate) fn mount_roots(&mut self, shared: bool) {
        let root = Mount {
            id: 1,
            at: None,
            root: ROOT,
            fs: Fs::Base,
            source: "/dev/root".to_string(),
            target: "/".to_string(),
            read_only: false,
            flags: BTreeSet::from(["relatime".to_string()]),
            group: shared.then_some(1),
        };
        let dev = Mount {
            id: 2,
            root: DEVICES,
            fs: Fs::Devices,
            source: "devtmpfs".to_string(),
            target: "/dev".to_string(),
            group: shared.then_some(2),
            ..root.clone()
        };
        self.mounts.push(root);
        let at = self.walk("/dev").ok().flatten();
        self.mounts.extend(at.map(|at| Mount { at: Some(at), ..dev }));
    }

    pub(crate) fn fs_of(&self, mount: u32) -> Fs {
        self.mounts.iter().find(|found| found.id == mount).map_or(Fs::Base, |found| found.fs)
    }

    pub(crate) fn is_read_only(&self, mount: &Mount) -> bool {
        let whole = match mount.fs {
            Fs::Loop(number) => self.supers.get(&number).is_some_and(|found| found.read_only),
            Fs::Base | Fs::Devices | Fs::Memory(_) => false,
        };
        mount.read_only || whole
    }

    pub(crate) fn told(&self, mount: &Mount) -> Mounted {
        let (top, fstype) = match mount.fs {
            Fs::Base => (Some(ROOT), "rootfs"),
            Fs::Devices => (Some(DEVICES), "devtmpfs"),
            Fs::Memory(root) => (Some(root), "tmpfs"),
            Fs::Loop(number) => {
                let found = self.on_device(number);
                (found.map(|found| found.root), found.map_or("", |found| found.fstype.as_str()))
            }
        };
        let path = top.and_then(|top| self.path_between(top, mount.root));
        let root = match path.as_deref() {
            Some("") => "/".to_string(),
            Some(path) => path.to_string(),
            None => "//deleted".to_string(),
        };
        Mounted {
            target: mount.target.clone(),
            source: mount.source.clone(),
            fstype: fstype.to_string(),
            root,
            read_only: self.is_read_only(mount),
            shared: mount.group.is_some(),
        }
    }

    /// Everything of a filesystem survives the loss of power from now on.
    pub(crate) fn write_out(&mut self, fs: Fs) {
        let top = match fs {
            Fs::Base => Some(ROOT),
            Fs::Devices | Fs::Memory(_) => None,
            Fs::Loop(number) => self.on_device(number).map(|found| found.root),
        };
        if let Some(top) = top {
            let inside = Self::beneath(&self.nodes, top);
            self.sync(&inside);
        }
    }

    fn mount_at(&self, at: At) -> Option<&Mount> {
        self.mounts.iter().find(|mount| mount.id == at.mount && mount.root == at.ino)
    }

    pub(crate) fn mount(
        &mut self,
        device: &str,
        target: &str,
        fstype: &str,
        flags: &[String],
        read_only: bool,
    ) -> Result<(), Failure> {
        volumes::known(fstype)?;
        let allowed = |flag: &&String| [&MOUNT_FLAGS[..], &FILESYSTEM_FLAGS[..]].concat().contains(&flag.as_str());
        if let Some(bad) = flags.iter().find(|flag| !allowed(flag)) {
            return Err(refused(FailureKind::FlagNotAllowed, format!("the mount flag {bad:?} is not allowed")));
        }
        let number = self.device(device)?;
        let at = self.walk_dir(target)?;
        let wanted = |kernel: &Kernel, mount: &Mount| {
            let of_whole = kernel.supers.get(&number).map(|found| found.flags.clone()).unwrap_or_default();
            let flagged = flags.iter().all(|flag| mount.flags.contains(flag) || of_whole.contains(flag));
            let whole =
                kernel.on_device(number).is_some_and(|found| found.root == mount.root && found.fstype == fstype);
            mount.fs == Fs::Loop(number) && whole && flagged && kernel.is_read_only(mount) == read_only
        };
        if let Some(there) = self.mount_at(at) {
            return if wanted(self, there) { Ok(()) } else { Err(otherwise(target)) };
        }
        let root = self.start_filesystem(number, device, fstype, flags, read_only)?;
        let mut of_mount: BTreeSet<String> =
            flags.iter().filter(|flag| MOUNT_FLAGS.contains(&flag.as_str())).cloned().collect();
        if !of_mount.contains("noatime") {
            of_mount.insert("relatime".to_string());
        }
        let source = device.to_string();
        let made = Mount {
            id: 0,
            at: None,
            root,
            fs: Fs::Loop(number),
            source,
            target: target.to_string(),
            read_only,
            flags: of_mount,
            group: None,
        };
        let id = self.attach(made, at);
        match self.mounts.iter().find(|mount| mount.id == id) {
            Some(mount) if wanted(self, mount) => Ok(()),
            Some(_) | None => Err(begun(FailureKind::Unconfirmed, format!("the mount at {target}"))),
        }
    }

    /// The root of the filesystem on a device, which is in use from now on.
    fn start_filesystem(
        &mut self,
        number: u32,
        device: &str,
        fstype: &str,
        flags: &[String],
        read_only: bool,
    ) -> Result<Ino, Failure> {
        let failed = || refused(FailureKind::MountFailed, format!("mounting {device} failed"));
        let found = self.on_device(number).cloned();
        // btrfs looks for itself before it asks for the device.
        if fstype == "btrfs" && found.as_ref().is_none_or(|found| found.fstype != fstype) {
            return Err(failed());
        }
        let locked = self.read_only_devices.contains(&number);
        if let Some(there) = self.supers.get_mut(&number).filter(|_| fstype == "btrfs" && (read_only || !locked)) {
            // btrfs is mounted read-only beside read-write, and becomes writable as soon as one mount of it is.
            there.read_only &= read_only;
            return found.map(|found| found.root).ok_or_else(failed);
        }
        if let Some(there) = self.supers.get(&number) {
            let fits = found.as_ref().is_some_and(|found| found.fstype == fstype) && there.read_only == read_only;
            return if fits { found.map(|found| found.root).ok_or_else(failed) } else { Err(busy(device)) };
        }
        let sound = found.filter(|found| found.fstype == fstype).ok_or_else(failed)?;
        if self.read_only_devices.contains(&number) && !read_only {
            return Err(failed());
        }
        let flags = flags.iter().filter(|flag| FILESYSTEM_FLAGS.contains(&flag.as_str())).cloned().collect();
        self.supers.insert(number, Super { read_only, flags });
        Ok(sound.root)
    }

    pub(crate) fn bind(&mut self, source: &str, target: &str, read_only: bool) -> Result<(), Failure> {
        let from = self.walk_dir(source)?;
        let at = self.walk_dir(target)?;
        if let Some(there) = self.mount_at(at) {
            let same = there.root == from.ino && self.is_read_only(there) == read_only;
            return if same { Ok(()) } else { Err(otherwise(target)) };
        }
        let id = self.show_again(from, at, target, read_only)?;
        match self.mounts.iter().find(|mount| mount.id == id) {
            Some(mount) if self.is_read_only(mount) == read_only => Ok(()),
            Some(_) | None => Err(otherwise(source)),
        }
    }

    fn show_again(&mut self, from: At, at: At, target: &str, read_only: bool) -> Result<u32, Failure> {
        let Some(shown) = self.mounts.iter().find(|mount| mount.id == from.mount) else {
            return Err(busy(target));
        };
        let (at_nothing, target) = (None, target.to_string());
        let read_only = shown.read_only || read_only;
        let made = Mount { id: 0, at: at_nothing, root: from.ino, target, read_only, ..shown.clone() };
        Ok(self.attach(made, at))
    }

    pub(crate) fn bind_device(&mut self, device: &str, target: &str, read_only: bool) -> Result<(), Failure> {
        let number = self.device(device)?;
        let at = self.walk_existing(target)?;
        if let Some(there) = self.mount_at(at) {
            let same = self.nodes[&there.root] == Node::Device(number) && self.is_read_only(there) == read_only;
            return if same { Ok(()) } else { Err(otherwise(target)) };
        }
        if !matches!(self.nodes[&at.ino], Node::File(_)) {
            return Err(wrong_kind(target, "a plain file"));
        }
        if read_only {
            self.read_only_devices.insert(number);
        } else {
            self.read_only_devices.remove(&number);
        }
        let from = self.walk_existing(device)?;
        self.show_again(from, at, target, read_only).map(drop)
    }

    /// Puts a mount in its place, and copies of it where copies of that place are seen.
    pub(crate) fn attach(&mut self, mut made: Mount, at: At) -> u32 {
        let parent_group = self.mounts.iter().find(|mount| mount.id == at.mount).and_then(|mount| mount.group);
        if parent_group.is_some() && made.group.is_none() {
            made.group = Some(free(self.mounts.iter().filter_map(|mount| mount.group)));
        }
        let peers: Vec<(u32, String)> = self
            .mounts
            .iter()
            .filter(|mount| parent_group.is_some() && mount.group == parent_group && mount.id != at.mount)
            .filter_map(|mount| {
                let inside = self.path_between(mount.root, at.ino)?;
                Some((mount.id, format!("{}{inside}", mount.target.trim_end_matches('/'))))
            })
            .collect();
        let id = self.put(made.clone(), at);
        for (peer, target) in peers {
            self.put(Mount { target, ..made.clone() }, At { mount: peer, ino: at.ino });
        }
        id
    }

    /// What is there already comes to lie on top of it.
    fn put(&mut self, made: Mount, at: At) -> u32 {
        let id = free(self.mounts.iter().map(|mount| mount.id));
        if let Some(over) = self.mounts.iter_mut().find(|mount| mount.at == Some(at)) {
            over.at = Some(At { mount: id, ino: made.root });
        }
        self.mounts.push(Mount { id, at: Some(at), ..made });
        id
    }

    fn is_in_use(&self, mount: u32) -> bool {
        self.held.values().any(|held| *held == mount) || self.loops.values().any(|entry| entry.mount == mount)
    }

    fn children(&self, mount: u32) -> Vec<At> {
        self.mounts.iter().filter_map(|other| other.at.filter(|at| at.mount == mount)).collect()
    }

    pub(crate) fn unmount(&mut self, target: &str) -> Result<(), Failure> {
        let Some(place) = self.place(target)? else { return Ok(()) };
        while let Some(seen) = self.look(&place) {
            let Some(top) = self.mount_at(seen).cloned() else { break };
            let Some(at) = top.at else { return Err(busy(target)) };
            if !self.children(top.id).is_empty() || self.is_in_use(top.id) {
                return Err(busy(target));
            }
            let copies = self.copies_of(&top, at);
            if copies.iter().any(|copy| self.is_in_use(*copy)) {
                return Err(busy(target));
            }
            for gone in copies.into_iter().chain([top.id]) {
                self.take_off(gone);
            }
        }
        self.forget_unreachable();
        Ok(())
    }

    /// The mounts that came with this one and go with it.
    fn copies_of(&self, top: &Mount, at: At) -> Vec<u32> {
        let group = self.mounts.iter().find(|mount| mount.id == at.mount).and_then(|mount| mount.group);
        let peers = self.mounts.iter().filter(|mount| group.is_some() && mount.group == group && mount.id != at.mount);
        let places = peers.map(|peer| At { mount: peer.id, ino: at.ino });
        let copies = places.filter_map(|place| self.mounts.iter().find(|mount| mount.at == Some(place)));
        let goes = |copy: &&Mount| {
            let on_it = self.children(copy.id);
            copy.id != top.id && (on_it.is_empty() || on_it == [At { mount: copy.id, ino: copy.root }])
        };
        copies.filter(goes).map(|copy| copy.id).collect()
    }

    /// Removes a mount; what lies on top of it comes down.
    fn take_off(&mut self, id: u32) {
        let Some(index) = self.mounts.iter().position(|mount| mount.id == id) else { return };
        let gone = self.mounts.remove(index);
        for over in self.mounts.iter_mut().filter(|mount| mount.at.is_some_and(|at| at.mount == id)) {
            over.at = gone.at;
        }
        if let Fs::Loop(number) = gone.fs
            && !self.mounts.iter().any(|mount| mount.fs == gone.fs)
        {
            self.write_out(gone.fs);
            self.supers.remove(&number);
        }
    }
}
