//! Volumes of OpenStack's Cinder (TR-36 to TR-38).

use api::{AccessMode, Cinder, CsiSource, InTreeSource, PersistentVolume, StorageClass, names};

use crate::inline::inline_volume;
use crate::{Error, Losses, Plugin, class, topology};

const ME: Plugin = Plugin::Cinder;
const KEY: &str = "topology.cinder.csi.openstack.org/zone";

/// TR-36: `availability` stays a parameter.
pub(crate) fn class_to_csi(class: &mut StorageClass) -> Result<(), Error> {
    class::each_once(class)?;
    class::rename_fstype(class)?;
    topology::allowed_to_csi(&mut class.allowed_topologies, KEY);
    Ok(())
}

pub(crate) fn class_to_in_tree(class: &mut StorageClass) -> Result<(), Error> {
    class::to_in_tree(class, ME)
}

/// TR-37: the driver has its own credentials.
fn source(disk: &Cinder, losses: &mut Losses) -> CsiSource {
    losses.note_if(disk.secret_ref.is_some(), "cinder.secretRef");
    CsiSource {
        driver: ME.driver().into(),
        volume_handle: disk.volume_id.clone(),
        read_only: disk.read_only,
        fs_type: disk.fs_type.clone(),
        ..CsiSource::default()
    }
}

pub(crate) fn to_csi(disk: &Cinder, volume: &mut PersistentVolume, losses: &mut Losses) -> CsiSource {
    topology::to_csi(volume, KEY);
    source(disk, losses)
}

pub(crate) fn inline(disk: &Cinder, losses: &mut Losses) -> PersistentVolume {
    inline_volume(ME, &disk.volume_id, source(disk, losses), AccessMode::ReadWriteOnce)
}

/// TR-38.
pub(crate) fn to_in_tree(source: &CsiSource, volume: &mut PersistentVolume) -> Result<InTreeSource, Error> {
    topology::to_in_tree(volume, KEY, None)?;
    Ok(InTreeSource::Cinder(Cinder {
        volume_id: source.volume_handle.clone(),
        fs_type: source.fs_type.clone(),
        read_only: source.read_only,
        ..Cinder::default()
    }))
}

/// Attributes that have their place in the in-tree form.
pub(crate) const ATTRIBUTES: [&str; 1] = [names::PROVISIONER_IDENTITY];
