//! Serves drivers: asks each what it can do, and runs the roles of its sidecars. Whoever registers on this machine is
//! served, or whoever was named.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use csi::{Capabilities, ControllerRpc, PluginService, Status};
use io_csi::Profile;
use io_run::{Controller, Manager};
use rules_registrar::Registrar;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;

use crate::sidecar::settings::{ProcessEnvironment, Settings};
use crate::sidecar::{Role, controllers, parse_flags};

/// How long a driver may take to answer. A role's own `--timeout` is shorter where it is a sidecar of its own.
const TIMEOUT: Duration = Duration::from_secs(120);
/// How long an expected driver is waited for before its controllers work without it.
const PATIENCE: Duration = Duration::from_secs(2);

/// The drivers registered on this machine.
pub struct Registered {
    serves: Arc<Serves>,
    /// A driver that is expected, by name and socket.
    expected: Option<(String, String)>,
    known: watch::Sender<BTreeSet<String>>,
    serving: BTreeMap<String, Serving>,
}

/// Serves drivers: what it takes to add the controllers of one.
pub struct Serves {
    manager: Arc<Manager>,
    roles: Vec<Role>,
    /// Flags of those roles beside the socket and the timeout.
    flags: Vec<String>,
    host: String,
}

/// A driver that is served, until this is dropped.
struct Serving {
    socket: String,
    task: AbortHandle,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Registered {
    /// Serves drivers with these roles, as far as each driver has a use for them, under these gates.
    pub fn new(manager: Arc<Manager>, roles: Vec<Role>, gates: Option<String>) -> Result<Registered> {
        let serves = Arc::new(Serves::new(manager, roles, gates.into_iter().collect())?);
        Ok(Registered { serves, expected: None, known: watch::Sender::default(), serving: BTreeMap::new() })
    }

    /// A driver is expected to register. While it has not, its controllers work all the same, and say what they wait
    /// for.
    pub fn expect(&mut self, name: &str, socket: &str) {
        self.expected = Some((name.into(), socket.into()));
    }

    /// The drivers whose controllers are at work, by name.
    pub fn known(&self) -> watch::Receiver<BTreeSet<String>> {
        self.known.subscribe()
    }

    /// Follows the registrar. Never ends.
    pub async fn follow(mut self, registrar: Arc<Controller<Registrar>>) {
        let mut learned = registrar.learned();
        loop {
            let registered = registrar.look_local(|local| local.drivers());
            let sockets = registered.into_iter().map(|(name, driver)| (name, driver.socket)).collect();
            self.update(&sockets).await;
            tokio::select! {
                changed = learned.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(PATIENCE), if self.missing().is_some() => self.assume().await,
            }
        }
    }

    /// Begins with drivers that are new, and stops those that are gone.
    async fn update(&mut self, sockets: &BTreeMap<String, String>) {
        let gone = |name: &String, serving: &Serving| sockets.get(name) != Some(&serving.socket);
        let gone: Vec<String> = self.serving.iter().filter(|(n, s)| gone(n, s)).map(|(name, _)| name.clone()).collect();
        for name in gone {
            let Some(serving) = self.serving.remove(&name) else { continue };
            let socket = serving.socket.clone();
            drop(serving);
            self.known.send_if_modified(|known| known.remove(&name));
            self.serves.manager.stop_group(&name).await;
            self.serves.manager.drivers().forget(&socket);
        }
        for (name, socket) in sockets.iter().filter(|(name, _)| !self.serving.contains_key(*name)).collect::<Vec<_>>() {
            let serve = self.serves.clone().serve(name.clone(), socket.clone(), self.known.clone());
            let task = self.serves.manager.keep(&format!("what serves the driver {name}"), serve);
            let serving = Serving { socket: socket.clone(), task };
            self.serving.insert(name.clone(), serving);
        }
    }

    /// The expected driver, if it has not registered and has no controllers.
    fn missing(&self) -> Option<&(String, String)> {
        let (manager, serving) = (&self.serves.manager, &self.serving);
        self.expected.as_ref().filter(|(name, _)| !manager.has(name) && !serving.contains_key(name))
    }

    /// Sets the controllers of the expected driver to work without it. It may have registered by now: then its
    /// controllers are there already, and a second set would do everything twice.
    async fn assume(&self) {
        let Some((name, socket)) = self.missing() else { return };
        let capabilities =
            Capabilities::from_iter([ControllerRpc::CreateDeleteVolume, ControllerRpc::PublishUnpublishVolume]);
        let service = [PluginService::ControllerService];
        let profile = Profile::assumed(name.as_str(), capabilities.union(Capabilities::from_iter(service)));
        if let Err(error) = self.serves.add(socket, &profile).await {
            tracing::warn!("{error:#}");
        }
    }
}

impl Serves {
    /// Serves drivers with these roles, as far as each driver has a use for them, and these flags of the roles.
    pub fn new(manager: Arc<Manager>, roles: Vec<Role>, flags: Vec<String>) -> Result<Serves> {
        Ok(Serves { manager, roles, flags, host: crate::machine::host_name()? })
    }

    /// Serves the driver at a socket, once it says its name.
    pub async fn serve_socket(self: Arc<Self>, socket: String) {
        let line = self.manager.drivers().at(&socket);
        let name = loop {
            match line.driver.profile(TIMEOUT).await {
                Ok(profile) => break profile.name.clone(),
                Err(status) => tracing::warn!("still waiting for the driver: {}", status.message),
            }
            tokio::time::sleep(PATIENCE).await;
        };
        self.serve(name, socket, watch::Sender::default()).await;
    }

    /// Serves one driver for as long as it is registered: adds its controllers when it says what it can do, and again
    /// when it says something else.
    async fn serve(self: Arc<Self>, name: String, socket: String, known: watch::Sender<BTreeSet<String>>) {
        let line = self.manager.drivers().named(&name, &socket);
        let (tell, mut heard) = mpsc::unbounded_channel::<Result<Arc<Profile>, Status>>();
        let follow = line.driver.follow(TIMEOUT, move |answer| drop(tell.send(answer)));
        let manage = async {
            let mut last: Option<Arc<Profile>> = None;
            while let Some(answer) = heard.recv().await {
                let profile = match answer {
                    Ok(profile) => profile,
                    Err(status) => {
                        tracing::warn!("driver {name} does not say what it can do: {}", status.message);
                        continue;
                    }
                };
                if last.replace(profile.clone()).is_some_and(|last| last.capabilities == profile.capabilities) {
                    // It is back: what failed before says nothing any more.
                    self.manager.start_over(&name);
                    continue;
                }
                self.manager.stop_group(&name).await;
                if let Err(error) = self.add(&socket, &profile).await {
                    tracing::warn!("driver {name} cannot be served: {error:#}");
                }
                known.send_if_modified(|known| known.insert(name.clone()));
            }
        };
        tokio::select! {
            never = follow => match never {},
            () = manage => {}
        }
    }

    /// Adds the controllers a driver has a use for.
    async fn add(&self, socket: &str, profile: &Profile) -> Result<()> {
        let useful = |role: &Role| match role {
            Role::Provisioner => profile.can(ControllerRpc::CreateDeleteVolume),
            Role::Resizer => crate::sidecar::resizes(profile),
            Role::Attacher | Role::Registrar | Role::Liveness => true,
        };
        let roles: BTreeSet<Role> = self.roles.iter().copied().filter(useful).collect();
        if roles.is_empty() {
            return Ok(());
        }
        self.manager.drivers().named(&profile.name, socket);
        let mut flags = vec![format!("--csi-address={socket}"), format!("--timeout={}s", TIMEOUT.as_secs())];
        flags.extend(self.flags.iter().cloned());
        let environment = ProcessEnvironment { variables: BTreeMap::new(), host: self.host.clone(), namespace: None };
        let settings = parse_flags(&roles, &flags).and_then(|flags| Settings::new(roles, flags, &environment));
        controllers::add(&self.manager, &settings.map_err(|sentence| anyhow!(sentence))?, profile).await?;
        Ok(())
    }
}
