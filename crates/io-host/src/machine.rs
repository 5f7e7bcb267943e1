//! The real machine behind the one door.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use control::host::{Failure, FailureKind, Looped, Machine, Mounted, Op, ProcessState, Reply};

use crate::error::os;
use crate::{Host, list_dir, loops, mounts, read_file};

/// A look at the machine failed, and changed nothing.
fn unseen(doing: &'static str, path: &str) -> impl FnOnce(io::Error) -> Failure {
    move |error| match error.downcast::<crate::HostError>() {
        Ok(ours) => ours.into(),
        Err(error) => os(doing, path, error, false).into(),
    }
}

/// Through a shared reference, as a host may be used by many threads at once.
impl Machine for &Host {
    fn perform(&mut self, op: &Op) -> Result<Reply, Failure> {
        Host::perform(self, op).map_err(Failure::from)
    }

    fn mounts(&mut self) -> Result<Vec<Mounted>, Failure> {
        let all = mounts().map_err(unseen("read", "the mount table"))?;
        let told = |entry: crate::MountEntry| Mounted {
            target: entry.target,
            source: entry.source,
            fstype: entry.fstype,
            root: entry.root,
            read_only: entry.read_only,
            shared: entry.shared.is_some(),
        };
        Ok(all.into_iter().map(told).collect())
    }

    fn loops(&mut self) -> Result<Vec<Looped>, Failure> {
        let all = loops().map_err(unseen("list", "the loop devices"))?;
        let told = |entry: crate::LoopEntry| {
            let deleted = entry.backing_path.strip_suffix(" (deleted)").map(str::to_owned);
            let (device, image) = (entry.device, deleted.clone().unwrap_or(entry.backing_path));
            Looped { device, image, deleted: deleted.is_some() }
        };
        Ok(all.into_iter().map(told).collect())
    }

    fn read_file(&mut self, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        read_file(Path::new(path)).map_err(unseen("read", path))
    }

    fn list_dir(&mut self, path: &str) -> Result<Vec<String>, Failure> {
        list_dir(Path::new(path)).map_err(unseen("list", path))
    }

    fn processes(&mut self) -> Result<BTreeMap<String, ProcessState>, Failure> {
        Host::processes(self).map_err(|error| Failure {
            kind: FailureKind::Supervisor,
            certain: true,
            why: format!("the state of processes cannot be read: {error}"),
        })
    }
}
