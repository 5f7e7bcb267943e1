//! A cluster in memory: the real store behind the cache, a driver that keeps one volume, a node that does its part, and the
//! controller's actions performed on them. The laws are judged from what really is, at every step.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Object, ObjectKey, ObjectRef, PersistentVolume, PersistentVolumeClaim, Quantity, names};
use control::{Action, Cache, Decision, Effect, Outcome, Refusal, Reply, Rules, Tick};
use csi::{Call, Code, Response, v1};
use rules_store::{Context, Failure, Request, Store, Target, WriteOptions, find_kind};
use serde_json::{Value, json};

use crate::{Act, Expansion, Key, Local, Memory, Resizer};

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
}

#[derive(Clone, Default)]
pub struct World {
    pub store: Store,
    pub cache: Cache,
    pub local: Local,
    pub memory: Memory,
    pub now: u64,
    pub backend: Backend,
    pub calls: Vec<Call>,
    pub writes: usize,
    /// Classes the driver has given the volume.
    pub made: BTreeSet<String>,
    largest_volume: i64,
    uids: u64,
}

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
        let mut local = Local::new(DRIVER, "/csi.sock", expansion);
        local.modifies = true;
        let mut world = World { now: 1_000_000, local, ..World::default() };
        world.backend.size = GI;
        world.backend.filesystem = GI;
        world.make(Kind::Namespace, json!({ "metadata": { "name": "n" } }));
        let class = json!({ "metadata": { "name": "s" }, "provisioner": DRIVER, "allowVolumeExpansion": true });
        world.make(Kind::StorageClass, class);
        let spec = json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
            "storageClassName": "s", "volumeName": "v" });
        world.make(Kind::PersistentVolumeClaim, json!({ "metadata": { "namespace": "n", "name": "c" }, "spec": spec }));
        let uid = world.json(Kind::PersistentVolumeClaim, "n", "c")["metadata"]["uid"].clone();
        let mut spec = json!({ "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Delete", "storageClassName": "s", "mountOptions": ["noatime"],
            "claimRef": { "kind": "PersistentVolumeClaim", "namespace": "n", "name": "c", "uid": uid } });
        rules_store::merge_patch(&mut spec, &source);
        world.make(Kind::PersistentVolume, json!({ "metadata": { "name": "v" }, "spec": spec }));
        world.status(json!({ "phase": "Bound", "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"] }));
        world.sync();
        world
    }

    pub fn make(&mut self, kind: Kind, body: Value) {
        let namespace = body["metadata"]["namespace"].as_str().unwrap_or_default().to_string();
        let request = Request::Create { resource: find_kind(kind), namespace, body, options: WriteOptions::default() };
        self.apply(request).unwrap();
    }

    pub fn patch(&mut self, kind: Kind, namespace: &str, name: &str, status: bool, body: Value) {
        let target = Target::new(find_kind(kind), namespace, name);
        let subresource = status.then_some(rules_store::Subresource::Status);
        let options = WriteOptions::default();
        let kind = rules_store::PatchKind::Merge;
        self.apply(Request::Patch { target, subresource, kind, body, options }).unwrap();
    }

    pub fn remove(&mut self, kind: Kind, namespace: &str, name: &str) {
        let target = Target::new(find_kind(kind), namespace, name);
        let request =
            Request::Delete { target, preconditions: Default::default(), grace_seconds: Some(0), dry_run: false };
        self.apply(request).unwrap();
    }

    pub fn status(&mut self, status: Value) {
        self.patch(Kind::PersistentVolumeClaim, "n", "c", true, json!({ "status": status }));
    }

    pub fn request(&mut self, size: &str) {
        let spec = json!({ "resources": { "requests": { "storage": size } } });
        self.patch(Kind::PersistentVolumeClaim, "n", "c", false, json!({ "spec": spec }));
    }

    pub fn ask_class(&mut self, class: &str) {
        let spec = json!({ "volumeAttributesClassName": class });
        self.patch(Kind::PersistentVolumeClaim, "n", "c", false, json!({ "spec": spec }));
    }

    pub fn make_class(&mut self, name: &str, driver: &str) {
        let body = json!({ "metadata": { "name": name }, "driverName": driver, "parameters": { "iops": name } });
        self.make(Kind::VolumeAttributesClass, body);
    }

    pub fn annotate_volume(&mut self, key: &str, value: &str) {
        let mut map = serde_json::Map::new();
        map.insert(key.into(), json!(value));
        self.patch(Kind::PersistentVolume, "", "v", false, json!({ "metadata": { "annotations": map } }));
    }

    fn apply(&mut self, request: Request) -> Result<rules_store::Applied, Failure> {
        self.uids += 1;
        let uid = format!("uid-{}", self.uids);
        self.store.apply(&Context { now_millis: self.now, new_uid: &uid, actor: "test" }, request)
    }

    pub fn json(&self, kind: Kind, namespace: &str, name: &str) -> Value {
        self.store.get(find_kind(kind), namespace, name).map_or(Value::Null, |stored| stored.value.clone())
    }

    fn object(&self, reference: &ObjectRef) -> Option<Object> {
        let json = self.json(reference.kind, &reference.key.namespace, &reference.key.name);
        (!json.is_null()).then(|| Object::from_json(reference.kind, json).unwrap())
    }

    pub fn claim(&self) -> PersistentVolumeClaim {
        serde_json::from_value(self.json(Kind::PersistentVolumeClaim, "n", "c")).unwrap()
    }

    pub fn volume(&self) -> PersistentVolume {
        serde_json::from_value(self.json(Kind::PersistentVolume, "", "v")).unwrap()
    }

    pub fn progress(&self) -> String {
        self.claim().status.allocated_resource_statuses.get("storage").cloned().unwrap_or_default()
    }

    pub fn conditions(&self) -> Vec<String> {
        self.claim().status.conditions.iter().map(|condition| condition.r#type.clone()).collect()
    }

    pub fn sync(&mut self) {
        Object::KINDS.iter().for_each(|kind| self.sync_kind(*kind));
    }

    pub fn sync_kind(&mut self, kind: Kind) {
        let list = self.store.list(find_kind(kind), None);
        let objects = list.map(|stored| Object::from_json(kind, stored.value.clone()).unwrap()).collect();
        self.cache.replace(kind, self.store.revision(), objects);
    }

    pub fn look(&self) -> Decision<Act> {
        let view = Resizer::view(&key(), &self.cache, &self.local);
        Resizer::decide(Tick(self.now), &view, &self.memory)
    }

    pub fn code(&self) -> &'static str {
        self.look().why().code
    }

    /// What the API and the driver do with an action, whenever it arrives.
    pub fn land(&mut self, act: &Act) -> Outcome {
        assert_permitted(act);
        let outcome = match act.effect() {
            Effect::Read(reference) => Outcome::Done(self.object(&reference).map_or(Reply::Gone, Reply::Object)),
            Effect::Write(write) => self.write(act, &write),
            Effect::Call { socket, call } => {
                assert_eq!(socket, "/csi.sock");
                self.calls.push(call.clone());
                self.driver(&call)
            }
            Effect::Host(_) => panic!("{act:?}"),
        };
        self.judge();
        outcome
    }

    fn write(&mut self, act: &Act, write: &api::Write) -> Outcome {
        assert!(write.uid().is_some(), "{act:?} does not say which object it means");
        let revision = self.store.revision();
        match self.apply(Request::from_write(write)) {
            Ok(_) => {
                self.writes += 1;
                assert!(self.store.revision() > revision, "{act:?} changed nothing (reliability 109)");
                Outcome::Done(self.object(write.target()).map_or(Reply::Gone, Reply::Object))
            }
            Err(failure) => Outcome::Refused(refusal(failure)),
        }
    }

    fn driver(&mut self, call: &Call) -> Outcome {
        match call {
            Call::ControllerExpandVolume(request) => {
                let asked = request.capacity_range.as_ref().unwrap().required_bytes;
                let status = self.claim().status;
                if self.local.recovers {
                    assert_eq!(bytes(&status.allocated_resources), asked, "57: {asked} is not on record");
                }
                assert!(asked >= self.backend.size, "58: asked for {asked}, the volume has {}", self.backend.size);
                if let Some(answer) = self.backend.answers.pop_front() {
                    return answer;
                }
                self.backend.size = asked;
                if !self.backend.needs_node {
                    self.backend.filesystem = asked;
                }
                Outcome::Done(Reply::Csi(Response::ControllerExpandVolume(v1::ControllerExpandVolumeResponse {
                    capacity_bytes: self.backend.size,
                    node_expansion_required: self.backend.needs_node,
                })))
            }
            Call::ControllerModifyVolume(request) => {
                let status = self.claim().status;
                let class = request.mutable_parameters["iops"].clone();
                let on_record = match status.modify_volume_status {
                    Some(modify) => {
                        modify.status == "InProgress" && modify.target_volume_attributes_class_name == class
                    }
                    // A lagging cache: it is done, and asked for once more.
                    None => status.current_volume_attributes_class_name.as_ref() == Some(&class),
                };
                assert!(on_record, "60: {class} is not on record");
                if let Some(answer) = self.backend.answers.pop_front() {
                    return answer;
                }
                self.made.insert(class.clone());
                self.backend.class = class;
                Outcome::Done(Reply::Csi(Response::ControllerModifyVolume(v1::ControllerModifyVolumeResponse {})))
            }
            other => panic!("{other:?}"),
        }
    }

    /// Reliability 55, 56 and 60, from what really is.
    pub fn judge(&mut self) {
        let (claim, volume) = (self.claim(), self.volume());
        let (had, size) = (bytes(&claim.status.capacity), bytes(&volume.spec.capacity));
        assert!(size >= self.largest_volume, "55: the volume shrank from {} to {size}", self.largest_volume);
        self.largest_volume = size;
        assert!(had <= size, "55: the claim has {had}, the volume {size}");
        if self.local.expansion == Expansion::Controller {
            assert!(size <= self.backend.size, "55: the volume has {size}, the backend {}", self.backend.size);
        }
        if self.backend.needs_node {
            assert!(had <= self.backend.filesystem, "56: the claim has {had} before the node did its part");
        }
        for class in [claim.status.current_volume_attributes_class_name, volume.spec.volume_attributes_class_name] {
            assert!(class.is_none_or(|class| self.made.contains(&class)), "60: a class the driver never made");
        }
    }

    /// The controller hears how it ended.
    pub fn hear(&mut self, act: &Act, outcome: &Outcome) {
        if let Outcome::Done(Reply::Object(object)) = outcome
            && object.kind() != Kind::Secret
        {
            self.cache.fold(object.clone());
        }
        let memory = core::mem::take(&mut self.memory);
        self.memory = Resizer::remember(Tick(self.now), memory, act, outcome);
    }

    /// One look, and the action performed; its name, if there was one.
    pub fn step(&mut self) -> Option<&'static str> {
        let Decision::Do(act, _) = self.look() else { return None };
        let outcome = self.land(&act);
        self.hear(&act, &outcome);
        Some(act.name())
    }

    /// Looks until there is nothing to do, the cache always fresh.
    pub fn run(&mut self) -> Vec<&'static str> {
        let mut done = Vec::new();
        self.sync();
        while let Some(name) = self.step() {
            done.push(name);
            self.sync();
            assert!(done.len() < 30, "it does not come to rest: {done:?}");
        }
        done
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

/// The printed role is complete.
fn assert_permitted(act: &Act) {
    let needed = match act.effect() {
        Effect::Read(reference) => (reference.kind, "", "get"),
        Effect::Write(write) => (write.target().kind, write.subresource().unwrap_or_default(), write.verb()),
        Effect::Call { .. } | Effect::Host(_) => return,
    };
    let granted = Act::permissions().iter().any(|right| (right.kind, right.subresource, right.verb) == needed);
    assert!(granted, "{act:?} needs a right that is not in the role: {needed:?}");
}

fn refusal(failure: Failure) -> Refusal {
    match failure {
        Failure::NotFound { .. } => Refusal::NotFound,
        Failure::AlreadyExists { .. } => Refusal::AlreadyExists,
        // A test of a JSON patch that failed.
        Failure::Conflict { .. } | Failure::Invalid { .. } => Refusal::Conflict,
        other => panic!("the store refused: {other:?}"),
    }
}
