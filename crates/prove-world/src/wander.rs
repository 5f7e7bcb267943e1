//! Random walks through worlds that are too large to be explored.
//!
//! Each walk draws its steps from a seeded generator, favouring the calm ones so that faults are spread over the whole
//! of it, checks the laws in each state, and goes on until nothing is left to do. A seed and the bounds are all it
//! takes to see the same walk again.

use std::fmt;
use std::ops::Range;

use crate::bounds::Budget;
use crate::explore::{Scenario, at_rest};
use crate::laws::Violation;
use crate::report::Counterexample;
use crate::shorten::{Taken, shorten};
use crate::step::Move;
use crate::world::World;

/// A walk that has not come to rest after so many steps never will.
const LONGEST: usize = 5_000;
/// One step in so many is trouble, while there is any left: each walk draws its own, so that on some of them much
/// happens at once and on others a fault comes late.
const RATES: [u64; 4] = [3, 8, 20, 60];
/// The trouble of walks that ask for none in particular.
pub const WALKED: Budget = Budget::troubled(5, 4, 3);

/// What the walks found.
#[derive(Clone, Debug)]
pub struct Walks {
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
pub fn wander(scenario: &Scenario, budget: Budget, seeds: Range<u64>) -> Walks {
    let mut found = Walks { name: scenario.name, budget, walks: 0, steps: 0, broken: None };
    for seed in seeds {
        let (walk, end) = Walk::take(scenario, budget, seed, false);
        found.steps += walk.steps;
        if end.is_none() {
            found.walks += 1;
            continue;
        }
        // Words are dear: the walk is taken once more to tell of it.
        let (walk, end) = Walk::take(scenario, budget, seed, true);
        found.broken = end.map(|(violation, world)| {
            let law = violation.law();
            let whole = Counterexample { violation, script: walk.script, state: world.describe() };
            (seed, shorten(scenario, budget, walk.taken, law).unwrap_or(whole))
        });
        break;
    }
    found
}

/// The same by so many threads; of several walks that break a law the one with the least seed is told.
pub fn wander_wide(scenario: &Scenario, budget: Budget, seeds: Range<u64>, threads: u64) -> Walks {
    let share = seeds.end.saturating_sub(seeds.start).div_ceil(threads.max(1));
    let parts: Vec<Range<u64>> = (0..threads.max(1))
        .map(|at| (seeds.start + at * share).min(seeds.end)..(seeds.start + (at + 1) * share).min(seeds.end))
        .collect();
    let mut all = Walks { name: scenario.name, budget, walks: 0, steps: 0, broken: None };
    std::thread::scope(|scope| {
        let begun: Vec<_> = parts.into_iter().map(|part| scope.spawn(|| wander(scenario, budget, part))).collect();
        for part in begun {
            let Ok(part) = part.join() else { unreachable!("a walk ends with its findings") };
            all.walks += part.walks;
            all.steps += part.steps;
            all.broken = all.broken.take().or(part.broken);
        }
    });
    all
}

struct Walk<'a> {
    scenario: &'a Scenario,
    dice: Dice,
    /// One step in so many is trouble.
    rate: u64,
    steps: u64,
    /// What is done is written down.
    told: bool,
    taken: Vec<Taken>,
    script: Vec<String>,
}

impl<'a> Walk<'a> {
    fn take(scenario: &'a Scenario, budget: Budget, seed: u64, told: bool) -> (Walk<'a>, Option<(Violation, World)>) {
        let mut dice = Dice::new(seed);
        let rate = RATES[dice.roll(RATES.len() as u64) as usize];
        let mut walk = Walk { scenario, dice, rate, steps: 0, told, taken: Vec::new(), script: Vec::new() };
        let mut world = (scenario.start)();
        world.budget = budget;
        let end = walk.go(world);
        (walk, end)
    }

    fn go(&mut self, mut world: World) -> Option<(Violation, World)> {
        for _ in 0..LONGEST {
            let user = (self.scenario.user)(&world);
            let (calm, trouble): (Vec<Move>, Vec<Move>) = world.moves(&user).into_iter().partition(|step| step.calm);
            if calm.is_empty()
                && let Some(violation) = self.scenario.judge(at_rest(self.scenario, &world))
            {
                return Some((violation, world));
            }
            let mut step = match (calm.is_empty(), trouble.is_empty()) {
                (true, true) => return None,
                (false, true) => self.any(&calm),
                (false, false) if self.dice.roll(self.rate) > 0 => self.any(&calm),
                (true | false, false) => self.trouble(&trouble),
            };
            if self.dice.roll(self.rate) == 0 {
                let stragglers = world.stragglers(&step, &world.take(step, &user).kinds);
                step = if stragglers.is_empty() { step } else { self.any(&stragglers) };
            }
            self.steps += 1;
            if self.told {
                self.taken.push(Taken::of(&world, step, &user));
                let note = world.take(step, &user).note;
                self.script.push(world.words(&step, &user, note.trim()));
            }
            let stepped = world.go(step, &user);
            if let Some(violation) = self.scenario.judge(stepped.violation) {
                return Some((violation, stepped.world));
            }
            world = stepped.world;
        }
        Some((Violation::StillGoing { steps: LONGEST }, world))
    }

    fn any(&mut self, moves: &[Move]) -> Move {
        moves[self.dice.roll(moves.len() as u64) as usize]
    }

    /// The user does as much as everything that goes wrong: there are many more ways for that.
    fn trouble(&mut self, moves: &[Move]) -> Move {
        let (user, faults): (Vec<Move>, Vec<Move>) =
            moves.iter().partition(|step| matches!(step.step, crate::step::Step::User(_)));
        let either = if self.dice.roll(2) == 0 { [&user, &faults] } else { [&faults, &user] };
        let chosen = either.into_iter().find(|some| !some.is_empty()).map_or(moves, Vec::as_slice);
        self.any(chosen)
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
