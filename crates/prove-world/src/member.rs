//! One controller of a pretend world: the engine that `io-run` runs, with a cache of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::hash::Hash;
use std::sync::{Arc, OnceLock};

use api::{Kind, Object, ObjectKey, ObjectRef};
use control::{Action, Cache, Change, Decision, Effect, Engine, Fold, Outcome, Permission, Rules, Timestamp, Why};

use crate::canon::{Canon, Piece};
use crate::cluster::{Cluster, Event, Held, NOW_MILLIS};
use crate::truth::Truth;

/// Outcomes are remembered at this moment, and decisions are taken a day later: every pause is over when a key is
/// looked at. Being slow to decide is a schedule of its own, so no behaviour is lost.
const REMEMBER: Timestamp = Timestamp(NOW_MILLIS);
pub(crate) const DECIDE: Timestamp = Timestamp(NOW_MILLIS + 86_400_000);

pub use control::Rules as Actor;

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
    /// Begins it; `asked` is the version that the kind it reads has.
    fn begin(&mut self, at: usize, asked: u64);
    /// The version at which something that was begun was asked for.
    fn asked(&self, at: usize) -> u64;
    /// What its cache has of an object.
    fn cached(&self, target: &ObjectRef) -> Option<Object>;
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
    engine: Arc<Engine<R>>,
    cache: Arc<Cache>,
    pieces: Arc<BTreeMap<(Kind, ObjectKey), Arc<Held>>>,
    /// What could be begun now, by key: the engine takes the first that is due, exploration takes any.
    ready: Vec<Ready<R>>,
    /// What is under way, by key, and at which version it was asked for.
    held: Vec<(R::Key, Arc<Intent>, u64)>,
    /// Worked out when somebody asks.
    piece: OnceLock<Piece>,
}

/// An action that is decided on.
struct Ready<R: Rules> {
    key: R::Key,
    action: R::Action,
    why: Why,
    intent: Arc<Intent>,
}

impl<R: Rules> Clone for Ready<R> {
    fn clone(&self) -> Self {
        let (key, action) = (self.key.clone(), self.action.clone());
        Ready { key, action, why: self.why.clone(), intent: self.intent.clone() }
    }
}

impl<R: Rules> Instance<R> {
    /// A controller that has just started.
    pub(crate) fn start(name: &str, node: &str, seat: Seat<R>, cluster: &Cluster, truth: &Truth) -> Arc<dyn Member> {
        let mut instance = Instance {
            name: name.into(),
            node: node.into(),
            seat,
            engine: Arc::new(Engine::new((seat.build)(truth, node))),
            cache: Arc::default(),
            pieces: Arc::default(),
            ready: Vec::new(),
            held: Vec::new(),
            piece: OnceLock::new(),
        };
        instance.restart(cluster, truth);
        Arc::new(instance)
    }

    fn engine(&mut self) -> &mut Engine<R> {
        Arc::make_mut(&mut self.engine)
    }

    fn wake(&mut self, change: Option<Change>) {
        if let Some(change) = change {
            Arc::make_mut(&mut self.engine).changed(REMEMBER, &change, &self.cache);
        }
    }

    /// Looks at every key in the queue. One that rests leaves it: looking later could only show what would wake it.
    fn settle(&mut self) {
        self.ready.clear();
        let queued: Vec<R::Key> = self.engine.queued().cloned().collect();
        for key in queued {
            let decision = self.cache.checked::<R, _>(|cache| self.engine.decide(DECIDE, &key, cache));
            match decision {
                Decision::Rest(_) | Decision::Either(..) => self.engine().rest(&key),
                Decision::Wait(..) => {}
                Decision::Do(action, why) => {
                    let intent = Intent { label: format!("{} {key}", action.name()), effect: action.effect() };
                    self.ready.push(Ready { key, action, why, intent: Arc::new(intent) });
                }
            }
        }
        self.piece = OnceLock::new();
    }

    /// Rows of failures only lengthen pauses, and pauses take no time here, so they tell no states apart.
    fn measure(&self) -> Piece {
        let mut canon = Canon::default();
        for held in self.pieces.values() {
            canon.add(held.piece());
        }
        for (key, memory, _) in self.engine.remembered().filter(|(_, memory, _)| **memory != R::Memory::default()) {
            (key, memory).hash(&mut canon);
        }
        for key in self.engine.queued() {
            key.hash(&mut canon);
        }
        for (key, doing) in self.engine.under_way() {
            (key, &doing.action).hash(&mut canon);
        }
        (self.seat.digest)(self.engine.local(), &mut canon);
        canon.piece()
    }

    fn fold(&mut self, fold: Fold, held: Option<&Arc<Held>>) {
        let id = match &fold {
            Fold::Set(object) => (object.kind(), object.meta().key()),
            Fold::Gone { kind, key, .. } => (*kind, key.clone()),
        };
        let gone = matches!(fold, Fold::Gone { .. });
        let change = Arc::make_mut(&mut self.cache).fold(fold);
        let pieces = Arc::make_mut(&mut self.pieces);
        match (&change, held) {
            (Some(_), _) if gone => drop(pieces.remove(&id)),
            (Some(_), Some(held)) => drop(pieces.insert(id, held.clone())),
            (Some(_) | None, _) => {}
        }
        self.wake(change);
    }
}

impl<R: Rules> Member for Instance<R> {
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
            engine: self.engine.clone(),
            cache: self.cache.clone(),
            pieces: self.pieces.clone(),
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
        &self.held[at].1
    }

    fn begin(&mut self, at: usize, asked: u64) {
        let Ready { key, action, why, intent } = self.ready.remove(at);
        self.engine().begin(&key, action, why);
        let at = self.held.partition_point(|(other, ..)| *other < key);
        self.held.insert(at, (key, intent, asked));
        self.piece = OnceLock::new();
    }

    fn asked(&self, at: usize) -> u64 {
        self.held[at].2
    }

    fn cached(&self, target: &ObjectRef) -> Option<Object> {
        self.cache.get(target.kind, &target.key)
    }

    fn finish(&mut self, at: usize, outcome: &Outcome, held: Option<&Arc<Held>>) {
        let (key, ..) = self.held.remove(at);
        if let Some(fold) = self.engine.fold(&key, outcome) {
            self.fold(fold, held);
        }
        let cache = self.cache.clone();
        self.engine().ended(REMEMBER, &key, outcome, &cache);
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
                Arc::make_mut(&mut self.pieces).insert(id, event.held.clone());
            }
            change
        };
        if change.is_some() {
            self.wake(change);
            self.settle();
        }
    }

    fn refresh(&mut self, truth: &Truth) {
        let mut local = self.engine.local().clone();
        if (self.seat.refresh)(&mut local, truth, &self.node) {
            let cache = self.cache.clone();
            self.engine().update_local(REMEMBER, &cache, |before| *before = local);
            self.settle();
        }
    }

    fn restart(&mut self, cluster: &Cluster, truth: &Truth) {
        self.held.clear();
        let mut cache = Cache::of::<R>();
        let mut pieces = BTreeMap::new();
        for kind in R::watches() {
            let objects: Vec<_> = cluster.all(*kind).map(|held| held.object.clone()).collect();
            for held in cluster.all(*kind) {
                pieces.insert((*kind, held.object.meta().key()), held.clone());
            }
            cache.replace(*kind, cluster.version(*kind), objects);
        }
        let mut engine = Engine::new((self.seat.build)(truth, &self.node));
        engine.wake_all(REMEMBER, &cache);
        (self.engine, self.cache, self.pieces) = (Arc::new(engine), Arc::new(cache), Arc::new(pieces));
        self.settle();
    }

    fn remembered(&self) -> usize {
        self.engine.remembered().count()
    }

    fn remembered_key(&self, at: usize) -> String {
        self.engine.remembered().nth(at).map(|(key, ..)| key.to_string()).unwrap_or_default()
    }

    fn erase(&mut self, at: usize) {
        let key = self.engine.remembered().nth(at).map(|(key, ..)| key.clone());
        if let Some(key) = key {
            self.engine().forget(REMEMBER, &key);
            self.settle();
        }
    }

    fn piece(&self) -> &Piece {
        self.piece.get_or_init(|| self.measure())
    }

    fn waits(&self) -> bool {
        self.engine.waiting() > 0
    }

    fn overslept(&self) -> Option<String> {
        R::keys(&self.cache, self.engine.local()).into_iter().find_map(|key| {
            match self.engine.decide(DECIDE, &key, &self.cache) {
                Decision::Rest(_) | Decision::Wait(..) | Decision::Either(..) => None,
                Decision::Do(action, _) => Some(format!("{key} should {}", action.name())),
            }
        })
    }

    fn describe(&self, out: &mut String) {
        let mut keys: BTreeSet<_> = R::keys(&self.cache, self.engine.local()).into_iter().collect();
        keys.extend(self.engine.queued().cloned());
        for key in keys {
            let line = match (self.engine.doing(&key), self.engine.decide(DECIDE, &key, &self.cache)) {
                (Some(doing), _) => format!("doing {}", doing.action.name()),
                (None, Decision::Wait(_, why)) => format!("waits: {why}"),
                (None, Decision::Do(action, why)) => format!("will {}: {why}", action.name()),
                (None, rest @ (Decision::Rest(_) | Decision::Either(..))) => format!("rests: {}", rest.why()),
            };
            let _ = writeln!(out, "  {} {key}: {line}", self.name);
        }
    }
}
