//! Steps that are the same whether an intent is written down or not.

use alloc::format;
use alloc::sync::Arc;

use api::SecretReference;
use control::{Decision, Secrets, Timestamp, Why};

use crate::source::protection;
use crate::{Action, Fresh, Headroom, InFlight, Made, Memory, Provision, Reason, SourceProtection, Terms};

/// One look at a claim.
pub(crate) struct Step<'a> {
    pub(crate) now: Timestamp,
    pub(crate) work: &'a Provision,
    pub(crate) memory: &'a Memory,
}

impl Step<'_> {
    /// What CreateVolume needs, and then CreateVolume.
    pub(crate) fn create_volume(&self, terms: &Terms, in_flight: Option<Arc<InFlight>>) -> Decision<Action, Reason> {
        let (work, driver) = (self.work, &self.work.local.driver);
        if let Some((until, failure)) = self.memory.infeasible.as_ref().filter(|(until, _)| self.now < *until) {
            let text = format!("driver {driver} will be asked again for volume {}: {failure}", terms.request.name);
            return Decision::Wait(*until, Why::waiting(Reason::CreateRefused, text));
        }
        if let Some(hold) = self.hold_source(terms, in_flight.is_none()) {
            return hold;
        }
        let secrets = match self.secrets(terms.secrets.provision.as_ref(), true) {
            Ok(secrets) => secrets,
            Err(read) => return read,
        };
        Decision::Do(
            Action::CreateVolume {
                uid: work.claim.metadata.uid.clone(),
                driver: work.local.driver.clone(),
                request: terms.request.clone(),
                secrets,
                in_tree: work.in_tree,
                in_flight,
            },
            Why::waiting(
                Reason::CreatingVolume,
                format!("waiting for driver {driver} to create volume {}", terms.request.name),
            ),
        )
    }

    /// What keeps the source from going while it is copied. Where an intent is written down, a finalizer found on the source
    /// is made sure of by a write: whoever was about to take it off then fails, and sees the intent.
    fn hold_source(&self, terms: &Terms, intent: bool) -> Option<Decision<Action, Reason>> {
        let kind = terms.request.source.as_ref().map(|source| source.kind)?;
        let source = match &self.work.source_protection {
            SourceProtection::Missing(source) => source,
            SourceProtection::Held(source) if intent && !self.memory.holds => source,
            SourceProtection::Lost { going: true } => {
                let text = "the volume it was to be copied from is being deleted: waiting for the end of that";
                return Some(Decision::Rest(Why::waiting(Reason::SourceGoing, text)));
            }
            SourceProtection::NotNeeded | SourceProtection::Held(_) | SourceProtection::Lost { going: false } => {
                return None;
            }
        };
        if self.memory.hold_waived {
            return None;
        }
        let text = format!("adding the finalizer that keeps {} until the volume is made from it", source.reference());
        let uid = self.work.claim.metadata.uid.clone();
        let action = Action::AddSourceFinalizer { uid, source: source.clone(), finalizer: protection(kind) };
        Some(Decision::Do(action, Why::waiting(Reason::AddingSourceFinalizer, text)))
    }

    /// What the next call takes along, or the step that reads it.
    #[allow(clippy::result_large_err, reason = "the decision is returned at once, never collected")]
    fn secrets(&self, secret: Option<&SecretReference>, needed: bool) -> Result<Secrets, Decision<Action, Reason>> {
        read_secret(&self.work.claim.metadata.uid, secret, needed, self.memory)
    }

    pub(crate) fn create_pv(&self, terms: &Terms, made: &Made) -> Decision<Action, Reason> {
        if self.memory.fresh == Fresh::Wanted {
            return self.look("a volume of that name exists: looking whose it is");
        }
        Decision::Do(
            Action::CreatePv {
                claim: self.work.claim.clone(),
                local: self.work.local.clone(),
                terms: terms.clone(),
                made: made.clone(),
                in_tree: self.work.in_tree,
            },
            Why::waiting(Reason::RecordingVolume, format!("recording the volume as {}", terms.request.name)),
        )
    }

    pub(crate) fn look(&self, text: &str) -> Decision<Action, Reason> {
        let (uid, name) = (self.work.claim.metadata.uid.clone(), self.work.name.clone());
        Decision::Do(Action::LookForPv { uid, name }, Why::waiting(Reason::LookingForVolume, text))
    }

    pub(crate) fn delete_again(&self, terms: &Terms, made: &Made) -> Decision<Action, Reason> {
        let secrets = match self.secrets(terms.secrets.provision.as_ref(), false) {
            Ok(secrets) => secrets,
            Err(read) => return read,
        };
        let driver = &self.work.local.driver;
        Decision::Do(
            Action::DeleteVolume {
                uid: self.work.claim.metadata.uid.clone(),
                driver: self.work.local.driver.clone(),
                volume_id: made.volume_id.clone(),
                secrets,
                undo: true,
            },
            Why::waiting(
                Reason::UndoingVolume,
                format!("waiting for driver {driver} to delete the volume nobody wants"),
            ),
        )
    }

    pub(crate) fn reschedule(&self, code: Reason, text: &str) -> Decision<Action, Reason> {
        Decision::Do(Action::Reschedule(self.work.claim.clone()), Why::waiting(code, text))
    }

    /// P93 to P96: a claim that any node may take is taken by one, when its turn has come and there is room.
    pub(crate) fn contest(&self, from: Timestamp, terms: &Terms) -> Decision<Action, Reason> {
        let Some(own) = &self.work.local.settings.node else {
            return Decision::Rest(Why::settled(Reason::NotForNodes, "no node is known that could take the claim"));
        };
        let turn = self.turn(from);
        if self.now < turn {
            return Decision::Wait(
                turn,
                Why::waiting(Reason::AwaitingTurn, format!("node {} waits for its turn", own.name)),
            );
        }
        match self.memory.headroom {
            Headroom::Unasked => Decision::Do(
                Action::AskCapacity {
                    uid: self.work.claim.metadata.uid.clone(),
                    driver: self.work.local.driver.clone(),
                    request: terms.request.clone(),
                    node: own.clone(),
                },
                Why::waiting(Reason::AskingForRoom, format!("asking whether there is room on node {}", own.name)),
            ),
            Headroom::TooLittle { again } if self.now < again => Decision::Wait(
                again,
                Why::waiting(Reason::NoRoomHere, format!("there is no room on node {}", own.name)),
            ),
            Headroom::TooLittle { .. } | Headroom::Enough => Decision::Do(
                Action::TakeClaim { claim: self.work.claim.clone(), node: own.name.clone() },
                Why::waiting(Reason::TakingClaim, format!("taking the claim for node {}", own.name)),
            ),
        }
    }

    /// After a conflict the next turn comes later, as many times as there were conflicts, up to the longest delay.
    fn turn(&self, from: Timestamp) -> Timestamp {
        let conflicts = self.memory.conflicts;
        match &self.work.local.settings.node {
            Some(own) if conflicts > 0 => {
                let delay = own.base_delay_millis.saturating_mul(1 << conflicts.min(16)).min(own.max_delay_millis);
                let less = own.share(&self.work.claim.metadata.uid, own.base_delay_millis);
                from.after_millis(delay.saturating_sub(less))
            }
            Some(_) | None => from,
        }
    }
}

/// What the next call takes along, or the step that reads it.
#[allow(clippy::result_large_err, reason = "the decision is returned at once, never collected")]
pub(crate) fn read_secret(
    uid: &str,
    secret: Option<&SecretReference>,
    needed: bool,
    memory: &Memory,
) -> Result<Secrets, Decision<Action, Reason>> {
    match (secret, &memory.secrets) {
        (None, _) => Ok(Secrets::default()),
        (Some(_), Some(secrets)) => Ok(secrets.clone()),
        (Some(secret), None) => {
            let why =
                Why::waiting(Reason::ReadingSecret, format!("reading secret {}/{}", secret.namespace, secret.name));
            Err(Decision::Do(Action::ReadSecret { uid: uid.into(), secret: secret.clone(), needed }, why))
        }
    }
}
