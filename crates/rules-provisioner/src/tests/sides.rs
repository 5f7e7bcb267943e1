//! The other controllers of this crate, at work on the same store.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::Object;
use control::{Cache, Decision, Engine, Next, Rules, Timestamp};
use rules_store::Store;

use super::world::World;
use crate::Local;

/// Another controller of this crate, with watches of its own.
pub(super) struct Side<R: Rules> {
    engine: Engine<R>,
    cache: Cache,
}

impl<R: Rules<Local = Local>> Default for Side<R> {
    fn default() -> Self {
        Side::new(Local::default())
    }
}

impl<R: Rules<Local = Local>> Side<R> {
    pub(super) fn new(local: Local) -> Side<R> {
        Side { engine: Engine::new(local), cache: Cache::default() }
    }

    pub(super) fn update_local(&mut self, now: Timestamp, change: impl FnOnce(&mut Local)) {
        self.engine.update_local(now, &self.cache, change);
    }

    /// Its watches catch up.
    fn sync(&mut self, now: Timestamp, store: &Store) {
        for kind in Object::KINDS {
            let list = store.list(kind, None);
            let objects = list.map(|stored| Object::from_json(kind, stored.value.clone()).unwrap()).collect();
            for change in self.cache.replace(kind, store.revision(), objects) {
                self.engine.changed(now, &change, &self.cache);
            }
        }
    }

    /// Nothing is left to do now that nobody woke it for.
    fn check_woken(&self, now: Timestamp) {
        let asleep: BTreeSet<&R::Key> = self.engine.queued().collect(); // Until a later moment.
        for key in R::keys(&self.cache, self.engine.local()).into_iter().filter(|key| !asleep.contains(key)) {
            let decision = self.engine.decide(now, &key, &self.cache);
            assert!(!matches!(decision, Decision::Do(..)), "{key} was not woken: {decision:?}");
        }
    }
}

impl World {
    pub(super) fn run_sources(&mut self) -> Vec<String> {
        let mut side = core::mem::take(&mut self.sources);
        let log = self.run_side(&mut side);
        self.sources = side;
        log
    }

    pub(super) fn run_capacity(&mut self) -> Vec<String> {
        let mut side = core::mem::take(&mut self.capacity);
        let log = self.run_side(&mut side);
        self.capacity = side;
        log
    }

    /// Runs another controller of this crate, woken by changes alone, until it waits or rests; what it did.
    fn run_side<R: Rules<Local = Local>>(&mut self, side: &mut Side<R>) -> Vec<String> {
        let (mut log, now) = (Vec::new(), self.now);
        loop {
            side.sync(now, &self.store);
            let (key, effect) = match side.engine.next(now, &side.cache) {
                Next::Begin { key, effect } => (key, effect),
                Next::Rested { .. } | Next::Waiting { .. } => continue,
                Next::Idle(_) => break,
            };
            let action = side.engine.doing(&key).unwrap().action.clone();
            log.push(format!("{action:?}"));
            assert!(log.len() < 100, "no rest: {log:?}");
            let got = self.perform(&action, &effect);
            side.engine.finish(now, &key, &got, &mut side.cache);
        }
        side.check_woken(now);
        log
    }
}
