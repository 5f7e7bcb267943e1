//! The ways rules look objects up.

use alloc::string::String;
use alloc::sync::Arc;

use api::{
    CSIDriver, CSINode, CSIStorageCapacity, Kind, Lease, Narrow, Node, Object, ObjectKey, PersistentVolume,
    PersistentVolumeClaim, Pod, ReferenceGrant, StorageClass, VolumeAttachment, VolumeAttributesClass, VolumePhase,
    VolumeSnapshot, VolumeSnapshotContent, names,
};

use crate::Cache;

/// The `driver^handle` of a volume of an in-tree plugin, as its CSI driver knows it; `None` if it has none.
pub type HandleOf = fn(&PersistentVolume) -> Option<String>;

/// A way to look objects up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Index {
    /// Pods by `namespace/claim`.
    PodByClaim,
    /// Pods by node.
    PodByNode,
    /// Pods that hold disks of in-tree plugins themselves, by node: of a large cluster's pods very few.
    DiskPodByNode,
    /// Claims by class.
    ClaimByClass,
    /// Claims that name no volume, by class: of a large cluster's claims the few that wait.
    UnboundClaimByClass,
    /// Claims by what their volume is made from: `kind/namespace/name`.
    ClaimBySource,
    /// Claims by the volume they name.
    ClaimByVolume,
    /// Volumes by the `namespace/claim` they are for.
    VolumeByClaim,
    /// Volumes by class.
    VolumeByClass,
    /// Volumes that refer to no claim, by class: of a large cluster's volumes the few that are free.
    FreeVolumeByClass,
    /// Volumes that are not bound or are being deleted, by class.
    LooseVolumeByClass,
    /// Volumes by `driver^handle`, those of in-tree plugins by their translated one.
    VolumeByHandle,
    /// Attachments by volume.
    AttachmentByVolume,
    /// Attachments by node.
    AttachmentByNode,
    /// Attachments that hold the volume itself, by node: those of such pods' disks.
    DiskAttachmentByNode,
    /// Nodes by the volumes that their status names, as attached or in use.
    NodeByVolume,
}

impl Index {
    /// The kind of the objects it lists.
    pub fn kind(self) -> Kind {
        match self {
            Index::PodByClaim | Index::PodByNode | Index::DiskPodByNode => Kind::Pod,
            Index::ClaimByClass | Index::UnboundClaimByClass | Index::ClaimBySource | Index::ClaimByVolume => {
                Kind::PersistentVolumeClaim
            }
            Index::VolumeByClaim
            | Index::VolumeByClass
            | Index::FreeVolumeByClass
            | Index::LooseVolumeByClass
            | Index::VolumeByHandle => Kind::PersistentVolume,
            Index::AttachmentByVolume | Index::AttachmentByNode | Index::DiskAttachmentByNode => Kind::VolumeAttachment,
            Index::NodeByVolume => Kind::Node,
        }
    }

    /// It lists this object under this term.
    pub(crate) fn lists(self, object: &Object, term: &str, handle_of: Option<HandleOf>) -> bool {
        let mut listed = false;
        each_term(object, handle_of, |by, found| listed |= by == self && found.is(term));
        listed
    }
}

fn narrow<T: Narrow>(object: &Object) -> Option<Arc<T>> {
    T::of(object).cloned()
}

impl Cache {
    /// One object of a kind.
    pub fn one<T: Narrow>(&self, key: &ObjectKey) -> Option<Arc<T>> {
        narrow(&self.get(T::KIND, key)?)
    }

    /// Every object of a kind, by key.
    pub fn every<T: Narrow>(&self) -> impl Iterator<Item = Arc<T>> {
        self.all(T::KIND).filter_map(|object| narrow(&object))
    }
}

macro_rules! getters {
    ($($one:ident, $all:ident, $kind:ident;)*) => {
        impl Cache { $(
            #[doc = concat!("One ", stringify!($kind), ".")]
            pub fn $one(&self, key: &ObjectKey) -> Option<Arc<$kind>> {
                self.one(key)
            }

            #[doc = concat!("Every ", stringify!($kind), ", by key.")]
            pub fn $all(&self) -> impl Iterator<Item = Arc<$kind>> {
                self.every()
            }
        )* }
    };
}
getters! {
    claim, claims, PersistentVolumeClaim;
    volume, volumes, PersistentVolume;
    class, classes, StorageClass;
    attachment, attachments, VolumeAttachment;
    driver, drivers, CSIDriver;
    csi_node, csi_nodes, CSINode;
    node, nodes, Node;
    pod, pods, Pod;
    attributes_class, attributes_classes, VolumeAttributesClass;
    capacity, capacities, CSIStorageCapacity;
    snapshot, snapshots, VolumeSnapshot;
    snapshot_content, snapshot_contents, VolumeSnapshotContent;
    grant, grants, ReferenceGrant;
    lease, leases, Lease;
}

macro_rules! lookups {
    ($($name:ident, $index:ident, $kind:ident;)*) => {
        impl Cache { $(
            #[doc = concat!("`Index::", stringify!($index), "`.")]
            pub fn $name(&self, term: &str) -> impl Iterator<Item = Arc<$kind>> + use<> {
                self.by(Index::$index, term).filter_map(|object| narrow(&object))
            }
        )* }
    };
}
lookups! {
    pods_by_claim, PodByClaim, Pod;
    pods_by_node, PodByNode, Pod;
    claims_by_class, ClaimByClass, PersistentVolumeClaim;
    unbound_claims_by_class, UnboundClaimByClass, PersistentVolumeClaim;
    claims_by_source, ClaimBySource, PersistentVolumeClaim;
    claims_by_volume, ClaimByVolume, PersistentVolumeClaim;
    volumes_by_claim, VolumeByClaim, PersistentVolume;
    volumes_by_class, VolumeByClass, PersistentVolume;
    free_volumes_by_class, FreeVolumeByClass, PersistentVolume;
    loose_volumes_by_class, LooseVolumeByClass, PersistentVolume;
    volumes_by_handle, VolumeByHandle, PersistentVolume;
    attachments_by_volume, AttachmentByVolume, VolumeAttachment;
    attachments_by_node, AttachmentByNode, VolumeAttachment;
    nodes_by_volume, NodeByVolume, Node;
}

impl Cache {
    /// Every claim that names no volume, of whatever class.
    pub fn unbound_claims(&self) -> impl Iterator<Item = Arc<PersistentVolumeClaim>> + use<> {
        self.under(Index::UnboundClaimByClass).into_iter().filter_map(|object| narrow(&object))
    }

    /// Every pod on a node that holds disks of in-tree plugins itself.
    pub fn disk_pods(&self) -> impl Iterator<Item = Arc<Pod>> + use<> {
        self.under(Index::DiskPodByNode).into_iter().filter_map(|object| narrow(&object))
    }

    /// Every attachment that holds the volume itself.
    pub fn disk_attachments(&self) -> impl Iterator<Item = Arc<VolumeAttachment>> + use<> {
        self.under(Index::DiskAttachmentByNode).into_iter().filter_map(|object| narrow(&object))
    }
}

/// What an object is found under: some texts, one after the other.
pub(crate) struct Term<'a>(&'a [&'a str]);

impl Term<'_> {
    pub(crate) fn hash(&self) -> u32 {
        names::fnv1a_32_of(self.0)
    }

    fn is(&self, text: &str) -> bool {
        let mut rest = Some(text);
        for part in self.0 {
            rest = rest.and_then(|rest| rest.strip_prefix(part));
        }
        rest == Some("")
    }
}

/// Every way an object is found, told one by one: most changes change none of them, so that nothing is made for them.
pub(crate) fn each_term(object: &Object, handle_of: Option<HandleOf>, mut tell: impl FnMut(Index, &Term<'_>)) {
    match object {
        Object::Pod(pod) => {
            for claim in pod.claim_names() {
                tell(Index::PodByClaim, &Term(&[&pod.metadata.namespace, "/", &claim]));
            }
            if !pod.spec.node_name.is_empty() {
                tell(Index::PodByNode, &Term(&[&pod.spec.node_name]));
                if pod.spec.volumes.iter().any(|volume| volume.in_tree.is_some()) {
                    tell(Index::DiskPodByNode, &Term(&[&pod.spec.node_name]));
                }
            }
        }
        Object::PersistentVolumeClaim(claim) => {
            tell(Index::ClaimByClass, &Term(&[claim.class().unwrap_or("")]));
            if claim.spec.volume_name.is_empty() {
                tell(Index::UnboundClaimByClass, &Term(&[claim.class().unwrap_or("")]));
            } else {
                tell(Index::ClaimByVolume, &Term(&[&claim.spec.volume_name]));
            }
            if let Some((source, namespace)) = claim.source() {
                tell(Index::ClaimBySource, &Term(&[&source.kind, "/", namespace, "/", &source.name]));
            }
        }
        Object::PersistentVolume(volume) => {
            tell(Index::VolumeByClass, &Term(&[volume.class()]));
            match &volume.spec.claim_ref {
                Some(claim) => tell(Index::VolumeByClaim, &Term(&[&claim.namespace, "/", &claim.name])),
                None => tell(Index::FreeVolumeByClass, &Term(&[volume.class()])),
            }
            if volume.status.phase != VolumePhase::Bound || volume.metadata.is_deleting() {
                tell(Index::LooseVolumeByClass, &Term(&[volume.class()]));
            }
            if let Some(csi) = &volume.spec.csi {
                tell(Index::VolumeByHandle, &Term(&[&csi.driver, "^", &csi.volume_handle]));
            } else if let Some(handle) = volume.spec.in_tree.as_ref().and(handle_of).and_then(|handle| handle(volume)) {
                tell(Index::VolumeByHandle, &Term(&[&handle]));
            }
        }
        Object::VolumeAttachment(attachment) => {
            tell(Index::AttachmentByNode, &Term(&[&attachment.spec.node_name]));
            if let Some(volume) = attachment.volume() {
                tell(Index::AttachmentByVolume, &Term(&[volume]));
            } else {
                tell(Index::DiskAttachmentByNode, &Term(&[&attachment.spec.node_name]));
            }
        }
        Object::Node(node) => {
            let attached = node.status.volumes_attached.iter().flatten().map(|volume| volume.name.as_str());
            let in_use = node.status.volumes_in_use.iter().flatten().map(String::as_str);
            attached.chain(in_use).for_each(|volume| tell(Index::NodeByVolume, &Term(&[volume])));
        }
        // All others are found by their key alone.
        _ => {}
    }
}
