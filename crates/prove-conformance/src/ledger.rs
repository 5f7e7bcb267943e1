//! The memory of what a case created, and how it is taken away.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use csi::{Call, Finality, Response, Status, classify, v1};

use crate::Suite;
use crate::ask::Ask;
use crate::host;

/// A busy volume is asked for so often, and so far apart.
const TRIES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(100);

/// A group's id and its members'.
type Group = (String, Vec<String>);

#[derive(Default)]
pub(crate) struct Ledger(Mutex<Memory>);

/// What exists, as far as is known. A request is entered before it is sent: it may be done without our hearing of it.
#[derive(Default)]
struct Memory {
    published: Vec<(String, String)>,
    staged: Vec<(String, String)>,
    attached: Vec<(String, String)>,
    groups: BTreeMap<String, (v1::CreateVolumeGroupSnapshotRequest, Option<Group>)>,
    snapshots: BTreeMap<(String, String), (v1::CreateSnapshotRequest, Option<String>)>,
    volumes: BTreeMap<String, (v1::CreateVolumeRequest, Vec<String>)>,
    paths: Vec<PathBuf>,
}

impl Ledger {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a path to be removed at the end.
    pub fn path(&self, path: &Path) {
        self.memory().paths.push(path.to_owned());
    }

    /// A call is about to be made.
    pub fn before(&self, call: &Call) {
        let mut memory = self.memory();
        match call {
            Call::CreateVolume(r) => {
                memory.volumes.entry(r.name.clone()).or_insert_with(|| (r.clone(), Vec::new()));
            }
            Call::CreateSnapshot(r) => {
                let key = (r.name.clone(), r.source_volume_id.clone());
                memory.snapshots.entry(key).or_insert_with(|| (r.clone(), None));
            }
            Call::CreateVolumeGroupSnapshot(r) => {
                memory.groups.entry(r.name.clone()).or_insert_with(|| (r.clone(), None));
            }
            Call::ControllerPublishVolume(r) => {
                remember(&mut memory.attached, &r.volume_id, &r.node_id);
            }
            Call::NodeStageVolume(r) => remember(&mut memory.staged, &r.volume_id, &r.staging_target_path),
            Call::NodePublishVolume(r) => remember(&mut memory.published, &r.volume_id, &r.target_path),
            _ => {}
        }
    }

    /// A call was made.
    pub fn after(&self, call: &Call, answer: &Result<Response, Status>) {
        let mut memory = self.memory();
        match (call, answer) {
            (Call::CreateVolume(r), Ok(Response::CreateVolume(answer))) => {
                if let (Some(volume), Some(known)) = (&answer.volume, memory.volumes.get_mut(&r.name))
                    && !known.1.contains(&volume.volume_id)
                {
                    known.1.push(volume.volume_id.clone());
                }
            }
            (Call::CreateVolume(r), Err(status)) if refused(call, status) => {
                memory.volumes.retain(|name, known| *name != r.name || !known.1.is_empty());
            }
            (Call::CreateSnapshot(r), Ok(Response::CreateSnapshot(answer))) => {
                let key = (r.name.clone(), r.source_volume_id.clone());
                if let (Some(snapshot), Some(known)) = (&answer.snapshot, memory.snapshots.get_mut(&key)) {
                    known.1 = Some(snapshot.snapshot_id.clone());
                }
            }
            (Call::CreateSnapshot(r), Err(status)) if refused(call, status) => {
                let key = (r.name.clone(), r.source_volume_id.clone());
                memory.snapshots.retain(|name, known| *name != key || known.1.is_some());
            }
            (Call::CreateVolumeGroupSnapshot(r), Ok(Response::CreateVolumeGroupSnapshot(answer))) => {
                if let (Some(group), Some(known)) = (&answer.group_snapshot, memory.groups.get_mut(&r.name)) {
                    let members = group.snapshots.iter().map(|s| s.snapshot_id.clone()).collect();
                    known.1 = Some((group.group_snapshot_id.clone(), members));
                }
            }
            (Call::CreateVolumeGroupSnapshot(r), Err(status)) if refused(call, status) => {
                memory.groups.retain(|name, known| *name != r.name || known.1.is_some());
            }
            (Call::DeleteVolume(r), Ok(_)) => {
                for known in memory.volumes.values_mut() {
                    known.1.retain(|id| *id != r.volume_id);
                }
                memory.volumes.retain(|_, known| !known.1.is_empty());
            }
            (Call::DeleteSnapshot(r), Ok(_)) => {
                memory.snapshots.retain(|_, known| known.1.as_ref() != Some(&r.snapshot_id));
            }
            (Call::DeleteVolumeGroupSnapshot(r), Ok(_)) => {
                memory.groups.retain(|_, known| known.1.as_ref().is_none_or(|(id, _)| *id != r.group_snapshot_id));
            }
            (Call::ControllerUnpublishVolume(r), Ok(_)) => {
                memory
                    .attached
                    .retain(|(id, node)| *id != r.volume_id || (!r.node_id.is_empty() && *node != r.node_id));
            }
            (Call::NodeUnstageVolume(r), Ok(_)) => {
                memory.staged.retain(|known| *known != (r.volume_id.clone(), r.staging_target_path.clone()));
            }
            (Call::NodeUnpublishVolume(r), Ok(_)) => {
                memory.published.retain(|known| *known != (r.volume_id.clone(), r.target_path.clone()));
            }
            _ => {}
        }
    }

    /// Takes everything away, the latest first; says what could not be.
    pub async fn clean_up(&self, suite: &Suite) -> Vec<String> {
        let memory = std::mem::take(&mut *self.memory());
        let mut left = Vec::new();
        let mut said = BTreeMap::new();
        for (volume_id, target_path) in memory.published.into_iter().rev().filter(|(id, path)| named(id, path)) {
            let request = v1::NodeUnpublishVolumeRequest { volume_id, target_path: target_path.clone() };
            said.insert(target_path, format!("NodeUnpublishVolume ({})", words(&patiently(suite, request).await)));
        }
        // Only now: two volumes may have been tried at one path.
        take_off(&mut said, &mut left).await;
        for (volume_id, staging_target_path) in memory.staged.into_iter().rev().filter(|(id, path)| named(id, path)) {
            let path = staging_target_path.clone();
            let request = v1::NodeUnstageVolumeRequest { volume_id, staging_target_path };
            said.insert(path, format!("NodeUnstageVolume ({})", words(&patiently(suite, request).await)));
        }
        take_off(&mut said, &mut left).await;
        for (volume_id, node_id) in memory.attached.into_iter().rev().filter(|(id, node)| named(id, node)) {
            let request = v1::ControllerUnpublishVolumeRequest { volume_id, node_id, ..Default::default() };
            let _ = patiently(suite, request).await;
        }
        for (request, known) in memory.groups.into_values() {
            let known = match known {
                Some(known) => Some(known),
                None => patiently(suite, request).await.ok().and_then(|answer| answer.group_snapshot).map(|group| {
                    (group.group_snapshot_id, group.snapshots.into_iter().map(|s| s.snapshot_id).collect())
                }),
            };
            let Some((group_snapshot_id, snapshot_ids)) = known else { continue };
            let request =
                v1::DeleteVolumeGroupSnapshotRequest { group_snapshot_id, snapshot_ids, ..Default::default() };
            if let Err(status) = patiently(suite, request).await {
                left.push(format!("a group snapshot could not be deleted: {}", status.message));
            }
        }
        for (request, known) in memory.snapshots.into_values() {
            let known = match known {
                Some(id) => Some(id),
                None => patiently(suite, request).await.ok().and_then(|answer| answer.snapshot).map(|s| s.snapshot_id),
            };
            let Some(snapshot_id) = known else { continue };
            let request = v1::DeleteSnapshotRequest { snapshot_id: snapshot_id.clone(), ..Default::default() };
            if let Err(status) = patiently(suite, request).await {
                left.push(format!("snapshot {snapshot_id} could not be deleted: {}", status.message));
            }
        }
        for (request, known) in memory.volumes.into_values() {
            let ids = if known.is_empty() {
                patiently(suite, request).await.ok().and_then(|a| a.volume).map(|v| v.volume_id).into_iter().collect()
            } else {
                known
            };
            for volume_id in ids {
                let request = v1::DeleteVolumeRequest { volume_id: volume_id.clone(), ..Default::default() };
                if let Err(status) = patiently(suite, request).await {
                    left.push(format!("volume {volume_id} could not be deleted: {}", status.message));
                }
            }
        }
        for path in memory.paths.iter().rev() {
            // A driver may have said that it unmounted when it did not.
            if host::is_mounted(path) {
                left.push(format!("{} stayed mounted", path.display()));
                host::unmount(&path.to_string_lossy()).await;
            }
            host::remove(path);
        }
        left
    }
}

/// Unmounts what the driver should have, and notes it.
async fn take_off(said: &mut BTreeMap<String, String>, left: &mut Vec<String>) {
    for (path, answer) in std::mem::take(said) {
        if host::is_mounted(Path::new(&path)) {
            left.push(format!("{path} stayed mounted after {answer}"));
            host::unmount(&path).await;
        }
    }
}

fn remember(list: &mut Vec<(String, String)>, id: &str, place: &str) {
    let entry = (id.to_string(), place.to_string());
    if !list.contains(&entry) {
        list.push(entry);
    }
}

/// Half-empty requests were refused for that, and have nothing to undo.
fn named(id: &str, place: &str) -> bool {
    !id.is_empty() && !place.is_empty()
}

fn refused(call: &Call, status: &Status) -> bool {
    classify(call.method(), status) == Finality::Refused
}

fn words<A>(answer: &Result<A, Status>) -> String {
    match answer {
        Ok(_) => "answered OK".to_string(),
        Err(status) => status.message.clone(),
    }
}

async fn patiently<R: Ask>(suite: &Suite, request: R) -> Result<R::Answer, Status> {
    let mut tries = 0;
    loop {
        match suite.ask(request.clone()).await {
            Err(status)
                if tries < TRIES && suite.gone.get().is_none() && classify(R::METHOD, &status) == Finality::Unknown =>
            {
                tries += 1;
                tokio::time::sleep(PAUSE).await;
            }
            answer => return answer,
        }
    }
}
