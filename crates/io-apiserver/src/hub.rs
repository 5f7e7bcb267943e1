//! What the world may see: the published objects and the recent history of each resource.
//!
//! Only the writer publishes, and only what is durable. A watcher owns no queue: it holds a position in the history
//! and reads on from there, so a slow one costs nothing and learns that it fell behind when its position is gone.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use bytes::{BufMut, Bytes, BytesMut};
use rules_store::{Change, EventType, Kind, Store, StoreKey, Stored};
use serde_json::Value;
use tokio::sync::watch;

use crate::http_api::protobuf;

/// Changes of one resource kept for watchers, by number and by size.
const HISTORY_EVENTS: usize = 4096;
const HISTORY_BYTES: usize = 8 << 20;

/// So many of the latest changes are kept as trees, which watchers that keep up read. A tree takes several times the
/// memory of its text.
const HISTORY_TREES: usize = 64;

/// An object in the history.
#[derive(Clone)]
pub(crate) enum Kept {
    Tree(Arc<Stored>),
    Text { key: StoreKey, revision: u64, json: Bytes },
}

impl Kept {
    /// The object, read again if only its text is kept.
    pub(crate) fn get(&self) -> Arc<Stored> {
        match self {
            Kept::Tree(stored) => stored.clone(),
            Kept::Text { key, revision, json } => {
                // It was written by us.
                let value = serde_json::from_slice(json).unwrap_or_default();
                Arc::new(Stored { key: key.clone(), revision: *revision, value })
            }
        }
    }

    pub(crate) fn key(&self) -> &StoreKey {
        match self {
            Kept::Tree(stored) => &stored.key,
            Kept::Text { key, .. } => key,
        }
    }

    fn revision(&self) -> u64 {
        match self {
            Kept::Tree(stored) => stored.revision,
            Kept::Text { revision, .. } => *revision,
        }
    }

    /// The same without a tree; the text may be at hand.
    fn as_text(&self, json: Option<&Bytes>) -> Kept {
        match self {
            Kept::Tree(stored) => Kept::Text {
                key: stored.key.clone(),
                revision: stored.revision,
                json: json.cloned().unwrap_or_else(|| stored.value.to_string().into()),
            },
            Kept::Text { .. } => self.clone(),
        }
    }
}

/// One change, with its encoding shared by all who send it.
pub(crate) struct Event {
    pub revision: u64,
    pub kind: EventType,
    pub object: Kept,
    pub before: Option<Kept>,
    /// The object as JSON.
    pub encoded: Bytes,
    line: OnceLock<Bytes>,
    frame: OnceLock<Option<Bytes>>,
}

impl Event {
    pub(crate) fn new(change: Change, encoded: Bytes) -> Event {
        let Change { revision, event, object, before } = change;
        let (object, before) = (Kept::Tree(object), before.map(Kept::Tree));
        Event { revision, kind: event, object, before, encoded, line: OnceLock::new(), frame: OnceLock::new() }
    }

    /// The same as text alone. `before` is the text of the object before it, if that is at hand.
    fn as_text(&self, before: Option<&Bytes>) -> Event {
        Event {
            revision: self.revision,
            kind: self.kind,
            object: self.object.as_text(Some(&self.encoded)),
            before: self.before.as_ref().map(|kept| kept.as_text(before)),
            encoded: self.encoded.clone(),
            line: OnceLock::new(),
            frame: OnceLock::new(),
        }
    }

    /// The event as one line of a plain watch; made once, whoever asks first.
    pub(crate) fn line(&self) -> Bytes {
        self.line.get_or_init(|| event_line(self.kind.name(), &self.encoded)).clone()
    }

    /// The event as one frame of a watch in protobuf, if that can say it; made once as well.
    pub(crate) fn frame(&self) -> Option<Bytes> {
        self.frame.get_or_init(|| event_frame(self.kind.name(), &self.object.get().value)).clone()
    }
}

/// A watch event of this type as protobuf, if that can say it.
pub(crate) fn event_frame(kind: &str, object: &Value) -> Option<Bytes> {
    protobuf::encode(object).map(|object| wire::encode_event(kind, &object).into())
}

/// A watch event of this type about an object already encoded.
pub(crate) fn event_line(kind: &str, object: &[u8]) -> Bytes {
    let mut line = BytesMut::with_capacity(object.len() + 40);
    line.put_slice(b"{\"type\":\"");
    line.put_slice(kind.as_bytes());
    line.put_slice(b"\",\"object\":");
    line.put_slice(object);
    line.put_slice(b"}\n");
    line.freeze()
}

/// The recent changes of one resource, in the order of their revisions.
struct History {
    events: VecDeque<Arc<Event>>,
    bytes: usize,
    /// Every change after this one is in `events`.
    complete_after: u64,
    /// The last change of this resource, or the revision at start.
    last: u64,
}

impl History {
    fn push(&mut self, event: Arc<Event>) {
        self.last = event.revision;
        self.bytes += event.encoded.len();
        self.events.push_back(event);
        if let Some(index) = self.events.len().checked_sub(HISTORY_TREES + 1) {
            self.fell(index);
        }
        while self.events.len() > HISTORY_EVENTS || self.bytes > HISTORY_BYTES {
            let Some(oldest) = self.events.pop_front() else { break };
            self.bytes -= oldest.encoded.len();
            self.complete_after = oldest.revision;
        }
    }

    /// Keeps an event as text from now on. The object before it is most often that of an earlier event.
    fn fell(&mut self, index: usize) {
        let event = &self.events[index];
        let earlier = event.before.as_ref().and_then(|before| {
            let at = self.events.partition_point(|event| event.revision < before.revision());
            self.events.get(at).filter(|earlier| earlier.revision == before.revision())
        });
        let text = event.as_text(earlier.map(|earlier| &earlier.encoded));
        self.events[index] = Arc::new(text);
    }
}

struct Published {
    store: Store,
    histories: Vec<History>,
}

/// Events read from a history.
pub(crate) struct Batch {
    pub events: Vec<Arc<Event>>,
    /// The watcher has seen everything up to this revision once it has seen `events`.
    pub position: u64,
}

/// The position asked for is older than the history.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expired {
    pub oldest: u64,
}

/// Published state, shared by all requests.
pub(crate) struct Hub {
    published: RwLock<Published>,
    bells: Vec<watch::Sender<u64>>,
    revision: watch::Sender<u64>,
}

impl Hub {
    pub(crate) fn new(store: Store) -> Hub {
        let revision = store.revision();
        let history = || History { events: VecDeque::new(), bytes: 0, complete_after: revision, last: revision };
        Hub {
            revision: watch::Sender::new(revision),
            bells: Kind::ALL.into_iter().map(|_| watch::Sender::new(revision)).collect(),
            published: RwLock::new(Published { histories: Kind::ALL.into_iter().map(|_| history()).collect(), store }),
        }
    }

    /// Reads the published objects. The closure must be short: the writer waits for it.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Store) -> T) -> T {
        look(&self.published.read().unwrap_or_else(PoisonError::into_inner).store)
    }

    /// Makes durable changes visible, all at once and in order, and wakes who waits for them.
    pub(crate) fn publish(&self, changes: Vec<(Change, Bytes)>) {
        let mut touched = vec![false; self.bells.len()];
        let revision = {
            let mut published = self.published.write().unwrap_or_else(PoisonError::into_inner);
            for (change, encoded) in changes {
                let index = change.object.key.kind as usize;
                published.store.replay(&change);
                published.histories[index].push(Arc::new(Event::new(change, encoded)));
                touched[index] = true;
            }
            published.store.revision()
        };
        for (bell, _) in self.bells.iter().zip(&touched).filter(|(_, touched)| **touched) {
            bell.send_replace(revision);
        }
        self.revision.send_replace(revision);
    }

    /// A bell that rings when the resource changes.
    pub(crate) fn bell(&self, kind: Kind) -> watch::Receiver<u64> {
        self.bells[kind as usize].subscribe()
    }

    /// A bell that rings when anything changes.
    pub(crate) fn revision_bell(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// Up to `most` events after a position, or the news that some of them are forgotten.
    pub(crate) fn events_after(&self, kind: Kind, position: u64, most: usize) -> Result<Batch, Expired> {
        let published = self.published.read().unwrap_or_else(PoisonError::into_inner);
        let history = &published.histories[kind as usize];
        if position < history.complete_after {
            return Err(Expired { oldest: history.complete_after });
        }
        let first = history.events.partition_point(|event| event.revision <= position);
        let events: Vec<_> = history.events.range(first..).take(most).cloned().collect();
        let all = first + events.len() == history.events.len();
        let position = match events.last() {
            Some(last) if !all => last.revision,
            Some(_) | None => published.store.revision().max(position),
        };
        Ok(Batch { events, position })
    }

    /// Whether a list of this resource at `revision` would equal the current one.
    pub(crate) fn unchanged_since(&self, kind: Kind, revision: u64) -> bool {
        let published = self.published.read().unwrap_or_else(PoisonError::into_inner);
        (published.histories[kind as usize].last..=published.store.revision()).contains(&revision)
    }
}
