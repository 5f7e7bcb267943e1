//! What is kept in mind between decisions.

mod answer;

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{Object, PersistentVolumeClaim, names};
use control::{Outcome, Refusal, Reply, Secrets, Timestamp};
use csi::Code;

use crate::topology::Segments;
use crate::{Action, InTree, Local, Terms, VolumeRequest, is_condemned};
use answer::{is_about_the_request, is_for, made, room};

pub(crate) use answer::attempt;

/// A hint kept between decisions: how far the work for one uid has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    /// The claim or volume this is about. A namesake starts anew (reliability 13).
    pub uid: String,
    /// This incarnation wrote the intent, or adopted it, and was answered: no earlier write can take it away.
    pub owned: bool,
    /// This incarnation wrote the intent, and every CreateVolume since has been refused: no earlier call can have made
    /// a volume.
    pub sure: bool,
    /// What the driver and the API have confirmed.
    pub stage: Stage,
    /// What the last fresh read found.
    pub fresh: Fresh,
    /// What the next call takes along: read for it, and forgotten after it.
    pub secrets: Option<Secrets>,
    /// This incarnation put the finalizer on what the volume is made from, or made sure of it, after the intent was
    /// recorded.
    pub holds: bool,
    /// What the volume is made from need not be held, because we may not hold it.
    pub hold_waived: bool,
    /// The driver called the request impossible, in these words: it is not asked again before this moment.
    pub infeasible: Option<(Timestamp, String)>,
    /// How often another node was faster to take the claim.
    pub conflicts: u32,
    /// What the driver on this node said about room for the volume.
    pub headroom: Headroom,
    /// What is under way, where nothing is written down.
    pub in_flight: Option<Arc<InFlight>>,
}

/// Work that only this process knows of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InFlight {
    /// The claim as it was.
    pub claim: Arc<PersistentVolumeClaim>,
    pub local: Local,
    pub terms: Terms,
    /// The volume is recorded as an in-tree plugin would have done it.
    pub in_tree: Option<InTree>,
}

/// What the driver on this node said about room for a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Headroom {
    /// It was not asked.
    #[default]
    Unasked,
    /// There is room, or it did not say.
    Enough,
    /// There is not.
    TooLittle {
        /// When to ask again.
        again: Timestamp,
    },
}

/// What the driver and the API have confirmed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stage {
    #[default]
    Nothing,
    /// The driver made this volume.
    Created(Made),
    /// The driver made this volume, and it is not what was asked for.
    Faulty(Made),
    /// The driver's last word is that it will not, so that there is no volume.
    Refused {
        /// There is no room where it was to be.
        exhausted: bool,
    },
    /// The PersistentVolume exists.
    Committed,
    /// The driver deleted the volume.
    Deleted,
}

/// A volume as the driver describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Made {
    /// The driver's name for it.
    pub volume_id: String,
    /// Its size; 0 if the driver does not say.
    pub capacity_bytes: i64,
    /// What the driver wants to be told later on.
    pub context: BTreeMap<String, String>,
    /// Where it can be reached from.
    pub topology: Vec<Segments>,
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
    /// The volume is still to be deleted, and has been attached once: the attachments are still to be listed.
    MaybeAttached,
    /// The volume is still to be deleted, and is attached nowhere.
    Condemned,
    /// The claim still wants a volume.
    StillWanted,
    /// It is not, though the cache still says so.
    Spared {
        /// When to look again.
        again: Timestamp,
    },
}

/// How long a cache may take to show what a fresh read showed, before we read again.
const CATCH_UP_MILLIS: u64 = 1_000;
/// P48: how long a request that the driver called impossible is not repeated.
const INFEASIBLE_MILLIS: u64 = 5 * 60 * 1_000;

impl Memory {
    /// What is remembered about this uid: nothing, if the memory is about a namesake.
    pub(crate) fn about(&self, uid: &str) -> Cow<'_, Memory> {
        if self.uid == uid { Cow::Borrowed(self) } else { Cow::Owned(Memory::default()) }
    }

    pub(crate) fn after(self, now: Timestamp, did: &Action, got: &Outcome) -> Memory {
        let uid = did.uid();
        let known = if self.uid == uid { self } else { Memory { uid: uid.into(), ..Memory::default() } };
        match did {
            // Whatever was known belongs to an earlier attempt, which is over.
            Action::RecordIntent { .. } => {
                Memory { owned: is_done(got), sure: is_done(got), uid: known.uid, ..Memory::default() }
            }
            Action::AdoptIntent { .. } => Memory { owned: is_done(got), ..known },
            Action::AddSourceFinalizer { .. } => known.after_hold(got),
            Action::ReadSecret { secret, needed, .. } => match Secrets::of(secret, got) {
                Ok(secrets) => Memory { secrets: Some(secrets), ..known },
                Err(_) if *needed => Memory { secrets: None, ..known },
                Err(_) => Memory { secrets: Some(Secrets::default()), ..known }, // P33
            },
            Action::CreateVolume { request, in_flight, in_tree, .. } => {
                known.after_create(now, request, *in_tree, in_flight.as_ref(), got)
            }
            Action::CreatePv { .. } => known.after_pv(got),
            Action::AskCapacity { request, .. } => Memory { headroom: room(now, request, got), ..known },
            Action::TakeClaim { .. } => {
                let conflicts = if is_done(got) { 0 } else { known.conflicts.saturating_add(1) };
                Memory { conflicts, headroom: Headroom::Unasked, ..known }
            }
            Action::LookAtClaim { .. } => known.after_look_at_claim(now, got),
            Action::LookForPv { .. } => known.after_look_for(got),
            Action::LookAtPv { .. } => known.after_look_at(now, got),
            Action::LookForAttachments { name, .. } => known.after_list(now, name, got),
            Action::DeleteVolume { .. } => known.after_delete(got),
            Action::DropIntent { .. } if is_done(got) => Memory::default(),
            Action::Reschedule(_) if is_done(got) => known.rescheduled(),
            // The intent may be gone, or about to go: no call may rely on it until it is adopted.
            Action::DropIntent { .. } | Action::Reschedule(_) => {
                Memory { owned: known.owned && is_refused(got), ..known }
            }
            Action::AddFinalizer { .. } | Action::RemoveFinalizer { .. } | Action::DeletePv(_) => known,
        }
    }

    /// An intent in the journal is still there, and nothing was made: it is to go.
    fn rescheduled(self) -> Memory {
        match self.stage {
            Stage::Refused { .. } => Memory {
                uid: self.uid,
                owned: self.owned,
                stage: Stage::Refused { exhausted: false },
                ..Memory::default()
            },
            Stage::Nothing | Stage::Created(_) | Stage::Faulty(_) | Stage::Committed | Stage::Deleted => {
                Memory::default()
            }
        }
    }

    /// P60: where we may not write to sources, they are copied without being held.
    fn after_hold(self, got: &Outcome) -> Memory {
        match got {
            Outcome::Refused(Refusal::Denied(_)) => Memory { hold_waived: true, ..self },
            Outcome::Refused(
                Refusal::Conflict
                | Refusal::NotFound
                | Refusal::AlreadyExists
                | Refusal::Driver(_, _)
                | Refusal::Host(_),
            )
            | Outcome::Unknown(_) => self,
            Outcome::Done(_) => Memory { holds: true, ..self },
        }
    }

    /// P46: what each answer means for the volume.
    fn after_create(
        self,
        now: Timestamp,
        request: &VolumeRequest,
        in_tree: Option<InTree>,
        in_flight: Option<&Arc<InFlight>>,
        got: &Outcome,
    ) -> Memory {
        // The secrets have served. What is under way is remembered until there is a final answer.
        let known = Memory { secrets: None, in_flight: in_flight.cloned(), ..self };
        match got {
            Outcome::Done(reply) => match made(reply, request, in_tree) {
                Some((made, None)) => Memory { stage: Stage::Created(made), fresh: Fresh::Unread, ..known },
                // P21, P76: the volume must go again.
                Some((made, Some(_))) => Memory { stage: Stage::Faulty(made), fresh: Fresh::Unread, ..known },
                None => Memory { sure: false, stage: Stage::Nothing, ..known },
            },
            // A volume of that name exists and is not what was asked for: it is there, and it is not ours to describe.
            Outcome::Refused(Refusal::Driver(Code::AlreadyExists, _)) | Outcome::Unknown(_) => {
                Memory { sure: false, stage: Stage::Nothing, ..known }
            }
            Outcome::Refused(Refusal::Driver(code, text)) if known.sure || is_about_the_request(*code) => {
                known.refused(now, *code, text)
            }
            // An earlier call may have made the volume, and the driver may merely have failed this time (reliability 7).
            Outcome::Refused(Refusal::Driver(_, _)) => Memory { stage: Stage::Nothing, in_flight: None, ..known },
            Outcome::Refused(
                Refusal::Conflict | Refusal::NotFound | Refusal::AlreadyExists | Refusal::Denied(_) | Refusal::Host(_),
            ) => Memory { stage: Stage::Nothing, ..known },
        }
    }

    fn refused(self, now: Timestamp, code: Code, text: &str) -> Memory {
        let impossible = code == Code::InvalidArgument;
        Memory {
            stage: Stage::Refused { exhausted: code == Code::ResourceExhausted },
            infeasible: impossible
                .then(|| (now.after_millis(INFEASIBLE_MILLIS), Refusal::Driver(code, text.into()).to_string())),
            in_flight: None,
            ..self
        }
    }

    fn after_delete(self, got: &Outcome) -> Memory {
        let known = Memory { secrets: None, fresh: Fresh::Unread, ..self };
        match got {
            Outcome::Done(_) => Memory { stage: Stage::Deleted, ..known },
            Outcome::Refused(_) | Outcome::Unknown(_) => known,
        }
    }

    fn after_pv(self, got: &Outcome) -> Memory {
        match got {
            Outcome::Done(_) => Memory { stage: Stage::Committed, in_flight: None, ..self },
            Outcome::Refused(Refusal::AlreadyExists) => Memory { fresh: Fresh::Wanted, ..self },
            Outcome::Refused(
                Refusal::Conflict | Refusal::NotFound | Refusal::Denied(_) | Refusal::Driver(_, _) | Refusal::Host(_),
            )
            | Outcome::Unknown(_) => self,
        }
    }

    fn after_look_for(self, got: &Outcome) -> Memory {
        let Outcome::Done(reply) = got else { return self };
        let Reply::Object(Object::PersistentVolume(volume)) = reply else {
            return Memory { fresh: Fresh::Absent, ..self };
        };
        if is_for(volume, &self.uid) {
            return Memory { stage: Stage::Committed, ..self };
        }
        let seen = rules_translate::as_csi(volume).ok();
        let source = seen.as_ref().and_then(|volume| volume.spec.csi.as_ref());
        let handle = source.map(|source| source.volume_handle.clone()).unwrap_or_default();
        Memory { fresh: Fresh::Taken { handle }, ..self }
    }

    fn after_look_at_claim(self, now: Timestamp, got: &Outcome) -> Memory {
        let Outcome::Done(reply) = got else { return self };
        let wanted = match reply {
            Reply::Object(Object::PersistentVolumeClaim(claim)) => {
                let same = claim.metadata.uid == self.uid && !claim.metadata.is_deleting();
                same && claim.spec.volume_name.is_empty()
            }
            Reply::Object(_) | Reply::Objects(_) | Reply::Gone | Reply::Nothing | Reply::Csi(_) | Reply::Host(_) => {
                false
            }
        };
        let again = now.after_millis(CATCH_UP_MILLIS);
        Memory { fresh: if wanted { Fresh::StillWanted } else { Fresh::Spared { again } }, ..self }
    }

    fn after_look_at(self, now: Timestamp, got: &Outcome) -> Memory {
        let Outcome::Done(reply) = got else { return self };
        let fresh = match reply {
            Reply::Object(Object::PersistentVolume(volume))
                if volume.metadata.uid == self.uid && is_condemned(volume) =>
            {
                // An attacher puts its finalizer on a volume before it first publishes it, and never takes it off one
                // that stays.
                let attached = volume.metadata.finalizers.iter().any(|one| one.starts_with(names::ATTACHER_FINALIZERS));
                if attached { Fresh::MaybeAttached } else { Fresh::Condemned }
            }
            Reply::Object(_) | Reply::Objects(_) | Reply::Gone | Reply::Nothing | Reply::Csi(_) | Reply::Host(_) => {
                Fresh::Spared { again: now.after_millis(CATCH_UP_MILLIS) }
            }
        };
        Memory { fresh, ..self }
    }
}

impl Memory {
    /// Reliability 8, 105: an attachment that the cache has not shown holds up the deletion as well.
    fn after_list(self, now: Timestamp, volume: &str, got: &Outcome) -> Memory {
        let Outcome::Done(Reply::Objects(attachments)) = got else { return self };
        let refers = |object: &Object| match object {
            Object::VolumeAttachment(attachment) => attachment.volume() == Some(volume),
            _ => false,
        };
        let fresh = match attachments.iter().any(refers) {
            true => Fresh::Spared { again: now.after_millis(CATCH_UP_MILLIS) },
            false => Fresh::Condemned,
        };
        Memory { fresh, ..self }
    }
}

fn is_done(got: &Outcome) -> bool {
    matches!(got, Outcome::Done(_))
}

fn is_refused(got: &Outcome) -> bool {
    matches!(got, Outcome::Refused(_))
}
