use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use control::host::{Op, Reply};
use csi::{Call, Code, Method, Response, Status};

use crate::check;
use crate::config::Config;
use crate::facts::Facts;
use crate::{controller, identity, node};

/// The methods this driver offers. Without attaching, the two methods for it answer UNIMPLEMENTED all the same.
pub const METHODS: &[Method] = &[
    Method::GetPluginInfo,
    Method::GetPluginCapabilities,
    Method::Probe,
    Method::CreateVolume,
    Method::DeleteVolume,
    Method::ControllerPublishVolume,
    Method::ControllerUnpublishVolume,
    Method::ValidateVolumeCapabilities,
    Method::ControllerGetCapabilities,
    Method::NodeStageVolume,
    Method::NodeUnstageVolume,
    Method::NodePublishVolume,
    Method::NodeUnpublishVolume,
    Method::NodeGetCapabilities,
    Method::NodeGetInfo,
];

/// What comes next in a call.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "steps are made one at a time and moved, never collected")]
pub enum Step {
    /// Perform this, say so with [`Run::did`] or [`Run::failed`], and ask again.
    Do(Op),
    /// The end.
    Answer(Result<Response, Status>),
}

/// One call, from its arrival to its answer.
#[derive(Clone, Debug)]
pub struct Run {
    call: Call,
    /// What was done in this run. Operations that leave no trace in the facts are done once per run.
    done: Vec<Op>,
}

impl Run {
    /// A call that just arrived.
    pub fn new(call: Call) -> Run {
        Run { call, done: Vec::new() }
    }

    /// What comes next. A record that is about to be written changes in the facts at once, so ask with the one set of
    /// facts that all calls share.
    pub fn step(&self, config: &Config, facts: &mut Facts) -> Step {
        match self.next(config, facts) {
            Ok(step) => step,
            Err(status) => Step::Answer(Err(status)),
        }
    }

    /// The operation was performed.
    pub fn did(&mut self, config: &Config, facts: &mut Facts, op: Op, reply: &Reply) {
        facts.learn(config, &op, reply);
        self.done.push(op);
    }

    /// The operation was not performed, or nobody knows. The answer to the call: it is never a final one, because part
    /// of the work may have been done.
    pub fn failed(&self, op: &Op, why: &str) -> Status {
        let doing = match op {
            Op::MakeDir { path } => format!("make the directory {path}"),
            Op::RemoveDir { path } => format!("remove the directory {path}"),
            Op::WriteFile { .. } => "write the volume's record".to_string(),
            Op::RemoveFile { .. } => "remove a file of the volume".to_string(),
            Op::CreateImage { size, .. } => format!("make an image of {size} bytes"),
            Op::AttachLoop { .. } => "attach the image to a loop device".to_string(),
            Op::DetachLoop { .. } => "detach the image from its loop device".to_string(),
            Op::MakeFilesystem { device, fstype } => format!("put {fstype} on {device}"),
            Op::Mount { target, .. } => format!("mount the volume at {target}"),
            Op::Bind { target, .. } => format!("show the volume at {target}"),
            Op::Unmount { target } => format!("unmount {target}"),
            Op::StartProcess(_) | Op::StopProcess { .. } | Op::ForgetProcess { .. } => "handle a process".to_string(),
        };
        Status::from_driver(Code::Unavailable, format!("cannot {doing}: {why}"))
    }

    /// Performs an operation unless this run did it already.
    pub(crate) fn once(&self, op: Op) -> Option<Step> {
        (!self.done.contains(&op)).then_some(Step::Do(op))
    }

    fn next(&self, config: &Config, facts: &mut Facts) -> Result<Step, Status> {
        let loaded = facts.loaded();
        let when_loaded = |facts| if loaded { Ok(facts) } else { Err(not_loaded()) };
        match &self.call {
            Call::GetPluginInfo(_) => answer(Response::GetPluginInfo(identity::info(config))),
            Call::GetPluginCapabilities(_) => answer(Response::GetPluginCapabilities(identity::capabilities())),
            Call::Probe(_) => answer(Response::Probe(identity::probe(facts))),
            Call::ControllerGetCapabilities(_) => {
                answer(Response::ControllerGetCapabilities(identity::controller_capabilities(config)))
            }
            Call::NodeGetCapabilities(_) => answer(Response::NodeGetCapabilities(identity::node_capabilities())),
            Call::NodeGetInfo(_) => answer(Response::NodeGetInfo(identity::node_info(config))),
            Call::CreateVolume(r) => controller::create(self, config, when_loaded(facts)?, r),
            Call::DeleteVolume(r) => controller::delete(self, config, when_loaded(facts)?, r),
            Call::ControllerPublishVolume(r) if config.attach => controller::publish(config, when_loaded(facts)?, r),
            Call::ControllerUnpublishVolume(r) if config.attach => {
                controller::unpublish(config, when_loaded(facts)?, r)
            }
            Call::ValidateVolumeCapabilities(r) => controller::validate(when_loaded(facts)?, r),
            Call::NodeStageVolume(r) => node::stage(self, config, when_loaded(facts)?, r),
            Call::NodeUnstageVolume(r) => node::unstage(config, when_loaded(facts)?, r),
            Call::NodePublishVolume(r) => node::publish(self, config, when_loaded(facts)?, r),
            Call::NodeUnpublishVolume(r) => node::unpublish(self, config, when_loaded(facts)?, r),
            Call::ControllerPublishVolume(_)
            | Call::ControllerUnpublishVolume(_)
            | Call::ListVolumes(_)
            | Call::GetCapacity(_)
            | Call::CreateSnapshot(_)
            | Call::DeleteSnapshot(_)
            | Call::ListSnapshots(_)
            | Call::ControllerExpandVolume(_)
            | Call::ControllerGetVolume(_)
            | Call::ControllerModifyVolume(_)
            | Call::NodeGetVolumeStats(_)
            | Call::NodeExpandVolume(_)
            | Call::GetInfo(_)
            | Call::NotifyRegistrationStatus(_) => {
                let text = format!("{} does not offer {}", config.name, self.call.method().name());
                Err(Status::from_driver(Code::Unimplemented, text))
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

/// The answer to a call whose lock another call holds (reliability 81).
pub fn busy(call: &Call) -> Status {
    let text = format!("another call is at work on this volume; repeat {} when it has ended", call.method().name());
    Status::from_driver(Code::Aborted, text)
}

/// Calls with the same lock must not run at the same time: the later one is answered with [`busy`]. Calls without a
/// lock change nothing.
pub fn lock(call: &Call) -> Option<String> {
    match call {
        Call::CreateVolume(r) => Some(check::id_for(&r.name)),
        Call::DeleteVolume(_)
        | Call::ControllerPublishVolume(_)
        | Call::ControllerUnpublishVolume(_)
        | Call::NodeStageVolume(_)
        | Call::NodeUnstageVolume(_)
        | Call::NodePublishVolume(_)
        | Call::NodeUnpublishVolume(_) => Some(call.volume().to_string()),
        Call::GetPluginInfo(_)
        | Call::GetPluginCapabilities(_)
        | Call::Probe(_)
        | Call::ValidateVolumeCapabilities(_)
        | Call::ListVolumes(_)
        | Call::GetCapacity(_)
        | Call::ControllerGetCapabilities(_)
        | Call::CreateSnapshot(_)
        | Call::DeleteSnapshot(_)
        | Call::ListSnapshots(_)
        | Call::ControllerExpandVolume(_)
        | Call::ControllerGetVolume(_)
        | Call::ControllerModifyVolume(_)
        | Call::NodeGetVolumeStats(_)
        | Call::NodeExpandVolume(_)
        | Call::NodeGetCapabilities(_)
        | Call::NodeGetInfo(_)
        | Call::GetInfo(_)
        | Call::NotifyRegistrationStatus(_) => None,
    }
}
