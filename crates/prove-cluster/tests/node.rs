//! A real node beside the control plane: pods run on it and reach the API server, and nothing of it stays.
#![allow(clippy::unwrap_used)]

use prove_cluster::{Options, RealCluster, eventually};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: app, namespace: default}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: busybox
    imagePullPolicy: Never
    command: [sh, -c, 'trap exit TERM; sleep 1000 & wait']
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, emptyDir: {medium: Memory}}]
";

fn expect(cluster: &RealCluster, what: &str, args: &[&str], wanted: &str) {
    let seen = eventually(what, PATIENCE, || match cluster.plane().kubectl(args) {
        Ok(printed) if printed.contains(wanted) => Ok(()),
        Ok(printed) => Err(printed),
        Err(error) => Err(error.to_string()),
    });
    seen.unwrap();
}

/// Mounts, control groups, bridges and supervisors of containers that name the process or the directory.
fn traces(directory: &Path) -> Vec<String> {
    let here = directory.display().to_string();
    let ours = format!("lsh{}x", std::process::id());
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut left: Vec<String> = mounts.lines().filter(|line| line.contains(&here)).map(String::from).collect();
    for folder in ["/sys/fs/cgroup/pids", "/sys/fs/cgroup/memory", "/sys/class/net"] {
        let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        left.extend(names.map(|path: PathBuf| path.display().to_string()).filter(|name| name.contains(&ours)));
    }
    let processes = Command::new("ps").args(["-eo", "args"]).output().unwrap();
    let processes = String::from_utf8_lossy(&processes.stdout).into_owned();
    left.extend(processes.lines().filter(|line| line.contains(&here)).map(String::from));
    left
}

#[test]
fn a_pod_runs_on_a_real_node_and_nothing_of_it_stays() {
    let mut cluster = RealCluster::start(Options::default()).unwrap();
    expect(&cluster, "the default service account", &["get", "serviceaccounts", "--output=name"], "default");
    cluster.plane().apply(POD).unwrap();
    let phase = ["get", "pod", "app", "--output=jsonpath={.status.phase}"];
    expect(&cluster, "the pod to run", &phase, "Running");
    let reach = "nc -w 5 $KUBERNETES_SERVICE_HOST 443 < /dev/null && echo reached";
    let inside = |command: &str| cluster.plane().kubectl(&["exec", "app", "--", "sh", "-c", command]).unwrap();
    assert_eq!(inside(reach), "reached\n");
    assert_eq!(inside("stat -f -c %T /data"), "tmpfs\n");

    let container = ["get", "pod", "app", "--output=jsonpath={.status.containerStatuses[0].containerID}"];
    let before = cluster.plane().kubectl(&container).unwrap();
    cluster.restart_kubelet().unwrap();
    assert_eq!(cluster.plane().kubectl(&container).unwrap(), before);

    // The pod runs still: its container, mounts and network are taken from it.
    let directory = cluster.plane().directory().to_path_buf();
    assert!(traces(&directory).iter().any(|trace| trace.contains("containerd-shim")));
    drop(cluster);
    assert_eq!(traces(&directory), Vec::<String>::new());
    assert!(!directory.exists());
}
