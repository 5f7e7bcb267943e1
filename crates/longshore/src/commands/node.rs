//! `longshore node`: the node agent on this machine, for any API server.

use std::fs::{File, TryLockError};
use std::io::Read as _;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use io_host::Host;
use io_run::machine;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::args;
use crate::driver::{self, Setup};
use crate::layout::Layout;
use crate::node::{NodeAgent, NodeSettings};
use crate::out;
use crate::stats::VolumeStats;

/// Runs until told to stop. Pods go on without it.
pub async fn command(args: args::RunNode) -> Result<()> {
    let migration = args.gates.migration().map_err(|sentence| anyhow!(sentence))?;
    let layout = Layout::new(args.data_dir)?;
    let rehearsal = args.rehearsed.of(migration, &layout)?;
    let name = match args.node_name {
        Some(name) => name,
        None => crate::machine::host_name()?,
    };
    let host = Arc::new(Host::new(layout.processes()).with_context(|| {
        format!("cannot use {}; choose a directory you may write to with --data-dir", layout.processes().display())
    })?);
    let manager =
        super::manager(args.kubeconfig.as_deref(), Some(machine::workers_for_controllers(host.clone()))).await?;
    let _alone = lock(&layout)?;
    let told = NodeSettings { lease_seconds: args.node_lease_duration, migration, rehearsal };
    let agent = NodeAgent::start(&manager, &host, &layout, &name, told)?;
    let (stopping, mut stopped) = watch::channel(false);
    let driving = args.driver_state.map(|state| {
        let setup = Setup::further(&layout, name.clone(), &state, args.zone.unwrap_or_default());
        let stop = async move {
            let _ = stopped.wait_for(|stop| *stop).await;
        };
        tokio::spawn(driver::serve(setup, host, stop))
    });
    out::say(&format!("node {name}; drivers register in {}. Ctrl-C stops it.", layout.registry().display()));
    let told = async {
        let mut driving = driving;
        tokio::select! {
            told = crate::up::signalled() => told?,
            () = input_ends(), if args.until_input_ends => {}
            // A driver that ends by itself could not begin.
            ended = end_of(&mut driving) => ended?,
        }
        Ok(driving)
    };
    let volumes = VolumeStats::new(manager.clone(), agent.node.clone(), &name);
    let driving = super::until_told(manager, args.http_endpoint.as_deref(), Some(volumes), told).await?;
    let _ = stopping.send(true);
    if let Some(driving) = driving.filter(|task| !task.is_finished()) {
        driving.await??;
    }
    Ok(())
}

/// Ends when the driver does, if there is one.
async fn end_of(driving: &mut Option<JoinHandle<Result<()>>>) -> Result<()> {
    match driving {
        Some(task) => task.await?,
        None => std::future::pending().await,
    }
}

/// One agent works in a directory, and `longshore down` finds it by this lock.
fn lock(layout: &Layout) -> Result<File> {
    let path = layout.agent_lock();
    std::fs::create_dir_all(layout.node()).with_context(|| format!("cannot create {}", layout.node().display()))?;
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            bail!(
                "another node agent works in {}; stop it first, or choose another --data-dir",
                layout.node().display()
            )
        }
        Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("cannot lock {}", path.display())),
    }
}

/// In a thread that nobody waits for: reading the input cannot be given up.
async fn input_ends() {
    let (tell, ended) = oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        let _ = tell.send(());
    });
    let _ = ended.await;
}
