//! The API server alone: `cargo run -p io-apiserver --example serve -- DIRECTORY [PORT]`.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::path::PathBuf;
use std::time::Instant;

use io_apiserver::{ApiServer, Config};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let data_dir = PathBuf::from(arguments.next().ok_or("say which directory to keep the data in")?);
    let port: u16 = arguments.next().map_or(Ok(0), |p| p.parse())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let start = Instant::now();
        let server = ApiServer::open(Config { data_dir: data_dir.clone(), ..Config::default() })?;
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
        let port = listener.local_addr()?.port();
        let kubeconfig = data_dir.with_extension("kubeconfig");
        server.write_kubeconfig(&kubeconfig, port)?;
        println!("ready in {:?}; try: kubectl --kubeconfig {} get ns", start.elapsed(), kubeconfig.display());
        let interrupt = async {
            let _ = tokio::signal::ctrl_c().await;
        };
        server.serve_tls(listener, interrupt).await;
        server.close();
        Ok(())
    })
}
