//! Tells kubelet of the driver: a socket of ours in kubelet's registration folder, and what is answered there.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::http::StatusCode;
use csi::{Call, Code, Method, Response, Status, registration};
use io_csi::{Answers, CsiClient};
use rules_registrar::Helper;
use tokio::sync::mpsc;

use super::settings::Registration;

/// The methods of a registration socket.
pub const METHODS: &[Method] = &[Method::GetInfo, Method::NotifyRegistrationStatus, Method::GetCSIDriverInfo];

/// The registration of one driver.
pub struct Registrar {
    helper: Helper,
    driver: String,
    socket: PathBuf,
}

/// What kubelet made of the driver: `Err` with its words if it turned it away.
pub type Verdict = Result<(), String>;

impl Registrar {
    /// The registration of a driver by its name.
    pub fn new(settings: &Registration, driver: &str) -> Registrar {
        let helper = Helper {
            driver_seen_by_node: settings.endpoint.clone(),
            directory: settings.folder.clone(),
            requires_publish_pod: settings.requires_publish_pod,
            probes: settings.probe,
        };
        // N1.
        Registrar { socket: helper.socket(driver).into(), driver: driver.into(), helper }
    }

    /// Offers the driver until `stop` ends, then takes the socket away, which tells kubelet that the driver is gone.
    pub async fn offer(
        &self,
        verdicts: mpsc::UnboundedSender<Verdict>,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<io_csi::Server> {
        let answers = Offer { helper: self.helper.clone(), driver: self.driver.clone(), verdicts };
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
            Ok(Response::GetInfo(said)) if said.name == self.driver => Ok(()),
            Ok(_) => Err((StatusCode::INTERNAL_SERVER_ERROR, format!("another driver is offered at {shown}"))),
            Err(status) => Err((StatusCode::INTERNAL_SERVER_ERROR, status.message)),
        }
    }
}

/// What kubelet hears at the socket.
struct Offer {
    helper: Helper,
    driver: String,
    verdicts: mpsc::UnboundedSender<Verdict>,
}

impl Answers for Offer {
    async fn answer(&self, call: Call) -> Result<Response, Status> {
        match call {
            // N2.
            Call::GetInfo(_) => Ok(Response::GetInfo(self.helper.info(&self.driver))),
            // S1-11.
            Call::GetCSIDriverInfo(_) => Ok(Response::GetCSIDriverInfo(self.helper.driver_info())),
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

#[cfg(test)]
mod tests {
    use super::*;

    // S1-5, S1-6, S1-11: asked by a gRPC client over the socket, as a node asks.
    #[tokio::test]
    async fn who_asks_hears_whether_the_driver_wants_to_know_its_pods() {
        for wants in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let settings = Registration {
                endpoint: "/plugins/d/csi.sock".into(),
                folder: folder.path().to_string_lossy().into_owned(),
                probe: false,
                requires_publish_pod: wants,
            };
            let (end, ended) = tokio::sync::oneshot::channel::<()>();
            let (tell, mut verdicts) = mpsc::unbounded_channel();
            let registrar = Registrar::new(&settings, "d.example");
            let stop = async move {
                let _ = ended.await;
            };
            let server = registrar.offer(tell, stop).await.unwrap();
            let socket = folder.path().join("d.example-reg.sock");
            let (client, socket) = (CsiClient::new(), socket.to_string_lossy().into_owned());
            let ask = |call| client.call(&socket, call, Duration::from_secs(5));
            let Ok(Response::GetCSIDriverInfo(said)) = ask(Call::GetCSIDriverInfo(Default::default())).await else {
                panic!("no answer")
            };
            assert_eq!(said.csi_endpoint, "/plugins/d/csi.sock");
            assert_eq!(said.options.map(|options| options.requires_publish_pod), Some(wants));
            let Ok(Response::GetInfo(info)) = ask(Call::GetInfo(Default::default())).await else { panic!("no answer") };
            assert_eq!((info.name.as_str(), info.endpoint.as_str()), ("d.example", "/plugins/d/csi.sock"));
            let status = registration::RegistrationStatus { plugin_registered: false, error: "no".into() };
            assert!(ask(Call::NotifyRegistrationStatus(status)).await.is_ok());
            assert_eq!(verdicts.recv().await, Some(Err("no".to_string())));
            drop(end);
            server.finished().await.unwrap();
        }
    }
}
