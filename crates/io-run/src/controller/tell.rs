//! What users are told of decisions and actions: log lines for operators, events for everybody else. Never on the way of the
//! work: events are handed over and forgotten.

use api::Object;
use control::{Action, Outcome, Refusal, Rules, Tone, Why};
use csi::Code;

use super::Controller;

impl<R> Controller<R>
where
    R: Rules + 'static,
    R::Key: Send + Sync,
    R::Local: Send,
    R::Memory: Send,
    R::Action: Send + Sync,
{
    /// Nothing is done for this reason.
    pub(super) fn tell_of_plight(&self, key: &R::Key, why: &Why) {
        if let Some((tone, reason)) = R::plight(key, why) {
            self.say(key, tone, reason, || why.to_string());
        }
    }

    /// An action begins.
    pub(super) fn tell_of_beginning(&self, key: &R::Key, action: &R::Action) {
        if self.parts.events.is_none() {
            return;
        }
        if let Some((reason, text)) = action.news().begun {
            self.say(key, Tone::Normal, reason, || text);
        }
    }

    /// An action has ended.
    pub(super) fn tell_of_end(&self, key: &R::Key, action: &R::Action, why: &Why, outcome: &Outcome) {
        let Some(failure) = action.failure(outcome) else {
            if self.parts.events.is_none() {
                return;
            }
            if let Some((reason, text)) = action.news().done {
                self.say(key, Tone::Normal, reason, || text);
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
                self.say(key, Tone::Warning, reason, || format!("{why}: {failure}"));
            }
        }
    }

    fn say(&self, key: &R::Key, tone: Tone, reason: &'static str, text: impl FnOnce() -> String) {
        let Some(events) = &self.parts.events else { return };
        let objects: Vec<Object> = self.parts.facts.look(|cache| {
            let concerned = R::concerns(key, cache, &self.state().local);
            concerned.iter().filter_map(|object| cache.get(object.kind, &object.key).cloned()).collect()
        });
        if objects.is_empty() {
            return;
        }
        let (text, now) = (text(), self.parts.clock.now());
        for object in objects {
            events.say(R::NAME, object, tone, reason, text.clone(), now);
        }
    }
}
