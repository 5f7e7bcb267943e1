//! How one container fares, in the words of its pod's status.

use alloc::format;
use alloc::string::String;

use api::{
    Container, ContainerRunning, ContainerState, ContainerStatus, ContainerTerminated, ContainerWaiting, Pod,
    PodStatus, Time, Value,
};
use control::Reason as _;
use control::host::ProcessState;
use serde_json::json;

use crate::lives::{ContainerPlan, pause_millis, ran_before};
use crate::status::Blocked;
use crate::view::ContainerView;

/// What a container waits for that keeps ending.
const CRASH_LOOP: &str = "CrashLoopBackOff";
/// What a container waits for while it is not its turn.
const INITIALIZING: &str = "PodInitializing";

/// What the status is to say of a container; `told` is what it says of all of its list.
pub fn of(
    pod: &Pod,
    told: &[ContainerStatus],
    container: &Container,
    seen: &ContainerView,
    plan: ContainerPlan,
    blocked: Option<&Blocked>,
) -> ContainerStatus {
    let before = told.iter().find(|status| status.name == container.name);
    let state = match (&seen.latest, plan, blocked) {
        (Some((_, _, ProcessState::Running { since_millis })), ..) => running(*since_millis),
        (Some(_), ContainerPlan::PutOff(_), _) => waiting(CRASH_LOOP, &back_off(container, seen)),
        (Some((_, _, ended)), ..) => terminated(ended),
        (None, _, Some(blocked)) => waiting(blocked.reason.name(), &blocked.message),
        // It ran, and the machine has no trace of it.
        (None, ContainerPlan::Ended, None) => match before.filter(|before| before.state.terminated.is_some()) {
            Some(before) => before.state.clone(),
            None => terminated(&ProcessState::Lost),
        },
        (None, ContainerPlan::Waits, None) => waiting(INITIALIZING, ""),
        (None, ContainerPlan::Start(_) | ContainerPlan::Runs | ContainerPlan::PutOff(_), None) => {
            let reason = if pod.spec.init_containers.is_empty() { "ContainerCreating" } else { INITIALIZING };
            waiting(reason, "")
        }
    };
    let restarts = seen.latest.as_ref().map(|(restarts, ..)| *restarts);
    let restarts = restarts.or_else(|| ran_before(told, container)).unwrap_or(0);
    ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone(),
        image_id: String::new(),
        container_id: seen.latest.as_ref().map_or_else(String::new, |(_, name, _)| format!("longshore://{name}")),
        ready: state.running.is_some() && seen.is_ready(),
        started: state.running.is_some() && seen.is_started(),
        restart_count: i64::from(restarts),
        last_state: last_state(before, seen, restarts, state.waiting.is_some()),
        state,
    }
}

/// The same for an init container: one that has done its part is ready, a sidecar as long as it runs.
pub fn of_init(
    pod: &Pod,
    container: &Container,
    seen: &ContainerView,
    plan: ContainerPlan,
    blocked: Option<&Blocked>,
) -> ContainerStatus {
    let status = of(pod, &pod.status.init_container_statuses, container, seen, plan, blocked);
    if container.is_sidecar() {
        return status;
    }
    let done = status.state.terminated.as_ref().is_some_and(|ended| ended.exit_code == 0);
    ContainerStatus { ready: done, started: false, ..status }
}

/// What a status says about a container that is held back, if there is one.
pub fn back_off_of(status: &PodStatus) -> Option<String> {
    let all = status.init_container_statuses.iter().chain(&status.container_statuses);
    let waiting = all.filter_map(|container| container.state.waiting.as_ref());
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
fn last_state(told: Option<&ContainerStatus>, seen: &ContainerView, restarts: u32, waiting: bool) -> ContainerState {
    if let (true, Some((_, _, ended))) = (waiting, &seen.latest) {
        return terminated(ended);
    }
    if let Some((_, ended)) = seen.earlier.last() {
        return terminated(ended);
    }
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

/// `ready`, `restartCount`, `image` and `imageID` are required by the API, so they are written even when empty.
pub fn to_json(status: &ContainerStatus) -> Value {
    let or_null = |text: &String| if text.is_empty() { Value::Null } else { json!(text) };
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
        "started": status.started,
        "containerID": or_null(&status.container_id),
        "restartCount": status.restart_count,
        "state": state(&status.state),
        "lastState": state(&status.last_state),
    })
}
