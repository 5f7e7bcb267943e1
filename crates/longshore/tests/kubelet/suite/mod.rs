//! Kubernetes' own suite for external storage, `e2e.test`, on our driver and, as the baseline, on the Go hostpath
//! driver in the same cluster at the same time. It takes long: `make e2e`. What it finds is kept in
//! docs/conformance.md. `LONGSHORE_E2E_FOCUS` and `LONGSHORE_E2E_SKIP` take other regular expressions of what is run
//! and what of it is left out, `LONGSHORE_E2E_SEED` another order of the tests, `LONGSHORE_E2E_TIMEOUT` another time
//! than three hours.

mod images;
mod report;

use std::path::{Path, PathBuf};

use prove_cluster::peer;

use crate::scene::Scene;
use crate::{install, mixed, objects};
use report::Report;

/// What the suite's README says to run and to leave out, and of the rest what wants the cluster alone or takes long.
const FOCUS: &str = "External.Storage";
const SKIP: &str = r"\[Feature:|\[Disruptive\]|\[Serial\]|\[Slow\]";
/// What the suite skips on a driver that declares where its volumes can be reached.
const ANYWHERE: &str = r"External.Storage.*Generic.Ephemeral-volume.*\(immediate-binding\)";
/// In how many processes it runs for each driver.
const PROCESSES: u32 = 3;
const HOSTPATH: &str = "hostpath.csi.k8s.io";

#[test]
fn kubernetes_own_storage_suite_finds_no_fault_in_our_driver() {
    let mut scene = Scene::start();
    images::load(&scene);
    install::install(&mut scene);
    scene.apply(&objects::attributes_class("read-ahead", install::DRIVER, "readAheadKiB: '256'"));
    let ours = definitions(&scene, install::DRIVER, OURS);
    scene.beside(
        "our-snapshotter",
        &peer("csi-snapshotter").unwrap(),
        &[format!("--csi-address={}", install::socket(&scene))],
    );
    let socket = mixed::go_driver(&mut scene);
    mixed::go_sidecars(&mut scene, &socket);
    mixed::our_sidecar(&mut scene, HOSTPATH, &socket, "registrar");
    mixed::snapshotter(&mut scene, &socket);
    let theirs = definitions(&scene, HOSTPATH, THEIRS);

    let runs = [("ours", ours), ("hostpath", theirs)];
    let reports: Vec<Report> = std::thread::scope(|scope| {
        let started: Vec<_> = runs.iter().map(|(name, files)| scope.spawn(|| run_both(&scene, name, files))).collect();
        started.into_iter().map(|running| running.join().unwrap()).collect()
    });
    let table = report::table(&reports[0], &reports[1]);
    println!("{table}");
    report::keep(&table);
    assert_eq!(reports[0].failed(), Vec::<String>::new());
    let missed = reports[1].passed().into_iter().filter(|name| !reports[0].passed().contains(name));
    assert_eq!(missed.collect::<Vec<_>>(), Vec::<String>::new(), "the hostpath driver passes these and ours does not");
}

/// xfs, because ext4 cannot be grown under a pod on machines without CAP_SYS_RESOURCE.
const OURS: &str = "
  MaxFileSize: 104857600
  SupportedSizeRange: {Min: 512Mi}
  SupportedFsType: {'': {}, ext4: {}, xfs: {}}
  SupportedMountOption: {noatime: {}, nodev: {}}
  TopologyKeys: [topology.local.csi.longshore/node]
  Capabilities:
    persistence: true
    block: true
    fsGroup: true
    exec: true
    snapshotDataSource: true
    pvcDataSource: true
    multipods: true
    controllerExpansion: true
    nodeExpansion: true
    offlineExpansion: true
    onlineExpansion: true
    singleNodeVolume: true
    topology: true
    capacity: true
    readWriteOncePod: true
    multiplePVsSameID: true
VolumeAttributesClass: {FromExistingClassName: read-ahead}
InlineVolumes:
- Attributes: {size: 512Mi}
";

/// As the driver's own tests have it.
const THEIRS: &str = "
  MaxFileSize: 104857600
  SupportedSizeRange: {Min: 1Mi}
  SupportedFsType: {'': {}}
  TopologyKeys: [topology.hostpath.csi/node]
  Capabilities:
    persistence: true
    block: true
    exec: true
    snapshotDataSource: true
    pvcDataSource: true
    multipods: true
    controllerExpansion: true
    offlineExpansion: true
    onlineExpansion: true
    singleNodeVolume: true
    topology: true
    capacity: true
    readWriteOncePod: true
    multiplePVsSameID: true
    FSResizeFromSourceNotSupported: true
InlineVolumes:
- Attributes: {}
";

/// Writes the files that tell the suite of a driver, as it is and without where its volumes can be reached, and makes
/// the class it copies: one that waits for a pod, which the capacity test wants.
fn definitions(scene: &Scene, driver: &str, more: &str) -> [PathBuf; 2] {
    let class = format!("suite-{}", driver.replace('.', "-"));
    let filesystem = if driver == install::DRIVER { "parameters: {csi.storage.k8s.io/fstype: xfs}\n" } else { "" };
    scene.apply(&objects::class(&class, driver, &format!("{filesystem}volumeBindingMode: WaitForFirstConsumer")));
    let text = format!(
        "StorageClass: {{FromExistingClassName: {class}}}\nSnapshotClass: {{FromName: true}}\n\
         DriverInfo:\n  Name: {driver}{more}"
    );
    let (topology, anywhere): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.contains("opology"));
    assert_eq!(topology.len(), 2, "the keys and the capability: {topology:?}");
    let write = |name: String, text: &str| {
        let file = scene.cluster.plane().directory().join(name);
        std::fs::write(&file, text).unwrap();
        file
    };
    [write(format!("{driver}.yaml"), &text), write(format!("{driver}-anywhere.yaml"), &anywhere.join("\n"))]
}

/// What a variable says, or else the usual.
fn or(variable: &str, usual: &str) -> String {
    std::env::var(variable).unwrap_or(usual.to_string())
}

/// Runs what is selected and then, where nothing else was asked for, what the suite skips because of the topology that
/// the driver declares.
fn run_both(scene: &Scene, name: &str, [whole, anywhere]: &[PathBuf; 2]) -> Report {
    let report = run(scene, name, whole, &or("LONGSHORE_E2E_FOCUS", FOCUS));
    if std::env::var_os("LONGSHORE_E2E_FOCUS").is_some() {
        return report;
    }
    report.or(run(scene, &format!("{name}-anywhere"), anywhere, ANYWHERE))
}

/// Runs the suite on one driver, in several processes, for its tests mostly wait; the answers of the tests are in its
/// report, and its words in a file beside it.
fn run(scene: &Scene, name: &str, definition: &Path, focus: &str) -> Report {
    let directory = report::folder();
    std::fs::create_dir_all(&directory).unwrap();
    let (answers, words) = (directory.join(format!("{name}.json")), directory.join(format!("{name}.log")));
    let _ = std::fs::remove_file(&answers);
    // Ginkgo knows a built suite by how its name ends.
    let suite = scene.cluster.plane().directory().join(format!("{name}.test"));
    std::os::unix::fs::symlink(peer("e2e.test").unwrap(), &suite).unwrap();
    let output = std::fs::File::create(&words).unwrap();
    let _failures_are_in_the_report = std::process::Command::new(peer("ginkgo").unwrap())
        .args(["run", "--no-color"])
        .arg(format!("--seed={}", or("LONGSHORE_E2E_SEED", "1")))
        .arg(format!("--procs={PROCESSES}"))
        .arg(format!("--focus={focus}"))
        .arg(format!("--skip={}", or("LONGSHORE_E2E_SKIP", SKIP)))
        .arg(format!("--timeout={}", or("LONGSHORE_E2E_TIMEOUT", "3h")))
        .arg(format!("--output-dir={}", directory.display()))
        .arg(format!("--json-report={name}.json"))
        .arg(&suite)
        .arg("--")
        .arg(format!("--kubeconfig={}", scene.cluster.plane().kubeconfig().display()))
        .arg(format!("--storage.testdriver={}", definition.display()))
        .args(["--provider=skeleton", "--num-nodes=1"])
        .args(["--allowed-not-ready-nodes=0", "--delete-namespace-on-failure=true"])
        .current_dir(scene.cluster.plane().directory())
        .stdin(std::process::Stdio::null())
        .stdout(output.try_clone().unwrap())
        .stderr(output)
        .status()
        .unwrap();
    let text = std::fs::read_to_string(&answers);
    Report::read(&text.unwrap_or_else(|error| panic!("no report, {error}; see {}", words.display())))
}
