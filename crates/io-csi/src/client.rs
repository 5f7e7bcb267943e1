use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use csi::{Call, Code, Method, Response, Status};
use http::{HeaderValue, Method as Verb, Uri, Version, header};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint};
use tower::{Service, ServiceExt};

use crate::line::Line;
use crate::observe::{Observation, Observe};
use crate::reply;
use crate::secrets::Secrets;
use crate::wire;

/// The longest deadline the header can carry, in milliseconds.
const LONGEST_DEADLINE: u128 = 99_999_999;

/// A gRPC client for drivers. It has one connection per socket, connects when first needed, and connects again after the
/// connection failed, with growing pauses while connecting fails.
///
/// It sends any request and returns what comes back. [`Driver`](crate::Driver) adds the care that CSI asks for.
#[derive(Default)]
pub struct CsiClient {
    connections: Mutex<Connections>,
    observer: Option<Arc<dyn Observe>>,
}

#[derive(Default)]
struct Connections {
    by_path: BTreeMap<String, Connection>,
    /// One for each socket ever called, whether it is connected or not.
    lines: BTreeMap<String, Arc<Line>>,
    dialled: u64,
}

#[derive(Clone)]
struct Connection {
    number: u64,
    channel: Channel,
    line: Arc<Line>,
}

impl CsiClient {
    /// A client without connections.
    pub fn new() -> CsiClient {
        CsiClient::default()
    }

    /// The same client with an observer of every call.
    pub fn observed_by(self, observer: Arc<dyn Observe>) -> CsiClient {
        CsiClient { observer: Some(observer), ..self }
    }

    /// The number of the open connection to a socket. While it stays the same, the same process answers.
    pub fn connection(&self, socket: &str) -> Option<u64> {
        self.line(socket)?.connection()
    }

    /// Waits until a connection to a socket is no longer open, as when the driver at its other end has stopped.
    pub async fn closed(&self, socket: &str, connection: u64) {
        if let Some(line) = self.line(socket) {
            line.closed(connection).await;
        }
    }

    fn line(&self, socket: &str) -> Option<Arc<Line>> {
        self.lock().lines.get(path_of(socket).ok()?).cloned()
    }

    /// Sends a request to the driver at a socket (`/path` or `unix:///path`) and waits for the response until the deadline.
    ///
    /// The status of a failed call says whether the driver made it. Its message does not hold the request's secrets.
    pub async fn call(&self, socket: &str, call: Call, deadline: Duration) -> Result<Response, Status> {
        let begun = Instant::now();
        let answer = self.send(socket, &call, deadline).await;
        if let Some(observer) = &self.observer {
            observer.observed(&Observation {
                method: call.method(),
                volume: call.volume(),
                node: call.node(),
                code: answer.as_ref().err().map_or(Code::Ok, |status| status.code),
                took: begun.elapsed(),
            });
        }
        answer
    }

    async fn send(&self, socket: &str, call: &Call, deadline: Duration) -> Result<Response, Status> {
        let path = path_of(socket)?;
        let method = call.method();
        let secrets = Secrets::of(call);
        let connection = self.dialled(path);
        let exchange = exchange(connection.channel.clone(), path, call, deadline);
        let answer = match tokio::time::timeout(deadline, exchange).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(broken)) => {
                self.drop_connection(path, connection.number);
                Err(broken)
            }
            Err(_) => {
                // A connection on which nothing comes back may be dead, so the next call gets a new one.
                self.drop_connection(path, connection.number);
                // Still pausing between attempts: nothing was sent.
                let unreachable = connection.line.failure().map(|kind| cannot_reach(path, kind));
                Err(unreachable.flatten().unwrap_or_else(|| late(path, method, deadline)))
            }
        };
        answer.map_err(|status| Status { message: secrets.cover(status.message), ..status })
    }

    fn dialled(&self, path: &str) -> Connection {
        let mut connections = self.lock();
        if let Some(connection) = connections.by_path.get(path) {
            return connection.clone();
        }
        connections.dialled += 1;
        let line = connections.lines.entry(path.to_owned()).or_default().clone();
        let connection = Connection { number: connections.dialled, channel: dial(path, line.clone()), line };
        connections.by_path.insert(path.to_owned(), connection.clone());
        connection
    }

    /// Forgets a connection, unless another one took its place already.
    fn drop_connection(&self, path: &str, number: u64) {
        let mut connections = self.lock();
        if connections.by_path.get(path).is_some_and(|connection| connection.number == number) {
            connections.by_path.remove(path);
            if let Some(line) = connections.lines.get(path) {
                line.close(line.connection());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The path in a socket's address.
fn path_of(socket: &str) -> Result<&str, Status> {
    let path = socket.strip_prefix("unix://").or_else(|| socket.strip_prefix("unix:")).unwrap_or(socket);
    if path.starts_with('/') {
        Ok(path)
    } else {
        let text = format!("{socket} is no driver socket; write /path/to/csi.sock or unix:///path/to/csi.sock");
        Err(Status::local(Code::InvalidArgument, text))
    }
}

/// A channel that connects when first used.
fn dial(path: &str, line: Arc<Line>) -> Channel {
    let path = path.to_owned();
    // The authority; nobody looks at it on a Unix socket, but it has to be a plain name.
    Endpoint::from_static("http://localhost").connect_with_connector_lazy(tower::service_fn(move |_: Uri| {
        let (path, line) = (path.clone(), line.clone());
        async move { line.connect(Path::new(&path)).await.map(TokioIo::new) }
    }))
}

/// One request and its answer. The outer error is one of the connection.
async fn exchange(
    mut channel: Channel,
    path: &str,
    call: &Call,
    deadline: Duration,
) -> Result<Result<Response, Status>, Status> {
    let method = call.method();
    let request = request(call, deadline);
    let answer = match channel.ready().await {
        Ok(ready) => ready.call(request).await,
        Err(error) => Err(error),
    };
    let answer = answer.map_err(|error| broken(path, method, deadline, &error))?;
    reply::read(path, method, answer).await.map_err(|error| broken(path, method, deadline, &error))
}

fn request(call: &Call, deadline: Duration) -> http::Request<Body> {
    let message = Bytes::from(wire::frame(&wire::encode_call(call)));
    let mut request = http::Request::new(Body::new(Full::new(message)));
    *request.method_mut() = Verb::POST;
    *request.version_mut() = Version::HTTP_2;
    *request.uri_mut() = Uri::from_static(call.method().path());
    let headers = request.headers_mut();
    headers.insert(header::TE, HeaderValue::from_static("trailers"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    let millis = deadline.as_millis().clamp(1, LONGEST_DEADLINE);
    if let Ok(value) = HeaderValue::from_str(&format!("{millis}m")) {
        headers.insert("grpc-timeout", value);
    }
    request
}

fn late(path: &str, method: Method, deadline: Duration) -> Status {
    let text = format!(
        "the driver at {path} did not answer {} within {} s and may still be at work",
        method.name(),
        deadline.as_secs_f32()
    );
    Status::local(Code::DeadlineExceeded, text)
}

/// A sentence for a connection that could not be made or did not last.
fn broken(path: &str, method: Method, deadline: Duration, error: &(dyn Error + 'static)) -> Status {
    if find::<tonic::TimeoutExpired>(error).is_some() {
        return late(path, method, deadline);
    }
    if let Some(status) = find::<io::Error>(error).and_then(|error| cannot_reach(path, error.kind())) {
        return status;
    }
    let text = format!(
        "the connection to the driver at {path} broke before it answered {}, which may have been done",
        method.name()
    );
    Status::local(Code::Unavailable, text)
}

/// A sentence for a connection that could not be made, where the cause shows that it was not.
fn cannot_reach(path: &str, kind: io::ErrorKind) -> Option<Status> {
    let why = match kind {
        io::ErrorKind::NotFound => "there is no such socket; is it running?",
        io::ErrorKind::ConnectionRefused => "connection refused; is it running?",
        io::ErrorKind::PermissionDenied => "permission denied; run as root or as the socket's owner",
        io::ErrorKind::InvalidInput => "its path is longer than the 107 bytes a socket's path may have",
        _ => return None,
    };
    Some(Status::local(Code::Unavailable, format!("cannot reach the driver at {path}: {why}")))
}

/// The cause of a certain type, however deep.
fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_write_a_socket_are_the_same() {
        assert_eq!(path_of("unix:///run/csi.sock"), Ok("/run/csi.sock"));
        assert_eq!(path_of("unix:/run/csi.sock"), Ok("/run/csi.sock"));
        assert_eq!(path_of("/run/csi.sock"), Ok("/run/csi.sock"));
        for wrong in ["", "csi.sock", "unix://csi.sock", "tcp://localhost:1"] {
            let status = path_of(wrong).unwrap_err();
            assert!(!status.from_driver && status.message.contains("is no driver socket"), "{status}");
        }
    }
}
