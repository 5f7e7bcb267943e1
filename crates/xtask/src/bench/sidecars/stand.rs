//! One real control plane with a driver that does nothing, and what an operation on many volumes needs there.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::{Kind, Object, ObjectRef, names};
use io_kube::Kube;
use prove_cluster::{ControlPlane, Options};
use serde_json::json;

use super::audit::{AuditLog, policy};
use super::contender::{Contender, Operation, Programs, Running};
use super::nothing::{self, Driver, Seen};
use super::objects::{self, delete, for_each, list, patch, write};
use super::usage::{self, Spent};

/// Servers that use less of the processor than this, in milliseconds, over a while have nothing left to do.
pub const AT_REST: f64 = 20.0;
/// How long they are watched for that.
pub const A_WHILE: Duration = Duration::from_millis(250);
/// How often that is waited for at the most.
pub const WHILES: usize = 40;

/// The control plane and the driver.
pub struct Stand {
    pub kube: Kube,
    pub plane: ControlPlane,
    pub seen: Arc<Seen>,
    programs: Programs,
    pub audit: AuditLog,
    socket: String,
    _driver: Driver,
}

impl Stand {
    /// A fresh one: nothing is in it but the class, the node and the driver.
    pub async fn start(programs: &Programs) -> io::Result<Stand> {
        let scratch = prove_cluster::Scratch::new("bench-sidecars").map_err(io::Error::other)?;
        let rules = scratch.path().join("audit.yaml");
        fs::write(&rules, policy(&["go", "ours"]))?;
        let masters = || vec!["system:masters".to_string()];
        let options = Options {
            users: vec![("go".into(), masters()), ("ours".into(), masters())],
            apiserver_flags: vec![
                "--max-requests-inflight=3000".into(),
                "--max-mutating-requests-inflight=3000".into(),
                // They put finalizers on volumes and claims that only the controller manager takes off.
                "--disable-admission-plugins=ServiceAccount,StorageObjectInUseProtection".into(),
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
        objects::lay_out(&kube).await?;
        let socket = plane.directory().join("csi.sock").to_string_lossy().into_owned();
        let seen = Arc::new(Seen::default());
        let driver = nothing::serve(&socket, seen.clone())?;
        Ok(Stand { kube, plane, seen, programs: programs.clone(), audit, socket, _driver: driver })
    }

    /// Starts what does an operation for a contender.
    pub fn run(&self, contender: Contender, operation: Operation) -> io::Result<Running> {
        let (program, mut flags) = self.programs.line(contender, operation);
        let nobody = || io::Error::other("the user is missing");
        let kubeconfig: PathBuf = self.plane.kubeconfig_of(contender.user()).ok_or_else(nobody)?.into();
        flags.extend([format!("--csi-address={}", self.socket), format!("--kubeconfig={}", kubeconfig.display())]);
        Running::start(&program, &flags, self.plane.directory().join("contender.log"))
    }

    /// Makes everything ready for an operation on this many volumes, before anybody is there who does it.
    pub async fn prepare(&self, operation: Operation, volumes: usize) -> io::Result<()> {
        let kube = &self.kube;
        match operation {
            Operation::Provision => {
                let claim = |number| objects::claim(&format!("claim-{number}"));
                for_each(0..volumes, |number| later(kube, claim(number))).await
            }
            Operation::Attach => {
                let wish = |object: &Object| match object {
                    Object::PersistentVolume(volume) => {
                        let handle = volume.spec.csi.as_ref().map_or("", |csi| &csi.volume_handle);
                        Some(objects::attachment(&volume.metadata.name, handle, false))
                    }
                    _ => None,
                };
                let volumes = list(kube, Kind::PersistentVolume).await?;
                for_each(volumes.iter().filter_map(wish), |write| later(kube, write)).await
            }
            Operation::Detach => {
                let attachments = list(kube, Kind::VolumeAttachment).await?;
                for_each(attachments.iter().map(Object::reference), |attachment| {
                    let kube = kube.clone();
                    async move {
                        write(&kube, held_by(attachment.clone(), &names::attacher_finalizer(nothing::NAME))).await?;
                        write(&kube, delete(attachment)).await
                    }
                })
                .await
            }
            Operation::Resize => {
                let volume = |object: &Object| match object {
                    Object::PersistentVolume(volume) => {
                        let claim = volume.spec.claim_ref.clone().unwrap_or_default();
                        let target = ObjectRef::namespaced(
                            Kind::PersistentVolumeClaim,
                            claim.namespace.as_str(),
                            claim.name.as_str(),
                        );
                        Some((target, volume.metadata.name.clone()))
                    }
                    _ => None,
                };
                let pairs: Vec<_> = list(kube, Kind::PersistentVolume).await?.iter().filter_map(volume).collect();
                for_each(pairs, |(claim, volume)| {
                    let kube = kube.clone();
                    async move {
                        let target = ObjectRef::cluster(Kind::PersistentVolume, &volume);
                        write(&kube, held_by(target, names::PROVISIONER_FINALIZER)).await?;
                        objects::bind(kube.clone(), claim.clone(), volume).await?;
                        objects::grow(kube, claim).await
                    }
                })
                .await
            }
            Operation::Delete => {
                self.delete_all(Kind::PersistentVolumeClaim).await?;
                let volumes = list(kube, Kind::PersistentVolume).await?;
                for_each(volumes.iter().map(Object::reference), |volume| {
                    let kube = kube.clone();
                    async move {
                        write(&kube, held_by(volume.clone(), names::PROVISIONER_FINALIZER)).await?;
                        write(&kube, patch(volume, true, json!({ "status": { "phase": "Released" } }))).await
                    }
                })
                .await
            }
        }
    }

    /// Asks for the deletion of every object of a kind.
    pub async fn delete_all(&self, kind: Kind) -> io::Result<()> {
        let all = list(&self.kube, kind).await?;
        for_each(all.iter().map(|object| delete(object.reference())), |write| later(&self.kube, write)).await
    }

    /// Everything gone, also what nobody is there to let go of.
    pub async fn clear(&self) -> io::Result<()> {
        for kind in [Kind::VolumeAttachment, Kind::PersistentVolumeClaim, Kind::PersistentVolume] {
            let all = list(&self.kube, kind).await?;
            let kube = &self.kube;
            for_each(all.iter().map(Object::reference), |target| {
                let kube = kube.clone();
                async move {
                    write(&kube, patch(target.clone(), false, json!({ "metadata": { "finalizers": null } }))).await?;
                    write(&kube, delete(target)).await
                }
            })
            .await?;
        }
        Ok(())
    }

    /// Waits until the servers have done what follows from earlier writes: it is not the work of who comes next.
    pub async fn rest(&self) -> io::Result<()> {
        for _ in 0..WHILES {
            let before = self.spent(None)?;
            tokio::time::sleep(A_WHILE).await;
            if self.spent(None)?.since(before, 1).together() <= AT_REST {
                break;
            }
        }
        Ok(())
    }

    /// The processor time that was used so far: by the servers, and by a program that runs.
    pub fn spent(&self, running: Option<&Running>) -> io::Result<Spent> {
        let of = |name: &str| {
            let process = self.plane.processes().iter().find(|process| process.name() == name);
            process.map_or(Ok(0.0), |process| usage::processor(process.id()))
        };
        let program = running.map_or(Ok(0.0), |running| usage::processor(running.id()))?;
        Ok(Spent { program, server: of("kube-apiserver")?, store: of("etcd")? })
    }
}

/// One write, by a task of its own.
fn later(kube: &Kube, one: api::Write) -> impl Future<Output = io::Result<()>> + Send + 'static {
    let kube = kube.clone();
    async move { write(&kube, one).await }
}

/// Makes an object what it is to every program alike, whoever made it and whoever else had it before: held by this finalizer
/// only, and without the record of who wrote which field.
fn held_by(target: ObjectRef, finalizer: &str) -> api::Write {
    let metadata = json!({ "finalizers": [finalizer], "managedFields": [{}] });
    patch(target, false, json!({ "metadata": metadata }))
}
