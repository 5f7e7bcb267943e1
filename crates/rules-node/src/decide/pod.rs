//! What to do about a pod of this node.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Container, Pod, Precondition};
use control::host::{Process, ProcessMount, ProcessState};
use control::{Decision, Timestamp, Why};

use crate::Reason;
use crate::action::Action;
use crate::memory::Memory;
use crate::paths;
use crate::sandbox;
use crate::status::{self, Blocked, ContainerPlan};
use crate::view::{PodView, PodVolumeView, Remains};

/// How long to wait for the cache before asking the API again about a pod that the cache does not show.
const CACHE_PATIENCE_MILLIS: u64 = 1_000;
/// How long a process may take to end when the pod does not say.
const GRACE_SECONDS: i64 = 30;
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

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
        Some(pod) if pod.metadata.is_deleting() || pod.is_terminal() => wind_down(view, pod, memory),
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
    let processes = remains.processes.iter().map(|(name, state)| (name, state));
    if let Some(decision) = stop(processes, GRACE_SECONDS, &text, memory) {
        return decision;
    }
    if remains.recorded {
        return seal(&remains.uid, remains.sealed, text);
    }
    match remains.processes.first() {
        // The process is forgotten last: as long as it is remembered, so is that the directories are to go.
        Some((name, _)) => {
            if let Some(action) = clear(view, &remains.uid, memory) {
                return Decision::Do(action, Why::waiting(Reason::DirectoriesNotRemoved, text));
            }
            Decision::Do(Action::Forget { name: name.clone() }, Why::waiting(Reason::ProcessNotForgotten, text))
        }
        None => Decision::Rest(Why::settled(Reason::NotHere, format!("nothing is left of pod {}", view.key))),
    }
}

/// Ends what runs; `None` when nothing does.
fn stop<'a>(
    processes: impl Iterator<Item = (&'a String, &'a ProcessState)>,
    grace_seconds: i64,
    text: &str,
    memory: &Memory,
) -> Option<Decision<Action, Reason>> {
    let mut waiting = None;
    for (name, state) in processes {
        match state {
            ProcessState::Running { .. } if memory.stopped.contains(name) => {
                waiting =
                    Some(Decision::Rest(Why::waiting(Reason::ProcessEnding, format!("{text}: its process is ending"))));
            }
            ProcessState::Running { .. } => {
                let grace_millis = u64::try_from(grace_seconds).unwrap_or(0).saturating_mul(1000);
                let action = Action::Stop { name: name.clone(), grace_millis };
                return Some(Decision::Do(
                    action,
                    Why::waiting(Reason::ProcessRunning, format!("{text}: it still runs")),
                ));
            }
            ProcessState::Exited { .. } | ProcessState::NotStarted(_) | ProcessState::Lost => {}
        }
    }
    waiting
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

fn wind_down(view: &PodView, pod: &Pod, memory: &Memory) -> Decision<Action, Reason> {
    let deleting = pod.metadata.is_deleting();
    let text =
        if deleting { format!("pod {} is being deleted", view.key) } else { format!("pod {} has ended", view.key) };
    let asked = pod.metadata.deletion_grace_period_seconds.or(pod.spec.termination_grace_period_seconds);
    let latest = view.containers.iter().filter_map(|c| c.latest.as_ref()).map(|(_, name, state)| (name, state));
    if let Some(decision) = stop(latest, asked.unwrap_or(GRACE_SECONDS), &text, memory) {
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
    let latest = view.containers.iter().filter_map(|c| c.latest.as_ref()).map(|(_, name, _)| name);
    let earlier = view.containers.iter().flat_map(|c| &c.earlier).map(|(name, _)| name);
    let mut processes = earlier.chain(latest);
    if let Some(name) = processes.next() {
        return Decision::Do(Action::Forget { name: name.clone() }, Why::waiting(Reason::ProcessNotForgotten, text));
    }
    if let Some(action) = clear(view, &pod.metadata.uid, memory) {
        return Decision::Do(action, Why::waiting(Reason::DirectoriesNotRemoved, text));
    }
    let action = Action::DeletePod { pod: view.key.clone(), uid: pod.metadata.uid.clone() };
    Decision::Do(action, Why::waiting(Reason::PodNotDeleted, text))
}

/// What is left to remove of a pod's directories.
fn clear(view: &PodView, uid: &str, memory: &Memory) -> Option<Action> {
    let scratch = paths::empty_dirs(&view.root, uid);
    if !memory.swept.contains(&scratch) {
        return Some(Action::RemoveScratch { path: scratch });
    }
    let path = paths::pod_dirs(&view.root, uid).into_iter().find(|path| !memory.swept.contains(path))?;
    Some(Action::Sweep { path, must: false })
}

fn directory(volume: &PodVolumeView) -> Option<&String> {
    match volume {
        PodVolumeView::Directory(path) => Some(path),
        PodVolumeView::Ready { .. }
        | PodVolumeView::Waiting(_)
        | PodVolumeView::Impossible(_)
        | PodVolumeView::Unsupported => None,
    }
}

fn run(now: Timestamp, view: &PodView, pod: &Pod, memory: &Memory) -> Decision<Action, Reason> {
    let blocked = status::blocked(view, pod);
    let plans = status::plans(now, view, pod);
    if let Some(decision) = start(now, view, pod, blocked.as_ref(), &plans, memory) {
        return decision;
    }
    let status = status::of(now, view, pod, blocked.as_ref(), &plans);
    if status != pod.status {
        let only_if = Precondition::unchanged(&pod.metadata);
        let text = format!("pod {} is {}, which its status does not say yet", view.key, status.phase);
        let action = Action::SetStatus { pod: view.key.clone(), only_if, status };
        return Decision::Do(action, Why::waiting(Reason::StatusNotWritten, text));
    }
    rest(view, blocked, &plans)
}

fn start(
    now: Timestamp,
    view: &PodView,
    pod: &Pod,
    blocked: Option<&Blocked>,
    plans: &[ContainerPlan],
    memory: &Memory,
) -> Option<Decision<Action, Reason>> {
    if blocked.is_some() || waiting_volume(view).is_some() {
        return None;
    }
    // The latest two stay, for their logs.
    if let Some((name, _)) = view.containers.iter().find(|c| c.earlier.len() > 1).and_then(|c| c.earlier.first()) {
        let text = format!("pod {} was restarted; its oldest process is forgotten", view.key);
        return Some(Decision::Do(
            Action::Forget { name: name.clone() },
            Why::waiting(Reason::ProcessNotForgotten, text),
        ));
    }
    let (container, restart) = pod.spec.containers.iter().zip(plans).find_map(|(container, plan)| match plan {
        ContainerPlan::Start(restart) => Some((container, *restart)),
        ContainerPlan::Runs | ContainerPlan::Ended | ContainerPlan::PutOff(_) => None,
    })?;
    let text = format!("container {} of pod {} is started", container.name, view.key);
    let mut dirs = view.volumes.values().filter_map(directory);
    let action = match dirs.find(|path| !memory.made.contains(*path)) {
        Some(path) => Action::MakeScratch { path: path.clone() },
        None => Action::Start { process: process(view, pod, container, restart)?, at_millis: now.0 },
    };
    Some(Decision::Do(action, Why::waiting(Reason::ContainerNotStarted, text)))
}

/// A volume that is not there, with why and whether it can come to be.
fn waiting_volume(view: &PodView) -> Option<(Reason, &String)> {
    view.volumes.values().find_map(|volume| match volume {
        PodVolumeView::Waiting(text) => Some((Reason::VolumesNotReady, text)),
        PodVolumeView::Impossible(text) => Some((Reason::VolumeNotSupported, text)),
        PodVolumeView::Ready { .. } | PodVolumeView::Directory(_) | PodVolumeView::Unsupported => None,
    })
}

fn process(view: &PodView, pod: &Pod, container: &Container, restart: u32) -> Option<Process> {
    let mut environment: BTreeMap<String, String> = BTreeMap::new();
    environment.insert("PATH".into(), PATH.into());
    environment.insert("HOSTNAME".into(), pod.metadata.name.clone());
    environment.extend(container.env.iter().map(|env| (env.name.clone(), env.value.clone())));
    let mut mounts = Vec::new();
    for mount in &container.volume_mounts {
        let (source, read_only) = match view.volumes.get(&mount.name)? {
            PodVolumeView::Ready { path, read_only } => (path, *read_only),
            PodVolumeView::Directory(path) => (path, false),
            PodVolumeView::Waiting(_) | PodVolumeView::Impossible(_) | PodVolumeView::Unsupported => return None,
        };
        let read_only = read_only || mount.read_only;
        mounts.push(ProcessMount { source: source.clone(), target: mount.mount_path.clone(), read_only });
    }
    Some(Process {
        name: paths::process_name(&pod.metadata, &container.name, restart)?,
        command: container.command.iter().chain(&container.args).cloned().collect(),
        working_dir: container.working_dir.clone(),
        environment,
        mounts,
        sandbox: Box::new(sandbox::of(pod, container).ok()?),
    })
}

fn rest(view: &PodView, blocked: Option<Blocked>, plans: &[ContainerPlan]) -> Decision<Action, Reason> {
    if let Some(blocked) = blocked {
        return Decision::Rest(Why::waiting(blocked.reason, format!("pod {}: {}", view.key, blocked.message)));
    }
    if let Some((reason, text)) = waiting_volume(view) {
        return Decision::Rest(Why::waiting(reason, format!("pod {} waits: {text}", view.key)));
    }
    let put_off = plans.iter().filter_map(|plan| match plan {
        ContainerPlan::PutOff(until) => Some(*until),
        ContainerPlan::Start(_) | ContainerPlan::Runs | ContainerPlan::Ended => None,
    });
    match put_off.min() {
        Some(until) => {
            let text = format!("pod {} keeps ending and is started again later", view.key);
            Decision::Wait(until, Why::waiting(Reason::CrashLoopBackOff, text))
        }
        None => {
            Decision::Rest(Why::settled(Reason::PodRuns, format!("pod {} is as it should be", view.key).to_string()))
        }
    }
}
