use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::core_v1::part;
use crate::names;
use crate::{BindingMode, Meta, ReclaimPolicy, SharedPart, Time, TopologySelectorTerm, VolumeSpec};

part! {
    /// How volumes of a class are made.
    StorageClass {
        metadata: SharedPart<Meta>,
        provisioner: String,
        parameters: BTreeMap<String, String>,
        reclaim_policy: Option<ReclaimPolicy>,
        mount_options: Vec<String>,
        allow_volume_expansion: Option<bool>,
        volume_binding_mode: Option<BindingMode>,
        allowed_topologies: Vec<TopologySelectorTerm>,
    }
}

part! {
    /// One volume wanted on one node.
    VolumeAttachment { metadata: Meta, spec: AttachmentSpec, status: AttachmentStatus }
}

part! {
    /// Which volume, which node, by whom.
    AttachmentSpec { attacher: String, node_name: String, source: AttachmentSource }
}

part! {
    /// The volume: a PersistentVolume's name, or the volume itself where there is no such object.
    AttachmentSource { persistent_volume_name: Option<String>, inline_volume_spec: Option<Box<VolumeSpec>> }
}

part! {
    /// What the attacher says. An attachment without a status has none to write; in one that is written, `attached` is.
    AttachmentStatus required { attached: bool } {
        attachment_metadata: BTreeMap<String, String>,
        attach_error: Option<VolumeError>,
        detach_error: Option<VolumeError>,
    }
}

part! {
    /// The last thing that went wrong.
    VolumeError { message: String, time: Option<Time>, error_code: Option<i32> }
}

part! {
    /// What the cluster should know about a driver.
    CSIDriver { metadata: Meta, spec: DriverSpec }
}

part! {
    /// The driver's wishes. Unset means the API's default.
    DriverSpec {
        attach_required: Option<bool>,
        pod_info_on_mount: Option<bool>,
        volume_lifecycle_modes: Vec<String>,
        storage_capacity: Option<bool>,
        fs_group_policy: Option<String>,
        requires_republish: Option<bool>,
        token_requests: Vec<DriverTokenRequest>,
        service_account_token_in_secrets: Option<bool>,
        node_allocatable_update_period_seconds: Option<i64>,
        prevent_pod_scheduling_if_missing: Option<bool>,
    }
}

part! {
    /// A token of the pod's service account that the driver wants to be given.
    DriverTokenRequest required { audience: String } { expiration_seconds: Option<i64> }
}

part! {
    /// The drivers registered on a node.
    CSINode { metadata: Meta, spec: CsiNodeSpec }
}

part! {
    /// The list of drivers.
    CsiNodeSpec { drivers: Vec<CsiNodeDriver> }
}

part! {
    /// One registered driver.
    CsiNodeDriver required {
        name: String,
        #[serde(rename = "nodeID")]
        node_id: String,
        topology_keys: Option<Vec<String>>,
    } {
        allocatable: Option<VolumeLimit>,
    }
}

part! {
    /// How many volumes of a driver a node takes.
    VolumeLimit { count: Option<i32> }
}

impl StorageClass {
    /// Claims that name no class get this one.
    pub fn is_default(&self) -> bool {
        [names::DEFAULT_CLASS, names::DEFAULT_CLASS_BETA]
            .iter()
            .any(|key| self.metadata.annotation(key) == Some("true"))
    }

    /// PV-17: the class of claims that name none, the newest of those marked as default. Of equally new ones the first by
    /// name.
    pub fn default_of<T: AsRef<StorageClass>>(classes: impl IntoIterator<Item = T>) -> Option<T> {
        let defaults = classes.into_iter().filter(|class| class.as_ref().is_default());
        defaults.max_by(|one, other| {
            let (one, other) = (&one.as_ref().metadata, &other.as_ref().metadata);
            one.creation_timestamp.cmp(&other.creation_timestamp).then_with(|| other.name.cmp(&one.name))
        })
    }

    /// `Delete` unless the class says otherwise.
    pub fn reclaim_policy(&self) -> &ReclaimPolicy {
        self.reclaim_policy.as_ref().unwrap_or(&ReclaimPolicy::Delete)
    }

    /// Binding waits for the first pod that uses the claim.
    pub fn waits_for_consumer(&self) -> bool {
        self.volume_binding_mode == Some(BindingMode::WaitForFirstConsumer)
    }
}

impl VolumeAttachment {
    /// The volume's name, if the attachment is of a PersistentVolume.
    pub fn volume(&self) -> Option<&str> {
        self.spec.source.persistent_volume_name.as_deref()
    }
}

impl CSIDriver {
    /// Volumes need an attachment unless the driver says otherwise.
    pub fn attach_required(&self) -> bool {
        self.spec.attach_required.unwrap_or(true)
    }
}
