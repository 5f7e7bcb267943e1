//! Content negotiation: objects travel as protobuf where the server and [`wire`] both know it, and as JSON otherwise. The
//! `Content-Type` of an answer says which it is.

use std::sync::atomic::{AtomicBool, Ordering};

use api::{Kind, Object, ObjectKey};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;
use wire::{LIST_META, Reader, STATUS};

use crate::error::{DecodeError, RequestError};

/// Protobuf costs the server a fraction of what JSON costs, but not every server and no custom resource has it.
const PROTOBUF_OR_JSON: &str = "application/vnd.kubernetes.protobuf, application/json";
/// The media type of JSON.
pub(crate) const JSON: &str = "application/json";

/// The `Accept` header: protobuf or JSON for kinds that `wire` can decode, JSON for everything else.
pub(crate) fn accept(kind: Option<Kind>) -> &'static str {
    if kind.and_then(wire::message).is_some() { PROTOBUF_OR_JSON } else { JSON }
}

/// What the server has shown that it accepts.
#[derive(Debug, Default)]
pub(crate) struct Negotiated {
    protobuf_rejected: AtomicBool,
}

impl Negotiated {
    /// The server has not answered 415 (Unsupported Media Type) to protobuf.
    pub fn may_send_protobuf(&self) -> bool {
        !self.protobuf_rejected.load(Ordering::Relaxed)
    }

    pub fn reject_protobuf(&self) {
        self.protobuf_rejected.store(true, Ordering::Relaxed);
    }
}

/// How a body is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MediaType {
    Json,
    Protobuf,
}

/// A whole answer of the server.
pub(crate) struct Answer {
    pub code: StatusCode,
    pub media_type: MediaType,
    pub body: Bytes,
}

/// One page of a list.
pub(crate) struct Page {
    pub metadata: ListMeta,
    pub items: Vec<Result<Object, Box<Unreadable>>>,
}

/// An object that exists but cannot be decoded.
#[derive(Debug)]
pub(crate) struct Unreadable {
    /// Its key, unless that cannot be decoded either.
    pub key: Option<ObjectKey>,
    /// Its `resourceVersion`; empty if that is not known.
    pub resource_version: String,
    pub reason: DecodeError,
}

impl MediaType {
    pub fn of(headers: &HeaderMap) -> MediaType {
        let named = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let protobuf = named.split(';').next().unwrap_or_default().trim() == wire::TYPE;
        if protobuf { MediaType::Protobuf } else { MediaType::Json }
    }

    /// Decodes an object that is a body of its own; protobuf wraps it in an envelope.
    pub fn object(self, kind: Kind, body: &[u8]) -> Result<Object, DecodeError> {
        match self {
            MediaType::Json => from_json(kind, body),
            MediaType::Protobuf => {
                open_envelope(kind.api_version(), kind.name(), body).and_then(|raw| from_protobuf(kind, raw))
            }
        }
    }

    /// Decodes the object of a watch event; names it if that fails.
    pub fn watched_object(self, kind: Kind, body: &[u8]) -> Result<Object, Box<Unreadable>> {
        self.object(kind, body).map_err(|reason| match self {
            MediaType::Json => self.unreadable(kind, body, reason),
            MediaType::Protobuf => {
                let raw = wire::envelope(body).map(|envelope| envelope.raw).unwrap_or_default();
                self.unreadable(kind, raw, reason)
            }
        })
    }

    /// Decodes an item of a list, which has no envelope; names it if that fails.
    fn item(self, kind: Kind, raw: &[u8]) -> Result<Object, Box<Unreadable>> {
        let decoded = match self {
            MediaType::Json => from_json(kind, raw),
            MediaType::Protobuf => from_protobuf(kind, raw),
        };
        decoded.map_err(|reason| self.unreadable(kind, raw, reason))
    }

    /// Decodes the `Status` with which a server explains an error; empty if it is none.
    pub fn status(self, body: &[u8]) -> Status {
        match self {
            MediaType::Json => serde_json::from_slice(body).unwrap_or_default(),
            MediaType::Protobuf => open_envelope("v1", "Status", body)
                .and_then(|raw| Status::deserialize(Reader::answer(&STATUS, raw)).map_err(malformed))
                .unwrap_or_default(),
        }
    }

    fn unreadable(self, kind: Kind, raw: &[u8], reason: DecodeError) -> Box<Unreadable> {
        let named: Option<Named> = match self {
            MediaType::Json => serde_json::from_slice(raw).ok(),
            MediaType::Protobuf => {
                wire::message(kind).and_then(|table| Named::deserialize(Reader::answer(table, raw)).ok())
            }
        };
        let Named { metadata } = named.unwrap_or_default();
        let key = (!metadata.name.is_empty()).then(|| ObjectKey::new(&*metadata.namespace, &*metadata.name));
        Box::new(Unreadable { key, resource_version: metadata.resource_version, reason })
    }
}

impl Answer {
    pub fn object(&self, kind: Kind) -> Result<Object, DecodeError> {
        self.media_type.object(kind, &self.body)
    }

    /// The server's explanation of an error.
    pub fn status(&self) -> Status {
        self.media_type.status(&self.body)
    }

    /// The error that this answer is, when it is not a success.
    pub fn refusal(&self, action: impl Into<String>) -> RequestError {
        let status = self.status();
        let message = status.message().unwrap_or(self.code.as_str()).to_string();
        RequestError::Refused { action: action.into(), status: self.code.as_u16(), message }
    }

    /// Decodes one page of a list.
    pub fn page(&self, kind: Kind) -> Result<Page, DecodeError> {
        match self.media_type {
            MediaType::Json => {
                let page: JsonPage<'_> = serde_json::from_slice(&self.body).map_err(malformed)?;
                let items = page.items.iter().map(|item| self.media_type.item(kind, item.get().as_bytes()));
                Ok(Page { metadata: page.metadata, items: items.collect() })
            }
            MediaType::Protobuf => {
                let raw = open_envelope(kind.api_version(), &format!("{}List", kind.name()), &self.body)?;
                let (metadata, items) = wire::list(raw).map_err(malformed)?;
                let metadata = ListMeta::deserialize(Reader::answer(&LIST_META, metadata)).map_err(malformed)?;
                Ok(Page { metadata, items: items.into_iter().map(|item| self.media_type.item(kind, item)).collect() })
            }
        }
    }
}

fn malformed(error: impl ToString) -> DecodeError {
    DecodeError::Malformed(error.to_string())
}

fn from_json(kind: Kind, body: &[u8]) -> Result<Object, DecodeError> {
    Object::from_slice(kind, body).map_err(malformed)
}

/// What is in an envelope that should hold this kind.
fn open_envelope<'a>(api_version: &str, kind: &str, body: &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let envelope = wire::envelope(body).map_err(malformed)?;
    if (envelope.api_version, envelope.kind) == (api_version, kind) {
        return Ok(envelope.raw);
    }
    Err(DecodeError::OtherKind {
        found_kind: envelope.kind.into(),
        found_version: envelope.api_version.into(),
        kind: kind.into(),
        version: api_version.into(),
    })
}

/// Decodes an object without its envelope.
fn from_protobuf(kind: Kind, raw: &[u8]) -> Result<Object, DecodeError> {
    let table = wire::message(kind).ok_or(DecodeError::JsonOnly(kind))?;
    Object::read(kind, Reader::answer(table, raw)).map_err(malformed)
}

/// `meta/v1 Status`, as far as it is read.
#[derive(Debug, Deserialize, Default, PartialEq, Eq)]
#[serde(default)]
pub(crate) struct Status {
    pub message: String,
    pub reason: String,
    pub code: u16,
}

impl Status {
    /// The message, unless it is empty.
    pub fn message(&self) -> Option<&str> {
        Some(self.message.as_str()).filter(|message| !message.is_empty())
    }
}

/// `meta/v1 ListMeta`, as far as it is read.
#[derive(Debug, Deserialize, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ListMeta {
    pub resource_version: String,
    pub r#continue: String,
}

#[derive(Deserialize)]
struct JsonPage<'a> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

/// An object of any kind, as far as its name goes.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Named {
    metadata: NamedMeta,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct NamedMeta {
    name: String,
    namespace: String,
    resource_version: String,
}
