//! Tells kubelet of the driver: a socket of ours in kubelet's registration folder, and what is answered there.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::http::StatusCode;
use csi::{Call, Code, Method, Response, Status, registration};
use io_csi::{Answers, CsiClient};
use tokio::sync::mpsc;

use super::settings::Registration;

/// The methods of a registration socket.
pub const METHODS: &[Method] = &[Method::GetInfo, Method::NotifyRegistrationStatus];

/// The registration of one driver.
pub struct Registrar {
    info: registration::PluginInfo,
    socket: PathBuf,
}

/// What kubelet made of the driver: `Err` with its words if it turned it away.
pub type Verdict = Result<(), String>;

impl Registrar {
    /// The registration of a driver by its name.
    pub fn new(settings: &Registration, driver: &str) -> Registrar {
        let info = registration::PluginInfo {
            r#type: "CSIPlugin".into(),
            name: driver.into(),
            endpoint: settings.endpoint.clone(),
            supported_versions: vec!["1.0.0".into()],
        };
        // N1.
        Registrar { info, socket: Path::new(&settings.folder).join(format!("{driver}-reg.sock")) }
    }

    /// Offers the driver until `stop` ends, then takes the socket away, which tells kubelet that the driver is gone.
    pub async fn offer(
        &self,
        verdicts: mpsc::UnboundedSender<Verdict>,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<io_csi::Server> {
        let answers = Offer { info: self.info.clone(), verdicts };
        io_csi::serve(&self.socket, METHODS, answers, stop)
            .await
            .with_context(|| format!("cannot offer the driver to kubelet at {}", self.socket.display()))
    }

    /// Whether kubelet could hear of the driver now (N6): by asking as kubelet would.
    pub async fn health(&self, client: &Arc<CsiClient>, timeout: Duration) -> Result<(), (StatusCode, String)> {
        use std::os::unix::fs::FileTypeExt;
        let shown = self.socket.display();
        match std::fs::symlink_metadata(&self.socket) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err((StatusCode::NOT_FOUND, format!("there is no socket at {shown}")));
            }
            Err(error) => return Err((StatusCode::INTERNAL_SERVER_ERROR, format!("cannot look at {shown}: {error}"))),
            Ok(found) if !found.file_type().is_socket() => {
                return Err((StatusCode::INTERNAL_SERVER_ERROR, format!("{shown} is no socket")));
            }
            Ok(_) => {}
        }
        let call = Call::GetInfo(registration::InfoRequest {});
        match client.call(&self.socket.to_string_lossy(), call, timeout).await {
            Ok(Response::GetInfo(said)) if said.name == self.info.name => Ok(()),
            Ok(_) => Err((StatusCode::INTERNAL_SERVER_ERROR, format!("another driver is offered at {shown}"))),
            Err(status) => Err((StatusCode::INTERNAL_SERVER_ERROR, status.message)),
        }
    }
}

/// What kubelet hears at the socket.
struct Offer {
    info: registration::PluginInfo,
    verdicts: mpsc::UnboundedSender<Verdict>,
}

impl Answers for Offer {
    async fn answer(&self, call: Call) -> Result<Response, Status> {
        match call {
            // N2.
            Call::GetInfo(_) => Ok(Response::GetInfo(self.info.clone())),
            Call::NotifyRegistrationStatus(said) => {
                let verdict = if said.plugin_registered { Ok(()) } else { Err(said.error) };
                // Nobody listens only while the process ends.
                let _ = self.verdicts.send(verdict);
                Ok(Response::NotifyRegistrationStatus(registration::RegistrationStatusResponse {}))
            }
            other => {
                Err(Status::from_driver(Code::Unimplemented, format!("{} is not offered here", other.method().name())))
            }
        }
    }
}
