//! Many lives of the controller, with lost answers, lost memory, caches that lag kind by kind, and writes that arrive
//! long after the incarnation that sent them has ended; beside it a node agent and an attacher that keep their side of
//! the bargain. The laws are judged from what really is.

use alloc::vec::Vec;

use api::{Kind, Object};
use control::{Action as _, Outcome};

use prove_lab::Dice;

use super::world::*;
use crate::Action;

/// The volume and one node, everybody who deals with them, and what is on its way.
struct Play {
    world: World,
    dice: Dice,
    /// The agent was shown that the volume is attached while its own in-use report stood: it may stage at any time.
    cleared: bool,
    staged: bool,
    /// Sent by an incarnation that has ended.
    late: Vec<Action>,
    /// Sent by this incarnation, not arrived yet.
    sent: Option<Action>,
    detached: usize,
}

impl Play {
    fn new(seed: u64) -> Play {
        let world = World::new(&["ReadWriteOnce"]);
        let dice = Dice::new(seed);
        Play { world, dice, cleared: false, staged: false, late: Vec::new(), sent: None, detached: 0 }
    }

    fn step(&mut self) {
        match self.dice.roll(16) {
            0 => self.user(),
            1..=3 => self.agent(),
            4..=5 => self.attacher(),
            6..=7 => {
                let kind = Object::KINDS[self.dice.index(8)];
                self.world.sync_kind(kind);
            }
            8 => self.die(),
            9 => self.world.forget(),
            10 => self.arrive_late(),
            _ => self.controller(),
        }
    }

    fn wanted(&self) -> bool {
        !self.world.json(Kind::Pod, "p").is_null()
    }

    fn user(&mut self) {
        match self.wanted() {
            true => self.world.delete(Kind::Pod, "p"),
            false => self.world.pod("p", "a"),
        }
    }

    /// Reports in use, looks at the answer, stages; unstages, takes the report back. One thing at a time.
    fn agent(&mut self) {
        let in_use = self.world.real_node("a").unwrap().reports_in_use(&unique_name());
        match (self.wanted(), in_use) {
            (true, false) => self.world.in_use("a", true),
            (true, true) if self.cleared => self.staged = true,
            (true, true) => self.cleared = self.world.reported("a"),
            (false, true) if self.staged => self.staged = false,
            (false, true) => {
                self.cleared = false;
                self.world.in_use("a", false);
            }
            (false, false) => {}
        }
    }

    fn attacher(&mut self) {
        let Some(attachment) = self.world.real_attachment("a") else { return };
        match (attachment.metadata.is_deleting(), attachment.status.attached) {
            (false, false) => self.world.attach("a"),
            (false, true) => {}
            (true, _) => {
                // Reliability 26: this is where the volume is torn off the node.
                assert!(!self.staged && !self.cleared, "detached while the node may use it");
                self.detached += 1;
                self.world.release("a");
            }
        }
    }

    fn die(&mut self) {
        self.late.extend(self.sent.take());
        self.world.restart(Default::default());
    }

    fn arrive_late(&mut self) {
        if !self.late.is_empty() {
            let act = self.late.remove(self.dice.index(self.late.len()));
            self.arrive(&act);
        }
    }

    fn arrive(&mut self, act: &Action) -> Outcome {
        let outcome = self.world.land(act);
        if let (Action::Delete(_), Outcome::Done(_)) = (act, &outcome) {
            // Reliability 28, as it stands when the deletion is committed: nobody may begin to use the volume now.
            assert!(!self.world.reported("a"), "deleted while reported");
        }
        outcome
    }

    fn controller(&mut self) {
        self.world.pass(100_000);
        if let Some(act) = self.sent.take() {
            match self.dice.roll(5) {
                // The answer is lost, and the write may still be on its way.
                0 => {
                    self.late.push(act.clone());
                    self.world.hear(&on("a"), &act, &Outcome::Unknown("no answer".into()));
                }
                // The answer is lost.
                1 => {
                    self.arrive(&act);
                    self.world.hear(&on("a"), &act, &Outcome::Unknown("no answer".into()));
                }
                _ => {
                    let outcome = self.arrive(&act);
                    self.world.hear(&on("a"), &act, &outcome);
                }
            }
        } else if let Some((act, _)) = self.world.begin(&on("a")) {
            self.sent = Some(act);
        }
    }

    /// From here on nothing goes wrong.
    fn calm_down(&mut self) {
        self.late.clear();
        self.sent = None;
        self.world.restart(Default::default());
        for _ in 0..60 {
            self.world.pass(100_000);
            self.world.sync();
            self.world.step(&on("a"));
            self.agent();
            self.attacher();
        }
        self.world.sync();
    }
}

#[test]
fn no_life_tears_a_volume_off_a_node_that_may_use_it() {
    let mut detached = 0;
    let mut staged = 0;
    for seed in 0..200 {
        let mut play = Play::new(seed);
        for _ in 0..250 {
            play.step();
            staged += usize::from(play.staged);
        }
        // Reliability 37, and its counterpart: whatever happened, the wanted end is reached.
        if !play.wanted() {
            play.user();
        }
        play.calm_down();
        assert!(play.staged && play.world.reported("a"), "seed {seed}: {:?}", play.world.decide(&on("a")));
        assert!(play.world.decide(&on("a")).why().settled);
        play.user();
        play.calm_down();
        assert!(play.world.real_attachment("a").is_none(), "seed {seed}: {:?}", play.world.decide(&on("a")));
        assert!(!play.world.reported("a") && play.world.decide(&on("a")).why().settled);
        detached += play.detached;
    }
    assert!(detached > 300 && staged > 1000, "the plays must reach what they judge: {detached}, {staged}");
}

// A play that never gets to an action says nothing about it.
#[test]
fn every_action_is_reached() {
    let mut names = alloc::collections::BTreeSet::new();
    for seed in 0..50 {
        let mut play = Play::new(seed);
        for _ in 0..250 {
            play.step();
            names.extend(play.sent.as_ref().map(Action::name));
        }
    }
    let all =
        ["AdoptAttachment", "CreateAttachment", "DeleteAttachment", "FenceNode", "ReportAttached", "TakeReportBack"];
    assert_eq!(names.into_iter().collect::<Vec<_>>(), all);
}
