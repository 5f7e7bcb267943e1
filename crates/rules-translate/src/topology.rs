//! Where a volume can be reached from: zone labels and node affinity in either form.

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{NodeRequirement, NodeSelectorTerm, PersistentVolume, TopologySelectorTerm, names};

use crate::{Error, Plugin};

/// Between the zones of a volume that is in several of them, in a label.
pub(crate) const BETWEEN_ZONES: &str = "__";

/// Tells the region of zones by their names.
pub(crate) type RegionOf = fn(&[&str]) -> Result<String, Error>;

/// TR-7: which generation of labels a volume uses, zone and region.
pub(crate) fn generation(volume: &PersistentVolume) -> (&'static str, &'static str) {
    const NOW: (&str, &str) = (names::ZONE, names::REGION);
    const BETA: (&str, &str) = (names::ZONE_BETA, names::REGION_BETA);
    let labels = &volume.metadata.labels;
    let affinity = (has_key(volume, names::ZONE), has_key(volume, names::ZONE_BETA));
    match (affinity, labels.contains_key(names::ZONE), labels.contains_key(names::ZONE_BETA)) {
        ((true, _), _, _) => NOW,
        ((false, true), _, _) | ((false, false), false, true) => BETA,
        ((false, false), true | false, _) => NOW,
    }
}

fn terms(volume: &PersistentVolume) -> &[NodeSelectorTerm] {
    let required = volume.spec.node_affinity.as_ref().and_then(|affinity| affinity.required.as_ref());
    required.map_or(&[], |required| &required.node_selector_terms)
}

fn terms_mut(volume: &mut PersistentVolume) -> impl Iterator<Item = &mut NodeSelectorTerm> {
    let required = volume.spec.node_affinity.as_mut().and_then(|affinity| affinity.required.as_mut());
    required.into_iter().flat_map(|required| required.node_selector_terms.iter_mut())
}

fn expressions<'a>(volume: &'a PersistentVolume, key: &str) -> impl Iterator<Item = &'a NodeRequirement> {
    terms(volume).iter().flat_map(|term| &term.match_expressions).filter(move |wanted| wanted.key == key)
}

fn has_key(volume: &PersistentVolume, key: &str) -> bool {
    expressions(volume, key).next().is_some()
}

/// The values a key may have in any place, in order and none twice.
pub(crate) fn values<'a>(volume: &'a PersistentVolume, key: &str) -> Vec<&'a str> {
    let mut found: Vec<&str> = expressions(volume, key).flat_map(|wanted| &wanted.values).map(String::as_str).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Some place asks for the key with a value.
pub(crate) fn has_values(volume: &PersistentVolume, key: &str) -> bool {
    expressions(volume, key).any(|wanted| !wanted.values.is_empty())
}

/// Writes another text into the place of one.
pub(crate) fn set(text: &mut String, to: &str) {
    text.clear();
    text.push_str(to);
}

pub(crate) fn rename(volume: &mut PersistentVolume, from: &str, to: &str) {
    let all = terms_mut(volume).flat_map(|term| term.match_expressions.iter_mut());
    for wanted in all.filter(|wanted| wanted.key == from) {
        set(&mut wanted.key, to);
    }
}

/// Adds a key to every place, making one if there is none. Blank values say nothing, and without values there is nothing
/// to add.
pub(crate) fn add<'a>(volume: &mut PersistentVolume, key: &str, values: impl Iterator<Item = &'a str>) {
    let values: BTreeSet<&str> = values.map(str::trim).filter(|value| !value.is_empty()).collect();
    if values.is_empty() {
        return;
    }
    let values: Vec<String> = values.into_iter().map(String::from).collect();
    let affinity = volume.spec.node_affinity.get_or_insert_default();
    let terms = &mut affinity.required.get_or_insert_default().node_selector_terms;
    if terms.is_empty() {
        terms.push(NodeSelectorTerm::default());
    }
    for term in terms {
        let wanted = NodeRequirement { key: key.into(), operator: "In".into(), values: values.clone() };
        term.match_expressions.push(wanted);
    }
}

/// TR-8.
pub(crate) fn to_csi(volume: &mut PersistentVolume, key: &str) {
    let (zone, region) = generation(volume);
    if has_values(volume, zone) {
        rename(volume, zone, key);
    } else if let Some(label) = volume.metadata.labels.get(zone).cloned() {
        add(volume, key, label.split(BETWEEN_ZONES));
    }
    // New nodes carry today's region label alone.
    if region == names::REGION_BETA && has_values(volume, region) {
        rename(volume, region, names::REGION);
    }
}

/// TR-9.
pub(crate) fn to_in_tree(volume: &mut PersistentVolume, key: &str, region_of: Option<RegionOf>) -> Result<(), Error> {
    let (zone, _) = generation(volume);
    rename(volume, key, zone);
    if let Some(region_of) = region_of {
        add_regions(volume, region_of)?;
    }
    if has_values(volume, zone) {
        label(volume, zone, |volume| values(volume, zone).join(BETWEEN_ZONES));
    }
    Ok(())
}

fn add_regions(volume: &mut PersistentVolume, region_of: RegionOf) -> Result<(), Error> {
    // The zone key is there by now, so that the generation may be another one than before.
    let (zone, region) = generation(volume);
    for term in terms_mut(volume) {
        if term.match_expressions.iter().any(|wanted| wanted.key == region) {
            continue;
        }
        let here = term.match_expressions.iter().filter(|wanted| wanted.key == zone);
        let zones: Vec<&str> = here.flat_map(|wanted| &wanted.values).map(String::as_str).collect();
        let found = region_of(&zones)?;
        term.match_expressions.push(NodeRequirement::is(region, found));
    }
    if let [only] = values(volume, region)[..] {
        let only = only.to_string();
        label(volume, region, |_| only);
    }
    Ok(())
}

/// A label that is there already has the last word.
pub(crate) fn label(volume: &mut PersistentVolume, key: &str, value: impl FnOnce(&PersistentVolume) -> String) {
    if !volume.metadata.labels.contains_key(key) {
        let value = value(volume);
        volume.metadata.labels.insert(key.into(), value);
    }
}

/// The one region all zones are in.
pub(crate) fn one_region(
    plugin: Plugin,
    zones: &[&str],
    region: impl Fn(&str) -> Option<&str>,
) -> Result<String, Error> {
    let mut found = zones.iter().map(|zone| region(zone));
    match found.next().flatten() {
        Some(first) if found.all(|other| other == Some(first)) => Ok(first.into()),
        Some(_) | None => {
            let zones = zones.iter().copied().map(String::from).collect();
            Err(Error::NoRegion { plugin, zones })
        }
    }
}

/// TR-10: zones under either of their names get the driver's name.
pub(crate) fn allowed_to_csi(terms: &mut [TopologySelectorTerm], key: &str) {
    for wanted in terms.iter_mut().flat_map(|term| term.match_label_expressions.iter_mut()) {
        if wanted.key == names::ZONE || wanted.key == names::ZONE_BETA {
            set(&mut wanted.key, key);
        }
    }
}

/// The other way round.
pub(crate) fn allowed_to_in_tree(terms: &mut [TopologySelectorTerm], key: &str) {
    for wanted in terms.iter_mut().flat_map(|term| term.match_label_expressions.iter_mut()) {
        if wanted.key == key {
            set(&mut wanted.key, names::ZONE);
        }
    }
}
