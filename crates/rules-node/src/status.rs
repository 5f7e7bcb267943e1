//! How a pod fares, in the words of its status.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{
    Condition, Container, ContainerRunning, ContainerState, ContainerStatus, ContainerTerminated, ContainerWaiting,
    Pod, PodStatus, Time, Value,
};
use control::host::ProcessState;
use control::{Reason as _, Timestamp};
use serde_json::json;

use crate::Reason;
use crate::paths;
use crate::sandbox;
use crate::view::{ContainerView, PodView, PodVolumeView};

/// The first pause between restarts, and the longest.
const FIRST_PAUSE_MILLIS: u64 = 10_000;
const LONGEST_PAUSE_MILLIS: u64 = 300_000;
/// What a container waits for that keeps ending.
const CRASH_LOOP: &str = "CrashLoopBackOff";

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

/// What is to happen with a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerPlan {
    /// Start it; it was started so often before.
    Start(u32),
    /// It runs.
    Runs,
    /// It has ended for good.
    Ended,
    /// It is started again at this moment.
    PutOff(Timestamp),
}

/// Why the pod cannot be run, if so.
pub fn blocked(view: &PodView, pod: &Pod) -> Option<Blocked> {
    fatal(pod).or_else(|| not_supported(view, pod))
}

fn fatal(pod: &Pod) -> Option<Blocked> {
    let fatal = |reason, message: String| Some(Blocked { reason, message, fatal: true });
    for container in &pod.spec.containers {
        let name = &container.name;
        if container.command.is_empty() {
            return fatal(
                Reason::CommandMissing,
                format!(
                    "container {name} has no command: Longshore runs commands of the host, not images, so \
                     spec.containers[].command must be set"
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
    if !pod.spec.init_containers.is_empty() {
        return blocked(
            Reason::InitContainersNotSupported,
            "init containers are not supported yet; remove them".into(),
        );
    }
    if let Some((name, _)) = view.volumes.iter().find(|(_, volume)| **volume == PodVolumeView::Unsupported) {
        let message =
            format!("volume {name} is of a kind that is not supported yet; use persistentVolumeClaim or emptyDir");
        return blocked(Reason::VolumeKindNotSupported, message);
    }
    pod.spec.containers.iter().find_map(|container| container_blocked(view, pod, container))
}

fn container_blocked(view: &PodView, pod: &Pod, container: &Container) -> Option<Blocked> {
    if let Err(blocked) = sandbox::of(pod, container) {
        return Some(blocked);
    }
    let name = &container.name;
    let blocked = |reason, message: String| Some(Blocked { reason, message, fatal: false });
    if let Some(env) = container.env.iter().find(|env| env.value_from.is_some()) {
        let message =
            format!("variable {} of container {name} has no literal value, which is not supported yet", env.name);
        return blocked(Reason::EnvSourceNotSupported, message);
    }
    if let Some(mount) = container.volume_mounts.iter().find(|mount| !mount.sub_path.is_empty()) {
        let message = format!("subPath in volume mount {} of container {name} is not supported yet", mount.name);
        return blocked(Reason::SubPathNotSupported, message);
    }
    let unknown = container.volume_mounts.iter().find(|mount| !view.volumes.contains_key(&mount.name))?;
    blocked(
        Reason::VolumeMountUnknown,
        format!("container {name} mounts volume {}, which the pod does not have", unknown.name),
    )
}

/// What is to happen with each container, in order.
pub fn plans(now: Timestamp, view: &PodView, pod: &Pod) -> Vec<ContainerPlan> {
    pod.spec.containers.iter().zip(&view.containers).map(|(container, seen)| plan(now, pod, container, seen)).collect()
}

fn plan(now: Timestamp, pod: &Pod, container: &Container, seen: &ContainerView) -> ContainerPlan {
    match &seen.latest {
        None => match ran_before(pod, container) {
            None => ContainerPlan::Start(0),
            // It ran, and the machine has no trace of it.
            Some(restarts) => again(now, pod, restarts, 0, true),
        },
        // Nobody answered whether it was started, so nobody knows since when it runs. Starting one that runs changes nothing.
        Some((restarts, _, ProcessState::Running { since_millis: 0 })) => ContainerPlan::Start(*restarts),
        Some((_, _, ProcessState::Running { .. })) => ContainerPlan::Runs,
        Some((_, _, ProcessState::NotStarted(_))) => ContainerPlan::Ended,
        Some((restarts, _, ProcessState::Lost)) => again(now, pod, *restarts, 0, true),
        Some((restarts, _, ProcessState::Exited { code, at_millis, .. })) => {
            again(now, pod, *restarts, *at_millis, *code != 0)
        }
    }
}

/// The restart count the status gives a container that has run.
fn ran_before(pod: &Pod, container: &Container) -> Option<u32> {
    let status = pod.status.container_statuses.iter().find(|status| status.name == container.name)?;
    let ran = status.state.running.is_some() || status.state.terminated.is_some() || status.restart_count > 0;
    ran.then(|| u32::try_from(status.restart_count).unwrap_or(0))
}

fn again(now: Timestamp, pod: &Pod, restarts: u32, ended_millis: u64, failed: bool) -> ContainerPlan {
    let wanted = match pod.spec.restart_policy.as_str() {
        "Never" => false,
        "OnFailure" => failed,
        _always => true,
    };
    if !wanted {
        return ContainerPlan::Ended;
    }
    let until = Timestamp(ended_millis).after_millis(pause_millis(restarts));
    if now < until { ContainerPlan::PutOff(until) } else { ContainerPlan::Start(restarts + 1) }
}

/// How long a container rests after so many restarts. The first is at once, as with Kubernetes.
fn pause_millis(restarts: u32) -> u64 {
    match restarts {
        0 => 0,
        restarts => FIRST_PAUSE_MILLIS.saturating_mul(1 << (restarts - 1).min(16)).min(LONGEST_PAUSE_MILLIS),
    }
}

/// The status the pod should have. Equal to the one it has if nothing is to be said.
pub fn of(now: Timestamp, view: &PodView, pod: &Pod, blocked: Option<&Blocked>, plans: &[ContainerPlan]) -> PodStatus {
    let containers: Vec<ContainerStatus> = pod
        .spec
        .containers
        .iter()
        .zip(&view.containers)
        .zip(plans)
        .map(|((container, seen), plan)| container_status(pod, container, seen, *plan, blocked))
        .collect();
    let failure = not_started(view);
    let phase = phase(view, blocked, plans, &containers);
    let (reason, message) = match (blocked, failure) {
        (Some(blocked), _) => (blocked.reason.name().into(), blocked.message.clone()),
        (None, Some(failure)) => ("StartError".into(), failure.clone()),
        (None, None) => (String::new(), String::new()),
    };
    let ready = !containers.is_empty() && containers.iter().all(|container| container.ready);
    PodStatus {
        phase: phase.into(),
        reason,
        message,
        conditions: conditions(now, pod, ready),
        container_statuses: containers,
        start_time: pod.status.start_time.clone().or_else(|| Some(now.to_time())),
    }
}

fn not_started(view: &PodView) -> Option<&String> {
    view.containers.iter().find_map(|container| match &container.latest {
        Some((_, _, ProcessState::NotStarted(sentence))) => Some(sentence),
        Some(_) | None => None,
    })
}

fn phase(
    view: &PodView,
    blocked: Option<&Blocked>,
    plans: &[ContainerPlan],
    containers: &[ContainerStatus],
) -> &'static str {
    if blocked.is_some_and(|blocked| blocked.fatal) || not_started(view).is_some() {
        return "Failed";
    }
    if blocked.is_some() {
        return "Pending";
    }
    if !plans.is_empty() && plans.iter().all(|plan| *plan == ContainerPlan::Ended) {
        let failed = |status: &ContainerStatus| status.state.terminated.as_ref().is_none_or(|t| t.exit_code != 0);
        return if containers.iter().any(failed) { "Failed" } else { "Succeeded" };
    }
    // A pod that has run stays Running through its restarts.
    if view.containers.iter().all(|container| container.latest.is_some()) { "Running" } else { "Pending" }
}

fn container_status(
    pod: &Pod,
    container: &Container,
    seen: &ContainerView,
    plan: ContainerPlan,
    blocked: Option<&Blocked>,
) -> ContainerStatus {
    let state = match (&seen.latest, plan, blocked) {
        (Some((_, _, ProcessState::Running { since_millis })), ..) => running(*since_millis),
        (Some(_), ContainerPlan::PutOff(_), _) => waiting(CRASH_LOOP, &back_off(container, seen)),
        (Some((_, _, ended)), ..) => terminated(ended),
        (None, _, Some(blocked)) => waiting(blocked.reason.name(), &blocked.message),
        // It ran, and the machine has no trace of it.
        (None, ContainerPlan::Ended, None) => terminated(&ProcessState::Lost),
        (None, ContainerPlan::Start(_) | ContainerPlan::Runs | ContainerPlan::PutOff(_), None) => {
            waiting("ContainerCreating", "")
        }
    };
    let restarts = seen.latest.as_ref().map(|(restarts, ..)| *restarts);
    let restarts = restarts.or_else(|| ran_before(pod, container)).unwrap_or(0);
    ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone(),
        image_id: String::new(),
        ready: state.running.is_some(),
        restart_count: i64::from(restarts),
        last_state: last_state(pod, container, seen, restarts, state.waiting.is_some()),
        state,
    }
}

/// What a status says about a container that is held back, if there is one.
pub fn back_off_of(status: &PodStatus) -> Option<String> {
    let waiting = status.container_statuses.iter().filter_map(|container| container.state.waiting.as_ref());
    waiting.filter(|waiting| waiting.reason == CRASH_LOOP).map(|waiting| waiting.message.clone()).next()
}

/// Why a container that ended is not started again at once.
fn back_off(container: &Container, seen: &ContainerView) -> String {
    let (restarts, how) = match &seen.latest {
        Some((restarts, _, ProcessState::Exited { code, .. })) => (*restarts, format!("ended with exit code {code}")),
        Some((restarts, ..)) => (*restarts, "was lost".into()),
        None => (0, "ended".into()),
    };
    let pause = pause_millis(restarts) / 1000;
    format!("back-off {pause}s before restarting container {}, which {how}", container.name)
}

/// How the run before the one that `state` is about ended. While the container waits to be started again, that is its
/// latest run. What the machine has no trace of is as the status told it.
fn last_state(pod: &Pod, container: &Container, seen: &ContainerView, restarts: u32, waiting: bool) -> ContainerState {
    if let (true, Some((_, _, ended))) = (waiting, &seen.latest) {
        return terminated(ended);
    }
    if let Some((_, ended)) = seen.earlier.last() {
        return terminated(ended);
    }
    let told = pod.status.container_statuses.iter().find(|status| status.name == container.name);
    match told {
        _ if restarts == 0 => ContainerState::default(),
        Some(told) if told.restart_count == i64::from(restarts) => told.last_state.clone(),
        Some(told) if told.state.terminated.is_some() => told.state.clone(),
        Some(_) | None => terminated(&ProcessState::Lost),
    }
}

fn time(millis: u64) -> Option<Time> {
    (millis > 0).then(|| Time::from_unix_millis(millis))
}

fn running(since_millis: u64) -> ContainerState {
    ContainerState { running: Some(ContainerRunning { started_at: time(since_millis) }), ..ContainerState::default() }
}

fn waiting(reason: &str, message: &str) -> ContainerState {
    let waiting = ContainerWaiting { reason: reason.into(), message: message.into() };
    ContainerState { waiting: Some(waiting), ..ContainerState::default() }
}

fn terminated(ended: &ProcessState) -> ContainerState {
    let ended = match ended {
        ProcessState::Exited { code, since_millis, at_millis, out_of_memory } => ContainerTerminated {
            exit_code: i64::from(*code),
            reason: match (*code, *out_of_memory) {
                (0, _) => "Completed",
                (_, true) => "OOMKilled",
                (_, false) => "Error",
            }
            .into(),
            started_at: time(*since_millis),
            finished_at: time(*at_millis),
            ..ContainerTerminated::default()
        },
        ProcessState::NotStarted(sentence) => ContainerTerminated {
            exit_code: 128,
            reason: "StartError".into(),
            message: sentence.clone(),
            ..ContainerTerminated::default()
        },
        ProcessState::Lost | ProcessState::Running { .. } => ContainerTerminated {
            exit_code: 137,
            reason: "ContainerStatusUnknown".into(),
            message: "the process is gone and nobody saw it end; the machine may have been restarted".into(),
            ..ContainerTerminated::default()
        },
    };
    ContainerState { terminated: Some(ended), ..ContainerState::default() }
}

/// Ours are set, with the time of their last change kept; those of others stay.
fn conditions(now: Timestamp, pod: &Pod, ready: bool) -> Vec<Condition> {
    let mut conditions = pod.status.conditions.clone();
    for (name, holds) in [("Initialized", true), ("Ready", ready), ("ContainersReady", ready)] {
        let status = if holds { "True" } else { "False" };
        let reason = if holds { "" } else { "ContainersNotReady" };
        let held = conditions.iter_mut().find(|condition| condition.r#type == name);
        let fresh = Condition {
            r#type: name.into(),
            status: status.into(),
            reason: reason.into(),
            message: String::new(),
            last_heartbeat_time: None,
            last_transition_time: Some(now.to_time()),
        };
        match held {
            Some(held) if held.status == status && held.reason == reason => {}
            Some(held) => *held = fresh,
            None => conditions.push(fresh),
        }
    }
    conditions
}

/// The status as it is written: whole, with what is empty taken away.
pub fn to_json(status: &PodStatus) -> Value {
    let or_null = |text: &String| if text.is_empty() { Value::Null } else { json!(text) };
    let containers: Vec<Value> = status.container_statuses.iter().map(container_json).collect();
    json!({
        "phase": status.phase,
        "reason": or_null(&status.reason),
        "message": or_null(&status.message),
        "conditions": status.conditions,
        "containerStatuses": containers,
        "startTime": status.start_time,
    })
}

/// `ready`, `restartCount`, `image` and `imageID` are required by the API, so they are written even when empty.
fn container_json(status: &ContainerStatus) -> Value {
    let state = |state: &ContainerState| {
        let mut written = json!(state);
        // So is the exit code, and zero counts as empty.
        if let (Some(ended), Some(written)) = (&state.terminated, written.get_mut("terminated")) {
            written["exitCode"] = ended.exit_code.into();
        }
        written
    };
    json!({
        "name": status.name,
        "image": status.image,
        "imageID": status.image_id,
        "ready": status.ready,
        "started": status.ready,
        "restartCount": status.restart_count,
        "state": state(&status.state),
        "lastState": state(&status.last_state),
    })
}
