//! What a driver must look like to be let in. Each answer is the sentence the driver is told.

use alloc::format;
use alloc::string::String;

use api::names;

use crate::local::{NodeInfo, PluginAtSocket};

/// The only kind of plugin there is a place for.
const CSI_PLUGIN_TYPE: &str = "CSIPlugin";
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
    if !names::is_driver_name(&plugin.name) {
        return Some(format!("the driver name {} must {}", quoted(&plugin.name), names::DRIVER_NAME_RULE));
    }
    if highest(&plugin.versions).is_none_or(|version| version.0 != 1) {
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

/// A version of the interface: major, minor, patch.
pub type Version = (u64, u64, u64);

/// KL-11: the greatest version of major 1 or less that can be read.
pub fn highest(versions: &[String]) -> Option<Version> {
    versions.iter().filter_map(|version| parse(version)).filter(|version| version.0 <= 1).max()
}

/// What follows the patch number, such as `-rc1`, does not count.
fn parse(version: &str) -> Option<Version> {
    let mut parts = version.strip_prefix('v').unwrap_or(version).splitn(3, '.');
    let number = |part: &str| -> Option<u64> {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        part.get(..digits)?.parse().ok()
    };
    let whole = |part: Option<&str>| part.filter(|part| part.bytes().all(|b| b.is_ascii_digit())).and_then(number);
    let (major, minor) = (whole(parts.next())?, whole(parts.next())?);
    Some((major, minor, parts.next().map_or(Some(0), number)?))
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}
