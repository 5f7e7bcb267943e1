//! The kubelet, with a root of its own.

use crate::node::command::run;
use crate::node::network::Network;
use crate::{Error, PeerProcess, free_port, peer};
use std::fs;
use std::path::{Path, PathBuf};

/// Everything it is told, so that it can be started again.
#[derive(Debug)]
pub(crate) struct Settings {
    directory: PathBuf,
    flags: Vec<String>,
}

impl Settings {
    pub(crate) fn write(
        node: &str,
        directory: &Path,
        kubeconfig: &Path,
        socket: &str,
        network: &Network,
    ) -> Result<Settings, Error> {
        let root = root_in(directory);
        for below in ["", "pods", "plugins", "plugins_registry"] {
            let path = root.join(below);
            fs::create_dir_all(&path).map_err(Error::io(format!("make the directory {}", path.display())))?;
        }
        // Mounts that a driver makes in its container must be seen here, and from here in other containers.
        let root = root.display().to_string();
        run("mount", &["--bind", &root, &root])?;
        run("mount", &["--make-rshared", &root])?;
        let file = directory.join("kubelet.yaml");
        let text = configuration(directory, socket, network, free_port()?);
        fs::write(&file, text).map_err(Error::io(format!("write {}", file.display())))?;
        let flags = vec![
            format!("--config={}", file.display()),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--root-dir={root}"),
            format!("--cert-dir={root}/pki"),
            format!("--hostname-override={node}"),
            format!("--node-ip={}", network.gateway()),
        ];
        Ok(Settings { directory: directory.to_path_buf(), flags })
    }

    pub(crate) fn start(&self) -> Result<PeerProcess, Error> {
        PeerProcess::start("kubelet", &peer("kubelet")?, &self.flags, &self.directory)
    }
}

/// The root of a kubelet that was started below the directory.
pub(crate) fn root_in(directory: &Path) -> PathBuf {
    directory.join("kubelet")
}

/// `nodeStatusUpdateFrequency`: a pod with a volume starts when the node has said that it uses the volume, which is
/// with its status.
fn configuration(directory: &Path, socket: &str, network: &Network, port: u16) -> String {
    let below = |name: &str| directory.join(name).display().to_string();
    format!(
        "apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: {address}
port: {port}
readOnlyPort: 0
healthzPort: 0
containerRuntimeEndpoint: unix://{socket}
cgroupDriver: cgroupfs
cgroupRoot: /{name}
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
authentication: {{anonymous: {{enabled: true}}, webhook: {{enabled: false}}}}
authorization: {{mode: AlwaysAllow}}
evictionHard: {{}}
imageGCHighThresholdPercent: 100
nodeStatusUpdateFrequency: 1s
volumeStatsAggPeriod: 5s
podLogsDir: {logs}
volumePluginDir: {plugins}
",
        address = network.gateway(),
        name = network.name(),
        logs = below("pod-logs"),
        plugins = below("volume-plugins"),
    )
}
