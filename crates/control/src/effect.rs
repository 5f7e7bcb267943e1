use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use api::{Kind, Object, ObjectRef, Write};
use csi::{Call, Code, Response};

use crate::host;

/// One thing to be done outside, by hands that know how.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "effects are made one at a time and moved, never collected")]
pub enum Effect {
    /// Read an object from the API itself, past every cache.
    Read(ObjectRef),
    /// Read every object of a kind in a namespace from the API itself, past every cache.
    List {
        kind: Kind,
        /// Empty for kinds without namespaces, or for all namespaces.
        namespace: String,
    },
    /// Write to the API.
    Write(Write),
    /// Ask the API for a token of a service account that dies with a pod. It answers a Secret that is nowhere but in
    /// that answer, with the entries [`TokenWish::TOKEN`] and [`TokenWish::EXPIRES`].
    Token(TokenWish),
    /// Call a driver.
    Call {
        /// By name; a driver that is registering, by the path it named.
        to: Endpoint,
        call: Call,
    },
    /// Do something on this machine.
    Host(host::Op),
    /// Do nothing outside: the action only changes what the rules know themselves.
    Nothing,
}

/// A token of a pod's service account.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenWish {
    /// The pod, which has its account's namespace.
    pub pod: api::ObjectKey,
    /// The pod's uid.
    pub uid: String,
    /// Its service account.
    pub account: String,
    /// Whom the token is for; none means the API server.
    pub audiences: Vec<String>,
    /// How long it is to be good; the server chooses if nobody says.
    pub seconds: Option<i64>,
}

impl TokenWish {
    /// The entry with the token itself.
    pub const TOKEN: &'static str = "token";
    /// The entry that says until when it is good.
    pub const EXPIRES: &'static str = "expirationTimestamp";

    /// The body of the request.
    pub fn to_json(&self) -> api::Value {
        let bound = serde_json::json!({ "apiVersion": "v1", "kind": "Pod", "name": self.pod.name, "uid": self.uid });
        let mut spec = serde_json::json!({ "audiences": self.audiences, "boundObjectRef": bound });
        if let Some(seconds) = self.seconds {
            spec["expirationSeconds"] = seconds.into();
        }
        serde_json::json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec })
    }
}

/// Whom a call goes to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// The driver of this name. The hands know where its socket is.
    Driver(String),
    /// Whoever listens at this path. Only plugin registration needs it: there the name is what is asked for.
    Socket(String),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Driver(name) | Endpoint::Socket(name) => f.write_str(name),
        }
    }
}

impl Effect {
    /// Kinds of which many objects are read at once: volumes that are deleted, attachments that are let go. Hands may
    /// answer such a read from the cache, once that certainly shows all that there was when the read was asked for.
    pub const SHARED: [Kind; 2] = [Kind::PersistentVolume, Kind::VolumeAttachment];

    /// A call to the driver of this name.
    pub fn call_driver(name: impl Into<String>, call: Call) -> Effect {
        Effect::Call { to: Endpoint::Driver(name.into()), call }
    }
}

/// How an effect ended.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "outcomes are made one at a time and moved, never collected")]
pub enum Outcome {
    Done(Reply),
    /// It certainly did not happen and is not under way.
    Refused(Refusal),
    /// It may have happened, or may still be happening. The text says what was seen.
    Unknown(String),
}

/// What came back with success.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "replies are made one at a time and moved, never collected")]
pub enum Reply {
    /// Nothing to tell.
    Nothing,
    /// The object as it is after the write, or as it was read.
    Object(Object),
    /// The object is gone: deleted by this write, or not found by this read.
    Gone,
    /// Every object of the kind, each of them understood: a list with one that was not is an unknown outcome.
    Objects(Vec<Object>),
    /// The driver's answer.
    Csi(Response),
    /// The machine's answer.
    Host(host::Reply),
}

/// Why an effect did not happen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The precondition of a write was not met: the object changed, or is another one of the same name.
    Conflict,
    /// The object to change is not there.
    NotFound,
    /// The object to create is there already.
    AlreadyExists,
    /// The API will not have it: invalid or forbidden. The text is the server's.
    Denied(String),
    /// The driver said no.
    Driver(Code, String),
    /// The machine said no.
    Host(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Conflict => f.write_str("the object changed meanwhile"),
            Refusal::NotFound => f.write_str("the object is gone"),
            Refusal::AlreadyExists => f.write_str("an object of that name exists"),
            Refusal::Denied(text) => write!(f, "the API server refused: {text}"),
            Refusal::Driver(code, text) => write!(f, "the driver refused with {code:?}: {text}"),
            Refusal::Host(text) => f.write_str(text),
        }
    }
}

impl Outcome {
    /// What went wrong, as a clause a person can read; `None` if nothing did.
    pub fn failure(&self) -> Option<String> {
        match self {
            Outcome::Done(_) => None,
            Outcome::Refused(refusal) => Some(alloc::format!("{refusal}")),
            Outcome::Unknown(text) => Some(text.clone()),
        }
    }
}
