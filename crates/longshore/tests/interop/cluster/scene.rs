//! A cluster of its own around our node agent: the real kube-apiserver, kube-controller-manager and kube-scheduler, the
//! Go hostpath driver, the Go provisioner and the Go resizer, and our attacher.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use prove_cluster::{ControlPlane, Options, PeerProcess, Scratch, peer};

use super::objects;
use super::plane::{audit_flags, define};
use crate::stand::Stand;

/// How long a state may take.
pub const PATIENCE: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(200);
/// The namespace and the class.
pub const PLACE: &str = "node";
pub const DRIVER: &str = "hostpath.csi.k8s.io";
const CONTROLLERS: &str = "persistentvolume-binder-controller,persistentvolume-attach-detach-controller,\
    persistentvolume-expander-controller,persistentvolumeclaim-protection-controller,\
    persistentvolume-protection-controller,serviceaccount-controller,garbage-collector-controller,\
    ephemeral-volume-controller";

/// As the driver's own deployment has it.
const CSI_DRIVER: &str = "
---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: hostpath.csi.k8s.io}
spec: {attachRequired: true, podInfoOnMount: true, fsGroupPolicy: File, volumeLifecycleModes: [Persistent, Ephemeral]}
";

/// All of it. Dropped, it ends, and nothing is left on the machine.
pub struct Scene {
    // In the order they are dropped: who mounts before what is mounted.
    agent: Option<PeerProcess>,
    registrar: Option<PeerProcess>,
    sidecars: Vec<PeerProcess>,
    pub control: ControlPlane,
    pub stand: Stand,
    _policy: Scratch,
    lives: usize,
}

impl Scene {
    /// With their controllers, where nobody judges nodes.
    pub fn start() -> Scene {
        let mut scene = Scene::begin(CONTROLLERS);
        scene.join();
        // Whoever takes this taint off is the controller of nodes, which would also judge them.
        scene.kubectl(&["taint", "node", "n1", "node.kubernetes.io/not-ready-"]).unwrap();
        scene
    }

    /// A cluster without a node, in which kube-controller-manager runs these controllers.
    pub fn begin(controllers: &str) -> Scene {
        let policy = Scratch::new("audit").unwrap();
        let options = Options {
            controller_manager: true,
            scheduler: true,
            controllers: controllers.into(),
            apiserver_flags: audit_flags(policy.path()),
            ..Options::default()
        };
        let control = ControlPlane::start(options).unwrap();
        define(&control);
        control.apply(&(objects::place(PLACE, DRIVER, &[]) + CSI_DRIVER)).unwrap();
        let (stand, sidecars) = (Stand::go(), Vec::new());
        Scene { agent: None, registrar: None, sidecars, control, stand, _policy: policy, lives: 0 }
    }

    /// The node comes, and the driver with its sidecars.
    pub fn join(&mut self) {
        self.start_agent();
        self.wait_until("the node to be ready", &["get", "node", "n1"], |said| said.contains(" Ready "));
        self.start_registrar();
        self.start_sidecars();
    }

    pub fn data(&self) -> PathBuf {
        self.stand.path("a")
    }

    pub fn kubeconfig(&self) -> String {
        format!("--kubeconfig={}", self.control.kubeconfig().display())
    }

    fn sidecar(&mut self, name: &str, program: &Path, flags: &[String]) {
        let mut words = vec![format!("POD_NAMESPACE={PLACE}"), program.display().to_string()];
        words.extend(flags.iter().cloned());
        let process = PeerProcess::start(name, Path::new("env"), &words, self.stand.scratch.path()).unwrap();
        self.sidecars.push(process);
    }

    /// Those that would be pods of the control plane; limits of requests are lifted.
    fn start_sidecars(&mut self) {
        let socket = self.stand.socket.display().to_string();
        let common = [format!("--csi-address={socket}"), self.kubeconfig()];
        let lifted = ["--kube-api-qps=1000".to_string(), "--kube-api-burst=1000".into()];
        for program in ["csi-provisioner", "csi-resizer"] {
            self.sidecar(program, &peer(program).unwrap(), &[&common[..], &lifted].concat());
        }
        let attacher = [&["sidecar".to_string(), "--roles=attacher".into()], &common[..]].concat();
        self.sidecar("attacher", Path::new(env!("CARGO_BIN_EXE_longshore")), &attacher);
    }

    /// The only sidecar that is on the node.
    fn start_registrar(&mut self) {
        let socket = self.stand.socket.display();
        let words = [
            "sidecar".to_string(),
            "--roles=registrar".into(),
            format!("--csi-address={socket}"),
            format!("--kubelet-registration-path={socket}"),
            format!("--plugin-registration-path={}", self.data().join("node/plugins_registry").display()),
        ];
        let program = Path::new(env!("CARGO_BIN_EXE_longshore"));
        self.registrar = Some(PeerProcess::start("registrar", program, &words, self.stand.scratch.path()).unwrap());
    }

    /// The machine goes down and comes up: every process and mount of the node is gone, and what is on disk is there.
    ///
    /// The Go driver needs help with it. Loop devices stay, as disks do: it attaches them with the volume and never
    /// again. What it has published is forgotten: it counts a target once for each call, and would never unstage it.
    /// Its sidecars end with the connection to it, as they are made to.
    pub fn reboot(&mut self) {
        self.agent.take().unwrap().kill().unwrap();
        self.registrar = None;
        self.sidecars.clear();
        self.stand.restart_go(|stand| {
            prove_cluster::eventually("the machine to be down", PATIENCE, || {
                supervisors(stand).iter().for_each(|process| {
                    let _ = std::process::Command::new("kill").args(["-9", process]).status();
                });
                stand.unmount_all();
                let left = [supervisors(stand), stand.mounts()].concat();
                if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
            })
            .unwrap();
            let file = stand.path("state/state.json");
            let mut state: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            for volume in state["Volumes"].as_array_mut().unwrap() {
                assert!(volume["Published"].is_array() || volume["Published"].is_null(), "{volume}");
                (volume["Published"], volume["Staged"]) = (serde_json::json!([]), serde_json::json!([]));
            }
            std::fs::write(&file, state.to_string()).unwrap();
        });
        self.start_sidecars();
        self.start_registrar();
        self.start_agent();
    }

    /// Starts the agent, perhaps once more.
    fn start_agent(&mut self) {
        self.lives += 1;
        let words = [
            "node".to_string(),
            "--node-name=n1".into(),
            format!("--data-dir={}", self.data().display()),
            self.kubeconfig(),
        ];
        let program = Path::new(env!("CARGO_BIN_EXE_longshore"));
        let name = format!("agent-{}", self.lives);
        self.agent = Some(PeerProcess::start(&name, program, &words, self.stand.scratch.path()).unwrap());
    }

    /// The agent ends without a word and starts again.
    pub fn kill_agent(&mut self) {
        self.agent.take().unwrap().kill().unwrap();
        self.start_agent();
    }

    pub fn apply(&self, objects: &str) {
        self.control.apply(objects).unwrap();
    }

    pub fn kubectl(&self, words: &[&str]) -> Result<String, String> {
        let namespace = format!("--namespace={PLACE}");
        let words: Vec<&str> = words.iter().copied().chain([&*namespace]).collect();
        self.control.kubectl(&words).map_err(|error| error.to_string())
    }

    pub fn wait_until(&self, what: &str, words: &[&str], wanted: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.kubectl(words) {
                Ok(said) if wanted(&said) => return said,
                said if Instant::now() > until => panic!("waited for {what} in vain: {said:?}\n{}", self.told()),
                _early => std::thread::sleep(PAUSE),
            }
        }
    }

    pub fn wait_phase(&self, pod: &str, phase: &str) {
        let words = ["get", "pod", pod, "--output=jsonpath={.status.phase}"];
        self.wait_until(&format!("pod {pod} to be {phase}"), &words, |said| said == phase);
    }

    pub fn get(&self, what: &str, path: &str) -> String {
        self.kubectl(&["get", what, &format!("--output=jsonpath={path}")]).unwrap()
    }

    /// Where a pod's volumes are on this machine.
    pub fn volumes_of(&self, pod: &str) -> PathBuf {
        let uid = self.get(&format!("pod/{pod}"), "{.metadata.uid}");
        self.data().join("node/pods").join(uid).join("volumes")
    }

    /// For a failure: what there is, and the last words of everybody.
    pub fn told(&self) -> String {
        let objects = self.kubectl(&["get", "pv,pvc,pod,volumeattachment,node,csinode,events"]);
        let all = self.sidecars.iter().chain(&self.registrar).chain(&self.agent);
        let tails: Vec<String> = all.map(|one| format!("--- {}\n{}", one.name(), one.log_tail())).collect();
        format!("{}\n{}", objects.unwrap_or_else(|error| error), tails.join("\n"))
    }

    /// Nothing of the pods and claims is left in the API, in the driver or on the machine.
    pub fn wait_nothing_left(&self) {
        let nothing = |said: &str| said.is_empty();
        for kind in ["pod", "pvc", "pv", "volumeattachment"] {
            self.wait_until(&format!("no {kind} to be left"), &["get", kind, "--output=name"], nothing);
        }
        let in_use = ["get", "node", "n1", "--output=jsonpath={.status.volumesInUse}"];
        self.wait_until("no volume to be in use", &in_use, |said| matches!(said, "" | "[]"));
        assert_eq!(super::backend::contents(&self.stand.socket).0, Vec::<String>::new());
        assert_eq!(self.stand.leftovers(), Vec::<String>::new());
    }
}

/// The processes that keep the pods of a node, by number.
fn supervisors(stand: &Stand) -> Vec<String> {
    let here = format!("{}/", stand.scratch.path().display());
    let ours = |number: &String| {
        let line = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        number.parse::<u32>().is_ok() && line.contains("process-shim") && line.contains(&here)
    };
    let entries = std::fs::read_dir("/proc").unwrap();
    entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).filter(ours).collect()
}

/// A pod that runs a command of this machine, with a volume at `/data`.
pub fn pod(name: &str, volume: &str, command: &str) -> String {
    format!(
        "
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {PLACE}}}
spec:
  automountServiceAccountToken: false
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: host
    command: [sh, -c, '{command}']
    volumeMounts: [{{name: data, mountPath: /data}}]
  volumes: [{{name: data, {volume}}}]
"
    )
}

pub fn of_claim(claim: &str) -> String {
    format!("persistentVolumeClaim: {{claimName: {claim}}}")
}
