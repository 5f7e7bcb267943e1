//! One step, taken: what it does to the world, and what the controllers hear of it.

use std::fmt::Write as _;
use std::sync::Arc;

use api::Kind;
use control::{Effect, Endpoint, Outcome, Refusal, Reply};
use csi::{Call, Code};

use prove_kernel::KernelFault;

use crate::cluster::Event;
use crate::laws;
use crate::member::Intent;
use crate::step::{Denial, How};
use crate::truth::driver_refusal;
use crate::world::{Late, Stepped, USER, UserMove, World};

impl Stepped {
    pub(crate) fn user(&mut self, user: &UserMove, behind: Option<(u8, Kind)>) {
        for write in &user.writes {
            match self.world.cluster.write(USER, write) {
                Ok(committed) => self.publish(committed.events, behind),
                Err(refusal) => {
                    let _ = write!(self.note, "{refusal} ");
                }
            }
        }
        self.drivers_follow();
        self.gates_follow();
    }

    /// The decision is taken; what was decided on may change before it has its effect.
    pub(crate) fn begin(&mut self, member: usize, at: usize) -> usize {
        let intent = self.world.members[member].ready_intent(at).clone();
        self.guard(member, &intent.effect);
        if self.violation.is_none() {
            let actor = self.world.members[member].name();
            self.violation = laws::check_decision(&self.world, actor, &intent.effect);
        }
        laws::note_question(&mut self.world, &intent.effect);
        let asked = match &intent.effect {
            Effect::Read(target) => self.world.cluster.version(target.kind),
            _ => 0,
        };
        self.world.edit(member, |member| member.begin(at, asked));
        let same = |i: &usize| Arc::ptr_eq(self.world.members[member].held_intent(*i), &intent);
        (0..self.world.members[member].held()).find(same).unwrap_or(0)
    }

    fn guard(&mut self, member: usize, effect: &Effect) {
        if self.violation.is_none() {
            let member = &self.world.members[member];
            self.violation = laws::check_role(member.name(), member.permissions(), effect)
                .or_else(|| laws::check_effect(&self.world, member.name(), member.node(), effect));
        }
    }

    fn judge_write(&mut self, before: &World, effect: &Effect, outcome: &Outcome) {
        if let (None, Effect::Write(write)) = (&self.violation, effect) {
            self.violation = laws::check_write(before, &self.world, write, outcome);
        }
    }

    pub(crate) fn act(&mut self, member: usize, at: usize, how: How, behind: Option<(u8, Kind)>) {
        let intent = self.world.members[member].held_intent(at).clone();
        self.guard(member, &intent.effect);
        if self.fails_on_machine(member, at, how, &intent.effect) {
            return;
        }
        match how {
            How::Done
            | How::Overtakes
            | How::AnswerLost
            | How::ThenCrash
            | How::Lied(_)
            | How::Denied(_, true)
            | How::OpUnknown(true) => self.happens(member, at, how, &intent, behind),
            How::Unsent
            | How::Refused(_)
            | How::Denied(_, false)
            | How::Unread(_)
            | How::OpRefused
            | How::OpUnknown(false)
            | How::CutShort(_)
            | How::PowerCut(_) => {
                let outcome = told(how, &intent.effect);
                let in_use = !self.world.truth.hosts.is_empty();
                if is_called_impossible(how, &intent.effect, in_use) {
                    Arc::make_mut(&mut self.world.truth).impossible = true;
                }
                self.world.edit(member, |member| member.finish(at, &outcome, None));
            }
            How::Cached => {
                let outcome = self.world.cached(member, at).unwrap_or_else(lost);
                self.note = note(&outcome);
                self.world.edit(member, |member| member.finish(at, &outcome, None));
            }
            How::Late => {
                self.delay(member, intent);
                self.world.edit(member, |member| member.finish(at, &lost(), None));
            }
            How::LateCrash => {
                self.delay(member, intent);
                self.restart(member);
            }
        }
    }

    /// The ways in which a machine with a kernel fails, if this is one.
    fn fails_on_machine(&mut self, member: usize, at: usize, how: How, effect: &Effect) -> bool {
        let node = self.world.members[member].node().to_string();
        let Some(machine) = self.world.truth.machine(&node) else { return false };
        let (outcome, power) = match (how, effect) {
            (How::OpRefused, Effect::Host(op)) => {
                let fault = machine.refusal(op);
                (Arc::make_mut(&mut self.world.truth).fail_machine(&node, op, fault), false)
            }
            (How::OpUnknown(done), Effect::Host(op)) => {
                let fault = KernelFault::Io { done };
                (Arc::make_mut(&mut self.world.truth).fail_machine(&node, op, fault), false)
            }
            (How::CutShort(part) | How::PowerCut(part), Effect::Call { call, .. }) => {
                let most = Some(usize::from(part));
                let power = matches!(how, How::PowerCut(_));
                (Arc::make_mut(&mut self.world.truth).call_machine(&node, call, most), power)
            }
            _ => return false,
        };
        self.changed = true;
        self.note = note(&outcome);
        if power {
            self.lose_power(member);
        } else {
            self.world.edit(member, |member| member.finish(at, &outcome, None));
            self.refresh(&node);
        }
        true
    }

    /// A machine starts again: whatever was under way on it is over, and its agent is a new one.
    pub(crate) fn lose_power(&mut self, member: usize) {
        let node = self.world.members[member].node().to_string();
        let on_wire = |late: &Late| matches!(late.intent.effect, Effect::Write(_));
        self.world.late.retain(|late| late.node != node || on_wire(late));
        Arc::make_mut(&mut self.world.truth).lose_power(&node);
        self.changed = true;
        for at in 0..self.world.members.len() {
            if self.world.members[at].node() == node {
                self.restart(at);
            }
        }
    }

    /// The effect happens, and the controller hears of it, or something else, or nothing.
    fn happens(&mut self, member: usize, at: usize, how: How, intent: &Arc<Intent>, behind: Option<(u8, Kind)>) {
        let actor = self.world.members[member].name().to_string();
        let node = self.world.members[member].node().to_string();
        let before = self.world.bare();
        let performed = self.world.perform(&actor, &node, &intent.effect, how == How::Overtakes);
        self.judge_write(&before, &intent.effect, &performed.outcome);
        drop(before);
        self.changed = changes(&intent.effect, &performed.outcome);
        self.note = note(&performed.outcome);
        if how == How::ThenCrash {
            self.publish(performed.events, behind);
            self.restart(member);
            return;
        }
        let done = matches!(performed.outcome, Outcome::Done(_));
        let (outcome, held) = match how {
            How::Done | How::Overtakes => (performed.outcome, performed.held.as_ref()),
            How::AnswerLost | How::OpUnknown(_) => (lost(), None),
            // What was refused anyway is told as it is.
            _ if done => (told(how, &intent.effect), None),
            _ => (performed.outcome, None),
        };
        self.world.edit(member, |member| member.finish(at, &outcome, held));
        if let (Outcome::Done(Reply::Gone), Effect::Write(write)) = (&outcome, &intent.effect) {
            self.knows_gone(member, write.target().kind, &performed.events);
        }
        self.publish(performed.events, behind);
        if matches!(intent.effect, Effect::Call { .. } | Effect::Host(_)) {
            self.refresh(&node);
        }
    }

    /// The controller knows from its own answer that an object is gone: older news of it that its watch still has to
    /// deliver will tell it nothing, which makes this state another than one in which they would.
    fn knows_gone(&mut self, member: usize, kind: Kind, events: &[Event]) {
        let Some(queue) = self.world.behind.get_mut(&(member, kind)) else { return };
        for gone in events.iter().filter(|event| event.gone) {
            let uid = &gone.held.object.meta().uid;
            queue.iter_mut().filter(|old| old.held.object.meta().uid == *uid).for_each(|old| old.moot = true);
        }
    }

    fn delay(&mut self, member: usize, intent: Arc<Intent>) {
        let actor = self.world.members[member].name().to_string();
        let node = self.world.members[member].node().to_string();
        self.world.late.push(Late { actor, node, intent });
    }

    /// What a machine shows by itself reaches its agent.
    pub(crate) fn refresh(&mut self, node: &str) {
        for at in 0..self.world.members.len() {
            if !node.is_empty() && self.world.members[at].node() == node {
                let truth = self.world.truth.clone();
                self.world.edit(at, |member| member.refresh(&truth));
            }
        }
        self.watched(node);
    }

    /// The agent knows what is mounted now.
    fn watched(&mut self, node: &str) {
        let Some(host) = self.world.truth.hosts.get(node).filter(|host| host.machine.is_some()) else { return };
        let now = host.mount_points();
        if host.watched != now
            && let Some(host) = Arc::make_mut(&mut self.world.truth).hosts.get_mut(node)
        {
            host.watched = now;
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
        if self.violation.is_none() && !excused {
            self.violation = laws::check_effect(&self.world, &late.actor, &late.node, &late.intent.effect);
        }
        let before = self.world.bare();
        let performed = self.world.perform(&late.actor, &late.node, &late.intent.effect, true);
        self.judge_write(&before, &late.intent.effect, &performed.outcome);
        drop(before);
        self.changed = changes(&late.intent.effect, &performed.outcome);
        self.note = note(&performed.outcome);
        self.publish(performed.events, behind);
        if matches!(late.intent.effect, Effect::Call { .. } | Effect::Host(_)) {
            self.refresh(&late.node);
        }
    }

    /// A watch lists again: of each object it sees how it is now, or that it is gone.
    pub(crate) fn relist(&mut self, member: usize, kind: Kind) {
        let Some(queue) = self.world.behind.remove(&(member, kind)) else { return };
        for (at, event) in queue.iter().enumerate() {
            let key = event.held.object.meta().key();
            if !queue[at + 1..].iter().any(|later| later.held.object.meta().key() == key) {
                self.world.edit(member, |member| member.deliver(event));
            }
        }
    }

    pub(crate) fn crash(&mut self, member: usize, landed: u8, late: u8, behind: Option<(u8, Kind)>) {
        let actor = self.world.members[member].name().to_string();
        let node = self.world.members[member].node().to_string();
        for at in 0..self.world.members[member].held() {
            let intent = self.world.members[member].held_intent(at).clone();
            if late & (1 << at) != 0 && is_remote(&intent.effect) {
                self.delay(member, intent);
            } else if landed & (1 << at) != 0 {
                self.guard(member, &intent.effect);
                let performed = self.world.perform(&actor, &node, &intent.effect, false);
                let _ = write!(self.note, "{}: {} ", intent.label, note(&performed.outcome));
                self.changed |= changes(&intent.effect, &performed.outcome);
                self.publish(performed.events, behind);
            }
        }
        self.restart(member);
    }

    /// Another process leads. The old one led until just now and has begun all that it could: it begins nothing more, by
    /// the law of the lease, but what it has begun is on its way.
    pub(crate) fn takeover(&mut self, member: usize) {
        let of = self.world.members[member].clone();
        for at in 0..of.ready() {
            self.guard(member, &of.ready_intent(at).effect);
        }
        let ready = (0..of.ready()).map(|at| of.ready_intent(at).clone());
        let begun = (0..of.held()).map(|at| of.held_intent(at).clone());
        for intent in ready.chain(begun).filter(|intent| is_remote(&intent.effect)) {
            self.delay(member, intent);
        }
        self.restart(member);
    }

    /// A controller starts anew. An agent is another incarnation from here on, which its Node does not say yet.
    pub(crate) fn restart(&mut self, member: usize) {
        let node = self.world.members[member].node().to_string();
        if let Some(host) = Arc::make_mut(&mut self.world.truth).hosts.get_mut(&node) {
            host.incarnation += 1;
            self.world.unannounced |= 1 << member;
        }
        self.world.behind.retain(|(at, _), _| *at != member);
        Arc::make_mut(&mut self.world.truth).plugins.agent_restarts();
        // What hung on its machine ends with it: it was done before, or never is. So do calls over a socket of its own.
        let inside = |effect: &Effect| matches!(effect, Effect::Host(_) | Effect::Call { to: Endpoint::Socket(_), .. });
        let hung = |late: &Late| !node.is_empty() && late.node == node && inside(&late.intent.effect);
        self.world.late.retain(|late| !hung(late));
        self.watched(&node);
        let (cluster, truth) = (self.world.cluster.clone(), self.world.truth.clone());
        self.world.edit(member, |member| member.restart(&cluster, &truth));
    }

    /// The registrar writes the agent's incarnation on its Node.
    pub(crate) fn introduce(&mut self, member: usize, behind: Option<(u8, Kind)>) {
        self.world.unannounced &= !(1 << member);
        let node = self.world.members[member].node().to_string();
        let Some(host) = self.world.truth.hosts.get(&node) else { return };
        let write = crate::worlds::incarnation_write(&node, host.incarnation);
        if let Ok(committed) = self.world.cluster.write("registrar", &write) {
            self.publish(committed.events, behind);
        }
    }
}

/// The driver says that a volume can never be changed as asked.
fn is_called_impossible(how: How, effect: &Effect, in_use: bool) -> bool {
    let Effect::Call { call, .. } = effect else { return false };
    match call {
        Call::ControllerExpandVolume(_) | Call::ControllerModifyVolume(_) | Call::NodeExpandVolume(_) => match how {
            How::Refused(Code::InvalidArgument | Code::OutOfRange | Code::NotFound) => true,
            // Not while it is in use.
            How::Refused(Code::FailedPrecondition) => in_use,
            _ => false,
        },
        _ => false,
    }
}

fn is_remote(effect: &Effect) -> bool {
    matches!(effect, Effect::Write(_) | Effect::Call { .. })
}

fn lost() -> Outcome {
    Outcome::Unknown("no answer came".into())
}

/// What a controller is told that is not told what happened.
fn told(how: How, effect: &Effect) -> Outcome {
    match (how, effect) {
        (How::Refused(code) | How::Lied(code), Effect::Call { call, .. }) => driver_refusal(call, code),
        (How::Denied(denial, _), _) => Outcome::Refused(match denial {
            Denial::Forbidden => Refusal::Denied("forbidden".into()),
            Denial::Conflict => Refusal::Conflict,
            Denial::AlreadyExists => Refusal::AlreadyExists,
            Denial::NotFound => Refusal::NotFound,
        }),
        (How::Unread(true), _) => Outcome::Refused(Refusal::Denied("forbidden".into())),
        (How::OpRefused, _) => Outcome::Refused(Refusal::Host("the pretend machine was told to fail".into())),
        _ => lost(),
    }
}

fn changes(effect: &Effect, outcome: &Outcome) -> bool {
    match (effect, outcome) {
        (Effect::Call { .. } | Effect::Host(_), Outcome::Done(_)) => true,
        (Effect::Read(_) | Effect::List { .. } | Effect::Token(_) | Effect::Write(_) | Effect::Nothing, _)
        | (_, Outcome::Refused(_) | Outcome::Unknown(_)) => false,
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
