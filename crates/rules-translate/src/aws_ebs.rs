//! Disks of Amazon's Elastic Block Store (TR-12 to TR-17).

use alloc::string::{String, ToString};

use api::{AccessMode, AwsElasticBlockStore, CsiSource, InTreeSource, PersistentVolume, StorageClass, names};

use crate::inline::inline_volume;
use crate::{Error, Plugin, class, partition, topology};

const ME: Plugin = Plugin::AwsEbs;
const KEY: &str = "topology.ebs.csi.aws.com/zone";
const IOPS: &str = "iopspergb";
const MORE_IOPS: &str = "allowautoiopspergbincrease";
const WANT: &str = "vol-ID, aws://ZONE/vol-ID or aws:///vol-ID";

pub(crate) fn class_to_csi(class: &mut StorageClass) -> Result<(), Error> {
    class::to_csi(class, KEY, true)?;
    // The plugin raised too small a number by itself; the driver wants to be allowed to.
    if class.parameters.keys().any(|key| key.eq_ignore_ascii_case(IOPS)) {
        class.parameters.insert(MORE_IOPS.into(), "true".into());
    }
    Ok(())
}

pub(crate) fn class_to_in_tree(class: &mut StorageClass) -> Result<(), Error> {
    class::to_in_tree(class, ME)?;
    let raised = class.parameters.get(MORE_IOPS).is_some_and(|value| value == "true");
    if raised && class.parameters.keys().any(|key| key.eq_ignore_ascii_case(IOPS)) {
        class.parameters.remove(MORE_IOPS);
    }
    Ok(())
}

fn source(disk: &AwsElasticBlockStore) -> Result<CsiSource, Error> {
    Ok(CsiSource {
        driver: ME.driver().into(),
        volume_handle: handle(&disk.volume_id)?,
        read_only: disk.read_only,
        fs_type: disk.fs_type.clone(),
        volume_attributes: [(partition::KEY.into(), disk.partition.to_string())].into(),
        ..CsiSource::default()
    })
}

/// TR-13: a bare id is taken as it is; one with its zone in front is looked at.
fn handle(id: &str) -> Result<String, Error> {
    let Some(rest) = id.strip_prefix("aws://") else { return Ok(id.into()) };
    let bad = || Error::Malformed { plugin: ME, field: "volumeID", value: id.into(), want: WANT };
    let (_zone, path) = rest.split_once('/').ok_or_else(bad)?;
    let path = path.trim_matches('/');
    if path.starts_with("vol-") && !path.contains('/') { Ok(path.into()) } else { Err(bad()) }
}

pub(crate) fn to_csi(disk: &AwsElasticBlockStore, volume: &mut PersistentVolume) -> Result<CsiSource, Error> {
    let source = source(disk)?;
    topology::to_csi(volume, KEY);
    Ok(source)
}

pub(crate) fn inline(disk: &AwsElasticBlockStore) -> Result<PersistentVolume, Error> {
    let source = source(disk)?;
    Ok(inline_volume(ME, &source.volume_handle.clone(), source, AccessMode::ReadWriteOnce))
}

pub(crate) fn to_in_tree(source: &CsiSource, volume: &mut PersistentVolume) -> Result<InTreeSource, Error> {
    let partition = match source.volume_attributes.get(partition::KEY) {
        Some(text) => partition::read(ME, text)?,
        None => 0,
    };
    topology::to_in_tree(volume, KEY, Some(region))?;
    Ok(InTreeSource::AwsElasticBlockStore(AwsElasticBlockStore {
        volume_id: source.volume_handle.clone(),
        fs_type: source.fs_type.clone(),
        partition,
        read_only: source.read_only,
        ..AwsElasticBlockStore::default()
    }))
}

/// Attributes that have their place in the in-tree form.
pub(crate) const ATTRIBUTES: [&str; 2] = [partition::KEY, names::PROVISIONER_IDENTITY];

fn region(zones: &[&str]) -> Result<String, Error> {
    topology::one_region(ME, zones, region_of)
}

/// TR-16: us-west-2a is in us-west-2; the local zone us-west-2-lax-1a and the wavelength zone us-east-1-wl1-bos-wlz-1 are
/// named after the region in front.
fn region_of(zone: &str) -> Option<&str> {
    let last = zone.rsplit('-').next()?;
    match zone.split('-').count() {
        3 | 4 if last.len() == 2 => zone.get(..zone.len().checked_sub(1)?),
        5 | 7 => zone.match_indices('-').nth(2).and_then(|(third, _)| zone.get(..third)),
        _other => None,
    }
}
