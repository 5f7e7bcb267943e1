//! What a driver holds, asked of the driver itself.

use std::path::Path;
use std::time::Duration;

use csi::{Call, Response, v1};
use io_csi::CsiClient;

const DEADLINE: Duration = Duration::from_secs(10);

/// The driver's volumes by their handles, and its snapshots.
pub fn contents(socket: &Path) -> (Vec<String>, Vec<String>) {
    let volumes = match call(socket, Call::ListVolumes(v1::ListVolumesRequest::default())) {
        Response::ListVolumes(listed) => {
            assert!(listed.next_token.is_empty(), "the list has more pages");
            listed.entries.into_iter().filter_map(|entry| entry.volume).map(|volume| volume.volume_id).collect()
        }
        other => panic!("not a list of volumes: {other:?}"),
    };
    let snapshots = match call(socket, Call::ListSnapshots(v1::ListSnapshotsRequest::default())) {
        Response::ListSnapshots(listed) => {
            listed.entries.into_iter().filter_map(|entry| entry.snapshot).map(|one| one.snapshot_id).collect()
        }
        other => panic!("not a list of snapshots: {other:?}"),
    };
    (volumes, snapshots)
}

fn call(socket: &Path, call: Call) -> Response {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = CsiClient::new();
    runtime.block_on(client.call(socket.to_str().unwrap(), call, DEADLINE)).unwrap()
}
