//! How what runs of a pod is ended: asked first, made to when its grace is over; sidecars last.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Container, Pod};
use control::host::ProcessState;
use control::{Decision, Timestamp, Why};

use crate::Reason;
use crate::action::Action;
use crate::memory::Memory;
use crate::view::{ContainerView, PodView};

/// How long a process may take to end when the pod does not say.
pub const GRACE_SECONDS: i64 = 30;
/// What is left to one that is asked when the pod's grace is used up.
const LEAST_MILLIS: u64 = 2_000;

/// How long processes may take to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grace {
    /// From the moment one is asked.
    pub millis: u64,
    /// All of them together, until this moment.
    pub until: Option<Timestamp>,
}

impl Grace {
    /// So many seconds for each.
    pub fn seconds(seconds: i64) -> Grace {
        Grace { millis: u64::try_from(seconds).unwrap_or(0).saturating_mul(1000), until: None }
    }

    /// What a pod grants: the deletion counts before the pod's own words (KL-101).
    pub fn of(pod: &Pod) -> Grace {
        let asked = pod.metadata.deletion_grace_period_seconds.or(pod.spec.termination_grace_period_seconds);
        let until = pod.metadata.deletion_timestamp.as_ref().and_then(|due| due.unix_millis()).map(Timestamp);
        Grace { until, ..Grace::seconds(asked.unwrap_or(GRACE_SECONDS)) }
    }

    /// When one that was asked at a moment is made to end. The hook before the end takes its time from the grace.
    fn ends(self, asked: Timestamp, begun: Option<Timestamp>) -> Timestamp {
        let least = asked.after_millis(LEAST_MILLIS);
        let own = begun.map_or(asked.after_millis(self.millis), |begun| begun.after_millis(self.millis).max(least));
        self.until.map_or(own, |until| own.min(until.max(least)))
    }
}

/// Ends all that runs of a pod; `None` when nothing does. Sidecars end when all others have, the last one first.
pub fn of_pod(
    now: Timestamp,
    view: &PodView,
    pod: &Pod,
    text: &str,
    memory: &Memory,
) -> Option<Decision<Action, Reason>> {
    let grace = Grace::of(pod);
    let sidecars = pod.spec.init_containers.iter().zip(&view.init).filter(|(container, _)| container.is_sidecar());
    let sidecars: Vec<&ContainerView> = sidecars.map(|(_, seen)| seen).filter(|seen| seen.runs()).collect();
    let first = pod.spec.init_containers.iter().zip(&view.init).filter(|(container, _)| !container.is_sidecar());
    let others = first.map(|(_, seen)| seen).chain(&view.containers);
    let mut group: Vec<&ContainerView> = others.filter(|seen| seen.runs()).collect();
    if group.is_empty() {
        group.extend(sidecars.last());
    }
    of_processes(now, group.into_iter().filter_map(last), grace, text, None, memory)
}

/// Ends a container that is not well, so that it is started again; `None` when it does not run.
pub fn of_unwell(
    now: Timestamp,
    pod: &Pod,
    (container, seen): (&Container, &ContainerView),
    memory: &Memory,
) -> Option<Decision<Action, Reason>> {
    let (why, seconds) = seen.unwell.as_ref()?;
    let grace = seconds.map_or_else(|| Grace::of(pod), Grace::seconds);
    let told = format!("container {} is ended: {why}", container.name);
    of_processes(now, last(seen).into_iter(), grace, &told, Some(&told), memory)
}

/// A process to end, and whether its hook is still to be run.
type Ending<'a> = (&'a String, &'a ProcessState, bool);

fn last(seen: &ContainerView) -> Option<Ending<'_>> {
    seen.latest.as_ref().map(|(_, name, state)| (name, state, seen.pre_stop == Some(false)))
}

/// Ends what runs, all at the same time; `None` when nothing does.
pub fn of_processes<'a>(
    now: Timestamp,
    processes: impl Iterator<Item = Ending<'a>>,
    grace: Grace,
    text: &str,
    told: Option<&String>,
    memory: &Memory,
) -> Option<Decision<Action, Reason>> {
    let (mut waiting, mut until) = (false, None::<Timestamp>);
    for (name, state, hook) in processes {
        let ProcessState::Running { since_millis } = state else { continue };
        let begun = memory.ending.get(name).copied();
        let asked = match (memory.asked.get(name), begun) {
            (Some(asked), begun) => Some(grace.ends(*asked, begun)),
            // Its hook runs.
            (None, Some(begun)) if hook => Some(grace.ends(begun, None)),
            (None, _) => None,
        };
        let action = match asked {
            _ if memory.stopped.contains(name) => {
                waiting = true;
                continue;
            }
            Some(at) if now < at => {
                until = Some(until.map_or(at, |until| until.min(at)));
                continue;
            }
            Some(_) => Action::Stop { name: name.clone(), grace_millis: 0 },
            // Whether it was started at all is not known, so nobody may wait for it to end by itself.
            None if grace.millis == 0 || *since_millis == 0 => {
                Action::Stop { name: name.clone(), grace_millis: grace.millis }
            }
            None if hook => Action::BeginEnd { name: name.clone() },
            None => Action::Ask { name: name.clone(), told: told.cloned() },
        };
        return Some(Decision::Do(action, Why::waiting(Reason::ProcessRunning, format!("{text}: it still runs"))));
    }
    let why = Why::waiting(Reason::ProcessEnding, format!("{text}: its process is ending"));
    match until {
        Some(until) => Some(Decision::Wait(until, why)),
        None => waiting.then_some(Decision::Rest(why)),
    }
}
