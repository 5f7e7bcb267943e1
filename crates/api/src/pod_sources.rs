//! Where a pod's files and variables come from beside claims: config maps, secrets, fields of the pod itself, tokens,
//! and places of the machine.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::core_v1::part;
use crate::{Meta, Quantity, Secret, SecretValue};

part! {
    /// Texts and bytes for pods, each under a name.
    ConfigMap { metadata: Meta, data: BTreeMap<String, String>, binary_data: BTreeMap<String, SecretValue> }
}

impl ConfigMap {
    /// Every entry as bytes; one that is no base64 is left out, since the API server would not have taken it.
    pub fn bytes(&self) -> BTreeMap<String, Vec<u8>> {
        let texts = self.data.iter().map(|(key, text)| (key.clone(), text.clone().into_bytes()));
        texts.chain(decoded(&self.binary_data)).collect()
    }
}

impl Secret {
    /// Every entry as bytes; one that is no base64 is left out, since the API server would not have taken it.
    pub fn bytes(&self) -> BTreeMap<String, Vec<u8>> {
        decoded(&self.data).collect()
    }
}

fn decoded(values: &BTreeMap<String, SecretValue>) -> impl Iterator<Item = (String, Vec<u8>)> {
    values.iter().filter_map(|(key, value)| Some((key.clone(), STANDARD.decode(&value.0).ok()?)))
}

part! {
    /// An entry and the file it becomes.
    KeyToPath { key: String, path: String, mode: Option<i32> }
}

part! {
    /// A config map as a volume.
    ConfigMapVolume { name: String, items: Vec<KeyToPath>, default_mode: Option<i32>, optional: Option<bool> }
}

part! {
    /// A secret as a volume.
    SecretVolume { secret_name: String, items: Vec<KeyToPath>, default_mode: Option<i32>, optional: Option<bool> }
}

part! {
    /// Fields of the pod as a volume.
    DownwardApiVolume { items: Vec<DownwardApiFile>, default_mode: Option<i32> }
}

part! {
    /// A field of the pod and the file it becomes.
    DownwardApiFile {
        path: String,
        field_ref: Option<ObjectFieldRef>,
        resource_field_ref: Option<ResourceFieldRef>,
        mode: Option<i32>,
    }
}

part! {
    /// A field of the pod.
    ObjectFieldRef { field_path: String }
}

part! {
    /// What a container may use of a resource.
    ResourceFieldRef { container_name: String, resource: String, divisor: Option<Quantity> }
}

part! {
    /// Several sources as one volume.
    ProjectedVolume { sources: Vec<Projection>, default_mode: Option<i32> }
}

part! {
    /// One of them. Sources we do not know leave all of them empty.
    Projection {
        config_map: Option<ObjectProjection>,
        secret: Option<ObjectProjection>,
        #[serde(rename = "downwardAPI")]
        downward_api: Option<DownwardApiProjection>,
        service_account_token: Option<TokenProjection>,
    }
}

part! {
    /// A config map or a secret as a part of a volume.
    ObjectProjection { name: String, items: Vec<KeyToPath>, optional: Option<bool> }
}

part! {
    /// Fields of the pod as a part of a volume.
    DownwardApiProjection { items: Vec<DownwardApiFile> }
}

part! {
    /// A token of the pod's service account as a file.
    TokenProjection { audience: String, expiration_seconds: Option<i64>, path: String }
}

part! {
    /// A directory that is empty when the pod starts and goes with it.
    EmptyDir { medium: String, size_limit: Option<Quantity> }
}

part! {
    /// A file or directory of the machine.
    HostPath { path: String, r#type: Option<String> }
}

part! {
    /// Where a variable's value comes from.
    EnvVarSource {
        field_ref: Option<ObjectFieldRef>,
        resource_field_ref: Option<ResourceFieldRef>,
        config_map_key_ref: Option<KeySelector>,
        secret_key_ref: Option<KeySelector>,
    }
}

part! {
    /// An entry of a config map or a secret.
    KeySelector { name: String, key: String, optional: Option<bool> }
}

part! {
    /// Variables from all entries of a config map or a secret.
    EnvFromSource { prefix: String, config_map_ref: Option<EnvSource>, secret_ref: Option<EnvSource> }
}

part! {
    /// That config map or secret.
    EnvSource { name: String, optional: Option<bool> }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use serde_json::json;

    #[test]
    fn entries_are_read_as_bytes_and_binary_ones_are_never_printed() {
        let map: ConfigMap =
            serde_json::from_value(json!({ "data": { "a": "text" }, "binaryData": { "b": "/w==", "c": "?" } }))
                .unwrap();
        assert_eq!(map.bytes(), [("a".into(), b"text".to_vec()), ("b".into(), [255].to_vec())].into());
        let secret: Secret = serde_json::from_value(json!({ "data": { "k": "Y2FuYXJ5" } })).unwrap();
        assert_eq!(secret.bytes(), [("k".into(), b"canary".to_vec())].into());
        assert!(!format!("{secret:?} {map:?}").contains("Y2FuYXJ5"));
    }

    #[test]
    fn sources_are_read_by_the_names_they_have_in_manifests() {
        let projection: Projection = serde_json::from_value(json!({ "downwardAPI": { "items": [
            { "path": "labels", "fieldRef": { "fieldPath": "metadata.labels" } },
            { "path": "cpu", "resourceFieldRef": { "containerName": "c", "resource": "limits.cpu", "divisor": "1m" } },
        ] } }))
        .unwrap();
        let items = projection.downward_api.unwrap().items;
        assert_eq!(items[0].field_ref.as_ref().unwrap().field_path, "metadata.labels");
        assert_eq!(items[1].resource_field_ref.as_ref().unwrap().resource, "limits.cpu");
    }
}
