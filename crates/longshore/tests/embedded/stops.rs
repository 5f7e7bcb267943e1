//! The driver is stopped at every call of a volume's life: the process stands still, is killed and started again. Once
//! before it has done anything, once when all is done and nobody has heard of it. The end is the same, and nothing is
//! left.
#![allow(clippy::print_stderr, reason = "a test that is not run says why")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use csi::{Call, Code, Method, Response, Status};
use io_csi::{Answers, CsiClient};
use prove_cluster::{PeerProcess, eventually};
use serde_json::json;

use crate::life::wait_phase;
use crate::objects;
use crate::world::{CSI_NODES, DRIVER, NODE, World, is_root, pod, start};

/// Every call that changes something in the life of a volume that stays as large as it is.
const CALLS: [Method; 8] = [
    Method::CreateVolume,
    Method::ControllerPublishVolume,
    Method::NodeStageVolume,
    Method::NodePublishVolume,
    Method::NodeUnpublishVolume,
    Method::NodeUnstageVolume,
    Method::ControllerUnpublishVolume,
    Method::DeleteVolume,
];
/// Every call that makes a volume larger.
const GROWTH: [Method; 2] = [Method::ControllerExpandVolume, Method::NodeExpandVolume];
/// What a volume has, and what it grows to.
const SIZES: [&str; 2] = ["128Mi", "256Mi"];
const PATIENCE: Duration = Duration::from_secs(60);

/// When the driver is stopped.
#[derive(Clone, Copy, Debug)]
enum When {
    /// The call has reached it, and it has not begun.
    Asked,
    /// It has done everything, and the answer is lost.
    Done,
}

/// Stands before the driver, hands every call on, and stops the driver at one of them.
#[derive(Clone)]
struct Gate(Arc<Guarded>);

struct Guarded {
    behind: PathBuf,
    scratch: PathBuf,
    client: CsiClient,
    plan: Mutex<Option<(Method, When)>>,
    driver: Mutex<PeerProcess>,
}

impl Gate {
    fn before(world: &World) -> Gate {
        let scratch = world.scratch.path().to_path_buf();
        let behind = scratch.join("behind.sock");
        let driver = Mutex::new(start_driver(&behind, &scratch));
        let listens = || behind.exists().then_some(()).ok_or_else(|| "it does not listen".to_string());
        eventually("the driver", PATIENCE, listens).unwrap();
        let gate =
            Gate(Arc::new(Guarded { behind, scratch, client: CsiClient::new(), plan: Mutex::default(), driver }));
        let (serves, socket) = (gate.clone(), world.socket());
        std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
        let (say, listens) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let served =
                    io_csi::serve(&socket, rules_driver::METHODS, serves, std::future::pending()).await.unwrap();
                say.send(()).unwrap();
                served.finished().await
            })
        });
        listens.recv().unwrap();
        gate
    }

    fn plan(&self, method: Method, when: When) {
        *self.0.plan.lock().unwrap() = Some((method, when));
    }

    /// Whether the driver was stopped where it should be.
    fn stopped(&self) -> bool {
        self.0.plan.lock().unwrap().is_none()
    }

    async fn hand_on(&self, call: Call) -> Result<Response, Status> {
        self.0.client.call(self.0.behind.to_str().unwrap(), call, PATIENCE).await
    }

    fn stand_still(&self) {
        let number = self.0.driver.lock().unwrap().id().to_string();
        assert!(Command::new("kill").args(["-STOP", &number]).status().unwrap().success());
    }

    fn start_again(&self) {
        let mut driver = self.0.driver.lock().unwrap();
        driver.kill().unwrap();
        *driver = start_driver(&self.0.behind, &self.0.scratch);
    }
}

impl Answers for Gate {
    async fn answer(&self, call: Call) -> Result<Response, Status> {
        let planned = {
            let mut plan = self.0.plan.lock().unwrap();
            let hit = plan.filter(|(method, _)| *method == call.method());
            if hit.is_some() {
                *plan = None;
            }
            hit
        };
        let Some((_, when)) = planned else { return self.hand_on(call).await };
        if matches!(when, When::Asked) {
            self.stand_still();
            let _ = tokio::time::timeout(Duration::from_millis(100), self.hand_on(call)).await;
        } else {
            let _ = self.hand_on(call).await;
            self.stand_still();
        }
        self.start_again();
        Err(Status::from_driver(Code::Unavailable, "the connection to the driver is lost"))
    }
}

fn start_driver(socket: &Path, scratch: &Path) -> PeerProcess {
    let endpoint = format!("--endpoint=unix://{}", socket.display());
    start("driver", &["driver", "--node-id=here", "--no-registration", &endpoint], scratch)
}

// Reliability 1, 6, 7, 39, 45 to 47, 55, 56, 71, 75; scenario 4 of its section 6.
#[test]
fn a_volume_lives_though_its_driver_is_stopped_at_any_call() {
    if !is_root() {
        eprintln!("not run: pods mount filesystems, and only root may");
        return;
    }
    let mut world = World::up("stops", &["driver"]);
    let gate = Gate::before(&world);
    let registry = format!("--plugin-registration-path={}/d/node/plugins_registry", world.scratch.path().display());
    let path = format!("--kubelet-registration-path={}", world.socket().display());
    let address = format!("--csi-address={}", world.socket().display());
    let flags = ["sidecar", "--roles=registrar", &address, &path, &registry];
    world.keep(start("registrar", &flags, world.scratch.path()));
    world.wait("the driver to be registered", CSI_NODES, |nodes| {
        nodes.iter().any(|node| node["spec"]["drivers"][0]["name"] == DRIVER)
    });
    world.api.apply(&objects::place(world.place, DRIVER, &[]));
    world.api.apply(&growing_class(&world));
    for when in [When::Asked, When::Done] {
        for method in CALLS {
            stop_in(&world, &gate, method, when, live);
        }
        for method in GROWTH {
            stop_in(&world, &gate, method, when, grow);
        }
    }
}

/// Lives a life in which the driver is stopped at a call, and sees that it was.
fn stop_in(world: &World, gate: &Gate, method: Method, when: When, life: fn(&World, &str)) {
    let what = format!("{} {when:?}", method.name());
    eprintln!("{what}");
    gate.plan(method, when);
    life(world, &what);
    world.end();
    let stopped = || gate.stopped().then_some(()).ok_or("never".to_string());
    eventually("the driver to be stopped", PATIENCE, stopped)
        .unwrap_or_else(|error| panic!("{what}: {error}\n{}", world.told()));
}

/// A pod writes into a volume and ends.
fn live(world: &World, what: &str) {
    world.api.apply(&objects::claim(world.place, "data", ""));
    world.api.apply(&pod(world.place, "writer", NODE, &["data"], "echo kept >> /data/f; sync; cat /data/f"));
    wait_phase(world, "writer", "Succeeded");
    // It ran once, on a filesystem that was made once.
    assert_eq!(said(world), "kept\n", "{what}");
}

/// A pod runs while its volume becomes larger. It sees all of it, and still has what it wrote.
fn grow(world: &World, what: &str) {
    world.api.apply(&growing_claim(world, SIZES[0]));
    // It waits for the file that is made when the claim has its size.
    let waits = "echo kept >> /data/f; sync; until [ -e /data/go ]; do sleep 0.1; done; cat /data/f";
    let tells = "df -B1 --output=size /data | tail -1 | tr -d ' '";
    world.api.apply(&pod(world.place, "writer", NODE, &["data"], &format!("{waits}; {tells}")));
    wait_phase(world, "writer", "Running");
    world.api.apply(&growing_claim(world, SIZES[1]));
    let claims = world.path("persistentvolumeclaims");
    world.wait("the claim to have its size", &claims, |claims| {
        claims.iter().any(|claim| claim["status"]["capacity"]["storage"] == SIZES[1])
    });
    let status = &world.api.get(&format!("{claims}/data")).unwrap()["status"];
    assert!(status["allocatedResourceStatuses"]["storage"].is_null(), "{what}: {status}");
    std::fs::write(published(world).join("go"), "").unwrap();
    wait_phase(world, "writer", "Succeeded");
    assert_eq!(said(world), format!("kept\n{}\n", 256 << 20), "{what}");
}

fn said(world: &World) -> String {
    world.api.ask("GET", &format!("{}/writer/log", world.path("pods")), "", "").unwrap()
}

/// Where the pod's volume is on this machine.
fn published(world: &World) -> PathBuf {
    let pods = world.scratch.path().join("d/node/pods");
    let mounts = io_host::mounts_beneath(pods.to_str().unwrap()).unwrap();
    let volume = mounts.iter().find(|mount| mount.target.contains("kubernetes.io~csi"));
    PathBuf::from(&volume.unwrap_or_else(|| panic!("no volume is mounted beneath {}", pods.display())).target)
}

/// A class of filesystems that grow while they are mounted, whatever the kernel is.
fn growing_class(world: &World) -> String {
    let name = format!("{}-grows", world.place);
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": DRIVER, "allowVolumeExpansion": true, "parameters": {"fsType": "btrfs"},
    })
    .to_string()
}

fn growing_claim(world: &World, size: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": world.place},
        "spec": {
            "storageClassName": format!("{}-grows", world.place), "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
        },
    })
    .to_string()
}
