//! Parameters of classes.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use api::{StorageClass, TopologyRequirement, TopologySelectorTerm, names};

use crate::{Error, Plugin, topology};

pub(crate) const FSTYPE: &str = "fstype";
const ZONE: &str = "zone";
const ZONES: &str = "zones";

/// So many names are compared with each other; of more, copies are put in order.
const FEW: usize = 32;

pub(crate) type Parameters = BTreeMap<String, String>;

/// Two spellings of one parameter would leave it to chance which of them counts.
pub(crate) fn each_once(class: &StorageClass) -> Result<(), Error> {
    let names = || class.parameters.keys();
    let again = if names().len() <= FEW && names().all(|name| name.is_ascii()) {
        let capital = |name: &&String| name.bytes().any(|byte| byte.is_ascii_uppercase());
        let spelt = |name: &String| names().filter(|other| other.eq_ignore_ascii_case(name)).count();
        names().filter(capital).any(|name| spelt(name) > 1)
    } else {
        let different: BTreeSet<String> = names().map(|name| name.to_lowercase()).collect();
        different.len() < names().len()
    };
    if again { Err(twice(class, "one of its parameters, in different spellings")) } else { Ok(()) }
}

/// A parameter's name is this word, which is in lower case, in whatever spelling.
pub(crate) fn is(name: &str, word: &str) -> bool {
    name.eq_ignore_ascii_case(word) || (!name.is_ascii() && name.to_lowercase() == word)
}

/// Takes a parameter out, however its name is spelt.
pub(crate) fn remove(parameters: &mut Parameters, word: &str) -> Option<String> {
    match parameters.remove(word) {
        None => {
            let name = parameters.keys().find(|name| is(name, word))?.clone();
            parameters.remove(&name)
        }
        found => found,
    }
}

/// Takes several parameters out, of which none is there twice: one look at each name, and nothing is copied.
fn take<const N: usize>(parameters: &mut Parameters, words: [Option<&str>; N]) -> [Option<String>; N] {
    let mut found = [const { None }; N];
    parameters.retain(|name, value| {
        let lower = (!name.is_ascii()).then(|| name.to_lowercase());
        let is = |word: &str| name.eq_ignore_ascii_case(word) || lower.as_deref() == Some(word);
        let hit = words.iter().zip(&mut found).find(|(word, _)| word.is_some_and(is));
        hit.map(|(_, found)| *found = Some(core::mem::take(value))).is_none()
    });
    found
}

pub(crate) fn twice(class: &StorageClass, what: &'static str) -> Error {
    Error::Twice { class: class.metadata.name.clone(), what }
}

/// TR-11, TR-12: the filesystem type gets the name CSI has for it, zones become places the class allows, and the rest
/// stays. Azure's disks keep their filesystem type among the driver's own parameters.
pub(crate) fn to_csi(class: &mut StorageClass, key: &str, renames_fstype: bool) -> Result<(), Error> {
    each_once(class)?;
    let words = [renames_fstype.then_some(FSTYPE), Some(ZONE), Some(ZONES)];
    let [fstype, zone, zones] = take(&mut class.parameters, words);
    if let Some(value) = fstype {
        insert_fstype(class, value)?;
    }
    let zones: Option<Vec<String>> = match (zone, zones) {
        (Some(_), Some(_)) => return Err(twice(class, "which zones it is for, as zone and as zones")),
        (Some(zone), None) => Some(alloc::vec![zone]),
        (None, zones) => zones.map(|zones| zones.split(',').map(String::from).collect()),
    };
    match zones {
        Some(_) if !class.allowed_topologies.is_empty() => {
            return Err(twice(class, "which zones it is for, as a parameter and in allowedTopologies"));
        }
        Some(values) => {
            let wanted = TopologyRequirement { key: key.into(), values };
            class.allowed_topologies =
                alloc::vec![TopologySelectorTerm { match_label_expressions: alloc::vec![wanted] }];
        }
        None => topology::allowed_to_csi(&mut class.allowed_topologies, key),
    }
    Ok(())
}

/// The filesystem type gets the name CSI has for it.
pub(crate) fn rename_fstype(class: &mut StorageClass) -> Result<(), Error> {
    let Some(value) = remove(&mut class.parameters, FSTYPE) else { return Ok(()) };
    insert_fstype(class, value)
}

fn insert_fstype(class: &mut StorageClass, value: String) -> Result<(), Error> {
    match class.parameters.insert(names::FSTYPE_PARAMETER.into(), value) {
        None => Ok(()),
        Some(_) => Err(twice(class, "its filesystem type, as fstype and under its CSI name")),
    }
}

/// The filesystem type under its short name, and zones under their common one.
pub(crate) fn to_in_tree(class: &mut StorageClass, plugin: Plugin) -> Result<(), Error> {
    if let Some(value) = class.parameters.remove(names::FSTYPE_PARAMETER) {
        if class.parameters.keys().any(|key| key.eq_ignore_ascii_case(FSTYPE)) {
            return Err(twice(class, "its filesystem type, as fstype and under its CSI name"));
        }
        class.parameters.insert(FSTYPE.into(), value);
    }
    if let Some(key) = plugin.zone_key() {
        topology::allowed_to_in_tree(&mut class.allowed_topologies, key);
    }
    Ok(())
}
