//! One real control plane for each contender, with two nodes and a driver that does nothing, and the programs on it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api::{Kind, names};
use io_kube::Kube;
use prove_cluster::{ControlPlane, Options, Scratch};
use serde_json::json;

use super::super::sidecars::audit::{AuditLog, policy};
use super::super::sidecars::contender::Running;
use super::super::sidecars::nothing::{self, Driver, NAME, Seen};
use super::super::sidecars::objects::{CLASS, create, write};
use super::super::sidecars::stand::{A_WHILE, AT_REST, WHILES};
use super::super::sidecars::usage::{self, Spent};

/// The nodes that pods are moved between.
pub const NODES: [&str; 2] = ["bench-node-a", "bench-node-b"];
/// Who asks, so that the server's record tells the programs apart.
pub const CONTROLLERS: &str = "controllers";
const SIDECAR: &str = "sidecar";
const ATTACHER: &str = "attacher";

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contender {
    /// kube-controller-manager, csi-provisioner and csi-attacher as they are installed.
    GoDefault,
    /// The same with their limits lifted.
    GoLifted,
    /// `longshore controllers` and `longshore sidecar`.
    Ours,
}

impl Contender {
    /// In the order of the tables.
    pub const ALL: [Contender; 3] = [Contender::GoDefault, Contender::GoLifted, Contender::Ours];

    /// Its name in tables and in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Contender::GoDefault => "Go, default",
            Contender::GoLifted => "Go, limits lifted",
            Contender::Ours => "ours",
        }
    }
}

/// Where the programs are.
#[derive(Clone)]
pub(crate) struct Programs {
    pub ours: PathBuf,
    pub manager: PathBuf,
    pub provisioner: PathBuf,
    pub attacher: PathBuf,
}

/// The controllers that ours take the place of.
const REPLACED: &str = "persistentvolume-binder-controller,persistentvolume-attach-detach-controller,\
    persistentvolume-expander-controller,persistentvolumeclaim-protection-controller,\
    persistentvolume-protection-controller,ephemeral-volume-controller";

/// The control plane and the driver.
pub(crate) struct Stand {
    pub kube: Kube,
    pub contender: Contender,
    pub audit: AuditLog,
    plane: ControlPlane,
    programs: Programs,
    socket: String,
    _driver: Driver,
}

/// What runs for a contender.
pub(crate) struct Crew {
    pub controllers: Running,
    pub sidecar: Running,
    /// The Go attacher. In our own crew it is a role of the sidecar.
    attacher: Option<Running>,
}

impl Crew {
    /// All run still.
    pub fn check(&mut self) -> io::Result<()> {
        self.controllers.check()?;
        self.sidecar.check()?;
        self.attacher.as_mut().map_or(Ok(()), Running::check)
    }

    /// Resident megabytes: of the controllers, and of all that stand beside the driver.
    pub fn memory(&self) -> io::Result<[f64; 2]> {
        let attacher = self.attacher.as_ref().map_or(Ok(0.0), |attacher| usage::memory(attacher.id()))?;
        Ok([usage::memory(self.controllers.id())?, usage::memory(self.sidecar.id())? + attacher])
    }

    /// Asks all to end, and waits.
    pub fn stop(self) -> io::Result<()> {
        self.controllers.stop()?;
        self.sidecar.stop()?;
        self.attacher.map_or(Ok(()), Running::stop)
    }
}

impl Stand {
    /// A fresh one: nothing is in it but the class, the nodes and the driver.
    pub async fn start(contender: Contender, programs: &Programs) -> io::Result<Stand> {
        let scratch = Scratch::new("bench-controllers").map_err(io::Error::other)?;
        let rules = scratch.path().join("audit.yaml");
        let users = [CONTROLLERS, SIDECAR, ATTACHER];
        fs::write(&rules, policy(&users))?;
        let options = Options {
            users: users.map(|user| (user.to_string(), vec!["system:masters".to_string()])).into(),
            apiserver_flags: vec![
                "--max-requests-inflight=3000".into(),
                "--max-mutating-requests-inflight=3000".into(),
                // Every five minutes by default, so in the middle of whatever is measured then.
                "--etcd-compaction-interval=0".into(),
                format!("--audit-policy-file={}", rules.display()),
                "--audit-log-path=audit.log".into(),
            ],
            durable: true,
            ..Options::default()
        };
        let plane = ControlPlane::start(options).map_err(io::Error::other)?;
        let audit = AuditLog::new(&plane.directory().join("audit.log"));
        let kube = Kube::from_kubeconfig(plane.kubeconfig()).await.map_err(io::Error::other)?;
        lay_out(&kube).await?;
        let socket = plane.directory().join("csi.sock").to_string_lossy().into_owned();
        let driver = nothing::serve(&socket, Arc::new(Seen::default()))?;
        Ok(Stand { kube, contender, audit, plane, programs: programs.clone(), socket, _driver: driver })
    }

    /// Starts the contender's programs.
    pub fn crew(&self) -> io::Result<Crew> {
        let lifted = ["--kube-api-qps=10000".to_string(), "--kube-api-burst=20000".to_string()];
        let lifted = || lifted.iter().filter(|_| self.contender == Contender::GoLifted).cloned();
        let text = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        if self.contender == Contender::Ours {
            let ours = &self.programs.ours;
            // The scheduler is the cluster's own.
            return Ok(Crew {
                controllers: self.run(
                    ours,
                    CONTROLLERS,
                    text(&["controllers", "--controllers=*,-scheduler"]),
                    false,
                )?,
                sidecar: self.run(ours, SIDECAR, text(&["sidecar", "--roles=provisioner,attacher,resizer"]), true)?,
                attacher: None,
            });
        }
        let mut manager = text(&["--leader-elect=false", "--secure-port=0"]);
        manager.push(format!("--controllers={REPLACED}"));
        manager.extend(lifted());
        // Both sidecars name their limits alike.
        let mut limits: Vec<String> = lifted().collect();
        if self.contender == Contender::GoLifted {
            limits.push("--worker-threads=100".into());
        }
        Ok(Crew {
            controllers: self.run(&self.programs.manager, CONTROLLERS, manager, false)?,
            sidecar: self.run(&self.programs.provisioner, SIDECAR, limits.clone(), true)?,
            attacher: Some(self.run(&self.programs.attacher, ATTACHER, limits, true)?),
        })
    }

    fn run(&self, program: &Path, user: &str, mut flags: Vec<String>, has_driver: bool) -> io::Result<Running> {
        let kubeconfig = self.plane.kubeconfig_of(user).ok_or_else(|| io::Error::other("the user is missing"))?;
        flags.push(format!("--kubeconfig={}", kubeconfig.display()));
        if has_driver {
            flags.push(format!("--csi-address={}", self.socket));
        }
        Running::start(program, &flags, self.plane.directory().join(format!("{user}.log")))
    }

    /// Waits until servers and crew have done what follows from earlier work, such as events: it is not part of what is
    /// measured next.
    pub async fn rest(&self, crew: &Crew) -> io::Result<()> {
        for _ in 0..WHILES {
            let before = self.spent(crew)?;
            tokio::time::sleep(A_WHILE).await;
            if self.spent(crew)?.since(before, 1).together() <= AT_REST {
                break;
            }
        }
        Ok(())
    }

    /// The processor time that was used so far: by the servers, and by the crew.
    pub fn spent(&self, crew: &Crew) -> io::Result<Spent> {
        let of = |name: &str| {
            let process = self.plane.processes().iter().find(|process| process.name() == name);
            process.map_or(Ok(0.0), |process| usage::processor(process.id()))
        };
        let mut program = usage::processor(crew.controllers.id())? + usage::processor(crew.sidecar.id())?;
        if let Some(attacher) = &crew.attacher {
            program += usage::processor(attacher.id())?;
        }
        Ok(Spent { program, server: of("kube-apiserver")?, store: of("etcd")? })
    }
}

async fn lay_out(kube: &Kube) -> io::Result<()> {
    let class = json!({ "metadata": {}, "provisioner": NAME, "reclaimPolicy": "Delete" });
    write(kube, create(Kind::StorageClass, "", CLASS, class)).await?;
    let driver = json!({ "metadata": {}, "spec": { "attachRequired": true } });
    write(kube, create(Kind::CSIDriver, "", NAME, driver)).await?;
    for node in NODES {
        let annotations = json!({ names::CONTROLLER_MANAGED_ATTACH: "true" });
        write(kube, create(Kind::Node, "", node, json!({ "metadata": { "annotations": annotations } }))).await?;
        let drivers = json!([{ "name": NAME, "nodeID": node, "topologyKeys": null }]);
        let body = json!({ "metadata": {}, "spec": { "drivers": drivers } });
        write(kube, create(Kind::CSINode, "", node, body)).await?;
    }
    Ok(())
}
