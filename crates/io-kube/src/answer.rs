//! What the server answered, in either of the two forms it speaks: JSON, or the binary form for the kinds [`wire`] knows.
//! Which one it is, the answer itself says.

use api::{Kind, Lease, Object, PersistentVolume, PersistentVolumeClaim, VolumeAttachment};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use wire::{LIST_META, Reader, STATUS};

/// What is asked for: the binary form costs the server a fraction, but not every server and no custom kind has it.
const EITHER: &str = "application/vnd.kubernetes.protobuf, application/json";
const JSON: &str = "application/json";

/// The forms in which objects of a kind are understood, or in which everything is.
pub(crate) fn accept(kind: Option<Kind>) -> &'static str {
    if kind.and_then(wire::message).is_some() { EITHER } else { JSON }
}

/// A whole answer.
pub(crate) struct Answer {
    pub status: StatusCode,
    pub form: Form,
    pub body: Bytes,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Binary,
}

impl Form {
    /// As the headers say.
    pub fn of(headers: &HeaderMap) -> Form {
        let named = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if named.split(';').next().unwrap_or_default().trim() == wire::TYPE { Form::Binary } else { Form::Json }
    }

    /// An object that stands by itself.
    pub fn object(self, kind: Kind, body: &[u8]) -> Result<Object, String> {
        match self {
            Form::Json => Object::from_slice(kind, body),
            Form::Binary => enveloped(kind.api_version(), kind.name(), body).and_then(|raw| bare(kind, raw)),
        }
    }

    /// What the server says of a request; nothing where that cannot be understood.
    pub fn said(self, body: &[u8]) -> Said {
        match self {
            Form::Json => serde_json::from_slice(body).unwrap_or_default(),
            Form::Binary => enveloped("v1", "Status", body)
                .and_then(|raw| Said::deserialize(Reader::answer(&STATUS, raw)).map_err(|error| error.to_string()))
                .unwrap_or_default(),
        }
    }
}

impl Answer {
    /// The object it is.
    pub fn object(&self, kind: Kind) -> Result<Object, String> {
        self.form.object(kind, &self.body)
    }

    /// What the server says of the request.
    pub fn said(&self) -> Said {
        self.form.said(&self.body)
    }

    /// The objects of a list, each understood or not, and what is said of the list.
    pub fn list(&self, kind: Kind) -> Result<(ListMeta, Vec<Result<Object, String>>), String> {
        match self.form {
            Form::Json => {
                let page: Page<'_> = serde_json::from_slice(&self.body).map_err(|error| error.to_string())?;
                let items = page.items.iter().map(|item| Object::from_slice(kind, item.get().as_bytes()));
                Ok((page.metadata, items.collect()))
            }
            Form::Binary => {
                let raw = enveloped(kind.api_version(), &format!("{}List", kind.name()), &self.body)?;
                let (metadata, items) = wire::list(raw).map_err(|error| error.to_string())?;
                let metadata = ListMeta::deserialize(Reader::answer(&LIST_META, metadata));
                let metadata = metadata.map_err(|error| error.to_string())?;
                Ok((metadata, items.into_iter().map(|item| bare(kind, item)).collect()))
            }
        }
    }
}

/// What is in an envelope that should hold this kind.
fn enveloped<'a>(api_version: &str, kind: &str, body: &'a [u8]) -> Result<&'a [u8], String> {
    let envelope = wire::envelope(body).map_err(|error| error.to_string())?;
    if (envelope.api_version, envelope.kind) == (api_version, kind) {
        return Ok(envelope.raw);
    }
    Err(format!("it is a {:?} of {:?} and not a {kind} of {api_version}", envelope.kind, envelope.api_version))
}

/// An object without its envelope.
fn bare(kind: Kind, raw: &[u8]) -> Result<Object, String> {
    fn read<T: DeserializeOwned + Into<Object>>(kind: Kind, raw: &[u8]) -> Result<Object, String> {
        let table = wire::message(kind).ok_or_else(|| unread(kind))?;
        T::deserialize(Reader::answer(table, raw)).map(Into::into).map_err(|error| error.to_string())
    }
    match kind {
        Kind::PersistentVolumeClaim => read::<PersistentVolumeClaim>(kind, raw),
        Kind::PersistentVolume => read::<PersistentVolume>(kind, raw),
        Kind::VolumeAttachment => read::<VolumeAttachment>(kind, raw),
        Kind::Lease => read::<Lease>(kind, raw),
        // Those that no table is for.
        _other => Err(unread(kind)),
    }
}

fn unread(kind: Kind) -> String {
    format!("objects of kind {kind} are read as JSON only")
}

/// What a server says when it does not answer with an object.
#[derive(Debug, Deserialize, Default, PartialEq, Eq)]
#[serde(default)]
pub(crate) struct Said {
    pub message: String,
    pub reason: String,
    pub code: u16,
}

impl Said {
    /// The message, if there is one.
    pub fn message(&self) -> Option<&str> {
        Some(self.message.as_str()).filter(|message| !message.is_empty())
    }
}

/// What is said of a list.
#[derive(Debug, Deserialize, Default, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ListMeta {
    pub resource_version: String,
    pub r#continue: String,
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}
