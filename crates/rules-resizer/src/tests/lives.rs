//! Many lives of the resizer, with lost answers, lost memory, caches that lag, writes that arrive long after the
//! incarnation that sent them has ended, a node that fails now and then, and a user who changes his mind. The laws are
//! judged by the world at every step.

use alloc::vec::Vec;
use core::mem;

use api::{Kind, names};
use control::{Action as _, Decision, Effect, Outcome, Rules};
use csi::Code;
use prove_lab::Dice;
use serde_json::json;

use super::world::*;
use crate::{Action, Expansion, Resizer};

struct Play {
    world: World,
    dice: Dice,
    lowered: usize,
}

impl Play {
    fn new(seed: u64) -> Play {
        let mut world = World::new(Expansion::Controller);
        world.backend.needs_node = seed.is_multiple_of(2);
        ["gold", "silver"].iter().for_each(|class| world.make_class(class, DRIVER));
        world.sync();
        Play { world, dice: Dice::new(seed), lowered: 0 }
    }

    fn step(&mut self) {
        match self.dice.roll(24) {
            0 => self.user(),
            1 | 2 => self.node(),
            3..=5 => self.world.sync_kind(Resizer::watches()[self.dice.index(4)]),
            6 => self.die(),
            7 => self.world.forget(),
            8 => self.arrive_late(),
            _ => self.controller(),
        }
        self.world.judge();
    }

    /// Any size the API takes, or any class.
    fn user(&mut self) {
        if self.dice.roll(2) == 0 {
            let class = ["gold", "silver"][self.dice.index(2)];
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
        let local = self.world.local().clone();
        self.world.restart(local);
        self.end_calls();
    }

    /// A write may arrive at any later time. A call reaches the driver now or never: the connection ends with the caller.
    fn end_calls(&mut self) {
        let late = mem::take(&mut self.world.late).into_iter();
        let (calls, writes): (Vec<_>, Vec<_>) = late.partition(|effect| matches!(effect, Effect::Call { .. }));
        self.world.late = writes;
        for call in calls {
            if self.dice.roll(2) == 0 {
                self.world.land_effect(&call);
            }
        }
    }

    fn arrive_late(&mut self) {
        if !self.world.late.is_empty() {
            let which = self.dice.index(self.world.late.len());
            let effect = self.world.late.remove(which);
            self.world.land_effect(&effect);
        }
    }

    fn controller(&mut self) {
        self.world.pass(400_000);
        let Some(action) = self.world.engine.doing(&key()).map(|doing| doing.action.clone()) else {
            self.world.begin(&key());
            return;
        };
        let outcome = if self.dice.roll(5) == 0 {
            let sent = action.effect();
            self.world.late.extend((!matches!(sent, Effect::Read(_))).then_some(sent));
            self.end_calls();
            Outcome::Unknown("no answer".into())
        } else {
            self.choose_answer(&action);
            self.world.land(&action)
        };
        self.world.finish(&key(), &outcome);
    }

    fn choose_answer(&mut self, action: &Action) {
        if let Action::Expand { .. } | Action::Modify { .. } = action
            && self.dice.roll(4) == 0
        {
            let code = [Code::Internal, Code::OutOfRange, Code::InvalidArgument, Code::FailedPrecondition];
            self.world.backend.answers.push_back(refused(code[self.dice.index(4)]));
        }
        self.be_sane(action);
    }

    /// A driver that has the size, or the class, does not call it impossible.
    fn be_sane(&mut self, action: &Action) {
        let has_it = matches!(action, Action::Expand { size, .. } if *size <= self.world.backend.size);
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
        play.world.finish(&key(), &Outcome::Unknown("no answer".into()));
        play.world.backend.answers.clear();
        for _ in 0..30 {
            play.world.pass(400_000);
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
                        world.forget();
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
    world.create(Kind::Pod, json!({ "metadata": { "name": "p" }, "spec": spec }));
    world.sync();
    let wakes = |kind, name: &str| {
        let object = api::Object::from_json(kind, world.json(kind, name)).unwrap();
        Resizer::wakes(&control::Change { before: Some(object), after: None }, &world.cache, world.local())
    };
    assert_eq!(wakes(Kind::PersistentVolumeClaim, "c"), [key()]);
    assert_eq!(wakes(Kind::PersistentVolume, "v"), [key()]);
    assert_eq!(wakes(Kind::VolumeAttributesClass, "gold"), [key()]);
    assert!(wakes(Kind::VolumeAttributesClass, "other").is_empty());
    assert_eq!(wakes(Kind::Pod, "p"), [key()]);
    assert_eq!(Resizer::keys(&world.cache, world.local()), [key()]);
    let mut foreign = world.clone();
    foreign.update_local(|local| local.driver = "other".into());
    assert!(Resizer::keys(&foreign.cache, foreign.local()).is_empty());
}

#[test]
fn an_unfilled_cache_decides_nothing() {
    let mut world = World::new(Expansion::Controller);
    world.request("2Gi");
    for missing in Resizer::watches() {
        world.cache = control::Cache::default();
        Resizer::watches().iter().filter(|kind| *kind != missing).for_each(|kind| world.sync_kind(*kind));
        assert!(matches!(world.look(), Decision::Rest(_)));
        assert_eq!(world.code(), "CacheNotSynced", "{missing} was not awaited");
    }
}

// Older clusters have no attributes classes; whoever runs the rules takes what they do not look at for listed and empty, and
// volumes grow all the same.
#[test]
fn what_is_not_looked_at_is_not_awaited() {
    let mut world = World::new(Expansion::Controller);
    world.update_local(|local| (local.attributes_classes, local.asks_pods) = (false, false));
    world.request("2Gi");
    world.cache = control::Cache::default();
    [Kind::VolumeAttributesClass, Kind::Pod].iter().for_each(|kind| drop(world.cache.replace(*kind, 0, Vec::new())));
    [Kind::PersistentVolumeClaim, Kind::PersistentVolume].iter().for_each(|kind| world.sync_kind(*kind));
    assert!(matches!(world.look(), Decision::Do(Action::Begin(_), _)));
}
