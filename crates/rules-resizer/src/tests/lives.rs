//! Many lives of the resizer, with lost answers, lost memory, caches that lag, writes that arrive long after the life that
//! sent them has ended, a node that fails now and then, and a user who changes his mind. The laws are judged by the world at
//! every step.

use alloc::vec::Vec;

use api::{Kind, names};
use control::{Action, Decision, Effect, Outcome, Rules};
use csi::Code;
use serde_json::json;

use super::world::*;
use crate::index::WATCHES;
use crate::{Act, Expansion, Memory, Resizer};

/// A fixed sequence of dice per seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

struct Play {
    world: World,
    dice: Dice,
    sent: Option<Act>,
    late: Vec<Act>,
    lowered: usize,
}

impl Play {
    fn new(seed: u64) -> Play {
        let mut world = World::new(Expansion::Controller);
        world.backend.needs_node = seed.is_multiple_of(2);
        ["gold", "silver"].iter().for_each(|class| world.make_class(class, DRIVER));
        world.sync();
        let dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        Play { world, dice, sent: None, late: Vec::new(), lowered: 0 }
    }

    fn step(&mut self) {
        match self.dice.roll(24) {
            0 => self.user(),
            1 | 2 => self.node(),
            3..=5 => {
                let kind = WATCHES[usize::try_from(self.dice.roll(4)).unwrap()];
                self.world.sync_kind(kind);
            }
            6 => self.die(),
            7 => self.world.memory = Memory::default(),
            8 => self.arrive_late(),
            _ => self.controller(),
        }
        self.world.judge();
    }

    /// Any size the API takes, or any class.
    fn user(&mut self) {
        if self.dice.roll(2) == 0 {
            let class = ["gold", "silver"][usize::try_from(self.dice.roll(2)).unwrap()];
            return self.world.ask_class(class);
        }
        let claim = self.world.claim();
        let (had, requested) = (bytes(&claim.status.capacity) / GI, bytes(&claim.spec.resources.requests) / GI);
        let size = had + 1 + i64::try_from(self.dice.roll(4)).unwrap();
        self.lowered += usize::from(size < requested);
        self.world.request(&alloc::format!("{size}Gi"));
    }

    fn node(&mut self) {
        if self.world.progress() == names::NODE_RESIZE_PENDING && self.dice.roll(4) == 0 {
            let failed = json!({ "storage": names::NODE_RESIZE_INFEASIBLE });
            return self.world.status(json!({ "allocatedResourceStatuses": failed }));
        }
        self.world.node();
    }

    fn die(&mut self) {
        if let Some(act) = self.sent.take() {
            self.lose(act);
        }
        self.world.memory = Memory::default();
        self.world.cache = control::Cache::default();
        self.world.sync();
    }

    /// A write may arrive at any later time. A call reaches the driver now or never: the connection ends with the caller.
    fn lose(&mut self, act: Act) {
        match act.effect() {
            Effect::Write(_) => self.late.push(act),
            Effect::Call { .. } if self.dice.roll(2) == 0 => {
                self.world.land(&act);
            }
            Effect::Call { .. } | Effect::Read(_) | Effect::Host(_) => {}
        }
    }

    fn arrive_late(&mut self) {
        if !self.late.is_empty() {
            let which = self.dice.roll(self.late.len() as u64);
            let act = self.late.remove(usize::try_from(which).unwrap());
            self.world.land(&act);
        }
    }

    fn controller(&mut self) {
        self.world.now += 400_000;
        match self.sent.take() {
            Some(act) if self.dice.roll(5) == 0 => {
                self.lose(act.clone());
                self.world.hear(&act, &Outcome::Unknown("no answer".into()));
            }
            Some(act) => {
                if let Act::Expand { .. } | Act::Modify { .. } = act
                    && self.dice.roll(4) == 0
                {
                    let code = [Code::Internal, Code::OutOfRange, Code::InvalidArgument, Code::FailedPrecondition];
                    self.world.backend.answers.push_back(refused(code[usize::try_from(self.dice.roll(4)).unwrap()]));
                }
                // A driver that has the size, or the class, does not call it impossible.
                self.be_sane(&act);
                let outcome = self.world.land(&act);
                self.world.hear(&act, &outcome);
            }
            None => {
                if let Decision::Do(act, _) = self.world.look() {
                    self.sent = Some(act);
                }
            }
        }
    }

    fn be_sane(&mut self, act: &Act) {
        let has_it = matches!(act, Act::Expand { size, .. } if *size <= self.world.backend.size);
        let impossible =
            |answer: &Outcome| [Code::OutOfRange, Code::InvalidArgument].iter().any(|code| *answer == refused(*code));
        if has_it {
            self.world.backend.answers.retain(|answer| !impossible(answer));
        }
    }
}

#[test]
fn no_life_breaks_a_law_and_every_wish_comes_true() {
    let mut lowered = 0;
    for seed in 0..300 {
        let mut play = Play::new(seed);
        for _ in 0..300 {
            play.step();
        }
        play.sent = None;
        play.world.backend.answers.clear();
        for _ in 0..30 {
            play.world.now += 400_000;
            play.world.run();
            play.world.node();
        }
        let claim = play.world.claim();
        assert!(
            bytes(&claim.status.capacity) >= bytes(&claim.spec.resources.requests),
            "62, seed {seed}: {:?}",
            play.world.look()
        );
        assert_eq!(claim.status.current_volume_attributes_class_name, claim.spec.volume_attributes_class_name);
        assert!(play.world.look().why().settled, "seed {seed}: {:?}", play.world.look());
        lowered += play.lowered;
    }
    assert!(lowered > 100, "the plays must reach what they judge: {lowered}");
}

// Memory is a hint: losing it before any one step costs repetitions only.
#[test]
fn forgetting_at_any_step_costs_only_repetitions() {
    for needs_node in [false, true] {
        for forget_at in 0..12 {
            let mut world = World::new(Expansion::Controller);
            world.backend.needs_node = needs_node;
            world.make_class("gold", DRIVER);
            world.ask_class("gold");
            world.request("2Gi");
            world.sync();
            let mut steps = 0;
            for _ in 0..2 {
                while let Decision::Do(..) = world.look() {
                    if steps == forget_at {
                        world.memory = Memory::default();
                    }
                    steps += 1;
                    world.step();
                    world.sync();
                }
                world.node();
                world.sync();
            }
            assert_eq!(bytes(&world.claim().status.capacity), 2 * GI);
            assert!(world.look().why().settled && steps <= 13, "{steps} {:?}", world.look());
        }
    }
}

#[test]
fn every_object_a_decision_reads_wakes_it() {
    let mut world = World::new(Expansion::Controller);
    world.make_class("gold", DRIVER);
    world.make_class("other", DRIVER);
    world.ask_class("gold");
    let spec = json!({ "containers": [{ "name": "a", "image": "i" }],
        "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "c" } }] });
    world.make(Kind::Pod, json!({ "metadata": { "namespace": "n", "name": "p" }, "spec": spec }));
    world.sync();
    let wakes = |kind, namespace: &str, name: &str| {
        let object = api::Object::from_json(kind, world.json(kind, namespace, name)).unwrap();
        Resizer::wakes(&control::Change { before: Some(object), after: None }, &world.cache, &world.local)
    };
    assert_eq!(wakes(Kind::PersistentVolumeClaim, "n", "c"), [key()]);
    assert_eq!(wakes(Kind::PersistentVolume, "", "v"), [key()]);
    assert_eq!(wakes(Kind::VolumeAttributesClass, "", "gold"), [key()]);
    assert!(wakes(Kind::VolumeAttributesClass, "", "other").is_empty());
    assert_eq!(wakes(Kind::Pod, "n", "p"), [key()]);
    assert_eq!(Resizer::keys(&world.cache, &world.local), [key()]);
    let mut foreign = world.clone();
    foreign.local.driver = "other".into();
    assert!(Resizer::keys(&foreign.cache, &foreign.local).is_empty());
}

#[test]
fn an_unfilled_cache_decides_nothing() {
    let mut world = World::new(Expansion::Controller);
    world.request("2Gi");
    for missing in WATCHES {
        world.cache = control::Cache::default();
        WATCHES.iter().filter(|kind| **kind != missing).for_each(|kind| world.sync_kind(*kind));
        assert!(matches!(world.look(), Decision::Wait(..)), "{missing} was not awaited");
    }
}

// Older clusters have no attributes classes; volumes grow all the same.
#[test]
fn what_is_not_looked_at_is_not_awaited() {
    let mut world = World::new(Expansion::Controller);
    world.local.modifies = false;
    world.local.asks_pods = false;
    world.request("2Gi");
    world.cache = control::Cache::default();
    [Kind::PersistentVolumeClaim, Kind::PersistentVolume].iter().for_each(|kind| world.sync_kind(*kind));
    assert!(matches!(world.look(), Decision::Do(Act::Begin(_), _)));
}
