//! What to do about a claim or a volume.

mod in_memory;
mod step;
mod volume;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::PersistentVolumeClaim;
use control::{Decision, Timestamp, Why};

use crate::build::selected_node;
use crate::intent;
use crate::{
    Action, ClaimView, ClassTerms, Fresh, Goal, Intent, IntentLocation, Made, Memory, NameSlot, Provision, Reason,
    Stage, Terms, View, VolumeView,
};
use step::Step;

pub use volume::is_condemned;

/// How long an entry that has served stays in a journal that is not crowded.
const LINGER_MILLIS: u64 = 1_000;

pub(crate) fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
    match view {
        View::Claim(view) => claim(now, view, memory),
        View::Volume(VolumeView::Gone) => Decision::Rest(Why::settled(Reason::VolumeGone, "the volume does not exist")),
        View::Volume(VolumeView::NotOurs) => {
            Decision::Rest(Why::settled(Reason::NotOurs, "the volume was made by somebody else"))
        }
        View::Volume(VolumeView::OnAnotherNode) => {
            Decision::Rest(Why::settled(Reason::OnAnotherNode, "the volume cannot be reached from this node"))
        }
        View::Volume(VolumeView::Ours { volume, local, attachments, secret }) => {
            volume::volume(now, volume, local, attachments, secret.as_ref(), memory)
        }
    }
}

fn claim(now: Timestamp, view: &ClaimView, memory: &Memory) -> Decision<Action, Reason> {
    if let Some(in_flight) = in_memory::left_over(view, memory) {
        return in_memory::ours(&Step { now, work: &in_flight, memory });
    }
    match view {
        ClaimView::Gone => Decision::Rest(Why::settled(Reason::ClaimGone, "the claim does not exist")),
        ClaimView::NobodyAsked => {
            Decision::Rest(Why::settled(Reason::NotAsked, "nobody has been asked to make a volume for the claim"))
        }
        ClaimView::AnotherAsked(other) => {
            Decision::Rest(Why::settled(Reason::NotOurs, format!("the claim's volume is made by {other}")))
        }
        ClaimView::ClassOfAnother { class, provisioner } => Decision::Rest(Why::settled(
            Reason::ClassNotOurs,
            format!("class {class} belongs to provisioner {provisioner}"),
        )),
        ClaimView::Bound(volume) => bound(volume),
        ClaimView::OnAnotherNode(node) if node.is_empty() => Decision::Rest(Why::settled(
            Reason::NotForNodes,
            "claims that wait for no pod are not made by a node's provisioner",
        )),
        ClaimView::OnAnotherNode(node) => {
            Decision::Rest(Why::settled(Reason::OnAnotherNode, format!("the claim's volume is made on node {node}")))
        }
        ClaimView::Recorded { claim, intent: Some(place), since } => served(now, claim, place, *since),
        ClaimView::Recorded { claim, intent: None, .. } if claim.metadata.is_deleting() => being_deleted(),
        ClaimView::Recorded { intent: None, .. } => made(),
        ClaimView::Ours(work) => {
            let memory = memory.about(&work.claim.metadata.uid);
            let step = Step { now, work, memory: &memory };
            match work.local.settings.intent {
                // An intent is seen to its end, whatever the settings are now.
                Intent::InMemory if work.intent.is_none() => in_memory::ours(&step),
                Intent::InMemory | Intent::OnClaim | Intent::InJournal => ours(&step),
            }
        }
    }
}

fn ours(step: &Step) -> Decision<Action, Reason> {
    let Some(place) = &step.work.intent else { return without_intent(step) };
    // The API has confirmed the PersistentVolume, even if it is gone again by now.
    if step.memory.stage == Stage::Committed {
        return leave(&step.work.claim, place);
    }
    match &step.work.goal {
        // Nothing was made, and nothing is to be made before a node is selected.
        Goal::AwaitNode if matches!(step.memory.stage, Stage::Refused { .. }) => {
            drop_intent(step.work, Reason::StartingOver, "the driver refused: starting over when a node is selected")
        }
        Goal::Provide | Goal::AwaitNode | Goal::Contest { .. } => provide(step),
        Goal::Deleted | Goal::Bound(_) => undo(step),
    }
}

/// A volume that a PersistentVolume accounts for needs no intent any more, whatever becomes of the claim. An entry of the
/// journal leaves it with those that serve about the same time, in one write. A claim that goes does not linger: the
/// deletion of its volume waits for the entry.
fn served(
    now: Timestamp,
    claim: &Arc<PersistentVolumeClaim>,
    place: &IntentLocation,
    since: Timestamp,
) -> Decision<Action, Reason> {
    let until = since.after_millis(LINGER_MILLIS);
    match place {
        IntentLocation::Journal(page)
            if !page.crowded && !claim.metadata.is_deleting() && since <= now && now < until =>
        {
            let why = Why::settled(Reason::EntryServed, "the volume is made; its entry leaves the journal soon");
            Decision::Wait(until, why)
        }
        IntentLocation::Journal(_) | IntentLocation::Claim => leave(claim, place),
    }
}

/// Nobody waits for this.
fn leave(claim: &Arc<PersistentVolumeClaim>, place: &IntentLocation) -> Decision<Action, Reason> {
    let why = Why::settled(Reason::VolumeRecorded, "the volume is recorded, so that the intent has served");
    Decision::Do(Action::DropIntent { claim: claim.clone(), place: place.clone() }, why)
}

fn without_intent(step: &Step) -> Decision<Action, Reason> {
    let work = step.work;
    match (&work.goal, &work.name_slot) {
        (Goal::Deleted, _) => being_deleted(),
        (Goal::Bound(volume), _) => bound(volume),
        (Goal::Provide | Goal::AwaitNode | Goal::Contest { .. }, NameSlot::Taken(holder)) => name_taken(work, holder),
        (Goal::AwaitNode, NameSlot::Empty) => awaiting_node(work),
        (goal @ (Goal::Provide | Goal::Contest { .. }), NameSlot::Empty) => match &work.offer {
            ClassTerms::Standing(_) | ClassTerms::Changed(_) if work.journal_full && records_in_journal(work) => {
                journal_full(work)
            }
            ClassTerms::Standing(terms) | ClassTerms::Changed(terms) => match goal {
                Goal::Contest { from } => step.contest(*from, terms),
                Goal::Provide | Goal::AwaitNode | Goal::Deleted | Goal::Bound(_) => record_intent(step, terms),
            },
            ClassTerms::Unfit(obstacle)
                if matches!(goal, Goal::Contest { .. }) && obstacle.code == Reason::NodeNotAllowed =>
            {
                Decision::Rest(Why::settled(Reason::NotAllowedHere, obstacle.text.clone()))
            }
            ClassTerms::Unfit(obstacle) => Decision::Rest(Why::waiting(obstacle.code, obstacle.text.clone())),
            ClassTerms::Misplaced(text) => step.reschedule(Reason::NodeUnfit, text),
            ClassTerms::Withdrawn { class, .. } => class_missing(class),
        },
    }
}

pub(crate) fn bound(volume: &str) -> Decision<Action, Reason> {
    Decision::Rest(Why::settled(Reason::Bound, format!("the claim is bound to volume {volume}")))
}

fn being_deleted() -> Decision<Action, Reason> {
    Decision::Rest(Why::settled(Reason::ClaimBeingDeleted, "the claim is being deleted"))
}

pub(crate) fn made() -> Decision<Action, Reason> {
    Decision::Rest(Why::settled(Reason::VolumeMade, "the volume is made and awaits its binding"))
}

pub(crate) fn awaiting_node(work: &Provision) -> Decision<Action, Reason> {
    let driver = &work.local.driver;
    Decision::Rest(Why::waiting(
        Reason::AwaitingNode,
        format!("driver {driver} makes the volume when a node is selected for the first pod"),
    ))
}

pub(crate) fn class_missing(class: &str) -> Decision<Action, Reason> {
    Decision::Rest(Why::waiting(Reason::ClassMissing, format!("storage class {class} does not exist")))
}

pub(crate) fn name_taken(work: &Provision, holder: &str) -> Decision<Action, Reason> {
    let name = &work.name;
    Decision::Rest(Why::waiting(
        Reason::VolumeNameTaken,
        format!("volume {name}, the name this claim's volume would get, exists and is for {holder}: delete it"),
    ))
}

fn records_in_journal(work: &Provision) -> bool {
    work.local.settings.intent == Intent::InJournal
}

/// Whoever waits for room needs none of it to be found again: the claim itself says that it has no volume.
fn journal_full(work: &Provision) -> Decision<Action, Reason> {
    let text = format!("the journal is full: waiting until entries leave Lease {}", work.page.journal);
    Decision::Rest(Why::waiting(Reason::JournalFull, text))
}

/// The write-ahead intent: the one step without which no volume may be made.
fn record_intent(step: &Step, terms: &Terms) -> Decision<Action, Reason> {
    let work = step.work;
    if let Some(look) = look_again(step) {
        return look;
    }
    let (place, record) = match records_in_journal(work) {
        true => (IntentLocation::Journal(work.page.clone()), intent::record_for(&work.claim, terms)),
        false => (IntentLocation::Claim, intent::record(&work.claim, terms)),
    };
    Decision::Do(
        Action::RecordIntent { claim: work.claim.clone(), place, record },
        Why::waiting(
            Reason::RecordingIntent,
            format!("noting that {} is to make the claim's volume", work.local.driver),
        ),
    )
}

/// A claim whose volume was recorded lately is more likely bound, or gone, and the news of it late.
fn look_again(step: &Step) -> Option<Decision<Action, Reason>> {
    let meta = &step.work.claim.metadata;
    if !step.work.recently_provisioned {
        return None;
    }
    match &step.memory.fresh {
        Fresh::StillWanted => None,
        Fresh::Spared { again } if step.now < *again => {
            let why = Why::waiting(Reason::ClaimChanged, "the claim has changed: waiting for news of it");
            Some(Decision::Wait(*again, why))
        }
        Fresh::Unread
        | Fresh::Wanted
        | Fresh::Absent
        | Fresh::Taken { .. }
        | Fresh::Condemned
        | Fresh::MaybeAttached
        | Fresh::Spared { .. } => Some(Decision::Do(
            Action::LookAtClaim { key: meta.key(), uid: meta.uid.clone() },
            Why::waiting(Reason::LookingAgain, "making sure that the claim still needs a volume"),
        )),
    }
}

fn provide(step: &Step) -> Decision<Action, Reason> {
    let work = step.work;
    if let NameSlot::Taken(holder) = &work.name_slot {
        return name_taken(work, holder);
    }
    match (&work.offer, &step.memory.stage) {
        (ClassTerms::Standing(terms) | ClassTerms::Changed(terms), Stage::Created(made)) => step.create_pv(terms, made),
        (ClassTerms::Standing(terms) | ClassTerms::Changed(terms), Stage::Faulty(made)) => remove(step, terms, made),
        // The driver has no room there: the scheduler may know a better node.
        (ClassTerms::Standing(_) | ClassTerms::Changed(_), Stage::Refused { exhausted: true }) if may_move(work) => {
            step.reschedule(Reason::NoRoom, "the driver has no room where the node is: another node is to be selected")
        }
        (ClassTerms::Standing(terms), Stage::Nothing | Stage::Refused { .. } | Stage::Deleted) => {
            create_volume(step, terms)
        }
        // Nothing was made, so that what would be recorded now can have its turn.
        (ClassTerms::Changed(_), Stage::Refused { .. }) => {
            drop_intent(work, Reason::StartingOver, "the driver refused and things have changed since: starting over")
        }
        (ClassTerms::Changed(terms), Stage::Nothing | Stage::Deleted) => create_volume(step, terms),
        // An intent whose record cannot be read.
        (ClassTerms::Unfit(obstacle), _) => Decision::Rest(Why::waiting(obstacle.code, obstacle.text.clone())),
        (ClassTerms::Misplaced(text), _) => Decision::Rest(Why::waiting(Reason::NodeUnfit, text.clone())),
        (ClassTerms::Withdrawn { class, replaced, recorded }, stage) => {
            withdrawn(step, class, *replaced, recorded, stage)
        }
        (ClassTerms::Standing(_) | ClassTerms::Changed(_), Stage::Committed) => {
            drop_intent(work, Reason::NothingLeft, "nothing is left to be made or undone")
        }
    }
}

/// The node was selected for this claim, and where it is matters to the driver.
pub(crate) fn may_move(work: &Provision) -> bool {
    work.local.uses_topology() && selected_node(&work.claim).is_some()
}

/// The class went while the volume was being made.
fn withdrawn(
    step: &Step,
    class: &str,
    replaced: bool,
    recorded: &Option<Terms>,
    stage: &Stage,
) -> Decision<Action, Reason> {
    match (replaced, stage, recorded) {
        // The user may have replaced the class because the driver would not take it. Then nothing was made, and the
        // new class can have its turn (P48).
        (true, Stage::Refused { .. }, _) => {
            drop_intent(step.work, Reason::StartingOver, "the driver refused and the class was replaced: starting over")
        }
        (true, Stage::Nothing, Some(terms)) => create_volume(step, terms),
        (true, Stage::Nothing | Stage::Created(_) | Stage::Faulty(_) | Stage::Deleted | Stage::Committed, _) => {
            Decision::Rest(Why::waiting(
                Reason::ClassReplaced,
                format!(
                    "class {class} was replaced while the volume was being made: delete the claim and create it again"
                ),
            ))
        }
        (false, _, _) => class_missing(class),
    }
}

/// Calls the driver, but not on an intent that an earlier incarnation may be about to withdraw.
fn create_volume(step: &Step, terms: &Terms) -> Decision<Action, Reason> {
    match &step.work.intent {
        Some(place) if !step.memory.owned => Decision::Do(
            Action::AdoptIntent { claim: step.work.claim.clone(), place: place.clone() },
            Why::waiting(Reason::AdoptingIntent, "taking over the intent that was found"),
        ),
        Some(_) | None => step.create_volume(terms, None),
    }
}

/// The volume is not wanted: find out what the driver made, have it deleted, and only then forget.
fn undo(step: &Step) -> Decision<Action, Reason> {
    let (work, memory) = (step.work, step.memory);
    let terms = as_it_was(&work.offer);
    match (&memory.stage, terms) {
        (Stage::Refused { .. }, _) => {
            drop_intent(work, Reason::NothingMade, "the driver refused to make the volume, so there is none")
        }
        (Stage::Committed | Stage::Deleted, _) => {
            drop_intent(work, Reason::VolumeUndone, "the volume is deleted again")
        }
        (Stage::Created(made) | Stage::Faulty(made), Some(terms)) => remove(step, terms, made),
        (Stage::Nothing, Some(terms)) => create_volume(step, terms),
        (Stage::Nothing | Stage::Created(_) | Stage::Faulty(_), None) => Decision::Rest(Why::waiting(
            Reason::CannotUndo,
            format!(
                "a volume may have been made and its class cannot be used to find it: delete volume {} by hand, \
                 then remove {}",
                work.name,
                trace(work)
            ),
        )),
    }
}

/// What an operator has to remove so that the intent is forgotten.
fn trace(work: &Provision) -> String {
    match &work.intent {
        Some(IntentLocation::Journal(page)) => {
            let names: Vec<&str> = page.entries.iter().map(|(name, _)| name.as_str()).collect();
            format!("annotation {} from Lease {}", names.join(" and "), page.journal)
        }
        Some(IntentLocation::Claim) | None => format!("finalizer {} from the claim", api::names::PROVISIONING_INTENT),
    }
}

fn as_it_was(offer: &ClassTerms) -> Option<&Terms> {
    match offer {
        ClassTerms::Standing(terms) | ClassTerms::Changed(terms) => Some(terms),
        ClassTerms::Withdrawn { recorded, .. } => recorded.as_ref(),
        ClassTerms::Unfit(_) | ClassTerms::Misplaced(_) => None,
    }
}

/// Has a volume deleted, once it is certain that no PersistentVolume accounts for it.
pub(crate) fn remove(step: &Step, terms: &Terms, made: &Made) -> Decision<Action, Reason> {
    let accounts = |handle: &str| rules_translate::same_volume(step.work.local.csi_name(), handle, &made.volume_id);
    match &step.memory.fresh {
        Fresh::Unread
        | Fresh::Wanted
        | Fresh::StillWanted
        | Fresh::Condemned
        | Fresh::MaybeAttached
        | Fresh::Spared { .. } => step.look("making sure that no volume was recorded for the claim"),
        Fresh::Taken { handle } if accounts(handle) && step.work.intent.is_some() => {
            drop_intent(step.work, Reason::VolumeRecorded, "another PersistentVolume accounts for the volume")
        }
        Fresh::Taken { handle } if accounts(handle) => {
            Decision::Rest(Why::settled(Reason::VolumeRecorded, "another PersistentVolume accounts for the volume"))
        }
        Fresh::Absent | Fresh::Taken { .. } => step.delete_again(terms, made),
    }
}

fn drop_intent(work: &Provision, code: Reason, text: &str) -> Decision<Action, Reason> {
    match &work.intent {
        Some(place) => Decision::Do(
            Action::DropIntent { claim: work.claim.clone(), place: place.clone() },
            Why::waiting(code, text),
        ),
        None => Decision::Rest(Why::settled(code, text)),
    }
}
