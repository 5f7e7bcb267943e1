use alloc::string::String;

use api::{Object, ObjectKey};
use control::{Outcome, Reply, Timestamp};

use crate::{Action, users};

/// A hint kept between decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Memory {
    /// What the last fresh read found.
    pub looked: Looked,
}

/// What a fresh read found out about a pair of volume and claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Looked {
    /// Nothing was read.
    #[default]
    Nothing,
    /// The other half is gone, or is another one of that name.
    Gone {
        /// The volume's name.
        volume: String,
        /// The claim's uid.
        claim: String,
    },
    /// It is there, though the cache does not show it yet.
    There {
        /// The volume's name.
        volume: String,
        /// The claim's uid.
        claim: String,
        /// When to look again if the cache has still not shown it.
        again: Timestamp,
    },
    /// No pod used the claim of this uid, which was being deleted.
    Unused { claim: String },
    /// Pods used the claim, though the cache shows none yet.
    Used {
        claim: String,
        /// When to list again if the cache has still not shown them.
        again: Timestamp,
    },
}

/// How long a cache may take to show what a fresh read showed, before we read again.
const CATCH_UP_MILLIS: u64 = 1_000;

impl Looked {
    /// The pair was read and the other half is gone.
    pub(crate) fn says_gone(&self, name: &str, uid: &str) -> bool {
        matches!(self, Looked::Gone { volume, claim } if volume == name && claim == uid)
    }

    /// The pair was read, the other half is there, and it is too early to read again.
    pub(crate) fn says_there(&self, name: &str, uid: &str, now: Timestamp) -> Option<Timestamp> {
        match self {
            Looked::There { volume, claim, again } if volume == name && claim == uid && now < *again => Some(*again),
            Looked::There { .. }
            | Looked::Gone { .. }
            | Looked::Unused { .. }
            | Looked::Used { .. }
            | Looked::Nothing => None,
        }
    }

    /// The pods were listed and none used the claim.
    pub(crate) fn says_unused(&self, uid: &str) -> bool {
        matches!(self, Looked::Unused { claim } if claim == uid)
    }

    /// The pods were listed, some used the claim, and it is too early to list again.
    pub(crate) fn says_used(&self, uid: &str, now: Timestamp) -> Option<Timestamp> {
        match self {
            Looked::Used { claim, again } if claim == uid && now < *again => Some(*again),
            Looked::Used { .. }
            | Looked::Unused { .. }
            | Looked::There { .. }
            | Looked::Gone { .. }
            | Looked::Nothing => None,
        }
    }
}

impl Memory {
    pub(crate) fn after(now: Timestamp, did: &Action, got: &Outcome) -> Memory {
        let read = |there: bool, volume: &str, claim: &str| {
            let (volume, claim) = (volume.into(), claim.into());
            match there {
                true => Looked::There { volume, claim, again: now.after_millis(CATCH_UP_MILLIS) },
                false => Looked::Gone { volume, claim },
            }
        };
        match (did, got) {
            (Action::LookForClaim { volume, uid, .. }, Outcome::Done(reply)) => {
                Memory { looked: read(shows_claim(reply, uid), volume, uid) }
            }
            (Action::LookForVolume { volume, claim_uid }, Outcome::Done(reply)) => {
                Memory { looked: read(shows_volume(reply, claim_uid), volume, claim_uid) }
            }
            (Action::LookForUsers { claim, uid, made_for }, Outcome::Done(Reply::Objects(pods))) => {
                let claim_uid = uid.clone();
                let looked = match pods.iter().any(|pod| holds(pod, claim, made_for.as_deref())) {
                    true => Looked::Used { claim: claim_uid, again: now.after_millis(CATCH_UP_MILLIS) },
                    false => Looked::Unused { claim: claim_uid },
                };
                Memory { looked }
            }
            // A finding serves the one write it was made for.
            (_, Outcome::Done(_) | Outcome::Refused(_) | Outcome::Unknown(_)) => Memory::default(),
        }
    }
}

fn holds(object: &Object, claim: &ObjectKey, made_for: Option<&str>) -> bool {
    let Object::Pod(pod) = object else { return false };
    pod.metadata.namespace == claim.namespace && users::holds(pod, &claim.name, made_for)
}

fn shows_claim(reply: &Reply, uid: &str) -> bool {
    matches!(reply, Reply::Object(Object::PersistentVolumeClaim(claim)) if claim.metadata.uid == uid)
}

/// The volume is there and refers to the claim, or to none, in which case the claim may have it back.
fn shows_volume(reply: &Reply, claim_uid: &str) -> bool {
    let Reply::Object(Object::PersistentVolume(volume)) = reply else { return false };
    volume.spec.claim_ref.as_ref().is_none_or(|holder| holder.uid.is_empty() || holder.uid == claim_uid)
}
