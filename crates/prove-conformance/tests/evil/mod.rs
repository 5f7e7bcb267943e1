//! A small driver that keeps every promise, unless it is told to break one. Its volumes are plain directories, mounted
//! where the tests run as root.
#![allow(clippy::unwrap_used)]

mod controller;
mod node;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use csi::{Call, Code, Method, Response, Status, v1};
use io_csi::Answers;
use prove_conformance::{Restart, Suite, SuiteOptions, SuiteReport};
use rules_translate::Plugin;
use tokio::sync::oneshot;

/// A promise to break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    NoneAtAll,
    MakesTwoOfOneName,
    EchoesSecrets,
    SecretsInContext,
    IgnoresReadOnly,
    LosesStateAtRestart,
    WrongCode,
    PagesOverlap,
    TakesAnyToken,
    DeletesInUse,
    DeletesByPath,
    EphemeralByPath,
    CutsNames,
    MakesTooSmall,
    ForgetsSource,
    Shrinks,
    ForgetsNodes,
    LeavesTarget,
    SharesData,
    LiveSnapshots,
    MountsAgain,
    GroupWithoutMember,
    ElsewherePlaced,
    RacyCreate,
    NewTimeEachTime,
    UnpublishOnce,
    PublishesUnstaged,
    AttachesUnknownNode,
    DiesOfNegativePages,
    NeedsItsContext,
    CallsDisksByUrl,
    KnowsFewParameters,
    KeepsDeleted,
    NeverGrowsOnNode,
}

#[derive(Clone, Default)]
pub struct Volume {
    pub request: v1::CreateVolumeRequest,
    pub size: i64,
    pub attached: Option<bool>,
    pub staged: BTreeMap<String, v1::VolumeCapability>,
    pub targets: BTreeMap<String, bool>,
}

#[derive(Default)]
pub struct State {
    pub volumes: BTreeMap<String, Volume>,
    pub snapshots: BTreeMap<String, (String, v1::Snapshot)>,
    pub groups: BTreeMap<String, (v1::CreateVolumeGroupSnapshotRequest, v1::VolumeGroupSnapshot)>,
    pub made: u64,
}

#[derive(Clone)]
pub struct Evil {
    pub defect: Defect,
    pub folder: PathBuf,
    pub root: bool,
    /// It says where its volumes are, by a label that no plugin knows.
    pub placed: bool,
    state: Arc<Mutex<State>>,
}

pub type Answer = Result<Response, Status>;

pub fn no<A>(code: Code, text: &str) -> Result<A, Status> {
    Err(Status::from_driver(code, text))
}

impl Evil {
    pub fn has(&self, defect: Defect) -> bool {
        self.defect == defect
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Where a volume's files are.
    pub fn files(&self, id: &str) -> PathBuf {
        self.folder.join(if self.has(Defect::SharesData) { "shared" } else { id })
    }
}

impl Answers for Evil {
    async fn answer(&self, call: Call) -> Answer {
        if self.has(Defect::RacyCreate) && matches!(call, Call::CreateVolume(_)) {
            return self.create_slowly(call).await;
        }
        let answer = self.at_once(&call);
        if let (true, Err(status), Call::CreateVolume(r)) = (self.has(Defect::EchoesSecrets), &answer, &call) {
            let secrets: Vec<&str> = r.secrets.values().map(String::as_str).collect();
            return no(status.code, &format!("{} (given {})", status.message, secrets.join(" ")));
        }
        answer
    }
}

impl Evil {
    async fn create_slowly(&self, call: Call) -> Answer {
        let Call::CreateVolume(r) = &call else { return no(Code::Internal, "not reached") };
        let known = self.state().volumes.iter().find(|(_, v)| v.request.name == r.name).map(|(id, _)| id.clone());
        tokio::time::sleep(Duration::from_millis(20)).await;
        match known {
            Some(_) => self.at_once(&call),
            None => self.make(r.clone()),
        }
    }
}

/// Runs chosen cases on a driver with one defect.
pub async fn judge(defect: Defect, only: &[&str]) -> SuiteReport {
    judge_until(defect, only, Duration::from_secs(3600)).await.0
}

/// The cases for a driver in the place of a plugin, with one defect.
pub async fn judge_in_place_of(plugin: Plugin, defect: Defect, only: &[&str]) -> SuiteReport {
    judge_as(Some(plugin), defect, only, Duration::from_secs(3600)).await.0
}

/// The same, interrupted after a while; also says how many volumes and snapshots are left.
pub async fn judge_until(defect: Defect, only: &[&str], after: Duration) -> (SuiteReport, (usize, usize)) {
    judge_as(None, defect, only, after).await
}

async fn judge_as(
    in_place_of: Option<Plugin>,
    defect: Defect,
    only: &[&str],
    after: Duration,
) -> (SuiteReport, (usize, usize)) {
    let folder = tempfile::tempdir().unwrap();
    let root = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0;
    let state = Arc::new(Mutex::new(State::default()));
    let evil = Evil { defect, folder: folder.path().join("volumes"), root, placed: in_place_of.is_none(), state };
    std::fs::create_dir_all(evil.folder.join("shared")).unwrap();
    let socket = folder.path().join("run/csi.sock");
    let running = Arc::new(tokio::sync::Mutex::new(start(&socket, &evil).await));
    let restart: Restart = {
        let (running, socket, evil) = (running.clone(), socket.clone(), evil.clone());
        Arc::new(move || {
            let (running, socket, evil) = (running.clone(), socket.clone(), evil.clone());
            Box::pin(async move {
                let mut slot = running.lock().await;
                stop(slot.take()).await;
                if evil.has(Defect::LosesStateAtRestart) {
                    let made = evil.state().made;
                    *evil.state() = State { made, ..State::default() };
                }
                *slot = start(&socket, &evil).await;
                Ok(())
            })
        })
    };
    let options = SuiteOptions {
        staging_dir: folder.path().join("staging"),
        target_dir: folder.path().join("target"),
        in_place_of,
        restart: Some(restart),
        mutable_parameters: [("speed".to_string(), "1".to_string())].into(),
        size: 1 << 20,
        parallel: 4,
        call_timeout: Duration::from_secs(10),
        only: only.iter().map(ToString::to_string).collect(),
        root,
        ..SuiteOptions::new(socket.to_str().unwrap())
    };
    let suite = Suite::meet(options).await.unwrap();
    let cases = in_place_of.map_or_else(prove_conformance::cases::all, prove_conformance::cases::in_tree::of);
    let report = prove_conformance::run(Arc::new(suite), &cases, tokio::time::sleep(after), |_| {}).await;
    stop(running.lock().await.take()).await;
    let state = evil.state();
    (report, (state.volumes.len(), state.snapshots.len()))
}

type Running = Option<(oneshot::Sender<()>, io_csi::Server)>;

async fn start(socket: &std::path::Path, evil: &Evil) -> Running {
    let (tell, told) = oneshot::channel::<()>();
    let end = async move { drop(told.await) };
    Some((tell, io_csi::serve(socket, Method::ALL, evil.clone(), end).await.unwrap()))
}

async fn stop(running: Running) {
    if let Some((tell, server)) = running {
        let _ = tell.send(());
        // Connections of a client that keeps them open are not waited for.
        let _ = tokio::time::timeout(Duration::from_millis(500), server.finished()).await;
    }
}
