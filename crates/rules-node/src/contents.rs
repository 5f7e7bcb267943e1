//! What the node itself puts into a pod: files of config maps, secrets and the pod's own fields, and variables.
//!
//! Config maps and secrets are read one by one, when a pod of this node needs them, and again from time to time. What
//! was read is kept in the memory of the pod's key and nowhere else.

mod downward;
mod env;
mod expand;
mod files;
mod token;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use api::{Container, KeyToPath, Kind, Object, Pod, PodVolume};
use control::host::ContentBytes;
use control::{Outcome, Reply, Timestamp};

pub use env::{Environment, of as environment, sub_path};
pub use files::of as files;
pub use token::{PodToken, ReadTokens, TokenRead, of_volume as tokens};

/// A config map or a secret of a pod's namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodSource {
    /// `ConfigMap` or `Secret`.
    pub kind: Kind,
    /// What it is called in the pod's namespace.
    pub name: String,
}

impl PodSource {
    fn config_map(name: &str) -> PodSource {
        PodSource { kind: Kind::ConfigMap, name: name.into() }
    }

    fn secret(name: &str) -> PodSource {
        PodSource { kind: Kind::Secret, name: name.into() }
    }

    /// What is said when it does not exist.
    pub fn not_found(&self) -> String {
        format!("{} {:?} not found", self.kind.singular(), self.name)
    }
}

impl fmt::Display for PodSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.singular(), self.name)
    }
}

/// What a pod needs a source for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SourceNeed {
    /// The pod does without where it is missing.
    pub optional: bool,
    /// The volume that shows it; without one it is for variables.
    pub volume: Option<String>,
    /// Entries it must have, and what is said of one that it lacks.
    pub wanted: BTreeMap<String, String>,
}

impl SourceNeed {
    /// What keeps the pod from using what was read of the source; `None` if nothing does.
    pub fn lacks(&self, source: &PodSource, read: &SourceRead) -> Option<String> {
        match &read.entries {
            None => (!self.optional).then(|| source.not_found()),
            Some(entries) => {
                self.wanted.iter().find(|(key, _)| !entries.contains_key(*key)).map(|(_, text)| text.clone())
            }
        }
    }
}

/// A source as it was last read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourceRead {
    /// When the answer came.
    pub at: Timestamp,
    /// It was there.
    pub found: bool,
    /// Its entries; those of the last time it was there where it is gone and the pod cannot do without.
    pub entries: Option<BTreeMap<String, ContentBytes>>,
}

/// All sources that were read, by what they are.
pub type ReadSources = BTreeMap<PodSource, SourceRead>;

impl SourceRead {
    /// What a read brought, after what was known before; `None` if it brought nothing.
    pub fn after(now: Timestamp, before: Option<&SourceRead>, optional: bool, got: &Outcome) -> Option<SourceRead> {
        let entries = match got {
            Outcome::Done(Reply::Object(Object::ConfigMap(map))) => map.bytes(),
            Outcome::Done(Reply::Object(Object::Secret(secret))) => secret.bytes(),
            // Whoever runs with it goes on with it.
            Outcome::Done(Reply::Gone) => {
                let entries = before.filter(|_| !optional).and_then(|before| before.entries.clone());
                return Some(SourceRead { at: now, found: false, entries });
            }
            Outcome::Done(_) | Outcome::Refused(_) | Outcome::Unknown(_) => return None,
        };
        let entries = entries.into_iter().map(|(key, bytes)| (key, bytes.into())).collect();
        Some(SourceRead { at: now, found: true, entries: Some(entries) })
    }
}

/// Every source a pod needs, each once. One that is needed in two ways is optional only if both are.
pub fn needs(pod: &Pod) -> BTreeMap<PodSource, SourceNeed> {
    let mut needs: BTreeMap<PodSource, SourceNeed> = BTreeMap::new();
    let mut add = |source: PodSource, optional: Option<bool>, volume: Option<&str>, wanted: Vec<(String, String)>| {
        let optional = optional == Some(true);
        let need = needs.entry(source).or_insert_with(|| SourceNeed { optional, ..SourceNeed::default() });
        need.optional &= optional;
        need.volume = need.volume.take().or(volume.map(Into::into));
        need.wanted.extend(wanted.into_iter().filter(|_| !optional));
    };
    for volume in &pod.spec.volumes {
        for (source, items, optional) in of_volume(volume) {
            let lacking = |item: &KeyToPath| (item.key.clone(), files::lacking(&source, &item.key));
            let wanted = items.iter().map(lacking).collect();
            add(source, optional, Some(&volume.name), wanted);
        }
    }
    let lacking = |source: &PodSource, key: &str| {
        let text = format!("couldn't find key {key} in {} {}/{}", source.kind, pod.metadata.namespace, source.name);
        Vec::from([(String::from(key), text)])
    };
    for container in containers(pod) {
        for from in &container.env_from {
            if let Some(map) = &from.config_map_ref {
                add(PodSource::config_map(&map.name), map.optional, None, Vec::new());
            }
            if let Some(secret) = &from.secret_ref {
                add(PodSource::secret(&secret.name), secret.optional, None, Vec::new());
            }
        }
        for from in container.env.iter().filter_map(|variable| variable.value_from.as_ref()) {
            if let Some(key) = &from.config_map_key_ref {
                let source = PodSource::config_map(&key.name);
                let wanted = lacking(&source, &key.key);
                add(source, key.optional, None, wanted);
            }
            if let Some(key) = &from.secret_key_ref {
                let source = PodSource::secret(&key.name);
                let wanted = lacking(&source, &key.key);
                add(source, key.optional, None, wanted);
            }
        }
    }
    needs
}

fn of_volume(volume: &PodVolume) -> Vec<(PodSource, &[KeyToPath], Option<bool>)> {
    let mut sources = Vec::new();
    if let Some(map) = &volume.config_map {
        sources.push((PodSource::config_map(&map.name), &*map.items, map.optional));
    }
    if let Some(secret) = &volume.secret {
        sources.push((PodSource::secret(&secret.secret_name), &*secret.items, secret.optional));
    }
    for projection in volume.projected.iter().flat_map(|projected| &projected.sources) {
        if let Some(map) = &projection.config_map {
            sources.push((PodSource::config_map(&map.name), &*map.items, map.optional));
        }
        if let Some(secret) = &projection.secret {
            sources.push((PodSource::secret(&secret.name), &*secret.items, secret.optional));
        }
    }
    sources
}

/// Every container of a pod, in the order they are started.
pub fn containers(pod: &Pod) -> impl Iterator<Item = &Container> {
    pod.spec.init_containers.iter().chain(&pod.spec.containers)
}

/// The entries of a source. The error says what is missing; `None`: it is missing and may be.
fn entries<'a>(
    sources: &'a ReadSources,
    source: &PodSource,
    optional: Option<bool>,
) -> Result<Option<&'a BTreeMap<String, ContentBytes>>, String> {
    match sources.get(source).and_then(|read| read.entries.as_ref()) {
        Some(entries) => Ok(Some(entries)),
        None if optional == Some(true) => Ok(None),
        None => Err(source.not_found()),
    }
}
