//! The driver as its users meet it: its binary, its socket, and the suite that judges any driver.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on should stop here, and says why")]

use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prove_conformance::{CaseVerdict, Restart, Suite, SuiteOptions};

/// A running driver in a directory of its own. Nothing of it stays mounted.
struct Bench {
    dir: tempfile::TempDir,
    process: Arc<Mutex<Child>>,
}

impl Bench {
    /// Nothing if this is not root, which is said.
    fn new() -> Option<Bench> {
        let root = std::fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
        if !root {
            println!("NOT TESTED: bind mounts need root");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let process = Arc::new(Mutex::new(start(&dir.path().canonicalize().unwrap())));
        Some(Bench { dir, process })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn endpoint(&self) -> String {
        format!("unix://{}", self.path("csi.sock").display())
    }

    fn mounts(&self) -> Vec<String> {
        let here = self.path("").display().to_string();
        let mounts = io_host::mounts_beneath(here.trim_end_matches('/')).unwrap();
        mounts.into_iter().map(|entry| entry.target).collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let mut process = self.process.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let _ = process.kill();
        let _ = process.wait();
        let left = self.mounts();
        for target in left.iter().rev() {
            let _ = Command::new("umount").arg(target).status();
        }
        if !std::thread::panicking() {
            assert!(left.is_empty(), "left behind: {left:?}");
        }
    }
}

fn start(dir: &std::path::Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_tiny-driver"))
        .env("CSI_ENDPOINT", format!("unix://{}", dir.join("csi.sock").display()))
        .env("STATE_DIR", dir.join("state"))
        .env("NODE_ID", "n1")
        .spawn()
        .unwrap()
}

/// Kills the driver and starts it again.
fn restart(bench: &Bench) -> Restart {
    let (process, dir) = (bench.process.clone(), bench.path(""));
    Arc::new(move || {
        let mut process = process.lock().unwrap();
        let killed = process.kill().and_then(|()| process.wait());
        *process = start(&dir);
        Box::pin(async move { killed.map(drop).map_err(|error| error.to_string()) })
    })
}

async fn until_it_serves(endpoint: &str) {
    let driver = io_csi::Driver::new(Arc::new(io_csi::CsiClient::new()), endpoint);
    driver.connected(Duration::from_secs(30)).await.unwrap();
    driver.ready(Duration::from_secs(5)).await.unwrap();
}

#[test]
fn the_whole_driver_has_less_than_200_lines() {
    let sources = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).unwrap();
    let lines: usize = sources.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap().lines().count()).sum();
    assert!(lines < 200, "it has {lines} lines");
}

#[tokio::test]
async fn the_conformance_suite_finds_nothing_wrong() {
    let Some(bench) = Bench::new() else { return };
    until_it_serves(&bench.endpoint()).await;
    let options = SuiteOptions {
        staging_dir: bench.path("staging"),
        target_dir: bench.path("target"),
        restart: Some(restart(&bench)),
        root: true,
        ..SuiteOptions::new(bench.endpoint())
    };
    let suite = Suite::meet(options).await.unwrap();
    let cases = prove_conformance::cases::all();
    let report = prove_conformance::run(Arc::new(suite), &cases, std::future::pending(), |_| {}).await;
    println!("{}", report.text(false));
    assert!(report.holds());
    let passed = report.finished.iter().filter(|case| case.verdict == CaseVerdict::Passed).count();
    assert!(passed > 80, "only {passed} cases passed");
}

#[cfg(feature = "interop")]
#[tokio::test]
async fn the_go_csi_sanity_passes() {
    let Some(bench) = Bench::new() else { return };
    until_it_serves(&bench.endpoint()).await;
    let sanity = prove_cluster::peer("csi-sanity").unwrap();
    let output = Command::new(sanity)
        .arg(format!("--csi.endpoint={}", bench.endpoint()))
        .arg(format!("--csi.stagingdir={}", bench.path("staging").display()))
        .arg(format!("--csi.mountdir={}", bench.path("mount").display()))
        .arg("--ginkgo.no-color")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(output.status.success());
    assert!(said.contains("| 0 Failed |"), "no summary");
}
