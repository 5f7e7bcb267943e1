//! Tells kubelet of the driver: a socket of ours in kubelet's registration folder, and what is answered there.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use axum::http::StatusCode;
use csi::{Call, Code, Method, Response, Status, registration};
use io_csi::{Answers, CsiClient};
use rules_registrar::{Announced, AtPath, Heard, Helper, HelperFacts, HelperStep, NodeInfo};
use tokio::sync::{mpsc, oneshot, watch};

use super::run::Shared;
use super::settings::Registration;
use super::{Role, driver};

/// The methods of a registration socket.
pub const METHODS: &[Method] = &[Method::GetInfo, Method::NotifyRegistrationStatus, Method::GetCSIDriverInfo];

/// The rules of registration, as the settings want them.
pub fn helper(settings: &Registration) -> Helper {
    Helper {
        driver_seen_by_node: settings.endpoint.clone(),
        directory: settings.folder.clone(),
        requires_publish_pod: settings.requires_publish_pod,
        probes: settings.probe,
    }
}

/// Offers the driver to kubelet as [`Helper`] decides, until everything is to end; `lives` counts lives of the driver.
pub async fn register(shared: &Arc<Shared>, name: &str, lives: watch::Receiver<u64>) -> Result<()> {
    let Some(settings) = &shared.settings.registration else {
        shared.stopped().await;
        return Ok(());
    };
    let helper = helper(settings);
    let path = helper.socket(name);
    let mut facts = HelperFacts {
        driver: Some(Ok(name.to_string())),
        at_path: look(&path),
        announced: None,
        place: driver::place(shared).await,
        heard: Heard::Nothing,
        ending: false,
    };
    let (tell, mut statuses) = mpsc::unbounded_channel();
    let mut returning = Box::pin(back(shared, lives));
    let mut offer: Option<Offer> = None;
    loop {
        facts.at_path = look(&path);
        match helper.step(&facts) {
            HelperStep::Remove(_) => {
                facts.announced = None;
                if let Some(offer) = offer.take() {
                    offer.end().await?;
                }
            }
            HelperStep::Listen(path) => {
                if let Some(offer) = offer.take() {
                    offer.end().await?;
                }
                offer = Some(Offer::start(&helper, name, &path, tell.clone()).await?);
                facts.announced = Some(Announced { place: facts.place.clone() });
            }
            HelperStep::Serve => tokio::select! {
                () = shared.stopped() => facts.ending = true,
                back_again = &mut returning => {
                    let (lives, place) = back_again?;
                    returning = Box::pin(back(shared, lives));
                    facts.place = place;
                }
                Some(status) = statuses.recv() => {
                    facts.heard = Heard::of(&status);
                    tracing::info!("kubelet says of {name}: {:?}", facts.heard);
                }
            },
            // The name is known before anything is offered.
            HelperStep::AskDriver | HelperStep::End(0, _) => return Ok(()),
            // N3: whoever runs us starts us again, which is the next try.
            HelperStep::End(_, why) => bail!("{why}"),
        }
    }
}

/// Waits until the driver is back from another life, and asks it where its node is.
async fn back(
    shared: &Arc<Shared>,
    mut lives: watch::Receiver<u64>,
) -> Result<(watch::Receiver<u64>, Option<NodeInfo>)> {
    if lives.changed().await.is_err() {
        // Nobody counts any more: the process is ending.
        std::future::pending::<()>().await;
    }
    let settings = &shared.settings;
    driver::ready(&shared.line().client, &settings.socket, settings.timeout(Role::Registrar)).await?;
    Ok((lives, driver::place(shared).await))
}

/// What is at a path.
fn look(path: &str) -> AtPath {
    use std::os::unix::fs::FileTypeExt;
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => AtPath::Nothing,
        Err(error) => AtPath::Unreadable(error.to_string()),
        Ok(found) if found.file_type().is_socket() => AtPath::Socket,
        Ok(_) => AtPath::Other,
    }
}

/// Whether kubelet could hear of the driver now (N6): by asking as kubelet would.
pub async fn health(
    helper: &Helper,
    driver: &str,
    client: &Arc<CsiClient>,
    timeout: Duration,
) -> Result<(), (StatusCode, String)> {
    let path = helper.socket(driver);
    let at_path = look(&path);
    let said = match at_path {
        AtPath::Socket => Some(ask_name(client, &path, timeout).await),
        AtPath::Nothing | AtPath::Other | AtPath::Unreadable(_) => None,
    };
    let health = helper.health(driver, &at_path, said.as_ref());
    match StatusCode::from_u16(health.status) {
        Ok(StatusCode::OK) => Ok(()),
        Ok(status) => Err((status, health.text)),
        Err(_) => Err((StatusCode::INTERNAL_SERVER_ERROR, health.text)),
    }
}

async fn ask_name(client: &Arc<CsiClient>, socket: &str, timeout: Duration) -> Result<String, String> {
    match client.call(socket, Call::GetInfo(registration::InfoRequest {}), timeout).await {
        Ok(Response::GetInfo(said)) => Ok(said.name),
        Ok(_) => Err("it answered something else".into()),
        Err(status) => Err(status.message),
    }
}

/// An offer to kubelet. Its end takes the socket away, which tells kubelet that the driver is gone.
struct Offer {
    end: oneshot::Sender<()>,
    server: io_csi::Server,
}

impl Offer {
    async fn start(
        helper: &Helper,
        driver: &str,
        path: &str,
        statuses: mpsc::UnboundedSender<registration::RegistrationStatus>,
    ) -> Result<Offer> {
        let (end, ended) = oneshot::channel::<()>();
        let answers = Answering { helper: helper.clone(), driver: driver.into(), statuses };
        let stop = async move {
            let _ = ended.await;
        };
        let server = io_csi::serve(Path::new(path), METHODS, answers, stop).await;
        Ok(Offer { end, server: server.with_context(|| format!("cannot offer the driver to kubelet at {path}"))? })
    }

    async fn end(self) -> Result<()> {
        drop(self.end);
        Ok(self.server.finished().await?)
    }
}

/// What kubelet hears at the socket.
struct Answering {
    helper: Helper,
    driver: String,
    statuses: mpsc::UnboundedSender<registration::RegistrationStatus>,
}

impl Answers for Answering {
    async fn answer(&self, call: Call) -> Result<Response, Status> {
        match call {
            // N2.
            Call::GetInfo(_) => Ok(Response::GetInfo(self.helper.info(&self.driver))),
            // S1-11.
            Call::GetCSIDriverInfo(_) => Ok(Response::GetCSIDriverInfo(self.helper.driver_info())),
            Call::NotifyRegistrationStatus(said) => {
                // Nobody listens only while the process ends.
                let _ = self.statuses.send(said);
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
            let (tell, mut statuses) = mpsc::unbounded_channel();
            let helper = helper(&settings);
            let (client, socket) = (CsiClient::new(), helper.socket("d.example"));
            let offer = Offer::start(&helper, "d.example", &socket, tell).await.unwrap();
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
            assert_eq!(Heard::of(&statuses.recv().await.unwrap()), Heard::TurnedAway("no".into()));
            offer.end().await.unwrap();
            assert_eq!(look(&socket), AtPath::Nothing);
        }
    }
}
