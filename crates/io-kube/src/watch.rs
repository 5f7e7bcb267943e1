//! Watches: lists a kind and follows its events, in order, for as long as the process lives.
//!
//! An object that cannot be decoded is reported by name and never counts as absent: the last version that could be decoded
//! stays in the cache until the server says that the object is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api::{Kind, Object, ObjectKey};
use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use tokio::sync::mpsc;

use crate::error::{DecodeError, RequestError};
use crate::event::{EventDecoder, ServerEvent};
use crate::negotiation::{MediaType, Page, Unreadable, accept};
use crate::{Kube, path};

/// What a watch reports. The names are those of `kube::runtime::watcher::Event`.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// A page of the list, with more pages to come.
    InitApply(Vec<Object>),
    /// The last page of the list: at this version the kind has these objects, those of `before`, and no others.
    InitDone {
        /// The kind that was listed.
        kind: Kind,
        /// The version of the list; zero if objects that are not listed may exist all the same.
        version: u64,
        /// The objects of the last page.
        objects: Vec<Object>,
        /// The objects of earlier pages, and those of any page that cannot be decoded.
        before: BTreeSet<ObjectKey>,
    },
    /// The object is new or changed.
    Apply(Object),
    /// The object is gone; this is its last state.
    Delete(Object),
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

/// Why a list or a watch ended.
enum End {
    /// The server closed the watch, as it does now and then: it goes on from the last version.
    Closed,
    /// The watch has to begin with a list: the last version is too old (410 Gone), or an object is gone whose name is not
    /// known.
    Relist,
    /// The server does not serve the kind: there are no such objects until its CustomResourceDefinition is installed.
    NotServed,
    /// The watch is tried again after a pause.
    Failed(RequestError),
    /// Nobody receives events any more.
    ReceiverDropped,
}

/// Objects per page of a list: enough to be fast, few enough to bound the memory of one answer.
const PAGE: usize = 250;
/// The same for a list that somebody waits for: every page is a round trip, and only the first of them comes from the
/// server's memory.
const LIVE_PAGE: usize = 2000;
/// Pauses between attempts: short at first, and never so long that a server that is back goes unnoticed.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often the watch of a kind that the server does not serve is tried again.
const NOT_SERVED_PAUSE: Duration = Duration::from_secs(30);

impl Kube {
    /// Lists a kind and follows it until the receiver is dropped. Failures are retried for ever: a cluster may be away for
    /// a while, and what was seen last stays true for the cache until it is back.
    pub async fn watch(self, kind: Kind, events: mpsc::Sender<WatchEvent>) {
        self.watch_within(kind, Scope::default(), events).await;
    }

    /// As [`Kube::watch`], of some of the kind's objects.
    pub async fn watch_within(self, kind: Kind, scope: Scope, events: mpsc::Sender<WatchEvent>) {
        let mut pause = FIRST_PAUSE;
        let mut version: Option<String> = None;
        loop {
            let end = match &mut version {
                None => match self.init(kind, &scope, &events).await {
                    Ok(listed) => {
                        version = Some(listed);
                        pause = FIRST_PAUSE;
                        continue;
                    }
                    Err(end) => end,
                },
                Some(version) => self.follow(kind, &scope, version, &events).await,
            };
            match end {
                End::Closed => pause = FIRST_PAUSE,
                End::Relist => version = None,
                End::ReceiverDropped => return,
                End::NotServed => {
                    version = None;
                    let none = WatchEvent::InitDone { kind, version: 0, objects: Vec::new(), before: BTreeSet::new() };
                    if events.send(none).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(NOT_SERVED_PAUSE).await;
                }
                End::Failed(error) => {
                    tracing::warn!(kind = kind.name(), "the watch stopped and will be tried again: {error}");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    /// Lists a kind, a page at a time, so that a long list is never in memory as a whole. Returns its version.
    async fn init(&self, kind: Kind, scope: &Scope, events: &mpsc::Sender<WatchEvent>) -> Result<String, End> {
        let (mut before, mut next) = (BTreeSet::new(), String::new());
        let (mut alone, mut all_named) = (None, true);
        loop {
            // Long lists come one after the other, so that no more than a few pages are in memory at any time.
            if !next.is_empty() && alone.is_none() {
                alone = self.lists.acquire().await.ok();
            }
            let page = match self.page(kind, scope, &next, PAGE).await {
                // The rest of the list has expired: from the beginning.
                Err(End::Relist) => {
                    before.clear();
                    next.clear();
                    all_named = true;
                    continue;
                }
                page => page?,
            };
            let mut objects = Vec::with_capacity(page.items.len());
            for item in page.items {
                match item {
                    Ok(object) => objects.push(object),
                    Err(unreadable) => {
                        warn(kind, &unreadable);
                        self.doubt(kind);
                        all_named &= unreadable.key.is_some();
                        before.extend(unreadable.key);
                    }
                }
            }
            if page.metadata.r#continue.is_empty() {
                // An object without a name may be any of those in the cache: then none of them counts as gone.
                let version = if all_named { page.metadata.resource_version.parse().unwrap_or(0) } else { 0 };
                let done = WatchEvent::InitDone { kind, version, objects, before };
                events.send(done).await.map_err(|_| End::ReceiverDropped)?;
                return Ok(page.metadata.resource_version);
            }
            next = page.metadata.r#continue;
            before.extend(objects.iter().map(|object| object.meta().key()));
            events.send(WatchEvent::InitApply(objects)).await.map_err(|_| End::ReceiverDropped)?;
        }
    }

    /// Every object of a kind that can be decoded, and the version of the list.
    pub async fn list(&self, kind: Kind) -> Result<(String, Vec<Object>), RequestError> {
        self.list_by_pages(kind, &mut |_| {}).await
    }

    /// The same, for somebody who waits: after each page it is told how many objects have come so far.
    pub async fn list_by_pages(
        &self,
        kind: Kind,
        told: &mut (dyn FnMut(usize) + Send),
    ) -> Result<(String, Vec<Object>), RequestError> {
        let (version, items) = self.list_in(kind, &Scope::default(), told).await?;
        let warned = items.into_iter().map(|item| item.inspect_err(|object| warn(kind, object)));
        Ok((version, warned.flatten().collect()))
    }

    /// Every object of a kind in a scope, decoded or not, and the version of the list.
    pub(crate) async fn list_in(
        &self,
        kind: Kind,
        scope: &Scope,
        told: &mut (dyn FnMut(usize) + Send),
    ) -> Result<(String, Vec<Result<Object, Box<Unreadable>>>), RequestError> {
        let (mut items, mut next) = (Vec::new(), String::new());
        loop {
            match self.page(kind, scope, &next, LIVE_PAGE).await {
                Ok(page) => {
                    items.extend(page.items);
                    told(items.len());
                    next = page.metadata.r#continue;
                    if next.is_empty() {
                        return Ok((page.metadata.resource_version, items));
                    }
                }
                Err(End::Failed(error)) => return Err(error),
                Err(End::NotServed) => return Err(RequestError::NotServed(kind)),
                Err(End::Relist | End::Closed | End::ReceiverDropped) => {
                    items.clear();
                    next.clear();
                }
            }
        }
    }

    /// The version of a list of a kind, which takes one object.
    pub(crate) async fn list_version(&self, kind: Kind) -> Result<String, RequestError> {
        match self.page(kind, &Scope::default(), "", 1).await {
            Ok(page) => Ok(page.metadata.resource_version),
            Err(End::Failed(error)) => Err(error),
            Err(End::NotServed | End::Relist | End::Closed | End::ReceiverDropped) => {
                Err(RequestError::NotServed(kind))
            }
        }
    }

    async fn page(&self, kind: Kind, scope: &Scope, next: &str, limit: usize) -> Result<Page, End> {
        self.counts.add("list", kind, "");
        let token = if next.is_empty() { String::new() } else { format!("&continue={next}") };
        let path = format!("{}limit={limit}{token}", scope.path(kind));
        let answer = self.send(Method::GET, &path, Some(kind), "", Bytes::new()).await.map_err(End::Failed)?;
        match answer.code {
            StatusCode::NOT_FOUND => Err(End::NotServed),
            StatusCode::GONE => Err(End::Relist),
            code if !code.is_success() => Err(End::Failed(answer.refusal(format!("list {}", kind.plural())))),
            _ => answer.page(kind).map_err(|reason| {
                End::Failed(RequestError::Undecodable { what: format!("the list of {}", kind.plural()), reason })
            }),
        }
    }

    /// Follows a kind from `version`, which moves on with every event.
    async fn follow(&self, kind: Kind, scope: &Scope, version: &mut String, events: &mpsc::Sender<WatchEvent>) -> End {
        self.counts.add("watch", kind, "");
        let path = format!("{}watch=true&allowWatchBookmarks=true&resourceVersion={version}", scope.path(kind));
        let request = match http::Request::get(&path).header("accept", accept(Some(kind))).body(Body::empty()) {
            Ok(request) => request,
            Err(error) => return End::Failed(RequestError::invalid(&path, &error)),
        };
        let response = match self.client.send(request).await {
            Ok(response) => response,
            Err(error) => return End::Failed(RequestError::no_answer(&error)),
        };
        let code = response.status();
        if code == StatusCode::GONE {
            return End::Relist;
        }
        if !code.is_success() {
            let action = format!("watch {}", kind.plural());
            return End::Failed(RequestError::Refused { action, status: code.as_u16(), message: code.to_string() });
        }
        let media_type = MediaType::of(response.headers());
        let (mut body, mut decoder) = (response.into_body(), EventDecoder::new(media_type));
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => decoder.push(&frame.into_data().unwrap_or_default()),
                Err(error) => return End::Failed(RequestError::broken_answer(&error)),
            }
            loop {
                let event = match decoder.next() {
                    Ok(Some(event)) => ServerEvent::decode(media_type, kind, &event),
                    Ok(None) => break,
                    Err(error) => Err(error),
                };
                if let Ok(ServerEvent::Applied(Err(_)) | ServerEvent::Deleted(Err(_))) = &event {
                    self.doubt(kind);
                }
                let delivered = match event {
                    Ok(event) => deliver(kind, event, version, events).await,
                    Err(reason) => Err(undecodable_watch(kind, reason)),
                };
                if let Err(end) = delivered {
                    return end;
                }
            }
        }
        End::Closed
    }
}

fn undecodable_watch(kind: Kind, reason: DecodeError) -> End {
    End::Failed(RequestError::Undecodable { what: format!("the watch of {}", kind.plural()), reason })
}

async fn deliver(
    kind: Kind,
    event: ServerEvent,
    version: &mut String,
    events: &mpsc::Sender<WatchEvent>,
) -> Result<(), End> {
    let (at, event) = match event {
        ServerEvent::Applied(Ok(object)) => (object.meta().resource_version.0.clone(), Some(WatchEvent::Apply(object))),
        ServerEvent::Deleted(Ok(object)) => {
            (object.meta().resource_version.0.clone(), Some(WatchEvent::Delete(object)))
        }
        ServerEvent::Applied(Err(unreadable)) => {
            warn(kind, &unreadable);
            (unreadable.resource_version, None)
        }
        ServerEvent::Deleted(Err(unreadable)) => {
            warn(kind, &unreadable);
            return Err(End::Relist);
        }
        ServerEvent::Bookmark(at) => (at, None),
        ServerEvent::Error { code: 410, .. } => return Err(End::Relist),
        ServerEvent::Error { code, message } => {
            let action = format!("go on with the watch of {}", kind.plural());
            return Err(End::Failed(RequestError::Refused { action, status: code, message }));
        }
    };
    if !at.is_empty() {
        *version = at;
    }
    match event {
        Some(event) => events.send(event).await.map_err(|_| End::ReceiverDropped),
        None => Ok(()),
    }
}

/// Reports an object that cannot be decoded. It must not stop the others (reliability 110).
fn warn(kind: Kind, unreadable: &Unreadable) {
    tracing::warn!(kind = kind.name(), "{}", warning(kind, unreadable));
}

fn warning(kind: Kind, Unreadable { key, reason, .. }: &Unreadable) -> String {
    match key {
        Some(key) => format!("cannot understand {kind} {key}, so what was known of it before stays: {reason}"),
        None => format!("cannot understand a {kind} or its name, so what was known before stays: {reason}"),
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

    #[test]
    fn an_object_that_cannot_be_understood_is_told_by_name() {
        let bad = MediaType::Json.watched_object(
            Kind::StorageClass,
            br#"{ "metadata": { "name": "fast", "resourceVersion": "7" }, "provisioner": 5 }"#,
        );
        let unreadable = bad.unwrap_err();
        assert_eq!(unreadable.resource_version, "7");
        let said = warning(Kind::StorageClass, &unreadable);
        assert!(said.starts_with("cannot understand StorageClass fast, so what was known"), "{said}");
        let nameless = MediaType::Json.watched_object(Kind::StorageClass, b"7").unwrap_err();
        assert!(warning(Kind::StorageClass, &nameless).starts_with("cannot understand a StorageClass or its name"));
    }
}
