//! Kubernetes events: what users see in `kubectl describe`. A side channel: it may drop, it never delays.
//!
//! What is said again about the same object is counted on the event that is there, as the Go programs do it. How many events
//! a process writes is bounded, so that telling of the work costs the API server little beside the work itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use api::{Kind, Object, ObjectRef, Patch, Precondition, Write};
use control::{Effect, EventType, Outcome, Timestamp};
use serde_json::json;
use tokio::sync::mpsc;

use crate::Hands;

/// Said about one object.
struct Said {
    object: Object,
    tone: EventType,
    reason: &'static str,
    message: String,
    at: Timestamp,
    by: &'static str,
}

/// Where controllers say what users should know.
#[derive(Clone)]
pub struct Events {
    queue: mpsc::Sender<Said>,
    dropped: Arc<AtomicU64>,
}

/// Events waiting to be written. More than this at once is a storm; the rest is counted and dropped.
const WAITING: usize = 256;
/// The same words about the same object are not repeated within this time.
const QUIET_MILLIS: u64 = 30_000;
/// Objects whose last words are remembered, to bound the memory of a long life.
const REMEMBERED: usize = 4096;
/// So many events may be written at once, and one more every [`REST`] after that: a handful of volumes is told in full, and
/// of thousands made at once some. The Go programs come to the same by their limit on all requests.
const AT_ONCE: u32 = 25;
const REST: Duration = Duration::from_millis(100);
/// How long the end of a process waits for what was said last.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Events {
    /// Starts the writer.
    pub fn start(hands: Arc<dyn Hands>) -> Events {
        let (queue, said) = mpsc::channel(WAITING);
        let dropped = Arc::new(AtomicU64::new(0));
        let writer = Writer {
            hands,
            last: HashMap::new(),
            count: 0,
            turns: AT_ONCE,
            since: tokio::time::Instant::now(),
            dropped: dropped.clone(),
        };
        tokio::spawn(writer.run(said));
        Events { queue, dropped }
    }

    /// Says something about an object. Never waits.
    pub fn say(
        &self,
        by: &'static str,
        object: Object,
        tone: EventType,
        reason: &'static str,
        message: String,
        at: Timestamp,
    ) {
        if self.queue.try_send(Said { object, tone, reason, message, at, by }).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many were dropped because there were too many.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Waits a moment until what was said is written, for the end of a process.
    pub async fn settle(&self) {
        let written = async {
            while self.queue.capacity() < self.queue.max_capacity() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = tokio::time::timeout(LAST_WORDS, written).await;
    }
}

/// The last words about an object, and the event that says them.
struct Last {
    message: String,
    at: Timestamp,
    event: ObjectRef,
    times: u64,
}

struct Writer {
    hands: Arc<dyn Hands>,
    last: HashMap<(ObjectRef, &'static str), Last>,
    count: u64,
    turns: u32,
    since: tokio::time::Instant,
    dropped: Arc<AtomicU64>,
}

impl Writer {
    async fn run(mut self, mut heard: mpsc::Receiver<Said>) {
        while let Some(said) = heard.recv().await {
            let Some(write) = self.put(&said) else { continue };
            let outcome = self.hands.perform(Effect::Write(write)).await;
            // An event that could not be written is not one that can be counted on.
            if !matches!(outcome, Outcome::Done(_)) {
                self.last.remove(&(said.object.reference(), said.reason));
            }
        }
    }

    /// The write that says it, unless it was said already or too much was said lately.
    fn put(&mut self, said: &Said) -> Option<Write> {
        let id = (said.object.reference(), said.reason);
        let known = self.last.get(&id).filter(|last| last.message == said.message);
        if known.is_some_and(|last| said.at.0 < last.at.0 + QUIET_MILLIS) {
            return None;
        }
        if !self.may_speak() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        if let Some(last) = self.last.get_mut(&id).filter(|last| last.message == said.message) {
            (last.times, last.at) = (last.times + 1, said.at);
            let body = json!({ "count": last.times, "lastTimestamp": said.at.to_time() });
            let patch = Patch::merge(Precondition::default(), body);
            return Some(Write::Patch { target: last.event.clone(), subresource: None, patch });
        }
        if self.last.len() >= REMEMBERED {
            self.last.clear();
        }
        self.count += 1;
        let write = event(said, self.count);
        let (message, event) = (said.message.clone(), write.target().clone());
        self.last.insert(id, Last { message, at: said.at, event, times: 1 });
        Some(write)
    }

    fn may_speak(&mut self) -> bool {
        let rests = u32::try_from(self.since.elapsed().as_millis() / REST.as_millis()).unwrap_or(u32::MAX);
        self.turns = self.turns.saturating_add(rests).min(AT_ONCE);
        self.since += REST * rests;
        let may = self.turns > 0;
        self.turns = self.turns.saturating_sub(1);
        may
    }
}

fn event(said: &Said, count: u64) -> Write {
    let meta = said.object.meta();
    let namespace = if meta.namespace.is_empty() { "default" } else { &meta.namespace };
    let name = format!("{}.{:x}.{count:x}", meta.name, said.at.0);
    let time = said.at.to_time();
    let body = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": { "name": name, "namespace": namespace },
        "involvedObject": {
            "apiVersion": said.object.kind().api_version(), "kind": said.object.kind().name(),
            "name": meta.name, "namespace": meta.namespace, "uid": meta.uid,
        },
        "type": said.tone.name(), "reason": said.reason, "message": said.message,
        "source": { "component": format!("longshore-{}", said.by) },
        "reportingComponent": format!("longshore-{}", said.by), "reportingInstance": "",
        "firstTimestamp": time, "lastTimestamp": time, "count": 1,
    });
    Write::Create { target: ObjectRef::namespaced(Kind::Event, namespace, name), body }
}
