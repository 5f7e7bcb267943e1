//! Rules small enough to see through.

use api::{Kind, ObjectKey, ObjectRef, Patch, PersistentVolumeClaim, Write};
use control::{
    Action, BackOff, Cache, Decision, Effect, Narrate, News, Outcome, Permission, Route, Rules, Timestamp, Why, routes,
};

pub const MARK: &str = "test/mark";

/// Each claim is to carry a finalizer, written once; nothing is written while the local flag says no.
pub struct Marking;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mark(PersistentVolumeClaim);

impl Action for Mark {
    fn name(&self) -> &'static str {
        "Mark"
    }
    fn effect(&self) -> Effect {
        let target = ObjectRef { kind: Kind::PersistentVolumeClaim, key: self.0.metadata.key() };
        Effect::Write(Write::Patch { target, subresource: None, patch: Patch::add_finalizer(&self.0.metadata, MARK) })
    }
    fn news(&self) -> News {
        News { slow: Some(("SlowMark", "the mark takes long".into())), ..News::default() }
    }
    fn permissions() -> &'static [Permission] {
        &[]
    }
}

control::reasons! {
    pub enum MarkingReason {
        Nothing,
        Marked,
        Marking,
    }
}

impl Narrate for Marking {}

impl Rules for Marking {
    const NAME: &'static str = "marking";
    type Key = ObjectKey;
    type Local = bool;
    type View = Option<PersistentVolumeClaim>;
    type Action = Mark;
    type Reason = MarkingReason;
    type Memory = ();

    const ROUTES: &'static [Route<Self>] =
        routes![PersistentVolumeClaim => each(|claim, woken| woken.wake(claim.metadata.key()))];

    fn keys(cache: &Cache, _: &bool) -> Vec<ObjectKey> {
        cache.claims().map(|claim| claim.metadata.key()).collect()
    }
    fn view(key: &ObjectKey, cache: &Cache, wanted: &bool) -> Self::View {
        cache.claim(key).filter(|_| *wanted).map(|claim| (*claim).clone())
    }
    fn decide(_: Timestamp, view: &Self::View, (): &()) -> Decision<Mark, MarkingReason> {
        match view {
            None => Decision::Rest(Why::settled(MarkingReason::Nothing, "nothing to mark")),
            Some(claim) if claim.metadata.has_finalizer(MARK) => {
                Decision::Rest(Why::settled(MarkingReason::Marked, "marked"))
            }
            Some(claim) => Decision::Do(Mark(claim.clone()), Why::waiting(MarkingReason::Marking, "marking the claim")),
        }
    }
    fn remember(_: Timestamp, (): (), _: &Mark, _: &Outcome) {}
    fn learn(_: &mut bool, _: &Mark, _: &Outcome, _: &Cache) -> Vec<ObjectKey> {
        Vec::new()
    }
    fn back_off(_: &bool) -> BackOff {
        BackOff::default()
    }
    fn object(key: &ObjectKey) -> ObjectRef {
        ObjectRef { kind: Kind::PersistentVolumeClaim, key: key.clone() }
    }
}
