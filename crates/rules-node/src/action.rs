use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;

use api::{Kind, ObjectKey, ObjectRef, Patch, PodStatus, Precondition, SecretReference, Subresource, Write};
use control::host::{Handler, HostPathKind, Op, Process, ShownFile};
use control::{Attempt, Effect, Lane, News, Outcome, Permission, Refusal, Secrets, Timestamp, TokenWish};
use csi::{Call, v1};
use serde_json::json;

use crate::checks::CheckKind;
use crate::container_status;
use crate::contents::{PodSource, PodToken, SourceNeed, SourceRead};
use crate::expand::Expand;
use crate::group::GroupChange;
use crate::health::AskHealth;
pub use crate::in_use::InUse;
pub use crate::publishing::Publishing;
use crate::publishing::stage;
use crate::record::Record;
use crate::spec::VolumeSpec;
use crate::status;

/// The pieces of work about a pod that fail on their own.
const READING: u8 = 1;
const MEASURING: u8 = 2;

/// What the node agent does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Say that a volume is in use.
    ReportInUse(InUse),
    /// Say that it no longer is.
    ClearInUse(InUse),
    /// Read the Node object from the API itself.
    ReadNode(InUse),
    /// Write a volume's record.
    WriteRecord {
        path: String,
        record: Record,
        /// Paths the record did not list before: nothing was ever done there.
        fresh: BTreeSet<String>,
    },
    /// Remove a volume's record.
    RemoveRecord {
        path: String,
        /// The volume's unique name.
        volume: String,
    },
    /// Make a directory.
    MakeDir { path: String },
    /// Make the directory of an `emptyDir` volume.
    MakeScratch {
        /// Where the volume will be.
        path: String,
    },
    /// Read a config map or a secret that a pod needs.
    ReadSource {
        /// The pod's namespace.
        namespace: String,
        /// The config map or the secret.
        source: PodSource,
        /// What the pod takes from it.
        need: SourceNeed,
    },
    /// Ask for a token that a volume of the pod shows.
    AskToken {
        /// Whom it is for, and for how long.
        token: PodToken,
        /// The token, and the pod it dies with.
        wish: TokenWish,
    },
    /// Make a volume in memory.
    MountMemory {
        /// Where the volume will be.
        path: String,
        /// How many bytes it may hold.
        bytes: Option<u64>,
        /// The mode of its root.
        mode: u32,
    },
    /// Take it away, with all that is in it.
    UnmountMemory {
        /// Where it is.
        path: String,
    },
    /// Have a volume show exactly these files.
    ShowFiles {
        /// Where it is.
        path: String,
        /// What it shows.
        files: BTreeMap<String, ShownFile>,
        /// The group of the files.
        group: Option<u32>,
    },
    /// Look whether a place of the machine is what a pod takes it for.
    EnsureHostPath {
        /// The place, by its path.
        path: String,
        /// What must be there.
        kind: HostPathKind,
    },
    /// Find out how much an `emptyDir` volume takes.
    MeasureScratch {
        /// Where it is.
        path: String,
    },
    /// Remove the `emptyDir` volumes of a pod and all that is in them.
    RemoveScratch {
        /// The directory that holds all of them.
        path: String,
    },
    /// Remove an empty directory.
    Sweep {
        /// The directory that is to go.
        path: String,
        /// It must go; otherwise it may stay if something else is in it.
        must: bool,
    },
    /// NodeStageVolume.
    Stage {
        /// The driver's name.
        driver: String,
        /// The driver's name for the volume.
        handle: String,
        path: String,
        /// What the driver is told.
        spec: VolumeSpec,
        /// The group it is to mount for.
        mount_group: Option<u32>,
        /// What nobody else is told.
        secrets: Secrets,
    },
    /// NodePublishVolume.
    Publish(Publishing),
    /// Give the files of a published volume to the pod's fsGroup.
    SetGroup {
        /// Where it is published.
        target: String,
        /// To which group, and whether always.
        change: GroupChange,
    },
    /// Read a secret for the next call alone.
    ReadSecret {
        /// The path the call is about.
        purpose: String,
        /// The secret that the volume names for it.
        secret: SecretReference,
    },
    /// Ask for a token of the pod's service account for the next call alone.
    RequestToken {
        /// The path the call is about.
        purpose: String,
        /// Whom the token is for, as the driver's object says it.
        audience: String,
        /// The token, and the pod it dies with.
        wish: TokenWish,
    },
    /// Remove the file that a raw device was published at.
    SweepDevice {
        /// Where the driver showed the device.
        path: String,
    },
    /// Remove a plain file that is of no use any more.
    SweepFile {
        /// The file that is to go.
        path: String,
    },
    /// Read every pod from the API itself: whoever is not among them is gone.
    ListPods {
        /// The uids that directories were found of before it was asked.
        uids: BTreeSet<String>,
    },
    /// Take note, and tell, that a mount is gone that nobody here took away. It does nothing outside.
    NoteVanished {
        /// Where it was.
        path: String,
    },
    /// NodeGetVolumeHealth.
    AskHealth(Box<AskHealth>),
    /// Take note, and tell, that a volume is well again. It does nothing outside.
    NoteRecovered {
        /// Where it is published.
        path: String,
    },
    /// NodeUnpublishVolume.
    Unpublish(There),
    /// NodeUnstageVolume.
    Unstage(There),
    /// Make the filesystem of a volume grow.
    Expand(Box<Expand>),
    /// Read a pod from the API itself.
    ReadPod {
        pod: ObjectKey,
        /// The uid of which something is left.
        uid: String,
    },
    /// Start a process.
    Start {
        process: Process,
        /// When that was decided, in milliseconds since 1970.
        at_millis: u64,
    },
    /// Ask a process to end, and do not wait for it.
    Ask {
        /// The process that is asked.
        name: String,
        /// What users are told, if the end is not their own wish.
        told: Option<String>,
    },
    /// Take note that a process is to end, so that its hook is run first. It does nothing outside.
    BeginEnd {
        /// The process that is to end.
        name: String,
    },
    /// Probe a container, or run a hook of it.
    Check(Check),
    /// End a process.
    Stop {
        name: String,
        /// How long it may take.
        grace_millis: u64,
    },
    /// Take note that nothing of a pod runs or will be started. An action of its own, so that it comes after every
    /// start that was under way; it does nothing outside.
    Seal {
        /// The pod's uid.
        uid: String,
    },
    /// Remove the traces of a process.
    Forget { name: String },
    /// Say how a pod fares.
    SetStatus {
        pod: ObjectKey,
        /// The object as seen.
        only_if: Precondition,
        status: PodStatus,
    },
    /// Delete a pod of which nothing is left here.
    DeletePod { pod: ObjectKey, uid: String },
}

/// One probe or hook.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Check {
    /// The process that is asked.
    pub process: String,
    /// Which of its container's.
    pub kind: CheckKind,
    /// What is asked, or why nothing can be.
    pub handler: Result<Handler, String>,
    /// How long the answer may take.
    pub timeout_millis: u64,
    /// So many good answers in a row mean well, so many bad ones unwell.
    pub limits: (i64, i64),
    /// When that was decided, in milliseconds since 1970.
    pub at_millis: u64,
}

/// A volume at a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct There {
    /// The driver's name.
    pub driver: String,
    /// The driver's name for the volume.
    pub handle: String,
    pub path: String,
}

impl control::Action for Action {
    fn name(&self) -> &'static str {
        match self {
            Action::ReportInUse(_) => "ReportInUse",
            Action::ClearInUse(_) => "ClearInUse",
            Action::ReadNode(_) => "ReadNode",
            Action::WriteRecord { .. } => "WriteRecord",
            Action::RemoveRecord { .. } => "RemoveRecord",
            Action::MakeDir { .. } => "MakeDir",
            Action::MakeScratch { .. } => "MakeScratch",
            Action::ReadSource { .. } => "ReadSource",
            Action::AskToken { .. } => "AskToken",
            Action::MountMemory { .. } => "MountMemory",
            Action::UnmountMemory { .. } => "UnmountMemory",
            Action::ShowFiles { .. } => "ShowFiles",
            Action::EnsureHostPath { .. } => "EnsureHostPath",
            Action::MeasureScratch { .. } => "MeasureScratch",
            Action::RemoveScratch { .. } => "RemoveScratch",
            Action::Sweep { .. } => "Sweep",
            Action::Stage { .. } => "Stage",
            Action::Publish(_) => "Publish",
            Action::SetGroup { .. } => "SetGroup",
            Action::ReadSecret { .. } => "ReadSecret",
            Action::RequestToken { .. } => "RequestToken",
            Action::SweepDevice { .. } => "SweepDevice",
            Action::SweepFile { .. } => "SweepFile",
            Action::ListPods { .. } => "ListPods",
            Action::NoteVanished { .. } => "NoteVanished",
            Action::AskHealth(_) => "AskHealth",
            Action::NoteRecovered { .. } => "NoteRecovered",
            Action::Unpublish(_) => "Unpublish",
            Action::Unstage(_) => "Unstage",
            Action::Expand(step) => step.name(),
            Action::ReadPod { .. } => "ReadPod",
            Action::Start { .. } => "Start",
            Action::Ask { .. } => "Ask",
            Action::BeginEnd { .. } => "BeginEnd",
            Action::Check(_) => "Check",
            Action::Stop { .. } => "Stop",
            Action::Seal { .. } => "Seal",
            Action::Forget { .. } => "Forget",
            Action::SetStatus { .. } => "SetStatus",
            Action::DeletePod { .. } => "DeletePod",
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Action::ReportInUse(in_use) => in_use.report(),
            Action::ClearInUse(in_use) => in_use.clear(),
            Action::ReadNode(in_use) => Effect::Read(ObjectRef::cluster(Kind::Node, in_use.node.clone())),
            Action::WriteRecord { path, record, .. } => {
                Effect::Host(Op::WriteFile { path: path.clone(), bytes: record.print() })
            }
            Action::RemoveRecord { path, .. } => Effect::Host(Op::RemoveFile { path: path.clone() }),
            Action::MakeDir { path } => Effect::Host(Op::MakeDir { path: path.clone() }),
            Action::Seal { .. } | Action::NoteVanished { .. } | Action::NoteRecovered { .. } => Effect::Nothing,
            Action::AskHealth(asked) => asked.effect(),
            Action::MakeScratch { path } => Effect::Host(Op::MakeScratch { path: path.clone() }),
            Action::ReadSource { namespace, source, .. } => {
                Effect::Read(ObjectRef::namespaced(source.kind, namespace.clone(), source.name.clone()))
            }
            Action::MountMemory { path, bytes, mode } => {
                Effect::Host(Op::MountMemory { target: path.clone(), size: *bytes, mode: *mode })
            }
            Action::UnmountMemory { path } => Effect::Host(Op::Unmount { target: path.clone() }),
            Action::ShowFiles { path, files, group } => {
                Effect::Host(Op::ShowFiles { path: path.clone(), files: files.clone(), group: *group })
            }
            Action::EnsureHostPath { path, kind } => Effect::Host(Op::HostPath { path: path.clone(), kind: *kind }),
            Action::MeasureScratch { path } => Effect::Host(Op::MeasureTree { path: path.clone() }),
            Action::RemoveScratch { path } => Effect::Host(Op::RemoveTree { path: path.clone() }),
            Action::Sweep { path, .. } => Effect::Host(Op::RemoveDir { path: path.clone() }),
            Action::Stage { driver, handle, path, spec, mount_group, secrets } => {
                Effect::call_driver(driver.as_str(), stage(handle, path, spec, *mount_group, secrets))
            }
            Action::Publish(publishing) => Effect::call_driver(publishing.driver.as_str(), publishing.call()),
            Action::SetGroup { target, change } => Effect::Host(Op::SetGroup {
                path: target.clone(),
                group: change.group,
                only_if_root_differs: change.only_if_root_differs,
            }),
            Action::ReadSecret { secret, .. } => Secrets::read(secret),
            Action::AskToken { wish, .. } | Action::RequestToken { wish, .. } => Effect::Token(wish.clone()),
            Action::SweepDevice { path } => Effect::Host(Op::RemoveTarget { path: path.clone() }),
            Action::SweepFile { path } => Effect::Host(Op::RemoveFile { path: path.clone() }),
            Action::ListPods { .. } => Effect::List { kind: Kind::Pod, namespace: String::new() },
            Action::Unpublish(There { driver, handle, path }) => {
                let request = v1::NodeUnpublishVolumeRequest { volume_id: handle.clone(), target_path: path.clone() };
                Effect::call_driver(driver.as_str(), Call::NodeUnpublishVolume(request))
            }
            Action::Unstage(There { driver, handle, path }) => {
                let request =
                    v1::NodeUnstageVolumeRequest { volume_id: handle.clone(), staging_target_path: path.clone() };
                Effect::call_driver(driver.as_str(), Call::NodeUnstageVolume(request))
            }
            Action::Expand(step) => step.effect(),
            Action::ReadPod { pod, .. } => Effect::Read(ObjectRef { kind: Kind::Pod, key: pod.clone() }),
            Action::Start { process, .. } => Effect::Host(Op::StartProcess(process.clone())),
            Action::BeginEnd { .. } => Effect::Nothing,
            Action::Check(check) => match &check.handler {
                Ok(handler) => Effect::Host(Op::RunHandler {
                    name: check.process.clone(),
                    handler: handler.clone(),
                    timeout_millis: check.timeout_millis,
                }),
                Err(_) => Effect::Nothing,
            },
            Action::Ask { name, .. } => Effect::Host(Op::AskProcess { name: name.clone() }),
            Action::Stop { name, grace_millis } => {
                Effect::Host(Op::StopProcess { name: name.clone(), grace_millis: *grace_millis })
            }
            Action::Forget { name } => Effect::Host(Op::ForgetProcess { name: name.clone() }),
            Action::SetStatus { pod, only_if, status } => Effect::Write(Write::Patch {
                target: ObjectRef { kind: Kind::Pod, key: pod.clone() },
                subresource: Some(Subresource::Status),
                patch: Patch::merge(only_if.clone(), json!({ "status": status::to_json(status) })),
            }),
            Action::DeletePod { pod, uid } => Effect::Write(Write::Delete {
                target: ObjectRef { kind: Kind::Pod, key: pod.clone() },
                only_if: Precondition { uid: Some(uid.clone()), resource_version: None },
                grace_seconds: Some(0),
            }),
        }
    }

    /// A source that the pod cannot do without is a failure if it is missing: users are told, and it is looked for
    /// again after longer and longer pauses.
    fn attempt(&self, got: &Outcome) -> Attempt {
        match (self, got) {
            (Action::Expand(step), _) => step.attempt(got),
            (Action::AskHealth(asked), _) => asked.attempt(got),
            (Action::ReadSecret { secret, .. }, _) => Secrets::attempt(secret, got),
            (Action::ReadSource { source, need, .. }, Outcome::Done(_)) => {
                let read = SourceRead::after(Timestamp(0), None, need.optional, got);
                let lacks = read.and_then(|read| need.lacks(source, &read));
                lacks.map_or(Attempt::Succeeded, Attempt::Failed)
            }
            (Action::AskToken { wish, .. } | Action::RequestToken { wish, .. }, _) => {
                match (got.failure(), self) {
                    (None, Action::AskToken { .. }) => Attempt::Succeeded,
                    // It prepares a call, so success ends no row of failures.
                    (None, _) => Attempt::Neutral,
                    (Some(why), _) => Attempt::Failed(no_token(wish, got, why)),
                }
            }
            _others => Attempt::of(got),
        }
    }

    /// A growth that fails holds up nothing else, nor does what is read or measured.
    fn lane(&self) -> Lane<'_> {
        match self {
            Action::Expand(step) => step.lane(),
            Action::AskHealth(asked) => asked.lane(),
            // Probes have a pace of their own: no bad answer holds the next question back.
            Action::Check(check) => Lane { number: 0, subject: format!("{}/", check.at_millis).into() },
            Action::ReadSource { .. } | Action::AskToken { .. } => Lane::numbered(READING),
            Action::MeasureScratch { .. } => Lane::numbered(MEASURING),
            _others => Lane::default(),
        }
    }

    /// The reasons that kubelet gives. A life without trouble says nothing here: each of these would be a write.
    fn news(&self) -> News {
        let failed = match self {
            Action::ReportInUse(_)
            | Action::ReadNode(_)
            | Action::WriteRecord { .. }
            | Action::MakeDir { .. }
            | Action::MakeScratch { .. }
            | Action::ReadSource { need: SourceNeed { volume: Some(_), .. }, .. }
            | Action::AskToken { .. }
            | Action::MountMemory { .. }
            | Action::ShowFiles { .. }
            | Action::EnsureHostPath { .. }
            | Action::Stage { .. }
            | Action::Publish(_)
            | Action::ReadSecret { .. }
            | Action::RequestToken { .. } => "FailedMount",
            Action::Unpublish(_) | Action::Unstage(_) | Action::ClearInUse(_) | Action::RemoveRecord { .. } => {
                "FailedUnMount"
            }
            Action::Start { .. } | Action::ReadSource { .. } => "Failed",
            Action::Ask { told: Some(told), .. } => {
                let killing = Some(("Killing", told.clone()));
                return News { done: killing, failed: Some("FailedKillPod"), ..News::default() };
            }
            Action::Check(check) => match check.kind {
                CheckKind::PostStart => "FailedPostStartHook",
                CheckKind::PreStop => "FailedPreStopHook",
                CheckKind::Startup | CheckKind::Liveness | CheckKind::Readiness => "Unhealthy",
            },
            Action::BeginEnd { .. } | Action::Ask { told: None, .. } | Action::Stop { .. } | Action::Seal { .. } => {
                "FailedKillPod"
            }
            // KL-85: a volume with many files keeps its pod waiting.
            Action::SetGroup { target, change } => {
                let text = format!("the files at {target} are still being given to group {}", change.group);
                let slow = Some(("VolumePermissionChangeInProgress", text));
                return News { slow, failed: Some("FailedMount"), ..News::default() };
            }
            Action::Expand(step) => return step.news(),
            Action::AskHealth(_) => return AskHealth::news(),
            Action::NoteRecovered { path } => {
                let text = format!("the driver finds nothing wrong any more with the volume at {path}");
                return News { done: Some(("VolumeConditionNormal", text)), ..News::default() };
            }
            Action::NoteVanished { path } => {
                let text = format!("the mount at {path} is gone, and nobody here took it away; it is mounted again");
                return News { done: Some(("MountVanished", text)), ..News::default() };
            }
            Action::RemoveScratch { .. }
            | Action::UnmountMemory { .. }
            | Action::MeasureScratch { .. }
            | Action::Sweep { .. }
            | Action::SweepDevice { .. }
            | Action::SweepFile { .. }
            | Action::ListPods { .. }
            | Action::ReadPod { .. }
            | Action::Forget { .. }
            | Action::DeletePod { .. } => return News::default(),
            Action::SetStatus { status, .. } => {
                return News {
                    done: container_status::back_off_of(status).map(|text| ("BackOff", text)),
                    ..News::default()
                };
            }
        };
        News { failed: Some(failed), ..News::default() }
    }

    fn permissions() -> &'static [Permission] {
        const ALL: &[Permission] = &[
            Permission::new(Kind::Node, "", "get"),
            Permission::new(Kind::Node, "status", "patch"),
            Permission::new(Kind::Pod, "", "get"),
            Permission::new(Kind::Pod, "", "list"),
            Permission::new(Kind::Pod, "", "delete"),
            Permission::new(Kind::Pod, "status", "patch"),
            Permission::new(Kind::PersistentVolumeClaim, "status", "patch"),
            Permission::new(Kind::ConfigMap, "", "get"),
            Permission::new(Kind::Secret, "", "get"),
            Permission::new(Kind::ServiceAccount, "token", "create"),
        ];
        ALL
    }
}

/// Why an account gave no token, for people.
fn no_token(wish: &TokenWish, got: &Outcome, why: String) -> String {
    let missing = matches!(got, Outcome::Refused(Refusal::NotFound));
    let why = if missing { "it does not exist; create it".into() } else { why };
    let (namespace, account) = (&wish.pod.namespace, &wish.account);
    format!("no token of service account {namespace}/{account} could be had: {why}")
}
