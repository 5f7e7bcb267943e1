use core::fmt;

/// Every kind of object the rules read or write, with the facts needed to address it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "each variant is the Kubernetes kind of the same name")]
pub enum Kind {
    PersistentVolumeClaim,
    PersistentVolume,
    StorageClass,
    VolumeAttachment,
    CSIDriver,
    CSINode,
    Node,
    Pod,
    Event,
    Lease,
    Namespace,
    Secret,
    VolumeAttributesClass,
    CSIStorageCapacity,
    VolumeSnapshot,
    VolumeSnapshotContent,
    ReferenceGrant,
}

impl Kind {
    /// All kinds, in the order they are declared.
    pub const ALL: [Kind; 17] = [
        Kind::PersistentVolumeClaim,
        Kind::PersistentVolume,
        Kind::StorageClass,
        Kind::VolumeAttachment,
        Kind::CSIDriver,
        Kind::CSINode,
        Kind::Node,
        Kind::Pod,
        Kind::Event,
        Kind::Lease,
        Kind::Namespace,
        Kind::Secret,
        Kind::VolumeAttributesClass,
        Kind::CSIStorageCapacity,
        Kind::VolumeSnapshot,
        Kind::VolumeSnapshotContent,
        Kind::ReferenceGrant,
    ];

    /// The kind's name as it stands in `kind:`.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::PersistentVolumeClaim => "PersistentVolumeClaim",
            Kind::PersistentVolume => "PersistentVolume",
            Kind::StorageClass => "StorageClass",
            Kind::VolumeAttachment => "VolumeAttachment",
            Kind::CSIDriver => "CSIDriver",
            Kind::CSINode => "CSINode",
            Kind::Node => "Node",
            Kind::Pod => "Pod",
            Kind::Event => "Event",
            Kind::Lease => "Lease",
            Kind::Namespace => "Namespace",
            Kind::Secret => "Secret",
            Kind::VolumeAttributesClass => "VolumeAttributesClass",
            Kind::CSIStorageCapacity => "CSIStorageCapacity",
            Kind::VolumeSnapshot => "VolumeSnapshot",
            Kind::VolumeSnapshotContent => "VolumeSnapshotContent",
            Kind::ReferenceGrant => "ReferenceGrant",
        }
    }

    /// The API group; empty for the core group.
    pub const fn group(self) -> &'static str {
        match self {
            Kind::StorageClass
            | Kind::VolumeAttachment
            | Kind::CSIDriver
            | Kind::CSINode
            | Kind::VolumeAttributesClass
            | Kind::CSIStorageCapacity => "storage.k8s.io",
            Kind::VolumeSnapshot | Kind::VolumeSnapshotContent => "snapshot.storage.k8s.io",
            Kind::ReferenceGrant => "gateway.networking.k8s.io",
            Kind::Lease => "coordination.k8s.io",
            Kind::PersistentVolumeClaim
            | Kind::PersistentVolume
            | Kind::Node
            | Kind::Pod
            | Kind::Event
            | Kind::Secret
            | Kind::Namespace => "",
        }
    }

    /// The value of `apiVersion:`.
    pub const fn api_version(self) -> &'static str {
        match self {
            Kind::StorageClass
            | Kind::VolumeAttachment
            | Kind::CSIDriver
            | Kind::CSINode
            | Kind::VolumeAttributesClass
            | Kind::CSIStorageCapacity => "storage.k8s.io/v1",
            Kind::VolumeSnapshot | Kind::VolumeSnapshotContent => "snapshot.storage.k8s.io/v1",
            Kind::ReferenceGrant => "gateway.networking.k8s.io/v1beta1",
            Kind::Lease => "coordination.k8s.io/v1",
            Kind::PersistentVolumeClaim
            | Kind::PersistentVolume
            | Kind::Node
            | Kind::Pod
            | Kind::Event
            | Kind::Secret
            | Kind::Namespace => "v1",
        }
    }

    /// The resource name used in paths.
    pub const fn plural(self) -> &'static str {
        match self {
            Kind::PersistentVolumeClaim => "persistentvolumeclaims",
            Kind::PersistentVolume => "persistentvolumes",
            Kind::StorageClass => "storageclasses",
            Kind::VolumeAttachment => "volumeattachments",
            Kind::CSIDriver => "csidrivers",
            Kind::CSINode => "csinodes",
            Kind::Node => "nodes",
            Kind::Pod => "pods",
            Kind::Event => "events",
            Kind::Lease => "leases",
            Kind::Namespace => "namespaces",
            Kind::Secret => "secrets",
            Kind::VolumeAttributesClass => "volumeattributesclasses",
            Kind::CSIStorageCapacity => "csistoragecapacities",
            Kind::VolumeSnapshot => "volumesnapshots",
            Kind::VolumeSnapshotContent => "volumesnapshotcontents",
            Kind::ReferenceGrant => "referencegrants",
        }
    }

    /// Whether objects of this kind live in a namespace.
    pub const fn namespaced(self) -> bool {
        matches!(
            self,
            Kind::PersistentVolumeClaim
                | Kind::Pod
                | Kind::Event
                | Kind::Lease
                | Kind::Secret
                | Kind::CSIStorageCapacity
                | Kind::VolumeSnapshot
                | Kind::ReferenceGrant
        )
    }
}

impl Kind {
    /// Objects of this kind exist only where somebody installed a definition of it. Where nobody did there are none.
    pub const fn is_optional(self) -> bool {
        matches!(self, Kind::VolumeSnapshot | Kind::VolumeSnapshotContent | Kind::ReferenceGrant)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
