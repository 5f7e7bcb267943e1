use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{Debug, Display};
use core::hash::Hash;

use api::{Kind, ObjectRef};

use crate::{Cache, Change, Decision, Effect, Outcome, Tick, Why};

/// A controller, as pure functions.
///
/// The runner keeps one [`Cache`] of API objects, one `Local` of facts from outside the API, and one `Memory` per key.
/// When something changes it asks [`Rules::wakes`] whom that concerns; for each key it builds the [`Rules::view`],
/// asks [`Rules::decide`], performs at most one action, and folds the outcome back with [`Rules::learn`] and
/// [`Rules::remember`].
pub trait Rules {
    /// The controller's name, for logs, metrics and `explain`.
    const NAME: &'static str;

    /// What one decision is about.
    type Key: Clone + Ord + Debug + Display;
    /// Facts from outside the API: driver names and sockets, records on disk, running processes. True at all times as
    /// far as this machine can see; rebuilt at start by whoever runs the rules.
    type Local;
    /// Everything a decision looks at, and nothing else.
    type View;
    /// The closed set of things this controller does.
    type Action: Action;
    /// A hint kept between decisions. Erasing it at any moment must break no law.
    type Memory: Clone + Default + Debug + PartialEq + Eq + Hash;

    /// The kinds of objects that must be in the cache.
    fn watches() -> &'static [Kind];

    /// The keys a change concerns. `cache` already holds the change.
    fn wakes(change: &Change, cache: &Cache, local: &Self::Local) -> Vec<Self::Key>;

    /// Every key there is: asked at start, and whenever `Local` changed from outside.
    fn keys(cache: &Cache, local: &Self::Local) -> Vec<Self::Key>;

    /// The facts about one key.
    fn view(key: &Self::Key, cache: &Cache, local: &Self::Local) -> Self::View;

    /// What to do about them.
    fn decide(now: Tick, view: &Self::View, memory: &Self::Memory) -> Decision<Self::Action>;

    /// What to keep in mind of an action's outcome.
    fn remember(now: Tick, memory: Self::Memory, did: &Self::Action, got: &Outcome) -> Self::Memory;

    /// What is remembered, with the pauses after failures as long as the operator wants them. Controllers whose pauses
    /// nobody can choose leave them as they are.
    fn paced(memory: Self::Memory, _local: &Self::Local) -> Self::Memory {
        memory
    }

    /// What an action's outcome says about the facts outside the API.
    fn learn(local: &mut Self::Local, did: &Self::Action, got: &Outcome);

    /// Other keys that an action's outcome concerns, because it changed facts outside the API that they look at too.
    /// Controllers whose `Local` never changes by their own doing have none.
    fn stirs(_did: &Self::Action, _got: &Outcome, _cache: &Cache, _local: &Self::Local) -> Vec<Self::Key> {
        Vec::new()
    }

    /// The object a key is about.
    fn about(key: &Self::Key) -> ObjectRef;

    /// The objects whose users should hear of it when something goes wrong: where events go.
    fn concerns(key: &Self::Key, _cache: &Cache, _local: &Self::Local) -> Vec<ObjectRef> {
        alloc::vec![Self::about(key)]
    }

    /// What users are told while a key rests for this reason, if that is worth an event: its type and reason.
    fn plight(_key: &Self::Key, _why: &Why) -> Option<(Tone, &'static str)> {
        None
    }
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tone {
    /// All is well.
    Normal,
    /// Something is wrong.
    Warning,
}

impl Tone {
    /// As events say it.
    pub fn name(self) -> &'static str {
        match self {
            Tone::Normal => "Normal",
            Tone::Warning => "Warning",
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
    /// The reason of a failure's event; where there is none it is the reason of the decision.
    pub failed: Option<&'static str>,
}

/// One of the things a controller does.
pub trait Action: Clone + Debug + PartialEq + Eq + Hash {
    /// Its name, fit for a metric label.
    fn name(&self) -> &'static str;

    /// The effect that carries it out. The same action always gives the same effect.
    fn effect(&self) -> Effect;

    /// What went wrong, in words, if something did. A read that was answered may still not have brought what it was for.
    fn failure(&self, got: &Outcome) -> Option<String> {
        got.failure()
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
