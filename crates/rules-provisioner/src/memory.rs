use alloc::collections::BTreeMap;
use alloc::string::String;

use api::Object;
use control::{Outcome, Refusal, Reply, Retry, Tick};
use csi::{Code, Response};

use crate::{Action, is_condemned};

/// A hint kept between decisions: how far the work for one uid has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    /// When to try again.
    pub retry: Retry,
    /// The claim or volume this is about. A namesake starts anew (reliability 13).
    pub uid: String,
    /// This life wrote the intent, or adopted it, and was answered: no earlier write can take it away.
    pub owned: bool,
    /// This life wrote the intent, and every CreateVolume since has been refused: no earlier call can have made a volume.
    pub sure: bool,
    /// What the driver and the API have confirmed.
    pub stage: Stage,
    /// What the last fresh read found.
    pub fresh: Fresh,
}

/// What the driver and the API have confirmed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Nothing.
    #[default]
    Nothing,
    /// The driver made this volume.
    Created(Made),
    /// The driver's last word is that it will not, so that there is no volume.
    Refused,
    /// The PersistentVolume exists.
    Committed,
    /// The driver deleted the volume.
    Deleted,
}

/// A volume as the driver describes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Made {
    /// The driver's name for it.
    pub volume_id: String,
    /// Its size; 0 if the driver does not say.
    pub capacity_bytes: i64,
    /// What the driver wants to be told later on.
    pub context: BTreeMap<String, String>,
}

/// What the last fresh read found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fresh {
    /// Nothing was read.
    #[default]
    Unread,
    /// A read is needed: the API says the name is taken.
    Wanted,
    /// No volume has the name.
    Absent,
    /// A volume for somebody else has it.
    Taken {
        /// The driver's name for that volume.
        handle: String,
    },
    /// The volume is still to be deleted.
    Condemned,
    /// It is not, though the cache still says so.
    Spared {
        /// When to look again.
        again: Tick,
    },
}

/// How long a cache may take to show what a fresh read showed, before we read again.
const CATCH_UP_MILLIS: u64 = 1_000;

impl Memory {
    /// What is remembered about this uid: nothing, if the memory is about a namesake.
    pub(crate) fn about(&self, uid: &str) -> Memory {
        if self.uid == uid { self.clone() } else { Memory::default() }
    }

    pub(crate) fn after(self, now: Tick, did: &Action, got: &Outcome) -> Memory {
        let uid = did.uid();
        let known = if self.uid == uid { self } else { Memory { uid: uid.into(), ..Memory::default() } };
        let retry = known.retry.clone().after(now, got);
        match did {
            // Whatever was known belongs to an earlier attempt, which is over.
            Action::RecordIntent { .. } => {
                Memory { retry, owned: is_done(got), sure: is_done(got), uid: known.uid, ..Memory::default() }
            }
            Action::AdoptIntent(_) => Memory { retry, owned: is_done(got), ..known },
            Action::CreateVolume { .. } => known.after_create(now, got),
            Action::CreatePv { .. } => known.after_pv(retry, got),
            Action::LookForPv { .. } => known.after_look_for(now, got),
            Action::LookAtPv { .. } => known.after_look_at(now, got),
            Action::DeleteVolume { .. } if is_done(got) => {
                Memory { retry, stage: Stage::Deleted, fresh: Fresh::Unread, ..known }
            }
            Action::DeleteVolume { .. } => Memory { retry, fresh: Fresh::Unread, ..known },
            Action::DropIntent(_) if is_done(got) => Memory::default(),
            // The intent may be gone, or about to go: no call may rely on it until it is adopted.
            Action::DropIntent(_) => Memory { retry, owned: known.owned && is_refused(got), ..known },
            Action::Hold(_) | Action::DropHold(_) | Action::DeletePv(_) => Memory { retry, ..known },
        }
    }

    fn after_create(self, now: Tick, got: &Outcome) -> Memory {
        let retry = self.retry.clone();
        let nonsense = Outcome::Unknown("the driver's answer names no volume".into());
        match got {
            Outcome::Done(reply) => match made(reply) {
                Some(made) => {
                    Memory { retry: Retry::default(), stage: Stage::Created(made), fresh: Fresh::Unread, ..self }
                }
                None => Memory { retry: retry.after(now, &nonsense), sure: false, stage: Stage::Nothing, ..self },
            },
            // A volume of that name exists and is not what was asked for: it is there, and it is not ours to describe.
            Outcome::Refused(Refusal::Driver(Code::AlreadyExists, _)) | Outcome::Unknown(_) => {
                Memory { retry: retry.after(now, got), sure: false, stage: Stage::Nothing, ..self }
            }
            Outcome::Refused(Refusal::Driver(code, _)) if self.sure || is_about_the_request(*code) => {
                Memory { retry: retry.after(now, got), stage: Stage::Refused, ..self }
            }
            // An earlier call may have made the volume, and the driver may merely have failed this time (reliability 7).
            Outcome::Refused(Refusal::Driver(_, _)) => {
                Memory { retry: retry.after(now, got), stage: Stage::Nothing, ..self }
            }
            Outcome::Refused(
                Refusal::Conflict | Refusal::NotFound | Refusal::AlreadyExists | Refusal::Denied(_) | Refusal::Host(_),
            ) => Memory { retry: retry.after(now, got), stage: Stage::Nothing, ..self },
        }
    }

    fn after_pv(self, retry: Retry, got: &Outcome) -> Memory {
        match got {
            Outcome::Done(_) => Memory { retry, stage: Stage::Committed, ..self },
            Outcome::Refused(Refusal::AlreadyExists) => Memory { retry, fresh: Fresh::Wanted, ..self },
            Outcome::Refused(
                Refusal::Conflict | Refusal::NotFound | Refusal::Denied(_) | Refusal::Driver(_, _) | Refusal::Host(_),
            )
            | Outcome::Unknown(_) => Memory { retry, ..self },
        }
    }

    /// A read does not end a row of failures: what it makes possible may fail again.
    fn after_look_for(self, now: Tick, got: &Outcome) -> Memory {
        let retry = self.retry.clone();
        let Outcome::Done(reply) = got else { return Memory { retry: retry.after(now, got), ..self } };
        let Reply::Object(Object::PersistentVolume(volume)) = reply else {
            return Memory { fresh: Fresh::Absent, ..self };
        };
        let holder = volume.spec.claim_ref.as_ref().map(|holder| holder.uid.as_str());
        if holder == Some(self.uid.as_str()) {
            return Memory { stage: Stage::Committed, ..self };
        }
        let handle = volume.spec.csi.as_ref().map(|source| source.volume_handle.clone()).unwrap_or_default();
        let taken = Outcome::Refused(Refusal::AlreadyExists);
        Memory { retry: retry.after(now, &taken), fresh: Fresh::Taken { handle }, ..self }
    }

    fn after_look_at(self, now: Tick, got: &Outcome) -> Memory {
        let retry = self.retry.clone();
        let Outcome::Done(reply) = got else { return Memory { retry: retry.after(now, got), ..self } };
        let fresh = match reply {
            Reply::Object(Object::PersistentVolume(volume))
                if volume.metadata.uid == self.uid && is_condemned(volume) =>
            {
                Fresh::Condemned
            }
            Reply::Object(_) | Reply::Gone | Reply::Nothing | Reply::Csi(_) | Reply::Host(_) => {
                Fresh::Spared { again: now.after_millis(CATCH_UP_MILLIS) }
            }
        };
        Memory { fresh, ..self }
    }
}

/// The driver will not have this request, now or earlier: had it made the volume for an equal one, it would say so. The
/// other codes say that something went wrong, not that there is no volume.
fn is_about_the_request(code: Code) -> bool {
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

fn is_done(got: &Outcome) -> bool {
    matches!(got, Outcome::Done(_))
}

fn is_refused(got: &Outcome) -> bool {
    matches!(got, Outcome::Refused(_))
}

fn made(reply: &Reply) -> Option<Made> {
    let Reply::Csi(Response::CreateVolume(response)) = reply else { return None };
    let volume = response.volume.as_ref().filter(|volume| !volume.volume_id.is_empty())?;
    Some(Made {
        volume_id: volume.volume_id.clone(),
        capacity_bytes: volume.capacity_bytes,
        context: volume.volume_context.clone(),
    })
}
