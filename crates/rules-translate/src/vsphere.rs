//! Disks of vSphere (TR-39 to TR-42).

use alloc::format;
use alloc::string::String;

use api::{AccessMode, CsiSource, InTreeSource, PersistentVolume, StorageClass, VsphereVolume, names};

use crate::inline::inline_volume;
use crate::{Error, Losses, Plugin, class, topology};

const ME: Plugin = Plugin::Vsphere;
const ZONE_KEY: &str = "topology.csi.vmware.com/zone";
const REGION_KEY: &str = "topology.csi.vmware.com/region";
const POLICY: &str = "storagepolicyname";
/// Where the driver says what the plugin would have called the disk.
const PATH: &str = "initialvolumefilepath";
/// Tells the driver that the request comes from a class of the plugin.
const MIGRATION: &str = "csimigration";
const SUFFIX: &str = "-migrationparam";
/// Parameters of the plugin that the driver knows with the suffix.
const KNOWN: [&str; 8] = [
    "datastore",
    "diskformat",
    "hostfailurestotolerate",
    "forceprovisioning",
    "cachereservation",
    "diskstripes",
    "objectspacereservation",
    "iopslimit",
];

/// TR-39.
pub(crate) fn class_to_csi(class: &mut StorageClass, losses: &mut Losses) -> Result<(), Error> {
    class::each_once(class)?;
    let mut parameters = class::Parameters::new();
    for (name, value) in core::mem::take(&mut class.parameters) {
        let known = [class::FSTYPE, POLICY].into_iter().chain(KNOWN).find(|word| class::is(&name, word));
        let key: String = match known {
            Some(class::FSTYPE) => names::FSTYPE_PARAMETER.into(),
            Some(POLICY) => POLICY.into(),
            Some(known) => format!("{known}{SUFFIX}"),
            None => {
                losses.note(format!("parameter {name}"));
                continue;
            }
        };
        parameters.insert(key, value);
    }
    parameters.insert(MIGRATION.into(), "true".into());
    class.parameters = parameters;
    topology::allowed_to_csi(&mut class.allowed_topologies, ZONE_KEY);
    Ok(())
}

pub(crate) fn class_to_in_tree(class: &mut StorageClass) -> Result<(), Error> {
    class::to_in_tree(class, ME)?;
    class.parameters.remove(MIGRATION);
    for known in KNOWN {
        if let Some(value) = class.parameters.remove(&format!("{known}{SUFFIX}")) {
            class.parameters.insert(known.into(), value);
        }
    }
    Ok(())
}

fn source(disk: &VsphereVolume, losses: &mut Losses) -> CsiSource {
    losses.note_if(!disk.storage_policy_id.is_empty(), "vsphereVolume.storagePolicyID");
    let mut source = CsiSource {
        driver: ME.driver().into(),
        volume_handle: disk.volume_path.clone(),
        fs_type: disk.fs_type.clone(),
        ..CsiSource::default()
    };
    if !disk.storage_policy_name.is_empty() {
        source.volume_attributes.insert(POLICY.into(), disk.storage_policy_name.clone());
    }
    source
}

/// TR-40: zone and region each under the driver's key, one value each where only labels tell.
pub(crate) fn to_csi(disk: &VsphereVolume, volume: &mut PersistentVolume, losses: &mut Losses) -> CsiSource {
    let (zone, region) = topology::generation(volume);
    for (label, key) in [(zone, ZONE_KEY), (region, REGION_KEY)] {
        if topology::has_values(volume, label) {
            topology::rename(volume, label, key);
        } else if let Some(value) = volume.metadata.labels.get(label).cloned() {
            topology::add(volume, key, core::iter::once(value.as_str()));
        }
    }
    source(disk, losses)
}

/// TR-41.
pub(crate) fn inline(disk: &VsphereVolume, losses: &mut Losses) -> PersistentVolume {
    inline_volume(ME, &disk.volume_path, source(disk, losses), AccessMode::ReadWriteOnce)
}

/// TR-42: the driver's own name for the disk is none that the plugin knew.
pub(crate) fn to_in_tree(source: &CsiSource, volume: &mut PersistentVolume, losses: &mut Losses) -> InTreeSource {
    let (zone, region) = topology::generation(volume);
    topology::rename(volume, ZONE_KEY, zone);
    topology::rename(volume, REGION_KEY, region);
    for label in [zone, region] {
        if let Some(first) = topology::values(volume, label).first().map(|first| String::from(*first)) {
            topology::label(volume, label, |_| first);
        }
    }
    losses.note_if(source.volume_attributes.contains_key(POLICY), "attribute storagepolicyname");
    losses.note_if(source.read_only, "csi.readOnly");
    losses.note_if(!source.volume_attributes.contains_key(PATH), "csi.volumeHandle");
    InTreeSource::VsphereVolume(VsphereVolume {
        volume_path: source.volume_attributes.get(PATH).cloned().unwrap_or_default(),
        fs_type: source.fs_type.clone(),
        ..VsphereVolume::default()
    })
}

/// Attributes that have their place in the in-tree form, or are named when they are lost.
pub(crate) const ATTRIBUTES: [&str; 3] = [PATH, POLICY, names::PROVISIONER_IDENTITY];
