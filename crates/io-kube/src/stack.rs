//! The connection itself: one HTTP/2 connection for everything, where the server speaks it.
//!
//! `kube` knows kubeconfigs and certificates, but its own stack speaks HTTP/1.1, which takes a connection with a TLS
//! handshake for every request at once, and notices a dead connection only when something is sent. Here its parts are put
//! together with a client that shares one connection, asks it now and then whether it is alive, and shows the server what
//! [`Credential`] says at the moment.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ClientBuilder, ConfigExt};
use rustls::pki_types::ServerName;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt, service_fn};

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
/// How often a request is made that the server has not begun to look at.
const UNBEGUN_TRIES: usize = 4;

type Line = BoxCloneSyncService<Request<Body>, Response<Incoming>, BoxError>;

/// A client as the configuration wants it.
pub(crate) async fn client(mut config: kube::Config, proxy: Option<Intercept>) -> Result<kube::Client, BoxError> {
    let credential = Credential::of(&mut config.auth_info);
    let pass = credential.current().await?;
    let layers = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from);
    let namespace = config.default_namespace.clone();
    let line = Mutex::new((pass.identity.clone(), line(&config, proxy.as_ref(), pass.identity.as_ref())?));
    let stack = Arc::new(Stack { config, proxy, credential, line });
    let service = layers.service(service_fn(move |request| {
        let stack = stack.clone();
        async move { stack.send(request).await }
    }));
    Ok(ClientBuilder::new(service.boxed(), namespace).build())
}

struct Stack {
    config: kube::Config,
    proxy: Option<Intercept>,
    credential: Credential,
    /// The connection, and the certificate that was shown when it was made.
    line: Mutex<(Option<Identity>, Line)>,
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
            let answered = self.line(pass)?.ready().await?.call(request).await;
            match answered {
                Err(error) if body.is_some() && never_begun(error.as_ref()) => {}
                Ok(_) | Err(_) => return answered,
            }
        }
        Err("the server takes no request".into())
    }

    /// The connection to show this on: another certificate needs another connection. Requests under way on the old one end
    /// there.
    fn line(&self, pass: &Pass) -> Result<Line, BoxError> {
        let mut held = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if held.0 != pass.identity {
            *held = (pass.identity.clone(), line(&self.config, self.proxy.as_ref(), pass.identity.as_ref())?);
        }
        Ok(held.1.clone())
    }
}

/// A way to the server, through a proxy if there is one.
fn line(config: &kube::Config, proxy: Option<&Intercept>, identity: Option<&Identity>) -> Result<Line, BoxError> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(config.connect_timeout);
    tcp.set_keepalive(Some(ASK_AFTER));
    tcp.set_keepalive_interval(Some(ANSWER_WITHIN / ASKED_BY_KERNEL));
    tcp.set_keepalive_retries(Some(ASKED_BY_KERNEL));
    let Some(proxy) = proxy else { return secured(config, identity, tcp) };
    let to = proxy.uri().clone();
    if to.scheme_str() == Some("http") {
        let tunnel = Tunnel::new(to, tcp);
        let tunnel = match proxy.basic_auth() {
            Some(header) => tunnel.with_auth(header.clone()),
            None => tunnel,
        };
        return secured(config, identity, tunnel);
    }
    let socks = SocksV5::new(to, tcp);
    let socks = match proxy.raw_auth() {
        Some((user, password)) => socks.with_auth(user.into(), password.into()),
        None => socks,
    };
    secured(config, identity, socks)
}

fn secured<C>(config: &kube::Config, identity: Option<&Identity>, connector: C) -> Result<Line, BoxError>
where
    C: Service<http::Uri> + Clone + Send + Sync + 'static,
    hyper_rustls::HttpsConnector<C>: Connect + Clone + Send + Sync + 'static,
{
    let mut config = config.clone();
    if let Some(Identity { certificate, key }) = identity {
        config.auth_info.client_certificate_data = Some(STANDARD.encode(certificate));
        config.auth_info.client_key_data = Some(STANDARD.encode(key).into());
    }
    let mut secured = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    if let Some(name) = &config.tls_server_name {
        secured = secured.with_server_name_resolver(FixedServerNameResolver::new(ServerName::try_from(name.clone())?));
    }
    let mut builder = Client::builder(TokioExecutor::new());
    builder.timer(TokioTimer::new()).pool_timer(TokioTimer::new());
    builder.http2_keep_alive_interval(ASK_AFTER).http2_keep_alive_timeout(ANSWER_WITHIN);
    builder.http2_keep_alive_while_idle(true);
    builder.http2_initial_stream_window_size(UNREAD).http2_initial_connection_window_size(UNREAD_BY_ALL);
    let client: Client<_, Body> = builder.build(secured.enable_all_versions().wrap_connector(connector));
    Ok(BoxCloneSyncService::new(client.map_err(BoxError::from)))
}
