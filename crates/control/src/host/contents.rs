//! What the node itself puts into volumes, and how processes see it. Nothing of it is printed that may be secret.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use super::Process;

/// Bytes that may be secret: cheap to hand on, and never printed.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentBytes(pub Arc<[u8]>);

impl fmt::Debug for ContentBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl From<Vec<u8>> for ContentBytes {
    fn from(bytes: Vec<u8>) -> ContentBytes {
        ContentBytes(bytes.into())
    }
}

/// A file of a directory that shows exactly some files.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShownFile {
    /// What is in it.
    pub bytes: ContentBytes,
    /// Who may read it, as `chmod` has it.
    pub mode: u32,
    /// Its owner, unless that is root.
    pub user: Option<u32>,
}

/// What a place of the machine must be, in the words of `hostPath.type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HostPathKind {
    /// Whatever is there.
    #[default]
    Any,
    /// A directory, which is made if nothing is there.
    DirectoryOrCreate,
    /// A directory that is there.
    Directory,
    /// A plain file, which is made if nothing is there.
    FileOrCreate,
    /// A plain file.
    File,
    /// A Unix socket.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
}

impl HostPathKind {
    /// The one of this name; `None` if there is none.
    pub fn named(name: &str) -> Option<HostPathKind> {
        Some(match name {
            "" => HostPathKind::Any,
            "DirectoryOrCreate" => HostPathKind::DirectoryOrCreate,
            "Directory" => HostPathKind::Directory,
            "FileOrCreate" => HostPathKind::FileOrCreate,
            "File" => HostPathKind::File,
            "Socket" => HostPathKind::Socket,
            "CharDevice" => HostPathKind::CharDevice,
            "BlockDevice" => HostPathKind::BlockDevice,
            _others => return None,
        })
    }
}

/// Which mounts made later, beneath a mount of a process, are seen on the other side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Propagation {
    /// None, either way.
    #[default]
    None,
    /// Those of the machine are seen by the process.
    HostToContainer,
    /// And those of the process by the machine.
    Bidirectional,
}

/// Names and places, never the environment and what was made of it, which may hold secrets.
impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut print = f.debug_struct("Process");
        print.field("name", &self.name);
        if !self.confidential {
            print.field("command", &self.command);
        }
        let names: Vec<&String> = self.environment.keys().collect();
        print.field("working_dir", &self.working_dir).field("environment", &names).field("mounts", &self.mounts);
        print.field("sandbox", &self.sandbox).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    // What is in a secret is never printed.
    #[test]
    fn bytes_are_counted_and_never_printed() {
        let file = ShownFile { bytes: b"canary".to_vec().into(), mode: 0o400, user: None };
        let printed = format!("{file:?}");
        assert!(printed.contains("6 bytes") && !printed.contains("canary") && !printed.contains("99"), "{printed}");
    }
}
