//! A real API store and the rules, woken by its changes alone.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Object, ObjectKey, Value};
use control::{Action as _, Cache, Decision, Effect, Outcome, Refusal, Reply, Rules, Tick, Why};
use rules_store::{
    Context, EventType, Failure, PatchKind, Request, Store, Subresource, Target, WriteOptions, find_kind,
};
use serde_json::json;

use crate::{Binding, Key, Memory};

pub(super) struct World {
    pub(super) store: Store,
    cache: Cache,
    memory: BTreeMap<Key, Memory>,
    due: BTreeSet<Key>,
    now: Tick,
    /// Every action done.
    pub(super) log: Vec<String>,
}

impl World {
    pub(super) fn new() -> World {
        let mut world = World {
            store: Store::new(),
            cache: Cache::default(),
            memory: BTreeMap::new(),
            due: BTreeSet::new(),
            now: Tick(1_000_000),
            log: Vec::new(),
        };
        world.create(Kind::Namespace, json!({ "metadata": { "name": "n" } }));
        world
    }

    fn apply(&mut self, request: Request) -> Result<rules_store::Applied, Failure> {
        let uid = format!("u{}", self.store.revision() + 1);
        let context = Context { now_millis: self.now.0, new_uid: &uid, actor: "test" };
        let applied = self.store.apply(&context, request);
        self.sync();
        applied
    }

    fn write(&mut self, write: &api::Write) -> Result<rules_store::Applied, Failure> {
        allowed(write.target().kind, write.subresource().unwrap_or(""), write.verb());
        self.apply(Request::from_write(write))
    }

    /// Shows the rules what is there now, and wakes whom that concerns.
    fn sync(&mut self) {
        for kind in Object::KINDS {
            let objects = self.store.list(find_kind(kind), None);
            let objects = objects.map(|stored| Object::from_json(kind, stored.value.clone()).unwrap()).collect();
            for change in self.cache.replace(kind, self.store.revision(), objects) {
                self.due.extend(Binding::wakes(&change, &self.cache, &()));
            }
        }
    }

    pub(super) fn create(&mut self, kind: Kind, body: Value) {
        let namespace = if kind.namespaced() { "n" } else { "" };
        let (resource, options) = (find_kind(kind), WriteOptions::default());
        self.apply(Request::Create { resource, namespace: namespace.into(), body, options }).unwrap();
    }

    pub(super) fn patch(&mut self, kind: Kind, name: &str, status: bool, body: Value) {
        let namespace = if kind.namespaced() { "n" } else { "" };
        self.apply(Request::Patch {
            target: Target::new(find_kind(kind), namespace, name),
            subresource: status.then_some(Subresource::Status),
            kind: PatchKind::Merge,
            body,
            options: WriteOptions::default(),
        })
        .unwrap();
    }

    pub(super) fn delete(&mut self, kind: Kind, name: &str) {
        let namespace = if kind.namespaced() { "n" } else { "" };
        self.apply(Request::Delete {
            target: Target::new(find_kind(kind), namespace, name),
            preconditions: api::Precondition::default(),
            grace_seconds: Some(0),
            dry_run: false,
        })
        .unwrap();
    }

    pub(super) fn get(&self, kind: Kind, name: &str) -> Option<Value> {
        let namespace = if kind.namespaced() { "n" } else { "" };
        self.store.get(find_kind(kind), namespace, name).map(|stored| stored.value.clone())
    }

    pub(super) fn claim(&self, name: &str) -> Value {
        self.get(Kind::PersistentVolumeClaim, name).unwrap()
    }

    pub(super) fn volume(&self, name: &str) -> Value {
        self.get(Kind::PersistentVolume, name).unwrap()
    }

    /// Why the rules do what they do about a key now.
    pub(super) fn why(&self, key: &Key) -> Why {
        self.decide(key).why().clone()
    }

    pub(super) fn why_claim(&self, name: &str) -> &'static str {
        self.why(&Key::Claim(ObjectKey::new("n", name))).code
    }

    pub(super) fn why_volume(&self, name: &str) -> &'static str {
        self.why(&Key::Volume(name.into())).code
    }

    fn decide(&self, key: &Key) -> Decision<crate::Action> {
        let memory = self.memory.get(key).cloned().unwrap_or_default();
        Binding::decide(self.now, &Binding::view(key, &self.cache, &()), &memory)
    }

    /// Performs at most `most` actions; true if there was nothing left to do.
    pub(super) fn run_for(&mut self, most: usize) -> bool {
        let mut done = 0;
        while let Some(key) = self.due.pop_first() {
            if let Decision::Do(action, _) = self.decide(&key) {
                if done == most {
                    self.due.insert(key);
                    return false;
                }
                done += 1;
                self.log.push(format!("{action:?}"));
                let got = self.perform(action.effect());
                let memory = self.memory.remove(&key).unwrap_or_default();
                self.memory.insert(key.clone(), Binding::remember(self.now, memory, &action, &got));
                self.due.insert(key);
            }
        }
        true
    }

    pub(super) fn run(&mut self) {
        assert!(self.run_for(100), "no rest after {:?}", self.log);
        for key in Binding::keys(&self.cache, &()) {
            assert!(!matches!(self.decide(&key), Decision::Do(..)), "{key} was not woken: {:?}", self.decide(&key));
        }
    }

    /// The process dies and comes back: memory and wakes are gone.
    pub(super) fn restart(&mut self) {
        self.memory.clear();
        self.due = Binding::keys(&self.cache, &()).into_iter().collect();
    }

    fn perform(&mut self, effect: Effect) -> Outcome {
        match effect {
            Effect::Read(target) => {
                allowed(target.kind, "", "get");
                let found = self.store.get(find_kind(target.kind), &target.key.namespace, &target.key.name);
                let object = |value: Value| Reply::Object(Object::from_json(target.kind, value).unwrap());
                Outcome::Done(found.map_or(Reply::Gone, |stored| object(stored.value.clone())))
            }
            Effect::Write(write) => match self.write(&write) {
                Ok(applied) => {
                    assert!(!applied.changes.is_empty(), "a write that changed nothing: {write:?}"); // reliability 109
                    match applied.changes.iter().any(|change| change.event == EventType::Deleted) {
                        true => Outcome::Done(Reply::Gone),
                        false => Outcome::Done(Reply::Nothing),
                    }
                }
                Err(Failure::Conflict { .. }) => Outcome::Refused(Refusal::Conflict),
                Err(Failure::NotFound { .. }) => Outcome::Refused(Refusal::NotFound),
                Err(Failure::AlreadyExists { .. }) => Outcome::Refused(Refusal::AlreadyExists),
                Err(other) => panic!("the API refused {write:?}: {other:?}"),
            },
            Effect::Call { .. } | Effect::Host(_) => panic!("binding touches the API alone"),
        }
    }

    /// Everything that matters of every claim and volume, for comparing two runs.
    pub(super) fn outcome(&self) -> String {
        let mut text = String::new();
        for kind in [Kind::PersistentVolumeClaim, Kind::PersistentVolume] {
            for stored in self.store.list(find_kind(kind), None) {
                let value = &stored.value;
                let meta = &value["metadata"];
                let parts = [&meta["name"], &meta["finalizers"], &meta["annotations"], &value["spec"]];
                text.push_str(&parts.map(Value::to_string).join(" "));
                text.push_str(&format!(" {} {}\n", value["status"]["phase"], value["status"]["capacity"]));
            }
        }
        text
    }

    pub(super) fn class(mut self, name: &str, provisioner: &str, more: Value) -> World {
        let mut body = json!({ "metadata": { "name": name }, "provisioner": provisioner });
        rules_store::merge_patch(&mut body, &more);
        self.create(Kind::StorageClass, body);
        self
    }

    pub(super) fn with_claim(mut self, name: &str, class: Option<&str>, size: &str, more: Value) -> World {
        let requests = json!({ "requests": { "storage": size } });
        let mut body = json!({
            "metadata": { "name": name },
            "spec": { "accessModes": ["ReadWriteOnce"], "resources": requests },
        });
        if let Some(class) = class {
            body["spec"]["storageClassName"] = class.into();
        }
        rules_store::merge_patch(&mut body, &more);
        self.create(Kind::PersistentVolumeClaim, body);
        self
    }

    pub(super) fn with_volume(mut self, name: &str, class: &str, size: &str, more: Value) -> World {
        self.add_volume(name, class, size, more);
        self
    }

    pub(super) fn add_volume(&mut self, name: &str, class: &str, size: &str, more: Value) {
        let mut body = json!({
            "metadata": { "name": name },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": { "storage": size },
                "storageClassName": class,
                "csi": { "driver": "d", "volumeHandle": name },
            },
        });
        rules_store::merge_patch(&mut body, &more);
        self.create(Kind::PersistentVolume, body);
    }

    pub(super) fn with_pod(mut self, name: &str, claim: &str) -> World {
        let volume = json!({ "name": "v", "persistentVolumeClaim": { "claimName": claim } });
        let container = json!({ "name": "c", "image": "i" });
        let spec = json!({ "containers": [container], "volumes": [volume] });
        self.create(Kind::Pod, json!({ "metadata": { "name": name }, "spec": spec }));
        self
    }
}

/// The role printed from the rules covers what they do.
fn allowed(kind: Kind, subresource: &str, verb: &str) {
    let permissions = crate::Action::permissions();
    let found = permissions.iter().any(|p| p.kind == kind && p.subresource == subresource && p.verb == verb);
    assert!(found, "no permission to {verb} {kind} {subresource}");
}
