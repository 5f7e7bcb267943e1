//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// The Kubernetes CSI volume stack as one binary
#[derive(Parser)]
#[command(
    name = "longshore",
    version,
    about = "Longshore is the Kubernetes CSI volume stack as one binary: it provisions, attaches, mounts and takes \
             away storage, with an API server of its own for one machine.",
    after_help = "Begin with `longshore up`; `longshore help COMMAND` says more about a command."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    /// Run everything on this machine and print what to try
    Up(Up),
    /// End what `up` started here: pods, mounts, loop devices; objects and volumes stay
    Down(Down),
    /// Run the embedded API server alone
    Apiserver(Apiserver),
    /// Run the controllers of a cluster alone: binding, attach/detach, scheduler, and those of some drivers
    Controllers(Controllers),
    /// Run the node agent of this machine alone: registration, mounts, pods
    Node(RunNode),
    /// Run the reference CSI driver alone
    Driver(Driver),
    /// Say why an object is where it is: a claim, volume, attachment, pod, node, class, driver, …
    Explain(Explain),
    /// Show what runs, where its data is, and what waits
    Status(ShowStatus),
    /// List which fields of an object are honoured here, warned of or refused
    Fields(ListFields),
    /// Enumerate every interleaving of small worlds, or walk through larger ones, and check the laws
    Prove(Prove),
    /// Judge any CSI driver from outside
    Sanity(crate::sanity::Sanity),
    /// Say what moving in-tree volumes to CSI drivers takes, and how far it has come; writes nothing
    Migrate(crate::migrate::Migrate),
    /// Print objects of in-tree plugins as their CSI drivers see them, or back
    Translate(crate::translate::Translate),
    /// Play the sidecars of a driver: provisioner, attacher, resizer, registrar, liveness probe
    #[command(disable_help_flag = true)]
    Sidecar {
        /// `--roles` names the parts; the rest are the flags of the Go programs (`--help` lists them)
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS")]
        args: Vec<String>,
    },
    /// Print everything a driver needs in a cluster, as YAML to apply
    Deploy(Box<crate::deploy::Deploy>),
    /// Print what a shell needs to complete commands and flags
    Completions(crate::commands::shell::Completions),
    /// Print a manual page, to read with `longshore man deploy | man -l -`
    Man(crate::commands::shell::Manual),
    /// Supervise one process of a pod (started by the node agent, never by hand)
    #[command(hide = true, name = "process-shim")]
    ProcessShim {
        /// Passed on as it is.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

/// `longshore down`.
#[derive(Args, Clone)]
pub struct Down {
    /// Where everything is kept [default: /var/lib/longshore, or ~/.local/share/longshore without root]
    #[arg(long, env = "LONGSHORE_DATA", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// How long a pod's process may take to end before it is made to
    #[arg(long, default_value = "30", value_name = "SECONDS", value_parser = seconds)]
    pub grace_period: u32,
    /// Switch off one of the further nodes of `up --nodes` instead: its agent, its containers without grace, its mounts
    #[arg(long, conflicts_with_all = ["purge", "orphans"], value_name = "NAME")]
    pub node: Option<String>,
    /// Remove the data directory too, after naming what is lost with it
    #[arg(long)]
    pub purge: bool,
    /// End instead what removed data directories left behind, or this one: processes, mounts, loop devices; names them
    /// first
    #[arg(long, conflicts_with = "purge", value_name = "DIR", num_args = 0..=1, require_equals = true,
        default_missing_value = "/")]
    pub orphans: Option<PathBuf>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}

/// `longshore up`.
#[derive(Args, Clone)]
pub struct Up {
    /// Where everything is kept [default: /var/lib/longshore, or ~/.local/share/longshore without root]
    #[arg(long, env = "LONGSHORE_DATA", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Where the API server listens; port 0 takes any free one
    #[arg(long, default_value = "127.0.0.1:7443", value_name = "ADDRESS", value_parser = listen)]
    pub listen: SocketAddr,
    /// The name this machine gets as a node [default: its host name]
    #[arg(long, value_name = "NAME", value_parser = node_name)]
    pub node_name: Option<String>,
    /// How many nodes this machine is: beside the first, each is a process of its own with its own mounts and driver,
    /// named after the first with -2, -3, … behind it; two nodes share a zone, in which volumes can move
    #[arg(long, default_value_t = 1, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(1..=26))]
    pub nodes: u8,
    /// For how long after its last sign of life a node is believed to live, in seconds; it shows four signs meanwhile
    #[arg(long, default_value_t = 40, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(4..=3600))]
    pub node_lease_duration: u32,
    #[command(flatten)]
    pub tolerance: Tolerated,
    /// Leave a part out, to run it by hand: `longshore driver`, or `longshore sidecar --roles=provisioner`
    #[arg(long, value_name = "PART")]
    pub without: Vec<Part>,
    /// Let claims say in the condition `Unused` whether a pod uses them; each change is one more write
    #[arg(long)]
    pub claim_usage: bool,
    /// Take volumes from a dead node that has shown no sign of life for so long, such as 5m, once its pods are deleted;
    /// a class may say otherwise; never without
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub force_detach_after: Option<u64>,
    /// Tell each request in this file, as `audit.k8s.io/v1` at level Metadata: who did what, never a body
    #[arg(long, value_name = "FILE")]
    pub audit_log: Option<PathBuf>,
    /// How to print what to try
    #[arg(long, short, value_enum, default_value = "text")]
    pub output: Output,
    /// Gates of migration.
    #[command(flatten)]
    pub gates: crate::gates::MigrationGates,
    /// A plugin that is there.
    #[command(flatten)]
    pub rehearsed: crate::driver::Rehearsed,
    /// Log more (twice: everything)
    #[arg(long, short, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// What pods put up with that say nothing about it.
#[derive(Args, Clone, Copy)]
pub struct Tolerated {
    /// For how long pods that say nothing about it stay on a node that says that it is not ready
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    pub default_not_ready_toleration_seconds: u32,
    /// For how long pods that say nothing about it stay on a node that is not heard of
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    pub default_unreachable_toleration_seconds: u32,
}

impl Tolerated {
    /// The same for the API server.
    pub fn seconds(self) -> rules_store::Tolerance {
        rules_store::Tolerance {
            not_ready: self.default_not_ready_toleration_seconds,
            unreachable: self.default_unreachable_toleration_seconds,
        }
    }
}

/// A part of `up` that can be left out.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The reference CSI driver
    Driver,
    /// The provisioner
    Provisioner,
    /// The attacher
    Attacher,
}

/// How to print.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// For people
    Text,
    /// For programs
    Json,
}

/// `longshore apiserver`.
#[derive(Args, Clone)]
pub struct Apiserver {
    /// Where objects, certificates and the kubeconfig are kept [default: as for `up`]
    #[arg(long, env = "LONGSHORE_DATA", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Where it listens; port 0 takes any free one
    #[arg(long, default_value = "127.0.0.1:7443", value_name = "ADDRESS", value_parser = listen)]
    pub listen: SocketAddr,
    /// Tell each request in this file, as `audit.k8s.io/v1` at level Metadata: who did what, never a body
    #[arg(long, value_name = "FILE")]
    pub audit_log: Option<PathBuf>,
    #[command(flatten)]
    pub tolerance: Tolerated,
    /// Log more (twice: everything)
    #[arg(long, short, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// `longshore controllers`.
#[derive(Args, Clone)]
#[command(
    after_help = "On a cluster with kube-controller-manager and kube-scheduler these controllers are there already: \
either start those programs without them, or name only a --csi-address here, with --controllers=''."
)]
pub struct Controllers {
    /// How to reach the cluster [default: the service account of the pod]
    #[arg(long, env = "KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Which to run: binding, attachdetach, scheduler; * is all of these, -scheduler all the same without that one;
    /// nodelifecycle, which a cluster has already, only if it is named
    #[arg(long, default_value = "*", value_delimiter = ',', allow_hyphen_values = true, value_name = "NAMES")]
    pub controllers: Vec<String>,
    /// The socket of a driver whose provisioner, attacher and resizer are run too (repeat for more)
    #[arg(long, value_name = "SOCKET")]
    pub csi_address: Vec<String>,
    /// Work only while holding a Lease, so that several of these can stand by for each other
    #[arg(long)]
    pub leader_elect: bool,
    /// Where Leases are: those of leaders, and the journals of drivers
    #[arg(long, default_value = "default", value_name = "NAMESPACE")]
    pub leader_elect_resource_namespace: String,
    /// How leaders are found.
    #[command(flatten)]
    pub election: crate::election::LeaderElection,
    /// Let claims say in the condition `Unused` whether a pod uses them; each change is one more write
    #[arg(long)]
    pub claim_usage: bool,
    /// Take volumes from a dead node that has shown no sign of life for so long, such as 5m, once its pods are deleted;
    /// a class may say otherwise; never without
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub force_detach_after: Option<u64>,
    /// Where metrics, health and explanations are served, such as 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS")]
    pub http_endpoint: Option<String>,
    /// Gates of migration.
    #[command(flatten)]
    pub gates: crate::gates::MigrationGates,
    /// A plugin that is there.
    #[command(flatten)]
    pub rehearsed: crate::driver::Rehearsed,
    /// The data directory of `longshore up`, where --rehearse looks for the disks [default: as for `up`]
    #[arg(long, env = "LONGSHORE_DATA", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Log more (twice: everything)
    #[arg(long, short, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

impl Controllers {
    /// Whether it can begin so, as far as that is known before there is a cluster. An error is a sentence.
    pub fn check(&self) -> Result<(), String> {
        self.gates.migration()?;
        self.election.config("anybody".into()).map(|_| ())
    }
}

/// `longshore node`.
#[derive(Args, Clone)]
pub struct RunNode {
    /// How to reach the cluster [default: the service account of the pod]
    #[arg(long, env = "KUBECONFIG", value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The name this machine gets as a node [default: its host name]
    #[arg(long, value_name = "NAME", value_parser = node_name)]
    pub node_name: Option<String>,
    /// Where mounts, sockets and processes are kept [default: as for `up`]
    #[arg(long, env = "LONGSHORE_DATA", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Run the reference driver's node service beside it, on the volumes of another node of this machine: the directory
    /// `driver` in the data directory of its `longshore up`
    #[arg(long, value_name = "DIR")]
    pub driver_state: Option<PathBuf>,
    /// The zone that the reference driver says this node is in
    #[arg(long, value_name = "ZONE", requires = "driver_state")]
    pub zone: Option<String>,
    /// For how long after its last sign of life the node is believed to live, in seconds; it shows four signs meanwhile
    #[arg(long, default_value_t = 40, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(4..=3600))]
    pub node_lease_duration: u32,
    /// End when the standard input does, as it does with the process that started this one
    #[arg(long, hide = true)]
    pub until_input_ends: bool,
    /// Where metrics, health and explanations are served, such as 127.0.0.1:8081
    #[arg(long, value_name = "ADDRESS")]
    pub http_endpoint: Option<String>,
    /// Gates of migration.
    #[command(flatten)]
    pub gates: crate::gates::MigrationGates,
    /// A plugin that is there.
    #[command(flatten)]
    pub rehearsed: crate::driver::Rehearsed,
    /// Log more (twice: everything)
    #[arg(long, short, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// `longshore driver`.
#[derive(Args, Clone)]
pub(crate) struct Driver {
    /// The data directory of `longshore up` it belongs to [default: as for `up`]
    #[arg(long, env = "LONGSHORE_DATA", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The node's id [default: the machine's host name]
    #[arg(long, value_name = "ID")]
    pub node_id: Option<String>,
    /// The socket to listen on, such as unix:///run/csi.sock [default: in the data directory]
    #[arg(long, value_name = "SOCKET")]
    pub endpoint: Option<String>,
    /// Where volumes and their records are kept [default: in the data directory]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Do not offer the driver to a node agent
    #[arg(long)]
    pub no_registration: bool,
    /// Serve the controller alone; the node service runs in another process with the same state
    #[arg(long, conflicts_with_all = ["node_only", "no_controller"])]
    pub controller_only: bool,
    /// Serve the node alone; the controller runs in another process with the same state
    #[arg(long, conflicts_with = "no_controller")]
    pub node_only: bool,
    /// Serve the node alone, and say that there is no controller
    #[arg(long)]
    pub no_controller: bool,
    /// Answer as the CSI driver that has taken over this in-tree plugin (kubernetes.io/gce-pd), with volumes of this
    /// machine: a rehearsal of its migration that needs no cloud (docs/migration.md)
    #[arg(long, value_name = "PLUGIN", value_parser = crate::driver::in_place_of)]
    pub in_place_of: Option<rules_translate::Plugin>,
    /// A further node of this machine, whose node service runs in a process of its own on the same state
    #[arg(long, value_name = "NODE")]
    pub peer: Vec<String>,
    /// Leave features out: publish, stage, list, capacity, snapshots, clone, expand, get, health, modify, groups, ephemeral, stats, topology
    #[arg(long, value_name = "FEATURES", value_delimiter = ',', value_parser = feature)]
    pub without: Vec<rules_driver::Feature>,
    /// What volumes are made of that nobody asks anything for; where that is directories, there is nothing else, and
    /// modify is not offered
    #[arg(long, default_value = "image", value_parser = ["image", "directory"], value_name = "KIND")]
    pub kind: String,
    /// The filesystem of volumes nobody asks one for
    #[arg(long, default_value = "ext4", value_parser = ["ext4", "xfs", "btrfs"], value_name = "TYPE")]
    pub filesystem: String,
    /// How many bytes all volumes together may promise
    #[arg(long, default_value_t = 1 << 40, value_name = "BYTES")]
    pub pool_bytes: u64,
    /// How many volumes the node takes at once; 0 means any number
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    pub max_volumes: u32,
    /// Refuse to start unless what is mounted beneath this directory is seen by containers and the kubelet; in a container,
    /// the directory that pods' volumes are published in
    #[arg(long, value_name = "DIR")]
    pub shared_dir: Option<PathBuf>,
    /// For tests: how long a caller waits for a snapshot before it is told that the copy goes on
    #[arg(long, hide = true, value_name = "MILLISECONDS")]
    pub copy_patience_millis: Option<u64>,
    /// For tests: copies share no blocks and are no faster than this
    #[arg(long, hide = true, value_name = "BYTES")]
    pub copy_bytes_per_second: Option<std::num::NonZeroU64>,
    /// Log more (twice: everything)
    #[arg(long, short, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

fn duration(text: &str) -> Result<u64, String> {
    let what = "write a whole number of seconds, minutes or hours, such as --force-detach-after=5m";
    rules_attachdetach::millis(text).ok_or_else(|| what.to_string())
}

fn seconds(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "write whole seconds, such as --grace-period=30".to_string())
}

fn listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "write an IP address and a port of at most 65535, such as 127.0.0.1:7443; port 0 takes any free one".to_string()
    })
}

fn node_name(text: &str) -> Result<String, String> {
    crate::machine::check_node_name(text).map(|()| text.to_string())
}

fn feature(name: &str) -> Result<rules_driver::Feature, String> {
    let mut all = rules_driver::Feature::ALL.iter();
    all.find(|feature| feature.name() == name).copied().ok_or_else(|| {
        let names: Vec<&str> = rules_driver::Feature::ALL.iter().map(|feature| feature.name()).collect();
        format!("there is no feature of that name; choose from {}", names.join(", "))
    })
}

/// `longshore explain`.
#[derive(Args, Clone)]
#[command(
    after_help = "Who is asked: --kubeconfig, or --data-dir, or $KUBECONFIG, or $LONGSHORE_DATA, or the data directory \
that `longshore up` uses by default; the first of these that is given."
)]
pub struct Explain {
    /// What to explain, such as pvc/data, pod/writer, pv/NAME, va/NAME, node/NAME, sc/NAME; two words will do too
    #[arg(value_name = "KIND/NAME", required = true, num_args = 1..)]
    pub object: Vec<String>,
    /// The object's namespace
    #[arg(long, short, default_value = "default")]
    pub namespace: String,
    /// The kubeconfig `longshore up` printed
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The data directory of the `longshore up` to ask
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Print every rule's view instead of one sentence
    #[arg(long)]
    pub all: bool,
    /// How to print
    #[arg(long, short, value_enum, default_value = "text")]
    pub output: Output,
}

/// `longshore status`.
#[derive(Args, Clone)]
pub struct ShowStatus {
    /// The data directory to look at [default: /var/lib/longshore, or ~/.local/share/longshore without root]
    #[arg(long, env = "LONGSHORE_DATA", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// How to print
    #[arg(long, short, value_enum, default_value = "text")]
    pub output: Output,
}

/// `longshore fields`.
#[derive(Args, Clone)]
pub struct ListFields {
    /// The kind, by any name that kubectl takes; all of them if none is named
    #[arg(value_name = "KIND")]
    pub kind: Option<String>,
    /// How to print
    #[arg(long, short, value_enum, default_value = "text")]
    pub output: ListOutput,
}

/// How to print the fields.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum ListOutput {
    /// For people
    Text,
    /// For programs
    Json,
    /// As docs/fields.md
    Markdown,
}

/// `longshore prove`.
#[derive(Args, Clone)]
pub struct Prove {
    /// The world to enumerate; all of them if none is named
    #[arg(value_name = "WORLD")]
    pub worlds: Vec<String>,
    /// Walk through the world by chance, so many times and with several faults each, instead of enumerating it
    #[arg(long, value_name = "N")]
    pub walks: Option<u64>,
    /// The number that the first walk draws its chances from; each of the others takes the next
    #[arg(long, value_name = "SEED", default_value_t = 0, requires = "walks")]
    pub seed: u64,
}
