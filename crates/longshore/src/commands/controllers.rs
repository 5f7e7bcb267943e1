//! `longshore controllers`: what a cluster's control plane does for volumes, and the sidecars' part for some drivers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use api::names::NODE_LEASES;
use api::{Kind, ObjectKey};
use control::{LeaseConfig, Timestamp};
use io_kube::{LeaderElector, Scope};
use io_run::{Clock, Leadership, Manager, Observer};
use rules_attachdetach::{Action, AttachDetach};
use rules_binding::{AttributesProtection, Binding, EndedWait, WaitTally};
use rules_nodelifecycle::NodeLifecycle;
use rules_scheduler::Scheduler;

use crate::args;
use crate::election::LeaderElection;
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
    /// Which nodes live, and what becomes of the pods of those that do not.
    NodeLifecycle,
}

impl ClusterController {
    /// All of them.
    pub const ALL: [ClusterController; 4] = [
        ClusterController::Binding,
        ClusterController::AttachDetach,
        ClusterController::Scheduler,
        ClusterController::NodeLifecycle,
    ];

    /// Whether `*` means it, too. Every cluster has one that ends pods; two of them would only be quicker.
    fn is_usual(self) -> bool {
        self != ClusterController::NodeLifecycle
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            ClusterController::Binding => "binding",
            ClusterController::AttachDetach => "attachdetach",
            ClusterController::Scheduler => "scheduler",
            ClusterController::NodeLifecycle => "nodelifecycle",
        }
    }

    /// The controllers that a list names, read as kube-controller-manager reads its own: `*` is all that run by
    /// default, `-name` leaves one out. An error is a sentence.
    pub fn named(list: &[String]) -> Result<BTreeSet<ClusterController>, String> {
        let mut chosen = BTreeSet::new();
        let mut without = BTreeSet::new();
        for word in list.iter().filter(|word| !word.is_empty()) {
            if word == "*" {
                chosen.extend(ClusterController::ALL.into_iter().filter(|one| one.is_usual()));
                continue;
            }
            let name = word.strip_prefix('-').unwrap_or(word);
            let Some(one) = ClusterController::ALL.into_iter().find(|one| one.name() == name) else {
                let known = ClusterController::ALL.map(ClusterController::name).join(", ");
                return Err(format!(
                    "there is no controller {name}; there are {known}, and * for all but nodelifecycle"
                ));
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

/// What they are told at the start.
#[derive(Clone, Copy)]
pub struct ClusterSettings {
    /// Those that bind.
    pub binding: rules_binding::Local,
    /// Those that attach.
    pub attaching: rules_attachdetach::Local,
}

/// Adds them to a process.
pub fn add(manager: &Manager, chosen: &BTreeSet<ClusterController>, lease: Option<&Leadership>, told: ClusterSettings) {
    for one in chosen {
        match one {
            ClusterController::Binding => {
                drop(manager.add::<Binding>(CLUSTER, told.binding).lease(lease).observe(count_waits(manager)).start());
                drop(manager.add::<AttributesProtection>(CLUSTER, ()).lease(lease).start());
            }
            ClusterController::AttachDetach => {
                let attaching = manager.add::<AttachDetach>(CLUSTER, told.attaching);
                drop(attaching.lease(lease).observe(count_forced(manager)).start());
            }
            ClusterController::Scheduler => drop(manager.add::<Scheduler>(CLUSTER, ()).lease(lease).start()),
            ClusterController::NodeLifecycle => {
                let leases = Scope { namespace: NODE_LEASES.into(), ..Scope::default() };
                let lifecycle = manager.add::<NodeLifecycle>(CLUSTER, ()).within(Kind::Lease, leases);
                drop(lifecycle.lease(lease).start());
            }
        }
    }
}

/// Counts how long claims wait for volumes and volumes for their end (PV-46), and the classes that claims get late
/// (PV-17).
fn count_waits(manager: &Manager) -> Observer<Binding> {
    let metrics = manager.metrics().clone();
    let (tally, started) = (Mutex::new(WaitTally::default()), Instant::now());
    let tick = |since: Duration| Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
    Box::new(move |_, action, acted| {
        if let rules_binding::Action::SetClass { .. } = action {
            metrics.class_given(acted.failed);
        }
        let now = started.elapsed();
        let times = (tick(now.saturating_sub(acted.took)), tick(now));
        let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(EndedWait { operation, plugin, took }) = tally.ended(times, action, acted.failed) {
            metrics.waited(operation, &plugin, took.map(Duration::from_millis));
        }
    })
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
    let rehearsal = args.rehearsed.within(migration, args.data_dir)?;
    let candidate = args.leader_elect.then(|| candidate(args.election)).transpose()?;
    let manager = super::manager(args.kubeconfig.as_deref(), None).await?;
    crate::gates::tell_migrated(&manager, None);
    let namespace = args.leader_elect_resource_namespace;
    let lease = candidate.map(|config| elect(&manager, &namespace, config));
    let plugin = rehearsal.as_ref().map(|rehearsal| rehearsal.plugin);
    let binding = rules_binding::Local { tells_use: args.claim_usage, migration, plugin };
    let told = ClusterSettings {
        binding,
        attaching: rules_attachdetach::Local { force_after: args.force_detach_after, migration },
    };
    add(&manager, &chosen, lease.as_ref(), told);
    if let Some(rehearsal) = rehearsal {
        rehearsal.control_alone(&manager, lease.as_ref(), migration)?;
    }
    let roles = vec![Role::Provisioner, Role::Attacher, Role::Resizer];
    let flags =
        [format!("--leader-election={}", args.leader_elect), format!("--leader-election-namespace={namespace}")];
    let flags = flags.into_iter().chain(args.election.flags()).chain(args.gates.flags()).collect();
    let serves = Arc::new(Serves::new(manager.clone(), roles, flags)?);
    for socket in sockets {
        let what = format!("the controllers of the driver at {socket}");
        manager.keep(&what, serves.clone().serve_socket(socket));
    }
    let names: Vec<&str> = chosen.iter().map(|one| one.name()).collect();
    out::say(&format!("controllers: {}. Ctrl-C stops them.", names.join(", ")));
    super::until_told(manager, args.http_endpoint.as_deref(), None, crate::up::signalled()).await
}

/// The path of a socket.
fn socket(given: &str) -> Result<String> {
    let path = given.strip_prefix("unix://").unwrap_or(given);
    if !path.starts_with('/') {
        return Err(anyhow!("--csi-address {given} is no path of a socket; write --csi-address=/run/csi/socket"));
    }
    Ok(path.into())
}

/// This process as a candidate, under a name that no other one has.
fn candidate(times: LeaderElection) -> Result<LeaseConfig> {
    let identity = format!("{}-{:x}", crate::machine::host_name()?, Clock::default().now().0);
    times.config(identity).map_err(|sentence| anyhow!(sentence))
}

/// Takes part in the election of the controllers that work for no driver in particular.
fn elect(manager: &Manager, namespace: &str, config: LeaseConfig) -> Leadership {
    let lease = ObjectKey::new(namespace, CLUSTER);
    manager.elect(CLUSTER, LeaderElector { lease, labels: Default::default(), config })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(list: &[&str]) -> Result<Vec<&'static str>, String> {
        let list: Vec<String> = list.iter().map(|word| word.to_string()).collect();
        Ok(ClusterController::named(&list)?.into_iter().map(ClusterController::name).collect())
    }

    // Two of them would end pods of a cluster that has its own.
    #[test]
    fn nodes_are_looked_after_only_where_that_is_asked_for_by_name() {
        let usual = ["binding", "attachdetach", "scheduler"];
        assert_eq!(named(&["*"]).unwrap(), usual);
        assert_eq!(named(&["*", "-scheduler"]).unwrap(), ["binding", "attachdetach"]);
        assert_eq!(named(&["nodelifecycle"]).unwrap(), ["nodelifecycle"]);
        assert_eq!(named(&["*", "nodelifecycle"]).unwrap(), [&usual[..], &["nodelifecycle"]].concat());
        assert_eq!(named(&["*", "nodelifecycle", "-nodelifecycle"]).unwrap(), usual);
        assert!(named(&["teapot"]).unwrap_err().contains("there is no controller teapot"));
    }
}
