//! One real control plane with a driver that does nothing, and operations on many volumes measured on it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::{Kind, Object, ObjectRef, names};
use io_csi::kit::Serving;
use io_kube::Kube;
use prove_cluster::{ControlPlane, Options};
use serde_json::json;

use super::audit::{Asked, AuditLog, moment, policy};
use super::contender::{Contender, Operation, Programs, Running};
use super::nothing::{self, Seen};
use super::objects::{self, delete, for_each, list, patch, write};

/// Nothing measured takes longer than this.
const PATIENCE: Duration = Duration::from_secs(90);
/// Who has asked for nothing this long has finished, also what was not waited for.
const QUIET: Duration = Duration::from_millis(400);
/// Events may trickle out for long after everything is done; nobody waits for those.
const LONGEST_QUIET: Duration = Duration::from_secs(3);

/// The control plane and the driver.
pub struct Stand {
    pub kube: Kube,
    pub plane: ControlPlane,
    pub seen: Arc<Seen>,
    programs: Programs,
    audit: AuditLog,
    socket: String,
    _serving: Serving,
}

/// What one operation on all volumes cost.
pub struct Measured {
    /// Volumes a second, from the first request or call to the last write that it takes.
    pub rate: f64,
    /// Requests a volume, by sort; those that happen once a process are not in it.
    pub requests: BTreeMap<String, f64>,
    /// Writes a volume, without events.
    pub writes: f64,
    pub events: f64,
    pub reads: f64,
    pub calls: f64,
    /// Milliseconds of its processor time a volume.
    pub processor: f64,
    /// Milliseconds the server took for a write, in the middle.
    pub answer: f64,
    /// Writes that were under way at once, on average: how busy the server was kept.
    pub at_once: f64,
}

impl Stand {
    pub async fn start(programs: Programs) -> io::Result<Stand> {
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
        let serving = nothing::serve(&socket, seen.clone()).await?;
        Ok(Stand { kube, plane, seen, programs, audit, socket, _serving: serving })
    }

    /// Starts what does an operation for a contender.
    pub fn run(&self, contender: Contender, operation: Operation) -> io::Result<Running> {
        let (program, flags) = self.programs.line(contender, operation);
        let nobody = || io::Error::other("the user is missing");
        let kubeconfig: PathBuf = self.plane.kubeconfig_of(contender.user()).ok_or_else(nobody)?.into();
        Running::start(&program, &flags, &self.socket, &kubeconfig, self.plane.directory())
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
            Operation::Detach => self.delete_all(Kind::VolumeAttachment).await,
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
                        // Only what a provisioner holds: an attacher need not be there to let go.
                        let held = json!({ "metadata": { "finalizers": [names::PROVISIONER_FINALIZER] } });
                        write(&kube, patch(volume.clone(), false, held)).await?;
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

    /// Measures an operation that was prepared.
    pub async fn measure(
        &mut self,
        contender: Contender,
        operation: Operation,
        volumes: usize,
    ) -> io::Result<Measured> {
        self.audit.news()?;
        self.seen.take();
        let mut running = self.run(contender, operation)?;
        let mut asked = Vec::new();
        let until = Instant::now() + PATIENCE;
        while !(self.looks_done(operation, &asked, volumes) && self.is_done(operation, volumes).await?) {
            tokio::time::sleep(Duration::from_millis(20)).await;
            asked.extend(self.audit.news()?);
            running.check()?;
            if Instant::now() > until {
                let said = format!("{} did not {} all volumes", contender.name(), operation.name());
                return Err(io::Error::other(format!("{said}; it said last:\n{}", running.said())));
            }
        }
        self.settle(&mut asked).await?;
        let processor = running.processor()?;
        running.stop()?;
        asked.extend(self.audit.news()?);
        Ok(self.told(operation, volumes, &asked, processor))
    }

    /// Waits until nothing is asked for any more.
    async fn settle(&mut self, asked: &mut Vec<Asked>) -> io::Result<()> {
        let (longest, mut last) = (Instant::now() + LONGEST_QUIET, Instant::now());
        while last.elapsed() < QUIET && Instant::now() < longest {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let news = self.audit.news()?;
            if !news.is_empty() {
                last = Instant::now();
            }
            asked.extend(news);
        }
        Ok(())
    }

    /// Enough was written for it to be done; cheap, unlike looking.
    fn looks_done(&self, operation: Operation, asked: &[Asked], volumes: usize) -> bool {
        let about = resource(operation);
        let names: BTreeSet<&str> = asked
            .iter()
            .filter(|one| one.is_write() && one.is_done() && one.resource == about)
            // A created object's name is in no path.
            .filter(|one| operation != Operation::Provision || one.verb == "create")
            .map(|one| one.name.as_str())
            .collect();
        let created = asked.iter().filter(|one| one.verb == "create" && one.resource == about && one.is_done()).count();
        names.len().max(created) >= volumes
    }

    async fn is_done(&self, operation: Operation, volumes: usize) -> io::Result<bool> {
        let all = list(&self.kube, kind(operation)).await?;
        Ok(match operation {
            Operation::Provision => all.len() >= volumes,
            Operation::Detach | Operation::Delete => all.is_empty(),
            Operation::Attach => all.iter().all(|object| match object {
                Object::VolumeAttachment(attachment) => attachment.status.attached,
                _ => false,
            }),
            Operation::Resize => all.iter().all(|object| match object {
                Object::PersistentVolumeClaim(claim) => {
                    claim.status.capacity.get("storage").is_some_and(|size| size.bytes() == Ok(2 << 30))
                }
                _ => false,
            }),
        })
    }

    fn told(&self, operation: Operation, volumes: usize, asked: &[Asked], processor: f64) -> Measured {
        let calls = self.seen.take();
        let writes: Vec<&Asked> = asked.iter().filter(|one| one.is_write()).collect();
        let first_write = writes.iter().map(|one| one.came).fold(f64::INFINITY, f64::min);
        let first_call = calls.first.map_or(f64::INFINITY, moment);
        let about = writes.iter().filter(|one| one.is_done() && one.resource == resource(operation));
        let last = about.map(|one| one.answered).fold(f64::NEG_INFINITY, f64::max);
        let took = (last - first_write.min(first_call)).rem_euclid(86_400.0);
        let each = |count: usize| count as f64 / volumes as f64;
        let mut answers: Vec<f64> = writes.iter().map(|one| (one.answered - one.came) * 1000.0).collect();
        answers.sort_by(f64::total_cmp);
        let mut requests = BTreeMap::new();
        for one in asked.iter().filter(|one| !matches!(one.verb.as_str(), "list" | "watch")) {
            *requests.entry(one.sort()).or_default() += 1.0 / volumes as f64;
        }
        Measured {
            rate: volumes as f64 / took,
            requests,
            writes: each(writes.len()),
            events: each(asked.iter().filter(|one| one.resource == "events").count()),
            reads: each(asked.iter().filter(|one| one.verb == "get").count()),
            calls: calls.by_name.values().sum::<u64>() as f64 / volumes as f64,
            processor: processor / volumes as f64,
            answer: answers.get(answers.len() / 2).copied().unwrap_or(f64::NAN),
            at_once: answers.iter().sum::<f64>() / 1000.0 / took,
        }
    }
}

/// One write, by a task of its own.
fn later(kube: &Kube, one: api::Write) -> impl Future<Output = io::Result<()>> + Send + 'static {
    let kube = kube.clone();
    async move { write(&kube, one).await }
}

/// What the last write of an operation is to.
fn kind(operation: Operation) -> Kind {
    match operation {
        Operation::Provision | Operation::Delete => Kind::PersistentVolume,
        Operation::Attach | Operation::Detach => Kind::VolumeAttachment,
        Operation::Resize => Kind::PersistentVolumeClaim,
    }
}

fn resource(operation: Operation) -> &'static str {
    kind(operation).plural()
}
