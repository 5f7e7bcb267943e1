//! What a fresh cluster needs before anybody asks for a volume: the driver's object and a default class.

use anyhow::{Result, bail};
use api::{BindingMode, CSIDriver, DriverSpec, Meta, Object, ReclaimPolicy, StorageClass, Write, names};
use control::{Outcome, Refusal};
use io_kube::Kube;

use crate::layout::DRIVER;

/// The class claims get when they name none.
pub const CLASS: &str = "local";

/// Creates what is missing. What a user has changed since stays as it is.
pub async fn objects(kube: &Kube) -> Result<()> {
    for object in [driver(), class()] {
        let write = Write::Create { target: object.reference(), body: object.to_json() };
        match kube.write(&write).await {
            Outcome::Done(_) | Outcome::Refused(Refusal::AlreadyExists) => {}
            outcome @ (Outcome::Refused(_) | Outcome::Unknown(_)) => {
                bail!("cannot create {}: {}", object.reference(), outcome.failure().unwrap_or_default())
            }
        }
    }
    Ok(())
}

fn driver() -> Object {
    // Pods may ask for volumes of their own, which the driver knows by what it is told of the pod.
    let spec = DriverSpec {
        attach_required: Some(true),
        pod_info_on_mount: Some(true),
        volume_lifecycle_modes: ["Persistent", "Ephemeral"].map(String::from).into(),
        fs_group_policy: Some("File".into()),
        ..DriverSpec::default()
    };
    CSIDriver { metadata: Meta::named(DRIVER), spec }.into()
}

fn class() -> Object {
    let mut metadata = Meta::named(CLASS);
    metadata.annotations.insert(names::DEFAULT_CLASS.into(), "true".into());
    StorageClass {
        metadata: metadata.into(),
        provisioner: DRIVER.into(),
        reclaim_policy: Some(ReclaimPolicy::Delete),
        volume_binding_mode: Some(BindingMode::Immediate),
        allow_volume_expansion: Some(true),
        ..StorageClass::default()
    }
    .into()
}
