//! Attempts to make and to delete volumes, counted as the Go provisioner counts them: one success or failure an attempt
//! (sidecars 2.13).

use alloc::collections::BTreeMap;
use alloc::string::String;

use api::ObjectKey;
use control::{Cache, Timestamp};

use crate::{Action, Key};

/// Attempts whose claims and volumes are gone are forgotten when so many are remembered.
const MANY: usize = 1024;

/// When attempts that are under way began.
#[derive(Clone, Debug, Default)]
pub struct AttemptTally {
    begun: BTreeMap<Key, Timestamp>,
}

/// An attempt that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedAttempt {
    /// What it was an attempt at.
    pub goal: AttemptGoal,
    /// How many milliseconds it took; `None` if it failed.
    pub took: Option<u64>,
}

/// What an attempt is at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptGoal {
    /// To make a claim's volume.
    Provision {
        /// The class of the claim.
        class: String,
        /// The kind of the object that the volume is made from; empty if there is none.
        source: String,
    },
    /// To delete a volume.
    Delete {
        /// The class of the volume.
        class: String,
    },
}

impl AttemptTally {
    /// An action that began at this moment has ended. Answers with the attempt that ended with it, if one did.
    pub fn ended(
        &mut self,
        (began, now): (Timestamp, Timestamp),
        key: &Key,
        action: &Action,
        failed: bool,
        cache: &Cache,
    ) -> Option<EndedAttempt> {
        let last = step(key, action)? == Step::Last;
        if self.begun.len() >= MANY {
            self.begun.retain(|key, _| exists(cache, key));
        }
        let began = *self.begun.entry(key.clone()).or_insert(began);
        if !last && !failed {
            return None;
        }
        self.begun.remove(key);
        let goal = match key {
            Key::Claim { key, .. } => provision(cache, key),
            Key::Volume(name) => {
                let volume = cache.volume(&ObjectKey::cluster(name.as_str()));
                AttemptGoal::Delete { class: volume.map(|volume| volume.class().into()).unwrap_or_default() }
            }
        };
        Some(EndedAttempt { goal, took: (!failed).then(|| now.0.saturating_sub(began.0)) })
    }
}

#[derive(PartialEq, Eq)]
enum Step {
    Earlier,
    Last,
}

/// Which step of an attempt an action is, if it is one. What is undone for a claim is none.
fn step(key: &Key, action: &Action) -> Option<Step> {
    match (key, action) {
        (Key::Claim { .. }, Action::CreatePv { .. }) | (Key::Volume(_), Action::DeleteVolume { .. }) => {
            Some(Step::Last)
        }
        (_, Action::AddSourceFinalizer { .. } | Action::ReadSecret { .. } | Action::CreateVolume { .. }) => {
            Some(Step::Earlier)
        }
        _ => None,
    }
}

fn provision(cache: &Cache, key: &ObjectKey) -> AttemptGoal {
    let claim = cache.claim(key);
    let claim = claim.as_deref();
    let source = claim.and_then(|claim| claim.source().map(|(source, _)| source.kind.clone()));
    let class = claim.and_then(|claim| claim.class()).unwrap_or_default().into();
    AttemptGoal::Provision { class, source: source.unwrap_or_default() }
}

fn exists(cache: &Cache, key: &Key) -> bool {
    match key {
        Key::Claim { key, .. } => cache.claim(key).is_some(),
        Key::Volume(name) => cache.volume(&ObjectKey::cluster(name.as_str())).is_some(),
    }
}
