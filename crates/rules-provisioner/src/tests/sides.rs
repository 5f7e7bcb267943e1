//! The other controllers of this crate, in the same world.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use control::{Action as _, Decision, Rules, Tick};

use super::world::World;
use crate::Local;

/// What another controller of this crate keeps between decisions.
pub(super) struct Side<R: Rules> {
    memory: BTreeMap<R::Key, R::Memory>,
    pub(super) due: BTreeSet<R::Key>,
    /// What it waits for, and until when.
    pub(super) waits: BTreeMap<R::Key, Tick>,
}

impl<R: Rules> Default for Side<R> {
    fn default() -> Self {
        Side { memory: BTreeMap::new(), due: BTreeSet::new(), waits: BTreeMap::new() }
    }
}

impl World {
    /// Runs another controller of this crate, woken by changes alone, until it waits or rests; what it did.
    fn run_side<R>(&mut self, side: fn(&mut World) -> &mut Side<R>) -> Vec<String>
    where
        R: Rules<Local = Local>,
    {
        let (mut log, now) = (Vec::new(), self.now);
        let waits = side(self).waits.clone();
        side(self).due.extend(waits.into_iter().filter(|(_, until)| *until <= now).map(|(key, _)| key));
        while let Some(key) = side(self).due.pop_first() {
            let memory = side(self).memory.get(&key).cloned().unwrap_or_default();
            side(self).waits.remove(&key);
            match R::decide(now, &R::view(&key, &self.cache, &self.local), &memory) {
                Decision::Rest(_) => {}
                Decision::Wait(until, _) => {
                    side(self).waits.insert(key, until);
                }
                Decision::Do(action, _) => {
                    log.push(format!("{action:?}"));
                    assert!(log.len() < 100, "no rest: {log:?}");
                    let got = self.perform(action.effect(), R::Action::permissions());
                    side(self).memory.insert(key.clone(), R::remember(now, memory, &action, &got));
                    side(self).due.insert(key);
                }
            }
        }
        for key in R::keys(&self.cache, &self.local) {
            let memory = side(self).memory.get(&key).cloned().unwrap_or_default();
            if side(self).waits.get(&key).is_some_and(|until| *until > now) {
                continue;
            }
            let decision = R::decide(now, &R::view(&key, &self.cache, &self.local), &memory);
            assert!(!matches!(decision, Decision::Do(..)), "{key} was not woken: {decision:?}");
        }
        log
    }

    pub(super) fn run_sources(&mut self) -> Vec<String> {
        self.run_side(|world| &mut world.sources)
    }

    pub(super) fn run_capacity(&mut self) -> Vec<String> {
        self.run_side(|world| &mut world.capacity)
    }
}
