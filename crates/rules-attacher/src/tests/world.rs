//! A cluster in memory: the real store behind the cache, a driver that keeps a table, and the controller's actions
//! performed on them.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Object, ObjectKey, ObjectRef, PersistentVolume, VolumeAttachment, names};
use control::{Action, Cache, Decision, Effect, Outcome, Refusal, Reply, Rules, Tick};
use csi::{Call, Response, v1};
use rules_store::{Context, Failure, Request, Store, Target, WriteOptions, find_kind};
use serde_json::{Value, json};

use crate::{Act, Attacher, Key, Local, Memory};

pub const DRIVER: &str = "local.csi.longshore";
pub const HANDLE: &str = "h-1";

/// The attachment to a node.
pub fn on(node: &str) -> Key {
    Key::Attachment(attachment_name(node))
}

pub fn attachment_name(node: &str) -> String {
    names::attachment_name(HANDLE, DRIVER, node)
}

pub fn finalizer() -> String {
    names::attacher_finalizer(DRIVER)
}

#[derive(Clone, Default)]
pub struct World {
    pub store: Store,
    pub cache: Cache,
    pub local: Local,
    pub memory: BTreeMap<Key, Memory>,
    pub now: u64,
    /// The node ids the volume is attached to, in truth.
    pub backend: BTreeSet<String>,
    /// Every call the driver got.
    pub calls: Vec<Call>,
    uids: u64,
}

impl World {
    /// A volume with these access modes and two nodes, `a` and `b`, on which the driver is registered.
    pub fn new(modes: &[&str]) -> World {
        World::with(modes, json!({}))
    }

    /// The same, with more said about the volume's source.
    pub fn with(modes: &[&str], csi: Value) -> World {
        let local = Local { driver: DRIVER.into(), socket: "/csi.sock".into(), publishes: true, ..Local::default() };
        let mut world = World { now: 1_000_000, local, ..World::default() };
        let mut source =
            json!({ "driver": DRIVER, "volumeHandle": HANDLE, "fsType": "ext4", "volumeAttributes": { "k": "v" } });
        if let (Value::Object(source), Value::Object(extra)) = (&mut source, csi) {
            source.extend(extra);
        }
        world.make(
            Kind::PersistentVolume,
            json!({ "metadata": { "name": "v" }, "spec": {
            "capacity": { "storage": "1Gi" }, "accessModes": modes, "persistentVolumeReclaimPolicy": "Retain",
            "mountOptions": ["noatime"], "csi": source } }),
        );
        for node in ["a", "b"] {
            world.make(Kind::Node, json!({ "metadata": { "name": node } }));
            world.make(
                Kind::CSINode,
                json!({ "metadata": { "name": node }, "spec": {
                "drivers": [{ "name": DRIVER, "nodeID": format!("id-{node}"), "topologyKeys": null }] } }),
            );
        }
        world.sync();
        world
    }

    pub fn want(&mut self, node: &str) {
        let source = json!({ "persistentVolumeName": "v" });
        let spec = json!({ "attacher": DRIVER, "nodeName": node, "source": source });
        self.make(Kind::VolumeAttachment, json!({ "metadata": { "name": attachment_name(node) }, "spec": spec }));
    }

    pub fn unwant(&mut self, node: &str) {
        self.remove(Kind::VolumeAttachment, "", &attachment_name(node));
    }

    pub fn remove(&mut self, kind: Kind, namespace: &str, name: &str) {
        let target = Target::new(find_kind(kind), namespace, name);
        let request =
            Request::Delete { target, preconditions: Default::default(), grace_seconds: Some(0), dry_run: false };
        self.apply(request).unwrap();
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

    /// The attachment as it is, not as the controller sees it.
    pub fn real_attachment(&self, node: &str) -> Option<VolumeAttachment> {
        match self.object(&ObjectRef::cluster(Kind::VolumeAttachment, attachment_name(node)))? {
            Object::VolumeAttachment(attachment) => Some((*attachment).clone()),
            other => panic!("{other:?}"),
        }
    }

    pub fn real_volume(&self) -> Option<PersistentVolume> {
        match self.object(&ObjectRef::cluster(Kind::PersistentVolume, "v"))? {
            Object::PersistentVolume(volume) => Some((*volume).clone()),
            other => panic!("{other:?}"),
        }
    }

    /// The cache catches up with everything.
    pub fn sync(&mut self) {
        Object::KINDS.iter().for_each(|kind| self.sync_kind(*kind));
    }

    pub fn sync_kind(&mut self, kind: Kind) {
        let list = self.store.list(find_kind(kind), None);
        let objects = list.map(|stored| Object::from_json(kind, stored.value.clone()).unwrap()).collect();
        self.cache.replace(kind, self.store.revision(), objects);
    }

    pub fn look(&self, key: &Key) -> Decision<Act> {
        let view = Attacher::view(key, &self.cache, &self.local);
        Attacher::decide(Tick(self.now), &view, &self.memory.get(key).cloned().unwrap_or_default())
    }

    pub fn code(&self, key: &Key) -> &'static str {
        self.look(key).why().code
    }

    /// What the API and the driver do with an action, whenever it arrives.
    pub fn land(&mut self, act: &Act) -> Outcome {
        assert_permitted(act);
        match act.effect() {
            Effect::Read(reference) => Outcome::Done(self.object(&reference).map_or(Reply::Gone, Reply::Object)),
            Effect::Write(write) => {
                let reference = write.target().clone();
                let revision = self.store.revision();
                let outcome = match self.apply(Request::from_write(&write)) {
                    Ok(_) => Outcome::Done(self.object(&reference).map_or(Reply::Gone, Reply::Object)),
                    Err(failure) => Outcome::Refused(refusal(failure)),
                };
                if let Outcome::Done(_) = outcome {
                    assert!(self.store.revision() > revision, "{act:?} changed nothing (reliability 109)");
                }
                outcome
            }
            Effect::Call { socket, call } => {
                assert_eq!(socket, "/csi.sock");
                Outcome::Done(Reply::Csi(self.driver(call)))
            }
            Effect::Host(_) => panic!("{act:?}"),
        }
    }

    fn driver(&mut self, call: Call) -> Response {
        self.calls.push(call.clone());
        match call {
            Call::ControllerPublishVolume(request) => {
                let publish_context = [("at".to_string(), request.node_id.clone())].into();
                self.backend.insert(request.node_id);
                // Reliability 24.
                assert!(self.backend.len() == 1 || self.shared(), "attached to two nodes: {:?}", self.backend);
                Response::ControllerPublishVolume(v1::ControllerPublishVolumeResponse { publish_context })
            }
            Call::ControllerUnpublishVolume(request) => {
                self.backend.remove(&request.node_id);
                Response::ControllerUnpublishVolume(v1::ControllerUnpublishVolumeResponse {})
            }
            Call::ListVolumes(request) => Response::ListVolumes(self.page(&request)),
            other => panic!("{other:?}"),
        }
    }

    /// One volume a page: first one that says nothing about itself, then ours.
    fn page(&self, request: &v1::ListVolumesRequest) -> v1::ListVolumesResponse {
        use v1::list_volumes_response::{Entry, VolumeStatus};
        if request.starting_token.is_empty() {
            let silent = v1::Volume { volume_id: "silent".into(), ..Default::default() };
            let entries = alloc::vec![Entry { volume: Some(silent), status: None }, Entry::default()];
            return v1::ListVolumesResponse { entries, next_token: "2".into() };
        }
        let volume = v1::Volume { volume_id: HANDLE.into(), ..Default::default() };
        let status = VolumeStatus { published_node_ids: self.backend.iter().cloned().collect() };
        let entries = alloc::vec![Entry { volume: Some(volume), status: Some(status) }];
        v1::ListVolumesResponse { entries, next_token: String::new() }
    }

    fn shared(&self) -> bool {
        self.real_volume().is_some_and(|volume| volume.spec.access_modes.iter().any(|mode| mode.ends_with("Many")))
    }

    /// The controller hears how it ended.
    pub fn hear(&mut self, key: &Key, act: &Act, outcome: &Outcome) {
        if let Outcome::Done(Reply::Object(object)) = outcome
            && object.kind() != Kind::Secret
        {
            self.cache.fold(object.clone());
        }
        Attacher::learn(&mut self.local, act, outcome);
        if let (Outcome::Done(Reply::Gone), Act::UnmarkAttachment { attachment, .. }) = (outcome, act) {
            let place = ObjectKey::cluster(attachment.name.clone());
            self.cache.fold_gone(Kind::VolumeAttachment, &place, &attachment.uid);
        }
        let memory = self.memory.remove(key).unwrap_or_default();
        self.memory.insert(key.clone(), Attacher::remember(Tick(self.now), memory, act, outcome));
    }

    /// One look, and the action performed; its name, if there was one.
    pub fn step(&mut self, key: &Key) -> Option<&'static str> {
        let Decision::Do(act, _) = self.look(key) else { return None };
        let outcome = self.land(&act);
        self.hear(key, &act, &outcome);
        Some(act.name())
    }

    /// Looks until there is nothing to do, the cache always fresh.
    pub fn run(&mut self, key: &Key) -> Vec<&'static str> {
        let mut done = Vec::new();
        self.sync();
        while let Some(name) = self.step(key) {
            done.push(name);
            self.sync();
            assert!(done.len() < 20, "it does not come to rest: {done:?}");
        }
        done
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
        Failure::Conflict { .. } => Refusal::Conflict,
        other => panic!("the store refused: {other:?}"),
    }
}
