//! Tokens of service accounts, and what callers may ask about themselves.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use rules_store::{Attributes, Failure, Kind, Store};
use serde_json::{Value, json};

use super::path::Review;
use super::standing::FieldStanding;
use super::{RequestInfo, body, negotiate, respond};
use crate::Core;
use crate::auth::{self, Identity};
use crate::pki::unix_now;
use crate::refusal::Refusal;
use crate::token::{AUDIENCE, Account};

/// How long a token lives if nobody says, and at least and at most, in seconds.
const USUAL: i64 = 3600;
const SHORTEST: i64 = 600;
const LONGEST: i64 = 365 * 86_400;

/// The account whose token a request carries. A token dies with its account: one that was made anew has another uid.
pub(crate) fn holder(core: &Core, header: &HeaderValue) -> Option<(Identity, FieldStanding)> {
    let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return None;
    }
    let (account, until) = core.signer.read(token.trim(), unix_now())?;
    if lives(core, &account) { Some((account.identity(), FieldStanding::Token { account, until })) } else { None }
}

/// Whether this very account is still there, and the pod that the token was made for.
pub(crate) fn lives(core: &Core, account: &Account) -> bool {
    core.hub.read(|store| {
        let own = account_uid(store, &account.namespace, &account.name).is_some_and(|uid| uid == account.uid);
        own && account.pod.as_ref().is_none_or(|(name, uid)| {
            store.get(Kind::Pod, &account.namespace, name).is_some_and(|pod| pod.uid() == uid)
        })
    })
}

/// The pod that a token is to die with: one of the account, by its name and uid.
fn bound_pod(core: &Core, namespace: &str, account: &str, bound: &Value) -> Result<Option<(String, String)>, Refusal> {
    if bound.is_null() {
        return Ok(None);
    }
    let text = |key: &str| bound[key].as_str().unwrap_or_default();
    if text("kind") != "Pod" || !matches!(text("apiVersion"), "v1" | "") {
        let told = "tokens can be bound to a Pod alone; name one in spec.boundObjectRef, or leave it out";
        return Err(Refusal::bad_request(told));
    }
    let name = text("name");
    let found = core.hub.read(|store| {
        let pod = store.get(Kind::Pod, namespace, name)?;
        let own = pod.value["spec"]["serviceAccountName"].as_str().unwrap_or("default") == account;
        Some((pod.uid().to_owned(), own))
    });
    let Some((uid, own)) = found else {
        return Err(Failure::NotFound { kind: Kind::Pod, name: name.to_owned() }.into());
    };
    if !text("uid").is_empty() && text("uid") != uid {
        let message = format!("the pod has uid {uid}, and spec.boundObjectRef.uid says another");
        return Err(Failure::Conflict { kind: Kind::Pod, name: name.to_owned(), message }.into());
    }
    if !own {
        return Err(Refusal::bad_request(format!("pod {name} is not of service account {account}")));
    }
    Ok(Some((name.to_owned(), uid)))
}

fn account_uid(store: &Store, namespace: &str, name: &str) -> Option<String> {
    let stored = store.get(Kind::ServiceAccount, namespace, name)?;
    if stored.is_deleting() { None } else { Some(stored.uid().to_owned()) }
}

/// POST to `serviceaccounts/{name}/token`.
pub(crate) async fn token(core: &Core, info: &RequestInfo, body: Bytes) -> Result<Response<Body>, Refusal> {
    let mut request = body::object(&info.media_type, body).await?.value;
    let (namespace, name) = (info.path.namespace.clone(), info.path.name.clone());
    let uid = core.hub.read(|store| account_uid(store, &namespace, &name));
    let uid = uid.ok_or_else(|| Failure::NotFound { kind: info.path.kind, name: name.clone() })?;
    let spec = &request["spec"];
    let pod = bound_pod(core, &namespace, &name, &spec["boundObjectRef"])?;
    let seconds = spec["expirationSeconds"].as_i64().unwrap_or(USUAL);
    if !(SHORTEST..=LONGEST).contains(&seconds) {
        let told = format!("spec.expirationSeconds must be between {SHORTEST} and {LONGEST}");
        return Err(Refusal::bad_request(told));
    }
    let named: Vec<String> =
        spec["audiences"].as_array().into_iter().flatten().filter_map(|a| a.as_str().map(str::to_owned)).collect();
    let audiences = if named.is_empty() { vec![AUDIENCE.to_owned()] } else { named };
    let bound = spec["boundObjectRef"].clone();
    let (now, account) = (unix_now(), Account { namespace, name, uid, pod });
    let token = core.signer.issue(&account, &audiences, now, now + seconds);
    let until = api::Time::from_unix_millis(u64::try_from(now + seconds).unwrap_or(0) * 1000).0;
    if !request.is_object() {
        request = json!({});
    }
    request["apiVersion"] = json!("authentication.k8s.io/v1");
    request["kind"] = json!("TokenRequest");
    request["metadata"] = json!({"name": account.name, "namespace": account.namespace});
    request["spec"] = json!({"audiences": audiences, "expirationSeconds": seconds});
    if !bound.is_null() {
        request["spec"]["boundObjectRef"] = bound;
    }
    request["status"] = json!({"token": token, "expirationTimestamp": until});
    respond::value(StatusCode::CREATED, info.accepted, &request)
}

/// POST to `selfsubjectreviews` and its like: everybody may ask who they are and what they may do.
pub(crate) async fn review(
    core: &Arc<Core>,
    parts: &Parts,
    asked: Review,
    body: Body,
) -> Result<Response<Body>, Refusal> {
    if parts.method != Method::POST {
        return Err(Refusal::method_not_allowed(&parts.method));
    }
    let identity = parts.extensions.get::<Identity>().ok_or_else(Refusal::unauthorized)?;
    let body = body::read(body, core.limits.body).await?;
    let mut review = body::object(body::media_type(&parts.headers), body).await?.value;
    if !review.is_object() {
        return Err(Refusal::bad_request("the body must be a review"));
    }
    review["status"] = match asked {
        Review::Who => json!({"userInfo": identity.user_info()}),
        Review::Access => access(core, identity, &review)?,
        Review::Rules => rules(core, identity, &review)?,
    };
    respond::value(StatusCode::CREATED, negotiate::accepted(&parts.headers, true)?, &review)
}

/// What a caller may do in a namespace, for `kubectl auth can-i --list`.
fn rules(core: &Core, identity: &Identity, review: &Value) -> Result<Value, Refusal> {
    let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(Refusal::bad_request("spec.namespace must name a namespace"));
    }
    let (mut resources, mut paths) = (Vec::new(), Vec::new());
    for mut rule in core.hub.read(|store| auth::rules(store, identity, namespace)) {
        let about_paths = !rule["nonResourceURLs"].is_null();
        if let Value::Object(rule) = &mut rule {
            rule.retain(|_, part| !part.is_null());
        }
        if about_paths { paths.push(rule) } else { resources.push(rule) }
    }
    Ok(json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false}))
}

/// Whether a caller may do this.
fn access(core: &Core, identity: &Identity, review: &Value) -> Result<Value, Refusal> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (of, path) = (&review["spec"]["resourceAttributes"], &review["spec"]["nonResourceAttributes"]);
    let resource = text(&of["resource"]);
    let verb = text(if resource.is_empty() { &path["verb"] } else { &of["verb"] });
    let [group, subresource, namespace, name] = ["group", "subresource", "namespace", "name"].map(|key| text(&of[key]));
    let path = text(&path["path"]);
    if verb.is_empty() || (resource.is_empty() == path.is_empty()) {
        let told = "spec must say a verb and either resourceAttributes or nonResourceAttributes";
        return Err(Refusal::bad_request(told));
    }
    let attributes = Attributes {
        verb: &verb,
        group: &group,
        resource: &resource,
        subresource: &subresource,
        namespace: &namespace,
        name: &name,
        path: &path,
    };
    Ok(json!({ "allowed": core.hub.read(|store| auth::allowed(store, identity, &attributes)) }))
}
