use alloc::string::String;

use serde_json::json;

use crate::{Meta, Narrow, ObjectRef, Patch, Precondition, ResourceVersion, Subresource, Value, Write};

/// An object as somebody saw it. Its writes apply only while it is still that object, unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names say it all")]
pub struct Seen {
    pub object: ObjectRef,
    pub uid: String,
    pub version: ResourceVersion,
}

impl Seen {
    /// The object with this metadata.
    pub fn of<T: Narrow>(meta: &Meta) -> Seen {
        Seen {
            object: ObjectRef { kind: T::KIND, key: meta.key() },
            uid: meta.uid.clone(),
            version: meta.resource_version.clone(),
        }
    }

    /// The object's name, without its namespace.
    pub fn name(&self) -> &str {
        &self.object.key.name
    }

    /// It is the very object, however it may have changed.
    pub fn same(&self) -> Precondition {
        Precondition { uid: Some(self.uid.clone()), resource_version: None }
    }

    /// It is the very object, and nobody has changed it.
    pub fn unchanged(&self) -> Precondition {
        Precondition { uid: Some(self.uid.clone()), resource_version: Some(self.version.clone()) }
    }

    /// A merge patch of the object.
    pub fn patch(&self, body: Value) -> Write {
        self.write(None, Patch::merge(self.unchanged(), body))
    }

    /// A merge patch of its status.
    pub fn patch_status(&self, body: Value) -> Write {
        self.write(Some(Subresource::Status), Patch::merge(self.unchanged(), body))
    }

    /// A strategic merge patch of the object: finalizers merge one by one. Not for kinds of a CustomResourceDefinition.
    pub fn merge(&self, body: Value) -> Write {
        self.write(None, Patch::strategic(self.unchanged(), body))
    }

    /// A strategic merge patch of its status: conditions merge by type. Not for kinds of a CustomResourceDefinition.
    pub fn merge_status(&self, body: Value) -> Write {
        self.write(Some(Subresource::Status), Patch::strategic(self.unchanged(), body))
    }

    /// The write that deletes it as it was seen.
    pub fn delete(&self) -> Write {
        Write::Delete { target: self.object.clone(), only_if: self.unchanged(), grace_seconds: None }
    }

    /// Adds a finalizer to those it has. Not for kinds of a CustomResourceDefinition.
    pub fn add_finalizer(&self, finalizer: &str) -> Write {
        self.merge(json!({ "metadata": { "finalizers": [finalizer] } }))
    }

    /// Takes a finalizer away and leaves the others. Not for kinds of a CustomResourceDefinition.
    pub fn remove_finalizer(&self, finalizer: &str) -> Write {
        self.merge(json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": [finalizer] } }))
    }

    fn write(&self, subresource: Option<Subresource>, patch: Patch) -> Write {
        Write::Patch { target: self.object.clone(), subresource, patch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PersistentVolume;

    #[test]
    fn every_write_carries_uid_and_version() {
        let meta = Meta { uid: "u".into(), resource_version: "7".into(), ..Meta::named("v") };
        let seen = Seen::of::<PersistentVolume>(&meta);
        for write in [
            seen.patch(json!({})),
            seen.patch_status(json!({})),
            seen.merge(json!({})),
            seen.merge_status(json!({})),
            seen.delete(),
            seen.add_finalizer("f"),
            seen.remove_finalizer("f"),
        ] {
            assert_eq!(write.uid(), Some("u"), "{write:?}");
            if let Write::Patch { patch, .. } = &write {
                assert_eq!(patch.to_json()["metadata"]["resourceVersion"], "7");
            }
        }
    }
}
