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
}

impl Write {
    /// The object written to.
    pub fn target(&self) -> &ObjectRef {
        match self {
            Write::Create { target, .. }
            | Write::Patch { target, .. }
            | Write::Delete { target, .. }
            | Write::Bind { target, .. } => target,
        }
    }

    /// The verb, as RBAC names it.
    pub fn verb(&self) -> &'static str {
        match self {
            Write::Create { .. } | Write::Bind { .. } => "create",
            Write::Patch { .. } => "patch",
            Write::Delete { .. } => "delete",
        }
    }

    /// The subresource written to.
    pub fn subresource(&self) -> Option<&'static str> {
        match self {
            Write::Patch { subresource: Some(Subresource::Status), .. } => Some("status"),
            Write::Bind { .. } => Some("binding"),
            Write::Create { .. } | Write::Patch { subresource: None, .. } | Write::Delete { .. } => None,
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
    pub fn merge(only_if: Precondition, mut body: Value) -> Patch {
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
        Patch::Merge(body)
    }

    /// The body as it travels.
    pub fn to_json(&self) -> Value {
        match self {
            Patch::Merge(body) => body.clone(),
            Patch::Json(ops) => ops.iter().map(JsonOp::to_json).collect(),
        }
    }

    /// The media type it travels under.
    pub fn content_type(&self) -> &'static str {
        match self {
            Patch::Merge(_) => "application/merge-patch+json",
            Patch::Json(_) => "application/json-patch+json",
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

/// A patch that adds a finalizer, unless the object changed meanwhile.
impl Patch {
    /// Adds a finalizer to the object seen, unchanged since.
    pub fn add_finalizer(meta: &Meta, finalizer: &str) -> Patch {
        let mut finalizers = meta.finalizers.clone();
        finalizers.push(finalizer.into());
        Patch::merge(Precondition::unchanged(meta), json!({ "metadata": { "finalizers": finalizers } }))
    }

    /// Removes a finalizer from the object seen, unchanged since.
    pub fn remove_finalizer(meta: &Meta, finalizer: &str) -> Patch {
        let rest: Vec<&String> = meta.finalizers.iter().filter(|f| *f != finalizer).collect();
        let rest = if rest.is_empty() { Value::Null } else { json!(rest) };
        Patch::merge(Precondition::unchanged(meta), json!({ "metadata": { "finalizers": rest } }))
    }
}
