use alloc::string::String;
use alloc::vec::Vec;

use api::{AccessMode, VolumeMode};
use csi::v1;
use csi::v1::volume_capability::{self, AccessType, BlockVolume, MountVolume, access_mode};

/// How a volume is going to be used, in the driver's terms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Capability {
    pub mode: Mode,
    pub access: Access,
}

/// Who may use a volume at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// One node, reading and writing.
    #[default]
    SingleNodeWriter,
    /// One node, one pod on it reading and writing.
    SingleNodeSingleWriter,
    /// One node, many pods on it reading and writing.
    SingleNodeMultiWriter,
    /// Many nodes, reading.
    MultiNodeReader,
    /// Many nodes, reading and writing.
    MultiNodeWriter,
}

/// What a volume is used as.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A raw device.
    Block,
    Mount {
        /// Its type; empty leaves the choice to the driver.
        fs_type: String,
        flags: Vec<String>,
    },
}

impl Default for Access {
    fn default() -> Access {
        Access::Mount { fs_type: String::new(), flags: Vec::new() }
    }
}

impl Mode {
    /// A whole set of access modes as one mode (sidecars 1.5). `single_node_multi_writer` is the driver's capability
    /// SINGLE_NODE_MULTI_WRITER. The error says what is wrong.
    pub fn of(modes: &[AccessMode], single_node_multi_writer: bool) -> Result<Mode, &'static str> {
        use AccessMode::{ReadOnlyMany, ReadWriteMany, ReadWriteOnce, ReadWriteOncePod};
        let has = |mode| modes.contains(&mode);
        if has(ReadWriteOncePod) {
            return match (modes.iter().all(|mode| *mode == ReadWriteOncePod), single_node_multi_writer) {
                (true, true) => Ok(Mode::SingleNodeSingleWriter),
                (true, false) => Ok(Mode::SingleNodeWriter),
                (false, true | false) => Err("access mode ReadWriteOncePod cannot be combined with another one"),
            };
        }
        match (has(ReadWriteMany), has(ReadOnlyMany), has(ReadWriteOnce), single_node_multi_writer) {
            (true, _, _, _) => Ok(Mode::MultiNodeWriter),
            (false, true, true, _) => Err("access modes ReadOnlyMany and ReadWriteOnce cannot be combined"),
            (false, true, false, _) => Ok(Mode::MultiNodeReader),
            (false, false, true, true) => Ok(Mode::SingleNodeMultiWriter),
            (false, false, true, false) => Ok(Mode::SingleNodeWriter),
            (false, false, false, _) => Err("it has no access mode that is known"),
        }
    }

    /// One node is all there may be.
    pub fn is_exclusive(self) -> bool {
        match self {
            Mode::SingleNodeWriter | Mode::SingleNodeSingleWriter | Mode::SingleNodeMultiWriter => true,
            Mode::MultiNodeReader | Mode::MultiNodeWriter => false,
        }
    }

    /// As it travels.
    pub fn to_csi(self) -> access_mode::Mode {
        match self {
            Mode::SingleNodeWriter => access_mode::Mode::SingleNodeWriter,
            Mode::SingleNodeSingleWriter => access_mode::Mode::SingleNodeSingleWriter,
            Mode::SingleNodeMultiWriter => access_mode::Mode::SingleNodeMultiWriter,
            Mode::MultiNodeReader => access_mode::Mode::MultiNodeReaderOnly,
            Mode::MultiNodeWriter => access_mode::Mode::MultiNodeMultiWriter,
        }
    }
}

impl Capability {
    /// How a volume is used: one of a volume mode that is not known as a filesystem.
    pub fn new(mode: Mode, volume_mode: &VolumeMode, fs_type: &str, mount_options: &[String]) -> Capability {
        let access = match volume_mode {
            VolumeMode::Block => Access::Block,
            VolumeMode::Filesystem | VolumeMode::Other(_) => {
                Access::Mount { fs_type: fs_type.into(), flags: mount_options.to_vec() }
            }
        };
        Capability { mode, access }
    }

    /// As it travels.
    pub fn to_csi(&self) -> v1::VolumeCapability {
        let access = match &self.access {
            Access::Block => AccessType::Block(BlockVolume {}),
            Access::Mount { fs_type, flags } => AccessType::Mount(MountVolume {
                fs_type: fs_type.clone(),
                mount_flags: flags.clone(),
                ..MountVolume::default()
            }),
        };
        v1::VolumeCapability {
            access_mode: Some(volume_capability::AccessMode { mode: self.mode.to_csi().into() }),
            access_type: Some(access),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Sidecars 1.5, every row in both columns.
    #[test]
    fn a_set_of_access_modes_is_one_mode_or_none() {
        use Mode::*;
        let of = |modes: &[&str], apart| {
            let modes: Vec<AccessMode> = modes.iter().map(|mode| AccessMode::from(*mode)).collect();
            Mode::of(&modes, apart).ok()
        };
        let (pod, once, many, read) = ("ReadWriteOncePod", "ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany");
        for (modes, plain, apart) in [
            (&[pod][..], Some(SingleNodeWriter), Some(SingleNodeSingleWriter)),
            (&[pod, once], None, None),
            (&[many], Some(MultiNodeWriter), Some(MultiNodeWriter)),
            (&[read, many, once], Some(MultiNodeWriter), Some(MultiNodeWriter)),
            (&[read, once], None, None),
            (&[read], Some(MultiNodeReader), Some(MultiNodeReader)),
            (&[once], Some(SingleNodeWriter), Some(SingleNodeMultiWriter)),
            (&[], None, None),
            (&["Nonsense"], None, None),
        ] {
            assert_eq!(of(modes, false), plain, "{modes:?}");
            assert_eq!(of(modes, true), apart, "{modes:?}");
        }
    }
}
