//! A cluster with a real node, and the snapshot controller beside it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use prove_cluster::{Image, Options, RealCluster, peer};

use crate::objects;

/// How long a state may take.
pub const PATIENCE: Duration = Duration::from_secs(120);
pub const PAUSE: Duration = Duration::from_millis(100);
/// Our image, as pods name it: the program, and what makes filesystems.
pub const IMAGE: &str = "docker.io/library/longshore:test";
/// What the driver runs to make filesystems, look at them and grow them, besides the program itself.
const TOOLS: [&str; 8] = ["mkfs.ext4", "e2fsck", "resize2fs", "mkfs.xfs", "xfs_repair", "mkfs.btrfs", "btrfs", "blkid"];

/// The cluster. Dropped, nothing of it is left on the machine.
pub struct Scene {
    pub cluster: RealCluster,
}

/// Where a program of this machine is.
fn found(name: &str) -> PathBuf {
    let places = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(|place| Path::new(place).join(name));
    places.into_iter().find(|path| path.exists()).unwrap_or_else(|| panic!("{name} is not installed"))
}

impl Scene {
    /// One with an image on its node that is made of the program of this build.
    pub fn start() -> Scene {
        Scene::start_with(Options::default())
    }

    /// The same on a control plane as wished.
    pub fn start_with(options: Options) -> Scene {
        let scene = Scene::bare_with(options);
        let image = Image::empty().unwrap().run(&["/longshore"], &[]);
        image.program(Path::new(env!("CARGO_BIN_EXE_longshore")), "/longshore").unwrap();
        for tool in TOOLS {
            image.program(&found(tool), &format!("/usr/bin/{tool}")).unwrap();
        }
        scene.cluster.load(&image, &[IMAGE]).unwrap();
        scene
    }

    /// One without anything of ours.
    pub fn bare() -> Scene {
        Scene::bare_with(Options::default())
    }

    fn bare_with(options: Options) -> Scene {
        let cluster = RealCluster::start(options).unwrap();
        let mut scene = Scene { cluster };
        scene.apply(&objects::definitions());
        for plural in ["volumesnapshots", "volumesnapshotcontents", "volumesnapshotclasses"] {
            let name = format!("crd/{plural}.snapshot.storage.k8s.io");
            scene.kubectl(&["wait", "--for=condition=Established", &name, "--timeout=60s"]).unwrap();
        }
        scene.beside("snapshot-controller", &peer("snapshot-controller").unwrap(), &["--http-endpoint=".into()]);
        scene
    }

    /// Runs a program beside the cluster, as its administrator.
    pub fn beside(&mut self, name: &str, program: &Path, flags: &[String]) {
        let config = format!("--kubeconfig={}", self.cluster.plane().kubeconfig().display());
        let mut words: Vec<&str> = flags.iter().map(String::as_str).collect();
        words.push(&config);
        self.cluster.plane_mut().run(name, program, &words).unwrap();
    }

    pub fn apply(&self, objects: &str) {
        self.cluster.plane().apply(objects).unwrap();
    }

    pub fn kubectl(&self, words: &[&str]) -> Result<String, String> {
        self.cluster.plane().kubectl(words).map_err(|error| error.to_string())
    }

    /// What kubectl prints of one field.
    pub fn get(&self, what: &str, path: &str) -> String {
        self.kubectl(&["get", what, &format!("--output=jsonpath={path}")]).unwrap()
    }

    /// What a shell in a pod's container prints.
    pub fn inside(&self, pod: &str, command: &str) -> Result<String, String> {
        self.kubectl(&["exec", pod, "--", "sh", "-c", command])
    }

    /// Looks again and again until what kubectl prints is as wanted, and returns it.
    pub fn wait_until(&mut self, what: &str, words: &[&str], wanted: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.kubectl(words) {
                Ok(said) if wanted(&said) => return said,
                said if Instant::now() > until => panic!("waited for {what} in vain: {said:?}\n{}", self.told()),
                _early => std::thread::sleep(PAUSE),
            }
        }
    }

    /// Waits for a condition of an object, such as `pod/app` and `Ready`.
    pub fn wait_for(&mut self, what: &str, condition: &str) {
        let path = format!("--output=jsonpath={{.status.conditions[?(@.type==\"{condition}\")].status}}");
        self.wait_until(&format!("{what} to be {condition}"), &["get", what, &path], |said| said == "True");
    }

    pub fn wait_phase(&mut self, what: &str, phase: &str) {
        let words = ["get", what, "--output=jsonpath={.status.phase}"];
        self.wait_until(&format!("{what} to be {phase}"), &words, |said| said == phase);
    }

    /// Waits until there are no objects of these kinds, in any namespace.
    pub fn wait_none(&mut self, kinds: &str) {
        let words = ["get", kinds, "--all-namespaces", "--output=name"];
        self.wait_until(&format!("no {kinds} to be left"), &words, str::is_empty);
    }

    /// Deletes and waits until it is gone.
    pub fn delete(&mut self, what: &[&str]) {
        let words = [&["delete", "--wait=false"], what].concat();
        self.kubectl(&words).unwrap();
        for name in what {
            let words = ["get", name, "--ignore-not-found", "--output=name"];
            self.wait_until(&format!("{name} to be gone"), &words, str::is_empty);
        }
    }

    /// Waits until no volume is mounted for a pod or a driver on the node, and no loop device is left.
    pub fn wait_nothing_mounted(&mut self) {
        let until = Instant::now() + PATIENCE;
        loop {
            let left: Vec<String> = self.volumes_mounted();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < until, "still there: {left:#?}\n{}", self.told());
            std::thread::sleep(PAUSE);
        }
    }

    /// What is mounted for volumes of drivers, and loop devices: not what pods have of tokens and the like.
    pub fn volumes_mounted(&self) -> Vec<String> {
        let mut mounted = self.cluster.mounts_and_loops();
        mounted.retain(|mount| mount.contains("kubernetes.io~csi") || !mount.contains("/volumes/"));
        mounted
    }

    /// For a failure: what there is, and the last words of everybody.
    pub fn told(&mut self) -> String {
        let kinds = "pv,pvc,pod,volumeattachment,volumesnapshot,volumesnapshotcontent,csinode";
        let objects = self.kubectl(&["get", kinds, "--all-namespaces", "--output=wide"]);
        let events = self.kubectl(&["get", "events", "--all-namespaces", "--sort-by=.lastTimestamp"]);
        let pods = self.kubectl(&[
            "logs",
            "--all-containers",
            "--tail=30",
            "--prefix",
            "-n=kube-system",
            "-l=app.kubernetes.io/component",
        ]);
        let beside: Vec<String> = self
            .cluster
            .plane()
            .processes()
            .iter()
            .skip(4)
            .map(|one| format!("--- {}\n{}", one.name(), one.log_tail()))
            .collect();
        let running = self.cluster.check().map_or_else(|error| error.to_string(), |()| String::new());
        let or = |said: Result<String, String>| said.unwrap_or_else(|error| error);
        format!(
            "{running}{}\n{}\n{}\n{}\n--- kubelet\n{}",
            or(objects),
            or(events),
            or(pods),
            beside.join("\n"),
            self.cluster.kubelet_log()
        )
    }
}
