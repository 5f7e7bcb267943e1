//! What is really there: the driver's volumes and attachments, and each machine's mounts, files and processes.
//!
//! The driver is lenient on purpose. It attaches a volume to as many nodes as it is told to, detaches what is mounted
//! and publishes what was never staged, so that nothing but the rules keeps the laws. While it works on a call it answers
//! ABORTED to others about the same volume, or, as often as the budget allows, lets those overtake that change another
//! aspect of it. It refuses any call with any code that CSI lists for it as often as the budget allows, also one it has
//! carried out before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use control::host::{Op, ProcessState, Reply as HostReply};
use control::{Outcome, Refusal, Reply};
use csi::{Call, Code, Response, Status, v1};
use prove_kernel::KernelFault;

use crate::machine::{KernelMachine, Shown};

/// The storage system behind the driver, and every machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Truth {
    /// Volume ids by the name they were created under.
    pub volumes: BTreeMap<String, String>,
    /// Which nodes (by the driver's node id) each volume id is attached to.
    pub attached: BTreeMap<String, BTreeSet<String>>,
    /// How large the volumes are that the driver made, or that somebody may grow.
    pub sizes: BTreeMap<String, Size>,
    /// The tier of the volumes whose attributes somebody may change.
    pub tiers: BTreeMap<String, String>,
    /// Drivers that register with a node's agent.
    pub plugins: crate::plugins::Plugins,
    /// The in-tree plugins whose migration gate the controllers were last started with off.
    pub switched_off: BTreeSet<rules_translate::Plugin>,
    /// Machines by node name.
    pub hosts: BTreeMap<String, PretendHost>,
    /// The driver has called a change of a volume impossible that is possible.
    pub impossible: bool,
}

/// How large a volume is, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Size {
    /// The volume itself.
    pub volume: i64,
    /// The filesystem on it.
    pub filesystem: i64,
}

/// The driver has room for no volume larger than this.
pub const LARGEST: i64 = 2 << 30;

/// One machine: a plain list of what is there, or a model kernel, of which the list is what a look at it shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PretendHost {
    /// The kernel, in the worlds that have one.
    pub machine: Option<Arc<KernelMachine>>,
    /// What is mounted under the agent's directory. With a kernel alone.
    pub shown: BTreeMap<String, Shown>,
    /// The paths that the agent last saw mounted. With a kernel alone.
    pub watched: BTreeSet<String>,
    /// Somebody spoiled a record of this machine, so that not every record is one.
    pub spoiled: bool,
    /// Staging path of each staged volume id.
    pub staged: BTreeSet<(String, String)>,
    /// Target path of each published volume id.
    pub published: BTreeSet<(String, String)>,
    /// Whole files by path.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Directories by path.
    pub dirs: BTreeSet<String>,
    /// Processes by name; `true` while they run.
    pub processes: BTreeMap<String, bool>,
    /// The incarnation the agent is in.
    pub incarnation: u64,
}

impl PretendHost {
    /// A volume is staged or published here.
    pub fn holds(&self, volume: &str) -> bool {
        self.staged.iter().chain(&self.published).any(|(id, _)| id == volume)
    }
}

impl Truth {
    /// The driver does what it is asked.
    pub(crate) fn call(&mut self, node: &str, call: &Call) -> Outcome {
        let answer = match call {
            Call::CreateVolume(request) => {
                if let Some(lost) = self.lost_source(request) {
                    return Outcome::Refused(Refusal::Driver(Code::NotFound, format!("there is no volume {lost}")));
                }
                let id = format!("vol-{}", request.name);
                self.volumes.insert(request.name.clone(), id.clone());
                let capacity_bytes = request.capacity_range.as_ref().map_or(0, |range| range.required_bytes);
                let size = Size { volume: capacity_bytes, filesystem: capacity_bytes };
                let capacity_bytes = self.sizes.entry(id.clone()).or_insert(size).volume;
                let content_source = request.volume_content_source.clone();
                let volume = v1::Volume { volume_id: id, capacity_bytes, content_source, ..v1::Volume::default() };
                Response::CreateVolume(v1::CreateVolumeResponse { volume: Some(volume) })
            }
            Call::DeleteVolume(request) => {
                self.volumes.retain(|_, id| *id != request.volume_id);
                self.sizes.remove(&request.volume_id);
                Response::DeleteVolume(v1::DeleteVolumeResponse {})
            }
            Call::ControllerPublishVolume(request) => {
                self.attached.entry(request.volume_id.clone()).or_default().insert(request.node_id.clone());
                let publish_context = [("device".to_string(), "pretend".to_string())].into();
                Response::ControllerPublishVolume(v1::ControllerPublishVolumeResponse { publish_context })
            }
            Call::ControllerUnpublishVolume(request) => {
                if let Some(nodes) = self.attached.get_mut(&request.volume_id) {
                    nodes.remove(&request.node_id);
                }
                self.attached.retain(|_, nodes| !nodes.is_empty());
                Response::ControllerUnpublishVolume(v1::ControllerUnpublishVolumeResponse {})
            }
            Call::ControllerExpandVolume(request) if self.is_on_machine() => {
                let wanted = request.capacity_range.as_ref().map_or(0, |range| range.required_bytes);
                if wanted > LARGEST {
                    return Outcome::Refused(Refusal::Driver(Code::OutOfRange, format!("{wanted} is too much")));
                }
                let nodes: Vec<String> = self.hosts.keys().cloned().collect();
                let grown = nodes.iter().map(|node| self.call_machine(node, call, None));
                return grown.last().unwrap_or_else(|| driver_refusal(call, Code::NotFound));
            }
            Call::ControllerExpandVolume(request) => {
                let wanted = request.capacity_range.as_ref().map_or(0, |range| range.required_bytes);
                if wanted > LARGEST {
                    return Outcome::Refused(Refusal::Driver(Code::OutOfRange, format!("{wanted} is too much")));
                }
                let Some(size) = self.sizes.get_mut(&request.volume_id) else {
                    return driver_refusal(call, Code::NotFound);
                };
                size.volume = size.volume.max(wanted);
                let (capacity_bytes, node_expansion_required) = (size.volume, true);
                let answer = v1::ControllerExpandVolumeResponse { capacity_bytes, node_expansion_required };
                Response::ControllerExpandVolume(answer)
            }
            Call::ControllerModifyVolume(request) => {
                let tier = request.mutable_parameters.get(TIER).cloned().unwrap_or_default();
                self.tiers.insert(request.volume_id.clone(), tier);
                Response::ControllerModifyVolume(v1::ControllerModifyVolumeResponse {})
            }
            _ => return self.node_call(node, call),
        };
        Outcome::Done(Reply::Csi(answer))
    }

    /// What the volume should be made from, if the driver does not have it.
    fn lost_source(&self, request: &v1::CreateVolumeRequest) -> Option<String> {
        let source = source_of(request)?;
        (!self.volumes.values().any(|id| id == source)).then(|| source.to_string())
    }

    pub(crate) fn is_on_machine(&self) -> bool {
        self.hosts.values().any(|host| host.machine.is_some())
    }

    /// The machine of a node, if it is one with a kernel.
    pub(crate) fn machine(&self, node: &str) -> Option<&KernelMachine> {
        self.hosts.get(node)?.machine.as_deref()
    }

    /// The driver does a call on a node's machine, or only so many operations of it.
    pub(crate) fn call_machine(&mut self, node: &str, call: &Call, most: Option<usize>) -> Outcome {
        self.with_machine(node, |machine| machine.call(call, most))
    }

    /// An operation of a machine fails in this way.
    pub(crate) fn fail_machine(&mut self, node: &str, op: &Op, fault: KernelFault) -> Outcome {
        self.with_machine(node, |machine| machine.op(op, Some(fault)))
    }

    /// A machine loses its power and starts again.
    pub(crate) fn lose_power(&mut self, node: &str) {
        self.with_machine(node, |machine| {
            machine.lose_power();
            Outcome::Done(Reply::Nothing)
        });
    }

    pub(crate) fn with_machine(&mut self, node: &str, act: impl FnOnce(&mut KernelMachine) -> Outcome) -> Outcome {
        let Some(host) = self.hosts.get_mut(node) else { return driver_busy() };
        let Some(machine) = &mut host.machine else { return driver_busy() };
        let outcome = act(Arc::make_mut(machine));
        host.look();
        let sizes: Vec<_> = self.sizes.keys().filter_map(|id| Some((id.clone(), host.size(id)?))).collect();
        self.sizes.extend(sizes);
        outcome
    }

    fn node_call(&mut self, node: &str, call: &Call) -> Outcome {
        if self.machine(node).is_some() {
            return self.call_machine(node, call, None);
        }
        let host = self.hosts.entry(node.to_string()).or_default();
        let answer = match call {
            Call::NodeStageVolume(request) => {
                host.staged.insert((request.volume_id.clone(), request.staging_target_path.clone()));
                Response::NodeStageVolume(v1::NodeStageVolumeResponse {})
            }
            Call::NodeUnstageVolume(request) => {
                host.staged.remove(&(request.volume_id.clone(), request.staging_target_path.clone()));
                Response::NodeUnstageVolume(v1::NodeUnstageVolumeResponse {})
            }
            Call::NodePublishVolume(request) => {
                host.published.insert((request.volume_id.clone(), request.target_path.clone()));
                host.dirs.insert(request.target_path.clone());
                Response::NodePublishVolume(v1::NodePublishVolumeResponse {})
            }
            Call::NodeUnpublishVolume(request) => {
                host.published.remove(&(request.volume_id.clone(), request.target_path.clone()));
                host.dirs.remove(&request.target_path);
                Response::NodeUnpublishVolume(v1::NodeUnpublishVolumeResponse {})
            }
            Call::NodeExpandVolume(request) => {
                let Some(size) = self.sizes.get_mut(&request.volume_id) else {
                    return driver_refusal(call, Code::NotFound);
                };
                size.filesystem = size.volume;
                let capacity_bytes = size.filesystem;
                Response::NodeExpandVolume(v1::NodeExpandVolumeResponse { capacity_bytes })
            }
            other => {
                let text = format!("{} is not part of this world", other.method().name());
                return Outcome::Refused(Refusal::Driver(Code::Unimplemented, text));
            }
        };
        Outcome::Done(Reply::Csi(answer))
    }

    /// The machine does what it is asked.
    pub(crate) fn host_op(&mut self, node: &str, op: &Op) -> Outcome {
        if self.machine(node).is_some() {
            return self.with_machine(node, |machine| machine.op(op, None));
        }
        let host = self.hosts.entry(node.to_string()).or_default();
        match op {
            Op::MakeDir { path } | Op::MakePlace { path } | Op::MakeScratch { path } => {
                host.dirs.insert(path.clone());
            }
            Op::RemoveDir { path } => {
                if host.mounted(path) {
                    return Outcome::Refused(Refusal::Host(format!("{path} is a mount point")));
                }
                if host.has_inside(path) {
                    return Outcome::Refused(Refusal::Host(format!("{path} is not empty")));
                }
                host.dirs.remove(path);
            }
            Op::RemoveTree { path } if host.mounts_beneath(path) => {
                return Outcome::Refused(Refusal::Host(format!("{path} has a mount in it")));
            }
            Op::RemoveTree { path } => {
                let beneath = format!("{path}/");
                host.dirs.retain(|dir| dir != path && !dir.starts_with(&beneath));
            }
            Op::WriteFile { path, bytes } => {
                host.files.insert(path.clone(), bytes.clone());
            }
            Op::RemoveFile { path } => {
                host.files.remove(path);
            }
            Op::StartProcess(process) => {
                host.processes.insert(process.name.clone(), true);
            }
            Op::RunHandler { .. } => {}
            Op::AskProcess { name } | Op::StopProcess { name, .. } => {
                if let Some(running) = host.processes.get_mut(name) {
                    *running = false;
                }
            }
            Op::ForgetProcess { name } => match host.processes.get(name) {
                Some(true) => return Outcome::Refused(Refusal::Host(format!("{name} is running"))),
                Some(false) | None => {
                    host.processes.remove(name);
                }
            },
            Op::SetGroup { .. }
            | Op::CreateImage { .. }
            | Op::CopyTogether { .. }
            | Op::GrowImage { .. }
            | Op::Discard { .. }
            | Op::MakeFile { .. }
            | Op::RemoveTarget { .. }
            | Op::RefreshLoop { .. }
            | Op::SetReadAhead { .. }
            | Op::CheckFilesystem { .. }
            | Op::GrowFilesystem { .. }
            | Op::BindDevice { .. }
            | Op::Measure { .. }
            | Op::MountMemory { .. }
            | Op::ShowFiles { .. }
            | Op::HostPath { .. }
            | Op::MeasureTree { .. }
            | Op::AttachLoop { .. }
            | Op::DetachLoop { .. }
            | Op::MakeFilesystem { .. }
            | Op::Mount { .. }
            | Op::Bind { .. }
            | Op::Unmount { .. } => {
                return Outcome::Refused(Refusal::Host("the machine of this world mounts through its driver".into()));
            }
        }
        Outcome::Done(Reply::Host(HostReply::Done))
    }
}

impl PretendHost {
    fn mounted(&self, path: &str) -> bool {
        self.staged.iter().chain(&self.published).any(|(_, at)| at == path)
    }

    fn mounts_beneath(&self, path: &str) -> bool {
        let beneath = format!("{path}/");
        self.staged.iter().chain(&self.published).any(|(_, at)| at == path || at.starts_with(&beneath))
    }

    fn has_inside(&self, path: &str) -> bool {
        let inside = |other: &String| other.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
        self.files.keys().any(inside) || self.dirs.iter().any(inside)
    }

    /// Where something is mounted, as the machine's table has it.
    pub fn mount_points(&self) -> BTreeSet<String> {
        match &self.machine {
            Some(_) => self.shown.keys().cloned().collect(),
            None => self.staged.iter().chain(&self.published).map(|(_, path)| path.clone()).collect(),
        }
    }

    fn size(&self, volume: &str) -> Option<Size> {
        self.machine.as_ref()?.size(volume)
    }

    /// Reads the kernel again. A raw device is staged while its image is attached.
    pub(crate) fn look(&mut self) {
        let Some(machine) = &self.machine else { return };
        self.shown = machine.shown();
        self.staged.clear();
        self.published.clear();
        for (path, shown) in self.shown.iter().filter(|(_, shown)| !shown.volume.is_empty()) {
            let list = if path.ends_with("/globalmount") { &mut self.staged } else { &mut self.published };
            list.insert((shown.volume.clone(), path.clone()));
        }
        let devices = machine.attached().into_iter().filter(|volume| machine.is_device(volume));
        self.staged.extend(devices.map(|volume| (volume, String::from("a device"))));
        self.files = machine.records();
        let runs = |state: &ProcessState| matches!(state, ProcessState::Running { .. });
        self.processes = machine.process_states().into_iter().map(|(name, state)| (name, runs(&state))).collect();
    }

    /// How a process fares, as the rules are told.
    pub fn process_states(&self) -> BTreeMap<String, ProcessState> {
        if let Some(machine) = &self.machine {
            return machine.process_states();
        }
        let since_millis = crate::cluster::NOW_MILLIS;
        self.processes
            .iter()
            .map(|(name, running)| {
                let state = match running {
                    true => ProcessState::Running { since_millis },
                    false => {
                        ProcessState::Exited { code: 137, since_millis, at_millis: since_millis, out_of_memory: false }
                    }
                };
                (name.clone(), state)
            })
            .collect()
    }
}

/// The one attribute that can be changed.
pub(crate) const TIER: &str = "tier";

/// The volume that a volume is to be made from.
pub(crate) fn source_of(request: &v1::CreateVolumeRequest) -> Option<&str> {
    use v1::volume_content_source::Type;
    match request.volume_content_source.as_ref()?.r#type.as_ref()? {
        Type::Volume(source) => Some(&source.volume_id),
        Type::Snapshot(source) => Some(&source.snapshot_id),
    }
}

/// The driver says no, with this code.
pub(crate) fn driver_refusal(call: &Call, code: Code) -> Outcome {
    let status = Status::from_driver(code, "the pretend driver was told to fail");
    match csi::classify(call.method(), &status) {
        csi::Finality::Refused => Outcome::Refused(Refusal::Driver(status.code, status.message)),
        csi::Finality::Done | csi::Finality::Unknown => Outcome::Unknown(status.message),
    }
}

/// The driver is busy with another call about the same volume.
pub(crate) fn driver_busy() -> Outcome {
    Outcome::Unknown("the driver answered ABORTED: another call for this volume is under way".into())
}
