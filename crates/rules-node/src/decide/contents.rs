//! What must be in a pod's own volumes before its containers start, and how it is kept up to date while they run.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use api::{Container, Pod, VolumeMount};
use control::host::{Process, ProcessDevice, ProcessMount, Propagation};
use control::{Decision, Timestamp, Why};

use crate::Reason;
use crate::action::Action;
use crate::contents::{self, Environment, PodSource, PodToken, SourceNeed};
use crate::memory::Memory;
use crate::paths;
use crate::sandbox;
use crate::status::Blocked;
use crate::view::{MountState, OwnVolume, PodView, PodVolumeView};

/// How long what was read counts as up to date. kubelet may take a minute and more.
const FRESH_MILLIS: u64 = 30_000;
/// Between two measurements of an `emptyDir` volume with a limit, as kubelet looks for pods to evict.
const MEASURE_MILLIS: u64 = 10_000;

type Step = Decision<Action, Reason>;

/// What must be done before any container is started, if anything.
pub fn first(view: &PodView, pod: &Pod, memory: &Memory) -> Option<Step> {
    let needs = contents::needs(pod);
    let missing = |(source, need): &(&PodSource, &SourceNeed)| match memory.sources.get(source) {
        None => true,
        Some(read) => need.lacks(source, read).is_some(),
    };
    // They take turns: one that is missing keeps no other from being read.
    let longest_ago = |(source, _): &(&PodSource, &SourceNeed)| memory.sources.get(*source).map(|read| read.at);
    if let Some((source, need)) = needs.iter().filter(missing).min_by_key(longest_ago) {
        return Some(read(view, source, need));
    }
    if let Some((volume, token)) = shown_tokens(view, pod).find(|(_, token)| !memory.pod_tokens.contains_key(token)) {
        return Some(ask(view, pod, volume, token));
    }
    pod.spec.volumes.iter().find_map(|volume| match view.volumes.get(&volume.name)? {
        PodVolumeView::Own(own) => fill(view, pod, volume, own, memory),
        PodVolumeView::HostPath { path, kind } if !memory.places.contains(path) => {
            let text = format!("pod {} is given {path} of this machine", view.key);
            let action = Action::EnsureHostPath { path: path.clone(), kind: *kind };
            Some(Decision::Do(action, Why::waiting(Reason::VolumesNotReady, text)))
        }
        PodVolumeView::HostPath { .. }
        | PodVolumeView::Ready { .. }
        | PodVolumeView::Device { .. }
        | PodVolumeView::Waiting(_)
        | PodVolumeView::Impossible(_)
        | PodVolumeView::Directory(_)
        | PodVolumeView::Unsupported => None,
    })
}

fn read(view: &PodView, source: &PodSource, need: &SourceNeed) -> Step {
    let text = match &need.volume {
        Some(volume) => format!("MountVolume.SetUp failed for volume {volume:?} of pod {}", view.key),
        None => format!("containers of pod {} take variables from {source}", view.key),
    };
    let namespace = view.key.namespace.clone();
    let action = Action::ReadSource { namespace, source: source.clone(), need: need.clone() };
    Decision::Do(action, Why::waiting(Reason::SourceNotRead, text))
}

/// The tokens that volumes of the pod show, with the volumes' names.
fn shown_tokens<'a>(view: &'a PodView, pod: &'a Pod) -> impl Iterator<Item = (&'a String, PodToken)> {
    let used = pod.spec.volumes.iter().filter(|volume| view.volumes.contains_key(&volume.name));
    used.flat_map(|volume| contents::tokens(volume).map(|token| (&volume.name, token)))
}

fn ask(view: &PodView, pod: &Pod, volume: &str, token: PodToken) -> Step {
    let text = format!("MountVolume.SetUp failed for volume {volume:?} of pod {}", view.key);
    let action = Action::AskToken { wish: token.wish(pod), token };
    Decision::Do(action, Why::waiting(Reason::TokenNotHad, text))
}

/// The next step to have a volume in its place and showing what it should.
fn fill(view: &PodView, pod: &Pod, volume: &api::PodVolume, own: &OwnVolume, memory: &Memory) -> Option<Step> {
    let text = format!("volume {} of pod {} is set up", volume.name, view.key);
    if let (Some(in_memory), MountState::No) = (&own.memory, own.mounted) {
        let action = Action::MountMemory { path: own.path.clone(), bytes: in_memory.bytes, mode: in_memory.mode };
        return Some(Decision::Do(action, Why::waiting(Reason::VolumesNotReady, text)));
    }
    if !own.filled {
        return None;
    }
    let files = match contents::files(pod, volume, &view.node, &memory.sources, &memory.pod_tokens) {
        Ok(files) => files,
        Err(missing) => {
            let text = format!("MountVolume.SetUp failed for volume {:?} of pod {}: {missing}", volume.name, view.key);
            return Some(Decision::Rest(Why::waiting(Reason::VolumeContentsMissing, text)));
        }
    };
    if memory.shown.get(&own.path) == Some(&files) {
        return None;
    }
    let group = pod.spec.security_context.fs_group.and_then(|group| u32::try_from(group).ok());
    let action = Action::ShowFiles { path: own.path.clone(), files, group };
    Some(Decision::Do(action, Why::waiting(Reason::VolumeContentsOld, text)))
}

/// What is looked at again while the pod runs: sources that may have changed, tokens that get old, and directories that
/// may have grown. What is to be done, or until when there is nothing.
pub fn later(now: Timestamp, view: &PodView, pod: &Pod, memory: &Memory) -> Option<Step> {
    let needs = contents::needs(pod);
    let again = needs.iter().filter_map(|(source, need)| {
        let due = memory.sources.get(source)?.at.after_millis(FRESH_MILLIS);
        Some(when(now, due, read(view, source, need)))
    });
    let tokens = shown_tokens(view, pod).filter_map(|(volume, token)| {
        let due = memory.pod_tokens.get(&token)?.due;
        Some(when(now, due, ask(view, pod, volume, token)))
    });
    let limited = limited_dirs(view, pod).map(|(name, path, _)| {
        let due = memory.measured.get(path).map_or(now, |(at, _)| at.after_millis(MEASURE_MILLIS));
        let text = format!("volume {name} of pod {} has a limit", view.key);
        let action = Action::MeasureScratch { path: path.clone() };
        when(now, due, Decision::Do(action, Why::waiting(Reason::ScratchNotMeasured, text)))
    });
    again.chain(tokens).chain(limited).reduce(Decision::or)
}

/// A step that is not due yet is a wait for it.
fn when(now: Timestamp, due: Timestamp, step: Step) -> Step {
    match step {
        Decision::Do(_, why) if now < due => Decision::Wait(due, Why { settled: true, ..why }),
        step => step,
    }
}

/// Directories on the disk that may not grow beyond a limit: name, path, limit.
fn limited_dirs<'a>(
    view: &'a PodView,
    pod: &'a Pod,
) -> impl Iterator<Item = (&'a String, &'a String, &'a api::Quantity)> {
    pod.spec.volumes.iter().filter_map(|volume| {
        let limit = volume.empty_dir.as_ref()?.size_limit.as_ref()?;
        let limit = limit.bytes().is_ok_and(|bytes| bytes > 0).then_some(limit)?;
        match view.volumes.get(&volume.name)? {
            PodVolumeView::Directory(path) => Some((&volume.name, path, limit)),
            PodVolumeView::Own(_)
            | PodVolumeView::HostPath { .. }
            | PodVolumeView::Ready { .. }
            | PodVolumeView::Device { .. }
            | PodVolumeView::Waiting(_)
            | PodVolumeView::Impossible(_)
            | PodVolumeView::Unsupported => None,
        }
    })
}

/// The sentence for a pod that has to go because a directory of it has outgrown its limit.
pub fn outgrown(view: &PodView, pod: &Pod, memory: &Memory) -> Option<Blocked> {
    limited_dirs(view, pod).find_map(|(name, path, limit)| {
        let (_, used) = memory.measured.get(path)?;
        let most = limit.bytes().ok().and_then(|bytes| u64::try_from(bytes).ok())?;
        (*used > most).then(|| Blocked {
            reason: Reason::Evicted,
            message: format!("Usage of EmptyDir volume {name:?} exceeds the limit {:?}.", limit.to_string()),
            fatal: true,
        })
    })
}

/// Why a container cannot be started as it is configured, if so.
pub fn config_error(view: &PodView, pod: &Pod, container: &Container, memory: &Memory) -> Option<Blocked> {
    // What has not been read yet is not missing, and volumes come before variables.
    let early = |(source, need): (&PodSource, &SourceNeed)| match memory.sources.get(source) {
        None => true,
        Some(read) => need.volume.is_some() && need.lacks(source, read).is_some(),
    };
    if contents::needs(pod).iter().any(early) {
        return None;
    }
    let environment = contents::environment(pod, container, &view.node, &memory.sources);
    let wrong = environment.and_then(|environment| {
        container.volume_mounts.iter().try_for_each(|mount| contents::sub_path(mount, &environment).map(drop))
    });
    let message = wrong.err()?;
    Some(Blocked { reason: Reason::CreateContainerConfigError, message, fatal: false })
}

/// The process of a container; `None` while something of it is missing.
pub fn process(view: &PodView, pod: &Pod, container: &Container, restart: u32, memory: &Memory) -> Option<Process> {
    let environment = contents::environment(pod, container, &view.node, &memory.sources).ok()?;
    let mounts = container.volume_mounts.iter().map(|mount| mounted(view, mount, &environment));
    let mut sandbox = sandbox::of(pod, container).ok()?;
    sandbox.supplemental_groups.extend(&view.volume_groups);
    Some(Process {
        name: paths::process_name(&pod.metadata, &container.name, restart)?,
        mounts: mounts.collect::<Option<Vec<_>>>()?,
        working_dir: container.working_dir.clone(),
        devices: devices(view, container)?,
        sandbox: Box::new(sandbox),
        command: environment.command,
        confidential: environment.confidential,
        environment: environment.variables,
    })
}

fn mounted(view: &PodView, mount: &VolumeMount, environment: &Environment) -> Option<ProcessMount> {
    let (source, read_only, of_machine): (&String, bool, bool) = match view.volumes.get(&mount.name)? {
        PodVolumeView::Ready { path, read_only } => (path, *read_only, false),
        PodVolumeView::Directory(path) => (path, false, false),
        PodVolumeView::Own(own) => (&own.path, own.filled, false),
        PodVolumeView::HostPath { path, .. } => (path, false, true),
        PodVolumeView::Device { .. }
        | PodVolumeView::Waiting(_)
        | PodVolumeView::Impossible(_)
        | PodVolumeView::Unsupported => return None,
    };
    Some(ProcessMount {
        source: source.clone(),
        target: mount.mount_path.clone(),
        read_only: read_only || mount.read_only,
        sub_path: contents::sub_path(mount, environment).ok()?,
        of_machine,
        propagation: propagation(mount),
    })
}

/// KL-96: the raw devices of a container.
fn devices(view: &PodView, container: &Container) -> Option<Vec<ProcessDevice>> {
    let device = |used: &api::VolumeDevice| match view.volumes.get(&used.name)? {
        PodVolumeView::Device { path, read_only } => {
            let (source, target) = (path.clone(), used.device_path.clone());
            Some(ProcessDevice { source, target, read_only: *read_only })
        }
        PodVolumeView::Ready { .. }
        | PodVolumeView::Directory(_)
        | PodVolumeView::Own(_)
        | PodVolumeView::HostPath { .. }
        | PodVolumeView::Waiting(_)
        | PodVolumeView::Impossible(_)
        | PodVolumeView::Unsupported => None,
    };
    container.volume_devices.iter().map(device).collect()
}

fn propagation(mount: &VolumeMount) -> Propagation {
    match mount.mount_propagation.as_deref() {
        Some("HostToContainer") => Propagation::HostToContainer,
        Some("Bidirectional") => Propagation::Bidirectional,
        Some(_) | None => Propagation::None,
    }
}

/// The directories that go with all that is in them when a pod ends: all kinds of them, or those that the pod has.
pub fn own_dirs(view: &PodView, uid: &str) -> Vec<String> {
    let all = paths::own_dirs(&view.root, uid);
    let Some(pod) = view.pod.as_ref().filter(|pod| pod.metadata.uid == uid) else { return all };
    let has = |dir: &String| {
        *dir == paths::empty_dirs(&view.root, uid)
            || pod.spec.volumes.iter().any(|volume| match view.volumes.get(&volume.name) {
                Some(PodVolumeView::Own(own)) => own.path.starts_with(dir.as_str()),
                Some(_) | None => false,
            })
    };
    all.into_iter().filter(has).collect()
}
