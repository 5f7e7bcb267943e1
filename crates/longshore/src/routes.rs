//! What the process answers beside the Kubernetes API.

use std::fmt::Write;
use std::sync::{Arc, OnceLock};

use api::{ObjectKey, ObjectRef};
use axum::Router;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use io_run::Manager;
use serde::Deserialize;
use serde_json::json;

use crate::collected;
use crate::explain;
use crate::sidecar::http;
use crate::stats::VolumeStats;
use crate::status;

/// Where requests are counted.
pub const COUNTS: &str = "/longshore/v1/counts";

/// How a text of metrics ends.
const END: &str = "# EOF\n";

/// What to explain.
#[derive(Deserialize)]
struct About {
    kind: String,
    #[serde(default)]
    namespace: String,
    name: String,
}

/// The routes. They answer once the controllers have started.
pub fn router(manager: Arc<OnceLock<Arc<Manager>>>) -> Router {
    let (counting, well, showing) = (manager.clone(), manager.clone(), manager.clone());
    Router::new()
        .route(explain::PATH, get(move |about: Query<About>| async move { explained(manager.get(), &about).await }))
        .route(status::PATH, get(move || async move { axum::Json(showing.get().map(|one| status::report(one))) }))
        .route(COUNTS, get(move || async move { counting.get().map(|manager| counts(manager)).unwrap_or_default() }))
        .route("/longshore/v1/healthz", get(move || async move { health(well.get()) }))
}

/// `/healthz` and `/metrics`, for a process that serves nothing else there.
pub fn health_and_metrics(manager: Arc<OnceLock<Arc<Manager>>>, volumes: Option<Arc<VolumeStats>>) -> Router {
    let well = manager.clone();
    Router::new().route("/healthz", get(move || async move { health(well.get()) })).merge(metrics(manager, volumes))
}

/// `/metrics`: what this process did, what it sees, and what drivers say of the volumes of its node, if it has one.
pub fn metrics(manager: Arc<OnceLock<Arc<Manager>>>, volumes: Option<Arc<VolumeStats>>) -> Router {
    let count = move || {
        let (manager, volumes) = (manager.clone(), volumes.clone());
        async move {
            let Some(manager) = manager.get() else { return http::metrics(String::new()) };
            let measured = match volumes {
                Some(volumes) => volumes.metrics().await,
                None => String::new(),
            };
            http::metrics(counted(manager, &measured))
        }
    };
    Router::new().route("/metrics", get(count))
}

/// The mark of the end comes last, whoever wrote it.
fn counted(manager: &Manager, measured: &str) -> String {
    let done = manager.metrics().text();
    let done = done.strip_suffix(END).unwrap_or(&done);
    format!("{done}{}{measured}{END}", manager.cache().look(collected::text))
}

/// `ok`, or which tasks panicked.
fn health(manager: Option<&Arc<Manager>>) -> Response {
    match manager.map_or(Ok(()), |manager| manager.health()) {
        Ok(()) => (StatusCode::OK, "ok").into_response(),
        Err(panicked) => (StatusCode::INTERNAL_SERVER_ERROR, panicked.to_string()).into_response(),
    }
}

async fn explained(manager: Option<&Arc<Manager>>, about: &About) -> Response {
    let refuse = |status: StatusCode, message: String| {
        (status, axum::Json(json!({ "message": message, "reason": "NotFound", "details": { "longshore": true } })))
            .into_response()
    };
    let Some(manager) = manager else {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "longshore is still starting; try again".into());
    };
    let Some(kind) = explain::kind_named(&about.kind) else {
        return refuse(StatusCode::BAD_REQUEST, format!("{} is not a kind that can be explained", about.kind));
    };
    let asked = ObjectRef { kind, key: ObjectKey::new(&*about.namespace, &*about.name) };
    match explain::answer(manager, &asked).await {
        Some(answer) => axum::Json(answer.to_json()).into_response(),
        None => refuse(StatusCode::NOT_FOUND, format!("there is no {asked}; `kubectl get` lists what there is")),
    }
}

/// Requests made so far, one a line: what a volume's life costs can be read off two of these.
pub fn counts(manager: &Manager) -> String {
    let mut text = String::new();
    for ((verb, kind, subresource), count) in manager.kube().counts().all() {
        let slash = if subresource.is_empty() { "" } else { "/" };
        let _ = writeln!(text, "api {verb} {}{slash}{subresource} {count}", kind.plural());
    }
    for (method, count) in manager.drivers().calls().all() {
        let _ = writeln!(text, "csi {} {count}", method.name());
    }
    text
}
