//! What users and other controllers do to objects in a test.

use api::{Kind, ObjectKey, ObjectRef, Patch, Precondition, Subresource, Value, Write};
use control::Rules;
use serde_json::json;

use crate::Lab;

impl<R: Rules> Lab<R> {
    /// The object of a kind with this name, which may be `namespace/name`.
    pub fn target(&self, kind: Kind, name: &str) -> ObjectRef {
        let (namespace, name) = match name.split_once('/') {
            Some(both) => both,
            None if kind.namespaced() => (self.namespace, name),
            None => ("", name),
        };
        ObjectRef { kind, key: ObjectKey::new(namespace, name) }
    }

    /// Creates an object; kind and version are filled in, and a namespace where none is named.
    pub fn create(&mut self, kind: Kind, mut body: Value) {
        body["apiVersion"] = kind.api_version().into();
        body["kind"] = kind.name().into();
        if kind.namespaced() && body["metadata"]["namespace"].is_null() {
            body["metadata"]["namespace"] = self.namespace.into();
        }
        let namespace = body["metadata"]["namespace"].as_str().unwrap_or_default();
        let key = ObjectKey::new(namespace, body["metadata"]["name"].as_str().unwrap());
        self.write(&Write::Create { target: ObjectRef { kind, key }, body }).unwrap();
    }

    /// Merges into an object.
    pub fn patch(&mut self, kind: Kind, name: &str, body: Value) {
        self.merge(kind, name, None, body);
    }

    /// Merges into an object's status.
    pub fn patch_status(&mut self, kind: Kind, name: &str, status: Value) {
        self.merge(kind, name, Some(Subresource::Status), json!({ "status": status }));
    }

    fn merge(&mut self, kind: Kind, name: &str, subresource: Option<Subresource>, body: Value) {
        let target = self.target(kind, name);
        self.write(&Write::Patch { target, subresource, patch: Patch::merge(Precondition::default(), body) }).unwrap();
    }

    /// Puts a pod on a node.
    pub fn place(&mut self, pod: &str, node: &str) {
        let target = self.target(Kind::Pod, pod);
        let uid = self.object(&target).map(|pod| pod.meta().uid.clone()).unwrap_or_default();
        self.write(&Write::Bind { target, uid, node: node.into() }).unwrap();
    }

    /// Deletes an object, at once where nothing holds it.
    pub fn delete(&mut self, kind: Kind, name: &str) {
        self.delete_within(kind, name, 0);
    }

    /// Deletes an object that has so many seconds to end.
    pub fn delete_within(&mut self, kind: Kind, name: &str, seconds: u32) {
        let target = self.target(kind, name);
        self.write(&Write::Delete { target, only_if: Default::default(), grace_seconds: Some(seconds) }).unwrap();
    }

    /// An object as the store keeps it, or null.
    pub fn json(&self, kind: Kind, name: &str) -> Value {
        self.get(kind, name).unwrap_or_default()
    }

    /// An object as the store keeps it, if it is there.
    pub fn get(&self, kind: Kind, name: &str) -> Option<Value> {
        self.stored(&self.target(kind, name))
    }
}
