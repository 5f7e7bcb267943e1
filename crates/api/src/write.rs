use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::json;

use crate::{Meta, ObjectRef, Value};

/// One write to the API. Every write that touches an existing object says what it believes about that object, and is
/// refused by the server when the belief is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    /// Make a new object. Refused if the name is taken. `target.kind` and `body` agree.
    Create {
        /// Where it will live.
        target: ObjectRef,
        /// The whole object.
        body: Value,
    },
    /// Change an object.
    Patch {
        /// Which.
        target: ObjectRef,
        /// Which part of it, when not the main one.
        subresource: Option<Subresource>,
        /// The change, with its precondition inside.
        patch: Patch,
    },
    /// Ask for an object's deletion.
    Delete {
        /// Which.
        target: ObjectRef,
        /// What must still be true.
        only_if: Precondition,
        /// Zero removes a pod at once; `None` leaves the choice to the server.
        grace_seconds: Option<u32>,
    },
    /// Put a pod on a node (`pods/binding`). Refused if the pod has a node already or another uid.
    Bind {
        /// The pod.
        target: ObjectRef,
        /// Its uid.
        uid: String,
        /// The node.
        node: String,
    },
    /// Set or take away annotations of their own writer. Notes touch only names that nobody else writes, so that the hands
    /// may carry any number of them to the server in one request.
    Note(Note),
}

/// Annotations to be set or, where there is no value, taken away.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Note {
    /// The object.
    pub target: ObjectRef,
    /// Its uid.
    pub uid: String,
    /// The version the writer saw. Other notes may have come in between.
    pub seen: String,
    /// The annotations.
    pub annotations: BTreeMap<String, Option<String>>,
}

impl Note {
    /// The note as a patch of the object at this version, or at any.
    pub fn patch(&self, version: Option<String>) -> Patch {
        let only_if = Precondition { uid: Some(self.uid.clone()), resource_version: version };
        Patch::merge(only_if, json!({ "metadata": { "annotations": self.annotations } }))
    }
}

impl Write {
    /// The object written to.
    pub fn target(&self) -> &ObjectRef {
        match self {
            Write::Create { target, .. }
            | Write::Patch { target, .. }
            | Write::Delete { target, .. }
            | Write::Bind { target, .. }
            | Write::Note(Note { target, .. }) => target,
        }
    }

    /// The uid the sender believes the object to have, if the write says so.
    pub fn uid(&self) -> Option<&str> {
        match self {
            Write::Create { .. } => None,
            Write::Patch { patch: Patch::Merge(body) | Patch::Strategic(body), .. } => body["metadata"]["uid"].as_str(),
            Write::Patch { patch: Patch::Json(ops), .. } => ops.iter().find_map(|op| match op {
                JsonOp::Test { path, value } if path == "/metadata/uid" => value.as_str(),
                JsonOp::Test { .. } | JsonOp::Add { .. } | JsonOp::Replace { .. } | JsonOp::Remove { .. } => None,
            }),
            Write::Delete { only_if, .. } => only_if.uid.as_deref(),
            Write::Bind { uid, .. } | Write::Note(Note { uid, .. }) => Some(uid),
        }
    }

    /// The verb, as RBAC names it.
    pub fn verb(&self) -> &'static str {
        match self {
            Write::Create { .. } | Write::Bind { .. } => "create",
            Write::Patch { .. } | Write::Note(_) => "patch",
            Write::Delete { .. } => "delete",
        }
    }

    /// The subresource written to.
    pub fn subresource(&self) -> Option<&'static str> {
        match self {
            Write::Patch { subresource: Some(Subresource::Status), .. } => Some("status"),
            Write::Bind { .. } => Some("binding"),
            Write::Create { .. } | Write::Patch { subresource: None, .. } | Write::Delete { .. } | Write::Note(_) => {
                None
            }
        }
    }
}

/// A part of an object with a door of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subresource {
    /// `/status`.
    Status,
}

/// A change and what must be true for it to apply.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Patch {
    /// RFC 7396. The precondition travels inside, as `metadata.uid` and `metadata.resourceVersion`.
    Merge(Value),
    /// RFC 6902. The precondition travels inside, as `test` operations.
    Json(Vec<JsonOp>),
    /// A merge patch that knows lists which are really sets or maps, such as finalizers. The precondition travels inside,
    /// as in a merge patch.
    Strategic(Value),
}

/// One step of a JSON patch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "RFC 6902 names")]
pub enum JsonOp {
    Test { path: String, value: Value },
    Add { path: String, value: Value },
    Replace { path: String, value: Value },
    Remove { path: String },
}

/// What the sender believes about an object it is about to change or delete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Precondition {
    /// It is this very object, not a namesake.
    pub uid: Option<String>,
    /// Nobody has changed it since.
    pub resource_version: Option<String>,
}

impl Precondition {
    /// The very object seen, however it may have changed.
    pub fn same(meta: &Meta) -> Self {
        Precondition { uid: Some(meta.uid.clone()), resource_version: None }
    }

    /// The very object seen, unchanged.
    pub fn unchanged(meta: &Meta) -> Self {
        Precondition { uid: Some(meta.uid.clone()), resource_version: Some(meta.resource_version.clone()) }
    }
}

impl Patch {
    /// A merge patch that applies only under the precondition. `body` may carry `metadata` of its own.
    pub fn merge(only_if: Precondition, body: Value) -> Patch {
        Patch::Merge(Patch::guarded(only_if, body))
    }

    /// The same as a strategic merge patch: lists with a key merge item by item.
    pub fn strategic(only_if: Precondition, body: Value) -> Patch {
        Patch::Strategic(Patch::guarded(only_if, body))
    }

    fn guarded(only_if: Precondition, mut body: Value) -> Value {
        if let Value::Object(map) = &mut body {
            let meta = map.entry("metadata").or_insert_with(|| json!({}));
            if let Value::Object(meta) = meta {
                if let Some(uid) = only_if.uid {
                    meta.insert("uid".into(), uid.into());
                }
                if let Some(version) = only_if.resource_version {
                    meta.insert("resourceVersion".into(), version.into());
                }
            }
        }
        body
    }

    /// The body as it travels.
    pub fn to_json(&self) -> Value {
        match self {
            Patch::Merge(body) | Patch::Strategic(body) => body.clone(),
            Patch::Json(ops) => ops.iter().map(JsonOp::to_json).collect(),
        }
    }

    /// The media type it travels under.
    pub fn content_type(&self) -> &'static str {
        match self {
            Patch::Merge(_) => "application/merge-patch+json",
            Patch::Json(_) => "application/json-patch+json",
            Patch::Strategic(_) => "application/strategic-merge-patch+json",
        }
    }
}

impl JsonOp {
    fn to_json(&self) -> Value {
        match self {
            JsonOp::Test { path, value } => json!({ "op": "test", "path": path, "value": value }),
            JsonOp::Add { path, value } => json!({ "op": "add", "path": path, "value": value }),
            JsonOp::Replace { path, value } => json!({ "op": "replace", "path": path, "value": value }),
            JsonOp::Remove { path } => json!({ "op": "remove", "path": path }),
        }
    }
}

/// Finalizers.
impl Patch {
    /// Adds a finalizer to the object seen, unchanged since.
    pub fn add_finalizer(meta: &Meta, finalizer: &str) -> Patch {
        let mut finalizers = meta.finalizers.clone();
        finalizers.push(finalizer.into());
        Patch::merge(Precondition::unchanged(meta), json!({ "metadata": { "finalizers": finalizers } }))
    }

    /// Removes a finalizer from the object of this uid, which is being deleted.
    pub fn let_go(uid: &str, finalizer: &str) -> Patch {
        Patch::let_go_of_all(uid, &[finalizer])
    }

    /// Removes finalizers from the object of this uid, which is being deleted.
    pub fn let_go_of_all(uid: &str, finalizers: &[&str]) -> Patch {
        Patch::Strategic(json!({ "metadata": { "uid": uid, "$deleteFromPrimitiveList/finalizers": finalizers } }))
    }

    /// Removes a finalizer from the object seen. Nobody can put a finalizer on an object that is being deleted, so there
    /// it is enough that it is the same object: controllers that let go at the same time do not get in each other's way.
    /// Elsewhere the object must be unchanged.
    pub fn remove_finalizer(meta: &Meta, finalizer: &str) -> Patch {
        if meta.is_deleting() {
            return Patch::let_go(&meta.uid, finalizer);
        }
        let rest: Vec<&String> = meta.finalizers.iter().filter(|f| *f != finalizer).collect();
        let rest = if rest.is_empty() { Value::Null } else { json!(rest) };
        Patch::merge(Precondition::unchanged(meta), json!({ "metadata": { "finalizers": rest } }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Time};

    #[test]
    fn every_write_to_an_existing_object_can_say_which_one_it_means() {
        let mut meta = Meta { uid: "u".into(), resource_version: "7".into(), ..Meta::named("v") };
        meta.finalizers = alloc::vec!["a".into(), "b".into()];
        let target = ObjectRef::cluster(Kind::PersistentVolume, "v");
        let patched = |patch| Write::Patch { target: target.clone(), subresource: None, patch };
        assert_eq!(patched(Patch::remove_finalizer(&meta, "a")).uid(), Some("u"));
        let Patch::Merge(body) = Patch::remove_finalizer(&meta, "a") else { unreachable!("it is not being deleted") };
        assert_eq!(body["metadata"]["finalizers"], json!(["b"]));
        assert_eq!(body["metadata"]["resourceVersion"], json!("7"));
        meta.deletion_timestamp = Some(Time::from_unix_millis(1));
        let letting_go = patched(Patch::remove_finalizer(&meta, "a"));
        assert_eq!(letting_go.uid(), Some("u"));
        let Write::Patch { patch: Patch::Strategic(body), .. } = &letting_go else {
            unreachable!("it is being deleted")
        };
        assert!(body["metadata"].get("resourceVersion").is_none());
        let tests = Patch::Json(alloc::vec![JsonOp::Test { path: "/metadata/uid".into(), value: json!("u") }]);
        assert_eq!(patched(tests).uid(), Some("u"));
        let delete = Write::Delete { target: target.clone(), only_if: Precondition::same(&meta), grace_seconds: None };
        assert_eq!(delete.uid(), Some("u"));
    }
}
