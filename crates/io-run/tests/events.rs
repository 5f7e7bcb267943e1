//! Events: counted, bounded, and never in the way.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use api::{Meta, Object, PersistentVolumeClaim, Value, Write};
use control::{Effect, EventType, Outcome, Reply, Timestamp};
use io_run::{Events, Hands};

/// Takes down what is written; writes nothing while `hangs`.
#[derive(Default)]
struct Desk {
    written: Mutex<Vec<(&'static str, Value)>>,
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
            self.written.lock().unwrap().push((write.verb(), body));
            Outcome::Done(Reply::Nothing)
        })
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

#[tokio::test]
async fn a_server_that_hangs_holds_up_nobody() {
    let events = Events::start(Arc::new(Desk { hangs: true, ..Desk::default() }));
    for number in 0..1_000 {
        events.say("p", claim(&format!("c{number}")), EventType::Normal, "Reason", "words".into(), Timestamp(0));
    }
    settle().await;
    assert!(events.dropped() > 500);
}
