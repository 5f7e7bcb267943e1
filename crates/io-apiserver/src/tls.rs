//! The socket: TLS, HTTP/1.1 and HTTP/2, and who stands at the other end of each connection.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{Acceptor, VerifierBuilderError};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::{LazyConfigAcceptor, TlsAcceptor};
use tower::Layer;

use crate::audit::PeerAddress;
use crate::auth::Identity;
use crate::limits::CallerLimits;
use crate::pki::{self, PairError, Pki};
use crate::stall::Stall;
pub(crate) use crate::strangers::Door;
use crate::strangers::Strangers;

/// How long open requests may take to end when the server stops.
const DRAIN_LIMIT: Duration = Duration::from_secs(5);

/// The caller a connection proved to be, until its certificate ends.
#[derive(Clone)]
pub(crate) struct Peer {
    pub identity: Identity,
    pub until: i64,
}

/// Says to streams without an end of their own that the server is stopping.
#[derive(Clone)]
pub(crate) struct Closing(pub watch::Receiver<bool>);

/// Lets any client certificate through the handshake, after proof that the client holds its key; whether it is one
/// of ours is judged afterwards. So a stranger gets a readable 401 and not a broken connection (reliability 126).
#[derive(Debug)]
struct JudgeLater(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for JudgeLater {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// Why TLS cannot be spoken with the certificates there are.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) enum TlsError {
    Pair(#[from] PairError),
    Rustls(#[from] rustls::Error),
    Verifier(#[from] VerifierBuilderError),
}

/// TLS as this server speaks it, and the judge of client certificates.
pub(crate) struct Tls {
    acceptor: TlsAcceptor,
    judge: Arc<dyn ClientCertVerifier>,
}

impl Tls {
    pub(crate) fn new(pki: &Pki) -> Result<Tls, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(pki::certificate_der(&pki.client_authority)?)?;
        let judge =
            rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build()?;
        let chain = vec![pki::certificate_der(&pki.server)?];
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::new(JudgeLater(judge.clone())))
            .with_single_cert(chain, pki::key_der(&pki.server)?)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Tls { acceptor: TlsAcceptor::from(Arc::new(config)), judge })
    }

    fn judge(&self, certificates: Option<&[CertificateDer<'_>]>) -> Option<Peer> {
        let (leaf, rest) = certificates?.split_first()?;
        self.judge.verify_client_cert(leaf, rest, UnixTime::now()).ok()?;
        let (identity, until) = pki::identity_of(leaf)?;
        Some(Peer { identity, until })
    }
}

/// Accepts connections until `shutdown` is done, then lets open requests end.
pub(crate) async fn serve(
    tls: Arc<Tls>,
    limits: CallerLimits,
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()>,
) {
    let (closing, closed) = watch::channel(false);
    let graceful = Arc::new(GracefulShutdown::new());
    let places = Arc::new(Semaphore::new(limits.places()));
    let strangers = Strangers::new(limits.strangers.min(limits.places().div_ceil(8)));
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let stream = tokio::select! {
            () = &mut shutdown => break,
            accepted = accept(&listener, &places) => accepted,
        };
        let (stream, address, place) = match stream {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                // Out of descriptors, most likely: waiting is better than spinning.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (door, turned_away) = strangers.admit(address, limits.unproven);
        let closing = Closing(closed.clone());
        let router = router.clone().layer(axum::Extension(PeerAddress(address)));
        let connection = connection(tls.clone(), limits, stream, door, router, closing, graceful.watcher());
        tokio::spawn(async move {
            let ended = tokio::select! {
                ended = connection => ended,
                () = turned_away => Err("the peer did not say who it is".into()),
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "connection ended");
            }
            drop(place);
        });
    }
    drop(listener);
    let _ = closing.send(true);
    if let Ok(graceful) = Arc::try_unwrap(graceful) {
        let _ = tokio::time::timeout(DRAIN_LIMIT, graceful.shutdown()).await;
    }
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, IpAddr, tokio::sync::OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.map_err(io::Error::other)?;
    let (stream, address) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok((stream, address.ip(), place))
}

type AnyError = Box<dyn std::error::Error + Send + Sync>;

async fn connection(
    tls: Arc<Tls>,
    limits: CallerLimits,
    stream: TcpStream,
    door: Door,
    router: Router,
    closing: Closing,
    watcher: hyper_util::server::graceful::Watcher,
) -> Result<(), AnyError> {
    let handshake = async {
        let hello = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        door.greeted();
        hello.into_stream(tls.acceptor.config().clone()).await
    };
    let stream = tokio::time::timeout(limits.handshake, handshake).await??;
    let peer = tls.judge(stream.get_ref().1.peer_certificates());
    if peer.is_some() {
        door.open();
    }
    let stream = Stall::new(stream, limits.stalled);
    let service = axum::Extension(door).layer(axum::Extension(closing).layer(router));
    let service = axum::Extension(peer).layer(service);
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.headers).max_buf_size(64 * 1024);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30))
        .max_concurrent_streams(250)
        .max_header_list_size(64 * 1024);
    let connection =
        builder.serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(service)).into_owned();
    watcher.watch(connection).await
}
