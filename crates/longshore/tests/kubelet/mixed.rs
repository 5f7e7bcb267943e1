//! Beside a real kubelet, ours mixed with the Go programs: their driver with our sidecars, our driver with their
//! sidecars. Of their registrar the module registry gives out no release, so it is always ours.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use prove_cluster::peer;

use crate::objects::{claim, class, pod, pod_with, snapshot, snapshot_class};
use crate::scene::{PATIENCE, PAUSE, Scene};

/// A process that is no pod owns nothing.
const OWNERLESS: &str = "--capacity-ownerref-level=-1";
const HOSTPATH: &str = "hostpath.csi.k8s.io";
const PLUGIN: &str = "hostpathplugin";

#[test]
fn the_go_driver_works_with_our_sidecars() {
    let mut scene = Scene::start();
    let socket = go_driver(&mut scene);
    our_sidecar(&mut scene, HOSTPATH, &socket, "provisioner,attacher,resizer,registrar");
    snapshotter(&mut scene, &socket);
    // Its volumes are folders: what is in them grows with the disk they are on.
    life(&mut scene, HOSTPATH, false);
}

#[test]
fn our_driver_works_with_the_go_sidecars() {
    let mut scene = Scene::start();
    let socket = our_driver(&mut scene);
    go_sidecars(&mut scene, &socket);
    our_sidecar(&mut scene, crate::install::DRIVER, &socket, "registrar");
    snapshotter(&mut scene, &socket);
    life(&mut scene, crate::install::DRIVER, true);
}

/// The Go hostpath driver as a process beside the kubelet; returns its socket.
pub fn go_driver(scene: &mut Scene) -> String {
    let folder = scene.cluster.kubelet_dir().join("plugins").join(HOSTPATH);
    std::fs::create_dir_all(folder.join("state")).unwrap();
    let socket = folder.join("csi.sock").display().to_string();
    let flags = [
        format!("--endpoint=unix://{socket}"),
        format!("--statedir={}", folder.join("state").display()),
        "--nodeid=n1".into(),
        "--enable-attach".into(),
        "--enable-topology".into(),
        "--v=4".into(),
    ];
    beside(scene, PLUGIN, &peer("hostpathplugin").unwrap(), &flags);
    scene.apply(&csi_driver(HOSTPATH));
    socket
}

/// Our driver as a process beside the kubelet; returns its socket.
fn our_driver(scene: &mut Scene) -> String {
    let name = crate::install::DRIVER;
    let folder = scene.cluster.kubelet_dir().join("plugins").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let socket = folder.join("csi.sock").display().to_string();
    let state = folder.join("state").display().to_string();
    let endpoint = format!("unix://{socket}");
    let flags = ["driver", "--node-id", "n1", "--endpoint", &endpoint, "--state-dir", &state, "--no-registration"];
    beside(scene, "driver", Path::new(env!("CARGO_BIN_EXE_longshore")), &flags.map(String::from));
    scene.apply(&csi_driver(name));
    socket
}

/// The Go provisioner, attacher and resizer.
pub fn go_sidecars(scene: &mut Scene, socket: &str) {
    let address = format!("--csi-address={socket}");
    let lifted = ["--kube-api-qps=100".to_string(), "--kube-api-burst=200".into()];
    let own: [(&str, &[&str]); 3] = [
        ("csi-provisioner", &["--strict-topology", "--immediate-topology=false", "--enable-capacity", OWNERLESS]),
        ("csi-attacher", &[]),
        ("csi-resizer", &[]),
    ];
    for (program, more) in own {
        // The provisioner takes the place of its capacity objects from the environment.
        let mut flags = vec!["NAMESPACE=kube-system".to_string(), peer(program).unwrap().display().to_string()];
        flags.push(address.clone());
        flags.extend(lifted.iter().cloned());
        flags.extend(more.iter().map(|flag| flag.to_string()));
        scene.beside(program, Path::new("env"), &flags);
    }
}

/// Some of our sidecars, as one process.
pub fn our_sidecar(scene: &mut Scene, driver: &str, socket: &str, roles: &str) {
    let flags = [
        "sidecar".to_string(),
        format!("--roles={roles}"),
        format!("--csi-address={socket}"),
        format!("--kubelet-registration-path={socket}"),
        format!("--plugin-registration-path={}", scene.cluster.kubelet_dir().join("plugins_registry").display()),
    ];
    scene.beside("sidecar", Path::new(env!("CARGO_BIN_EXE_longshore")), &flags);
    let words = ["get", "csinode", "n1", "--output=jsonpath={.spec.drivers[*].name}"];
    scene.wait_until("the node to know the driver", &words, |said| said.contains(driver));
}

pub fn snapshotter(scene: &mut Scene, socket: &str) {
    scene.beside("csi-snapshotter", &peer("csi-snapshotter").unwrap(), &[format!("--csi-address={socket}")]);
}

/// A driver's process, which talks to no cluster.
fn beside(scene: &mut Scene, name: &str, program: &Path, flags: &[String]) {
    let words: Vec<&str> = flags.iter().map(String::as_str).collect();
    scene.cluster.plane_mut().run(name, program, &words).unwrap();
}

fn csi_driver(name: &str) -> String {
    format!(
        "
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {{name: {name}}}
spec: {{attachRequired: true, podInfoOnMount: true, fsGroupPolicy: File, volumeLifecycleModes: [Persistent, Ephemeral]}}
"
    )
}

/// What every pair must do: claims, pods with data, raw blocks, growth, copies, inline volumes.
fn life(scene: &mut Scene, driver: &str, grows_files: bool) {
    let filesystem = if grows_files { "parameters: {csi.storage.k8s.io/fstype: xfs}" } else { "" };
    scene.apply(&(class("usual", driver, filesystem) + &snapshot_class("snapshots", driver)));
    scene.apply(&(claim("app", "usual", "512Mi", "ReadWriteOnce", "") + &pod("app", "app")));
    scene.wait_for("pod/app", "Ready");
    scene.inside("app", "echo kept > /data/word && sync").unwrap();

    let device = "volumeDevices: [{name: data, devicePath: /dev/raw}]";
    let volume = "{name: data, persistentVolumeClaim: {claimName: raw}}";
    scene.apply(&(claim("raw", "usual", "512Mi", "ReadWriteOnce", "volumeMode: Block")));
    scene.apply(&pod_with("raw", volume, "", device));
    scene.wait_for("pod/raw", "Ready");
    assert_eq!(scene.inside("raw", "blockdev --getsize64 /dev/raw").unwrap(), "536870912\n");
    scene.delete(&["pod/raw", "pvc/raw"]);

    let size = "df -k /data | tail -1 | awk '{print $2}'";
    let before: u64 = scene.inside("app", size).unwrap().trim().parse().unwrap();
    scene.kubectl(&["patch", "pvc/app", r#"--patch={"spec":{"resources":{"requests":{"storage":"1Gi"}}}}"#]).unwrap();
    let capacity = ["get", "pvc/app", "--output=jsonpath={.status.capacity.storage}"];
    scene.wait_until("the volume to grow", &capacity, |said| said == "1Gi");
    let after: u64 = scene.inside("app", size).unwrap().trim().parse().unwrap();
    assert!(!grows_files || after > before + 400 * 1024, "{before} KiB, then {after} KiB");

    scene.apply(&snapshot("then", "snapshots", "app"));
    let words = ["get", "volumesnapshot/then", "--output=jsonpath={.status.readyToUse}"];
    scene.wait_until("the snapshot to be ready", &words, |said| said == "true");
    let of_snapshot = "dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: then}";
    let of_claim = "dataSource: {kind: PersistentVolumeClaim, name: app}";
    for (name, source) in [("restored", of_snapshot), ("cloned", of_claim)] {
        scene.apply(&(claim(name, "usual", "1Gi", "ReadWriteOnce", source) + &pod(name, name)));
        scene.wait_for(&format!("pod/{name}"), "Ready");
        assert_eq!(scene.inside(name, "cat /data/word").unwrap(), "kept\n");
        scene.delete(&[&format!("pod/{name}"), &format!("pvc/{name}")]);
    }
    scene.delete(&["volumesnapshot/then"]);

    let inline = format!("{{name: data, csi: {{driver: {driver}, volumeAttributes: {{size: 64Mi}}}}}}");
    let unsized_one = format!("{{name: data, csi: {{driver: {driver}}}}}");
    scene.apply(&pod_with("inline", if grows_files { &inline } else { &unsized_one }, "", ""));
    scene.wait_for("pod/inline", "Ready");
    scene.inside("inline", "echo here > /data/word").unwrap();

    scene.cluster.restart_kubelet().unwrap();
    if driver == HOSTPATH {
        unmount_what_the_go_driver_leaves(scene);
    } else {
        scene.delete(&["pod/inline"]);
    }
    assert_eq!(scene.inside("app", "cat /data/word").unwrap(), "kept\n");
    scene.delete(&["pod/app", "pvc/app"]);
    for kinds in ["pv", "volumeattachment", "volumesnapshotcontent"] {
        scene.wait_none(kinds);
    }
    scene.wait_nothing_mounted();
}

/// A kubelet that comes again has inline volumes published again. The Go driver (v1.7.2) then makes its record of the
/// volume anew, without where it is published; asked to unpublish it, it says that there is nothing to do and leaves
/// the mount, so that the kubelet waits for ever. Without the mount the pod goes.
fn unmount_what_the_go_driver_leaves(scene: &mut Scene) {
    wait_for_words_of_the_driver(scene, "adding hostpath volume: csi-", 2);
    let uid = scene.get("pod/inline", "{.metadata.uid}");
    let target = scene.cluster.kubelet_dir().join(format!("pods/{uid}/volumes/kubernetes.io~csi/data/mount"));
    scene.kubectl(&["delete", "--wait=false", "pod/inline"]).unwrap();
    wait_for_words_of_the_driver(scene, &format!("is not published at {target:?}, nothing to do"), 1);
    assert!(Command::new("umount").arg(target).status().unwrap().success());
    let words = ["get", "pod/inline", "--ignore-not-found", "--output=name"];
    scene.wait_until("the pod with the inline volume to be gone", &words, str::is_empty);
}

fn wait_for_words_of_the_driver(scene: &mut Scene, words: &str, times: usize) {
    let until = Instant::now() + PATIENCE;
    loop {
        let driver = scene.cluster.plane().processes().iter().find(|one| one.name() == PLUGIN).unwrap();
        let said = std::fs::read_to_string(driver.log()).unwrap();
        if said.matches(words).count() >= times {
            return;
        }
        assert!(Instant::now() < until, "the driver does not say {words:?} {times} times\n{}", scene.told());
        std::thread::sleep(PAUSE);
    }
}
