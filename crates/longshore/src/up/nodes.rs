//! Further nodes of this machine: each is a `longshore node` of its own, with its own mounts, sockets and processes,
//! so that it can be stopped, killed and started again like a machine. The volumes are the first node's: the driver
//! attaches each to one node at a time.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::args::Up;
use crate::layout::Layout;

/// How many nodes share a zone.
const ZONE_SIZE: u8 = 2;
/// How long a further node may take to end: it waits for calls that are under way.
const PATIENCE: Duration = Duration::from_secs(130);

/// The nodes of this machine and their zones, the first one first.
pub fn planned(first: &str, number: u8) -> Vec<(String, String)> {
    let zone = |at: u8| format!("zone-{}", char::from(b'a' + at / ZONE_SIZE));
    let name = |at: u8| if at == 0 { first.to_string() } else { format!("{first}-{}", at + 1) };
    if number < 2 { vec![(name(0), String::new())] } else { (0..number).map(|at| (name(at), zone(at))).collect() }
}

/// Processes of further nodes, which end with this one.
pub struct Further {
    running: BTreeMap<String, Child>,
}

impl Further {
    /// Starts them. `driver` says that they have the reference driver, `rehearsal` is the flag for a plugin.
    pub fn start(
        layout: &Layout,
        nodes: &[(String, String)],
        driver: bool,
        rehearsal: Option<String>,
        args: &Up,
    ) -> Result<Further> {
        let program = std::env::current_exe().context("cannot find the program that runs")?;
        let mut running = BTreeMap::new();
        for (name, zone) in nodes {
            let own = layout.further(name)?;
            std::fs::create_dir_all(own.root()).with_context(|| format!("cannot create {}", own.root().display()))?;
            let mut command = Command::new(&program);
            command.args(["node", "--until-input-ends", "--node-name", name]);
            command.arg("--data-dir").arg(own.root()).arg("--kubeconfig").arg(layout.kubeconfig());
            if driver {
                command.arg("--driver-state").arg(layout.driver()).args(["--zone", zone]);
            }
            command.args(args.gates.flags()).args(&rehearsal);
            command.arg("--node-lease-duration").arg(args.node_lease_duration.to_string());
            command.args((0..args.verbose).map(|_| "-v"));
            // Whatever way this process ends, its end of the pipe is closed, and they end too.
            let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
            running.insert(name.clone(), child.with_context(|| format!("cannot start node {name}"))?);
        }
        Ok(Further { running })
    }

    /// Tells them to end, and waits for it.
    pub async fn stop(self) {
        for (name, mut child) in self.running {
            drop(child.stdin.take());
            let ending = tokio::task::spawn_blocking(move || child.wait());
            if tokio::time::timeout(PATIENCE, ending).await.is_err() {
                tracing::warn!("node {name} does not end; look at what it waits for with `longshore status`");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_nodes_are_named_after_the_first_and_two_share_a_zone() {
        let named = |nodes: &[(&str, &str)]| -> Vec<(String, String)> {
            nodes.iter().map(|(name, zone)| (name.to_string(), zone.to_string())).collect()
        };
        assert_eq!(planned("vm", 1), named(&[("vm", "")]));
        assert_eq!(planned("vm", 3), named(&[("vm", "zone-a"), ("vm-2", "zone-a"), ("vm-3", "zone-b")]));
        assert_eq!(planned("vm", 26).last(), named(&[("vm-26", "zone-m")]).last());
    }
}
