//! The images and the chart as they are shipped, by the real helm on a real node: installed, upgraded beneath a pod
//! that uses a volume, taken away beneath it, and installed again for what was left.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use prove_cluster::peer;

use crate::install::{self, DRIVER};
use crate::objects::{claim, pod};
use crate::scene::Scene;

const GO_SIDECARS: [&str; 3] = ["csi-provisioner", "csi-resizer", "csi-snapshotter"];
const PODS: [&str; 2] = ["--namespace=kube-system", "--selector=app.kubernetes.io/name=local-csi-longshore"];

#[test]
fn the_chart_is_installed_upgraded_and_taken_away_beneath_pods() {
    let mut scene = Scene::bare();
    let loaded = Instant::now();
    for image in ["longshore", "longshore-driver"] {
        scene.cluster.load_archive(&shipped(&format!("{image}.tar"))).unwrap();
    }
    println!("both images imported: {:.1} s", loaded.elapsed().as_secs_f64());
    let before = wait_for_what_is_always_there(&mut scene);

    let notes = from_nothing_to_a_pod(&mut scene);
    an_upgrade_leaves_volumes_in_use_alone(&mut scene, &notes);
    uninstalling_leaves_volumes_and_what_accounts_for_them(&mut scene, &before);
    installed_again_it_serves_what_was_left(&mut scene);
    without_volumes_only_leases_are_left(&mut scene, &before, &notes);
    sizes();
}

/// As the README says: install, claim, pod. Returns what helm said.
fn from_nothing_to_a_pod(scene: &mut Scene) -> String {
    let begun = Instant::now();
    let notes = install(scene);
    println!("helm install to the driver ready on its node: {:.1} s", begun.elapsed().as_secs_f64());
    scene.apply(&(claim("app", DRIVER, "64Mi", "ReadWriteOnce", "") + &pod("app", "app")));
    scene.wait_for("pod/app", "Ready");
    println!("helm install to a pod ready with its volume: {:.1} s", begun.elapsed().as_secs_f64());
    scene.inside("app", "echo first > /data/word && sync").unwrap();
    notes
}

/// The driver's pod is another afterwards; the pod with the volume, its mounts and its loop device are the same, and
/// what was mounted by the pod before is unmounted by the one after.
fn an_upgrade_leaves_volumes_in_use_alone(scene: &mut Scene, notes: &str) {
    let (old, mounted) = (driver_pod(scene), scene.volumes_mounted());
    let running = scene.get("pod/app", "{.status.containerStatuses[0].containerID}");
    assert!(mounted.len() >= 2, "a volume is staged and published, and has a loop device: {mounted:?}");
    let begun = Instant::now();
    // A file that is open all the while: the mount it is on cannot have been another for a moment.
    let held = "exec 3>/data/held; for n in $(seq 100000); do echo $n >&3; sleep 0.1; done";
    scene.inside("app", &format!("({held}) >/tmp/held 2>&1 &")).unwrap();
    helm(scene, &["upgrade", "longshore", &chart(), "--reuse-values", "--set=driver.args={--pool-bytes=1073741824}"]);
    rollout(scene, notes);
    install::wait_ready(scene);
    println!("helm upgrade to the new driver ready on its node: {:.1} s", begun.elapsed().as_secs_f64());
    let new = driver_pod(scene);
    assert_ne!(new, old);
    let told = scene.kubectl(&[&["get", "pods", "--output=jsonpath={..args}"], &PODS[..]].concat()).unwrap();
    assert!(told.contains("--pool-bytes=1073741824"), "{told}");

    assert_eq!(scene.volumes_mounted(), mounted);
    assert_eq!(scene.get("pod/app", "{.status.containerStatuses[0].containerID}"), running);
    assert_eq!(scene.inside("app", "cat /data/word /tmp/held").unwrap(), "first\n");
    let count = |scene: &Scene| scene.inside("app", "wc -l < /data/held").unwrap().trim().parse::<u32>().unwrap();
    let reached = count(scene);
    let words = ["exec", "app", "--", "sh", "-c", "wc -l < /data/held"];
    scene.wait_until("the file that was open all the while to grow", &words, |said| {
        said.trim().parse::<u32>().is_ok_and(|lines| lines > reached)
    });
    scene.delete(&["pod/app"]);
    scene.wait_nothing_mounted();
    scene.apply(&pod("app", "app"));
    scene.wait_for("pod/app", "Ready");
    assert_eq!(scene.inside("app", "cat /data/word").unwrap(), "first\n");
}

/// Of everything the server can list, what is new since before the chart came is the claims, volumes and pods that
/// users made, and Leases; on the node the mounts of the pod that runs are the same.
fn uninstalling_leaves_volumes_and_what_accounts_for_them(scene: &mut Scene, before: &BTreeSet<String>) {
    scene.apply(&(claim("kept", DRIVER, "64Mi", "ReadWriteOnce", "") + &pod("writer", "kept")));
    scene.wait_for("pod/writer", "Ready");
    scene.inside("writer", "echo kept > /data/word && sync").unwrap();
    scene.delete(&["pod/writer"]);
    let (app, kept) = (scene.get("pvc/app", "{.spec.volumeName}"), scene.get("pvc/kept", "{.spec.volumeName}"));
    let mounted = scene.volumes_mounted();

    uninstall(scene);
    let mut left = wait_for_new(scene, before, |left| left.iter().all(|name| is_of_volumes(name)));
    left.retain(|name| !name.starts_with("Lease "));
    let volumes = [format!("PersistentVolume /{app}"), format!("PersistentVolume /{kept}")];
    let claims = ["PersistentVolumeClaim default/app", "PersistentVolumeClaim default/kept", "Pod default/app"];
    assert_eq!(left, volumes.into_iter().chain(claims.map(String::from)).collect());
    assert_eq!(scene.volumes_mounted(), mounted);
    scene.inside("app", "echo without a driver > /data/word && sync").unwrap();
    assert_eq!(install::files(scene).len(), 2, "the volumes' files");
}

/// What the first installation made, the next one mounts, unmounts and deletes.
fn installed_again_it_serves_what_was_left(scene: &mut Scene) {
    install(scene);
    scene.apply(&pod("reader", "kept"));
    scene.wait_for("pod/reader", "Ready");
    assert_eq!(scene.inside("reader", "cat /data/word").unwrap(), "kept\n");
    assert_eq!(scene.inside("app", "cat /data/word").unwrap(), "without a driver\n");
    scene.delete(&["pod/reader", "pod/app"]);
    scene.wait_nothing_mounted();
    scene.delete(&["pvc/app", "pvc/kept"]);
    scene.wait_none("pv");
    assert_eq!(install::files(scene).len(), 0, "the volumes' files");
}

/// And these go by the command of the notes.
fn without_volumes_only_leases_are_left(scene: &mut Scene, before: &BTreeSet<String>, notes: &str) {
    uninstall(scene);
    let left = wait_for_new(scene, before, |left| left.iter().all(|name| name.starts_with("Lease ")));
    assert!(left.iter().any(|name| name.contains("longshore-journal")), "{left:?}");
    shell(scene, notes.lines().rfind(|line| line.contains("get leases")).unwrap());
    assert_eq!(new(scene, before), BTreeSet::new());
    let registry = scene.cluster.kubelet_dir().join("plugins_registry");
    assert_eq!(std::fs::read_dir(registry).unwrap().count(), 0, "sockets of drivers that are gone");
    let words = ["get", "csinode", "n1", "--output=jsonpath={.spec.drivers[*].name}"];
    scene.wait_until("the node to forget the driver", &words, str::is_empty);
}

/// For docs/conformance.md; nothing hangs on them.
fn sizes() {
    let megabytes = |path: PathBuf| path.metadata().unwrap().len() as f64 / 1e6;
    for archive in ["longshore.tar", "longshore-driver.tar"] {
        println!("{archive}: {:.1} MB", megabytes(shipped(archive)));
    }
    for program in GO_SIDECARS {
        println!("the binary of {program}: {:.1} MB", megabytes(peer(program).unwrap()));
    }
}

/// Installs the chart and waits until the driver is ready, as the notes say; returns them.
fn install(scene: &mut Scene) -> String {
    let kubelet = format!("--set=kubeletDir={}", scene.cluster.kubelet_dir().display());
    let notes = helm(scene, &["install", "longshore", &chart(), &kubelet]);
    rollout(scene, &notes);
    install::wait_ready(scene);
    notes
}

/// Returns when every pod of the chart is gone.
fn uninstall(scene: &mut Scene) {
    helm(scene, &["uninstall", "longshore"]);
    scene.wait_until("the driver's pod to be gone", &[&["get", "pods", "--output=name"], &PODS[..]].concat(), |said| {
        said.is_empty()
    });
}

/// What `make image chart` made.
fn shipped(name: &str) -> PathBuf {
    let folder =
        std::env::var_os("LONGSHORE_IMAGES").expect("`make interop-kubelet` makes them and says where they are");
    PathBuf::from(folder).join(name)
}

fn chart() -> String {
    shipped(concat!("longshore-", env!("CARGO_PKG_VERSION"), ".tgz")).display().to_string()
}

fn helm(scene: &Scene, words: &[&str]) -> String {
    let plane = scene.cluster.plane();
    let home = plane.directory().join("helm");
    let mut command = Command::new(peer("helm").unwrap());
    command.args(words).arg("--namespace=kube-system").env("KUBECONFIG", plane.kubeconfig()).env("HOME", &home);
    for variable in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(variable, &home);
    }
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "helm {words:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Waits for the pods with the command of the notes.
fn rollout(scene: &Scene, notes: &str) {
    let command = notes.lines().find(|line| line.contains("rollout status")).unwrap();
    shell(scene, &format!("{command} --timeout=120s"));
}

fn shell(scene: &Scene, command: &str) {
    let config = scene.cluster.plane().kubeconfig();
    let output = Command::new("sh").args(["-ec", command]).env("KUBECONFIG", config).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
}

fn driver_pod(scene: &Scene) -> String {
    scene.kubectl(&[&["get", "pods", "--output=name"], &PODS[..]].concat()).unwrap()
}

/// What there is when the server, the controllers and the kubelet have made what they always make.
fn wait_for_what_is_always_there(scene: &mut Scene) -> BTreeSet<String> {
    let namespaces = ["default", "kube-system", "kube-public", "kube-node-lease"];
    let by_controllers = ["serviceaccount/default", "configmap/kube-root-ca.crt"];
    let mut always: Vec<_> = namespaces.iter().flat_map(|at| by_controllers.map(|what| (*at, what))).collect();
    always.push(("kube-node-lease", "lease/n1"));
    always.push(("kube-system", "lease --selector=apiserver.kubernetes.io/identity=kube-apiserver"));
    for (namespace, what) in always {
        let mut words = vec!["get", "--namespace", namespace, "--ignore-not-found", "--output=name"];
        words.extend(what.split(' '));
        scene.wait_until(&format!("{what} of {namespace}"), &words, |said| !said.is_empty());
    }
    objects(scene)
}

/// Everything the server can list, by kind and name.
fn objects(scene: &Scene) -> BTreeSet<String> {
    let kinds = scene.kubectl(&["api-resources", "--verbs=list", "--output=name"]).unwrap();
    let kinds: Vec<&str> = kinds.lines().filter(|kind| !kind.starts_with("events")).collect();
    let path = "--output=jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{\"\\n\"}{end}";
    let all = scene.kubectl(&["get", &kinds.join(","), "--all-namespaces", path]).unwrap();
    all.lines().map(String::from).collect()
}

fn new(scene: &Scene, before: &BTreeSet<String>) -> BTreeSet<String> {
    objects(scene).difference(before).cloned().collect()
}

/// What the garbage collector takes goes a moment later.
fn wait_for_new(
    scene: &mut Scene,
    before: &BTreeSet<String>,
    wanted: impl Fn(&BTreeSet<String>) -> bool,
) -> BTreeSet<String> {
    let until = Instant::now() + crate::scene::PATIENCE;
    loop {
        let left = new(scene, before);
        if wanted(&left) {
            return left;
        }
        assert!(Instant::now() < until, "still there: {left:#?}\n{}", scene.told());
        std::thread::sleep(crate::scene::PAUSE);
    }
}

fn is_of_volumes(name: &str) -> bool {
    ["PersistentVolume ", "PersistentVolumeClaim ", "Pod default/", "Lease "].iter().any(|kind| name.starts_with(kind))
}
