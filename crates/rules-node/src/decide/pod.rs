//! What to do about a pod of this node.

use alloc::format;
use alloc::string::{String, ToString};

use api::{Container, Pod, Precondition};
use control::{Decision, Timestamp, Why};

use super::contents;
use super::ending::{self, GRACE_SECONDS, Grace};
use crate::Reason;
use crate::action::Action;
use crate::lives::{self, ContainerPlan, Lives, Over};
use crate::memory::Memory;
use crate::paths;
use crate::status::{self, Blocked};
use crate::view::{PodView, PodVolumeView, Remains};

/// How long to wait for the cache before asking the API again about a pod that the cache does not show.
const CACHE_PATIENCE_MILLIS: u64 = 1_000;

/// The next step for a pod.
pub fn decide(now: Timestamp, view: &PodView, memory: &Memory) -> Decision<Action, Reason> {
    let mut resting = None;
    for remains in &view.remains {
        match bury(now, view, remains, memory) {
            Decision::Rest(why) => resting = resting.or(Some(Decision::Rest(why))),
            decision => return decision,
        }
    }
    let decision = match &view.pod {
        None => Decision::Rest(Why::settled(Reason::NotHere, format!("pod {} is not on this node", view.key))),
        Some(pod) if pod.metadata.is_deleting() || pod.is_terminal() => wind_down(now, view, pod, memory),
        Some(pod) => run(now, view, pod, memory),
    };
    match (decision, resting) {
        (Decision::Rest(why), Some(resting)) if why.settled => resting,
        (decision, _) => decision,
    }
}

/// What is left of a pod that is no longer in the cache. Only the API itself can say that it is gone.
fn bury(now: Timestamp, view: &PodView, remains: &Remains, memory: &Memory) -> Decision<Action, Reason> {
    let text = format!("an earlier pod {} left something behind", view.key);
    if !remains.sealed && !memory.gone.contains(&remains.uid) {
        if let Some(until) = memory.alive_at.map(|at| at.after_millis(CACHE_PATIENCE_MILLIS)).filter(|at| now < *at) {
            let text = format!("pod {} exists, but its watch has not shown it yet", view.key);
            return Decision::Wait(until, Why::waiting(Reason::CacheBehind, text));
        }
        let action = Action::ReadPod { pod: view.key.clone(), uid: remains.uid.clone() };
        return Decision::Do(action, Why::waiting(Reason::PodNotSeen, text));
    }
    let processes = remains.processes.iter().map(|(name, state)| (name, state, false));
    if let Some(decision) = ending::of_processes(now, processes, Grace::seconds(GRACE_SECONDS), &text, None, memory) {
        return decision;
    }
    if remains.recorded {
        return seal(&remains.uid, remains.sealed, text);
    }
    match remains.processes.first() {
        // The process is forgotten last: as long as it is remembered, so is that the directories are to go.
        Some((name, _)) => {
            if let Some(action) = clear(view, &remains.uid, &remains.own_mounts, memory) {
                return Decision::Do(action, Why::waiting(Reason::DirectoriesNotRemoved, text));
            }
            Decision::Do(Action::Forget { name: name.clone() }, Why::waiting(Reason::ProcessNotForgotten, text))
        }
        None => Decision::Rest(Why::settled(Reason::NotHere, format!("nothing is left of pod {}", view.key))),
    }
}

/// Reliability 43: its volumes may go once it is sealed.
fn seal(uid: &str, sealed: bool, text: String) -> Decision<Action, Reason> {
    if sealed {
        return Decision::Rest(Why::waiting(
            Reason::VolumesNotGone,
            format!("{text}: its volumes are being taken down"),
        ));
    }
    Decision::Do(Action::Seal { uid: uid.into() }, Why::waiting(Reason::NotSealed, text))
}

fn wind_down(now: Timestamp, view: &PodView, pod: &Pod, memory: &Memory) -> Decision<Action, Reason> {
    let deleting = pod.metadata.is_deleting();
    let text =
        if deleting { format!("pod {} is being deleted", view.key) } else { format!("pod {} has ended", view.key) };
    if let Some(decision) = ending::of_pod(now, view, pod, &text, memory) {
        return decision;
    }
    if view.recorded {
        return seal(&pod.metadata.uid, view.sealed, text);
    }
    if !deleting {
        return Decision::Rest(match pod.status.reason.is_empty() {
            true => Why::settled(Reason::PodEnded, text),
            false => Why::settled(Reason::PodFailed, format!("{text}: {}", pod.status.message)),
        });
    }
    finish(view, pod, memory, text)
}

/// Nothing of the pod runs or is mounted: the object may go (KL-101).
fn finish(view: &PodView, pod: &Pod, memory: &Memory, text: String) -> Decision<Action, Reason> {
    if !pod.metadata.finalizers.is_empty() && pod.metadata.deletion_grace_period_seconds == Some(0) {
        let text = format!("{text} and waits for its finalizers {}", pod.metadata.finalizers.join(", "));
        return Decision::Rest(Why::waiting(Reason::PodHasFinalizers, text));
    }
    let all = || lives::each(view, pod).map(|(_, seen)| seen);
    let latest = all().filter_map(|c| c.latest.as_ref()).map(|(_, name, _)| name);
    let earlier = all().flat_map(|c| &c.earlier).map(|(name, _)| name);
    let mut processes = earlier.chain(latest);
    if let Some(name) = processes.next() {
        return Decision::Do(Action::Forget { name: name.clone() }, Why::waiting(Reason::ProcessNotForgotten, text));
    }
    if let Some(action) = clear(view, &pod.metadata.uid, &view.own_mounts, memory) {
        return Decision::Do(action, Why::waiting(Reason::DirectoriesNotRemoved, text));
    }
    let action = Action::DeletePod { pod: view.key.clone(), uid: pod.metadata.uid.clone() };
    Decision::Do(action, Why::waiting(Reason::PodNotDeleted, text))
}

/// What is left to remove of a pod's directories.
fn clear(view: &PodView, uid: &str, own_mounts: &[String], memory: &Memory) -> Option<Action> {
    if let Some(path) = own_mounts.first() {
        return Some(Action::UnmountMemory { path: path.clone() });
    }
    let left = contents::own_dirs(view, uid).into_iter().find(|path| !memory.swept.contains(path));
    if let Some(path) = left {
        return Some(Action::RemoveScratch { path });
    }
    let path = paths::pod_dirs(&view.root, uid).into_iter().find(|path| !memory.swept.contains(path))?;
    Some(Action::Sweep { path, must: false })
}

fn directory(volume: &PodVolumeView) -> Option<&String> {
    match volume {
        PodVolumeView::Directory(path) => Some(path),
        PodVolumeView::Ready { .. }
        | PodVolumeView::Device { .. }
        | PodVolumeView::Waiting(_)
        | PodVolumeView::Impossible(_)
        | PodVolumeView::Own(_)
        | PodVolumeView::HostPath { .. }
        | PodVolumeView::Unsupported => None,
    }
}

fn run(now: Timestamp, view: &PodView, pod: &Pod, memory: &Memory) -> Decision<Action, Reason> {
    let outgrown = contents::outgrown(view, pod, memory);
    let evicted = outgrown.as_ref().map(|_| format!("pod {} is evicted", view.key));
    let blocked = status::blocked(view, pod).or(outgrown);
    let lives = lives::of(now, view, pod);
    let over = lives.over.as_ref().map(|over| match over {
        Over::Done => format!("every container of pod {} has ended", view.key),
        Over::InitFailed => format!("an init container of pod {} has failed", view.key),
        Over::NotStarted(_) => format!("a container of pod {} could not be started", view.key),
        Over::DeadlineExceeded => format!("pod {} was active for longer than it may be", view.key),
    });
    let ending = over.or(evicted).and_then(|text| ending::of_pod(now, view, pod, &text, memory));
    let unwell = || lives::each(view, pod).filter_map(|each| ending::of_unwell(now, pod, each, memory));
    let ending = match ending {
        Some(ending) => Some(ending),
        None => unwell().find(|decision| matches!(decision, Decision::Do(..))).or_else(|| unwell().next()),
    };
    if let Some(Decision::Do(..)) = ending {
        return ending.unwrap_or_else(|| rest(view, blocked, &lives));
    }
    // What cannot be run, or has run, is given nothing.
    let runs = blocked.is_none() && lives.over.is_none();
    let first = runs.then(|| contents::first(view, pod, memory)).flatten();
    let next = next(view, pod, &lives).map(|(container, _)| container);
    let blocked = blocked.or_else(|| next.and_then(|container| contents::config_error(view, pod, container, memory)));
    if let Some(first) = first {
        return first.or(tell(now, view, pod, blocked, &lives, ending));
    }
    if let Some(decision) = start(now, view, pod, blocked.as_ref(), &lives, memory) {
        return decision;
    }
    let later = runs.then(|| contents::later(now, view, pod, memory)).flatten();
    match (tell(now, view, pod, blocked, &lives, ending), later) {
        // Whatever the pod waits for is told; that its volumes are looked at again is not.
        (told @ (Decision::Wait(..) | Decision::Do(..)), Some(later)) => told.or(later),
        (Decision::Rest(why), Some(later)) if why.settled => Decision::Rest(why).or(later),
        (told, _) => told,
    }
}

/// Says how the pod fares, or what it waits for.
fn tell(
    now: Timestamp,
    view: &PodView,
    pod: &Pod,
    blocked: Option<Blocked>,
    lives: &Lives,
    ending: Option<Decision<Action, Reason>>,
) -> Decision<Action, Reason> {
    let status = status::of(now, view, pod, blocked.as_ref(), lives);
    if status != pod.status {
        let only_if = Precondition::unchanged(&pod.metadata);
        let text = format!("pod {} is {}, which its status does not say yet", view.key, status.phase);
        let action = Action::SetStatus { pod: view.key.clone(), only_if, status };
        return Decision::Do(action, Why::waiting(Reason::StatusNotWritten, text));
    }
    ending.unwrap_or_else(|| rest(view, blocked, lives))
}

/// The container that is started next, and how often it was started before.
fn next<'a>(view: &'a PodView, pod: &'a Pod, lives: &Lives) -> Option<(&'a Container, u32)> {
    let mut each = lives::each(view, pod).map(|(container, _)| container).zip(lives.plans());
    each.find_map(|(container, plan)| match plan {
        ContainerPlan::Start(restart) => Some((container, restart)),
        ContainerPlan::Waits | ContainerPlan::Runs | ContainerPlan::Ended | ContainerPlan::PutOff(_) => None,
    })
}

fn start(
    now: Timestamp,
    view: &PodView,
    pod: &Pod,
    blocked: Option<&Blocked>,
    lives: &Lives,
    memory: &Memory,
) -> Option<Decision<Action, Reason>> {
    if blocked.is_some() || lives.over.is_some() || waiting_volume(view).is_some() {
        return None;
    }
    // The latest two stay, for their logs.
    let restarted = lives::each(view, pod).find(|(_, seen)| seen.earlier.len() > 1);
    if let Some((name, _)) = restarted.and_then(|(_, seen)| seen.earlier.first()) {
        let text = format!("pod {} was restarted; its oldest process is forgotten", view.key);
        return Some(Decision::Do(
            Action::Forget { name: name.clone() },
            Why::waiting(Reason::ProcessNotForgotten, text),
        ));
    }
    let (container, restart) = next(view, pod, lives)?;
    let text = format!("container {} of pod {} is started", container.name, view.key);
    let mut dirs = view.volumes.values().filter_map(directory);
    let action = match dirs.find(|path| !memory.made.contains(*path)) {
        Some(path) => Action::MakeScratch { path: path.clone() },
        None => Action::Start { process: contents::process(view, pod, container, restart, memory)?, at_millis: now.0 },
    };
    Some(Decision::Do(action, Why::waiting(Reason::ContainerNotStarted, text)))
}

/// A volume that is not there, with why and whether it can come to be.
fn waiting_volume(view: &PodView) -> Option<(Reason, &String)> {
    view.volumes.values().find_map(|volume| match volume {
        PodVolumeView::Waiting(text) => Some((Reason::VolumesNotReady, text)),
        PodVolumeView::Impossible(text) => Some((Reason::VolumeNotSupported, text)),
        PodVolumeView::Ready { .. }
        | PodVolumeView::Device { .. }
        | PodVolumeView::Directory(_)
        | PodVolumeView::Own(_)
        | PodVolumeView::HostPath { .. }
        | PodVolumeView::Unsupported => None,
    })
}

fn rest(view: &PodView, blocked: Option<Blocked>, lives: &Lives) -> Decision<Action, Reason> {
    let decision = idle(view, blocked, lives);
    // It ends then, whatever it waits for.
    match (decision, lives.deadline.filter(|_| lives.over.is_none())) {
        (Decision::Rest(why), Some(deadline)) => Decision::Wait(deadline, why),
        (Decision::Wait(until, why), Some(deadline)) => Decision::Wait(until.min(deadline), why),
        (decision, _) => decision,
    }
}

fn idle(view: &PodView, blocked: Option<Blocked>, lives: &Lives) -> Decision<Action, Reason> {
    if let Some(blocked) = blocked {
        return Decision::Rest(Why::waiting(blocked.reason, format!("pod {}: {}", view.key, blocked.message)));
    }
    if let Some((reason, text)) = waiting_volume(view) {
        return Decision::Rest(Why::waiting(reason, format!("pod {} waits: {text}", view.key)));
    }
    let put_off = lives.plans().filter_map(|plan| match plan {
        ContainerPlan::PutOff(until) => Some(until),
        ContainerPlan::Waits | ContainerPlan::Start(_) | ContainerPlan::Runs | ContainerPlan::Ended => None,
    });
    match put_off.min() {
        Some(until) => {
            let text = format!("pod {} keeps ending and is started again later", view.key);
            Decision::Wait(until, Why::waiting(Reason::CrashLoopBackOff, text))
        }
        None if !lives.initialized => {
            let text = format!("the init containers of pod {} are at work", view.key);
            Decision::Rest(Why::waiting(Reason::PodInitializing, text))
        }
        None => {
            Decision::Rest(Why::settled(Reason::PodRuns, format!("pod {} is as it should be", view.key).to_string()))
        }
    }
}
