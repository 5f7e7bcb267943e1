//! What a driver must look like to be let in. Each answer is the sentence the driver is told.

use alloc::format;
use alloc::string::String;

use crate::local::{NodeInfo, PluginAtSocket};

/// The only kind of plugin there is a place for.
const CSI_PLUGIN_TYPE: &str = "CSIPlugin";
/// The longest driver name CSI allows.
const LONGEST_NAME: usize = 63;
/// The longest node id CSI allows.
const LONGEST_NODE_ID: usize = 256;

/// What is wrong with how the plugin introduced itself, if anything.
pub fn plugin(plugin: &PluginAtSocket) -> Option<String> {
    if plugin.kind != CSI_PLUGIN_TYPE {
        return Some(format!(
            "plugins of type {} are not supported here, only {CSI_PLUGIN_TYPE}",
            quoted(&plugin.kind)
        ));
    }
    if !is_driver_name(&plugin.name) {
        return Some(format!(
            "the driver name {} must be 1 to {LONGEST_NAME} letters, digits, dots or dashes, with a letter or digit at \
             both ends",
            quoted(&plugin.name)
        ));
    }
    if !plugin.versions.iter().any(|version| speaks_v1(version)) {
        let versions = plugin.versions.join(", ");
        return Some(format!(
            "driver {} offers version {}; version 1 of the interface is needed",
            plugin.name,
            quoted(&versions)
        ));
    }
    None
}

/// What is wrong with the node id, if anything (reliability 67: refused, not shortened).
pub fn place(driver: &str, place: &NodeInfo) -> Option<String> {
    if place.node_id.is_empty() {
        return Some(format!("driver {driver} gave no node id; NodeGetInfo must return one"));
    }
    if place.node_id.len() > LONGEST_NODE_ID {
        let length = place.node_id.len();
        return Some(format!(
            "driver {driver} gave a node id of {length} bytes; at most {LONGEST_NODE_ID} are allowed"
        ));
    }
    None
}

/// What is wrong with the topology, if anything: it becomes labels, so it must be fit for them (S0-72, S0-76).
pub fn topology(driver: &str, place: &NodeInfo) -> Option<String> {
    let bad = place.topology.iter().find(|(key, value)| !is_label_key(key) || !is_label_word(value, true))?;
    Some(format!(
        "driver {driver} says {} is {}, which cannot be a label; keys are prefix/name, names and values at most 63 letters, \
         digits, dashes, underscores or dots",
        quoted(bad.0),
        quoted(bad.1)
    ))
}

fn is_label_key(key: &str) -> bool {
    match key.rsplit_once('/') {
        Some((prefix, name)) => !prefix.is_empty() && prefix.len() <= 253 && is_label_word(name, false),
        None => is_label_word(key, false),
    }
}

fn is_label_word(word: &str, may_be_empty: bool) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'.' || b == b'-' || b == b'_';
    let ends = |b: Option<u8>| b.map_or(may_be_empty, |b| b.is_ascii_alphanumeric());
    word.len() <= 63 && word.bytes().all(inner) && ends(word.bytes().next()) && ends(word.bytes().last())
}

/// KL-11: the greatest parsable version of major 1 or less counts, and it must be of major 1.
fn speaks_v1(version: &str) -> bool {
    let mut parts = version.strip_prefix('v').unwrap_or(version).splitn(3, '.');
    let number = |part: Option<&str>| part.is_some_and(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()));
    let rest = |part: Option<&str>| part.is_none_or(|p| p.bytes().next().is_some_and(|b| b.is_ascii_digit()));
    let major = parts.next();
    number(major)
        && major.is_some_and(|m| m.trim_start_matches('0') == "1")
        && number(parts.next())
        && rest(parts.next())
}

/// A name CSI allows (S0-12).
pub fn is_driver_name(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'.' || b == b'-';
    let ends = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    name.len() <= LONGEST_NAME && name.bytes().all(inner) && ends(name.bytes().next()) && ends(name.bytes().last())
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}
