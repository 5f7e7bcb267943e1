//! containerd with a root, a state and a socket of its own.

use crate::node::command::run;
use crate::node::image::Image;
use crate::{Error, PeerProcess, eventually};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
/// Where Debian's packages put what containerd asks for.
const PLUGINS: &str = "/usr/lib/cni";
/// What a pod's containers hang on. It sleeps.
const PAUSE: &str = "registry.k8s.io/pause:3.10";

/// A running containerd.
#[derive(Debug)]
pub(crate) struct Runtime {
    process: PeerProcess,
    directory: PathBuf,
}

impl Runtime {
    /// Starts one below the directory; pods get the network that this configuration of the plugins describes.
    pub(crate) fn start(directory: &Path, network: &str) -> Result<Runtime, Error> {
        if !Path::new(PLUGINS).join("bridge").exists() {
            let stderr = "install it with: apt-get install containerd runc containernetworking-plugins busybox-static";
            return Err(Error::Command { command: format!("{PLUGINS}/bridge"), stderr: stderr.to_string() });
        }
        let below = |name: &str| directory.join(name).display().to_string();
        for made in ["cni", "containerd"] {
            let path = directory.join(made);
            fs::create_dir_all(&path).map_err(Error::io(format!("make the directory {}", path.display())))?;
        }
        let write = |name: &str, text: &str| {
            fs::write(directory.join(name), text).map_err(Error::io(format!("write {}", below(name))))
        };
        write("cni/pods.conflist", network)?;
        write("containerd.toml", &configuration(&below))?;
        let program = Path::new("/usr/bin/containerd");
        let flags = [format!("--config={}", below("containerd.toml"))];
        let mut process = PeerProcess::start("containerd", program, &flags, directory)?;
        let socket = directory.join("containerd.sock");
        eventually("containerd to answer", PATIENCE, || {
            process.check().map_err(|error| error.to_string())?;
            run("ctr", &["--address", &socket.display().to_string(), "version"]).map_err(|error| error.to_string())
        })?;
        let runtime = Runtime { process, directory: directory.to_path_buf() };
        runtime.load(&Image::busybox()?, &[PAUSE])?;
        Ok(runtime)
    }

    pub(crate) fn socket(&self) -> String {
        socket_in(&self.directory)
    }

    pub(crate) fn check(&mut self) -> Result<(), Error> {
        self.process.check()
    }

    /// Makes the image known under these names; pods that name it need `imagePullPolicy: Never` or `IfNotPresent`.
    pub(crate) fn load(&self, image: &Image, names: &[&str]) -> Result<(), Error> {
        let file = image.archive(names)?.display().to_string();
        run("ctr", &["--address", &self.socket(), "--namespace", "k8s.io", "images", "import", &file]).map(|_| ())
    }
}

/// The socket of a containerd that was started below the directory.
pub(crate) fn socket_in(directory: &Path) -> String {
    directory.join("containerd.sock").display().to_string()
}

fn configuration(below: &dyn Fn(&str) -> String) -> String {
    format!(
        r#"version = 2
root = "{root}"
state = "{state}"
disabled_plugins = ["io.containerd.snapshotter.v1.devmapper"]
[grpc]
address = "{socket}"
[plugins."io.containerd.internal.v1.opt"]
path = "{opt}"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{PAUSE}"
# Machines without CAP_SYS_RESOURCE start no container otherwise.
restrict_oom_score_adj = true
tolerate_missing_hugetlb_controller = true
# So that they are found, and taken away, with everything else.
netns_mounts_under_state_dir = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{PLUGINS}"
conf_dir = "{cni}"
"#,
        root = below("containerd/root"),
        state = below("containerd/state"),
        socket = below("containerd.sock"),
        opt = below("containerd/opt"),
        cni = below("cni"),
    )
}
