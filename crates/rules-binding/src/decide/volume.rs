use alloc::format;
use alloc::sync::Arc;

use api::{ObjectKey, PersistentVolume, ReclaimPolicy, VolumePhase, names};
use control::{Decision, Timestamp, Why};

use super::leaving;
use crate::{Action, Handover, Memory, MigrationMark, Reason, VolumeFacts, VolumeOwner, migration};

/// Protection first, then the table of orchestrator 2.5.
pub(crate) fn volume(now: Timestamp, facts: &VolumeFacts, memory: &Memory) -> Decision<Action, Reason> {
    let volume = &facts.volume;
    let protected = volume.metadata.has_finalizer(names::PV_PROTECTION);
    let bound = volume.status.phase == VolumePhase::Bound;
    if let Some(marking) = migrated(facts) {
        return marking;
    }
    match (volume.metadata.is_deleting(), protected) {
        (false, false) => Decision::Do(
            Action::AddVolumeFinalizer(volume.clone()),
            Why::waiting(Reason::AddingVolumeFinalizer, "adding the finalizer that keeps the volume while it is bound"),
        ),
        (true, true) if !bound => Decision::Do(
            Action::RemoveVolumeFinalizer(volume.clone()), // PV-53
            Why::waiting(Reason::RemovingVolumeFinalizer, "the volume is being deleted and is not bound"),
        ),
        (true, false) => match phase(now, facts, memory) {
            Decision::Rest(_) => Decision::Rest(leaving(Reason::VolumeBeingDeleted, "volume", &volume.metadata)),
            work @ (Decision::Do(..) | Decision::Wait(..) | Decision::Either(..)) => work,
        },
        (false, true) | (true, true) => phase(now, facts, memory),
    }
}

/// PV-48, PV-50. Upstream also takes the driver's finalizer off volumes of plugins that are not taken over and not
/// there. Nobody would delete those, so that here they stay held.
fn migrated(facts: &VolumeFacts) -> Option<Decision<Action, Reason>> {
    let (volume, mark) = (&facts.volume, facts.mark);
    let handover = Handover::of(volume, mark, facts.served);
    let text = match handover.map(|handover| handover.gone) {
        Some(names::PV_CONTROLLER) => "no in-tree plugin is to delete the volume",
        Some(_) => "its in-tree plugin is to delete the volume, and no driver",
        None if mark == MigrationMark::Right => return None,
        None => "",
    };
    let why = match mark {
        MigrationMark::Right => Why::waiting(Reason::MarkingMigrated, text),
        mark => migration::why(mark),
    };
    Some(Decision::Do(Action::MarkVolumeMigrated { volume: volume.clone(), mark, handover }, why))
}

fn phase(now: Timestamp, facts: &VolumeFacts, memory: &Memory) -> Decision<Action, Reason> {
    let volume = &facts.volume;
    match &facts.holder {
        VolumeOwner::Nobody => available(volume, Why::settled(Reason::Available, "the volume is free")),
        VolumeOwner::Reserved(claim) => {
            available(volume, Why::waiting(Reason::Reserved, format!("the volume is reserved for claim {claim}")))
        }
        VolumeOwner::Unseen { claim, uid } => unseen(now, facts, claim, uid, memory),
        VolumeOwner::Unbound(claim) => {
            Decision::Rest(Why::waiting(Reason::ClaimNotBound, format!("waiting for claim {claim} to be bound")))
        }
        VolumeOwner::Mismatched(claim) => Decision::Rest(Why::waiting(
            Reason::VolumeMismatch,
            format!("the volume is meant for claim {claim}, which has another volume mode"),
        )),
        VolumeOwner::Bound(claim) if volume.metadata.is_deleting() => Decision::Rest(Why::waiting(
            Reason::VolumeBeingDeleted,
            format!("the volume is being deleted once claim {claim}, to which it is bound, is gone"),
        )),
        VolumeOwner::Bound(claim) => {
            Decision::Rest(Why::settled(Reason::Bound, format!("the volume is bound to claim {claim}")))
        }
        VolumeOwner::Elsewhere { claim, volume: other } => surplus(facts, claim, other),
    }
}

fn available(volume: &Arc<PersistentVolume>, why: Why<Reason>) -> Decision<Action, Reason> {
    if volume.metadata.is_deleting() {
        return Decision::Rest(Why::waiting(Reason::VolumeBeingDeleted, "the volume is being deleted"));
    }
    if volume.status.phase == VolumePhase::Available {
        return Decision::Rest(why);
    }
    Decision::Do(
        Action::MarkAvailable(volume.clone()),
        Why::waiting(Reason::MarkingAvailable, "the volume has no claim"),
    )
}

/// The claim is not in the cache. That is not enough to give its volume away: a fresh read must agree.
fn unseen(
    now: Timestamp,
    facts: &VolumeFacts,
    claim: &ObjectKey,
    uid: &str,
    memory: &Memory,
) -> Decision<Action, Reason> {
    let volume = &facts.volume;
    if volume.is_released() {
        return released(facts, claim);
    }
    let name = &volume.metadata.name;
    if memory.looked.says_gone(name, uid) {
        let why =
            Why::waiting(Reason::MarkingReleased, format!("claim {claim}, to which the volume was bound, is gone"));
        return Decision::Do(Action::MarkReleased(volume.clone()), why);
    }
    if let Some(until) = memory.looked.says_there(name, uid, now) {
        return Decision::Wait(
            until,
            Why::waiting(Reason::ClaimNotSeenYet, format!("waiting for news of claim {claim}")),
        );
    }
    Decision::Do(
        Action::LookForClaim { volume: name.clone(), claim: claim.clone(), uid: uid.into() },
        Why::waiting(Reason::LookingForClaim, format!("making sure that claim {claim} is gone")),
    )
}

/// Orchestrator 2.6: what becomes of the data is the reclaim policy's to say and the provisioner's to do.
fn released(facts: &VolumeFacts, claim: &ObjectKey) -> Decision<Action, Reason> {
    let volume = &facts.volume;
    let gone = format!("claim {claim} is gone");
    let meta = &volume.metadata;
    let policy = &volume.spec.persistent_volume_reclaim_policy;
    if *policy == ReclaimPolicy::Retain {
        let text = format!("{gone} and the policy keeps the volume: clear spec.claimRef to use it again");
        return Decision::Rest(Why::settled(Reason::Retained, text));
    }
    // PV-27, PV-30, PV-31: a driver deletes what it made, what it has taken over, and what is of its kind; so does a
    // plugin that is there.
    let provisioner = meta.annotation(names::PROVISIONED_BY).filter(|name| !name.is_empty());
    let deletes = *policy == ReclaimPolicy::Delete;
    let drivers = match provisioner {
        _ if meta.migrated_to().is_some() => true,
        _ if facts.served => deletes,
        Some(name) => deletes && !name.starts_with("kubernetes.io/"),
        None => deletes && volume.spec.csi.is_some(),
    };
    if drivers {
        return Decision::Rest(Why::waiting(Reason::Released, format!("{gone}: the volume awaits its deletion")));
    }
    if meta.is_deleting() {
        return Decision::Rest(Why::waiting(Reason::VolumeBeingDeleted, "the volume is being deleted"));
    }
    // PV-29: it is Failed once they have ended.
    if !facts.pods.is_empty() {
        let text = format!("{gone}, and pods use the volume still: {}", facts.pods.join(", "));
        return Decision::Rest(Why::waiting(Reason::VolumeUsed, text));
    }
    let (code, text) = match (policy, provisioner) {
        (ReclaimPolicy::Delete, Some(plugin)) => {
            let text = format!("{gone}, and no CSI driver has taken over {plugin}, which made the volume");
            (Reason::VolumeFailedDelete, text)
        }
        (ReclaimPolicy::Delete, None) => {
            (Reason::VolumeFailedDelete, format!("{gone}, and only volumes of CSI drivers are deleted"))
        }
        (ReclaimPolicy::Recycle, _) => {
            (Reason::VolumeFailedRecycle, format!("{gone}, and nothing here recycles volumes"))
        }
        (ReclaimPolicy::Retain | ReclaimPolicy::Other(_), _) => {
            let text = format!("{gone}, and nobody knows the policy {:?}", policy.as_str());
            (Reason::VolumeUnknownReclaimPolicy, text)
        }
    };
    let text = format!("{text}: delete the volume by hand, or clear spec.claimRef to use it again");
    if volume.status.phase == VolumePhase::Failed {
        return Decision::Rest(Why::waiting(code, text));
    }
    let action = Action::MarkFailed { volume: volume.clone(), message: text.clone() };
    Decision::Do(action, Why::waiting(Reason::MarkingFailed, text)) // PV-29, PV-32
}

/// The claim took another volume: one made for it is given up, one that was found is free again.
fn surplus(facts: &VolumeFacts, claim: &ObjectKey, other: &str) -> Decision<Action, Reason> {
    let volume = &facts.volume;
    let text = format!("claim {claim} is bound to volume {other} instead");
    let provisioned = volume.metadata.annotation(names::PROVISIONED_BY).is_some();
    if !provisioned || volume.spec.persistent_volume_reclaim_policy != ReclaimPolicy::Delete {
        return Decision::Do(Action::Unreserve(volume.clone()), Why::waiting(Reason::UnreservingVolume, text));
    }
    if volume.is_released() {
        return released(facts, claim);
    }
    Decision::Do(Action::MarkReleased(volume.clone()), Why::waiting(Reason::SurplusVolume, text))
}
