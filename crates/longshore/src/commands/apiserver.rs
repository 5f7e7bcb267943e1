//! `longshore apiserver`: the embedded API server alone.

use anyhow::{Context, Result};
use io_apiserver::{ApiServer, Config};
use tokio::net::TcpListener;

use crate::args;
use crate::layout::Layout;
use crate::out;

/// Serves until told to stop.
pub async fn command(args: args::Apiserver) -> Result<()> {
    let layout = Layout::new(args.data_dir)?;
    let listener = TcpListener::bind(args.listen).await.with_context(|| {
        format!("cannot listen on {}: is another Longshore running? choose another port with --listen", args.listen)
    })?;
    let port = listener.local_addr()?.port();
    let server = ApiServer::open(Config {
        data_dir: layout.api(),
        audit_log: args.audit_log,
        tolerance: args.tolerance.seconds(),
        ..Config::default()
    })?;
    let kubeconfig = layout.kubeconfig();
    server.write_kubeconfig(&kubeconfig, port)?;
    out::say(&format!(
        "The API server is at https://127.0.0.1:{port}; KUBECONFIG={} reaches it. Ctrl-C stops it.",
        kubeconfig.display()
    ));
    let stop = async {
        if let Err(error) = crate::up::signalled().await {
            tracing::warn!("cannot wait for signals: {error}");
        }
    };
    server.clone().serve_tls(listener, stop).await;
    server.close();
    Ok(())
}
