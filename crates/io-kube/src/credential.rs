//! What identifies this client to the server, and when it is loaded again.
//!
//! A token in a kubeconfig and a password never change; `kube` adds them. This module holds the others: a token in a file,
//! which the kubelet replaces, certificates in files, and what a credential plugin prints. A server that answers 401
//! (Unauthorized) makes the client load them again at once.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderValue;
use kube::config::{AuthInfo, ExecConfig};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::plugin::{self, PluginError};

/// How long the content of a file is used before the file is read again. The kubelet replaces a token long before it
/// expires.
const REREAD: Duration = Duration::from_secs(60);

/// Why there is no credential.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialError {
    /// A file with a token, certificate or key cannot be read.
    #[error("cannot read {path}: {reason}")]
    ReadFile {
        path: String,
        /// The operating system's words.
        reason: String,
    },
    /// The content of a token file is not a token.
    #[error("the token file {path} {problem}; check what is in it")]
    TokenFile {
        path: String,
        /// What is wrong with its content.
        problem: TokenProblem,
    },
    /// What a plugin printed is not a token.
    #[error("the credential plugin's token {0}; update it")]
    PluginToken(TokenProblem),
    /// The plugin failed.
    #[error("{0}")]
    Plugin(#[from] PluginError),
}

/// What is wrong with a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenProblem {
    /// It is empty.
    #[error("is empty")]
    Empty,
    /// It has characters that no HTTP header may have.
    #[error("is no token")]
    NotAHeader,
}

/// What the client presents to the server.
#[derive(PartialEq, Eq)]
pub(crate) struct Presented {
    /// The `Authorization` header.
    pub header: Option<HeaderValue>,
    /// The client certificate.
    pub identity: Option<Identity>,
}

/// A client certificate and its key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
}

enum Source {
    /// Nothing that changes.
    Fixed,
    Files {
        token: Option<PathBuf>,
        identity: Option<(PathBuf, PathBuf)>,
    },
    Plugin(Box<ExecConfig>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expiry {
    Never,
    /// By the process's own clock.
    At(Instant),
    /// In milliseconds since 1970.
    AtDate(u64),
}

/// Where credentials come from, and what came last.
pub(crate) struct Credential {
    source: Source,
    held: Mutex<Option<(Arc<Presented>, Expiry)>>,
}

impl Credential {
    /// Takes what changes at run time out of the configuration, so that `kube` does not load it too.
    pub fn of(user: &mut AuthInfo) -> Credential {
        let source = match user.exec.take() {
            Some(plugin) if !has_other_credentials(user) => Source::Plugin(Box::new(plugin)),
            Some(_) | None => {
                let token = user.token_file.take().map(PathBuf::from);
                // The file takes precedence over a token beside it, unless there is no file.
                let token = token.filter(|path| user.token.is_none() || path.exists());
                if token.is_some() {
                    user.token = None;
                }
                let identity = match (user.client_certificate.take(), user.client_key.take()) {
                    // Data in the kubeconfig itself takes precedence over files.
                    (Some(certificate), Some(key)) if user.client_certificate_data.is_none() => {
                        Some((PathBuf::from(certificate), PathBuf::from(key)))
                    }
                    (certificate, key) => {
                        (user.client_certificate, user.client_key) = (certificate, key);
                        None
                    }
                };
                if token.is_none() && identity.is_none() { Source::Fixed } else { Source::Files { token, identity } }
            }
        };
        Credential { source, held: Mutex::new(None) }
    }

    /// What to present now.
    pub async fn current(&self) -> Result<Arc<Presented>, CredentialError> {
        let mut held = self.held.lock().await;
        match &*held {
            Some((presented, expiry)) if !expiry.is_over() => Ok(presented.clone()),
            Some(_) | None => self.reload(&mut held).await,
        }
    }

    /// What to present after the server refused `refused`; `None` if there is nothing else.
    pub async fn instead_of(&self, refused: &Arc<Presented>) -> Result<Option<Arc<Presented>>, CredentialError> {
        let mut held = self.held.lock().await;
        let presented = match &*held {
            // Another request has reloaded it meanwhile.
            Some((presented, expiry)) if !Arc::ptr_eq(presented, refused) && !expiry.is_over() => presented.clone(),
            Some(_) | None => self.reload(&mut held).await?,
        };
        Ok((presented != *refused).then_some(presented))
    }

    async fn reload(&self, held: &mut Option<(Arc<Presented>, Expiry)>) -> Result<Arc<Presented>, CredentialError> {
        let (presented, expiry) = match (self.source.load().await, &*held) {
            (Ok((new, expiry)), Some((before, _))) if new == **before => (before.clone(), expiry),
            (Ok((new, expiry)), Some(_) | None) => (Arc::new(new), expiry),
            // A file may be removed once it has been read: its last content is all there is.
            (Err(error), Some((before, _))) if matches!(self.source, Source::Files { .. }) => {
                tracing::warn!("{error}; going on with what was read before");
                (before.clone(), Expiry::At(Instant::now() + REREAD))
            }
            (Err(error), Some(_) | None) => return Err(error),
        };
        *held = Some((presented.clone(), expiry));
        Ok(presented)
    }
}

/// The user in the kubeconfig has other credentials, which take precedence over a plugin.
fn has_other_credentials(user: &AuthInfo) -> bool {
    user.token.is_some() || user.token_file.is_some() || user.username.is_some() || user.auth_provider.is_some()
}

impl Expiry {
    fn is_over(self) -> bool {
        match self {
            Expiry::Never => false,
            Expiry::At(end) => Instant::now() >= end,
            Expiry::AtDate(end) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
                now >= u128::from(end)
            }
        }
    }
}

impl Source {
    async fn load(&self) -> Result<(Presented, Expiry), CredentialError> {
        match self {
            Source::Fixed => Ok((Presented { header: None, identity: None }, Expiry::Never)),
            Source::Files { token, identity } => {
                let header =
                    match token {
                        Some(path) => Some(bearer(read(path).await?.trim_ascii()).map_err(|problem| {
                            CredentialError::TokenFile { path: path.display().to_string(), problem }
                        })?),
                        None => None,
                    };
                let identity = match identity {
                    Some((certificate, key)) => {
                        Some(Identity { certificate: read(certificate).await?, key: read(key).await? })
                    }
                    None => None,
                };
                Ok((Presented { header, identity }, Expiry::At(Instant::now() + REREAD)))
            }
            Source::Plugin(config) => {
                let printed = plugin::run(config).await?;
                let header = printed.token.map(|token| bearer(token.as_bytes())).transpose();
                let header = header.map_err(CredentialError::PluginToken)?;
                let identity = printed
                    .identity
                    .map(|(certificate, key)| Identity { certificate: certificate.into(), key: key.into() });
                Ok((Presented { header, identity }, printed.expires.map_or(Expiry::Never, Expiry::AtDate)))
            }
        }
    }
}

async fn read(path: &PathBuf) -> Result<Vec<u8>, CredentialError> {
    let failed = |error: std::io::Error| CredentialError::ReadFile {
        path: path.display().to_string(),
        reason: error.to_string(),
    };
    tokio::fs::read(path).await.map_err(failed)
}

fn bearer(token: &[u8]) -> Result<HeaderValue, TokenProblem> {
    if token.is_empty() {
        return Err(TokenProblem::Empty);
    }
    let mut header = HeaderValue::from_bytes(&[b"Bearer ", token].concat()).map_err(|_| TokenProblem::NotAHeader)?;
    header.set_sensitive(true);
    Ok(header)
}
