//! `longshore controllers` and `longshore sidecar`, each with an account of its own that has the rights printed for it.

use std::path::Path;
use std::process::Command;

use prove_cluster::{ControlPlane, PeerProcess};

use super::rights::write_kubeconfig;
use crate::stand::Stand;
use crate::world::DRIVER;

/// The namespace of all of it.
pub const PLACE: &str = "together";

const CONTROLLERS: &str = "controllers";
const SIDECAR: &str = "sidecar";
const ROLES: &str = "provisioner,attacher,resizer";

/// A killed leader leaves its Lease behind, which must run out.
const ELECTION: [&str; 3] = [
    "--leader-election-lease-duration=10s",
    "--leader-election-renew-deadline=8s",
    "--leader-election-retry-period=1s",
];

/// Makes both accounts, each with what is printed for it.
pub fn grant_both(control: &ControlPlane, stand: &Stand) {
    grant(control, stand, CONTROLLERS, &["--controllers", "*,-scheduler"]);
    grant(control, stand, SIDECAR, &["--roles", ROLES, "--driver-name", DRIVER]);
}

/// Gives an account the rights that are printed for it and no others, and writes its kubeconfig.
fn grant(control: &ControlPlane, stand: &Stand, account: &str, what: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_longshore"))
        .args(["deploy", "rbac", "--namespace", PLACE, "--service-account", account])
        .args(what)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    control.apply(&String::from_utf8(output.stdout).unwrap()).unwrap();
    write_kubeconfig(control, PLACE, account, &stand.path(&format!("{account}.kubeconfig")));
}

/// All controllers but the scheduler; `life` counts how often they were started.
pub fn controllers(stand: &Stand, life: usize) -> PeerProcess {
    let more = ["--controllers=*,-scheduler", "-v", "--leader-elect", "--leader-elect-resource-namespace=together"];
    start(stand, CONTROLLERS, life, &more)
}

/// The sidecar in all its roles. It makes one volume at a time, so that there is a middle to be killed in.
pub fn sidecar(stand: &Stand, life: usize) -> PeerProcess {
    let (roles, socket) = (format!("--roles={ROLES}"), format!("--csi-address={}", stand.socket.display()));
    let more =
        [&roles, &socket, "-v=5", "--leader-election", "--leader-election-namespace=together", "--worker-threads=1"];
    start(stand, SIDECAR, life, &more)
}

/// Both are called after their account, as which they ask.
fn start(stand: &Stand, account: &str, life: usize, more: &[&str]) -> PeerProcess {
    let kubeconfig = stand.path(&format!("{account}.kubeconfig"));
    let mut words = vec![format!("POD_NAMESPACE={PLACE}"), env!("CARGO_BIN_EXE_longshore").into(), account.into()];
    words.push(format!("--kubeconfig={}", kubeconfig.display()));
    words.extend(more.iter().chain(&ELECTION).map(|word| word.to_string()));
    let name = format!("{account}-{life}");
    PeerProcess::start(&name, Path::new("env"), &words, stand.scratch.path()).unwrap()
}
