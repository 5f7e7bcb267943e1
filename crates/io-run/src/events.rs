//! Kubernetes events: what users see in `kubectl describe`. A side channel: it may drop, it never delays.
//!
//! What is said again about the same object is counted on the event that is there, as the Go programs do it, and
//! unlike them also after a restart. How many events a process writes is bounded, so that telling of the work costs the
//! API server little beside the work itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use api::{Kind, Object, ObjectRef, Patch, Precondition, ResourceVersion, Value, Write};
use control::{Effect, EventType, Outcome, Refusal, Reply, Timestamp};
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
    /// It is still true later, and waits for its turn instead of being dropped.
    lasts: bool,
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
/// The longest name an object may have.
const LONGEST_NAME: usize = 253;
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
        if self.queue.try_send(Said { object, tone, reason, message, at, by, lasts: false }).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Says something about an object that will be true for a while: it is written when there is time for it. `false`
    /// if too much waits to be written; say it again later. Never waits.
    #[must_use]
    pub fn say_lasting(
        &self,
        by: &'static str,
        object: Object,
        tone: EventType,
        reason: &'static str,
        message: String,
        at: Timestamp,
    ) -> bool {
        self.queue.try_send(Said { object, tone, reason, message, at, by, lasts: true }).is_ok()
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
    event: Told,
}

/// An event that is there.
#[derive(Clone)]
struct Told {
    target: ObjectRef,
    times: i64,
    /// Its version as the server answered it: a count is raised from what it is, never from what it was.
    version: Option<ResourceVersion>,
}

struct Writer {
    hands: Arc<dyn Hands>,
    last: HashMap<(ObjectRef, &'static str), Last>,
    turns: u32,
    since: tokio::time::Instant,
    dropped: Arc<AtomicU64>,
}

impl Writer {
    async fn run(mut self, mut heard: mpsc::Receiver<Said>) {
        while let Some(said) = heard.recv().await {
            let id = (said.object.reference(), said.reason);
            let known = self.last.get(&id).filter(|last| last.message == said.message);
            if known.is_some_and(|last| said.at.0 < last.at.0 + QUIET_MILLIS) {
                continue;
            }
            let known = known.map(|last| last.event.clone());
            let mut may = self.may_speak();
            while said.lasts && !may {
                tokio::time::sleep(REST).await;
                may = self.may_speak();
            }
            if !may {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            // An event that could not be written is not one that can be counted on.
            let Some(event) = self.put(&said, known).await else {
                self.last.remove(&id);
                continue;
            };
            if self.last.len() >= REMEMBERED {
                self.last.clear();
            }
            self.last.insert(id, Last { message: said.message, at: said.at, event });
        }
    }

    /// Says it: on the event that is there, or on a new one. The name of an event follows from what it says, so that
    /// one said before a restart, or by another process that led before, is found and counted on.
    async fn put(&self, said: &Said, known: Option<Told>) -> Option<Told> {
        if let Some(told) = known {
            match self.count(&told, said.at).await {
                Ok(told) => return Some(told),
                // Somebody else counted, or it expired.
                Err(Outcome::Refused(Refusal::Conflict | Refusal::NotFound)) => {}
                Err(_) => return None,
            }
        }
        let write = event(said);
        let target = write.target().clone();
        match self.write(write).await {
            Outcome::Done(reply) => Some(told(target, &reply, 1)),
            Outcome::Refused(Refusal::AlreadyExists) => {
                let seen = self.write(patch(target.clone(), None, json!({ "lastTimestamp": said.at.to_time() }))).await;
                let Outcome::Done(reply) = seen else { return None };
                self.count(&told(target, &reply, 1), said.at).await.ok()
            }
            Outcome::Refused(_) | Outcome::Unknown(_) => None,
        }
    }

    async fn count(&self, event: &Told, at: Timestamp) -> Result<Told, Outcome> {
        let times = event.times.saturating_add(1);
        let body = json!({ "count": times, "lastTimestamp": at.to_time() });
        match self.write(patch(event.target.clone(), event.version.clone(), body)).await {
            Outcome::Done(reply) => Ok(told(event.target.clone(), &reply, times)),
            other => Err(other),
        }
    }

    async fn write(&self, write: Write) -> Outcome {
        self.hands.perform(Effect::Write(write)).await
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

fn patch(target: ObjectRef, version: Option<ResourceVersion>, body: Value) -> Write {
    let only_if = Precondition { uid: None, resource_version: version };
    Write::Patch { target, subresource: None, patch: Patch::merge(only_if, body) }
}

/// The event as the server answered it; said so many times if it does not say.
fn told(target: ObjectRef, reply: &Reply, times: i64) -> Told {
    match reply {
        Reply::Object(Object::Event(event)) => {
            Told { target, times: event.count.max(1), version: Some(event.metadata.resource_version.clone()) }
        }
        _ => Told { target, times, version: None },
    }
}

fn event(said: &Said) -> Write {
    let meta = said.object.meta();
    let namespace = if meta.namespace.is_empty() { "default" } else { &meta.namespace };
    let (name, time, component) = (name(said), said.at.to_time(), format!("longshore-{}", said.by));
    let body = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": { "name": name, "namespace": namespace },
        "involvedObject": {
            "apiVersion": said.object.kind().api_version(), "kind": said.object.kind().name(),
            "name": meta.name, "namespace": meta.namespace, "uid": meta.uid,
        },
        "type": said.tone.name(), "reason": said.reason, "message": said.message,
        "source": { "component": component },
        "reportingComponent": component, "reportingInstance": "",
        "firstTimestamp": time, "lastTimestamp": time, "count": 1,
    });
    Write::Create { target: ObjectRef::namespaced(Kind::Event, namespace, name), body }
}

/// A name that the same words about the same object by the same component always have.
fn name(said: &Said) -> String {
    let meta = said.object.meta();
    let parts = [said.object.kind().name(), &meta.uid, said.by, said.tone.name(), said.reason, &said.message];
    // FNV-1a; a byte that is in no text ends each part.
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0xff]));
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    // Names of objects are ASCII, and no longer than 253 characters; so must this one be.
    let about: String = meta.name.chars().take(LONGEST_NAME - 17).collect();
    format!("{}.{hash:016x}", about.trim_end_matches(['.', '-']))
}
