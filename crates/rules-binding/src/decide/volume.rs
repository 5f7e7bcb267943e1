use alloc::format;
use alloc::sync::Arc;

use api::{ObjectKey, PersistentVolume, VolumePhase, names};
use control::{Decision, Timestamp, Why};

use super::leaving;
use crate::{Action, Memory, Reason, VolumeFacts, VolumeOwner};

/// Protection first, then the table of orchestrator 2.5.
pub(crate) fn volume(now: Timestamp, facts: &VolumeFacts, memory: &Memory) -> Decision<Action, Reason> {
    let volume = &facts.volume;
    let protected = volume.metadata.has_finalizer(names::PV_PROTECTION);
    let bound = volume.status.phase == VolumePhase::Bound;
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

fn phase(now: Timestamp, facts: &VolumeFacts, memory: &Memory) -> Decision<Action, Reason> {
    let volume = &facts.volume;
    match &facts.holder {
        VolumeOwner::Nobody => available(volume, Why::settled(Reason::Available, "the volume is free")),
        VolumeOwner::Reserved(claim) => {
            available(volume, Why::waiting(Reason::Reserved, format!("the volume is reserved for claim {claim}")))
        }
        VolumeOwner::Unseen { claim, uid } => unseen(now, volume, claim, uid, memory),
        VolumeOwner::Unbound(claim) => {
            Decision::Rest(Why::waiting(Reason::ClaimNotBound, format!("waiting for claim {claim} to be bound")))
        }
        VolumeOwner::Bound(claim) if volume.metadata.is_deleting() => Decision::Rest(Why::waiting(
            Reason::VolumeBeingDeleted,
            format!("the volume is being deleted once claim {claim}, to which it is bound, is gone"),
        )),
        VolumeOwner::Bound(claim) => {
            Decision::Rest(Why::settled(Reason::Bound, format!("the volume is bound to claim {claim}")))
        }
        VolumeOwner::Elsewhere { claim, volume: other } => surplus(volume, claim, other),
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
    volume: &Arc<PersistentVolume>,
    claim: &ObjectKey,
    uid: &str,
    memory: &Memory,
) -> Decision<Action, Reason> {
    if volume.is_released() {
        return released(volume, claim);
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
fn released(volume: &PersistentVolume, claim: &ObjectKey) -> Decision<Action, Reason> {
    let policy = volume.spec.persistent_volume_reclaim_policy.as_str();
    if policy == "Delete" {
        return Decision::Rest(Why::waiting(
            Reason::Released,
            format!("claim {claim} is gone: the volume awaits its deletion"),
        ));
    }
    Decision::Rest(Why::settled(
        Reason::Retained,
        format!("claim {claim} is gone and the policy keeps the volume: clear spec.claimRef to use it again"),
    ))
}

/// The claim took another volume: one made for it is given up, one that was found is free again.
fn surplus(volume: &Arc<PersistentVolume>, claim: &ObjectKey, other: &str) -> Decision<Action, Reason> {
    let text = format!("claim {claim} is bound to volume {other} instead");
    let provisioned = volume.metadata.annotation(names::PROVISIONED_BY).is_some();
    if !provisioned || volume.spec.persistent_volume_reclaim_policy != "Delete" {
        return Decision::Do(Action::Unreserve(volume.clone()), Why::waiting(Reason::UnreservingVolume, text));
    }
    if volume.is_released() {
        return released(volume, claim);
    }
    Decision::Do(Action::MarkReleased(volume.clone()), Why::waiting(Reason::SurplusVolume, text))
}
