//! The rules' own writes, applied by a real store, wake the rules.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, Object, ObjectKey, Value, names};
use control::{Action as _, Cache, Decision, Effect, Rules, Tick};
use rules_store::{Context, PatchKind, Request, Store, Subresource, Target, WriteOptions, find_kind};
use serde_json::json;

use crate::{Memory, Scheduler};

#[derive(Default)]
struct World {
    store: Store,
    cache: Cache,
    due: BTreeSet<ObjectKey>,
    log: Vec<String>,
}

impl World {
    fn apply(&mut self, request: Request) {
        let uid = format!("u{}", self.store.revision());
        self.store.apply(&Context { now_millis: 0, new_uid: &uid, actor: "test" }, request).unwrap();
        for kind in Object::KINDS {
            let objects = self.store.list(find_kind(kind), None);
            let objects = objects.map(|stored| Object::from_json(kind, stored.value.clone()).unwrap()).collect();
            for change in self.cache.replace(kind, self.store.revision(), objects) {
                self.due.extend(Scheduler::wakes(&change, &self.cache, &()));
            }
        }
    }

    fn create(&mut self, kind: Kind, body: Value) {
        let namespace = if kind.namespaced() { "n" } else { "" };
        let (resource, options) = (find_kind(kind), WriteOptions::default());
        self.apply(Request::Create { resource, namespace: namespace.into(), body, options });
    }

    fn patch(&mut self, kind: Kind, name: &str, status: bool, body: Value) {
        let namespace = if kind.namespaced() { "n" } else { "" };
        self.apply(Request::Patch {
            target: Target::new(find_kind(kind), namespace, name),
            subresource: status.then_some(Subresource::Status),
            kind: PatchKind::Merge,
            body,
            options: WriteOptions::default(),
        });
    }

    /// Follows the wakes; memory is empty at every step, which costs nothing here.
    fn run(&mut self) {
        while let Some(key) = self.due.pop_first() {
            let view = Scheduler::view(&key, &self.cache, &());
            if let Decision::Do(action, _) = Scheduler::decide(Tick(0), &view, &Memory::default()) {
                self.log.push(format!("{action:?}"));
                let Effect::Write(write) = action.effect() else { panic!("the scheduler only writes") };
                self.apply(Request::from_write(&write));
            }
        }
    }
}

#[test]
fn every_change_a_pod_waits_for_wakes_it() {
    let mut world = World::default();
    world.create(Kind::Namespace, json!({ "metadata": { "name": "n" } }));
    let volume = json!({ "name": "v", "persistentVolumeClaim": { "claimName": "c" } });
    let spec = json!({ "containers": [{ "name": "c", "image": "i" }], "volumes": [volume] });
    world.create(Kind::Pod, json!({ "metadata": { "name": "p" }, "spec": spec }));
    world.run();
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": "late",
        "resources": { "requests": { "storage": "1Gi" } },
    });
    world.create(Kind::PersistentVolumeClaim, json!({ "metadata": { "name": "c" }, "spec": spec }));
    world.run();
    world.create(Kind::Node, json!({ "metadata": { "name": "a" } }));
    world.run();
    assert!(world.log.is_empty());
    let mode = "WaitForFirstConsumer";
    let class = json!({ "metadata": { "name": "late" }, "provisioner": "d", "volumeBindingMode": mode });
    world.create(Kind::StorageClass, class);
    world.run();
    assert!(world.log.is_empty(), "the node is not ready");
    let ready = json!([{ "type": "Ready", "status": "True" }]);
    world.patch(Kind::Node, "a", true, json!({ "status": { "conditions": ready } }));
    world.run();
    assert_eq!(world.log, ["SelectNode(n/c for a)"]);
    let claim = world.cache.claim(&ObjectKey::new("n", "c")).unwrap().clone();
    assert_eq!(claim.metadata.annotation(names::SELECTED_NODE), Some("a"));

    world.patch(Kind::PersistentVolumeClaim, "c", false, json!({ "spec": { "volumeName": "v" } }));
    world.patch(Kind::PersistentVolumeClaim, "c", true, json!({ "status": { "phase": "Bound" } }));
    world.run();
    assert_eq!(world.log.len(), 1, "the volume is not seen yet");
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" },
        "csi": { "driver": "d", "volumeHandle": "h" },
        "claimRef": { "namespace": "n", "name": "c", "uid": claim.metadata.uid },
    });
    world.create(Kind::PersistentVolume, json!({ "metadata": { "name": "v" }, "spec": spec }));
    world.run();
    assert_eq!(world.log, ["SelectNode(n/c for a)", "Bind(n/p to a)"]);
    assert_eq!(world.cache.pod(&ObjectKey::new("n", "p")).unwrap().spec.node_name, "a");
}

// Nodes write their status all the time; pods are not looked at for that.
#[test]
fn a_node_report_that_bears_on_nothing_wakes_nobody() {
    let mut world = World::default();
    world.create(Kind::Namespace, json!({ "metadata": { "name": "n" } }));
    let spec = json!({ "containers": [{ "name": "c", "image": "i" }] });
    world.create(Kind::Node, json!({ "metadata": { "name": "a" } }));
    world.create(Kind::Pod, json!({ "metadata": { "name": "p" }, "spec": spec }));
    world.due.clear();
    world.patch(Kind::Node, "a", true, json!({ "status": { "volumesInUse": ["x"] } }));
    assert!(world.due.is_empty());
    world.patch(Kind::Node, "a", false, json!({ "spec": { "unschedulable": true } }));
    assert!(world.due.is_empty(), "it was not ready either way");
    world.patch(Kind::Node, "a", true, json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } }));
    assert_eq!(world.due.len(), 1);
}
