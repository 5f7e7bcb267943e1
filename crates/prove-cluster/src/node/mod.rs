//! A control plane with one real node: containerd and the kubelet, with a directory, a network and control groups of
//! their own.

mod command;
mod image;
mod kubelet;
mod network;
mod runtime;
mod takedown;

pub use image::Image;

use crate::{ControlPlane, Error, Options, PeerProcess, eventually};
use network::Network;
use runtime::Runtime;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(120);
/// What bridges and control groups are called: this, the number of the process, and which of its nodes.
const PREFIX: &str = "lsh";
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A cluster of one node. Dropped, it is gone: containers, mounts, loop devices, network and control groups.
#[derive(Debug)]
pub struct RealCluster {
    name: String,
    settings: Option<kubelet::Settings>,
    kubelet: Option<PeerProcess>,
    runtime: Option<Runtime>,
    network: Network,
    plane: ControlPlane,
}

impl RealCluster {
    /// The name of its only node.
    pub const NODE: &str = "n1";

    /// Starts one and waits until its node is ready. It has the images `busybox` and `registry.k8s.io/pause:3.10`.
    pub fn start(options: Options) -> Result<RealCluster, Error> {
        takedown::sweep(PREFIX, &env::temp_dir());
        let name = format!("{PREFIX}{}x{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let mut network = Network::make(&name)?;
        make_groups(&name)?;
        let plane = ControlPlane::start(with_node(options, &network))?;
        let port = plane.server().rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or_default();
        network.open(port)?;
        let mut cluster = RealCluster { name, settings: None, kubelet: None, runtime: None, network, plane };
        cluster.join()?;
        Ok(cluster)
    }

    /// The control plane.
    pub fn plane(&self) -> &ControlPlane {
        &self.plane
    }

    /// The control plane, to run programs beside it.
    pub fn plane_mut(&mut self) -> &mut ControlPlane {
        &mut self.plane
    }

    /// The kubelet's root: sockets of drivers are in `plugins`, those by which it hears of them in `plugins_registry`.
    pub fn kubelet_dir(&self) -> PathBuf {
        kubelet::root_in(self.plane.directory())
    }

    /// The address at which this machine's programs and the node's pods reach each other.
    pub fn address(&self) -> String {
        self.network.gateway().to_string()
    }

    /// Makes an image known on the node under these names; it is never pulled.
    pub fn load(&self, image: &Image, names: &[&str]) -> Result<(), Error> {
        self.runtime.as_ref().map_or(Ok(()), |runtime| runtime.load(image, names))
    }

    /// Where the node's containerd listens.
    pub fn runtime_socket(&self) -> String {
        runtime::socket_in(self.plane.directory())
    }

    /// The kubelet ends without a word and starts again; its pods go on running. Returns when it answers.
    pub fn restart_kubelet(&mut self) -> Result<(), Error> {
        if let Some(mut running) = self.kubelet.take() {
            running.kill()?;
        }
        self.kubelet = self.settings.as_ref().map(kubelet::Settings::start).transpose()?;
        let health = format!("--raw=/api/v1/nodes/{}/proxy/healthz", Self::NODE);
        eventually("the kubelet to answer again", PATIENCE, || {
            self.plane.kubectl(&["get", &health]).map_err(|error| error.to_string())
        })?;
        Ok(())
    }

    /// Do all programs run still? If not, the error has the end of the log.
    pub fn check(&mut self) -> Result<(), Error> {
        self.plane.check()?;
        self.runtime.as_mut().map_or(Ok(()), Runtime::check)?;
        self.kubelet.as_mut().map_or(Ok(()), PeerProcess::check)
    }

    /// The last words of the kubelet.
    pub fn kubelet_log(&self) -> String {
        self.kubelet.as_ref().map(PeerProcess::log_tail).unwrap_or_default()
    }

    /// What is mounted in the directories of pods and drivers, and loop devices of files on the node.
    pub fn mounts_and_loops(&self) -> Vec<String> {
        let root = self.kubelet_dir();
        let mut left = takedown::mounts(&root);
        left.retain(|mount| Path::new(mount) != root);
        left.extend(takedown::loops(self.plane.directory()));
        left
    }

    fn join(&mut self) -> Result<(), Error> {
        let directory = self.plane.directory().to_path_buf();
        let data = directory.join("addresses").display().to_string();
        let runtime = Runtime::start(&directory, &self.network.configuration(&data))?;
        let socket = runtime.socket();
        self.runtime = Some(runtime);
        self.load(&Image::busybox()?, &["docker.io/library/busybox:latest"])?;
        let settings =
            kubelet::Settings::write(Self::NODE, &directory, self.plane.kubeconfig(), &socket, &self.network)?;
        self.kubelet = Some(settings.start()?);
        self.settings = Some(settings);
        let ready = ["get", "node", Self::NODE, "--no-headers"];
        eventually("the node to be ready", PATIENCE, || {
            if let Err(ended) = self.check() {
                return Ok(Err(ended));
            }
            match self.plane.kubectl(&ready) {
                Ok(said) if said.contains(" Ready ") => Ok(Ok(())),
                Ok(said) => Err(format!("{said}\n{}", self.kubelet_log())),
                Err(error) => Err(format!("{error}\n{}", self.kubelet_log())),
            }
        })?
    }
}

impl Drop for RealCluster {
    fn drop(&mut self) {
        self.kubelet = None;
        self.runtime = None;
        takedown::take_down(&self.name, self.plane.directory());
    }
}

/// What a node asks of a control plane.
fn with_node(mut options: Options, network: &Network) -> Options {
    options.apiserver_flags.push(format!("--service-cluster-ip-range={}", network.services()));
    options.apiserver_flags.push("--kubelet-preferred-address-types=InternalIP".to_string());
    // Pods know the server by it; the path is from the plane's directory.
    options.controller_manager_flags.push("--root-ca-file=certs/apiserver.crt".to_string());
    Options { controller_manager: true, scheduler: true, ..options }
}

/// The kubelet takes its root of control groups as it is.
fn make_groups(name: &str) -> Result<(), Error> {
    let groups = Path::new("/sys/fs/cgroup");
    let controllers = ["cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids", "systemd"];
    for controller in controllers.iter().map(|controller| groups.join(controller)).filter(|path| path.is_dir()) {
        let path = controller.join(name);
        std::fs::create_dir_all(&path).map_err(Error::io(format!("make the control group {}", path.display())))?;
    }
    Ok(())
}
