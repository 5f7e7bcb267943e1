//! Fields of a pod, as its containers can be told them.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use api::{Container, ObjectFieldRef, Pod, Quantity, ResourceFieldRef};

use crate::view::ToldOfNode;

/// A field of the pod. The error says that there is no such field.
pub(super) fn field(pod: &Pod, node: &ToldOfNode, reference: &ObjectFieldRef) -> Result<String, String> {
    let (meta, path) = (&pod.metadata, reference.field_path.as_str());
    if let Some((map, key)) = subscript(path) {
        let map = match map {
            "metadata.labels" => &meta.labels,
            "metadata.annotations" => &meta.annotations,
            _others => return Err(unknown(path)),
        };
        return Ok(map.get(key).cloned().unwrap_or_default());
    }
    Ok(match path {
        "metadata.name" => meta.name.clone(),
        "metadata.namespace" => meta.namespace.clone(),
        "metadata.uid" => meta.uid.clone(),
        "metadata.labels" => lines(&meta.labels),
        "metadata.annotations" => lines(&meta.annotations),
        "spec.nodeName" => pod.spec.node_name.clone(),
        "spec.serviceAccountName" => pod.spec.service_account_name.clone(),
        "status.hostIP" | "status.hostIPs" => node.address.clone(),
        // A pod that is not on the machine's network has a loopback device and nothing else.
        "status.podIP" | "status.podIPs" if pod.spec.host_network => node.address.clone(),
        "status.podIP" | "status.podIPs" => "127.0.0.1".into(),
        _others => return Err(unknown(path)),
    })
}

fn unknown(path: &str) -> String {
    format!("fieldPath {path:?} is none that a container can be told; use one such as metadata.name")
}

/// `metadata.labels['key']` in its two parts.
fn subscript(path: &str) -> Option<(&str, &str)> {
    let (map, key) = path.strip_suffix("']")?.split_once("['")?;
    Some((map, key))
}

/// One line for each entry, with the value in quotes as Go writes them.
fn lines(map: &BTreeMap<String, String>) -> String {
    let lines: Vec<String> = map.iter().map(|(key, value)| format!("{key}={}", quoted(value))).collect();
    lines.join("\n")
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            letter if letter.is_control() => quoted.push_str(&format!("\\x{:02x}", letter as u32)),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// What a container may use of a resource, in units of the divisor, rounded up. A container without a limit may use all
/// that the node has for pods.
pub(super) fn resource(
    pod: &Pod,
    own: Option<&Container>,
    node: &ToldOfNode,
    reference: &ResourceFieldRef,
) -> Result<String, String> {
    let name = &reference.container_name;
    let found = super::containers(pod).find(|container| container.name == *name);
    let Some(container) = found.or_else(|| own.filter(|_| name.is_empty())) else {
        return Err(format!("resourceFieldRef names container {name:?}, which the pod does not have"));
    };
    let unknown = || {
        let asked = &reference.resource;
        format!("resource {asked:?} is none that a container can be told; use one such as limits.memory")
    };
    let (sort, resource) = reference.resource.split_once('.').ok_or_else(unknown)?;
    let resources = &container.resources;
    let amount = match sort {
        "limits" => resources.limits.get(resource).or_else(|| node.allocatable.get(resource)),
        "requests" => resources.requests.get(resource).or_else(|| resources.limits.get(resource)),
        _others => return Err(unknown()),
    };
    let read: fn(&Quantity) -> Result<i64, api::BadQuantity> = match resource {
        "cpu" => Quantity::millis,
        "memory" | "ephemeral-storage" => Quantity::bytes,
        other if other.starts_with("hugepages-") => Quantity::bytes,
        _others => return Err(unknown()),
    };
    let one = Quantity("1".into());
    let divisor = reference.divisor.as_ref().and_then(|divisor| read(divisor).ok()).filter(|divisor| *divisor > 0);
    let divisor = divisor.or_else(|| read(&one).ok()).unwrap_or(1);
    let amount = amount.and_then(|amount| read(amount).ok()).unwrap_or(0).max(0);
    Ok((amount / divisor + i64::from(amount % divisor != 0)).to_string())
}
