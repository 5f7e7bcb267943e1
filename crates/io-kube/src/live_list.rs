//! Lists past every cache. Callers that ask for the same list while one is under way share the next one: each gets a
//! list that began after it asked, and a hundred claims deleted at once cost the server a few lists, not a hundred.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::Kind;
use control::{Outcome, Reply};
use tokio::sync::oneshot;

use crate::watch::Scope;
use crate::{Kube, RequestError};

/// A kind and a namespace.
type Collection = (Kind, String);

/// Who waits for the next list of each collection. An entry exists while a task reads its lists.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveLists {
    waiting: Arc<Mutex<BTreeMap<Collection, Vec<oneshot::Sender<Outcome>>>>>,
}

impl LiveLists {
    /// Waits for the next list. True if no task reads this collection yet.
    fn join(&self, of: &Collection, ended: oneshot::Sender<Outcome>) -> bool {
        let mut waiting = self.waiting();
        let first = !waiting.contains_key(of);
        waiting.entry(of.clone()).or_default().push(ended);
        first
    }

    /// Those whom the next list is for; `None` if nobody waits, and the task ends.
    fn take(&self, of: &Collection) -> Option<Vec<oneshot::Sender<Outcome>>> {
        let mut waiting = self.waiting();
        let these = std::mem::take(waiting.get_mut(of)?);
        if these.is_empty() {
            waiting.remove(of);
            return None;
        }
        Some(these)
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<Collection, Vec<oneshot::Sender<Outcome>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kube {
    /// Reads every object of a kind in a namespace, past every cache.
    pub async fn read_all(&self, kind: Kind, namespace: &str) -> Outcome {
        let of = (kind, namespace.to_string());
        let (ended, outcome) = oneshot::channel();
        if self.live_lists.join(&of, ended) {
            // A task of its own, so that a caller who goes away takes no one else's list along.
            tokio::spawn(self.clone().serve_lists(of));
        }
        outcome.await.unwrap_or_else(|_| Outcome::Unknown("the process is ending".into()))
    }

    /// Reads one list after the other, until nobody waits for one.
    async fn serve_lists(self, of: Collection) {
        while let Some(waiting) = self.live_lists.take(&of) {
            let outcome = self.list_fresh(&of).await;
            for one in waiting {
                // Whoever is gone needs no list.
                let _ = one.send(outcome.clone());
            }
        }
    }

    async fn list_fresh(&self, (kind, namespace): &Collection) -> Outcome {
        let scope = Scope { namespace: namespace.clone(), ..Scope::default() };
        match self.list_in(*kind, &scope).await {
            Ok((_, items)) => match items.into_iter().collect::<Result<Vec<_>, _>>() {
                Ok(objects) => Outcome::Done(Reply::Objects(objects)),
                // What cannot be understood never counts as absent.
                Err(unreadable) => {
                    let name = unreadable.key.as_ref().map_or_else(|| "one without a name".into(), ToString::to_string);
                    Outcome::Unknown(format!("cannot understand {} {name}: {}", kind.name(), unreadable.reason))
                }
            },
            Err(error @ RequestError::Refused { .. }) => Outcome::Refused(control::Refusal::Denied(error.to_string())),
            Err(error) => Outcome::Unknown(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_while_a_list_is_under_way_gets_the_next_one() {
        let lists = LiveLists::default();
        let of = (Kind::Pod, "n".to_string());
        let ask = || oneshot::channel().0;
        assert!(lists.join(&of, ask()), "the first caller begins");
        assert_eq!(lists.take(&of).unwrap().len(), 1, "its list begins");
        assert!(!lists.join(&of, ask()));
        assert!(!lists.join(&of, ask()));
        assert_eq!(lists.take(&of).unwrap().len(), 2, "one list serves both");
        assert!(lists.take(&of).is_none());
        assert!(lists.join(&of, ask()), "a new task begins");
        assert!(lists.join(&(Kind::Pod, "m".into()), ask()), "another namespace has lists of its own");
    }
}
