//! How a pod fares, in the words of its status.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Container, ContainerStatus, Pod, PodPhase, PodStatus, Value, VolumeMount};
use control::{Reason as _, Timestamp};
use serde_json::json;

use crate::Reason;
use crate::conditions;
use crate::container_status;
use crate::lives::{self, Lives, Over};
use crate::paths;
use crate::sandbox;
use crate::view::{PodView, PodVolumeView};

/// Why a pod cannot be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// Also the reason in the pod's status.
    pub reason: Reason,
    /// A sentence for the user.
    pub message: String,
    /// It never will: the pod has failed.
    pub fatal: bool,
}

/// Why the pod cannot be run, if so.
pub fn blocked(view: &PodView, pod: &Pod) -> Option<Blocked> {
    fatal(pod).or_else(|| not_supported(view, pod))
}

fn fatal(pod: &Pod) -> Option<Blocked> {
    let fatal = |reason, message: String| Some(Blocked { reason, message, fatal: true });
    let init = pod.spec.init_containers.iter().map(|container| ("initContainers", container));
    for (list, container) in init.chain(pod.spec.containers.iter().map(|container| ("containers", container))) {
        let name = &container.name;
        if container.command.is_empty() {
            return fatal(
                Reason::CommandMissing,
                format!(
                    "container {name} has no command: Longshore runs commands of the host, not images, so \
                     spec.{list}[].command must be set"
                ),
            );
        }
        if paths::process_name(&pod.metadata, name, u32::MAX).is_none() {
            let message = format!("the names of the namespace, the pod and container {name} are too long together");
            return fatal(Reason::NamesTooLong, message);
        }
    }
    None
}

fn not_supported(view: &PodView, pod: &Pod) -> Option<Blocked> {
    let blocked = |reason, message: String| Some(Blocked { reason, message, fatal: false });
    if let Some((name, _)) = view.volumes.iter().find(|(_, volume)| **volume == PodVolumeView::Unsupported) {
        let message =
            format!("volume {name} is of a kind that is not supported yet; use persistentVolumeClaim or emptyDir");
        return blocked(Reason::VolumeKindNotSupported, message);
    }
    let mut all = pod.spec.init_containers.iter().chain(&pod.spec.containers);
    all.find_map(|container| container_blocked(view, pod, container))
}

fn container_blocked(view: &PodView, pod: &Pod, container: &Container) -> Option<Blocked> {
    if let Err(blocked) = sandbox::of(pod, container) {
        return Some(blocked);
    }
    let name = &container.name;
    let blocked = |reason, message: String| Some(Blocked { reason, message, fatal: false });
    let both_ways = |mount: &&VolumeMount| mount.mount_propagation.as_deref() == Some("Bidirectional");
    if container.security_context.privileged != Some(true)
        && let Some(mount) = container.volume_mounts.iter().find(both_ways)
    {
        let place = &mount.mount_path;
        let message = format!("container {name} is not privileged, so {place} cannot have Bidirectional propagation");
        return blocked(Reason::CreateContainerConfigError, message);
    }
    let mounts = container.volume_mounts.iter().map(|mount| &mount.name);
    let mut used = mounts.chain(container.volume_devices.iter().map(|device| &device.name));
    let unknown = used.find(|volume| !view.volumes.contains_key(*volume))?;
    let message = format!("container {name} mounts volume {unknown}, which the pod does not have");
    blocked(Reason::VolumeMountUnknown, message)
}

/// The status the pod should have. Equal to the one it has if nothing is to be said.
pub fn of(now: Timestamp, view: &PodView, pod: &Pod, blocked: Option<&Blocked>, lives: &Lives) -> PodStatus {
    let init = pod.spec.init_containers.iter().zip(&view.init).zip(&lives.init);
    let init: Vec<ContainerStatus> =
        init.map(|((container, seen), plan)| container_status::of_init(pod, container, seen, *plan, blocked)).collect();
    let main = pod.spec.containers.iter().zip(&view.containers).zip(&lives.main);
    let told = &pod.status.container_statuses;
    let main: Vec<ContainerStatus> = main
        .map(|((container, seen), plan)| container_status::of(pod, told, container, seen, *plan, blocked))
        .collect();
    let phase = phase(view, pod, blocked, lives, &main);
    let (reason, message) = match (blocked, &lives.over) {
        (Some(blocked), _) => (blocked.reason.name().into(), blocked.message.clone()),
        (None, Some(Over::NotStarted(failure))) => ("StartError".into(), failure.clone()),
        (None, Some(Over::DeadlineExceeded)) => {
            ("DeadlineExceeded".into(), "the pod was active for longer than its activeDeadlineSeconds".into())
        }
        (None, Some(Over::Done | Over::InitFailed) | None) => (String::new(), String::new()),
    };
    PodStatus {
        conditions: conditions::of(now, view, pod, &phase, lives, &main),
        phase,
        reason,
        message,
        init_container_statuses: init,
        ephemeral_container_statuses: pod.status.ephemeral_container_statuses.clone(),
        container_statuses: main,
        start_time: pod.status.start_time.clone().or_else(|| Some(now.to_time())),
    }
}

fn phase(
    view: &PodView,
    pod: &Pod,
    blocked: Option<&Blocked>,
    lives: &Lives,
    containers: &[ContainerStatus],
) -> PodPhase {
    // The last word is said when nothing of the pod runs any more.
    let runs = lives::each(view, pod).any(|(_, seen)| seen.runs());
    let began = lives::each(view, pod).any(|(_, seen)| seen.latest.is_some());
    match (&lives.over, blocked) {
        (_, Some(blocked)) if blocked.fatal && !runs => return PodPhase::Failed,
        (_, Some(_)) if !began => return PodPhase::Pending,
        (Some(Over::Done), _) if !runs => {
            let failed = |status: &ContainerStatus| status.state.terminated.as_ref().is_none_or(|t| t.exit_code != 0);
            return if containers.iter().any(failed) { PodPhase::Failed } else { PodPhase::Succeeded };
        }
        (Some(_), _) if !runs => return PodPhase::Failed,
        (Some(_) | None, _) => {}
    }
    // A pod that has run stays Running through its restarts.
    if view.containers.iter().all(|container| container.latest.is_some()) {
        PodPhase::Running
    } else {
        PodPhase::Pending
    }
}

/// The status as it is written: whole, with what is empty taken away.
pub fn to_json(status: &PodStatus) -> Value {
    let or_null = |text: &String| if text.is_empty() { Value::Null } else { json!(text) };
    let containers: Vec<Value> = status.container_statuses.iter().map(container_status::to_json).collect();
    let init: Vec<Value> = status.init_container_statuses.iter().map(container_status::to_json).collect();
    json!({
        "phase": status.phase,
        "reason": or_null(&status.reason),
        "message": or_null(&status.message),
        "conditions": status.conditions,
        "initContainerStatuses": if init.is_empty() { Value::Null } else { json!(init) },
        "containerStatuses": containers,
        "startTime": status.start_time,
    })
}
