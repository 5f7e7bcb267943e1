//! What an exploration remembers of the states it has seen: how each was reached, and which are alike. A world is a
//! hundred times larger than what is kept here, so worlds are thrown away and played again from their first step.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use api::Kind;

use crate::bounds::Budget;
use crate::step::{Move, Step};

/// State hashes are hashes already.
#[derive(Default)]
struct Plain(u64);

impl Hasher for Plain {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

const NONE: u32 = u32::MAX;

/// How a state was reached, in as few bytes as that takes: there are millions of them.
struct Known {
    parent: u32,
    /// The next state that differs from this one only in the trouble to come.
    alike: u32,
    step: Option<Step>,
    behind: Option<(u8, Kind)>,
    budget: u32,
}

/// The states seen, numbered in the order in which they were found. None has a smaller number than its parent, and no
/// state that is further from the start has a smaller number than one that is nearer.
#[derive(Default)]
pub(crate) struct States {
    known: Vec<Known>,
    /// The first state of each hash.
    seen: HashMap<u64, u32, BuildHasherDefault<Plain>>,
    /// What is left of the budget is the same in very many states.
    budgets: Vec<Budget>,
    numbers: HashMap<Budget, u32>,
}

/// A state that was looked up.
pub(crate) enum Found {
    /// One like it is known, with at least as much trouble to come.
    Known(u32),
    New(u32),
}

impl States {
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// The number of a state by its hash. A new one is noted unless one like it is known that has at least as much
    /// trouble to come.
    pub(crate) fn add(&mut self, hash: u64, budget: Budget, parent: u32, step: Option<Move>) -> Found {
        let new = self.known.len() as u32;
        let mut at = *self.seen.entry(hash).or_insert(new);
        let mut last = NONE;
        while at != NONE && at != new {
            let known = &self.known[at as usize];
            if self.budgets[known.budget as usize].covers(&budget) {
                return Found::Known(at);
            }
            (last, at) = (at, known.alike);
        }
        if last != NONE {
            self.known[last as usize].alike = new;
        }
        let next = self.budgets.len() as u32;
        let number = *self.numbers.entry(budget).or_insert(next);
        if number == next {
            self.budgets.push(budget);
        }
        let (behind, step) = (step.and_then(|step| step.behind), step.map(|step| step.step));
        self.known.push(Known { parent, alike: NONE, step, behind, budget: number });
        Found::New(new)
    }

    /// The state before, and the step that led from there; none for the start.
    pub(crate) fn way_to(&self, at: u32) -> Option<(u32, Move)> {
        let known = &self.known[at as usize];
        let budget = self.budgets[known.budget as usize];
        known.step.map(|step| (known.parent, Move { step, budget, behind: known.behind, calm: false }))
    }

    /// The steps from the start to a state.
    pub(crate) fn history(&self, mut at: u32) -> Vec<Move> {
        let mut steps = Vec::new();
        while let Some((parent, step)) = self.way_to(at) {
            steps.push(step);
            at = parent;
        }
        steps.reverse();
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(user: u8, budget: Budget) -> Option<Move> {
        Some(Move { step: Step::User(user), budget, behind: Some((1, Kind::Pod)), calm: false })
    }

    #[test]
    fn a_state_is_known_if_one_like_it_has_as_much_trouble_to_come() {
        let mut states = States::default();
        let (much, little) = (Budget::calm(2), Budget::calm(1));
        assert!(matches!(states.add(7, little, 0, None), Found::New(0)));
        assert!(matches!(states.add(7, much, 0, step(3, much)), Found::New(1)));
        assert!(matches!(states.add(7, little, 1, step(4, little)), Found::Known(0)));
        assert!(matches!(states.add(7, much, 0, step(5, much)), Found::Known(1)));
        let other = Budget::troubled(0, 1, 0);
        assert!(matches!(states.add(7, other, 1, step(6, other)), Found::New(2)));
        assert!(matches!(states.add(7, Budget::calm(0), 1, None), Found::Known(0)));
        assert!(matches!(states.add(8, little, 1, step(7, little)), Found::New(3)));
        assert_eq!(states.len(), 4);
    }

    #[test]
    fn a_history_is_told_step_by_step() {
        let mut states = States::default();
        let budget = Budget::calm(1);
        for at in 0..3 {
            let parent = u32::try_from(at).unwrap().saturating_sub(1);
            states.add(at, budget, parent, if at == 0 { None } else { step(at as u8, budget) });
        }
        assert_eq!(states.history(2), [step(1, budget).unwrap(), step(2, budget).unwrap()]);
        assert_eq!(states.way_to(0), None);
    }

    // What an exploration of twenty million states takes is this, thirty bytes of hashes, and its calm steps.
    #[test]
    fn a_state_is_small() {
        assert!(size_of::<Known>() <= 24, "{}", size_of::<Known>());
    }
}
