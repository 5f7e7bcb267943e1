//! What the pretend machine, driver and API do, and the laws they are checked against.

use api::{Kind, names};
use control::host::{Op, ProcessState};
use control::{Effect, Endpoint, Outcome, Refusal, Reply};
use csi::{Call, NodeRpc, Response, v1};
use serde_json::json;

use super::world::{Machine, World};
use crate::Record;

impl World {
    pub fn perform(&mut self, effect: &Effect) -> Outcome {
        match effect {
            Effect::Read(_) | Effect::List { .. } | Effect::Token(_) | Effect::Write(_) | Effect::Nothing => {
                self.api(effect).unwrap()
            }
            Effect::Call { to, call } => {
                assert_eq!(*to, Endpoint::Driver(self.served.0.into()));
                self.call(call)
            }
            Effect::Host(op) => self.host(op),
        }
    }

    fn call(&mut self, call: &Call) -> Outcome {
        let response = match call {
            Call::NodeStageVolume(request) => {
                // Reliability 29, on the truth rather than on any cache.
                let node = self.get(Kind::Node, "n").unwrap();
                assert_eq!(
                    node["metadata"]["annotations"][names::AGENT_INCARNATION],
                    json!(self.local().incarnation),
                    "29: incarnation"
                );
                if !self.machine.staged.contains(&request.staging_target_path) && self.machine.published.is_empty() {
                    assert!(self.node_lists("volumesInUse"), "29: staged while not reported in use");
                }
                assert!(self.machine.dirs.contains(&request.staging_target_path), "the staging directory is missing");
                self.machine.staged.insert(request.staging_target_path.clone());
                Response::NodeStageVolume(v1::NodeStageVolumeResponse {})
            }
            Call::NodeUnstageVolume(request) => {
                assert!(self.machine.published.is_empty(), "39: unstaged under {:?}", self.machine.published);
                self.machine.staged.remove(&request.staging_target_path);
                Response::NodeUnstageVolume(v1::NodeUnstageVolumeResponse {})
            }
            Call::NodePublishVolume(request) => {
                let driver = self.local().drivers.get(self.served.0);
                let stages = driver.is_some_and(|driver| driver.can(NodeRpc::StageUnstageVolume));
                let staging = &request.staging_target_path;
                let ephemeral = request.volume_id != self.served.1;
                assert_eq!(ephemeral, staging.is_empty(), "103: what is in a pod's own spec is not staged");
                assert!(ephemeral || !stages || self.machine.staged.contains(staging), "40: published without staging");
                self.machine.published.insert(request.target_path.clone());
                self.machine.dirs.insert(request.target_path.clone());
                Response::NodePublishVolume(v1::NodePublishVolumeResponse {})
            }
            Call::NodeUnpublishVolume(request) => {
                for (name, (state, sources)) in &self.machine.processes {
                    let runs = matches!(state, ProcessState::Running { .. });
                    assert!(!runs || !sources.contains(&request.target_path), "43: unpublished under {name}");
                }
                self.machine.published.remove(&request.target_path);
                Response::NodeUnpublishVolume(v1::NodeUnpublishVolumeResponse {})
            }
            Call::NodeExpandVolume(request) => {
                assert!(self.machine.staged.contains(&request.staging_target_path), "expanded without staging");
                assert!(self.machine.published.contains(&request.volume_path), "expanded where it is not published");
                if let Some(code) = self.machine.refuses {
                    return Outcome::Refused(Refusal::Driver(code, "not now".into()));
                }
                let capacity_bytes = request.capacity_range.unwrap_or_default().required_bytes;
                self.machine.size = capacity_bytes;
                Response::NodeExpandVolume(v1::NodeExpandVolumeResponse { capacity_bytes })
            }
            other => panic!("{other:?} is not the node's to call"),
        };
        Outcome::Done(Reply::Csi(response))
    }

    fn host(&mut self, op: &Op) -> Outcome {
        let (now, Machine { machine, staged, published, .. }) = (self.now.0, &mut self.machine);
        machine.perform(now, op, |path| staged.contains(path) || published.contains(path))
    }

    /// What must be true of machine and API at every moment.
    pub fn check_laws(&self, after: &str) {
        let machine = &self.machine;
        let there = !machine.staged.is_empty() || !machine.published.is_empty();
        if there {
            let record = machine.files.values().filter_map(|bytes| Record::parse(bytes).ok()).next();
            let record = record.unwrap_or_else(|| panic!("45: mounted without a record, after {after}"));
            let reported = record.is_ephemeral() || self.node_lists("volumesInUse");
            assert!(reported, "30: mounted but not in use, after {after}");
            for target in &machine.published {
                assert!(record.publishes.values().any(|p| &p.target == target), "45: {target} is not in the record");
            }
        }
        let claim = self.get(Kind::PersistentVolumeClaim, "data").unwrap_or_default();
        if let Some(told) = claim["status"]["capacity"]["storage"].as_str().filter(|_| machine.size > 0) {
            let told = api::Quantity(told.into()).bytes().unwrap();
            assert!(
                told <= machine.size,
                "56: the claim says {told}, the filesystem has {}, after {after}",
                machine.size
            );
        }
        for (name, (state, sources)) in &machine.processes {
            for source in sources.iter().filter(|source| source.ends_with("/mount") || source.contains("~gce-pd/")) {
                let runs = matches!(state, ProcessState::Running { .. });
                assert!(!runs || machine.published.contains(source), "41: {name} runs without {source}, after {after}");
            }
        }
    }
}
