use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

use api::{SecretReference, Seen, VolumeError};
use control::{Decision, Secrets, Timestamp, Why};

use crate::action::{PublishRequest, Side, VolumeOnNode, shortened};
use crate::{
    Action, Attach, AttachObstacle, Detach, Key, Listed, ListingView, Memory, PublishContext, PublishTarget, Reason,
    RivalAttachment, View, VolumeUse,
};

pub(crate) fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
    match view {
        View::Gone(Key::Attachment(name)) => {
            settled(Reason::AttachmentGone, format!("attachment {name} does not exist"))
        }
        View::Gone(Key::Volume(name)) => settled(Reason::VolumeGone, format!("volume {name} does not exist")),
        View::Gone(Key::Listing(driver)) => settled(Reason::NotListed, format!("nothing is listed by {driver}")),
        View::NotOurs(name) => settled(Reason::NotOurs, format!("attachment {name} is for another driver")),
        View::Trivial { attachment, unconfirmed: false, .. } => {
            settled(Reason::NothingToPublish, format!("attachment {} needs nothing from the driver", attachment.name()))
        }
        View::Trivial { attachment, unconfirmed: true, rival: None } => confirm(attachment, &PublishContext::default()),
        View::Trivial { attachment, unconfirmed: true, rival: Some(rival) } => {
            Decision::Rest(elsewhere(&format!("of attachment {}", attachment.name()), rival))
        }
        View::Attach(attach) => decide_attach(now, attach, memory),
        View::Detach(detach) => decide_detach(now, detach, memory),
        View::Volume(volume) => decide_volume(volume),
        View::Listing(listing) => decide_listing(now, listing, memory),
    }
}

/// Every so often the driver is asked what it has published, page by page.
fn decide_listing(now: Timestamp, listing: &ListingView, memory: &Memory) -> Decision<Action, Reason> {
    let ListingView::On { driver, token, max_entries, every_millis } = listing else {
        return settled(Reason::NotListed, "the driver is not asked what it has published".into());
    };
    let next = memory.listed_at.after_millis(*every_millis);
    if token.is_empty() && memory.listed_at > Timestamp(0) && now < next {
        let text = format!("what driver {driver} has published was compared with the attachments");
        return Decision::Wait(next, Why::settled(Reason::Listed, text));
    }
    let act = Action::List { driver: driver.clone(), token: token.clone(), max_entries: *max_entries };
    Decision::Do(act, Why::waiting(Reason::Listing, format!("asking driver {driver} what it has published")))
}

fn decide_attach(now: Timestamp, attach: &Attach, memory: &Memory) -> Decision<Action, Reason> {
    if let Some(told) = &attach.attached
        && attach.listed != Listed::Unpublished
    {
        return decide_attached(attach, told, memory);
    }
    let attached = attach.attached.is_some();
    match &attach.target {
        // It was attached, and what is needed to repeat that is missing: its status stays as it is.
        PublishTarget::Waiting(obstacle) if attached => Decision::Rest(obstacle.why()),
        PublishTarget::Waiting(obstacle) => {
            let why = obstacle.why();
            let told = told(&attach.error, &why.text);
            let report = |text: &str| report(now, &attach.attachment, Side::Attach, attached, text, None);
            if told { Decision::Rest(why) } else { report(&why.text) }
        }
        PublishTarget::Impossible(problem) => match told(&attach.error, problem) {
            true => Decision::Rest(Why::waiting(Reason::Impossible, problem.clone())),
            false => report(now, &attach.attachment, Side::Attach, attached, problem, None),
        },
        PublishTarget::Ready { unmarked_volume, recorded, request, secret } => {
            // An attachment that gives way is told of what fails on the way back, too.
            if let Some(failure) = &memory.failure
                && (failure.side == Side::Attach || attach.gives_way)
                && !told(&attach.error, &failure.message)
            {
                return report(now, &attach.attachment, Side::Attach, attached, &failure.message, failure.code);
            }
            let ready = Ready { unmarked_volume: unmarked_volume.as_ref(), recorded: *recorded, request, secret };
            next_step(attach, &ready, memory)
        }
    }
}

/// Attached. After the driver was asked again, because it listed the volume as not published, it may have told something
/// else than before.
fn decide_attached(attach: &Attach, told: &PublishContext, memory: &Memory) -> Decision<Action, Reason> {
    if let Some((uid, context)) = &memory.published
        && *uid == attach.attachment.uid
        && context != told
    {
        return confirm(&attach.attachment, context);
    }
    if let Some((volume, finalizer)) = &attach.unheld_volume {
        let text = format!("adding the finalizer that keeps volume {} while it is attached", volume.name());
        let act = Action::AddVolumeFinalizer { volume: volume.clone(), finalizer: finalizer.clone() };
        return Decision::Do(act, Why::waiting(Reason::AddingVolumeFinalizer, text));
    }
    let name = attach.attachment.name();
    settled(Reason::Attached, format!("attachment {name} to node {} is confirmed", attach.node))
}

/// All that is needed to publish.
struct Ready<'a> {
    unmarked_volume: Option<&'a Seen>,
    recorded: bool,
    request: &'a PublishRequest,
    secret: &'a Option<SecretReference>,
}

/// Towards a confirmed attachment: claim, publish, confirm.
fn next_step(attach: &Attach, ready: &Ready<'_>, memory: &Memory) -> Decision<Action, Reason> {
    let (attachment, node) = (&attach.attachment, &attach.node);
    let Ready { unmarked_volume, recorded, request, secret } = *ready;
    let handle = &request.place.handle;
    if attach.marked && attach.gives_way {
        // Begun is begun: a write that takes the finalizer off may be on its way.
        return undo(attachment, &request.place, true, secret, memory);
    }
    if let Some((uid, context)) = &memory.published
        && attach.marked
        && attach.attached.is_none()
        && *uid == attachment.uid
    {
        return confirm(attachment, context);
    }
    match &attach.rival {
        Some(rival) if attach.marked && rival.goes_first => {
            return Decision::Do(
                Action::GiveWay(attachment.clone()),
                Why::waiting(
                    Reason::GivingWay,
                    format!("volume {handle} goes to node {} before node {node}", rival.node),
                ),
            );
        }
        Some(rival) => return Decision::Rest(elsewhere(handle, rival)),
        None => {}
    }
    if let Some(volume) = unmarked_volume {
        return Decision::Do(
            Action::AddVolumeFinalizer { volume: volume.clone(), finalizer: request.place.finalizer() },
            Why::waiting(
                Reason::AddingVolumeFinalizer,
                format!("adding the finalizer that keeps volume {} while it is attached", volume.name()),
            ),
        );
    }
    if !attach.marked || !recorded {
        return Decision::Do(
            Action::AddAttachmentFinalizer {
                attachment: attachment.clone(),
                finalizer: request.place.finalizer(),
                node_id: request.place.node_id.clone(),
            },
            Why::waiting(
                Reason::AddingAttachmentFinalizer,
                format!("adding the finalizer that keeps attachment {} until it is unpublished", attachment.name()),
            ),
        );
    }
    let secrets = match secrets(&attachment.uid, Side::Attach, handle, secret, memory) {
        Ok(secrets) => secrets,
        Err(read) => return *read,
    };
    Decision::Do(
        Action::Publish { attachment: attachment.uid.clone(), request: request.clone(), secrets },
        Why::waiting(Reason::Publishing, format!("asking the driver to attach volume {handle} to node {node}")),
    )
}

/// What is secret about a call, or the decision to read it first.
fn secrets(
    uid: &str,
    side: Side,
    handle: &str,
    secret: &Option<SecretReference>,
    memory: &Memory,
) -> Result<Secrets, Box<Decision<Action, Reason>>> {
    match (secret, &memory.secrets) {
        (None, _) => Ok(Secrets::default()),
        (Some(_), Some((of, secrets))) if of == uid => Ok(secrets.clone()),
        (Some(secret), Some(_) | None) => {
            let text = format!("reading secret {}/{} for volume {handle}", secret.namespace, secret.name);
            let act = Action::ReadSecret { attachment: uid.into(), side, secret: secret.clone() };
            Err(Box::new(Decision::Do(act, Why::waiting(Reason::ReadingSecret, text))))
        }
    }
}

fn elsewhere(volume: &str, rival: &RivalAttachment) -> Why<Reason> {
    let text = format!("volume {volume} may be on one node only and node {} may still have it", rival.node);
    Why::waiting(Reason::AttachedElsewhere, text)
}

/// Back: read past the cache, unpublish, take the finalizer off.
fn undo(
    attachment: &Seen,
    place: &VolumeOnNode,
    marked: bool,
    secret: &Option<SecretReference>,
    memory: &Memory,
) -> Decision<Action, Reason> {
    let VolumeOnNode { driver, handle, node_id, .. } = place;
    if marked && memory.unpublished.as_deref() == Some(&attachment.uid) {
        return Decision::Do(
            Action::RemoveAttachmentFinalizer { attachment: attachment.clone(), finalizer: place.finalizer() },
            Why::waiting(
                Reason::RemovingAttachmentFinalizer,
                format!("removing the finalizer from attachment {}", attachment.name()),
            ),
        );
    }
    if memory.checked.as_deref() != Some(&attachment.uid) {
        return Decision::Do(
            Action::Recheck {
                attachment: attachment.clone(),
                finalizer: if marked { place.finalizer() } else { String::new() },
            },
            Why::waiting(
                Reason::Rechecking,
                format!("making sure that attachment {} is to be undone", attachment.name()),
            ),
        );
    }
    let secrets = match secrets(&attachment.uid, Side::Detach, handle, secret, memory) {
        Ok(secrets) => secrets,
        Err(read) => return *read,
    };
    Decision::Do(
        Action::Unpublish { attachment: attachment.uid.clone(), place: place.clone(), secrets },
        Why::waiting(
            Reason::Unpublishing,
            format!("asking driver {driver} to detach volume {handle} from node {node_id}"),
        ),
    )
}

fn decide_detach(now: Timestamp, detach: &Detach, memory: &Memory) -> Decision<Action, Reason> {
    match detach {
        Detach::Unmarked { attachment, attached: false } => settled(
            Reason::NothingToUndo,
            format!("attachment {} does not carry this attacher's finalizer", attachment.name()),
        ),
        // The finalizer goes first, so that nothing is undone twice; and mostly the attachment goes with it.
        Detach::Unmarked { attachment, attached: true } => {
            let text = format!("saying that attachment {} is undone", attachment.name());
            let act = Action::Detached(attachment.clone());
            Decision::Do(act, Why::waiting(Reason::ConfirmingDetached, text))
        }
        Detach::Stuck { attachment, obstacle, error } => {
            let why = Why::waiting(Reason::DetachStuck, obstacle.why().text);
            let told = told(error, &why.text);
            let report = |text: &str| report(now, attachment, Side::Detach, false, text, None);
            if told { Decision::Rest(why) } else { report(&why.text) }
        }
        Detach::Ready { attachment, place, marked, secret, error } => {
            // Why it could not be attached is no reason why it cannot be detached.
            if let Some(failure) = &memory.failure
                && failure.side == Side::Detach
                && !told(error, &failure.message)
            {
                return report(now, attachment, Side::Detach, false, &failure.message, failure.code);
            }
            undo(attachment, place, *marked, secret, memory)
        }
    }
}

fn decide_volume(volume: &VolumeUse) -> Decision<Action, Reason> {
    match volume {
        VolumeUse::Unmarked(name) => {
            settled(Reason::NoVolumeFinalizer, format!("volume {name} does not carry this attacher's finalizer"))
        }
        VolumeUse::Staying(name) => settled(Reason::VolumeStays, format!("volume {name} is not being deleted")),
        VolumeUse::Provisioners(name) => Decision::Rest(Why::waiting(
            Reason::ProvisionerHolds,
            format!("the provisioner removes the finalizers of both from volume {name}"),
        )),
        VolumeUse::Attached { volume, attachment } => Decision::Rest(Why::waiting(
            Reason::StillAttached,
            format!(
                "waiting for attachment {attachment} to be gone before the finalizer of volume {volume} is removed"
            ),
        )),
        VolumeUse::Free { volume, finalizer, leaving } => Decision::Do(
            Action::RemoveVolumeFinalizer { volume: volume.clone(), finalizer: finalizer.clone(), leaving: *leaving },
            Why::waiting(
                Reason::RemovingVolumeFinalizer,
                format!("removing the finalizer from volume {}", volume.name()),
            ),
        ),
    }
}

fn confirm(attachment: &Seen, context: &PublishContext) -> Decision<Action, Reason> {
    Decision::Do(
        Action::Confirm { attachment: attachment.clone(), context: context.clone() },
        Why::waiting(Reason::Confirming, format!("saying that attachment {} is attached", attachment.name())),
    )
}

fn report(
    now: Timestamp,
    attachment: &Seen,
    side: Side,
    attached: bool,
    message: &str,
    code: Option<i32>,
) -> Decision<Action, Reason> {
    let (attachment_seen, time) = (attachment.clone(), now.to_time());
    let act = Action::ReportError { attachment: attachment_seen, side, attached, message: message.into(), code, time };
    Decision::Do(act, Why::waiting(Reason::ReportingError, format!("attachment {}: {message}", attachment.name())))
}

fn told(error: &Option<VolumeError>, message: &str) -> bool {
    error.as_ref().is_some_and(|error| error.message == shortened(message))
}

fn settled(code: Reason, text: String) -> Decision<Action, Reason> {
    Decision::Rest(Why::settled(code, text))
}

impl AttachObstacle {
    fn why(&self) -> Why<Reason> {
        match self {
            AttachObstacle::VolumeMissing(volume) => Why::waiting(
                Reason::VolumeMissing,
                format!("volume {volume} does not exist, so the driver's name for it is not known"),
            ),
            AttachObstacle::VolumeLeaving(volume) => Why::waiting(
                Reason::VolumeLeaving,
                format!("volume {volume} is being deleted and is not attached any more"),
            ),
            AttachObstacle::VolumeUnreadable(problem) => Why::waiting(Reason::VolumeUnreadable, problem.clone()),
            AttachObstacle::NodeIdUnknown(node) => {
                Why::waiting(Reason::NodeIdUnknown, format!("waiting for the driver to be registered on node {node}"))
            }
        }
    }
}
