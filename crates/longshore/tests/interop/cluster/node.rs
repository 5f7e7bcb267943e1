//! Our node agent among other people's parts: the real kube-apiserver, kube-controller-manager and kube-scheduler, the
//! Go hostpath driver, the Go provisioner and the Go resizer. The cluster is its own, because the agent makes its Node.

use std::time::Duration;

use super::objects;
use super::scene::{DRIVER, PATIENCE, PLACE, Scene, of_claim, pod};

// KL-16, KL-20, KL-66, KL-71, KL-77, KL-101, EX-17 to EX-19, on parts that are not ours.
#[test]
fn a_pod_lives_on_our_node_among_the_parts_of_others() {
    let mut scene = Scene::start();
    let entry = ["get", "csinode", "n1", "--output=jsonpath={.spec.drivers[*].name}={.spec.drivers[*].topologyKeys}"];
    scene.wait_until("the driver to be registered", &entry, |said| said.contains("topology.hostpath.csi/node"));

    // Bound by their binder, made by their provisioner, placed by their scheduler, mounted and run by us.
    scene.apply(
        &(objects::claim(PLACE, "data", "")
            + &pod("writer", &of_claim("data"), "echo kept > /data/f; exec sleep 100000")),
    );
    scene.wait_phase("writer", "Running");
    let volume = scene.get("pvc/data", "{.spec.volumeName}");
    let target = scene.volumes_of("writer").join("kubernetes.io~csi").join(&volume).join("mount");
    let kept = || std::fs::read_to_string(target.join("f"));
    prove_cluster::eventually("the pod to write", PATIENCE, || {
        kept().map_err(|error| error.to_string()).and_then(|text| (text == "kept\n").then_some(()).ok_or(text))
    })
    .unwrap();

    // Grown by their resizer, which leaves the filesystem to the node.
    let more = "--patch={\"spec\":{\"resources\":{\"requests\":{\"storage\":\"32Mi\"}}}}";
    scene.kubectl(&["patch", "pvc", "data", more]).unwrap();
    let capacity = ["get", "pvc", "data", "--output=jsonpath={.status.capacity.storage}"];
    scene.wait_until("the claim to have grown", &capacity, |said| said == "32Mi");
    let resizing = "--output=jsonpath={.status.conditions[*].type} {.status.allocatedResourceStatuses}";
    scene.wait_until("nothing to be under way", &["get", "pvc", "data", resizing], |said| !said.contains("Resiz"));

    // A raw block volume keeps what is written to the device; an inline volume comes and goes with its pod.
    let raw = objects::claim(PLACE, "raw", "").replace("  accessModes", "  volumeMode: Block\n  accessModes");
    let on_device = |name: &str, command: &str| {
        let devices = "volumeDevices: [{name: data, devicePath: /dev/raw}]";
        pod(name, &of_claim("raw"), command).replace("volumeMounts: [{name: data, mountPath: /data}]", devices)
    };
    scene.apply(&(raw + &on_device("block-writer", "echo kept | dd of=/dev/raw conv=notrunc,fsync")));
    scene.wait_phase("block-writer", "Succeeded");
    scene.apply(&on_device("block-reader", "head -c 5 /dev/raw | grep -qx kept"));
    scene.wait_phase("block-reader", "Succeeded");
    scene.apply(&pod("inline", &format!("csi: {{driver: {DRIVER}}}"), "touch /data/f && exec sleep 100000"));
    scene.wait_phase("inline", "Running");
    assert_eq!(super::backend::contents(&scene.stand.socket).0.len(), 3);
    scene.kubectl(&["delete", "pod", "inline", "block-writer", "block-reader", "--timeout=60s"]).unwrap();
    assert_eq!(super::backend::contents(&scene.stand.socket).0.len(), 2);

    // Killed under churn: who runs goes on, who comes is served, who goes leaves nothing.
    let began = scene.get("pod/writer", "{.status.containerStatuses[0].state.running.startedAt}");
    let kills: usize = std::env::var("LONGSHORE_STORM_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(6);
    for round in 0..kills {
        let (claim, guest) = (format!("c{round}"), format!("p{round}"));
        scene.apply(&(objects::claim(PLACE, &claim, "") + &pod(&guest, &of_claim(&claim), "touch /data/here")));
        std::thread::sleep(Duration::from_millis(150 * (round as u64 % 7)));
        scene.kill_agent();
        if round % 2 == 1 {
            let before = format!("p{}", round - 1);
            scene.wait_phase(&before, "Succeeded");
            scene.kubectl(&["delete", "pod", &before, "--wait=false"]).unwrap();
            scene.kubectl(&["delete", "pvc", &format!("c{}", round - 1), "--wait=false"]).unwrap();
        }
    }
    for round in (0..kills).filter(|round| round % 2 == 1) {
        scene.wait_phase(&format!("p{round}"), "Succeeded");
    }
    assert_eq!(scene.get("pod/writer", "{.status.containerStatuses[0].state.running.startedAt}"), began);
    assert_eq!(scene.get("pod/writer", "{.status.containerStatuses[0].restartCount}"), "0");
    assert_eq!(kept().unwrap(), "kept\n");

    // Rebooted: pods that are to run run again on what is on disk, a block device and an inline volume included, and
    // one that was to run once has ended.
    let again = |pod: String| pod.replace("restartPolicy: Never", "restartPolicy: Always");
    let command = "echo started >> /data/log; exec sleep 100000";
    scene.apply(&(objects::claim(PLACE, "kept", "") + &again(pod("app", &of_claim("kept"), command))));
    scene.apply(&again(on_device("on-device", "head -c 5 /dev/raw | grep -qx kept && exec sleep 100000")));
    scene.apply(&again(pod("inline-again", &format!("csi: {{driver: {DRIVER}}}"), "exec sleep 100000")));
    let apps = ["app", "on-device", "inline-again"];
    apps.iter().for_each(|app| scene.wait_phase(app, "Running"));
    scene.reboot();
    for app in apps {
        let path = "{.status.phase} {.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}";
        let words = ["get", "pod", app, &format!("--output=jsonpath={path}")];
        scene.wait_until(&format!("pod {app} to run again"), &words, |said| said == "Running 1 true");
    }
    let volume = scene.get("pvc/kept", "{.spec.volumeName}");
    let log = scene.volumes_of("app").join("kubernetes.io~csi").join(volume).join("mount/log");
    prove_cluster::eventually("the pod to write again", PATIENCE, || {
        let text = std::fs::read_to_string(&log).map_err(|error| error.to_string())?;
        if text == "started\nstarted\n" { Ok(()) } else { Err(text) }
    })
    .unwrap();
    scene.wait_phase("writer", "Failed");

    // Taken down and read again by another pod; then all of it goes.
    scene.kubectl(&["delete", "pod", "writer", "--timeout=60s"]).unwrap();
    scene.apply(&pod("reader", &of_claim("data"), "grep -qx kept /data/f"));
    scene.wait_phase("reader", "Succeeded");
    scene.kubectl(&["delete", "pod,pvc", "--all", "--wait=false"]).unwrap();
    scene.wait_nothing_left();
}
