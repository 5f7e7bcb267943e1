//! Answers that say no, as the `Status` objects every Kubernetes client understands.

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};
use rules_store::Failure;
use serde_json::{Value, json};

/// A request that was not carried out, ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Refusal(Value);

impl Refusal {
    pub(crate) fn new(code: u16, reason: &str, message: impl Into<String>) -> Refusal {
        Refusal(json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message.into(), "reason": reason, "code": code,
            // Always there: kubectl reads on in it without looking.
            "details": {},
        }))
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Refusal {
        Refusal::new(400, "BadRequest", message)
    }

    pub(crate) fn unauthorized() -> Refusal {
        Refusal::new(401, "Unauthorized", "a client certificate or a service account's token of this server is needed")
    }

    pub(crate) fn forbidden(group: &str, kind: &str, name: &str, message: String) -> Refusal {
        Refusal::new(403, "Forbidden", message).about(group, kind, name)
    }

    /// Names the object it is about, as far as it is known.
    fn about(mut self, group: &str, kind: &str, name: &str) -> Refusal {
        for (key, value) in [("group", group), ("kind", kind), ("name", name)] {
            if !value.is_empty() {
                self.0["details"][key] = value.into();
            }
        }
        self
    }

    /// Something of Kubernetes that is not here.
    pub(crate) fn absent(group: &str, kind: &str, name: &str, message: impl Into<String>) -> Refusal {
        Refusal::new(404, "NotFound", message).about(group, kind, name)
    }

    pub(crate) fn no_such_path() -> Refusal {
        Refusal::new(404, "NotFound", "the server could not find the requested resource")
    }

    pub(crate) fn method_not_allowed(method: &http::Method) -> Refusal {
        Refusal::new(405, "MethodNotAllowed", format!("{method} is not supported on this resource"))
    }

    pub(crate) fn not_acceptable(accept: &str) -> Refusal {
        let message = format!(
            "none of the media types in Accept can be served; JSON can, and protobuf where Kubernetes has it: {accept}"
        );
        Refusal::new(406, "NotAcceptable", message)
    }

    pub(crate) fn expired(message: impl Into<String>) -> Refusal {
        Refusal::new(410, "Expired", message)
    }

    pub(crate) fn too_large(limit: usize) -> Refusal {
        Refusal::new(
            413,
            "RequestEntityTooLarge",
            format!("the request body is larger than the limit of {limit} bytes"),
        )
    }

    pub(crate) fn too_slow(patience: std::time::Duration) -> Refusal {
        let seconds = patience.as_secs();
        Refusal::new(408, "Timeout", format!("the request body did not arrive within {seconds} seconds"))
    }

    pub(crate) fn unsupported_media(message: impl Into<String>) -> Refusal {
        Refusal::new(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Refusal {
        Refusal::new(500, "InternalError", message)
    }

    pub(crate) fn shutting_down() -> Refusal {
        Refusal::new(503, "ServiceUnavailable", "the server is shutting down; try again")
    }

    pub(crate) fn disk_full() -> Refusal {
        Refusal::new(507, "InsufficientStorage", "the disk of the API server is full; free some space and try again")
    }

    /// The asked-for version does not exist yet; clients wait and ask again.
    pub(crate) fn version_too_large(asked: u64, current: u64) -> Refusal {
        let message = format!("Too large resource version: {asked}, current: {current}");
        let mut refusal = Refusal::new(504, "Timeout", message);
        refusal.0["details"] = json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        });
        refusal
    }

    pub(crate) fn code(&self) -> u16 {
        self.0.get("code").and_then(Value::as_u64).and_then(|c| u16::try_from(c).ok()).unwrap_or(500)
    }

    pub(crate) fn status(&self) -> &Value {
        &self.0
    }

    #[cfg(test)]
    pub(crate) fn message(&self) -> &str {
        self.0.get("message").and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        let code = StatusCode::from_u16(self.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = Response::new(Body::from(self.0.to_string()));
        *response.status_mut() = code;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // Not for a full disk: clients would try again ten times before they tell anybody.
        if matches!(code.as_u16(), 503 | 504) {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Refusal {
        Refusal(failure.to_status())
    }
}
