//! Volumes that pods hold themselves.

use alloc::format;

use api::{AccessMode, CsiSource, Meta, PersistentVolume, VolumeMode, VolumeSpec};

use crate::Plugin;

/// A volume named after its disk: the name must be unique per disk, because nodes stage it under that name.
pub(crate) fn inline_volume(plugin: Plugin, disk: &str, source: CsiSource, mode: AccessMode) -> PersistentVolume {
    named(format!("{}-{disk}", plugin.driver()), source, mode)
}

pub(crate) fn named(name: impl Into<alloc::string::String>, source: CsiSource, mode: AccessMode) -> PersistentVolume {
    let spec = VolumeSpec {
        access_modes: alloc::vec![mode],
        volume_mode: Some(VolumeMode::Filesystem), // TR-4
        csi: Some(source),
        ..VolumeSpec::default()
    };
    PersistentVolume { metadata: Meta::named(name).into(), spec, ..PersistentVolume::default() }
}
