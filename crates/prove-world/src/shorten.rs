//! A walk that broke a law, with the steps taken out that it does not need.
//!
//! Without a step those after it may be others, so a step is known by what it does and not by its number: what is not
//! there any more is left out, and after the last one the world goes on by itself until it rests. Steps are taken out
//! in ever smaller pieces as long as the same law breaks. The result is no longer than the walk, and not always the
//! shortest there is.

use crate::bounds::Budget;
use crate::explore::{Scenario, at_rest};
use crate::laws::{Law, Violation};
use crate::report::Counterexample;
use crate::step::{Move, Step};
use crate::world::{UserMove, World};

/// So many shorter walks are tried.
const ATTEMPTS: usize = 400;
/// A world that does not rest after so many more steps has not broken the law at rest.
const LONGEST: usize = 2_000;

/// One step of a walk, as it can be found again in another state.
#[derive(Clone)]
pub(crate) struct Taken {
    step: Move,
    words: String,
}

impl Taken {
    pub(crate) fn of(world: &World, step: Move, user: &[UserMove]) -> Taken {
        Taken { step, words: world.words(&Move { behind: None, ..step }, user, "") }
    }

    /// The same step from here, if it can be taken.
    fn find(&self, world: &World, user: &[UserMove]) -> Option<Move> {
        let same = |step: &Move| alike(step.step, self.step.step) && world.words(step, user, "") == self.words;
        let found = world.moves(user).into_iter().find(same)?;
        if self.step.behind.is_none() {
            return Some(found);
        }
        let kinds = world.take(found, user).kinds;
        world.stragglers(&found, &kinds).into_iter().find(|late| late.behind == self.step.behind)
    }
}

/// Of one sort and about one controller; words are dear, so they come last.
fn alike(one: Step, other: Step) -> bool {
    match (one, other) {
        (Step::Act { member, held, how, .. }, Step::Act { member: m, held: h, how: w, .. }) => {
            (member, held, how) == (m, h, w)
        }
        (Step::Hold { member, .. }, Step::Hold { member: m, .. })
        | (Step::Erase { member, .. }, Step::Erase { member: m, .. }) => member == m,
        (Step::User(_), Step::User(_)) | (Step::Land(_), Step::Land(_)) => true,
        (one, other) => one == other,
    }
}

/// The same law broken by fewer steps, if that can be done.
pub(crate) fn shorten(scenario: &Scenario, budget: Budget, mut walk: Vec<Taken>, law: Law) -> Option<Counterexample> {
    let (mut best, mut attempts) = (None, 0);
    let mut piece = walk.len();
    while piece > 0 {
        let mut from = 0;
        while from < walk.len() && attempts < ATTEMPTS {
            attempts += 1;
            let to = (from + piece).min(walk.len());
            let rest: Vec<Taken> = walk[..from].iter().chain(&walk[to..]).cloned().collect();
            match replay(scenario, budget, &rest, law) {
                Some(found) => (walk, best) = (rest, Some(found)),
                None => from = to,
            }
        }
        piece /= 2;
    }
    best
}

fn replay(scenario: &Scenario, budget: Budget, walk: &[Taken], law: Law) -> Option<Counterexample> {
    let mut world = (scenario.start)();
    world.budget = budget;
    let mut script = Vec::new();
    let broken = |found: Option<Violation>| scenario.judge(found).filter(|found| found.law() == law);
    let mut steps = walk.iter();
    while script.len() < LONGEST {
        let user = (scenario.user)(&world);
        let step = match steps.next() {
            Some(taken) => match taken.find(&world, &user) {
                Some(step) => step,
                None => continue,
            },
            None => match world.moves(&user).into_iter().find(|step| step.calm) {
                Some(step) => step,
                None => break,
            },
        };
        let stepped = world.take(step, &user);
        script.push(world.words(&step, &user, stepped.note.trim()));
        if let Some(violation) = broken(stepped.violation) {
            return Some(Counterexample { violation, script, state: stepped.world.describe() });
        }
        world = stepped.world;
    }
    let violation = broken(at_rest(scenario, &world))?;
    Some(Counterexample { violation, script, state: world.describe() })
}
