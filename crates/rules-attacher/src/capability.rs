use alloc::string::String;
use alloc::vec::Vec;

use api::PersistentVolume;
use csi::v1;
use csi::v1::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume, access_mode};

/// How a volume is going to be used, in the driver's terms.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Capability {
    /// By whom.
    pub mode: Mode,
    /// As what.
    pub access: Access,
}

/// Who may use a volume at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// One node, reading and writing.
    SingleNodeWriter,
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
    /// A filesystem.
    Mount {
        /// Its type; empty leaves the choice to the driver.
        fs_type: String,
        /// Mount options.
        flags: Vec<String>,
    },
}

impl Mode {
    /// The whole set of a volume's access modes as one mode (sidecars 1.5). The error says what is wrong.
    pub fn of(volume: &PersistentVolume) -> Result<Mode, &'static str> {
        let modes = &volume.spec.access_modes;
        let has = |mode: &str| modes.iter().any(|m| m == mode);
        if has("ReadWriteOncePod") {
            return match modes.len() {
                1 => Ok(Mode::SingleNodeWriter),
                _more => Err("access mode ReadWriteOncePod cannot be combined with another one"),
            };
        }
        match (has("ReadWriteMany"), has("ReadOnlyMany"), has("ReadWriteOnce")) {
            (true, _, _) => Ok(Mode::MultiNodeWriter),
            (false, true, true) => Err("access modes ReadOnlyMany and ReadWriteOnce cannot be combined"),
            (false, true, false) => Ok(Mode::MultiNodeReader),
            (false, false, true) => Ok(Mode::SingleNodeWriter),
            (false, false, false) => Err("it has no access mode that is known"),
        }
    }

    /// One node is all there may be.
    pub fn is_exclusive(self) -> bool {
        match self {
            Mode::SingleNodeWriter => true,
            Mode::MultiNodeReader | Mode::MultiNodeWriter => false,
        }
    }

    fn to_csi(self) -> access_mode::Mode {
        match self {
            Mode::SingleNodeWriter => access_mode::Mode::SingleNodeWriter,
            Mode::MultiNodeReader => access_mode::Mode::MultiNodeReaderOnly,
            Mode::MultiNodeWriter => access_mode::Mode::MultiNodeMultiWriter,
        }
    }
}

impl Capability {
    /// How a volume is going to be used. The error says what is wrong with it.
    pub fn of(volume: &PersistentVolume) -> Result<Capability, &'static str> {
        let mode = Mode::of(volume)?;
        let fs_type = volume.spec.csi.as_ref().map(|csi| csi.fs_type.clone()).unwrap_or_default();
        let access = match volume.volume_mode() {
            "Block" => Access::Block,
            _filesystem => Access::Mount { fs_type, flags: volume.spec.mount_options.clone() },
        };
        Ok(Capability { mode, access })
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
            access_mode: Some(AccessMode { mode: self.mode.to_csi().into() }),
            access_type: Some(access),
        }
    }
}
