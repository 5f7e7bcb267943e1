//! Questions past every cache that many share. Callers that ask the same while one request is under way share the next
//! one: each gets an answer to a request that began after it asked, and a hundred who ask at once cost the server a few
//! requests, not a hundred.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::Kind;
use control::{Outcome, Reply};
use tokio::sync::oneshot;

use crate::watch::Scope;
use crate::{Kube, RequestError};

/// What is asked past every cache, by all clones of a client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Past {
    /// Every object of a kind in a namespace.
    lists: Shared<(Kind, String), Outcome>,
    /// The version of a kind.
    versions: Shared<Kind, Option<u64>>,
    /// Kinds of which a watch has seen an object that it could not decode.
    doubted: Arc<Mutex<BTreeSet<Kind>>>,
}

/// Who waits for the next answer to each question. An entry exists while a task asks it.
#[derive(Debug)]
struct Shared<Q, A> {
    waiting: Arc<Mutex<BTreeMap<Q, Vec<oneshot::Sender<A>>>>>,
}

impl<Q, A> Shared<Q, A>
where
    Q: Ord + Clone + Send + 'static,
    A: Clone + Send + 'static,
{
    /// The answer to a question that is put after this call. `None` if the process is ending.
    async fn ask<F>(&self, question: Q, put: impl Fn(Q) -> F + Send + 'static) -> Option<A>
    where
        F: Future<Output = A> + Send,
    {
        let (ended, answer) = oneshot::channel();
        if self.join(&question, ended) {
            let shared = self.clone();
            // A task of its own, so that a caller who goes away takes no one else's answer along.
            tokio::spawn(async move {
                while let Some(waiting) = shared.take(&question) {
                    let answer = put(question.clone()).await;
                    for one in waiting {
                        // Whoever is gone needs none.
                        let _ = one.send(answer.clone());
                    }
                }
            });
        }
        answer.await.ok()
    }

    /// Waits for the next answer. True if no task puts this question yet.
    fn join(&self, question: &Q, ended: oneshot::Sender<A>) -> bool {
        let mut waiting = self.waiting();
        let first = !waiting.contains_key(question);
        waiting.entry(question.clone()).or_default().push(ended);
        first
    }

    /// Those whom the next answer is for; `None` if nobody waits, and the task ends.
    fn take(&self, question: &Q) -> Option<Vec<oneshot::Sender<A>>> {
        let mut waiting = self.waiting();
        let mut these = std::mem::take(waiting.get_mut(question)?);
        these.retain(|one| !one.is_closed());
        if these.is_empty() {
            waiting.remove(question);
            return None;
        }
        Some(these)
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<Q, Vec<oneshot::Sender<A>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Q, A> Clone for Shared<Q, A> {
    fn clone(&self) -> Self {
        Shared { waiting: self.waiting.clone() }
    }
}

impl<Q, A> Default for Shared<Q, A> {
    fn default() -> Self {
        Shared { waiting: Arc::default() }
    }
}

impl Kube {
    /// Reads every object of a kind in a namespace, past every cache.
    pub async fn read_all(&self, kind: Kind, namespace: &str) -> Outcome {
        let kube = self.clone();
        let put = move |of| kube.clone().list_fresh(of);
        let answer = self.past.lists.ask((kind, namespace.to_string()), put).await;
        answer.unwrap_or_else(|| Outcome::Unknown("the process is ending".into()))
    }

    /// A version that the objects of a kind have at a moment after this call: a watch of the whole kind that has
    /// delivered it has delivered all that was written before this call. It costs one object and is shared by all who
    /// ask at once. `None` if the server does not say, or if a watch of the kind has left an object out.
    pub async fn version(&self, kind: Kind) -> Option<u64> {
        if self.is_doubted(kind) {
            return None;
        }
        let kube = self.clone();
        let put = move |kind| kube.clone().version_fresh(kind);
        self.past.versions.ask(kind, put).await.flatten()
    }

    /// A watch of the kind has seen an object that it could not decode, so that a cache may show an older one for ever.
    pub fn is_doubted(&self, kind: Kind) -> bool {
        self.past.doubted.lock().unwrap_or_else(PoisonError::into_inner).contains(&kind)
    }

    /// A watch of the kind goes on without an object that it could not decode.
    pub(crate) fn doubt(&self, kind: Kind) {
        self.past.doubted.lock().unwrap_or_else(PoisonError::into_inner).insert(kind);
    }

    async fn version_fresh(self, kind: Kind) -> Option<u64> {
        self.list_version(kind).await.ok()?.parse().ok().filter(|version| *version > 0)
    }

    async fn list_fresh(self, (kind, namespace): (Kind, String)) -> Outcome {
        let scope = Scope { namespace, ..Scope::default() };
        match self.list_in(kind, &scope, &mut |_| {}).await {
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
    fn who_asks_while_an_answer_is_under_way_gets_the_next_one() {
        let lists: Shared<(Kind, String), Outcome> = Shared::default();
        let of = (Kind::Pod, "n".to_string());
        let mut asked = Vec::new();
        let mut join = |of: &(Kind, String)| {
            let (ended, answer) = oneshot::channel();
            asked.push(answer);
            lists.join(of, ended)
        };
        assert!(join(&of), "the first caller begins");
        assert_eq!(lists.take(&of).unwrap().len(), 1, "its list begins");
        assert!(!join(&of));
        assert!(!join(&of));
        assert_eq!(lists.take(&of).unwrap().len(), 2, "one list serves both");
        assert!(lists.take(&of).is_none());
        assert!(join(&of), "a new task begins");
        assert!(join(&(Kind::Pod, "m".into())), "another namespace has lists of its own");
    }

    #[test]
    fn nothing_is_asked_for_those_who_are_gone() {
        let versions: Shared<Kind, Option<u64>> = Shared::default();
        let (ended, answer) = oneshot::channel();
        assert!(versions.join(&Kind::Pod, ended));
        drop(answer);
        assert!(versions.take(&Kind::Pod).is_none());
    }
}
