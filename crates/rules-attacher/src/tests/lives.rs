//! Many lives of the attacher, with lost answers, lost memory, caches that lag kind by kind, and writes that arrive long
//! after the life that sent them has ended, while attachments of one volume to two nodes come and go as they like. The
//! laws are judged from what really is.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use api::Kind;
use control::{Action, Decision, Effect, Outcome};

use super::world::*;
use crate::index::WATCHES;
use crate::{Act, Key};

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
    /// Sent by a life that has ended, or given up by this one.
    late: Vec<Act>,
    /// Sent by this life, not arrived yet.
    sent: BTreeMap<Key, Act>,
    confirmed: usize,
    gave_way: usize,
}

impl Play {
    fn new(seed: u64) -> Play {
        let dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let world = World::new(&["ReadWriteOnce"]);
        Play { world, dice, late: Vec::new(), sent: BTreeMap::new(), confirmed: 0, gave_way: 0 }
    }

    fn step(&mut self) {
        let node = ["a", "b"][usize::try_from(self.dice.roll(2)).unwrap()];
        match self.dice.roll(20) {
            0 => self.user(node),
            1..=4 => {
                let kind = WATCHES[usize::try_from(self.dice.roll(4)).unwrap()];
                self.world.sync_kind(kind);
            }
            5 => self.die(),
            6 => self.world.memory.clear(),
            7 => self.arrive_late(),
            _ => self.controller(&on(node)),
        }
        self.judge();
    }

    fn user(&mut self, node: &str) {
        match self.world.real_attachment(node) {
            None => self.world.want(node),
            Some(attachment) if !attachment.metadata.is_deleting() => self.world.unwant(node),
            Some(_) => {}
        }
    }

    fn die(&mut self) {
        let sent = core::mem::take(&mut self.sent);
        sent.into_values().for_each(|act| self.lose(act));
        self.world.memory.clear();
        self.world.cache = control::Cache::default();
        self.world.sync();
    }

    /// A write may arrive at any later time. A call reaches the driver now or never: it works on one call per volume at
    /// a time, and the connection ends with the caller.
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

    fn controller(&mut self, key: &Key) {
        self.world.now += 100_000;
        match self.sent.remove(key) {
            Some(act) if self.dice.roll(5) == 0 => {
                self.lose(act.clone());
                self.world.hear(key, &act, &Outcome::Unknown("no answer".into()));
            }
            Some(act) => {
                let outcome = self.world.land(&act);
                self.gave_way += usize::from(act.name() == "GiveWay");
                self.world.hear(key, &act, &outcome);
            }
            None => {
                if let Decision::Do(act, _) = self.world.look(key) {
                    self.sent.insert(key.clone(), act);
                }
            }
        }
    }

    /// That the volume is never on two nodes (24) is judged by the driver itself.
    fn judge(&mut self) {
        for node in ["a", "b"] {
            let attached = self.world.backend.contains(&alloc::format!("id-{node}"));
            let attachment = self.world.real_attachment(node);
            let held = attachment.as_ref().is_some_and(|a| a.metadata.has_finalizer(&finalizer()));
            assert!(!attached || held, "33: attached to {node} and nobody remembers");
            if attachment.is_some_and(|a| a.status.attached && !a.metadata.is_deleting()) {
                assert!(attached, "32: said to be attached to {node} and is not");
                self.confirmed += 1;
            }
        }
    }

    fn calm_down(&mut self) {
        self.late.clear();
        self.sent.clear();
        for _ in 0..30 {
            self.world.now += 100_000;
            for node in ["a", "b"] {
                self.world.sync();
                self.world.step(&on(node));
            }
        }
        self.judge();
    }
}

#[test]
fn no_life_attaches_twice_or_forgets_an_attachment() {
    let (mut confirmed, mut gave_way) = (0, 0);
    for seed in 0..200 {
        let mut play = Play::new(seed);
        for _ in 0..250 {
            play.step();
        }
        // Whatever happened: of two wanted attachments one is made, and the other when that one is gone.
        for node in ["a", "b"] {
            if play.world.real_attachment(node).is_none() {
                play.world.want(node);
            }
        }
        play.calm_down();
        for node in ["a", "b"] {
            if play.world.real_attachment(node).is_none() {
                play.world.want(node); // It was on its way out.
            }
        }
        play.calm_down();
        let made = |play: &Play, node| play.world.real_attachment(node).is_some_and(|a| a.status.attached);
        let first = if made(&play, "a") { "a" } else { "b" };
        let second = if first == "a" { "b" } else { "a" };
        assert!(made(&play, first) && !made(&play, second), "seed {seed}: {:?}", play.world.look(&on("a")));
        play.world.unwant(first);
        play.calm_down();
        assert!(play.world.real_attachment(first).is_none() && made(&play, second), "seed {seed}");
        play.world.unwant(second);
        play.calm_down();
        assert!(play.world.real_attachment(second).is_none() && play.world.backend.is_empty(), "seed {seed}");
        play.world.remove(Kind::PersistentVolume, "", "v");
        play.world.run(&Key::Volume("v".into()));
        assert!(!play.world.real_volume().is_some_and(|volume| volume.metadata.has_finalizer(&finalizer())));
        confirmed += play.confirmed;
        gave_way += play.gave_way;
    }
    assert!(confirmed > 1000 && gave_way > 5, "the plays must reach what they judge: {confirmed}, {gave_way}");
}
