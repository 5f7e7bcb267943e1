//! Compares what the driver says, what is on disk and what the kernel shows with what its users were told.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::remove_dir;
use std::path::{Path, PathBuf};

use csi::{Call, Response, v1};

use crate::client::{Client, Step};
use crate::driver::{Caller, Driver};
use crate::model::{Kind, Level};

/// Where the driver keeps what it writes.
const FOLDERS: [&str; 8] =
    ["volumes", "snapshots", "groups", "images", "snapshot-images", "directories", "snapshot-directories", "mounts"];

/// What must be, and what may be because a call's answer was lost.
#[derive(Default)]
struct Wanted {
    must: BTreeSet<String>,
    may: BTreeSet<String>,
}

impl Wanted {
    fn add(&mut self, name: &str, there: bool, unsure: bool) {
        if unsure {
            self.may.insert(name.to_owned());
        } else if there {
            self.must.insert(name.to_owned());
        }
    }

    /// What is missing or too much.
    fn compare(&self, what: &str, found: &BTreeSet<String>, wrong: &mut Vec<String>) {
        for missing in self.must.difference(found) {
            wrong.push(format!("{what} {missing} is missing"));
        }
        for more in found.iter().filter(|name| !self.must.contains(*name) && !self.may.contains(*name)) {
            wrong.push(format!("{what} {more} should not be there"));
        }
    }
}

/// Everything that disagrees. Calls whose answer was lost excuse only what they work on.
pub fn disagreements(driver: &Driver, caller: &Caller, clients: &[Client]) -> Vec<String> {
    let mut wrong = Vec::new();
    lists(caller, clients, &mut wrong);
    files(driver, clients, &mut wrong);
    kernel(driver, clients, &mut wrong);
    for client in clients {
        let unsure = pending_volume(client);
        let published = client.volumes.iter().enumerate().filter(|(_, volume)| volume.level == Level::Published);
        wrong.extend(published.filter(|(at, _)| unsure != Some(*at)).filter_map(|(_, volume)| volume.wrong()));
    }
    wrong
}

/// Nothing of anybody: what must hold when everything was deleted.
pub fn leftovers(driver: &Driver) -> Vec<String> {
    let mut left: Vec<String> = driver.mounts().iter().map(|target| format!("mounted: {}", target.display())).collect();
    left.extend(driver.loops().into_iter().map(|(file, device)| format!("{device} on {}", file.display())));
    for folder in FOLDERS {
        left.extend(names(&driver.path("state").join(folder)).into_iter().map(|name| format!("{folder}/{name}")));
    }
    left.extend(names(&driver.path("pods")).into_iter().map(|name| format!("pods/{name}")));
    // A staging directory is its caller's to remove; that works only if nothing is in it.
    let stagings = names(&driver.path("stage")).into_iter();
    left.extend(stagings.filter(|name| remove_dir(driver.path("stage").join(name)).is_err()));
    left
}

fn pending_volume(client: &Client) -> Option<usize> {
    match client.pending {
        Some(Step::Raise(at) | Step::Lower(at) | Step::Grow(at, _) | Step::GrowHere(at)) => Some(at),
        Some(Step::Take(_) | Step::Drop(_)) | None => None,
    }
}

fn pending_snapshot(client: &Client) -> Option<usize> {
    match client.pending {
        Some(Step::Take(at) | Step::Drop(at)) => Some(at),
        Some(Step::Raise(_) | Step::Lower(_) | Step::Grow(..) | Step::GrowHere(_)) | None => None,
    }
}

/// The volumes that must and may be at a level or above it, of these kinds.
fn volumes(clients: &[Client], least: Level, kinds: &[Kind]) -> Wanted {
    let mut wanted = Wanted::default();
    for client in clients {
        for (at, volume) in client.volumes.iter().enumerate().filter(|(_, volume)| kinds.contains(&volume.kind)) {
            // Only the level a lost call moves to or from is in doubt.
            let unsure = match client.pending {
                Some(Step::Raise(moving)) => moving == at && volume.level.above() == least,
                Some(Step::Lower(moving)) => moving == at && volume.level == least,
                Some(Step::Grow(..) | Step::GrowHere(_) | Step::Take(_) | Step::Drop(_)) | None => false,
            };
            wanted.add(&volume.name, volume.level >= least, unsure);
        }
    }
    wanted
}

fn snapshots(clients: &[Client]) -> Wanted {
    let mut wanted = Wanted::default();
    for client in clients {
        for (at, snapshot) in client.snapshots.iter().enumerate() {
            wanted.add(&snapshot.name, snapshot.there, pending_snapshot(client) == Some(at));
        }
    }
    wanted
}

const ALL: &[Kind] = &[Kind::Files, Kind::Block, Kind::Directory];
const IMAGES: &[Kind] = &[Kind::Files, Kind::Block];

/// ListVolumes and ListSnapshots say what is there, no more and no less, with the sizes that were acknowledged.
fn lists(caller: &Caller, clients: &[Client], wrong: &mut Vec<String>) {
    let Ok(Response::ListVolumes(answer)) = caller.call(Call::ListVolumes(Default::default())) else {
        return wrong.push("ListVolumes is not answered".into());
    };
    let listed: BTreeMap<String, i64> =
        answer.entries.into_iter().filter_map(|entry| entry.volume).map(sized).collect();
    let known = listed.keys().cloned().collect();
    volumes(clients, Level::Made, ALL).compare("the listed volume", &known, wrong);
    for client in clients {
        let unsure = pending_volume(client);
        for (_, volume) in client.volumes.iter().enumerate().filter(|(at, _)| unsure != Some(*at)) {
            if let Some(size) = listed.get(&volume.name)
                && *size != volume.size
            {
                wrong.push(format!("{} has {size} bytes, acknowledged were {}", volume.name, volume.size));
            }
        }
    }
    let Ok(Response::ListSnapshots(answer)) = caller.call(Call::ListSnapshots(Default::default())) else {
        return wrong.push("ListSnapshots is not answered".into());
    };
    let known = answer.entries.into_iter().filter_map(|entry| entry.snapshot).map(|one| one.snapshot_id).collect();
    snapshots(clients).compare("the listed snapshot", &known, wrong);
}

fn sized(volume: v1::Volume) -> (String, i64) {
    (volume.volume_id, volume.capacity_bytes)
}

/// Records and what they describe: nothing without a record, nothing half written.
fn files(driver: &Driver, clients: &[Client], wrong: &mut Vec<String>) {
    let calm = clients.iter().all(|client| client.pending.is_none());
    let state = driver.path("state");
    let all = |folder: &str| names(&state.join(folder));
    let whole = |folder: &str, end: &str| -> BTreeSet<String> {
        let partial = |name: &String| name.starts_with('.');
        all(folder)
            .into_iter()
            .filter(|name| !partial(name))
            .map(|name| name.trim_end_matches(end).to_owned())
            .collect()
    };
    for folder in FOLDERS {
        for name in all(folder).into_iter().filter(|name| calm && name.starts_with('.')) {
            wrong.push(format!("{folder}/{name} is a leftover"));
        }
    }
    volumes(clients, Level::Made, ALL).compare("the record of", &whole("volumes", ".json"), wrong);
    let images = bytes(&state.join("volumes"), "image");
    images.compare("the image of", &whole("images", ".img"), wrong);
    let directories = bytes(&state.join("volumes"), "directory");
    directories.compare("the directory of", &whole("directories", ""), wrong);
    snapshots(clients).compare("the record of snapshot", &whole("snapshots", ".json"), wrong);
    let copies = bytes(&state.join("snapshots"), "image");
    copies.compare("the image of snapshot", &whole("snapshot-images", ".img"), wrong);
    let copies = bytes(&state.join("snapshots"), "directory");
    copies.compare("the directory of snapshot", &whole("snapshot-directories", ""), wrong);
}

/// What the records in a folder say of the bytes they describe: they come with the first use and go with the record.
fn bytes(folder: &Path, kind: &str) -> Wanted {
    let mut wanted = Wanted::default();
    for file in names(folder).into_iter().filter(|name| name.ends_with(".json") && !name.starts_with('.')) {
        // One that goes in this moment is gone.
        let Ok(text) = std::fs::read(folder.join(&file)) else { continue };
        let record: serde_json::Value = serde_json::from_slice(&text).unwrap();
        if record["kind"].as_str().unwrap_or("image") == kind {
            let (ready, has) = (record["state"] == "ready", record["bytes"].as_str().unwrap_or("there"));
            wanted.add(file.trim_end_matches(".json"), has == "there", !ready || has == "begun");
        }
    }
    wanted
}

/// Loop devices and mounts, each once.
fn kernel(driver: &Driver, clients: &[Client], wrong: &mut Vec<String>) {
    let loops = driver.loops();
    let mut attached = BTreeSet::new();
    for (file, device) in &loops {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        if !attached.insert(name.trim_end_matches(".img").to_owned()) {
            wrong.push(format!("{device} is a second device on {}", file.display()));
        }
    }
    volumes(clients, Level::Staged, IMAGES).compare("the loop device of", &attached, wrong);
    let mut mounted: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for target in driver.mounts() {
        *mounted.entry(target).or_default() += 1;
    }
    for (target, times) in mounted.iter().filter(|(_, times)| **times > 1) {
        wrong.push(format!("{} is mounted {times} times", target.display()));
    }
    let beneath = |folder: &str| -> BTreeSet<String> {
        let folder = driver.path(folder);
        let here = mounted.keys().filter_map(|target| target.strip_prefix(&folder).ok());
        here.map(|name| name.to_string_lossy().into_owned()).collect()
    };
    volumes(clients, Level::Published, ALL).compare("the published mount of", &beneath("pods"), wrong);
    volumes(clients, Level::Staged, &[Kind::Files, Kind::Directory]).compare(
        "the staged mount of",
        &beneath("stage"),
        wrong,
    );
    let strays = mounted
        .keys()
        .filter(|target| !target.starts_with(driver.path("pods")) && !target.starts_with(driver.path("stage")));
    wrong.extend(strays.map(|target| format!("{} should not be mounted", target.display())));
}

fn names(folder: &Path) -> BTreeSet<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return BTreeSet::new() };
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}
