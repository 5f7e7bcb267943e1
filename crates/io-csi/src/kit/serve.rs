//! A driver on its socket.

use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use csi::Method;

use super::Plugin;
use super::door::Door;
use crate::server::{self, Server};

/// A driver that is being served.
pub struct Serving {
    server: Server,
    ready: Arc<AtomicBool>,
}

impl Serving {
    /// Marks the driver as ready: it has loaded everything it needs. Until then the kit answers Probe with *not ready*, and
    /// RPCs about volumes with UNAVAILABLE.
    pub fn ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    /// Waits until the driver was stopped, removed its socket, and ended every call it had begun.
    pub async fn finished(self) -> io::Result<()> {
        self.server.finished().await
    }
}

/// Serves a driver at a socket until `stop` ends. When it returns, clients can connect; the kit answers that the driver is
/// starting until [`Serving::ready`] is called.
///
/// The socket can be written as a path, or as `unix:///path` as `CSI_ENDPOINT` usually holds it. A socket that a dead
/// process left there is replaced; any other file is left alone and is an error. Only root and the driver's own user can
/// connect.
pub async fn serve<P: Plugin>(
    endpoint: &str,
    plugin: P,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<Serving> {
    if !is_driver_name(&plugin.name()) {
        let text = "the driver's name must be a domain name of at most 63 letters, digits, dashes and dots";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let ready = Arc::new(AtomicBool::new(false));
    let door = Door::new(plugin, ready.clone());
    let server = server::serve(&socket(endpoint), Method::CSI, door, stop).await?;
    Ok(Serving { server, ready })
}

/// Waits for Ctrl-C or SIGTERM.
pub async fn signalled() {
    use tokio::signal::unix::{SignalKind, signal};
    match (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) {
        (Ok(mut interrupt), Ok(mut terminate)) => {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        }
        // Without handlers of ours the signals end the process by themselves.
        (Err(_), _) | (_, Err(_)) => std::future::pending().await,
    }
}

/// Orchestrators name objects and folders after drivers.
fn is_driver_name(name: &str) -> bool {
    let fits = |part: &str| !part.is_empty() && !part.starts_with('-') && !part.ends_with('-');
    let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'.');
    name.len() <= 63 && name.bytes().all(plain) && name.split('.').all(fits)
}

fn socket(endpoint: &str) -> PathBuf {
    let path = endpoint.strip_prefix("unix://").or_else(|| endpoint.strip_prefix("unix:")).unwrap_or(endpoint);
    Path::new(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Reliability 67.
    #[test]
    fn a_driver_has_a_domain_name() {
        for good in ["tiny.csi.example", "a", "Local.CSI.longshore", "x-1.y"] {
            assert!(is_driver_name(good), "{good}");
        }
        for bad in ["", ".", "a..b", "-a", "a-", "a/b", "a b", "ä", "../x", &"x".repeat(64)] {
            assert!(!is_driver_name(bad), "{bad}");
        }
    }

    #[test]
    fn an_endpoint_is_a_path_however_it_is_written() {
        for endpoint in ["/run/csi.sock", "unix:/run/csi.sock", "unix:///run/csi.sock"] {
            assert_eq!(socket(endpoint), Path::new("/run/csi.sock"));
        }
    }
}
