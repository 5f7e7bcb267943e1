//! The node agent on this machine: the registrar and the node's controller, and how what they know outside the API
//! stays true: records and mounts at start, sockets and processes as they come and go.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use api::{Kind, SystemInfo};
use csi::NodeRpc;
use io_host::{Host, Watch};
use io_kube::Scope;
use io_run::{Controller, Drivers, Manager};
use rules_node::{DriverFacts, Local as NodeLocal, Node as NodeRules};
use rules_registrar::{Local as RegistrarLocal, MachineFacts, NODE_LEASES, RegisteredDriver, Registrar};
use rules_translate::{Migration, Plugin};
use tokio::sync::mpsc;

use crate::driver::Rehearsal;
use crate::layout::{Layout, text};
use crate::mounts;
use crate::pod_dirs;
use crate::sockets;

/// The group of the node's controllers.
const GROUP: &str = "node";

/// The node agent at work, for as long as it is kept.
pub struct NodeAgent {
    /// Speaks with drivers that register.
    pub registrar: Arc<Controller<Registrar>>,
    /// Mounts volumes and runs pods.
    pub node: Arc<Controller<NodeRules>>,
    _processes: Watch,
}

/// What the node is told.
pub struct NodeSettings {
    /// For how long after each sign of life others may believe that it lives.
    pub lease_seconds: u32,
    /// Which plugins it leaves to their drivers.
    pub migration: Migration,
    /// The in-tree plugin that is there.
    pub rehearsal: Option<Rehearsal>,
}

impl NodeAgent {
    /// Adds the node's controllers. They work below the layout's node directory, laid out as a kubelet's.
    pub fn start(
        manager: &Arc<Manager>,
        host: &Arc<Host>,
        layout: &Layout,
        name: &str,
        told: NodeSettings,
    ) -> Result<NodeAgent> {
        let NodeSettings { lease_seconds, migration, rehearsal } = told;
        let incarnation = format!("{:x}", manager.clock().now().0);
        let mut local = found(host, layout, name, &incarnation)?;
        local.migration = migration;
        if let Some(rehearsal) = rehearsal {
            manager.drivers().in_tree(rehearsal.plugin.name(), rehearsal.start(name, host.clone())?);
            let facts = DriverFacts::new([NodeRpc::StageUnstageVolume, NodeRpc::ExpandVolume]);
            local.drivers.insert(rehearsal.plugin.name().into(), facts);
        }
        let node = manager.add::<NodeRules>(GROUP, local).start();
        crate::gates::tell_migrated(manager, Some(node.clone()));
        let mut registered = RegistrarLocal::new(name, incarnation).on(machine_facts(name));
        registered.migrated_plugins = migration.annotation();
        registered.looking_since = manager.clock().now();
        registered.lease_seconds = Some(lease_seconds);
        let lease = Scope { namespace: NODE_LEASES.into(), name: name.into(), ..Scope::default() };
        let registrar = manager.add::<Registrar>(GROUP, registered).within(Kind::Lease, lease).start();
        let registry = layout.registry();
        std::fs::create_dir_all(&registry).with_context(|| format!("cannot create {}", registry.display()))?;
        // A driver registers once it can be called: nobody should go on waiting because of what failed before.
        let waiting = node.clone();
        let clock = manager.clone();
        let now = move || clock.clock().now();
        let listening = sockets::follow(&registry, registrar.clone(), now, move || waiting.start_over())?;
        manager.keep("the watch of registration sockets", listening);
        let following = follow_drivers(manager.drivers().clone(), registrar.clone(), node.clone());
        manager.keep("the watch of registered drivers", following);
        manager.keep("the watch of mounts", mounts::follow(&text(&layout.node()), node.clone())?);
        manager.keep("the look at directories of pods", pod_dirs::follow(manager.clone(), node.clone()));
        let (processes, following) = follow_processes(host, node.clone())?;
        manager.keep("the watch of processes", following);
        Ok(NodeAgent { _processes: processes, registrar, node })
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
    local.pod_dirs = pod_dirs::find(&local.root, |_| true);
    for failed in host.settle().context("cannot read the state of processes")? {
        tracing::warn!("what is left of a process that never began stays: {failed}");
    }
    local.processes = host.processes().context("cannot read the state of processes")?;
    Ok(local)
}

/// Loads every record below the node's directory, and names those that cannot be used.
fn load_records(local: &mut NodeLocal) -> Result<()> {
    let drivers = PathBuf::from(rules_node::volumes_dir(&local.root));
    let mut dirs: Vec<PathBuf> = io_host::list_dir(&drivers)?.into_iter().map(|driver| drivers.join(driver)).collect();
    dirs.extend(Plugin::ALL.map(|plugin| PathBuf::from(rules_node::plugin_dir(&local.root, plugin))));
    for dir in dirs {
        for volume in io_host::list_dir(&dir)? {
            let path = dir.join(volume).join(rules_node::RECORD_FILE);
            let Some(read) = io_host::read_file(&path).transpose() else { continue };
            if let Err(error) = local.load_record(&text(&path), read.map_err(|error| error.to_string())) {
                tracing::warn!("{} is left alone with its volume: {error}", path.display());
            }
        }
    }
    Ok(())
}

/// Tells the node's rules of processes that start and end, for as long as the watch is kept and the future is polled.
fn follow_processes(
    host: &Host,
    node: Arc<Controller<NodeRules>>,
) -> Result<(Watch, impl Future<Output = ()> + Send + 'static)> {
    let (send, mut heard) = mpsc::unbounded_channel();
    let watch = host.watch_processes(move |name, state| {
        // The other end goes only with the process.
        let _ = send.send((name.to_string(), state));
    })?;
    let following = async move {
        while let Some((name, state)) = heard.recv().await {
            node.update_local(|local| {
                local.processes.insert(name, state);
            });
        }
    };
    Ok((watch, following))
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
            let facts = registered.iter().map(|(name, driver)| {
                let RegisteredDriver { capabilities, wants_pod, .. } = *driver;
                (name.clone(), DriverFacts { capabilities, wants_pod })
            });
            node.update_local(|local| {
                // A plugin registers with nobody.
                local.drivers.retain(|name, _| Plugin::named(name).is_some());
                local.drivers.extend(facts);
            });
            known = registered;
        }
        if learned.changed().await.is_err() {
            return;
        }
    }
}
