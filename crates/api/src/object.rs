use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::{
    CSIDriver, CSINode, CSIStorageCapacity, Kind, Lease, Meta, Node, ObjectRef, PersistentVolume,
    PersistentVolumeClaim, Pod, ReferenceGrant, Secret, StorageClass, Value, VolumeAttachment, VolumeAttributesClass,
    VolumeSnapshot, VolumeSnapshotContent,
};

/// Any object the rules read, shared and immutable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each variant is the Kubernetes kind of the same name")]
pub enum Object {
    PersistentVolumeClaim(Arc<PersistentVolumeClaim>),
    PersistentVolume(Arc<PersistentVolume>),
    StorageClass(Arc<StorageClass>),
    VolumeAttachment(Arc<VolumeAttachment>),
    CSIDriver(Arc<CSIDriver>),
    CSINode(Arc<CSINode>),
    Node(Arc<Node>),
    Pod(Arc<Pod>),
    Secret(Arc<Secret>),
    VolumeAttributesClass(Arc<VolumeAttributesClass>),
    CSIStorageCapacity(Arc<CSIStorageCapacity>),
    VolumeSnapshot(Arc<VolumeSnapshot>),
    VolumeSnapshotContent(Arc<VolumeSnapshotContent>),
    ReferenceGrant(Arc<ReferenceGrant>),
    Lease(Arc<Lease>),
}

/// The rules keep no objects of this kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKind(pub Kind);

impl fmt::Display for UnknownKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "objects of kind {} are not kept in a cache", self.0)
    }
}

macro_rules! each {
    ($self:expr, $object:ident => $body:expr) => {
        match $self {
            Object::PersistentVolumeClaim($object) => $body,
            Object::PersistentVolume($object) => $body,
            Object::StorageClass($object) => $body,
            Object::VolumeAttachment($object) => $body,
            Object::CSIDriver($object) => $body,
            Object::CSINode($object) => $body,
            Object::Node($object) => $body,
            Object::Pod($object) => $body,
            Object::Secret($object) => $body,
            Object::VolumeAttributesClass($object) => $body,
            Object::CSIStorageCapacity($object) => $body,
            Object::VolumeSnapshot($object) => $body,
            Object::VolumeSnapshotContent($object) => $body,
            Object::ReferenceGrant($object) => $body,
            Object::Lease($object) => $body,
        }
    };
}

impl Object {
    /// Kinds that may be kept in a cache: those with a variant here, save secrets, which are read when they are needed.
    pub const KINDS: [Kind; 14] = [
        Kind::PersistentVolumeClaim,
        Kind::PersistentVolume,
        Kind::StorageClass,
        Kind::VolumeAttachment,
        Kind::CSIDriver,
        Kind::CSINode,
        Kind::Node,
        Kind::Pod,
        Kind::VolumeAttributesClass,
        Kind::CSIStorageCapacity,
        Kind::VolumeSnapshot,
        Kind::VolumeSnapshotContent,
        Kind::ReferenceGrant,
        Kind::Lease,
    ];

    /// What it is.
    pub fn kind(&self) -> Kind {
        match self {
            Object::PersistentVolumeClaim(_) => Kind::PersistentVolumeClaim,
            Object::PersistentVolume(_) => Kind::PersistentVolume,
            Object::StorageClass(_) => Kind::StorageClass,
            Object::VolumeAttachment(_) => Kind::VolumeAttachment,
            Object::CSIDriver(_) => Kind::CSIDriver,
            Object::CSINode(_) => Kind::CSINode,
            Object::Node(_) => Kind::Node,
            Object::Pod(_) => Kind::Pod,
            Object::Secret(_) => Kind::Secret,
            Object::VolumeAttributesClass(_) => Kind::VolumeAttributesClass,
            Object::CSIStorageCapacity(_) => Kind::CSIStorageCapacity,
            Object::VolumeSnapshot(_) => Kind::VolumeSnapshot,
            Object::VolumeSnapshotContent(_) => Kind::VolumeSnapshotContent,
            Object::ReferenceGrant(_) => Kind::ReferenceGrant,
            Object::Lease(_) => Kind::Lease,
        }
    }

    /// Its metadata.
    pub fn meta(&self) -> &Meta {
        each!(self, object => &object.metadata)
    }

    /// A reference to it.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef { kind: self.kind(), key: self.meta().key() }
    }

    /// Reads an object of a known kind from its JSON. The error is the parser's sentence.
    pub fn from_json(kind: Kind, json: Value) -> Result<Object, String> {
        fn read<T: serde::de::DeserializeOwned>(json: Value) -> Result<Arc<T>, String> {
            serde_json::from_value(json).map(Arc::new).map_err(|error| error.to_string())
        }
        Ok(match kind {
            Kind::PersistentVolumeClaim => Object::PersistentVolumeClaim(read(json)?),
            Kind::PersistentVolume => Object::PersistentVolume(read(json)?),
            Kind::StorageClass => Object::StorageClass(read(json)?),
            Kind::VolumeAttachment => Object::VolumeAttachment(read(json)?),
            Kind::CSIDriver => Object::CSIDriver(read(json)?),
            Kind::CSINode => Object::CSINode(read(json)?),
            Kind::Node => Object::Node(read(json)?),
            Kind::Pod => Object::Pod(read(json)?),
            Kind::Secret => Object::Secret(read(json)?),
            Kind::VolumeAttributesClass => Object::VolumeAttributesClass(read(json)?),
            Kind::CSIStorageCapacity => Object::CSIStorageCapacity(read(json)?),
            Kind::VolumeSnapshot => Object::VolumeSnapshot(read(json)?),
            Kind::VolumeSnapshotContent => Object::VolumeSnapshotContent(read(json)?),
            Kind::ReferenceGrant => Object::ReferenceGrant(read(json)?),
            Kind::Lease => Object::Lease(read(json)?),
            Kind::Event | Kind::Namespace => return Err(UnknownKind(kind).to_string()),
        })
    }

    /// The same from bytes, without building a tree in between.
    pub fn from_slice(kind: Kind, json: &[u8]) -> Result<Object, String> {
        fn read<T: serde::de::DeserializeOwned>(json: &[u8]) -> Result<Arc<T>, String> {
            serde_json::from_slice(json).map(Arc::new).map_err(|error| error.to_string())
        }
        Ok(match kind {
            Kind::PersistentVolumeClaim => Object::PersistentVolumeClaim(read(json)?),
            Kind::PersistentVolume => Object::PersistentVolume(read(json)?),
            Kind::StorageClass => Object::StorageClass(read(json)?),
            Kind::VolumeAttachment => Object::VolumeAttachment(read(json)?),
            Kind::CSIDriver => Object::CSIDriver(read(json)?),
            Kind::CSINode => Object::CSINode(read(json)?),
            Kind::Node => Object::Node(read(json)?),
            Kind::Pod => Object::Pod(read(json)?),
            Kind::Secret => Object::Secret(read(json)?),
            Kind::VolumeAttributesClass => Object::VolumeAttributesClass(read(json)?),
            Kind::CSIStorageCapacity => Object::CSIStorageCapacity(read(json)?),
            Kind::VolumeSnapshot => Object::VolumeSnapshot(read(json)?),
            Kind::VolumeSnapshotContent => Object::VolumeSnapshotContent(read(json)?),
            Kind::ReferenceGrant => Object::ReferenceGrant(read(json)?),
            Kind::Lease => Object::Lease(read(json)?),
            Kind::Event | Kind::Namespace => return Err(UnknownKind(kind).to_string()),
        })
    }

    /// The object as bytes that [`Object::from_slice`] reads; kind and version are left out.
    pub fn to_bytes(&self) -> Vec<u8> {
        each!(self, object => serde_json::to_vec(&**object)).unwrap_or_default()
    }

    /// The object as it is written: with `apiVersion` and `kind`.
    pub fn to_json(&self) -> Value {
        let mut json = each!(self, object => serde_json::to_value(&**object)).unwrap_or(Value::Null);
        if let Value::Object(map) = &mut json {
            map.insert("apiVersion".into(), self.kind().api_version().into());
            map.insert("kind".into(), self.kind().name().into());
        }
        json
    }
}

macro_rules! from_narrow {
    ($($name:ident),*) => { $(
        impl From<$name> for Object {
            fn from(object: $name) -> Object {
                Object::$name(Arc::new(object))
            }
        }
    )* };
}
from_narrow!(
    PersistentVolumeClaim,
    PersistentVolume,
    StorageClass,
    VolumeAttachment,
    CSIDriver,
    CSINode,
    Node,
    Pod,
    Secret,
    VolumeAttributesClass,
    CSIStorageCapacity,
    VolumeSnapshot,
    VolumeSnapshotContent,
    ReferenceGrant,
    Lease
);
