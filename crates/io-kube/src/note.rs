//! Notes, carried together: while one request about an object is under way, the notes that come meanwhile wait for it and
//! then go in the next one, as many as there are.
//!
//! Notes that only take away keep nobody waiting, so that in busy times they wait a while for others that are made anyway.
//!
//! Each request says which version it changes, so that one that is given up and lands late changes nothing. Notes touch
//! only names of their own, so whatever came in between they mean the same, and are sent again at the newer version.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::{Note, Object, ObjectRef, Write};
use control::{Outcome, Refusal, Reply};
use tokio::sync::{Notify, oneshot};

use crate::Kube;

/// How often notes are sent again because the object had changed. Nobody else should be writing to it.
const TRIES: usize = 5;

/// How long notes that only take away wait for others, in busy times.
const LEISURE: Duration = Duration::from_millis(100);

/// Times are busy when so many went together last: more will come soon.
const BUSY: usize = 8;

/// So many of those who waited are told at once, and have made their next requests before more are told. Told all at once,
/// they would all get ready before the first of them asked for anything, and the server would have nothing to do meanwhile.
const TOLD: usize = 16;

/// Turns from being told to the next request: the one who waited, who decides, who asks, who sends.
const TURNS: usize = 4;

/// Notes that wait for their turn, by object.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    piles: Mutex<BTreeMap<ObjectRef, Pile>>,
}

/// The notes about one object.
#[derive(Debug, Default)]
struct Pile {
    waiting: Vec<Waiting>,
    /// Somebody carries them.
    carried: bool,
    /// The newest version known.
    version: Option<String>,
    /// How many went together last.
    last: usize,
    /// A note came that somebody waits for.
    hurried: Arc<Notify>,
}

#[derive(Debug)]
struct Waiting {
    note: Note,
    tell: oneshot::Sender<Outcome>,
}

impl Waiting {
    /// Something is to be relied on from now on.
    fn is_urgent(&self) -> bool {
        self.note.annotations.values().any(Option::is_some)
    }
}

impl Pile {
    /// There is something to carry, nobody waits for it, and more will come soon.
    fn can_wait(&self) -> bool {
        self.last >= BUSY && !self.waiting.is_empty() && !self.waiting.iter().any(Waiting::is_urgent)
    }
}

impl Desk {
    /// Puts a note on its pile. True if nobody carries that pile yet.
    fn put(&self, waiting: Waiting) -> bool {
        let mut piles = self.piles();
        let pile = piles.entry(waiting.note.target.clone()).or_default();
        if waiting.is_urgent() {
            pile.hurried.notify_one();
        }
        pile.waiting.push(waiting);
        !std::mem::replace(&mut pile.carried, true)
    }

    /// Returns when a note waits that somebody waits for, or after a while.
    async fn company(&self, target: &ObjectRef) {
        let Some(hurried) = self.piles().get(target).map(|pile| pile.hurried.clone()) else { return };
        let can_wait = || self.piles().get(target).is_some_and(Pile::can_wait);
        let until = tokio::time::Instant::now() + LEISURE;
        while can_wait() {
            if tokio::time::timeout_at(until, hurried.notified()).await.is_err() {
                return;
            }
        }
    }

    /// What waits and means the same object as the first of them, and the newest version known. Where nothing waits, nobody
    /// carries the pile any more.
    fn take(&self, target: &ObjectRef) -> Option<(Vec<Waiting>, Option<String>)> {
        let mut piles = self.piles();
        let pile = piles.get_mut(target)?;
        let Some(uid) = pile.waiting.first().map(|first| first.note.uid.clone()) else {
            pile.carried = false;
            return None;
        };
        let (now, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut pile.waiting).into_iter().partition(|one| one.note.uid == uid);
        pile.waiting = later;
        pile.last = now.len();
        Some((now, pile.version.clone()))
    }

    /// The object is at this version now.
    fn written(&self, target: &ObjectRef, version: Option<String>) {
        if let Some(pile) = self.piles().get_mut(target) {
            pile.version = version;
        }
    }

    fn piles(&self) -> MutexGuard<'_, BTreeMap<ObjectRef, Pile>> {
        self.piles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kube {
    /// Has a note carried, together with others about the same object.
    pub(crate) async fn note(&self, note: &Note) -> Outcome {
        let (tell, told) = oneshot::channel();
        if self.desk.put(Waiting { note: note.clone(), tell }) {
            tokio::spawn(self.clone().carry(note.target.clone()));
        }
        told.await.unwrap_or_else(|_| Outcome::Unknown("the process is ending".into()))
    }

    async fn carry(self, target: ObjectRef) {
        // There is one such request at a time, and much waits for it: it does not wait for its turn behind others.
        let kube = Kube { gate: None, ..self };
        loop {
            // Whoever is ready to run has their say before the request is made.
            take_turns(1).await;
            kube.desk.company(&target).await;
            let Some((pile, mut version)) = kube.desk.take(&target) else { return };
            let together = Note {
                annotations: pile.iter().flat_map(|one| one.note.annotations.clone()).collect(),
                ..pile[0].note.clone()
            };
            let outcome = kube.send_notes(&together, &mut version).await;
            match outcome {
                // One that the server will not have must not take the others along.
                Outcome::Refused(Refusal::Denied(_)) if pile.len() > 1 => {
                    for Waiting { note, tell } in pile {
                        let _ = tell.send(kube.send_notes(&note, &mut version).await);
                    }
                }
                outcome => {
                    for (number, Waiting { tell, .. }) in pile.into_iter().enumerate() {
                        if number > 0 && number % TOLD == 0 {
                            take_turns(TURNS).await;
                        }
                        let _ = tell.send(outcome.clone());
                    }
                }
            }
            kube.desk.written(&target, version);
        }
    }

    /// Sends notes at the newest version known, and again if that was not the newest.
    async fn send_notes(&self, notes: &Note, known: &mut Option<String>) -> Outcome {
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
                Outcome::Done(Reply::Object(object)) if is(&object, notes) => {
                    version = object.meta().resource_version.clone();
                }
                Outcome::Done(_) | Outcome::Refused(_) | Outcome::Unknown(_) => break,
            }
        }
        outcome
    }
}

/// Lets everybody else who is ready to run do so, so many times.
async fn take_turns(turns: usize) {
    for _ in 0..turns {
        tokio::task::yield_now().await;
    }
}

fn is(object: &Object, notes: &Note) -> bool {
    object.meta().uid == notes.uid
}

/// Versions of one kind can be compared; anything else is no version, and older.
fn newer(known: Option<String>, seen: &str) -> String {
    let number = |text: &str| text.parse::<u64>().unwrap_or(0);
    known.filter(|known| number(known) >= number(seen)).unwrap_or_else(|| seen.into())
}
