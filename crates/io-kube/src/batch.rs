//! Batches annotation patches ([`Note`]): while one request for an object is under way, the notes that arrive wait, and the
//! next request carries all of them. One write of the provisioner's journal so records the intents of many volumes.
//!
//! Every batch is sent at one `resourceVersion` of the object, so a request that was given up cannot land late: the object
//! has moved on, and the server refuses it. Notes touch only annotation keys of their own and mean the same whatever came
//! in between, so after a conflict the batch reads the object and sends the same notes at the newer version.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::{Note, ObjectRef, ResourceVersion, Write};
use control::{Outcome, Refusal, Reply};
use tokio::sync::{Notify, oneshot};

use crate::Kube;

/// How often a batch is sent when the object keeps changing. Nobody else should write to it.
const TRIES: usize = 5;

/// How long a batch that only removes annotations waits for a note that sets one, to ride along with it, while others
/// that were set are still to be removed. Volumes are finished one after the other, so without this wait each finished
/// volume would cost a write of its own. The deletion of a volume waits for the removal of its intent: when no other
/// removal is to be expected, nothing is gained by waiting.
const LINGER: Duration = Duration::from_millis(50);

/// Collects annotation patches by the object they are for.
#[derive(Debug, Default)]
pub(crate) struct AnnotationBatcher {
    queues: Mutex<BTreeMap<ObjectRef, Queue>>,
}

/// The notes for one object.
#[derive(Debug, Default)]
struct Queue {
    pending: Vec<Pending>,
    /// A task sends the notes of this queue.
    flushing: bool,
    /// The newest `resourceVersion` that an answer carried.
    version: Option<ResourceVersion>,
    /// Wakes a flush that lingers.
    set: Arc<Notify>,
    /// Annotations that were set and that nobody has asked to remove yet.
    open: BTreeSet<String>,
}

impl Queue {
    /// A note that sets something goes at once, and so does the last removal that can be expected.
    fn is_worth_waiting(&self) -> bool {
        !self.pending.is_empty() && self.pending.iter().all(Pending::only_removes) && !self.open.is_empty()
    }
}

#[derive(Debug)]
struct Pending {
    note: Note,
    ended: oneshot::Sender<Outcome>,
}

/// Notes for one object.
struct Batch {
    /// All of them as one.
    merged: Note,
    pending: Vec<Pending>,
    /// The newest known `resourceVersion`.
    version: Option<ResourceVersion>,
}

impl Pending {
    fn only_removes(&self) -> bool {
        self.note.annotations.values().all(Option::is_none)
    }
}

impl AnnotationBatcher {
    /// Queues a note. True if no task flushes the queue yet.
    fn push(&self, pending: Pending) -> bool {
        let mut queues = self.queues();
        let queue = queues.entry(pending.note.target.clone()).or_default();
        for (name, value) in &pending.note.annotations {
            match value {
                Some(_) => queue.open.insert(name.clone()),
                None => queue.open.remove(name),
            };
        }
        queue.pending.push(pending);
        if !queue.is_worth_waiting() {
            queue.set.notify_waiters();
        }
        !std::mem::replace(&mut queue.flushing, true)
    }

    /// Waits while the queue holds removals only and more are to be expected, at most for [`LINGER`].
    async fn linger(&self, target: &ObjectRef) {
        let Some(set) = self.queues().get(target).map(|queue| queue.set.clone()) else { return };
        // The wait begins before the look, so a note that arrives in between ends it.
        let set = set.notified();
        if self.queues().get(target).is_some_and(Queue::is_worth_waiting) {
            let _ = tokio::time::timeout(LINGER, set).await;
        }
    }

    /// The next batch: every pending note that means the same object as the first one does. `None` if no note is pending;
    /// the queue then has no flushing task any more.
    fn next_batch(&self, target: &ObjectRef) -> Option<Batch> {
        let mut queues = self.queues();
        let queue = queues.get_mut(target)?;
        let Some(mut merged) = queue.pending.first().map(|first| first.note.clone()) else {
            queue.flushing = false;
            return None;
        };
        let (pending, later): (Vec<Pending>, Vec<Pending>) =
            std::mem::take(&mut queue.pending).into_iter().partition(|one| one.note.uid == merged.uid);
        queue.pending = later;
        merged.annotations = pending.iter().flat_map(|one| one.note.annotations.clone()).collect();
        Some(Batch { merged, pending, version: queue.version.clone() })
    }

    /// What was not set will not be removed.
    fn not_set(&self, note: &Note) {
        if let Some(queue) = self.queues().get_mut(&note.target) {
            for (name, _) in note.annotations.iter().filter(|(_, value)| value.is_some()) {
                queue.open.remove(name);
            }
        }
    }

    fn set_version(&self, target: &ObjectRef, version: Option<ResourceVersion>) {
        if let Some(queue) = self.queues().get_mut(target) {
            queue.version = version;
        }
    }

    fn queues(&self) -> MutexGuard<'_, BTreeMap<ObjectRef, Queue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kube {
    /// Patches annotations, in one request with other notes for the same object.
    pub(crate) async fn patch_annotations(&self, note: &Note) -> Outcome {
        let (ended, outcome) = oneshot::channel();
        if self.batcher.push(Pending { note: note.clone(), ended }) {
            // A task of its own, so that a caller who goes away takes no one else's note along.
            tokio::spawn(self.clone().flush(note.target.clone()));
        }
        outcome.await.unwrap_or_else(|_| Outcome::Unknown("the process is ending".into()))
    }

    /// Sends batches for one object, one request at a time, until no note is pending.
    async fn flush(self, target: ObjectRef) {
        // There is one such request at a time and many callers wait for it, so it does not wait for a permit.
        let kube = Kube { limit: None, ..self };
        loop {
            kube.batcher.linger(&target).await;
            let Some(mut batch) = kube.batcher.next_batch(&target) else { return };
            match kube.send_notes(&batch.merged, &mut batch.version).await {
                // The server refuses the whole batch for one invalid note: each note goes alone.
                Outcome::Refused(Refusal::Denied(_)) if batch.pending.len() > 1 => {
                    for Pending { note, ended } in batch.pending {
                        let outcome = kube.send_notes(&note, &mut batch.version).await;
                        if !matches!(outcome, Outcome::Done(_)) {
                            kube.batcher.not_set(&note);
                        }
                        let _ = ended.send(outcome);
                    }
                }
                outcome => {
                    if !matches!(outcome, Outcome::Done(_)) {
                        kube.batcher.not_set(&batch.merged);
                    }
                    for Pending { ended, .. } in batch.pending {
                        let _ = ended.send(outcome.clone());
                    }
                }
            }
            kube.batcher.set_version(&target, batch.version);
        }
    }

    /// Sends notes at the newest known version, and after a conflict again at the version the server has.
    async fn send_notes(&self, notes: &Note, known: &mut Option<ResourceVersion>) -> Outcome {
        let mut version = newer(known.take(), &notes.seen);
        let mut outcome = Outcome::Refused(Refusal::Conflict);
        for _ in 0..TRIES {
            let patch = notes.patch(Some(version));
            let target = notes.target.clone();
            outcome = self.write_alone(&Write::Patch { target, subresource: None, patch }).await;
            if let Outcome::Done(Reply::Object(object)) = &outcome {
                *known = Some(object.meta().resource_version.clone());
            }
            if outcome != Outcome::Refused(Refusal::Conflict) {
                break;
            }
            match self.read(&notes.target).await {
                Outcome::Done(Reply::Object(object)) if object.meta().uid == notes.uid => {
                    version = object.meta().resource_version.clone();
                }
                Outcome::Done(_) | Outcome::Refused(_) | Outcome::Unknown(_) => break,
            }
        }
        outcome
    }
}

/// The newer of two versions of one object. A text that is not a number is older than every number.
fn newer(known: Option<ResourceVersion>, seen: &ResourceVersion) -> ResourceVersion {
    known.filter(|known| known.number().unwrap_or(0) >= seen.number().unwrap_or(0)).unwrap_or_else(|| seen.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::Kind;
    use http::{Request, Response};
    use http_body_util::BodyExt;
    use kube::client::Body;
    use serde_json::{Value, json};

    /// A server that takes every patch of the Lease, and what each of them said.
    fn server() -> (Kube, Arc<Mutex<Vec<Value>>>) {
        let patches = Arc::<Mutex<Vec<Value>>>::default();
        let kept = patches.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let kept = kept.clone();
            async move {
                let body = request.into_body().collect().await?.to_bytes();
                let patch: Value = serde_json::from_slice(&body).unwrap();
                kept.lock().unwrap().push(patch["metadata"]["annotations"].clone());
                let lease =
                    json!({ "metadata": { "name": "l", "namespace": "n", "uid": "u", "resourceVersion": "8" } });
                Ok::<_, kube::Error>(Response::new(Body::from(lease.to_string().into_bytes())))
            }
        });
        (Kube::in_process(service), patches)
    }

    fn note(name: &str, value: Option<&str>) -> Write {
        let target = ObjectRef::namespaced(Kind::Lease, "n", "l");
        let annotations = [(name.to_string(), value.map(String::from))].into();
        Write::Note(Note { target, uid: "u".into(), seen: "7".into(), annotations })
    }

    fn writing(kube: &Kube, write: Write) -> tokio::task::JoinHandle<Outcome> {
        let kube = kube.clone();
        tokio::spawn(async move { kube.write(&write).await })
    }

    #[tokio::test(start_paused = true)]
    async fn removals_ride_along_with_a_note_that_sets_something_and_that_note_does_not_wait() {
        let (kube, patches) = server();
        kube.write(&note("other", Some("x"))).await;
        let removing = [writing(&kube, note("a", None)), writing(&kube, note("b", None))];
        tokio::time::sleep(LINGER / 2).await;
        assert_eq!(patches.lock().unwrap().len(), 1, "the removals wait");
        let began = tokio::time::Instant::now();
        assert!(matches!(kube.write(&note("c", Some("x"))).await, Outcome::Done(_)));
        assert_eq!(began.elapsed(), Duration::ZERO);
        for removed in removing {
            assert!(matches!(removed.await.unwrap(), Outcome::Done(_)));
        }
        assert_eq!(patches.lock().unwrap()[1..], [json!({ "a": null, "b": null, "c": "x" })]);
    }

    #[tokio::test(start_paused = true)]
    async fn removals_that_nothing_follows_go_after_a_while_in_one_request() {
        let (kube, patches) = server();
        let began = tokio::time::Instant::now();
        // A note that was sent long ago does not end the wait of later ones.
        kube.write(&note("c", Some("x"))).await;
        let removing = [writing(&kube, note("a", None)), writing(&kube, note("b", None))];
        for removed in removing {
            assert!(matches!(removed.await.unwrap(), Outcome::Done(_)));
        }
        assert_eq!(began.elapsed(), LINGER);
        assert_eq!(*patches.lock().unwrap(), [json!({ "c": "x" }), json!({ "a": null, "b": null })]);
    }

    // The deletion of a volume waits until its intent is gone. Nothing else is being made: nothing is waited for.
    #[tokio::test(start_paused = true)]
    async fn the_last_removal_goes_at_once_and_takes_those_that_wait_along() {
        let (kube, patches) = server();
        let began = tokio::time::Instant::now();
        kube.write(&note("a", Some("x"))).await;
        kube.write(&note("b", Some("x"))).await;
        let first = writing(&kube, note("a", None));
        tokio::time::sleep(LINGER / 5).await;
        assert_eq!(patches.lock().unwrap().len(), 2, "b is still to be removed");
        assert!(matches!(kube.write(&note("b", None)).await, Outcome::Done(_)));
        assert!(matches!(first.await.unwrap(), Outcome::Done(_)));
        assert_eq!(began.elapsed(), LINGER / 5);
        assert_eq!(patches.lock().unwrap()[2..], [json!({ "a": null, "b": null })]);
    }
}
