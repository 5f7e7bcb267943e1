//! A cluster of one machine, a driver and its sidecars, each a process of its own.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use prove_cluster::{PeerProcess, Scratch, eventually};
use serde_json::{Value, json};

use crate::client::Client;
use crate::{backend, objects};

pub const DRIVER: &str = "local.csi.longshore";
pub const NODE: &str = "here";
const PATIENCE: Duration = Duration::from_secs(60);

pub const VOLUMES: &str = "/api/v1/persistentvolumes";
pub const ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";
pub const CONTENTS: &str = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents";
pub const CSI_NODES: &str = "/apis/storage.k8s.io/v1/csinodes";

/// Dropped, all of its processes end, and nothing of it stays on the machine.
pub struct World {
    sidecars: Vec<PeerProcess>,
    /// The driver, where it is a process of its own.
    driver: Option<PeerProcess>,
    /// `longshore up`, or the API server, where that is a process of ours.
    up: Option<PeerProcess>,
    pub api: Client,
    kubeconfig: PathBuf,
    pub scratch: Scratch,
    /// The namespace, class and snapshot class of this test.
    pub place: &'static str,
    /// The pod in that namespace which sidecars believe to run in.
    pub pod: Option<&'static str>,
}

impl World {
    /// With a class that has these parameters.
    pub fn new(place: &'static str, parameters: &[(&str, &str)]) -> World {
        let mut world = World::up(place, &["driver", "provisioner", "attacher"]);
        world.driver = Some(start("driver", &["driver", "--node-id=here"], world.scratch.path()));
        world.wait("the driver to be registered", CSI_NODES, |nodes| {
            nodes.iter().any(|node| node["spec"]["drivers"][0]["name"] == DRIVER)
        });
        world.api.apply(&objects::place(place, DRIVER, parameters));
        world
    }

    /// Everything in one process.
    pub fn all_in_one(place: &'static str) -> World {
        World::up(place, &[])
    }

    /// API server, controllers, node agent and driver, each a process of its own; controllers and node agent say at
    /// these addresses what they count.
    pub fn apart(place: &'static str, controllers: &str, node: &str) -> World {
        let scratch = Scratch::new(place).unwrap();
        let mut server = start("apiserver", &["apiserver", "--listen=127.0.0.1:0"], scratch.path());
        until_said(&mut server, "The API server is at");
        let kubeconfig = scratch.path().join("d/kubeconfig");
        let mut world = World::of(place, scratch, kubeconfig, Some(server));
        let address = format!("--csi-address={}", world.socket().display());
        world.start_parts(controllers, node, &[&address]);
        world
    }

    /// Controllers, node agent, driver and its sidecars on an API server that is there; the first two and the last say
    /// at these addresses what they count.
    #[allow(dead_code, reason = "the tests without other programs have no such server")]
    pub fn on(place: &'static str, kubeconfig: &Path, [controllers, node, sidecar]: [&str; 3]) -> World {
        let mut world = World::of(place, Scratch::new(place).unwrap(), kubeconfig.into(), None);
        world.start_parts(controllers, node, &[]);
        let endpoint = format!("--http-endpoint={sidecar}");
        world.sidecar("provisioner,attacher,resizer", kubeconfig, &["--v=5", &endpoint]);
        eventually("the sidecar to listen", PATIENCE, || {
            TcpStream::connect(sidecar).map(drop).map_err(|error| error.to_string())
        })
        .unwrap();
        world
    }

    fn of(place: &'static str, scratch: Scratch, kubeconfig: PathBuf, up: Option<PeerProcess>) -> World {
        let api = Client::new(&kubeconfig);
        World { sidecars: Vec::new(), driver: None, up, api, kubeconfig, scratch, place, pod: None }
    }

    /// Controllers with these flags, node agent and driver; returns once the driver is registered.
    fn start_parts(&mut self, controllers: &str, node: &str, flags: &[&str]) {
        let kubeconfig = format!("--kubeconfig={}", self.kubeconfig.display());
        let endpoint = format!("--http-endpoint={controllers}");
        let flags = [&["controllers", "-vv", &kubeconfig, &endpoint], flags].concat();
        let mut controllers = start("controllers", &flags, self.scratch.path());
        let endpoint = format!("--http-endpoint={node}");
        let flags = ["node", "-vv", "--node-name=here", &kubeconfig, &endpoint];
        let mut agent = start("node", &flags, self.scratch.path());
        until_said(&mut controllers, "controllers: binding, attachdetach, scheduler");
        until_said(&mut agent, "drivers register in");
        self.driver = Some(start("driver", &["driver", "--node-id=here"], self.scratch.path()));
        self.sidecars.extend([controllers, agent]);
        self.wait("the node to be ready", "/api/v1/nodes", |nodes| {
            let ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
            nodes.iter().any(|node| node["status"]["conditions"].as_array().is_some_and(|all| all.iter().any(ready)))
        });
        // The last thing that registration writes: the Node is annotated before it.
        self.wait("the driver to be registered", CSI_NODES, |nodes| {
            nodes.iter().any(|node| node["spec"]["drivers"].to_string().contains(DRIVER))
        });
    }

    /// `longshore up` without some of its parts.
    pub fn up(place: &'static str, without: &[&str]) -> World {
        let scratch = Scratch::new(place).unwrap();
        // With everything logged, so that it can be seen who asked for what.
        let mut up = vec!["up", "-vv", "--listen=127.0.0.1:0", "--node-name=here"];
        up.extend(without.iter().flat_map(|part| ["--without", part]));
        let mut up = start("up", &up, scratch.path());
        until_said(&mut up, "Longshore is up");
        let kubeconfig = scratch.path().join("d/kubeconfig");
        World::of(place, scratch, kubeconfig, Some(up))
    }

    /// The process number of the driver.
    pub fn driver_id(&self) -> u32 {
        self.driver.as_ref().unwrap().id()
    }

    /// Ends a process together with the world.
    pub fn keep(&mut self, process: PeerProcess) {
        self.sidecars.push(process);
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig.clone()
    }

    pub fn socket(&self) -> PathBuf {
        self.scratch.path().join("d/node/plugins").join(DRIVER).join("csi.sock")
    }

    /// A sidecar with these roles and more flags. Returns where it is among the sidecars.
    pub fn sidecar(&mut self, roles: &str, kubeconfig: &Path, more: &[&str]) -> usize {
        let mut flags = vec![
            "sidecar".to_string(),
            format!("--roles={roles}"),
            format!("--csi-address={}", self.socket().display()),
            format!("--kubeconfig={}", kubeconfig.display()),
        ];
        flags.extend(more.iter().map(|flag| flag.to_string()));
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        let name = format!("{}-{}", self.sidecars.len(), roles.replace(',', "-"));
        let namespace = format!("POD_NAMESPACE={}", self.place);
        let pod = self.pod.map(|pod| format!("POD_NAME={pod}"));
        let environment: Vec<&str> = [Some(namespace.as_str()), pod.as_deref()].into_iter().flatten().collect();
        self.sidecars.push(start_in(&environment, &name, &flags, self.scratch.path()));
        self.sidecars.len() - 1
    }

    /// Kills a sidecar with no warning.
    pub fn kill(&mut self, sidecar: usize) {
        self.sidecars[sidecar].kill().unwrap();
    }

    /// Tells every sidecar to end, and waits until it has.
    pub fn terminate(&mut self) {
        for sidecar in &mut self.sidecars {
            assert!(sidecar.terminate(PATIENCE).unwrap().success(), "{}", sidecar.log_tail());
        }
    }

    /// What a sidecar has written.
    pub fn log(&self, sidecar: usize) -> String {
        std::fs::read_to_string(self.sidecars[sidecar].log()).unwrap()
    }

    /// Everything that anybody wrote to its log.
    pub fn logs(&self) -> Vec<(PathBuf, String)> {
        let files = std::fs::read_dir(self.scratch.path()).unwrap().map(|entry| entry.unwrap().path());
        let logs = files.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
        logs.map(|path| (path.clone(), std::fs::read_to_string(&path).unwrap())).collect()
    }

    /// Where the namespaced objects of this test are.
    pub fn path(&self, plural: &str) -> String {
        let version = if plural.starts_with("volumesnapshot") { "apis/snapshot.storage.k8s.io/v1" } else { "api/v1" };
        format!("/{version}/namespaces/{}/{plural}", self.place)
    }

    /// Waits until the objects of a collection are as wanted, and returns them.
    pub fn wait(&self, what: &str, collection: &str, wanted: impl Fn(&[&Value]) -> bool) -> Vec<Value> {
        let found = self.api.watch(collection, wanted);
        found.unwrap_or_else(|last| panic!("waited for {what} in vain: {last}\n{}", self.told()))
    }

    pub fn wait_bound(&self, claims: &[&str]) {
        let bound = |object: &Value| object["status"]["phase"] == "Bound";
        self.wait("claims to be bound", &self.path("persistentvolumeclaims"), |all| {
            claims.iter().all(|name| all.iter().any(|claim| claim["metadata"]["name"] == *name && bound(claim)))
        });
    }

    /// The volume of a bound claim.
    pub fn volume_of(&self, claim: &str) -> Value {
        let claim = self.api.get(&format!("{}/{claim}", self.path("persistentvolumeclaims"))).unwrap();
        self.api.get(&format!("{VOLUMES}/{}", claim["spec"]["volumeName"].as_str().unwrap())).unwrap()
    }

    /// Waits until users are told, in an event about an object of this name.
    pub fn wait_told(&self, name: &str, words: &str) {
        self.wait(&format!("an event about {name} that says {words:?}"), &self.path("events"), |events| {
            let about = |event: &&&Value| event["involvedObject"]["name"] == name;
            events.iter().filter(about).any(|event| event["message"].as_str().unwrap_or_default().contains(words))
        });
    }

    /// Deletes pods, snapshots and claims, and waits until the API has none of them left, no volume and no attachment,
    /// and the driver nothing either.
    pub fn end(&self) {
        for plural in ["pods", "volumesnapshots", "persistentvolumeclaims"] {
            self.api.delete(&self.path(plural));
        }
        let collections = ["pods", "volumesnapshots", "persistentvolumeclaims"].map(|plural| self.path(plural));
        let everywhere = [VOLUMES, ATTACHMENTS].map(String::from);
        for collection in collections.iter().chain(&everywhere) {
            self.wait(&format!("{collection} to be empty"), collection, |all| all.is_empty());
        }
        // What a provisioner has only noted down may outlive the objects for a moment.
        eventually("the driver to hold nothing", PATIENCE, || match backend::contents(&self.socket()) {
            (volumes, snapshots) if volumes.is_empty() && snapshots.is_empty() => Ok(()),
            left => Err(format!("{left:?}")),
        })
        .unwrap_or_else(|error| panic!("{error}\n{}", self.told()));
        assert_eq!(self.leftovers(), Vec::<String>::new());
    }

    /// What is still mounted or attached.
    fn leftovers(&self) -> Vec<String> {
        let here = self.scratch.path().to_str().unwrap();
        let mounts = io_host::mounts_beneath(here).unwrap().into_iter().map(|entry| entry.target);
        let loops = io_host::loops().unwrap_or_default().into_iter();
        let loops = loops.filter(|entry| entry.backing_path.starts_with(here)).map(|entry| entry.device);
        mounts.chain(loops).collect()
    }

    /// Processes that say our directory on their command line: the pods' supervisors outlive `up`.
    fn strays(&self) -> Vec<String> {
        let here = format!("{}/", self.scratch.path().display());
        let ours = |number: &String| {
            let line = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
            number.parse::<u32>().is_ok() && String::from_utf8_lossy(&line).contains(&here)
        };
        let entries = std::fs::read_dir("/proc").unwrap();
        entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).filter(ours).collect()
    }

    /// For a failure: the last words of everybody.
    pub fn told(&self) -> String {
        let all = self.sidecars.iter().chain(&self.driver).chain(&self.up);
        all.map(|one| format!("--- {}\n{}\n", one.name(), one.log_tail())).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.sidecars.clear();
        self.driver = None;
        self.up = None;
        // After a failure: what pods left running, mounted or attached.
        for process in self.strays() {
            let _ = std::process::Command::new("kill").args(["-9", &process]).status();
        }
        for left in self.leftovers().iter().rev() {
            let undo: [&str; 2] = if left.starts_with("/dev/loop") { ["losetup", "-d"] } else { ["umount", "-l"] };
            let _ = std::process::Command::new(undo[0]).args([undo[1], left]).status();
        }
    }
}

/// Waits until a process has written something.
fn until_said(process: &mut PeerProcess, words: &str) {
    eventually(words, PATIENCE, || {
        process.check().map_err(|error| error.to_string())?;
        let said = std::fs::read_to_string(process.log()).unwrap_or_default();
        if said.contains(words) { Ok(()) } else { Err(said) }
    })
    .unwrap();
}

/// A process of our binary that keeps everything below the directory.
pub fn start(name: &str, words: &[&str], directory: &Path) -> PeerProcess {
    start_in(&[], name, words, directory)
}

/// A process of our binary that keeps everything below the directory, with this environment and no other.
fn start_in(environment: &[&str], name: &str, words: &[&str], directory: &Path) -> PeerProcess {
    let data = format!("LONGSHORE_DATA={}", directory.join("d").display());
    let line = [environment, &[&*data, env!("CARGO_BIN_EXE_longshore")], words].concat();
    PeerProcess::start(name, Path::new("env"), &line, directory).unwrap()
}

/// Any program, with this environment and no other.
pub fn start_program(
    environment: &[String],
    name: &str,
    program: &Path,
    words: &[String],
    directory: &Path,
) -> PeerProcess {
    let program = [program.display().to_string()];
    let line = [environment, &program, words].concat();
    PeerProcess::start(name, Path::new("env"), &line, directory).unwrap()
}

/// A pod on a node, with claims mounted at `/NAME`, that runs a command once.
pub fn pod(place: &str, name: &str, node: &str, claims: &[&str], command: &str) -> String {
    let mounts = claims.iter().map(|claim| json!({"name": claim, "mountPath": format!("/{claim}")}));
    let volumes = claims.iter().map(|claim| json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}));
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": place},
        "spec": {
            "nodeName": node, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": false,
            "containers": [{
                "name": "main", "image": "host", "command": ["sh", "-c", command],
                "volumeMounts": mounts.collect::<Value>(),
            }],
            "volumes": volumes.collect::<Value>(),
        },
    })
    .to_string()
}

pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|meta| std::os::unix::fs::MetadataExt::uid(&meta) == 0)
}
