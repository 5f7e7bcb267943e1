//! The real binary, its socket and its calls; checks that nothing is left mounted or attached.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use csi::v1::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume, access_mode::Mode};
use csi::v1::{self, VolumeCapability};
use csi::{Call, Code, Response, Status};
use io_csi::CsiClient;

pub const MIB: i64 = 1 << 20;

/// One process of the driver.
pub struct Driver {
    process: Child,
    socket: String,
    flags: Vec<String>,
    client: CsiClient,
    runtime: tokio::runtime::Runtime,
}

/// A directory with the driver's state and the places volumes go to.
pub struct Bench {
    dir: tempfile::TempDir,
}

impl Bench {
    /// Nothing if this is not root, which is said.
    pub fn new() -> Option<Bench> {
        let root = std::fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0);
        if !root {
            println!("NOT TESTED: mounts and loop devices need root");
            return None;
        }
        Some(Bench { dir: tempfile::tempdir().unwrap() })
    }

    pub fn path(&self, name: &str) -> String {
        self.dir.path().canonicalize().unwrap().join(name).to_str().unwrap().to_owned()
    }

    /// Starts the driver with these flags and waits until it answers.
    pub fn start(&self, name: &str, flags: &[&str]) -> Driver {
        let socket = self.path(&format!("{name}.sock"));
        let mut all = vec!["driver".to_string(), "--data-dir".into(), self.path("data"), "--state-dir".into()];
        all.extend([self.path("state"), "--endpoint".into(), format!("unix://{socket}"), "--node-id".into()]);
        all.extend(["n1".to_string(), "--no-registration".into()]);
        all.extend(flags.iter().map(|flag| flag.to_string()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let process = spawn(&all);
        let driver = Driver { process, socket, flags: all, client: CsiClient::new(), runtime };
        driver.ready();
        driver
    }

    fn leftovers(&self) -> Vec<String> {
        let here = self.path("");
        let mounts = io_host::mounts_beneath(here.trim_end_matches('/')).unwrap().into_iter().map(|entry| entry.target);
        let loops = io_host::loops().unwrap().into_iter().filter(|entry| entry.backing_path.starts_with(&here));
        mounts.chain(loops.map(|entry| entry.device)).collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let left = self.leftovers();
        for target in left.iter().rev().filter(|left| !left.starts_with("/dev/loop")) {
            let _ = Command::new("umount").arg(target).status();
        }
        for device in left.iter().filter(|left| left.starts_with("/dev/loop")) {
            let _ = Command::new("losetup").args(["-d", device]).status();
        }
        if !std::thread::panicking() {
            assert!(left.is_empty(), "left behind: {left:?}");
        }
    }
}

fn spawn(flags: &[String]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_longshore")).args(flags).stdout(Stdio::null()).spawn().unwrap()
}

impl Driver {
    fn ready(&self) {
        for _ in 0..200 {
            if let Ok(Response::Probe(probe)) = self.call(Call::Probe(Default::default()))
                && probe.ready == Some(true)
            {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("the driver did not become ready");
    }

    pub fn call(&self, call: Call) -> Result<Response, Status> {
        self.runtime.block_on(self.client.call(&self.socket, call, Duration::from_secs(60)))
    }

    #[track_caller]
    pub fn code(&self, call: Call) -> Code {
        match self.call(call.clone()) {
            Ok(_) => Code::Ok,
            Err(status) => {
                println!("{call:?}: {:?} {}", status.code, status.message);
                status.code
            }
        }
    }

    /// Does every call twice: each may be repeated.
    #[track_caller]
    pub fn all(&self, calls: &[Call]) {
        for call in calls {
            for _ in 0..2 {
                if let Err(status) = self.call(call.clone()) {
                    panic!("{call:?}: {:?} {}", status.code, status.message);
                }
            }
        }
    }

    /// Repeats a call for as long as another one is at work on the same volume, such as a copy that goes on.
    #[track_caller]
    pub fn patiently(&self, call: &Call) {
        for _ in 0..200 {
            match self.call(call.clone()) {
                Ok(_) => return,
                Err(status) if status.code == Code::Aborted => std::thread::sleep(Duration::from_millis(50)),
                Err(status) => panic!("{call:?}: {:?} {}", status.code, status.message),
            }
        }
        panic!("{call:?} is kept from running");
    }

    /// Killed while a call is under way, and started again.
    pub fn kill_during(&mut self, call: Call, pause: Duration) {
        let (client, socket) = (&self.client, &self.socket);
        let process = &mut self.process;
        self.runtime.block_on(async {
            let answer = client.call(socket, call, Duration::from_secs(60));
            let killed = async {
                tokio::time::sleep(pause).await;
                process.kill().unwrap();
            };
            // Whether it came to an answer makes no difference.
            let _ = tokio::join!(answer, killed);
        });
        self.kill_and_restart();
    }

    /// Killed without a warning, and started again.
    pub fn kill_and_restart(&mut self) {
        self.kill();
        self.restart();
    }

    /// Killed without a warning.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Started again.
    pub fn restart(&mut self) {
        self.process = spawn(&self.flags);
        self.client = CsiClient::new();
        self.ready();
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn writer(fs_type: &str) -> VolumeCapability {
    let mount = MountVolume { fs_type: fs_type.into(), ..Default::default() };
    let access_mode = Some(AccessMode { mode: Mode::SingleNodeWriter.into() });
    VolumeCapability { access_type: Some(AccessType::Mount(mount)), access_mode }
}

pub fn block() -> VolumeCapability {
    VolumeCapability { access_type: Some(AccessType::Block(BlockVolume {})), ..writer("") }
}

/// One volume and how it is used.
#[derive(Clone)]
pub struct Volume {
    pub id: &'static str,
    pub capability: VolumeCapability,
    pub parameters: &'static [(&'static str, &'static str)],
    pub staging: String,
    pub target: String,
}

impl Volume {
    pub fn new(bench: &Bench, id: &'static str, capability: VolumeCapability) -> Volume {
        let (staging, target) = (bench.path(&format!("stage/{id}")), bench.path(&format!("pods/{id}")));
        Volume { id, capability, parameters: &[], staging, target }
    }

    pub fn create(&self) -> v1::CreateVolumeRequest {
        v1::CreateVolumeRequest {
            name: self.id.into(),
            capacity_range: Some(v1::CapacityRange { required_bytes: 320 * MIB, limit_bytes: 0 }),
            volume_capabilities: vec![self.capability.clone()],
            parameters: self.parameters.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect(),
            ..Default::default()
        }
    }

    pub fn made(&self) -> Call {
        Call::CreateVolume(self.create())
    }

    pub fn attached(&self) -> Call {
        Call::ControllerPublishVolume(v1::ControllerPublishVolumeRequest {
            volume_id: self.id.into(),
            node_id: "n1".into(),
            volume_capability: Some(self.capability.clone()),
            ..Default::default()
        })
    }

    pub fn staged(&self) -> Call {
        Call::NodeStageVolume(v1::NodeStageVolumeRequest {
            volume_id: self.id.into(),
            staging_target_path: self.staging.clone(),
            volume_capability: Some(self.capability.clone()),
            ..Default::default()
        })
    }

    pub fn publish(&self) -> v1::NodePublishVolumeRequest {
        v1::NodePublishVolumeRequest {
            volume_id: self.id.into(),
            staging_target_path: self.staging.clone(),
            target_path: self.target.clone(),
            volume_capability: Some(self.capability.clone()),
            ..Default::default()
        }
    }

    pub fn published(&self) -> Call {
        Call::NodePublishVolume(self.publish())
    }

    pub fn unpublished(&self) -> Call {
        let (volume_id, target_path) = (self.id.into(), self.target.clone());
        Call::NodeUnpublishVolume(v1::NodeUnpublishVolumeRequest { volume_id, target_path })
    }

    pub fn unstaged(&self) -> Call {
        let (volume_id, staging_target_path) = (self.id.into(), self.staging.clone());
        Call::NodeUnstageVolume(v1::NodeUnstageVolumeRequest { volume_id, staging_target_path })
    }

    pub fn detached(&self) -> Call {
        let (volume_id, node_id) = (self.id.into(), "n1".into());
        Call::ControllerUnpublishVolume(v1::ControllerUnpublishVolumeRequest {
            volume_id,
            node_id,
            ..Default::default()
        })
    }

    pub fn deleted(&self) -> Call {
        Call::DeleteVolume(v1::DeleteVolumeRequest { volume_id: self.id.into(), ..Default::default() })
    }

    pub fn file(&self, name: &str) -> PathBuf {
        Path::new(&self.target).join(name)
    }
}
