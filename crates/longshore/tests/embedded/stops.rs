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

use crate::life::{pod, wait_phase};
use crate::objects;
use crate::world::{CSI_NODES, DRIVER, NODE, World, is_root, start};

/// Every call that changes something in the life of a volume.
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

// Reliability 1, 6, 7, 39, 45 to 47, 71, 75; scenario 4 of its section 6.
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
    let place = world.place;
    world.api.apply(&objects::place(place, DRIVER, &[]));
    for method in CALLS {
        for when in [When::Asked, When::Done] {
            eprintln!("{} {when:?}", method.name());
            gate.plan(method, when);
            world.api.apply(&objects::claim(place, "data", ""));
            world.api.apply(&pod(place, "writer", NODE, &["data"], "echo kept >> /data/f; sync; cat /data/f"));
            wait_phase(&world, "writer", "Succeeded");
            // It ran once, on a filesystem that was made once.
            let said = world.api.ask("GET", &format!("{}/writer/log", world.path("pods")), "", "").unwrap();
            assert_eq!(said, "kept\n", "{} {when:?}", method.name());
            world.end();
            eventually("the driver to be stopped", PATIENCE, || {
                gate.stopped().then_some(()).ok_or("never".to_string())
            })
            .unwrap_or_else(|error| panic!("{} {when:?}: {error}\n{}", method.name(), world.told()));
        }
    }
}
