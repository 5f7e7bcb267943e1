//! `longshore controllers`: what a cluster's control plane does for volumes, and the sidecars' part for some drivers.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use api::ObjectKey;
use control::LeaseConfig;
use io_kube::LeaderElector;
use io_run::{Leadership, Manager, Observer};
use rules_attachdetach::{Action, AttachDetach};
use rules_binding::{AttributesProtection, Binding};
use rules_scheduler::Scheduler;

use crate::args;
use crate::out;
use crate::registered::Serves;
use crate::sidecar::Role;

/// The group of the controllers that work for no driver in particular, and their Lease.
pub const CLUSTER: &str = "longshore-controllers";

/// A controller that works for no driver in particular.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClusterController {
    /// Claims and volumes: match, bind, protect, release.
    Binding,
    /// Which attachments should exist.
    AttachDetach,
    /// Picks a node for a pod.
    Scheduler,
}

impl ClusterController {
    /// All of them.
    pub const ALL: [ClusterController; 3] =
        [ClusterController::Binding, ClusterController::AttachDetach, ClusterController::Scheduler];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ClusterController::Binding => "binding",
            ClusterController::AttachDetach => "attachdetach",
            ClusterController::Scheduler => "scheduler",
        }
    }

    /// The controllers that a list names, read as kube-controller-manager reads its own: `*` is all, `-name` leaves one
    /// out. An error is a sentence.
    pub fn named(list: &[String]) -> Result<BTreeSet<ClusterController>, String> {
        let mut chosen = BTreeSet::new();
        let mut without = BTreeSet::new();
        for word in list.iter().filter(|word| !word.is_empty()) {
            if word == "*" {
                chosen.extend(ClusterController::ALL);
                continue;
            }
            let name = word.strip_prefix('-').unwrap_or(word);
            let Some(one) = ClusterController::ALL.into_iter().find(|one| one.name() == name) else {
                let known = ClusterController::ALL.map(ClusterController::name).join(", ");
                return Err(format!("there is no controller {name}; there are {known}, and * for all of them"));
            };
            if word.starts_with('-') {
                without.insert(one)
            } else {
                chosen.insert(one)
            };
        }
        Ok(chosen.difference(&without).copied().collect())
    }
}

/// Adds them to a process.
pub fn add(
    manager: &Manager,
    chosen: &BTreeSet<ClusterController>,
    lease: Option<&Leadership>,
    binding: rules_binding::Local,
) {
    for one in chosen {
        match one {
            ClusterController::Binding => {
                drop(manager.add::<Binding>(CLUSTER, binding).lease(lease).start());
                drop(manager.add::<AttributesProtection>(CLUSTER, ()).lease(lease).start());
            }
            ClusterController::AttachDetach => {
                drop(manager.add::<AttachDetach>(CLUSTER, ()).lease(lease).observe(count_forced(manager)).start());
            }
            ClusterController::Scheduler => drop(manager.add::<Scheduler>(CLUSTER, ()).lease(lease).start()),
        }
    }
}

/// Counts the volumes that are taken from nodes without their word (AD-23).
fn count_forced(manager: &Manager) -> Observer<AttachDetach> {
    let metrics = manager.metrics().clone();
    Box::new(move |_, action, acted| match action {
        Action::ForceRelease { out_of_service, .. } if !acted.failed => metrics.force_detached(*out_of_service),
        _ => {}
    })
}

/// Runs until told to stop.
pub async fn command(args: args::Controllers) -> Result<()> {
    let chosen = ClusterController::named(&args.controllers).map_err(|sentence| anyhow!(sentence))?;
    if chosen.is_empty() && args.csi_address.is_empty() {
        return Err(anyhow!("--controllers names none, and no --csi-address is given: there is nothing to do"));
    }
    let sockets = args.csi_address.iter().map(|given| socket(given)).collect::<Result<Vec<String>>>()?;
    let migration = args.gates.migration().map_err(|sentence| anyhow!(sentence))?;
    let manager = super::manager(args.kubeconfig.as_deref(), None).await?;
    let namespace = args.leader_elect_resource_namespace;
    let lease = args.leader_elect.then(|| elect(&manager, &namespace)).transpose()?;
    let binding = rules_binding::Local { tells_use: args.claim_usage, migration };
    add(&manager, &chosen, lease.as_ref(), binding);
    let roles = vec![Role::Provisioner, Role::Attacher, Role::Resizer];
    let flags =
        [format!("--leader-election={}", args.leader_elect), format!("--leader-election-namespace={namespace}")];
    let serves = Arc::new(Serves::new(manager.clone(), roles, flags.into_iter().chain(args.gates.flags()).collect())?);
    for socket in sockets {
        tokio::spawn(serves.clone().serve_socket(socket));
    }
    let names: Vec<&str> = chosen.iter().map(|one| one.name()).collect();
    out::say(&format!("controllers: {}. Ctrl-C stops them.", names.join(", ")));
    super::until_told(manager, args.http_endpoint.as_deref(), crate::up::signalled()).await
}

/// The path of a socket.
fn socket(given: &str) -> Result<String> {
    let path = given.strip_prefix("unix://").unwrap_or(given);
    if !path.starts_with('/') {
        return Err(anyhow!("--csi-address {given} is no path of a socket; write --csi-address=/run/csi/socket"));
    }
    Ok(path.into())
}

/// Takes part in the election of the controllers that work for no driver in particular.
fn elect(manager: &Manager, namespace: &str) -> Result<Leadership> {
    let identity = format!("{}-{:x}", crate::machine::host_name()?, manager.clock().now().0);
    let config = LeaseConfig { identity, duration: 15_000, renew: 10_000, retry: 2_000 };
    let lease = ObjectKey::new(namespace, CLUSTER);
    Ok(manager.elect(CLUSTER, LeaderElector { lease, labels: Default::default(), config }))
}
