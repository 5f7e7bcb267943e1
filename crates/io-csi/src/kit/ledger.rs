//! Volumes, kept so that they outlive the driver: one file each, old or new after any crash.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csi::v1;
use prost::Message;
use rustix::fs::{FlockOperation, flock};

use super::is_id;

/// The form of the files; one of a later form is refused, not guessed at.
const FORMAT: u32 = 1;
/// Ends the name of a file that is being written. No id has a dot.
const ASIDE: &str = ".new";

/// What is kept of a volume.
#[derive(Clone, PartialEq, Message)]
#[prost(skip_debug)]
struct Record {
    #[prost(uint32, tag = "1")]
    format: u32,
    /// What was asked for, without its secrets.
    #[prost(message, optional, tag = "2")]
    asked: Option<v1::CreateVolumeRequest>,
    /// What was answered; nothing while it is being made.
    #[prost(message, optional, tag = "3")]
    volume: Option<v1::Volume>,
}

/// What a ledger says of a request for a volume.
pub(super) enum Finding {
    /// It is to be made. That it was begun is recorded.
    New,
    /// It was made by the same request, and was answered like this.
    Same(v1::Volume),
    /// Another volume has its name; why it is another.
    Incompatible(&'static str),
}

/// The driver's volumes on disk. A change is on disk before it is acknowledged, and a file is never half written.
#[derive(Clone)]
pub struct Ledger {
    shared: Arc<Shared>,
}

struct Shared {
    dir: PathBuf,
    /// Held open and locked, so that no second process writes here.
    handle: File,
    records: Mutex<BTreeMap<String, Record>>,
}

impl Ledger {
    /// Opens a ledger in a directory of its own, which is made if it is missing.
    pub fn open(dir: impl AsRef<Path>) -> io::Result<Ledger> {
        let dir = dir.as_ref();
        let said = |what: &str, error: io::Error| {
            io::Error::new(error.kind(), format!("cannot {what} the ledger {}: {error}", dir.display()))
        };
        make(dir).map_err(|error| said("make", error))?;
        let handle = File::open(dir).map_err(|error| said("open", error))?;
        flock(&handle, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            let text = format!("the ledger {} is in use by another process; stop it first", dir.display());
            io::Error::new(io::ErrorKind::ResourceBusy, text)
        })?;
        let records = load(dir).map_err(|error| said("load", error))?;
        Ok(Ledger { shared: Arc::new(Shared { dir: dir.to_owned(), handle, records: Mutex::new(records) }) })
    }

    /// A volume that was made.
    pub fn get(&self, id: &str) -> Option<v1::Volume> {
        self.records().get(id).and_then(|record| record.volume.clone())
    }

    /// What was asked for when a volume was made, without the secrets.
    pub fn request(&self, id: &str) -> Option<v1::CreateVolumeRequest> {
        self.records().get(id).and_then(|record| record.asked.clone())
    }

    /// Every volume that was made, in the order of their ids.
    pub fn volumes(&self) -> Vec<v1::Volume> {
        self.records().values().filter_map(|record| record.volume.clone()).collect()
    }

    /// Records how a volume is now, as when it has grown. One that is not known is not recorded.
    pub fn update(&self, volume: v1::Volume) -> io::Result<bool> {
        let Some(mut record) = self.records().get(&volume.volume_id).cloned() else { return Ok(false) };
        let id = volume.volume_id.clone();
        record.volume = Some(volume);
        self.write(&id, record)?;
        Ok(true)
    }

    pub(super) fn knows(&self, id: &str) -> bool {
        self.records().contains_key(id)
    }

    /// Decides about a request, and records that its volume is begun if it is a new one.
    pub(super) fn begin(&self, id: &str, request: &v1::CreateVolumeRequest) -> io::Result<Finding> {
        let asked = v1::CreateVolumeRequest { secrets: BTreeMap::new(), ..request.clone() };
        let known = self.records().get(id).cloned();
        let Some(known) = known else {
            self.write(id, Record { format: FORMAT, asked: Some(asked), volume: None })?;
            return Ok(Finding::New);
        };
        Ok(match (differs(&known, &asked), known.volume) {
            (Some(why), _) => Finding::Incompatible(why),
            (None, Some(volume)) => Finding::Same(volume),
            (None, None) => Finding::New,
        })
    }

    pub(super) fn finish(&self, id: &str, volume: v1::Volume) -> io::Result<()> {
        let asked = self.request(id);
        self.write(id, Record { format: FORMAT, asked, volume: Some(volume) })
    }

    pub(super) fn forget(&self, id: &str) -> io::Result<()> {
        if !self.knows(id) {
            return Ok(());
        }
        match fs::remove_file(self.shared.dir.join(id)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        self.shared.handle.sync_all()?;
        self.records().remove(id);
        Ok(())
    }

    /// Writes aside, syncs, renames, syncs; only then it is so.
    fn write(&self, id: &str, record: Record) -> io::Result<()> {
        if !is_id(id) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "an id has small letters, digits and dashes only"));
        }
        let (path, aside) = (self.shared.dir.join(id), self.shared.dir.join(format!("{id}{ASIDE}")));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
        file.write_all(&record.encode_to_vec())?;
        file.sync_all()?;
        fs::rename(&aside, &path)?;
        self.shared.handle.sync_all()?;
        self.records().insert(id.to_owned(), record);
        Ok(())
    }

    fn records(&self) -> MutexGuard<'_, BTreeMap<String, Record>> {
        self.shared.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a directory and those above it, so that a power loss does not take them away again with all that is in them.
fn make(dir: &Path) -> io::Result<()> {
    let dir = std::path::absolute(dir)?;
    let missing: Vec<&Path> = dir.ancestors().take_while(|above| !above.exists()).collect();
    DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
    missing.iter().filter_map(|made| made.parent()).try_for_each(|above| File::open(above)?.sync_all())
}

fn load(dir: &Path) -> io::Result<BTreeMap<String, Record>> {
    let mut records = BTreeMap::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.strip_suffix(ASIDE).is_some_and(is_id) {
            // A write that was cut off before it counted.
            fs::remove_file(entry.path())?;
        } else if is_id(&name) {
            let record = Record::decode(fs::read(entry.path())?.as_slice()).ok().filter(|r| r.format == FORMAT);
            let damaged = || io::Error::new(io::ErrorKind::InvalidData, format!("the file {name} cannot be read"));
            records.insert(name.clone(), record.ok_or_else(damaged)?);
        }
    }
    Ok(records)
}

/// Why a volume that is known is not what is asked for, if it is not.
fn differs(known: &Record, asked: &v1::CreateVolumeRequest) -> Option<&'static str> {
    let Some(before) = &known.asked else { return Some("it is not known how it was made") };
    let within = |all: &[v1::VolumeCapability], some: &[v1::VolumeCapability]| some.iter().all(|one| all.contains(one));
    if before.name != asked.name {
        return Some("it has another name");
    }
    if before.parameters != asked.parameters || before.mutable_parameters != asked.mutable_parameters {
        return Some("it has other parameters");
    }
    if before.volume_content_source != asked.volume_content_source {
        return Some("it has another content");
    }
    let (old, new) = (&before.volume_capabilities, &asked.volume_capabilities);
    if !within(old, new) || !within(new, old) {
        return Some("it has other capabilities");
    }
    let size = known.volume.as_ref().map(|volume| volume.capacity_bytes).filter(|size| *size > 0);
    let fits = match (size, &asked.capacity_range) {
        (_, None) => true,
        (Some(size), Some(range)) => {
            size >= range.required_bytes && (range.limit_bytes == 0 || size <= range.limit_bytes)
        }
        (None, Some(_)) => before.capacity_range == asked.capacity_range,
    };
    if !fits {
        return Some("it has another size");
    }
    let places = known.volume.as_ref().map(|volume| volume.accessible_topology.as_slice()).unwrap_or_default();
    let requisite = asked.accessibility_requirements.as_ref().map(|all| all.requisite.as_slice()).unwrap_or_default();
    if !reachable(places, requisite) {
        return Some("it is in another place");
    }
    None
}

/// Whether something in these places can be reached from one of those that are asked for. No places means all.
fn reachable(places: &[v1::Topology], requisite: &[v1::Topology]) -> bool {
    let in_place = |place: &v1::Topology, from: &v1::Topology| {
        place.segments.iter().all(|(key, value)| from.segments.get(key) == Some(value))
    };
    places.is_empty()
        || requisite.is_empty()
        || requisite.iter().any(|from| places.iter().any(|place| in_place(place, from)))
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
