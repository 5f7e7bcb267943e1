//! The way to the server: one HTTP/2 connection for the watches and for whoever asks alone, and in busy times HTTP/1.1
//! connections beside it, one for each request under way.
//!
//! `kube` knows kubeconfigs and certificates, but its own stack speaks HTTP/1.1 only, and notices a dead connection only
//! when something is sent. Here its parts are put together with clients that ask now and then whether a connection is alive,
//! and show the server what [`Credential`] says at the moment.
//!
//! HTTP/2 alone would do, but every stream costs a Go server a task with a stack of its own to grow, and frames that one
//! task for the whole connection has to sort: on a connection of its own the same request is cheaper for both sides.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::rt::{Read, Write};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt};
use rustls::pki_types::ServerName;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt, service_fn};

use crate::beside::{Beside, Open, Unsent};
use crate::credential::{Credential, Identity, Pass};
use crate::failure::never_begun;

/// A connection that is quiet for so long is asked whether it is alive, and given up when it does not answer in time: a
/// watch on a dead one would be quiet for ever.
const ASK_AFTER: Duration = Duration::from_secs(30);
const ANSWER_WITHIN: Duration = Duration::from_secs(15);
/// How often the kernel asks in the place of HTTP/2, where the server does not speak that.
const ASKED_BY_KERNEL: u32 = 3;
/// So much of an answer is under way before somebody has read it. For the connection as a whole there is no limit: else a
/// few watches that nobody reads for a moment would keep everybody else waiting.
const UNREAD: u32 = 512 * 1024;
const UNREAD_BY_ALL: u32 = 1 << 30;
/// So many requests at once share the connection of the watches; only more than that are worth others.
const FEW: usize = 4;
/// How often a request is made that the server has not begun to look at.
const UNBEGUN_TRIES: usize = 4;

type Line = BoxCloneSyncService<Request<Body>, Response<Incoming>, BoxError>;

/// Takes requests to the server, or to one in this process.
#[derive(Clone)]
pub(crate) struct Client(BoxCloneSyncService<Request<Body>, Response<Answer>, Unanswered>);

/// The body of an answer, as it comes.
pub(crate) type Answer = UnsyncBoxBody<Bytes, Unanswered>;

/// There was no answer, or it ended too early.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Unanswered(#[source] BoxError);

impl Client {
    /// A client of this service.
    pub(crate) fn new<S, B>(service: S) -> Client
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let failed = |error: B::Error| Unanswered(error.into());
        let service = service
            .map_response(move |response: Response<B>| response.map(|body| UnsyncBoxBody::new(body.map_err(failed))));
        Client(BoxCloneSyncService::new(service.map_err(|error: S::Error| Unanswered(error.into()))))
    }

    /// A client as the configuration wants it.
    pub(crate) async fn to(mut config: kube::Config, proxy: Option<Intercept>) -> Result<Client, BoxError> {
        let credential = Credential::of(&mut config.auth_info);
        let pass = credential.current().await?;
        let layers = ServiceBuilder::new()
            .layer(config.base_uri_layer())
            .option_layer(config.auth_layer()?)
            .layer(config.extra_headers_layer()?)
            .map_err(BoxError::from);
        let lines = Lines::new(&config, proxy.as_ref(), pass.identity.clone())?;
        let stack = Arc::new(Stack { config, proxy, credential, lines: Mutex::new(lines) });
        Ok(Client::new(layers.service(service_fn(move |request| {
            let stack = stack.clone();
            async move { stack.send(request).await }
        }))))
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Response<Answer>, Unanswered> {
        self.0.clone().oneshot(request).await
    }
}

struct Stack {
    config: kube::Config,
    proxy: Option<Intercept>,
    credential: Credential,
    lines: Mutex<Arc<Lines>>,
}

/// Ways to the server on which the same certificate is shown.
struct Lines {
    identity: Option<Identity>,
    shared: Line,
    /// How many requests wait for an answer on the shared connection.
    sharing: AtomicUsize,
    beside: Arc<Beside>,
}

/// A request that shares the connection.
struct Sharing<'a>(&'a AtomicUsize);

impl Drop for Sharing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Lines {
    fn new(
        config: &kube::Config,
        proxy: Option<&Intercept>,
        identity: Option<Identity>,
    ) -> Result<Arc<Lines>, BoxError> {
        let mut config = config.clone();
        if let Some(Identity { certificate, key }) = &identity {
            config.auth_info.client_certificate_data = Some(STANDARD.encode(certificate));
            config.auth_info.client_key_data = Some(STANDARD.encode(key).into());
        }
        let (shared, open) = ways(&config, proxy)?;
        Ok(Arc::new(Lines { identity, shared, sharing: AtomicUsize::new(0), beside: Beside::new(open) }))
    }

    async fn send(&self, mut request: Request<Body>) -> Result<Response<Incoming>, BoxError> {
        let crowded = self.sharing.load(Ordering::Relaxed) >= FEW && !is_watch(&request);
        if let Some(mut own) = crowded.then(|| self.beside.take()).flatten() {
            match own.send(request).await {
                Ok(response) => return Ok(response),
                Err(Unsent::Lost(error)) => return Err(error),
                Err(Unsent::Back(unsent)) => request = *unsent,
            }
        }
        self.sharing.fetch_add(1, Ordering::Relaxed);
        let _sharing = Sharing(&self.sharing);
        self.shared.clone().oneshot(request).await
    }
}

/// Its answer has no end.
fn is_watch(request: &Request<Body>) -> bool {
    request.uri().query().is_some_and(|query| query.split('&').any(|one| one == "watch=true"))
}

impl Stack {
    async fn send(&self, request: Request<Body>) -> Result<Response<Incoming>, BoxError> {
        let (parts, body) = request.into_parts();
        let (parts, again) = (parts, body.try_clone());
        let pass = self.credential.current().await?;
        let response = self.send_as(&pass, &parts, body).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        // Not known means that nothing was begun, so that the same request may be made again.
        match (again, self.credential.instead_of(&pass).await?) {
            (Some(body), Some(pass)) => self.send_as(&pass, &parts, body).await,
            (_, _) => Ok(response),
        }
    }

    async fn send_as(&self, pass: &Pass, parts: &Parts, body: Body) -> Result<Response<Incoming>, BoxError> {
        let mut body = Some(body);
        for left in (0..UNBEGUN_TRIES).rev() {
            let Some(now) = body.take() else { break };
            body = now.try_clone().filter(|_| left > 0);
            let mut request = Request::from_parts(parts.clone(), now);
            if let Some(header) = &pass.header {
                request.headers_mut().insert(http::header::AUTHORIZATION, header.clone());
            }
            let answered = self.lines(pass)?.send(request).await;
            match answered {
                Err(error) if body.is_some() && never_begun(error.as_ref()) => {}
                Ok(_) | Err(_) => return answered,
            }
        }
        Err("the server takes no request".into())
    }

    /// The connections to show this on: another certificate needs others. Requests under way on the old ones end there.
    fn lines(&self, pass: &Pass) -> Result<Arc<Lines>, BoxError> {
        let mut held = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if held.identity != pass.identity {
            *held = Lines::new(&self.config, self.proxy.as_ref(), pass.identity.clone())?;
        }
        Ok(held.clone())
    }
}

/// The shared connection, and how to open others, through a proxy if there is one.
fn ways(config: &kube::Config, proxy: Option<&Intercept>) -> Result<(Line, Open), BoxError> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(config.connect_timeout);
    tcp.set_keepalive(Some(ASK_AFTER));
    tcp.set_keepalive_interval(Some(ANSWER_WITHIN / ASKED_BY_KERNEL));
    tcp.set_keepalive_retries(Some(ASKED_BY_KERNEL));
    tcp.set_tcp_user_timeout(Some(ANSWER_WITHIN));
    let Some(proxy) = proxy else { return secured(config, tcp) };
    let to = proxy.uri().clone();
    if to.scheme_str() == Some("http") {
        let tunnel = Tunnel::new(to, tcp);
        let tunnel = match proxy.basic_auth() {
            Some(header) => tunnel.with_auth(header.clone()),
            None => tunnel,
        };
        return secured(config, tunnel);
    }
    let socks = SocksV5::new(to, tcp);
    let socks = match proxy.raw_auth() {
        Some((user, password)) => socks.with_auth(user.into(), password.into()),
        None => socks,
    };
    secured(config, socks)
}

fn secured<C>(config: &kube::Config, connector: C) -> Result<(Line, Open), BoxError>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    let tls = config.rustls_client_config()?;
    let name = config.tls_server_name.clone().map(ServerName::try_from).transpose()?;
    let secured = || {
        let secured = HttpsConnectorBuilder::new().with_tls_config(tls.clone()).https_or_http();
        match &name {
            Some(name) => secured.with_server_name_resolver(FixedServerNameResolver::new(name.clone())),
            None => secured,
        }
    };
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder.timer(TokioTimer::new()).pool_timer(TokioTimer::new());
    builder.http2_keep_alive_interval(ASK_AFTER).http2_keep_alive_timeout(ANSWER_WITHIN);
    builder.http2_keep_alive_while_idle(true);
    builder.http2_initial_stream_window_size(UNREAD).http2_initial_connection_window_size(UNREAD_BY_ALL);
    let client: legacy::Client<_, Body> =
        builder.build(secured().enable_all_versions().wrap_connector(connector.clone()));
    let (to, beside) = (config.cluster_url.clone(), secured().enable_http1().wrap_connector(connector));
    let open: Open = Box::new(move || {
        let (to, beside) = (to.clone(), beside.clone());
        Box::pin(async move {
            let stream = beside.oneshot(to).await?;
            let (requests, connection) = http1::handshake(stream).await?;
            tokio::spawn(connection);
            Ok(requests)
        })
    });
    Ok((BoxCloneSyncService::new(client.map_err(BoxError::from)), open))
}
