//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// The Kubernetes CSI volume stack as one binary.
#[derive(Parser)]
#[command(name = "longshore", version, about, disable_help_subcommand = true)]
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
    /// Run the reference CSI driver alone
    Driver(Driver),
    /// Say why a claim, volume, attachment or pod is where it is
    Explain(Explain),
    /// Enumerate every interleaving of small worlds and check the laws
    Prove(Prove),
    /// Supervise one process of a pod (started by the node agent, never by hand)
    #[command(hide = true, name = "process-shim")]
    ProcessShim {
        /// Passed on as it is.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

/// `longshore up`.
#[derive(Args, Clone)]
pub struct Up {
    /// Where everything is kept [default: /var/lib/longshore, or ~/.local/share/longshore without root]
    #[arg(long, env = "LONGSHORE_DATA", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Where the API server listens; port 0 takes any free one
    #[arg(long, default_value = "127.0.0.1:7443", value_name = "ADDRESS")]
    pub listen: SocketAddr,
    /// The name this machine gets as a node [default: its host name]
    #[arg(long, value_name = "NAME")]
    pub node_name: Option<String>,
    /// Leave a part out; `driver` can then be run by hand with `longshore driver`
    #[arg(long, value_name = "PART")]
    pub without: Vec<Part>,
    /// How to print what to try
    #[arg(long, short, value_enum, default_value = "text")]
    pub output: Output,
    /// Log more (twice: everything)
    #[arg(long, short, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// A part of `up` that can be left out.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The reference CSI driver
    Driver,
}

/// How to print.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// For people
    Text,
    /// For programs
    Json,
}

/// `longshore driver`.
#[derive(Args, Clone)]
pub struct Driver {
    /// The data directory of `longshore up` it belongs to [default: as for `up`]
    #[arg(long, env = "LONGSHORE_DATA", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// The node's id [default: the machine's host name]
    #[arg(long, value_name = "ID")]
    pub node_id: Option<String>,
    /// Log more (twice: everything)
    #[arg(long, short, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// `longshore explain`.
#[derive(Args, Clone)]
pub struct Explain {
    /// What to explain, such as pvc/data, pod/writer, pv/NAME or va/NAME
    #[arg(value_name = "KIND/NAME")]
    pub object: String,
    /// The object's namespace
    #[arg(long, short, default_value = "default")]
    pub namespace: String,
    /// The kubeconfig `longshore up` printed [default: $KUBECONFIG, or the one in the data directory]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The data directory of the `longshore up` to ask [default: as for `up`]
    #[arg(long, env = "LONGSHORE_DATA", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Print every rule's view instead of one sentence
    #[arg(long)]
    pub all: bool,
    /// How to print
    #[arg(long, short, value_enum, default_value = "text")]
    pub output: Output,
}

/// `longshore prove`.
#[derive(Args, Clone)]
pub struct Prove {
    /// The world to enumerate; all of them if none is named
    #[arg(value_name = "WORLD")]
    pub worlds: Vec<String>,
}
