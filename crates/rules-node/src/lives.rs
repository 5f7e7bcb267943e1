//! The lives of a pod's containers: whose turn it is, who starts again and when, and when the pod is over.
//!
//! Init containers come first, one after the other. One that is to be restarted always (a sidecar) lets the next one go
//! ahead once it has started, and stays beside the containers.

use alloc::string::String;
use alloc::vec::Vec;

use api::{Container, ContainerStatus, Pod};
use control::Timestamp;
use control::host::ProcessState;

use crate::view::{ContainerView, PodView};

/// The first pause between restarts, and the longest.
const FIRST_PAUSE_MILLIS: u64 = 10_000;
const LONGEST_PAUSE_MILLIS: u64 = 300_000;

/// What is to happen with a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerPlan {
    /// It is not its turn yet.
    Waits,
    /// Start it; it was started so often before.
    Start(u32),
    Runs,
    /// It has ended for good.
    Ended,
    /// It is started again at this moment.
    PutOff(Timestamp),
}

/// What is to happen with all containers of a pod, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lives {
    /// What comes before the containers, and what stays beside them.
    pub init: Vec<ContainerPlan>,
    /// The containers themselves.
    pub main: Vec<ContainerPlan>,
    /// Every init container has done its part.
    pub initialized: bool,
    /// Why nothing is started any more and all that runs is to end.
    pub over: Option<Over>,
    /// When the pod has been active for as long as it may.
    pub deadline: Option<Timestamp>,
}

/// Why a pod is over, although nobody deleted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// Every container has ended for good.
    Done,
    /// An init container failed for good.
    InitFailed,
    /// A container could not be started. The text is a sentence for the user.
    NotStarted(String),
    /// It was active for longer than `activeDeadlineSeconds`.
    DeadlineExceeded,
}

impl Lives {
    /// All plans, in the order in which containers start.
    pub fn plans(&self) -> impl Iterator<Item = ContainerPlan> {
        self.init.iter().chain(&self.main).copied()
    }
}

/// What is to happen with the containers of a pod.
pub fn of(now: Timestamp, view: &PodView, pod: &Pod) -> Lives {
    let deadline = deadline(pod);
    let (init, initialized) = init_plans(now, view, pod);
    let main = pod.spec.containers.iter().zip(&view.containers);
    let main: Vec<ContainerPlan> = main
        .map(|(container, seen)| match initialized {
            true => plan(now, &pod.status.container_statuses, container, seen, policy(pod, container)),
            false => ContainerPlan::Waits,
        })
        .collect();
    let over = over(now, view, pod, &init, &main, deadline);
    Lives { init, main, initialized, over, deadline }
}

/// All containers of a pod with what is seen of them, in the order in which they start.
pub fn each<'a>(
    view: &'a PodView,
    pod: &'a Pod,
) -> impl DoubleEndedIterator<Item = (&'a Container, &'a ContainerView)> {
    let init = pod.spec.init_containers.iter().zip(&view.init);
    init.chain(pod.spec.containers.iter().zip(&view.containers))
}

/// The moment `activeDeadlineSeconds` names.
fn deadline(pod: &Pod) -> Option<Timestamp> {
    let seconds = u64::try_from(pod.spec.active_deadline_seconds?).ok()?;
    let began = pod.status.start_time.as_ref()?.unix_millis()?;
    Some(Timestamp(began).after_millis(seconds.saturating_mul(1000)))
}

fn over(
    now: Timestamp,
    view: &PodView,
    pod: &Pod,
    init: &[ContainerPlan],
    main: &[ContainerPlan],
    deadline: Option<Timestamp>,
) -> Option<Over> {
    if deadline.is_some_and(|deadline| now >= deadline) {
        return Some(Over::DeadlineExceeded);
    }
    let not_started = each(view, pod).find_map(|(_, seen)| match &seen.latest {
        Some((_, _, ProcessState::NotStarted(sentence))) => Some(sentence.clone()),
        Some(_) | None => None,
    });
    if let Some(sentence) = not_started {
        return Some(Over::NotStarted(sentence));
    }
    let first = pod.spec.init_containers.iter().zip(&view.init).zip(init);
    let failed = |((container, seen), plan): ((&Container, &ContainerView), &ContainerPlan)| {
        *plan == ContainerPlan::Ended && !container.is_sidecar() && !succeeded(pod, container, seen)
    };
    if first.into_iter().any(failed) {
        return Some(Over::InitFailed);
    }
    (!main.is_empty() && main.iter().all(|plan| *plan == ContainerPlan::Ended)).then_some(Over::Done)
}

/// An init container has done its part.
fn succeeded(pod: &Pod, container: &Container, seen: &ContainerView) -> bool {
    match &seen.latest {
        Some((_, _, ProcessState::Exited { code, .. })) => *code == 0,
        Some(_) => false,
        None => {
            let told = pod.status.init_container_statuses.iter().find(|status| status.name == container.name);
            told.and_then(|told| told.state.terminated.as_ref()).is_some_and(|ended| ended.exit_code == 0)
        }
    }
}

fn init_plans(now: Timestamp, view: &PodView, pod: &Pod) -> (Vec<ContainerPlan>, bool) {
    let began = |seen: &ContainerView| seen.latest.is_some();
    let ran = |container: &Container| ran_before(&pod.status.container_statuses, container).is_some();
    let main_began = view.containers.iter().any(began) || pod.spec.containers.iter().any(ran);
    let mut plans = Vec::new();
    let mut ahead = true;
    for (at, (container, seen)) in pod.spec.init_containers.iter().zip(&view.init).enumerate() {
        // Whoever comes later was started only because this one had done its part.
        let passed = main_began || view.init.iter().skip(at + 1).any(began);
        let told = &pod.status.init_container_statuses;
        let plan = match (passed, ahead, container.is_sidecar()) {
            (true, _, true) => plan(now, told, container, seen, Policy::Always),
            (true, _, false) => ContainerPlan::Ended,
            (false, false, _) => ContainerPlan::Waits,
            (false, true, true) => {
                ahead = seen.is_started();
                plan(now, told, container, seen, Policy::Always)
            }
            (false, true, false) => {
                ahead = succeeded(pod, container, seen);
                // Always means until it has succeeded, for what comes before the containers.
                let policy = if policy(pod, container) == Policy::Never { Policy::Never } else { Policy::OnFailure };
                if ahead { ContainerPlan::Ended } else { plan(now, told, container, seen, policy) }
            }
        };
        plans.push(plan);
    }
    (plans, ahead)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    Always,
    OnFailure,
    Never,
}

/// What a container says counts before what its pod says.
fn policy(pod: &Pod, container: &Container) -> Policy {
    let own = Some(&container.restart_policy).filter(|own| !own.is_empty());
    match own.unwrap_or(&pod.spec.restart_policy).as_str() {
        "Never" => Policy::Never,
        "OnFailure" => Policy::OnFailure,
        _always => Policy::Always,
    }
}

fn plan(
    now: Timestamp,
    told: &[ContainerStatus],
    container: &Container,
    seen: &ContainerView,
    policy: Policy,
) -> ContainerPlan {
    match &seen.latest {
        None => match ran_before(told, container) {
            None => ContainerPlan::Start(0),
            // It ran, and the machine has no trace of it.
            Some(restarts) => again(now, policy, restarts, 0, true),
        },
        // Nobody answered whether it was started, so nobody knows since when. Starting it again changes nothing.
        Some((restarts, _, ProcessState::Running { since_millis: 0 })) => ContainerPlan::Start(*restarts),
        Some((_, _, ProcessState::Running { .. })) => ContainerPlan::Runs,
        Some((_, _, ProcessState::NotStarted(_))) => ContainerPlan::Ended,
        Some((restarts, _, ProcessState::Lost)) => again(now, policy, *restarts, 0, true),
        Some((restarts, _, ProcessState::Exited { code, at_millis, .. })) => {
            again(now, policy, *restarts, *at_millis, *code != 0)
        }
    }
}

/// The restart count the status gives a container that has run.
pub fn ran_before(told: &[ContainerStatus], container: &Container) -> Option<u32> {
    let status = told.iter().find(|status| status.name == container.name)?;
    let ran = status.state.running.is_some() || status.state.terminated.is_some() || status.restart_count > 0;
    ran.then(|| u32::try_from(status.restart_count).unwrap_or(0))
}

fn again(now: Timestamp, policy: Policy, restarts: u32, ended_millis: u64, failed: bool) -> ContainerPlan {
    let wanted = match policy {
        Policy::Never => false,
        Policy::OnFailure => failed,
        Policy::Always => true,
    };
    if !wanted {
        return ContainerPlan::Ended;
    }
    let until = Timestamp(ended_millis).after_millis(pause_millis(restarts));
    if now < until { ContainerPlan::PutOff(until) } else { ContainerPlan::Start(restarts + 1) }
}

/// How long a container rests after so many restarts. The first is at once, as with Kubernetes.
pub fn pause_millis(restarts: u32) -> u64 {
    match restarts {
        0 => 0,
        restarts => FIRST_PAUSE_MILLIS.saturating_mul(1 << (restarts - 1).min(16)).min(LONGEST_PAUSE_MILLIS),
    }
}
