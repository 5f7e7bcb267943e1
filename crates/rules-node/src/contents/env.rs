//! The environment and the command of a container, and the parts of volumes it sees.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;

use api::{Container, EnvVarSource, Pod, VolumeMount};
use control::host::ContentBytes;

use super::expand::expand;
use super::{PodSource, ReadSources, downward, entries};
use crate::view::ToldOfNode;

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What a container's process is started with. It may hold secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Environment {
    /// All its variables.
    pub variables: BTreeMap<String, String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Something of it comes from config maps or secrets, and belongs on no disk.
    pub confidential: bool,
}

/// The names, never the values.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

/// The environment of a container. The error is a sentence in kubelet's words.
pub fn of(pod: &Pod, container: &Container, node: &ToldOfNode, sources: &ReadSources) -> Result<Environment, String> {
    let told = told(pod, container, node, sources)?;
    let mut look = |name: &str| told.get(name).map(String::as_str);
    let command = container.command.iter().chain(&container.args).map(|word| expand(word, &mut look)).collect();
    let from_objects = |from: &EnvVarSource| from.config_map_key_ref.is_some() || from.secret_key_ref.is_some();
    let confidential = !container.env_from.is_empty()
        || container.env.iter().filter_map(|variable| variable.value_from.as_ref()).any(from_objects);
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    variables.insert("PATH".into(), PATH.into());
    variables.insert("HOSTNAME".into(), pod.metadata.name.clone());
    variables.extend(told);
    Ok(Environment { variables, command, confidential })
}

/// The part of a volume that a container sees; empty means all of it.
pub fn sub_path(mount: &VolumeMount, environment: &Environment) -> Result<String, String> {
    if mount.sub_path_expr.is_empty() {
        return Ok(mount.sub_path.clone());
    }
    let mut missing = None;
    let mut look = |name: &str| {
        let value = environment.variables.get(name).map(String::as_str);
        if value.is_none() {
            missing = Some(name.to_string());
        }
        value
    };
    let path = expand(&mount.sub_path_expr, &mut look);
    if let Some(name) = missing {
        return Err(format!("missing value for {name:?} in subPathExpr {:?}", mount.sub_path_expr));
    }
    if path.starts_with('/') || path.split('/').any(|part| part == "..") {
        // What a secret may have put there is not told.
        return Err(format!("subPathExpr {:?} is no relative path without '..'", mount.sub_path_expr));
    }
    Ok(path)
}

/// What the container itself says, in order: a later variable of the same name wins.
fn told(
    pod: &Pod,
    container: &Container,
    node: &ToldOfNode,
    sources: &ReadSources,
) -> Result<BTreeMap<String, String>, String> {
    let mut told: BTreeMap<String, String> = BTreeMap::new();
    for from in &container.env_from {
        let map = from.config_map_ref.as_ref().map(|map| (PodSource::config_map(&map.name), map.optional));
        let secret = from.secret_ref.as_ref().map(|secret| (PodSource::secret(&secret.name), secret.optional));
        for (source, optional) in map.into_iter().chain(secret) {
            for (key, bytes) in entries(sources, &source, optional)?.into_iter().flatten() {
                // A name that no environment can have is left out.
                if !key.is_empty() && !key.contains('=') {
                    told.insert(format!("{}{key}", from.prefix), text(&source, key, bytes)?);
                }
            }
        }
    }
    for variable in &container.env {
        let value = match &variable.value_from {
            None => Some(expand(&variable.value, &mut |name: &str| told.get(name).map(String::as_str))),
            Some(from) => taken(pod, container, node, sources, from)?,
        };
        if let Some(value) = value {
            told.insert(variable.name.clone(), value);
        }
    }
    Ok(told)
}

fn taken(
    pod: &Pod,
    container: &Container,
    node: &ToldOfNode,
    sources: &ReadSources,
    from: &EnvVarSource,
) -> Result<Option<String>, String> {
    if let Some(field) = &from.field_ref {
        return downward::field(pod, node, field).map(Some);
    }
    if let Some(resource) = &from.resource_field_ref {
        return downward::resource(pod, Some(container), node, resource).map(Some);
    }
    let (source, wanted) = match (&from.config_map_key_ref, &from.secret_key_ref) {
        (Some(wanted), _) => (PodSource::config_map(&wanted.name), wanted),
        (None, Some(wanted)) => (PodSource::secret(&wanted.name), wanted),
        (None, None) => return Err("a variable takes its value from nowhere that is known here".into()),
    };
    match entries(sources, &source, wanted.optional)?.and_then(|entries| entries.get(&wanted.key)) {
        Some(bytes) => text(&source, &wanted.key, bytes).map(Some),
        None if wanted.optional == Some(true) => Ok(None),
        None => {
            let (kind, key) = (source.kind, &wanted.key);
            Err(format!("couldn't find key {key} in {kind} {}/{}", pod.metadata.namespace, source.name))
        }
    }
}

/// Variables are texts without NUL.
fn text(source: &PodSource, key: &str, bytes: &ContentBytes) -> Result<String, String> {
    match core::str::from_utf8(&bytes.0) {
        Ok(text) if !text.contains('\0') => Ok(text.into()),
        Ok(_) | Err(_) => Err(format!("entry {key} of {source} is not text, so no variable can hold it; mount it")),
    }
}
