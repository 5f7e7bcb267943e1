//! The conditions of a pod that its node sets.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Condition, ContainerStatus, Pod, PodPhase};
use control::Timestamp;

use crate::lives::{self, ContainerPlan, Lives};
use crate::view::PodView;

/// One condition: whether it holds, why not, and a sentence.
struct Told {
    name: &'static str,
    holds: bool,
    reason: &'static str,
    message: String,
}

/// Ours are set, with the time of their last change kept; those of others stay.
pub fn of(
    now: Timestamp,
    view: &PodView,
    pod: &Pod,
    phase: &PodPhase,
    lives: &Lives,
    containers: &[ContainerStatus],
) -> Vec<Condition> {
    let mut conditions = pod.status.conditions.clone();
    for told in all(view, pod, phase, lives, containers) {
        let status = if told.holds { "True" } else { "False" };
        let held = conditions.iter_mut().find(|condition| condition.r#type == told.name);
        let since =
            held.as_ref().filter(|held| held.status == status).and_then(|held| held.last_transition_time.clone());
        let fresh = Condition {
            r#type: told.name.into(),
            status: status.into(),
            reason: told.reason.into(),
            message: told.message,
            last_heartbeat_time: None,
            last_transition_time: since.or_else(|| Some(now.to_time())),
        };
        match held {
            Some(held) => *held = fresh,
            None => conditions.push(fresh),
        }
    }
    conditions
}

fn all(view: &PodView, pod: &Pod, phase: &PodPhase, lives: &Lives, containers: &[ContainerStatus]) -> [Told; 4] {
    let began = lives::each(view, pod).any(|(_, seen)| seen.latest.is_some());
    let over = matches!(phase, PodPhase::Succeeded | PodPhase::Failed);
    let unready = containers.iter().filter(|status| !status.ready).map(|status| status.name.as_str());
    let unready: Vec<&str> = unready.collect();
    let (reason, message) = match (phase, unready.as_slice()) {
        (PodPhase::Succeeded, _) => ("PodCompleted", String::new()),
        (PodPhase::Failed, _) => ("PodFailed", String::new()),
        (_, []) => ("", String::new()),
        (_, unready) => ("ContainersNotReady", format!("not ready: {}", unready.join(", "))),
    };
    let ready = reason.is_empty() && !containers.is_empty();
    let gates = pod.spec.readiness_gates.iter().map(|gate| gate.condition_type.as_str());
    let open = |gate: &&str| pod.status.conditions.iter().any(|c| c.r#type == *gate && c.status == "True");
    let closed: Vec<&str> = gates.filter(|gate| !open(gate)).collect();
    let (gate_reason, gate_message) = match ready && !closed.is_empty() {
        true => ("ReadinessGatesNotReady", format!("not true yet: {}", closed.join(", "))),
        false => (reason, message.clone()),
    };
    [
        Told { name: "PodReadyToStartContainers", holds: began && !over, reason: "", message: String::new() },
        initialized(pod, phase, lives),
        Told { name: "Ready", holds: ready && closed.is_empty(), reason: gate_reason, message: gate_message },
        Told { name: "ContainersReady", holds: ready, reason, message },
    ]
}

fn initialized(pod: &Pod, phase: &PodPhase, lives: &Lives) -> Told {
    let reason = match (lives.initialized, phase) {
        (true, PodPhase::Succeeded) => "PodCompleted",
        (true, _) => "",
        (false, _) => "ContainersNotInitialized",
    };
    let open = pod.spec.init_containers.iter().zip(&lives.init).filter(|(_, plan)| **plan != ContainerPlan::Ended);
    let open: Vec<&str> = open.map(|(container, _)| container.name.as_str()).collect();
    let message = if lives.initialized { String::new() } else { format!("not done: {}", open.join(", ")) };
    Told { name: "Initialized", holds: lives.initialized, reason, message }
}
