//! What every object must satisfy, and what may not change about it.

mod cluster;
mod meta;
mod pod;
mod rights;
mod storage;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::Quantity;
use serde_json::Value;

use crate::resource::Id;
use crate::{Failure, FieldError, FieldProblem, Resource};

/// Collects what is wrong, so that the sender hears it all at once.
#[derive(Default)]
pub(crate) struct Report {
    errors: Vec<FieldError>,
}

impl Report {
    fn add(&mut self, field: impl Into<String>, problem: FieldProblem, message: impl Into<String>) {
        self.errors.push(FieldError::new(field, problem, message));
    }

    fn invalid(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.add(field, FieldProblem::Invalid, message);
    }

    fn required(&mut self, field: impl Into<String>, message: impl Into<String>) {
        self.add(field, FieldProblem::Required, message);
    }

    /// A text that must be there.
    fn need(&mut self, value: &Value, field: &str) {
        if at(value, field).as_str().unwrap_or_default().is_empty() {
            self.required(field, "it must be set");
        }
    }

    /// A text that must be one of these, if it is there.
    fn one_of(&mut self, value: &Value, field: &str, words: &[&str]) {
        if let Some(word) = at(value, field).as_str()
            && !words.contains(&word)
        {
            self.add(field, FieldProblem::NotSupported, format!("{word:?} is not one of {}", words.join(", ")));
        }
    }

    /// A field that stays as it was made.
    fn immutable(&mut self, old: &Value, new: &Value, field: &str) {
        if at(old, field) != at(new, field) {
            self.add(field, FieldProblem::Invalid, "field is immutable: it cannot change after creation");
        }
    }

    /// An amount that must be there and greater than zero.
    fn amount(&mut self, value: &Value, field: &str) {
        let Some(text) = at(value, field).as_str() else {
            return self.required(field, "it must be set, for example to 1Gi");
        };
        match Quantity(text.into()).bytes() {
            Ok(bytes) if bytes > 0 => {}
            Ok(_) => self.invalid(field, "it must be greater than zero"),
            Err(error) => self.invalid(field, format!("{error}")),
        }
    }

    fn finish(self, resource: &'static Resource, object: &Value) -> Result<(), Failure> {
        if self.errors.is_empty() {
            return Ok(());
        }
        let name = crate::meta::text(object, "name");
        let name = if name.is_empty() { crate::meta::text(object, "generateName") } else { name };
        Err(Failure::Invalid { resource, name: name.into(), causes: self.errors })
    }
}

/// The value at a dotted path; null if there is none.
fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(value, |value, key| &value[key])
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A new object.
pub(crate) fn create(resource: &'static Resource, object: &Value) -> Result<(), Failure> {
    let mut report = Report::default();
    meta::name(&mut report, resource, object);
    meta::common(&mut report, object);
    kind(&mut report, resource, object);
    report.finish(resource, object)
}

/// A new state of an object.
pub(crate) fn update(resource: &'static Resource, old: &Value, new: &Value) -> Result<(), Failure> {
    let mut report = Report::default();
    meta::common(&mut report, new);
    meta::unchanged(&mut report, old, new);
    // What an older version let in may stay; only what changes is judged.
    if substance(old).ne(substance(new)) {
        kind(&mut report, resource, new);
    }
    kind_unchanged(&mut report, resource, old, new);
    report.finish(resource, new)
}

/// What the object says of itself, without its metadata and status.
fn substance(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten().filter(|(key, _)| *key != "metadata" && *key != "status")
}

fn kind(report: &mut Report, resource: &'static Resource, object: &Value) {
    match resource.id {
        Id::PersistentVolumeClaim => storage::claim(report, object),
        Id::PersistentVolume => storage::volume(report, object),
        Id::StorageClass => storage::class(report, object),
        Id::VolumeAttachment => storage::attachment(report, object),
        Id::CSINode => storage::csi_node(report, object),
        Id::CSIDriver => storage::csi_driver(report, object),
        Id::CSIStorageCapacity => report.need(object, "storageClassName"),
        Id::VolumeAttributesClass => report.need(object, "driverName"),
        Id::VolumeSnapshotContent => {
            report.need(object, "spec.driver");
            report.one_of(object, "spec.deletionPolicy", &["Delete", "Retain"]);
        }
        Id::VolumeSnapshotClass => {
            report.need(object, "driver");
            report.need(object, "deletionPolicy");
            report.one_of(object, "deletionPolicy", &["Delete", "Retain"]);
        }
        Id::ClusterRole | Id::Role => rights::role(report, resource, object),
        Id::ClusterRoleBinding | Id::RoleBinding => rights::binding(report, resource, object),
        Id::Pod => pod::pod(report, object),
        Id::Secret => cluster::secret(report, object),
        Id::Lease => cluster::lease(report, object),
        Id::Event => cluster::event(report, object),
        // The others have no rules of their own here.
        Id::Namespace | Id::Node | Id::ConfigMap | Id::ServiceAccount | Id::VolumeSnapshot | Id::ReferenceGrant => {}
    }
}

fn kind_unchanged(report: &mut Report, resource: &'static Resource, old: &Value, new: &Value) {
    match resource.id {
        Id::PersistentVolumeClaim => storage::claim_unchanged(report, old, new),
        Id::PersistentVolume => storage::volume_unchanged(report, old, new),
        Id::StorageClass => {
            for field in ["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"] {
                report.immutable(old, new, field);
            }
        }
        Id::VolumeAttachment => report.immutable(old, new, "spec"),
        Id::CSINode => storage::csi_node_unchanged(report, old, new),
        Id::CSIDriver => {
            report.immutable(old, new, "spec.attachRequired");
            report.immutable(old, new, "spec.volumeLifecycleModes");
        }
        Id::CSIStorageCapacity => {
            report.immutable(old, new, "nodeTopology");
            report.immutable(old, new, "storageClassName");
        }
        Id::VolumeAttributesClass => {
            report.immutable(old, new, "driverName");
            report.immutable(old, new, "parameters");
        }
        Id::Pod => pod::pod_unchanged(report, old, new),
        Id::Secret => cluster::secret_unchanged(report, old, new),
        Id::ConfigMap => cluster::sealed(report, old, new, &["data", "binaryData"]),
        // The others may change in any field.
        Id::VolumeSnapshot => report.immutable(old, new, "spec.source"),
        Id::VolumeSnapshotContent => {
            report.immutable(old, new, "spec.driver");
            report.immutable(old, new, "spec.source");
        }
        Id::VolumeSnapshotClass => {
            for field in ["driver", "deletionPolicy", "parameters"] {
                report.immutable(old, new, field);
            }
        }
        // Whoever may change a binding's subjects must not turn it into another role's.
        Id::ClusterRoleBinding | Id::RoleBinding => report.immutable(old, new, "roleRef"),
        Id::Namespace
        | Id::Node
        | Id::ServiceAccount
        | Id::Event
        | Id::Lease
        | Id::ReferenceGrant
        | Id::ClusterRole
        | Id::Role => {}
    }
}
