use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use csi::{Call, Capabilities, Code, DriverCapability, Lock, Method, Response, Service, Status, v1};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::client::CsiClient;
use crate::limits::{Limits, TooLarge};
use crate::locks::{CallLocks, Held};

/// Between two attempts to connect, when waiting for a driver that is not there yet.
const CONNECT_PAUSE: Duration = Duration::from_millis(100);
/// Between two probes of a driver that is not ready yet (sidecars 1.2).
const PROBE_PAUSE: Duration = Duration::from_secs(1);

/// What one incarnation of a driver reports about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it all")]
pub struct Profile {
    pub name: String,
    pub version: String,
    pub capabilities: Capabilities,
    /// Capabilities of earlier incarnations that this one does not have (reliability 72).
    pub lost: Capabilities,
    /// The connection that carried the answers.
    connection: u64,
    /// How often the driver had contradicted its capabilities before.
    contradictions: u64,
}

impl Profile {
    /// What a driver that cannot be asked is taken for.
    pub fn assumed(name: impl Into<String>, capabilities: Capabilities) -> Profile {
        let (version, lost) = (String::new(), Capabilities::NONE);
        Profile { name: name.into(), version, capabilities, lost, connection: 0, contradictions: 0 }
    }

    /// Whether the driver has a capability.
    pub fn can(&self, one: impl Into<DriverCapability>) -> bool {
        self.capabilities.has(one)
    }
}

/// A client for one driver that keeps the rules of CSI.
///
/// In addition to what [`CsiClient`] does, it sends no RPC whose capability the driver lacks, sends no field that is larger
/// than CSI allows, accepts no response with such a field, and has one mutating call per volume under way. A second one
/// *waits*, within its own deadline: the driver would answer it with ABORTED, and a refusal made here would only be repeated
/// after a pause, though the first call mostly ends long before.
///
/// It asks the driver for its capabilities when they are first needed, and again after the driver was restarted. The crate's
/// page says how to use it for a driver of which nothing is known yet.
pub struct Driver {
    client: Arc<CsiClient>,
    socket: String,
    limits: Limits,
    profile: Mutex<Option<Arc<Profile>>>,
    /// How often the driver contradicted its capabilities. Each time it is asked again before the next call.
    contradictions: watch::Sender<u64>,
    /// Held while the driver is asked, so that only one caller asks.
    asking: tokio::sync::Mutex<()>,
    busy: CallLocks,
}

impl Driver {
    /// A client for the driver at a socket (`/path` or `unix:///path`). It sends nothing before it is used.
    pub fn new(client: Arc<CsiClient>, socket: impl Into<String>) -> Driver {
        Driver {
            client,
            socket: socket.into(),
            limits: Limits::SPEC,
            profile: Mutex::default(),
            contradictions: watch::Sender::new(0),
            asking: tokio::sync::Mutex::default(),
            busy: CallLocks::default(),
        }
    }

    /// The same client with other limits than those of CSI.
    #[cfg(test)]
    pub(crate) fn with_limits(self, limits: Limits) -> Driver {
        Driver { limits, ..self }
    }

    /// The driver's socket, as it was given.
    pub fn socket(&self) -> &str {
        &self.socket
    }

    /// Waits until a server answers at the socket, but no longer than `within`.
    pub async fn connected(&self, within: Duration) -> Result<(), Status> {
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now()).max(CONNECT_PAUSE);
            let call = Call::GetPluginInfo(v1::GetPluginInfoRequest {});
            match self.client.call(&self.socket, call, left).await {
                Err(status) if status.code == Code::Unavailable && !status.from_driver && Instant::now() < until => {
                    tokio::time::sleep(CONNECT_PAUSE).await;
                }
                // Any answer shows that there is a server.
                Ok(_) => return Ok(()),
                Err(status) if status.from_driver => return Ok(()),
                Err(status) => return Err(status),
            }
        }
    }

    /// Probes until the driver is ready. A driver that is not ready, or does not answer in time, is probed again for as long
    /// as it takes; any other answer ends the waiting (C2). A driver that does not say whether it is ready, is ready.
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

    /// The driver's capabilities, as [`Driver::profile`] knows them.
    pub async fn capabilities(&self, deadline: Duration) -> Result<Capabilities, Status> {
        self.profile(deadline).await.map(|profile| profile.capabilities)
    }

    /// The driver's name, version and capabilities. It is asked once per connection, and again after the connection ended or
    /// the driver answered UNIMPLEMENTED to something that it has the capability for.
    ///
    /// While the driver is not there this fails with a local UNAVAILABLE, and succeeds soon after the driver is back.
    pub async fn profile(&self, deadline: Duration) -> Result<Arc<Profile>, Status> {
        let asking = async {
            // Others wait here for the answers instead of asking as well.
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

    /// Calls `changed` with the driver's profile, and again each time it may have changed: with the error when the driver is
    /// gone, and with the new profile when it is back. Runs until it is dropped.
    ///
    /// `deadline` is for each attempt to ask the driver. An error that repeats itself is reported once.
    pub async fn follow(
        &self,
        deadline: Duration,
        mut changed: impl FnMut(Result<Arc<Profile>, Status>),
    ) -> Infallible {
        let mut failure = None;
        loop {
            match self.profile(deadline).await {
                Ok(profile) => {
                    failure = None;
                    changed(Ok(profile.clone()));
                    self.outdated(&profile).await;
                }
                Err(status) => {
                    if failure.as_ref() != Some(&status) {
                        failure = Some(status.clone());
                        changed(Err(status));
                    }
                    tokio::time::sleep(CONNECT_PAUSE).await;
                }
            }
        }
    }

    /// Waits until a profile no longer describes the driver at the socket.
    async fn outdated(&self, profile: &Profile) {
        let mut contradictions = self.contradictions.subscribe();
        tokio::select! {
            () = self.client.closed(&self.socket, profile.connection) => {}
            _ = contradictions.wait_for(|count| *count != profile.contradictions) => {}
        }
    }

    /// The profile of the driver that is connected now.
    fn known(&self) -> Option<Arc<Profile>> {
        let current = |profile: &&Arc<Profile>| {
            self.client.connection(&self.socket) == Some(profile.connection)
                && *self.contradictions.borrow() == profile.contradictions
        };
        self.lock().as_ref().filter(current).cloned()
    }

    fn learn(&self, mut profile: Profile) {
        let mut known = self.lock();
        if let Some(before) = &*known {
            profile.lost = before.capabilities.union(before.lost).difference(profile.capabilities);
        }
        *known = Some(Arc::new(profile));
    }

    /// Calls the driver and waits for its response until the deadline.
    ///
    /// A call that is refused here was not sent; its status is a local one. A response with a field that is too large is
    /// *unknown*, not a refusal: the driver did what it was asked to, so a volume may exist, and the caller goes on asking
    /// for it under the same name instead of forgetting it.
    pub async fn call(&self, call: Call, deadline: Duration) -> Result<Response, Status> {
        let begun = Instant::now();
        let method = call.method();
        self.limits
            .check(&call)
            .map_err(|what| Status::local(Code::InvalidArgument, format!("{} is not sent: {what}", method.name())))?;
        self.check_capability(method, deadline).await?;
        let wanted = csi::locks(&call, &|_, name| format!("named {name}"));
        let _held = self.hold(&call, &wanted, deadline.saturating_sub(begun.elapsed())).await?;
        let answer = self.client.call(&self.socket, call, deadline.saturating_sub(begun.elapsed())).await;
        match answer {
            Ok(response) => match self.limits.check(&response) {
                Ok(()) => Ok(response),
                Err(what) => Err(self.too_large(method, what)),
            },
            Err(status) => {
                if status.from_driver && status.code == Code::Unimplemented {
                    self.contradictions.send_modify(|count| *count += 1);
                }
                Err(status)
            }
        }
    }

    async fn check_capability(&self, method: Method, deadline: Duration) -> Result<(), Status> {
        let Some(needed) = method.capability() else { return Ok(()) };
        let profile = self.profile(deadline).await?;
        if profile.can(needed) {
            return Ok(());
        }
        let any_more = if profile.lost.has(needed) { " any more" } else { "" };
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

    /// Asks the driver for everything; `None` if the connection changed meanwhile.
    async fn ask(&self, deadline: Duration) -> Result<Option<Profile>, Status> {
        let contradictions = *self.contradictions.borrow();
        let info = Call::GetPluginInfo(v1::GetPluginInfoRequest {});
        let info = match self.tell(info, deadline).await? {
            Some(Response::GetPluginInfo(info)) if !info.name.is_empty() => info,
            Some(_) | None => return Err(self.nameless()),
        };
        let Some(connection) = self.client.connection(&self.socket) else { return Ok(None) };
        let mut capabilities = Capabilities::NONE;
        let calls = [
            Call::GetPluginCapabilities(v1::GetPluginCapabilitiesRequest {}),
            Call::ControllerGetCapabilities(v1::ControllerGetCapabilitiesRequest {}),
            Call::GroupControllerGetCapabilities(v1::GroupControllerGetCapabilitiesRequest {}),
            Call::NodeGetCapabilities(v1::NodeGetCapabilitiesRequest {}),
        ];
        for call in calls {
            // Only the answer shows whether there is a node service; the others are among the plugin's capabilities.
            let service = call.method().service();
            if service != Service::Node && !capabilities.has_service(service) {
                continue;
            }
            let reported = match self.tell(call, deadline).await? {
                Some(Response::GetPluginCapabilities(answer)) => (&answer).into(),
                Some(Response::ControllerGetCapabilities(answer)) => (&answer).into(),
                Some(Response::GroupControllerGetCapabilities(answer)) => (&answer).into(),
                Some(Response::NodeGetCapabilities(answer)) => (&answer).into(),
                Some(_) | None => Capabilities::NONE,
            };
            capabilities = capabilities.union(reported);
        }
        let (name, version, lost) = (info.name, info.vendor_version, Capabilities::NONE);
        let profile = Profile { name, version, capabilities, lost, connection, contradictions };
        Ok(Some(profile).filter(|_| self.client.connection(&self.socket) == Some(connection)))
    }

    /// The driver's answer; `None` if this socket does not serve the RPC, as where controller and node are two processes.
    async fn tell(&self, call: Call, deadline: Duration) -> Result<Option<Response>, Status> {
        let method = call.method();
        match self.client.call(&self.socket, call, deadline).await {
            Ok(response) => match self.limits.check(&response) {
                Ok(()) => Ok(Some(response)),
                Err(what) => Err(self.too_large(method, what)),
            },
            Err(status) if status.from_driver && status.code == Code::Unimplemented => Ok(None),
            Err(status) => Err(status),
        }
    }

    fn too_large(&self, method: Method, what: TooLarge) -> Status {
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

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Profile>>> {
        self.profile.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
