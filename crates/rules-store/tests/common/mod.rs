//! A cluster for tests: it tells the time, hands out uids and holds every answer to the laws of the store.
#![allow(dead_code, reason = "each test file uses its own part of this")]
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use rules_store::*;
use serde_json::{Value, json};

pub struct Cluster {
    pub store: Store,
    pub copy: Store,
    pub now: u64,
    pub uids: u64,
}

pub fn named(plural: &str) -> Kind {
    Kind::ALL.into_iter().find(|kind| kind.plural() == plural).unwrap()
}

pub fn target(path: &str) -> Target {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        [plural, namespace, name] => Target::new(named(plural), namespace, name),
        [plural, name] => Target::new(named(plural), "", name),
        _ => panic!("{path} is neither resource/name nor resource/namespace/name"),
    }
}

impl Cluster {
    /// A cluster with the namespace `default`.
    pub fn new() -> Cluster {
        let mut cluster = Cluster { store: Store::new(), copy: Store::new(), now: 1_800_000_000_000, uids: 0 };
        cluster.create("namespaces", json!({ "metadata": { "name": "default" } }));
        cluster
    }

    pub fn send(&mut self, request: Request) -> Result<Applied, Failure> {
        self.uids += 1;
        self.now += 1000;
        let uid = format!("uid-{}", self.uids);
        let context = Context { now_millis: self.now, new_uid: &uid, actor: "tester" };
        let before = self.store.clone();
        let result = self.store.apply(&context, request);
        match &result {
            Ok(applied) => {
                check_changes(&before, applied);
                applied.changes.iter().for_each(|change| self.copy.replay(change));
            }
            // A refused request leaves everything as it was.
            Err(_) => assert_same(&before, &self.store),
        }
        // reliability 87: the changes, replayed in order, give the state served.
        assert_same(&self.copy, &self.store);
        result
    }

    pub fn try_create(&mut self, plural: &str, body: Value) -> Result<Applied, Failure> {
        let kind = named(plural);
        let namespace = if kind.namespaced() { "default".into() } else { String::new() };
        self.send(Request::Create { kind, namespace, body, options: WriteOptions::default() })
    }

    pub fn create(&mut self, plural: &str, body: Value) -> Arc<Stored> {
        self.try_create(plural, body).unwrap().reply
    }

    pub fn put(&mut self, path: &str, body: Value) -> Result<Applied, Failure> {
        let options = WriteOptions::default();
        self.send(Request::Update { target: target(path), subresource: None, body, options })
    }

    pub fn put_status(&mut self, path: &str, body: Value) -> Result<Applied, Failure> {
        let options = WriteOptions::default();
        self.send(Request::Update { target: target(path), subresource: Some(Subresource::Status), body, options })
    }

    pub fn patch(&mut self, path: &str, kind: PatchKind, body: Value) -> Result<Applied, Failure> {
        let options = WriteOptions::default();
        self.send(Request::Patch { target: target(path), subresource: None, kind, body, options })
    }

    pub fn merge(&mut self, path: &str, body: Value) -> Result<Applied, Failure> {
        self.patch(path, PatchKind::Merge, body)
    }

    pub fn merge_status(&mut self, path: &str, body: Value) -> Result<Applied, Failure> {
        let (subresource, options) = (Some(Subresource::Status), WriteOptions::default());
        self.send(Request::Patch { target: target(path), subresource, kind: PatchKind::Merge, body, options })
    }

    pub fn delete(&mut self, path: &str) -> Result<Applied, Failure> {
        self.delete_with(path, Precondition::default(), None)
    }

    pub fn delete_with(
        &mut self,
        path: &str,
        preconditions: Precondition,
        grace_seconds: Option<i64>,
    ) -> Result<Applied, Failure> {
        self.send(Request::Delete {
            target: target(path),
            preconditions,
            grace_seconds,
            propagation: DeletePropagation::Background,
            dry_run: false,
        })
    }

    pub fn get(&self, path: &str) -> Option<Arc<Stored>> {
        let target = target(path);
        self.store.get(target.kind, &target.namespace, &target.name)
    }

    pub fn value(&self, path: &str) -> Value {
        self.get(path).unwrap().value.clone()
    }
}

pub fn assert_same(left: &Store, right: &Store) {
    assert_eq!(left.revision(), right.revision());
    assert!(left.iter().eq(right.iter()), "two stores at revision {} differ", left.revision());
}

/// What must be true of every answer, whatever was asked.
pub fn check_changes(before: &Store, applied: &Applied) {
    let mut replayed = before.clone();
    for change in &applied.changes {
        let (object, old) = (&change.object, &change.before);
        // reliability 85: every change has the next number, and the object carries it.
        assert_eq!(change.revision, replayed.revision() + 1);
        assert_eq!(object.revision, change.revision);
        assert_eq!(object.value["metadata"]["resourceVersion"], json!(change.revision.to_string()));
        let key = &object.key;
        assert_eq!(old, &replayed.get(key.kind, &key.namespace, &key.name), "`before` is what was there");
        assert_eq!(change.event == EventType::Added, old.is_none());
        if let Some(old) = old {
            check_step(change.event, &old.value, &object.value);
        }
        replayed.replay(change);
    }
}

fn check_step(event: EventType, old: &Value, new: &Value) {
    let meta = |object: &Value, key: &str| object["metadata"].get(key).cloned().unwrap_or(Value::Null);
    // reliability 99: identity never changes, a deletion is never taken back or put off.
    for key in ["name", "namespace", "uid", "creationTimestamp"] {
        assert_eq!(meta(old, key), meta(new, key), "{key}");
    }
    let due = (meta(old, "deletionTimestamp"), meta(new, "deletionTimestamp"));
    if let (Value::String(old), Value::String(new)) = &due {
        assert!(new <= old, "deletion put off from {old} to {new}");
    }
    assert!(due.0.is_null() || !due.1.is_null(), "deletion taken back");
    let finalizers = |object: &Value| meta(object, "finalizers").as_array().map_or(0, Vec::len);
    if event == EventType::Deleted {
        assert_eq!(finalizers(new), 0, "an object went with its finalizers");
    }
    // reliability 100: the generation moves exactly when the spec does.
    assert_eq!(old.get("spec") != new.get("spec"), meta(old, "generation") != meta(new, "generation"), "generation");
    // reliability 109: a change changes something besides its own number.
    if event == EventType::Modified {
        let mut renumbered = old.clone();
        renumbered["metadata"]["resourceVersion"] = meta(new, "resourceVersion");
        assert_ne!(&renumbered, new, "a change that changed nothing");
    }
}

pub fn claim(name: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    })
}

pub fn volume(name: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" },
            "csi": { "driver": "d.example", "volumeHandle": "h" },
        },
    })
}

pub fn pod(name: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "containers": [{ "name": "main", "image": "busybox:1.36", "volumeMounts": [{ "name": "data", "mountPath": "/data" }] }],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "c" } }],
        },
    })
}
