//! HTTP/1.1 connections beside the shared one, each for one request at a time.
//!
//! They are opened a few at a time, in the background, while there is more to ask than the shared connection should carry:
//! nobody waits for one, because the shared one takes whatever finds none free. A handshake costs a server as much as
//! several requests, so that a short rush must not cause many.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri, header};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use kube::client::Body;
use tokio::time::Instant;
use tower::BoxError;

/// Connections at most: as many as keep a server busy.
const MOST: usize = 32;
/// So many are opened at once.
const AT_ONCE: usize = 4;
/// One that was not needed for so long is closed, before a load balancer on the way forgets it.
const UNNEEDED: Duration = Duration::from_secs(15);
/// For so long none is opened after one could not be.
const PAUSE: Duration = Duration::from_secs(1);

/// Opens a connection.
pub(crate) type Open =
    Box<dyn Fn() -> Pin<Box<dyn Future<Output = Result<SendRequest<Body>, BoxError>> + Send>> + Send + Sync>;

/// The connections.
pub(crate) struct Beside {
    open: Open,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    free: Vec<Free>,
    /// How many there are, free or taken.
    there: usize,
    opening: usize,
    /// None is opened before.
    pause: Option<Instant>,
    /// Somebody looks now and then for those that are not needed.
    watched: bool,
}

struct Free {
    connection: SendRequest<Body>,
    since: Instant,
}

/// A connection that somebody has. It is free again when this is dropped and its last answer was read.
pub(crate) struct Taken<'a> {
    beside: &'a Beside,
    connection: Option<SendRequest<Body>>,
}

/// Why there is no answer.
pub(crate) enum Unsent {
    /// Nothing was sent: here is the request.
    Back(Box<Request<Body>>),
    /// Something may have been.
    Lost(BoxError),
}

impl Beside {
    /// Connections that are opened like this.
    pub(crate) fn new(open: Open) -> Arc<Beside> {
        Arc::new(Beside { open, held: Mutex::default() })
    }

    /// A connection that is free. Where none is, another is opened for those who come later.
    pub(crate) fn take(self: &Arc<Beside>) -> Option<Taken<'_>> {
        let now = Instant::now();
        let mut held = self.held();
        held.tidy(now);
        // The one that was used last, so that those that are too many are not needed any more.
        if let Some(at) = held.free.iter().rposition(|free| free.connection.is_ready()) {
            let connection = Some(held.free.remove(at).connection);
            return Some(Taken { beside: self, connection });
        }
        let may = held.pause.is_none_or(|pause| pause <= now);
        if may && held.opening < AT_ONCE && held.there + held.opening < MOST {
            held.opening += 1;
            tokio::spawn(self.clone().add());
        }
        None
    }

    async fn add(self: Arc<Beside>) {
        let opened = (self.open)().await;
        let now = Instant::now();
        let mut held = self.held();
        held.opening -= 1;
        match opened {
            Ok(connection) => {
                held.free.push(Free { connection, since: now });
                held.there += 1;
                if !std::mem::replace(&mut held.watched, true) {
                    tokio::spawn(sweep(Arc::downgrade(&self)));
                }
            }
            Err(error) => {
                tracing::debug!("no connection beside the shared one: {error}");
                held.pause = Some(now + PAUSE);
            }
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks now and then for connections that are not needed, until none is left.
async fn sweep(whose: Weak<Beside>) {
    while let Some(beside) = whose.upgrade() {
        {
            let mut held = beside.held();
            if held.tidy(Instant::now()) == 0 {
                held.watched = false;
                return;
            }
        }
        drop(beside);
        tokio::time::sleep(UNNEEDED).await;
    }
}

impl Held {
    /// Lets go of those that have ended or are not needed. Answers how many are left.
    fn tidy(&mut self, now: Instant) -> usize {
        let before = self.free.len();
        self.free.retain(|free| !free.connection.is_closed() && now.duration_since(free.since) < UNNEEDED);
        self.there -= before - self.free.len();
        self.there
    }
}

impl Taken<'_> {
    /// Sends a request to the server this connection leads to.
    pub(crate) async fn send(&mut self, mut request: Request<Body>) -> Result<Response<Incoming>, Unsent> {
        let Some(connection) = self.connection.as_mut() else { return Err(Unsent::Back(Box::new(request))) };
        let whole = request.uri().clone();
        // HTTP/1.1 names the server in a header, and in the first line only what is asked of it.
        let host = whole.authority().map(|server| server.as_str().rsplit('@').next().unwrap_or_default());
        if let Some(host) = host.and_then(|host| HeaderValue::from_str(host).ok()) {
            request.headers_mut().insert(header::HOST, host);
        }
        let path = whole.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
        *request.uri_mut() = Uri::from(path);
        connection.try_send_request(request).await.map_err(|mut failed| match failed.take_message() {
            Some(mut request) => {
                *request.uri_mut() = whole;
                request.headers_mut().remove(header::HOST);
                Unsent::Back(Box::new(request))
            }
            None => Unsent::Lost(failed.into_error().into()),
        })
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut held = self.beside.held();
        match self.connection.take().filter(|connection| !connection.is_closed()) {
            Some(connection) => held.free.push(Free { connection, since: Instant::now() }),
            None => held.there -= 1,
        }
    }
}
