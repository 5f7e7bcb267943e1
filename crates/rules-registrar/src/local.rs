use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{NodeAddress, Quantity, SystemInfo};
use control::Timestamp;
use csi::Capabilities;

use crate::judge::{self, Version};
use crate::limit::LimitAsked;

/// What this machine knows outside the API: who it is, and what each registration socket has answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Local {
    /// The node's name.
    pub node: String,
    /// This incarnation of the agent; no two incarnations share one.
    pub incarnation: String,
    /// Registration sockets by path.
    pub sockets: BTreeMap<String, Socket>,
    /// How many sockets were seen so far.
    pub sockets_seen: u64,
    /// What the machine is; `None` if nobody looked.
    pub machine: Option<MachineFacts>,
    /// The node shows that it lives by a Lease.
    pub keeps_lease: bool,
    /// For how long that Lease counts; 40 s, as kubelet's, unless somebody says otherwise.
    pub lease_seconds: Option<u32>,
    /// In-tree plugins that this node has left to drivers, as its CSINode lists them; `None` for none.
    pub migrated_plugins: Option<String>,
    /// Since when drivers have been without a socket, by name.
    pub absent: BTreeMap<String, Timestamp>,
    /// Since when this incarnation has been looking: nobody has been away for longer.
    pub looking_since: Timestamp,
}

/// What a machine is and has, in the words of a Node's status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MachineFacts {
    /// The system and its programs.
    pub info: SystemInfo,
    /// How it is reached.
    pub addresses: Vec<NodeAddress>,
    /// What it has of processors, memory and places for pods.
    pub capacity: BTreeMap<String, Quantity>,
    /// What of that pods may have.
    pub allocatable: BTreeMap<String, Quantity>,
}

/// Places for pods, as kubelet has it by default.
const PODS: u64 = 110;
/// What all pods together leave to the machine: a tenth of its memory, at most this.
const RESERVED_BYTES: u64 = 1 << 30;

impl MachineFacts {
    /// A machine with these processors and bytes of memory.
    pub fn of(node: &str, info: SystemInfo, address: Option<String>, processors: u64, memory: u64) -> MachineFacts {
        let has = |memory: u64| {
            let memory = Quantity::from_bytes(i64::try_from(memory / 1024 * 1024).unwrap_or(i64::MAX));
            let count = |number: u64| Quantity(format!("{number}"));
            BTreeMap::from([("cpu".into(), count(processors)), ("memory".into(), memory), ("pods".into(), count(PODS))])
        };
        let address = address.map(|address| NodeAddress { r#type: "InternalIP".into(), address });
        let name = NodeAddress { r#type: "Hostname".into(), address: node.into() };
        MachineFacts {
            info,
            addresses: address.into_iter().chain([name]).collect(),
            capacity: has(memory),
            allocatable: has(memory - (memory / 10).min(RESERVED_BYTES)),
        }
    }
}

/// One registration socket.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Socket {
    /// Its number among all that were seen: answers and failures of an earlier one at the path count for nobody.
    pub incarnation: u64,
    /// How far the conversation has come.
    pub progress: RegistrationProgress,
    /// What it was asked about its limit since it was registered.
    pub limit_asked: Option<LimitAsked>,
    /// What the driver was last told to be wrong with it, and when.
    pub turned_away: Option<(String, Timestamp)>,
    /// The driver name that belongs to this socket: nobody else is registered under it. Taken before the driver is
    /// installed, kept while it may believe that it is registered. It outlives the socket's replacement until the new
    /// one has been heard.
    pub holds: Option<String>,
    /// CSINode lists the driver by a write of this conversation.
    pub listed: bool,
    /// The driver as registered. It outlives the socket's replacement in the same way.
    pub registered: Option<(String, RegisteredDriver)>,
}

/// How far the conversation on a registration socket has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum RegistrationProgress {
    /// The socket is there.
    #[default]
    Found,
    /// GetInfo was answered.
    Introduced(PluginAtSocket),
    /// NodeGetInfo was answered as well.
    Placed(PluginAtSocket, NodeInfo),
    /// NodeGetCapabilities was answered as well.
    Able(PluginAtSocket, NodeInfo, Capabilities),
    /// The driver was told that it is registered.
    Told(PluginAtSocket, NodeInfo, Capabilities),
}

/// What GetInfo says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PluginAtSocket {
    /// `CSIPlugin` for drivers.
    pub kind: String,
    /// The driver's name.
    pub name: String,
    /// The driver's own socket.
    pub endpoint: String,
    /// Versions it speaks.
    pub versions: Vec<String>,
    /// It wants to be told about the pod when a volume is published (`requires_publish_pod`); `None` if it was not asked.
    pub wants_pod: Option<bool>,
}

/// What NodeGetInfo says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NodeInfo {
    /// The driver's name for this node.
    pub node_id: String,
    /// Where the node is.
    pub topology: BTreeMap<String, String>,
    /// How many volumes the node takes; 0 means the driver does not limit it.
    pub max_volumes: i64,
}

/// A registered driver, as the node agent needs it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RegisteredDriver {
    pub socket: String,
    /// What it can do on a node.
    pub capabilities: Capabilities,
    /// It wants to be told about the pod when a volume is published.
    pub wants_pod: bool,
}

impl Local {
    /// A node that has seen no socket yet.
    pub fn new(node: impl Into<String>, incarnation: impl Into<String>) -> Local {
        Local { node: node.into(), incarnation: incarnation.into(), ..Local::default() }
    }

    /// The same on a machine of which this is known, with a Lease that shows that the node lives.
    #[must_use]
    pub fn on(self, machine: MachineFacts) -> Local {
        Local { machine: Some(machine), keeps_lease: true, ..self }
    }

    /// A socket appeared at this path, perhaps in place of another (KL-2).
    pub fn seen(&mut self, path: impl Into<String>) {
        self.sockets_seen += 1;
        let socket = self.sockets.entry(path.into()).or_default();
        socket.incarnation = self.sockets_seen;
        socket.progress = RegistrationProgress::Found;
        socket.turned_away = None;
        socket.limit_asked = None;
        socket.listed = false;
    }

    /// The sockets that are there, after some news of them may have been missed. A path that was known may be a new
    /// socket, which is as good as known: its driver is asked again.
    pub fn found(&mut self, paths: &BTreeSet<String>, now: Timestamp) {
        let gone: Vec<String> = self.sockets.keys().filter(|path| !paths.contains(*path)).cloned().collect();
        gone.iter().for_each(|path| self.gone(path, now));
        paths.iter().for_each(|path| self.seen(path.clone()));
    }

    /// The socket at this path is gone (KL-3), or the folder it was in.
    pub fn gone(&mut self, path: &str, now: Timestamp) {
        let beneath = format!("{path}/");
        let gone = |other: &String| other == path || other.starts_with(&beneath);
        let names = self.sockets.iter().filter(|(path, _)| gone(path)).filter_map(|(_, socket)| socket.name());
        let names: Vec<String> = names.cloned().collect();
        self.sockets.retain(|path, _| !gone(path));
        for name in names {
            if !self.has_socket(&name) {
                self.absent.insert(name, now);
            }
        }
    }

    /// Some socket speaks for a driver of this name.
    pub(crate) fn has_socket(&self, driver: &str) -> bool {
        self.sockets.values().any(|socket| socket.name().is_some_and(|name| name == driver))
    }

    /// The socket that a driver name belongs to.
    pub(crate) fn holder(&self, name: &str) -> Option<(&String, &Socket)> {
        self.sockets.iter().find(|(_, socket)| socket.holds.as_deref() == Some(name))
    }

    /// Registered drivers by name.
    pub fn drivers(&self) -> BTreeMap<String, RegisteredDriver> {
        self.sockets.values().filter_map(|socket| socket.registered.clone()).collect()
    }
}

impl Socket {
    /// The name of the driver behind it, as far as it is known.
    fn name(&self) -> Option<&String> {
        self.progress.plugin().map(|plugin| &plugin.name).or(self.holds.as_ref())
    }

    /// The highest version of the interface that the driver behind it speaks.
    pub(crate) fn version(&self) -> Option<Version> {
        self.progress.plugin().and_then(|plugin| judge::highest(&plugin.versions))
    }
}

impl NodeInfo {
    /// As NodeGetInfo says it.
    pub fn of(info: &csi::v1::NodeGetInfoResponse) -> NodeInfo {
        let topology = info.accessible_topology.as_ref().map(|topology| topology.segments.clone()).unwrap_or_default();
        NodeInfo { node_id: info.node_id.clone(), topology, max_volumes: info.max_volumes_per_node }
    }
}

impl RegistrationProgress {
    /// What GetInfo said, if it was answered.
    pub fn plugin(&self) -> Option<&PluginAtSocket> {
        match self {
            RegistrationProgress::Found => None,
            RegistrationProgress::Introduced(plugin)
            | RegistrationProgress::Placed(plugin, _)
            | RegistrationProgress::Able(plugin, ..)
            | RegistrationProgress::Told(plugin, ..) => Some(plugin),
        }
    }

    /// Every question was answered.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self, RegistrationProgress::Able(..) | RegistrationProgress::Told(..))
    }

    /// What NodeGetInfo said, if it was answered.
    pub fn place(&self) -> Option<&NodeInfo> {
        match self {
            RegistrationProgress::Found | RegistrationProgress::Introduced(_) => None,
            RegistrationProgress::Placed(_, place)
            | RegistrationProgress::Able(_, place, _)
            | RegistrationProgress::Told(_, place, _) => Some(place),
        }
    }
}

impl PluginAtSocket {
    /// The driver's socket: the endpoint without a scheme, or the registration socket itself if it named none (KL-7).
    pub fn socket(&self, registration: &str) -> String {
        let endpoint = self.endpoint.strip_prefix("unix://").unwrap_or(&self.endpoint);
        if endpoint.is_empty() { registration.into() } else { endpoint.into() }
    }
}
