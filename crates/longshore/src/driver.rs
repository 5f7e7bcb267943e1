//! The reference driver at work: `rules-driver` decides, `io-host` acts, `io-csi` carries.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, anyhow};
use control::{Outcome, Reply, host};
use csi::{Call, Code, Method, Response, Status, registration};
use io_csi::Answers;
use io_host::Host;
use rules_driver::{Config, Facts, METHODS, Mount, Run, Step};

use crate::args;
use crate::hands::on_host;
use crate::layout::{DRIVER, Layout, text};
use crate::out;

/// What all volumes together may promise. Images are thin: this bounds promises, not the disk.
const POOL_BYTES: u64 = 1 << 40;

/// The driver behind its socket.
struct Driver {
    config: Config,
    host: Arc<Host>,
    facts: Mutex<Facts>,
    /// Volumes with a call under way.
    busy: Mutex<BTreeSet<String>>,
}

/// The driver's registration, for the node agent.
struct Registration {
    info: registration::PluginInfo,
}

/// `longshore driver`: the driver alone, beside a `longshore up --without driver`.
pub async fn command(args: args::Driver) -> Result<()> {
    let layout = Layout::new(args.data_dir)?;
    let node = match args.node_id {
        Some(id) => id,
        None => crate::machine::host_name()?,
    };
    let host = Arc::new(Host::new(layout.processes())?);
    let stop = async {
        if let Err(error) = crate::up::signalled().await {
            tracing::warn!("cannot wait for signals: {error}");
        }
    };
    let socket = layout.driver_socket();
    out::say(&format!("driver {DRIVER} at {}; Ctrl-C stops it, its volumes stay", socket.display()));
    serve(layout, node, host, stop).await
}

/// Serves the driver and its registration until `stop` ends.
pub async fn serve(layout: Layout, node: String, host: Arc<Host>, stop: impl Future<Output = ()>) -> Result<()> {
    let config = Config {
        name: DRIVER.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        node_id: node,
        state_dir: text(&layout.driver()),
        attach: true,
        pool_bytes: POOL_BYTES,
        max_volumes_per_node: 0,
    };
    for op in rules_driver::prepare(&config) {
        host.perform(&op).map_err(|error| anyhow!("cannot prepare {}: {error}", layout.driver().display()))?;
    }
    let facts = load(&config).with_context(|| format!("cannot load the volumes in {}", layout.driver().display()))?;
    let driver = Driver { config, host, facts: Mutex::new(facts), busy: Mutex::default() };
    let (stopping, stopped) = tokio::sync::watch::channel(false);
    let told = |mut stopped: tokio::sync::watch::Receiver<bool>| async move {
        let _ = stopped.wait_for(|stop| *stop).await;
    };
    let serving = listen(&layout.driver_socket(), METHODS, driver, told(stopped.clone())).await?;
    let info = registration::PluginInfo {
        r#type: "CSIPlugin".into(),
        name: DRIVER.into(),
        endpoint: text(&layout.driver_socket()),
        supported_versions: vec!["1.0.0".into()],
    };
    // Only now: whoever is told of the driver can call it.
    const REGISTRATION: &[Method] = &[Method::GetInfo, Method::NotifyRegistrationStatus];
    let registering = listen(&layout.registration_socket(), REGISTRATION, Registration { info }, told(stopped)).await?;
    stop.await;
    let _ = stopping.send(true);
    registering.finished().await?;
    serving.finished().await?;
    Ok(())
}

async fn listen<A: Answers>(
    path: &Path,
    methods: &'static [Method],
    service: A,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<io_csi::Server> {
    io_csi::serve(path, methods, service, stop).await.with_context(|| format!("cannot listen on {}", path.display()))
}

/// Records from disk, mounts and loop devices from the kernel.
fn load(config: &Config) -> Result<Facts> {
    let folder = config.records_dir();
    let mut files = Vec::new();
    for name in io_host::list_dir(Path::new(&folder))? {
        let bytes = io_host::read_file(&Path::new(&folder).join(&name))?.unwrap_or_default();
        files.push((name, bytes));
    }
    let (mounts, loops) = seen()?;
    Facts::load(files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())), mounts, loops)
        .map_err(|error| anyhow!(error))
}

/// What the kernel says now.
fn seen() -> std::io::Result<(BTreeMap<String, Mount>, BTreeMap<String, String>)> {
    let mounts = io_host::mounts()?
        .into_iter()
        .map(|m| (m.target, Mount { device: m.source, fstype: m.fstype, read_only: m.read_only }))
        .collect();
    let loops = io_host::loops()?.into_iter().map(|l| (l.backing_path, l.device)).collect();
    Ok((mounts, loops))
}

impl Answers for Driver {
    async fn answer(&self, call: Call) -> Result<Response, Status> {
        let Some(volume) = rules_driver::lock(&call) else {
            return self.run(call).await;
        };
        let Some(_held) = Held::take(&self.busy, &volume) else {
            return Err(Status::from_driver(
                Code::Aborted,
                format!("another call on volume {volume} is under way; call again"),
            ));
        };
        match seen() {
            Ok((mounts, loops)) => self.facts().observe(mounts, loops),
            Err(error) => {
                return Err(Status::from_driver(Code::Unavailable, format!("cannot read the mount table: {error}")));
            }
        }
        self.run(call).await
    }
}

impl Driver {
    async fn run(&self, call: Call) -> Result<Response, Status> {
        let mut run = Run::new(call);
        loop {
            // A statement of its own: the lock must not be held while the operation is performed.
            let step = run.step(&self.config, &mut self.facts());
            let op = match step {
                Step::Answer(answer) => return answer,
                Step::Do(op) => op,
            };
            match on_host(self.host.clone(), op.clone()).await {
                Outcome::Done(Reply::Host(reply)) => run.did(&self.config, &mut self.facts(), op, &reply),
                Outcome::Done(_) => run.did(&self.config, &mut self.facts(), op, &host::Reply::Done),
                outcome @ (Outcome::Refused(_) | Outcome::Unknown(_)) => {
                    return Err(run.failed(&op, &outcome.failure().unwrap_or_default()));
                }
            }
        }
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A volume held by one call.
struct Held<'a> {
    busy: &'a Mutex<BTreeSet<String>>,
    volume: String,
}

impl<'a> Held<'a> {
    fn take(busy: &'a Mutex<BTreeSet<String>>, volume: &str) -> Option<Held<'a>> {
        let new = busy.lock().unwrap_or_else(PoisonError::into_inner).insert(volume.to_string());
        new.then(|| Held { busy, volume: volume.to_string() })
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.volume);
    }
}

impl Answers for Registration {
    async fn answer(&self, call: Call) -> Result<Response, Status> {
        match call {
            Call::GetInfo(_) => Ok(Response::GetInfo(self.info.clone())),
            Call::NotifyRegistrationStatus(status) => {
                if !status.plugin_registered {
                    tracing::warn!("the node turned the driver away: {}", status.error);
                }
                Ok(Response::NotifyRegistrationStatus(registration::RegistrationStatusResponse {}))
            }
            other => {
                Err(Status::from_driver(Code::Unimplemented, format!("{} is not offered here", other.method().name())))
            }
        }
    }
}
