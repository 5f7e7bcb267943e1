//! Volumes that pods hold themselves.

use alloc::format;

use api::{CsiSource, Meta, PersistentVolume, VolumeSpec};

use crate::Plugin;

pub(crate) const RWO: &str = "ReadWriteOnce";
pub(crate) const ROX: &str = "ReadOnlyMany";
pub(crate) const RWX: &str = "ReadWriteMany";

/// A volume named after its disk: the name must be unique per disk, because nodes stage it under that name.
pub(crate) fn inline_volume(plugin: Plugin, disk: &str, source: CsiSource, mode: &str) -> PersistentVolume {
    named(format!("{}-{disk}", plugin.driver()), source, mode)
}

pub(crate) fn named(name: impl Into<alloc::string::String>, source: CsiSource, mode: &str) -> PersistentVolume {
    let spec = VolumeSpec {
        access_modes: alloc::vec![mode.into()],
        volume_mode: Some("Filesystem".into()), // TR-4
        csi: Some(source),
        ..VolumeSpec::default()
    };
    PersistentVolume { metadata: Meta::named(name), spec, ..PersistentVolume::default() }
}
