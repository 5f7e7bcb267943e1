use alloc::format;
use alloc::string::String;

use api::{Object, Seen, VolumeAttachment, names};
use control::{Outcome, Refusal, Reply, Secrets, Timestamp};
use csi::Response;

use crate::{Action, PublishContext, Side};

/// What is kept in mind about an attachment. Forgetting it costs a repeated call, nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    /// The driver published the volume for the attachment with this uid, and told this.
    pub published: Option<(String, PublishContext)>,
    /// The attachment with this uid was read past the cache and may be undone.
    pub checked: Option<String>,
    /// The driver unpublished the volume for the attachment with this uid.
    pub unpublished: Option<String>,
    /// A failure the attachment's status does not tell yet.
    pub failure: Option<CallFailure>,
    /// What is secret about the next call for the attachment with this uid; forgotten after it.
    pub secrets: Option<(String, Secrets)>,
    /// When the driver last listed everything it has published.
    pub listed_at: Timestamp,
}

/// What the driver said, or what was seen instead of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallFailure {
    /// What was tried.
    pub side: Side,
    pub message: String,
    /// The driver's code, if it sent one.
    pub code: Option<i32>,
}

/// What an action's outcome adds to or takes from memory.
pub(crate) fn remember(now: Timestamp, memory: Memory, did: &Action, got: &Outcome) -> Memory {
    match did {
        Action::AddVolumeFinalizer { .. }
        | Action::AddAttachmentFinalizer { .. }
        | Action::GiveWay(_)
        | Action::RemoveVolumeFinalizer { .. }
        | Action::Detached(_) => memory,
        Action::ReadSecret { attachment, side, secret } => after_secret(memory, attachment, *side, secret, got),
        Action::Publish { attachment, .. } => {
            let published = context(got).map(|context| (attachment.clone(), context));
            Memory { published, failure: failure(Side::Attach, got), ..Memory::default() }
        }
        Action::Confirm { .. } => match got {
            Outcome::Done(_) => Memory::default(),
            Outcome::Refused(_) | Outcome::Unknown(_) => memory,
        },
        // It is told once; if that fails, the next failure will be told.
        Action::ReportError { .. } => Memory { failure: None, ..memory },
        Action::Recheck { attachment, finalizer } => {
            let checked = still_to_undo(got, attachment, finalizer).then(|| attachment.uid.clone());
            Memory { checked, ..memory }
        }
        Action::Unpublish { attachment, .. } => {
            let unpublished = match got {
                Outcome::Done(_) => Some(attachment.clone()),
                Outcome::Refused(_) | Outcome::Unknown(_) => None,
            };
            Memory { unpublished, failure: failure(Side::Detach, got), ..Memory::default() }
        }
        Action::List { .. } => Memory { listed_at: if is_last_page(got) { now } else { memory.listed_at }, ..memory },
        Action::RemoveAttachmentFinalizer { .. } => match got {
            Outcome::Done(_) => Memory::default(),
            Outcome::Refused(_) | Outcome::Unknown(_) => memory,
        },
    }
}

/// A secret that cannot be had is told like any failure, and read again before the next attempt.
fn after_secret(memory: Memory, attachment: &str, side: Side, secret: &api::SecretReference, got: &Outcome) -> Memory {
    match Secrets::of(secret, got) {
        Ok(secrets) => Memory { secrets: Some((attachment.into(), secrets)), ..memory },
        Err(message) => Memory { secrets: None, failure: Some(CallFailure { side, message, code: None }), ..memory },
    }
}

/// The list is complete.
pub(crate) fn is_last_page(got: &Outcome) -> bool {
    match got {
        Outcome::Done(Reply::Csi(Response::ListVolumes(page))) => page.next_token.is_empty(),
        Outcome::Done(_) | Outcome::Refused(_) | Outcome::Unknown(_) => false,
    }
}

fn context(got: &Outcome) -> Option<PublishContext> {
    match got {
        Outcome::Done(Reply::Csi(Response::ControllerPublishVolume(answer))) => {
            Some(PublishContext(answer.publish_context.clone()))
        }
        Outcome::Done(_) | Outcome::Refused(_) | Outcome::Unknown(_) => None,
    }
}

fn failure(side: Side, got: &Outcome) -> Option<CallFailure> {
    match got {
        Outcome::Done(_) => None,
        Outcome::Refused(Refusal::Driver(code, message)) => Some(CallFailure {
            side,
            message: format!("the driver refused with {code:?}: {message}"),
            code: Some(*code as i32),
        }),
        Outcome::Refused(refusal) => Some(CallFailure { side, message: format!("{refusal}"), code: None }),
        Outcome::Unknown(message) => Some(CallFailure { side, message: message.clone(), code: None }),
    }
}

/// The very attachment seen is there, carries our finalizer (or none is asked for, because only the driver's list says that
/// there is something to undo), and is on its way out or gives way.
pub(crate) fn still_to_undo(got: &Outcome, seen: &Seen, finalizer: &str) -> bool {
    let Outcome::Done(Reply::Object(Object::VolumeAttachment(fresh))) = got else { return false };
    let fresh: &VolumeAttachment = fresh;
    let meta = &fresh.metadata;
    meta.uid == seen.uid
        && (finalizer.is_empty() || meta.has_finalizer(finalizer))
        && (meta.is_deleting() || meta.annotation(names::ATTACHMENT_GIVES_WAY).is_some())
}
