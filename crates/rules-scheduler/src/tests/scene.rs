//! A handful of objects in a cache, and what is decided about pod `p`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Object, ObjectKey, Value, names};
use control::{Cache, Decision, Reason as _, Rules, Timestamp};
use serde_json::json;

use crate::{Action, Memory, Reason, Scheduler};

/// A handful of objects, each newer than the one before.
#[derive(Default)]
pub(crate) struct Scene {
    pub(crate) cache: Cache,
    version: u64,
}

impl Scene {
    pub(crate) fn with(mut self, kind: Kind, mut object: Value) -> Scene {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        object["metadata"]["uid"] = format!("u-{}", object["metadata"]["name"].as_str().unwrap()).into();
        if kind.namespaced() {
            object["metadata"]["namespace"] = "n".into();
        }
        self.cache.set(Object::from_json(kind, object).unwrap());
        self
    }

    pub(crate) fn node(self, name: &str) -> Scene {
        self.node_like(name, json!({}), "True")
    }

    pub(crate) fn node_like(self, name: &str, spec: Value, ready: &str) -> Scene {
        let labels = json!({ names::HOSTNAME_LABEL: name });
        let status = json!({ "conditions": [{ "type": "Ready", "status": ready }] });
        let metadata = json!({ "name": name, "labels": labels });
        self.with(Kind::Node, json!({ "metadata": metadata, "spec": spec, "status": status }))
    }

    pub(crate) fn pod(self, name: &str, claims: &[&str], node: &str, phase: &str) -> Scene {
        let volumes: Vec<Value> = claims
            .iter()
            .map(|claim| json!({ "name": claim, "persistentVolumeClaim": { "claimName": claim } }))
            .collect();
        let spec = json!({ "nodeName": node, "volumes": volumes });
        self.with(Kind::Pod, json!({ "metadata": { "name": name }, "spec": spec, "status": { "phase": phase } }))
    }

    /// Pod `p` with this spec.
    pub(crate) fn pod_like(self, spec: Value) -> Scene {
        self.with(Kind::Pod, json!({ "metadata": { "name": "p" }, "spec": spec, "status": { "phase": "Pending" } }))
    }

    pub(crate) fn claim(self, name: &str, class: &str, phase: &str, annotations: Value) -> Scene {
        let volume = if phase == "Bound" { format!("v-{name}") } else { String::new() };
        let spec = json!({ "storageClassName": class, "volumeName": volume, "accessModes": ["ReadWriteOnce"] });
        let metadata = json!({ "name": name, "annotations": annotations });
        self.with(
            Kind::PersistentVolumeClaim,
            json!({ "metadata": metadata, "spec": spec, "status": { "phase": phase } }),
        )
    }

    pub(crate) fn volume(self, name: &str, affinity: Value) -> Scene {
        let spec =
            json!({ "nodeAffinity": affinity, "claimRef": { "namespace": "n", "name": &name[2..], "uid": "x" } });
        self.with(Kind::PersistentVolume, json!({ "metadata": { "name": name }, "spec": spec }))
    }

    pub(crate) fn late_class(self) -> Scene {
        let mode = "WaitForFirstConsumer";
        self.with(
            Kind::StorageClass,
            json!({ "metadata": { "name": "late" }, "provisioner": "d", "volumeBindingMode": mode }),
        )
    }

    pub(crate) fn decide(&self) -> Decision<Action, Reason> {
        let view = Scheduler::view(&ObjectKey::new("n", "p"), &self.cache, &());
        Scheduler::decide(Timestamp(0), &view, &Memory::default())
    }

    /// What is done about pod `p`, or the code of the reason why nothing is.
    pub(crate) fn check(&self, expected: &str) {
        let said = match self.decide() {
            Decision::Do(action, _) => format!("{action:?}"),
            other => other.why().code.name().into(),
        };
        assert_eq!(said, expected);
    }

    /// What is said about pod `p`.
    pub(crate) fn check_text(&self, expected: &str) {
        assert_eq!(self.decide().why().text, expected);
    }
}

pub(crate) fn scene() -> Scene {
    Scene::default().node("a").node("b").pod("p", &["c"], "", "Pending")
}

pub(crate) fn on(node: &str) -> Value {
    let wanted = json!({ "key": names::HOSTNAME_LABEL, "operator": "In", "values": [node] });
    json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [wanted] }] } })
}
