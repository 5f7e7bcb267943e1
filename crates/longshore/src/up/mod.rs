//! `longshore up`: everything on this machine, in one process.

mod bootstrap;
mod logs;
mod node;
mod roles;
mod routes;
mod welcome;

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use io_apiserver::{ApiServer, Config};
use io_host::Host;
use io_kube::Kube;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use crate::args::{self, Part};
use crate::driver;
use crate::layout::Layout;
use roles::Roles;

/// How long the greeting waits for the driver to be registered before it is printed all the same.
const PATIENCE: Duration = Duration::from_secs(3);

/// Runs until told to stop.
pub async fn command(args: args::Up) -> Result<()> {
    let began = Instant::now();
    let layout = Layout::new(args.data_dir.clone())?;
    let node = match &args.node_name {
        Some(name) => name.clone(),
        None => crate::machine::host_name()?,
    };
    // Taking the port first: a second `up` should fail here, before it touches anything.
    let listener = TcpListener::bind(args.listen).await.with_context(|| {
        format!("cannot listen on {}: is another Longshore running? choose another port with --listen", args.listen)
    })?;
    let port = listener.local_addr()?.port();
    let host = Arc::new(Host::new(layout.processes()).with_context(|| {
        format!("cannot use {}; choose a directory you may write to with --data-dir", layout.processes().display())
    })?);

    let roles: Arc<OnceLock<Arc<Roles>>> = Arc::default();
    let server = ApiServer::open(Config {
        data_dir: layout.api(),
        logs: Some(Arc::new(logs::ProcessLogs::new(host.clone()))),
        extra: routes::router(roles.clone()),
        ..Config::default()
    })?;
    server.write_kubeconfig(&layout.kubeconfig(), port)?;
    let kube = Kube::in_process(server.service_as("system:longshore"));
    bootstrap::objects(&kube).await?;

    let stop = Arc::new(Notify::new());
    let (serves, stops) = (server.clone(), wait_for(stop.clone()));
    let serving = tokio::spawn(async move { serves.serve_tls(listener, stops).await });
    let started = Roles::start(kube, host.clone(), &layout, &node, &args.without)?;
    let _ = roles.set(started.clone());
    let mut driving = None;
    if !args.without.contains(&Part::Driver) {
        let shutdown = wait_for(stop.clone());
        driving = Some(tokio::spawn(driver::serve(layout.clone(), node.clone(), host, shutdown)));
        tokio::select! {
            () = started.driver_registered() => {}
            () = tokio::time::sleep(PATIENCE) => tracing::warn!("the driver is not registered yet; `longshore explain` says why claims wait"),
            ended = async { match &mut driving { Some(task) => task.await, None => std::future::pending().await } } => ended??,
        }
    }
    welcome::print(&args, &layout, port, began.elapsed());

    signalled().await?;
    started.stop().await;
    stop.notify_waiters();
    let _ = serving.await;
    if let Some(driving) = driving {
        let _ = driving.await;
    }
    server.close();
    Ok(())
}

async fn wait_for(stop: Arc<Notify>) {
    stop.notified().await;
}

/// The user wants us to stop.
pub async fn signalled() -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}
