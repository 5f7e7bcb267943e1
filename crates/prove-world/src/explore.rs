//! The breadth-first search through every state: the first violation it finds has the shortest history.

use std::collections::VecDeque;
use std::time::Instant;

use crate::bounds::{Bounds, Budget};
use crate::calm::{self, Calm};
use crate::laws::{Law, Violation};
use crate::report::{Counterexample, Report};
use crate::states::{Found, States};
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

/// So many worlds that wait for their turn are kept; those beyond are played again when their turn comes. A world takes
/// 20 to 40 kB, and hundreds of thousands wait at once where `make prove` looks. `attach` with one move and one fault
/// takes 340 MB if it keeps all, and 17 MB and twice the time if it keeps none.
const KEPT: usize = 50_000;

struct Explorer<'a> {
    scenario: &'a Scenario,
    bounds: &'a Bounds,
    states: States,
    calm: Calm,
    /// Worlds whose steps are still to be tried, by their numbers: the first of them, but not all.
    kept: VecDeque<(u32, World)>,
    transitions: u64,
    /// The least that was left of each count in any state.
    least: Budget,
}

/// Explores a scenario within bounds.
pub fn explore(scenario: &Scenario, bounds: &Bounds) -> Report {
    let began = Instant::now();
    let (states, calm, kept) = (States::default(), Calm::default(), VecDeque::new());
    let mut explorer = Explorer { scenario, bounds, states, calm, kept, transitions: 0, least: bounds.budget };
    explorer.add(explorer.start(), 0, None);
    let mut trail = Trail::default();
    let mut broken = None;
    // States are tried in the order in which they were found.
    let mut tried = 0;
    while tried < explorer.states.len() && broken.is_none() && explorer.states.len() <= bounds.states.min(calm::MOST) {
        let at = tried as u32;
        tried += 1;
        let kept = explorer.kept.front().is_some_and(|(first, _)| *first == at);
        let found = match if kept { explorer.kept.pop_front() } else { None } {
            Some((_, world)) => explorer.expand(at, &world),
            None => explorer.expand(at, trail.lead(at, &explorer)),
        };
        broken = found.map(|(last, violation)| explorer.counterexample(at, last, violation));
    }
    let complete = broken.is_none() && tried == explorer.states.len();
    drop((trail, std::mem::take(&mut explorer.kept)));
    if complete && let Some((at, violation)) = explorer.liveness() {
        broken = Some(explorer.counterexample(at, None, violation));
    }
    Report {
        name: scenario.name,
        about: scenario.about,
        bounds: *bounds,
        states: explorer.states.len(),
        transitions: explorer.transitions,
        // None is further away than the last that was found.
        depth: explorer.states.history(explorer.states.len() as u32 - 1).len() as u32,
        resting: explorer.calm.resting(),
        seconds: began.elapsed().as_secs_f64(),
        open: explorer.states.len() - tried,
        least: explorer.least,
        complete,
        broken,
    }
}

/// The worlds on the way from the start to one whose turn it is. The next one's way is mostly the same: states come up
/// in the order of those that led to them.
#[derive(Default)]
struct Trail(Vec<(u32, World)>);

impl Trail {
    /// The world of a state, played again from where the trail leaves its way.
    fn lead(&mut self, at: u32, explorer: &Explorer<'_>) -> &World {
        let mut missing = Vec::new();
        let mut up = at;
        loop {
            while self.0.last().is_some_and(|(on, _)| *on > up) {
                self.0.pop();
            }
            if self.0.last().is_some_and(|(on, _)| *on == up) {
                break;
            }
            let Some((parent, step)) = explorer.states.way_to(up) else {
                self.0.push((up, explorer.start()));
                break;
            };
            missing.push((up, step));
            up = parent;
        }
        for (next, step) in missing.into_iter().rev() {
            let world = &self.0[self.0.len() - 1].1;
            let world = world.take(step, &explorer.user(world)).world;
            self.0.push((next, world));
        }
        &self.0[self.0.len() - 1].1
    }
}

impl Explorer<'_> {
    fn start(&self) -> World {
        let mut start = (self.scenario.start)();
        start.budget = self.bounds.budget;
        start
    }

    fn user(&self, world: &World) -> Vec<UserMove> {
        if world.budget.user > 0 { (self.scenario.user)(world) } else { Vec::new() }
    }

    /// The number of a state; a new one waits for its turn, unless one like it with at least as much trouble to come is
    /// known.
    fn add(&mut self, world: World, parent: u32, step: Option<Move>) -> u32 {
        self.least = self.least.least(world.budget);
        match self.states.add(world.hash(), world.budget, parent, step) {
            Found::Known(at) => at,
            Found::New(at) => {
                if self.kept.len() < KEPT {
                    self.kept.push_back((at, world));
                }
                at
            }
        }
    }

    fn expand(&mut self, at: u32, world: &World) -> Option<(Option<Move>, Violation)> {
        let user = self.user(world);
        let mut calm = Vec::new();
        let fresh = world.is_fresh();
        for step in world.moves(&user) {
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
        self.calm.push(&calm);
        let rests = calm.is_empty();
        if rests { self.scenario.judge(at_rest(self.scenario, world)).map(|violation| (None, violation)) } else { None }
    }

    /// From every state rest can be reached by calm steps alone, and no calm steps go round in circles writing.
    fn liveness(&self) -> Option<(u32, Violation)> {
        if let Some(at) = self.calm.restless() {
            return Some((at, Violation::NoWayToRest {}));
        }
        self.calm.writing_circle().map(|at| (at, Violation::Circle {}))
    }

    fn counterexample(&self, at: u32, last: Option<Move>, violation: Violation) -> Counterexample {
        let mut world = self.start();
        let mut script = Vec::new();
        for step in self.states.history(at).into_iter().chain(last) {
            let user = self.user(&world);
            let stepped = world.take(step, &user);
            script.push(world.words(&step, &user, stepped.note.trim()));
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
