//! What `longshore up` prints when it is ready.

use std::time::Duration;

use control::host::ProcessState;

use serde_json::json;

use crate::args::{Output, Up};
use crate::layout::Layout;
use crate::out;

/// A claim, a pod that writes to it and ends.
pub const EXAMPLE: &str = include_str!("example.yaml");

/// Says where everything is and what to try.
pub fn print(args: &Up, layout: &Layout, port: u16, took: Duration) {
    let kubeconfig = layout.kubeconfig();
    if args.output == Output::Json {
        let ready = json!({
            "ready": true,
            "server": format!("https://127.0.0.1:{port}"),
            "kubeconfig": kubeconfig,
            "data": layout.root(),
            "milliseconds": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        });
        out::say(&ready.to_string());
        return;
    }
    let root = if crate::machine::is_root() {
        String::new()
    } else {
        "\nYou are not root: claims are bound and pods without claims run as you, in a user namespace;\n\
         pods with claims wait, because only root may mount, and limits cannot be enforced.\n"
            .to_string()
    };
    out::say(&format!(
        "Longshore is up after {} ms: the API server is at https://127.0.0.1:{port}, everything is kept in {}.
{root}
Paste this into another terminal:

export KUBECONFIG={}
kubectl apply -f - <<'EOF'
{EXAMPLE}EOF
kubectl wait --for=jsonpath='{{.status.phase}}'=Succeeded pod/hello
kubectl logs hello

Then look around:  kubectl get pvc,pv,pod        why is it so:  {} explain pvc/data
Clean up with:     kubectl delete pod/hello pvc/data
Ctrl-C stops Longshore; at the next start everything carries on.",
        took.as_millis(),
        layout.root().display(),
        kubeconfig.display(),
        std::env::current_exe().map_or_else(|_| "longshore".into(), |path| path.display().to_string()),
    ));
}

/// What keeps running when `longshore up` has ended.
pub fn say_what_stays(layout: &Layout) {
    let processes = io_host::Host::new(layout.processes()).and_then(|host| host.processes()).unwrap_or_default();
    let running = processes.values().filter(|state| matches!(state, ProcessState::Running { .. })).count();
    let mounts = io_host::mounts_beneath(&crate::layout::text(layout.root())).map_or(0, |mounts| mounts.len());
    if running + mounts > 0 {
        out::say(&format!(
            "Still there: {running} running containers and {mounts} mounts. `longshore up` finds them again, \
             `longshore down` ends them."
        ));
    }
}
