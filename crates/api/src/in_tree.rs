//! Volumes as the plugins that lived inside Kubernetes describe them. CSI drivers have taken these plugins over; the
//! objects stay as they are.
//!
//! Few volumes have such a source, so that it costs the others one empty box. A pod's own volume and a PersistentVolume
//! spell their sources alike: where they differ, one of them leaves a field empty.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::core_v1::part;
use crate::{SecretReference, Value};

/// Fields of a source that nobody here knows, kept as they are.
pub type UnknownFields = BTreeMap<String, Value>;

part! {
    /// A disk of Amazon's Elastic Block Store.
    AwsElasticBlockStore {
        #[serde(rename = "volumeID")]
        volume_id: String,
        fs_type: String,
        partition: i32,
        read_only: bool,
        #[serde(flatten)]
        rest: UnknownFields,
    }
}

part! {
    /// A persistent disk of Google's Compute Engine.
    GcePersistentDisk {
        pd_name: String,
        fs_type: String,
        partition: i32,
        read_only: bool,
        #[serde(flatten)]
        rest: UnknownFields,
    }
}

part! {
    /// A data disk of Azure.
    AzureDisk {
        disk_name: String,
        #[serde(rename = "diskURI")]
        disk_uri: String,
        caching_mode: Option<String>,
        fs_type: Option<String>,
        read_only: Option<bool>,
        kind: Option<String>,
        #[serde(flatten)]
        rest: UnknownFields,
    }
}

part! {
    /// A file share of Azure. The secret of a pod's own volume is in the pod's namespace.
    AzureFile {
        secret_name: String,
        secret_namespace: Option<String>,
        share_name: String,
        read_only: bool,
        #[serde(flatten)]
        rest: UnknownFields,
    }
}

part! {
    /// A volume of OpenStack's Cinder.
    Cinder {
        #[serde(rename = "volumeID")]
        volume_id: String,
        fs_type: String,
        read_only: bool,
        secret_ref: Option<SecretReference>,
        #[serde(flatten)]
        rest: UnknownFields,
    }
}

part! {
    /// A disk of vSphere.
    VsphereVolume {
        volume_path: String,
        fs_type: String,
        storage_policy_name: String,
        #[serde(rename = "storagePolicyID")]
        storage_policy_id: String,
        #[serde(flatten)]
        rest: UnknownFields,
    }
}

part! {
    /// A volume of Portworx.
    PortworxVolume {
        #[serde(rename = "volumeID")]
        volume_id: String,
        fs_type: String,
        read_only: bool,
        #[serde(flatten)]
        rest: UnknownFields,
    }
}

part! {
    /// An image in a Ceph cluster.
    Rbd {
        monitors: Vec<String>,
        image: String,
        fs_type: String,
        pool: String,
        user: String,
        keyring: String,
        secret_ref: Option<SecretReference>,
        read_only: bool,
        #[serde(flatten)]
        rest: UnknownFields,
    }
}

/// What one of those plugins says about a volume.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each variant is the Kubernetes source of the same name")]
pub enum InTreeSource {
    AwsElasticBlockStore(AwsElasticBlockStore),
    GcePersistentDisk(GcePersistentDisk),
    AzureDisk(AzureDisk),
    AzureFile(AzureFile),
    Cinder(Cinder),
    VsphereVolume(VsphereVolume),
    PortworxVolume(PortworxVolume),
    Rbd(Rbd),
    /// More than one, which the API refuses.
    Several(Vec<InTreeSource>),
}

impl InTreeSource {
    /// The sources found in an object, of which there should be at most one.
    pub(crate) fn gather<const N: usize>(found: [Option<InTreeSource>; N]) -> Option<Box<InTreeSource>> {
        let mut found: Vec<InTreeSource> = found.into_iter().flatten().collect();
        match found.len() {
            0 | 1 => found.pop().map(Box::new),
            _more => Some(Box::new(InTreeSource::Several(found))),
        }
    }

    fn each(&self) -> &[InTreeSource] {
        match self {
            InTreeSource::Several(sources) => sources,
            one => core::slice::from_ref(one),
        }
    }
}

/// Each source is a field of its own.
impl Serialize for InTreeSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        for source in self.each() {
            match source {
                InTreeSource::AwsElasticBlockStore(source) => {
                    fields.serialize_entry("awsElasticBlockStore", source)?;
                }
                InTreeSource::GcePersistentDisk(source) => fields.serialize_entry("gcePersistentDisk", source)?,
                InTreeSource::AzureDisk(source) => fields.serialize_entry("azureDisk", source)?,
                InTreeSource::AzureFile(source) => fields.serialize_entry("azureFile", source)?,
                InTreeSource::Cinder(source) => fields.serialize_entry("cinder", source)?,
                InTreeSource::VsphereVolume(source) => fields.serialize_entry("vsphereVolume", source)?,
                InTreeSource::PortworxVolume(source) => fields.serialize_entry("portworxVolume", source)?,
                InTreeSource::Rbd(source) => fields.serialize_entry("rbd", source)?,
                InTreeSource::Several(_) => {} // Never within itself.
            }
        }
        fields.end()
    }
}

/// Declares an object part that may have an in-tree source. On the wire each source is a field of its own.
macro_rules! sourced {
    ($(#[$doc:meta])* $name:ident, as $wire:ident $text:literal { $($fields:tt)* }) => {
        crate::in_tree::sourced! {
            [
                aws_elastic_block_store: AwsElasticBlockStore,
                gce_persistent_disk: GcePersistentDisk,
                azure_disk: AzureDisk,
                azure_file: AzureFile,
                cinder: Cinder,
                vsphere_volume: VsphereVolume,
                portworx_volume: PortworxVolume,
                rbd: Rbd,
            ]
            $(#[$doc])* $name, as $wire $text { $($fields)* }
        }
    };
    (
        [$($source:ident: $plugin:ident,)*]
        $(#[$doc:meta])* $name:ident, as $wire:ident $text:literal { $($(#[$attr:meta])* $field:ident : $type:ty),* $(,)? }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(from = $text, rename_all = "camelCase")]
        #[allow(missing_docs, reason = "fields are the Kubernetes fields of the same name")]
        pub struct $name {
            $($(#[$attr])* #[serde(skip_serializing_if = "is_default")] pub $field: $type,)*
            /// The source, if it is one of those that CSI drivers have taken over.
            #[serde(flatten, skip_serializing_if = "Option::is_none")]
            pub in_tree: Option<Box<crate::InTreeSource>>,
        }

        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct $wire {
            $($(#[$attr])* $field: $type,)*
            $($source: Option<crate::$plugin>,)*
        }

        impl From<$wire> for $name {
            fn from(wire: $wire) -> Self {
                let in_tree = crate::InTreeSource::gather([$(wire.$source.map(crate::InTreeSource::$plugin),)*]);
                $name { $($field: wire.$field,)* in_tree }
            }
        }
    };
}
pub(crate) use sourced;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PersistentVolume, PodVolume};
    use serde_json::json;

    fn read(source: Value) -> PersistentVolume {
        serde_json::from_value(json!({ "spec": source })).unwrap()
    }

    #[test]
    fn a_source_is_read_and_written_as_it_was_with_fields_nobody_knows() {
        for source in [
            json!({ "awsElasticBlockStore": { "volumeID": "vol-1", "fsType": "ext4", "partition": 1, "readOnly": true } }),
            json!({ "gcePersistentDisk": { "pdName": "d", "throughput": { "mb": 1 } } }),
            json!({ "azureDisk": { "diskName": "d", "diskURI": "u", "cachingMode": "", "readOnly": false, "kind": "Managed" } }),
            json!({ "azureFile": { "secretName": "s", "secretNamespace": "n", "shareName": "x" } }),
            json!({ "cinder": { "volumeID": "c", "secretRef": { "name": "s" } } }),
            json!({ "vsphereVolume": { "volumePath": "p", "storagePolicyName": "gold", "storagePolicyID": "7" } }),
            json!({ "portworxVolume": { "volumeID": "p" } }),
            json!({ "rbd": { "monitors": ["a:1", "b:1"], "image": "i", "pool": "p", "user": "u", "keyring": "k" } }),
            // The API refuses two sources; whoever reads them must be able to tell.
            json!({ "cinder": { "volumeID": "c" }, "rbd": { "image": "i" } }),
        ] {
            let volume = read(source.clone());
            assert!(volume.spec.in_tree.is_some());
            assert_eq!(serde_json::to_value(&volume).unwrap()["spec"], source);
            let inline: PodVolume = serde_json::from_value(source.clone()).unwrap();
            assert_eq!(inline.in_tree, volume.spec.in_tree);
            assert_eq!(serde_json::to_value(&inline).unwrap(), source);
        }
        let volume = read(json!({ "csi": { "driver": "d", "volumeHandle": "h" } }));
        assert_eq!(volume.spec.in_tree, None);
    }

    #[test]
    fn a_source_of_the_wrong_shape_is_refused() {
        let read = |json| serde_json::from_value::<PersistentVolume>(json);
        assert!(read(json!({ "spec": { "cinder": { "volumeID": 7 } } })).is_err());
        assert!(
            read(json!({ "spec": { "awsElasticBlockStore": { "volumeID": "v", "partition": 1u64 << 40 } } })).is_err()
        );
    }

    #[test]
    fn sources_cost_a_csi_volume_one_empty_box() {
        let boxed = size_of::<Option<Box<InTreeSource>>>();
        assert_eq!(boxed, size_of::<usize>());
    }
}
