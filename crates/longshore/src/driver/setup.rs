//! What a driver is and where it listens, from the command line or beside `longshore up`.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};
use rules_driver::{Config, Kind, Services};

use super::in_place;
use crate::args;
use crate::layout::{DRIVER, Layout, text};

/// What all volumes together may promise. Images are thin: this bounds promises, not the disk.
const POOL_BYTES: u64 = 1 << 40;

/// Well below the time any caller waits, and long enough for a copy that shares its blocks.
const COPY_PATIENCE: Duration = Duration::from_secs(5);

/// Where a driver listens, and what it is.
pub struct Setup {
    pub config: Config,
    pub socket: PathBuf,
    /// Where it is offered to a node agent, if it is.
    pub registration: Option<PathBuf>,
    /// How long a caller waits for a snapshot before it is told that the copy goes on.
    pub copy_patience: Duration,
    /// How many bytes a second are copied, if not as many as can be.
    pub copy_rate: Option<NonZeroU64>,
    /// It speaks as the driver that has taken over an in-tree plugin.
    pub in_place: bool,
}

impl Setup {
    /// The driver of `longshore driver`.
    pub fn of(args: args::Driver) -> Result<Setup> {
        let layout = Layout::new(args.data_dir)?;
        let node_id = match args.node_id {
            Some(id) => id,
            None => crate::machine::host_name()?,
        };
        let name = args.in_place_of.map_or(DRIVER, |plugin| plugin.driver());
        let state_dir = match (args.state_dir, args.in_place_of) {
            // No socket is in it, so it may be as long as the kubelet's folders are.
            (Some(dir), _) => crate::layout::place(&dir)?,
            (None, None) => layout.driver(),
            (None, Some(_)) => layout.root().join(name),
        };
        let services = match (args.controller_only, args.node_only, args.no_controller) {
            (true, _, _) => Services::Controller,
            (_, true, _) => Services::Node,
            (_, _, true) => Services::NodeWithoutController,
            (false, false, false) => Services::All,
        };
        let config = Config {
            node_id,
            state_dir: text(&state_dir),
            services,
            without: args.without.into_iter().collect(),
            kind: if args.kind == "directory" { Kind::Directory } else { Kind::Image },
            filesystem: args.filesystem,
            pool_bytes: args.pool_bytes,
            max_volumes_per_node: args.max_volumes,
            peers: args.peer.into_iter().map(|node| (node, String::new())).collect(),
            ..usual(String::new(), String::new())
        };
        let config = match args.in_place_of {
            Some(plugin) => in_place::config(plugin, config),
            None => config,
        };
        let socket = args.endpoint.as_deref().map(endpoint).transpose()?;
        let socket = socket.unwrap_or_else(|| layout.socket_of(name));
        // A node agent talks to the node's service only.
        let registration = (!args.no_registration && config.hosts()).then(|| layout.registration_of(name));
        let copy_patience = args.copy_patience_millis.map_or(COPY_PATIENCE, Duration::from_millis);
        let (copy_rate, in_place) = (args.copy_bytes_per_second, args.in_place_of.is_some());
        Ok(Setup { config, socket, registration, copy_patience, copy_rate, in_place })
    }

    /// The driver of `longshore up`.
    pub fn beside(layout: &Layout, node: String) -> Setup {
        let config = usual(node, text(&layout.driver()));
        let registration = Some(layout.registration_socket());
        let (socket, copy_patience) = (layout.driver_socket(), COPY_PATIENCE);
        Setup { config, socket, registration, copy_patience, copy_rate: None, in_place: false }
    }
}

impl Setup {
    /// The driver on the first of several nodes of this machine: it makes volumes for all of them.
    pub fn among(self, zone: String, peers: BTreeMap<String, String>) -> Setup {
        Setup { config: Config { zone, peers, ..self.config }, ..self }
    }

    /// The node service of a further node, on the state of the first.
    pub fn further(layout: &Layout, node: String, state: &Path, zone: String) -> Setup {
        let setup = Setup::beside(layout, node);
        let config = Config { state_dir: text(state), services: Services::Node, zone, ..setup.config };
        Setup { config, ..setup }
    }
}

/// The reference driver as it is where nobody says otherwise.
pub fn usual(node_id: String, state_dir: String) -> Config {
    Config {
        name: DRIVER.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        node_id,
        state_dir,
        services: Services::All,
        without: Default::default(),
        kind: Kind::Image,
        filesystem: "ext4".into(),
        pool_bytes: POOL_BYTES,
        max_volumes_per_node: 0,
        zone: String::new(),
        peers: BTreeMap::new(),
    }
}

/// The path of a socket: `unix:///path`, `unix:/path` or `/path`.
fn endpoint(given: &str) -> Result<PathBuf> {
    let path = given.strip_prefix("unix://").or_else(|| given.strip_prefix("unix:")).unwrap_or(given);
    if !path.starts_with('/') {
        bail!("the endpoint {given} is no absolute path of a socket; write it as unix:///run/csi.sock");
    }
    Ok(PathBuf::from(path))
}
