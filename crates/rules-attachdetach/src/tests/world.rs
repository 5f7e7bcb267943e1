//! A cluster in memory: the real store behind the cache, and the controller's actions performed on it.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Node, Object, ObjectKey, ObjectRef, VolumeAttachment, names};
use control::{Action, Cache, Decision, Effect, Outcome, Refusal, Reply, Rules, Tick};
use rules_store::{Context, Failure, Request, Store, Target, WriteOptions, find_kind};
use serde_json::{Value, json};

use crate::{Act, AttachDetach, Key, Memory};

pub const DRIVER: &str = "local.csi.longshore";
pub const HANDLE: &str = "h-1";

pub fn unique_name() -> String {
    names::unique_volume_name(DRIVER, HANDLE)
}

pub fn on(node: &str) -> Key {
    Key::new("v", node)
}

#[derive(Clone, Default)]
pub struct World {
    pub store: Store,
    pub cache: Cache,
    pub memory: BTreeMap<Key, Memory>,
    pub now: u64,
    pub writes: usize,
    uids: u64,
}

impl World {
    /// A bound volume with these access modes, and two managed nodes, `a` and `b`.
    pub fn new(modes: &[&str]) -> World {
        let mut world = World { now: 1_000_000, ..World::default() };
        world.make(Kind::Namespace, json!({ "metadata": { "name": "n" } }));
        let claim = json!({ "metadata": { "name": "c", "namespace": "n" }, "spec": {
            "accessModes": modes, "storageClassName": "", "volumeName": "v",
            "resources": { "requests": { "storage": "1Gi" } } } });
        world.make(Kind::PersistentVolumeClaim, claim);
        world.status(Kind::PersistentVolumeClaim, "n", "c", json!({ "phase": "Bound" }));
        let uid = world.json(Kind::PersistentVolumeClaim, "n", "c")["metadata"]["uid"].clone();
        let volume = json!({ "metadata": { "name": "v" }, "spec": {
            "capacity": { "storage": "1Gi" }, "accessModes": modes, "persistentVolumeReclaimPolicy": "Delete",
            "csi": { "driver": DRIVER, "volumeHandle": HANDLE },
            "claimRef": { "kind": "PersistentVolumeClaim", "namespace": "n", "name": "c", "uid": uid } } });
        world.make(Kind::PersistentVolume, volume);
        world.node("a");
        world.node("b");
        world.sync();
        world
    }

    pub fn node(&mut self, name: &str) {
        let mut annotations = serde_json::Map::new();
        annotations.insert(names::CONTROLLER_MANAGED_ATTACH.into(), json!("true"));
        self.make(Kind::Node, json!({ "metadata": { "name": name, "annotations": annotations } }));
    }

    pub fn pod(&mut self, name: &str, node: &str) {
        self.make(
            Kind::Pod,
            json!({ "metadata": { "name": name, "namespace": "n" }, "spec": {
            "nodeName": node, "terminationGracePeriodSeconds": 0,
            "containers": [{ "name": "main", "image": "none" }],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "c" } }] } }),
        );
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

    pub fn status(&mut self, kind: Kind, namespace: &str, name: &str, status: Value) {
        self.patch(kind, namespace, name, true, json!({ "status": status }));
    }

    /// The node agent's report.
    pub fn in_use(&mut self, node: &str, used: bool) {
        let list = if used { json!([unique_name()]) } else { Value::Null };
        self.status(Kind::Node, "", node, json!({ "volumesInUse": list }));
    }

    /// The attacher's finalizer and word.
    pub fn attach(&mut self, node: &str) {
        let name = attachment_name(node);
        self.patch(
            Kind::VolumeAttachment,
            "",
            &name,
            false,
            json!({ "metadata": { "finalizers": ["external-attacher/x"] } }),
        );
        self.status(Kind::VolumeAttachment, "", &name, json!({ "attached": true }));
    }

    /// The attacher lets an attachment go that is being deleted.
    pub fn release(&mut self, node: &str) {
        let body = json!({ "metadata": { "finalizers": null } });
        self.patch(Kind::VolumeAttachment, "", &attachment_name(node), false, body);
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

    /// The node as it is, not as the controller sees it.
    pub fn real_node(&self, name: &str) -> Option<Node> {
        match self.object(&ObjectRef::cluster(Kind::Node, name))? {
            Object::Node(node) => Some((*node).clone()),
            other => panic!("{other:?}"),
        }
    }

    /// The attachment as it is.
    pub fn real_attachment(&self, node: &str) -> Option<VolumeAttachment> {
        match self.object(&ObjectRef::cluster(Kind::VolumeAttachment, attachment_name(node)))? {
            Object::VolumeAttachment(attachment) => Some((*attachment).clone()),
            other => panic!("{other:?}"),
        }
    }

    pub fn reported(&self, node: &str) -> bool {
        self.real_node(node).is_some_and(|node| node.reports_attached(&unique_name()))
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
        let view = AttachDetach::view(key, &self.cache, &());
        AttachDetach::decide(Tick(self.now), &view, &self.memory.get(key).cloned().unwrap_or_default())
    }

    pub fn code(&self, key: &Key) -> &'static str {
        self.look(key).why().code
    }

    /// What the API does with an action, whenever it arrives.
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
                    self.writes += 1;
                }
                outcome
            }
            Effect::Call { .. } | Effect::Host(_) => panic!("{act:?}"),
        }
    }

    /// The controller hears how it ended.
    pub fn hear(&mut self, key: &Key, act: &Act, outcome: &Outcome) {
        if let Outcome::Done(Reply::Object(object)) = outcome {
            self.cache.fold(object.clone());
        }
        if let (Outcome::Done(Reply::Gone), Act::Delete(stamp)) = (outcome, act) {
            self.cache.fold_gone(Kind::VolumeAttachment, &ObjectKey::cluster(stamp.name.clone()), &stamp.uid);
        }
        let memory = self.memory.remove(key).unwrap_or_default();
        self.memory.insert(key.clone(), AttachDetach::remember(Tick(self.now), memory, act, outcome));
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

    /// The same with a memory that is lost before every look.
    pub fn run_forgetful(&mut self, key: &Key) -> Vec<&'static str> {
        let mut done = Vec::new();
        self.sync();
        loop {
            self.memory.clear();
            let Some(name) = self.step(key) else { return done };
            done.push(name);
            self.sync();
            assert!(done.len() < 20, "it does not come to rest: {done:?}");
        }
    }
}

pub fn attachment_name(node: &str) -> String {
    names::attachment_name(HANDLE, DRIVER, node)
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
