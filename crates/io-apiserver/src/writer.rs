//! The one writer: a thread that owns the newest state, makes batches durable, and only then shows them.
//!
//! Every answer waits for the commit of its batch, refusals too: a refusal may rest on a write of the same batch.

use std::io::Write;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use rules_store::{
    Applied, Change, Context, EventType, Failure, Kind, Request, Store, StoreKey, Stored, expired_events,
    missing_accounts_after, root_certificates_after,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::durable::{CommitError, DurableLog, Row};
use crate::hub::Hub;
use crate::refusal::Refusal;
use crate::reserve::Reserve;
use crate::{Error, directory::DataDirectory};

/// Requests waiting for the writer; more wait with their senders.
const QUEUE: usize = 1024;
/// Requests in one transaction.
const BATCH: usize = 256;
/// A pause this long is used to tidy the log.
const QUIET: Duration = Duration::from_millis(500);

/// A write that is done and durable.
pub(crate) struct Done {
    pub reply: Arc<Stored>,
    /// The reply as JSON, if the write made it.
    pub encoded: Option<Bytes>,
    /// What the write did to the object of the reply.
    pub event: Option<EventType>,
    pub warnings: Vec<String>,
}

struct Job {
    actor: Arc<str>,
    request: Request,
    answer: oneshot::Sender<Result<Done, Refusal>>,
    place: OwnedSemaphorePermit,
}

enum Message {
    Write(Job),
    Stop,
}

/// The way to the writer.
pub(crate) struct Writer {
    sender: Sender<Message>,
    places: Arc<Semaphore>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// Starts the thread. It keeps the data directory locked until it ends.
    pub(crate) fn start(
        head: Store,
        log: DurableLog,
        hub: Arc<Hub>,
        hold: DataDirectory,
        certificate: String,
    ) -> Result<Writer, Error> {
        let (sender, receiver) = mpsc::channel();
        let reserve = Reserve::open(&hold.reserve());
        let thread = WriterThread { head, log, hub, reserve, swept_millis: 0, certificate, _hold: hold };
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .stack_size(1 << 20)
            .spawn(move || thread.run(&receiver))
            .map_err(Error::Thread)?;
        Ok(Writer { sender, places: Arc::new(Semaphore::new(QUEUE)), thread: Mutex::new(Some(thread)) })
    }

    /// Sends a write and waits until it is durable or refused. Once sent it is carried out even if nobody waits.
    pub(crate) async fn write(&self, actor: &Arc<str>, request: Request) -> Result<Done, Refusal> {
        let place = self.places.clone().acquire_owned().await.map_err(|_| Refusal::shutting_down())?;
        let (answer, answered) = oneshot::channel();
        let job = Job { actor: actor.clone(), request, answer, place };
        self.sender.send(Message::Write(job)).map_err(|_| Refusal::shutting_down())?;
        answered.await.map_err(|_| Refusal::shutting_down())?
    }

    /// Ends the thread after what was sent before is done.
    pub(crate) fn stop(&self) {
        let _ = self.sender.send(Message::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What the thread owns.
struct WriterThread {
    head: Store,
    log: DurableLog,
    hub: Arc<Hub>,
    reserve: Reserve,
    /// When old events were last looked for.
    swept_millis: u64,
    /// By which programs know this server; every namespace has it.
    certificate: String,
    _hold: DataDirectory,
}

/// How writes are judged by their size.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    /// There is enough.
    Plenty,
    /// Only what makes the data no larger gets through.
    Scarce,
}

/// The disk was full and nothing of the batch is on it.
struct Full {
    /// Not answered yet.
    deletions: Vec<Job>,
}

/// How often old events are looked for, and how many go at once.
const SWEEP_MILLIS: u64 = 60_000;
const SWEPT: usize = 500;

/// What a write may add when space is scarce: marking an object as deleted needs a little.
const SCARCE_GROWTH: usize = 512;

/// The state of the head is unknown after a panic, so nothing may be written any more.
struct EndOnPanic;

impl Drop for EndOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            end("the store's writer failed unexpectedly; start again, nothing acknowledged is lost");
        }
    }
}

/// Reliability 102: after a failed write nobody knows what is on disk, so only a new start may look.
fn end(sentence: &str) -> ! {
    let _ = writeln!(std::io::stderr(), "longshore: {sentence}");
    std::process::abort()
}

fn end_unwritable(reason: &str) -> ! {
    end(&format!("the store cannot be written ({reason}); check the disk and start again"))
}

/// Housekeeping may lack space, but it may not fail.
fn ensure_writable(kept_house: Result<(), CommitError>) {
    match kept_house {
        Ok(()) | Err(CommitError::Full) => {}
        Err(CommitError::Broken(reason)) => end_unwritable(&reason),
    }
}

impl WriterThread {
    fn run(mut self, receiver: &Receiver<Message>) {
        let _guard = EndOnPanic;
        loop {
            let first = match receiver.recv_timeout(QUIET) {
                Ok(Message::Write(job)) => job,
                Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => match self.rest_until(receiver) {
                    Some(job) => job,
                    None => break,
                },
            };
            let (jobs, stop) = gather(first, receiver);
            self.work(jobs);
            if stop {
                break;
            }
        }
        self.rest();
    }

    // After the log is tidy there is nothing to wake up for but a message.
    fn rest_until(&mut self, receiver: &Receiver<Message>) -> Option<Job> {
        self.rest();
        match receiver.recv() {
            Ok(Message::Write(job)) => Some(job),
            Ok(Message::Stop) | Err(_) => None,
        }
    }

    fn rest(&mut self) {
        ensure_writable(self.log.rest());
    }

    fn work(&mut self, jobs: Vec<Job>) {
        let log = &mut self.log;
        let make_room = || ensure_writable(log.shrink());
        let space = if self.reserve.regain(make_room) { Space::Plenty } else { Space::Scarce };
        if let Err(Full { deletions }) = self.work_with(jobs, space) {
            // From here on, deletions go through with the space that was set aside for them.
            self.reserve.release();
            if let Err(Full { deletions }) = self.work_with(deletions, Space::Scarce) {
                deletions.into_iter().for_each(|job| drop(job.answer.send(Err(Refusal::disk_full()))));
            }
        }
    }

    /// Answers all jobs; of a batch that found the disk full all but the deletions.
    fn work_with(&mut self, jobs: Vec<Job>, space: Space) -> Result<(), Full> {
        let mut batch = Batch::default();
        let now_millis = now_millis();
        for job in jobs {
            let again = matches!(job.request, Request::Delete { .. }).then(|| (job.actor.clone(), job.request.clone()));
            let uid = uuid::Uuid::new_v4().to_string();
            let context = Context { now_millis, new_uid: &uid, actor: &job.actor };
            let result = match space {
                Space::Plenty => {
                    apply_furnished(&mut self.head, &context, job.request, &self.certificate).map_err(Refusal::from)
                }
                Space::Scarce => apply_sparingly(&mut self.head, &context, job.request),
            };
            batch.take(result, Waiting { answer: job.answer, place: job.place, again });
        }
        self.sweep_events(&mut batch, now_millis);
        if batch.rows.is_empty() {
            batch.answer();
            return Ok(());
        }
        match self.log.commit(&batch.rows, self.head.revision()) {
            Ok(()) => {
                self.hub.publish(std::mem::take(&mut batch.changes));
                batch.answer();
                Ok(())
            }
            Err(CommitError::Full) => {
                self.head = self.hub.read(Store::clone);
                Err(Full { deletions: batch.refuse() })
            }
            Err(CommitError::Broken(reason)) => end_unwritable(&reason),
        }
    }
}

impl WriterThread {
    /// Events that expired go with what is written anyway: while nobody writes, none are added.
    fn sweep_events(&mut self, batch: &mut Batch, now_millis: u64) {
        if now_millis.saturating_sub(self.swept_millis) < SWEEP_MILLIS {
            return;
        }
        self.swept_millis = now_millis;
        let context = Context { now_millis, new_uid: "", actor: "system:longshore" };
        for request in expired_events(&self.head, now_millis, SWEPT) {
            if let Ok(applied) = self.head.apply(&context, request) {
                batch.note(applied);
            }
        }
    }
}

/// Applies a request, and gives a new namespace its account and its certificate in the same transaction. Where space is
/// scarce it goes without, until the next start.
fn apply_furnished(
    head: &mut Store,
    context: &Context<'_>,
    request: Request,
    certificate: &str,
) -> Result<Applied, Failure> {
    let mut applied = head.apply(context, request)?;
    let mut lacking = missing_accounts_after(head, &applied.changes);
    lacking.extend(root_certificates_after(head, &applied.changes, certificate));
    for request in lacking {
        let uid = uuid::Uuid::new_v4().to_string();
        // The namespace is there and the name is free, so nothing is refused; if it were, the next start mends it.
        if let Ok(made) = head.apply(&Context { new_uid: &uid, ..*context }, request) {
            applied.changes.extend(made.changes);
        }
    }
    Ok(applied)
}

fn apply_sparingly(head: &mut Store, context: &Context<'_>, request: Request) -> Result<Applied, Refusal> {
    let before = head.clone();
    let applied = head.apply(context, request)?;
    let size = |object: &Stored| encode(object).len();
    let (mut old, mut new) = (0, 0);
    for change in &applied.changes {
        old += change.before.as_deref().map_or(0, size);
        new += if change.event == EventType::Deleted { 0 } else { size(&change.object) };
    }
    if new > old + SCARCE_GROWTH * applied.changes.len() {
        *head = before;
        return Err(Refusal::disk_full());
    }
    Ok(applied)
}

fn gather(first: Job, receiver: &Receiver<Message>) -> (Vec<Job>, bool) {
    let mut jobs = vec![first];
    while jobs.len() < BATCH {
        match receiver.try_recv() {
            Ok(Message::Write(job)) => jobs.push(job),
            Ok(Message::Stop) => return (jobs, true),
            Err(_) => break,
        }
    }
    (jobs, false)
}

/// A sender who waits, and what to try again for them should the disk be full.
struct Waiting {
    answer: oneshot::Sender<Result<Done, Refusal>>,
    place: OwnedSemaphorePermit,
    again: Option<(Arc<str>, Request)>,
}

#[derive(Default)]
struct Batch {
    rows: Vec<Row>,
    changes: Vec<(Change, Bytes)>,
    waiting: Vec<(Waiting, Result<Done, Refusal>)>,
}

impl Batch {
    fn take(&mut self, result: Result<Applied, Refusal>, waiting: Waiting) {
        let done = result.map(|applied| self.note(applied));
        self.waiting.push((waiting, done));
    }

    fn note(&mut self, applied: Applied) -> Done {
        let Applied { changes, reply, warnings } = applied;
        let (mut encoded, mut event) = (None, None);
        for change in changes {
            let bytes = Bytes::from(encode(&change.object));
            if change.object.key == reply.key {
                event = Some(change.event);
                if change.revision == reply.revision {
                    encoded = Some(bytes.clone());
                }
            }
            self.rows.push(row(&change, &bytes));
            self.changes.push((change, bytes));
        }
        Done { reply, encoded, event, warnings }
    }

    fn answer(self) {
        for (waiting, done) in self.waiting {
            // Nobody may be waiting any more; the write is done all the same.
            let _ = waiting.answer.send(done);
        }
    }

    /// Refuses what cannot be tried again, and gives back what can.
    fn refuse(self) -> Vec<Job> {
        let mut again = Vec::new();
        for (waiting, _) in self.waiting {
            let Waiting { answer, place, again: request } = waiting;
            match request {
                Some((actor, request)) => again.push(Job { actor, request, answer, place }),
                None => {
                    let _ = answer.send(Err(Refusal::disk_full()));
                }
            }
        }
        again
    }
}

fn row(change: &Change, encoded: &Bytes) -> Row {
    let value = match change.event {
        EventType::Added | EventType::Modified => Some(encoded.clone()),
        EventType::Deleted => None,
    };
    Row { key: key_text(&change.object.key), revision: change.revision, value }
}

fn encode(object: &Stored) -> Vec<u8> {
    // Values have text keys only, so this cannot fail.
    serde_json::to_vec(&object.value).unwrap_or_default()
}

/// A key as it is written in the database. No part of a key can hold a slash.
pub(crate) fn key_text(key: &StoreKey) -> String {
    format!("{}/{}/{}/{}", key.kind.group(), key.kind.plural(), key.namespace, key.name)
}

/// The key behind such a text.
pub(crate) fn key_of(text: &str) -> Option<StoreKey> {
    let mut parts = text.split('/');
    let (group, plural) = (parts.next()?, parts.next()?);
    let (namespace, name) = (parts.next()?, parts.next()?);
    let kind = Kind::ALL.into_iter().find(|kind| kind.group() == group && kind.plural() == plural)?;
    if parts.next().is_some() { None } else { Some(StoreKey::new(kind, namespace, name)) }
}

/// Milliseconds after 1970.
pub(crate) fn now_millis() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}
