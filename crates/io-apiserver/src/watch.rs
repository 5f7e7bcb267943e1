//! A watch: a position in the history of one resource that moves forward, and lines that tell what it passes.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, stream};
use rules_store::{EventType, Stored};
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep_until};

use crate::http_api::{Encoding, Form};
use crate::hub::{Event, Expired, Hub, event_frame, event_line};
use crate::refusal::Refusal;
use crate::view::{self, Filter};

/// Events taken from the history at once; all a watcher ever holds.
const BATCH: usize = 128;
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// How long a watch lasts: what the client says, or half an hour to an hour so that not all end together.
pub(crate) fn lifetime(asked: Option<u64>) -> Duration {
    match asked {
        Some(seconds) if seconds > 0 => Duration::from_secs(seconds.min(86_400)),
        Some(_) | None => {
            let spread = uuid::Uuid::new_v4().as_bytes().iter().fold(0_u64, |sum, b| sum * 31 % 1800 + u64::from(*b));
            Duration::from_secs(1800 + spread % 1800)
        }
    }
}

/// The answer to a position that is no longer in the history.
pub(crate) fn too_old(position: u64, expired: &Expired) -> Refusal {
    Refusal::expired(format!("too old resource version: {position} ({})", expired.oldest))
}

/// Everything a watch needs to run.
pub(crate) struct Watch {
    pub hub: Arc<Hub>,
    pub filter: Filter,
    pub form: Form,
    pub encoding: Encoding,
    pub include_object: String,
    /// Every event up to here is told or need not be.
    pub position: u64,
    /// Objects to be told as added before anything else; not yet filtered.
    pub initial: VecDeque<Arc<Stored>>,
    pub announce_initial_end: bool,
    pub bookmarks: bool,
    pub bell: Receiver<u64>,
    pub closing: Option<Receiver<bool>>,
    /// Ends when the caller may no longer see what it watches.
    pub rights: Pin<Box<dyn Future<Output = Refusal> + Send>>,
    pub lifetime: Duration,
}

struct Running {
    watch: Watch,
    events: VecDeque<Arc<Event>>,
    /// The position once `events` are told.
    next_position: u64,
    end: Instant,
    next_bookmark: Instant,
    headers_sent: bool,
    over: bool,
}

enum Woken {
    Changed,
    Bookmark,
    Over,
    Refused(Refusal),
}

impl Watch {
    /// The watch as a stream with one line per event.
    pub(crate) fn into_stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        let now = Instant::now();
        let running = Running {
            events: VecDeque::new(),
            next_position: self.position,
            end: now + self.lifetime,
            next_bookmark: now + BOOKMARK_EVERY,
            headers_sent: false,
            over: false,
            watch: self,
        };
        stream::unfold(running, |mut running| async move {
            let line = running.next().await?;
            Some((Ok(line), running))
        })
    }
}

impl Running {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.next_ready() {
                return Some(line);
            }
            if self.over {
                return None;
            }
            // Looked at before the history is read, so that no ring between the two is missed.
            self.watch.bell.borrow_and_update();
            match self.watch.hub.events_after(self.watch.filter.kind, self.watch.position, BATCH) {
                Err(expired) => {
                    return Some(self.end_with(&too_old(self.watch.position, &expired)));
                }
                Ok(batch) => {
                    self.next_position = batch.position;
                    self.events = batch.events.into();
                }
            }
            if !self.events.is_empty() {
                continue;
            }
            self.watch.position = self.next_position;
            match self.sleep().await {
                Woken::Changed => {}
                Woken::Bookmark => {
                    self.next_bookmark = Instant::now() + BOOKMARK_EVERY;
                    return Some(self.bookmark(false));
                }
                Woken::Refused(refusal) => return Some(self.end_with(&refusal)),
                Woken::Over => {
                    self.over = true;
                    // A last bookmark lets the client go on from here instead of from its last event.
                    if self.watch.bookmarks && self.caught_up() {
                        return Some(self.bookmark(false));
                    }
                }
            }
        }
    }

    fn next_ready(&mut self) -> Option<Bytes> {
        while let Some(object) = self.watch.initial.pop_front() {
            if self.watch.filter.matches(&object) {
                return Some(self.line_of(EventType::Added, &object));
            }
        }
        if std::mem::take(&mut self.watch.announce_initial_end) {
            return Some(self.bookmark(true));
        }
        while let Some(event) = self.events.pop_front() {
            if self.events.is_empty() {
                self.watch.position = self.next_position;
            }
            if let Some(line) = self.tell(&event) {
                return Some(line);
            }
        }
        None
    }

    fn caught_up(&self) -> bool {
        self.watch.initial.is_empty() && self.events.is_empty()
    }

    async fn sleep(&mut self) -> Woken {
        let bookmark = if self.watch.bookmarks { self.next_bookmark.min(self.end) } else { self.end };
        let closing = async {
            match &mut self.watch.closing {
                Some(closing) => {
                    let _ = closing.wait_for(|closing| *closing).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            refusal = &mut self.watch.rights => Woken::Refused(refusal),
            changed = self.watch.bell.changed() => if changed.is_ok() { Woken::Changed } else { Woken::Over },
            () = sleep_until(bookmark) => if Instant::now() >= self.end { Woken::Over } else { Woken::Bookmark },
            () = closing => Woken::Over,
        }
    }

    // Reliability 97: entering the selection is ADDED, leaving it DELETED with the revision of the change.
    fn tell(&mut self, event: &Event) -> Option<Bytes> {
        let filter = &self.watch.filter;
        let now = event.kind != EventType::Deleted && filter.matches_kept(&event.object);
        let before = event.before.as_ref().is_some_and(|before| filter.matches_kept(before));
        let kind = match (before, now) {
            (false, false) => return None,
            (false, true) => EventType::Added,
            (true, true) => EventType::Modified,
            (true, false) => EventType::Deleted,
        };
        if kind == event.kind && self.watch.form == Form::Plain {
            return Some(match self.watch.encoding {
                Encoding::Protobuf => event.frame().unwrap_or_else(|| self.cannot_say(&event.object.get())),
                Encoding::Json | Encoding::Yaml => event.line(),
            });
        }
        if kind == EventType::Deleted && event.kind != EventType::Deleted {
            let left = at_revision(&event.before.as_ref()?.get(), event.revision);
            return Some(self.line_of(kind, &left));
        }
        Some(self.line_of(kind, &event.object.get()))
    }

    fn line_of(&mut self, kind: EventType, object: &Arc<Stored>) -> Bytes {
        let text = match (self.watch.form, self.watch.encoding) {
            (Form::Plain, Encoding::Protobuf) => {
                let frame = event_frame(kind.name(), &object.value);
                return frame.unwrap_or_else(|| self.cannot_say(object));
            }
            (Form::Plain, Encoding::Json | Encoding::Yaml) => object.value.to_string(),
            (Form::Metadata, _) => view::metadata(object).to_string(),
            (Form::Table, _) => self.table_of(object).to_string(),
        };
        event_line(kind.name(), text.as_bytes())
    }

    /// Ends the watch: nothing is lost in silence, and a watch cannot change its encoding.
    fn cannot_say(&mut self, object: &Stored) -> Bytes {
        let message = format!("{object:?} holds what protobuf cannot say; watch it as application/json");
        self.end_with(&Refusal::internal(&message))
    }

    fn end_with(&mut self, refusal: &Refusal) -> Bytes {
        self.over = true;
        self.events.clear();
        self.watch.initial.clear();
        self.encode("ERROR", refusal.status())
    }

    fn encode(&self, kind: &str, object: &Value) -> Bytes {
        let frame = match self.watch.encoding {
            Encoding::Protobuf => event_frame(kind, object),
            Encoding::Json | Encoding::Yaml => None,
        };
        frame.unwrap_or_else(|| event_line(kind, object.to_string().as_bytes()))
    }

    fn table_of(&mut self, object: &Arc<Stored>) -> Value {
        let kind = self.watch.filter.kind;
        let mut table = match view::table(kind, std::slice::from_ref(object), &self.watch.include_object) {
            Ok(table) => table,
            Err(refusal) => return refusal.status().clone(),
        };
        table["metadata"] = json!({ "resourceVersion": object.revision.to_string() });
        if std::mem::replace(&mut self.headers_sent, true) {
            table["columnDefinitions"] = Value::Null;
        }
        table
    }

    // Reliability 94: the position never passes an event that is not told.
    fn bookmark(&self, initial_end: bool) -> Bytes {
        let kind = self.watch.filter.kind;
        let (kind, version) = match self.watch.form {
            Form::Plain => (kind.name(), kind.api_version()),
            Form::Metadata => ("PartialObjectMetadata", "meta.k8s.io/v1"),
            Form::Table => ("Table", "meta.k8s.io/v1"),
        };
        let mut metadata = json!({ "resourceVersion": self.watch.position.to_string(), "creationTimestamp": null });
        if initial_end {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let mut object = json!({ "kind": kind, "apiVersion": version, "metadata": metadata });
        if self.watch.form == Form::Table {
            object["rows"] = json!([]);
        }
        self.encode("BOOKMARK", &object)
    }
}

fn at_revision(object: &Arc<Stored>, revision: u64) -> Arc<Stored> {
    let mut object = Stored::clone(object);
    object.revision = revision;
    object.value["metadata"]["resourceVersion"] = json!(revision.to_string());
    Arc::new(object)
}
