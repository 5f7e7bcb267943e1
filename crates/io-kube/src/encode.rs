//! Encodes writes as HTTP requests.

use std::borrow::Cow;

use api::{Value, Write};
use http::Method;
use serde_json::json;

use crate::negotiation::JSON;
use crate::path;

/// The field manager, so that users see who wrote a field. The server does not look for unknown fields: the bodies are
/// tested against real servers, and the search costs the server time with every write.
const OPTIONS: &str = "fieldManager=longshore&fieldValidation=Ignore";

/// The body of a request.
pub(crate) enum Content<'a> {
    /// A whole object of the kind that is written, as protobuf or JSON.
    Object(Cow<'a, Value>),
    /// Anything else, with its `Content-Type`.
    Json(&'static str, Value),
}

/// The method, path and body of a write.
pub(crate) fn encode(write: &Write) -> (Method, String, Content<'_>) {
    let target = write.target();
    let subresource = write.subresource();
    match write {
        Write::Create { body, .. } => {
            let path = format!("{}?{OPTIONS}", path::collection(target.kind, &target.key.namespace));
            (Method::POST, path, Content::Object(named(body, &target.key.name)))
        }
        Write::Note(note) => {
            let path = format!("{}?{OPTIONS}", path::object(target.kind, &target.key, None));
            let patch = note.patch(Some(note.seen.clone()));
            (Method::PATCH, path, Content::Json(patch.content_type(), patch.to_json()))
        }
        Write::Patch { patch, .. } => {
            let path = format!("{}?{OPTIONS}", path::object(target.kind, &target.key, subresource));
            (Method::PATCH, path, Content::Json(patch.content_type(), patch.to_json()))
        }
        Write::Delete { only_if, grace_seconds, .. } => {
            let mut options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {} });
            if let Some(uid) = &only_if.uid {
                options["preconditions"]["uid"] = json!(uid);
            }
            if let Some(version) = &only_if.resource_version {
                options["preconditions"]["resourceVersion"] = json!(version);
            }
            if let Some(grace) = grace_seconds {
                options["gracePeriodSeconds"] = json!(grace);
            }
            (Method::DELETE, path::object(target.kind, &target.key, None), Content::Json(JSON, options))
        }
        Write::Bind { uid, node, .. } => {
            let key = &target.key;
            let body = json!({
                "apiVersion": "v1", "kind": "Binding",
                "metadata": { "name": key.name, "namespace": key.namespace, "uid": uid },
                "target": { "apiVersion": "v1", "kind": "Node", "name": node },
            });
            (Method::POST, path::object(target.kind, key, subresource), Content::Json(JSON, body))
        }
    }
}

/// The object with the name of its path, which the body may leave out.
fn named<'a>(body: &'a Value, name: &str) -> Cow<'a, Value> {
    let metadata = &body["metadata"];
    if name.is_empty() || !metadata["name"].is_null() || !metadata.is_object() {
        return Cow::Borrowed(body);
    }
    let mut body = body.clone();
    body["metadata"]["name"] = json!(name);
    Cow::Owned(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{Kind, ObjectRef, Precondition};

    #[test]
    fn a_delete_carries_its_preconditions() {
        let target = ObjectRef::namespaced(Kind::Pod, "n", "p");
        let only_if = Precondition { uid: Some("u".into()), resource_version: Some("7".into()) };
        let delete = Write::Delete { target, only_if, grace_seconds: Some(0) };
        let (method, path, Content::Json(_, body)) = encode(&delete) else { unreachable!("a delete carries options") };
        assert_eq!((method, path.as_str()), (Method::DELETE, "/api/v1/namespaces/n/pods/p"));
        assert_eq!(body["preconditions"], json!({ "uid": "u", "resourceVersion": "7" }));
        assert_eq!(body["gracePeriodSeconds"], json!(0));
    }
}
