//! A driver on a pretend machine that refuses whatever a real one would, and checks the laws after every operation.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use control::host::{Op, Reply};
use csi::v1::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume, access_mode::Mode};
use csi::v1::{self, VolumeCapability};
use csi::{Call, Code, Response, Status};

use crate::{Config, Facts, Mount, Run, State, Step, parse_record, prepare};

mod controller;
mod crash;
mod hostile;
mod node;

pub const MIB: i64 = 1 << 20;
pub const STAGING: &str = "/kubelet/staging/globalmount";

pub fn config() -> Config {
    Config {
        name: "local.csi.longshore".into(),
        version: "1".into(),
        node_id: "n1".into(),
        state_dir: "/state".into(),
        attach: true,
        pool_bytes: 4 << 30,
        max_volumes_per_node: 2,
    }
}

/// What is on disk and in the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct World {
    pub files: BTreeMap<String, Vec<u8>>,
    pub images: BTreeMap<String, u64>,
    pub dirs: BTreeSet<String>,
    pub filesystems: BTreeMap<String, String>,
    pub loops: BTreeMap<String, String>,
    pub mounts: BTreeMap<String, Mount>,
}

impl World {
    pub fn perform(&mut self, op: &Op) -> Result<Reply, String> {
        match op {
            Op::MakeDir { path } => {
                self.dirs.insert(path.clone());
            }
            Op::RemoveDir { path } if self.mounts.contains_key(path) => return Err(format!("{path} is a mount point")),
            Op::RemoveDir { path } => {
                self.dirs.remove(path);
            }
            Op::WriteFile { path, bytes } => {
                self.files.insert(path.clone(), bytes.clone());
            }
            Op::RemoveFile { path } => {
                assert!(!self.loops.contains_key(path), "{path} is removed under its loop device");
                self.files.remove(path);
                self.images.remove(path);
                self.filesystems.remove(&device(path));
            }
            Op::CreateImage { path, size } => match self.images.insert(path.clone(), *size) {
                None => {}
                Some(old) => assert_eq!(old, *size, "{path} has another size"),
            },
            Op::AttachLoop { image } if !self.images.contains_key(image) => return Err(format!("no file {image}")),
            Op::AttachLoop { image } => {
                self.loops.insert(image.clone(), device(image));
                return Ok(Reply::Device(device(image)));
            }
            Op::DetachLoop { image } => {
                assert!(!self.mounts.values().any(|m| m.device == device(image)), "{image} is in use");
                self.loops.remove(image);
            }
            Op::MakeFilesystem { device, fstype } => {
                assert!(self.loops.values().any(|d| d == device));
                let found = self.filesystems.entry(device.clone()).or_insert_with(|| fstype.clone());
                if found != fstype {
                    return Err(format!("{device} bears {found}"));
                }
            }
            Op::Mount { device, target, fstype, flags, read_only } => {
                assert!(flags.iter().all(|flag| flag == "noatime"), "{flags:?}");
                assert!(self.dirs.contains(target) && !self.mounts.contains_key(target), "mount at {target}");
                assert_eq!(self.filesystems.get(device), Some(fstype));
                let mount = Mount { device: device.clone(), fstype: fstype.clone(), read_only: *read_only };
                self.mounts.insert(target.clone(), mount);
            }
            Op::Bind { source, target, read_only } => {
                assert!(self.dirs.contains(target) && !self.mounts.contains_key(target), "bind at {target}");
                let mut mount = self.mounts.get(source).unwrap().clone();
                mount.read_only |= read_only;
                self.mounts.insert(target.clone(), mount);
            }
            Op::Unmount { target } => {
                self.mounts.remove(target);
            }
            Op::StartProcess(_) | Op::StopProcess { .. } | Op::ForgetProcess { .. } => panic!("no driver's business"),
        }
        Ok(Reply::Done)
    }

    fn check(&self, config: &Config) {
        let records: Vec<_> = self
            .files
            .iter()
            .map(|(path, bytes)| parse_record(path.strip_prefix("/state/volumes/").unwrap(), bytes).unwrap())
            .collect();
        // Reliability 80.
        assert!(records.iter().map(|volume| volume.size).sum::<u64>() <= config.pool_bytes);
        for image in self.images.keys() {
            assert!(records.iter().any(|volume| config.image_path(&volume.id) == *image), "{image} has no record");
        }
        // Reliability 77.
        for volume in records.iter().filter(|volume| volume.state == State::Ready) {
            assert_eq!(self.images.get(&config.image_path(&volume.id)), Some(&volume.size));
        }
    }
}

fn device(image: &str) -> String {
    format!("/dev/loop:{image}")
}

/// How a call is disturbed after so many operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process ends; a new one loads what is on disk.
    Crash,
    /// The next operation fails and has no effect.
    Fails,
    /// The next operation has its effect, but is reported as failed.
    Lies,
}

#[derive(Clone)]
pub struct Driver {
    pub config: Config,
    pub world: World,
    pub facts: Facts,
    pub ops: Vec<Op>,
}

impl Driver {
    pub fn new() -> Driver {
        Driver::with(config())
    }

    pub fn with(config: Config) -> Driver {
        let mut world = World::default();
        for op in prepare(&config) {
            world.perform(&op).unwrap();
        }
        let mut driver = Driver { config, world, facts: Facts::default(), ops: vec![] };
        driver.restart();
        driver
    }

    pub fn restart(&mut self) {
        let files = self.world.files.iter();
        let files = files.map(|(path, bytes)| (path.strip_prefix("/state/volumes/").unwrap(), bytes.as_slice()));
        self.facts = Facts::load(files, self.world.mounts.clone(), self.world.loops.clone()).unwrap();
    }

    /// The whole call; the operations it took are in `ops`.
    pub fn call(&mut self, call: Call) -> Result<Response, Status> {
        self.disturbed(call, usize::MAX, Fault::Crash).unwrap()
    }

    /// The call, disturbed after `after` operations; nothing if it did not come to an answer.
    pub fn disturbed(&mut self, call: Call, after: usize, fault: Fault) -> Option<Result<Response, Status>> {
        self.ops.clear();
        let mut run = Run::new(call);
        loop {
            let op = match run.step(&self.config, &mut self.facts) {
                Step::Answer(answer) => return Some(answer),
                Step::Do(op) => op,
            };
            assert!(self.ops.len() < 10, "no end: {:?}", self.ops);
            let disturbed = self.ops.len() == after;
            if disturbed && fault == Fault::Crash {
                self.restart();
                return None;
            }
            if disturbed && fault == Fault::Fails {
                run.failed(&op, "disk on fire");
                return None;
            }
            let performed = self.world.perform(&op);
            self.world.check(&self.config);
            self.ops.push(op.clone());
            match performed {
                Err(why) => return Some(Err(run.failed(&op, &why))),
                Ok(_) if disturbed => {
                    run.failed(&op, "no answer");
                    self.facts.observe(self.world.mounts.clone(), self.world.loops.clone());
                    return None;
                }
                Ok(reply) => run.did(&self.config, &mut self.facts, op, &reply),
            }
        }
    }

    pub fn code(&mut self, call: Call) -> Code {
        match self.call(call) {
            Ok(_) => Code::Ok,
            Err(status) => {
                assert!(status.from_driver && !status.message.is_empty());
                status.code
            }
        }
    }

    /// Brings a volume called `v` to this point of its life.
    pub fn bring(&mut self, calls: &[Call]) {
        for call in calls {
            assert_eq!(self.code(call.clone()), Code::Ok, "{call:?}");
        }
    }
}

pub fn mode(mode: Mode) -> VolumeCapability {
    VolumeCapability {
        access_type: Some(AccessType::Mount(MountVolume::default())),
        access_mode: Some(AccessMode { mode: mode.into() }),
    }
}

pub fn writer() -> VolumeCapability {
    mode(Mode::SingleNodeWriter)
}

pub fn block() -> VolumeCapability {
    VolumeCapability { access_type: Some(AccessType::Block(BlockVolume {})), ..writer() }
}

pub fn fs(fs_type: &str) -> VolumeCapability {
    let mount = MountVolume { fs_type: fs_type.into(), ..Default::default() };
    VolumeCapability { access_type: Some(AccessType::Mount(mount)), ..writer() }
}

pub fn create_request(name: &str, required_bytes: i64, limit_bytes: i64) -> v1::CreateVolumeRequest {
    v1::CreateVolumeRequest {
        name: name.into(),
        capacity_range: Some(v1::CapacityRange { required_bytes, limit_bytes }),
        volume_capabilities: vec![writer()],
        ..Default::default()
    }
}

pub fn create(name: &str) -> Call {
    Call::CreateVolume(create_request(name, 64 * MIB, 0))
}

pub fn delete(id: &str) -> Call {
    Call::DeleteVolume(v1::DeleteVolumeRequest { volume_id: id.into(), ..Default::default() })
}

pub fn attach_request(id: &str, node: &str) -> v1::ControllerPublishVolumeRequest {
    v1::ControllerPublishVolumeRequest {
        volume_id: id.into(),
        node_id: node.into(),
        volume_capability: Some(writer()),
        ..Default::default()
    }
}

pub fn attach(id: &str) -> Call {
    Call::ControllerPublishVolume(attach_request(id, "n1"))
}

pub fn detach(id: &str, node: &str) -> Call {
    Call::ControllerUnpublishVolume(v1::ControllerUnpublishVolumeRequest {
        volume_id: id.into(),
        node_id: node.into(),
        ..Default::default()
    })
}

pub fn stage_request(id: &str, path: &str) -> v1::NodeStageVolumeRequest {
    v1::NodeStageVolumeRequest {
        volume_id: id.into(),
        staging_target_path: path.into(),
        volume_capability: Some(writer()),
        ..Default::default()
    }
}

pub fn stage(id: &str) -> Call {
    Call::NodeStageVolume(stage_request(id, STAGING))
}

pub fn unstage(id: &str, path: &str) -> Call {
    Call::NodeUnstageVolume(v1::NodeUnstageVolumeRequest { volume_id: id.into(), staging_target_path: path.into() })
}

pub fn target(pod: &str) -> String {
    format!("/kubelet/pods/{pod}/mount")
}

pub fn publish_request(id: &str, target_path: &str) -> v1::NodePublishVolumeRequest {
    v1::NodePublishVolumeRequest {
        volume_id: id.into(),
        staging_target_path: STAGING.into(),
        target_path: target_path.into(),
        volume_capability: Some(writer()),
        ..Default::default()
    }
}

pub fn publish(id: &str, pod: &str) -> Call {
    Call::NodePublishVolume(publish_request(id, &target(pod)))
}

pub fn unpublish(id: &str, pod: &str) -> Call {
    Call::NodeUnpublishVolume(v1::NodeUnpublishVolumeRequest { volume_id: id.into(), target_path: target(pod) })
}

/// A volume's whole life, up and down.
pub fn life(id: &str) -> Vec<Call> {
    let up = vec![create(id), attach(id), stage(id), publish(id, "p1")];
    let down = vec![unpublish(id, "p1"), unstage(id, STAGING), detach(id, "n1"), delete(id)];
    [up, down].concat()
}

#[test]
fn a_whole_life_leaves_nothing_behind() {
    let mut driver = Driver::new();
    let before = driver.world.clone();
    driver.bring(&life("v"));
    // The staging directory is the caller's.
    driver.world.dirs.remove(STAGING);
    assert_eq!(driver.world, before);
    assert_eq!(driver.facts.promised(), 0);
}

// Reliability 79: nothing is claimed before the records are loaded.
#[test]
fn until_the_records_are_loaded_only_the_identity_answers() {
    let config = config();
    let mut facts = Facts::default();
    let mut ask = |call: Call| match Run::new(call).step(&config, &mut facts) {
        Step::Answer(answer) => answer,
        Step::Do(op) => panic!("{op:?}"),
    };
    for call in life("v") {
        assert_eq!(ask(call).unwrap_err().code, Code::Unavailable);
    }
    let Ok(Response::Probe(probe)) = ask(Call::Probe(Default::default())) else { panic!("no probe") };
    assert_eq!(probe.ready, Some(false));
    let Ok(Response::GetPluginInfo(info)) = ask(Call::GetPluginInfo(Default::default())) else { panic!("no info") };
    assert_eq!(info.name, "local.csi.longshore");
    let mut driver = Driver::new();
    let Ok(Response::Probe(probe)) = driver.call(Call::Probe(Default::default())) else { panic!("no probe") };
    assert_eq!(probe.ready, Some(true));
    let Ok(Response::NodeGetInfo(info)) = driver.call(Call::NodeGetInfo(Default::default())) else { panic!("no info") };
    assert_eq!((info.node_id.to_string(), info.max_volumes_per_node), ("n1".to_string(), 2));
}

// Reliability 118.
#[test]
fn records_of_another_time_or_place_are_refused_with_a_sentence() {
    let mut driver = Driver::new();
    driver.bring(&[create("v")]);
    let bytes = driver.world.files.values().next().unwrap().clone();
    let text = core::str::from_utf8(&bytes).unwrap();
    assert!(parse_record("v.json", &bytes).is_ok());
    for (file, text, words) in [
        ("v.json", text.replace("\"version\":1", "\"version\":2"), "run the driver that wrote it"),
        ("w.json", text.to_string(), "another volume"),
        ("v.json", text.replace("\"size\"", "\"sise\""), "restore it"),
        ("v.json", text[..20].to_string(), "restore it"),
        ("v.json", String::new(), "restore it"),
        ("../v.json", text.replace("\"id\":\"v\"", "\"id\":\"../v\""), "another volume"),
    ] {
        let error = parse_record(file, text.as_bytes()).unwrap_err();
        assert!(error.contains(words) && error.contains(file), "{error}");
    }
    let left_over = Facts::load([(".v.json", &b"half"[..]), ("v.json.tmp", b"")], BTreeMap::new(), BTreeMap::new());
    assert!(left_over.unwrap().volumes().is_empty());
}
