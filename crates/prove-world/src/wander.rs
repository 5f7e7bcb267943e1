//! Random walks through worlds that are too large to be explored.
//!
//! Each walk draws its steps from a seeded generator, favouring the calm ones so that faults are spread over the whole of
//! it, and goes on until nothing is left to do. A seed and the bounds are all it takes to see the same walk again.

use std::fmt;

use crate::bounds::Budget;
use crate::explore::{Scenario, at_rest};
use crate::laws::Violation;
use crate::report::Counterexample;
use crate::step::Move;
use crate::world::World;

/// A walk that has not come to rest after so many steps never will.
const LONGEST: usize = 5_000;
/// One step in so many is trouble, while there is any left.
const TROUBLE: u64 = 12;

/// What the walks found.
#[derive(Clone, Debug)]
pub struct Walks {
    /// Which world.
    pub name: &'static str,
    /// Trouble in each walk.
    pub budget: Budget,
    /// Walks that ended well.
    pub walks: u64,
    /// Steps of all of them.
    pub steps: u64,
    /// The walk that broke a law, by its seed.
    pub broken: Option<(u64, Counterexample)>,
}

impl fmt::Display for Walks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} walks, {} steps", self.name, self.walks, self.steps)?;
        writeln!(f, "  bounds: {}", self.budget)?;
        match &self.broken {
            None => writeln!(f, "  every law held"),
            Some((seed, broken)) => write!(f, "with seed {seed}, {broken}"),
        }
    }
}

/// Walks through a world once for every seed.
pub fn wander(scenario: &Scenario, budget: Budget, seeds: std::ops::Range<u64>) -> Walks {
    let mut found = Walks { name: scenario.name, budget, walks: 0, steps: 0, broken: None };
    for seed in seeds {
        let mut walk = Walk { scenario, dice: Dice::new(seed), script: Vec::new() };
        let mut world = (scenario.start)();
        world.budget = budget;
        let end = walk.go(world);
        found.steps += walk.script.len() as u64;
        match end {
            None => found.walks += 1,
            Some((violation, world)) => {
                let state = world.describe();
                found.broken = Some((seed, Counterexample { violation, script: walk.script, state }));
                break;
            }
        }
    }
    found
}

struct Walk<'a> {
    scenario: &'a Scenario,
    dice: Dice,
    script: Vec<String>,
}

impl Walk<'_> {
    fn go(&mut self, mut world: World) -> Option<(Violation, World)> {
        for _ in 0..LONGEST {
            let user = (self.scenario.user)(&world);
            let moves = world.moves(&user);
            let (calm, trouble): (Vec<Move>, Vec<Move>) = moves.into_iter().partition(|step| step.calm);
            if calm.is_empty()
                && let Some(violation) = self.scenario.judge(at_rest(self.scenario, &world))
            {
                return Some((violation, world));
            }
            let choice = match (calm.is_empty(), trouble.is_empty()) {
                (true, true) => return None,
                (true, false) => trouble,
                (false, true) => calm,
                (false, false) if self.dice.roll(TROUBLE) == 0 => trouble,
                (false, false) => calm,
            };
            let mut step = choice[self.dice.roll(choice.len() as u64) as usize];
            let mut stepped = world.take(step, &user);
            let stragglers = world.stragglers(&step, &stepped.kinds);
            if !stragglers.is_empty() && self.dice.roll(TROUBLE) == 0 {
                step = stragglers[self.dice.roll(stragglers.len() as u64) as usize];
                stepped = world.take(step, &user);
            }
            self.script.push(world.words(&step, &user, stepped.note.trim()));
            if let Some(violation) = self.scenario.judge(stepped.violation) {
                return Some((violation, stepped.world));
            }
            world = stepped.world;
        }
        Some((Violation::StillGoing { steps: LONGEST }, world))
    }
}

/// A small generator (splitmix64): the same seed always rolls the same.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides.max(1)
    }
}
