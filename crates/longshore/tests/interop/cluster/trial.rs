//! One driver with its sidecars in a namespace of its own.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use prove_cluster::{PeerProcess, peer};

use super::plane::{Turn, turn};
use super::{backend, objects};
use crate::stand::Stand;

const PATIENCE: Duration = Duration::from_secs(40);
/// Each look starts a kubectl: not more of them than needed.
const PAUSE: Duration = Duration::from_millis(200);

/// Which driver.
#[derive(Clone, Copy)]
pub enum Driver {
    Ours,
    Go,
    /// Ours in the place of an in-tree plugin, for classes of that plugin.
    InPlace,
}

/// A driver, its sidecars, and a place to use them. Dropped, all of its processes end.
pub struct Trial {
    sidecars: Vec<PeerProcess>,
    pub stand: Stand,
    pub place: &'static str,
    pub driver: &'static str,
    /// The pod the sidecars believe to run in.
    pub pod: Option<&'static str>,
    /// The node our sidecars believe to run on.
    pub node: Option<&'static str>,
    turn: Turn,
}

impl Trial {
    pub fn new(place: &'static str, driver: Driver, parameters: &[(&str, &str)]) -> Trial {
        Trial::on(turn(), place, driver, parameters)
    }

    /// On this control plane.
    pub fn on(turn: Turn, place: &'static str, driver: Driver, parameters: &[(&str, &str)]) -> Trial {
        let (stand, driver, provisioner) = match driver {
            Driver::Ours => (Stand::ours(&[]), "local.csi.longshore", "local.csi.longshore"),
            Driver::Go => (Stand::go(), "hostpath.csi.k8s.io", "hostpath.csi.k8s.io"),
            Driver::InPlace => {
                let plugin = "kubernetes.io/gce-pd";
                (Stand::ours(&["--in-place-of", plugin]), "pd.csi.storage.gke.io", plugin)
            }
        };
        let trial = Trial { sidecars: Vec::new(), stand, place, driver, pod: None, node: None, turn };
        trial.apply(&objects::place(place, provisioner, parameters));
        trial.wait_until("the namespace's service account", &["get", "serviceaccount", "default"], |said| {
            said.contains("default")
        });
        trial
    }

    /// Our sidecar with these roles and more flags, as whoever the kubeconfig says; the administrator if there is none.
    /// Returns where it is among the sidecars.
    pub fn ours(&mut self, roles: &str, kubeconfig: Option<&Path>, more: &[&str]) -> usize {
        let mut flags = self.common(kubeconfig);
        flags.insert(0, "sidecar".into());
        flags.push(format!("--roles={roles}"));
        flags.extend(more.iter().map(|flag| flag.to_string()));
        self.start(&format!("ours-{}", roles.replace(',', "-")), Path::new(env!("CARGO_BIN_EXE_longshore")), &flags)
    }

    /// Our sidecar as a pod runs it: these variables say where the cluster is, and the service account is in this folder.
    pub fn ours_as_pod(&mut self, roles: &str, account: &Path, variables: &[String]) -> usize {
        const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
        let mount =
            "mount -t tmpfs tmpfs /run && mkdir -p \"$0\" && mount --bind \"$1\" \"$0\" && shift && exec env \"$@\"";
        let mut words: Vec<String> =
            ["--mount", "--propagation=private", "sh", "-c", mount, ACCOUNT].map(String::from).into();
        words.push(account.display().to_string());
        words.extend(["-u", "KUBECONFIG", "HOME=/nonexistent"].map(String::from));
        words.extend(variables.iter().cloned());
        words.push(env!("CARGO_BIN_EXE_longshore").into());
        words.extend([
            "sidecar".into(),
            format!("--roles={roles}"),
            format!("--csi-address={}", self.stand.socket.display()),
        ]);
        self.start(&format!("pod-{roles}"), Path::new("unshare"), &words)
    }

    /// A Go sidecar with limits lifted.
    pub fn go(&mut self, program: &str, more: &[&str]) -> usize {
        let mut flags = self.common(None);
        flags.push("--kube-api-qps=1000".into());
        flags.push("--kube-api-burst=1000".into());
        flags.extend(more.iter().map(|flag| flag.to_string()));
        self.start(program, &peer(program).unwrap(), &flags)
    }

    /// All of our controllers but the scheduler.
    pub fn our_controllers(&mut self) -> usize {
        let kubeconfig = format!("--kubeconfig={}", self.turn.plane.control.kubeconfig().display());
        let words = ["controllers".to_string(), "--controllers=*,-scheduler".into(), kubeconfig, "-vv".into()];
        self.start("controllers", Path::new(env!("CARGO_BIN_EXE_longshore")), &words)
    }

    fn common(&self, kubeconfig: Option<&Path>) -> Vec<String> {
        let kubeconfig = kubeconfig.unwrap_or(self.turn.plane.control.kubeconfig());
        vec![format!("--csi-address={}", self.stand.socket.display()), format!("--kubeconfig={}", kubeconfig.display())]
    }

    fn start(&mut self, name: &str, program: &Path, flags: &[String]) -> usize {
        let name = format!("{}-{name}", self.sidecars.len());
        // Leases, and with them the journal, are where the pod is: a driver of the same name elsewhere is another trial's.
        let mut words = vec![format!("POD_NAMESPACE={}", self.place)];
        words.extend(self.pod.iter().map(|pod| format!("POD_NAME={pod}")));
        words.extend(self.pod.iter().map(|_| format!("NAMESPACE={}", self.place)));
        words.extend(self.node.iter().map(|node| format!("NODE_NAME={node}")));
        words.push(program.display().to_string());
        words.extend(flags.iter().cloned());
        self.sidecars.push(PeerProcess::start(&name, Path::new("env"), &words, self.stand.scratch.path()).unwrap());
        self.sidecars.len() - 1
    }

    /// Kills a sidecar with no warning.
    pub fn kill(&mut self, sidecar: usize) {
        self.sidecars[sidecar].kill().unwrap();
    }

    /// What a sidecar that serves at this port answers there, once it does.
    pub fn answer(&self, port: u16, path: &str) -> String {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(("127.0.0.1", port))?;
            write!(stream, "GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")?;
            let mut said = String::new();
            stream.read_to_string(&mut said)?;
            Ok(said)
        };
        prove_cluster::eventually(&format!("an answer at {path}"), PATIENCE, || {
            ask().map_err(|error| error.to_string())
        })
        .unwrap()
    }

    /// Everything the driver and the sidecars wrote.
    pub fn logs(&self) -> Vec<(PathBuf, String)> {
        let files = std::fs::read_dir(self.stand.scratch.path()).unwrap().map(|entry| entry.unwrap().path());
        let logs = files.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
        logs.map(|path| (path.clone(), String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned())).collect()
    }

    pub fn plane(&self) -> &super::plane::Plane {
        &self.turn.plane
    }

    pub fn apply(&self, objects: &str) {
        self.turn.plane.control.apply(objects).unwrap();
    }

    /// What kubectl prints in the trial's namespace.
    pub fn kubectl(&self, words: &[&str]) -> Result<String, String> {
        let namespace = format!("--namespace={}", self.place);
        let words: Vec<&str> = words.iter().copied().chain([&*namespace]).collect();
        self.turn.plane.control.kubectl(&words).map_err(|error| error.to_string())
    }

    /// Looks again and again until what kubectl prints is as wanted, and returns it.
    pub fn wait_until(&self, what: &str, words: &[&str], wanted: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let said = self.kubectl(words);
            match said {
                Ok(said) if wanted(&said) => return said,
                said if Instant::now() > until => panic!("waited for {what} in vain: {said:?}\n{}", self.told()),
                _early => std::thread::sleep(PAUSE),
            }
        }
    }

    pub fn wait_bound(&self, claims: &[&str]) {
        for claim in claims {
            let phase = ["get", "pvc", claim, "--output=jsonpath={.status.phase}"];
            self.wait_until(&format!("claim {claim} to be bound"), &phase, |said| said == "Bound");
        }
    }

    /// The volumes of the trial's class, as the API has them.
    pub fn volumes(&self) -> Vec<String> {
        self.listed("pv", "{.spec.storageClassName}", self.place)
    }

    /// The names of the objects of a kind that have a value at a path.
    pub fn listed(&self, kind: &str, path: &str, value: &str) -> Vec<String> {
        let line = format!("--output=jsonpath={{range .items[*]}}{path} {{.metadata.name}}{{\"\\n\"}}{{end}}");
        let said = self.kubectl(&["get", kind, &line]).unwrap();
        said.lines().filter_map(|line| line.strip_prefix(&format!("{value} "))).map(String::from).collect()
    }

    /// Waits until the API has no claim, volume, attachment or snapshot left, and the driver none either.
    pub fn wait_nothing_left(&self) {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = self.left();
            if left.is_empty() {
                break;
            }
            assert!(Instant::now() < until, "left behind: {left:?}\n{}", self.told());
            std::thread::sleep(PAUSE);
        }
        assert_eq!(self.stand.leftovers(), Vec::<String>::new());
    }

    fn left(&self) -> Vec<String> {
        let mut left = self.volumes();
        left.extend(self.listed("volumeattachment", "{.spec.attacher}", self.driver));
        left.extend(self.listed("volumesnapshotcontent", "{.spec.volumeSnapshotClassName}", self.place));
        for kind in ["pvc", "volumesnapshot"] {
            let said = self.kubectl(&["get", kind, "--output=name"]).unwrap();
            left.extend(said.lines().map(String::from));
        }
        let (volumes, snapshots) = backend::contents(&self.stand.socket);
        left.extend(volumes);
        left.extend(snapshots);
        left
    }

    /// For a failure: what there is, and the last words of everybody.
    fn told(&self) -> String {
        let objects = self.kubectl(&["get", "pv,pvc,pod,volumeattachment,volumesnapshot,volumesnapshotcontent,events"]);
        let tails: Vec<String> =
            self.sidecars.iter().map(|one| format!("--- {}\n{}", one.name(), one.log_tail())).collect();
        format!("{}\n{}", objects.unwrap_or_else(|error| error), tails.join("\n"))
    }
}
