//! The real driver in a directory of its own, killed and started again.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use csi::{Call, Response, Status};
use io_csi::CsiClient;

use crate::model::NODE;

/// How long one call may take. Far more than any does; it ends a storm that hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Calls the driver from one thread.
pub struct Caller {
    runtime: tokio::runtime::Runtime,
    client: CsiClient,
    socket: String,
}

impl Caller {
    pub fn new(socket: &str) -> Caller {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Caller { runtime, client: CsiClient::new(), socket: socket.to_owned() }
    }

    pub fn call(&self, call: Call) -> Result<Response, Status> {
        self.runtime.block_on(self.client.call(&self.socket, call, PATIENCE))
    }
}

pub struct Driver {
    dir: tempfile::TempDir,
    process: Option<Child>,
}

impl Driver {
    /// Nothing if this is not root, which is said.
    pub fn new() -> Option<Driver> {
        let root = std::fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
        if !root {
            println!("NOT TESTED: mounts and loop devices need root");
            return None;
        }
        Some(Driver { dir: tempfile::tempdir().unwrap(), process: None })
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    pub fn socket(&self) -> String {
        self.path("csi.sock").to_str().unwrap().to_owned()
    }

    /// Starts it, without waiting until it answers.
    pub fn spawn(&mut self) {
        assert!(self.process.is_none(), "it runs already");
        let mut command = Command::new(env!("CARGO_BIN_EXE_longshore"));
        command.arg("driver").arg("--data-dir").arg(self.path("data")).arg("--state-dir").arg(self.path("state"));
        command.args(["--endpoint", &self.socket(), "--node-id", NODE, "--no-registration"]);
        let said = std::fs::File::create(self.path("log")).unwrap();
        self.process = Some(command.stdout(Stdio::null()).stderr(said).spawn().unwrap());
    }

    /// What it wrote since it was started.
    fn said(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Waits until it says that it is ready.
    pub fn ready(&mut self) {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(ended) = self.process.as_mut().and_then(|process| process.try_wait().unwrap()) {
                panic!("the driver ended by itself ({ended}): {}", self.said());
            }
            if let Ok(Response::Probe(probe)) = Caller::new(&self.socket()).call(Call::Probe(Default::default()))
                && probe.ready == Some(true)
            {
                return;
            }
            assert!(Instant::now() < until, "the driver did not become ready: {}", self.said());
            std::thread::sleep(Duration::from_millis(3));
        }
    }

    /// SIGKILL, now.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    pub fn mounts(&self) -> Vec<PathBuf> {
        let here = self.path("");
        let entries = io_host::mounts_beneath(here.to_str().unwrap().trim_end_matches('/')).unwrap();
        entries.into_iter().map(|entry| PathBuf::from(entry.target)).collect()
    }

    /// Backing file and device of each loop device on a file of ours.
    pub fn loops(&self) -> Vec<(PathBuf, String)> {
        let here = self.path("");
        let all = io_host::loops().unwrap().into_iter();
        all.map(|entry| (PathBuf::from(entry.backing_path), entry.device))
            .filter(|(file, _)| file.starts_with(&here))
            .collect()
    }
}

impl Drop for Driver {
    /// After a failure: nothing of ours stays mounted or attached on the machine.
    fn drop(&mut self) {
        self.kill();
        for target in self.mounts().iter().rev() {
            let _ = Command::new("fsfreeze").arg("-u").arg(target).stderr(Stdio::null()).status();
            let _ = Command::new("umount").arg(target).status();
        }
        for (_, device) in self.loops() {
            let _ = Command::new("losetup").args(["-d", &device]).status();
        }
    }
}
