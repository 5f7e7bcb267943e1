use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::json;

use crate::{Meta, ObjectRef, ResourceVersion, Value};

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
        target: ObjectRef,
        /// Which part of it, when not the main one.
        subresource: Option<Subresource>,
        /// The change and its precondition.
        patch: Patch,
    },
    /// Ask for an object's deletion.
    Delete {
        target: ObjectRef,
        /// What must still be true.
        only_if: Precondition,
        /// Zero removes a pod at once; `None` leaves the choice to the server.
        grace_seconds: Option<u32>,
    },
    /// Put a pod on a node (`pods/binding`). Refused if the pod has a node already or another uid.
    Bind { target: ObjectRef, uid: String, node: String },
    /// Set or take away annotations of their own writer. Notes touch only names that nobody else writes, so that the hands
    /// may carry any number of them to the server in one request.
    Note(Note),
}

/// Annotations to be set or, where there is no value, taken away.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Note {
    pub target: ObjectRef,
    pub uid: String,
    /// The version the writer saw. Other notes may have come in between.
    pub seen: ResourceVersion,
    pub annotations: BTreeMap<String, Option<String>>,
}

impl Note {
    /// The note as a patch of the object at this version, or at any.
    pub fn patch(&self, version: Option<ResourceVersion>) -> Patch {
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
            Write::Patch { patch: Patch { only_if, .. }, .. } | Write::Delete { only_if, .. } => only_if.uid.as_deref(),
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
pub struct Patch {
    /// What must still be true. It becomes a part of the body when the request is encoded.
    pub only_if: Precondition,
    pub body: PatchBody,
}

/// A change in one of the patch languages of the Kubernetes API.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PatchBody {
    /// RFC 7396.
    Merge(Value),
    /// RFC 6902.
    Json(Vec<JsonOp>),
    /// A merge patch that knows lists which are really sets or maps, such as finalizers. Kinds that a
    /// CustomResourceDefinition declares do not take it.
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
    pub resource_version: Option<ResourceVersion>,
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
    /// A merge patch that applies only under the precondition.
    pub fn merge(only_if: Precondition, body: Value) -> Patch {
        Patch { only_if, body: PatchBody::Merge(body) }
    }

    /// The same as a strategic merge patch: lists with a key merge item by item.
    pub fn strategic(only_if: Precondition, body: Value) -> Patch {
        Patch { only_if, body: PatchBody::Strategic(body) }
    }

    /// The same as a JSON patch.
    pub fn json(only_if: Precondition, ops: Vec<JsonOp>) -> Patch {
        Patch { only_if, body: PatchBody::Json(ops) }
    }

    /// The body as it travels: in a merge patch the precondition is `metadata.uid` and `metadata.resourceVersion`, in a JSON
    /// patch it is `test` operations.
    pub fn to_json(&self) -> Value {
        let version = self.only_if.resource_version.as_ref().map(|version| version.0.as_str());
        let wanted = [("uid", self.only_if.uid.as_deref()), ("resourceVersion", version)];
        let wanted = wanted.into_iter().filter_map(|(field, value)| Some((field, value?)));
        match &self.body {
            PatchBody::Merge(body) | PatchBody::Strategic(body) => {
                let mut body = body.clone();
                for (field, value) in wanted {
                    body["metadata"][field] = value.into();
                }
                body
            }
            PatchBody::Json(ops) => {
                let tests = wanted.map(|(field, value)| {
                    JsonOp::Test { path: format!("/metadata/{field}"), value: value.into() }.to_json()
                });
                tests.chain(ops.iter().map(JsonOp::to_json)).collect()
            }
        }
    }

    /// The media type it travels under.
    pub fn content_type(&self) -> &'static str {
        match self.body {
            PatchBody::Merge(_) => "application/merge-patch+json",
            PatchBody::Json(_) => "application/json-patch+json",
            PatchBody::Strategic(_) => "application/strategic-merge-patch+json",
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

/// Changes of finalizers.
impl Patch {
    /// Adds a finalizer to the object seen, unchanged since.
    pub fn add_finalizer(meta: &Meta, finalizer: &str) -> Patch {
        let mut finalizers = meta.finalizers.clone();
        finalizers.push(finalizer.into());
        Patch::merge(Precondition::unchanged(meta), json!({ "metadata": { "finalizers": finalizers } }))
    }

    /// Removes a finalizer from the object of this uid, which is being deleted.
    pub fn remove_finalizer_of(uid: &str, finalizer: &str) -> Patch {
        Patch::remove_finalizers_of(uid, &[finalizer])
    }

    /// Removes finalizers from the object of this uid, which is being deleted.
    pub fn remove_finalizers_of(uid: &str, finalizers: &[&str]) -> Patch {
        let only_if = Precondition { uid: Some(uid.into()), resource_version: None };
        Patch::strategic(only_if, json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": finalizers } }))
    }

    /// Removes a finalizer from the object seen. Nobody can put a finalizer on an object that is being deleted, so there
    /// it is enough that it is the same object: controllers that let go at the same time do not get in each other's way.
    /// Elsewhere the object must be unchanged.
    pub fn remove_finalizer(meta: &Meta, finalizer: &str) -> Patch {
        if meta.is_deleting() {
            return Patch::remove_finalizer_of(&meta.uid, finalizer);
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
        let body = Patch::remove_finalizer(&meta, "a").to_json();
        assert_eq!(body["metadata"]["finalizers"], json!(["b"]));
        assert_eq!(body["metadata"]["resourceVersion"], json!("7"));
        meta.deletion_timestamp = Some(Time::from_unix_millis(1));
        let release = Patch::remove_finalizer(&meta, "a");
        assert!(matches!(release.body, PatchBody::Strategic(_)));
        assert_eq!(release.to_json()["metadata"]["uid"], json!("u"));
        assert!(release.to_json()["metadata"].get("resourceVersion").is_none());
        assert_eq!(patched(release).uid(), Some("u"));
        let tested = Patch::json(Precondition::unchanged(&meta), alloc::vec![JsonOp::Remove { path: "/a".into() }]);
        let ops = tested.to_json();
        assert_eq!(ops[0], json!({ "op": "test", "path": "/metadata/uid", "value": "u" }));
        assert_eq!(ops[1], json!({ "op": "test", "path": "/metadata/resourceVersion", "value": "7" }));
        assert_eq!(ops[2], json!({ "op": "remove", "path": "/a" }));
        assert_eq!(patched(tested).uid(), Some("u"));
        let delete = Write::Delete { target: target.clone(), only_if: Precondition::same(&meta), grace_seconds: None };
        assert_eq!(delete.uid(), Some("u"));
    }
}
