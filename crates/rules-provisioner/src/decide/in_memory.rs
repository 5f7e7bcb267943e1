//! Upstream's protocol, for those who want it: nothing is written down before the volume is made. What is under way is
//! known to this process alone and goes on from memory, even after the claim is gone (P47). A crash may leave a volume
//! that nothing accounts for.

use alloc::sync::Arc;

use control::{Decision, Why};

use super::step::Step;
use super::{awaiting_node, bound, class_missing, made, may_move, name_taken, remove};
use crate::{Action, ClaimView, Course, Hold, Job, Memory, Offer, Reason, Slot, Stage, Terms, Work};

/// Work begun for a claim that is no longer the one we see.
pub(crate) fn left_over(view: &ClaimView, memory: &Memory) -> Option<Work> {
    let job = memory.job.as_ref()?;
    let same = match view {
        // P6: the volume that is being made is there already.
        ClaimView::Recorded { claim, .. } => claim.metadata.uid == job.claim.metadata.uid,
        ClaimView::Ours(work) => work.claim.metadata.uid == job.claim.metadata.uid,
        ClaimView::Gone
        | ClaimView::NobodyAsked
        | ClaimView::AnotherAsked(_)
        | ClaimView::ClassOfAnother { .. }
        | ClaimView::Bound(_)
        | ClaimView::OnAnotherNode(_) => false,
    };
    (!same).then(|| Work {
        claim: job.claim.clone(),
        local: job.local.clone(),
        lately: false,
        name: job.terms.request.name.clone(),
        intent: None,
        page: Arc::default(),
        journal_full: false,
        course: Course::Provide,
        slot: Slot::Empty,
        offer: Offer::Standing(job.terms.clone()),
        hold: Hold::Lost { going: false },
        in_tree: job.in_tree,
    })
}

pub(crate) fn ours(step: &Step) -> Decision<Action, Reason> {
    let work = step.work;
    match (&work.course, &work.slot) {
        (Course::Bound(volume), Slot::Empty | Slot::Taken(_)) => bound(volume),
        (_, Slot::Taken(holder)) => name_taken(work, holder),
        (Course::AwaitNode, Slot::Empty) => awaiting_node(work),
        (Course::Contest { from }, Slot::Empty) => match &work.offer {
            Offer::Standing(terms) => step.contest(*from, terms),
            Offer::Changed(_) | Offer::Unfit(_) | Offer::Misplaced(_) | Offer::Withdrawn { .. } => provide(step),
        },
        // Being deleted makes no difference upstream.
        (Course::Provide | Course::Deleted, Slot::Empty) => provide(step),
    }
}

fn provide(step: &Step) -> Decision<Action, Reason> {
    let (work, memory) = (step.work, step.memory);
    // What is under way is repeated with the same arguments (P44).
    let terms = match (&memory.job, &work.offer) {
        (Some(job), _) => &job.terms,
        (None, Offer::Standing(terms) | Offer::Changed(terms)) => terms,
        (None, Offer::Unfit(obstacle)) => return Decision::Rest(Why::waiting(obstacle.code, obstacle.text.clone())),
        (None, Offer::Misplaced(text)) => return step.reschedule(Reason::NodeUnfit, text),
        (None, Offer::Withdrawn { class, .. }) => return class_missing(class),
    };
    match &memory.stage {
        Stage::Created(made) => step.create_pv(terms, made),
        Stage::Faulty(made) => remove(step, terms, made),
        Stage::Committed => made(),
        Stage::Refused { exhausted: true } if may_move(work) => {
            step.reschedule(Reason::NoRoom, "the driver has no room where the node is: another node is to be selected")
        }
        Stage::Nothing | Stage::Refused { .. } | Stage::Deleted => step.create_volume(terms, Some(job(work, terms))),
    }
}

fn job(work: &Work, terms: &Terms) -> Arc<Job> {
    Arc::new(Job { claim: work.claim.clone(), local: work.local.clone(), terms: terms.clone(), in_tree: work.in_tree })
}
