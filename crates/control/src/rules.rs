use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{Debug, Display};
use core::hash::Hash;

use api::{Kind, ObjectRef};

use crate::route::{self, Kinds, Route};
use crate::{Attempt, BackOff, Cache, Change, Decision, Effect, HandleOf, Lane, Outcome, Reason, Timestamp, Why};

/// A controller, as pure functions.
///
/// An [`Engine`](crate::Engine) keeps one `Local` of facts from outside the API and one `Memory` per key, and is shown
/// one [`Cache`] of API objects. When an object changes, [`Rules::ROUTES`] say which keys to look at. For each key the
/// engine builds the [`Rules::view`], asks [`Rules::decide`], hands out at most one action, and feeds the outcome back
/// through [`Rules::learn`] and [`Rules::remember`]. The engine counts failures and backs off; rules do not.
pub trait Rules: Sized + 'static {
    /// The controller's name, for logs, metrics and `explain`.
    const NAME: &'static str;

    /// What one decision is about.
    type Key: Clone + Ord + Hash + Debug + Display + Send + Sync + 'static;
    /// Facts from outside the API: driver names and sockets, records on disk, running processes. True at all times as
    /// far as this machine can see; rebuilt at start by whoever runs the rules.
    type Local: Clone + Hash + Send + Sync + 'static;
    /// Everything a decision looks at, and nothing else.
    type View: Debug;
    /// The closed set of things this controller does.
    type Action: Action;
    /// The closed set of reasons for what it does and does not do.
    type Reason: Reason;
    /// A hint kept between decisions. Erasing it at any moment must break no law.
    type Memory: Clone + Default + Debug + PartialEq + Eq + Hash + Send + Sync + 'static;

    /// The kinds of objects that must be in the cache, and the keys a change of each concerns; written with
    /// [`routes!`](crate::routes). Whatever [`Rules::view`] reads has its row.
    const ROUTES: &'static [Route<Self>];

    /// The kinds with a route. Nothing is decided before each has been listed. Only rules that wrap other rules say it
    /// themselves.
    fn watches() -> &'static [Kind] {
        Kinds::<Self>::ALL
    }

    /// The keys a change concerns, by the routes. `cache` already holds the change. Only rules that wrap other rules
    /// say it themselves.
    fn wakes(change: &Change, cache: &Cache, local: &Self::Local) -> Vec<Self::Key> {
        route::wakes::<Self>(change, cache, local)
    }

    /// Every key there is: asked at start, and whenever `Local` changed from outside.
    fn keys(cache: &Cache, local: &Self::Local) -> Vec<Self::Key>;

    /// The facts about one key.
    fn view(key: &Self::Key, cache: &Cache, local: &Self::Local) -> Self::View;

    /// What to do about them.
    fn decide(now: Timestamp, view: &Self::View, memory: &Self::Memory) -> Decision<Self::Action, Self::Reason>;

    /// What to keep in mind of an action's outcome.
    fn remember(now: Timestamp, memory: Self::Memory, did: &Self::Action, got: &Outcome) -> Self::Memory;

    /// Updates the facts outside the API after an action, and answers with the other keys whose views read what changed.
    fn learn(local: &mut Self::Local, did: &Self::Action, got: &Outcome, cache: &Cache) -> Vec<Self::Key>;

    /// How long a key is left alone after a failure.
    fn back_off(_local: &Self::Local) -> BackOff {
        BackOff::default()
    }

    /// How it finds volumes of in-tree plugins by a driver's handle, if it does; all rules that do it do it alike.
    const HANDLE_OF: Option<HandleOf> = None;

    /// The object a key is about.
    fn object(key: &Self::Key) -> ObjectRef;

    /// Everything a key is about, where that is more than one object: a volume on a node is about both. `explain` tells
    /// of a key only when it was asked about all of them.
    fn about(key: &Self::Key, _cache: &Cache, _local: &Self::Local) -> Vec<ObjectRef> {
        alloc::vec![Self::object(key)]
    }
}

/// What a controller tells users, beside what its actions say in [`Action::news`].
pub trait Narrate: Rules {
    /// The objects that get the events about a key.
    fn event_targets(key: &Self::Key, _cache: &Cache, _local: &Self::Local) -> Vec<ObjectRef> {
        alloc::vec![Self::object(key)]
    }

    /// The Event to emit while a key rests with `why`; `None` for no Event.
    fn rest_event(_key: &Self::Key, _why: &Why<Self::Reason>) -> Option<(EventType, &'static str)> {
        None
    }

    /// For how many milliseconds a key must rest with the same words before that Event is emitted. Most waits are over
    /// before anybody could look.
    fn patience(_why: &Why<Self::Reason>) -> u64 {
        2_000
    }
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// All is well.
    Normal,
    /// Something is wrong.
    Warning,
}

impl EventType {
    /// As events say it.
    pub fn name(self) -> &'static str {
        match self {
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        }
    }
}

/// What users are told of an action: reasons as the Go programs have them, and words of our own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// When it begins.
    pub begun: Option<(&'static str, String)>,
    /// When it is done.
    pub done: Option<(&'static str, String)>,
    /// While it goes on for long, again and again; a warning.
    pub slow: Option<(&'static str, String)>,
    /// The reason of a failure's event; where there is none it is the reason of the decision.
    pub failed: Option<&'static str>,
}

/// One of the things a controller does.
pub trait Action: Clone + Debug + PartialEq + Eq + Hash + Send + Sync + 'static {
    /// Its name, fit for a metric label.
    fn name(&self) -> &'static str;

    /// The effect that carries it out. The same action always gives the same effect.
    fn effect(&self) -> Effect;

    /// How its outcome counts in the row of failures. A read that was answered may still not have brought what it was for.
    fn attempt(&self, got: &Outcome) -> Attempt {
        Attempt::of(got)
    }

    /// What it is an attempt at: only failures of the same lane and subject hold it back.
    fn lane(&self) -> Lane<'_> {
        Lane::default()
    }

    /// What users are told of it. Most actions are nobody's business until they fail.
    fn news(&self) -> News {
        News::default()
    }

    /// Every right the controller's actions need, complete and with nothing to spare: its RBAC role is printed from this.
    fn permissions() -> &'static [Permission];
}

/// The right to do something to the objects of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permission {
    /// On which kind.
    pub kind: Kind,
    /// On which part of it; empty for the main one.
    pub subresource: &'static str,
    /// The verb: `get`, `create`, `patch`, `delete`. Watching is implied by [`Rules::watches`].
    pub verb: &'static str,
}

impl Permission {
    /// The right to use `verb` on a kind, or on one of its subresources.
    pub const fn new(kind: Kind, subresource: &'static str, verb: &'static str) -> Permission {
        Permission { kind, subresource, verb }
    }
}
