//! The reference driver at work: `rules-driver` decides, `io-host` acts, `io-csi` carries.

mod in_place;
mod kernel;
mod records;
mod rehearsal;
mod setup;

use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use control::host::{Op, Reply};
use csi::{Call, Code, Method, Response, Status, registration};
use io_csi::{Answers, CallLocks};
use io_host::{Host, Workers};
use io_run::machine::{self, OpFailure};
use rules_driver::{Config, Facts, METHODS, Run, Step, Trouble};

use crate::args;
use crate::layout::text;
use crate::out;
pub use in_place::plugin as in_place_of;
use kernel::Kernel;
use records::Records;
pub use rehearsal::{Rehearsal, Rehearsed};
pub use setup::Setup;

/// The driver behind its socket.
#[derive(Clone)]
struct Driver {
    works: Arc<Works>,
    /// How long a caller waits for a snapshot before it is told that the copy goes on.
    copy_patience: Duration,
    /// It is in the place of a plugin's driver, and speaks as that one.
    in_place: bool,
}

/// What all calls share.
struct Works {
    config: Config,
    workers: Workers,
    facts: Mutex<Facts>,
    kernel: Kernel,
    records: Records,
    /// What calls under way work on.
    busy: CallLocks,
}

/// The driver's registration, for the node agent.
struct Registration {
    info: registration::PluginInfo,
}

/// `longshore driver`: the driver alone, beside a `longshore up --without driver`.
pub async fn command(args: args::Driver) -> Result<()> {
    if let Some(dir) = &args.shared_dir {
        let dir = dir.canonicalize().with_context(|| format!("cannot use the shared directory {}", dir.display()))?;
        io_host::require_shared(&text(&dir))?;
    }
    let setup = Setup::of(args)?;
    let processes = Path::new(&setup.config.state_dir).join("processes");
    let host = Host::new(processes).with_context(|| {
        format!("cannot use {}; choose a directory you may write to with --state-dir", setup.config.state_dir)
    })?;
    let host = Arc::new(match setup.copy_rate {
        Some(rate) => host.with_slow_copies(rate),
        None => host,
    });
    let stop = async {
        if let Err(error) = crate::up::signalled().await {
            tracing::warn!("cannot wait for signals: {error}");
        }
    };
    let (name, socket) = (setup.config.name.clone(), setup.socket.clone());
    let ready = || out::say(&format!("driver {name} at {}; Ctrl-C stops it, its volumes stay", socket.display()));
    work(setup, host, ready, stop).await
}

/// Serves a driver beside a node agent, and its registration, until `stop` ends.
pub async fn serve(setup: Setup, host: Arc<Host>, stop: impl Future<Output = ()>) -> Result<()> {
    work(setup, host, || (), stop).await
}

/// Says that it is `ready` once anybody can call.
async fn work(setup: Setup, host: Arc<Host>, ready: impl FnOnce(), stop: impl Future<Output = ()>) -> Result<()> {
    let Setup { config, socket, registration, copy_patience, copy_rate: _, in_place } = setup;
    let name = config.name.clone();
    let clears = config.controls();
    let driver = Driver { works: Arc::new(Works::start(config, host, clears)?), copy_patience, in_place };
    driver.resume();
    let (stopping, stopped) = tokio::sync::watch::channel(false);
    let told = |mut stopped: tokio::sync::watch::Receiver<bool>| async move {
        let _ = stopped.wait_for(|stop| *stop).await;
    };
    let serving = listen(&socket, METHODS, driver, told(stopped.clone())).await?;
    let info = registration::PluginInfo {
        r#type: "CSIPlugin".into(),
        name,
        endpoint: text(&socket),
        supported_versions: vec!["1.0.0".into()],
    };
    // Only now: whoever is told of the driver can call it.
    const REGISTRATION: &[Method] = &[Method::GetInfo, Method::NotifyRegistrationStatus];
    let registering = match registration {
        Some(path) => Some(listen(&path, REGISTRATION, Registration { info }, told(stopped)).await?),
        None => None,
    };
    ready();
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

impl Answers for Driver {
    async fn answer(&self, call: Call) -> Result<Response, Status> {
        if self.in_place {
            return Ok(in_place::answered(self.works.answer(in_place::asked(call)?).await?));
        }
        if !rules_driver::outlasts_callers(&call) {
            return self.works.answer(call).await;
        }
        let (works, asked) = (self.works.clone(), call.clone());
        let mut copying = tokio::spawn(async move { works.answer(call).await });
        loop {
            match tokio::time::timeout(self.copy_patience, &mut copying).await {
                Ok(Ok(answer)) => return answer,
                Ok(Err(_)) => return Err(Status::from_driver(Code::Unavailable, "the copy ended without an answer")),
                Err(_) => {
                    if let Some(answer) = rules_driver::under_way(&asked, &self.works.facts()) {
                        return Ok(answer);
                    }
                }
            }
        }
    }
}

impl Driver {
    /// Goes on with copies that an earlier life of the driver did not finish.
    fn resume(&self) {
        if !self.works.config.controls() {
            return;
        }
        for call in rules_driver::resumed(&self.works.facts()) {
            let works = self.works.clone();
            tokio::spawn(async move {
                if let Err(status) = works.answer(call).await {
                    tracing::warn!("a snapshot that was cut off cannot be taken again: {}", status.message);
                }
            });
        }
    }
}

impl Works {
    /// Loads everything. Nobody is answered before. `clears` what an earlier life was cut off in.
    fn start(config: Config, host: Arc<Host>, clears: bool) -> Result<Works> {
        for op in rules_driver::prepare(&config) {
            host.perform(&op).map_err(|error| anyhow!("cannot prepare {}: {error}", config.state_dir))?;
        }
        let records = Records::open(&config)?;
        if clears {
            // A copy that was cut off may have left a filesystem standing still.
            for place in io_host::thaw_images_beneath(&config.images_dir())? {
                tracing::warn!("{place} stood still since an earlier life of the driver and goes on now");
            }
            // Nor does anybody ask again for what an earlier life was cut off in, so its halves go now.
            for folder in rules_driver::folders(&config) {
                io_host::remove_partials(Path::new(&folder)).with_context(|| format!("cannot clean up {folder}"))?;
            }
        }
        let (kernel, (mounts, loops)) = Kernel::start(&config)?;
        let loaded = records::all(&config).map_err(anyhow::Error::from);
        let facts = loaded.and_then(|files| Facts::load(&files, mounts, loops).map_err(|error| anyhow!(error)));
        let facts = facts.with_context(|| format!("cannot load the volumes in {}", config.state_dir))?;
        Ok(Works {
            config,
            workers: machine::workers(host),
            facts: Mutex::new(facts),
            kernel,
            records,
            busy: CallLocks::default(),
        })
    }

    async fn answer(self: &Arc<Works>, call: Call) -> Result<Response, Status> {
        let locks = rules_driver::locks(&call);
        let unavailable = |why: anyhow::Error| Status::from_driver(Code::Unavailable, format!("{why:#}"));
        let busy = |facts: &Facts| rules_driver::under_way(&call, facts).ok_or_else(|| rules_driver::busy(&call));
        let Some(_held) = self.busy.take(&locks) else { return busy(&self.facts()) };
        let Some(_elsewhere) = self.records.hold(&locks).map_err(unavailable)? else { return busy(&self.facts()) };
        let mut promise = self.records.promise(&call).await.map_err(unavailable)?;
        self.records.catch_up(&self.config, &mut self.facts()).map_err(unavailable)?;
        self.look(&call).await.map_err(unavailable)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut run = Run::new(call.clone(), u64::try_from(now.as_millis()).unwrap_or(u64::MAX));
        loop {
            // A statement of its own: the lock must not be held while the operation is performed.
            let step = run.step(&self.config, &mut self.facts());
            let op = match step {
                Step::Answer(answer) => return answer,
                Step::Do(op) => op,
            };
            match self.perform(op.clone()).await {
                Ok(reply) => {
                    // A statement of its own, as above.
                    let stale = run.did(&self.config, &mut self.facts(), op, &reply);
                    if stale {
                        self.look(&call).await.map_err(unavailable)?;
                    }
                }
                Err((why, trouble)) => {
                    if let Some(status) = run.failed(&op, &why, trouble) {
                        return Err(status);
                    }
                }
            }
            // What is promised is on disk with the first record.
            drop(promise.take());
        }
    }

    /// Takes in what the kernel says of everything the call has to do with.
    async fn look(self: &Arc<Works>, call: &Call) -> Result<()> {
        let look = rules_driver::look(call);
        if look.is_empty() {
            return Ok(());
        }
        let works = self.clone();
        let looking = tokio::task::spawn_blocking(move || works.kernel.look(&works.config, &works.facts, look));
        match tokio::time::timeout(machine::OP_DEADLINE, looking).await {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(Ok(Err(error))) => Err(error).context("cannot look at the mounts of the volume"),
            Ok(Err(_)) | Err(_) => bail!("the mounts of the volume do not answer; call again"),
        }
    }

    /// Performs an operation in a thread of its own: records through their log, everything else in a worker.
    async fn perform(self: &Arc<Works>, op: Op) -> Result<Reply, (String, Trouble)> {
        let answer = if self.records.keep() && self.config.is_on_record(&op) {
            let (works, (say, heard)) = (self.clone(), tokio::sync::oneshot::channel());
            let written = op.clone();
            tokio::task::spawn_blocking(move || drop(say.send(works.records.write(&written))));
            let late = || Err(OpFailure::NoAnswer(format!("{op:?} has not ended after {:?}", machine::OP_DEADLINE)));
            machine::wait(&op, heard).await.unwrap_or_else(late)
        } else {
            machine::perform(&self.workers, op).await
        };
        answer.map_err(|failure| match failure {
            OpFailure::Host(error) => (error.to_string(), error.kind().into()),
            OpFailure::NoAnswer(text) => (text, Trouble::Other),
        })
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
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
