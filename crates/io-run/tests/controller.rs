//! One controller at work.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

mod marking;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::{Kind, Meta, Object, PersistentVolumeClaim, Write};
use control::{Effect, Outcome, Refusal, Reply};
use io_run::{Clock, Controller, Events, Hands, Panics, Parts, SharedCache, Verdict};
use tokio::sync::Semaphore;

use marking::{MARK, Marking};

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
    let mut metadata = Meta {
        uid: name.into(),
        resource_version: api::ResourceVersion(version.to_string()),
        ..Meta::in_namespace("n", name)
    };
    if marked {
        metadata.finalizers.push(MARK.into());
    }
    PersistentVolumeClaim { metadata, ..Default::default() }.into()
}

fn controller(hands: &Arc<Slow>) -> (Arc<SharedCache>, Arc<Controller<Marking>>) {
    let facts: Arc<SharedCache> = Arc::default();
    let events = Events::start(hands.clone());
    let (clock, metrics) = (Arc::new(Clock::default()), Arc::default());
    let parts = Parts {
        cache: facts.clone(),
        hands: hands.clone(),
        clock,
        events: Some(events),
        metrics,
        panics: Arc::default(),
    };
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

/// Hands that panic for one claim and do their work for all others.
struct Fragile(Arc<Slow>);

impl Hands for Fragile {
    fn perform(&self, effect: Effect) -> Pin<Box<dyn Future<Output = Outcome> + Send + '_>> {
        if let Effect::Write(Write::Patch { target, .. }) = &effect {
            assert_ne!(target.key.name, "bad", "planted");
        }
        self.0.perform(effect)
    }
}

// A defect in one action ends neither its controller nor the process: its outcome is unknown, and it is told.
#[tokio::test]
async fn an_action_that_panics_is_unknown_and_the_others_go_on() {
    let (slow, panics) = (Slow::new(99), Arc::<Panics>::default());
    let cache: Arc<SharedCache> = Arc::default();
    let parts = Parts {
        cache: cache.clone(),
        hands: Arc::new(Fragile(slow.clone())),
        clock: Arc::new(Clock::default()),
        events: None,
        metrics: Arc::default(),
        panics: panics.clone(),
    };
    let controller = Controller::<Marking>::new(&parts, true);
    let running = tokio::spawn(controller.clone().run());
    assert_eq!(panics.health(), Ok(()));
    cache.replace(Kind::PersistentVolumeClaim, 5, vec![claim("bad", 3, false), claim("good", 4, false)]);
    settle().await;
    assert_eq!(slow.begun(), 1, "the other claim is marked");
    let said = controller.explain(&claim("bad", 3, false));
    assert!(matches!(said[0].verdict, Verdict::Waits(_)) && said[0].why.text.contains("panic"), "{said:?}");
    let told = panics.health().unwrap_err().to_string();
    assert!(told.contains("marking") && told.contains("planted"), "{told}");
    assert!(
        parts
            .metrics
            .text()
            .contains(r#"longshore_actions_total{controller="marking",action="Mark",outcome="unknown"}"#)
    );
    controller.stop();
    running.await.unwrap();
}

// KL-85: users hear of an action that takes long, and of none that does not.
#[tokio::test(start_paused = true)]
async fn what_takes_long_is_told_while_it_does() {
    let hands = Slow::new(0);
    let (facts, controller) = controller(&hands);
    tokio::spawn(controller.clone().run());
    facts.replace(Kind::PersistentVolumeClaim, 5, vec![claim("a", 3, false)]);
    settle().await;
    tokio::time::sleep(Duration::from_secs(29)).await;
    settle().await;
    assert_eq!((hands.begun(), hands.events.lock().unwrap().len()), (1, 0), "it may take a moment");
    tokio::time::sleep(Duration::from_secs(2)).await;
    settle().await;
    assert_eq!(hands.events.lock().unwrap().concat(), "the mark takes long");
    hands.permits.add_permits(1);
    settle().await;
    assert_eq!(hands.begun(), 1, "it is done once");
}
