//! Rules small enough to see through.

use api::{Kind, ObjectKey, ObjectRef, Patch, PersistentVolumeClaim, Write};
use control::{Action, BackOff, Cache, Change, Decision, Effect, Narrate, Outcome, Permission, Rules, Tick, Why};

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
    fn permissions() -> &'static [Permission] {
        &[]
    }
}

impl Narrate for Marking {}

impl Rules for Marking {
    const NAME: &'static str = "marking";
    type Key = ObjectKey;
    type Local = bool;
    type View = Option<PersistentVolumeClaim>;
    type Action = Mark;
    type Memory = ();

    fn watches() -> &'static [Kind] {
        &[Kind::PersistentVolumeClaim]
    }
    fn wakes(change: &Change, _: &Cache, _: &bool) -> Vec<ObjectKey> {
        change.sides().map(|object| object.meta().key()).collect()
    }
    fn keys(cache: &Cache, _: &bool) -> Vec<ObjectKey> {
        cache.claims().map(|claim| claim.metadata.key()).collect()
    }
    fn view(key: &ObjectKey, cache: &Cache, wanted: &bool) -> Self::View {
        cache.claim(key).filter(|_| *wanted).map(|claim| (**claim).clone())
    }
    fn decide(_: Tick, view: &Self::View, (): &()) -> Decision<Mark> {
        match view {
            None => Decision::Rest(Why::settled("Nothing", "nothing to mark")),
            Some(claim) if claim.metadata.has_finalizer(MARK) => Decision::Rest(Why::settled("Marked", "marked")),
            Some(claim) => Decision::Do(Mark(claim.clone()), Why::waiting("Marking", "marking the claim")),
        }
    }
    fn remember(_: Tick, (): (), _: &Mark, _: &Outcome) {}
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
