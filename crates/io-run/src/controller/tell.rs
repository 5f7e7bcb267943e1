//! What users are told of decisions and actions: log lines for operators, events for everybody else. Never on the way of the
//! work: events are handed over and forgotten.

use std::sync::Arc;

use api::Object;
use control::{Action, Ended, EventType, Narrate, Outcome, Refusal, Timestamp, Why};
use csi::Code;

use super::Controller;
use super::rests::Rest;

/// How long a lasting wait is left untold while too many others are being told.
const CROWDED_MILLIS: u64 = 1_000;

impl<R: Narrate> Controller<R> {
    /// The key rests for this reason. Users are told if it lasts.
    pub(super) fn note_rest(&self, key: Arc<R::Key>, why: &Why<R::Reason>) {
        if self.parts.events.is_none() {
            return;
        }
        let Some((event_type, reason)) = R::rest_event(&key, why) else { return self.state().rests.over(&key) };
        let due = self.parts.clock.now().after_millis(R::patience(why));
        self.state().rests.begun(key, Rest { event_type, reason, text: why.to_string() }, due);
    }

    /// Tells what keys have been waiting for long enough. Answers when the next one will have.
    pub(super) fn tell_of_lasting_rests(&self) -> Option<Timestamp> {
        let now = self.parts.clock.now();
        let lasting = self.state().rests.lasting(now);
        for (key, Rest { event_type, reason, text }) in lasting {
            let Some(events) = &self.parts.events else { break };
            let mut said = true;
            for object in self.targets(&key) {
                said &= events.say_lasting(R::NAME, object, event_type, reason, text.clone(), now);
            }
            if !said {
                self.state().rests.later(&key, now.after_millis(CROWDED_MILLIS));
            }
        }
        self.state().rests.next()
    }

    /// The objects that get the events about a key.
    fn targets(&self, key: &R::Key) -> Vec<Object> {
        self.parts.cache.look(|cache| {
            let targets = R::event_targets(key, cache, self.state().engine.local());
            targets.iter().filter_map(|object| cache.get(object.kind, &object.key)).collect()
        })
    }

    /// The action on a key begins.
    pub(super) fn tell_of_beginning(&self, key: &R::Key) {
        let begun = {
            let state = self.state();
            let Some(doing) = state.engine.doing(key) else { return };
            self.parts.metrics.decided(R::NAME, "do", doing.why.code);
            tracing::debug!(controller = R::NAME, %key, action = doing.action.name(), "{}", doing.why);
            self.parts.events.as_ref().and_then(|_| doing.action.news().begun)
        };
        if let Some((reason, text)) = begun {
            self.say(key, EventType::Normal, reason, || text);
        }
    }

    /// The action on a key takes long.
    pub(super) fn tell_of_slowness(&self, key: &R::Key) {
        let slow = self.state().engine.doing(key).and_then(|doing| doing.action.news().slow);
        if let Some((reason, text)) = slow {
            self.say(key, EventType::Warning, reason, || text);
        }
    }

    /// The action on a key has ended.
    pub(super) fn tell_of_end(&self, key: &R::Key, ended: &Ended<R::Action>, outcome: &Outcome) {
        let Ended { action, why, attempt } = ended;
        let Some(failure) = attempt.failure() else {
            if self.parts.events.is_none() {
                return;
            }
            if let Some((reason, text)) = action.news().done {
                self.say(key, EventType::Normal, reason, || text);
            }
            return;
        };
        match outcome {
            // Somebody was faster: look again. Or the driver has no such method, which says what it is and not that
            // something failed. Neither is worth a word to users.
            Outcome::Refused(
                Refusal::Conflict
                | Refusal::NotFound
                | Refusal::AlreadyExists
                | Refusal::Driver(Code::Unimplemented, _),
            ) => {
                tracing::debug!(controller = R::NAME, %key, action = action.name(), "{failure}");
            }
            Outcome::Refused(_) | Outcome::Unknown(_) | Outcome::Done(_) => {
                tracing::warn!(controller = R::NAME, %key, action = action.name(), "{failure}");
                let reason = action.news().failed.unwrap_or(why.code);
                self.say(key, EventType::Warning, reason, || format!("{why}: {failure}"));
            }
        }
    }

    fn say(&self, key: &R::Key, event_type: EventType, reason: &'static str, text: impl FnOnce() -> String) {
        let Some(events) = &self.parts.events else { return };
        let objects = self.targets(key);
        if objects.is_empty() {
            return;
        }
        let (text, now) = (text(), self.parts.clock.now());
        for object in objects {
            events.say(R::NAME, object, event_type, reason, text.clone(), now);
        }
    }
}
