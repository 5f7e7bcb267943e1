//! A TLS server of the tests' own, which knows who may ask and remembers who did.
#![allow(dead_code, reason = "each test file uses its own part of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use api::{Meta, Object, VolumeSnapshotContent, Write};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Method, StatusCode, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Signs certificates.
pub struct Authority {
    pub certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "an authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap().pem();
        Authority { certificate, issuer: Issuer::new(params, key) }
    }

    /// A certificate for these names of a server, or for somebody of this name.
    pub fn sign(&self, names: &[&str]) -> Pair {
        self.sign_with(names, |_| {})
    }

    /// A certificate that was good long ago.
    pub fn sign_expired(&self, names: &[&str]) -> Pair {
        self.sign_with(names, |params| {
            params.not_before = rcgen::date_time_ymd(2001, 1, 1);
            params.not_after = rcgen::date_time_ymd(2002, 1, 1);
        })
    }

    fn sign_with(&self, names: &[&str], change: impl Fn(&mut CertificateParams)) -> Pair {
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names.clone()).unwrap();
        params.distinguished_name.push(DnType::CommonName, names[0].clone());
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Pair { certificate, key: key.serialize_pem() }
    }
}

/// One end of a connection.
#[derive(Clone, Default)]
pub struct Peer {
    pub connection: usize,
    pub certificate: Vec<u8>,
}

/// A request that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub connection: usize,
    pub http2: bool,
    /// `Authorization`, or the name in the certificate.
    pub who: String,
}

/// Who may ask, and who did.
#[derive(Clone, Default)]
pub struct Book {
    pub known: Arc<Mutex<BTreeSet<String>>>,
    pub seen: Arc<Mutex<Vec<Seen>>>,
}

impl Book {
    /// From now on only these are known: `Bearer …`, or names in certificates.
    pub fn only(&self, who: &[&str]) {
        *self.known.lock().unwrap() = who.iter().map(ToString::to_string).collect();
    }

    /// Who has asked since the last look.
    pub fn asked(&self) -> Vec<String> {
        self.seen.lock().unwrap().drain(..).map(|seen| seen.who).collect()
    }

    fn judge(&self, peer: &Peer, request: &Request) -> bool {
        let known = self.known.lock().unwrap();
        let header = request.headers().get("authorization").map(|value| value.to_str().unwrap().to_string());
        let shown = known.iter().find(|name| {
            let name = name.as_bytes();
            peer.certificate.windows(name.len()).any(|part| part == name)
        });
        let who = header.or(shown.cloned()).unwrap_or_default();
        let http2 = request.version() == Version::HTTP_2;
        self.seen.lock().unwrap().push(Seen { connection: peer.connection, http2, who: who.clone() });
        known.is_empty() || known.contains(&who)
    }
}

/// A server that answers every list with an empty one, to those it knows.
pub async fn guarded(tls: ServerConfig, book: &Book) -> u16 {
    let book = book.clone();
    let answer = move |Extension(peer): Extension<Peer>, request: Request| async move {
        if book.judge(&peer, &request) { empty_list() } else { StatusCode::UNAUTHORIZED.into_response() }
    };
    serve(tls, Router::new().fallback(answer)).await
}

pub fn empty_list() -> Response {
    Json(json!({ "kind": "List", "metadata": { "resourceVersion": "7" }, "items": [] })).into_response()
}

/// Serves on a port of its own for as long as the test runs.
pub async fn serve(tls: ServerConfig, router: Router) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let connections = AtomicUsize::new(0);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let connection = connections.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(converse(stream, acceptor.clone(), router.clone(), connection));
        }
    });
    port
}

async fn converse(stream: TcpStream, acceptor: TlsAcceptor, router: Router, connection: usize) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let shown = stream.get_ref().1.peer_certificates().and_then(|all| all.first());
    let peer = Peer { connection, certificate: shown.map(|one| one.to_vec()).unwrap_or_default() };
    let service = TowerToHyperService::new(router.layer(Extension(peer)));
    let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

/// TLS as a server speaks it; only with a certificate of this authority, if one is given.
pub fn tls(server: &Pair, clients: Option<&Authority>, protocols: &[&str]) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
    let builder = match clients {
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(authority.certificate.as_bytes()).unwrap()).unwrap();
            builder.with_client_cert_verifier(
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap(),
            )
        }
        None => builder.with_no_client_auth(),
    };
    let chain = vec![CertificateDer::from_pem_slice(server.certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(server.key.as_bytes()).unwrap();
    let mut config = builder.with_single_cert(chain, key).unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    config
}

/// What API servers speak.
pub const BOTH: [&str; 2] = ["h2", "http/1.1"];

pub fn in_base64(text: &str) -> String {
    STANDARD.encode(text)
}

/// Writes a kubeconfig with these lines about the cluster and the user.
pub fn kubeconfig(folder: &Path, cluster: &[String], user: &[String]) -> PathBuf {
    let lines = |all: &[String]| all.iter().map(|line| format!("    {line}\n")).collect::<String>();
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: here\ncontexts:\n- name: here\n  context: {{cluster: c, user: u}}\n\
         clusters:\n- name: c\n  cluster:\n{}users:\n- name: u\n  user:\n{}",
        lines(cluster),
        lines(user),
    );
    let path = folder.join("kubeconfig");
    std::fs::write(&path, text).unwrap();
    path
}

/// Lines about a cluster at this port, whose certificate this authority signed.
pub fn cluster(port: u16, authority: &Authority) -> Vec<String> {
    vec![
        format!("server: https://127.0.0.1:{port}"),
        format!("certificate-authority-data: {}", in_base64(&authority.certificate)),
    ]
}

/// A write that creates something of this name, of a kind that travels as JSON.
pub fn create(name: &str) -> Write {
    let object: Object = VolumeSnapshotContent { metadata: Meta::named(name), ..Default::default() }.into();
    Write::Create { target: object.reference(), body: object.to_json() }
}

/// How often each object was created.
#[derive(Clone, Default)]
pub struct Ledger(pub Arc<Mutex<BTreeMap<String, usize>>>);

impl Ledger {
    /// A server that creates whatever it is told to.
    pub fn router(&self) -> Router {
        let ledger = self.clone();
        Router::new().fallback(move |method: Method, body: String| async move { ledger.answer(&method, &body) })
    }

    /// Its answer to one request.
    pub fn answer(&self, method: &Method, body: &str) -> Response {
        if method != Method::POST {
            return empty_list();
        }
        let mut object: Value = serde_json::from_str(body).unwrap();
        let name = object["metadata"]["name"].as_str().unwrap().to_string();
        *self.0.lock().unwrap().entry(name).or_default() += 1;
        object["metadata"]["uid"] = json!("u");
        (StatusCode::CREATED, Json(object)).into_response()
    }

    pub fn of(&self, name: &str) -> usize {
        self.0.lock().unwrap().get(name).copied().unwrap_or_default()
    }
}
