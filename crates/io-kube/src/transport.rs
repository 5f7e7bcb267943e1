//! The transport to the API server: one HTTP/2 connection, which watches and requests share. A server that does not offer
//! HTTP/2 gets HTTP/1.1 connections instead.
//!
//! `kube` reads kubeconfigs and certificates, but its own client speaks HTTP/1.1 only and notices a dead connection only
//! when it sends something. This module puts `kube`'s layers on a hyper client that pings quiet connections, and adds the
//! credentials that [`Credential`] holds at the moment.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::request::Parts;
use http::uri::Scheme;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::connect::{Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt, RustlsTlsError};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt, service_fn};

use crate::credential::{Credential, Identity, Presented};
use crate::error::{ConfigError, NoAnswer, chain, is_refused_stream};

/// A connection that has been quiet for this long gets a keep-alive ping, and is closed if the answer does not come in
/// time. Without pings a watch on a dead connection would stay silent for ever.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(15);
/// How many TCP keep-alive probes the kernel sends within that time, for HTTP/1.1, which has no ping.
const KEEP_ALIVE_PROBES: u32 = 3;
/// The flow-control window of one HTTP/2 stream: how much of an answer the server may send ahead of its reader. The
/// connection as a whole has practically no window: otherwise a few watches that nobody reads for a moment would keep all
/// other requests waiting.
const STREAM_WINDOW: u32 = 512 * 1024;
const CONNECTION_WINDOW: u32 = 1 << 30;
/// How often a request is sent that the server refuses to process.
const REFUSED_STREAM_TRIES: usize = 4;

/// A hyper client without its type parameters.
type HttpsClient = BoxCloneSyncService<Request<Body>, Response<Incoming>, BoxError>;

/// Sends requests to a server, or to one in this process.
#[derive(Clone)]
pub(crate) struct Client(BoxCloneSyncService<Request<Body>, Response<AnswerBody>, NoAnswer>);

/// The body of an answer, as it arrives.
pub(crate) type AnswerBody = UnsyncBoxBody<Bytes, NoAnswer>;

impl Client {
    /// A client of a tower service.
    pub(crate) fn new<S, B>(service: S) -> Client
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let failed = |error: B::Error| NoAnswer(error.into());
        let service = service
            .map_response(move |response: Response<B>| response.map(|body| UnsyncBoxBody::new(body.map_err(failed))));
        Client(BoxCloneSyncService::new(service.map_err(|error: S::Error| NoAnswer(error.into()))))
    }

    /// A client for the server that the configuration names.
    pub(crate) async fn connect(mut config: kube::Config, proxy: Option<Intercept>) -> Result<Client, ConfigError> {
        let credential = Credential::of(&mut config.auth_info);
        let presented = credential.current().await?;
        let unusable = |error: &dyn std::error::Error| ConfigError::Kubeconfig(chain(error));
        let layers = ServiceBuilder::new()
            .layer(config.base_uri_layer())
            .option_layer(config.auth_layer().map_err(|error| unusable(&error))?)
            .layer(config.extra_headers_layer().map_err(|error| unusable(&error))?)
            .map_err(BoxError::from);
        let client = https_client(&config, proxy.as_ref(), presented.identity.as_ref())?;
        let connection = Mutex::new((presented.identity.clone(), client));
        let transport = Arc::new(Transport { config, proxy, credential, connection });
        Ok(Client::new(layers.service(service_fn(move |request| {
            let transport = transport.clone();
            async move { transport.send(request).await }
        }))))
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Response<AnswerBody>, NoAnswer> {
        self.0.clone().oneshot(request).await
    }
}

/// Sends requests to one server with the credentials of the moment.
struct Transport {
    config: kube::Config,
    proxy: Option<Intercept>,
    credential: Credential,
    /// The client, and the certificate that it presents in TLS handshakes.
    connection: Mutex<(Option<Identity>, HttpsClient)>,
}

impl Transport {
    async fn send(&self, request: Request<Body>) -> Result<Response<Incoming>, BoxError> {
        let (parts, body) = request.into_parts();
        let again = body.try_clone();
        let presented = self.credential.current().await.map_err(ConfigError::from)?;
        let response = self.send_as(&presented, &parts, body).await?;
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        // The server begins no request of a user it does not know, so the same request may be sent again.
        match (again, self.credential.instead_of(&presented).await.map_err(ConfigError::from)?) {
            (Some(body), Some(presented)) => self.send_as(&presented, &parts, body).await,
            (_, _) => Ok(response),
        }
    }

    /// Sends a request, and sends it again while the server says that it has not processed it.
    async fn send_as(&self, presented: &Presented, parts: &Parts, body: Body) -> Result<Response<Incoming>, BoxError> {
        let mut body = body;
        for _ in 1..REFUSED_STREAM_TRIES {
            let Some(again) = body.try_clone() else { break };
            match self.send_once(presented, parts, body).await {
                Err(error) if is_refused_stream(error.as_ref()) => body = again,
                answered => return answered,
            }
        }
        self.send_once(presented, parts, body).await
    }

    async fn send_once(
        &self,
        presented: &Presented,
        parts: &Parts,
        body: Body,
    ) -> Result<Response<Incoming>, BoxError> {
        let mut request = Request::from_parts(parts.clone(), body);
        if let Some(header) = &presented.header {
            request.headers_mut().insert(http::header::AUTHORIZATION, header.clone());
        }
        self.client(presented)?.oneshot(request).await
    }

    /// The client to send a request on. A new client certificate needs new connections; requests under way on the old
    /// ones end there.
    fn client(&self, presented: &Presented) -> Result<HttpsClient, ConfigError> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if connection.0 != presented.identity {
            let client = https_client(&self.config, self.proxy.as_ref(), presented.identity.as_ref())?;
            *connection = (presented.identity.clone(), client);
        }
        Ok(connection.1.clone())
    }
}

/// A client that presents this certificate and connects through a proxy if there is one.
fn https_client(
    config: &kube::Config,
    proxy: Option<&Intercept>,
    identity: Option<&Identity>,
) -> Result<HttpsClient, ConfigError> {
    let mut config = config.clone();
    if let Some(Identity { certificate, key }) = identity {
        config.auth_info.client_certificate_data = Some(STANDARD.encode(certificate));
        config.auth_info.client_key_data = Some(STANDARD.encode(key).into());
    }
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(config.connect_timeout);
    tcp.set_keepalive(Some(KEEP_ALIVE_INTERVAL));
    tcp.set_keepalive_interval(Some(KEEP_ALIVE_TIMEOUT / KEEP_ALIVE_PROBES));
    tcp.set_keepalive_retries(Some(KEEP_ALIVE_PROBES));
    tcp.set_tcp_user_timeout(Some(KEEP_ALIVE_TIMEOUT));
    let Some(proxy) = proxy else { return with_tls(&config, tcp) };
    let to = proxy.uri().clone();
    if to.scheme_str() == Some("http") {
        let tunnel = Tunnel::new(to, tcp);
        let tunnel = match proxy.basic_auth() {
            Some(header) => tunnel.with_auth(header.clone()),
            None => tunnel,
        };
        return with_tls(&config, tunnel);
    }
    let socks = SocksV5::new(to, tcp);
    let socks = match proxy.raw_auth() {
        Some((user, password)) => socks.with_auth(user.into(), password.into()),
        None => socks,
    };
    with_tls(&config, socks)
}

/// Whom the client trusts. Where the kubeconfig names no authority, the system's count, which need not have any where
/// no certificate is checked.
fn trusting(config: &kube::Config) -> Result<ClientConfig, ConfigError> {
    let mut config = config.clone();
    if config.accept_invalid_certs || config.cluster_url.scheme() == Some(&Scheme::HTTP) {
        config.root_cert.get_or_insert_default();
    }
    config.rustls_client_config().map_err(|error| match error {
        kube::Error::RustlsTls(RustlsTlsError::AddRootCertificate(_)) if config.root_cert.is_none() => {
            ConfigError::NoAuthority
        }
        error => ConfigError::Certificate(chain(&error)),
    })
}

fn with_tls<C>(config: &kube::Config, connector: C) -> Result<HttpsClient, ConfigError>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    let tls = HttpsConnectorBuilder::new().with_tls_config(trusting(config)?).https_or_http();
    let tls = match config.tls_server_name.clone() {
        Some(name) => {
            let name = ServerName::try_from(name);
            let name = name.map_err(|error| ConfigError::Kubeconfig(format!("tls-server-name is no name: {error}")))?;
            tls.with_server_name_resolver(FixedServerNameResolver::new(name))
        }
        None => tls,
    };
    let mut builder = legacy::Client::builder(TokioExecutor::new());
    builder.timer(TokioTimer::new()).pool_timer(TokioTimer::new());
    builder.http2_keep_alive_interval(KEEP_ALIVE_INTERVAL).http2_keep_alive_timeout(KEEP_ALIVE_TIMEOUT);
    builder.http2_keep_alive_while_idle(true);
    builder.http2_initial_stream_window_size(STREAM_WINDOW).http2_initial_connection_window_size(CONNECTION_WINDOW);
    let client: legacy::Client<_, Body> = builder.build(tls.enable_all_versions().wrap_connector(connector));
    Ok(BoxCloneSyncService::new(client.map_err(BoxError::from)))
}
