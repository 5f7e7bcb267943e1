//! Data disks of Azure (TR-24 to TR-29). Their node affinity and labels are left as they are.

use alloc::string::{String, ToString};

use api::{AccessMode, AzureDisk, CsiSource, InTreeSource, PersistentVolume, StorageClass, names};

use crate::inline::named;
use crate::{Error, Losses, Plugin, class};

const ME: Plugin = Plugin::AzureDisk;
const KEY: &str = "topology.disk.csi.azure.com/zone";
const MANAGED: &str = "Managed";
const KIND: &str = "kind";
const CACHING: &str = "cachingmode";
const FSTYPE: &str = "fstype";
const WANT: &str = "/subscriptions/ID/resourceGroups/GROUP/providers/Microsoft.Compute/disks/NAME or http…/vhds/NAME";

pub(crate) fn class_to_csi(class: &mut StorageClass) -> Result<(), Error> {
    class::to_csi(class, KEY, false)?;
    // Where there are no zones, the plugin counted fault domains, and the driver says nothing.
    let all = class.allowed_topologies.iter_mut().flat_map(|term| term.match_label_expressions.iter_mut());
    for value in all.filter(|wanted| wanted.key == KEY).flat_map(|wanted| wanted.values.iter_mut()) {
        if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
            value.clear();
        }
    }
    Ok(())
}

pub(crate) fn class_to_in_tree(class: &mut StorageClass, losses: &mut Losses) -> Result<(), Error> {
    class::to_in_tree(class, ME)?;
    let mut all = class.allowed_topologies.iter().flat_map(|term| &term.match_label_expressions);
    let zoneless = all.any(|wanted| wanted.key == names::ZONE && wanted.values.iter().any(String::is_empty));
    losses.note_if(zoneless, "the number of the fault domain behind an empty zone in allowedTopologies");
    Ok(())
}

/// TR-25, TR-26.
fn source(disk: &AzureDisk) -> Result<CsiSource, Error> {
    if let Some(kind) = disk.kind.as_deref().filter(|kind| !kind.eq_ignore_ascii_case(MANAGED)) {
        let want = "Managed, because the CSI driver serves no other";
        return Err(Error::Malformed { plugin: ME, field: "kind", value: kind.into(), want });
    }
    let mut source = CsiSource {
        driver: ME.driver().into(),
        volume_handle: disk.disk_uri.clone(),
        read_only: disk.read_only.unwrap_or_default(),
        fs_type: disk.fs_type.clone().unwrap_or_default(),
        volume_attributes: [(KIND.into(), MANAGED.into())].into(),
        ..CsiSource::default()
    };
    if let Some(fs_type) = &disk.fs_type {
        source.volume_attributes.insert(FSTYPE.into(), fs_type.clone());
    }
    Ok(source)
}

pub(crate) fn to_csi(disk: &AzureDisk, losses: &mut Losses) -> Result<CsiSource, Error> {
    let mut source = source(disk)?;
    if let Some(mode) = &disk.caching_mode {
        source.volume_attributes.insert(CACHING.into(), mode.clone());
    }
    // The name comes back from the handle.
    losses.note_if(name_in(&disk.disk_uri) != Some(&disk.disk_name), "azureDisk.diskName");
    Ok(source)
}

/// TR-27: the name is the whole address of the disk, slashes and all.
pub(crate) fn inline(disk: &AzureDisk) -> Result<PersistentVolume, Error> {
    let mut source = source(disk)?;
    if let Some(mode) = disk.caching_mode.as_ref().filter(|mode| !mode.is_empty()) {
        source.volume_attributes.insert(CACHING.into(), mode.clone());
    }
    Ok(named(disk.disk_uri.as_str(), source, AccessMode::ReadWriteOnce))
}

/// TR-28.
pub(crate) fn to_in_tree(source: &CsiSource) -> Result<InTreeSource, Error> {
    let attribute = |wanted: &str| {
        let mut found = source.volume_attributes.iter().filter(|(key, _)| class::is(key, wanted));
        found.next().map(|(_, value)| value.clone()).filter(|value| !value.is_empty())
    };
    Ok(InTreeSource::AzureDisk(AzureDisk {
        disk_name: disk_name(&source.volume_handle)?,
        disk_uri: source.volume_handle.clone(),
        caching_mode: attribute(CACHING),
        fs_type: attribute(FSTYPE).or_else(|| Some(source.fs_type.clone())),
        read_only: Some(source.read_only),
        kind: Some(MANAGED.into()),
        ..AzureDisk::default()
    }))
}

/// Attributes that have their place in the in-tree form.
pub(crate) const ATTRIBUTES: [&str; 4] = [KIND, CACHING, FSTYPE, names::PROVISIONER_IDENTITY];

fn disk_name(uri: &str) -> Result<String, Error> {
    let bad = || Error::Malformed { plugin: ME, field: "disk", value: uri.to_string(), want: WANT };
    name_in(uri).map(String::from).ok_or_else(bad)
}

fn name_in(uri: &str) -> Option<&str> {
    let http = uri.len() > 4 && uri.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("http"));
    if http { unmanaged(uri) } else { managed(uri) }
}

fn managed(uri: &str) -> Option<&str> {
    let (before, name) = last(uri, "/providers/Microsoft.Compute/disks/")?;
    let (before, _group) = before.rsplit_once("/resourceGroups/")?;
    before.contains("/subscriptions/").then_some(name)
}

fn unmanaged(uri: &str) -> Option<&str> {
    let (before, name) = last(uri, "/vhds/")?;
    let (_, rest) = before.split_once("http")?;
    rest.contains("://").then_some(name)
}

/// Around the last mark that something follows.
fn last<'a>(text: &'a str, mark: &str) -> Option<(&'a str, &'a str)> {
    match text.rsplit_once(mark)? {
        // The mark is the end: the one before it, which may reach into this one.
        (_, "") => {
            let mut marks = text
                .rmatch_indices(mark)
                .filter_map(|(at, mark)| Some((text.get(..at)?, text.get(at..)?.strip_prefix(mark)?)));
            marks.find(|(_, after)| !after.is_empty())
        }
        found => Some(found),
    }
}
