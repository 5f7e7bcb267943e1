//! The breadth-first search through every state: the first violation it finds has the shortest history.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Instant;

use crate::bounds::{Bounds, Budget};
use crate::laws::{Law, Violation};
use crate::report::{Counterexample, Report};
use crate::step::Move;
use crate::world::{UserMove, World};

/// A world to be explored: how it begins, what the user may do, and what it should look like at rest.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// A short name for the command line.
    pub name: &'static str,
    pub about: &'static str,
    /// The world before anything happens.
    pub start: fn() -> World,
    /// What the user may do now.
    pub user: fn(&World) -> Vec<UserMove>,
    /// What is wrong with the world, given that nobody has anything left to do.
    pub rest: fn(&World) -> Option<Violation>,
    /// Laws not to be judged, to look past a first symptom at what it leads to.
    pub waives: &'static [Law],
}

impl Scenario {
    pub(crate) fn judge(&self, found: Option<Violation>) -> Option<Violation> {
        found.filter(|violation| !self.waives.contains(&violation.law()))
    }
}

struct Known {
    parent: u32,
    step: Option<Move>,
    depth: u32,
    /// Where the calm steps lead, and whether they change anything while everybody sees how things are.
    calm: Vec<(u32, bool)>,
    rests: bool,
}

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

type Seen = HashMap<u64, Vec<(Budget, u32)>, BuildHasherDefault<Plain>>;

struct Explorer<'a> {
    scenario: &'a Scenario,
    known: Vec<Known>,
    seen: Seen,
    open: VecDeque<(u32, World)>,
    transitions: u64,
    /// The least that was left of each count in any state.
    least: Budget,
}

/// Explores a scenario within bounds.
pub fn explore(scenario: &Scenario, bounds: &Bounds) -> Report {
    let began = Instant::now();
    let mut explorer = Explorer {
        scenario,
        known: Vec::new(),
        seen: Seen::default(),
        open: VecDeque::new(),
        transitions: 0,
        least: bounds.budget,
    };
    let mut start = (scenario.start)();
    start.budget = bounds.budget;
    explorer.add(start, 0, None);
    let mut broken = None;
    while let Some((at, world)) = explorer.open.pop_front() {
        if let Some((last, violation)) = explorer.expand(at, &world) {
            broken = Some(explorer.counterexample(bounds, at, last, violation));
            break;
        }
        if explorer.known.len() > bounds.states {
            break;
        }
    }
    let complete = broken.is_none() && explorer.open.is_empty();
    if complete && let Some((at, violation)) = explorer.liveness() {
        broken = Some(explorer.counterexample(bounds, at, None, violation));
    }
    Report {
        name: scenario.name,
        about: scenario.about,
        bounds: *bounds,
        states: explorer.known.len(),
        transitions: explorer.transitions,
        depth: explorer.known.iter().map(|known| known.depth).max().unwrap_or(0),
        resting: explorer.known.iter().filter(|known| known.rests).count(),
        seconds: began.elapsed().as_secs_f64(),
        open: explorer.open.len(),
        least: explorer.least,
        complete,
        broken,
    }
}

impl Explorer<'_> {
    /// The number of a state; a new one is opened unless one like it with at least as much trouble to come is known.
    fn add(&mut self, world: World, parent: u32, step: Option<Move>) -> u32 {
        let hash = world.hash();
        self.least = self.least.least(world.budget);
        let entry = self.seen.entry(hash).or_default();
        if let Some((_, at)) = entry.iter().find(|(budget, _)| budget.covers(&world.budget)) {
            return *at;
        }
        let at = self.known.len() as u32;
        entry.push((world.budget, at));
        let depth = step.map_or(0, |_| self.known[parent as usize].depth + 1);
        self.known.push(Known { parent, step, depth, calm: Vec::new(), rests: false });
        self.open.push_back((at, world));
        at
    }

    fn expand(&mut self, at: u32, world: &World) -> Option<(Option<Move>, Violation)> {
        let user = if world.budget.user > 0 { (self.scenario.user)(world) } else { Vec::new() };
        let mut calm = Vec::new();
        let fresh = world.is_fresh();
        let mut idle = true;
        for step in world.moves(&user) {
            idle &= !step.calm;
            let stepped = world.take(step, &user);
            self.transitions += 1;
            if let Some(violation) = self.scenario.judge(stepped.violation) {
                return Some((Some(step), violation));
            }
            let kinds = stepped.kinds;
            let next = self.add(stepped.world, at, Some(step));
            if step.calm {
                calm.push((next, fresh && stepped.changed));
            }
            for straggler in world.stragglers(&step, &kinds) {
                let stepped = world.take(straggler, &user);
                self.transitions += 1;
                if let Some(violation) = self.scenario.judge(stepped.violation) {
                    return Some((Some(straggler), violation));
                }
                self.add(stepped.world, at, Some(straggler));
            }
        }
        self.known[at as usize].calm = calm;
        self.known[at as usize].rests = idle;
        if idle { self.scenario.judge(at_rest(self.scenario, world)).map(|violation| (None, violation)) } else { None }
    }

    /// From every state rest can be reached by calm steps alone, and no calm steps go round in circles writing.
    fn liveness(&self) -> Option<(u32, Violation)> {
        let mut back: Vec<Vec<u32>> = vec![Vec::new(); self.known.len()];
        for (from, known) in self.known.iter().enumerate() {
            for (to, _) in &known.calm {
                back[*to as usize].push(from as u32);
            }
        }
        let mut reaches: Vec<bool> = self.known.iter().map(|known| known.rests).collect();
        let mut open: Vec<u32> = (0..self.known.len() as u32).filter(|at| reaches[*at as usize]).collect();
        while let Some(at) = open.pop() {
            for from in &back[at as usize] {
                if !std::mem::replace(&mut reaches[*from as usize], true) {
                    open.push(*from);
                }
            }
        }
        if let Some(at) = reaches.iter().position(|reaches| !reaches) {
            return Some((at as u32, Violation::NoWayToRest {}));
        }
        let circle = crate::circle::writing_circle(&self.known.iter().map(|k| k.calm.as_slice()).collect::<Vec<_>>())?;
        Some((circle, Violation::Circle {}))
    }

    fn counterexample(&self, bounds: &Bounds, at: u32, last: Option<Move>, violation: Violation) -> Counterexample {
        let mut steps: Vec<Move> = last.into_iter().collect();
        let mut at = at;
        while let Some(step) = self.known[at as usize].step {
            steps.push(step);
            at = self.known[at as usize].parent;
        }
        steps.reverse();
        let mut world = (self.scenario.start)();
        world.budget = bounds.budget;
        let mut script = Vec::new();
        for step in &steps {
            let user = (self.scenario.user)(&world);
            let stepped = world.take(*step, &user);
            script.push(world.words(step, &user, stepped.note.trim()));
            world = stepped.world;
        }
        Counterexample { violation, script, state: world.describe() }
    }
}

impl World {
    /// The world after the first thing to happen has happened again and again, until it is as wanted.
    pub(crate) fn played(mut self, wanted: impl Fn(&World) -> bool) -> World {
        while !wanted(&self) {
            let Some(step) = self.moves(&[]).into_iter().find(|step| step.calm) else { break };
            self = self.take(step, &[]).world;
        }
        self
    }
}

/// Laws of rest.
pub(crate) fn at_rest(scenario: &Scenario, world: &World) -> Option<Violation> {
    for member in world.members.iter().filter(|member| !world.is_silent(member.node())) {
        if let Some(what) = member.overslept() {
            return Some(Violation::Overslept { actor: member.name().into(), what });
        }
    }
    (scenario.rest)(world).or_else(|| silent_restart(world))
}

/// Reliability 114: every controller that starts anew at rest finds nothing to change. It may read. One that waits for
/// time to pass may begin what it waits for: a new incarnation has not seen the failure that made the old one wait.
fn silent_restart(world: &World) -> Option<Violation> {
    const READS: usize = 16;
    // Nor has it heard what the driver called impossible, so it may ask once more.
    if world.truth.impossible && !world.truth.hosts.is_empty() {
        return None;
    }
    let heard = |at: &usize| !world.members[*at].waits() && !world.is_silent(world.members[*at].node());
    for at in (0..world.members.len()).filter(heard) {
        let mut world = world.clone();
        let (cluster, truth) = (world.cluster.clone(), world.truth.clone());
        world.edit(at, |member| member.restart(&cluster, &truth));
        for _ in 0..READS {
            let member = &world.members[at];
            let Some(intent) = (member.ready() > 0).then(|| member.ready_intent(0).clone()) else { break };
            let name = member.name();
            match &intent.effect {
                control::Effect::Read(_)
                | control::Effect::List { .. }
                | control::Effect::Token(_)
                | control::Effect::Nothing => {
                    let step =
                        crate::step::Step::Act { member: at as u8, at: 0, held: false, how: crate::step::How::Done };
                    world = world.take(Move { step, budget: world.budget, behind: None, calm: true }, &[]).world;
                }
                control::Effect::Write(_) | control::Effect::Call { .. } | control::Effect::Host(_) => {
                    return Some(Violation::WritesAfterRestart { actor: name.into(), what: intent.label.clone() });
                }
            }
        }
    }
    None
}
