//! Events: counted, bounded, and never in the way.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use api::{Event, Meta, Object, PersistentVolumeClaim, Value, Write};
use control::{Effect, EventType, Outcome, Refusal, Reply, Timestamp};
use io_run::{Events, Hands};

/// Takes down what is written, and keeps events as an API server does; writes nothing while `hangs`.
#[derive(Default)]
struct Desk {
    written: Mutex<Vec<(&'static str, Value)>>,
    kept: Mutex<BTreeMap<String, Event>>,
    hangs: bool,
}

impl Hands for Desk {
    fn perform(&self, effect: Effect) -> Pin<Box<dyn Future<Output = Outcome> + Send + '_>> {
        Box::pin(async move {
            if self.hangs {
                std::future::pending::<()>().await;
            }
            let Effect::Write(write) = effect else { panic!("{effect:?}") };
            let body = match &write {
                Write::Create { body, .. } => body.clone(),
                Write::Patch { patch, .. } => patch.to_json(),
                other => panic!("{other:?}"),
            };
            self.written.lock().unwrap().push((write.verb(), body.clone()));
            self.keep(&write, &body)
        })
    }
}

impl Desk {
    fn keep(&self, write: &Write, body: &Value) -> Outcome {
        let mut kept = self.kept.lock().unwrap();
        let name = write.target().key.name.clone();
        let event = match (write, kept.get(&name).cloned()) {
            (Write::Create { .. }, Some(_)) => return Outcome::Refused(Refusal::AlreadyExists),
            (Write::Create { .. }, None) => Event { metadata: Meta::named("e"), count: 0 },
            (_, None) => return Outcome::Refused(Refusal::NotFound),
            (_, Some(event)) => event,
        };
        let version = body["metadata"]["resourceVersion"].as_str();
        if version.is_some_and(|version| version != event.metadata.resource_version.0) {
            return Outcome::Refused(Refusal::Conflict);
        }
        let count = body["count"].as_i64().unwrap_or(event.count);
        let mut metadata = event.metadata.clone();
        metadata.resource_version = format!("{}0", metadata.resource_version.0).as_str().into();
        let event = Event { metadata, count };
        kept.insert(name, event.clone());
        Outcome::Done(Reply::Object(event.into()))
    }

    fn counts(&self) -> Vec<i64> {
        self.kept.lock().unwrap().values().map(|event| event.count).collect()
    }
}

fn claim(name: &str) -> Object {
    let metadata = Meta { uid: name.into(), ..Meta::in_namespace("n", name) };
    PersistentVolumeClaim { metadata, ..Default::default() }.into()
}

async fn settle() {
    for _ in 0..2_000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_is_said_again_is_counted_on_the_event_that_is_there() {
    let desk = Arc::new(Desk::default());
    let events = Events::start(desk.clone());
    let say = |tone, words: &str, at| events.say("p", claim("c"), tone, "Reason", words.to_string(), Timestamp(at));
    say(EventType::Normal, "begun", 0);
    say(EventType::Warning, "failed", 1);
    say(EventType::Warning, "failed", 2);
    say(EventType::Warning, "failed", 60_000);
    settle().await;
    let written = desk.written.lock().unwrap().clone();
    let told: Vec<_> = written.iter().map(|(verb, body)| (*verb, &body["type"], &body["count"])).collect();
    assert_eq!(
        told,
        [
            ("create", &Value::from("Normal"), &Value::from(1)),
            ("create", &Value::from("Warning"), &Value::from(1)),
            ("patch", &Value::Null, &Value::from(2)),
        ]
    );
    assert_eq!(events.dropped(), 0);
}

// A restart, or a leader after another, finds what was said and counts on; no count is ever lowered.
#[tokio::test]
async fn what_was_said_before_a_restart_is_counted_on() {
    let desk = Arc::new(Desk::default());
    let say = |events: &Events, at| {
        events.say("p", claim("c"), EventType::Warning, "Reason", "failed".into(), Timestamp(at));
    };
    let first = Events::start(desk.clone());
    say(&first, 0);
    say(&first, 60_000);
    settle().await;
    let second = Events::start(desk.clone());
    say(&second, 120_000);
    settle().await;
    assert_eq!(desk.counts(), [3], "one event, said three times");
    say(&second, 180_000);
    settle().await;
    say(&first, 240_000);
    settle().await;
    assert_eq!(desk.counts(), [5], "the first does not go back to what it knew");
}

// In a cluster events go after an hour.
#[tokio::test]
async fn an_event_that_expired_is_made_anew() {
    let desk = Arc::new(Desk::default());
    let events = Events::start(desk.clone());
    let say = |at| events.say("p", claim("c"), EventType::Warning, "Reason", "failed".into(), Timestamp(at));
    say(0);
    settle().await;
    desk.kept.lock().unwrap().clear();
    say(60_000);
    settle().await;
    assert_eq!(desk.counts(), [1]);
}

#[tokio::test]
async fn other_words_another_object_or_another_speaker_make_another_event() {
    let desk = Arc::new(Desk::default());
    let events = Events::start(desk.clone());
    let say = |by, name: &str, words: &str| {
        events.say(by, claim(name), EventType::Warning, "Reason", words.into(), Timestamp(0));
        settle()
    };
    say("p", "c", "failed").await;
    say("p", "c", "failed twice").await;
    say("p", "d", "failed").await;
    say("q", "e", "failed").await;
    say("p", &"n".repeat(253), "failed").await;
    let kept = desk.kept.lock().unwrap();
    assert_eq!(kept.len(), 5, "{:?}", kept.keys());
    assert!(kept.keys().all(|name| name.len() <= 253 && name.is_ascii()));
}

// Thousands of volumes at once: some are told of, and the rest costs nobody anything.
#[tokio::test]
async fn a_storm_is_bounded_and_the_rest_is_counted() {
    let desk = Arc::new(Desk::default());
    let events = Events::start(desk.clone());
    for round in 0..20 {
        for number in 0..100 {
            events.say(
                "p",
                claim(&format!("c{round}-{number}")),
                EventType::Normal,
                "Reason",
                "words".into(),
                Timestamp(0),
            );
        }
        settle().await;
    }
    let written = desk.written.lock().unwrap().len();
    assert!((25..1_000).contains(&written), "{written} of 2000 were written");
    assert_eq!(events.dropped(), 2_000 - u64::try_from(written).unwrap());
}

// What will still be true later is told later, and all of it.
#[tokio::test(start_paused = true)]
async fn what_lasts_waits_for_its_turn() {
    let desk = Arc::new(Desk::default());
    let events = Events::start(desk.clone());
    for number in 0..100 {
        let object = claim(&format!("c{number}"));
        assert!(events.say_lasting("p", object, EventType::Normal, "Reason", "words".into(), Timestamp(0)));
    }
    while desk.counts().len() < 100 {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(events.dropped(), 0);
}

#[tokio::test]
async fn a_server_that_hangs_holds_up_nobody() {
    let events = Events::start(Arc::new(Desk { hangs: true, ..Desk::default() }));
    for number in 0..1_000 {
        events.say("p", claim(&format!("c{number}")), EventType::Normal, "Reason", "words".into(), Timestamp(0));
    }
    settle().await;
    assert!(events.dropped() > 500);
    let say = |_| events.say_lasting("p", claim("c"), EventType::Normal, "Reason", "words".into(), Timestamp(0));
    assert!(!(0..3).all(say), "the one that is being written has left one place");
}
