//! Claims, volumes and classes in the laboratory; the rules are woken by changes alone.

use alloc::format;
use alloc::string::{String, ToString};

use api::{Kind, ObjectKey, Value};
use prove_lab::Lab;
use serde_json::json;

use crate::{Binding, Key, Local};

pub(super) struct World(Lab<Binding>);

prove_lab::world_of!(World, 0: Binding);

impl World {
    pub(super) fn new() -> World {
        World(Lab::new("n", Local::default()))
    }

    pub(super) fn claim(&self, name: &str) -> Value {
        self.get(Kind::PersistentVolumeClaim, name).unwrap()
    }

    pub(super) fn volume(&self, name: &str) -> Value {
        self.get(Kind::PersistentVolume, name).unwrap()
    }

    pub(super) fn why_claim(&self, name: &str) -> &'static str {
        self.why(&Key::Claim(ObjectKey::new("n", name))).code
    }

    pub(super) fn why_volume(&self, name: &str) -> &'static str {
        self.why(&Key::Volume(name.into())).code
    }

    /// Performs at most `most` actions; true if there was nothing left to do.
    pub(super) fn run_for(&mut self, most: usize) -> bool {
        self.follow(most, |effect| panic!("binding touches the API alone, not {effect:?}"))
    }

    /// Everything that matters of every claim and volume, for comparing two runs.
    pub(super) fn outcome(&self) -> String {
        let mut text = String::new();
        for kind in [Kind::PersistentVolumeClaim, Kind::PersistentVolume] {
            for value in self.list(kind) {
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

    /// A pod without a node.
    pub(super) fn with_pod(self, name: &str, claim: &str) -> World {
        self.with_pod_on("", name, claim)
    }

    pub(super) fn with_pod_on(mut self, node: &str, name: &str, claim: &str) -> World {
        let volume = json!({ "name": "v", "persistentVolumeClaim": { "claimName": claim } });
        let container = json!({ "name": "c", "image": "i" });
        let spec = json!({ "containers": [container], "volumes": [volume], "nodeName": node });
        self.create(Kind::Pod, json!({ "metadata": { "name": name }, "spec": spec }));
        self
    }
}
