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
use std::hash::Hash;
use std::sync::Arc;

use api::{Kind, PersistentVolume, PersistentVolumeClaim, Write};
use control::{Effect, Outcome, Reply};
use csi::Call;

use crate::bounds::Budget;
use crate::canon::Canon;
use crate::cluster::{Cluster, Event, Held};
use crate::laws::{self, Broken};
use crate::member::{Intent, Member};
use crate::step::{Move, Step};
use crate::truth::{Truth, driver_busy};

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

/// An effect that happened, or was refused.
pub(crate) struct Performed {
    pub(crate) outcome: Outcome,
    pub(crate) held: Option<Arc<Held>>,
    pub(crate) events: Vec<Event>,
}

impl World {
    /// A world in which nothing has happened yet.
    pub(crate) fn of(cluster: Cluster, truth: Arc<Truth>, members: Vec<Arc<dyn Member>>) -> World {
        let (behind, late, budget) = (BTreeMap::new(), Vec::new(), Budget::calm(0));
        World { cluster, truth, members, behind, late, dawdling: 0, budget }
    }

    /// Every PersistentVolume there is.
    pub fn volumes(&self) -> impl Iterator<Item = &Arc<PersistentVolume>> {
        self.cluster.volumes()
    }

    /// Every claim there is.
    pub fn claims(&self) -> impl Iterator<Item = &Arc<PersistentVolumeClaim>> {
        self.cluster.claims()
    }

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
    pub(crate) fn perform(&mut self, actor: &str, node: &str, effect: &Effect) -> Performed {
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
