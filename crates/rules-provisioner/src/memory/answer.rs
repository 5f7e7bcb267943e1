//! What the answer to an action means.

use alloc::format;
use alloc::string::String;

use api::{Object, PersistentVolume};
use control::{Attempt, Outcome, Refusal, Reply, Secrets, Timestamp};
use csi::{Code, Response};

use super::{Headroom, Made};
use crate::{Action, InTree, VolumeRequest, pv};

/// How long a node without room for a claim leaves it to others.
const NO_ROOM_MILLIS: u64 = 60_000;

/// How an outcome counts in the row of failures.
pub(crate) fn attempt(did: &Action, got: &Outcome) -> Attempt {
    match (did, got) {
        (Action::ReadSecret { secret, needed: true, .. }, got) => Secrets::attempt(secret, got),
        (Action::ReadSecret { needed: false, .. } | Action::AskCapacity { .. }, _) => Attempt::Neutral,
        // P60: the hold is waived.
        (Action::AddSourceFinalizer { .. }, Outcome::Refused(Refusal::Denied(_))) => Attempt::Neutral,
        (Action::CreateVolume { request, in_tree, .. }, Outcome::Done(reply)) => match made(reply, request, *in_tree) {
            Some((_, None)) => Attempt::Succeeded,
            // P21, P76: the next volume comes no sooner than after any failure.
            Some((_, Some(fault))) => Attempt::Failed(fault),
            None => Attempt::Failed("the driver's answer names no volume".into()),
        },
        (Action::LookForPv { uid, .. }, Outcome::Done(Reply::Object(Object::PersistentVolume(volume))))
            if !is_for(volume, uid) =>
        {
            Attempt::Outrun("another volume has the name".into())
        }
        (
            Action::LookForPv { .. }
            | Action::LookAtClaim { .. }
            | Action::LookAtPv { .. }
            | Action::LookForAttachments { .. },
            got,
        ) => Attempt::of_read(got),
        // The end of a faulty volume does not end a row of failures: the next one may be as faulty.
        (Action::DeleteVolume { undo: true, .. }, Outcome::Done(_)) => Attempt::Neutral,
        (_, got) => Attempt::of(got),
    }
}

pub(super) fn is_for(volume: &PersistentVolume, uid: &str) -> bool {
    volume.spec.claim_ref.as_ref().is_some_and(|holder| holder.uid == uid)
}

/// The driver will not have this request, now or earlier: had it made the volume for an equal one, it would say so. The
/// other codes say that something went wrong, not that there is no volume.
pub(super) fn is_about_the_request(code: Code) -> bool {
    match code {
        Code::InvalidArgument
        | Code::NotFound
        | Code::PermissionDenied
        | Code::ResourceExhausted
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Unauthenticated => true,
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::AlreadyExists
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => false,
    }
}

/// What the driver made, and what is wrong with it.
pub(super) fn made(reply: &Reply, request: &VolumeRequest, in_tree: Option<InTree>) -> Option<(Made, Option<String>)> {
    let Reply::Csi(Response::CreateVolume(response)) = reply else { return None };
    let volume = response.volume.as_ref().filter(|volume| !volume.volume_id.is_empty())?;
    let (size, asked) = (volume.capacity_bytes, request.required_bytes);
    let fault = if size != 0 && size < asked {
        Some(format!("the driver made a volume of {size} bytes where {asked} were asked"))
    } else if request.source.is_some() && volume.content_source.is_none() {
        Some("the driver does not say that it made the volume from its source".into())
    } else {
        None
    };
    let made = Made {
        volume_id: volume.volume_id.clone(),
        capacity_bytes: size,
        context: volume.volume_context.clone(),
        topology: volume.accessible_topology.iter().map(|place| place.segments.clone()).collect(),
    };
    // A volume that cannot be recorded as the plugin would have done it is not what was asked for (sidecars 2.9).
    let fault = fault.or_else(|| pv::why_not_in_tree(&made, in_tree?));
    Some((made, fault))
}

/// P95: a driver that does not know is taken to have room; CreateVolume will tell.
pub(super) fn room(now: Timestamp, request: &VolumeRequest, got: &Outcome) -> Headroom {
    let Outcome::Done(Reply::Csi(Response::GetCapacity(answer))) = got else { return Headroom::Enough };
    let asked = request.required_bytes;
    let largest = answer.maximum_volume_size.is_none_or(|largest| largest >= asked);
    if asked == 0 || (answer.available_capacity >= asked && largest) {
        return Headroom::Enough;
    }
    Headroom::TooLittle { again: now.after_millis(NO_ROOM_MILLIS) }
}
