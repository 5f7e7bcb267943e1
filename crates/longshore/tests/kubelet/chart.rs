//! The images and the chart as they are shipped, by the real helm on a real node: installed, upgraded beneath a pod
//! that uses a volume, taken away beneath it, and installed again for what was left.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

use prove_cluster::peer;

use crate::helm;
use crate::install::{self, DRIVER};
use crate::objects::{claim, pod};
use crate::scene::Scene;
use crate::steps;

const GO_SIDECARS: [&str; 4] = ["csi-provisioner", "csi-attacher", "csi-resizer", "csi-snapshotter"];
const PODS: [&str; 2] = ["--namespace=kube-system", "--selector=app.kubernetes.io/name=local-csi-longshore"];

#[test]
fn the_chart_is_installed_upgraded_and_taken_away_beneath_pods() {
    let mut scene = Scene::bare();
    let loaded = Instant::now();
    // ctr takes the socket of the containerd that it talks to from the environment.
    let socket = scene.cluster.runtime_socket();
    typed(&scene, &format!("export CONTAINERD_ADDRESS={socket}; {}", helm::of_readme("for image in")));
    println!("both images imported: {:.1} s", loaded.elapsed().as_secs_f64());
    let before = wait_for_what_is_always_there(&mut scene);

    let notes = from_nothing_to_a_pod(&mut scene);
    changes_of_the_release_leave_volumes_in_use_alone(&mut scene, &notes);
    uninstalling_leaves_volumes_and_what_accounts_for_them(&mut scene, &before);
    installed_again_it_serves_what_was_left(&mut scene);
    without_volumes_only_leases_are_left(&mut scene, &before, &notes);
    sizes();
}

/// The chart before this one, as users have it: install, claim, pod. Returns what helm said.
fn from_nothing_to_a_pod(scene: &mut Scene) -> String {
    let begun = Instant::now();
    let notes = helm(scene, &["install", "longshore", helm::BEFORE, &kubelet(scene)]);
    rollout(scene, &notes);
    install::wait_ready(scene);
    println!("helm install to the driver ready on its node: {:.1} s", begun.elapsed().as_secs_f64());
    scene.apply(&(claim("app", DRIVER, "64Mi", "ReadWriteOnce", "") + &pod("app", "app")));
    scene.wait_for("pod/app", "Ready");
    println!("helm install to a pod ready with its volume: {:.1} s", begun.elapsed().as_secs_f64());
    scene.inside("app", "echo first > /data/word && sync").unwrap();
    notes
}

/// Upgraded to this chart, back to the one before, and upgraded again: the driver's pod is another each time, while the
/// pod with the volume, its mounts and its loop device are the same. What the first driver mounted, the last unmounts.
fn changes_of_the_release_leave_volumes_in_use_alone(scene: &mut Scene, notes: &str) {
    let mounted = scene.volumes_mounted();
    let running = scene.get("pod/app", "{.status.containerStatuses[0].containerID}");
    assert!(mounted.len() >= 2, "a volume is staged and published, and has a loop device: {mounted:?}");
    // A file that is open all the while: the mount it is on cannot have been another for a moment.
    let held = "exec 3>/data/held; for n in $(seq 100000); do echo $n >&3; sleep 0.1; done";
    scene.inside("app", &format!("({held}) >/tmp/held 2>&1 &")).unwrap();
    let chart = chart();
    let upgrade = ["upgrade", "longshore", &chart, "--reset-then-reuse-values"];
    let more = [&upgrade[..], &["--set=driver.args={--pool-bytes=1073741824}"]].concat();
    let (first, told) = (["rollback", "longshore", "1"], "--pool-bytes=1073741824");
    for (words, wanted) in [(&more[..], true), (&first[..], false), (&more[..], true)] {
        let (begun, old) = (Instant::now(), driver_pod(scene));
        helm(scene, words);
        rollout(scene, notes);
        install::wait_ready(scene);
        println!("helm {} to the other driver ready on its node: {:.1} s", words[0], begun.elapsed().as_secs_f64());
        assert_ne!(driver_pod(scene), old);
        let args = scene.kubectl(&[&["get", "pods", "--output=jsonpath={..args}"], &PODS[..]].concat()).unwrap();
        assert_eq!(args.contains(told), wanted, "{args}");

        assert_eq!(scene.volumes_mounted(), mounted);
        assert_eq!(scene.get("pod/app", "{.status.containerStatuses[0].containerID}"), running);
        assert_eq!(scene.inside("app", "cat /data/word /tmp/held").unwrap(), "first\n");
        let count = |scene: &Scene| scene.inside("app", "wc -l < /data/held").unwrap().trim().parse::<u32>().unwrap();
        let reached = count(scene);
        let words = ["exec", "app", "--", "sh", "-c", "wc -l < /data/held"];
        scene.wait_until("the file that was open all the while to grow", &words, |said| {
            said.trim().parse::<u32>().is_ok_and(|lines| lines > reached)
        });
    }
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

/// What the first installation made, the next one mounts, unmounts and deletes; in between it does for new claims and
/// pods what a driver does that is deployed otherwise.
fn installed_again_it_serves_what_was_left(scene: &mut Scene) {
    install(scene);
    steps::who_owns_the_files(scene, DRIVER);
    steps::raw_blocks(scene, DRIVER);
    steps::volumes_of_pods(scene, DRIVER);
    steps::one_pod_alone(scene, DRIVER);
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
    typed(scene, notes.lines().rfind(|line| line.contains("get leases")).unwrap());
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

/// Installs the chart as the README says, and waits until the driver is ready as the notes say.
fn install(scene: &mut Scene) {
    let notes = typed(scene, &format!("{} {}", helm::of_readme("helm install longshore"), kubelet(scene)));
    rollout(scene, &notes);
    install::wait_ready(scene);
}

/// The node's kubelet is not where they usually are.
fn kubelet(scene: &Scene) -> String {
    format!("--set=kubeletDir={}", scene.cluster.kubelet_dir().display())
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
    shipped(&helm::archive()).display().to_string()
}

fn helm(scene: &Scene, words: &[&str]) -> String {
    let words = [words, &["--namespace=kube-system"]].concat();
    let said = helm::helm(&words, &home(scene), Some(scene.cluster.plane().kubeconfig()));
    said.unwrap_or_else(|error| panic!("helm {words:?}: {error}"))
}

/// Runs a command where the images and the chart are, as a user types it.
fn typed(scene: &Scene, command: &str) -> String {
    let command = format!("cd {}; {command}", shipped("").display());
    let said = helm::typed(&command, &home(scene), scene.cluster.plane().kubeconfig());
    said.unwrap_or_else(|error| panic!("{command}: {error}"))
}

fn home(scene: &Scene) -> PathBuf {
    scene.cluster.plane().directory().join("helm")
}

/// Waits for the pods with the command of the notes.
fn rollout(scene: &Scene, notes: &str) {
    let command = notes.lines().find(|line| line.contains("rollout status")).unwrap();
    typed(scene, &format!("{command} --timeout=120s"));
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
