//! Whether a volume can be a claim's: what the binding controller and the scheduler must judge alike.

use alloc::string::String;

use crate::{PersistentVolume, PersistentVolumeClaim};

/// Whether a volume suits a claim, and if not, the first reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fit {
    /// In every respect.
    Fits,
    /// It is being deleted.
    Deleting,
    /// It belonged to a claim that is gone, and awaits its end.
    Released,
    /// Its size, or the claim's, cannot be read; the text says why.
    BadSize(String),
    /// It is smaller than asked.
    TooSmall,
    /// One is a filesystem, the other a raw device.
    OtherMode,
    /// It does not offer an access mode the claim asks for.
    OtherAccess,
    /// It has, or is to have, the attributes of another VolumeAttributesClass.
    OtherAttributes,
    /// It is of another class.
    OtherClass,
}

impl Fit {
    /// What is wrong, as a clause about the volume; `None` if nothing is.
    pub fn obstacle(&self) -> Option<&str> {
        match self {
            Fit::Fits => None,
            Fit::Deleting => Some("is being deleted"),
            Fit::Released => Some("is released from an earlier claim and not cleared for use"),
            Fit::BadSize(text) => Some(text),
            Fit::TooSmall => Some("is smaller than requested"),
            Fit::OtherMode => Some("has another volume mode"),
            Fit::OtherAccess => Some("lacks a requested access mode"),
            Fit::OtherAttributes => Some("is of another VolumeAttributesClass"),
            Fit::OtherClass => Some("is of another class"),
        }
    }

    /// Judges a volume that a user or a provisioner reserved for the claim: the class is theirs to choose (PV-15).
    pub fn of_reserved(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Fit {
        if volume.metadata.is_deleting() {
            return Fit::Deleting;
        }
        if volume.is_released() {
            return Fit::Released;
        }
        let (requested, capacity) = match (requested(claim), capacity(volume)) {
            (Ok(requested), Ok(capacity)) => (requested, capacity),
            (Err(text), _) | (_, Err(text)) => return Fit::BadSize(text),
        };
        if capacity < requested {
            return Fit::TooSmall;
        }
        if claim.volume_mode() != volume.volume_mode() {
            return Fit::OtherMode; // PV-10
        }
        // PV-12: an empty name says the same as none.
        let attributes = |class: &Option<String>| class.clone().unwrap_or_default();
        if attributes(&claim.spec.volume_attributes_class_name) != attributes(&volume.spec.volume_attributes_class_name)
        {
            return Fit::OtherAttributes;
        }
        // PV-11: every mode asked must be offered.
        if claim.spec.access_modes.iter().any(|mode| !volume.spec.access_modes.contains(mode)) {
            return Fit::OtherAccess;
        }
        Fit::Fits
    }

    /// Judges a volume that belongs to nobody: the class must agree as well (PV-14, PV-16).
    pub fn of_free(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Fit {
        match Fit::of_reserved(claim, volume) {
            Fit::Fits if claim.class().unwrap_or("") != volume.class() => Fit::OtherClass,
            judged => judged,
        }
    }
}

/// The requested size in bytes; nothing requested is nothing needed.
pub fn requested(claim: &PersistentVolumeClaim) -> Result<i64, String> {
    match claim.requested() {
        None => Ok(0),
        Some(quantity) => quantity.bytes().map_err(|error| alloc::format!("cannot be compared: {error}")),
    }
}

/// The volume's size in bytes.
pub fn capacity(volume: &PersistentVolume) -> Result<i64, String> {
    match volume.spec.capacity.get("storage") {
        None => Err("states no storage capacity".into()),
        Some(quantity) => quantity.bytes().map_err(|error| alloc::format!("cannot be compared: {error}")),
    }
}
