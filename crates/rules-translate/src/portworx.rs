//! Volumes of Portworx (TR-43 to TR-45).

use alloc::format;

use api::{
    AccessMode, CsiSource, InTreeSource, PersistentVolume, PortworxVolume, SecretReference, StorageClass, names,
};

use crate::inline::inline_volume;
use crate::{Error, Losses, Plugin, class};

const ME: Plugin = Plugin::Portworx;
/// The calls that take the secret along.
const CALLS: [&str; 6] =
    ["provisioner", "controller-publish", "node-publish", "node-stage", "controller-expand", "node-expand"];
const PARTS: [(&str, &str); 2] =
    [(names::PORTWORX_SECRET_NAME, "name"), (names::PORTWORX_SECRET_NAMESPACE, "namespace")];

/// TR-43: the one secret of the plugin goes with every call of the driver.
pub(crate) fn class_to_csi(class: &mut StorageClass) -> Result<(), Error> {
    class::each_once(class)?;
    for (key, part) in PARTS {
        if let Some(value) = class::remove(&mut class.parameters, key) {
            class.parameters.extend(CALLS.iter().map(|call| (parameter(call, part), value.clone())));
        }
    }
    Ok(())
}

fn parameter(call: &str, part: &str) -> alloc::string::String {
    format!("{}{call}-secret-{part}", names::RESERVED_PARAMETER_PREFIX)
}

/// Six secrets become one only if they are the same.
pub(crate) fn class_to_in_tree(class: &mut StorageClass) -> Result<(), Error> {
    for (key, part) in PARTS {
        let values = CALLS.map(|call| class.parameters.get(&parameter(call, part)).cloned());
        if let Some(one) = values[0].clone()
            && values.iter().all(|value| value.as_ref() == Some(&one))
        {
            class.parameters.retain(|name, _| !CALLS.iter().any(|call| *name == parameter(call, part)));
            class.parameters.insert(key.into(), one);
        }
    }
    Ok(())
}

fn source(disk: &PortworxVolume) -> CsiSource {
    CsiSource {
        driver: ME.driver().into(),
        volume_handle: disk.volume_id.clone(),
        fs_type: disk.fs_type.clone(),
        ..CsiSource::default()
    }
}

/// TR-44.
pub(crate) fn to_csi(disk: &PortworxVolume, volume: &PersistentVolume, losses: &mut Losses) -> CsiSource {
    losses.note_if(disk.read_only, "portworxVolume.readOnly");
    let annotation = |key| volume.metadata.annotation(key);
    let secret = match (annotation(names::PORTWORX_SECRET_NAME), annotation(names::PORTWORX_SECRET_NAMESPACE)) {
        (Some(name), Some(namespace)) => Some(SecretReference { name: name.into(), namespace: namespace.into() }),
        (Some(_) | None, Some(_) | None) => None,
    };
    CsiSource {
        controller_publish_secret_ref: secret.clone(),
        node_stage_secret_ref: secret.clone(),
        node_publish_secret_ref: secret.clone(),
        controller_expand_secret_ref: secret.clone(),
        node_expand_secret_ref: secret,
        ..source(disk)
    }
}

/// Whether it is read-only is said by the access mode.
pub(crate) fn inline(disk: &PortworxVolume) -> PersistentVolume {
    inline_volume(
        ME,
        &disk.volume_id,
        source(disk),
        if disk.read_only { AccessMode::ReadOnlyMany } else { AccessMode::ReadWriteOnce },
    )
}

/// TR-45.
pub(crate) fn to_in_tree(source: &CsiSource) -> InTreeSource {
    InTreeSource::PortworxVolume(PortworxVolume {
        volume_id: source.volume_handle.clone(),
        fs_type: source.fs_type.clone(),
        read_only: source.read_only,
        ..PortworxVolume::default()
    })
}

/// Attributes that have their place in the in-tree form.
pub(crate) const ATTRIBUTES: [&str; 1] = [names::PROVISIONER_IDENTITY];
