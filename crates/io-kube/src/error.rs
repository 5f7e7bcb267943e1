//! Errors of this crate. Each message is one sentence that says what is wrong and what to do, in the phrases people search
//! for, and never contains a secret.

use std::error::Error;
use std::io;
use std::path::Path;
use std::time::Duration;

use api::Kind;
use hyper_util::client::legacy;
use rustls::CertificateError;

use crate::credential::CredentialError;
use crate::proxy::ProxyError;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig named by the user cannot be used.
    #[error("cannot use the kubeconfig {path}: {reason}; check the file or name another with --kubeconfig")]
    Kubeconfig {
        /// Where the kubeconfig is.
        path: String,
        /// What is wrong with it.
        reason: ConfigError,
    },
    /// The URL named by the user is not the URL of an API server.
    #[error("{url} is no URL of an API server: {reason}; name a kubeconfig with --kubeconfig or KUBECONFIG")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong with it.
        reason: ConfigError,
    },
    /// The process runs in a pod, but cannot use the pod's service account.
    #[error("the service account of this pod cannot be used: {0}; name a kubeconfig with --kubeconfig or KUBECONFIG")]
    ServiceAccount(ConfigError),
    /// `KUBECONFIG` or `~/.kube/config` names a cluster, but cannot be used.
    #[error("found no way to reach a cluster: {0}; name a kubeconfig with --kubeconfig or KUBECONFIG")]
    Environment(ConfigError),
    /// There is neither a kubeconfig nor a service account.
    #[error(
        "found no way to reach a cluster: {0}, and this is no pod; name a kubeconfig with --kubeconfig or KUBECONFIG"
    )]
    NoCluster(ConfigError),
    /// The server and this client do not trust each other.
    #[error("{0}")]
    Untrusted(TransportError),
}

/// What is wrong with the configuration of a client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The kubeconfig is not valid YAML, or the current context names something that is not there.
    #[error("{0}")]
    Kubeconfig(String),
    /// The text is not a URL.
    #[error("{0}")]
    Url(String),
    /// Nobody says whose certificates to trust: images of containers often have no authorities.
    #[error(
        "it names no certificate-authority, and this system has none installed (SSL_CERT_FILE may name a file of them)"
    )]
    NoAuthority,
    /// A certificate authority, certificate or key cannot be read or used.
    #[error("{0}")]
    Certificate(String),
    /// No proxy can be derived from what was configured.
    #[error("{0}")]
    Proxy(#[from] ProxyError),
    /// A token, certificate or credential plugin does not work.
    #[error("{0}")]
    Credential(#[from] CredentialError),
}

/// Why a request has no usable answer.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The request did not reach the server, or the server refused to begin with it: nothing happened.
    #[error("{0}")]
    NotSent(TransportError),
    /// The request may have been carried out, but no whole answer came.
    #[error("{0}")]
    Unknown(TransportError),
    /// The server answered with an error.
    #[error("the API server refused to {action}: {message}")]
    Refused {
        /// What was asked for, such as `list pods`.
        action: String,
        /// The HTTP status.
        status: u16,
        /// The server's message, or its status where it gave none.
        message: String,
    },
    /// The server does not serve this kind.
    #[error("the server doesn't have a resource type {:?}; install its CustomResourceDefinition", .0.plural())]
    NotServed(Kind),
    /// The answer cannot be decoded.
    #[error("cannot understand {what}: {reason}")]
    Undecodable {
        /// What the answer should be, such as `the list of pods`.
        what: String,
        /// What is wrong with it.
        reason: DecodeError,
    },
}

/// Why bytes are not the object they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The JSON or protobuf is malformed, or a field has another type than the kind says.
    #[error("{0}")]
    Malformed(String),
    /// It is an object of another kind.
    #[error("it is a {found_kind:?} of {found_version:?} and not a {kind} of {version}")]
    OtherKind {
        found_kind: String,
        /// Its `apiVersion`.
        found_version: String,
        /// The kind that was asked for.
        kind: String,
        /// The `apiVersion` that was asked for.
        version: String,
    },
    /// The server sent protobuf for a kind that only JSON is decoded of.
    #[error("objects of kind {0} are read as JSON only")]
    JsonOnly(Kind),
    /// A watch announces an event longer than any object.
    #[error("the watch announces an event of {0} bytes")]
    TooLong(usize),
}

/// What went wrong between this client and the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// The client's own configuration or credentials.
    #[error("{0}")]
    Config(ConfigError),
    /// No certificate authority that the client trusts has signed the server's certificate.
    #[error(
        "the API server's certificate is not trusted: x509: certificate signed by unknown authority; check \
         certificate-authority in the kubeconfig"
    )]
    UnknownAuthority,
    /// The server's certificate is for other names.
    #[error(
        "the API server's certificate is not trusted: x509: certificate is not valid for this name; check server and \
         tls-server-name in the kubeconfig"
    )]
    OtherName,
    /// The server's certificate has expired.
    #[error(
        "the API server's certificate is not trusted: x509: certificate has expired or is not yet valid; renew it, or check \
         this machine's clock"
    )]
    Expired,
    /// The server's certificate is wrong in another way.
    #[error("the API server's certificate is not trusted: x509: {0}; check certificate-authority in the kubeconfig")]
    BadCertificate(String),
    /// The server ended the connection because of the client's certificate.
    #[error(
        "the API server does not accept the client's certificate ({0}); check client-certificate in the kubeconfig"
    )]
    ClientCertificateRejected(String),
    /// Nobody listens at the address.
    #[error(
        "cannot connect to the API server: connection refused; check that it runs and that server in the kubeconfig is right"
    )]
    ConnectionRefused,
    /// The name does not resolve.
    #[error("cannot connect to the API server: no such host; check server in the kubeconfig and DNS ({0})")]
    NoSuchHost(String),
    /// The address does not answer.
    #[error("cannot connect to the API server: i/o timeout; check server in the kubeconfig and the network")]
    ConnectTimeout,
    /// The connection could not be made for another reason.
    #[error("cannot connect to the API server: {0}")]
    NotConnected(String),
    /// The path is not one that HTTP can ask for.
    #[error("cannot ask for {path}: {reason}")]
    InvalidRequest {
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The server accepted the request and did not answer in time.
    #[error("the API server did not answer within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    /// The connection failed while the request was under way.
    #[error("the API server did not answer: {0}")]
    Broken(String),
}

/// The transport gave no answer, or the answer ended too early.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NoAnswer(#[source] pub tower::BoxError);

impl ConfigError {
    /// A file with a certificate that cannot be read.
    pub(crate) fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> ConfigError {
        ConfigError::Certificate(format!("cannot read {}: {error}", path.display()))
    }
}

impl TransportError {
    /// Waiting does not cure it: names, certificates and credentials.
    pub(crate) fn is_permanent(&self) -> bool {
        match self {
            TransportError::Config(_)
            | TransportError::UnknownAuthority
            | TransportError::OtherName
            | TransportError::Expired
            | TransportError::BadCertificate(_)
            | TransportError::ClientCertificateRejected(_) => true,
            TransportError::ConnectionRefused
            | TransportError::NoSuchHost(_)
            | TransportError::ConnectTimeout
            | TransportError::NotConnected(_)
            | TransportError::InvalidRequest { .. }
            | TransportError::Timeout(_)
            | TransportError::Broken(_) => false,
        }
    }

    /// Nothing of the request was sent.
    fn came_before_the_request(&self) -> bool {
        !matches!(self, TransportError::Timeout(_) | TransportError::Broken(_))
    }
}

impl From<&NoAnswer> for TransportError {
    fn from(error: &NoAnswer) -> TransportError {
        if let Some(known) = causes(error).find_map(certificate_or_credential) {
            return known;
        }
        let text = chain(error);
        // After the handshake HTTP/2 keeps only the words of an alert.
        if let Some((_, alert)) = text.split_once("received fatal alert: ") {
            return TransportError::ClientCertificateRejected(alert.into());
        }
        let connecting =
            causes(error).filter_map(|cause| cause.downcast_ref()).any(|error: &legacy::Error| error.is_connect());
        let kind = causes(error).find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
        match kind {
            _ if !connecting => TransportError::Broken(text),
            Some(io::ErrorKind::ConnectionRefused) => TransportError::ConnectionRefused,
            Some(io::ErrorKind::TimedOut) => TransportError::ConnectTimeout,
            Some(_) | None if text.contains("dns error") => TransportError::NoSuchHost(last_cause(error)),
            Some(_) | None => TransportError::NotConnected(text),
        }
    }
}

impl RequestError {
    /// The path is not one that HTTP can ask for.
    pub(crate) fn invalid(path: &str, error: &http::Error) -> RequestError {
        RequestError::NotSent(TransportError::InvalidRequest { path: path.into(), reason: error.to_string() })
    }

    /// The transport gave no answer to a request.
    pub(crate) fn no_answer(error: &NoAnswer) -> RequestError {
        let transport = TransportError::from(error);
        if transport.came_before_the_request() || is_refused_stream(error) {
            RequestError::NotSent(transport)
        } else {
            RequestError::Unknown(transport)
        }
    }

    /// The answer ended too early.
    pub(crate) fn broken_answer(error: &NoAnswer) -> RequestError {
        RequestError::Unknown(TransportError::from(error))
    }
}

fn certificate_or_credential(cause: &(dyn Error + 'static)) -> Option<TransportError> {
    if let Some(config) = cause.downcast_ref::<ConfigError>() {
        return Some(TransportError::Config(config.clone()));
    }
    let rustls::Error::InvalidCertificate(problem) = cause.downcast_ref()? else { return None };
    Some(match problem {
        // Authorities of two clusters often have the same name: then the issuer is found, and its signature is wrong.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => TransportError::UnknownAuthority,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            TransportError::OtherName
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => TransportError::Expired,
        other => TransportError::BadCertificate(format!("{other:?}")),
    })
}

/// The server says that it has not processed the request, so sending it again is safe whatever it was (RFC 9113, 6.8 and
/// 8.7).
pub(crate) fn is_refused_stream(error: &(dyn Error + 'static)) -> bool {
    causes(error).filter_map(|cause| cause.downcast_ref::<h2::Error>()).any(|error| {
        let refused = error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
        // A GOAWAY ends only the streams beyond the last one that the server processes.
        let beyond = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
        error.is_remote() && (refused || beyond)
    })
}

/// An error and its causes, including those that an [`io::Error`] wraps.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| cause(*error))
}

fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}

fn last_cause(error: &(dyn Error + 'static)) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

/// An error and its causes in one line: the outermost alone often says only that something failed.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = error.source();
    }
    text
}
