use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use control::host::{FailureKind, Op, Reply, Usage};
use csi::v1::{CreateSnapshotRequest, CreateVolumeGroupSnapshotRequest};
use csi::{Call, Code, Lock, Method, Response, Status, Thing};

use crate::check;
use crate::config::Config;
use crate::facts::Facts;
use crate::record::{Snapshot, State};
use crate::{controller, create, delete, ephemeral, feature, group, identity, list, node, snapshot, usage};

/// The methods of the driver's socket. The driver answers UNIMPLEMENTED to those that its configuration leaves out.
pub const METHODS: &[Method] = Method::CSI;

/// The next step of a call.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "steps are made one at a time and moved, never collected")]
pub enum Step {
    /// Perform this operation, report its end with [`Run::did`] or [`Run::failed`], and ask for the next step.
    Do(Op),
    /// Answer the call.
    Answer(Result<Response, Status>),
}

/// One call, from its arrival to its answer.
#[derive(Clone, Debug)]
pub struct Run {
    call: Call,
    now_millis: u64,
    /// What was done in this run. Operations that leave no trace in the facts are done once per run.
    done: Vec<Op>,
    /// What was measured in this run, by path.
    measured: BTreeMap<String, Measurement>,
    /// The error of the operation that found the disk full.
    full: Option<String>,
}

/// The result of measuring a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Measurement {
    Usage(Usage),
    /// The path could not be measured, for this reason.
    Failed(String),
}

/// Why an operation failed, as far as the rules care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The disk is full.
    DiskFull,
    Other,
}

impl From<FailureKind> for Trouble {
    fn from(kind: FailureKind) -> Trouble {
        if kind == FailureKind::NoSpace { Trouble::DiskFull } else { Trouble::Other }
    }
}

impl Run {
    /// A call that arrived now, in milliseconds since 1970.
    pub fn new(call: Call, now_millis: u64) -> Run {
        Run { call, now_millis, done: Vec::new(), measured: BTreeMap::new(), full: None }
    }

    /// The next step. A record that is about to be written changes in the facts at once, so all calls must share one set of
    /// facts.
    pub fn step(&self, config: &Config, facts: &mut Facts) -> Step {
        match self.next(config, facts) {
            Ok(step) => step,
            Err(status) => Step::Answer(Err(status)),
        }
    }

    /// Tells the run that the operation was performed. Returns whether what was last seen of the call's volume may be
    /// another file's by now, so that the kernel is to be asked again.
    pub fn did(&mut self, config: &Config, facts: &mut Facts, op: Op, reply: &Reply) -> bool {
        let stale = matches!(op, Op::AttachLoop { .. });
        facts.learn(config, &op, reply);
        if let (Op::Measure { path }, Reply::Usage(usage)) = (&op, reply) {
            self.measured.insert(path.clone(), Measurement::Usage(*usage));
        }
        self.done.push(op);
        stale
    }

    /// Tells the run that the operation failed, or may have failed. Returns the answer to the call, or `None` if the call goes
    /// on all the same. The answer is never final where part of the work may have been done.
    pub fn failed(&mut self, op: &Op, why: &str, trouble: Trouble) -> Option<Status> {
        if let Op::Measure { path } = op {
            self.measured.insert(path.clone(), Measurement::Failed(why.to_string()));
            return None;
        }
        // Room that is not given back now is the next time.
        if let Op::Discard { .. } = op {
            self.done.push(op.clone());
            return None;
        }
        let doing = match op {
            Op::MakeDir { path } | Op::MakePlace { path } | Op::MakeScratch { path } => {
                format!("make the directory {path}")
            }
            Op::SetGroup { path, .. } => format!("give {path} to a group"),
            Op::RemoveDir { path } => format!("remove the directory {path}"),
            Op::WriteFile { .. } => "write the volume's record".to_string(),
            Op::RemoveFile { .. } => "remove a file of the volume".to_string(),
            Op::CreateImage { size, .. } => format!("make an image of {size} bytes"),
            Op::CopyTogether { .. } => "copy the volume".to_string(),
            Op::GrowImage { size, .. } => format!("make the image as large as {size} bytes"),
            Op::Discard { .. } => "give back the room the volume does not use".to_string(),
            Op::RemoveTree { .. } => "remove the volume's directory".to_string(),
            Op::MakeFile { path } => format!("make the file {path}"),
            Op::RemoveTarget { path } => format!("remove {path}"),
            Op::RefreshLoop { .. } => "make the loop device as large as its image".to_string(),
            Op::SetReadAhead { device, .. } => format!("set what is read ahead on {device}"),
            Op::CheckFilesystem { device, .. } => format!("check {device}"),
            Op::GrowFilesystem { .. } => "make the filesystem as large as the volume".to_string(),
            Op::BindDevice { target, .. } => format!("show the volume at {target}"),
            Op::Measure { path } => format!("measure {path}"),
            Op::AttachLoop { .. } => "attach the image to a loop device".to_string(),
            Op::DetachLoop { .. } => "detach the image from its loop device".to_string(),
            Op::MakeFilesystem { device, fstype } => format!("put {fstype} on {device}"),
            Op::Mount { target, .. } => format!("mount the volume at {target}"),
            Op::Bind { target, .. } => format!("show the volume at {target}"),
            Op::Unmount { target } => format!("unmount {target}"),
            Op::StartProcess(_)
            | Op::AskProcess { .. }
            | Op::RunHandler { .. }
            | Op::StopProcess { .. }
            | Op::ForgetProcess { .. } => "handle a process".to_string(),
            Op::MountMemory { target: path, .. }
            | Op::ShowFiles { path, .. }
            | Op::HostPath { path, .. }
            | Op::MeasureTree { path } => format!("handle what the node puts at {path}"),
        };
        let text = format!("cannot {doing}: {why}");
        if trouble == Trouble::DiskFull && self.full.is_none() && self.goes_on_when_full(op) {
            self.full = Some(text);
            // What was removed before it was made is there again, and has to be removed again.
            self.done.clear();
            return None;
        }
        Some(Status::from_driver(self.code_of(op, trouble), text))
    }

    /// What was begun is undone, which needs no room, and then refused; and deleting, which makes room, does without the
    /// mark that it has begun.
    fn goes_on_when_full(&self, op: &Op) -> bool {
        match self.call.method() {
            Method::CreateVolume | Method::CreateSnapshot | Method::CreateVolumeGroupSnapshot => true,
            Method::DeleteVolume
            | Method::DeleteSnapshot
            | Method::DeleteVolumeGroupSnapshot
            | Method::NodeUnpublishVolume => matches!(op, Op::WriteFile { .. }),
            _ => false,
        }
    }

    fn code_of(&self, op: &Op, trouble: Trouble) -> Code {
        match (self.call.method(), op) {
            // A volume in use that cannot grow as it is used now.
            (Method::NodeExpandVolume, Op::GrowFilesystem { .. }) => Code::FailedPrecondition,
            // A filesystem that only a person can repair. It is never made anew.
            (_, Op::CheckFilesystem { .. }) => Code::FailedPrecondition,
            (Method::ControllerExpandVolume | Method::NodeStageVolume | Method::NodePublishVolume, _)
                if trouble == Trouble::DiskFull =>
            {
                Code::ResourceExhausted
            }
            // Everything else may go better the next time.
            _ => Code::Unavailable,
        }
    }

    /// The refusal of a call that found the disk full.
    pub(crate) fn disk_full(&self) -> Option<Status> {
        let text = self.full.as_ref()?;
        Some(Status::from_driver(Code::ResourceExhausted, format!("{text}; delete volumes or enlarge the disk")))
    }

    /// Performs an operation unless this run did it already.
    pub(crate) fn once(&self, op: Op) -> Option<Step> {
        self.undone(op).map(Step::Do)
    }

    /// The operation, unless this run did it already.
    pub(crate) fn undone(&self, op: Op) -> Option<Op> {
        (!self.done.contains(&op)).then_some(op)
    }

    /// This run did it.
    pub(crate) fn has_done(&self, op: &Op) -> bool {
        self.done.contains(op)
    }

    /// What this run measured at a path, if it did.
    pub(crate) fn measured(&self, path: &str) -> Option<&Measurement> {
        self.measured.get(path)
    }

    /// When the call arrived.
    pub(crate) fn now_millis(&self) -> u64 {
        self.now_millis
    }

    fn next(&self, config: &Config, facts: &mut Facts) -> Result<Step, Status> {
        if !feature::serves(config, self.call.method()) {
            let text = format!("{} does not offer {}", config.name, self.call.method().name());
            return Err(Status::from_driver(Code::Unimplemented, text));
        }
        let capabilities = feature::capabilities(config);
        match &self.call {
            Call::GetPluginInfo(_) => return answer(Response::GetPluginInfo(identity::info(config))),
            Call::GetPluginCapabilities(_) => return answer(Response::GetPluginCapabilities(capabilities.into())),
            Call::Probe(_) => return answer(Response::Probe(identity::probe(facts))),
            Call::ControllerGetCapabilities(_) => {
                return answer(Response::ControllerGetCapabilities(capabilities.into()));
            }
            Call::GroupControllerGetCapabilities(_) => {
                return answer(Response::GroupControllerGetCapabilities(capabilities.into()));
            }
            Call::NodeGetCapabilities(_) => return answer(Response::NodeGetCapabilities(capabilities.into())),
            Call::NodeGetInfo(_) => return answer(Response::NodeGetInfo(identity::node_info(config))),
            _ if !facts.loaded() => return Err(not_loaded()),
            _ => {}
        }
        match &self.call {
            Call::CreateVolume(r) => create::create(self, config, facts, r),
            Call::DeleteVolume(r) => delete::delete(self, config, facts, r),
            Call::ControllerPublishVolume(r) => controller::publish(config, facts, r),
            Call::ControllerUnpublishVolume(r) => controller::unpublish(config, facts, r),
            Call::ValidateVolumeCapabilities(r) => controller::validate(config, facts, r),
            Call::ListVolumes(r) => list::volumes(config, facts, r),
            Call::GetCapacity(r) => list::capacity(config, facts, r),
            Call::CreateSnapshot(r) => snapshot::create(self, config, facts, r),
            Call::DeleteSnapshot(r) => snapshot::delete(self, config, facts, r),
            Call::ListSnapshots(r) => snapshot::list(facts, r),
            Call::GetSnapshot(r) => snapshot::get(facts, r),
            Call::ControllerExpandVolume(r) => controller::expand(self, config, facts, r),
            Call::ControllerGetVolume(r) => list::volume(config, facts, r),
            Call::ControllerModifyVolume(r) => controller::modify(self, config, facts, r),
            Call::ControllerGetVolumeHealth(r) => list::health(self, config, facts, r),
            Call::ControllerListVolumeHealth(r) => list::all_health(self, config, facts, r),
            Call::CreateVolumeGroupSnapshot(r) => group::create(self, config, facts, r),
            Call::DeleteVolumeGroupSnapshot(r) => group::delete(self, config, facts, r),
            Call::GetVolumeGroupSnapshot(r) => group::get(facts, r),
            Call::NodeStageVolume(r) => node::stage(self, config, facts, r),
            Call::NodeUnstageVolume(r) => node::unstage(self, config, facts, r),
            Call::NodePublishVolume(r) => node::publish(self, config, facts, r),
            Call::NodeUnpublishVolume(r) => node::unpublish(self, config, facts, r),
            Call::NodeGetVolumeStats(r) => usage::stats(self, config, facts, r),
            Call::NodeGetVolumeHealth(r) => usage::health(self, config, facts, r),
            Call::NodeExpandVolume(r) => usage::expand(self, config, facts, r),
            Call::NodeGetStorageHealth(_) => usage::storage_health(self, config),
            // Answered above, or never offered.
            Call::GetPluginInfo(_)
            | Call::GetPluginCapabilities(_)
            | Call::Probe(_)
            | Call::ControllerGetCapabilities(_)
            | Call::GroupControllerGetCapabilities(_)
            | Call::NodeGetCapabilities(_)
            | Call::NodeGetInfo(_)
            | Call::GetCSIDriverInfo(_)
            | Call::GetInfo(_)
            | Call::NotifyRegistrationStatus(_) => {
                Err(Status::from_driver(Code::Unimplemented, "the call has no answer here"))
            }
        }
    }
}

/// Ends a call well.
pub fn answer(response: Response) -> Result<Step, Status> {
    Ok(Step::Answer(Ok(response)))
}

fn not_loaded() -> Status {
    Status::from_driver(Code::Unavailable, "the volume records are not loaded yet; call again")
}

/// The answer to a call one of whose locks another call holds (reliability 81).
pub fn busy(call: &Call) -> Status {
    let text = format!("another call is at work on this volume; repeat {} when it has ended", call.method().name());
    Status::from_driver(Code::Aborted, text)
}

/// The call may promise bytes of the pool, so it must know what every process of the driver has promised.
pub fn promises(call: &Call) -> bool {
    match call {
        Call::NodePublishVolume(request) => ephemeral::is_asked_for(&request.volume_context),
        _ => matches!(
            call.method(),
            Method::CreateVolume
                | Method::CreateSnapshot
                | Method::CreateVolumeGroupSnapshot
                | Method::ControllerExpandVolume
        ),
    }
}

/// The call may take longer than callers wait: it goes on without them, and they are told that it is under way.
pub fn outlasts_callers(call: &Call) -> bool {
    matches!(call, Call::CreateSnapshot(_))
}

/// The answer to a call that another one keeps from running: the snapshot it asks for is being copied.
pub fn under_way(call: &Call, facts: &Facts) -> Option<Response> {
    match call {
        Call::CreateSnapshot(request) => snapshot::under_way(facts, request),
        _ => None,
    }
}

/// The calls that go on with snapshots whose copy was cut off, alone or in a group.
pub fn resumed(facts: &Facts) -> Vec<Call> {
    let cut_off = facts.snapshots().values().filter(|one| one.state == State::Creating && one.group.is_none());
    let again = |one: &Snapshot| {
        let (name, source_volume_id) = (one.name.clone(), one.source.clone());
        Call::CreateSnapshot(CreateSnapshotRequest { name, source_volume_id, ..Default::default() })
    };
    let groups = facts.groups().values().filter(|one| one.state == State::Creating).map(|one| {
        let (name, source_volume_ids) = (one.name.clone(), one.snapshots.keys().cloned().collect());
        Call::CreateVolumeGroupSnapshot(CreateVolumeGroupSnapshotRequest {
            name,
            source_volume_ids,
            ..Default::default()
        })
    });
    cut_off.map(again).chain(groups).collect()
}

/// What a call works on. Calls that share a lock must not run at the same time, unless both only read: the later one is
/// answered with [`busy`]. Calls without a lock change nothing.
pub fn locks(call: &Call) -> Vec<Lock> {
    let all = csi::locks(call, &|thing, name| check::id_for(thing, name)).into_iter();
    // A copy holds its filesystem still, which two cannot do at once.
    all.map(|lock| Lock { shared: lock.shared && lock.thing != Thing::Volume, ..lock }).collect()
}
