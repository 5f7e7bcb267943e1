//! Directories, files and images.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use control::host::{Copying, Failure, FailureKind};

use crate::tree::{At, File, Filesystem, Ino, Node, Place, missing, wrong_kind};
use crate::{Kernel, begun, refused};

fn mount_point(path: &str) -> Failure {
    refused(FailureKind::MountPoint, format!("{path} is a mount point"))
}

/// The path without its last component, if there is more than that.
fn parent(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(parent, _)| parent).filter(|parent| !parent.is_empty())
}

impl Kernel {
    /// Something is mounted on this directory or file, by whichever way it is reached.
    fn is_mounted_on(&self, ino: Ino) -> bool {
        self.mounts.iter().any(|mount| mount.at.is_some_and(|at| at.ino == ino))
    }

    pub(crate) fn remove_dir(&mut self, path: &str) -> Result<(), Failure> {
        let Some(place) = self.place(path)? else { return Ok(()) };
        let Some(at) = self.look(&place) else { return Ok(()) };
        let empty = self.entries(at.ino, path)?.is_empty();
        if self.is_root(at) {
            return Err(mount_point(path));
        }
        self.writable(place.dir, path)?;
        if self.is_mounted_on(at.ino) {
            return Err(mount_point(path));
        }
        if !empty {
            return Err(refused(FailureKind::NotEmpty, format!("the directory {path} is not empty")));
        }
        self.leave(&place)
    }

    pub(crate) fn write_file(&mut self, path: &str, bytes: &[u8]) -> Result<(), Failure> {
        if let Some(above) = parent(path) {
            self.make_dir(above)?;
        }
        let place = self.place_existing(path)?;
        if let Some(at) = self.look(&place) {
            self.file(at.ino, path)?;
            self.writable(place.dir, path)?;
            if self.is_mounted_on(at.ino) {
                return Err(begun(FailureKind::Kernel, format!("cannot replace {path}: it is a mount point")));
            }
        }
        self.enter(&place, Node::File(File::of(bytes))).map(drop)
    }

    pub(crate) fn remove_file(&mut self, path: &str) -> Result<(), Failure> {
        let Some(place) = self.place(path)? else { return Ok(()) };
        self.writable(place.dir, path)?;
        let Some(at) = self.look(&place) else { return Ok(()) };
        self.file(at.ino, path)?;
        if let Some(number) = self.showing(at.ino).first() {
            return Err(refused(FailureKind::Busy, format!("{path} is attached to /dev/loop{number}")));
        }
        if self.is_mounted_on(at.ino) {
            return Err(mount_point(path));
        }
        self.leave(&place)
    }

    pub(crate) fn remove_target(&mut self, path: &str) -> Result<(), Failure> {
        let Some(place) = self.place(path)? else { return Ok(()) };
        let Some(at) = self.look(&place) else { return self.remove_dir(path) };
        if self.is_root(at) {
            return Err(mount_point(path));
        }
        match &self.nodes[&at.ino] {
            Node::File(file) if file.size > 0 => {
                Err(refused(FailureKind::NotEmpty, format!("the file {path} is not empty")))
            }
            Node::File(_) => self.remove_file(path),
            Node::Dir(_) | Node::Link(_) | Node::Device(_) => self.remove_dir(path),
        }
    }

    pub(crate) fn make_file(&mut self, path: &str) -> Result<(), Failure> {
        if let Some(above) = parent(path) {
            self.make_dir(above)?;
        }
        let place = self.place_existing(path)?;
        match self.look(&place) {
            None => self.enter(&place, Node::File(File::default())).map(drop),
            Some(at) if self.is_root(at) => Ok(()),
            Some(at) => self.file(at.ino, path).map(drop),
        }
    }

    pub(crate) fn remove_tree(&mut self, path: &str) -> Result<(), Failure> {
        let Some(place) = self.place(path)? else { return Ok(()) };
        let Some(at) = self.look(&place) else { return Ok(()) };
        self.entries(at.ino, path)?;
        let inside = format!("{path}/");
        let beneath = |target: &str| target == path || target.starts_with(&inside);
        if self.is_root(at) || self.mounts.iter().any(|mount| beneath(&mount.target)) {
            return Err(mount_point(path));
        }
        self.writable(place.dir, path).map_err(|failure| begun(failure.kind, failure.why))?;
        if Self::beneath(&self.nodes, at.ino).into_iter().any(|ino| self.is_mounted_on(ino)) {
            return Err(mount_point(path));
        }
        self.leave(&place)
    }

    pub(crate) fn create_image(&mut self, path: &str, size: u64) -> Result<(), Failure> {
        let place = self.place_existing(path)?;
        let Some(at) = self.look(&place) else {
            return self.enter(&place, Node::File(File::image(size))).map(drop);
        };
        match self.file(at.ino, path)?.size {
            found if found == size => Ok(()),
            found => Err(refused(FailureKind::WrongSize, format!("the image {path} has {found} bytes, not {size}"))),
        }
    }

    /// Opens a file to write to it.
    pub(crate) fn open_to_write(&self, path: &str) -> Result<At, Failure> {
        let at = self.walk_existing(path)?;
        match &self.nodes[&at.ino] {
            Node::File(_) => self.writable(at, path).map(|()| at),
            Node::Dir(_) => Err(refused(FailureKind::Kernel, format!("cannot open {path}: it is a directory"))),
            Node::Link(_) | Node::Device(_) => Err(wrong_kind(path, "a plain file")),
        }
    }

    pub(crate) fn grow_image(&mut self, path: &str, size: u64) -> Result<(), Failure> {
        let at = self.open_to_write(path)?;
        if let Some(Node::File(file)) = self.nodes.get_mut(&at.ino) {
            file.size = file.size.max(size);
        }
        self.sync(&[at.ino]);
        Ok(())
    }

    pub(crate) fn copy_together(&mut self, copies: &[Copying]) -> Result<(), Failure> {
        let mut to_make = Vec::new();
        for copy in copies {
            let place = self.place_existing(&copy.to)?;
            match self.look(&place) {
                None => to_make.push((copy, place)),
                Some(at) if matches!(self.nodes[&at.ino], Node::Dir(_)) => {}
                Some(at) => self.file(at.ino, &copy.to).map(drop)?,
            }
        }
        let mut sources = Vec::new();
        for (copy, _) in &to_make {
            let at = self.walk(&copy.from)?.ok_or_else(|| missing(&copy.from))?;
            self.copyable(at.ino, copy)?;
            sources.push(at.ino);
        }
        self.hold_still(&to_make)?;
        for ((copy, place), source) in to_make.iter().zip(sources) {
            self.writable(place.dir, &copy.to)?;
            // Two copies under one name: the second one finds the first.
            if self.look(place).is_none() {
                let copied = self.copied_now(source);
                let ino = self.enter(place, copied)?;
                let inside = Self::beneath(&self.nodes, ino);
                self.sync(&inside);
            }
        }
        Ok(())
    }

    /// An image, or a directory that nothing is mounted in and that the copy is not to be put into.
    fn copyable(&self, ino: Ino, copy: &Copying) -> Result<(), Failure> {
        let Node::Dir(_) = &self.nodes[&ino] else { return self.file(ino, &copy.from).map(drop) };
        if copy.to == copy.from || copy.to.starts_with(&format!("{}/", copy.from)) {
            let why = format!("the path {:?} is in the directory it is to be a copy of", copy.to);
            return Err(refused(FailureKind::Path, why));
        }
        let inside: BTreeSet<Ino> = Self::beneath(&self.nodes, ino).into_iter().filter(|one| *one != ino).collect();
        if self.mounts.iter().any(|mount| mount.at.is_some_and(|at| inside.contains(&at.ino))) {
            return Err(refused(FailureKind::Busy, format!("something is mounted in {}", copy.from)));
        }
        Ok(())
    }

    /// A copy of a directory as its users see it, or of an image as it is on disk.
    fn copied_now(&mut self, ino: Ino) -> Node {
        match self.nodes[&ino].clone() {
            Node::Dir(entries) => {
                let copies = entries.into_iter().map(|(name, inner)| {
                    let copied = self.copied_now(inner);
                    (name, self.add(copied))
                });
                Node::Dir(copies.collect())
            }
            Node::File(file) if file.filesystem.is_none() => Node::File(file),
            Node::File(_) => Node::File(self.copied(ino)),
            other @ (Node::Link(_) | Node::Device(_)) => other,
        }
    }

    /// What stands still is written out.
    fn hold_still(&mut self, to_make: &[(&Copying, Place<'_>)]) -> Result<(), Failure> {
        let mut held = BTreeSet::new();
        for (copy, place) in to_make {
            let Some(still) = &copy.still else { continue };
            let at = self.walk_dir(still)?;
            if !self.is_root(at) {
                return Err(wrong_kind(still, "the root of a mounted filesystem"));
            }
            let fs = self.fs_of(at.mount);
            if fs == self.fs_of(place.dir.mount) || !held.insert(fs) {
                return Err(refused(FailureKind::Busy, format!("{still} cannot be held still")));
            }
            self.write_out(fs);
        }
        Ok(())
    }

    /// A copy of a file as it is on disk, with copies of all that is in the filesystem in it.
    fn copied(&mut self, image: Ino) -> File {
        let on_disk = self.disk.clone();
        let found = on_disk.get(&image).or_else(|| self.nodes.get(&image));
        let Some(Node::File(file)) = found.cloned() else { return File::default() };
        let filesystem = file.filesystem.map(|inner| {
            let root = self.copied_node(&on_disk, inner.root);
            Filesystem { root, ..inner }
        });
        File { filesystem, ..file }
    }

    fn copied_node(&mut self, from: &BTreeMap<Ino, Node>, ino: Ino) -> Ino {
        let copy = match from.get(&ino) {
            Some(Node::Dir(entries)) => {
                let copies: BTreeMap<String, Ino> =
                    entries.iter().map(|(name, inner)| (name.clone(), self.copied_node(from, *inner))).collect();
                Node::Dir(copies)
            }
            Some(Node::File(_)) => Node::File(self.copied(ino)),
            Some(node @ (Node::Link(_) | Node::Device(_))) => node.clone(),
            None => Node::Dir(BTreeMap::new()),
        };
        self.add(copy)
    }
}
