//! Watches: what the API server says, in order, for as long as the process lives.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api::{Kind, Object, ObjectKey};
use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use tokio::sync::mpsc;

use crate::answer::{Form, accept};
use crate::event::{Event, Events};
use crate::failure::why;
use crate::{Kube, path};

/// One piece of news from a watch.
#[derive(Clone, Debug)]
pub enum Feed {
    /// A part of a list that goes on.
    Part(Vec<Object>),
    /// The end of a list: these objects of the kind exist at this version, those of the parts before, and no others.
    Replace {
        /// Which kind.
        kind: Kind,
        /// The version of the list.
        version: u64,
        /// The last of them.
        objects: Vec<Object>,
        /// Those of the parts before.
        before: BTreeSet<ObjectKey>,
    },
    /// The object is new or changed.
    Set(Object),
    /// The object is gone; this is its last state.
    Remove(Object),
}

/// Which objects of a kind are watched. The default is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Those of this namespace; empty for all.
    pub namespace: String,
    /// Those with these labels.
    pub labels: BTreeMap<String, String>,
    /// The one of this name; empty for all.
    pub name: String,
}

impl Scope {
    /// The path of a list or watch, up to the first parameter of the caller.
    fn path(&self, kind: Kind) -> String {
        let labels: Vec<String> = self.labels.iter().map(|(key, value)| format!("{key}%3D{value}")).collect();
        let selector = if labels.is_empty() { String::new() } else { format!("labelSelector={}&", labels.join("%2C")) };
        let name =
            if self.name.is_empty() { String::new() } else { format!("fieldSelector=metadata.name%3D{}&", self.name) };
        format!("{}?{name}{}", path::collection(kind, &self.namespace), selector.replace('/', "%2F"))
    }
}

/// Why a watch stopped.
enum Stopped {
    /// The server closed it, as it does now and then: go on from the last version.
    Closed,
    /// The last version is too old to go on from: list anew.
    TooOld,
    /// The server does not know the kind: there are no such objects, until somebody installs it.
    Absent,
    /// Something failed.
    Failed(String),
    /// Nobody listens any more.
    Unheard,
}

/// Objects per page of a list: enough to be quick, small enough to bound what one answer holds in memory.
const PAGE: usize = 250;
/// Pauses between attempts: short at first, bounded because a server that comes back should be noticed soon.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often it is looked whether a kind the server did not know has been installed.
const ABSENT_PAUSE: Duration = Duration::from_secs(30);

/// Why there is no list.
enum NoList {
    Absent,
    TooOld,
    Failed(String),
}

impl Kube {
    /// Lists a kind and follows it until nobody listens. Failures are retried for ever: the cluster may be away for a
    /// while, and what was seen last stays true for the cache until it is back.
    pub async fn watch(self, kind: Kind, news: mpsc::Sender<Feed>) {
        self.watch_within(kind, Scope::default(), news).await;
    }

    /// As [`Kube::watch`], of some of the kind's objects: for those that are only ours to see.
    pub async fn watch_within(self, kind: Kind, scope: Scope, news: mpsc::Sender<Feed>) {
        let mut pause = FIRST_PAUSE;
        let mut version: Option<String> = None;
        loop {
            let stopped = match &version {
                None => match self.begin(kind, &scope, &news).await {
                    Ok(at) => {
                        version = Some(at);
                        pause = FIRST_PAUSE;
                        continue;
                    }
                    Err(stopped) => stopped,
                },
                Some(at) => {
                    let mut last = at.clone();
                    let stopped = self.follow(kind, &scope, &mut last, &news).await;
                    version = Some(last);
                    stopped
                }
            };
            match stopped {
                Stopped::Closed => pause = FIRST_PAUSE,
                Stopped::TooOld => version = None,
                Stopped::Unheard => return,
                Stopped::Absent => {
                    version = None;
                    let none = Feed::Replace { kind, version: 0, objects: Vec::new(), before: BTreeSet::new() };
                    if news.send(none).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(ABSENT_PAUSE).await;
                }
                Stopped::Failed(text) => {
                    tracing::warn!(kind = kind.name(), "the watch stopped and will be tried again: {text}");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Lists a kind, a page at a time, so that a large list is never in memory as a whole. Answers its version.
    async fn begin(&self, kind: Kind, scope: &Scope, news: &mpsc::Sender<Feed>) -> Result<String, Stopped> {
        let (mut before, mut next) = (BTreeSet::new(), String::new());
        let mut alone = None;
        loop {
            // Long lists come one after the other, so that no more than a few pages are in memory at any time.
            if !next.is_empty() && alone.is_none() {
                alone = self.lists.acquire().await.ok();
            }
            let page = match self.page(kind, scope, &next).await {
                Ok(page) => page,
                // The rest of the list is no longer to be had: from the beginning.
                Err(NoList::TooOld) => {
                    before.clear();
                    next.clear();
                    continue;
                }
                Err(NoList::Absent) => return Err(Stopped::Absent),
                Err(NoList::Failed(text)) => return Err(Stopped::Failed(text)),
            };
            if page.next.is_empty() {
                let version = page.version.parse().unwrap_or(0);
                let last = Feed::Replace { kind, version, objects: page.objects, before };
                news.send(last).await.map_err(|_| Stopped::Unheard)?;
                return Ok(page.version);
            }
            next = page.next;
            before.extend(page.objects.iter().map(|object| object.meta().key()));
            news.send(Feed::Part(page.objects)).await.map_err(|_| Stopped::Unheard)?;
        }
    }

    /// Every object of a kind, and the version of the list.
    pub async fn list(&self, kind: Kind) -> Result<(String, Vec<Object>), String> {
        let (mut objects, mut next) = (Vec::new(), String::new());
        loop {
            match self.page(kind, &Scope::default(), &next).await {
                Ok(page) => {
                    objects.extend(page.objects);
                    next = page.next;
                    if next.is_empty() {
                        return Ok((page.version, objects));
                    }
                }
                Err(NoList::TooOld) => {
                    objects.clear();
                    next.clear();
                }
                Err(NoList::Absent) => return Err(format!("the API server does not know {}", kind.plural())),
                Err(NoList::Failed(text)) => return Err(text),
            }
        }
    }

    async fn page(&self, kind: Kind, scope: &Scope, next: &str) -> Result<Listed, NoList> {
        self.counts.add("list", kind, "");
        let token = if next.is_empty() { String::new() } else { format!("&continue={next}") };
        let path = format!("{}limit={PAGE}{token}", scope.path(kind));
        let answered = self.send(Method::GET, &path, Some(kind), "", Bytes::new()).await;
        let answer = answered.map_err(NoList::Failed)?;
        match answer.status {
            StatusCode::NOT_FOUND => return Err(NoList::Absent),
            StatusCode::GONE => return Err(NoList::TooOld),
            status if !status.is_success() => {
                let said = answer.said();
                let why = said.message().unwrap_or(status.as_str());
                return Err(NoList::Failed(format!("listing {} was refused: {why}", kind.plural())));
            }
            _ => {}
        }
        let (metadata, items) = answer
            .list(kind)
            .map_err(|error| NoList::Failed(format!("cannot understand the list of {}: {error}", kind.plural())))?;
        let objects = items.into_iter().filter_map(|item| understood(kind, item)).collect();
        Ok(Listed { version: metadata.resource_version, next: metadata.r#continue, objects })
    }

    async fn follow(&self, kind: Kind, scope: &Scope, version: &mut String, news: &mpsc::Sender<Feed>) -> Stopped {
        self.counts.add("watch", kind, "");
        let path = format!("{}watch=true&allowWatchBookmarks=true&resourceVersion={version}", scope.path(kind));
        let request = match http::Request::get(path).header("accept", accept(Some(kind))).body(Body::empty()) {
            Ok(request) => request,
            Err(error) => return Stopped::Failed(error.to_string()),
        };
        let response = match self.client.send(request).await {
            Ok(response) => response,
            Err(error) => return Stopped::Failed(why(&error)),
        };
        if response.status() == StatusCode::GONE {
            return Stopped::TooOld;
        }
        if !response.status().is_success() {
            return Stopped::Failed(format!("the API server answered {}", response.status()));
        }
        let form = Form::of(response.headers());
        let (mut body, mut events) = (response.into_body(), Events::new(form));
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => events.came(&frame.into_data().unwrap_or_default()),
                Err(error) => return Stopped::Failed(why(&error)),
            }
            loop {
                let event = match events.next() {
                    Ok(Some(event)) => Event::read(form, kind, &event),
                    Ok(None) => break,
                    Err(text) => Err(text),
                };
                let delivered = match event {
                    Ok(event) => deliver(kind, event, version, news).await,
                    Err(text) => Err(Stopped::Failed(text)),
                };
                if let Err(stopped) = delivered {
                    return stopped;
                }
            }
        }
        Stopped::Closed
    }
}

/// A part of a list, and how to get the next.
struct Listed {
    version: String,
    next: String,
    objects: Vec<Object>,
}

async fn deliver(kind: Kind, event: Event, version: &mut String, news: &mpsc::Sender<Feed>) -> Result<(), Stopped> {
    let feed = match event {
        Event::Set(object) => understood(kind, object).map(Feed::Set),
        Event::Removed(object) => understood(kind, object).map(Feed::Remove),
        Event::Bookmark(at) => {
            *version = at;
            return Ok(());
        }
        Event::Error { code: 410, .. } => return Err(Stopped::TooOld),
        Event::Error { message, .. } => return Err(Stopped::Failed(message)),
    };
    if let Some(feed) = feed {
        let (Feed::Set(object) | Feed::Remove(object)) = &feed else { return Ok(()) };
        *version = object.meta().resource_version.clone();
        news.send(feed).await.map_err(|_| Stopped::Unheard)?;
    }
    Ok(())
}

/// An object that cannot be understood is left out and said once: it must not stop the others (reliability 110).
fn understood(kind: Kind, read: Result<Object, String>) -> Option<Object> {
    match read {
        Ok(object) => Some(object),
        Err(error) => {
            tracing::warn!(kind = kind.name(), "left out an object that cannot be understood: {error}");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_a_namespace_and_labels() {
        assert_eq!(Scope::default().path(Kind::Node), "/api/v1/nodes?");
        let labels = [("a/b".to_string(), "c".to_string()), ("d".to_string(), "e".to_string())].into();
        let scope = Scope { namespace: "n".into(), labels, ..Scope::default() };
        let path = scope.path(Kind::CSIStorageCapacity);
        assert_eq!(path, "/apis/storage.k8s.io/v1/namespaces/n/csistoragecapacities?labelSelector=a%2Fb%3Dc%2Cd%3De&");
        let one = Scope { name: "here".into(), ..Scope::default() };
        assert_eq!(one.path(Kind::Node), "/api/v1/nodes?fieldSelector=metadata.name%3Dhere&");
    }
}
