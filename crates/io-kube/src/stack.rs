//! The connection itself: one HTTP/2 connection for everything, where the server speaks it.
//!
//! `kube` knows kubeconfigs, certificates and tokens, but its own stack speaks HTTP/1.1, which takes a connection with a
//! TLS handshake for every request at once, and notices a dead connection only when something is sent. Here its parts are
//! put together with a client that shares one connection and asks it now and then whether it is alive.

use std::time::Duration;

use hyper_rustls::{FixedServerNameResolver, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ClientBuilder, ConfigExt};
use rustls::pki_types::ServerName;
use tower::{BoxError, ServiceBuilder, ServiceExt};

/// A connection that is quiet for so long is asked whether it is alive, and given up when it does not answer in time: a
/// watch on a dead one would be quiet for ever.
const ASK_AFTER: Duration = Duration::from_secs(30);
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// A client as the configuration wants it.
pub(crate) fn client(config: kube::Config) -> Result<kube::Client, BoxError> {
    // Certificates that a plugin hands out run out, and proxies need a tunnel: `kube` knows how.
    if config.proxy_url.is_some() || config.auth_info.exec.is_some() {
        return Ok(kube::Client::try_from(config)?);
    }
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(config.connect_timeout);
    let mut secured = HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_or_http();
    if let Some(name) = &config.tls_server_name {
        secured = secured.with_server_name_resolver(FixedServerNameResolver::new(ServerName::try_from(name.clone())?));
    }
    let mut builder = Client::builder(TokioExecutor::new());
    builder.timer(TokioTimer::new()).pool_timer(TokioTimer::new());
    builder.http2_keep_alive_interval(ASK_AFTER).http2_keep_alive_timeout(ANSWER_WITHIN);
    builder.http2_keep_alive_while_idle(true);
    let client: Client<_, Body> = builder.build(secured.enable_all_versions().wrap_connector(tcp));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok(ClientBuilder::new(service.boxed(), config.default_namespace).build())
}
