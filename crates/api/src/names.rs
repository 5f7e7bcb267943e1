//! Every key and name rule of the volume API, in one place. Rules never spell one out.

use alloc::format;
use alloc::string::String;

use sha2::{Digest, Sha256};

mod migration;
pub use migration::*;
mod provisioning;
pub use provisioning::*;
mod resizing;
pub use resizing::*;

/// What a driver's name must be, for people (S0-12).
pub const DRIVER_NAME_RULE: &str =
    "be 1 to 63 letters, digits, dashes and dots, with a letter or digit at both ends of each part between dots";

/// A name that a driver can have: it becomes part of objects' names, labels and paths (S0-12).
pub fn is_driver_name(name: &str) -> bool {
    let part = |part: &str| {
        let bytes = part.as_bytes();
        let end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
            && end(bytes.first())
            && end(bytes.last())
    };
    name.len() <= 63 && name.split('.').all(part)
}

/// The orchestrator's name for the CSI plugin, the first part of unique volume names.
pub const CSI_PLUGIN: &str = "kubernetes.io/csi";
/// Claim: binding is complete (presence counts, not the value).
pub const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// Claim and volume: the binding was made by the controller, not by a user.
pub const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
/// Volume: the provisioner that made it.
pub const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// Volume: the part of the orchestrator that made it.
pub const CREATED_BY: &str = "kubernetes.io/createdby";
/// Claim: the provisioner that should make its volume.
pub const STORAGE_PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
/// The same under its older name; both are written.
pub const STORAGE_PROVISIONER_BETA: &str = "volume.beta.kubernetes.io/storage-provisioner";
/// Claim: the node the scheduler chose (delayed binding).
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// Claim and volume: class by annotation; wins over the field.
pub const STORAGE_CLASS_BETA: &str = "volume.beta.kubernetes.io/storage-class";
/// Class: it is the default one.
pub const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
/// The same under its older name.
pub const DEFAULT_CLASS_BETA: &str = "storageclass.beta.kubernetes.io/is-default-class";
/// A class with this provisioner never provisions.
pub const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";
/// A group that every process of a pod with the volume is in.
pub const SUPPLEMENTAL_GID: &str = "pv.beta.kubernetes.io/gid";
/// Node: driver name to node id, as a JSON object.
pub const NODE_ID: &str = "csi.volume.kubernetes.io/nodeid";
/// Node: its attachments are managed by the controller.
pub const CONTROLLER_MANAGED_ATTACH: &str = "volumes.kubernetes.io/controller-managed-attach-detach";
/// Claim finalizer: stays while a pod uses the claim.
pub const PVC_PROTECTION: &str = "kubernetes.io/pvc-protection";
/// Volume finalizer: stays while the volume is bound.
pub const PV_PROTECTION: &str = "kubernetes.io/pv-protection";
/// VolumeAttributesClass finalizer: stays while a claim or a volume has the class.
pub const VAC_PROTECTION: &str = "kubernetes.io/vac-protection";
/// Volume finalizer: stays until the in-tree plugin deleted the volume.
pub const PV_CONTROLLER: &str = "kubernetes.io/pv-controller";
/// Claim condition: no pod uses the claim.
pub const UNUSED: &str = "Unused";
/// Volume finalizer: stays until the driver deleted the volume.
pub const PROVISIONER_FINALIZER: &str = "external-provisioner.volume.kubernetes.io/finalizer";
/// Claim finalizer: our durable intent to provision. It is written before CreateVolume and goes when the volume is
/// accounted for by a PersistentVolume, or is certainly not there.
pub const PROVISIONING_INTENT: &str = "longshore.dev/provisioning";
/// Claim: what the class said when the intent was recorded, as JSON, so that a volume whose class has gone can be undone.
pub const PROVISIONING_TERMS: &str = "longshore.dev/provisioning-terms";
/// Claim: written by a provisioner that finds an intent it did not record in this incarnation, so that a write still on
/// its way from an earlier incarnation meets a newer resource version and fails.
pub const PROVISIONING_ADOPTED: &str = "longshore.dev/provisioning-adopted-at";
/// Annotation on what a volume is being made from: the version at which its finalizer was made sure of. Ours.
pub const SOURCE_HELD: &str = "longshore.dev/held-at";
/// Volume: the secret DeleteVolume needs; present and empty when it needs none.
pub const DELETION_SECRET_NAME: &str = "volume.kubernetes.io/provisioner-deletion-secret-name";
/// The namespace of that secret.
pub const DELETION_SECRET_NAMESPACE: &str = "volume.kubernetes.io/provisioner-deletion-secret-namespace";
/// VolumeAttachment: written by the attach/detach controller when it takes over an attachment it did not make in
/// this incarnation, so that a delete still on its way from an earlier incarnation meets a newer resource version and
/// fails.
pub const ATTACHMENT_ADOPTED: &str = "longshore.dev/adopted-at";
/// VolumeAttachment: the driver's id of the node, recorded before the first publish so that every unpublish names the
/// same node, even when the node and its CSINode are gone.
pub const ATTACHMENT_NODE_ID: &str = "csi.alpha.kubernetes.io/node-id";
/// VolumeAttachment: written by the attacher when two attachments of a volume that may be on one node only carry its
/// finalizer, and this one gives way.
pub const ATTACHMENT_GIVES_WAY: &str = "longshore.dev/gives-way";
/// Node: written by the attach/detach controller before it deletes an attachment of a volume that is not reported, so
/// that a report still on its way from an earlier incarnation meets a newer resource version and fails.
pub const DETACH_FENCE: &str = "longshore.dev/detach-fence";
/// The taint by which somebody says that a node is shut down and will not come back by itself.
pub const OUT_OF_SERVICE_TAINT: &str = "node.kubernetes.io/out-of-service";
/// The taint of a node that is not heard of any more.
pub const UNREACHABLE_TAINT: &str = "node.kubernetes.io/unreachable";
/// The taint of a node that says that it is not ready.
pub const NOT_READY_TAINT: &str = "node.kubernetes.io/not-ready";
/// The namespace of the Leases by which nodes show that they live; each is named like its node.
pub const NODE_LEASES: &str = "kube-node-lease";
/// StorageClass: after how long without a sign of life a node loses the volumes of the class, such as `5m`.
pub const FORCE_DETACH_AFTER: &str = "longshore.dev/force-detach-after";
/// Node: counts the incarnations of its agent; every node-status write of the agent tests it, so that a write still on
/// its way from an earlier incarnation fails.
pub const AGENT_INCARNATION: &str = "longshore.dev/agent-life";
/// CSINode: how many times the node's agent has listed a driver there. It makes every such write a change, so that a
/// write decided before it fails.
pub const DRIVER_LISTINGS: &str = "longshore.dev/driver-listings";
/// Node label holding the host's name.
pub const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";

/// Class parameters with this prefix speak to the provisioner, not to the driver.
pub const RESERVED_PARAMETER_PREFIX: &str = "csi.storage.k8s.io/";
/// Class parameter: filesystem type.
pub const FSTYPE_PARAMETER: &str = "csi.storage.k8s.io/fstype";

/// `kubernetes.io/csi/<driver>^<handle>`, the name under which nodes report a volume.
pub fn unique_volume_name(driver: &str, handle: &str) -> String {
    format!("{CSI_PLUGIN}/{driver}^{handle}")
}

/// `csi-<sha256(handle + driver + node)>`.
pub fn attachment_name(handle: &str, driver: &str, node: &str) -> String {
    format!("csi-{}", sha256_hex(&[handle, driver, node]))
}

/// The driver and the handle in a name under which nodes report a volume; `None` if it is no CSI volume's. A driver's
/// name holds no `^`, a handle may.
pub fn split_unique_volume_name(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(CSI_PLUGIN)?.strip_prefix('/')?.split_once('^')
}

/// What a driver is told as the id of a volume in a pod's own spec: `csi-<sha256(pod uid + volume name)>`.
pub fn inline_volume_handle(pod_uid: &str, volume: &str) -> String {
    format!("csi-{}", sha256_hex(&[pod_uid, volume]))
}

/// The name of the volume provisioned for a claim, for the object and for CreateVolume alike.
pub fn volume_name_for_claim(claim_uid: &str) -> String {
    ["pvc-", claim_uid].concat()
}

/// The directory name under which a volume is staged.
pub fn staging_hash(handle: &str) -> String {
    sha256_hex(&[handle])
}

/// What the finalizers of attachers begin with.
pub const ATTACHER_FINALIZERS: &str = "external-attacher/";

/// The attacher's finalizer for a driver: `external-attacher/` and the name with everything but letters, digits and
/// dashes turned into dashes; a trailing dash gets an `X` behind it, because a finalizer must end in a letter or digit.
pub fn attacher_finalizer(driver: &str) -> String {
    let mut name: String =
        driver.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' }).collect();
    if name.ends_with('-') {
        name.push('X');
    }
    format!("{ATTACHER_FINALIZERS}{name}")
}

fn sha256_hex(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Vectors of the orchestrator checklist 0.1 and the sidecar checklist 8.
    #[test]
    fn names_are_those_of_kubernetes() {
        assert_eq!(
            attachment_name("vol-001", "hostpath.csi.k8s.io", "node-1"),
            "csi-778f0b63292f0f9e1fbc78394e0a2423afce37eb3986094436545bc84d49ebd5"
        );
        assert_eq!(
            attachment_name("vol-1", "hostpath.csi.k8s.io", "node-a"),
            "csi-5a70c5de395ccad5e79daeb27c7c4f2634b675e6e1bb2a397999a016143bc9fb"
        );
        assert_eq!(staging_hash("vol-001"), "3e3056fe9f7966ee6fd9db9024187b7c9ad1c73fb6323780abfcfc6a53dac830");
        assert_eq!(
            inline_volume_handle("11111111-2222-3333-4444-555555555555", "scratch"),
            "csi-a46bec53679aafe7e6bc42077f33be9e5c533643ed1224b3bfbf2dd627bbf53c"
        );
        assert_eq!(unique_volume_name("d", "a/b"), "kubernetes.io/csi/d^a/b");
        assert_eq!(split_unique_volume_name("kubernetes.io/csi/d^a^b/c"), Some(("d", "a^b/c")));
        assert_eq!(split_unique_volume_name("kubernetes.io/aws-ebs/vol-1"), None);
        assert_eq!(attacher_finalizer("hostpath.csi.k8s.io"), "external-attacher/hostpath-csi-k8s-io");
        assert_eq!(attacher_finalizer("foo."), "external-attacher/foo-X");
    }
}
