//! Upstream's protocol, for those who want it: nothing is written down before the volume is made. What is under way is
//! known to this process alone and goes on from memory, even after the claim is gone (P47). A crash may leave a volume
//! that nothing accounts for.

use alloc::sync::Arc;

use control::{Decision, Why};

use super::step::Step;
use super::{awaiting_node, bound, class_missing, made, may_move, name_taken, remove};
use crate::{
    Action, ClaimView, ClassTerms, Goal, InFlight, Memory, NameSlot, Provision, Reason, SourceProtection, Stage, Terms,
};

/// Work begun for a claim that is no longer the one we see.
pub(crate) fn left_over(view: &ClaimView, memory: &Memory) -> Option<Provision> {
    let in_flight = memory.in_flight.as_ref()?;
    let same = match view {
        // P6: the volume that is being made is there already.
        ClaimView::Recorded { claim, .. } => claim.metadata.uid == in_flight.claim.metadata.uid,
        ClaimView::Ours(work) => work.claim.metadata.uid == in_flight.claim.metadata.uid,
        ClaimView::Gone
        | ClaimView::NobodyAsked
        | ClaimView::AnotherAsked(_)
        | ClaimView::ClassOfAnother { .. }
        | ClaimView::Bound(_)
        | ClaimView::OnAnotherNode(_) => false,
    };
    (!same).then(|| Provision {
        claim: in_flight.claim.clone(),
        local: in_flight.local.clone(),
        recently_provisioned: false,
        name: in_flight.terms.request.name.clone(),
        intent: None,
        page: Arc::default(),
        journal_full: false,
        goal: Goal::Provide,
        name_slot: NameSlot::Empty,
        offer: ClassTerms::Standing(in_flight.terms.clone()),
        source_protection: SourceProtection::Lost { going: false },
        in_tree: in_flight.in_tree,
    })
}

pub(crate) fn ours(step: &Step) -> Decision<Action, Reason> {
    let work = step.work;
    match (&work.goal, &work.name_slot) {
        (Goal::Bound(volume), NameSlot::Empty | NameSlot::Taken(_)) => bound(volume),
        (_, NameSlot::Taken(holder)) => name_taken(work, holder),
        (Goal::AwaitNode, NameSlot::Empty) => awaiting_node(work),
        (Goal::Contest { from }, NameSlot::Empty) => match &work.offer {
            ClassTerms::Standing(terms) => step.contest(*from, terms),
            ClassTerms::Changed(_) | ClassTerms::Unfit(_) | ClassTerms::Misplaced(_) | ClassTerms::Withdrawn { .. } => {
                provide(step)
            }
        },
        // Being deleted makes no difference upstream.
        (Goal::Provide | Goal::Deleted, NameSlot::Empty) => provide(step),
    }
}

fn provide(step: &Step) -> Decision<Action, Reason> {
    let (work, memory) = (step.work, step.memory);
    // What is under way is repeated with the same arguments (P44).
    let terms = match (&memory.in_flight, &work.offer) {
        (Some(in_flight), _) => &in_flight.terms,
        (None, ClassTerms::Standing(terms) | ClassTerms::Changed(terms)) => terms,
        (None, ClassTerms::Unfit(obstacle)) => {
            return Decision::Rest(Why::waiting(obstacle.code, obstacle.text.clone()));
        }
        (None, ClassTerms::Misplaced(text)) => return step.reschedule(Reason::NodeUnfit, text),
        (None, ClassTerms::Withdrawn { class, .. }) => return class_missing(class),
    };
    match &memory.stage {
        Stage::Created(made) => step.create_pv(terms, made),
        Stage::Faulty(made) => remove(step, terms, made),
        Stage::Committed => made(),
        Stage::Refused { exhausted: true } if may_move(work) => {
            step.reschedule(Reason::NoRoom, "the driver has no room where the node is: another node is to be selected")
        }
        Stage::Nothing | Stage::Refused { .. } | Stage::Deleted => {
            step.create_volume(terms, Some(in_flight(work, terms)))
        }
    }
}

fn in_flight(work: &Provision, terms: &Terms) -> Arc<InFlight> {
    Arc::new(InFlight {
        claim: work.claim.clone(),
        local: work.local.clone(),
        terms: terms.clone(),
        in_tree: work.in_tree,
    })
}
