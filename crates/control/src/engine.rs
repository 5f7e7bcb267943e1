//! The loop of a controller, as a value.
//!
//! [`Engine`] decides which key is looked at next, what it does, and what follows from the outcome. It is told the time and
//! shown the cache; it performs nothing. `io-run` runs it with real hands, `prove-world` explores every order of its steps,
//! and the tests of rules play it step by step: all three run the same loop.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use api::{Kind, Object, ObjectKey, ObjectRef};

use crate::decision::Resolved;
use crate::queue::BEGUN;
use crate::retry::Failures;
use crate::turns::{Turns, contended};
use crate::{Action, Attempt, Cache, Change, Decision, Effect, Outcome, Queue, Reply, Rules, Timestamp, Why};

/// The reason to wait after a failure.
const BACK_OFF: &str = "BackOff";
/// The reason to wait while another key's write to the same object is not answered.
const WAITS_ITS_TURN: &str = "WaitsItsTurn";
/// The reason to wait for the first list of a kind.
const CACHE_NOT_SYNCED: &str = "CacheNotSynced";

/// One set of rules with all it keeps between two steps.
pub struct Engine<R: Rules> {
    local: R::Local,
    queue: Queue<Arc<R::Key>>,
    /// Keys of which something is remembered or under way.
    tracks: BTreeMap<Arc<R::Key>, Track<R>>,
    turns: Turns<Arc<R::Key>>,
}

/// What is kept of one key.
struct Track<R: Rules> {
    memory: R::Memory,
    failures: Failures,
    doing: Option<Doing<R::Action>>,
}

/// An action under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Doing<A> {
    pub action: A,
    pub why: Why,
    /// The object it writes to, and the uid that the write demands.
    written: Option<(ObjectRef, Option<String>)>,
}

/// What [`Engine::next`] came to.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "made one at a time and moved, never collected")]
pub enum Next<R: Rules> {
    /// Perform this effect and tell [`Engine::ended`].
    Begin { key: Arc<R::Key>, effect: Effect },
    /// The key needs nothing until a fact changes. The reason is one of the rules, so that events can follow from it.
    Rested { key: Arc<R::Key>, why: Why<R::Reason> },
    /// The key is due again later.
    Waiting { key: Arc<R::Key>, why: Why },
    /// No key is due; the next one is due then.
    Idle(Option<Timestamp>),
}

/// What an answer to our own write says about the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fold {
    /// The object is like this.
    Set(Object),
    /// The object with this uid is gone.
    Gone { kind: Kind, key: ObjectKey, uid: String },
}

/// An action that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended<A> {
    pub action: A,
    pub why: Why,
    pub attempt: Attempt,
}

/// What one controller makes of one key, right now.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The controller's name.
    pub controller: &'static str,
    /// The key, as it prints.
    pub key: String,
    /// The objects the key is about.
    pub about: Vec<ObjectRef>,
    pub verdict: Verdict,
    pub why: Why,
}

/// The sort of decision behind an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing until a fact changes.
    Rests,
    /// Nothing until a fact changes or so many milliseconds have passed.
    Waits(u64),
    /// The action of this name is about to begin.
    WillDo(&'static str),
    /// An action is under way.
    Doing,
}

impl<R: Rules> Engine<R> {
    /// An engine that remembers nothing and has nothing to do.
    pub fn new(local: R::Local) -> Engine<R> {
        Engine { local, queue: Queue::default(), tracks: BTreeMap::new(), turns: Turns::default() }
    }

    /// The facts from outside the API.
    pub fn local(&self) -> &R::Local {
        &self.local
    }

    /// Facts from outside the API changed: every key is looked at.
    pub fn update_local<T>(&mut self, now: Timestamp, cache: &Cache, update: impl FnOnce(&mut R::Local) -> T) -> T {
        let answer = update(&mut self.local);
        self.wake_all(now, cache);
        answer
    }

    /// An object changed. Answers how many keys that concerns.
    pub fn changed(&mut self, now: Timestamp, change: &Change, cache: &Cache) -> usize {
        let woken = R::wakes(change, cache, &self.local);
        let count = woken.len();
        woken.into_iter().for_each(|key| self.wake(now, key));
        count
    }

    /// Looks at a key at this moment, or earlier if it is due earlier.
    pub fn wake(&mut self, at: Timestamp, key: R::Key) {
        self.queue.wake(Arc::new(key), at);
    }

    /// Looks at every key there is.
    pub fn wake_all(&mut self, now: Timestamp, cache: &Cache) {
        R::keys(cache, &self.local).into_iter().for_each(|key| self.wake(now, key));
    }

    /// Forgets what failed and what was remembered, save for what is under way, and looks at every key: somebody this
    /// controller waits for is back, or another process led in the meantime.
    pub fn start_over(&mut self, now: Timestamp, cache: &Cache) {
        self.tracks.retain(|_, track| track.doing.is_some());
        self.wake_all(now, cache);
    }

    /// Forgets what is known of one key and looks at it again.
    pub fn forget(&mut self, now: Timestamp, key: &R::Key) {
        if let Some(track) = self.tracks.get_mut(key) {
            (track.memory, track.failures) = (R::Memory::default(), Failures::default());
        }
        self.drop_if_empty(key);
        self.wake(now, key.clone());
    }

    /// Takes the key that is due first and decides on it. What was begun goes on before anything new is begun. A key
    /// that wants to write to an object while the write of another one to it is under way waits for the answer.
    pub fn next(&mut self, now: Timestamp, cache: &Cache) -> Next<R> {
        if unlisted::<R>(cache).is_some() {
            return Next::Idle(None);
        }
        let Some(key) = self.queue.take(now) else { return Next::Idle(self.queue.next()) };
        match self.resolve(now, &key, cache) {
            Resolved::Rest(why) => {
                self.may_write(&key, None);
                self.queue.done(key.clone());
                Next::Rested { key, why }
            }
            Resolved::Wait(until, why) => {
                self.may_write(&key, None);
                self.queue.done(key.clone());
                self.queue.wake(key.clone(), until);
                Next::Waiting { key, why }
            }
            Resolved::Do(action, why) => {
                let effect = action.effect();
                if !self.may_write(&key, contended(&effect)) {
                    self.queue.done(key.clone());
                    return Next::Waiting { key, why: Why::waiting(WAITS_ITS_TURN, why.to_string()) };
                }
                self.track_action(key.clone(), action, why.named(), &effect);
                Next::Begin { key, effect }
            }
        }
    }

    fn may_write(&mut self, key: &Arc<R::Key>, target: Option<&ObjectRef>) -> bool {
        let (may, called) = self.turns.ask(key, target);
        self.call(called);
        may
    }

    /// Looks at a key whose turn has come.
    fn call(&mut self, key: Option<Arc<R::Key>>) {
        if let Some(key) = key {
            self.queue.wake(key, BEGUN);
        }
    }

    /// What the rules want for a key, once failures have been counted.
    pub fn decide(&self, now: Timestamp, key: &R::Key, cache: &Cache) -> Decision<R::Action> {
        if let Some(kind) = unlisted::<R>(cache) {
            // Reliability 35: what has not been listed cannot be told from what is gone.
            let text = format!("waiting for the first list of {kind} objects");
            return Decision::Rest(Why::waiting(CACHE_NOT_SYNCED, text));
        }
        self.resolve(now, key, cache).into()
    }

    fn resolve(&self, now: Timestamp, key: &R::Key, cache: &Cache) -> Resolved<R::Action, R::Reason> {
        let view = R::view(key, cache, &self.local);
        match self.tracks.get(key) {
            None => R::decide(now, &view, &R::Memory::default()).resolve(&mut |_, _| None),
            Some(track) => {
                R::decide(now, &view, &track.memory).resolve(&mut |action, why| track.hold_back(now, action, why))
            }
        }
    }

    /// Begins an action on a key that waits in the queue: for whoever explores every order.
    pub fn begin(&mut self, key: &R::Key, action: R::Action, why: Why) -> Effect {
        let key = Arc::new(key.clone());
        self.queue.take_key(&key);
        let effect = action.effect();
        self.track_action(key, action, why, &effect);
        effect
    }

    /// Takes a key that rests out of the queue: for whoever explores every order.
    pub fn rest(&mut self, key: &R::Key) {
        let key = Arc::new(key.clone());
        if self.queue.take_key(&key) {
            self.queue.done(key);
        }
    }

    fn track_action(&mut self, key: Arc<R::Key>, action: R::Action, why: Why, effect: &Effect) {
        let written = match effect {
            Effect::Write(write) => Some((write.target().clone(), write.uid().map(ToString::to_string))),
            Effect::Read(_)
            | Effect::List { .. }
            | Effect::Token(_)
            | Effect::Call { .. }
            | Effect::Host(_)
            | Effect::Nothing => None,
        };
        self.tracks.entry(key).or_default().doing = Some(Doing { action, why, written });
    }

    /// What the outcome of the action under way says about the cache. The caller folds it in before [`Engine::ended`], so
    /// that no decision sees an object older than our own last write to it (reliability 104).
    pub fn fold(&self, key: &R::Key, outcome: &Outcome) -> Option<Fold> {
        let (target, uid) = self.tracks.get(key)?.doing.as_ref()?.written.as_ref()?;
        match outcome {
            Outcome::Done(Reply::Object(object)) => Some(Fold::Set(object.clone())),
            // Somebody may have created a namesake since: only the very object written to is gone.
            Outcome::Done(Reply::Gone) => {
                Some(Fold::Gone { kind: target.kind, key: target.key.clone(), uid: uid.clone()? })
            }
            Outcome::Done(Reply::Nothing | Reply::Objects(_) | Reply::Csi(_) | Reply::Host(_))
            | Outcome::Refused(_)
            | Outcome::Unknown(_) => None,
        }
    }

    /// The action under way on a key has ended: local facts, memory and failures follow, and the key is looked at again.
    pub fn ended(
        &mut self,
        now: Timestamp,
        key: &R::Key,
        outcome: &Outcome,
        cache: &Cache,
    ) -> Option<Ended<R::Action>> {
        let (key, mut track) = self.tracks.remove_entry(key)?;
        let Doing { action, why, written } = track.doing.take()?;
        let called = written.and_then(|(target, _)| self.turns.answered(&key, &target));
        self.call(called);
        let attempt = action.attempt(outcome);
        let stirred = R::learn(&mut self.local, &action, outcome, cache);
        track.failures.count(now, &action.lane(), attempt.clone(), R::back_off(&self.local));
        track.memory = R::remember(now, track.memory, &action, outcome);
        if !track.is_empty() {
            self.tracks.insert(key.clone(), track);
        }
        self.queue.go_on(key);
        stirred.into_iter().for_each(|key| self.wake(now, key));
        Some(Ended { action, why, attempt })
    }

    /// [`Engine::fold`], [`Engine::changed`] and [`Engine::ended`], for an engine that has its cache to itself.
    pub fn finish(
        &mut self,
        now: Timestamp,
        key: &R::Key,
        outcome: &Outcome,
        cache: &mut Cache,
    ) -> Option<Ended<R::Action>> {
        if let Some(change) = self.fold(key, outcome).and_then(|fold| cache.fold(fold)) {
            self.changed(now, &change, cache);
        }
        self.ended(now, key, outcome, cache)
    }

    /// What the rules make of every key that an object concerns.
    pub fn explain(&self, now: Timestamp, object: &Object, cache: &Cache) -> Vec<Explanation> {
        let change = Change { before: None, after: Some(object.clone()) };
        let mut keys = R::wakes(&change, cache, &self.local);
        keys.sort();
        keys.dedup();
        keys.iter().map(|key| self.explain_key(now, key, cache)).collect()
    }

    /// What the rules make of the keys that are about these objects and no others.
    pub fn explain_only(&self, now: Timestamp, objects: &[Object], cache: &Cache) -> Vec<Explanation> {
        let asked: BTreeSet<ObjectRef> = objects.iter().map(Object::reference).collect();
        let changes = objects.iter().map(|object| Change { before: None, after: Some(object.clone()) });
        let keys: BTreeSet<R::Key> = changes.flat_map(|change| R::wakes(&change, cache, &self.local)).collect();
        let about = |key: &R::Key| R::about(key, cache, &self.local).iter().all(|one| asked.contains(one));
        keys.iter().filter(|key| about(key)).map(|key| self.explain_key(now, key, cache)).collect()
    }

    fn explain_key(&self, now: Timestamp, key: &R::Key, cache: &Cache) -> Explanation {
        let (verdict, why) = match self.doing(key) {
            Some(doing) => (Verdict::Doing, doing.why.clone()),
            None => match self.decide(now, key, cache) {
                Decision::Wait(until, why) => (Verdict::Waits(until.0.saturating_sub(now.0)), why),
                Decision::Do(action, why) => (Verdict::WillDo(action.name()), why),
                rest @ (Decision::Rest(_) | Decision::Either(..)) => (Verdict::Rests, rest.why().clone()),
            },
        };
        let about = R::about(key, cache, &self.local);
        Explanation { controller: R::NAME, key: key.to_string(), about, verdict, why }
    }

    /// The action under way on a key.
    pub fn doing(&self, key: &R::Key) -> Option<&Doing<R::Action>> {
        self.tracks.get(key)?.doing.as_ref()
    }

    /// Every action under way.
    pub fn under_way(&self) -> impl Iterator<Item = (&R::Key, &Doing<R::Action>)> {
        self.tracks.iter().filter_map(|(key, track)| Some((&**key, track.doing.as_ref()?)))
    }

    /// Keys of which something is remembered, with what.
    pub fn remembered(&self) -> impl Iterator<Item = (&R::Key, &R::Memory, &Failures)> {
        let remembers = |track: &&Track<R>| track.memory != R::Memory::default() || !track.failures.is_empty();
        let tracks = self.tracks.iter().filter(move |(_, track)| remembers(track));
        tracks.map(|(key, track)| (&**key, &track.memory, &track.failures))
    }

    /// What is remembered of a key.
    pub fn memory(&self, key: &R::Key) -> R::Memory {
        self.tracks.get(key).map(|track| track.memory.clone()).unwrap_or_default()
    }

    /// Keys waiting to be looked at, now or later.
    pub fn queued(&self) -> impl Iterator<Item = &R::Key> {
        self.queue.keys().map(|key| &**key)
    }

    /// How many keys wait to be looked at, now or later.
    pub fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    /// How many actions are under way.
    pub fn busy(&self) -> usize {
        self.queue.busy()
    }

    fn drop_if_empty(&mut self, key: &R::Key) {
        if self.tracks.get(key).is_some_and(Track::is_empty) {
            self.tracks.remove(key);
        }
    }
}

/// A kind the rules watch that has not been listed yet.
fn unlisted<R: Rules>(cache: &Cache) -> Option<Kind> {
    R::watches().iter().copied().find(|kind| !cache.is_synced(*kind))
}

impl<R: Rules> Track<R> {
    fn is_empty(&self) -> bool {
        self.doing.is_none() && self.failures.is_empty() && self.memory == R::Memory::default()
    }

    /// After a failure the next attempt waits its turn, and says what failed.
    fn hold_back(&self, now: Timestamp, action: &R::Action, why: &Why<R::Reason>) -> Option<(Timestamp, Why)> {
        if self.failures.is_empty() {
            return None;
        }
        let (until, last) = self.failures.hold(now, &action.lane())?;
        Some((until, Why::waiting(BACK_OFF, format!("{why}: {last}"))))
    }
}

impl<R: Rules> Default for Track<R> {
    fn default() -> Self {
        Track { memory: R::Memory::default(), failures: Failures::default(), doing: None }
    }
}

impl<R: Rules> Clone for Track<R> {
    fn clone(&self) -> Self {
        Track { memory: self.memory.clone(), failures: self.failures.clone(), doing: self.doing.clone() }
    }
}

impl<R: Rules> Clone for Engine<R> {
    fn clone(&self) -> Self {
        Engine {
            local: self.local.clone(),
            queue: self.queue.clone(),
            tracks: self.tracks.clone(),
            turns: self.turns.clone(),
        }
    }
}

impl<R: Rules> Hash for Engine<R> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.local.hash(state);
        self.queue.hash(state);
        self.turns.hash(state);
        for (key, track) in &self.tracks {
            (key, &track.memory, &track.failures, &track.doing).hash(state);
        }
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
