//! The runner, with rules small enough to see through: each claim is to carry a finalizer, written once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::{Kind, Meta, Object, ObjectKey, ObjectRef, Patch, PersistentVolumeClaim, Write};
use control::{
    Action, BackOff, Cache, Decision, Effect, Narrate, Outcome, Permission, Refusal, Reply, Route, Rules, Timestamp,
    Why, routes,
};
use io_run::{Clock, Controller, Events, Facts, Hands, Parts, Verdict};
use tokio::sync::Semaphore;

const MARK: &str = "test/mark";

struct Marking;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Mark(PersistentVolumeClaim);

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

control::reasons! {
    enum MarkingReason {
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

/// Hands that do one write for each permit, say what they are told to, and count.
struct Slow {
    permits: Semaphore,
    begun: AtomicUsize,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
    fails: AtomicUsize,
    events: Mutex<Vec<String>>,
}

impl Slow {
    fn new(permits: usize) -> Arc<Slow> {
        Arc::new(Slow {
            permits: Semaphore::new(permits),
            begun: AtomicUsize::new(0),
            at_once: AtomicUsize::new(0),
            most_at_once: AtomicUsize::new(0),
            fails: AtomicUsize::new(0),
            events: Mutex::default(),
        })
    }

    fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }
}

impl Hands for Slow {
    fn perform(&self, effect: Effect) -> Pin<Box<dyn Future<Output = Outcome> + Send + '_>> {
        Box::pin(async move {
            if let Effect::Write(Write::Create { body, .. }) = &effect {
                self.events.lock().unwrap().push(body["message"].as_str().unwrap().to_string());
                return Outcome::Done(Reply::Nothing);
            }
            let (target, version) = match effect {
                Effect::Write(Write::Patch { target, patch, .. }) => {
                    (target, patch.to_json()["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap())
                }
                effect => panic!("{effect:?}"),
            };
            self.begun.fetch_add(1, Ordering::SeqCst);
            let at_once = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_at_once.fetch_max(at_once, Ordering::SeqCst);
            self.permits.acquire().await.unwrap().forget();
            self.at_once.fetch_sub(1, Ordering::SeqCst);
            if self.fails.load(Ordering::SeqCst) > 0 {
                self.fails.fetch_sub(1, Ordering::SeqCst);
                return Outcome::Refused(Refusal::Denied("not today".into()));
            }
            Outcome::Done(Reply::Object(claim(&target.key.name, version + 100, true)))
        })
    }
}

fn claim(name: &str, version: u64, marked: bool) -> Object {
    let mut metadata =
        Meta { uid: name.into(), resource_version: version.to_string(), ..Meta::in_namespace("n", name) };
    if marked {
        metadata.finalizers.push(MARK.into());
    }
    PersistentVolumeClaim { metadata, ..Default::default() }.into()
}

fn controller(hands: &Arc<Slow>) -> (Arc<Facts>, Arc<Controller<Marking>>) {
    let facts: Arc<Facts> = Arc::default();
    let events = Events::start(hands.clone());
    let (clock, metrics) = (Arc::new(Clock::default()), Arc::default());
    let parts = Parts { facts: facts.clone(), hands: hands.clone(), clock, events: Some(events), metrics };
    (facts, Controller::new(&parts, true))
}

/// Lets everything that can run do so.
async fn settle() {
    for _ in 0..200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn nothing_is_decided_before_everything_watched_was_listed() {
    let hands = Slow::new(9);
    let (facts, controller) = controller(&hands);
    tokio::spawn(controller.clone().run());
    settle().await;
    assert_eq!(hands.begun(), 0);
    facts.replace(Kind::PersistentVolumeClaim, 5, vec![claim("a", 3, false), claim("b", 4, true)]);
    settle().await;
    assert_eq!(hands.begun(), 1);
}

// Reliability 106: one look per key at a time; and the answer to a write is seen by the next look (104).
#[tokio::test]
async fn a_key_is_worked_on_once_at_a_time_and_its_own_answer_is_a_fact() {
    let hands = Slow::new(0);
    let (facts, controller) = controller(&hands);
    tokio::spawn(controller.clone().run());
    facts.replace(Kind::PersistentVolumeClaim, 5, vec![claim("a", 3, false), claim("b", 4, false)]);
    settle().await;
    for version in 6..20 {
        facts.set(claim("a", version, false));
        settle().await;
    }
    assert_eq!(hands.begun(), 2, "one for each key, however often a key was woken");
    assert_eq!(hands.most_at_once.load(Ordering::SeqCst), 2, "different keys do not wait for each other");
    hands.permits.add_permits(2);
    settle().await;
    assert_eq!(hands.begun(), 2, "marked is marked, without waiting for a watch to say so");
    facts.set(claim("a", 500, false));
    settle().await;
    assert_eq!(hands.begun(), 3, "somebody took the mark off");
}

#[tokio::test]
async fn a_failure_is_retried_said_once_and_explained() {
    let hands = Slow::new(99);
    hands.fails.store(2, Ordering::SeqCst);
    let (facts, controller) = controller(&hands);
    tokio::spawn(controller.clone().run());
    facts.replace(Kind::PersistentVolumeClaim, 5, vec![claim("a", 3, false)]);
    settle().await;
    let said = controller.explain(&claim("a", 3, false));
    assert!(matches!(said[0].verdict, Verdict::Waits(_)), "{said:?}");
    assert_eq!(said[0].why.text, "marking the claim: the API server refused: not today");
    while hands.begun() < 3 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    settle().await;
    assert_eq!(controller.explain(&claim("a", 3, true))[0].verdict, Verdict::Rests);
    assert_eq!(*hands.events.lock().unwrap(), ["marking the claim: the API server refused: not today"]);
}

#[tokio::test]
async fn whoever_was_waited_for_is_back_and_nothing_waits_any_more() {
    let hands = Slow::new(99);
    hands.fails.store(10, Ordering::SeqCst);
    let (facts, controller) = controller(&hands);
    tokio::spawn(controller.clone().run());
    facts.replace(Kind::PersistentVolumeClaim, 5, vec![claim("a", 3, false)]);
    while hands.begun() < 4 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    hands.fails.store(0, Ordering::SeqCst);
    controller.start_over();
    settle().await;
    assert_eq!(hands.begun(), 5, "at once, not after the pause");
}

#[tokio::test]
async fn facts_from_outside_the_api_wake_everything() {
    let hands = Slow::new(99);
    let (facts, controller) = controller(&hands);
    controller.update_local(|wanted| *wanted = false);
    tokio::spawn(controller.clone().run());
    facts.replace(Kind::PersistentVolumeClaim, 5, vec![claim("a", 3, false)]);
    settle().await;
    assert_eq!(hands.begun(), 0);
    controller.update_local(|wanted| *wanted = true);
    settle().await;
    assert_eq!(hands.begun(), 1);
}

#[tokio::test]
async fn stopping_begins_nothing_new_and_waits_for_what_is_under_way() {
    let hands = Slow::new(0);
    let (facts, controller) = controller(&hands);
    let running = tokio::spawn(controller.clone().run());
    facts.replace(Kind::PersistentVolumeClaim, 5, vec![claim("a", 3, false)]);
    settle().await;
    controller.stop();
    facts.set(claim("b", 9, false));
    settle().await;
    assert!(!running.is_finished(), "the answer is still to come");
    hands.permits.add_permits(9);
    running.await.unwrap();
    assert_eq!(hands.begun(), 1);
}

// Reliability of leadership: nothing is begun without the lease, what was begun ends, and a standby is ready at once.
#[tokio::test]
async fn a_controller_begins_nothing_while_another_process_leads() {
    let hands = Slow::new(0);
    let (facts, controller) = controller(&hands);
    controller.lead(false);
    tokio::spawn(controller.clone().run());
    facts.replace(Kind::PersistentVolumeClaim, 5, vec![claim("a", 3, false), claim("b", 4, false)]);
    settle().await;
    assert_eq!(hands.begun(), 0);
    controller.at_once(1);
    controller.lead(true);
    settle().await;
    assert_eq!(hands.begun(), 1, "as many at once as allowed");
    controller.lead(false);
    hands.permits.add_permits(1);
    settle().await;
    assert_eq!(hands.begun(), 1, "the lease is lost: the second one is somebody else's");
    controller.lead(true);
    settle().await;
    assert_eq!(hands.begun(), 2);
}
