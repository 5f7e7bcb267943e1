//! Objects in a line: `claim data class=fast size=1Gi`.
//!
//! A word `field=value` sets a field. Fields have short names, by kind, in `field_at`; any other is a path such as
//! `spec.volumeMode`; `@name=value` sets an annotation and `%name=value` a label. A value is JSON if it reads as
//! JSON, and text otherwise.

use api::{Kind, Value, names};
use control::Rules;
use serde_json::json;

use crate::Lab;

/// The words of a line; brackets, braces and quotes keep blanks together.
pub fn words(line: &str) -> Vec<String> {
    let (mut words, mut depth, mut quoted) = (vec![String::new()], 0_i32, false);
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth -= 1,
            _ => {}
        }
        if letter == ' ' && depth == 0 && !quoted {
            words.push(String::new());
        } else {
            words.last_mut().unwrap().push(letter);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The kind of a short name, of a name as kubectl takes it, or of the name in `kind:`.
pub fn kind(word: &str) -> Option<Kind> {
    let short = match word {
        "claim" => Kind::PersistentVolumeClaim,
        "volume" => Kind::PersistentVolume,
        "class" => Kind::StorageClass,
        "attachment" => Kind::VolumeAttachment,
        "snapshot" => Kind::VolumeSnapshot,
        "content" => Kind::VolumeSnapshotContent,
        "grant" => Kind::ReferenceGrant,
        "capacity" => Kind::CSIStorageCapacity,
        _ => return Kind::ALL.into_iter().find(|kind| named(*kind, word)),
    };
    Some(short)
}

fn named(kind: Kind, word: &str) -> bool {
    kind.name() == word || kind.singular() == word || kind.short_names().contains(&word)
}

impl<R: Rules> Lab<R> {
    /// Creates the object that a line describes.
    pub fn make(&mut self, line: &str) {
        self.try_make(&words(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
    }

    pub(crate) fn try_make(&mut self, words: &[String]) -> Result<(), String> {
        let (kind, name, fields) = subject(words)?;
        let mut body = defaults(kind, name);
        self.set(kind, &mut body, fields)?;
        if let Some((namespace, name)) = name.split_once('/') {
            body["metadata"]["namespace"] = namespace.into();
            body["metadata"]["name"] = name.into();
        }
        self.create(kind, body);
        Ok(())
    }

    /// Merges the fields of a line into an object: `claim data size=2Gi`.
    pub fn change(&mut self, line: &str) {
        self.try_change(&words(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
    }

    pub(crate) fn try_change(&mut self, words: &[String]) -> Result<(), String> {
        let (kind, name, fields) = subject(words)?;
        let mut body = json!({});
        self.set(kind, &mut body, fields)?;
        let status = body.as_object_mut().and_then(|body| body.remove("status"));
        if body != json!({}) {
            self.patch(kind, name, body);
        }
        if let Some(status) = status {
            self.patch_status(kind, name, status);
        }
        Ok(())
    }

    fn set(&self, kind: Kind, body: &mut Value, fields: &[String]) -> Result<(), String> {
        for field in fields {
            let (field, value) = field.split_once('=').ok_or(format!("{field} is no field=value"))?;
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
            let (path, value) = self.field_at(kind, field, value);
            let mut place = &mut *body;
            for step in &path {
                place = &mut place[step.as_str()];
            }
            *place = value;
        }
        Ok(())
    }

    /// Where a field is, and what is put there.
    fn field_at(&self, kind: Kind, field: &str, value: Value) -> (Vec<String>, Value) {
        let at = |path: &str| path.split('.').map(String::from).collect();
        let of = |name: &str| vec!["metadata".to_string(), name.to_string()];
        if let Some(name) = field.strip_prefix('@') {
            return ([of("annotations"), vec![name.to_string()]].concat(), value);
        }
        if let Some(name) = field.strip_prefix('%') {
            return ([of("labels"), vec![name.to_string()]].concat(), value);
        }
        let path = match (kind, field) {
            (_, "finalizers") => "metadata.finalizers",
            (Kind::PersistentVolumeClaim | Kind::PersistentVolume, "class") => "spec.storageClassName",
            (Kind::PersistentVolumeClaim | Kind::PersistentVolume, "modes") => "spec.accessModes",
            (Kind::PersistentVolumeClaim, "size") => "spec.resources.requests.storage",
            (Kind::PersistentVolumeClaim, "volume") => "spec.volumeName",
            (Kind::PersistentVolume, "size") => "spec.capacity.storage",
            (Kind::PersistentVolume, "driver") => "spec.csi.driver",
            (Kind::PersistentVolume, "handle") => "spec.csi.volumeHandle",
            (Kind::PersistentVolume, "policy") => "spec.persistentVolumeReclaimPolicy",
            (Kind::PersistentVolume, "claim") => return (at("spec.claimRef"), self.claim_ref(&value, true)),
            (Kind::PersistentVolume, "reserved") => return (at("spec.claimRef"), self.claim_ref(&value, false)),
            (Kind::StorageClass, "mode") => "volumeBindingMode",
            (Kind::StorageClass, "policy") => "reclaimPolicy",
            (Kind::StorageClass, "expand") => "allowVolumeExpansion",
            (Kind::StorageClass, "default") => {
                let name = names::DEFAULT_CLASS.to_string();
                return ([of("annotations"), vec![name]].concat(), value.to_string().into());
            }
            (Kind::Pod, "claim") => {
                let volume = json!({ "name": "v", "persistentVolumeClaim": { "claimName": value } });
                return (at("spec.volumes"), json!([volume]));
            }
            (Kind::Pod, "node") | (Kind::VolumeAttachment, "node") => "spec.nodeName",
            (Kind::Node, "ready") => {
                let status = if value == json!(true) { "True" } else { "False" };
                return (at("status.conditions"), json!([{ "type": "Ready", "status": status }]));
            }
            (Kind::VolumeAttachment, "driver") => "spec.attacher",
            (Kind::VolumeAttachment, "volume") => "spec.source.persistentVolumeName",
            (_, path) => path,
        };
        (at(path), value)
    }

    /// A reference to a claim, with its uid if it is to be that very one.
    fn claim_ref(&self, claim: &Value, exact: bool) -> Value {
        let target = self.target(Kind::PersistentVolumeClaim, claim.as_str().unwrap_or_default());
        let mut holder = json!({ "namespace": target.key.namespace, "name": target.key.name });
        if let (true, Some(claim)) = (exact, self.stored(&target)) {
            holder["uid"] = claim["metadata"]["uid"].clone();
        }
        holder
    }
}

/// Kind, name and the rest of a line.
pub(crate) fn subject(words: &[String]) -> Result<(Kind, &str, &[String]), String> {
    let [word, name, fields @ ..] = words else { return Err("it names no object".into()) };
    let kind = kind(word).ok_or(format!("{word} is no kind"))?;
    Ok((kind, name, fields))
}

/// What an object of a kind needs, unless the line says otherwise.
fn defaults(kind: Kind, name: &str) -> Value {
    let mut body = match kind {
        Kind::PersistentVolumeClaim => json!({ "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } } }),
        Kind::PersistentVolume => json!({ "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" },
            "csi": { "driver": "d", "volumeHandle": name } } }),
        Kind::StorageClass => json!({ "provisioner": "d" }),
        Kind::VolumeAttachment => json!({ "spec": { "attacher": "d" } }),
        Kind::Pod => json!({ "spec": { "containers": [{ "name": "c", "image": "i" }] } }),
        _ => json!({}),
    };
    body["metadata"]["name"] = name.into();
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_within_brackets_and_quotes_part_no_words() {
        assert_eq!(words(r#"pod a  x={"k": [1, 2]} y="b c""#), ["pod", "a", r#"x={"k": [1, 2]}"#, r#"y="b c""#]);
    }

    #[test]
    fn kinds_have_the_names_people_use() {
        for (word, named) in [("claim", Kind::PersistentVolumeClaim), ("pv", Kind::PersistentVolume)] {
            assert_eq!(kind(word), Some(named));
        }
        assert_eq!((kind("csinode"), kind("CSINode"), kind("cat")), (Some(Kind::CSINode), Some(Kind::CSINode), None));
    }
}
