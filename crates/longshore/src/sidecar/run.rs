//! Roles at work.

use std::sync::{Arc, OnceLock};

use anyhow::Result;
use axum::Router;
use axum::routing::get;
use io_csi::Profile;
use io_kube::Kube;
use io_run::{DriverLine, Drivers, Manager};
use rules_provisioner::CapacityTally;
use tokio::sync::watch;

use super::controllers::Capacities;
use super::settings::Settings;
use super::{Role, controllers, driver, health, http, registrar};
use crate::routes;

/// What the parts of a process share.
pub struct Shared {
    /// What it is to do.
    pub settings: Settings,
    /// The way to the driver.
    pub drivers: Arc<Drivers>,
    /// The controllers, once they are at work.
    pub manager: OnceLock<Arc<Manager>>,
    /// Counts capacity objects, where there are any to count.
    pub capacities: OnceLock<Capacities>,
    /// True when everything is to end.
    pub stop: watch::Receiver<bool>,
}

impl Shared {
    /// Everything that is counted, as it is scraped.
    fn count(&self) -> String {
        if let Some(look) = self.capacities.get() {
            let CapacityTally { goal, current, obsolete } = look();
            self.drivers.metrics().capacities(goal, current, obsolete);
        }
        self.drivers.metrics().text()
    }

    /// The way to the driver.
    pub fn line(&self) -> Arc<DriverLine> {
        self.drivers.at(&self.settings.socket)
    }

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
    let (drivers, manager, capacities) = (Arc::default(), OnceLock::new(), OnceLock::new());
    let shared = Arc::new(Shared { settings, drivers, manager, capacities, stop });
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
    serve_http(&shared).await?;
    let first = settings.roles.first().copied().unwrap_or(Role::Liveness);
    let timeout = settings.timeout(first);
    if settings.roles.iter().all(|role| *role == Role::Liveness) {
        // It answers whoever asks, whether the driver is there or not.
        shared.stopped().await;
        return Ok(());
    }
    // What was given is looked at before the driver is waited for: a wrong path should be told at once.
    let kube = match settings.controllers().next().is_some() || settings.marks_node() {
        true => Some(controllers::connect(&settings.cluster).await?),
        false => None,
    };
    let lives = driver::lives(&settings.socket)?;
    let line = shared.line();
    let meet = async {
        driver::ready(&line.client, &settings.socket, timeout).await?;
        driver::name(&line.client, &settings.socket, timeout).await
    };
    let name = tokio::select! {
        () = shared.stopped() => return Ok(()),
        met = meet => met?,
    };
    tracing::info!("the driver at {} is {name}", settings.socket);
    shared.drivers.named(&name, &settings.socket);
    let controlling = async {
        let Some(kube) = kube else {
            shared.stopped().await;
            return Ok(());
        };
        // The first request alone, so that all the others find a connection and none makes one of its own.
        let (greeted, profile) = tokio::join!(kube.greet(), line.driver.profile(timeout));
        greeted?;
        let profile = profile.map_err(|status| anyhow::anyhow!("the driver {name}: {status}"))?;
        control(&shared, kube, &profile, lives.clone()).await
    };
    // Either ends early only by failing.
    tokio::try_join!(registrar::register(&shared, &name, lives.clone()), controlling)?;
    Ok(())
}

/// Runs the controllers until everything is to end; `lives` counts lives of the driver.
async fn control(shared: &Arc<Shared>, kube: Kube, profile: &Profile, mut lives: watch::Receiver<u64>) -> Result<()> {
    let settings = &shared.settings;
    let limited = match settings.cluster.limit {
        Some((rate, burst)) => kube.throttled(rate, burst),
        None => kube.paced(),
    };
    let manager = Manager::new(limited, kube, shared.drivers.clone(), None);
    crate::gates::tell_migrated(&manager, None);
    let _ = shared.manager.set(manager.clone());
    if let Some(capacities) = controllers::add(&manager, settings, profile).await? {
        let _ = shared.capacities.set(capacities);
    }
    loop {
        tokio::select! {
            () = shared.stopped() => break,
            // The driver is back: what failed before says nothing any more.
            Ok(()) = lives.changed() => manager.start_over(&profile.name),
        }
    }
    manager.stop().await;
    Ok(())
}

async fn serve_http(shared: &Arc<Shared>) -> Result<()> {
    let settings = &shared.settings;
    let told = shared.clone();
    let well =
        move || told.manager.get().map_or(Ok(()), |manager| manager.health().map_err(|panics| panics.to_string()));
    let health = health::routes(shared, well);
    if let Some(given) = &settings.http {
        let (counted, asked) = (shared.clone(), shared.clone());
        let counts =
            move || async move { asked.manager.get().map(|manager| routes::counts(manager)).unwrap_or_default() };
        let mut routes = Router::new()
            .route(&given.metrics_path, get(move || async move { http::metrics(counted.count()) }))
            .route(routes::COUNTS, get(counts));
        if given.health {
            routes = routes.merge(health.clone());
            if settings.election.is_some() {
                // C4, C5: a standby is well, and so is a leader: one that cannot renew stops leading by itself.
                routes = routes.route("/healthz/leader-election", get(|| async { http::health(Ok(())) }));
            }
        }
        tokio::spawn(http::serve(http::listen(&given.address).await?, routes, shared.stopped()));
    }
    if let Some(address) = &settings.health {
        tokio::spawn(http::serve(http::listen(address).await?, health, shared.stopped()));
    }
    Ok(())
}
