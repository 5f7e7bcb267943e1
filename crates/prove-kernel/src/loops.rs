//! Loop devices: a file shown as a block device, found by the file and not by its name.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use control::host::{Failure, FailureKind, Looped};

use crate::tree::{At, DEVICES, Ino, Node, missing, wrong_kind};
use crate::{Kernel, refused};

/// A loop device that shows a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Loop {
    pub ino: Ino,
    /// The mount it was opened through, which is in use as long.
    pub mount: u32,
    /// The directory and the path it was found by.
    pub dir: Ino,
    pub path: String,
    /// As large as the file was.
    pub size: u64,
    /// Attached by somebody else, so that the file has two.
    pub foreign: bool,
}

fn sectors(size: u64) -> u64 {
    size / 512 * 512
}

impl Kernel {
    /// The devices that show a file.
    pub(crate) fn showing(&self, ino: Ino) -> Vec<u32> {
        self.loops.iter().filter(|(_, entry)| entry.ino == ino).map(|(number, _)| *number).collect()
    }

    pub(crate) fn looped(&self, number: u32, entry: &Loop) -> Looped {
        let name = entry.path.rsplit('/').next().unwrap_or_default();
        let named = match self.nodes.get(&entry.dir) {
            Some(Node::Dir(entries)) => entries.get(name) == Some(&entry.ino),
            Some(Node::File(_) | Node::Link(_) | Node::Device(_)) | None => false,
        };
        Looped { device: format!("/dev/loop{number}"), image: entry.path.clone(), deleted: !named }
    }

    pub(crate) fn attach_loop(&mut self, image: &str) -> Result<String, Failure> {
        let at = self.open_to_write(image)?;
        match self.showing(at.ino).as_slice() {
            [] => Ok(format!("/dev/loop{}", self.attach_another(image, at, false))),
            [one] => Ok(format!("/dev/loop{one}")),
            [..] => Err(refused(FailureKind::ForeignLoop, format!("{image} is attached more than once"))),
        }
    }

    /// Attaches a file to the first free device, whether it has one or not.
    pub(crate) fn attach_another(&mut self, image: &str, at: At, foreign: bool) -> u32 {
        let number = (0..).find(|number| !self.loops.contains_key(number)).unwrap_or(u32::MAX);
        let size = self.file(at.ino, image).map_or(0, |file| sectors(file.size));
        let dir = self.place(image).ok().flatten().map_or(0, |place| place.dir.ino);
        let entry = Loop { ino: at.ino, mount: at.mount, dir, path: image.to_string(), size, foreign };
        self.loops.insert(number, entry);
        self.read_only_devices.remove(&number);
        let name = format!("loop{number}");
        let known = matches!(&self.nodes[&DEVICES], Node::Dir(entries) if entries.contains_key(&name));
        if !known {
            let node = self.add(Node::Device(number));
            self.link(DEVICES, &name, Some(node));
        }
        number
    }

    pub(crate) fn detach_loop(&mut self, image: &str) -> Result<(), Failure> {
        let seen = match self.place(image)? {
            Some(place) => self.look(&place),
            None => None,
        };
        let found: Vec<u32> = match seen {
            Some(at) => self.showing(at.ino),
            None => self.loops.iter().filter(|(_, entry)| entry.path == image).map(|(number, _)| *number).collect(),
        };
        for number in found {
            if self.supers.contains_key(&number) {
                return Err(refused(FailureKind::Busy, format!("/dev/loop{number} is busy: it is mounted")));
            }
            self.loops.remove(&number);
            self.read_only_devices.remove(&number);
            self.read_ahead.remove(&number);
        }
        self.forget_unreachable();
        Ok(())
    }

    pub(crate) fn refresh_loop(&mut self, image: &str) -> Result<(), Failure> {
        let place = self.place_existing(image)?;
        let at = self.look(&place).ok_or_else(|| missing(image))?;
        for number in self.showing(at.ino) {
            let size = self.file(at.ino, image)?.size;
            if let Some(entry) = self.loops.get_mut(&number) {
                entry.size = sectors(size);
            }
        }
        Ok(())
    }

    /// The number of the loop device at a path.
    pub(crate) fn device(&self, path: &str) -> Result<u32, Failure> {
        match self.nodes[&self.walk_existing(path)?.ino] {
            Node::Device(number) => Ok(number),
            Node::Dir(_) | Node::File(_) | Node::Link(_) => Err(wrong_kind(path, "a block device")),
        }
    }

    pub(crate) fn device_size(&self, number: u32) -> u64 {
        self.loops.get(&number).map_or(0, |entry| entry.size)
    }

    pub(crate) fn set_read_ahead(&mut self, device: &str, kib: u32) -> Result<(), Failure> {
        let number = self.device(device)?;
        self.read_ahead.insert(number, kib);
        Ok(())
    }
}
