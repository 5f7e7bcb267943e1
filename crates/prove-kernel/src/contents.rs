//! What the node itself puts into volumes: filesystems in memory, files that change all at once, places of the machine.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};

use control::host::{Failure, FailureKind, HostPathKind, ShownFile, Usage};

use crate::mounts::{Fs, Mount};
use crate::tree::{File, Node, missing, wrong_kind};
use crate::{Kernel, begun, refused};

/// The directory that the files of a volume are in. A real machine calls each by another name.
const SHOWN: &str = "..1";
const DATA: &str = "..data";

impl Kernel {
    pub(crate) fn mount_memory(&mut self, target: &str) -> Result<(), Failure> {
        let at = self.make_place(target)?;
        if let Some(there) = self.mounts.iter().find(|mount| mount.id == at.mount && mount.root == at.ino) {
            let same = there.fs == Fs::Memory(at.ino) && !there.read_only;
            let otherwise = || format!("{target} has another mount than the one asked for");
            return if same { Ok(()) } else { Err(refused(FailureKind::MountedOtherwise, otherwise())) };
        }
        let root = self.add(Node::Dir(BTreeMap::new()));
        let made = Mount {
            id: 0,
            at: None,
            root,
            fs: Fs::Memory(root),
            source: "tmpfs".to_string(),
            target: target.to_string(),
            read_only: false,
            flags: ["nosuid", "nodev", "relatime"].map(String::from).into(),
            group: None,
        };
        self.attach(made, at);
        Ok(())
    }

    pub(crate) fn show_files(&mut self, path: &str, files: &BTreeMap<String, ShownFile>) -> Result<(), Failure> {
        let bad = |name: &&String| {
            name.starts_with("..") || name.split('/').any(|part| part.is_empty() || part == "." || part == "..")
        };
        if let Some(name) = files.keys().find(bad) {
            return Err(refused(FailureKind::Path, format!("the path {name:?} is no path within a volume")));
        }
        let at = self.make_place(path)?;
        self.writable(at, path).map_err(|failure| begun(failure.kind, failure.why))?;
        // What was there goes, and what is to be there comes: nobody sees a moment between.
        self.nodes.insert(at.ino, Node::Dir(BTreeMap::new()));
        let shown = self.add(Node::Dir(BTreeMap::new()));
        self.link(at.ino, SHOWN, Some(shown));
        let data = self.add(Node::Link(SHOWN.to_string()));
        self.link(at.ino, DATA, Some(data));
        for (name, file) in files {
            let mut dir = shown;
            let mut parts = name.split('/').peekable();
            while let Some(part) = parts.next() {
                let there = match &self.nodes[&dir] {
                    Node::Dir(entries) => entries.get(part).copied(),
                    Node::File(_) | Node::Link(_) | Node::Device(_) => return Err(wrong_kind(path, "a directory")),
                };
                dir = match (there, parts.peek()) {
                    (Some(there), _) => there,
                    (None, next) => {
                        let node = match next {
                            Some(_) => Node::Dir(BTreeMap::new()),
                            None => Node::File(File::of(&file.bytes.0)),
                        };
                        let ino = self.add(node);
                        self.link(dir, part, Some(ino));
                        ino
                    }
                };
            }
            let first = name.split('/').next().unwrap_or(name);
            let link = self.add(Node::Link(format!("{DATA}/{first}")));
            self.link(at.ino, first, Some(link));
        }
        self.forget_unreachable();
        Ok(())
    }

    pub(crate) fn host_path(&mut self, path: &str, kind: HostPathKind) -> Result<(), Failure> {
        let Some(at) = self.walk(path)? else {
            return match kind {
                HostPathKind::Any | HostPathKind::DirectoryOrCreate => self.make_place(path).map(drop),
                HostPathKind::FileOrCreate => self.make_file(path),
                HostPathKind::Directory
                | HostPathKind::File
                | HostPathKind::Socket
                | HostPathKind::CharDevice
                | HostPathKind::BlockDevice => Err(missing(path)),
            };
        };
        let (fits, wanted) = match (kind, &self.nodes[&at.ino]) {
            (HostPathKind::Any, _) => return Ok(()),
            (HostPathKind::Directory | HostPathKind::DirectoryOrCreate, node) => {
                (matches!(node, Node::Dir(_)), "a directory")
            }
            (HostPathKind::File | HostPathKind::FileOrCreate, node) => (matches!(node, Node::File(_)), "a plain file"),
            (HostPathKind::BlockDevice, node) => (matches!(node, Node::Device(_)), "a block device"),
            (HostPathKind::Socket | HostPathKind::CharDevice, _) => (false, "a socket or a character device"),
        };
        if fits { Ok(()) } else { Err(wrong_kind(path, wanted)) }
    }

    pub(crate) fn measure_tree(&self, path: &str) -> Result<Usage, Failure> {
        let Some(at) = self.walk(path)? else { return Ok(Usage::default()) };
        self.entries(at.ino, path)?;
        let inside = Self::beneath(&self.nodes, at.ino);
        let used = inside.iter().map(|ino| match &self.nodes[ino] {
            Node::File(file) => file.used,
            Node::Dir(_) | Node::Link(_) | Node::Device(_) => 0,
        });
        Ok(Usage { bytes_used: used.sum(), inodes_used: inside.len() as u64, ..Usage::default() })
    }
}
