//! Many lives of the attacher, with lost answers, lost memory, caches that lag kind by kind, and writes that arrive
//! long after the incarnation that sent them has ended, while attachments of one volume to two nodes come and go as
//! they like. The laws are judged from what really is.

use alloc::vec::Vec;
use core::mem;

use api::Kind;
use control::{Action as _, Effect, Outcome, Rules as _};
use prove_lab::Dice;

use super::world::*;
use crate::{Attacher, Key};

struct Play {
    world: World,
    dice: Dice,
    confirmed: usize,
    gave_way: usize,
}

impl Play {
    fn new(seed: u64) -> Play {
        Play { world: World::new(&["ReadWriteOnce"]), dice: Dice::new(seed), confirmed: 0, gave_way: 0 }
    }

    fn step(&mut self) {
        let node = ["a", "b"][self.dice.index(2)];
        match self.dice.roll(20) {
            0 => self.user(node),
            1..=4 => self.world.sync_kind(Attacher::watches()[self.dice.index(4)]),
            5 => self.die(),
            6 => self.world.forget(),
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
        let local = self.world.local().clone();
        self.world.restart(local);
        self.end_calls();
    }

    /// A write may arrive at any later time. A call reaches the driver now or never: it works on one call per volume at
    /// a time, and the connection ends with the caller.
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

    fn controller(&mut self, key: &Key) {
        self.world.pass(100_000);
        let Some(action) = self.world.engine.doing(key).map(|doing| doing.action.clone()) else {
            self.world.begin(key);
            return;
        };
        let outcome = if self.dice.roll(5) == 0 {
            let sent = action.effect();
            self.world.late.extend((!matches!(sent, Effect::Read(_))).then_some(sent));
            self.end_calls();
            Outcome::Unknown("no answer".into())
        } else {
            self.gave_way += usize::from(action.name() == "GiveWay");
            self.world.land(&action)
        };
        self.world.finish(key, &outcome);
    }

    /// That the volume is never on two nodes (24) is judged by the driver itself.
    fn judge(&mut self) {
        for node in ["a", "b"] {
            let attached = self.world.driver.attached.contains(&alloc::format!("id-{node}"));
            let attachment = self.world.real_attachment(node);
            let held = attachment.as_ref().is_some_and(|a| a.metadata.has_finalizer(&finalizer()));
            assert!(!attached || held, "33: attached to {node} and nobody remembers");
            if attachment.is_some_and(|a| a.status.attached && !a.metadata.is_deleting()) {
                assert!(attached, "32: said to be attached to {node} and is not");
                self.confirmed += 1;
            }
        }
    }

    /// What is on its way never arrives, and from here on nothing goes wrong.
    fn calm_down(&mut self) {
        let under_way: Vec<Key> = self.world.engine.under_way().map(|(key, _)| key.clone()).collect();
        for key in &under_way {
            self.world.finish(key, &Outcome::Unknown("no answer".into()));
        }
        self.world.late.clear();
        for _ in 0..30 {
            self.world.pass(100_000);
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
        assert!(made(&play, first) && !made(&play, second), "seed {seed}: {:?}", play.world.decide(&on("a")));
        play.world.unwant(first);
        play.calm_down();
        assert!(play.world.real_attachment(first).is_none() && made(&play, second), "seed {seed}");
        play.world.unwant(second);
        play.calm_down();
        assert!(play.world.real_attachment(second).is_none() && play.world.driver.attached.is_empty(), "seed {seed}");
        play.world.delete(Kind::PersistentVolume, "v");
        play.world.run(&Key::Volume("v".into()));
        assert!(!play.world.real_volume().is_some_and(|volume| volume.metadata.has_finalizer(&finalizer())));
        confirmed += play.confirmed;
        gave_way += play.gave_way;
    }
    assert!(confirmed > 1000 && gave_way > 5, "the plays must reach what they judge: {confirmed}, {gave_way}");
}
