//! The wrong rules: the real ones, led astray in one place each.

mod attacher;
mod binding;
mod detach;
mod kubelet;
mod lifecycle;
mod node;
mod provision;
mod register;
mod resize;
mod scheduler;
mod tiny;
mod upstream;

use std::hash::Hash;
use std::marker::PhantomData;

use api::{Kind, ObjectRef};
use control::{BackOff, Cache, Change, Decision, HandleOf, Outcome, Route, Rules, Timestamp};

pub use attacher::{SaysAttached, SaysDetached};
pub use binding::{BindsTwice, ReleasesBound, TrustsCachedPods};
pub use detach::{ByName, CachedInUse, ForgetsGate, Mistaken, ReadsFresh, TrustsCsiNode, TrustsTaint};
pub use kubelet::{DropsRecord, ForgetsStaged, LeavesDirectories, TakesDownFirst};
pub use lifecycle::TrustsWatch;
pub use node::{
    Agent, DoesNotReport, DoesNotWait, ForgetsFirst, GrowsAnywhere, GrowsAtOnce, LetsWrite, Misled, NamesVolumes,
    ReadsNothing, Scribbles, Shares, SweepsNothing, TakesEarly, Tells, TellsPodsOnly, UnstagesFirst,
};
pub use provision::Trusting;
pub use register::{Crowds, Deregisters, Evicts, Flatters, GivesUp, Oblivious};
pub use resize::{AsksForLittle, GrowsOnPaper, NodeIsSwift, UnknownIsNo};
pub use scheduler::DoneWhenPlaced;
pub use tiny::{Greets, Habit, Sleeps, Tiny, Trespasses, Wavers};
pub use upstream::{DetachesOnTime, EmptyCache, ForgetsDetaching, LetsGoEarly, NeverHolds, NodeMustExist, Unguarded};

/// Where the real rules are led astray.
pub trait Astray: 'static {
    type Real: Rules;
    /// What is known of the world outside, and of this incarnation.
    type Local: Clone + Hash + Send + Sync + 'static;

    fn real(local: &Self::Local) -> &<Self::Real as Rules>::Local;

    fn view(key: &<Self::Real as Rules>::Key, cache: &Cache, local: &Self::Local) -> <Self::Real as Rules>::View {
        Self::Real::view(key, cache, Self::real(local))
    }

    fn decide(
        now: Timestamp,
        view: &<Self::Real as Rules>::View,
        memory: &<Self::Real as Rules>::Memory,
    ) -> Decision<<Self::Real as Rules>::Action, <Self::Real as Rules>::Reason> {
        Self::Real::decide(now, view, memory)
    }

    fn remember(
        now: Timestamp,
        memory: <Self::Real as Rules>::Memory,
        did: &<Self::Real as Rules>::Action,
        got: &Outcome,
    ) -> <Self::Real as Rules>::Memory {
        Self::Real::remember(now, memory, did, got)
    }

    fn learn(
        _: &mut Self::Local,
        _: &<Self::Real as Rules>::Action,
        _: &Outcome,
        _: &Cache,
    ) -> Vec<<Self::Real as Rules>::Key> {
        Vec::new()
    }
}

/// Rules led astray.
pub struct Led<A>(PhantomData<A>);

impl<A: Astray> Rules for Led<A> {
    const NAME: &'static str = A::Real::NAME;
    const HANDLE_OF: Option<HandleOf> = A::Real::HANDLE_OF;
    type Key = <A::Real as Rules>::Key;
    type Local = A::Local;
    type View = <A::Real as Rules>::View;
    type Action = <A::Real as Rules>::Action;
    type Reason = <A::Real as Rules>::Reason;
    type Memory = <A::Real as Rules>::Memory;

    const ROUTES: &'static [Route<Self>] = &[];

    fn watches() -> &'static [Kind] {
        A::Real::watches()
    }

    fn wakes(change: &Change, cache: &Cache, local: &A::Local) -> Vec<Self::Key> {
        A::Real::wakes(change, cache, A::real(local))
    }

    fn keys(cache: &Cache, local: &A::Local) -> Vec<Self::Key> {
        A::Real::keys(cache, A::real(local))
    }

    fn view(key: &Self::Key, cache: &Cache, local: &A::Local) -> Self::View {
        A::view(key, cache, local)
    }

    fn decide(now: Timestamp, view: &Self::View, memory: &Self::Memory) -> Decision<Self::Action, Self::Reason> {
        A::decide(now, view, memory)
    }

    fn remember(now: Timestamp, memory: Self::Memory, did: &Self::Action, got: &Outcome) -> Self::Memory {
        A::remember(now, memory, did, got)
    }

    fn learn(local: &mut A::Local, did: &Self::Action, got: &Outcome, cache: &Cache) -> Vec<Self::Key> {
        A::learn(local, did, got, cache)
    }

    fn back_off(local: &A::Local) -> BackOff {
        A::Real::back_off(A::real(local))
    }

    fn object(key: &Self::Key) -> ObjectRef {
        A::Real::object(key)
    }
}
