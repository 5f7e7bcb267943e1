//! A real Kubernetes control plane for tests: etcd and kube-apiserver, on request kube-controller-manager and
//! kube-scheduler, on loopback with free ports, in a temporary directory.
//!
//! With a [`RealCluster`] also one real node: containerd and the kubelet, which need root.
//!
//! - Owns: the processes it starts and their directory. Both are gone when a [`ControlPlane`] is dropped, also when
//!   the test panics; when the whole test process is killed the kernel ends the processes, and the next start
//!   removes the directory.
//! - Writes: below that directory only.
//! - Only reads: the programs that `make peers` built, and `kubectl`, `openssl`, `setpriv` and `sh` of the machine.
//! - Laws: nothing listens but on 127.0.0.1, and for a node's pods on a bridge of its own; every request is
//!   authenticated and passes RBAC; a start either gives a server that answers ready or an error with the end of the
//!   failing program's log.
//! - Does not know: any crate of the project. It is the outside world, so that what is proved with it is proved
//!   against Kubernetes and not against our own idea of it.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod error;
mod node;
mod peer;
mod plane;
mod ports;
mod process;
mod scratch;
mod setup;

pub use error::{Error, MissingPeer};
pub use node::{Image, RealCluster};
pub use peer::{peer, peers_folder};
pub use plane::{ControlPlane, Options, WITHOUT_VOLUMES, eventually};
pub use ports::free_port;
pub use process::PeerProcess;
pub use scratch::Scratch;
