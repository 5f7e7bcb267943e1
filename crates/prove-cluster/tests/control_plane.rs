//! The control plane itself, on the real programs: what it offers, and that nothing of it stays.
#![allow(clippy::unwrap_used)]

use prove_cluster::{ControlPlane, Error, Options, eventually};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

const CLAIMS: &str = "
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: outside}
provisioner: some.driver.test
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: asked-for, namespace: trial}
spec: {storageClassName: outside, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: ready-made, namespace: trial}
spec: {storageClassName: '', accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: by-hand}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  csi: {driver: some.driver.test, volumeHandle: handle-1}
";

const POD: &str = "
apiVersion: v1
kind: Node
metadata: {name: n1}
status:
  allocatable: {cpu: '4', memory: 4Gi, pods: '10'}
  capacity: {cpu: '4', memory: 4Gi, pods: '10'}
---
apiVersion: v1
kind: Pod
metadata: {name: consumer, namespace: trial}
spec:
  tolerations: [{operator: Exists}]
  containers: [{name: main, image: none}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: ready-made}}]
";

/// Everything that must be gone afterwards.
struct Traces {
    processes: Vec<u32>,
    directory: PathBuf,
}

impl Traces {
    fn of(plane: &ControlPlane) -> Traces {
        let processes = plane.processes().iter().map(|process| process.id()).collect();
        Traces { processes, directory: plane.directory().to_path_buf() }
    }

    fn running(&self) -> Vec<u32> {
        self.processes.iter().copied().filter(|pid| runs(*pid)).collect()
    }

    fn assert_gone(&self) {
        assert_eq!(self.running(), Vec::<u32>::new());
        assert!(!self.directory.exists(), "{} is still there", self.directory.display());
    }
}

fn runs(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}

fn expect(plane: &ControlPlane, what: &str, args: &[&str], wanted: &str) {
    let seen = eventually(what, PATIENCE, || match plane.kubectl(args) {
        Ok(printed) if printed.contains(wanted) => Ok(()),
        Ok(printed) => Err(printed),
        Err(error) => Err(error.to_string()),
    });
    seen.unwrap();
}

#[test]
fn a_whole_control_plane_works_and_leaves_nothing_behind() {
    let options = Options { controller_manager: true, scheduler: true, ..Options::default() };
    let mut plane = ControlPlane::start(options).unwrap();
    let traces = Traces::of(&plane);
    assert_eq!(traces.running().len(), 4);

    plane.kubectl(&["create", "namespace", "trial"]).unwrap();
    plane.apply(CLAIMS).unwrap();
    let bound =
        ["get", "pvc", "ready-made", "--namespace=trial", "--output=jsonpath={.status.phase} {.spec.volumeName}"];
    expect(&plane, "the controller manager to bind the claim", &bound, "Bound by-hand");
    let events = ["get", "events", "--namespace=trial", "--output=jsonpath={.items[*].reason}"];
    expect(&plane, "the controller manager to ask for a volume", &events, "ExternalProvisioning");
    let account = ["get", "serviceaccounts", "--namespace=trial", "--output=name"];
    expect(&plane, "the default service account", &account, "serviceaccount/default");
    plane.apply(POD).unwrap();
    let placed = ["get", "pod", "consumer", "--namespace=trial", "--output=jsonpath={.spec.nodeName}"];
    expect(&plane, "the scheduler to place the pod", &placed, "n1");

    plane.check().unwrap();
    drop(plane);
    traces.assert_gone();
}

#[test]
fn rbac_is_on_and_a_panic_leaves_nothing_behind() {
    let users = vec![("sidecar".to_string(), vec!["drivers".to_string()])];
    let plane = ControlPlane::start(Options { users, ..Options::default() }).unwrap();
    let version = plane.kubectl(&["get", "--raw=/version"]).unwrap();
    assert!(version.contains("\"gitVersion\": \"v1."), "{version}");

    let list = ["get", "persistentvolumes"];
    let refused = plane.kubectl_as("sidecar", &list).unwrap_err().to_string();
    assert!(refused.contains("Forbidden"), "{refused}");
    plane.kubectl(&["create", "clusterrole", "reader", "--verb=get,list", "--resource=persistentvolumes"]).unwrap();
    plane.kubectl(&["create", "clusterrolebinding", "reader", "--clusterrole=reader", "--group=drivers"]).unwrap();
    eventually("the role to be heeded", PATIENCE, || plane.kubectl_as("sidecar", &list).map_err(|e| e.to_string()))
        .unwrap();

    let traces = Traces::of(&plane);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _held = plane;
        std::panic::resume_unwind(Box::new(()));
    }));
    assert!(panicked.is_err());
    traces.assert_gone();
}

#[test]
fn a_start_that_fails_tells_the_programs_own_words() {
    let apiserver_flags = vec!["--no-such-flag".to_string()];
    let error = ControlPlane::start(Options { apiserver_flags, ..Options::default() }).unwrap_err();
    assert!(matches!(&error, Error::Ended { program, .. } if program == "kube-apiserver"), "{error}");
    assert!(error.to_string().contains("unknown flag: --no-such-flag"), "{error}");
}

#[test]
fn a_killed_test_process_leaves_no_process_and_its_directory_only_until_the_next_start() {
    let mut holder =
        Command::new(env!("CARGO_BIN_EXE_prove-cluster")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines().map(Result::unwrap);
    let kubeconfig = lines.next().unwrap();
    let directory = Path::new(kubeconfig.strip_prefix("export KUBECONFIG=").unwrap()).parent().unwrap().to_path_buf();
    let processes: Vec<u32> = lines
        .take_while(|line| !line.contains("close the input"))
        .map(|line| line.split("process ").nth(1).unwrap().split(',').next().unwrap().parse().unwrap())
        .collect();
    let traces = Traces { processes, directory };
    assert_eq!(traces.running().len(), 4);

    holder.kill().unwrap();
    holder.wait().unwrap();
    eventually("the kernel to end the processes", PATIENCE, || match traces.running() {
        left if left.is_empty() => Ok(()),
        left => Err(format!("{left:?}")),
    })
    .unwrap();
    drop(prove_cluster::Scratch::new("sweep").unwrap());
    traces.assert_gone();
}
