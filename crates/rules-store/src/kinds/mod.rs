//! What the store does to objects of one kind and not of another, a file for each kind.
//!
//! A new kind needs a line in `api::for_each_kind!`, a file here, and its two lines below.

mod attributes_class;
mod claim;
mod config_map;
mod csi_driver;
mod csi_node;
mod event;
mod lease;
mod namespace;
mod node;
mod pod;
mod reference_grant;
mod role;
mod role_binding;
mod root_certificate;
mod secret;
mod service_account;
mod snapshot;
mod snapshot_class;
mod snapshot_content;
mod storage_capacity;
mod storage_class;
mod volume;
mod volume_attachment;

pub use event::expired_events;
pub use root_certificate::{root_certificates, root_certificates_after};
pub use service_account::{missing_accounts, missing_accounts_after};

use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, Time};
use serde_json::{Map, Value};
use wire::Message;

use crate::fields::FieldTable;
use crate::table::{AGE, Column, NAME};
use crate::validate::{Report, is_subdomain};
use crate::{Failure, Store};

/// The rules of one kind. What a kind leaves at [`KindRules::PLAIN`] needs no rule.
pub(crate) struct KindRules {
    pub schema: &'static Message,
    /// What becomes of each of them.
    pub fields: &'static FieldTable,
    pub names: Names,
    /// Adds what a new object gets and later writes do not.
    pub admit: fn(&Store, &mut Value),
    /// Refuses a new object for what other objects say; answers warnings for the sender.
    pub admit_create: fn(&Store, &Value) -> Result<Vec<String>, Failure>,
    /// Refuses an update that depends on other objects.
    pub admit_update: fn(&Store, old: &Value, new: &Value) -> Result<(), Failure>,
    /// Fills in fields that were left out, on every write.
    pub defaults: fn(&mut Value),
    /// Writes down when what the server watches came to be; `old` is the object before an update.
    pub stamp: fn(now: &Time, old: Option<&Value>, new: &mut Value),
    /// Checks what the object says.
    pub validate: fn(&mut Report, &Value),
    /// Checks what changed about it.
    pub validate_update: fn(&mut Report, old: &Value, new: &Value),
    /// Fields that lists and watches can select by, besides name and namespace.
    pub selectable: &'static [&'static str],
    /// The columns of `kubectl get`.
    pub columns: &'static [Column],
    /// A new object keeps the status it comes with.
    pub created_with_status: bool,
    /// A write to `/status` may change annotations too.
    pub status_with_annotations: bool,
}

/// Which names objects may have.
pub(crate) struct Names {
    pub allowed: fn(&str) -> bool,
    /// What a name must be, for people.
    pub rule: &'static str,
}

impl Names {
    const SUBDOMAIN: Names =
        Names { allowed: is_subdomain, rule: "be at most 253 lower case letters, digits, dashes or dots" };
    /// Whatever can be a part of a path: roles have colons, events the name of what they are about.
    const PATH_SEGMENT: Names = Names {
        allowed: crate::validate::is_path_segment,
        rule: "not be a dot, and hold neither a slash nor a percent sign",
    };
}

impl KindRules {
    const fn plain(fields: &'static FieldTable) -> KindRules {
        KindRules {
            schema: fields.of,
            fields,
            names: Names::SUBDOMAIN,
            admit: |_, _| {},
            admit_create: |_, _| Ok(Vec::new()),
            admit_update: |_, _, _| Ok(()),
            defaults: |_| {},
            stamp: |_, _, _| {},
            validate: |_, _| {},
            validate_update: |_, _, _| {},
            selectable: &[],
            columns: &[NAME, AGE],
            created_with_status: false,
            status_with_annotations: false,
        }
    }
}

/// The rules of a kind.
pub(crate) const fn rules(kind: Kind) -> &'static KindRules {
    match kind {
        Kind::PersistentVolumeClaim => &claim::RULES,
        Kind::PersistentVolume => &volume::RULES,
        Kind::StorageClass => &storage_class::RULES,
        Kind::VolumeAttachment => &volume_attachment::RULES,
        Kind::CSIDriver => &csi_driver::RULES,
        Kind::CSINode => &csi_node::RULES,
        Kind::Node => &node::RULES,
        Kind::Pod => &pod::RULES,
        Kind::VolumeAttributesClass => &attributes_class::RULES,
        Kind::CSIStorageCapacity => &storage_capacity::RULES,
        Kind::VolumeSnapshot => &snapshot::RULES,
        Kind::VolumeSnapshotContent => &snapshot_content::RULES,
        Kind::ReferenceGrant => &reference_grant::RULES,
        Kind::Lease => &lease::RULES,
        Kind::Secret => &secret::RULES,
        Kind::Namespace => &namespace::RULES,
        Kind::Event => &event::RULES,
        Kind::ConfigMap => &config_map::RULES,
        Kind::ServiceAccount => &service_account::RULES,
        Kind::VolumeSnapshotClass => &snapshot_class::RULES,
        Kind::ClusterRole => &role::CLUSTER_ROLE_RULES,
        Kind::ClusterRoleBinding => &role_binding::CLUSTER_ROLE_BINDING_RULES,
        Kind::Role => &role::ROLE_RULES,
        Kind::RoleBinding => &role_binding::ROLE_BINDING_RULES,
    }
}

/// Sets a field that was left out.
fn default(map: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    map.entry(key).or_insert_with(|| value.into());
}
