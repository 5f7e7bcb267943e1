//! Roles at work.

use std::sync::Arc;

use anyhow::Result;
use axum::Router;
use axum::routing::get;
use io_csi::CsiClient;
use io_run::Metrics;
use tokio::sync::{mpsc, watch};

use super::registrar::{Registrar, Verdict};
use super::settings::Settings;
use super::{Role, driver, http, liveness};

/// What the parts of a process share.
pub struct Shared {
    /// What it is to do.
    pub settings: Settings,
    /// The way to the driver.
    pub client: Arc<CsiClient>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// True when everything is to end.
    pub stop: watch::Receiver<bool>,
}

impl Shared {
    /// Ends when everything is to end.
    pub fn stopped(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut stop = self.stop.clone();
        async move {
            let _ = stop.wait_for(|stop| *stop).await;
        }
    }
}

/// Runs until told to stop.
pub fn run(settings: Settings) -> Result<()> {
    if settings.registration.as_ref().is_some_and(|registration| registration.probe) {
        return Ok(()); // N7: only asked whether it could be started.
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(work(settings));
    runtime.shutdown_timeout(std::time::Duration::from_secs(1));
    ended
}

async fn work(settings: Settings) -> Result<()> {
    let (stopping, stop) = watch::channel(false);
    let shared = Arc::new(Shared { settings, client: Arc::default(), metrics: Arc::default(), stop });
    let mut task = tokio::spawn(roles(shared));
    tokio::select! {
        ended = &mut task => ended?,
        signalled = crate::up::signalled() => {
            signalled?;
            // What was begun ends, and sockets go, before the process does (N4).
            let _ = stopping.send(true);
            task.await?
        }
    }
}

/// Everything a process does, until it fails or is told to stop.
async fn roles(shared: Arc<Shared>) -> Result<()> {
    let settings = &shared.settings;
    let (name, named) = watch::channel(None::<String>);
    serve_http(&shared, named).await?;
    let first = settings.roles.first().copied().unwrap_or(Role::Liveness);
    let timeout = settings.timeout(first);
    if settings.roles.iter().all(|role| *role == Role::Liveness) {
        // It answers whoever asks, whether the driver is there or not.
        shared.stopped().await;
        return Ok(());
    }
    let lives = driver::lives(&settings.socket)?;
    let meet = async {
        driver::ready(&shared.client, &settings.socket, timeout).await?;
        driver::name(&shared.client, &settings.socket, timeout).await
    };
    let driver = tokio::select! {
        () = shared.stopped() => return Ok(()),
        met = meet => met?,
    };
    name.send_replace(Some(driver.clone()));
    tracing::info!("the driver at {} is {driver}", settings.socket);
    register(&shared, &driver, lives).await
}

async fn serve_http(shared: &Arc<Shared>, named: watch::Receiver<Option<String>>) -> Result<()> {
    let settings = &shared.settings;
    let health = health_route(shared, named);
    if let Some(given) = &settings.http {
        let metrics = shared.metrics.clone();
        let mut routes =
            Router::new().route(&given.metrics_path, get(move || async move { http::metrics(metrics.text()) }));
        if given.health {
            routes = routes.merge(health.clone());
        }
        tokio::spawn(http::serve(http::listen(&given.address).await?, routes, shared.stopped()));
    }
    if let Some(address) = &settings.health {
        tokio::spawn(http::serve(http::listen(address).await?, health, shared.stopped()));
    }
    Ok(())
}

/// `/healthz`: of the driver where we are its liveness probe, else of our own offer to kubelet.
fn health_route(shared: &Arc<Shared>, named: watch::Receiver<Option<String>>) -> Router {
    let shared = shared.clone();
    let answer = move || {
        let (shared, named) = (shared.clone(), named.clone());
        async move {
            let settings = &shared.settings;
            if settings.roles.contains(&Role::Liveness) {
                let timeout = settings.timeout(Role::Liveness);
                return http::health(liveness::health(&shared.client, &settings.socket, timeout).await);
            }
            let name = named.borrow().clone();
            match (&settings.registration, name) {
                (Some(registration), Some(name)) => {
                    let registrar = Registrar::new(registration, &name);
                    http::health(registrar.health(&shared.client, settings.timeout(Role::Registrar)).await)
                }
                (Some(_), None) => http::health(Err((
                    axum::http::StatusCode::NOT_FOUND,
                    "the driver has not said its name yet".to_string(),
                ))),
                (None, _) => http::health(Ok(())),
            }
        }
    };
    Router::new().route("/healthz", get(answer))
}

/// Offers the driver to kubelet, anew for every life of it: what it says of its node may have changed.
async fn register(shared: &Arc<Shared>, driver: &str, mut lives: watch::Receiver<u64>) -> Result<()> {
    let Some(registration) = &shared.settings.registration else {
        shared.stopped().await;
        return Ok(());
    };
    let registrar = Registrar::new(registration, driver);
    loop {
        let (renew, renewed) = tokio::sync::oneshot::channel::<()>();
        let (tell, mut verdicts) = mpsc::unbounded_channel::<Verdict>();
        let stopped = shared.stopped();
        let end = async move {
            tokio::select! {
                () = stopped => {}
                _ = renewed => {}
            }
        };
        let server = registrar.offer(tell, end).await?;
        let again = loop {
            tokio::select! {
                () = shared.stopped() => break false,
                changed = lives.changed() => break changed.is_ok(),
                Some(verdict) = verdicts.recv() => match verdict {
                    Ok(()) => tracing::info!("kubelet registered {driver}"),
                    // N3: whoever runs us starts us again, which is the next try.
                    Err(why) => anyhow::bail!("kubelet turned the driver {driver} away: {why}"),
                },
            }
        };
        drop(renew);
        server.finished().await?;
        if !again {
            return Ok(());
        }
        tokio::select! {
            () = shared.stopped() => return Ok(()),
            ready = driver::ready(&shared.client, &shared.settings.socket, shared.settings.timeout(Role::Registrar)) => ready?,
        }
    }
}
