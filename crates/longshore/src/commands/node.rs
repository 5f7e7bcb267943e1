//! `longshore node`: the node agent on this machine, for any API server.

use std::sync::Arc;

use anyhow::{Context, Result};
use io_host::Host;
use io_run::machine;

use crate::args;
use crate::layout::Layout;
use crate::node::NodeAgent;
use crate::out;

/// Runs until told to stop. Pods go on without it.
pub async fn command(args: args::RunNode) -> Result<()> {
    let layout = Layout::new(args.data_dir)?;
    let name = match args.node_name {
        Some(name) => name,
        None => crate::machine::host_name()?,
    };
    let host = Arc::new(Host::new(layout.processes()).with_context(|| {
        format!("cannot use {}; choose a directory you may write to with --data-dir", layout.processes().display())
    })?);
    let manager = super::manager(args.kubeconfig.as_deref(), Some(machine::workers(host.clone()))).await?;
    let _agent = NodeAgent::start(&manager, &host, &layout, &name)?;
    out::say(&format!("node {name}; drivers register in {}. Ctrl-C stops it.", layout.registry().display()));
    super::until_told(manager, args.http_endpoint.as_deref()).await
}
