//! A volume's whole life with real pods: made, bound, attached, written, grown, snapshotted, restored, cloned, read, deleted.
#![allow(clippy::print_stderr, reason = "a test that is not run says why")]

use std::time::Duration;

use csi::{Call, Response, v1};
use io_csi::CsiClient;
use prove_cluster::eventually;
use serde_json::json;

use crate::world::{ATTACHMENTS, CONTENTS, DRIVER, NODE, VOLUMES, World, is_root, pod};
use crate::{backend, objects};

pub fn wait_phase(world: &World, name: &str, phase: &str) {
    world.wait(&format!("pod {name} to be {phase}"), &world.path("pods"), |pods| {
        pods.iter().any(|pod| pod["metadata"]["name"] == name && pod["status"]["phase"] == phase)
    });
}

/// A snapshot of a claim's volume, made by the driver, and the two objects that say so, as the snapshot controllers leave
/// them. Returns its handle.
pub fn snapshot(world: &World, name: &str, claim: &str) -> String {
    let handle = world.volume_of(claim)["spec"]["csi"]["volumeHandle"].as_str().unwrap().to_string();
    let request =
        v1::CreateSnapshotRequest { source_volume_id: handle.clone(), name: name.into(), ..Default::default() };
    let taken = match call(world, Call::CreateSnapshot(request)) {
        Response::CreateSnapshot(made) => made.snapshot.unwrap(),
        other => panic!("not a snapshot: {other:?}"),
    };
    assert!(taken.ready_to_use);
    let taken = taken.snapshot_id;
    let (place, content) = (world.place, format!("{}-{name}", world.place));
    world.api.apply(&objects::snapshot(place, name, claim));
    let moment = format!("{}/{name}", world.path("volumesnapshots"));
    let uid = world.api.get(&moment).unwrap()["metadata"]["uid"].clone();
    let object = json!({
        "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent", "metadata": {"name": content},
        "spec": {
            "driver": DRIVER, "deletionPolicy": "Retain", "source": {"volumeHandle": handle},
            "volumeSnapshotClassName": place, "volumeSnapshotRef": {"name": name, "namespace": place, "uid": uid},
        },
    });
    world.api.apply(&object.to_string());
    let ready = json!({"status": {"snapshotHandle": taken, "readyToUse": true, "restoreSize": 16 << 20}});
    world.api.patch(&format!("{CONTENTS}/{content}/status"), ready);
    let ready = json!({"boundVolumeSnapshotContentName": content, "readyToUse": true, "restoreSize": "16Mi"});
    world.api.patch(&format!("{moment}/status"), json!({ "status": ready }));
    taken
}

/// Takes the snapshot and its content away, as the snapshot controllers would.
pub fn drop_snapshot(world: &World, name: &str, taken: &str) {
    call(world, Call::DeleteSnapshot(v1::DeleteSnapshotRequest { snapshot_id: taken.into(), ..Default::default() }));
    world.api.delete(&format!("{CONTENTS}/{}-{name}", world.place));
}

fn call(world: &World, call: Call) -> Response {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (client, socket, patience) = (CsiClient::new(), world.socket(), Duration::from_secs(30));
    // A driver that is at work on the volume for somebody else says so, and is asked again.
    let ask = || runtime.block_on(client.call(socket.to_str().unwrap(), call.clone(), patience));
    eventually("the driver's answer", patience, || ask().map_err(|status| status.message)).unwrap()
}

/// Grows a claim, and waits until its volume is as large.
pub fn grow(world: &World, claim: &str, to: &str) {
    let request = json!({"spec": {"resources": {"requests": {"storage": to}}}});
    world.api.patch(&format!("{}/{claim}", world.path("persistentvolumeclaims")), request);
    let name = world.volume_of(claim)["metadata"]["name"].clone();
    world.wait("the volume to grow", VOLUMES, |volumes| {
        volumes.iter().any(|volume| volume["metadata"]["name"] == name && volume["spec"]["capacity"]["storage"] == *to)
    });
}

// S0-8 to S0-52 from outside: P1 to P72, A1 to A16 and R1 to R26 have their tables; here everything works together.
#[test]
fn a_volume_lives_with_sidecars_beside_a_driver() {
    if !is_root() {
        eprintln!("not run: pods mount filesystems, and only root may");
        return;
    }
    let mut world = World::new("life", &[]);
    let place = world.place;
    world.sidecar("provisioner,attacher,resizer", &world.kubeconfig(), &[]);

    world.api.apply(&objects::claim(place, "data", ""));
    world.api.apply(&pod(place, "writer", NODE, &["data"], "echo kept > /data/f; sync; echo written; exec sleep 1000"));
    world.wait_bound(&["data"]);
    wait_phase(&world, "writer", "Running");
    let attached = world.api.list(ATTACHMENTS);
    assert_eq!(attached.len(), 1);
    assert_eq!((&attached[0]["spec"]["nodeName"], &attached[0]["status"]["attached"]), (&NODE.into(), &true.into()));
    let log = format!("{}/writer/log", world.path("pods"));
    eventually("the writer to have written", Duration::from_secs(60), || {
        let said = world.api.ask("GET", &log, "", "").map_err(|(_, why)| why)?;
        if said == "written\n" { Ok(()) } else { Err(said) }
    })
    .unwrap();

    let taken = snapshot(&world, "moment", "data");
    world.api.apply(&objects::claim(place, "restored", "VolumeSnapshot/moment"));
    world.api.apply(&objects::claim(place, "clone", "PersistentVolumeClaim/data"));
    world.wait_bound(&["restored", "clone"]);
    let (volumes, snapshots) = backend::contents(&world.socket());
    assert_eq!((volumes.len(), snapshots), (3, vec![taken.clone()]));

    // One that nobody uses and one that a pod uses.
    grow(&world, "clone", "32Mi");
    grow(&world, "data", "32Mi");

    world.api.apply(&pod(place, "reader", NODE, &["restored", "clone"], "cat /restored/f /clone/f"));
    wait_phase(&world, "reader", "Succeeded");
    let read = world.api.ask("GET", &format!("{}/reader/log", world.path("pods")), "", "").unwrap();
    assert_eq!(read, "kept\nkept\n");

    drop_snapshot(&world, "moment", &taken);
    world.end();
}
