//! A control plane to try things on by hand, with `--kubelet` a node too: prints its kubeconfig and runs until its
//! input ends.

use prove_cluster::{ControlPlane, Options, RealCluster};
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "prove-cluster: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options { controller_manager: true, scheduler: true, ..Options::default() };
    if !std::env::args().any(|argument| argument == "--kubelet") {
        let plane = ControlPlane::start(options)?;
        return serve(&plane);
    }
    let cluster = RealCluster::start(options)?;
    writeln!(io::stdout(), "# the kubelet's directory is {}", cluster.kubelet_dir().display())?;
    serve(cluster.plane())
}

fn serve(plane: &ControlPlane) -> Result<(), Box<dyn std::error::Error>> {
    let mut out = io::stdout().lock();
    writeln!(out, "export KUBECONFIG={}", plane.kubeconfig().display())?;
    for process in plane.processes() {
        writeln!(out, "# {} is process {}, its log is {}", process.name(), process.id(), process.log().display())?;
    }
    writeln!(out, "# close the input (Ctrl-D) to end all of it")?;
    out.flush()?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
