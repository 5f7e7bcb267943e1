//! In-tree volumes spoken as CSI, and back.
//!
//! Kubernetes once had volume plugins inside. CSI drivers have taken them over, and the objects that users wrote for the
//! plugins stay as they are: whoever serves such an object translates it on the fly. This crate is that translation, one
//! file per plugin.
//!
//! Owns: the table of plugins and drivers ([`Plugin`]), how far each migration has come ([`Migration`]), and the
//! translation of PersistentVolumes, pods' own volumes and StorageClasses.
//! Writes and reads: nothing. Every function takes an object and returns another.
//!
//! Laws:
//! - what goes in is never changed (S4-10), and only the source of a volume is replaced: name, labels, capacity, claim,
//!   class, policy and options stay, but for what the plugin's file says;
//! - there and back is the same again, in every field both forms have (reliability 130);
//! - what the other form has no word for is named in [`Translated::lost`], never dropped in silence;
//! - handles are unique and always the same for the same volume (S4-13);
//! - no input makes it panic.
//!
//! Does not know: objects' histories, which controller asks, files and formats, time.
#![no_std]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::indexing_slicing,
        clippy::string_slice,
        clippy::arithmetic_side_effects,
        reason = "no input makes it panic"
    )
)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;

mod aws_ebs;
mod azure_disk;
mod azure_file;
mod cinder;
mod class;
mod copy;
mod error;
mod gates;
mod gce_pd;
mod inline;
mod partition;
mod plugin;
mod portworx;
mod rbd;
mod topology;
mod vsphere;

#[cfg(test)]
mod tests;

/// The example of the README, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub use error::{Error, Lost, Translated};
pub use gates::{GATE, GATE_COMPLETE, GateError, Migration, NodeSays, Phase, Served};
pub use plugin::{Plugin, plugin_volume_name};

use alloc::borrow::{Cow, ToOwned};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{AccessMode, CsiSource, InTreeSource, PersistentVolume, PodVolume, StorageClass, UnknownFields};

use crate::error::Losses;

/// A PersistentVolume with an in-tree source, as its CSI driver sees it. The volume stays as it is;
/// [`volume_into_csi`] is for one that is not needed any more.
pub fn volume_to_csi(volume: &PersistentVolume) -> Result<Translated<PersistentVolume>, Error> {
    match (&volume.spec.in_tree, &volume.spec.csi) {
        (Some(source), None) => with_csi(copy::without_source(volume), source),
        (in_tree, _) => Err(no_in_tree(volume, in_tree.is_some())),
    }
}

/// A PersistentVolume with an in-tree source, as its CSI driver sees it: the same volume, of which nothing is copied.
pub fn volume_into_csi(mut volume: PersistentVolume) -> Result<Translated<PersistentVolume>, Error> {
    match (volume.spec.in_tree.take(), &volume.spec.csi) {
        (Some(source), None) => with_csi(volume, &source),
        (in_tree, _) => Err(no_in_tree(&volume, in_tree.is_some())),
    }
}

fn no_in_tree(volume: &PersistentVolume, has_one: bool) -> Error {
    let what = what(volume);
    if has_one { Error::Ambiguous(what) } else { Error::NotInTree(what) }
}

fn what(volume: &PersistentVolume) -> String {
    format!("volume {}", volume.metadata.name)
}

/// The volume, which has no source, with the source that CSI has for this one.
fn with_csi(mut object: PersistentVolume, source: &InTreeSource) -> Result<Translated<PersistentVolume>, Error> {
    let mut losses = Losses::default();
    note_unknown(source, &mut losses);
    let csi = match source {
        InTreeSource::AwsElasticBlockStore(disk) => aws_ebs::to_csi(disk, &mut object)?,
        InTreeSource::GcePersistentDisk(disk) => gce_pd::to_csi(disk, &mut object)?,
        InTreeSource::AzureDisk(disk) => azure_disk::to_csi(disk, &mut losses)?,
        InTreeSource::AzureFile(share) => azure_file::to_csi(share, &object)?,
        InTreeSource::Cinder(disk) => cinder::to_csi(disk, &mut object, &mut losses),
        InTreeSource::VsphereVolume(disk) => vsphere::to_csi(disk, &mut object, &mut losses),
        InTreeSource::PortworxVolume(disk) => portworx::to_csi(disk, &object, &mut losses),
        InTreeSource::Rbd(image) => rbd::to_csi(image, &mut object, &mut losses),
        InTreeSource::Several(_) => return Err(Error::Ambiguous(what(&object))),
    };
    object.spec.csi = Some(csi);
    Ok(losses.with(object))
}

/// The volume as a CSI driver sees it: as it is if it is a CSI volume, translated if its plugin is one that today's
/// Kubernetes has left to a driver.
pub fn as_csi(volume: &PersistentVolume) -> Result<Cow<'_, PersistentVolume>, Error> {
    Migration::default().as_csi(volume)
}

/// A PersistentVolume with a CSI source, as the in-tree plugin of its driver would have written it. The volume stays as
/// it is; [`volume_into_in_tree`] is for one that is not needed any more.
pub fn volume_to_in_tree(volume: &PersistentVolume) -> Result<Translated<PersistentVolume>, Error> {
    match (&volume.spec.csi, &volume.spec.in_tree) {
        (Some(csi), None) => with_in_tree(copy::without_source(volume), csi),
        (csi, _) => Err(no_csi(volume, csi.is_some())),
    }
}

/// A PersistentVolume with a CSI source, as the in-tree plugin of its driver would have written it: the same volume, of
/// which nothing is copied.
pub fn volume_into_in_tree(mut volume: PersistentVolume) -> Result<Translated<PersistentVolume>, Error> {
    match (volume.spec.csi.take(), &volume.spec.in_tree) {
        (Some(csi), None) => with_in_tree(volume, &csi),
        (csi, _) => Err(no_csi(&volume, csi.is_some())),
    }
}

fn no_csi(volume: &PersistentVolume, has_one: bool) -> Error {
    let what = what(volume);
    if has_one { Error::Ambiguous(what) } else { Error::NotCsi(what) }
}

/// The volume, which has no source, with the source that the driver's plugin has for this one.
fn with_in_tree(mut object: PersistentVolume, csi: &CsiSource) -> Result<Translated<PersistentVolume>, Error> {
    let plugin = Plugin::of_driver(&csi.driver).ok_or_else(|| Error::UnknownDriver(csi.driver.clone()))?;
    let mut losses = Losses::default();
    note_csi_only(plugin, csi, &mut losses);
    let source = match plugin {
        Plugin::AwsEbs => aws_ebs::to_in_tree(csi, &mut object)?,
        Plugin::GcePd => gce_pd::to_in_tree(csi, &mut object)?,
        Plugin::AzureDisk => azure_disk::to_in_tree(csi)?,
        Plugin::AzureFile => azure_file::to_in_tree(csi, &mut object)?,
        Plugin::Cinder => cinder::to_in_tree(csi, &mut object)?,
        Plugin::Vsphere => vsphere::to_in_tree(csi, &mut object, &mut losses),
        Plugin::Portworx => portworx::to_in_tree(csi),
        Plugin::Rbd => rbd::to_in_tree(csi, &mut object, &mut losses),
    };
    object.spec.in_tree = Some(Box::new(source));
    Ok(losses.with(object))
}

/// A volume that a pod in this namespace holds itself, as a PersistentVolume whose name is unique to the disk (S4-16).
pub fn inline_to_csi(volume: &PodVolume, pod_namespace: &str) -> Result<Translated<PersistentVolume>, Error> {
    let what = || format!("the pod's volume {}", volume.name);
    let source = volume.in_tree.as_ref().ok_or_else(|| Error::NotInTree(what()))?;
    let mut losses = Losses::default();
    note_unknown(source, &mut losses);
    let object = match &**source {
        InTreeSource::AwsElasticBlockStore(disk) => aws_ebs::inline(disk)?,
        InTreeSource::GcePersistentDisk(disk) => gce_pd::inline(disk),
        InTreeSource::AzureDisk(disk) => azure_disk::inline(disk)?,
        InTreeSource::AzureFile(share) => azure_file::inline(&volume.name, share, pod_namespace, &mut losses),
        InTreeSource::Cinder(disk) => cinder::inline(disk, &mut losses),
        InTreeSource::VsphereVolume(disk) => vsphere::inline(disk, &mut losses),
        InTreeSource::PortworxVolume(disk) => portworx::inline(disk),
        InTreeSource::Rbd(image) => rbd::inline(image, pod_namespace, &mut losses),
        InTreeSource::Several(_) => return Err(Error::Ambiguous(what())),
    };
    Ok(losses.with(object))
}

/// The other way round: the volume of this name as a pod would hold it.
pub fn inline_to_in_tree(name: &str, volume: &PersistentVolume) -> Result<Translated<PodVolume>, Error> {
    let Translated { object, lost } = volume_to_in_tree(volume)?;
    let mut in_tree = object.spec.in_tree;
    match in_tree.as_deref_mut() {
        // The secret of a pod's own volume is in the pod's namespace.
        Some(InTreeSource::AzureFile(share)) => share.secret_namespace = None,
        Some(InTreeSource::Rbd(image)) => {
            image.secret_ref.iter_mut().for_each(|secret| secret.namespace.clear());
        }
        Some(InTreeSource::PortworxVolume(disk)) => {
            disk.read_only |= volume.spec.access_modes == [AccessMode::ReadOnlyMany];
        }
        Some(
            InTreeSource::AwsElasticBlockStore(_)
            | InTreeSource::GcePersistentDisk(_)
            | InTreeSource::AzureDisk(_)
            | InTreeSource::Cinder(_)
            | InTreeSource::VsphereVolume(_)
            | InTreeSource::Several(_),
        )
        | None => {}
    }
    Ok(Translated { object: PodVolume { name: name.to_owned(), in_tree, ..PodVolume::default() }, lost })
}

/// A class of an in-tree plugin, as its CSI driver's provisioner reads it. The provisioner is the driver.
pub fn class_to_csi(class: &StorageClass) -> Result<Translated<StorageClass>, Error> {
    let plugin = plugin_of_class(class)?;
    with_csi_parameters(copy::of_provisioner(class, plugin.driver()), plugin)
}

/// The same for a class that is not needed any more: nothing of it is copied.
pub fn class_into_csi(mut object: StorageClass) -> Result<Translated<StorageClass>, Error> {
    let plugin = plugin_of_class(&object)?;
    topology::set(&mut object.provisioner, plugin.driver());
    with_csi_parameters(object, plugin)
}

fn plugin_of_class(class: &StorageClass) -> Result<Plugin, Error> {
    Plugin::named(&class.provisioner).ok_or_else(|| Error::UnknownPlugin(class.provisioner.clone()))
}

/// The class, which has the driver as its provisioner, with parameters and places in the driver's words.
fn with_csi_parameters(mut object: StorageClass, plugin: Plugin) -> Result<Translated<StorageClass>, Error> {
    let mut losses = Losses::default();
    match plugin {
        Plugin::AwsEbs => aws_ebs::class_to_csi(&mut object)?,
        Plugin::GcePd => gce_pd::class_to_csi(&mut object)?,
        Plugin::AzureDisk => azure_disk::class_to_csi(&mut object)?,
        Plugin::AzureFile => {} // TR-30
        Plugin::Cinder => cinder::class_to_csi(&mut object)?,
        Plugin::Vsphere => vsphere::class_to_csi(&mut object, &mut losses)?,
        Plugin::Portworx => portworx::class_to_csi(&mut object)?,
        Plugin::Rbd => rbd::class_to_csi(&mut object, &mut losses)?,
    }
    Ok(losses.with(object))
}

/// A class of a CSI driver, as a class of the in-tree plugin it has taken over.
pub fn class_to_in_tree(class: &StorageClass) -> Result<Translated<StorageClass>, Error> {
    class_into_in_tree(class.clone())
}

/// The same for a class that is not needed any more: nothing of it is copied.
pub fn class_into_in_tree(mut object: StorageClass) -> Result<Translated<StorageClass>, Error> {
    let plugin =
        Plugin::of_driver(&object.provisioner).ok_or_else(|| Error::UnknownDriver(object.provisioner.clone()))?;
    let mut losses = Losses::default();
    match plugin {
        Plugin::AwsEbs => aws_ebs::class_to_in_tree(&mut object)?,
        Plugin::GcePd => gce_pd::class_to_in_tree(&mut object)?,
        Plugin::AzureDisk => azure_disk::class_to_in_tree(&mut object, &mut losses)?,
        Plugin::AzureFile => {}
        Plugin::Cinder => cinder::class_to_in_tree(&mut object)?,
        Plugin::Vsphere => vsphere::class_to_in_tree(&mut object)?,
        Plugin::Portworx => portworx::class_to_in_tree(&mut object)?,
        Plugin::Rbd => rbd::class_to_in_tree(&mut object, &mut losses)?,
    }
    topology::set(&mut object.provisioner, plugin.name());
    Ok(losses.with(object))
}

/// The handle with what only the node knows filled in: most drivers leave nothing open.
pub fn repair_handle(driver: &str, handle: &str, node_id: &str) -> Result<String, Error> {
    match Plugin::of_driver(driver) {
        Some(Plugin::GcePd) => gce_pd::repair(handle, node_id),
        Some(
            Plugin::AwsEbs
            | Plugin::AzureDisk
            | Plugin::AzureFile
            | Plugin::Cinder
            | Plugin::Portworx
            | Plugin::Rbd
            | Plugin::Vsphere,
        ) => Ok(handle.into()),
        None => Err(Error::UnknownDriver(driver.into())),
    }
}

/// The handles that a translation may have given for the volume of a driver's handle: that one, and those that leave
/// open what it says.
pub fn open_handles(driver: &str, handle: &str) -> Vec<String> {
    match Plugin::of_driver(driver) {
        Some(Plugin::GcePd) => gce_pd::open_handles(handle),
        Some(_) | None => Vec::from([handle.into()]),
    }
}

/// Two handles of a driver may mean the same volume, because a translated one leaves open what it cannot know.
pub fn same_volume(driver: &str, one: &str, other: &str) -> bool {
    one == other || (driver == Plugin::GcePd.driver() && gce_pd::same_disk(one, other))
}

/// `driver^handle` of a volume of an in-tree plugin, as its driver knows it, whether or not the plugin is left to the
/// driver; `None` of all others, and of one that cannot be translated (S4-13).
pub fn handle_of(volume: &PersistentVolume) -> Option<String> {
    volume.spec.in_tree.as_ref()?;
    let csi = volume_to_csi(volume).ok()?.object.spec.csi?;
    Some(format!("{}^{}", csi.driver, csi.volume_handle))
}

/// The plugin a volume belongs to.
pub fn plugin_of(volume: &PersistentVolume) -> Option<Plugin> {
    volume.spec.in_tree.as_deref().and_then(Plugin::of)
}

/// Fields of an in-tree source that nobody here knows.
fn note_unknown(source: &InTreeSource, losses: &mut Losses) {
    let rest: &UnknownFields = match source {
        InTreeSource::AwsElasticBlockStore(disk) => &disk.rest,
        InTreeSource::GcePersistentDisk(disk) => &disk.rest,
        InTreeSource::AzureDisk(disk) => &disk.rest,
        InTreeSource::AzureFile(share) => &share.rest,
        InTreeSource::Cinder(disk) => &disk.rest,
        InTreeSource::VsphereVolume(disk) => &disk.rest,
        InTreeSource::PortworxVolume(disk) => &disk.rest,
        InTreeSource::Rbd(image) => &image.rest,
        InTreeSource::Several(_) => return,
    };
    let field = Plugin::of(source).map_or("", Plugin::field);
    rest.keys().for_each(|key| losses.note(format!("{field}.{key}")));
}

/// Parts of a CSI source that a plugin has no word for.
fn note_csi_only(plugin: Plugin, csi: &CsiSource, losses: &mut Losses) {
    let kept: &[&str] = match plugin {
        Plugin::AwsEbs => &aws_ebs::ATTRIBUTES,
        Plugin::GcePd => &gce_pd::ATTRIBUTES,
        Plugin::AzureDisk => &azure_disk::ATTRIBUTES,
        Plugin::AzureFile => &azure_file::ATTRIBUTES,
        Plugin::Cinder => &cinder::ATTRIBUTES,
        Plugin::Vsphere => &vsphere::ATTRIBUTES,
        Plugin::Portworx => &portworx::ATTRIBUTES,
        Plugin::Rbd => &rbd::ATTRIBUTES,
    };
    let spelt = |key: &str| kept.iter().any(|kept| kept.eq_ignore_ascii_case(key));
    let unknown = csi.volume_attributes.keys().filter(|key| !spelt(key));
    unknown.for_each(|key| losses.note(format!("attribute {key}")));
    let stage = matches!(plugin, Plugin::AzureFile | Plugin::Rbd);
    for (secret, field, kept) in [
        (&csi.controller_publish_secret_ref, "csi.controllerPublishSecretRef", false),
        (&csi.node_stage_secret_ref, "csi.nodeStageSecretRef", stage),
        (&csi.node_publish_secret_ref, "csi.nodePublishSecretRef", false),
        (&csi.controller_expand_secret_ref, "csi.controllerExpandSecretRef", plugin == Plugin::Rbd),
        (&csi.node_expand_secret_ref, "csi.nodeExpandSecretRef", false),
    ] {
        losses.note_if(secret.is_some() && !kept, field);
    }
}
