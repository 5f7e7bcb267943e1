use alloc::format;
use alloc::string::String;

use api::VolumeError;
use control::{Decision, Tick, Why};

use crate::act::{Place, PublishRequest, Side, Stamp};
use crate::{Act, Attach, Context, Detach, Key, Memory, Obstacle, Rival, Target, View, VolumeUse};

/// How long to wait before asking again whether the caches are filled.
const SYNC_PAUSE_MILLIS: u64 = 200;

pub(crate) fn decide(now: Tick, view: &View, memory: &Memory) -> Decision<Act> {
    match view {
        View::NotSynced(kind) => Decision::Wait(
            now.after_millis(SYNC_PAUSE_MILLIS),
            Why::waiting("CacheNotSynced", format!("waiting for the first list of {kind} objects")),
        ),
        View::Gone(Key::Attachment(name)) => settled("AttachmentGone", format!("attachment {name} does not exist")),
        View::Gone(Key::Volume(name)) => settled("VolumeGone", format!("volume {name} does not exist")),
        View::NotOurs(name) => settled("NotOurs", format!("attachment {name} is for another driver")),
        View::Trivial { attachment, unconfirmed: false, .. } => {
            settled("NothingToPublish", format!("attachment {} needs nothing from the driver", attachment.name))
        }
        View::Trivial { attachment, unconfirmed: true, rival: None } => {
            hold_back(now, memory, confirm(attachment, &Context::default()))
        }
        View::Trivial { attachment, unconfirmed: true, rival: Some(rival) } => {
            Decision::Rest(elsewhere(&format!("of attachment {}", attachment.name), rival))
        }
        View::Attach(attach) => decide_attach(now, attach, memory),
        View::Detach(detach) => decide_detach(now, detach, memory),
        View::Volume(volume) => hold_back(now, memory, decide_volume(volume)),
    }
}

/// After a failure the next attempt waits its turn, and says what failed.
fn hold_back(now: Tick, memory: &Memory, plan: Decision<Act>) -> Decision<Act> {
    match (plan, memory.retry.pause(now)) {
        (Decision::Do(_, why), Some(until)) => {
            let failure = memory.retry.last_failure().unwrap_or("it failed");
            Decision::Wait(until, Why::waiting("Retrying", format!("{}: {failure}", why.text)))
        }
        (act @ Decision::Do(..), None) => act,
        (rest @ (Decision::Rest(_) | Decision::Wait(..)), Some(_) | None) => rest,
    }
}

fn decide_attach(now: Tick, attach: &Attach, memory: &Memory) -> Decision<Act> {
    if attach.attached {
        let name = &attach.attachment.name;
        return settled("Attached", format!("attachment {name} to node {} is confirmed", attach.node));
    }
    match &attach.target {
        Target::Waiting(obstacle) => Decision::Rest(obstacle.why()),
        Target::Impossible(problem) => match told(&attach.error, problem) {
            true => Decision::Rest(Why::waiting("Impossible", problem.clone())),
            false => hold_back(now, memory, report(now, &attach.attachment, Side::Attach, problem, None)),
        },
        Target::Ready { unmarked_volume, recorded, request } => {
            if let Some(failure) = &memory.failure
                && !told(&attach.error, &failure.message)
            {
                return report(now, &attach.attachment, Side::Attach, &failure.message, failure.code);
            }
            hold_back(now, memory, next_step(attach, unmarked_volume.as_ref(), *recorded, request, memory))
        }
    }
}

/// Towards a confirmed attachment: claim, publish, confirm.
fn next_step(
    attach: &Attach,
    unmarked_volume: Option<&Stamp>,
    recorded: bool,
    request: &PublishRequest,
    memory: &Memory,
) -> Decision<Act> {
    let (attachment, node) = (&attach.attachment, &attach.node);
    let handle = &request.place.handle;
    if attach.marked && attach.gives_way {
        // Begun is begun: a write that takes the finalizer off may be on its way.
        return undo(attachment, &request.place, memory);
    }
    if let Some((uid, context)) = &memory.published
        && attach.marked
        && *uid == attachment.uid
    {
        return confirm(attachment, context);
    }
    match &attach.rival {
        Some(rival) if attach.marked && rival.goes_first => {
            return Decision::Do(
                Act::GiveWay(attachment.clone()),
                Why::waiting("GivingWay", format!("volume {handle} goes to node {} before node {node}", rival.node)),
            );
        }
        Some(rival) => return Decision::Rest(elsewhere(handle, rival)),
        None => {}
    }
    if let Some(volume) = unmarked_volume {
        return Decision::Do(
            Act::MarkVolume { volume: volume.clone(), finalizer: request.place.finalizer() },
            Why::waiting("MarkingVolume", format!("making volume {} stay while it is attached", volume.name)),
        );
    }
    if !attach.marked || !recorded {
        return Decision::Do(
            Act::MarkAttachment {
                attachment: attachment.clone(),
                finalizer: request.place.finalizer(),
                node_id: request.place.node_id.clone(),
            },
            Why::waiting("MarkingAttachment", format!("making attachment {} stay until it is undone", attachment.name)),
        );
    }
    Decision::Do(
        Act::Publish { attachment: attachment.uid.clone(), request: request.clone() },
        Why::waiting("Publishing", format!("asking the driver to attach volume {handle} to node {node}")),
    )
}

fn elsewhere(volume: &str, rival: &Rival) -> Why {
    let text = format!("volume {volume} may be on one node only and node {} may still have it", rival.node);
    Why::waiting("AttachedElsewhere", text)
}

/// Back: read past the cache, unpublish, take the finalizer off.
fn undo(attachment: &Stamp, place: &Place, memory: &Memory) -> Decision<Act> {
    let Place { driver, handle, node_id, .. } = place;
    if memory.unpublished.as_deref() == Some(&attachment.uid) {
        return Decision::Do(
            Act::UnmarkAttachment { attachment: attachment.clone(), finalizer: place.finalizer() },
            Why::waiting("Unmarking", format!("letting go of attachment {}", attachment.name)),
        );
    }
    if memory.checked.as_deref() != Some(&attachment.uid) {
        return Decision::Do(
            Act::Recheck { attachment: attachment.clone(), finalizer: place.finalizer() },
            Why::waiting("Rechecking", format!("making sure that attachment {} is to be undone", attachment.name)),
        );
    }
    Decision::Do(
        Act::Unpublish { attachment: attachment.uid.clone(), place: place.clone() },
        Why::waiting("Unpublishing", format!("asking driver {driver} to detach volume {handle} from node {node_id}")),
    )
}

fn decide_detach(now: Tick, detach: &Detach, memory: &Memory) -> Decision<Act> {
    match detach {
        Detach::Unmarked(name) => settled("NothingToUndo", format!("attachment {name} is not held by this attacher")),
        Detach::Stuck(obstacle) => Decision::Rest(obstacle.why()),
        Detach::Ready { attachment, place, error } => {
            if let Some(failure) = &memory.failure
                && !told(error, &failure.message)
            {
                return report(now, attachment, Side::Detach, &failure.message, failure.code);
            }
            hold_back(now, memory, undo(attachment, place, memory))
        }
    }
}

fn decide_volume(volume: &VolumeUse) -> Decision<Act> {
    match volume {
        VolumeUse::Unmarked(name) => settled("NotMarked", format!("volume {name} is not held by this attacher")),
        VolumeUse::Staying(name) => settled("VolumeStays", format!("volume {name} is not being deleted")),
        VolumeUse::Attached { volume, attachment } => Decision::Rest(Why::waiting(
            "StillAttached",
            format!("waiting for attachment {attachment} to be gone before letting go of volume {volume}"),
        )),
        VolumeUse::Free { volume, finalizer } => Decision::Do(
            Act::UnmarkVolume { volume: volume.clone(), finalizer: finalizer.clone() },
            Why::waiting("ReleasingVolume", format!("letting go of volume {}", volume.name)),
        ),
    }
}

fn confirm(attachment: &Stamp, context: &Context) -> Decision<Act> {
    Decision::Do(
        Act::Confirm { attachment: attachment.clone(), context: context.clone() },
        Why::waiting("Confirming", format!("saying that attachment {} is attached", attachment.name)),
    )
}

fn report(now: Tick, attachment: &Stamp, side: Side, message: &str, code: Option<i32>) -> Decision<Act> {
    let act =
        Act::ReportError { attachment: attachment.clone(), side, message: message.into(), code, time: now.to_time() };
    Decision::Do(act, Why::waiting("ReportingError", format!("attachment {}: {message}", attachment.name)))
}

fn told(error: &Option<VolumeError>, message: &str) -> bool {
    error.as_ref().is_some_and(|error| error.message == message)
}

fn settled(code: &'static str, text: String) -> Decision<Act> {
    Decision::Rest(Why::settled(code, text))
}

impl Obstacle {
    fn why(&self) -> Why {
        match self {
            Obstacle::VolumeMissing(volume) => Why::waiting(
                "VolumeMissing",
                format!("volume {volume} does not exist, so the driver's name for it is not known"),
            ),
            Obstacle::VolumeLeaving(volume) => {
                Why::waiting("VolumeLeaving", format!("volume {volume} is being deleted and is not attached any more"))
            }
            Obstacle::NodeIdUnknown(node) => {
                Why::waiting("NodeIdUnknown", format!("waiting for the driver to be registered on node {node}"))
            }
        }
    }
}
