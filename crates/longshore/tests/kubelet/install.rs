//! Our driver and sidecars as pods, as `longshore deploy` prints them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::objects;
use crate::scene::{IMAGE, Scene};

/// Our driver's name.
pub const DRIVER: &str = "local.csi.longshore";
const SET: &str = "daemonset/local-csi-longshore-node";

/// What is applied, and deleted again.
pub fn manifests(scene: &Scene) -> String {
    let kubelet = scene.cluster.kubelet_dir().display().to_string();
    let state = state(scene);
    let output = Command::new(env!("CARGO_BIN_EXE_longshore"))
        .args(["deploy", "--driver-name", DRIVER, "--driver-image", IMAGE, "--image", IMAGE, "--kubelet-dir", &kubelet])
        .args(["--all-in-one", "--pod-info", "--ephemeral", "--capacity", "--storage-class="])
        .args(["--driver-arg=driver", "--driver-arg=--no-registration", "--driver-arg=--endpoint=$(CSI_ENDPOINT)"])
        .args(["--driver-arg=--node-id=$(NODE_NAME)", &format!("--driver-arg=--state-dir={state}")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Where the driver keeps volumes: in a folder of the node that its container has anyway.
pub fn state(scene: &Scene) -> String {
    scene.cluster.kubelet_dir().join("plugins").join(DRIVER).join("state").display().to_string()
}

/// Where the node's driver listens.
pub fn socket(scene: &Scene) -> String {
    scene.cluster.kubelet_dir().join("plugins").join(DRIVER).join("csi.sock").display().to_string()
}

/// Applies the manifests and classes, and waits until the pod is ready and the node knows the driver.
pub fn install(scene: &mut Scene) {
    let text = manifests(scene);
    scene.apply(&text);
    scene.apply(&classes());
    wait_ready(scene);
}

/// Waits until the driver's pod is ready and the node knows the driver.
pub fn wait_ready(scene: &mut Scene) {
    let words = ["get", SET, "--namespace=kube-system", "--output=jsonpath={.status.numberReady}"];
    scene.wait_until("the driver's pod to be ready", &words, |said| said == "1");
    let words = ["get", "csinode", "n1", "--output=jsonpath={.spec.drivers[*].name}"];
    scene.wait_until("the node to know the driver", &words, |said| said.contains(DRIVER));
}

/// Classes of every kind the tests want.
pub fn classes() -> String {
    let filesystem =
        |name: &str| objects::class(name, DRIVER, &format!("parameters: {{csi.storage.k8s.io/fstype: {name}}}"));
    let kept = objects::class("kept", DRIVER, "reclaimPolicy: Retain");
    let late = objects::class("late", DRIVER, "volumeBindingMode: WaitForFirstConsumer");
    ["ext4", "xfs", "btrfs"].map(filesystem).concat() + &kept + &late + &objects::snapshot_class("snapshots", DRIVER)
}

/// The files of volumes that the driver keeps: nothing else in its state is as large.
pub fn files(scene: &Scene) -> Vec<PathBuf> {
    let mut files = walk(Path::new(&state(scene)));
    files.retain(|path| path.metadata().unwrap().len() >= 64 << 20);
    files
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(walk(&path)) } else { found.push(path) }
    }
    found
}
