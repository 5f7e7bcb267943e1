//! What `longshore up` prints when it is ready.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use control::host::ProcessState;

use io_host::Orphans;
use serde_json::json;

use crate::args::{Output, Up};
use crate::commands::down::orphans_found;
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
    // `make` puts kubectl where no other terminal looks for it.
    let path = match installed_in("kubectl").filter(|folder| folder.ends_with(".cache/longshore/bin")) {
        Some(folder) => format!("export PATH={}:$PATH\n", folder.display()),
        None => String::new(),
    };
    out::say(&format!(
        "Longshore is up after {} ms: the API server is at https://127.0.0.1:{port}, everything is kept in {}.
{root}
Paste this into another terminal:

{path}export KUBECONFIG={}
kubectl apply -f - <<'EOF'
{EXAMPLE}EOF
kubectl wait --for=jsonpath='{{.status.phase}}'=Succeeded pod/hello
kubectl logs hello

Then look around:  kubectl get pvc,pv,pod        why is it so:  {} explain pvc/data
Clean up with:     kubectl delete pod/hello pvc/data
Ctrl-C stops Longshore; at the next start everything carries on.{}",
        took.as_millis(),
        layout.root().display(),
        kubeconfig.display(),
        std::env::current_exe().map_or_else(|_| "longshore".into(), |path| path.display().to_string()),
        remarks(),
    ));
}

/// What the user should know of this machine: programs the example needs, and what an earlier Longshore left behind.
fn remarks() -> String {
    let mut remarks = String::new();
    for (program, what_for, package) in NEEDED.into_iter().filter(|(program, ..)| installed_in(program).is_none()) {
        let _ = write!(remarks, "\n\n{program} is missing, {what_for}; install it with: {package}");
    }
    if let Some(orphans) = Orphans::find().ok().filter(|orphans| !orphans.is_empty()) {
        let _ = write!(remarks, "\n\nOrphans: {}.", orphans_found(&orphans));
    }
    remarks
}

/// Programs, what needs them, and how to get them.
const NEEDED: [(&str, &str, &str); 2] = [
    ("kubectl", "which the lines above need", "bash tools/install-kubectl.sh ~/.local/bin (or `make kubectl`)"),
    ("mkfs.ext4", "without which no volume gets a filesystem", "apt-get install e2fsprogs"),
];

/// The folder a program is in: on the path, or where the administrator's programs are.
fn installed_in(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.find(|folder| folder.join(program).is_file())
}

/// What keeps running when `longshore up` has ended.
pub fn say_what_stays(layout: &Layout) {
    let further = layout.all_further().into_iter().map(|(_, further)| further.processes());
    let running = |processes: PathBuf| {
        let processes = io_host::Host::new(processes).and_then(|host| host.processes()).unwrap_or_default();
        processes.values().filter(|state| matches!(state, ProcessState::Running { .. })).count()
    };
    let running: usize = further.chain([layout.processes()]).map(running).sum();
    let mounts = io_host::mounts_beneath(&crate::layout::text(layout.root())).map_or(0, |mounts| mounts.len());
    if running + mounts > 0 {
        out::say(&format!(
            "Still there: {running} running containers and {mounts} mounts. `longshore up` finds them again, \
             `longshore down` ends them."
        ));
    }
}
