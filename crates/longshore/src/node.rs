//! The node agent on this machine: the registrar and the node's controller, and how what they know outside the API
//! stays true: records and mounts at start, sockets and processes as they come and go.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use api::{Kind, SystemInfo};
use futures::StreamExt;
use inotify::{EventMask, Inotify, WatchMask};
use io_host::{Host, Watch};
use io_kube::Scope;
use io_run::{Controller, Drivers, Manager};
use rules_node::{DriverFacts, Local as NodeLocal, Node as NodeRules};
use rules_registrar::{Local as RegistrarLocal, MachineFacts, NODE_LEASES, Registrar};
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
        let registered = RegistrarLocal::new(name, incarnation).on(machine_facts(name));
        let lease = Scope { namespace: NODE_LEASES.into(), name: name.into(), ..Scope::default() };
        let registrar = manager.add::<Registrar>(GROUP, registered).within(Kind::Lease, lease).start();
        let registry = layout.registry();
        std::fs::create_dir_all(&registry).with_context(|| format!("cannot create {}", registry.display()))?;
        // A driver registers once it can be called: nobody should go on waiting because of what failed before.
        let waiting = node.clone();
        follow_sockets(&registry, registrar.clone(), move || waiting.start_over())?;
        tokio::spawn(follow_drivers(manager.drivers().clone(), registrar.clone(), node.clone()));
        Ok(NodeAgent { _processes: follow_processes(host, node)?, registrar })
    }
}

/// What the Node object says of this machine.
fn machine_facts(node: &str) -> MachineFacts {
    let seen = io_host::look_at_machine();
    let version = env!("CARGO_PKG_VERSION");
    let info = SystemInfo {
        machine_id: seen.machine_id,
        system_uuid: seen.system_uuid,
        boot_id: seen.boot_id,
        kernel_version: seen.kernel,
        os_image: seen.os_image,
        container_runtime_version: format!("longshore://{version}"),
        kubelet_version: format!("v{version}+longshore"),
        kube_proxy_version: String::new(),
        operating_system: std::env::consts::OS.into(),
        architecture: architecture(std::env::consts::ARCH).into(),
    };
    MachineFacts::of(node, info, seen.address.map(|address| address.to_string()), seen.processors, seen.memory)
}

/// What Go calls an architecture.
fn architecture(rust: &str) -> &str {
    match rust {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
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
    let there = sockets_in(folder)?;
    registrar.update_local(|local| local.found(&there));
    let folder = folder.to_path_buf();
    tokio::spawn(async move {
        while let Some(event) = news.next().await {
            // The kernel had more news than it keeps: some are lost, so we look for ourselves.
            let lost = event.as_ref().map_or(true, |event| event.mask.contains(EventMask::Q_OVERFLOW));
            if lost && let Ok(there) = sockets_in(&folder) {
                registrar.update_local(|local| local.found(&there));
                came();
            }
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

fn sockets_in(folder: &Path) -> std::io::Result<BTreeSet<String>> {
    let paths = io_host::list_dir(folder)?.into_iter().map(|name| text(&folder.join(name)));
    Ok(paths.filter(|path| is_socket(path)).collect())
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
