//! One state of a pretend world, and every state that may follow it.
//!
//! What follows is listed, not drawn: a move of the user; a decision with its action, done at once or held up between
//! deciding and doing; an answer lost, a request lost, a call refused with any code, a write denied, a read or an operation
//! of a machine that fails, an effect that comes late; a crash, or another process that leads while the old one's requests
//! are on their way; an erased memory; one event delivered to a controller whose watch has fallen behind, or a new list
//! instead.
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
//!   taken at the restart is then as fresh as it can be; an older one is a watch that has fallen behind since. That the
//!   Node carries an agent's new incarnation is a later step.
//! - *What only an agent's own machine sees happens at once.* Directories, records and processes are nobody else's
//!   business, so their order relative to what others do shows in no law. It shows in the agent's next decision if news
//!   arrives in between, and that is why an agent may dawdle: how often is part of the bounds.
//! - *Watches deliver at once unless they fall behind.* How many may is part of the bounds.
//! - *A 429 or 500 of the API server, and a driver's code that leaves it open what happened, are lost answers or lost
//!   requests.* The hands make the same outcome of them.
//!
//! # What is taken for granted
//!
//! A driver that says no for good has not done it, and a driver does not carry out two calls about the same thing in
//! another order than they came in. No rules can keep the laws without; `tests/assumptions.rs` shows the histories.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hash;
use std::sync::Arc;

use api::{Kind, PersistentVolume, PersistentVolumeClaim, Pod, Write};
use control::host::Op;
use control::{Effect, Endpoint, Outcome, Reply};
use csi::Call;
use prost::Message;

use crate::bounds::Budget;
use crate::canon::Canon;
use crate::cluster::{Cluster, Event, Held, WrongStore};
use crate::laws::{self, Violation};
use crate::member::{Intent, Member};
use crate::step::{Move, Step};
use crate::truth::{Truth, driver_busy};

/// Who the user is, as a writer.
pub(crate) const USER: &str = "user";

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
    /// Agents that do not go on at once, one bit for each member.
    pub(crate) dawdling: u16,
    /// Agents whose Node does not carry their incarnation yet, one bit for each member.
    pub(crate) unannounced: u16,
    /// Pods, by uid, that were put on a node when their claim was being deleted or gone: they do not hold it.
    pub(crate) unheld: BTreeSet<String>,
    /// Volumes, by handle, that the user had kept when they were last asked for, past the cache, to be deleted.
    pub(crate) kept: BTreeSet<String>,
    /// A look that began before somebody asked serves him too: for tests of the laws.
    pub(crate) hasty: bool,
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
    pub(crate) violation: Option<Violation>,
}

/// One thing the user may do: what to call it, and the writes.
pub struct UserMove {
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
        let (unheld, kept) = (BTreeSet::new(), BTreeSet::new());
        let (dawdling, unannounced, hasty) = (0, 0, false);
        World { cluster, truth, members, behind, late, dawdling, unannounced, unheld, kept, hasty, budget }
    }

    /// The same world with hands that answer reads by looks which began before the question: for tests of the laws
    /// about it.
    #[must_use]
    pub fn with_hasty_looks(self) -> World {
        World { hasty: true, ..self }
    }

    /// The same world with an API server that is wrong: for tests of the laws about it.
    #[must_use]
    pub fn with_store(mut self, wrong: WrongStore) -> World {
        self.cluster.go_wrong(wrong);
        self
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
        for machine in self.truth.hosts.values().filter_map(|host| host.machine.as_ref()) {
            canon.add(machine.piece());
        }
        for member in &self.members {
            canon.add(member.piece());
        }
        for ((member, kind), events) in &self.behind {
            (member, kind, events.len()).hash(&mut canon);
            for event in events {
                (event.gone, event.moot).hash(&mut canon);
                canon.add(event.held.piece());
            }
        }
        for late in &self.late {
            (&late.actor, &late.node).hash(&mut canon);
            hash_effect(&late.intent.effect, &mut canon);
        }
        (self.dawdling, self.unannounced, &self.unheld, &self.kept).hash(&mut canon);
        for (member, at) in self.reads() {
            (member, at, self.unseen_of(member, at)).hash(&mut canon);
        }
        canon.state()
    }

    /// Reads under way that the cache may come to answer.
    fn reads(&self) -> impl Iterator<Item = (usize, usize)> {
        let held = |(index, member): (usize, &Arc<dyn Member>)| (0..member.held()).map(move |at| (index, at));
        let all = self.members.iter().enumerate().flat_map(held);
        all.filter(|(member, at)| is_shared(&self.members[*member].held_intent(*at).effect))
    }

    /// How much of what there was when a read was asked for the watch has still to deliver.
    fn unseen_of(&self, member: usize, at: usize) -> usize {
        let of = &self.members[member];
        let Effect::Read(target) = &of.held_intent(at).effect else { return 0 };
        let queue = self.behind.get(&(member, target.kind)).into_iter().flatten();
        queue.filter(|event| event.held.object.meta().version() <= of.asked(at)).count()
    }

    /// What the cache answers to a read under way, as [`Effect::SHARED`] says. `None` where it may not, or where it
    /// shows what the server would.
    pub(crate) fn cached(&self, member: usize, at: usize) -> Option<Outcome> {
        let of = &self.members[member];
        let Effect::Read(target) = &of.held_intent(at).effect else { return None };
        let late = self.behind.contains_key(&(member, target.kind));
        let may = is_shared(&of.held_intent(at).effect) && late && (self.hasty || self.unseen_of(member, at) == 0);
        may.then(|| Outcome::Done(of.cached(target).map_or(Reply::Gone, Reply::Object)))
    }

    /// Nothing is held up, behind or still to come: whoever looks sees how things are.
    pub(crate) fn is_fresh(&self) -> bool {
        self.behind.is_empty()
            && self.late.is_empty()
            && self.unannounced == 0
            && self.members.iter().all(|member| member.held() == 0)
    }

    /// Takes one step.
    pub(crate) fn take(&self, step: Move, user: &[UserMove]) -> Stepped {
        self.clone().go(step, user)
    }

    /// Without the controllers, as the laws of a step want to know it: whoever holds a controller makes others copy it.
    pub(crate) fn bare(&self) -> World {
        World {
            cluster: self.cluster.clone(),
            truth: self.truth.clone(),
            members: Vec::new(),
            behind: BTreeMap::new(),
            late: Vec::new(),
            dawdling: 0,
            unannounced: 0,
            unheld: BTreeSet::new(),
            kept: BTreeSet::new(),
            hasty: false,
            budget: self.budget,
        }
    }

    /// Takes one step and leaves nothing behind.
    pub(crate) fn go(self, step: Move, user: &[UserMove]) -> Stepped {
        let before = World { unheld: self.unheld.clone(), ..self.bare() };
        let mut next = Stepped { world: self, kinds: Vec::new(), changed: false, note: String::new(), violation: None };
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
            Step::Relist { member, kind } => next.relist(usize::from(member), kind),
            Step::Land(at) => next.land(usize::from(at), step.behind),
            Step::Crash { member, landed, late } => next.crash(usize::from(member), landed, late, step.behind),
            Step::Takeover { member } => next.takeover(usize::from(member)),
            Step::Introduce { member } => next.introduce(usize::from(member), step.behind),
            Step::LosePower { member } => next.lose_power(usize::from(member)),
            Step::Dawdle { member } => next.world.dawdling |= 1 << member,
            Step::Erase { member, at } => {
                next.world.edit(usize::from(member), |member| member.erase(usize::from(at)));
                next.changed = false;
            }
        }
        if next.kinds.contains(&Kind::Pod) {
            next.world.unheld = placed_unheld(&before, &next.world);
        }
        // A step that only a controller notices breaks no law of the world.
        if next.violation.is_none() && next.changed {
            next.violation = laws::check_passage(&before, &next.world)
                .or_else(|| laws::check_entries(&before, &next.world))
                .or_else(|| laws::check_state(&next.world));
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

    pub(crate) fn is_unannounced(&self, member: usize) -> bool {
        self.unannounced & (1 << member) != 0
    }

    /// Calls about the same volume that the driver is still working on.
    fn under_way<'a>(&'a self, call: &'a Call) -> impl Iterator<Item = (&'a str, &'a Call)> {
        self.late.iter().filter_map(move |late| match &late.intent.effect {
            Effect::Call { call: other, .. } if same_volume(call, other) => Some((late.node.as_str(), other)),
            Effect::Call { .. }
            | Effect::Read(_)
            | Effect::List { .. }
            | Effect::Token(_)
            | Effect::Write(_)
            | Effect::Host(_)
            | Effect::Nothing => None,
        })
    }

    /// The driver is still working on another call about the same volume.
    pub(crate) fn is_busy(&self, call: &Call) -> bool {
        self.under_way(call).next().is_some()
    }

    /// An operation of the machine on the same thing has not ended.
    fn hangs(&self, node: &str, op: &Op) -> bool {
        self.late.iter().any(|late| match &late.intent.effect {
            Effect::Host(other) => late.node == node && other.works_on() == op.works_on(),
            Effect::Call { .. }
            | Effect::Read(_)
            | Effect::List { .. }
            | Effect::Token(_)
            | Effect::Write(_)
            | Effect::Nothing => false,
        })
    }

    /// None of them is about the same aspect of it: a driver with fine locks would carry the call out.
    pub(crate) fn may_overtake(&self, node: &str, call: &Call) -> bool {
        self.under_way(call).all(|(at, other)| aspect(at, other) != aspect(node, call))
    }

    /// The effect happens, unless the driver is still busy with another about the same volume and lets nobody `past`.
    pub(crate) fn perform(&mut self, actor: &str, node: &str, effect: &Effect, past: bool) -> Performed {
        let mut events = Vec::new();
        let mut held = None;
        let outcome = match effect {
            Effect::Nothing => Outcome::Done(Reply::Nothing),
            Effect::Read(target) => {
                events = self.renew(target);
                match self.cluster.read(target) {
                    Some(found) => Outcome::Done(Reply::Object(found.object.clone())),
                    None => Outcome::Done(Reply::Gone),
                }
            }
            Effect::Token(_) => Outcome::Refused(control::Refusal::NotFound),
            Effect::List { kind, namespace } => {
                let inside = |held: &&Arc<Held>| namespace.is_empty() || held.object.meta().namespace == *namespace;
                let objects = self.cluster.all(*kind).filter(inside).map(|held| held.object.clone());
                Outcome::Done(Reply::Objects(objects.collect()))
            }
            Effect::Write(write) => match self.cluster.write(actor, write) {
                Ok(committed) => {
                    events = committed.events;
                    held = self.cluster.read(write.target()).cloned();
                    Outcome::Done(committed.reply)
                }
                Err(refusal) => Outcome::Refused(refusal),
            },
            Effect::Call { to: Endpoint::Socket(at), .. } if !past && self.is_asked(at) => driver_busy(),
            Effect::Call { to: Endpoint::Socket(at), call } => Arc::make_mut(&mut self.truth).plugins.call(at, call),
            Effect::Call { call, .. } if !past && self.is_busy(call) => driver_busy(),
            Effect::Call { call, .. } => Arc::make_mut(&mut self.truth).call(node, call),
            Effect::Host(op) if self.hangs(node, op) => {
                Outcome::Unknown(format!("an earlier operation on {} has not ended", op.works_on()))
            }
            Effect::Host(op) => Arc::make_mut(&mut self.truth).host_op(node, op),
        };
        Performed { outcome, held, events }
    }
}

/// The pods that do not hold their claims, after a step: those that did not before and are still there, and those that
/// got their node in it although a claim of theirs was not there to stay.
fn placed_unheld(before: &World, after: &World) -> BTreeSet<String> {
    let stays = |pod: &Pod, name: &str| {
        let mut claims = before.cluster.claims();
        claims.any(|claim| {
            let meta = &claim.metadata;
            meta.name == name && meta.namespace == pod.metadata.namespace && !meta.is_deleting()
        })
    };
    let placed = |world: &World, uid: &str| {
        world.cluster.pods().any(|pod| pod.metadata.uid == uid && !pod.spec.node_name.is_empty())
    };
    let unheld = |pod: &&Arc<Pod>| {
        let uid = &pod.metadata.uid;
        before.unheld.contains(uid)
            || placed(after, uid) && !placed(before, uid) && pod.claim_names().any(|name| !stays(pod, &name))
    };
    after.cluster.pods().filter(unheld).map(|pod| pod.metadata.uid.clone()).collect()
}

/// A read that the cache may answer.
pub(crate) fn is_shared(effect: &Effect) -> bool {
    matches!(effect, Effect::Read(target) if Effect::SHARED.contains(&target.kind))
}

/// Calls about one volume; the pretend driver's ids are made of its names.
fn same_volume(one: &Call, other: &Call) -> bool {
    let plain = |call: &Call| call.volume().trim_start_matches("vol-").to_string();
    !one.volume().is_empty() && plain(one) == plain(other)
}

/// What of a volume a call changes.
#[derive(PartialEq, Eq)]
enum Aspect<'a> {
    Existence,
    Attachment(&'a str),
    Size,
    Attributes,
    Machine(&'a str),
}

fn aspect<'a>(node: &'a str, call: &'a Call) -> Aspect<'a> {
    match call {
        Call::ControllerPublishVolume(request) => Aspect::Attachment(&request.node_id),
        Call::ControllerUnpublishVolume(request) => Aspect::Attachment(&request.node_id),
        Call::ControllerExpandVolume(_) => Aspect::Size,
        Call::ControllerModifyVolume(_) => Aspect::Attributes,
        Call::NodeStageVolume(_)
        | Call::NodeUnstageVolume(_)
        | Call::NodePublishVolume(_)
        | Call::NodeUnpublishVolume(_)
        | Call::NodeExpandVolume(_) => Aspect::Machine(node),
        _ => Aspect::Existence,
    }
}

fn hash_effect(effect: &Effect, canon: &mut Canon) {
    match effect {
        Effect::Read(target) => target.hash(canon),
        Effect::List { kind, namespace } => (kind, namespace).hash(canon),
        Effect::Token(wish) => wish.hash(canon),
        Effect::Write(write) => write.hash(canon),
        Effect::Call { to, call } => (to, call.method(), arguments(call)).hash(canon),
        Effect::Host(op) => op.hash(canon),
        Effect::Nothing => {}
    }
}

macro_rules! define_arguments {
    ($($service:ident.$name:ident($request:ty) -> $response:ty { $($columns:tt)* })*) => {
        /// All arguments of a call, as they are sent. States whose late calls differ in any of them are different states.
        fn arguments(call: &Call) -> Vec<u8> {
            match call { $(Call::$name(request) => request.encode_to_vec(),)* }
        }
    };
}
csi::for_each_method!(define_arguments);

#[cfg(test)]
mod tests {
    use super::*;
    use csi::v1;

    fn expand(bytes: i64) -> u64 {
        let capacity_range = Some(v1::CapacityRange { required_bytes: bytes, limit_bytes: 0 });
        let request = v1::ControllerExpandVolumeRequest {
            volume_id: "v1".into(),
            capacity_range,
            ..v1::ControllerExpandVolumeRequest::default()
        };
        let mut canon = Canon::default();
        let effect = Effect::call_driver("d", Call::ControllerExpandVolume(request));
        hash_effect(&effect, &mut canon);
        canon.state()
    }

    #[test]
    fn late_calls_with_other_arguments_make_other_states() {
        assert_eq!(expand(1 << 30), expand(1 << 30));
        assert_ne!(expand(1 << 30), expand(2 << 30));
    }
}
