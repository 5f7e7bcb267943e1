//! The reference driver at work: `rules-driver` decides, `io-host` acts, `io-csi` carries.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use control::{Outcome, Reply, host};
use csi::{Call, Code, Method, Response, Status, registration};
use io_csi::Answers;
use io_host::Host;
use rules_driver::{Config, DIRECTORY, Facts, Files, Lock, METHODS, Mount, Run, Services, Step};

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
    /// What calls under way work on, and how many of them where they only read.
    busy: Mutex<BTreeMap<String, Held>>,
}

/// The driver's registration, for the node agent.
struct Registration {
    info: registration::PluginInfo,
}

/// Where a driver listens, and what it is.
struct Setup {
    config: Config,
    socket: PathBuf,
    /// Where it is offered to a node agent, if it is.
    registration: Option<PathBuf>,
}

/// `longshore driver`: the driver alone, beside a `longshore up --without driver`.
pub async fn command(args: args::Driver) -> Result<()> {
    let setup = setup(args)?;
    let processes = Path::new(&setup.config.state_dir).join("processes");
    let host = Arc::new(Host::new(processes).with_context(|| {
        format!("cannot use {}; choose a directory you may write to with --state-dir", setup.config.state_dir)
    })?);
    let stop = async {
        if let Err(error) = crate::up::signalled().await {
            tracing::warn!("cannot wait for signals: {error}");
        }
    };
    out::say(&format!("driver {DRIVER} at {}; Ctrl-C stops it, its volumes stay", setup.socket.display()));
    work(setup, host, stop).await
}

fn setup(args: args::Driver) -> Result<Setup> {
    let layout = Layout::new(args.data_dir)?;
    let node_id = match args.node_id {
        Some(id) => id,
        None => crate::machine::host_name()?,
    };
    let state_dir = match args.state_dir {
        Some(dir) => Layout::new(Some(dir))?.root().to_path_buf(),
        None => layout.driver(),
    };
    let services = match (args.controller_only, args.node_only, args.no_controller) {
        (true, _, _) => Services::Controller,
        (_, true, _) => Services::Node,
        (_, _, true) => Services::NodeWithoutController,
        (false, false, false) => Services::All,
    };
    let config = Config {
        name: DRIVER.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        node_id,
        state_dir: text(&state_dir),
        services,
        without: args.without.into_iter().collect(),
        filesystem: args.filesystem,
        pool_bytes: args.pool_bytes,
        max_volumes_per_node: args.max_volumes,
    };
    let socket = args.endpoint.as_deref().map(endpoint).transpose()?.unwrap_or_else(|| layout.driver_socket());
    // A node agent talks to the node's service only.
    let registration = (!args.no_registration && config.hosts()).then(|| layout.registration_socket());
    Ok(Setup { config, socket, registration })
}

/// The path of a socket: `unix:///path`, `unix:/path` or `/path`.
fn endpoint(given: &str) -> Result<PathBuf> {
    let path = given.strip_prefix("unix://").or_else(|| given.strip_prefix("unix:")).unwrap_or(given);
    if !path.starts_with('/') {
        bail!("the endpoint {given} is no absolute path of a socket; write it as unix:///run/csi.sock");
    }
    Ok(PathBuf::from(path))
}

/// Serves the driver of `longshore up` and its registration until `stop` ends.
pub async fn serve(layout: Layout, node: String, host: Arc<Host>, stop: impl Future<Output = ()>) -> Result<()> {
    let config = Config {
        name: DRIVER.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        node_id: node,
        state_dir: text(&layout.driver()),
        services: Services::All,
        without: Default::default(),
        filesystem: "ext4".into(),
        pool_bytes: POOL_BYTES,
        max_volumes_per_node: 0,
    };
    let setup = Setup { config, socket: layout.driver_socket(), registration: Some(layout.registration_socket()) };
    work(setup, host, stop).await
}

async fn work(setup: Setup, host: Arc<Host>, stop: impl Future<Output = ()>) -> Result<()> {
    let Setup { config, socket, registration } = setup;
    for op in rules_driver::prepare(&config) {
        host.perform(&op).map_err(|error| anyhow!("cannot prepare {}: {error}", config.state_dir))?;
    }
    if config.controls() {
        // A copy that was cut off may have left a filesystem standing still.
        for place in io_host::thaw_images_beneath(&config.images_dir())? {
            tracing::warn!("{place} stood still since an earlier life of the driver and goes on now");
        }
    }
    let facts = load(&config).with_context(|| format!("cannot load the volumes in {}", config.state_dir))?;
    let driver = Driver { config, host, facts: Mutex::new(facts), busy: Mutex::default() };
    let (stopping, stopped) = tokio::sync::watch::channel(false);
    let told = |mut stopped: tokio::sync::watch::Receiver<bool>| async move {
        let _ = stopped.wait_for(|stop| *stop).await;
    };
    let serving = listen(&socket, METHODS, driver, told(stopped.clone())).await?;
    let info = registration::PluginInfo {
        r#type: "CSIPlugin".into(),
        name: DRIVER.into(),
        endpoint: text(&socket),
        supported_versions: vec!["1.0.0".into()],
    };
    // Only now: whoever is told of the driver can call it.
    const REGISTRATION: &[Method] = &[Method::GetInfo, Method::NotifyRegistrationStatus];
    let registering = match registration {
        Some(path) => Some(listen(&path, REGISTRATION, Registration { info }, told(stopped)).await?),
        None => None,
    };
    stop.await;
    let _ = stopping.send(true);
    if let Some(registering) = registering {
        registering.finished().await?;
    }
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
    let (mounts, loops) = seen(config)?;
    Facts::load(&files(config)?, mounts, loops).map_err(|error| anyhow!(error))
}

/// The records on disk.
fn files(config: &Config) -> std::io::Result<Files> {
    let read = |folder: String| -> std::io::Result<Vec<(String, Vec<u8>)>> {
        let mut files = Vec::new();
        for name in io_host::list_dir(Path::new(&folder))? {
            // One that goes in this moment is gone.
            if let Some(bytes) = io_host::read_file(&Path::new(&folder).join(&name))? {
                files.push((name, bytes));
            }
        }
        Ok(files)
    };
    Ok(Files {
        volumes: read(config.records_dir())?,
        snapshots: read(config.snapshots_dir())?,
        groups: read(config.groups_dir())?,
    })
}

/// What the kernel says now.
fn seen(config: &Config) -> std::io::Result<(BTreeMap<String, Mount>, BTreeMap<String, String>)> {
    let all = io_host::mounts()?;
    let (devices, state) = (io_host::Holder::of("/dev", &all), io_host::Holder::of(&config.state_dir, &all));
    let mut mounts = BTreeMap::new();
    for entry in &all {
        let device = devices.as_ref().and_then(|devices| devices.shown_by(entry));
        let directory = state.as_ref().and_then(|state| state.shown_by(entry));
        let block = device.is_some();
        let (source, fstype) = match (device, directory) {
            (Some(device), _) => (device, String::new()),
            (None, Some(directory)) => (directory, DIRECTORY.to_string()),
            (None, None) => (entry.source.clone(), entry.fstype.clone()),
        };
        mounts.insert(entry.target.clone(), Mount { source, fstype, read_only: entry.read_only, block });
    }
    let loops = io_host::loops()?.into_iter().map(|l| (l.backing_path, l.device)).collect();
    Ok((mounts, loops))
}

/// What a call needs to know of the kernel before it is answered.
fn looks(call: &Call) -> bool {
    match call {
        Call::CreateVolume(r) => r.volume_content_source.is_some(),
        Call::GetPluginInfo(_)
        | Call::GetPluginCapabilities(_)
        | Call::Probe(_)
        | Call::ControllerPublishVolume(_)
        | Call::ValidateVolumeCapabilities(_)
        | Call::ListVolumes(_)
        | Call::GetCapacity(_)
        | Call::ControllerGetCapabilities(_)
        | Call::DeleteSnapshot(_)
        | Call::ListSnapshots(_)
        | Call::GetSnapshot(_)
        | Call::ControllerExpandVolume(_)
        | Call::ControllerGetVolume(_)
        | Call::ControllerGetVolumeHealth(_)
        | Call::ControllerListVolumeHealth(_)
        | Call::GroupControllerGetCapabilities(_)
        | Call::DeleteVolumeGroupSnapshot(_)
        | Call::GetVolumeGroupSnapshot(_)
        | Call::NodeGetCapabilities(_)
        | Call::NodeGetInfo(_)
        | Call::NodeGetStorageHealth(_)
        | Call::GetCSIDriverInfo(_)
        | Call::GetInfo(_)
        | Call::NotifyRegistrationStatus(_) => false,
        Call::DeleteVolume(_)
        | Call::ControllerUnpublishVolume(_)
        | Call::ControllerModifyVolume(_)
        | Call::CreateSnapshot(_)
        | Call::CreateVolumeGroupSnapshot(_)
        | Call::NodeStageVolume(_)
        | Call::NodeUnstageVolume(_)
        | Call::NodePublishVolume(_)
        | Call::NodeUnpublishVolume(_)
        | Call::NodeGetVolumeStats(_)
        | Call::NodeGetVolumeHealth(_)
        | Call::NodeExpandVolume(_) => true,
    }
}

impl Answers for Driver {
    async fn answer(&self, call: Call) -> Result<Response, Status> {
        let locks = rules_driver::locks(&call);
        let Some(_held) = Holding::take(&self.busy, &locks) else { return Err(rules_driver::busy(&call)) };
        self.look(&call).map_err(|why| Status::from_driver(Code::Unavailable, why))?;
        self.run(call).await
    }
}

impl Driver {
    /// Takes in what others may have changed.
    fn look(&self, call: &Call) -> Result<(), String> {
        if self.config.services != Services::All {
            let files = files(&self.config).map_err(|error| format!("cannot read the volume records: {error}"))?;
            self.facts().reload(&files)?;
        }
        if looks(call) {
            let (mounts, loops) =
                seen(&self.config).map_err(|error| format!("cannot read the mount table: {error}"))?;
            self.facts().observe(mounts, loops);
        }
        Ok(())
    }

    async fn run(&self, call: Call) -> Result<Response, Status> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut run = Run::new(call, u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
        loop {
            // A statement of its own: the lock must not be held while the operation is performed.
            let step = run.step(&self.config, &mut self.facts());
            let op = match step {
                Step::Answer(answer) => return answer,
                Step::Do(op) => op,
            };
            match perform(self.host.clone(), op.clone()).await {
                Outcome::Done(Reply::Host(reply)) => run.did(&self.config, &mut self.facts(), op, &reply),
                Outcome::Done(_) => run.did(&self.config, &mut self.facts(), op, &host::Reply::Done),
                outcome @ (Outcome::Refused(_) | Outcome::Unknown(_)) => {
                    if let Some(status) = run.failed(&op, &outcome.failure().unwrap_or_default()) {
                        return Err(status);
                    }
                }
            }
        }
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Performs an operation. What takes as long as a volume is large has no deadline: its caller may stop waiting, but the
/// volume is held until it has ended, so that it is never begun a second time beside itself.
async fn perform(host: Arc<Host>, op: host::Op) -> Outcome {
    if !matches!(op, host::Op::CopyImages { .. } | host::Op::RemoveTree { .. }) {
        return on_host(host, op).await;
    }
    match tokio::task::spawn_blocking(move || host.perform(&op)).await {
        Ok(Ok(reply)) => Outcome::Done(Reply::Host(reply)),
        Ok(Err(error)) => Outcome::Unknown(error.to_string()),
        Err(_) => Outcome::Unknown("it ended without an answer".into()),
    }
}

/// How something is held by calls under way.
enum Held {
    Alone,
    Shared(usize),
}

/// Everything one call holds, until it is dropped.
struct Holding<'a> {
    busy: &'a Mutex<BTreeMap<String, Held>>,
    keys: Vec<String>,
}

impl<'a> Holding<'a> {
    /// Takes all locks of a call, or none.
    fn take(busy: &'a Mutex<BTreeMap<String, Held>>, locks: &[Lock]) -> Option<Holding<'a>> {
        let mut all = busy.lock().unwrap_or_else(PoisonError::into_inner);
        // The same thing may be named twice in one call; held alone once is enough.
        let mut wanted: BTreeMap<&str, bool> = BTreeMap::new();
        for lock in locks {
            *wanted.entry(&lock.key).or_insert(true) &= lock.shared;
        }
        let free = |(key, shared): (&&str, &bool)| match all.get(*key) {
            None => true,
            Some(Held::Shared(_)) => *shared,
            Some(Held::Alone) => false,
        };
        if !wanted.iter().all(free) {
            return None;
        }
        for (key, shared) in &wanted {
            match all.get_mut(*key) {
                Some(Held::Shared(count)) => *count += 1,
                Some(Held::Alone) | None => {
                    all.insert((*key).to_string(), if *shared { Held::Shared(1) } else { Held::Alone });
                }
            }
        }
        Some(Holding { busy, keys: wanted.into_keys().map(str::to_string).collect() })
    }
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        let mut all = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        for key in &self.keys {
            match all.get_mut(key) {
                Some(Held::Shared(count)) if *count > 1 => *count -= 1,
                Some(Held::Shared(_) | Held::Alone) | None => {
                    all.remove(key);
                }
            }
        }
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
