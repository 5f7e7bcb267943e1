//! `longshore up` beside a driver of somebody else: it registers, and has everything that sidecars would do for it.
#![allow(clippy::print_stderr, reason = "a test that is not run says why")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use prove_cluster::eventually;

use crate::objects;
use crate::world::{ATTACHMENTS, CSI_NODES, NODE, World, is_root, pod, start_program};

const TINY: &str = "tiny.csi.example";

/// The example driver, built if `cargo test` was told of this package alone.
fn tiny_driver() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_longshore")).with_file_name("tiny-driver");
    let cargo = std::env::var_os("CARGO").unwrap();
    let built = Command::new(cargo).args(["build", "--quiet", "--locked", "--package", "tiny-driver"]).status();
    assert!(built.unwrap().success() && binary.exists());
    binary
}

#[test]
fn up_serves_every_driver_that_registers() {
    if !is_root() {
        eprintln!("not run: pods mount filesystems, and only root may");
        return;
    }
    let binary = tiny_driver();
    let mut world = World::all_in_one("tiny");
    let (place, root) = (world.place, world.scratch.path().to_path_buf());
    let socket = root.join("tiny.sock").display().to_string();
    let variables = [
        format!("CSI_ENDPOINT=unix://{socket}"),
        format!("STATE_DIR={}", root.join("tiny").display()),
        "NODE_ID=elsewhere".to_string(),
    ];
    world.keep(start_program(&variables, "tiny", &binary, &[], &root));
    // The registrar is the only sidecar: a driver that registers itself needs none.
    let registry = root.join("d/node/plugins_registry").display().to_string();
    let flags = [
        "sidecar".to_string(),
        "--roles=registrar".to_string(),
        format!("--csi-address={socket}"),
        format!("--kubelet-registration-path={socket}"),
        format!("--plugin-registration-path={registry}"),
    ];
    let longshore = Path::new(env!("CARGO_BIN_EXE_longshore"));
    world.keep(start_program(&[], "tiny-registrar", longshore, &flags, &root));
    world.wait("the driver to be registered", CSI_NODES, |nodes| {
        let drivers = nodes.first().and_then(|node| node["spec"]["drivers"].as_array());
        drivers.is_some_and(|drivers| drivers.iter().any(|driver| driver["name"] == TINY))
    });

    world.api.apply(&objects::place(place, TINY, &[]));
    world.api.apply(&objects::claim(place, "data", ""));
    world.api.apply(&pod(place, "writer", NODE, &["data"], "echo kept > /data/f; sync; cat /data/f; exec sleep 1000"));
    world.wait_bound(&["data"]);
    world
        .wait("the pod to run", &world.path("pods"), |pods| pods.iter().any(|pod| pod["status"]["phase"] == "Running"));
    let volume = world.volume_of("data");
    assert_eq!(volume["spec"]["csi"]["driver"], TINY);
    // It publishes nothing to nodes, and is attached all the same: it has no CSIDriver object that says otherwise.
    assert_eq!(world.api.list(ATTACHMENTS).len(), 1);
    let held = root.join("tiny/volumes").join(volume["spec"]["csi"]["volumeHandle"].as_str().unwrap());
    eventually("the pod to have written", Duration::from_secs(30), || match std::fs::read_to_string(held.join("f")) {
        Ok(text) if text == "kept\n" => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .unwrap();

    world.end();
    assert!(!held.exists(), "the driver has deleted the data");
}
