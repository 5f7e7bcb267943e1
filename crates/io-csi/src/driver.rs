use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use csi::{Call, Code, Lock, Method, Response, Status, v1};
use tokio::time::Instant;

use crate::ability::{self, Ability};
use crate::client::CsiClient;
use crate::limits::Limits;
use crate::locks::{Held, Locks};

/// Between two attempts to connect, when waiting for a driver that is not there yet.
const CONNECT_PAUSE: Duration = Duration::from_millis(100);
/// Between two probes of a driver that is not ready yet (sidecars 1.2).
const PROBE_PAUSE: Duration = Duration::from_secs(1);

/// What one incarnation of a driver says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it offers.
    pub abilities: BTreeSet<Ability>,
    /// What it offered before the connection was made anew, and does not offer any more (reliability 72).
    pub lost: BTreeSet<Ability>,
    connection: u64,
}

impl Profile {
    /// Whether it offers something.
    pub fn can(&self, ability: Ability) -> bool {
        self.abilities.contains(&ability)
    }
}

/// One driver and what is known of it: the careful way to call it.
///
/// On top of [`CsiClient`] it asks for nothing the driver does not offer, sends no field that is too large, takes no
/// answer that has one for an answer, and has one mutating call under way per volume. A second one *waits*, within its own
/// deadline: the driver would answer it with ABORTED, and a refusal made here would only be repeated after a pause, though
/// the first call mostly ends long before.
pub struct Driver {
    client: Arc<CsiClient>,
    socket: String,
    limits: Limits,
    known: Mutex<Known>,
    /// Held while the driver is asked what it offers.
    asking: tokio::sync::Mutex<()>,
    busy: Locks,
}

#[derive(Default)]
struct Known {
    profile: Option<Arc<Profile>>,
    /// An answer contradicted it.
    stale: bool,
}

impl Driver {
    /// The driver at a socket (`/path` or `unix:///path`). Nothing is sent before the first call.
    pub fn new(client: Arc<CsiClient>, socket: impl Into<String>) -> Driver {
        Driver {
            client,
            socket: socket.into(),
            limits: Limits::SPEC,
            known: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
            busy: Locks::default(),
        }
    }

    /// The same, with other limits than those of CSI.
    pub fn with_limits(self, limits: Limits) -> Driver {
        Driver { limits, ..self }
    }

    /// Waits until somebody serves at the socket, but no longer than `within`.
    pub async fn connected(&self, within: Duration) -> Result<(), Status> {
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now()).max(CONNECT_PAUSE);
            let call = Call::GetPluginInfo(v1::GetPluginInfoRequest {});
            match self.client.call(&self.socket, call, left).await {
                Err(status) if status.code == Code::Unavailable && !status.from_driver && Instant::now() < until => {
                    tokio::time::sleep(CONNECT_PAUSE).await;
                }
                // Whatever it says, somebody says it.
                Ok(_) => return Ok(()),
                Err(status) if status.from_driver => return Ok(()),
                Err(status) => return Err(status),
            }
        }
    }

    /// Probes until the driver is ready. A driver that says it is not ready, or does not answer in time, is asked again for
    /// as long as it takes; any other answer ends the waiting (C2). One that does not say whether it is ready, is.
    pub async fn ready(&self, deadline: Duration) -> Result<(), Status> {
        loop {
            match self.client.call(&self.socket, Call::Probe(v1::ProbeRequest {}), deadline).await {
                Ok(Response::Probe(answer)) if answer.ready == Some(false) => {}
                Ok(_) => return Ok(()),
                Err(status) if status.code == Code::DeadlineExceeded => {}
                Err(status) => return Err(status),
            }
            tokio::time::sleep(PROBE_PAUSE).await;
        }
    }

    /// What the driver says of itself: asked once per connection, and again when the connection was made anew.
    pub async fn profile(&self, deadline: Duration) -> Result<Arc<Profile>, Status> {
        let asking = async {
            // Whoever comes meanwhile waits for the answers instead of asking as well.
            let _one = self.asking.lock().await;
            loop {
                if let Some(known) = self.known() {
                    return Ok(known);
                }
                // The answers belong together only if one connection carried them all.
                if let Some(profile) = self.ask(deadline).await? {
                    self.learn(profile);
                }
            }
        };
        if let Some(known) = self.known() {
            return Ok(known);
        }
        tokio::time::timeout(deadline, asking).await.unwrap_or_else(|_| Err(self.out_of_time(deadline)))
    }

    /// What is known of the driver that is connected now.
    fn known(&self) -> Option<Arc<Profile>> {
        let known = self.lock();
        let current =
            |profile: &&Arc<Profile>| !known.stale && profile.connection == self.client.connections_made(&self.socket);
        known.profile.as_ref().filter(current).cloned()
    }

    fn learn(&self, mut profile: Profile) {
        let mut known = self.lock();
        if let Some(before) = &known.profile {
            let offered = before.abilities.union(&before.lost);
            profile.lost = offered.filter(|one| !profile.can(**one)).copied().collect();
        }
        *known = Known { profile: Some(Arc::new(profile)), stale: false };
    }

    /// Calls the driver and waits for its answer, but no longer than the deadline.
    ///
    /// A call that is refused here was not sent; its status is one made here. An answer with a field that is too large is
    /// *unknown*, not a refusal: the driver did what it was asked to, so a volume may exist, and the caller goes on
    /// asking for it under the same name instead of forgetting it.
    pub async fn call(&self, call: Call, deadline: Duration) -> Result<Response, Status> {
        let begun = Instant::now();
        let method = call.method();
        self.limits
            .check_call(&call)
            .map_err(|what| Status::local(Code::InvalidArgument, format!("{} is not sent: {what}", method.name())))?;
        self.offered(method, deadline).await?;
        let wanted = csi::locks(&call, &|_, name| format!("named {name}"));
        let _held = self.hold(&call, &wanted, deadline.saturating_sub(begun.elapsed())).await?;
        let answer = self.client.call(&self.socket, call, deadline.saturating_sub(begun.elapsed())).await;
        match answer {
            Ok(response) => match self.limits.check_response(&response) {
                Ok(()) => Ok(response),
                Err(what) => Err(self.too_large(method, &what)),
            },
            Err(status) => {
                if status.from_driver && status.code == Code::Unimplemented {
                    // It does not offer what it said it offers; ask again before the next call.
                    self.lock().stale = true;
                }
                Err(status)
            }
        }
    }

    async fn offered(&self, method: Method, deadline: Duration) -> Result<(), Status> {
        let Some(needed) = ability::needed(method) else { return Ok(()) };
        let profile = self.profile(deadline).await?;
        if profile.can(needed) {
            return Ok(());
        }
        let any_more = if profile.lost.contains(&needed) { " any more" } else { "" };
        let text =
            format!("{} is not sent: the driver {} does not offer {needed}{any_more}", method.name(), profile.name);
        Err(Status::local(Code::Unimplemented, text))
    }

    async fn hold(&self, call: &Call, wanted: &[Lock], within: Duration) -> Result<Held<'_>, Status> {
        tokio::time::timeout(within, self.busy.wait(wanted)).await.map_err(|_| {
            let text = format!(
                "{} was not sent within its time: another call for {} is under way",
                call.method().name(),
                call.volume()
            );
            Status::local(Code::DeadlineExceeded, text)
        })
    }

    /// Asks everything; nothing if the connection was made anew meanwhile.
    async fn ask(&self, deadline: Duration) -> Result<Option<Profile>, Status> {
        let Some(Response::GetPluginInfo(info)) =
            self.tell(Call::GetPluginInfo(v1::GetPluginInfoRequest {}), deadline).await?
        else {
            return Err(self.nameless());
        };
        if info.name.is_empty() {
            return Err(self.nameless());
        }
        let connection = self.client.connections_made(&self.socket);
        let mut abilities = BTreeSet::new();
        let plugin = Call::GetPluginCapabilities(v1::GetPluginCapabilitiesRequest {});
        if let Some(Response::GetPluginCapabilities(told)) = self.tell(plugin, deadline).await? {
            abilities.extend(ability::plugin_told(&told));
        }
        let controller = Call::ControllerGetCapabilities(v1::ControllerGetCapabilitiesRequest {});
        if abilities.contains(&Ability::Plugin(ability::PluginService::ControllerService))
            && let Some(Response::ControllerGetCapabilities(told)) = self.tell(controller, deadline).await?
        {
            abilities.extend(ability::controller_told(&told));
        }
        let group = Call::GroupControllerGetCapabilities(v1::GroupControllerGetCapabilitiesRequest {});
        if abilities.contains(&Ability::Plugin(ability::PluginService::GroupControllerService))
            && let Some(Response::GroupControllerGetCapabilities(told)) = self.tell(group, deadline).await?
        {
            abilities.extend(ability::group_told(&told));
        }
        let node = Call::NodeGetCapabilities(v1::NodeGetCapabilitiesRequest {});
        if let Some(Response::NodeGetCapabilities(told)) = self.tell(node, deadline).await? {
            abilities.extend(ability::node_told(&told));
        }
        let profile =
            Profile { name: info.name, version: info.vendor_version, abilities, lost: BTreeSet::new(), connection };
        Ok(Some(profile).filter(|_| self.client.connections_made(&self.socket) == connection))
    }

    /// One answer; none if this socket does not serve it, as where controller and node are two processes.
    async fn tell(&self, call: Call, deadline: Duration) -> Result<Option<Response>, Status> {
        let method = call.method();
        match self.client.call(&self.socket, call, deadline).await {
            Ok(response) => match self.limits.check_response(&response) {
                Ok(()) => Ok(Some(response)),
                Err(what) => Err(self.too_large(method, &what)),
            },
            Err(status) if status.from_driver && status.code == Code::Unimplemented => Ok(None),
            Err(status) => Err(status),
        }
    }

    fn too_large(&self, method: Method, what: &str) -> Status {
        let text = format!(
            "the driver at {} answered {} beyond the limits of CSI: {what}; what it did stays done until it is asked again",
            self.socket,
            method.name()
        );
        Status::local(Code::Internal, text)
    }

    fn nameless(&self) -> Status {
        let text = format!("the driver at {} does not tell its name; is it a CSI driver?", self.socket);
        Status::local(Code::Internal, text)
    }

    fn out_of_time(&self, deadline: Duration) -> Status {
        let text =
            format!("the driver at {} did not tell what it offers within {} s", self.socket, deadline.as_secs_f32());
        Status::local(Code::DeadlineExceeded, text)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
