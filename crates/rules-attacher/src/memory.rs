use alloc::format;
use alloc::string::String;

use api::{Object, VolumeAttachment, names};
use control::{Outcome, Refusal, Reply, Retry, Secrets, Tick};
use csi::Response;

use crate::{Act, Context, Stamp};

/// What is kept in mind about an attachment. Forgetting it costs a repeated call, nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    /// Failures in a row.
    pub retry: Retry,
    /// The driver published the volume for the attachment with this uid, and told this.
    pub published: Option<(String, Context)>,
    /// The attachment with this uid was read past the cache and may be undone.
    pub checked: Option<String>,
    /// The driver unpublished the volume for the attachment with this uid.
    pub unpublished: Option<String>,
    /// A failure the attachment's status does not tell yet.
    pub failure: Option<Failure>,
    /// What is secret about the next call for the attachment with this uid; forgotten after it.
    pub secrets: Option<(String, Secrets)>,
    /// When the driver last listed everything it has published.
    pub listed_at: Tick,
}

/// What the driver said, or what was seen instead of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Failure {
    /// In words.
    pub message: String,
    /// The driver's code, if it sent one.
    pub code: Option<i32>,
}

/// What an action's outcome adds to or takes from memory.
pub(crate) fn remember(now: Tick, memory: Memory, did: &Act, got: &Outcome) -> Memory {
    let retry = memory.retry.clone().after(now, got);
    match did {
        Act::MarkVolume { .. }
        | Act::MarkAttachment { .. }
        | Act::GiveWay(_)
        | Act::UnmarkVolume { .. }
        | Act::Detached(_) => Memory { retry, ..memory },
        Act::ReadSecret { attachment, secret } => after_secret(now, memory, attachment, secret, got),
        Act::Publish { attachment, .. } => {
            let published = context(got).map(|context| (attachment.clone(), context));
            Memory { retry, published, failure: failure(got), ..Memory::default() }
        }
        Act::Confirm { .. } => match got {
            Outcome::Done(_) => Memory { retry, ..Memory::default() },
            Outcome::Refused(_) | Outcome::Unknown(_) => Memory { retry, ..memory },
        },
        Act::ReportError { .. } => after_report(now, memory, got),
        Act::Recheck { attachment, finalizer } => match still_to_undo(got, attachment, finalizer) {
            true => Memory { retry: memory.retry, checked: Some(attachment.uid.clone()), ..memory },
            // The cache is behind. Looking again at once would find the same cache.
            false => {
                let retry = memory.retry.clone().after(now, &Outcome::Refused(Refusal::Conflict));
                Memory { retry, checked: None, ..memory }
            }
        },
        Act::Unpublish { attachment, .. } => {
            let unpublished = match got {
                Outcome::Done(_) => Some(attachment.clone()),
                Outcome::Refused(_) | Outcome::Unknown(_) => None,
            };
            Memory { retry, unpublished, failure: failure(got), ..Memory::default() }
        }
        Act::List { .. } => {
            Memory { retry, listed_at: if is_last_page(got) { now } else { memory.listed_at }, ..memory }
        }
        Act::UnmarkAttachment { .. } => match got {
            Outcome::Done(_) => Memory { retry, ..Memory::default() },
            Outcome::Refused(_) | Outcome::Unknown(_) => Memory { retry, ..memory },
        },
    }
}

/// A secret that cannot be had is told like any failure, and read again before the next attempt.
fn after_secret(now: Tick, memory: Memory, attachment: &str, secret: &api::SecretReference, got: &Outcome) -> Memory {
    match Secrets::of(secret, got) {
        Ok(secrets) => Memory { secrets: Some((attachment.into(), secrets)), ..memory },
        Err(message) => {
            let retry = memory.retry.clone().after(now, &Outcome::Unknown(message.clone()));
            Memory { retry, secrets: None, failure: Some(Failure { message, code: None }), ..memory }
        }
    }
}

/// The list is complete.
pub(crate) fn is_last_page(got: &Outcome) -> bool {
    match got {
        Outcome::Done(Reply::Csi(Response::ListVolumes(page))) => page.next_token.is_empty(),
        Outcome::Done(_) | Outcome::Refused(_) | Outcome::Unknown(_) => false,
    }
}

/// Telling about a failure does not end it: the pause before the next attempt stays as it is. The attempt to tell is
/// made once; if it fails, the next failure will be told.
fn after_report(now: Tick, memory: Memory, got: &Outcome) -> Memory {
    match got {
        Outcome::Done(_) => Memory { failure: None, ..memory },
        Outcome::Refused(_) | Outcome::Unknown(_) => {
            Memory { retry: memory.retry.clone().after(now, got), failure: None, ..memory }
        }
    }
}

fn context(got: &Outcome) -> Option<Context> {
    match got {
        Outcome::Done(Reply::Csi(Response::ControllerPublishVolume(answer))) => {
            Some(Context(answer.publish_context.clone()))
        }
        Outcome::Done(_) | Outcome::Refused(_) | Outcome::Unknown(_) => None,
    }
}

fn failure(got: &Outcome) -> Option<Failure> {
    match got {
        Outcome::Done(_) => None,
        Outcome::Refused(Refusal::Driver(code, message)) => {
            Some(Failure { message: format!("the driver refused with {code:?}: {message}"), code: Some(*code as i32) })
        }
        Outcome::Refused(refusal) => Some(Failure { message: format!("{refusal}"), code: None }),
        Outcome::Unknown(message) => Some(Failure { message: message.clone(), code: None }),
    }
}

/// The very attachment seen is there, carries our finalizer (or none is asked for, because only the driver's list says that
/// there is something to undo), and is on its way out or gives way.
fn still_to_undo(got: &Outcome, seen: &Stamp, finalizer: &str) -> bool {
    let Outcome::Done(Reply::Object(Object::VolumeAttachment(fresh))) = got else { return false };
    let fresh: &VolumeAttachment = fresh;
    let meta = &fresh.metadata;
    meta.uid == seen.uid
        && (finalizer.is_empty() || meta.has_finalizer(finalizer))
        && (meta.is_deleting() || meta.annotation(names::ATTACHMENT_GIVES_WAY).is_some())
}
