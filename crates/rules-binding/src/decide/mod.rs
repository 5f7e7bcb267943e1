use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use api::fit::Fit;
use api::{ClaimPhase, Meta, PersistentVolume, PersistentVolumeClaim, VolumePhase, names};
use control::{Decision, Timestamp, Why};

use crate::{
    Action, BindingState, Candidate, ClaimFacts, ClaimView, Memory, MigrationMark, NamedVolume, Prospect, Reason, View,
    VolumeView, migration, users,
};

mod bound;
mod volume;

pub(crate) fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
    match view {
        View::Claim(ClaimView::Gone) => Decision::Rest(Why::settled(Reason::ClaimGone, "the claim does not exist")),
        View::Claim(ClaimView::Here(facts)) => claim(now, facts, memory),
        View::Volume(VolumeView::Gone) => Decision::Rest(Why::settled(Reason::VolumeGone, "the volume does not exist")),
        View::Volume(VolumeView::Here(facts)) => volume::volume(now, facts, memory),
        View::Pod(view) => crate::ephemeral::decide(view),
    }
}

fn claim(now: Timestamp, facts: &ClaimFacts, memory: &Memory) -> Decision<Action, Reason> {
    let claim = &facts.claim;
    let protected = claim.metadata.has_finalizer(names::PVC_PROTECTION);
    match (claim.metadata.is_deleting(), protected) {
        (false, false) => Decision::Do(
            Action::AddClaimFinalizer(claim.clone()),
            Why::waiting(Reason::AddingClaimFinalizer, "adding the finalizer that keeps the claim while pods use it"),
        ),
        (false, true) if facts.mark != MigrationMark::Right => {
            let action = Action::MarkClaimMigrated { claim: claim.clone(), mark: facts.mark };
            Decision::Do(action, migration::why(facts.mark))
        }
        (false, true) => match standing(now, facts, memory) {
            Decision::Rest(why) if why.code == Reason::Bound => bound::claim(now, facts, why),
            decision => decision,
        },
        (true, true) if facts.holders.is_empty() => unused(now, claim, memory),
        (true, true) => in_use(now, facts, memory),
        (true, false) => Decision::Rest(leaving(Reason::ClaimBeingDeleted, "claim", &claim.metadata)),
    }
}

/// What is being deleted stays while somebody else's finalizer is on it: only the owner of that one can say why.
fn leaving(code: Reason, what: &str, meta: &Meta) -> Why<Reason> {
    match meta.finalizers.join(", ") {
        none if none.is_empty() => Why::settled(code, format!("the {what} is being deleted")),
        held => Why::waiting(
            code,
            format!("the {what} is being deleted and waits for the owners of these finalizers to remove them: {held}"),
        ),
    }
}

/// The cache shows no pod that uses the claim, which is being deleted. Pods and claims come by separate watches, so a
/// pod may be there all the same: only a list past the cache lets the claim go (reliability 21). No pod that is
/// created from now on gets a node, because the claim is being deleted.
fn unused(now: Timestamp, claim: &Arc<PersistentVolumeClaim>, memory: &Memory) -> Decision<Action, Reason> {
    let uid = &claim.metadata.uid;
    if memory.looked.says_unused(uid) {
        return Decision::Do(
            Action::RemoveClaimFinalizer(claim.clone()),
            Why::waiting(Reason::RemovingClaimFinalizer, "the claim is being deleted and no pod uses it"),
        );
    }
    if let Some(until) = memory.looked.says_used(uid, now) {
        let why = Why::waiting(Reason::UsersNotSeenYet, "waiting for news of the pods that use the claim");
        return Decision::Wait(until, why);
    }
    let made_for = users::made_for(claim).map(String::from);
    Decision::Do(
        Action::LookForUsers { claim: claim.metadata.key(), uid: uid.clone(), made_for },
        Why::waiting(Reason::LookingForUsers, "the claim is being deleted: making sure that no pod uses it"),
    )
}

/// The claim's deletion waits for its pods; until then a completed binding is kept in order and no new one is begun.
fn in_use(now: Timestamp, facts: &ClaimFacts, memory: &Memory) -> Decision<Action, Reason> {
    if let BindingState::Completed(target) = &facts.standing
        && let Decision::Do(action, why) = completed(now, facts, target, memory)
    {
        return Decision::Do(action, why);
    }
    let pods = facts.holders.join(", ");
    Decision::Rest(Why::waiting(
        Reason::ClaimInUse,
        format!("the claim is being deleted once these pods are gone: {pods}"),
    ))
}

fn standing(now: Timestamp, facts: &ClaimFacts, memory: &Memory) -> Decision<Action, Reason> {
    match &facts.standing {
        BindingState::Unbound(prospect) => unbound(now, facts, prospect),
        BindingState::Named(target) => named(now, facts, target),
        BindingState::Completed(target) => completed(now, facts, target, memory),
    }
}

/// PV-17 … PV-19 and the first table of orchestrator 2.3.
fn unbound(now: Timestamp, facts: &ClaimFacts, prospect: &Prospect) -> Decision<Action, Reason> {
    let claim = &facts.claim;
    let rest = |code, text| Decision::Rest(Why::waiting(code, text));
    match prospect {
        Prospect::Reserved(candidate) => bind_if_fit(now, facts, candidate),
        Prospect::Free(volume) => bind(now, facts, volume),
        Prospect::BadRequest(text) => rest(Reason::BadRequest, format!("the requested size {text}")),
        Prospect::DefaultClass(class) => Decision::Do(
            Action::SetClass { claim: claim.clone(), class: class.clone() },
            Why::waiting(Reason::SettingDefaultClass, format!("the claim names no class and {class} is the default")),
        ),
        Prospect::NoClass => {
            rest(Reason::NoVolumeFits, "no volume fits the claim and it has no storage class to make one".into())
        }
        Prospect::ClassMissing(class) => rest(Reason::ClassMissing, format!("storage class {class} does not exist")),
        Prospect::MadeByHand(class) => rest(
            Reason::NoVolumeFits,
            format!("no volume fits the claim and class {class} makes none: create a PersistentVolume"),
        ),
        Prospect::InTree { class, provisioner } => rest(
            Reason::ProvisionerNotSupported,
            format!("class {class} names {provisioner}, which is not a CSI driver: use a class of a CSI driver"),
        ),
        Prospect::AwaitsConsumer { class, pods } if pods.is_empty() => {
            rest(Reason::WaitForFirstConsumer, format!("class {class} waits for the first pod that uses the claim"))
        }
        Prospect::AwaitsConsumer { class, pods } => rest(
            Reason::WaitForPodScheduled,
            format!("class {class} waits for one of these pods to be given a node: {}", pods.join(", ")),
        ),
        Prospect::Provision { class, provisioner } => call_provisioner(claim, class, provisioner),
    }
}

/// PV-36: names the provisioner on the claim, then leaves the work to it.
fn call_provisioner(claim: &Arc<PersistentVolumeClaim>, class: &str, provisioner: &str) -> Decision<Action, Reason> {
    let named = claim.metadata.annotation(names::STORAGE_PROVISIONER);
    if named == Some(provisioner) {
        return Decision::Rest(Why::waiting(
            Reason::ExternalProvisioning,
            format!("waiting for provisioner {provisioner} to make a volume of class {class}"),
        ));
    }
    // A volume may be in the making; its maker must finish or undo it before another is called.
    if named.is_some() && claim.metadata.has_finalizer(names::PROVISIONING_INTENT) {
        return Decision::Rest(Why::waiting(
            Reason::ProvisionerBusy,
            format!("class {class} now names {provisioner}, but {} is still at work", named.unwrap_or_default()),
        ));
    }
    Decision::Do(
        Action::CallProvisioner { claim: claim.clone(), provisioner: provisioner.into() },
        Why::waiting(
            Reason::CallingProvisioner,
            format!("no volume fits the claim: asking {provisioner} of class {class}"),
        ),
    )
}

/// The lower half of the table of orchestrator 2.3.
fn named(now: Timestamp, facts: &ClaimFacts, target: &NamedVolume) -> Decision<Action, Reason> {
    let claim = &facts.claim;
    match target {
        NamedVolume::Free(candidate) | NamedVolume::Ours(candidate) => bind_if_fit(now, facts, candidate),
        NamedVolume::Missing(volume) => Decision::Rest(Why::waiting(
            Reason::VolumeNotFound,
            format!("volume {volume}, which the claim names, does not exist"),
        )),
        NamedVolume::Foreign { volume, holder } => Decision::Rest(Why::waiting(
            Reason::VolumeTaken,
            format!("volume {volume}, which the claim names, belongs to {}", owner(claim, holder)),
        )),
        NamedVolume::Nameless => Decision::Rest(Why::waiting(Reason::VolumeNotNamed, "the claim names no volume")),
    }
}

/// The table of orchestrator 2.4.
fn completed(now: Timestamp, facts: &ClaimFacts, target: &NamedVolume, memory: &Memory) -> Decision<Action, Reason> {
    let claim = &facts.claim;
    match target {
        // A claim may ask for a size and attributes that its volume does not have yet, so that these no longer count.
        NamedVolume::Ours(candidate) if matches!(candidate.fit, Fit::Released) => bind_if_fit(now, facts, candidate),
        NamedVolume::Free(candidate) if matches!(candidate.fit, Fit::Released | Fit::Deleting) => {
            bind_if_fit(now, facts, candidate)
        }
        NamedVolume::Ours(candidate) | NamedVolume::Free(candidate) => bind(now, facts, &candidate.volume),
        NamedVolume::Nameless => {
            lost(claim, Reason::VolumeNotNamed, "the claim was bound and names no volume any more".into())
        }
        NamedVolume::Missing(volume) => surely(
            now,
            claim,
            volume,
            memory,
            Reason::VolumeVanished,
            format!("volume {volume} does not exist any more"),
        ),
        NamedVolume::Foreign { volume, holder } => surely(
            now,
            claim,
            volume,
            memory,
            Reason::ClaimMisbound,
            format!("volume {volume} belongs to {} now", owner(claim, holder)),
        ),
    }
}

/// A claim that a volume refers to, as this claim sees it.
fn owner(claim: &PersistentVolumeClaim, holder: &str) -> String {
    match holder == format!("{}", claim.metadata.key()) {
        true => "an earlier claim of the same name; clear spec.claimRef of the volume to let this one have it".into(),
        false => format!("claim {holder}"),
    }
}

/// Declares a claim lost only when a fresh read agrees with the cache that the volume is not the claim's.
fn surely(
    now: Timestamp,
    claim: &Arc<PersistentVolumeClaim>,
    volume: &str,
    memory: &Memory,
    code: Reason,
    text: String,
) -> Decision<Action, Reason> {
    if claim.status.phase == ClaimPhase::Lost || memory.looked.says_gone(volume, &claim.metadata.uid) {
        return lost(claim, code, text);
    }
    if let Some(until) = memory.looked.says_there(volume, &claim.metadata.uid, now) {
        return Decision::Wait(
            until,
            Why::waiting(Reason::VolumeNotSeenYet, format!("waiting for news of volume {volume}")),
        );
    }
    Decision::Do(
        Action::LookForVolume { volume: volume.into(), claim_uid: claim.metadata.uid.clone() },
        Why::waiting(Reason::LookingForVolume, format!("making sure that volume {volume} is gone")),
    )
}

fn lost(claim: &Arc<PersistentVolumeClaim>, code: Reason, text: String) -> Decision<Action, Reason> {
    let why = Why::waiting(code, text);
    if claim.status.phase == ClaimPhase::Lost {
        return Decision::Rest(why);
    }
    Decision::Do(Action::MarkClaimLost(claim.clone()), why)
}

fn bind_if_fit(now: Timestamp, facts: &ClaimFacts, candidate: &Candidate) -> Decision<Action, Reason> {
    match candidate.fit.obstacle() {
        None => bind(now, facts, &candidate.volume),
        Some(obstacle) => Decision::Rest(Why::waiting(
            Reason::VolumeMismatch,
            format!("volume {}, which is meant for the claim, {obstacle}", candidate.volume.metadata.name),
        )),
    }
}

/// PV-20: four writes in this order, each only if needed. After a crash between any two, the next look finds the
/// volume by the claim's uid and goes on.
fn bind(now: Timestamp, facts: &ClaimFacts, volume: &Arc<PersistentVolume>) -> Decision<Action, Reason> {
    let name = &volume.metadata.name;
    let (claim, volume) = (facts.claim.clone(), volume.clone());
    let refers = volume.spec.claim_ref.as_ref().is_some_and(|holder| holder.uid == claim.metadata.uid);
    if !refers {
        let why = Why::waiting(Reason::ReservingVolume, format!("reserving volume {name} for the claim"));
        return Decision::Do(Action::Reserve { volume: volume.clone(), claim }, why);
    }
    if volume.status.phase != VolumePhase::Bound {
        let why = Why::waiting(Reason::BindingVolume, format!("marking volume {name} as bound"));
        return Decision::Do(Action::MarkVolumeBound(volume.clone()), why);
    }
    if claim.spec.volume_name != *name || claim.metadata.annotation(names::BIND_COMPLETED).is_none() {
        let why = Why::waiting(Reason::BindingClaim, format!("pointing the claim at volume {name}"));
        return Decision::Do(Action::PointClaim { claim, volume: name.clone() }, why);
    }
    if claim.status.phase != ClaimPhase::Bound || claim.status.access_modes != volume.spec.access_modes {
        let why = Why::waiting(Reason::ReportingBound, format!("reporting the claim as bound to volume {name}"));
        // What is to be said of its use goes with it, and costs no write of its own.
        let usage = bound::usage(now, facts).filter(|_| !claim.metadata.is_deleting());
        return Decision::Do(Action::MarkClaimBound { claim, volume: volume.clone(), usage }, why);
    }
    Decision::Rest(Why::settled(Reason::Bound, format!("the claim is bound to volume {name}")))
}
