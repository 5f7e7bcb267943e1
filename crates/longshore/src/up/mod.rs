//! `longshore up`: everything on this machine, in one process.

mod bootstrap;
mod nodes;
mod welcome;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, anyhow};
use io_apiserver::{ApiServer, Config};
use io_host::Host;
use io_kube::Kube;
use io_run::{Manager, machine};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::args::{self, Output, Part};
use crate::commands::controllers::{self, ClusterController, ClusterSettings};
use crate::layout::{DRIVER, Layout, text};
use crate::node::{NodeAgent, NodeSettings};
use crate::registered::Registered;
use crate::sidecar::Role;
use crate::stats::{self, VolumeStats};
use crate::{driver, exec, logs, routes};

/// How long the greeting waits for the driver to be registered before it is printed all the same.
const PATIENCE: Duration = Duration::from_secs(3);

/// Runs until told to stop.
pub async fn command(args: args::Up) -> Result<()> {
    let began = Instant::now();
    // First of all: a shell that starts us in the background ignores SIGINT for us until we say otherwise.
    let signalled = signals()?;
    let migration = args.gates.migration().map_err(|sentence| anyhow!(sentence))?;
    let layout = Layout::new(args.data_dir.clone())?;
    let rehearsal = args.rehearsed.of(migration, &layout)?;
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
    let planned = nodes::planned(&node, args.nodes);
    let (own, others) = planned.split_first().context("there is no node")?;
    // Pods of all nodes are reached through this process.
    let mut hosts = vec![host.clone()];
    for (name, _) in others {
        crate::machine::check_node_name(name).map_err(|sentence| anyhow!("node {name}: {sentence}"))?;
        hosts.push(Arc::new(Host::new(layout.further(name)?.processes())?));
    }

    let started: Arc<OnceLock<Arc<Manager>>> = Arc::default();
    let measures: Arc<OnceLock<VolumeStats>> = Arc::default();
    let server = ApiServer::open(Config {
        data_dir: layout.api(),
        exec: Some(Arc::new(exec::ProcessExec::new(hosts.clone()))),
        logs: Some(Arc::new(logs::ProcessLogs::new(hosts))),
        extra: routes::router(started.clone())
            .merge(routes::metrics(started.clone(), None))
            .merge(stats::router(measures.clone())),
        audit_log: args.audit_log.clone(),
        tolerance: args.tolerance.seconds(),
        ..Config::default()
    })?;
    server.write_kubeconfig(&layout.kubeconfig(), port)?;
    let kube = Kube::in_process(server.service_as("system:longshore"));
    bootstrap::objects(&kube).await?;

    let stop = Arc::new(Notify::new());
    let (serves, stops) = (server.clone(), wait_for(stop.clone()));
    let mut serving = Some(tokio::spawn(async move {
        serves.serve_tls(listener, stops).await;
        Ok(())
    }));
    let manager =
        Manager::new(kube.clone(), kube, Arc::default(), Some(machine::workers_for_controllers(host.clone())));
    let _ = started.set(manager.clone());
    let plugin = rehearsal.as_ref().map(|rehearsal| rehearsal.plugin);
    let binding = rules_binding::Local { tells_use: args.claim_usage, migration, plugin };
    let told = ClusterSettings {
        binding,
        attaching: rules_attachdetach::Local { force_after: args.force_detach_after, migration },
    };
    controllers::add(&manager, &ClusterController::ALL.into(), None, told);
    let handed_on = rehearsal.as_ref().map(driver::Rehearsal::flag);
    let told = NodeSettings { lease_seconds: args.node_lease_duration, migration, rehearsal: rehearsal.clone() };
    let agent = NodeAgent::start(&manager, &host, &layout, &node, told)?;
    if let Some(rehearsal) = rehearsal {
        rehearsal.control(&manager, None, migration);
    }
    let _ = measures.set(VolumeStats::new(manager.clone(), agent.node.clone(), &node));
    let mut roles = vec![Role::Provisioner, Role::Attacher, Role::Resizer];
    roles.retain(|role| !left_out(&args.without, *role));
    let mut registered = Registered::new(manager.clone(), roles, args.gates.flags())?;
    // Claims for the reference driver say why they wait while it is away.
    registered.expect(DRIVER, &text(&layout.driver_socket()));
    let known = registered.known();
    let following = manager.keep("the watch for drivers", registered.follow(agent.registrar.clone()));
    let mut driving = None;
    if !args.without.contains(&Part::Driver) {
        let shutdown = wait_for(stop.clone());
        let setup = driver::Setup::beside(&layout, node.clone()).among(own.1.clone(), others.iter().cloned().collect());
        driving = Some(tokio::spawn(driver::serve(setup, host, shutdown)));
        tokio::select! {
            () = is_known(known, DRIVER) => {}
            () = tokio::time::sleep(PATIENCE) => tracing::warn!("the driver is not registered yet; `longshore explain` says why claims wait"),
            why = ended("the driver", &mut driving) => return Err(why),
        }
    }
    let further = nodes::Further::start(&layout, others, driving.is_some(), handed_on, &args)?;
    welcome::print(&args, &layout, port, began.elapsed());

    // Without either there is nothing to serve: whoever started us may start us again, and everything carries on.
    let outcome = tokio::select! {
        () = signalled => Ok(()),
        why = ended("the API server", &mut serving) => Err(why),
        why = ended("the driver", &mut driving) => Err(why),
    };
    further.stop().await;
    following.abort();
    manager.stop().await;
    stop.notify_waiters();
    for task in [serving, driving].into_iter().flatten() {
        let _ = task.await;
    }
    server.close();
    if args.output == Output::Text {
        welcome::say_what_stays(&layout);
    }
    outcome
}

/// Why a part ended by itself, with or without an error. Ends with the part, which is gone then; never if there is none.
async fn ended(what: &str, part: &mut Option<JoinHandle<Result<()>>>) -> Error {
    let Some(task) = part else { return std::future::pending().await };
    let joined = task.await;
    *part = None;
    match joined {
        Ok(Ok(())) => anyhow!("{what} has ended; start again, everything carries on, and report this as a defect"),
        Ok(Err(error)) => error,
        Err(error) => {
            anyhow!("{what} failed; start again, everything carries on, and report this as a defect: {error}")
        }
    }
}

/// Whether a role is left to another process.
fn left_out(without: &[Part], role: Role) -> bool {
    match role {
        Role::Provisioner => without.contains(&Part::Provisioner),
        Role::Attacher => without.contains(&Part::Attacher),
        // Sidecars that make volumes grow them too.
        Role::Resizer => without.contains(&Part::Provisioner),
        Role::Registrar | Role::Liveness => true,
    }
}

/// Returns when a driver is registered and its controllers are at work.
async fn is_known(mut known: watch::Receiver<BTreeSet<String>>, driver: &str) {
    let _ = known.wait_for(|known| known.contains(driver)).await;
}

async fn wait_for(stop: Arc<Notify>) {
    stop.notified().await;
}

/// The user wants us to stop.
pub async fn signalled() -> Result<()> {
    signals()?.await;
    Ok(())
}

/// Takes signals from now on; the future ends when the user wants us to stop, also if that was before it is awaited.
fn signals() -> Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_part_that_ends_by_itself_says_why_and_is_not_waited_for_again() {
        let part = |outcome: Result<()>| Some(tokio::spawn(async { outcome }));
        let mut driver = part(Err(anyhow!("the socket is gone")));
        assert_eq!(ended("the driver", &mut driver).await.to_string(), "the socket is gone");
        assert!(driver.is_none());
        let silent = ended("the API server", &mut part(Ok(()))).await.to_string();
        assert!(silent.starts_with("the API server has ended; start again"), "{silent}");
        let panicked = ended("the driver", &mut Some(tokio::spawn(async { panic!("boom") }))).await.to_string();
        assert!(panicked.starts_with("the driver failed; start again"), "{panicked}");
        let none = tokio::time::timeout(Duration::from_millis(1), ended("the driver", &mut None)).await;
        assert!(none.is_err(), "a driver that is left out cannot end");
    }
}
