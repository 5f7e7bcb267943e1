//! One controller of a pretend world: the real rules with a cache, a memory and a queue, as the runner keeps them.
//!
//! The order in which an answer is folded in is that of the real runner: cache, then local facts, then memory, then the
//! key is looked at again, and with it the keys the rules say the outcome stirs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::hash::Hash;
use std::sync::Arc;

use api::{Kind, ObjectKey};
use control::{Action, Cache, Change, Decision, Effect, Outcome, Permission, Reply, Rules, Tick};

use crate::canon::{Canon, Piece};
use crate::cluster::{Cluster, Event, Held, NOW_MILLIS};
use crate::truth::Truth;

/// Outcomes are remembered at this moment, and decisions are taken a day later: every pause is over when a key is
/// looked at. Being slow to decide is a schedule of its own, so no behaviour is lost.
const REMEMBER: Tick = Tick(NOW_MILLIS);
const DECIDE: Tick = Tick(NOW_MILLIS + 86_400_000);

/// Rules that can be played in a pretend world.
pub trait Actor:
    Rules<Key: Send + Sync, Local: Clone + Send + Sync, Memory: Send + Sync, Action: Send + Sync> + 'static
{
}

impl<R> Actor for R where
    R: Rules<Key: Send + Sync, Local: Clone + Send + Sync, Memory: Send + Sync, Action: Send + Sync> + 'static
{
}

/// How a controller learns about the world outside the API.
pub struct Seat<R: Rules> {
    /// The local facts as a fresh start finds them.
    pub build: fn(&Truth, &str) -> R::Local,
    /// Brings local facts up to date with what the machine shows by itself, such as processes. `false` if they were.
    pub refresh: fn(&mut R::Local, &Truth, &str) -> bool,
    /// What of them distinguishes one state from another.
    pub digest: fn(&R::Local, &mut dyn std::hash::Hasher),
}

impl<R: Rules> Clone for Seat<R> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<R: Rules> Copy for Seat<R> {}

/// Something a controller is about to do or is doing.
#[derive(Clone, Debug)]
pub(crate) struct Intent {
    /// Key and action, for people.
    pub(crate) label: String,
    pub(crate) effect: Effect,
}

/// A controller, whatever its rules.
pub(crate) trait Member: Send + Sync {
    fn name(&self) -> &str;
    /// The node whose machine it acts on; empty for none.
    fn node(&self) -> &str;
    fn watches(&self, kind: Kind) -> bool;
    fn permissions(&self) -> &'static [Permission];
    fn copy(&self) -> Box<dyn Member>;
    /// What could be begun now.
    fn ready(&self) -> usize;
    fn ready_intent(&self, at: usize) -> &Arc<Intent>;
    /// What has been begun and not answered.
    fn held(&self) -> usize;
    fn held_intent(&self, at: usize) -> &Arc<Intent>;
    fn begin(&mut self, at: usize);
    /// The answer to something begun; `held` is the object it carries.
    fn finish(&mut self, at: usize, outcome: &Outcome, held: Option<&Arc<Held>>);
    /// The event would tell nothing new.
    fn knows(&self, event: &Event) -> bool;
    fn deliver(&mut self, event: &Event);
    fn refresh(&mut self, truth: &Truth);
    fn restart(&mut self, cluster: &Cluster, truth: &Truth);
    /// Keys something is remembered about.
    fn remembered(&self) -> usize;
    fn remembered_key(&self, at: usize) -> String;
    fn erase(&mut self, at: usize);
    fn piece(&self) -> &Piece;
    /// Something is to be looked at again when time has passed.
    fn waits(&self) -> bool;
    /// A key nobody woke although there is something to do about it.
    fn overslept(&self) -> Option<String>;
    /// Every key's decision, for people.
    fn describe(&self, out: &mut String);
}

/// A controller with its rules.
///
/// Copied for every step that touches it, so what rarely changes is shared.
pub(crate) struct Instance<R: Rules> {
    name: Arc<str>,
    node: Arc<str>,
    seat: Seat<R>,
    local: Arc<R::Local>,
    cache: Arc<Cache>,
    pieces: Arc<BTreeMap<(Kind, ObjectKey), Piece>>,
    memory: Arc<BTreeMap<R::Key, R::Memory>>,
    due: BTreeSet<R::Key>,
    ready: Vec<Doing<R>>,
    held: Vec<Doing<R>>,
    piece: Piece,
}

/// An action that is decided on or under way.
struct Doing<R: Rules> {
    key: R::Key,
    action: R::Action,
    intent: Arc<Intent>,
}

impl<R: Rules> Clone for Doing<R> {
    fn clone(&self) -> Self {
        Doing { key: self.key.clone(), action: self.action.clone(), intent: self.intent.clone() }
    }
}

impl<R: Actor> Instance<R> {
    /// A controller that has just started.
    pub(crate) fn start(name: &str, node: &str, seat: Seat<R>, cluster: &Cluster, truth: &Truth) -> Arc<dyn Member> {
        let mut instance = Instance {
            name: name.into(),
            node: node.into(),
            seat,
            local: Arc::new((seat.build)(truth, node)),
            cache: Arc::default(),
            pieces: Arc::default(),
            memory: Arc::default(),
            due: BTreeSet::new(),
            ready: Vec::new(),
            held: Vec::new(),
            piece: Piece::default(),
        };
        instance.restart(cluster, truth);
        Arc::new(instance)
    }

    fn woken(&mut self, change: Option<Change>) {
        if let Some(change) = change {
            self.due.extend(R::wakes(&change, &self.cache, &self.local));
        }
    }

    fn decision(&self, key: &R::Key) -> Decision<R::Action> {
        let view = R::view(key, &self.cache, &self.local);
        let memory = self.memory.get(key).cloned().unwrap_or_default();
        R::decide(DECIDE, &view, &memory)
    }

    /// Looks at every due key. One that rests is no longer due: looking later could only show what would wake it.
    fn settle(&mut self) {
        self.ready.clear();
        for key in self.due.clone() {
            if self.held.iter().any(|busy| busy.key == key) {
                continue;
            }
            match self.decision(&key) {
                Decision::Rest(_) => {
                    self.due.remove(&key);
                }
                Decision::Wait(..) => {}
                Decision::Do(action, _) => {
                    let intent = Intent { label: format!("{} {key}", action.name()), effect: action.effect() };
                    self.ready.push(Doing { key, action, intent: Arc::new(intent) });
                }
            }
        }
        self.piece = self.measure();
    }

    fn measure(&self) -> Piece {
        let mut canon = Canon::default();
        for piece in self.pieces.values() {
            canon.add(piece);
        }
        for (key, memory) in &*self.memory {
            format!("{key:?}").hash(&mut canon);
            memory.hash(&mut canon);
        }
        for key in &self.due {
            format!("{key:?}").hash(&mut canon);
        }
        for doing in &self.held {
            format!("{:?}", doing.key).hash(&mut canon);
            doing.action.hash(&mut canon);
        }
        (self.seat.digest)(&self.local, &mut canon);
        canon.piece()
    }

    fn fold(&mut self, effect: &Effect, outcome: &Outcome, held: Option<&Arc<Held>>) {
        let Effect::Write(write) = effect else { return };
        let target = write.target();
        let id = (target.kind, target.key.clone());
        let change = match (outcome, held) {
            (Outcome::Done(Reply::Object(object)), Some(held)) => {
                let change = Arc::make_mut(&mut self.cache).fold(object.clone());
                if change.is_some() {
                    Arc::make_mut(&mut self.pieces).insert(id, held.piece.clone());
                }
                change
            }
            (Outcome::Done(Reply::Gone), _) => {
                let uid = self.cache.get(target.kind, &target.key).map(|object| object.meta().uid.clone());
                let change =
                    uid.and_then(|uid| Arc::make_mut(&mut self.cache).fold_gone(target.kind, &target.key, &uid));
                if change.is_some() {
                    Arc::make_mut(&mut self.pieces).remove(&id);
                }
                change
            }
            (Outcome::Done(_) | Outcome::Refused(_) | Outcome::Unknown(_), _) => None,
        };
        self.woken(change);
    }
}

impl<R: Actor> Member for Instance<R> {
    fn name(&self) -> &str {
        &self.name
    }

    fn node(&self) -> &str {
        &self.node
    }

    fn watches(&self, kind: Kind) -> bool {
        R::watches().contains(&kind)
    }

    fn permissions(&self) -> &'static [Permission] {
        R::Action::permissions()
    }

    fn copy(&self) -> Box<dyn Member> {
        Box::new(Instance::<R> {
            name: self.name.clone(),
            node: self.node.clone(),
            seat: self.seat,
            local: self.local.clone(),
            cache: self.cache.clone(),
            pieces: self.pieces.clone(),
            memory: self.memory.clone(),
            due: self.due.clone(),
            ready: self.ready.clone(),
            held: self.held.clone(),
            piece: self.piece.clone(),
        })
    }

    fn ready(&self) -> usize {
        self.ready.len()
    }

    fn ready_intent(&self, at: usize) -> &Arc<Intent> {
        &self.ready[at].intent
    }

    fn held(&self) -> usize {
        self.held.len()
    }

    fn held_intent(&self, at: usize) -> &Arc<Intent> {
        &self.held[at].intent
    }

    fn begin(&mut self, at: usize) {
        let begun = self.ready.remove(at);
        self.due.remove(&begun.key);
        self.held.push(begun);
        self.held.sort_by(|a, b| a.key.cmp(&b.key));
        self.piece = self.measure();
    }

    fn finish(&mut self, at: usize, outcome: &Outcome, held: Option<&Arc<Held>>) {
        let Doing { key, action, intent } = self.held.remove(at);
        self.fold(&intent.effect, outcome, held);
        R::learn(Arc::make_mut(&mut self.local), &action, outcome);
        let memories = Arc::make_mut(&mut self.memory);
        let memory = memories.remove(&key).unwrap_or_default();
        let memory = R::remember(REMEMBER, memory, &action, outcome);
        if memory != R::Memory::default() {
            memories.insert(key.clone(), memory);
        }
        self.due.insert(key);
        self.due.extend(R::stirs(&action, outcome, &self.cache, &self.local));
        self.settle();
    }

    fn knows(&self, event: &Event) -> bool {
        let object = &event.held.object;
        match self.cache.get(object.kind(), &object.meta().key()) {
            Some(held) => held.meta().version() >= object.meta().version(),
            None => event.gone,
        }
    }

    fn deliver(&mut self, event: &Event) {
        let object = &event.held.object;
        let id = (object.kind(), object.meta().key());
        let change = if event.gone {
            let change = Arc::make_mut(&mut self.cache).remove(object);
            if change.is_some() {
                Arc::make_mut(&mut self.pieces).remove(&id);
            }
            change
        } else {
            let change = Arc::make_mut(&mut self.cache).set(object.clone());
            if change.is_some() {
                Arc::make_mut(&mut self.pieces).insert(id, event.held.piece.clone());
            }
            change
        };
        if change.is_some() {
            self.woken(change);
            self.settle();
        }
    }

    fn refresh(&mut self, truth: &Truth) {
        if (self.seat.refresh)(Arc::make_mut(&mut self.local), truth, &self.node) {
            self.due.extend(R::keys(&self.cache, &self.local));
            self.settle();
        }
    }

    fn restart(&mut self, cluster: &Cluster, truth: &Truth) {
        self.local = Arc::new((self.seat.build)(truth, &self.node));
        self.memory = Arc::default();
        self.held.clear();
        let mut cache = Cache::default();
        let mut pieces = BTreeMap::new();
        for kind in R::watches() {
            let objects: Vec<_> = cluster.all(*kind).map(|held| held.object.clone()).collect();
            for held in cluster.all(*kind) {
                pieces.insert((*kind, held.object.meta().key()), held.piece.clone());
            }
            cache.replace(*kind, cluster.version(*kind), objects);
        }
        self.cache = Arc::new(cache);
        self.pieces = Arc::new(pieces);
        self.due = R::keys(&self.cache, &self.local).into_iter().collect();
        self.settle();
    }

    fn remembered(&self) -> usize {
        self.memory.len()
    }

    fn remembered_key(&self, at: usize) -> String {
        self.memory.keys().nth(at).map(ToString::to_string).unwrap_or_default()
    }

    fn erase(&mut self, at: usize) {
        if let Some(key) = self.memory.keys().nth(at).cloned() {
            Arc::make_mut(&mut self.memory).remove(&key);
            self.due.insert(key);
            self.settle();
        }
    }

    fn piece(&self) -> &Piece {
        &self.piece
    }

    fn waits(&self) -> bool {
        !self.due.is_empty()
    }

    fn overslept(&self) -> Option<String> {
        R::keys(&self.cache, &self.local).into_iter().find_map(|key| match self.decision(&key) {
            Decision::Rest(_) | Decision::Wait(..) => None,
            Decision::Do(action, _) => Some(format!("{key} should {}", action.name())),
        })
    }

    fn describe(&self, out: &mut String) {
        let mut keys: BTreeSet<_> = R::keys(&self.cache, &self.local).into_iter().collect();
        keys.extend(self.due.iter().cloned());
        for key in keys {
            let doing = self.held.iter().find(|busy| busy.key == key);
            let line = match (doing, self.decision(&key)) {
                (Some(doing), _) => format!("doing {}", doing.action.name()),
                (None, Decision::Rest(why)) => format!("rests: {why}"),
                (None, Decision::Wait(_, why)) => format!("waits: {why}"),
                (None, Decision::Do(action, why)) => format!("will {}: {why}", action.name()),
            };
            let _ = writeln!(out, "  {} {key}: {line}", self.name);
        }
    }
}
