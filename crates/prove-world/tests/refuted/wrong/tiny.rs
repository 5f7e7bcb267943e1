//! A controller of one annotation, with bad habits: for the laws that any rules could break.

use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

use api::{Kind, ObjectKey, ObjectRef, Patch, PersistentVolumeClaim, Precondition, Write};
use control::{Action, BackOff, Cache, Decision, Effect, Outcome, Permission, Route, Rules, Timestamp, Why, routes};
use serde_json::json;

const SAID: &str = "prove/said";
const CLAIM: [&str; 2] = ["default", "data"];

/// What it writes, and when it looks.
pub trait Habit: Clone + fmt::Debug + Eq + Hash + Send + Sync + 'static {
    /// Changes wake it.
    const WAKES: bool = true;
    /// What its role allows.
    const MAY: &'static [Permission] =
        &[Permission { kind: Kind::PersistentVolumeClaim, subresource: "", verb: "patch" }];

    /// What it wants to say, given what it said, what the claim asks for, and whether it wrote in this incarnation.
    fn says(said: &str, asked: &str, wrote: bool) -> String;
}

/// Rules with a habit.
pub struct Tiny<H>(PhantomData<H>);

/// The one thing it looks at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TheClaim;

impl fmt::Display for TheClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the claim")
    }
}

/// Writes an annotation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Say<H> {
    text: String,
    habit: PhantomData<H>,
}

fn target() -> ObjectRef {
    ObjectRef::namespaced(Kind::PersistentVolumeClaim, CLAIM[0], CLAIM[1])
}

impl<H: Habit> Action for Say<H> {
    fn name(&self) -> &'static str {
        "Say"
    }

    fn effect(&self) -> Effect {
        let patch =
            Patch::merge(Precondition::default(), json!({ "metadata": { "annotations": { SAID: self.text } } }));
        Effect::Write(Write::Patch { target: target(), subresource: None, patch })
    }

    fn permissions() -> &'static [Permission] {
        H::MAY
    }
}

control::reasons! {
    /// Why something is said or not.
    pub enum TinyReason {
        Unsaid,
        Said,
    }
}

impl<H: Habit> Rules for Tiny<H> {
    const NAME: &'static str = "tiny";
    type Key = TheClaim;
    /// It wrote in this incarnation.
    type Local = bool;
    type View = (Option<Arc<PersistentVolumeClaim>>, bool);
    type Action = Say<H>;
    type Reason = TinyReason;
    type Memory = ();

    const ROUTES: &'static [Route<Self>] =
        routes![PersistentVolumeClaim => both(|_, woken| woken.wake_all(H::WAKES.then_some(TheClaim)))];

    fn keys(_: &Cache, _: &bool) -> Vec<TheClaim> {
        vec![TheClaim]
    }

    fn view(_: &TheClaim, cache: &Cache, wrote: &bool) -> Self::View {
        (cache.claim(&ObjectKey::new(CLAIM[0], CLAIM[1])), *wrote)
    }

    fn decide(_: Timestamp, (claim, wrote): &Self::View, (): &()) -> Decision<Say<H>, TinyReason> {
        let settled = Decision::Rest(Why::settled(TinyReason::Said, "everything is said"));
        let Some(claim) = claim else { return settled };
        let said = claim.metadata.annotation(SAID).unwrap_or_default();
        let asked = claim.spec.volume_attributes_class_name.as_deref().unwrap_or_default();
        let text = H::says(said, asked, *wrote);
        if text.is_empty() {
            return settled;
        }
        Decision::Do(Say { text, habit: PhantomData }, Why::waiting(TinyReason::Unsaid, "something is to be said"))
    }

    fn remember(_: Timestamp, (): (), _: &Say<H>, _: &Outcome) {}

    fn learn(wrote: &mut bool, _: &Say<H>, got: &Outcome, _: &Cache) -> Vec<TheClaim> {
        *wrote |= matches!(got, Outcome::Done(_));
        Vec::new()
    }

    fn back_off(_: &bool) -> BackOff {
        BackOff::default()
    }

    fn object(_: &TheClaim) -> ObjectRef {
        target()
    }
}

/// Greets in every incarnation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Greets;

impl Habit for Greets {
    fn says(_: &str, _: &str, wrote: bool) -> String {
        if wrote { String::new() } else { "hello".into() }
    }
}

/// Repeats what the claim asks for, and hears of no change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sleeps;

impl Habit for Sleeps {
    const WAKES: bool = false;

    fn says(said: &str, asked: &str, _: bool) -> String {
        if said == asked { String::new() } else { asked.into() }
    }
}

/// Never agrees with what it said.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wavers;

impl Habit for Wavers {
    fn says(said: &str, _: &str, _: bool) -> String {
        if said == "yes" { "no".into() } else { "yes".into() }
    }
}

/// Writes without any right to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Trespasses;

impl Habit for Trespasses {
    const MAY: &'static [Permission] = &[];

    fn says(said: &str, _: &str, _: bool) -> String {
        if said.is_empty() { "mine".into() } else { String::new() }
    }
}
