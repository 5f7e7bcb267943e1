use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

use api::Kind;

/// The served resources by the kind of their objects, in the order of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "each variant is the Kubernetes kind of the same name")]
pub enum Id {
    Namespace,
    Node,
    Pod,
    PersistentVolumeClaim,
    PersistentVolume,
    Secret,
    ConfigMap,
    ServiceAccount,
    Event,
    StorageClass,
    CSIDriver,
    CSINode,
    VolumeAttachment,
    CSIStorageCapacity,
    VolumeAttributesClass,
    Lease,
    VolumeSnapshot,
    VolumeSnapshotContent,
    ReferenceGrant,
    VolumeSnapshotClass,
    ClusterRole,
    ClusterRoleBinding,
    Role,
    RoleBinding,
}

/// Static facts about a served resource. Two resources are the same if their table positions are.
pub struct Resource {
    /// Position in [`resources`]; orders resources and finds their shelf in the store.
    pub index: usize,
    /// The same as a value to match on.
    pub id: Id,
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version within the group.
    pub version: &'static str,
    /// Name in paths.
    pub plural: &'static str,
    /// Name for people.
    pub singular: &'static str,
    /// Name in `kind:`.
    pub kind: &'static str,
    /// Objects live in a namespace.
    pub namespaced: bool,
    /// What `kubectl get` also understands.
    pub short_names: &'static [&'static str],
    /// There is a `/status` subresource.
    pub status: bool,
    /// Groups of resources this one belongs to, such as `all`.
    pub categories: &'static [&'static str],
}

impl Resource {
    /// The value of `apiVersion:`.
    pub const fn api_version(&self) -> &'static str {
        match self.id {
            Id::Namespace
            | Id::Node
            | Id::Pod
            | Id::PersistentVolumeClaim
            | Id::PersistentVolume
            | Id::Secret
            | Id::ConfigMap
            | Id::ServiceAccount
            | Id::Event => "v1",
            Id::StorageClass
            | Id::CSIDriver
            | Id::CSINode
            | Id::VolumeAttachment
            | Id::CSIStorageCapacity
            | Id::VolumeAttributesClass => "storage.k8s.io/v1",
            Id::Lease => "coordination.k8s.io/v1",
            Id::VolumeSnapshot | Id::VolumeSnapshotContent | Id::VolumeSnapshotClass => "snapshot.storage.k8s.io/v1",
            Id::ReferenceGrant => "gateway.networking.k8s.io/v1beta1",
            Id::ClusterRole | Id::ClusterRoleBinding | Id::Role | Id::RoleBinding => "rbac.authorization.k8s.io/v1",
        }
    }

    /// The kind of a list of these objects.
    pub fn list_kind(&self) -> alloc::string::String {
        alloc::format!("{}List", self.kind)
    }

    /// The `group` and `resource` as they stand in messages: `persistentvolumeclaims` or
    /// `storageclasses.storage.k8s.io`.
    pub fn qualified(&self) -> alloc::string::String {
        if self.group.is_empty() { self.plural.into() } else { alloc::format!("{}.{}", self.plural, self.group) }
    }
}

impl PartialEq for Resource {
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index
    }
}
impl Eq for Resource {}
impl PartialOrd for Resource {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Resource {
    fn cmp(&self, other: &Self) -> Ordering {
        self.index.cmp(&other.index)
    }
}
impl Hash for Resource {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.index.hash(state);
    }
}
impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.qualified())
    }
}

const NAMESPACED: bool = true;
const CLUSTER: bool = false;
const STATUS: bool = true;
const NO_STATUS: bool = false;
const CORE: &str = "";
const STORAGE: &str = "storage.k8s.io";
const COORDINATION: &str = "coordination.k8s.io";
const SNAPSHOT: &str = "snapshot.storage.k8s.io";
const GATEWAY: &str = "gateway.networking.k8s.io";
pub(crate) const RBAC: &str = "rbac.authorization.k8s.io";

/// The one version of each group that is served.
const fn version_in(group: &str) -> &'static str {
    // Texts cannot be compared in a constant, but the bytes they are made of can be told apart.
    match group.as_bytes() {
        b"gateway.networking.k8s.io" => "v1beta1",
        _all_others => "v1",
    }
}

macro_rules! table {
    ($($group:ident $plural:literal $singular:literal $kind:ident $scope:ident $status:ident $short:tt $categories:tt;)*) => {
        [$(Resource {
            index: Id::$kind as usize, id: Id::$kind, group: $group, version: version_in($group), plural: $plural, singular: $singular,
            kind: stringify!($kind),
            namespaced: $scope, short_names: &$short, status: $status, categories: &$categories,
        }),*]
    };
}

#[rustfmt::skip]
static RESOURCES: [Resource; COUNT] = table! {
    CORE "namespaces" "namespace" Namespace CLUSTER STATUS ["ns"] [];
    CORE "nodes" "node" Node CLUSTER STATUS ["no"] [];
    CORE "pods" "pod" Pod NAMESPACED STATUS ["po"] ["all"];
    CORE "persistentvolumeclaims" "persistentvolumeclaim" PersistentVolumeClaim NAMESPACED STATUS ["pvc"] [];
    CORE "persistentvolumes" "persistentvolume" PersistentVolume CLUSTER STATUS ["pv"] [];
    CORE "secrets" "secret" Secret NAMESPACED NO_STATUS [] [];
    CORE "configmaps" "configmap" ConfigMap NAMESPACED NO_STATUS ["cm"] [];
    CORE "serviceaccounts" "serviceaccount" ServiceAccount NAMESPACED NO_STATUS ["sa"] [];
    CORE "events" "event" Event NAMESPACED NO_STATUS ["ev"] [];
    STORAGE "storageclasses" "storageclass" StorageClass CLUSTER NO_STATUS ["sc"] [];
    STORAGE "csidrivers" "csidriver" CSIDriver CLUSTER NO_STATUS [] [];
    STORAGE "csinodes" "csinode" CSINode CLUSTER NO_STATUS [] [];
    STORAGE "volumeattachments" "volumeattachment" VolumeAttachment CLUSTER STATUS [] [];
    STORAGE "csistoragecapacities" "csistoragecapacity" CSIStorageCapacity NAMESPACED NO_STATUS [] [];
    STORAGE "volumeattributesclasses" "volumeattributesclass" VolumeAttributesClass CLUSTER NO_STATUS ["vac"] [];
    COORDINATION "leases" "lease" Lease NAMESPACED NO_STATUS [] [];
    SNAPSHOT "volumesnapshots" "volumesnapshot" VolumeSnapshot NAMESPACED STATUS ["vs"] [];
    SNAPSHOT "volumesnapshotcontents" "volumesnapshotcontent" VolumeSnapshotContent CLUSTER STATUS ["vsc"] [];
    GATEWAY "referencegrants" "referencegrant" ReferenceGrant NAMESPACED NO_STATUS ["refgrant"] [];
    SNAPSHOT "volumesnapshotclasses" "volumesnapshotclass" VolumeSnapshotClass CLUSTER NO_STATUS ["vsclass", "vsclasses"] [];
    RBAC "clusterroles" "clusterrole" ClusterRole CLUSTER NO_STATUS [] [];
    RBAC "clusterrolebindings" "clusterrolebinding" ClusterRoleBinding CLUSTER NO_STATUS [] [];
    RBAC "roles" "role" Role NAMESPACED NO_STATUS [] [];
    RBAC "rolebindings" "rolebinding" RoleBinding NAMESPACED NO_STATUS [] [];
};

pub(crate) const COUNT: usize = 24;
pub(crate) static NAMESPACES: &Resource = &RESOURCES[Id::Namespace as usize];
pub(crate) static PODS: &Resource = &RESOURCES[Id::Pod as usize];
pub(crate) static CLASSES: &Resource = &RESOURCES[Id::StorageClass as usize];
pub(crate) static CLUSTER_ROLES: &Resource = &RESOURCES[Id::ClusterRole as usize];
pub(crate) static CLUSTER_ROLE_BINDINGS: &Resource = &RESOURCES[Id::ClusterRoleBinding as usize];
pub(crate) static ROLES: &Resource = &RESOURCES[Id::Role as usize];
pub(crate) static ROLE_BINDINGS: &Resource = &RESOURCES[Id::RoleBinding as usize];

/// Every resource served.
pub fn resources() -> &'static [Resource] {
    &RESOURCES
}

/// The resource at `/apis/{group}/{version}/{plural}`; the core group is empty.
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
    RESOURCES.iter().find(|r| r.plural == plural && r.group == group && r.version == version)
}

/// The resource that holds objects of a kind the rules know.
pub fn find_kind(kind: Kind) -> &'static Resource {
    let id = match kind {
        Kind::Namespace => Id::Namespace,
        Kind::Node => Id::Node,
        Kind::Pod => Id::Pod,
        Kind::PersistentVolumeClaim => Id::PersistentVolumeClaim,
        Kind::PersistentVolume => Id::PersistentVolume,
        Kind::Event => Id::Event,
        Kind::StorageClass => Id::StorageClass,
        Kind::CSIDriver => Id::CSIDriver,
        Kind::CSINode => Id::CSINode,
        Kind::VolumeAttachment => Id::VolumeAttachment,
        Kind::Lease => Id::Lease,
        Kind::Secret => Id::Secret,
        Kind::VolumeAttributesClass => Id::VolumeAttributesClass,
        Kind::CSIStorageCapacity => Id::CSIStorageCapacity,
        Kind::VolumeSnapshot => Id::VolumeSnapshot,
        Kind::VolumeSnapshotContent => Id::VolumeSnapshotContent,
        Kind::ReferenceGrant => Id::ReferenceGrant,
    };
    &RESOURCES[id as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;

    #[test]
    fn table_positions_and_versions_are_consistent() {
        for (index, resource) in resources().iter().enumerate() {
            assert_eq!(resource.index, index);
            let prefix = if resource.group.is_empty() { String::new() } else { format!("{}/", resource.group) };
            assert_eq!(resource.api_version(), format!("{prefix}{}", resource.version));
            assert_eq!(find(resource.group, resource.version, resource.plural), Some(resource));
        }
    }

    #[test]
    fn kinds_of_the_vocabulary_are_served_where_they_say() {
        for kind in Kind::ALL {
            let resource = find_kind(kind);
            assert_eq!((resource.kind, resource.plural), (kind.name(), kind.plural()));
            assert_eq!((resource.api_version(), resource.namespaced), (kind.api_version(), kind.namespaced()));
        }
    }
}
