use alloc::format;

use control::{Decision, Tick, Why};

use crate::decide_volume;
use crate::{
    Action, ClaimView, Course, Fresh, Made, Memory, Offer, Request, Slot, Stage, Terms, View, VolumeView, Work,
};

/// What to do now, held back while a failed attempt is being waited out.
pub(crate) fn decide(now: Tick, view: &View, memory: &Memory) -> Decision<Action> {
    let decision = match view {
        View::Claim(view) => claim(view, memory),
        View::Volume(VolumeView::Gone) => Decision::Rest(Why::settled("VolumeGone", "the volume does not exist")),
        View::Volume(VolumeView::NotOurs) => {
            Decision::Rest(Why::settled("NotOurs", "the volume was made by somebody else"))
        }
        View::Volume(VolumeView::Ours { volume, local, attachments }) => {
            decide_volume::volume(now, volume, local, attachments, memory)
        }
    };
    match (decision, memory.retry.pause(now)) {
        (Decision::Do(_, why), Some(until)) => Decision::Wait(until, trying_again(&why, memory)),
        (decision, _) => decision,
    }
}

fn trying_again(why: &Why, memory: &Memory) -> Why {
    let failure = memory.retry.last_failure().unwrap_or("no answer");
    let code = match &memory.stage {
        Stage::Refused => "CreateRefused",
        Stage::Nothing | Stage::Created(_) | Stage::Committed | Stage::Deleted => "TryingAgain",
    };
    Why::waiting(code, format!("{}: {failure}", why.text))
}

fn claim(view: &ClaimView, memory: &Memory) -> Decision<Action> {
    match view {
        ClaimView::Gone => Decision::Rest(Why::settled("ClaimGone", "the claim does not exist")),
        ClaimView::NobodyAsked => {
            Decision::Rest(Why::settled("NotAsked", "nobody has been asked to make a volume for the claim"))
        }
        ClaimView::AnotherAsked(other) => {
            Decision::Rest(Why::settled("NotOurs", format!("the claim's volume is made by {other}")))
        }
        ClaimView::ClassOfAnother { class, provisioner } => {
            Decision::Rest(Why::settled("ClassNotOurs", format!("class {class} belongs to provisioner {provisioner}")))
        }
        ClaimView::Ours(work) => ours(work, &memory.about(&work.claim.metadata.uid)),
    }
}

fn ours(work: &Work, memory: &Memory) -> Decision<Action> {
    if !work.intent {
        return without_intent(work);
    }
    // A volume that a PersistentVolume accounts for needs no intent any more, whatever becomes of the claim.
    if work.slot == Slot::Filled || memory.stage == Stage::Committed {
        return drop_intent(work, "VolumeRecorded", "the volume is recorded, so that the intent has served");
    }
    match &work.course {
        Course::Provide | Course::AwaitNode => provide(work, memory),
        Course::Deleted | Course::Bound(_) => undo(work, memory),
    }
}

fn without_intent(work: &Work) -> Decision<Action> {
    let driver = &work.local.driver;
    match (&work.course, &work.slot) {
        (Course::Deleted, _) => Decision::Rest(Why::settled("ClaimBeingDeleted", "the claim is being deleted")),
        (Course::Bound(volume), _) => {
            Decision::Rest(Why::settled("Bound", format!("the claim is bound to volume {volume}")))
        }
        (Course::Provide | Course::AwaitNode, Slot::Filled) => {
            Decision::Rest(Why::settled("VolumeMade", "the volume is made and awaits its binding"))
        }
        (Course::Provide | Course::AwaitNode, Slot::Taken(holder)) => name_taken(work, holder),
        (Course::AwaitNode, Slot::Empty) => Decision::Rest(Why::waiting(
            "AwaitingNode",
            format!("driver {driver} makes the volume when a node is selected for the first pod"),
        )),
        (Course::Provide, Slot::Empty) => match &work.offer {
            Offer::Standing(terms) => record_intent(work, terms),
            Offer::Unfit(obstacle) => Decision::Rest(Why::waiting(obstacle.code, obstacle.text.clone())),
            Offer::Withdrawn { class, .. } => class_missing(class),
        },
    }
}

fn class_missing(class: &str) -> Decision<Action> {
    Decision::Rest(Why::waiting("ClassMissing", format!("storage class {class} does not exist")))
}

fn name_taken(work: &Work, holder: &str) -> Decision<Action> {
    let name = api::names::volume_name_for_claim(&work.claim.metadata.uid);
    Decision::Rest(Why::waiting(
        "VolumeNameTaken",
        format!("volume {name}, the name this claim's volume would get, exists and is for {holder}: delete it"),
    ))
}

/// The write-ahead intent: the one step without which no volume may be made.
fn record_intent(work: &Work, terms: &Terms) -> Decision<Action> {
    Decision::Do(
        Action::RecordIntent { claim: work.claim.clone(), record: terms.request.record(&terms.class_uid) },
        Why::waiting(
            "RecordingIntent",
            format!("noting on the claim that {} is to make its volume", work.local.driver),
        ),
    )
}

fn provide(work: &Work, memory: &Memory) -> Decision<Action> {
    if let Slot::Taken(holder) = &work.slot {
        return name_taken(work, holder);
    }
    match (&work.offer, &memory.stage) {
        (Offer::Standing(terms), Stage::Created(made)) => create_pv(work, terms, made, memory),
        (Offer::Standing(terms), Stage::Nothing | Stage::Refused) => create_volume(work, &terms.request, memory),
        (Offer::Unfit(obstacle), Stage::Nothing | Stage::Refused | Stage::Created(_)) => {
            Decision::Rest(Why::waiting(obstacle.code, obstacle.text.clone()))
        }
        // The user may have replaced the class because the driver would not take it. Then nothing was made, and the
        // new class can have its turn.
        (Offer::Withdrawn { replaced: true, .. }, Stage::Refused) => {
            drop_intent(work, "StartingOver", "the driver refused and the class was replaced: starting over")
        }
        (Offer::Withdrawn { replaced: true, recorded: Some(request), .. }, Stage::Nothing) => {
            create_volume(work, request, memory)
        }
        (Offer::Withdrawn { class, replaced: true, .. }, Stage::Nothing | Stage::Created(_)) => {
            Decision::Rest(Why::waiting(
                "ClassReplaced",
                format!(
                    "class {class} was replaced while the volume was being made: delete the claim and create it again"
                ),
            ))
        }
        (Offer::Withdrawn { class, replaced: false, .. }, Stage::Nothing | Stage::Refused | Stage::Created(_)) => {
            class_missing(class)
        }
        (Offer::Standing(_) | Offer::Unfit(_) | Offer::Withdrawn { .. }, Stage::Committed | Stage::Deleted) => {
            drop_intent(work, "NothingLeft", "nothing is left to be made or undone")
        }
    }
}

/// Calls the driver, but not on an intent that an earlier life may be about to withdraw.
fn create_volume(work: &Work, request: &Request, memory: &Memory) -> Decision<Action> {
    if !memory.owned {
        return Decision::Do(
            Action::AdoptIntent(work.claim.clone()),
            Why::waiting("AdoptingIntent", "taking over the intent found on the claim"),
        );
    }
    Decision::Do(
        Action::CreateVolume {
            uid: work.claim.metadata.uid.clone(),
            socket: work.local.socket.clone(),
            request: request.clone(),
        },
        Why::waiting(
            "CreatingVolume",
            format!("waiting for driver {} to create volume {}", work.local.driver, request.name),
        ),
    )
}

fn create_pv(work: &Work, terms: &Terms, made: &Made, memory: &Memory) -> Decision<Action> {
    let name = &terms.request.name;
    let required = terms.request.required_bytes;
    if made.capacity_bytes != 0 && made.capacity_bytes < required {
        let text = format!(
            "driver {} made a volume of {} bytes where {required} were asked: delete the claim to remove it",
            work.local.driver, made.capacity_bytes
        );
        return Decision::Rest(Why::waiting("VolumeTooSmall", text));
    }
    if memory.fresh == Fresh::Wanted {
        return look(work, "a volume of that name exists: looking whose it is");
    }
    Decision::Do(
        Action::CreatePv {
            claim: work.claim.clone(),
            driver: work.local.driver.clone(),
            terms: terms.clone(),
            made: made.clone(),
        },
        Why::waiting("RecordingVolume", format!("recording the volume as {name}")),
    )
}

fn look(work: &Work, text: &str) -> Decision<Action> {
    Decision::Do(Action::LookForPv { uid: work.claim.metadata.uid.clone() }, Why::waiting("LookingForVolume", text))
}

/// The volume is not wanted: find out what the driver made, have it deleted, and only then forget.
fn undo(work: &Work, memory: &Memory) -> Decision<Action> {
    match &memory.stage {
        Stage::Refused => drop_intent(work, "NothingMade", "the driver refused to make the volume, so there is none"),
        Stage::Committed | Stage::Deleted => drop_intent(work, "VolumeUndone", "the volume is deleted again"),
        Stage::Created(made) => match &memory.fresh {
            Fresh::Unread | Fresh::Wanted | Fresh::Condemned | Fresh::Spared { .. } => {
                look(work, "making sure that no volume was recorded for the claim")
            }
            Fresh::Taken { handle } if *handle == made.volume_id => {
                drop_intent(work, "VolumeRecorded", "another PersistentVolume accounts for the volume")
            }
            Fresh::Absent | Fresh::Taken { .. } => delete_again(work, made),
        },
        Stage::Nothing => match request_as_it_was(&work.offer) {
            Some(request) => create_volume(work, request, memory),
            None => Decision::Rest(Why::waiting(
                "CannotUndo",
                format!(
                    "a volume may have been made and its class cannot be used to find it: delete volume {} by hand, \
                     then remove finalizer {} from the claim",
                    api::names::volume_name_for_claim(&work.claim.metadata.uid),
                    api::names::PROVISIONING_INTENT
                ),
            )),
        },
    }
}

fn request_as_it_was(offer: &Offer) -> Option<&Request> {
    match offer {
        Offer::Standing(terms) => Some(&terms.request),
        Offer::Withdrawn { recorded, .. } => recorded.as_ref(),
        Offer::Unfit(_) => None,
    }
}

fn delete_again(work: &Work, made: &Made) -> Decision<Action> {
    let driver = &work.local.driver;
    Decision::Do(
        Action::DeleteVolume {
            uid: work.claim.metadata.uid.clone(),
            socket: work.local.socket.clone(),
            volume_id: made.volume_id.clone(),
        },
        Why::waiting(
            "UndoingVolume",
            format!("waiting for driver {driver} to delete the volume nobody wants any more"),
        ),
    )
}

fn drop_intent(work: &Work, code: &'static str, text: &str) -> Decision<Action> {
    Decision::Do(Action::DropIntent(work.claim.clone()), Why::waiting(code, text))
}
