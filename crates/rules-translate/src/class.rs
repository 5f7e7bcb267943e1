//! Parameters of classes.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{StorageClass, TopologyRequirement, TopologySelectorTerm, names};

use crate::{Error, Plugin, topology};

pub(crate) const FSTYPE: &str = "fstype";
const ZONE: &str = "zone";
const ZONES: &str = "zones";

pub(crate) type Parameters = BTreeMap<String, String>;

/// Takes every parameter out of the class, by its name in lower case. Two spellings of one name would leave it to chance
/// which of them counts.
pub(crate) fn take(class: &mut StorageClass) -> Result<Vec<(String, String, String)>, Error> {
    let mut seen = BTreeMap::new();
    for (key, value) in core::mem::take(&mut class.parameters) {
        if seen.insert(key.to_lowercase(), (key, value)).is_some() {
            return Err(twice(class, "one of its parameters, in different spellings"));
        }
    }
    Ok(seen.into_iter().map(|(lower, (key, value))| (lower, key, value)).collect())
}

pub(crate) fn twice(class: &StorageClass, what: &'static str) -> Error {
    Error::Twice { class: class.metadata.name.clone(), what }
}

/// TR-11, TR-12: the filesystem type gets the name CSI has for it, zones become places the class allows, and the rest
/// stays. Azure's disks keep their filesystem type among the driver's own parameters.
pub(crate) fn to_csi(class: &mut StorageClass, key: &str, renames_fstype: bool) -> Result<(), Error> {
    let mut parameters = Parameters::new();
    let mut zones: Option<Vec<String>> = None;
    for (lower, name, value) in take(class)? {
        let named: Vec<String> = match lower.as_str() {
            FSTYPE if renames_fstype => {
                put(&mut parameters, class, names::FSTYPE_PARAMETER, value)?;
                continue;
            }
            ZONE => alloc::vec![value],
            ZONES => value.split(',').map(String::from).collect(),
            _other => {
                put(&mut parameters, class, &name, value)?;
                continue;
            }
        };
        if zones.replace(named).is_some() {
            return Err(twice(class, "which zones it is for, as zone and as zones"));
        }
    }
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
    class.parameters = parameters;
    Ok(())
}

fn put(parameters: &mut Parameters, class: &StorageClass, key: &str, value: String) -> Result<(), Error> {
    match parameters.insert(key.to_string(), value) {
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
