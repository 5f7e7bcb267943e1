//! Who we are to the server: what changes while we run, and when it is looked at again.
//!
//! A token in a kubeconfig and a password never change; `kube` adds them. Here are the others: a token in a file, which the
//! kubelet replaces, certificates in files, and what a plugin hands out. A server that does not know us (401) is reason
//! to look again at once, whatever the clock says.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderValue;
use kube::config::{AuthInfo, ExecConfig};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::plugin;

/// Files are read again after so long; a token is replaced long before it runs out.
const REREAD: Duration = Duration::from_secs(60);

/// Why nobody can be told who we are.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NoCredential(pub String);

/// What is shown to the server.
#[derive(PartialEq, Eq)]
pub(crate) struct Pass {
    /// The `Authorization` header.
    pub header: Option<HeaderValue>,
    /// Certificate and key, as PEM.
    pub identity: Option<Identity>,
}

/// Certificate and key, as PEM.
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
enum Good {
    ForEver,
    /// By our own clock.
    Until(Instant),
    /// In milliseconds since 1970.
    UntilDate(u64),
}

/// A source and what it gave last.
pub(crate) struct Credential {
    source: Source,
    held: Mutex<Option<(Arc<Pass>, Good)>>,
}

impl Credential {
    /// Takes out of the configuration what changes while we run, so that nobody else looks after it.
    pub fn of(user: &mut AuthInfo) -> Credential {
        let source = match user.exec.take() {
            Some(plugin) if !has_own_words(user) => Source::Plugin(Box::new(plugin)),
            Some(_) | None => {
                let token = user.token_file.take().map(PathBuf::from);
                // What was read last from the file counts more than the token beside it, unless there is no file.
                let token = token.filter(|path| user.token.is_none() || path.exists());
                if token.is_some() {
                    user.token = None;
                }
                let identity = match (user.client_certificate.take(), user.client_key.take()) {
                    // What is in the kubeconfig itself counts more than the files.
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

    /// What to show now.
    pub async fn current(&self) -> Result<Arc<Pass>, NoCredential> {
        let mut held = self.held.lock().await;
        match &*held {
            Some((pass, good)) if good.now() => Ok(pass.clone()),
            Some(_) | None => self.look(&mut held).await,
        }
    }

    /// Something else to show, where the server does not know this; nothing if there is nothing else.
    pub async fn instead_of(&self, refused: &Arc<Pass>) -> Result<Option<Arc<Pass>>, NoCredential> {
        let mut held = self.held.lock().await;
        let pass = match &*held {
            // Somebody has looked in the meantime.
            Some((pass, good)) if !Arc::ptr_eq(pass, refused) && good.now() => pass.clone(),
            Some(_) | None => self.look(&mut held).await?,
        };
        Ok((pass != *refused).then_some(pass))
    }

    async fn look(&self, held: &mut Option<(Arc<Pass>, Good)>) -> Result<Arc<Pass>, NoCredential> {
        let (pass, good) = match (self.source.give().await, &*held) {
            (Ok((pass, good)), Some((before, _))) if pass == **before => (before.clone(), good),
            (Ok((pass, good)), Some(_) | None) => (Arc::new(pass), good),
            // Files may be taken away once they have been read; what was in them is all there is.
            (Err(why), Some((before, _))) if matches!(self.source, Source::Files { .. }) => {
                tracing::warn!("{}; going on with what was read before", why.0);
                (before.clone(), Good::Until(Instant::now() + REREAD))
            }
            (Err(why), Some(_) | None) => return Err(why),
        };
        *held = Some((pass.clone(), good));
        Ok(pass)
    }
}

/// The kubeconfig itself says who we are: then no plugin is asked.
fn has_own_words(user: &AuthInfo) -> bool {
    user.token.is_some() || user.token_file.is_some() || user.username.is_some() || user.auth_provider.is_some()
}

impl Good {
    fn now(self) -> bool {
        match self {
            Good::ForEver => true,
            Good::Until(end) => Instant::now() < end,
            Good::UntilDate(end) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
                now < u128::from(end)
            }
        }
    }
}

impl Source {
    async fn give(&self) -> Result<(Pass, Good), NoCredential> {
        match self {
            Source::Fixed => Ok((Pass { header: None, identity: None }, Good::ForEver)),
            Source::Files { token, identity } => {
                let header = match token {
                    Some(path) => Some(bearer(read(path).await?.trim_ascii()).map_err(|why| {
                        NoCredential(format!("the token file {} {why}; check what is in it", path.display()))
                    })?),
                    None => None,
                };
                let identity = match identity {
                    Some((certificate, key)) => {
                        Some(Identity { certificate: read(certificate).await?, key: read(key).await? })
                    }
                    None => None,
                };
                Ok((Pass { header, identity }, Good::Until(Instant::now() + REREAD)))
            }
            Source::Plugin(config) => {
                let handed = plugin::ask(config).await.map_err(NoCredential)?;
                let header = handed.token.map(|token| bearer(token.as_bytes())).transpose();
                let header =
                    header.map_err(|why| NoCredential(format!("the credential plugin's token {why}; update it")))?;
                let identity = handed
                    .identity
                    .map(|(certificate, key)| Identity { certificate: certificate.into(), key: key.into() });
                Ok((Pass { header, identity }, handed.until.map_or(Good::ForEver, Good::UntilDate)))
            }
        }
    }
}

async fn read(path: &PathBuf) -> Result<Vec<u8>, NoCredential> {
    tokio::fs::read(path).await.map_err(|error| NoCredential(format!("cannot read {}: {error}", path.display())))
}

fn bearer(token: &[u8]) -> Result<HeaderValue, &'static str> {
    if token.is_empty() {
        return Err("is empty");
    }
    let mut header = HeaderValue::from_bytes(&[b"Bearer ", token].concat()).map_err(|_| "is no token")?;
    header.set_sensitive(true);
    Ok(header)
}
