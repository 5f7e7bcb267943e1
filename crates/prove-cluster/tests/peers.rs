//! The peers among themselves: what holds for them is the measure that ours is held to.
#![allow(clippy::unwrap_used)]

use prove_cluster::{ControlPlane, Error, Options, PeerProcess, Scratch, eventually, peer};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

const CLAIM: &str = "
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: hostpath}
provisioner: hostpath.csi.k8s.io
allowVolumeExpansion: true
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec: {storageClassName: hostpath, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
";

/// The Go hostpath driver with its socket and state below the directory.
fn hostpath(directory: &Path) -> (PeerProcess, PathBuf) {
    let socket = directory.join("csi.sock");
    let flags = [
        format!("--endpoint=unix://{}", socket.display()),
        format!("--statedir={}", directory.join("state").display()),
        "--nodeid=n1".to_string(),
        "--enable-attach".to_string(),
        "--enable-topology=false".to_string(),
    ];
    std::fs::create_dir(directory.join("state")).unwrap();
    let mut driver = PeerProcess::start("hostpathplugin", &peer("hostpathplugin").unwrap(), &flags, directory).unwrap();
    eventually("the driver's socket", PATIENCE, || {
        driver.check().map_err(|error| error.to_string())?;
        socket.exists().then_some(()).ok_or_else(|| "no socket yet".to_string())
    })
    .unwrap();
    (driver, socket)
}

#[test]
fn the_go_conformance_suite_finds_no_fault_in_the_go_driver() {
    let scratch = Scratch::new("sanity").unwrap();
    let (_driver, socket) = hostpath(scratch.path());
    let below = |name: &str| scratch.path().join(name).display().to_string();
    let run = Command::new(peer("csi-sanity").unwrap())
        .arg("--ginkgo.no-color")
        .arg(format!("--csi.endpoint={}", socket.display()))
        .arg(format!("--csi.mountdir={}", below("mount")))
        .arg(format!("--csi.stagingdir={}", below("staging")))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    let verdict = said.lines().find(|line| line.contains(" Passed |")).unwrap_or(&said);
    assert!(run.status.success(), "{said}");
    assert_eq!(verdict, "SUCCESS! -- 75 Passed | 0 Failed | 1 Pending | 27 Skipped");
}

#[test]
fn the_go_sidecars_make_grow_and_delete_a_volume_on_the_real_control_plane() {
    let mut plane = ControlPlane::start(Options { controller_manager: true, ..Options::default() }).unwrap();
    let (mut driver, socket) = hostpath(plane.directory());
    let address = format!("--csi-address={}", socket.display());
    let config = format!("--kubeconfig={}", plane.kubeconfig().display());
    for sidecar in ["csi-provisioner", "csi-resizer"] {
        plane.run(sidecar, &peer(sidecar).unwrap(), &[&address, &config]).unwrap();
    }

    plane.apply(CLAIM).unwrap();
    let phase = ["get", "pvc", "data", "--output=jsonpath={.status.phase}"];
    expect(&mut plane, "the claim to be bound", &phase, "Bound");
    plane
        .kubectl(&["patch", "pvc", "data", "--patch={\"spec\":{\"resources\":{\"requests\":{\"storage\":\"2Gi\"}}}}"])
        .unwrap();
    let capacity = ["get", "pv", "--output=jsonpath={.items[*].spec.capacity.storage}"];
    expect(&mut plane, "the volume to grow", &capacity, "2Gi");
    plane.kubectl(&["delete", "pvc", "data", "--wait=false"]).unwrap();
    expect(&mut plane, "the volume to be deleted", &["get", "pv", "--output=name"], "");
    driver.check().unwrap();
}

fn expect(plane: &mut ControlPlane, what: &str, args: &[&str], wanted: &str) {
    let seen: Result<(), Error> = eventually(what, PATIENCE, || {
        plane.check().map_err(|error| error.to_string())?;
        let printed = plane.kubectl(args).map_err(|error| error.to_string())?;
        if printed.trim() == wanted { Ok(()) } else { Err(printed) }
    });
    if let Err(error) = seen {
        let logs: Vec<String> = plane.processes().iter().skip(3).map(PeerProcess::log_tail).collect();
        panic!("{error}\n{}", logs.join("\n"));
    }
}
