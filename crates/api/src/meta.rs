use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::{Kind, Time, Value, names};

/// The part of `metadata` the rules read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "fields are the Kubernetes fields of the same name")]
pub struct Meta {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    #[serde(skip_serializing_if = "ResourceVersion::is_empty")]
    pub resource_version: ResourceVersion,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_grace_period_seconds: Option<i64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
}

impl Meta {
    /// Metadata of an object about to be created in the cluster scope.
    pub fn named(name: impl Into<String>) -> Self {
        Meta { name: name.into(), ..Meta::default() }
    }

    /// Metadata of an object about to be created in a namespace.
    pub fn in_namespace(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Meta { namespace: namespace.into(), name: name.into(), ..Meta::default() }
    }

    /// Where the object lives.
    pub fn key(&self) -> ObjectKey {
        ObjectKey { namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// The object of this uid manages it.
    pub fn is_controlled_by(&self, uid: &str) -> bool {
        self.owner_references.iter().any(|owner| owner.controller == Some(true) && owner.uid == uid)
    }

    /// Somebody asked for the object's deletion; it stays until its finalizers are gone.
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// The object carries this finalizer.
    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|f| f == finalizer)
    }

    /// An annotation's value.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str)
    }

    /// The CSI driver that has taken the object over, by today's key or the one of the first design (S4-42).
    pub fn migrated_to(&self) -> Option<&str> {
        self.annotation(names::MIGRATED_TO).or(self.annotation(names::MIGRATED_TO_BETA)).filter(|name| !name.is_empty())
    }

    /// The resource version as a number, which Kubernetes guarantees to be comparable within one resource.
    /// Anything else reads as 0, older than every real version.
    pub fn version(&self) -> u64 {
        self.resource_version.number().unwrap_or(0)
    }
}

/// The version of an object. It travels as it was received; only [`ResourceVersion::number`] looks inside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResourceVersion(pub String);

impl ResourceVersion {
    /// There is none yet: the object was never written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The version as a number, which orders versions of one resource; `None` if it is none.
    pub fn number(&self) -> Option<u64> {
        self.0.parse().ok()
    }
}

impl From<&str> for ResourceVersion {
    fn from(text: &str) -> Self {
        ResourceVersion(text.into())
    }
}

impl From<ResourceVersion> for Value {
    fn from(version: ResourceVersion) -> Self {
        version.0.into()
    }
}

impl fmt::Display for ResourceVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who owns an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs, reason = "fields are the Kubernetes fields of the same name")]
pub struct OwnerReference {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
}

/// Namespace and name; the namespace is empty for cluster-scoped objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// The namespace, or empty.
    pub namespace: String,
    /// The name within it.
    pub name: String,
}

impl ObjectKey {
    /// A cluster-scoped object's key.
    pub fn cluster(name: impl Into<String>) -> Self {
        ObjectKey { namespace: String::new(), name: name.into() }
    }

    /// A namespaced object's key.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        ObjectKey { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// One object: its kind and where it lives.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// What it is.
    pub kind: Kind,
    /// Where it lives.
    pub key: ObjectKey,
}

impl ObjectRef {
    /// A reference to a cluster-scoped object.
    pub fn cluster(kind: Kind, name: impl Into<String>) -> Self {
        ObjectRef { kind, key: ObjectKey::cluster(name) }
    }

    /// A reference to a namespaced object.
    pub fn namespaced(kind: Kind, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        ObjectRef { kind, key: ObjectKey::new(namespace, name) }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.key)
    }
}
