//! Names, and what is behind them.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use control::host::{Failure, FailureKind};

use crate::{Kernel, begun, refused};

/// The number of something with a name.
pub(crate) type Ino = u32;

/// The root of the machine's own filesystem, and that of `/dev`.
pub(crate) const ROOT: Ino = 1;
pub(crate) const DEVICES: Ino = 2;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    Dir(BTreeMap<String, Ino>),
    File(File),
    /// A symbolic link, which is never followed.
    Link(String),
    /// A loop device by its number.
    Device(u32),
}

/// A plain file: these bytes, zeros up to its size, and perhaps a filesystem in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct File {
    pub head: Vec<u8>,
    pub size: u64,
    /// How much of it takes room.
    pub used: u64,
    pub filesystem: Option<Filesystem>,
}

/// A filesystem in a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Filesystem {
    pub fstype: String,
    pub size: u64,
    pub root: Ino,
}

impl File {
    pub(crate) fn of(bytes: &[u8]) -> File {
        File { head: bytes.to_vec(), size: bytes.len() as u64, used: bytes.len() as u64, filesystem: None }
    }

    pub(crate) fn image(size: u64) -> File {
        File { size, ..File::default() }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head.clone();
        bytes.resize(usize::try_from(self.size).unwrap_or(usize::MAX), 0);
        bytes
    }
}

/// Something reached by a path: through which mount, and what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct At {
    pub mount: u32,
    pub ino: Ino,
}

/// A name in a directory that is there.
pub(crate) struct Place<'a> {
    pub dir: At,
    pub name: &'a str,
    pub path: &'a str,
}

fn components(path: &str) -> Result<Vec<&str>, Failure> {
    let bad = |why: &str| Err(refused(FailureKind::Path, format!("the path {path:?} {why}")));
    if !path.starts_with('/') {
        return bad("is not absolute");
    }
    if path.contains('\0') {
        return bad("contains a NUL byte");
    }
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return bad("contains '..'");
    }
    if parts.is_empty() {
        return bad("is the root directory");
    }
    Ok(parts)
}

pub(crate) fn missing(path: &str) -> Failure {
    refused(FailureKind::Missing, format!("{path} does not exist"))
}

pub(crate) fn wrong_kind(path: &str, wanted: &str) -> Failure {
    refused(FailureKind::WrongKind, format!("{path} is not {wanted}"))
}

impl Kernel {
    pub(crate) fn plant_roots(&mut self) {
        // The directory `/dev` itself, which the mount of the devices covers.
        let dev = DEVICES + 1;
        self.nodes.insert(ROOT, Node::Dir(BTreeMap::from([("dev".to_string(), dev)])));
        self.nodes.insert(DEVICES, Node::Dir(BTreeMap::new()));
        self.nodes.insert(dev, Node::Dir(BTreeMap::new()));
        self.disk = self.nodes.clone();
    }

    /// The smallest number nothing has.
    pub(crate) fn add(&mut self, node: Node) -> Ino {
        let free = |ino: &Ino| !self.nodes.contains_key(ino) && !self.disk.contains_key(ino);
        let ino = (ROOT..).find(free).unwrap_or(Ino::MAX);
        self.nodes.insert(ino, node);
        ino
    }

    fn root_at(&self) -> At {
        self.covered_by(At { mount: self.mounts[0].id, ino: ROOT })
    }

    /// What is seen at a place: the root of what is mounted there, and of what is mounted on that.
    pub(crate) fn covered_by(&self, mut at: At) -> At {
        while let Some(over) = self.mounts.iter().find(|mount| mount.at == Some(at)) {
            at = At { mount: over.id, ino: over.root };
        }
        at
    }

    fn step(&self, at: At, name: &str, path: &str) -> Result<Option<At>, Failure> {
        let Some(ino) = self.entries(at.ino, path)?.get(name) else { return Ok(None) };
        if matches!(self.nodes[ino], Node::Link(_)) {
            return Err(refused(FailureKind::Symlink, format!("{path} leads through a symbolic link")));
        }
        Ok(Some(self.covered_by(At { mount: at.mount, ino: *ino })))
    }

    fn walk_parts(&self, parts: &[&str], path: &str) -> Result<Option<At>, Failure> {
        let mut at = self.root_at();
        for part in parts {
            match self.step(at, part, path)? {
                Some(next) => at = next,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    /// What is at a path, no link followed.
    pub(crate) fn walk(&self, path: &str) -> Result<Option<At>, Failure> {
        self.walk_parts(&components(path)?, path)
    }

    pub(crate) fn walk_existing(&self, path: &str) -> Result<At, Failure> {
        self.walk(path)?.ok_or_else(|| missing(path))
    }

    pub(crate) fn walk_dir(&self, path: &str) -> Result<At, Failure> {
        let at = self.walk_existing(path)?;
        self.entries(at.ino, path)?;
        Ok(at)
    }

    /// The directory a path is in, if it is there.
    pub(crate) fn place<'a>(&self, path: &'a str) -> Result<Option<Place<'a>>, Failure> {
        let parts = components(path)?;
        let Some((name, above)) = parts.split_last() else { return Ok(None) };
        let Some(dir) = self.walk_parts(above, path)? else { return Ok(None) };
        self.entries(dir.ino, path)?;
        Ok(Some(Place { dir, name, path }))
    }

    pub(crate) fn place_existing<'a>(&self, path: &'a str) -> Result<Place<'a>, Failure> {
        self.place(path)?.ok_or_else(|| missing(path))
    }

    /// What has that name there, links seen as links.
    pub(crate) fn look(&self, place: &Place<'_>) -> Option<At> {
        let Some(Node::Dir(entries)) = self.nodes.get(&place.dir.ino) else { return None };
        let ino = *entries.get(place.name)?;
        Some(self.covered_by(At { mount: place.dir.mount, ino }))
    }

    pub(crate) fn entries(&self, dir: Ino, path: &str) -> Result<&BTreeMap<String, Ino>, Failure> {
        match &self.nodes[&dir] {
            Node::Dir(entries) => Ok(entries),
            Node::File(_) | Node::Link(_) | Node::Device(_) => Err(wrong_kind(path, "a directory")),
        }
    }

    pub(crate) fn is_root(&self, at: At) -> bool {
        self.mounts.iter().any(|mount| mount.id == at.mount && mount.root == at.ino)
    }

    /// Gives something a name, durably.
    pub(crate) fn enter(&mut self, place: &Place<'_>, node: Node) -> Result<Ino, Failure> {
        let ino = self.enter_for_now(place, node)?;
        self.sync(&[ino, place.dir.ino]);
        self.forget_unreachable();
        Ok(ino)
    }

    /// Gives something a name, until power is lost.
    fn enter_for_now(&mut self, place: &Place<'_>, node: Node) -> Result<Ino, Failure> {
        self.writable(place.dir, place.path)?;
        let ino = self.add(node);
        self.link(place.dir.ino, place.name, Some(ino));
        Ok(ino)
    }

    /// Gives a name in a directory to something else, or takes it away.
    pub(crate) fn link(&mut self, dir: Ino, name: &str, ino: Option<Ino>) {
        if let Some(Node::Dir(entries)) = self.nodes.get_mut(&dir) {
            match ino {
                Some(ino) => entries.insert(name.to_string(), ino),
                None => entries.remove(name),
            };
        }
    }

    /// Takes a name away, durably.
    pub(crate) fn leave(&mut self, place: &Place<'_>) -> Result<(), Failure> {
        self.writable(place.dir, place.path)?;
        self.link(place.dir.ino, place.name, None);
        self.sync(&[place.dir.ino]);
        self.forget_unreachable();
        Ok(())
    }

    pub(crate) fn writable(&self, at: At, path: &str) -> Result<(), Failure> {
        if self.mounts.iter().any(|mount| mount.id == at.mount && self.is_read_only(mount)) {
            return Err(refused(FailureKind::ReadOnly, format!("cannot write to {path}: it is read-only")));
        }
        Ok(())
    }

    /// Makes a directory and the missing ones above it.
    pub(crate) fn make_dir(&mut self, path: &str) -> Result<At, Failure> {
        self.make_dirs(path, true)
    }

    /// The same for a place to mount at, which is not durable.
    pub(crate) fn make_place(&mut self, path: &str) -> Result<At, Failure> {
        self.make_dirs(path, false)
    }

    fn make_dirs(&mut self, path: &str, durable: bool) -> Result<At, Failure> {
        let mut at = self.root_at();
        for part in components(path)? {
            at = match self.step(at, part, path)? {
                Some(next) => {
                    self.entries(next.ino, path)?;
                    next
                }
                None => {
                    let place = Place { dir: at, name: part, path };
                    let empty = Node::Dir(BTreeMap::new());
                    let made = if durable { self.enter(&place, empty) } else { self.enter_for_now(&place, empty) };
                    let ino = made.map_err(|failure| begun(failure.kind, failure.why))?;
                    At { mount: at.mount, ino }
                }
            };
        }
        Ok(at)
    }

    /// What these are now survives the loss of power. A name that survives because its directory does is a name for
    /// something empty, if that was never written out itself.
    pub(crate) fn sync(&mut self, inos: &[Ino]) {
        for ino in inos {
            let Some(node) = self.nodes.get(ino).cloned() else { continue };
            if let Node::Dir(entries) = &node {
                for inner in entries.values() {
                    let bare = match self.nodes.get(inner) {
                        Some(Node::Dir(_)) => Node::Dir(BTreeMap::new()),
                        Some(other @ (Node::Link(_) | Node::Device(_))) => other.clone(),
                        Some(Node::File(_)) | None => Node::File(File::default()),
                    };
                    self.disk.entry(*inner).or_insert(bare);
                }
            }
            self.disk.insert(*ino, node);
        }
    }

    /// Everything beneath, the thing itself first.
    pub(crate) fn beneath(nodes: &BTreeMap<Ino, Node>, top: Ino) -> Vec<Ino> {
        let (mut found, mut next) = (BTreeSet::new(), vec![top]);
        let mut order = Vec::new();
        while let Some(ino) = next.pop() {
            if !found.insert(ino) {
                continue;
            }
            order.push(ino);
            match nodes.get(&ino) {
                Some(Node::Dir(entries)) => next.extend(entries.values().copied()),
                Some(Node::File(file)) => next.extend(file.filesystem.as_ref().map(|inner| inner.root)),
                Some(Node::Link(_) | Node::Device(_)) | None => {}
            }
        }
        order
    }

    /// What has no name and no user is gone.
    pub(crate) fn forget_unreachable(&mut self) {
        let used = self.mounts.iter().map(|mount| mount.root).chain(self.loops.values().map(|entry| entry.ino));
        let mut kept: BTreeSet<Ino> = BTreeSet::new();
        for top in used.chain([ROOT, DEVICES]).collect::<Vec<_>>() {
            kept.extend(Self::beneath(&self.nodes, top));
        }
        self.nodes.retain(|ino, _| kept.contains(ino));
        let kept: BTreeSet<Ino> = Self::beneath(&self.disk, ROOT).into_iter().chain([DEVICES]).collect();
        self.disk.retain(|ino, _| kept.contains(ino));
    }

    /// The path from one directory down to something in it.
    pub(crate) fn path_between(&self, from: Ino, to: Ino) -> Option<String> {
        if from == to {
            return Some(String::new());
        }
        let Some(Node::Dir(entries)) = self.nodes.get(&from) else { return None };
        entries.iter().find_map(|(name, ino)| Some(format!("/{name}{}", self.path_between(*ino, to)?)))
    }

    /// The file something is.
    pub(crate) fn file(&self, ino: Ino, path: &str) -> Result<&File, Failure> {
        match &self.nodes[&ino] {
            Node::File(file) => Ok(file),
            Node::Dir(_) | Node::Link(_) | Node::Device(_) => Err(wrong_kind(path, "a plain file")),
        }
    }
}
