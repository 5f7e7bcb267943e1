//! Kubernetes events: what users see in `kubectl describe`. A side channel: it may drop, it never delays.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use api::{Kind, Object, ObjectRef, Write};
use control::{Effect, Tick};
use serde_json::json;
use tokio::sync::mpsc;

use crate::Hands;

/// Said about one object.
struct Said {
    object: Object,
    reason: &'static str,
    message: String,
    at: Tick,
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

impl Events {
    /// Starts the writer.
    pub fn start(hands: Arc<dyn Hands>) -> Events {
        let (queue, said) = mpsc::channel(WAITING);
        tokio::spawn(write_all(hands, said));
        Events { queue, dropped: Arc::default() }
    }

    /// Says something about an object. Never waits.
    pub fn say(&self, by: &'static str, object: Object, reason: &'static str, message: String, at: Tick) {
        if self.queue.try_send(Said { object, reason, message, at, by }).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many were dropped because too many waited.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

async fn write_all(hands: Arc<dyn Hands>, mut said: mpsc::Receiver<Said>) {
    let mut last: HashMap<(ObjectRef, &'static str), (String, Tick)> = HashMap::new();
    let mut count = 0_u64;
    while let Some(said) = said.recv().await {
        let id = (said.object.reference(), said.reason);
        if let Some((message, at)) = last.get(&id)
            && *message == said.message
            && said.at.0 < at.0 + QUIET_MILLIS
        {
            continue;
        }
        if last.len() >= REMEMBERED {
            last.clear();
        }
        last.insert(id, (said.message.clone(), said.at));
        count += 1;
        hands.perform(Effect::Write(event(&said, count))).await;
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
        "type": "Warning", "reason": said.reason, "message": said.message,
        "source": { "component": format!("longshore-{}", said.by) },
        "reportingComponent": format!("longshore-{}", said.by), "reportingInstance": "",
        "firstTimestamp": time, "lastTimestamp": time, "count": 1,
    });
    Write::Create { target: ObjectRef::namespaced(Kind::Event, namespace, name), body }
}
