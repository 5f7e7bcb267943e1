//! Keys and words of in-tree volumes that a CSI driver has taken over.

/// Claim and volume: the CSI driver that has taken over its in-tree plugin.
pub const MIGRATED_TO: &str = "pv.kubernetes.io/migrated-to";
/// The same under the key of the first design; read and taken away, never written.
pub const MIGRATED_TO_BETA: &str = "volume.beta.kubernetes.io/migrated-to";
/// CSINode: the in-tree plugins whose volumes the node leaves to CSI drivers, separated by commas.
pub const MIGRATED_PLUGINS: &str = "storage.alpha.kubernetes.io/migrated-plugins";

/// Node and volume label: the zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";
/// Node and volume label: the region.
pub const REGION: &str = "topology.kubernetes.io/region";
/// The zone under its older name.
pub const ZONE_BETA: &str = "failure-domain.beta.kubernetes.io/zone";
/// The region under its older name.
pub const REGION_BETA: &str = "failure-domain.beta.kubernetes.io/region";

/// Volume: the resource group its Azure file share is in.
pub const AZURE_FILE_RESOURCE_GROUP: &str = "kubernetes.io/azure-file-resource-group";
/// Volume and class: the secret Portworx asks for.
pub const PORTWORX_SECRET_NAME: &str = "openstorage.io/auth-secret-name";
/// The namespace of that secret.
pub const PORTWORX_SECRET_NAMESPACE: &str = "openstorage.io/auth-secret-namespace";
/// Volume: what the CSI driver calls a Ceph image.
pub const RBD_VOLUME_HANDLE: &str = "rbd.csi.ceph.com/volume-handle";
