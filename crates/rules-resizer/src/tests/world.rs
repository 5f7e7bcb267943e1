//! A claim and its volume, a driver that keeps it and a node that does its part, in the laboratory. The laws are judged from
//! what really is, at every step.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, Object, ObjectKey, PersistentVolume, PersistentVolumeClaim, Quantity, names};
use control::{Action as _, Decision, Effect, Endpoint, Outcome, Refusal, Reply};
use csi::{Call, Code, ControllerRpc, DriverCapability, NodeRpc, Response, v1};
use prove_lab::Lab;
use serde_json::{Value, json};

use crate::{Action, Expansion, Key, Local, Resizer};

pub const DRIVER: &str = "local.csi.longshore";
pub const GI: i64 = 1 << 30;

pub fn key() -> Key {
    Key(ObjectKey::new("n", "c"))
}

/// The volume as the driver has it.
#[derive(Clone, Debug, Default)]
pub struct Backend {
    pub size: i64,
    pub filesystem: i64,
    pub class: String,
    /// The driver wants the node to do its part.
    pub needs_node: bool,
    /// What it answers next instead of doing it.
    pub answers: VecDeque<Outcome>,
    pub calls: Vec<Call>,
    /// Classes the driver has given the volume.
    pub made: BTreeSet<String>,
    largest_volume: i64,
}

/// The laboratory and a driver. The watches deliver only when told to.
#[derive(Clone)]
pub struct World {
    lab: Lab<Resizer>,
    pub backend: Backend,
}

prove_lab::world_of!(World, lab: Resizer);

pub fn refused(code: Code) -> Outcome {
    Outcome::Refused(Refusal::Driver(code, "no".into()))
}

pub fn bytes(list: &api::ResourceList) -> i64 {
    list.get("storage").map_or(0, |quantity| quantity.bytes().unwrap())
}

impl World {
    /// A claim of 1Gi bound to a volume of 1Gi.
    pub fn new(expansion: Expansion) -> World {
        World::of_source(expansion, json!({ "csi": { "driver": DRIVER, "volumeHandle": "h", "fsType": "ext4" } }))
    }

    /// The same, and the driver needs secret `n/s` to grow it.
    pub fn with_secret(expansion: Expansion) -> World {
        let secret = json!({ "name": "s", "namespace": "n" });
        let csi =
            json!({ "driver": DRIVER, "volumeHandle": "h", "fsType": "ext4", "controllerExpandSecretRef": secret });
        World::of_source(expansion, json!({ "csi": csi }))
    }

    /// The same with any source of the volume.
    pub fn of_source(expansion: Expansion, source: Value) -> World {
        let expands: Option<DriverCapability> = match expansion {
            Expansion::None => None,
            Expansion::NodeOnly => Some(NodeRpc::ExpandVolume.into()),
            Expansion::Controller => Some(ControllerRpc::ExpandVolume.into()),
        };
        let local = Local::new(DRIVER, expands.into_iter().chain([ControllerRpc::ModifyVolume.into()]));
        let mut lab = Lab::new("n", local);
        lab.frozen = Object::KINDS.into();
        let mut world = World { lab, backend: Backend { size: GI, filesystem: GI, ..Backend::default() } };
        let class = json!({ "metadata": { "name": "s" }, "provisioner": DRIVER, "allowVolumeExpansion": true });
        world.create(Kind::StorageClass, class);
        let spec = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
            "storageClassName": "s", "volumeName": "v" });
        world.create(Kind::PersistentVolumeClaim, json!({ "metadata": { "name": "c" }, "spec": spec }));
        let uid = world.json(Kind::PersistentVolumeClaim, "c")["metadata"]["uid"].clone();
        let mut spec = json!({ "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Delete", "storageClassName": "s", "mountOptions": ["noatime"],
            "claimRef": { "kind": "PersistentVolumeClaim", "namespace": "n", "name": "c", "uid": uid } });
        rules_store::merge_patch(&mut spec, &source);
        world.create(Kind::PersistentVolume, json!({ "metadata": { "name": "v" }, "spec": spec }));
        world.status(json!({ "phase": "Bound", "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"] }));
        world.sync();
        world
    }

    pub fn status(&mut self, status: Value) {
        self.patch_status(Kind::PersistentVolumeClaim, "c", status);
    }

    pub fn request(&mut self, size: &str) {
        let spec = json!({ "resources": { "requests": { "storage": size } } });
        self.patch(Kind::PersistentVolumeClaim, "c", json!({ "spec": spec }));
    }

    pub fn ask_class(&mut self, class: &str) {
        let spec = json!({ "volumeAttributesClassName": class });
        self.patch(Kind::PersistentVolumeClaim, "c", json!({ "spec": spec }));
    }

    pub fn make_class(&mut self, name: &str, driver: &str) {
        let body = json!({ "metadata": { "name": name }, "driverName": driver, "parameters": { "iops": name } });
        self.create(Kind::VolumeAttributesClass, body);
    }

    pub fn annotate_volume(&mut self, key: &str, value: &str) {
        let mut map = serde_json::Map::new();
        map.insert(key.into(), json!(value));
        self.patch(Kind::PersistentVolume, "v", json!({ "metadata": { "annotations": map } }));
    }

    pub fn claim(&self) -> PersistentVolumeClaim {
        claim(&self.lab)
    }

    pub fn volume(&self) -> PersistentVolume {
        volume(&self.lab)
    }

    pub fn progress(&self) -> String {
        self.claim().status.allocated_resource_statuses.get("storage").cloned().unwrap_or_default()
    }

    pub fn conditions(&self) -> Vec<String> {
        self.claim().status.conditions.iter().map(|condition| condition.r#type.clone()).collect()
    }

    pub fn look(&self) -> Decision<Action> {
        self.decide(&key())
    }

    pub fn code(&self) -> &'static str {
        self.look().why().code
    }

    /// What the API and the driver do with an action, whenever it arrives.
    pub fn land(&mut self, action: &Action) -> Outcome {
        self.land_effect(&action.effect())
    }

    pub fn land_effect(&mut self, effect: &Effect) -> Outcome {
        let World { lab, backend } = self;
        backend.land(lab, effect)
    }

    /// The laws hold.
    pub fn judge(&mut self) {
        let World { lab, backend } = self;
        backend.judge(lab);
    }

    /// The controller, which may have begun this in an earlier step, hears how it ended.
    pub fn hear(&mut self, action: &Action, outcome: &Outcome) {
        self.lab.hear(&key(), action, outcome);
    }

    /// One look, and the action performed; its name, if there was one.
    pub fn step(&mut self) -> Option<&'static str> {
        let World { lab, backend } = self;
        backend.step(lab)
    }

    /// Looks until there is nothing to do, the cache always fresh.
    pub fn run(&mut self) -> Vec<&'static str> {
        let World { lab, backend } = self;
        lab.run_with(|lab| backend.step(lab))
    }

    /// The node does its part, as kubelet does.
    pub fn node(&mut self) {
        if self.progress() != names::NODE_RESIZE_PENDING {
            return;
        }
        self.status(json!({ "allocatedResourceStatuses": { "storage": names::NODE_RESIZE_IN_PROGRESS } }));
        let size = bytes(&self.volume().spec.capacity);
        self.backend.filesystem = size;
        let size = Quantity::from_bytes(size).0;
        self.status(json!({ "capacity": { "storage": size }, "allocatedResourceStatuses": null, "conditions": null }));
    }
}

impl Backend {
    fn step(&mut self, lab: &mut Lab<Resizer>) -> Option<&'static str> {
        let (action, effect) = lab.begin(&key())?;
        let outcome = self.land(lab, &effect);
        lab.finish(&key(), &outcome);
        Some(action.name())
    }

    fn land(&mut self, lab: &mut Lab<Resizer>, effect: &Effect) -> Outcome {
        if let Effect::Write(write) = effect {
            assert!(write.uid().is_some(), "{write:?} does not say which object it means");
        }
        let outcome = match lab.api(effect) {
            Some(outcome) => outcome,
            None => self.call(lab, effect),
        };
        self.judge(lab);
        outcome
    }

    fn call(&mut self, lab: &Lab<Resizer>, effect: &Effect) -> Outcome {
        let Effect::Call { to, call } = effect else { panic!("{effect:?}") };
        assert_eq!(*to, Endpoint::Driver(lab.local().driver.clone()));
        self.calls.push(call.clone());
        self.answer(lab, call)
    }

    fn answer(&mut self, lab: &Lab<Resizer>, call: &Call) -> Outcome {
        let status = claim(lab).status;
        match call {
            Call::ControllerExpandVolume(request) => {
                let asked = request.capacity_range.as_ref().unwrap().required_bytes;
                if lab.local().recovers {
                    assert_eq!(bytes(&status.allocated_resources), asked, "57: {asked} is not on record");
                }
                assert!(asked >= self.size, "58: asked for {asked}, the volume has {}", self.size);
                if let Some(answer) = self.answers.pop_front() {
                    return answer;
                }
                self.size = asked;
                if !self.needs_node {
                    self.filesystem = asked;
                }
                Outcome::Done(Reply::Csi(Response::ControllerExpandVolume(v1::ControllerExpandVolumeResponse {
                    capacity_bytes: self.size,
                    node_expansion_required: self.needs_node,
                })))
            }
            Call::ControllerModifyVolume(request) => {
                let class = request.mutable_parameters["iops"].clone();
                let on_record = match status.modify_volume_status {
                    Some(modify) => {
                        modify.status == "InProgress" && modify.target_volume_attributes_class_name == class
                    }
                    // A lagging cache: it is done, and asked for once more.
                    None => status.current_volume_attributes_class_name.as_ref() == Some(&class),
                };
                assert!(on_record, "60: {class} is not on record");
                if let Some(answer) = self.answers.pop_front() {
                    return answer;
                }
                self.made.insert(class.clone());
                self.class = class;
                Outcome::Done(Reply::Csi(Response::ControllerModifyVolume(v1::ControllerModifyVolumeResponse {})))
            }
            other => panic!("{other:?}"),
        }
    }

    /// Reliability 55, 56 and 60, from what really is.
    fn judge(&mut self, lab: &Lab<Resizer>) {
        let (claim, volume) = (claim(lab), volume(lab));
        let (had, size) = (bytes(&claim.status.capacity), bytes(&volume.spec.capacity));
        assert!(size >= self.largest_volume, "55: the volume shrank from {} to {size}", self.largest_volume);
        self.largest_volume = size;
        assert!(had <= size, "55: the claim has {had}, the volume {size}");
        if lab.local().expansion() == Expansion::Controller {
            assert!(size <= self.size, "55: the volume has {size}, the backend {}", self.size);
        }
        if self.needs_node {
            assert!(had <= self.filesystem, "56: the claim has {had} before the node did its part");
        }
        for class in [claim.status.current_volume_attributes_class_name, volume.spec.volume_attributes_class_name] {
            assert!(class.is_none_or(|class| self.made.contains(&class)), "60: a class the driver never made");
        }
    }
}

fn claim(lab: &Lab<Resizer>) -> PersistentVolumeClaim {
    serde_json::from_value(lab.get(Kind::PersistentVolumeClaim, "c").unwrap()).unwrap()
}

fn volume(lab: &Lab<Resizer>) -> PersistentVolume {
    serde_json::from_value(lab.get(Kind::PersistentVolume, "v").unwrap()).unwrap()
}
