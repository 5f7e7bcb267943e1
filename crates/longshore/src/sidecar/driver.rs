//! The driver, seen from a sidecar: its name, what it can do, and when it came back.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use csi::{Call, Code, Response, v1};
use futures::StreamExt;
use inotify::{EventMask, Inotify, WatchMask};
use io_csi::CsiClient;
use rules_registrar::NodeInfo;
use tokio::sync::watch;

use super::Role;
use super::run::Shared;

/// Between two questions to a driver that is not there or not ready.
const PAUSE: Duration = Duration::from_secs(1);
/// How long nothing is said about a driver that is not there: it is usually started at the same time.
const SOON: Duration = Duration::from_secs(2);
/// How often it is said that the driver is still waited for.
const REMIND: Duration = Duration::from_secs(10);

/// Waits until the driver says that it is ready (C2): one that is not there yet, not ready, or too slow is asked again for
/// ever; one that refuses is an error.
pub async fn ready(client: &Arc<CsiClient>, socket: &str, timeout: Duration) -> Result<()> {
    let mut say = tokio::time::Instant::now() + SOON;
    loop {
        let failure = match client.call(socket, Call::Probe(v1::ProbeRequest {}), timeout).await {
            Ok(Response::Probe(answer)) if answer.ready.unwrap_or(true) => return Ok(()),
            Ok(_) => "it says that it is not ready".to_string(),
            Err(status) if status.from_driver && status.code != Code::DeadlineExceeded => {
                return Err(anyhow!("the driver at {socket} refused to be probed: {status}"));
            }
            Err(status) => status.message,
        };
        let now = tokio::time::Instant::now();
        if now >= say {
            say = now + REMIND;
            tracing::warn!("still waiting for the driver: {failure}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The driver's name.
pub async fn name(client: &Arc<CsiClient>, socket: &str, timeout: Duration) -> Result<String> {
    let call = Call::GetPluginInfo(v1::GetPluginInfoRequest {});
    match client.call(socket, call, timeout).await {
        // S0-12: a driver of such a name is not talked to.
        Ok(Response::GetPluginInfo(info)) if !info.name.is_empty() && !api::names::is_driver_name(&info.name) => {
            let (name, rule) = (&info.name, api::names::DRIVER_NAME_RULE);
            Err(anyhow!("the driver at {socket} calls itself {name:?}; the name of a driver must {rule}"))
        }
        Ok(Response::GetPluginInfo(info)) if !info.name.is_empty() => Ok(info.name),
        Ok(_) => Err(anyhow!("the driver at {socket} has no name; every CSI driver must have one")),
        Err(status) => Err(anyhow!("the driver at {socket} did not say its name: {status}")),
    }
}

/// Where the driver says its node is; nothing if it does not say.
pub async fn place(shared: &Shared) -> Option<NodeInfo> {
    let (socket, timeout) = (&shared.settings.socket, shared.settings.timeout(Role::Registrar));
    match shared.line().client.call(socket, Call::NodeGetInfo(v1::NodeGetInfoRequest {}), timeout).await {
        Ok(Response::NodeGetInfo(info)) => Some(NodeInfo::of(&info)),
        Ok(_) | Err(_) => None,
    }
}

/// Counts how often the driver's socket was made anew since: each is another life of the driver.
pub fn lives(socket: &str) -> Result<watch::Receiver<u64>> {
    let path = Path::new(socket).to_path_buf();
    let (Some(folder), Some(file)) = (path.parent(), path.file_name()) else {
        return Err(anyhow!("{socket} is no path of a socket; write it as /run/csi/socket"));
    };
    let file = file.to_os_string();
    let inotify = Inotify::init().context("cannot watch for the driver's socket")?;
    let watched = inotify.watches().add(folder, WatchMask::CREATE | WatchMask::MOVED_TO);
    watched.with_context(|| {
        let folder = folder.display();
        format!("cannot watch {folder} for the driver's socket; mount the driver's folder there, or name another with --csi-address")
    })?;
    let mut news = inotify.into_event_stream(vec![0; 4096])?;
    let (tell, lives) = watch::channel(0);
    tokio::spawn(async move {
        while let Some(event) = news.next().await {
            let Ok(event) = event else { continue };
            if event.mask.intersects(EventMask::CREATE | EventMask::MOVED_TO) && event.name.as_ref() == Some(&file) {
                tell.send_modify(|life| *life += 1);
            }
        }
    });
    Ok(lives)
}
