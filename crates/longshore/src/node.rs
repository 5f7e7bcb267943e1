//! The node agent on this machine: the registrar and the node's controller, and how what they know outside the API
//! stays true: records and mounts at start, sockets and processes as they come and go.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use futures::StreamExt;
use inotify::{EventMask, Inotify, WatchMask};
use io_host::{Host, Watch};
use io_run::{Controller, Drivers, Manager};
use rules_node::{DriverFacts, Local as NodeLocal, Node as NodeRules};
use rules_registrar::{Local as RegistrarLocal, Registrar};
use tokio::sync::mpsc;

use crate::layout::{Layout, text};

/// The group of the node's controllers.
const GROUP: &str = "node";

/// The node agent at work, for as long as it is kept.
pub struct NodeAgent {
    /// Speaks with drivers that register.
    pub registrar: Arc<Controller<Registrar>>,
    _processes: Watch,
}

impl NodeAgent {
    /// Adds the node's controllers. They work below the layout's node directory, laid out as a kubelet's.
    pub fn start(manager: &Manager, host: &Host, layout: &Layout, name: &str) -> Result<NodeAgent> {
        let incarnation = format!("{:x}", manager.clock().now().0);
        let local = found(host, layout, name, &incarnation)?;
        let node = manager.add::<NodeRules>(GROUP, local).start();
        let registrar = manager.add::<Registrar>(GROUP, RegistrarLocal::new(name, incarnation)).start();
        let registry = layout.registry();
        std::fs::create_dir_all(&registry).with_context(|| format!("cannot create {}", registry.display()))?;
        // A driver registers once it can be called: nobody should go on waiting because of what failed before.
        let waiting = node.clone();
        follow_sockets(&registry, registrar.clone(), move || waiting.start_over())?;
        tokio::spawn(follow_drivers(manager.drivers().clone(), registrar.clone(), node.clone()));
        Ok(NodeAgent { _processes: follow_processes(host, node)?, registrar })
    }
}

/// What this machine knows at start: what may be mounted, and what runs.
fn found(host: &Host, layout: &Layout, node: &str, incarnation: &str) -> Result<NodeLocal> {
    let root = layout.node();
    let mut local = NodeLocal::new(node, incarnation, text(&root));
    load_records(&mut local)?;
    let mounted = io_host::mounts_beneath(&text(&root)).context("cannot read the mount table")?;
    local.mounts = mounted.into_iter().map(|mount| mount.target).collect();
    local.processes = host.processes().context("cannot read the state of processes")?;
    Ok(local)
}

/// Loads every record below the node's directory, and names those that cannot be used.
fn load_records(local: &mut NodeLocal) -> Result<()> {
    let drivers = PathBuf::from(rules_node::volumes_dir(&local.root));
    for driver in io_host::list_dir(&drivers)? {
        for volume in io_host::list_dir(&drivers.join(&driver))? {
            let path = drivers.join(&driver).join(volume).join(rules_node::RECORD_FILE);
            let Some(read) = io_host::read_file(&path).transpose() else { continue };
            if let Err(error) = local.load_record(&text(&path), read.map_err(|error| error.to_string())) {
                tracing::warn!("{} is left alone with its volume: {error}", path.display());
            }
        }
    }
    Ok(())
}

/// Tells the node's rules of processes that start and end, for as long as the watch is kept.
fn follow_processes(host: &Host, node: Arc<Controller<NodeRules>>) -> Result<Watch> {
    let (send, mut heard) = mpsc::unbounded_channel();
    let watch = host.watch_processes(move |name, state| {
        // The other end goes only with the process.
        let _ = send.send((name.to_string(), state));
    })?;
    tokio::spawn(async move {
        while let Some((name, state)) = heard.recv().await {
            node.update_local(|local| {
                local.processes.insert(name, state);
            });
        }
    });
    Ok(watch)
}

/// Tells the registrar's rules of registration sockets that come and go, and calls `came` for each that comes.
fn follow_sockets(
    folder: &Path,
    registrar: Arc<Controller<Registrar>>,
    came: impl Fn() + Send + 'static,
) -> Result<()> {
    let inotify = Inotify::init().context("cannot watch for drivers")?;
    let events = WatchMask::CREATE | WatchMask::MOVED_TO | WatchMask::DELETE | WatchMask::MOVED_FROM;
    // First listen, then look, so that no socket falls between.
    inotify.watches().add(folder, events).with_context(|| format!("cannot watch {}", folder.display()))?;
    let mut news = inotify.into_event_stream(vec![0; 4096])?;
    for name in io_host::list_dir(folder)? {
        let path = text(&folder.join(name));
        if is_socket(&path) {
            registrar.update_local(|local| local.seen(path));
        }
    }
    let folder = folder.to_path_buf();
    tokio::spawn(async move {
        while let Some(event) = news.next().await {
            let Ok(event) = event else { continue };
            let Some(name) = event.name else { continue };
            let path = text(&folder.join(name));
            if event.mask.intersects(EventMask::DELETE | EventMask::MOVED_FROM) {
                registrar.update_local(|local| local.gone(&path));
            } else if is_socket(&path) {
                registrar.update_local(|local| local.seen(path));
                came();
            }
        }
    });
    Ok(())
}

fn is_socket(path: &str) -> bool {
    use std::os::unix::fs::FileTypeExt;
    path.ends_with(".sock") && std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
}

/// Tells the hands where registered drivers are, and then the node's rules which there are.
async fn follow_drivers(
    drivers: Arc<Drivers>,
    registrar: Arc<Controller<Registrar>>,
    node: Arc<Controller<NodeRules>>,
) {
    let mut known = BTreeMap::new();
    let mut learned = registrar.learned();
    loop {
        let registered = registrar.look_local(|local| local.drivers());
        if registered != known {
            registered.iter().for_each(|(name, driver)| drop(drivers.named(name, &driver.socket)));
            let facts = registered.iter().map(|(name, driver)| (name.clone(), DriverFacts { stages: driver.stages }));
            node.update_local(|local| local.drivers = facts.collect());
            known = registered;
        }
        if learned.changed().await.is_err() {
            return;
        }
    }
}
