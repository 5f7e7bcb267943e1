//! Our node agent among other people's parts: the real kube-apiserver, kube-controller-manager and kube-scheduler, the
//! Go hostpath driver, the Go provisioner and the Go resizer. The cluster is its own, because the agent makes its Node.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use prove_cluster::{ControlPlane, Options, PeerProcess, peer};

use super::objects;
use crate::stand::Stand;

const PATIENCE: Duration = Duration::from_secs(90);
const PAUSE: Duration = Duration::from_millis(200);
const PLACE: &str = "node";
const DRIVER: &str = "hostpath.csi.k8s.io";
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

struct Scene {
    // In the order they are dropped: who mounts before what is mounted.
    agent: Option<PeerProcess>,
    registrar: Option<PeerProcess>,
    sidecars: Vec<PeerProcess>,
    control: ControlPlane,
    stand: Stand,
    lives: usize,
}

impl Scene {
    fn start() -> Scene {
        let options = Options {
            controller_manager: true,
            scheduler: true,
            controllers: CONTROLLERS.into(),
            ..Options::default()
        };
        let control = ControlPlane::start(options).unwrap();
        control.apply(&objects::definitions()).unwrap();
        for (_, plural, version, _) in objects::KINDS {
            let name = format!("crd/{plural}.{}", version.split('/').next().unwrap());
            control.kubectl(&["wait", "--for=condition=Established", &name, "--timeout=60s"]).unwrap();
        }
        control.apply(&(objects::place(PLACE, DRIVER, &[]) + CSI_DRIVER)).unwrap();
        let (stand, sidecars) = (Stand::go(), Vec::new());
        let mut scene = Scene { agent: None, registrar: None, sidecars, control, stand, lives: 0 };
        scene.start_agent();
        scene.wait_until("the node to be ready", &["get", "node", "n1"], |said| said.contains(" Ready "));
        // Whoever takes this taint off is the controller of nodes, which would also judge them.
        scene.kubectl(&["taint", "node", "n1", "node.kubernetes.io/not-ready-"]).unwrap();
        scene.start_registrar();
        scene.start_sidecars();
        scene
    }

    fn data(&self) -> PathBuf {
        self.stand.path("a")
    }

    fn kubeconfig(&self) -> String {
        format!("--kubeconfig={}", self.control.kubeconfig().display())
    }

    fn sidecar(&mut self, name: &str, program: &Path, flags: &[String]) {
        let mut words = vec![format!("POD_NAMESPACE={PLACE}"), program.display().to_string()];
        words.extend(flags.iter().cloned());
        let process = PeerProcess::start(name, Path::new("env"), &words, self.stand.scratch.path()).unwrap();
        self.sidecars.push(process);
    }

    /// Those that would be pods of the control plane.
    fn start_sidecars(&mut self) {
        let socket = self.stand.socket.display().to_string();
        let common = [format!("--csi-address={socket}"), self.kubeconfig()];
        for program in ["csi-provisioner", "csi-resizer"] {
            self.sidecar(program, &peer(program).unwrap(), &common);
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
    fn reboot(&mut self) {
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
    fn kill_agent(&mut self) {
        self.agent.take().unwrap().kill().unwrap();
        self.start_agent();
    }

    fn apply(&self, objects: &str) {
        self.control.apply(objects).unwrap();
    }

    fn kubectl(&self, words: &[&str]) -> Result<String, String> {
        let namespace = format!("--namespace={PLACE}");
        let words: Vec<&str> = words.iter().copied().chain([&*namespace]).collect();
        self.control.kubectl(&words).map_err(|error| error.to_string())
    }

    fn wait_until(&self, what: &str, words: &[&str], wanted: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.kubectl(words) {
                Ok(said) if wanted(&said) => return said,
                said if Instant::now() > until => panic!("waited for {what} in vain: {said:?}\n{}", self.told()),
                _early => std::thread::sleep(PAUSE),
            }
        }
    }

    fn wait_phase(&self, pod: &str, phase: &str) {
        let words = ["get", "pod", pod, "--output=jsonpath={.status.phase}"];
        self.wait_until(&format!("pod {pod} to be {phase}"), &words, |said| said == phase);
    }

    fn get(&self, what: &str, path: &str) -> String {
        self.kubectl(&["get", what, &format!("--output=jsonpath={path}")]).unwrap()
    }

    /// Where a pod's volumes are on this machine.
    fn volumes_of(&self, pod: &str) -> PathBuf {
        let uid = self.get(&format!("pod/{pod}"), "{.metadata.uid}");
        self.data().join("node/pods").join(uid).join("volumes")
    }

    /// For a failure: what there is, and the last words of everybody.
    fn told(&self) -> String {
        let objects = self.kubectl(&["get", "pv,pvc,pod,volumeattachment,node,csinode,events"]);
        let all = self.sidecars.iter().chain(&self.registrar).chain(&self.agent);
        let tails: Vec<String> = all.map(|one| format!("--- {}\n{}", one.name(), one.log_tail())).collect();
        format!("{}\n{}", objects.unwrap_or_else(|error| error), tails.join("\n"))
    }

    /// Nothing of the pods and claims is left in the API, in the driver or on the machine.
    fn wait_nothing_left(&self) {
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
fn pod(name: &str, volume: &str, command: &str) -> String {
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

fn of_claim(claim: &str) -> String {
    format!("persistentVolumeClaim: {{claimName: {claim}}}")
}

// KL-16, KL-20, KL-66, KL-71, KL-77, KL-101, EX-17 to EX-19, on parts that are not ours.
#[test]
fn a_pod_lives_on_our_node_among_the_parts_of_others() {
    let mut scene = Scene::start();
    let entry = ["get", "csinode", "n1", "--output=jsonpath={.spec.drivers[*].name}={.spec.drivers[*].topologyKeys}"];
    scene.wait_until("the driver to be registered", &entry, |said| said.contains("topology.hostpath.csi/node"));

    // Bound by their binder, made by their provisioner, placed by their scheduler, mounted and run by us.
    scene.apply(
        &(objects::claim(PLACE, "data", "")
            + &pod("writer", &of_claim("data"), "echo kept > /data/f; exec sleep 100000")),
    );
    scene.wait_phase("writer", "Running");
    let volume = scene.get("pvc/data", "{.spec.volumeName}");
    let target = scene.volumes_of("writer").join("kubernetes.io~csi").join(&volume).join("mount");
    let kept = || std::fs::read_to_string(target.join("f"));
    prove_cluster::eventually("the pod to write", PATIENCE, || {
        kept().map_err(|error| error.to_string()).and_then(|text| (text == "kept\n").then_some(()).ok_or(text))
    })
    .unwrap();

    // Grown by their resizer, which leaves the filesystem to the node.
    let more = "--patch={\"spec\":{\"resources\":{\"requests\":{\"storage\":\"32Mi\"}}}}";
    scene.kubectl(&["patch", "pvc", "data", more]).unwrap();
    let capacity = ["get", "pvc", "data", "--output=jsonpath={.status.capacity.storage}"];
    scene.wait_until("the claim to have grown", &capacity, |said| said == "32Mi");
    let resizing = "--output=jsonpath={.status.conditions[*].type} {.status.allocatedResourceStatuses}";
    scene.wait_until("nothing to be under way", &["get", "pvc", "data", resizing], |said| !said.contains("Resiz"));

    // A raw block volume keeps what is written to the device; an inline volume comes and goes with its pod.
    let raw = objects::claim(PLACE, "raw", "").replace("  accessModes", "  volumeMode: Block\n  accessModes");
    let on_device = |name: &str, command: &str| {
        let devices = "volumeDevices: [{name: data, devicePath: /dev/raw}]";
        pod(name, &of_claim("raw"), command).replace("volumeMounts: [{name: data, mountPath: /data}]", devices)
    };
    scene.apply(&(raw + &on_device("block-writer", "echo kept | dd of=/dev/raw conv=notrunc,fsync")));
    scene.wait_phase("block-writer", "Succeeded");
    scene.apply(&on_device("block-reader", "head -c 5 /dev/raw | grep -qx kept"));
    scene.wait_phase("block-reader", "Succeeded");
    scene.apply(&pod("inline", &format!("csi: {{driver: {DRIVER}}}"), "touch /data/f && exec sleep 100000"));
    scene.wait_phase("inline", "Running");
    assert_eq!(super::backend::contents(&scene.stand.socket).0.len(), 3);
    scene.kubectl(&["delete", "pod", "inline", "block-writer", "block-reader", "--timeout=60s"]).unwrap();
    assert_eq!(super::backend::contents(&scene.stand.socket).0.len(), 2);

    // Killed under churn: who runs goes on, who comes is served, who goes leaves nothing.
    let began = scene.get("pod/writer", "{.status.containerStatuses[0].state.running.startedAt}");
    let kills: usize = std::env::var("LONGSHORE_STORM_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(6);
    for round in 0..kills {
        let (claim, guest) = (format!("c{round}"), format!("p{round}"));
        scene.apply(&(objects::claim(PLACE, &claim, "") + &pod(&guest, &of_claim(&claim), "touch /data/here")));
        std::thread::sleep(Duration::from_millis(150 * (round as u64 % 7)));
        scene.kill_agent();
        if round % 2 == 1 {
            let before = format!("p{}", round - 1);
            scene.wait_phase(&before, "Succeeded");
            scene.kubectl(&["delete", "pod", &before, "--wait=false"]).unwrap();
            scene.kubectl(&["delete", "pvc", &format!("c{}", round - 1), "--wait=false"]).unwrap();
        }
    }
    for round in (0..kills).filter(|round| round % 2 == 1) {
        scene.wait_phase(&format!("p{round}"), "Succeeded");
    }
    assert_eq!(scene.get("pod/writer", "{.status.containerStatuses[0].state.running.startedAt}"), began);
    assert_eq!(scene.get("pod/writer", "{.status.containerStatuses[0].restartCount}"), "0");
    assert_eq!(kept().unwrap(), "kept\n");

    // Rebooted: pods that are to run run again on what is on disk, a block device and an inline volume included, and
    // one that was to run once has ended.
    let again = |pod: String| pod.replace("restartPolicy: Never", "restartPolicy: Always");
    let command = "echo started >> /data/log; exec sleep 100000";
    scene.apply(&(objects::claim(PLACE, "kept", "") + &again(pod("app", &of_claim("kept"), command))));
    scene.apply(&again(on_device("on-device", "head -c 5 /dev/raw | grep -qx kept && exec sleep 100000")));
    scene.apply(&again(pod("inline-again", &format!("csi: {{driver: {DRIVER}}}"), "exec sleep 100000")));
    let apps = ["app", "on-device", "inline-again"];
    apps.iter().for_each(|app| scene.wait_phase(app, "Running"));
    scene.reboot();
    for app in apps {
        let path = "{.status.phase} {.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}";
        let words = ["get", "pod", app, &format!("--output=jsonpath={path}")];
        scene.wait_until(&format!("pod {app} to run again"), &words, |said| said == "Running 1 true");
    }
    let volume = scene.get("pvc/kept", "{.spec.volumeName}");
    let log = scene.volumes_of("app").join("kubernetes.io~csi").join(volume).join("mount/log");
    prove_cluster::eventually("the pod to write again", PATIENCE, || {
        let text = std::fs::read_to_string(&log).map_err(|error| error.to_string())?;
        if text == "started\nstarted\n" { Ok(()) } else { Err(text) }
    })
    .unwrap();
    scene.wait_phase("writer", "Failed");

    // Taken down and read again by another pod; then all of it goes.
    scene.kubectl(&["delete", "pod", "writer", "--timeout=60s"]).unwrap();
    scene.apply(&pod("reader", &of_claim("data"), "grep -qx kept /data/f"));
    scene.wait_phase("reader", "Succeeded");
    scene.kubectl(&["delete", "pod,pvc", "--all", "--wait=false"]).unwrap();
    scene.wait_nothing_left();
}
