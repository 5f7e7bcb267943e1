//! Our driver and sidecars as pods on a real node, through everything a user asks of them, until nothing is left.

use std::time::Instant;

use prove_cluster::peer;

use crate::install;
use crate::objects::{claim, pod, pod_with, snapshot};
use crate::scene::Scene;
use crate::steps;

#[test]
fn volumes_live_and_die_beneath_a_real_kubelet() {
    let mut scene = Scene::start();
    let begun = Instant::now();
    install::install(&mut scene);
    println!("applied to ready: {:.1} s", begun.elapsed().as_secs_f64());
    let socket = format!("--csi-address={}", install::socket(&scene));
    scene.beside("csi-snapshotter", &peer("csi-snapshotter").unwrap(), &[socket]);

    a_claim_and_a_pod(&mut scene);
    steps::who_owns_the_files(&mut scene, "ext4");
    steps::raw_blocks(&mut scene, "ext4");
    growth(&mut scene, "xfs");
    growth(&mut scene, "btrfs");
    copies(&mut scene);
    steps::volumes_of_pods(&mut scene, "ext4");
    steps::one_pod_alone(&mut scene, "ext4");
    where_pods_can_be(&mut scene);
    the_kubelet_restarts(&mut scene);
    the_pod_of_the_sidecars_is_killed(&mut scene);
    the_node_is_drained(&mut scene);
    what_uninstalling_leaves(&mut scene);
}

/// A claim is bound, and what a pod writes is on the volume and outlives the pod.
pub fn a_claim_and_a_pod(scene: &mut Scene) {
    let begun = Instant::now();
    scene.apply(&(claim("app", "ext4", "64Mi", "ReadWriteOnce", "") + &pod("app", "app")));
    scene.wait_phase("pvc/app", "Bound");
    println!("claim to bound: {:.1} s", begun.elapsed().as_secs_f64());
    scene.wait_for("pod/app", "Ready");
    println!("claim and pod to ready: {:.1} s", begun.elapsed().as_secs_f64());
    assert_eq!(scene.inside("app", "stat -f -c %T /data").unwrap().trim(), "ext2/ext3");
    scene.inside("app", "echo kept > /data/word && sync").unwrap();
    scene.delete(&["pod/app"]);
    scene.apply(&pod("app", "app"));
    scene.wait_for("pod/app", "Ready");
    assert_eq!(scene.inside("app", "cat /data/word").unwrap(), "kept\n");
}

/// A volume grows under the pod that uses it.
pub fn growth(scene: &mut Scene, filesystem: &str) {
    scene.apply(&(claim("growing", filesystem, "512Mi", "ReadWriteOnce", "") + &pod("growing", "growing")));
    scene.wait_for("pod/growing", "Ready");
    let size = "df -k /data | tail -1 | awk '{print $2}'";
    let before: u64 = scene.inside("growing", size).unwrap().trim().parse().unwrap();
    scene.inside("growing", "echo kept > /data/word").unwrap();
    let patch = r#"--patch={"spec":{"resources":{"requests":{"storage":"1Gi"}}}}"#;
    scene.kubectl(&["patch", "pvc/growing", patch]).unwrap();
    let capacity = ["get", "pvc/growing", "--output=jsonpath={.status.capacity.storage}"];
    scene.wait_until(&format!("the {filesystem} volume to grow"), &capacity, |said| said == "1Gi");
    let after: u64 = scene.inside("growing", size).unwrap().trim().parse().unwrap();
    assert!(after > before + 400 * 1024, "{filesystem}: {before} KiB, then {after} KiB");
    assert_eq!(scene.inside("growing", "cat /data/word").unwrap(), "kept\n");
    scene.delete(&["pod/growing", "pvc/growing"]);
}

/// A clone and a volume from a snapshot have the data of their source, and go their own ways.
fn copies(scene: &mut Scene) {
    scene.apply(&snapshot("then", "snapshots", "app"));
    let words = ["get", "volumesnapshot/then", "--output=jsonpath={.status.readyToUse}"];
    scene.wait_until("the snapshot to be ready", &words, |said| said == "true");
    scene.inside("app", "echo changed > /data/word && sync").unwrap();
    let of_snapshot = "dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: then}";
    let of_claim = "dataSource: {kind: PersistentVolumeClaim, name: app}";
    for (name, source, word) in [("restored", of_snapshot, "kept\n"), ("cloned", of_claim, "changed\n")] {
        scene.apply(&(claim(name, "ext4", "64Mi", "ReadWriteOnce", source) + &pod(name, name)));
        scene.wait_for(&format!("pod/{name}"), "Ready");
        assert_eq!(scene.inside(name, "cat /data/word").unwrap(), word);
        scene.inside(name, "echo own > /data/word").unwrap();
    }
    assert_eq!(scene.inside("app", "cat /data/word").unwrap(), "changed\n");
    scene.delete(&["pod/restored", "pvc/restored", "pod/cloned", "pvc/cloned", "volumesnapshot/then"]);
    scene.wait_none("volumesnapshotcontent");
}

/// A volume of delayed binding is made where its pod can run, and says so; a pod that can run nowhere near waits.
fn where_pods_can_be(scene: &mut Scene) {
    scene.apply(&claim("late", "late", "64Mi", "ReadWriteOnce", ""));
    scene.apply(&pod("late", "late"));
    scene.wait_for("pod/late", "Ready");
    let volume = format!("pv/{}", scene.get("pvc/late", "{.spec.volumeName}"));
    let terms = scene.get(&volume, "{.spec.nodeAffinity.required.nodeSelectorTerms}");
    assert!(terms.contains("topology.local.csi.longshore/node") && terms.contains("n1"), "{terms}");
    assert_eq!(scene.get("node/n1", "{.metadata.labels.topology\\.local\\.csi\\.longshore/node}"), "n1");
    let capacities =
        ["get", "csistoragecapacities", "--namespace=kube-system", "--output=jsonpath={.items[*].storageClassName}"];
    scene.wait_until("the capacity of the class to be published", &capacities, |said| said.contains("late"));
    scene.delete(&["pod/late", "pvc/late"]);
    let volume = "{name: data, persistentVolumeClaim: {claimName: nowhere}}";
    let selector = "nodeSelector: {topology.local.csi.longshore/node: n9},";
    scene.apply(&(claim("nowhere", "late", "64Mi", "ReadWriteOnce", "") + &pod_with("nowhere", volume, selector, "")));
    let words = ["get", "pod/nowhere", "--output=jsonpath={.status.conditions[?(@.type==\"PodScheduled\")].status}"];
    scene.wait_until("the pod to be found no place for", &words, |said| said == "False");
    assert_eq!(scene.get("pvc/nowhere", "{.status.phase}"), "Pending");
    scene.delete(&["pod/nowhere", "pvc/nowhere"]);
}

/// The kubelet is killed and comes again: pods go on, their volumes are known, and new ones come.
fn the_kubelet_restarts(scene: &mut Scene) {
    let started = scene.get("pod/app", "{.status.containerStatuses[0].containerID}");
    scene.cluster.restart_kubelet().unwrap();
    scene.apply(&(claim("after", "ext4", "64Mi", "ReadWriteOnce", "") + &pod("after", "after")));
    scene.wait_for("pod/after", "Ready");
    assert_eq!(scene.get("pod/app", "{.status.containerStatuses[0].containerID}"), started);
    assert_eq!(scene.inside("app", "cat /data/word").unwrap(), "changed\n");
    scene.delete(&["pod/after", "pvc/after"]);
    install::wait_ready(scene);
}

/// The driver's pod is killed while claims wait: mounted volumes are not disturbed, and another pod serves the claims.
fn the_pod_of_the_sidecars_is_killed(scene: &mut Scene) {
    let driver = ["--namespace=kube-system", "--selector=app.kubernetes.io/component=node"];
    let names = [&["get", "pods", "--output=name"], &driver[..]].concat();
    let before = scene.kubectl(&names).unwrap();
    let wanted: Vec<String> = (0..5).map(|number| format!("while-away-{number}")).collect();
    let claims = wanted.iter().map(|name| claim(name, "ext4", "64Mi", "ReadWriteOnce", "")).collect::<String>();
    scene.apply(&claims);
    scene.kubectl(&[&["delete", "pods", "--force", "--grace-period=0"], &driver[..]].concat()).unwrap();
    assert_eq!(scene.inside("app", "cat /data/word").unwrap(), "changed\n");
    scene.inside("app", "echo written while the driver was away > /data/word && sync").unwrap();
    for name in &wanted {
        scene.wait_phase(&format!("pvc/{name}"), "Bound");
    }
    let after = scene.kubectl(&names).unwrap();
    assert_ne!(before, after);
    install::wait_ready(scene);
    let volumes = scene.kubectl(&["get", "pv", "--output=name"]).unwrap();
    assert_eq!(volumes.lines().count(), 1 + wanted.len(), "{volumes}");
    for name in &wanted {
        scene.delete(&[&format!("pvc/{name}")]);
    }
}

/// The node is drained: the pod of a set goes, its volume is let go of, and both come back with their data.
fn the_node_is_drained(scene: &mut Scene) {
    scene.delete(&["pod/app"]);
    scene.apply(
        "
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  selector: {matchLabels: {app: app}}
  strategy: {type: Recreate}
  template:
    metadata: {labels: {app: app}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: busybox, imagePullPolicy: IfNotPresent,
        command: [sh, -c, 'trap exit TERM; sleep 100000 & wait'], volumeMounts: [{name: data, mountPath: /data}]}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: app}}]
",
    );
    let ready = ["get", "deployment/app", "--output=jsonpath={.status.readyReplicas}"];
    scene.wait_until("the deployment to run", &ready, |said| said == "1");
    scene.kubectl(&["drain", "n1", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=100s"]).unwrap();
    scene.wait_none("volumeattachment");
    scene.wait_nothing_mounted();
    scene.kubectl(&["uncordon", "n1"]).unwrap();
    scene.wait_until("the deployment to run again", &ready, |said| said == "1");
    let word = scene.kubectl(&["exec", "deployment/app", "--", "cat", "/data/word"]).unwrap();
    assert_eq!(word, "written while the driver was away\n");
    scene.delete(&["deployment/app"]);
    let pods = ["get", "pods", "--output=name"];
    scene.wait_until("the deployment's pod to be gone", &pods, str::is_empty);
}

/// Nothing is left but the volume that its class keeps.
fn what_uninstalling_leaves(scene: &mut Scene) {
    scene.apply(&(claim("kept", "kept", "64Mi", "ReadWriteOnce", "") + &pod("keeper", "kept")));
    scene.wait_for("pod/keeper", "Ready");
    scene.inside("keeper", "echo for ever > /data/word && sync").unwrap();
    let volume = scene.get("pvc/kept", "{.spec.volumeName}");
    scene.delete(&["pod/keeper", "pvc/kept", "pvc/app"]);
    let volumes = ["get", "pv", "--output=name"];
    let kept = format!("persistentvolume/{volume}");
    scene.wait_until("all but the kept volume to be gone", &volumes, |said| said.trim() == kept);
    scene.wait_none("volumeattachment");

    let text = install::manifests(scene);
    let file = scene.cluster.plane().directory().join("deployed.yaml");
    std::fs::write(&file, text).unwrap();
    scene.kubectl(&["delete", &format!("--filename={}", file.display())]).unwrap();
    let pods = ["get", "pods", "--all-namespaces", "--output=name"];
    scene.wait_until("every pod to be gone", &pods, str::is_empty);
    scene.wait_nothing_mounted();

    let registry = scene.cluster.kubelet_dir().join("plugins_registry");
    let sockets: Vec<_> = std::fs::read_dir(registry).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(sockets.is_empty(), "{sockets:?}");
    let words = ["get", "csinode", "n1", "--output=jsonpath={.spec.drivers[*].name}"];
    scene.wait_until("the node to forget the driver", &words, str::is_empty);
    let ours = "clusterrole,clusterrolebinding,role,rolebinding,serviceaccount,daemonset,csidriver,csistoragecapacity";
    let left = scene.kubectl(&["get", ours, "--all-namespaces", "--output=name"]).unwrap();
    let left: Vec<&str> = left.lines().filter(|line| line.contains("longshore")).collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(scene.kubectl(&volumes).unwrap().trim(), kept);
    let files = install::files(scene);
    assert_eq!(files.len(), 1, "the kept volume's file alone: {files:?}");
}
