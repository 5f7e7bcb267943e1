//! Images in a Ceph cluster, as far as Kubernetes 1.23 to 1.30 took them over (TR-46 to TR-48). Today's sidecars do not,
//! so that this plugin is off unless it is switched on.

use alloc::format;
use alloc::string::{String, ToString};

use api::{AccessMode, CsiSource, InTreeSource, PersistentVolume, Rbd, SecretReference, StorageClass, names};
use md5::{Digest, Md5};

use crate::inline::inline_volume;
use crate::{Error, Losses, Plugin, class};

const ME: Plugin = Plugin::Rbd;
const POOL: &str = "pool";
const DEFAULT_POOL: &str = "rbd";
const IMAGE: &str = "imageName";
const FEATURES: &str = "imageFeatures";
const FORMAT: &str = "imageFormat";
const CLUSTER: &str = "clusterID";
const JOURNAL_POOL: &str = "journalPool";
const MONITORS: &str = "monitors";
const ADMIN: &str = "adminId";
const MIGRATION: &str = "migration";
const STATIC: &str = "staticVolume";
const OTHER_MOUNTERS: &str = "tryOtherMounters";
/// Names of images the plugin made begin with this.
const DYNAMIC: &str = "kubernetes-dynamic-pvc-";
/// The calls that take the administrator's secret along.
const CALLS: [&str; 3] = ["provisioner", "node-stage", "controller-expand"];

fn secret_parameter(call: &str, part: &str) -> String {
    format!("{}{call}-secret-{part}", names::RESERVED_PARAMETER_PREFIX)
}

/// TR-46.
pub(crate) fn class_to_csi(class: &mut StorageClass, losses: &mut Losses) -> Result<(), Error> {
    let mut parameters = class::Parameters::new();
    parameters.insert(MIGRATION.into(), "true".into());
    parameters.insert(POOL.into(), DEFAULT_POOL.into());
    parameters.extend(CALLS.map(|call| (secret_parameter(call, "namespace"), "default".to_string())));
    class::each_once(class)?;
    for (name, value) in core::mem::take(&mut class.parameters) {
        let key = match name.to_lowercase().as_str() {
            class::FSTYPE => names::FSTYPE_PARAMETER,
            "imagefeatures" => FEATURES,
            "imageformat" => FORMAT,
            "adminid" => ADMIN,
            POOL => POOL,
            MONITORS => {
                parameters.insert(CLUSTER.into(), md5_hex(&value));
                MONITORS
            }
            "adminsecretname" => {
                parameters.extend(CALLS.map(|call| (secret_parameter(call, "name"), value.clone())));
                continue;
            }
            "adminsecretnamespace" => {
                parameters.extend(CALLS.map(|call| (secret_parameter(call, "namespace"), value.clone())));
                continue;
            }
            _unknown => {
                losses.note(format!("parameter {name}"));
                continue;
            }
        };
        parameters.insert(key.into(), value);
    }
    let lacks = |key: &str| parameters.get(key).is_none_or(String::is_empty);
    if lacks(&secret_parameter("provisioner", "name")) {
        return Err(Error::Missing { plugin: ME, what: "the class's parameter adminSecretName" });
    }
    if lacks(MONITORS) {
        return Err(Error::Missing { plugin: ME, what: "the class's parameter monitors" });
    }
    class.parameters = parameters;
    Ok(())
}

pub(crate) fn class_to_in_tree(class: &mut StorageClass, losses: &mut Losses) -> Result<(), Error> {
    class::to_in_tree(class, ME)?;
    for key in [MIGRATION, CLUSTER] {
        class.parameters.remove(key);
    }
    for (part, short) in [("name", "adminSecretName"), ("namespace", "adminSecretNamespace")] {
        let mut values = CALLS.map(|call| class.parameters.remove(&secret_parameter(call, part))).into_iter().flatten();
        let Some(first) = values.next() else { continue };
        if values.any(|other| other != first) {
            losses.note(format!("parameter {}", secret_parameter(CALLS[1], part)));
        }
        class.parameters.insert(short.into(), first);
    }
    Ok(())
}

fn md5_hex(text: &str) -> String {
    Md5::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn note_common(image: &Rbd, losses: &mut Losses) {
    losses.note_if(!image.keyring.is_empty(), "rbd.keyring");
    losses.note_if(!image.user.is_empty() && image.user != "admin", "rbd.user");
    losses.note_if(!image.monitors.is_empty(), "rbd.monitors");
}

/// TR-47. Images whose name lacks the usual beginning keep their whole name.
pub(crate) fn to_csi(image: &Rbd, volume: &mut PersistentVolume, losses: &mut Losses) -> CsiSource {
    note_common(image, losses);
    let text = |key| volume.metadata.annotation(key).unwrap_or("").to_string();
    let monitors = image.monitors.join(",");
    let mut attributes: class::Parameters = [
        (IMAGE.into(), image.image.clone()),
        (POOL.into(), image.pool.clone()),
        (FEATURES.into(), text(FEATURES)),
        (FORMAT.into(), text(FORMAT)),
        (JOURNAL_POOL.into(), text(JOURNAL_POOL)),
        (MIGRATION.into(), "true".into()),
        (OTHER_MOUNTERS.into(), "true".into()),
    ]
    .into();
    if attributes.get(FEATURES).is_none_or(String::is_empty) {
        attributes.insert(FEATURES.into(), "layering".into());
    }
    let known = text(names::RBD_VOLUME_HANDLE);
    let handle = if known.is_empty() {
        attributes.insert(STATIC.into(), "true".into());
        attributes.insert(CLUSTER.into(), md5_hex(&monitors));
        let short = image.image.strip_prefix(DYNAMIC).unwrap_or(&image.image);
        format!("mig_mons-{}_image-{short}_{}", md5_hex(&monitors), hex(&image.pool))
    } else {
        attributes.insert(CLUSTER.into(), text(CLUSTER));
        known
    };
    let mode = if image.read_only { AccessMode::ReadOnlyMany } else { AccessMode::ReadWriteOnce };
    volume.spec.access_modes = alloc::vec![mode];
    CsiSource {
        driver: ME.driver().into(),
        volume_handle: handle,
        fs_type: image.fs_type.clone(),
        volume_attributes: attributes,
        node_stage_secret_ref: image.secret_ref.clone(),
        controller_expand_secret_ref: image.secret_ref.clone(),
        ..CsiSource::default()
    }
}

/// TR-48.
pub(crate) fn inline(image: &Rbd, pod_namespace: &str, losses: &mut Losses) -> PersistentVolume {
    note_common(image, losses);
    let secret = image.secret_ref.as_ref();
    let secret = secret.map(|secret| SecretReference { name: secret.name.clone(), namespace: pod_namespace.into() });
    let pool = if image.pool.is_empty() { DEFAULT_POOL } else { &image.pool };
    let source = CsiSource {
        driver: ME.driver().into(),
        volume_handle: image.image.clone(),
        fs_type: image.fs_type.clone(),
        volume_attributes: [
            (CLUSTER.into(), md5_hex(&image.monitors.join(","))),
            (POOL.into(), pool.into()),
            (STATIC.into(), "true".into()),
            (FEATURES.into(), "layering".into()),
        ]
        .into(),
        node_stage_secret_ref: secret.clone(),
        controller_expand_secret_ref: secret,
        ..CsiSource::default()
    };
    inline_volume(
        ME,
        &image.image,
        source,
        if image.read_only { AccessMode::ReadOnlyMany } else { AccessMode::ReadWriteOnce },
    )
}

/// TR-48: the monitors are known to the driver by the cluster's id alone.
pub(crate) fn to_in_tree(source: &CsiSource, volume: &mut PersistentVolume, losses: &mut Losses) -> InTreeSource {
    losses.note("the addresses of the monitors");
    let attribute = |key: &str| source.volume_attributes.get(key).cloned().unwrap_or_default();
    let kept = [CLUSTER, JOURNAL_POOL, FEATURES, FORMAT].map(|key| (key.to_string(), attribute(key)));
    volume.metadata.annotations.insert(names::RBD_VOLUME_HANDLE.into(), source.volume_handle.clone());
    volume.metadata.annotations.extend(kept);
    let user = attribute(ADMIN);
    InTreeSource::Rbd(Rbd {
        monitors: alloc::vec![String::new()],
        image: attribute(IMAGE),
        fs_type: source.fs_type.clone(),
        pool: attribute(POOL),
        user: if user.is_empty() { "admin".into() } else { user },
        secret_ref: source.node_stage_secret_ref.clone(),
        read_only: source.read_only,
        ..Rbd::default()
    })
}

/// Attributes that have their place in the in-tree form, or follow from being there.
pub(crate) const ATTRIBUTES: [&str; 11] = [
    IMAGE,
    POOL,
    FEATURES,
    FORMAT,
    CLUSTER,
    JOURNAL_POOL,
    ADMIN,
    MIGRATION,
    STATIC,
    OTHER_MOUNTERS,
    names::PROVISIONER_IDENTITY,
];
