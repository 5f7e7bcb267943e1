//! The kinds of objects, one line each. Everything that must know them all comes from this table.

use core::fmt;

/// Hands the table of kinds to a macro.
///
/// A line says: the kind, its group and version, its name in paths, its name for people, its scope, whether it has a
/// `/status` subresource, its short names and categories (as `kubectl api-resources` shows them), and whether Kubernetes
/// publishes a protobuf form of it. Kinds that a cluster learns from a CustomResourceDefinition travel as JSON alone.
///
/// There are three groups of lines. Of the first two the rules read a narrow type of the same name:
/// - `cached`: followed by a watch and kept in a cache;
/// - `fetched`: read when it is needed and never kept;
/// - `served`: no rule reads it; the API server serves it.
#[macro_export]
macro_rules! for_each_kind {
    ($callback:ident) => { $callback! {
        cached {
            PersistentVolumeClaim CORE_V1 "persistentvolumeclaims" "persistentvolumeclaim" Namespaced Status ["pvc"] []
                Protobuf;
            PersistentVolume CORE_V1 "persistentvolumes" "persistentvolume" Cluster Status ["pv"] [] Protobuf;
            StorageClass STORAGE_V1 "storageclasses" "storageclass" Cluster NoStatus ["sc"] [] Protobuf;
            VolumeAttachment STORAGE_V1 "volumeattachments" "volumeattachment" Cluster Status [] [] Protobuf;
            CSIDriver STORAGE_V1 "csidrivers" "csidriver" Cluster NoStatus [] [] Protobuf;
            CSINode STORAGE_V1 "csinodes" "csinode" Cluster NoStatus [] [] Protobuf;
            Node CORE_V1 "nodes" "node" Cluster Status ["no"] [] Protobuf;
            Pod CORE_V1 "pods" "pod" Namespaced Status ["po"] ["all"] Protobuf;
            VolumeAttributesClass STORAGE_V1 "volumeattributesclasses" "volumeattributesclass" Cluster NoStatus
                ["vac"] [] Protobuf;
            CSIStorageCapacity STORAGE_V1 "csistoragecapacities" "csistoragecapacity" Namespaced NoStatus [] [] Protobuf;
            VolumeSnapshot SNAPSHOT_V1 "volumesnapshots" "volumesnapshot" Namespaced Status ["vs"] [] JsonOnly;
            VolumeSnapshotContent SNAPSHOT_V1 "volumesnapshotcontents" "volumesnapshotcontent" Cluster Status ["vsc"] []
                JsonOnly;
            ReferenceGrant GATEWAY_V1BETA1 "referencegrants" "referencegrant" Namespaced NoStatus ["refgrant"] [] JsonOnly;
            Lease COORDINATION_V1 "leases" "lease" Namespaced NoStatus [] [] Protobuf;
        }
        fetched {
            Secret CORE_V1 "secrets" "secret" Namespaced NoStatus [] [] Protobuf;
            ConfigMap CORE_V1 "configmaps" "configmap" Namespaced NoStatus ["cm"] [] Protobuf;
            Event CORE_V1 "events" "event" Namespaced NoStatus ["ev"] [] Protobuf;
        }
        served {
            Namespace CORE_V1 "namespaces" "namespace" Cluster Status ["ns"] [] Protobuf;
            ServiceAccount CORE_V1 "serviceaccounts" "serviceaccount" Namespaced NoStatus ["sa"] [] Protobuf;
            VolumeSnapshotClass SNAPSHOT_V1 "volumesnapshotclasses" "volumesnapshotclass" Cluster NoStatus
                ["vsclass", "vsclasses"] [] JsonOnly;
            ClusterRole RBAC_V1 "clusterroles" "clusterrole" Cluster NoStatus [] [] Protobuf;
            ClusterRoleBinding RBAC_V1 "clusterrolebindings" "clusterrolebinding" Cluster NoStatus [] [] Protobuf;
            Role RBAC_V1 "roles" "role" Namespaced NoStatus [] [] Protobuf;
            RoleBinding RBAC_V1 "rolebindings" "rolebinding" Namespaced NoStatus [] [] Protobuf;
        }
    } };
}

/// An API group and the one version of it that is used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the words of the Kubernetes API")]
pub struct GroupVersion {
    /// Empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    /// Both, as they stand in `apiVersion:`.
    pub api_version: &'static str,
}

macro_rules! group_version {
    ("", $version:literal) => {
        GroupVersion { group: "", version: $version, api_version: $version }
    };
    ($group:literal, $version:literal) => {
        GroupVersion { group: $group, version: $version, api_version: concat!($group, "/", $version) }
    };
}

const CORE_V1: GroupVersion = group_version!("", "v1");
const STORAGE_V1: GroupVersion = group_version!("storage.k8s.io", "v1");
const COORDINATION_V1: GroupVersion = group_version!("coordination.k8s.io", "v1");
const SNAPSHOT_V1: GroupVersion = group_version!("snapshot.storage.k8s.io", "v1");
const GATEWAY_V1BETA1: GroupVersion = group_version!("gateway.networking.k8s.io", "v1beta1");
const RBAC_V1: GroupVersion = group_version!("rbac.authorization.k8s.io", "v1");

/// A line of the table.
struct Row {
    name: &'static str,
    list: &'static str,
    of: GroupVersion,
    plural: &'static str,
    singular: &'static str,
    scope: Scope,
    status: Status,
    short_names: &'static [&'static str],
    categories: &'static [&'static str],
    forms: Forms,
}

enum Scope {
    Namespaced,
    Cluster,
}

enum Status {
    Status,
    NoStatus,
}

enum Forms {
    Protobuf,
    JsonOnly,
}

macro_rules! declare_kind {
    ($($group:ident { $(
        $kind:ident $of:ident $plural:literal $singular:literal $scope:ident $status:ident $short:tt $categories:tt $forms:ident;
    )* })*) => {
        /// Every kind of object that is served or read, in the order of the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "each variant is the Kubernetes kind of the same name")]
        pub enum Kind { $($($kind),*),* }

        impl Kind {
            /// All kinds, in the order they are declared.
            pub const ALL: [Kind; ROWS.len()] = [$($(Kind::$kind),*),*];
        }

        static ROWS: [Row; [$($(Kind::$kind),*),*].len()] = [$($(Row {
            name: stringify!($kind), list: concat!(stringify!($kind), "List"), of: $of, plural: $plural,
            singular: $singular, scope: Scope::$scope, status: Status::$status, short_names: &$short,
            categories: &$categories, forms: Forms::$forms,
        }),*),*];
    };
}
for_each_kind!(declare_kind);

impl Kind {
    const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// The kind's name as it stands in `kind:`.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The kind of a list of these objects.
    pub const fn list_kind(self) -> &'static str {
        self.row().list
    }

    /// Its group and version.
    pub const fn group_version(self) -> GroupVersion {
        self.row().of
    }

    /// The API group; empty for the core group.
    pub const fn group(self) -> &'static str {
        self.row().of.group
    }

    /// The version within the group.
    pub const fn version(self) -> &'static str {
        self.row().of.version
    }

    /// The value of `apiVersion:`.
    pub const fn api_version(self) -> &'static str {
        self.row().of.api_version
    }

    /// The resource name used in paths.
    pub const fn plural(self) -> &'static str {
        self.row().plural
    }

    /// The resource name for people.
    pub const fn singular(self) -> &'static str {
        self.row().singular
    }

    /// Whether objects of this kind live in a namespace.
    pub const fn namespaced(self) -> bool {
        matches!(self.row().scope, Scope::Namespaced)
    }

    /// There is a `/status` subresource.
    pub const fn has_status(self) -> bool {
        matches!(self.row().status, Status::Status)
    }

    /// What `kubectl get` also understands.
    pub const fn short_names(self) -> &'static [&'static str] {
        self.row().short_names
    }

    /// Groups of resources this one belongs to, such as `all`.
    pub const fn categories(self) -> &'static [&'static str] {
        self.row().categories
    }

    /// Kubernetes publishes a protobuf form of the kind.
    pub const fn has_protobuf(self) -> bool {
        matches!(self.row().forms, Forms::Protobuf)
    }

    /// The resource as messages name it: `persistentvolumeclaims` or `storageclasses.storage.k8s.io`.
    pub fn qualified(self) -> Qualified {
        Qualified(self)
    }

    /// The kind served at `/apis/{group}/{version}/{plural}`; the core group is empty.
    pub fn at_path(group: &str, version: &str, plural: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.plural() == plural && kind.group() == group && kind.version() == version)
    }

    /// The kind of an object that says this `apiVersion` and `kind`.
    pub fn named(api_version: &str, name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name && kind.api_version() == api_version)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Prints a resource with its group.
#[derive(Clone, Copy, Debug)]
pub struct Qualified(Kind);

impl fmt::Display for Qualified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.plural())?;
        match self.0.group() {
            "" => Ok(()),
            group => write!(f, ".{group}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_kind_is_found_by_its_path_and_by_its_name() {
        for (index, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
            assert_eq!(Kind::at_path(kind.group(), kind.version(), kind.plural()), Some(kind));
            assert_eq!(Kind::named(kind.api_version(), kind.name()), Some(kind));
        }
        assert_eq!(Kind::at_path("", "v2", "pods"), None);
        assert_eq!(Kind::named("apps/v1", "Pod"), None);
    }

    #[test]
    fn messages_name_a_resource_with_its_group() {
        assert_eq!(Kind::Pod.qualified().to_string(), "pods");
        assert_eq!(Kind::StorageClass.qualified().to_string(), "storageclasses.storage.k8s.io");
        assert_eq!(Kind::StorageClass.list_kind(), "StorageClassList");
    }
}
