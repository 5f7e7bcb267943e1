//! A driver on a pretend machine that refuses whatever a real one would, and checks the laws after every operation.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use control::host::Op;
use csi::v1::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume, access_mode::Mode};
use csi::v1::{self, VolumeCapability};
use csi::{Call, Code, Response, Status};

use crate::record::{Volume, parse};
use crate::{Config, Facts, Feature, Files, Kind, Mount, Run, Services, Step, Trouble, prepare};

mod asked;
mod controller;
mod crash;
mod features;
mod growth;
mod hostile;
mod machine;
mod node;
mod pods;
mod snapshots;
mod world;

pub use world::{Image, World};

pub const MIB: i64 = 1 << 20;
pub const STAGING: &str = "/kubelet/staging/globalmount";

pub fn config() -> Config {
    Config {
        name: "local.csi.longshore".into(),
        version: "1".into(),
        node_id: "n1".into(),
        state_dir: "/state".into(),
        services: Services::All,
        without: BTreeSet::new(),
        kind: Kind::Image,
        filesystem: "ext4".into(),
        pool_bytes: 4 << 30,
        max_volumes_per_node: 2,
        zone: String::new(),
        peers: BTreeMap::new(),
    }
}

/// A driver without some of its features.
pub fn without(features: &[Feature]) -> Config {
    Config { without: features.iter().copied().collect(), ..config() }
}

/// The time of every call.
pub const NOW: u64 = 1_700_000_000_123;

/// How a call is disturbed after so many operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process ends; a new one loads what is on disk.
    Crash,
    /// The next operation fails and has no effect.
    Fails,
    /// The next operation has its effect, but is reported as failed.
    Lies,
    /// The next operation finds the disk full; there is room again for the one after it.
    Full,
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
        let (mounts, loops) = self.world.seen();
        self.facts = Facts::load(&self.world.record_files(), mounts, loops).unwrap();
    }

    /// The whole call; the operations it took are in `ops`.
    pub fn call(&mut self, call: Call) -> Result<Response, Status> {
        self.disturbed(call, usize::MAX, Fault::Crash).unwrap()
    }

    /// The call, disturbed after `after` operations; nothing if it did not come to an answer.
    pub fn disturbed(&mut self, call: Call, mut after: usize, fault: Fault) -> Option<Result<Response, Status>> {
        self.ops.clear();
        let mut run = Run::new(call, NOW);
        loop {
            let op = match run.step(&self.config, &mut self.facts) {
                Step::Answer(answer) => return Some(answer),
                Step::Do(op) => op,
            };
            assert!(self.ops.len() < 30, "no end: {:?}", self.ops);
            let disturbed = self.ops.len() == after;
            if disturbed && fault == Fault::Crash {
                self.restart();
                return None;
            }
            if disturbed && fault == Fault::Full {
                let status = run.failed(&op, "no space left", Trouble::DiskFull);
                match status {
                    Some(status) => return Some(Err(status)),
                    None => {
                        after = usize::MAX;
                        continue;
                    }
                }
            }
            if disturbed && fault == Fault::Fails {
                run.failed(&op, "disk on fire", Trouble::Other);
                return None;
            }
            let performed = self.world.perform(&op);
            // Deleting on a full disk does without the mark that says so; the end is looked at by whoever asks for this.
            if fault != Fault::Full {
                self.world.check(&self.config);
            }
            self.ops.push(op.clone());
            match performed {
                Err(why) => match run.failed(&op, &why, Trouble::Other) {
                    Some(status) => return Some(Err(status)),
                    None => continue,
                },
                Ok(_) if disturbed => {
                    run.failed(&op, "no answer", Trouble::Other);
                    let (mounts, loops) = self.world.seen();
                    self.facts.observe(mounts, loops);
                    return None;
                }
                Ok(reply) => {
                    run.did(&self.config, &mut self.facts, op, &reply);
                }
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
    let mut ask = |call: Call| match Run::new(call, NOW).step(&config, &mut facts) {
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
    assert!(parse::<Volume>("v.json", &bytes).is_ok());
    for (file, text, words) in [
        ("v.json", text.replace("\"version\":4", "\"version\":5"), "run the driver that wrote it"),
        ("w.json", text.to_string(), "another volume"),
        ("v.json", text.replace("\"size\"", "\"sise\""), "restore it"),
        ("v.json", text[..20].to_string(), "restore it"),
        ("v.json", String::new(), "restore it"),
        ("../v.json", text.replace("\"id\":\"v\"", "\"id\":\"../v\""), "another volume"),
    ] {
        let error = parse::<Volume>(file, text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains(file), "{error}");
    }
    let volumes = vec![(".v.json".to_string(), b"half".to_vec()), ("v.json.tmp".to_string(), vec![])];
    let left_over = Facts::load(&Files { volumes, ..Files::default() }, BTreeMap::new(), BTreeMap::new());
    assert!(left_over.unwrap().volumes().is_empty());
    // What the driver before this one wrote.
    let old = br#"{"version":1,"id":"v","name":"v","size":67108864,"state":"ready","nodes":{"n1":{"readonly":false}}}"#;
    let read = parse::<Volume>("v.json", old).unwrap();
    assert_eq!((read.kind, read.nodes.len(), read.size), (crate::Kind::Image, 1, 64 << 20));
}
