use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;

use api::{PersistentVolume, ReclaimPolicy, SecretReference, VolumePhase, names};
use control::{Decision, Timestamp, Why};
use csi::{ControllerRpc, PluginService};

use super::step::read_secret;
use crate::{Action, Fresh, Local, Memory, Obstacle, Reason, Stage, pv};

/// What keeps a volume until its data is deleted, by a driver or by an in-tree plugin.
const KEEPERS: [&str; 2] = [names::PROVISIONER_FINALIZER, names::PV_CONTROLLER];

/// Whether a volume's data may be destroyed: the policy says so, and it belongs to nobody. A volume that is being
/// deleted and is not bound can never become bound again, because binding refuses it (reliability 8).
pub fn is_condemned(volume: &PersistentVolume) -> bool {
    let abandoned = volume.metadata.is_deleting()
        && KEEPERS.iter().any(|keeper| volume.metadata.has_finalizer(keeper))
        && volume.status.phase != VolumePhase::Bound;
    volume.spec.persistent_volume_reclaim_policy == ReclaimPolicy::Delete && (volume.is_released() || abandoned)
}

pub(crate) fn volume(
    now: Timestamp,
    volume: &Arc<PersistentVolume>,
    local: &Local,
    attachments: &[String],
    secret: Result<&Option<SecretReference>, &Obstacle>,
    memory: &Memory,
) -> Decision<Action, Reason> {
    let ours = volume.metadata.has_finalizer(local.finalizer());
    // PV-50: a plugin has what its driver was to delete before the migration was switched off.
    let held = ours || (local.is_plugin() && volume.metadata.has_finalizer(names::PROVISIONER_FINALIZER));
    let deleting = volume.metadata.is_deleting();
    let bound = volume.status.phase == VolumePhase::Bound;
    if deleting && !held {
        return Decision::Rest(Why::settled(
            Reason::VolumeBeingDeleted,
            "the volume is being deleted and does not carry our finalizer",
        ));
    }
    if volume.spec.persistent_volume_reclaim_policy != ReclaimPolicy::Delete {
        return retained(volume, ours.then(|| local.finalizer()));
    }
    // What could not be deleted is not held either.
    let handle = match handle(volume, local) {
        Ok(handle) => handle,
        Err(why) => return Decision::Rest(why),
    };
    if !is_condemned(volume) {
        return kept(volume, local.finalizer(), ours || deleting || !bound);
    }
    let memory = memory.about(&volume.metadata.uid);
    if memory.stage == Stage::Deleted {
        return forget(volume, local);
    }
    if !local.can(PluginService::ControllerService) || !local.can(ControllerRpc::CreateDeleteVolume) {
        let text = format!("driver {} cannot delete volumes", local.driver);
        return Decision::Rest(Why::waiting(Reason::DriverCannot, text));
    }
    if !attachments.is_empty() {
        let text = format!("the volume is deleted once these attachments are gone: {}", attachments.join(", "));
        return Decision::Rest(Why::waiting(Reason::StillAttached, text)); // P83
    }
    match secret {
        Ok(secret) => destroy(now, volume, &handle, local, secret.as_ref(), &memory),
        Err(obstacle) => Decision::Rest(Why::waiting(obstacle.code, obstacle.text.clone())),
    }
}

/// What the driver calls the volume. Either it or the plugin it has taken over may have made it: each deletes what the
/// other made (S4-9).
fn handle(volume: &PersistentVolume, local: &Local) -> Result<String, Why<Reason>> {
    let nameless = || Why::waiting(Reason::NoSource, "the volume does not say what the driver calls it");
    let plugin = rules_translate::plugin_of(volume);
    let in_tree = plugin.is_some() && plugin == local.plugin();
    if !in_tree && (local.is_plugin() || volume.spec.csi.is_none()) {
        return Err(nameless());
    }
    match local.settings.migration.seen_by(&local.driver, volume) {
        Ok(seen) => seen.spec.csi.as_ref().map(|source| source.volume_handle.clone()).ok_or_else(nameless),
        Err(error) => Err(Why::waiting(Reason::VolumeUntranslatable, error.to_string())),
    }
}

/// P81: what is kept needs no finalizer of ours.
fn retained(volume: &Arc<PersistentVolume>, held: Option<&str>) -> Decision<Action, Reason> {
    let policy = &volume.spec.persistent_volume_reclaim_policy;
    if let Some(finalizer) = held {
        let why = Why::waiting(Reason::RemovingFinalizer, format!("policy {policy} keeps the volume's data"));
        let finalizers = vec![finalizer.into()];
        return Decision::Do(Action::RemoveFinalizer { volume: volume.clone(), finalizers }, why);
    }
    Decision::Rest(Why::settled(Reason::Retained, format!("policy {policy} keeps the volume's data")))
}

/// P81: a bound volume that will have to be deleted one day keeps our finalizer until the driver has done it.
fn kept(volume: &Arc<PersistentVolume>, finalizer: &'static str, as_it_should_be: bool) -> Decision<Action, Reason> {
    if as_it_should_be {
        return Decision::Rest(Why::settled(Reason::VolumeKept, "the volume is not released"));
    }
    Decision::Do(
        Action::AddFinalizer { volume: volume.clone(), finalizer },
        Why::waiting(
            Reason::AddingFinalizer,
            "adding the finalizer that keeps the volume until the driver has deleted its data",
        ),
    )
}

fn destroy(
    now: Timestamp,
    volume: &Arc<PersistentVolume>,
    handle: &str,
    local: &Local,
    secret: Option<&SecretReference>,
    memory: &Memory,
) -> Decision<Action, Reason> {
    let secrets = match read_secret(&volume.metadata.uid, secret, false, memory) {
        Ok(secrets) => secrets,
        Err(read) => return read,
    };
    match &memory.fresh {
        // A driver that publishes nothing has nothing attached, whoever held the volume.
        Fresh::Condemned | Fresh::MaybeAttached if is_nowhere(local, &memory.fresh) => Decision::Do(
            Action::DeleteVolume {
                uid: volume.metadata.uid.clone(),
                driver: local.driver.clone(),
                volume_id: handle.into(),
                secrets,
                undo: false,
            },
            Why::waiting(Reason::DeletingVolume, format!("waiting for driver {} to delete the volume", local.driver)),
        ),
        Fresh::MaybeAttached if local.can(ControllerRpc::PublishUnpublishVolume) => Decision::Do(
            Action::LookForAttachments { name: volume.metadata.name.clone(), uid: volume.metadata.uid.clone() },
            Why::waiting(Reason::LookingAgain, "making sure that the volume is attached nowhere"),
        ),
        Fresh::Spared { again } if now < *again => Decision::Wait(
            *again,
            Why::waiting(Reason::VolumeChanged, "the volume has changed or is attached: waiting for news of it"),
        ),
        Fresh::Unread
        | Fresh::Wanted
        | Fresh::Condemned
        | Fresh::MaybeAttached
        | Fresh::StillWanted
        | Fresh::Absent
        | Fresh::Taken { .. }
        | Fresh::Spared { .. } => Decision::Do(
            Action::LookAtPv { name: volume.metadata.name.clone(), uid: volume.metadata.uid.clone() },
            Why::waiting(Reason::LookingAgain, "making sure that the volume is still to be deleted"),
        ),
    }
}

fn is_nowhere(local: &Local, fresh: &Fresh) -> bool {
    *fresh == Fresh::Condemned || !local.can(ControllerRpc::PublishUnpublishVolume)
}

/// P84: the data is gone; now the object, and last our finalizer, with that of the attacher beside us, or of the driver
/// that would have deleted what is the plugin's again.
fn forget(volume: &Arc<PersistentVolume>, local: &Local) -> Decision<Action, Reason> {
    if volume.metadata.is_deleting() {
        let why = Why::waiting(Reason::RemovingFinalizer, "the driver has deleted the volume");
        let driver = local.is_plugin().then(|| names::PROVISIONER_FINALIZER.into());
        let also = pv::attacher_finalizer(local).or(driver).filter(|also| volume.metadata.has_finalizer(also));
        let finalizers = [local.finalizer().into()].into_iter().chain(also).collect();
        return Decision::Do(Action::RemoveFinalizer { volume: volume.clone(), finalizers }, why);
    }
    let why = Why::waiting(Reason::ForgettingVolume, "the driver has deleted the volume, so that its object can go");
    Decision::Do(Action::DeletePv(volume.clone()), why)
}
