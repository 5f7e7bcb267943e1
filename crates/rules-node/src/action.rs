use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{JsonOp, Kind, ObjectKey, ObjectRef, Patch, PodStatus, Precondition, ResourceVersion, Subresource, Write};
use control::host::{Op, Process};
use control::{Effect, News, Permission};
use csi::{Call, v1};
use serde_json::json;

use crate::record::Record;
use crate::spec::VolumeSpec;
use crate::status;

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
        /// Where.
        path: String,
        /// What.
        record: Record,
        /// Paths the record did not list before: nothing was ever done there.
        fresh: BTreeSet<String>,
    },
    /// Remove a volume's record.
    RemoveRecord {
        /// Where.
        path: String,
        /// The volume's unique name.
        volume: String,
    },
    /// Make a directory.
    MakeDir {
        /// Which.
        path: String,
    },
    /// Make the directory of an `emptyDir` volume.
    MakeScratch {
        /// Where the volume will be.
        path: String,
    },
    /// Remove the `emptyDir` volumes of a pod and all that is in them.
    RemoveScratch {
        /// The directory that holds all of them.
        path: String,
    },
    /// Remove an empty directory.
    Sweep {
        /// Which.
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
        /// Where.
        path: String,
        /// What the driver is told.
        spec: VolumeSpec,
    },
    /// NodePublishVolume.
    Publish {
        /// The driver's name.
        driver: String,
        /// The driver's name for the volume.
        handle: String,
        /// Where it is staged.
        staging: Option<String>,
        /// Where.
        target: String,
        /// Read-only.
        read_only: bool,
        /// What the driver is told.
        spec: VolumeSpec,
        /// What the driver is told about the pod.
        pod_info: BTreeMap<String, String>,
    },
    /// NodeUnpublishVolume.
    Unpublish(There),
    /// NodeUnstageVolume.
    Unstage(There),
    /// Read a pod from the API itself.
    ReadPod {
        /// Which.
        pod: ObjectKey,
        /// The uid of which something is left.
        uid: String,
    },
    /// Start a process.
    Start {
        /// What.
        process: Process,
        /// When that was decided, in milliseconds since 1970.
        at_millis: u64,
    },
    /// End a process.
    Stop {
        /// Which.
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
    Forget {
        /// Which.
        name: String,
    },
    /// Say how a pod fares.
    SetStatus {
        /// Which.
        pod: ObjectKey,
        /// The object as seen.
        only_if: Precondition,
        /// Its status.
        status: PodStatus,
    },
    /// Delete a pod of which nothing is left here.
    DeletePod {
        /// Which.
        pod: ObjectKey,
        /// Its uid.
        uid: String,
    },
}

/// A volume in the Node object's list of volumes in use, and the object as seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InUse {
    /// The node's name.
    pub node: String,
    /// This incarnation of the agent.
    pub incarnation: String,
    /// The volume's unique name.
    pub volume: String,
    /// The list as seen.
    pub seen: Option<Vec<String>>,
    /// The object's version as seen.
    pub version: ResourceVersion,
    /// The volume must be reported attached as well.
    pub attach_needed: bool,
}

/// A volume at a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct There {
    /// The driver's name.
    pub driver: String,
    /// The driver's name for the volume.
    pub handle: String,
    /// Where.
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
            Action::RemoveScratch { .. } => "RemoveScratch",
            Action::Sweep { .. } => "Sweep",
            Action::Stage { .. } => "Stage",
            Action::Publish { .. } => "Publish",
            Action::Unpublish(_) => "Unpublish",
            Action::Unstage(_) => "Unstage",
            Action::ReadPod { .. } => "ReadPod",
            Action::Start { .. } => "Start",
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
            Action::Seal { .. } => Effect::Nothing,
            Action::MakeScratch { path } => Effect::Host(Op::MakeScratch { path: path.clone() }),
            Action::RemoveScratch { path } => Effect::Host(Op::RemoveTree { path: path.clone() }),
            Action::Sweep { path, .. } => Effect::Host(Op::RemoveDir { path: path.clone() }),
            Action::Stage { driver, handle, path, spec } => {
                Effect::call_driver(driver.as_str(), stage(handle, path, spec))
            }
            Action::Publish { driver, .. } => Effect::call_driver(driver.as_str(), self.publish()),
            Action::Unpublish(There { driver, handle, path }) => {
                let request = v1::NodeUnpublishVolumeRequest { volume_id: handle.clone(), target_path: path.clone() };
                Effect::call_driver(driver.as_str(), Call::NodeUnpublishVolume(request))
            }
            Action::Unstage(There { driver, handle, path }) => {
                let request =
                    v1::NodeUnstageVolumeRequest { volume_id: handle.clone(), staging_target_path: path.clone() };
                Effect::call_driver(driver.as_str(), Call::NodeUnstageVolume(request))
            }
            Action::ReadPod { pod, .. } => Effect::Read(ObjectRef { kind: Kind::Pod, key: pod.clone() }),
            Action::Start { process, .. } => Effect::Host(Op::StartProcess(process.clone())),
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

    /// The reasons that kubelet gives. A life without trouble says nothing here: each of these would be a write.
    fn news(&self) -> News {
        let failed = match self {
            Action::ReportInUse(_)
            | Action::ReadNode(_)
            | Action::WriteRecord { .. }
            | Action::MakeDir { .. }
            | Action::MakeScratch { .. }
            | Action::Stage { .. }
            | Action::Publish { .. } => "FailedMount",
            Action::Unpublish(_) | Action::Unstage(_) | Action::ClearInUse(_) | Action::RemoveRecord { .. } => {
                "FailedUnMount"
            }
            Action::Start { .. } => "Failed",
            Action::Stop { .. } | Action::Seal { .. } => "FailedKillPod",
            Action::RemoveScratch { .. }
            | Action::Sweep { .. }
            | Action::ReadPod { .. }
            | Action::Forget { .. }
            | Action::DeletePod { .. } => return News::default(),
            Action::SetStatus { status, .. } => {
                return News { done: status::back_off_of(status).map(|text| ("BackOff", text)), ..News::default() };
            }
        };
        News { failed: Some(failed), ..News::default() }
    }

    fn permissions() -> &'static [Permission] {
        const ALL: &[Permission] = &[
            Permission::new(Kind::Node, "", "get"),
            Permission::new(Kind::Node, "status", "patch"),
            Permission::new(Kind::Pod, "", "get"),
            Permission::new(Kind::Pod, "", "delete"),
            Permission::new(Kind::Pod, "status", "patch"),
        ];
        ALL
    }
}

impl Action {
    fn publish(&self) -> Call {
        let mut request = v1::NodePublishVolumeRequest::default();
        if let Action::Publish { handle, staging, target, read_only, spec, pod_info, .. } = self {
            request.volume_id = handle.clone();
            request.publish_context = spec.publish_context.clone();
            request.staging_target_path = staging.clone().unwrap_or_default();
            request.target_path = target.clone();
            request.volume_capability = Some(spec.capability.to_csi());
            request.readonly = *read_only;
            request.volume_context = spec.volume_context.clone();
            request.volume_context.extend(pod_info.clone());
        }
        Call::NodePublishVolume(request)
    }
}

fn stage(handle: &str, path: &str, spec: &VolumeSpec) -> Call {
    Call::NodeStageVolume(v1::NodeStageVolumeRequest {
        volume_id: handle.into(),
        publish_context: spec.publish_context.clone(),
        staging_target_path: path.into(),
        volume_capability: Some(spec.capability.to_csi()),
        volume_context: spec.volume_context.clone(),
        ..v1::NodeStageVolumeRequest::default()
    })
}

const IN_USE_PATH: &str = "/status/volumesInUse";

impl InUse {
    fn report(&self) -> Effect {
        let mut list = self.seen.clone().unwrap_or_default();
        list.push(self.volume.clone());
        let mut ops = self.tests();
        if self.seen.is_none() {
            ops.push(self.version_test());
        }
        self.write(ops, &list)
    }

    /// The version is tested as well: once the Node is newer, a clearing still on its way can no longer land.
    fn clear(&self) -> Effect {
        let list: Vec<String> = self.seen.iter().flatten().filter(|v| **v != self.volume).cloned().collect();
        let mut ops = self.tests();
        ops.push(self.version_test());
        self.write(ops, &list)
    }

    fn tests(&self) -> Vec<JsonOp> {
        let incarnation = format!("/metadata/annotations/{}", api::names::AGENT_INCARNATION.replace('/', "~1"));
        let mut ops = alloc::vec![JsonOp::Test { path: incarnation, value: self.incarnation.clone().into() }];
        if let Some(seen) = &self.seen {
            ops.push(JsonOp::Test { path: IN_USE_PATH.into(), value: json!(seen) });
        }
        ops
    }

    fn version_test(&self) -> JsonOp {
        JsonOp::Test { path: "/metadata/resourceVersion".into(), value: self.version.clone().into() }
    }

    fn write(&self, mut ops: Vec<JsonOp>, list: &[String]) -> Effect {
        ops.push(JsonOp::Add { path: IN_USE_PATH.into(), value: json!(list) });
        Effect::Write(Write::Patch {
            target: ObjectRef::cluster(Kind::Node, self.node.clone()),
            subresource: Some(Subresource::Status),
            patch: Patch::json(Precondition::default(), ops),
        })
    }
}
