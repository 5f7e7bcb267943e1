//! Many pods with a volume each on one node, at once: how long until all of them run, and what each costs.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::life::{Scratch, kubectl, memory, stop, up};
use super::process::shims;

const PODS: usize = 100;
const PATIENCE: Duration = Duration::from_secs(300);

/// Measures and reports. Needs root.
pub fn run(binary: &str) -> io::Result<String> {
    let scratch = Scratch::new()?;
    let data = scratch.0.join("d");
    let (mut server, _) = up(binary, &data, Path::new("/dev/null"), &[])?;
    let (before, _) = memory(&server)?;
    let (shims_before, _) = shims()?;
    let file = scratch.0.join("pods.yaml");
    fs::write(&file, (0..PODS).map(manifest).collect::<String>())?;
    let began = Instant::now();
    kubectl(&data, &["apply", "-f", file.to_str().unwrap_or_default()])?;
    let applied = began.elapsed();
    let running = wait(&data, "Running", PODS, began)?;
    let (during, _) = memory(&server)?;
    let (shims_during, _) = shims()?;
    let deleted = Instant::now();
    kubectl(&data, &["delete", "-f", file.to_str().unwrap_or_default(), "--wait=false"])?;
    let gone = wait_gone(&data, deleted)?;
    let (after, _) = memory(&server)?;
    stop(&mut server)?;
    let mut report = String::new();
    let seconds = |time: Duration| format!("{:.2} s", time.as_secs_f64());
    let _ = writeln!(report, "{PODS} claims and {PODS} pods, each with an ext4 volume of its own, at once on one node");
    let _ = writeln!(report, "{:<52} {}", "kubectl has sent them", seconds(applied));
    let _ = writeln!(report, "{:<52} {}", "all pods run", seconds(running));
    let _ = writeln!(report, "{:<52} {}", "deleted to nothing left", seconds(gone));
    let each = (shims_during - shims_before) / PODS as f64;
    let _ = writeln!(report, "{:<52} {each:.0} kB", "private memory of a pod's supervisors");
    let _ =
        writeln!(report, "{:<52} {before:.1}, {during:.1}, {after:.1} MB", "the server: before, while they run, after");
    Ok(report)
}

fn manifest(number: usize) -> String {
    format!(
        "apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: c{number}}}
spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 16Mi}}}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: p{number}}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {{name: main, image: host, command: [sleep, '600'], volumeMounts: [{{name: data, mountPath: /data}}]}}
  volumes: [{{name: data, persistentVolumeClaim: {{claimName: c{number}}}}}]
---
"
    )
}

fn wait(data: &Path, phase: &str, wanted: usize, began: Instant) -> io::Result<Duration> {
    loop {
        let said = kubectl(data, &["get", "pods", "--output=jsonpath={.items[*].status.phase}"])?;
        let there = said.split_whitespace().filter(|said| *said == phase).count();
        if there == wanted {
            return Ok(began.elapsed());
        }
        if began.elapsed() > PATIENCE {
            return Err(io::Error::other(format!("only {there} of {wanted} pods are {phase} after five minutes")));
        }
    }
}

fn wait_gone(data: &Path, began: Instant) -> io::Result<Duration> {
    loop {
        let left = kubectl(data, &["get", "pod,pvc,pv,volumeattachment", "--output=name", "--ignore-not-found"])?;
        if left.is_empty() {
            return Ok(began.elapsed());
        }
        if began.elapsed() > PATIENCE {
            return Err(io::Error::other(format!("still there after five minutes: {left}")));
        }
    }
}
