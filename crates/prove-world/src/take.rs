//! One step, taken.

use std::fmt::Write as _;
use std::sync::Arc;

use api::Kind;
use control::{Effect, Outcome, Permission, Reply};
use csi::Call;

use crate::cluster::Event;
use crate::laws::{self, Broken};
use crate::step::How;
use crate::truth::driver_refusal;
use crate::world::{Late, Stepped, UserMove, World};

impl Stepped {
    pub(crate) fn user(&mut self, user: &UserMove, behind: Option<(u8, Kind)>) {
        for write in &user.writes {
            match self.world.cluster.write("user", write) {
                Ok(committed) => self.publish(committed.events, behind),
                Err(refusal) => {
                    let _ = write!(self.note, "{refusal} ");
                }
            }
        }
    }

    /// The decision is taken; what was decided on may change before it has its effect.
    pub(crate) fn begin(&mut self, member: usize, at: usize) -> usize {
        let intent = self.world.members[member].ready_intent(at).clone();
        self.guard(member, &intent.effect);
        self.world.edit(member, |member| member.begin(at));
        let same = |i: &usize| Arc::ptr_eq(self.world.members[member].held_intent(*i), &intent);
        (0..self.world.members[member].held()).find(same).unwrap_or(0)
    }

    fn guard(&mut self, member: usize, effect: &Effect) {
        if self.broken.is_none() {
            let member = &self.world.members[member];
            self.broken = permitted(member.name(), member.permissions(), effect)
                .or_else(|| laws::effect(&self.world, member.name(), member.node(), effect));
        }
    }

    fn judge_write(&mut self, before: &World, effect: &Effect, outcome: &Outcome) {
        if let (None, Effect::Write(write)) = (&self.broken, effect) {
            self.broken = laws::written(before, &self.world, write, outcome);
        }
    }

    pub(crate) fn act(&mut self, member: usize, at: usize, how: How, behind: Option<(u8, Kind)>) {
        let actor = self.world.members[member].name().to_string();
        let node = self.world.members[member].node().to_string();
        let intent = self.world.members[member].held_intent(at).clone();
        self.guard(member, &intent.effect);
        let lost = || Outcome::Unknown("no answer came".into());
        match how {
            How::Done | How::AnswerLost | How::ThenCrash => {
                let before = self.world.clone();
                let performed = self.world.perform(&actor, &node, &intent.effect);
                self.judge_write(&before, &intent.effect, &performed.outcome);
                drop(before);
                self.changed = changes(&intent.effect, &performed.outcome);
                self.note = note(&performed.outcome);
                let (outcome, held) = match how {
                    How::Done => (performed.outcome, performed.held.as_ref()),
                    _ => (lost(), None),
                };
                if how != How::ThenCrash {
                    self.world.edit(member, |member| member.finish(at, &outcome, held));
                }
                self.publish(performed.events, behind);
                if how == How::ThenCrash {
                    self.restart(member, behind);
                } else if matches!(intent.effect, Effect::Call { .. } | Effect::Host(_)) {
                    self.refresh(&node);
                }
            }
            How::Unsent => self.world.edit(member, |member| member.finish(at, &lost(), None)),
            How::Refused => {
                let Effect::Call { call, .. } = &intent.effect else { return };
                let outcome = driver_refusal(call);
                self.world.edit(member, |member| member.finish(at, &outcome, None));
            }
            How::Late => {
                self.world.late.push(Late { actor, node, intent });
                self.world.edit(member, |member| member.finish(at, &lost(), None));
            }
            How::LateCrash => {
                self.world.late.push(Late { actor, node, intent });
                self.restart(member, behind);
            }
        }
    }

    /// What a machine shows by itself reaches its agent.
    fn refresh(&mut self, node: &str) {
        for at in 0..self.world.members.len() {
            if !node.is_empty() && self.world.members[at].node() == node {
                let truth = self.world.truth.clone();
                self.world.edit(at, |member| member.refresh(&truth));
            }
        }
    }

    fn publish(&mut self, events: Vec<Event>, behind: Option<(u8, Kind)>) {
        for event in events {
            self.changed = true;
            let kind = event.kind();
            if !self.kinds.contains(&kind) {
                self.kinds.push(kind);
            }
            for at in 0..self.world.members.len() {
                if !self.world.members[at].watches(kind) {
                    continue;
                }
                let falls = behind == Some((at as u8, kind));
                match self.world.behind.get_mut(&(at, kind)) {
                    Some(queue) => queue.push(event.clone()),
                    None if falls => {
                        self.world.behind.insert((at, kind), vec![event.clone()]);
                    }
                    None if self.world.members[at].knows(&event) => {}
                    None => self.world.edit(at, |member| member.deliver(&event)),
                }
            }
        }
    }

    pub(crate) fn deliver(&mut self, member: usize, kind: Kind) {
        let Some(queue) = self.world.behind.get_mut(&(member, kind)) else { return };
        let event = queue.remove(0);
        if queue.is_empty() {
            self.world.behind.remove(&(member, kind));
        }
        self.note = format!("{}{}", event.held.object.reference(), if event.gone { " is gone" } else { "" });
        self.world.edit(member, |member| member.deliver(&event));
    }

    /// An effect comes that nobody waits for.
    pub(crate) fn land(&mut self, at: usize, behind: Option<(u8, Kind)>) {
        let late = self.world.late.remove(at);
        // An intent that was there when the call began has served once a PersistentVolume names the volume.
        let excused = matches!(&late.intent.effect, Effect::Call { call: Call::CreateVolume(_), .. });
        if self.broken.is_none() && !excused {
            self.broken = laws::effect(&self.world, &late.actor, &late.node, &late.intent.effect);
        }
        let before = self.world.clone();
        let performed = self.world.perform(&late.actor, &late.node, &late.intent.effect);
        self.judge_write(&before, &late.intent.effect, &performed.outcome);
        drop(before);
        self.changed = changes(&late.intent.effect, &performed.outcome);
        self.note = note(&performed.outcome);
        self.publish(performed.events, behind);
        if matches!(late.intent.effect, Effect::Call { .. } | Effect::Host(_)) {
            self.refresh(&late.node);
        }
    }

    pub(crate) fn crash(&mut self, member: usize, landed: u8, behind: Option<(u8, Kind)>) {
        let actor = self.world.members[member].name().to_string();
        let node = self.world.members[member].node().to_string();
        for at in 0..self.world.members[member].held() {
            if landed & (1 << at) != 0 {
                let intent = self.world.members[member].held_intent(at).clone();
                self.guard(member, &intent.effect);
                let performed = self.world.perform(&actor, &node, &intent.effect);
                let _ = write!(self.note, "{}: {} ", intent.label, note(&performed.outcome));
                self.changed |= changes(&intent.effect, &performed.outcome);
                self.publish(performed.events, behind);
            }
        }
        self.restart(member, behind);
    }

    /// An agent begins its next life by saying so on its node, as the registrar does.
    fn restart(&mut self, member: usize, behind: Option<(u8, Kind)>) {
        let node = self.world.members[member].node().to_string();
        if let Some(host) = Arc::make_mut(&mut self.world.truth).hosts.get_mut(&node) {
            host.life += 1;
            let write = crate::worlds::life_write(&node, host.life);
            if let Ok(committed) = self.world.cluster.write("registrar", &write) {
                self.publish(committed.events, behind);
            }
        }
        self.world.behind.retain(|(at, _), _| *at != member);
        let (cluster, truth) = (self.world.cluster.clone(), self.world.truth.clone());
        self.world.edit(member, |member| member.restart(&cluster, &truth));
    }
}

/// The law that no controller does what its role does not allow.
fn permitted(actor: &str, permissions: &[Permission], effect: &Effect) -> Option<Broken> {
    let (kind, subresource, verb) = match effect {
        Effect::Write(write) => (write.target().kind, write.subresource().unwrap_or(""), write.verb()),
        Effect::Read(target) => (target.kind, "", "get"),
        Effect::Call { .. } | Effect::Host(_) => return None,
    };
    let right = Permission { kind, subresource, verb };
    (!permissions.contains(&right)).then(|| {
        Broken::new(
            "a controller does only what its role allows",
            format!("{actor} has no right to {verb} {kind} {subresource}"),
        )
    })
}

fn changes(effect: &Effect, outcome: &Outcome) -> bool {
    match (effect, outcome) {
        (Effect::Call { .. } | Effect::Host(_), Outcome::Done(_)) => true,
        (Effect::Read(_) | Effect::Write(_), _) | (_, Outcome::Refused(_) | Outcome::Unknown(_)) => false,
    }
}

fn note(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(Reply::Gone) => "done, the object is gone".into(),
        Outcome::Done(_) => "done".into(),
        Outcome::Refused(refusal) => format!("refused, {refusal}"),
        Outcome::Unknown(text) => text.clone(),
    }
}
