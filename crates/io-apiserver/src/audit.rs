//! The audit log: one line of JSON for each request, in the form of `audit.k8s.io/v1` at level Metadata. It says who
//! did what to which object and how that ended, and never holds a body.
//!
//! The reads of this very process are left out: its controllers look at everything, all the time.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use api::Time;
use axum::extract::Request;
use http::{HeaderValue, Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::Error;
use crate::auth::Identity;
use crate::http_api::{ResourcePath, Route, parse_path};
use crate::writer::now_millis;

/// A file that has become this large is put aside, in place of the one put aside before.
const LARGEST: u64 = 64 << 20;
/// So many lines may wait for the disk before requests do.
const WAITING: usize = 1024;

/// The address a request came from; requests of this process have none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddress(pub IpAddr);

/// Where requests are told.
#[derive(Clone)]
pub(crate) struct AuditLog {
    lines: mpsc::Sender<Vec<u8>>,
}

impl AuditLog {
    /// Opens the file, to be appended to, and starts the thread that writes.
    pub(crate) fn open(path: &Path) -> Result<AuditLog, Error> {
        let failed = |error| Error::file("open the audit log", path, error);
        let mut file = AuditFile::open(path).map_err(failed)?;
        let (lines, mut heard) = mpsc::channel::<Vec<u8>>(WAITING);
        let write = move || {
            let mut told = false;
            while let Some(line) = heard.blocking_recv() {
                let written = file.write(&line);
                if let (Err(error), false) = (&written, told) {
                    tracing::warn!("cannot write to the audit log {}: {error}", file.path.display());
                }
                told = written.is_err();
            }
        };
        std::thread::Builder::new().name("audit".into()).spawn(write).map_err(Error::Thread)?;
        Ok(AuditLog { lines })
    }

    /// Tells a request. Waits if the disk is behind.
    pub(crate) async fn tell(&self, audited: Audited, identity: Option<&Identity>, code: StatusCode) {
        let mut line = audited.line(identity, code).to_string().into_bytes();
        line.push(b'\n');
        // The thread ends with the last sender.
        let _ = self.lines.send(line).await;
    }
}

struct AuditFile {
    path: PathBuf,
    file: File,
    size: u64,
}

impl AuditFile {
    fn open(path: &Path) -> io::Result<AuditFile> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        let size = file.metadata()?.len();
        Ok(AuditFile { path: path.to_owned(), file, size })
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.size + line.len() as u64 > LARGEST && self.size > 0 {
            let mut aside = self.path.clone().into_os_string();
            aside.push(".1");
            std::fs::rename(&self.path, aside)?;
            *self = AuditFile::open(&self.path)?;
        }
        self.file.write_all(line)?;
        self.size += line.len() as u64;
        Ok(())
    }
}

/// What is kept of a request until it is known how it ended.
pub(crate) struct Audited {
    id: String,
    received_millis: u64,
    method: Method,
    uri: String,
    path: String,
    watches: bool,
    agent: Option<HeaderValue>,
    address: Option<IpAddr>,
    /// Who asked, if that is not who it was done as.
    caller: Option<Identity>,
}

impl Audited {
    /// Of a request that is to be told; `None` for the others.
    pub(crate) fn of(request: &Request, health: bool) -> Option<Audited> {
        let address = request.extensions().get::<PeerAddress>().map(|address| address.0);
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        if health || (address.is_none() && reads) {
            return None;
        }
        let query = request.uri().query().unwrap_or_default();
        let watches = query.split('&').any(|part| matches!(part, "watch=true" | "watch=1" | "watch"));
        Some(Audited {
            id: uuid::Uuid::new_v4().to_string(),
            received_millis: now_millis(),
            method: request.method().clone(),
            uri: request.uri().path_and_query().map(ToString::to_string).unwrap_or_default(),
            path: request.uri().path().to_owned(),
            watches,
            agent: request.headers().get(http::header::USER_AGENT).cloned(),
            address,
            caller: None,
        })
    }

    /// The header by which a client can find the line of its request.
    pub(crate) fn id(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.id).ok()
    }

    /// Who asked, before it was taken for somebody else.
    pub(crate) fn by(&mut self, caller: &Identity) {
        self.caller = Some(caller.clone());
    }

    fn line(&self, identity: Option<&Identity>, code: StatusCode) -> Value {
        let anonymous = || json!({ "username": "system:anonymous", "groups": ["system:unauthenticated"] });
        let caller = self.caller.as_ref().or(identity);
        let stage = if self.watches && code.is_success() { "ResponseStarted" } else { "ResponseComplete" };
        let mut line = json!({
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "Metadata",
            "auditID": self.id,
            "stage": stage,
            "requestURI": self.uri,
            "verb": self.method.as_str().to_ascii_lowercase(),
            "user": caller.map_or_else(anonymous, Identity::user_info),
            "sourceIPs": self.address.map(|address| address.to_string()).into_iter().collect::<Vec<_>>(),
            "responseStatus": { "metadata": {}, "code": code.as_u16() },
            "requestReceivedTimestamp": Time::micro_from_unix_millis(self.received_millis),
            "stageTimestamp": Time::micro_from_unix_millis(now_millis()),
        });
        if let (Some(caller), Some(done_as)) = (&self.caller, identity)
            && caller != done_as
        {
            line["impersonatedUser"] = done_as.user_info();
        }
        if let Some(agent) = self.agent.as_ref().and_then(|agent| agent.to_str().ok()) {
            line["userAgent"] = agent.into();
        }
        if let Route::Resource(path) = parse_path(&self.path) {
            line["verb"] = verb(&self.method, &path, self.watches).into();
            line["objectRef"] = object(&path);
        }
        line
    }
}

fn verb(method: &Method, path: &ResourcePath, watches: bool) -> &'static str {
    let collection = path.name.is_empty();
    match method.as_str() {
        "GET" | "HEAD" if (watches || path.watch) && path.subresource.is_empty() => "watch",
        "GET" | "HEAD" if collection => "list",
        "GET" | "HEAD" => "get",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" if collection => "deletecollection",
        "DELETE" => "delete",
        _ => "",
    }
}

fn object(path: &ResourcePath) -> Value {
    let said = [
        ("resource", path.kind.plural()),
        ("namespace", &path.namespace),
        ("name", &path.name),
        ("subresource", &path.subresource),
        ("apiGroup", path.kind.group()),
        ("apiVersion", path.kind.version()),
    ];
    let said = said.into_iter().filter(|(_, value)| !value.is_empty());
    said.map(|(key, value)| (key.to_owned(), Value::from(value))).collect::<serde_json::Map<_, _>>().into()
}
