//! One state of a pretend world, and every state that may follow it.
//!
//! What follows is listed, not drawn: a move of the user; a decision with its action, done at once or held up between
//! deciding and doing; an answer lost, a request lost, a call refused, an effect that comes late; a crash; an erased
//! memory; one event delivered to a controller whose watch has fallen behind.
//!
//! # What is left out, and why nothing is lost
//!
//! - *Begin, effect and answer are one step unless the action is held up.* An action held up is begun in one step and
//!   has its effect and its answer in a later one. Between effect and answer the controller takes no decision for that
//!   key; for its other keys a decision taken there is the same as one taken just before the effect, since neither
//!   their view nor their memory has changed. A crash between the two is a step of its own.
//! - *A key that rests is looked at once.* Looking later shows the same unless a fact changed, and then it is woken.
//! - *Pauses take no time.* Being slow is one of the schedules anyway; see [`crate::member`].
//! - *Crash and restart are one step.* A controller that stays down is one that takes no step for a while, and a list
//!   taken at the restart is then as fresh as it can be; an older one is a watch that has fallen behind since.
//! - *What only an agent's own machine sees happens at once.* Directories, records and processes are nobody else's
//!   business, so their order relative to what others do shows in no law. It shows in the agent's next decision if news
//!   arrives in between, and that is why an agent may dawdle: how often is part of the bounds.
//! - *Watches deliver at once unless they fall behind.* How many may is part of the bounds.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::Hash;
use std::sync::Arc;

use api::{Kind, Write};
use control::{Effect, Outcome, Permission, Reply};
use csi::Call;

use crate::bounds::Budget;
use crate::canon::Canon;
use crate::cluster::{Cluster, Event, Held};
use crate::laws::{self, Broken};
use crate::member::{Intent, Member};
use crate::step::{How, Move, Step};
use crate::truth::{Truth, driver_busy, driver_refusal};

/// Everything there is.
#[derive(Clone)]
pub struct World {
    pub(crate) cluster: Cluster,
    pub(crate) truth: Arc<Truth>,
    pub(crate) members: Vec<Arc<dyn Member>>,
    /// Events a controller's watch of a kind has not delivered yet.
    pub(crate) behind: BTreeMap<(usize, Kind), Vec<Event>>,
    /// Effects nobody waits for any more, which may still come.
    pub(crate) late: Vec<Late>,
    /// Agents that do not go on at once, one bit each.
    pub(crate) dawdling: u8,
    /// Trouble still to come.
    pub(crate) budget: Budget,
}

/// An effect nobody waits for any more.
#[derive(Clone)]
pub(crate) struct Late {
    pub(crate) actor: String,
    pub(crate) node: String,
    pub(crate) intent: Arc<Intent>,
}

/// What one step did.
pub(crate) struct Stepped {
    pub(crate) world: World,
    /// Kinds of objects that changed, and by whom, whose watchers could fall behind.
    pub(crate) kinds: Vec<Kind>,
    /// Something outside the controllers changed.
    pub(crate) changed: bool,
    /// How it ended, for people.
    pub(crate) note: String,
    pub(crate) broken: Option<Broken>,
}

/// One thing the user may do: what to call it, and the writes.
pub struct UserMove {
    /// For people.
    pub label: String,
    /// In this order; a refused one is skipped.
    pub writes: Vec<Write>,
}

struct Performed {
    outcome: Outcome,
    held: Option<Arc<Held>>,
    events: Vec<Event>,
}

impl World {
    /// The same state whatever numbers it drew, without what may still go wrong.
    pub(crate) fn hash(&self) -> u64 {
        let mut canon = Canon::default();
        self.cluster.digest(&mut canon);
        self.truth.hash(&mut canon);
        for member in &self.members {
            canon.add(member.piece());
        }
        for ((member, kind), events) in &self.behind {
            (member, kind, events.len()).hash(&mut canon);
            for event in events {
                event.gone.hash(&mut canon);
                canon.add(&event.held.piece);
            }
        }
        for late in &self.late {
            late.actor.hash(&mut canon);
            hash_effect(&late.intent.effect, &mut canon);
        }
        self.dawdling.hash(&mut canon);
        canon.state()
    }

    /// Nothing is held up, behind or still to come: whoever looks sees how things are.
    pub(crate) fn is_fresh(&self) -> bool {
        self.behind.is_empty() && self.late.is_empty() && self.members.iter().all(|member| member.held() == 0)
    }

    /// Takes one step.
    pub(crate) fn take(&self, step: Move, user: &[UserMove]) -> Stepped {
        let mut next =
            Stepped { world: self.clone(), kinds: Vec::new(), changed: false, note: String::new(), broken: None };
        next.world.budget = step.budget;
        match step.step {
            Step::User(at) => next.user(&user[usize::from(at)], step.behind),
            Step::Act { member, at, held, how } => {
                let member = usize::from(member);
                let mut at = usize::from(at);
                next.world.dawdling &= !(1 << member);
                if !held {
                    at = next.begin(member, at);
                }
                next.act(member, at, how, step.behind);
            }
            Step::Hold { member, at } => {
                next.begin(usize::from(member), usize::from(at));
                next.note = "begun".into();
            }
            Step::Deliver { member, kind } => next.deliver(usize::from(member), kind),
            Step::Land(at) => next.land(usize::from(at), step.behind),
            Step::Crash { member, landed } => next.crash(usize::from(member), landed, step.behind),
            Step::Dawdle { member } => next.world.dawdling |= 1 << member,
            Step::Erase { member, at } => {
                next.world.edit(usize::from(member), |member| member.erase(usize::from(at)));
                next.changed = false;
            }
        }
        // A step that only a controller notices breaks no law of the world.
        if next.broken.is_none() && next.changed {
            next.broken = laws::passage(self, &next.world).or_else(|| laws::state(&next.world));
        }
        next
    }

    pub(crate) fn edit(&mut self, member: usize, change: impl FnOnce(&mut dyn Member)) {
        if Arc::get_mut(&mut self.members[member]).is_none() {
            self.members[member] = Arc::from(self.members[member].copy());
        }
        if let Some(own) = Arc::get_mut(&mut self.members[member]) {
            change(own);
        }
    }

    /// The driver is still working on another call about the same volume.
    pub(crate) fn is_busy(&self, call: &Call) -> bool {
        self.late.iter().any(|late| match &late.intent.effect {
            Effect::Call { call: other, .. } => same_volume(call, other),
            Effect::Read(_) | Effect::Write(_) | Effect::Host(_) => false,
        })
    }

    /// The effect happens, unless the driver is still busy with another about the same volume.
    fn perform(&mut self, actor: &str, node: &str, effect: &Effect) -> Performed {
        let mut events = Vec::new();
        let mut held = None;
        let outcome = match effect {
            Effect::Read(target) => match self.cluster.read(target) {
                Some(found) => Outcome::Done(Reply::Object(found.object.clone())),
                None => Outcome::Done(Reply::Gone),
            },
            Effect::Write(write) => match self.cluster.write(actor, write) {
                Ok(committed) => {
                    events = committed.events;
                    held = self.cluster.read(write.target()).cloned();
                    Outcome::Done(committed.reply)
                }
                Err(refusal) => Outcome::Refused(refusal),
            },
            Effect::Call { call, .. } if self.is_busy(call) => driver_busy(),
            Effect::Call { call, .. } => Arc::make_mut(&mut self.truth).call(node, call),
            Effect::Host(op) => Arc::make_mut(&mut self.truth).host_op(node, op),
        };
        Performed { outcome, held, events }
    }

    /// For people: objects, driver, machines, and what every controller thinks.
    pub fn describe(&self) -> String {
        let mut out = String::new();
        for kind in api::Object::KINDS {
            for held in self.cluster.all(kind) {
                let _ = writeln!(out, "  {}", describe_object(&held.object));
            }
        }
        let _ = writeln!(out, "  driver: volumes {:?}, attached {:?}", self.truth.volumes, self.truth.attached);
        for (name, host) in &self.truth.hosts {
            let _ = writeln!(
                out,
                "  machine {name}: life {}, staged {:?}, published {:?}, files {:?}, processes {:?}",
                host.life,
                host.staged,
                host.published,
                host.files.keys().collect::<Vec<_>>(),
                host.processes
            );
        }
        for late in &self.late {
            let _ = writeln!(out, "  still to come: {} of {}", late.intent.label, late.actor);
        }
        for ((member, kind), events) in &self.behind {
            let _ = writeln!(out, "  {} is {} {kind} events behind", self.members[*member].name(), events.len());
        }
        for member in &self.members {
            member.describe(&mut out);
        }
        out
    }
}

impl Stepped {
    fn user(&mut self, user: &UserMove, behind: Option<(u8, Kind)>) {
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
    fn begin(&mut self, member: usize, at: usize) -> usize {
        let intent = self.world.members[member].ready_intent(at).clone();
        self.guard(member, &intent.effect);
        self.world.edit(member, |member| member.begin(at));
        let same = |i: &usize| self.world.members[member].held_intent(*i).label == intent.label;
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

    fn act(&mut self, member: usize, at: usize, how: How, behind: Option<(u8, Kind)>) {
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

    fn deliver(&mut self, member: usize, kind: Kind) {
        let Some(queue) = self.world.behind.get_mut(&(member, kind)) else { return };
        let event = queue.remove(0);
        if queue.is_empty() {
            self.world.behind.remove(&(member, kind));
        }
        self.note = format!("{}{}", event.held.object.reference(), if event.gone { " is gone" } else { "" });
        self.world.edit(member, |member| member.deliver(&event));
    }

    /// An effect comes that nobody waits for.
    fn land(&mut self, at: usize, behind: Option<(u8, Kind)>) {
        let late = self.world.late.remove(at);
        if self.broken.is_none() {
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

    fn crash(&mut self, member: usize, landed: u8, behind: Option<(u8, Kind)>) {
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

/// Calls about one volume; the pretend driver's ids are made of its names.
fn same_volume(one: &Call, other: &Call) -> bool {
    let plain = |call: &Call| call.volume().trim_start_matches("vol-").to_string();
    plain(one) == plain(other)
}

fn hash_effect(effect: &Effect, canon: &mut Canon) {
    match effect {
        Effect::Read(target) => target.hash(canon),
        Effect::Write(write) => write.hash(canon),
        Effect::Call { call, .. } => {
            call.method().hash(canon);
            call.volume().hash(canon);
            match call {
                Call::ControllerPublishVolume(request) => request.node_id.hash(canon),
                Call::ControllerUnpublishVolume(request) => request.node_id.hash(canon),
                Call::NodePublishVolume(request) => request.target_path.hash(canon),
                Call::NodeUnpublishVolume(request) => request.target_path.hash(canon),
                _ => {}
            }
        }
        Effect::Host(op) => op.hash(canon),
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

fn describe_object(object: &api::Object) -> String {
    let meta = object.meta();
    let mut text = format!("{}", object.reference());
    if meta.is_deleting() {
        text.push_str(" (deleting)");
    }
    if !meta.finalizers.is_empty() {
        let _ = write!(text, " finalizers {:?}", meta.finalizers);
    }
    match object {
        api::Object::Node(node) => {
            let attached: Vec<_> = node.status.volumes_attached.iter().flatten().map(|v| &v.name).collect();
            let _ = write!(text, " attached {attached:?} in use {:?}", node.status.volumes_in_use);
        }
        api::Object::VolumeAttachment(va) => {
            let _ = write!(text, " on {} attached {}", va.spec.node_name, va.status.attached);
        }
        api::Object::Pod(pod) => {
            let _ = write!(text, " on {} {}", pod.spec.node_name, pod.status.phase);
        }
        api::Object::PersistentVolumeClaim(claim) => {
            let _ = write!(text, " volume '{}' {}", claim.spec.volume_name, claim.status.phase);
        }
        api::Object::PersistentVolume(volume) => {
            let claim = volume.spec.claim_ref.as_ref().map_or("", |claim| claim.name.as_str());
            let _ = write!(text, " claim '{claim}' {}", volume.status.phase);
        }
        api::Object::StorageClass(_) | api::Object::CSIDriver(_) | api::Object::CSINode(_) => {}
    }
    text
}
