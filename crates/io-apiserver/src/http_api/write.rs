//! Create, update, patch, bind and delete: HTTP on one side, requests of the store on the other.

use axum::body::Body;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::{Response, StatusCode};
use rules_store::{
    DeletePropagation, EventType, FieldValidation, PatchKind, Precondition, Request, Subresource, Target, WriteOptions,
};
use serde_json::{Value, json};

use super::body::{self, Decoded};
use super::{RequestInfo, authorize, options as query, respond};
use crate::Core;
use crate::refusal::Refusal;
use crate::view::Filter;
use crate::writer::Done;

/// POST to a collection.
pub(crate) async fn create(core: &Core, info: &RequestInfo, body: Bytes) -> Result<Response<Body>, Refusal> {
    let (validation, mut warnings) = (field_validation(info)?, Vec::new());
    let decoded = body::object(&info.media_type, body).await?;
    let value = check_duplicates(decoded, validation, &mut warnings)?;
    let request = Request::Create {
        kind: info.path.kind,
        namespace: info.path.namespace.clone(),
        body: value,
        options: options(info, validation),
    };
    let done = core.writer.write(&info.identity.user, request).await?;
    object_reply(info, StatusCode::CREATED, done, warnings)
}

/// PUT of an object or its status.
pub(crate) async fn update(core: &Core, info: &RequestInfo, body: Bytes) -> Result<Response<Body>, Refusal> {
    let (validation, mut warnings) = (field_validation(info)?, Vec::new());
    let decoded = body::object(&info.media_type, body).await?;
    let value = check_duplicates(decoded, validation, &mut warnings)?;
    let request = Request::Update {
        target: target(info),
        subresource: subresource(info),
        body: value,
        options: options(info, validation),
    };
    let done = core.writer.write(&info.identity.user, request).await?;
    object_reply(info, StatusCode::OK, done, warnings)
}

/// PATCH of an object or its status.
pub(crate) async fn patch(core: &Core, info: &RequestInfo, body: Bytes) -> Result<Response<Body>, Refusal> {
    let (validation, mut warnings) = (field_validation(info)?, Vec::new());
    let kind = PatchKind::from_media_type(&info.media_type)?;
    let decoded = match kind {
        PatchKind::Apply if info.options.field_manager.is_empty() => {
            return Err(Refusal::bad_request("an apply needs the query parameter fieldManager"));
        }
        PatchKind::Apply => body::apart(body, body::yaml).await?,
        PatchKind::Json | PatchKind::Merge | PatchKind::Strategic => body::apart(body, body::json).await?,
    };
    // An apply makes what is missing, so whoever may only patch may only change what is there.
    let creating = if kind == PatchKind::Apply { authorize(core, info, "create") } else { Ok(()) };
    let only_existing = creating.is_err();
    let value = check_duplicates(decoded, validation, &mut warnings)?;
    let request = Request::Patch {
        target: target(info),
        subresource: subresource(info),
        kind,
        body: value,
        options: WriteOptions { only_existing, ..options(info, validation) },
    };
    let done = core.writer.write(&info.identity.user, request).await.map_err(|refusal| match creating {
        Err(forbidden) if kind == PatchKind::Apply && refusal.code() == 404 => forbidden,
        Ok(()) | Err(_) => refusal,
    })?;
    let code = if done.event == Some(EventType::Added) { StatusCode::CREATED } else { StatusCode::OK };
    object_reply(info, code, done, warnings)
}

/// POST to `pods/{name}/binding`.
pub(crate) async fn bind(core: &Core, info: &RequestInfo, body: Bytes) -> Result<Response<Body>, Refusal> {
    let binding = body::object(&info.media_type, body).await?.value;
    let node = binding["target"]["name"].as_str().unwrap_or_default();
    if node.is_empty() {
        return Err(Refusal::bad_request("target.name must name the node the pod goes to"));
    }
    let request = Request::Bind {
        target: target(info),
        uid: binding["metadata"]["uid"].as_str().filter(|uid| !uid.is_empty()).map(str::to_owned),
        node: node.to_owned(),
        dry_run: info.options.dry_run,
    };
    core.writer.write(&info.identity.user, request).await?;
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    respond::value(StatusCode::CREATED, info.accepted, &status)
}

/// The options of a delete, from its query and its body; the body wins.
struct DeleteOptions {
    preconditions: Precondition,
    grace_seconds: Option<i64>,
    dry_run: bool,
    /// What becomes of what the object owns.
    propagation: DeletePropagation,
}

/// What a client asks for; the older way to ask is a flag.
fn propagation(policy: Option<&str>, orphan: Option<bool>) -> Result<DeletePropagation, Refusal> {
    match (policy, orphan) {
        (None | Some("Background"), None | Some(false)) => Ok(DeletePropagation::Background),
        (Some("Foreground"), None | Some(false)) => Ok(DeletePropagation::Foreground),
        (Some("Orphan"), _) | (None, Some(true)) => Ok(DeletePropagation::Orphan),
        (Some(other), _) => Err(Refusal::from(rules_store::Failure::bad_request(format!(
            "propagationPolicy {other} cannot be had; write Background, Foreground or Orphan"
        )))),
    }
}

async fn delete_options(info: &RequestInfo, body: Bytes) -> Result<DeleteOptions, Refusal> {
    let mut options = DeleteOptions {
        preconditions: Precondition::default(),
        grace_seconds: info.options.grace_period_seconds,
        dry_run: info.options.dry_run,
        propagation: propagation(info.options.propagation_policy.as_deref(), None)?,
    };
    if body.trim_ascii().is_empty() {
        return Ok(options);
    }
    let sent = body::object(&info.media_type, body).await?.value;
    let text = |value: &Value| value.as_str().filter(|t| !t.is_empty()).map(str::to_owned);
    options.preconditions = Precondition {
        uid: text(&sent["preconditions"]["uid"]),
        resource_version: text(&sent["preconditions"]["resourceVersion"]).map(api::ResourceVersion),
    };
    if let Some(seconds) = sent["gracePeriodSeconds"].as_i64() {
        options.grace_seconds = Some(seconds);
    }
    if sent["propagationPolicy"].is_string() || sent["orphanDependents"].is_boolean() {
        options.propagation = propagation(sent["propagationPolicy"].as_str(), sent["orphanDependents"].as_bool())?;
    }
    for value in sent["dryRun"].as_array().into_iter().flatten() {
        options.dry_run |= query::dry_run(value.as_str().unwrap_or("?"))?;
    }
    Ok(options)
}

/// DELETE of one object.
pub(crate) async fn delete(core: &Core, info: &RequestInfo, body: Bytes) -> Result<Response<Body>, Refusal> {
    let DeleteOptions { preconditions, grace_seconds, dry_run, propagation } = delete_options(info, body).await?;
    let request = Request::Delete { target: target(info), preconditions, grace_seconds, propagation, dry_run };
    let done = core.writer.write(&info.identity.user, request).await?;
    // An object that only waits for its finalizers or its grace is shown, so that the client can wait with it.
    if done.event == Some(EventType::Modified) || (done.reply.is_deleting() && done.event.is_none()) {
        return object_reply(info, StatusCode::OK, done, Vec::new());
    }
    let kind = info.path.kind;
    let mut details = json!({"name": info.path.name, "kind": kind.plural(), "uid": done.reply.uid()});
    if !kind.group().is_empty() {
        details["group"] = json!(kind.group());
    }
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
    });
    respond::value(StatusCode::OK, info.accepted, &status)
}

/// DELETE of a collection: each object that matches now, by its uid.
pub(crate) async fn delete_collection(core: &Core, info: &RequestInfo, body: Bytes) -> Result<Response<Body>, Refusal> {
    let options = delete_options(info, body).await?;
    let filter = Filter::new(&info.path, &info.options)?;
    let objects: Vec<_> =
        core.hub.read(|store| store.list(filter.kind, filter.namespace.as_deref()).cloned().collect::<Vec<_>>());
    let mut pending = FuturesUnordered::new();
    let mut items = Vec::new();
    for object in objects.into_iter().filter(|o| filter.matches(o)) {
        let request = Request::Delete {
            target: Target::new(object.key.kind, &*object.key.namespace, &*object.key.name),
            preconditions: Precondition { uid: Some(object.uid().to_owned()), resource_version: None },
            grace_seconds: options.grace_seconds,
            propagation: options.propagation,
            dry_run: options.dry_run,
        };
        pending.push(core.writer.write(&info.identity.user, request));
    }
    while let Some(result) = pending.next().await {
        match result {
            Ok(done) => items.push(done.reply.value.clone()),
            // Gone already, or replaced by a namesake that was not asked about.
            Err(refusal) if matches!(refusal.code(), 404 | 409) => {}
            Err(refusal) => return Err(refusal),
        }
    }
    let list = json!({
        "kind": info.path.kind.list_kind(), "apiVersion": info.path.kind.api_version(),
        "metadata": {"resourceVersion": core.hub.read(rules_store::Store::revision).to_string()}, "items": items,
    });
    respond::value(StatusCode::OK, info.accepted, &list)
}

fn target(info: &RequestInfo) -> Target {
    Target::new(info.path.kind, info.path.namespace.as_str(), info.path.name.as_str())
}

fn subresource(info: &RequestInfo) -> Option<Subresource> {
    if info.path.subresource == "status" { Some(Subresource::Status) } else { None }
}

fn object_reply(
    info: &RequestInfo,
    code: StatusCode,
    done: Done,
    mut warnings: Vec<String>,
) -> Result<Response<Body>, Refusal> {
    warnings.extend(done.warnings);
    let mut response = respond::object(code, info.accepted, &info.options, &done.reply, done.encoded)?;
    respond::warn(response.headers_mut(), &warnings);
    Ok(response)
}

fn options(info: &RequestInfo, field_validation: FieldValidation) -> WriteOptions {
    WriteOptions { dry_run: info.options.dry_run, field_validation, only_existing: false, judged: true }
}

fn field_validation(info: &RequestInfo) -> Result<FieldValidation, Refusal> {
    match info.options.field_validation.as_str() {
        "" | "Warn" => Ok(FieldValidation::Warn),
        "Strict" => Ok(FieldValidation::Strict),
        "Ignore" => Ok(FieldValidation::Ignore),
        other => Err(Refusal::bad_request(format!("fieldValidation must be Strict, Warn or Ignore, not \"{other}\""))),
    }
}

fn check_duplicates(
    decoded: Decoded,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value, Refusal> {
    let sentences = decoded.duplicates.iter().map(|path| format!("duplicate field \"{path}\""));
    match validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => warnings.extend(sentences),
        FieldValidation::Strict if decoded.duplicates.is_empty() => {}
        FieldValidation::Strict => {
            let sentences: Vec<String> = sentences.collect();
            return Err(Refusal::bad_request(format!("strict decoding error: {}", sentences.join(", "))));
        }
    }
    Ok(decoded.value)
}
