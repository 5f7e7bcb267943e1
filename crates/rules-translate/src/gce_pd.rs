//! Persistent disks of Google's Compute Engine (TR-18 to TR-23).

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{AccessMode, CsiSource, GcePersistentDisk, InTreeSource, PersistentVolume, StorageClass, names};

use crate::inline::inline_volume;
use crate::{Error, Plugin, class, partition, topology};

const ME: Plugin = Plugin::GcePd;
const KEY: &str = "topology.gke.io/zone";
/// Stands in a handle for what only the node knows.
const UNSPECIFIED: &str = "UNSPECIFIED";
const WANT_HANDLE: &str = "projects/PROJECT/zones/ZONE/disks/NAME or projects/PROJECT/regions/REGION/disks/NAME";
const WANT_NODE: &str = "projects/PROJECT/zones/ZONE/instances/NAME";

pub(crate) fn class_to_csi(class: &mut StorageClass) -> Result<(), Error> {
    class::to_csi(class, KEY, true)
}

pub(crate) fn class_to_in_tree(class: &mut StorageClass) -> Result<(), Error> {
    class::to_in_tree(class, ME)
}

fn source(disk: &GcePersistentDisk, handle: String) -> CsiSource {
    let partition = if disk.partition == 0 { String::new() } else { disk.partition.to_string() };
    CsiSource {
        driver: ME.driver().into(),
        volume_handle: handle,
        read_only: disk.read_only,
        fs_type: disk.fs_type.clone(),
        volume_attributes: [(partition::KEY.into(), partition)].into(),
        ..CsiSource::default()
    }
}

/// TR-19: the zone label decides, whatever the node affinity says.
fn handle(volume: &PersistentVolume, disk: &str) -> Result<String, Error> {
    let label = |key| volume.metadata.labels.get(key).filter(|zone| !zone.is_empty());
    let Some(zones) = label(names::ZONE_BETA).or_else(|| label(names::ZONE)) else {
        return Ok(format!("projects/{UNSPECIFIED}/zones/{UNSPECIFIED}/disks/{disk}"));
    };
    // No label has a slash, and one in a handle would be taken for the end of the zone.
    if zones.contains('/') {
        let (value, want) = (zones.clone(), "the name of a zone, such as us-central1-a");
        return Err(Error::Malformed { plugin: ME, field: "zone label", value, want });
    }
    let zones: Vec<&str> = zones.split(topology::BETWEEN_ZONES).collect();
    match &zones[..] {
        [zone] => Ok(format!("projects/{UNSPECIFIED}/zones/{zone}/disks/{disk}")),
        several => Ok(format!("projects/{UNSPECIFIED}/regions/{}/disks/{disk}", region(several)?)),
    }
}

pub(crate) fn to_csi(disk: &GcePersistentDisk, volume: &mut PersistentVolume) -> Result<CsiSource, Error> {
    let source = source(disk, handle(volume, &disk.pd_name)?);
    topology::to_csi(volume, KEY);
    if let Some(mode) = access_mode(&volume.spec.access_modes) {
        volume.spec.access_modes = alloc::vec![mode];
    }
    Ok(source)
}

/// TR-20: the driver serves one writer or many readers, and never both.
fn access_mode(modes: &[AccessMode]) -> Option<AccessMode> {
    let has = |wanted| modes.contains(&wanted);
    match modes.is_empty() {
        true => None,
        false
            if has(AccessMode::ReadOnlyMany) && !has(AccessMode::ReadWriteOnce) && !has(AccessMode::ReadWriteMany) =>
        {
            Some(AccessMode::ReadOnlyMany)
        }
        false => Some(AccessMode::ReadWriteOnce),
    }
}

pub(crate) fn inline(disk: &GcePersistentDisk) -> PersistentVolume {
    let mode = if disk.read_only { AccessMode::ReadOnlyMany } else { AccessMode::ReadWriteOnce };
    let handle = format!("projects/{UNSPECIFIED}/zones/{UNSPECIFIED}/disks/{}", disk.pd_name);
    inline_volume(ME, &disk.pd_name, source(disk, handle), mode)
}

pub(crate) fn to_in_tree(source: &CsiSource, volume: &mut PersistentVolume) -> Result<InTreeSource, Error> {
    let [.., disk] = elements(&source.volume_handle)?;
    let partition = match source.volume_attributes.get(partition::KEY).filter(|text| !text.is_empty()) {
        Some(text) => partition::read(ME, text)?,
        None => 0,
    };
    topology::to_in_tree(volume, KEY, Some(region))?;
    Ok(InTreeSource::GcePersistentDisk(GcePersistentDisk {
        pd_name: disk.into(),
        fs_type: source.fs_type.clone(),
        partition,
        read_only: source.read_only,
        ..GcePersistentDisk::default()
    }))
}

/// Attributes that have their place in the in-tree form.
pub(crate) const ATTRIBUTES: [&str; 2] = [partition::KEY, names::PROVISIONER_IDENTITY];

/// The six parts of a handle; what follows them does not matter.
fn elements(handle: &str) -> Result<[&str; 6], Error> {
    six(handle, "volumeHandle", WANT_HANDLE)
}

fn six<'a>(path: &'a str, field: &'static str, want: &'static str) -> Result<[&'a str; 6], Error> {
    let mut parts = path.split('/');
    let mut next = || parts.next();
    match (next(), next(), next(), next(), next(), next()) {
        (Some(a), Some(b), Some(c), Some(d), Some(e), Some(f)) => Ok([a, b, c, d, e, f]),
        _fewer => Err(Error::Malformed { plugin: ME, field, value: path.into(), want }),
    }
}

fn region(zones: &[&str]) -> Result<String, Error> {
    topology::one_region(ME, zones, region_of)
}

/// us-central1-a is in us-central1.
fn region_of(zone: &str) -> Option<&str> {
    let (region, _letter) = zone.rsplit_once('-')?;
    (region.matches('-').count() == 1).then_some(region)
}

/// TR-23: the node's id tells the project and the zone that a handle leaves open.
pub(crate) fn repair(handle: &str, node_id: &str) -> Result<String, Error> {
    let [_, project, kind, place, _, disk] = elements(handle)?;
    if project != UNSPECIFIED {
        return Ok(handle.into());
    }
    let [_, project, _, zone, _, _] = six(node_id, "node id", WANT_NODE)?;
    let open = place == UNSPECIFIED;
    match kind {
        "zones" => Ok(format!("projects/{project}/zones/{}/disks/{disk}", if open { zone } else { place })),
        "regions" if open => {
            let region = region(&[zone])?;
            Ok(format!("projects/{project}/regions/{region}/disks/{disk}"))
        }
        "regions" => Ok(format!("projects/{project}/regions/{place}/disks/{disk}")),
        _other => Err(Error::Malformed { plugin: ME, field: "volumeHandle", value: handle.into(), want: WANT_HANDLE }),
    }
}

/// The same handle with less and less said.
pub(crate) fn open_handles(handle: &str) -> Vec<String> {
    let mut all = alloc::vec![handle.to_string()];
    if let Ok([_, _, kind, place, _, disk]) = elements(handle) {
        all.push(format!("projects/{UNSPECIFIED}/{kind}/{place}/disks/{disk}"));
        all.push(format!("projects/{UNSPECIFIED}/{kind}/{UNSPECIFIED}/disks/{disk}"));
    }
    all
}

/// Two handles may mean the same disk: what one of them leaves open is what the other says.
pub(crate) fn same_disk(one: &str, other: &str) -> bool {
    let (Ok(one), Ok(other)) = (elements(one), elements(other)) else { return false };
    one.iter().zip(other).all(|(one, other)| *one == other || *one == UNSPECIFIED || other == UNSPECIFIED)
}
