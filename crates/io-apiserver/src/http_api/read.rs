//! Get, list and the start of a watch.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use http::{Response, StatusCode};
use rules_store::{Failure, Stored};
use tokio::time::timeout;

use super::negotiate::Encoding;
use super::options::Options;
use super::path::ResourcePath;
use super::respond::{self, ListHead};
use super::{RequestInfo, protobuf};
use crate::refusal::Refusal;
use crate::snapshots::{self, Snapshot, Token};
use crate::tls::Closing;
use crate::view::Filter;
use crate::watch::{self, Watch};
use crate::{Core, logs::LogRequest};

/// What ends a stream before its time.
pub(crate) struct End {
    /// The server stops.
    pub closing: Option<Closing>,
    /// The caller may no longer read it.
    pub rights: Pin<Box<dyn Future<Output = Refusal> + Send>>,
}

/// How long a reader may wait for a version that is not here yet.
const CATCH_UP: Duration = Duration::from_secs(3);

/// Answers a GET of one object.
pub(crate) fn get(core: &Core, info: &RequestInfo) -> Result<Response<Body>, Refusal> {
    let object = find(core, &info.path)?;
    respond::object(StatusCode::OK, info.accepted, &info.options, &object, None)
}

pub(super) fn find(core: &Core, path: &ResourcePath) -> Result<Arc<Stored>, Refusal> {
    core.hub
        .read(|store| store.get(path.kind, &path.namespace, &path.name))
        .ok_or_else(|| Failure::NotFound { kind: path.kind, name: path.name.clone() }.into())
}

/// A collection, whole or in pages.
pub(crate) async fn list(core: &Core, info: &RequestInfo) -> Result<Response<Body>, Refusal> {
    let options = &info.options;
    let name =
        snapshots::list_name(info.path.kind, &info.path.namespace, &options.label_selector, &options.field_selector);
    let (snapshot, id, offset) = if options.continue_token.is_empty() {
        honour_version(core, info).await?;
        let filter = Filter::new(&info.path, options)?;
        let (revision, objects) = select(core, &filter);
        (Snapshot { revision, objects }, None, 0)
    } else {
        if !options.resource_version.is_empty() && options.resource_version != "0" {
            return Err(Refusal::bad_request("resourceVersion must not be set together with continue"));
        }
        let (snapshot, id, offset) = resume(core, &options.continue_token, &name)?;
        (snapshot, Some(id), offset)
    };
    let end = match options.limit {
        0 => snapshot.objects.len(),
        limit => offset.saturating_add(limit).min(snapshot.objects.len()),
    };
    let page = snapshot.objects.get(offset..end).unwrap_or_default().to_vec();
    let mut head = ListHead { revision: snapshot.revision, continue_token: String::new(), remaining: 0 };
    if end < snapshot.objects.len() {
        head.remaining = snapshot.objects.len() - end;
        let id = id.unwrap_or_else(|| core.snapshots.keep(name, snapshot));
        head.continue_token = Token { boot: snapshots::boot(), id, offset: end }.text();
    }
    respond::list(info.accepted, options, info.path.kind, &head, page)
}

// Reliability 90: the pages of one list are pages of one state, or there is no next page.
fn resume(core: &Core, token: &str, name: &str) -> Result<(Snapshot, u64, usize), Refusal> {
    let token = Token::read(token).ok_or_else(|| Refusal::bad_request("the continue token cannot be read"))?;
    let kept = if token.boot == snapshots::boot() { core.snapshots.find(token.id, name) } else { None };
    match kept {
        Some(snapshot) => Ok((snapshot, token.id, token.offset)),
        None => Err(Refusal::expired("the continue token is too old; start the list again")),
    }
}

fn select(core: &Core, filter: &Filter) -> (u64, Arc<[Arc<Stored>]>) {
    // The lock is held only to copy references; matching happens after it.
    let (revision, candidates) = candidates(core, filter);
    (revision, candidates.into_iter().filter(|o| filter.matches(o)).collect())
}

fn candidates(core: &Core, filter: &Filter) -> (u64, Vec<Arc<Stored>>) {
    core.hub.read(|store| {
        let objects = store.list(filter.kind, filter.namespace.as_deref()).cloned().collect();
        (store.revision(), objects)
    })
}

// Reliability 89.
async fn honour_version(core: &Core, info: &RequestInfo) -> Result<(), Refusal> {
    let asked = info.options.version()?;
    match (asked, info.options.resource_version_match.as_str()) {
        (None, "") | (Some(0), "" | "NotOlderThan") => Ok(()),
        (None, _) => Err(Refusal::bad_request("resourceVersionMatch needs a resourceVersion")),
        (Some(asked), "" | "NotOlderThan") => catch_up(core, asked).await,
        (Some(0), "Exact") => Err(Refusal::bad_request("resourceVersionMatch=Exact needs a resourceVersion above 0")),
        (Some(asked), "Exact") => {
            catch_up(core, asked).await?;
            if core.hub.unchanged_since(info.path.kind, asked) {
                return Ok(());
            }
            Err(Refusal::expired(format!("the state at resourceVersion {asked} is no longer kept")))
        }
        (Some(_), other) => {
            Err(Refusal::bad_request(format!("resourceVersionMatch must be Exact or NotOlderThan, not \"{other}\"")))
        }
    }
}

async fn catch_up(core: &Core, asked: u64) -> Result<(), Refusal> {
    let mut revision = core.hub.revision_bell();
    // The time limit is the answer; how the waiting ended does not matter.
    let _ = timeout(CATCH_UP, revision.wait_for(|revision| *revision >= asked)).await;
    match core.hub.read(rules_store::Store::revision) {
        current if current >= asked => Ok(()),
        current => Err(Refusal::version_too_large(asked, current)),
    }
}

/// A stream of changes.
pub(crate) async fn watch(core: &Arc<Core>, info: &RequestInfo, end: End) -> Result<Response<Body>, Refusal> {
    let options = &info.options;
    let asked = options.version()?;
    let matching = options.resource_version_match.as_str();
    let initial = match (options.send_initial_events, asked) {
        (Some(_), _) if matching != "NotOlderThan" => {
            return Err(Refusal::bad_request("sendInitialEvents needs resourceVersionMatch=NotOlderThan"));
        }
        (None, _) if !matching.is_empty() => {
            return Err(Refusal::bad_request("resourceVersionMatch on a watch needs sendInitialEvents"));
        }
        (Some(wanted), _) => wanted,
        (None, None | Some(0)) => true,
        (None, Some(_)) => false,
    };
    if let (Some(true), Some(asked)) = (options.send_initial_events, asked) {
        catch_up(core, asked).await?;
    }
    let filter = Filter::new(&info.path, options)?;
    let bell = core.hub.bell(filter.kind);
    let (current, objects) =
        if initial { candidates(core, &filter) } else { (core.hub.read(|s| s.revision()), vec![]) };
    let position = match asked {
        Some(asked) if !initial && asked > 0 => asked,
        Some(_) | None => current,
    };
    let stream = Watch {
        hub: core.hub.clone(),
        filter,
        form: info.accepted.form,
        encoding: info.accepted.encoding,
        include_object: options.include_object.clone(),
        position,
        initial: objects.into(),
        announce_initial_end: options.send_initial_events == Some(true) && options.bookmarks,
        bookmarks: options.bookmarks,
        bell,
        closing: end.closing.map(|c| c.0),
        rights: end.rights,
        lifetime: watch::lifetime(options.timeout_seconds),
    };
    let media_type = match info.accepted.encoding {
        Encoding::Protobuf => protobuf::WATCH_TYPE,
        Encoding::Json | Encoding::Yaml => "application/json",
    };
    Ok(respond::raw(StatusCode::OK, media_type, Body::from_stream(stream.into_stream())))
}

/// `pods/{name}/log`.
pub(crate) async fn log(core: &Core, info: &RequestInfo, end: End) -> Result<Response<Body>, Refusal> {
    use futures::StreamExt;
    let Some(source) = &core.logs else { return Err(Refusal::no_such_path()) };
    let pod = find(core, &info.path)?;
    let options = &info.options;
    let container = choose_container(&pod, options.container.as_deref())?;
    let request = LogRequest {
        namespace: info.path.namespace.clone(),
        name: info.path.name.clone(),
        uid: pod.uid().to_owned(),
        waits: waits(&pod, &container),
        container,
        follow: options.follow,
        previous: options.previous,
        timestamps: options.timestamps,
        tail_lines: options.tail_lines,
        limit_bytes: options.limit_bytes,
        since_seconds: options.since_seconds,
        since_millis: since(options)?,
    };
    let stream = source.open(request).await.map_err(|error| Refusal::bad_request(error.to_string()))?;
    let stop = async move {
        let closing = async {
            match end.closing {
                Some(Closing(mut closing)) => drop(closing.wait_for(|closing| *closing).await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = closing => {}
            _refusal = end.rights => {}
        }
    };
    Ok(respond::raw(StatusCode::OK, "text/plain", Body::from_stream(stream.take_until(Box::pin(stop)))))
}

/// The moment from which a log is asked for, if it is asked for so.
fn since(options: &Options) -> Result<Option<u64>, Refusal> {
    let asked = &options.since_time;
    if asked.is_empty() {
        return Ok(None);
    }
    if options.since_seconds.is_some() {
        return Err(Refusal::bad_request("sinceSeconds and sinceTime say the same in two ways; give one of them"));
    }
    let moment = api::Time(asked.clone()).unix_millis();
    let unclear = || format!("sinceTime must be a time such as 2026-11-18T10:00:00Z, not \"{asked}\"");
    moment.map(Some).ok_or_else(|| Refusal::bad_request(unclear()))
}

/// The container's status says that it waits to be started.
fn waits(pod: &Stored, container: &str) -> bool {
    let statuses = pod.value["status"]["containerStatuses"].as_array();
    let mut statuses = statuses.into_iter().flatten().filter(|status| status["name"] == container);
    statuses.any(|status| status["state"]["waiting"].is_object())
}

pub(super) fn choose_container(pod: &Stored, asked: Option<&str>) -> Result<String, Refusal> {
    let names = |list: &str| -> Vec<String> {
        let containers = pod.value["spec"][list].as_array();
        containers.into_iter().flatten().filter_map(|c| c["name"].as_str().map(str::to_owned)).collect()
    };
    let main = names("containers");
    let name = &pod.key.name;
    match asked {
        Some(asked) => {
            let all = ["containers", "initContainers", "ephemeralContainers"];
            if all.iter().any(|list| names(list).iter().any(|n| n == asked)) {
                return Ok(asked.to_owned());
            }
            Err(Refusal::bad_request(format!("container {asked} is not in pod {name}; it has {}", main.join(", "))))
        }
        None => match main.as_slice() {
            [only] => Ok(only.clone()),
            several => Err(Refusal::bad_request(format!(
                "pod {name} has several containers, choose one of {}",
                several.join(", ")
            ))),
        },
    }
}
