//! What to do about a volume on this node.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use control::{Decision, Timestamp, Why};
use csi::NodeRpc;

use crate::Reason;
use crate::action::{Action, InUse, There};
use crate::decide::grow;
use crate::decide::mount::{self, Mounting};
use crate::local::DriverFacts;
use crate::memory::{AttachProof, Memory};
use crate::paths;
use crate::record::{EPHEMERAL, Publish, Record};
use crate::spec::VolumeSpec;
use crate::view::{AttachmentState, MountState, NodeSide, OnNode, RecordSide, User, UserState, VolumeView};

/// The next step for a volume.
pub fn decide(now: Timestamp, view: &VolumeView, memory: &Memory) -> Decision<Action, Reason> {
    match &view.record {
        RecordSide::Unreadable => {
            let text = format!(
                "the record {} cannot be read, so the volume counts as in use; restore it, or unmount the volume and \
                 remove it",
                view.paths.record
            );
            Decision::Rest(Why::waiting(Reason::RecordUnreadable, text))
        }
        RecordSide::Missing => without_record(view, memory),
        RecordSide::Present(record) => with_record(now, view, record, memory),
    }
}

fn without_record(view: &VolumeView, memory: &Memory) -> Decision<Action, Reason> {
    let nothing = Record::of("", "", "", "");
    match work(view, &nothing, memory) {
        Some(decision) => decision,
        None => forget(view, memory),
    }
}

fn with_record(now: Timestamp, view: &VolumeView, record: &Record, memory: &Memory) -> Decision<Action, Reason> {
    // Reliability 30: what may be mounted is reported, whatever happened to the Node object.
    if let NodeSide::Ours(node) = &view.node_side
        && !node.listed
        && !view.ephemeral
    {
        let text = format!("volume {} may be mounted here and is not reported in use", record.volume);
        return Decision::Do(Action::ReportInUse(in_use(view, node)), Why::waiting(Reason::NotReportedInUse, text));
    }
    let due = match work(view, record, memory) {
        // A pod that waits holds up no growth.
        resting @ (None | Some(Decision::Rest(_))) => match grow::decide(now, view, record, memory) {
            Some(Decision::Rest(why)) => resting.or(Some(Decision::Rest(why))),
            Some(step) => Some(step),
            None => resting,
        },
        step => step,
    };
    if let Some(decision) = due {
        return match view.users.is_empty() {
            // The claim may be told of a growth still; a write that fails keeps nothing staged.
            true => decision.or(unstage(view, record, memory)),
            false => decision,
        };
    }
    if !view.users.is_empty() {
        let resting = match &view.undrained {
            Some(text) => Decision::Rest(Why::waiting(Reason::NodeNotDrained, text.clone())),
            None => mount::rest(now, view, record, memory),
        };
        return match mount::health(now, view, record, memory) {
            Some(health) => resting.or(health),
            None => resting,
        };
    }
    unstage(view, record, memory)
}

/// The next step for some pod, if one is due. Which pod comes first turns with every failure, so that one that cannot be
/// served holds up no other for long.
fn work(view: &VolumeView, record: &Record, memory: &Memory) -> Option<Decision<Action, Reason>> {
    let mut pods: Vec<(&String, &User)> = view.users.iter().filter(|(_, user)| needs_work(view, user)).collect();
    let turn = memory.turn as usize % pods.len().max(1);
    pods.rotate_left(turn);
    let mut resting = None;
    for (uid, user) in pods {
        let decision = match user.standing {
            UserState::Wanted => set_up(view, record, uid, user, memory),
            UserState::Sealed => take_down(view, record, uid, user, memory),
            UserState::Kept => kept(record, user),
        };
        match decision {
            Decision::Rest(_) => resting = resting.or(Some(decision)),
            Decision::Wait(..) | Decision::Do(..) | Decision::Either(..) => return Some(decision),
        }
    }
    resting
}

fn needs_work(view: &VolumeView, user: &User) -> bool {
    match user.standing {
        UserState::Wanted => {
            user.mounted == MountState::No || !user.recorded || must_stage(view) || mount::must_group(user)
        }
        UserState::Sealed | UserState::Kept => true,
    }
}

/// Reliability 40: where the driver stages, nothing is published without the staging mount.
fn must_stage(view: &VolumeView) -> bool {
    view.staged == MountState::No
        && !view.ephemeral
        && view.facts.as_ref().is_some_and(|facts| facts.can(NodeRpc::StageUnstageVolume))
}

fn kept(record: &Record, user: &User) -> Decision<Action, Reason> {
    let text = format!("volume {} stays until pod {} has ended", record.volume, user.pod);
    Decision::Rest(Why::waiting(Reason::PodNotEnded, text))
}

fn set_up(view: &VolumeView, record: &Record, uid: &str, user: &User, memory: &Memory) -> Decision<Action, Reason> {
    if user.vanished {
        let text = format!("the mount of volume {} for pod {} is gone", record.volume, user.pod);
        let action = Action::NoteVanished { path: user.target.clone() };
        return Decision::Do(action, Why::waiting(Reason::MountVanished, text));
    }
    let rest = |code, text: String| Decision::Rest(Why::waiting(code, text));
    let Some(spec) = &view.spec else {
        return rest(Reason::VolumeUnknown, format!("the volume of pod {} is not known", user.pod));
    };
    let volume = &spec.volume;
    if let Some(reason) = &spec.refused {
        return rest(Reason::VolumeNotSupported, format!("volume {volume} cannot be mounted: {reason}"));
    }
    if let Some(text) = view.out_of_reach.as_ref().filter(|_| !user.recorded || user.mounted == MountState::No) {
        return rest(Reason::NodeAffinityMismatch, format!("MountVolume.NodeAffinity check failed: {text}"));
    }
    let Some(facts) = &view.facts else {
        let text = format!("driver {} of volume {volume} is not registered on node {}", view.driver, view.node);
        return rest(Reason::DriverNotRegistered, text);
    };
    let node = match &view.node_side {
        NodeSide::Missing => return rest(Reason::NodeMissing, format!("node {} is not in the API", view.node)),
        NodeSide::NotYet => {
            return rest(
                Reason::NodeNotIntroduced,
                format!("node {} does not carry this incarnation of its agent yet", view.node),
            );
        }
        NodeSide::Ours(node) => node,
    };
    if let AttachmentState::Waiting(text) = &view.attachment {
        return rest(Reason::NotAttached, text.clone());
    }
    if spec.one_pod && view.users.iter().any(|(other, user)| other != uid && user.recorded) {
        return rest(
            Reason::UsedByAnotherPod,
            format!("volume {volume} takes one pod at a time and another one has it"),
        );
    }
    if !view.ephemeral
        && !is_established(view, record)
        && let Some(decision) = prove(view, volume, node, memory)
    {
        return decision;
    }
    let wanted = with_users(view, record, spec, facts);
    if *record != wanted {
        let text = format!("recording where volume {volume} will be mounted");
        return Decision::Do(write_record(view, record, wanted), Why::waiting(Reason::NotRecorded, text));
    }
    Mounting { view, record, facts, spec, memory }.next(uid, user)
}

/// The volume is mounted here already, so its place was proved before.
fn is_established(view: &VolumeView, record: &Record) -> bool {
    let staged = record.staging_path.is_some() && view.staged == MountState::Yes;
    staged || view.users.values().any(|user| user.recorded && user.mounted == MountState::Yes)
}

/// Reliability 29: what must still happen before the first node call; `None` when the proof is there.
fn prove(view: &VolumeView, volume: &str, node: &OnNode, memory: &Memory) -> Option<Decision<Action, Reason>> {
    let rest = |code, text: String| Some(Decision::Rest(Why::waiting(code, text)));
    let version = node.version.number().unwrap_or(0);
    let attach_needed = view.attachment != AttachmentState::NotNeeded;
    if attach_needed && !node.attached {
        return rest(
            Reason::NotReportedAttached,
            format!("volume {volume} is not reported attached to node {} yet", view.node),
        );
    }
    if !node.listed {
        let text = format!("volume {volume} must be reported in use before it is mounted");
        return Some(Decision::Do(
            Action::ReportInUse(in_use(view, node)),
            Why::waiting(Reason::NotReportedInUse, text),
        ));
    }
    // A clearing that was never answered could still land. Clearing again settles it; then the volume is reported anew.
    if view.clearing.is_some_and(|cleared_at| version <= cleared_at) {
        let text = format!("an earlier write about volume {volume} was never answered and is settled first");
        return Some(Decision::Do(
            Action::ClearInUse(in_use(view, node)),
            Why::waiting(Reason::ClearingUnanswered, text),
        ));
    }
    match memory.proof {
        Some(AttachProof { version, holds: true }) if version > view.clearing.unwrap_or(0) => None,
        // The API itself said no; until the cache has seen something newer there is nothing to ask.
        Some(AttachProof { version: asked, holds: false }) if asked >= version => rest(
            Reason::NotReportedAttached,
            format!("volume {volume} is not reported attached to node {} yet", view.node),
        ),
        Some(_) | None => {
            let text = format!("checking that volume {volume} is attached and reported in use");
            Some(Decision::Do(Action::ReadNode(in_use(view, node)), Why::waiting(Reason::AttachmentNotProved, text)))
        }
    }
}

/// The record with every pod that wants the volume in it. A one-pod volume takes the first.
fn with_users(view: &VolumeView, record: &Record, spec: &VolumeSpec, facts: &DriverFacts) -> Record {
    let mut wanted = match &view.record {
        RecordSide::Present(_) => record.clone(),
        RecordSide::Missing | RecordSide::Unreadable => {
            let size = view.growth.as_ref().map(|growth| growth.sizes.had);
            Record { size, ..Record::of(&spec.volume, &view.driver, &view.handle, &view.node) }
        }
    };
    wanted.block = spec.is_block();
    wanted.migrated = spec.migrated;
    if spec.ephemeral {
        wanted.lifecycle = EPHEMERAL.into();
    } else if facts.can(NodeRpc::StageUnstageVolume) {
        wanted.staging_path = Some(view.paths.staging.clone());
    }
    for (uid, user) in view.users.iter().filter(|(_, user)| user.standing == UserState::Wanted) {
        if spec.one_pod && !wanted.publishes.is_empty() {
            break;
        }
        wanted.publishes.entry(uid.clone()).or_insert_with(|| Publish {
            target: user.target.clone(),
            pod_namespace: user.pod.namespace.clone(),
            pod_name: user.pod.name.clone(),
            read_only: user.read_only,
        });
    }
    wanted
}

/// Writes a record, and says which paths are new in it.
pub fn write_record(view: &VolumeView, old: &Record, record: Record) -> Action {
    let listed = |record: &Record| {
        let targets = record.publishes.values().map(|publish| publish.target.clone());
        targets.chain(record.staging_path.clone()).collect::<BTreeSet<String>>()
    };
    let fresh = listed(&record).difference(&listed(old)).cloned().collect();
    Action::WriteRecord { path: view.paths.record.clone(), record, fresh }
}

fn take_down(view: &VolumeView, record: &Record, uid: &str, user: &User, memory: &Memory) -> Decision<Action, Reason> {
    let text = format!("volume {} is taken from pod {}, which has ended", record.volume, user.pod);
    if user.mounted == MountState::Yes || !memory.clean.contains(&user.target) {
        return ask_driver(view, &user.target, Reason::NotUnpublished, text, Action::Unpublish);
    }
    let swept = match record.block {
        true if memory.swept.contains(&user.target) => None,
        true => Some(Action::SweepDevice { path: user.target.clone() }),
        false => sweep(memory, &[(&user.target, true), (&paths::parent(&user.target), false)]),
    };
    if let Some(sweep) = swept {
        return Decision::Do(sweep, Why::waiting(Reason::TargetNotRemoved, text));
    }
    let mut rest = record.clone();
    rest.publishes.remove(uid);
    Decision::Do(write_record(view, record, rest), Why::waiting(Reason::StillRecorded, text))
}

/// Reached only when the record lists no publish and no pod wants the volume (reliability 39).
fn unstage(view: &VolumeView, record: &Record, memory: &Memory) -> Decision<Action, Reason> {
    let text = format!("no pod uses volume {} any more", record.volume);
    if let Some(path) = &record.staging_path {
        if view.staged == MountState::Yes || !memory.clean.contains(path) {
            return ask_driver(view, path, Reason::NotUnstaged, text, Action::Unstage);
        }
        if let Some(sweep) = sweep(memory, &[(path, true)]) {
            return Decision::Do(sweep, Why::waiting(Reason::StagingNotRemoved, text));
        }
    }
    if record.block
        && let Some(sweep) = sweep(memory, &[(&view.paths.published, false)])
    {
        return Decision::Do(sweep, Why::waiting(Reason::StagingNotRemoved, text));
    }
    let action = Action::RemoveRecord { path: view.paths.record.clone(), volume: view.name.clone() };
    Decision::Do(action, Why::waiting(Reason::RecordNotRemoved, text))
}

fn ask_driver(
    view: &VolumeView,
    path: &str,
    code: Reason,
    text: String,
    action: impl FnOnce(There) -> Action,
) -> Decision<Action, Reason> {
    match &view.facts {
        None => {
            let text = format!("{text}, but driver {} is not registered on node {}", view.driver, view.node);
            Decision::Rest(Why::waiting(Reason::DriverNotRegistered, text))
        }
        Some(_) => {
            let there = There { driver: view.driver.clone(), handle: view.handle.clone(), path: path.into() };
            Decision::Do(action(there), Why::waiting(code, text))
        }
    }
}

fn sweep(memory: &Memory, dirs: &[(&String, bool)]) -> Option<Action> {
    let (path, must) = dirs.iter().find(|(path, _)| !memory.swept.contains(*path))?;
    Some(Action::Sweep { path: String::from(*path), must: *must })
}

/// Nothing is recorded and nobody wants it: nothing of it may stay reported.
fn forget(view: &VolumeView, memory: &Memory) -> Decision<Action, Reason> {
    if let Some(path) = &view.stray {
        let text = format!("something is mounted at {path} and no record says what; unmount it by hand");
        return Decision::Rest(Why::waiting(Reason::MountedWithoutRecord, text));
    }
    // Nothing was done on the strength of a record that nobody confirmed, so it can go.
    if view.maybe_recorded {
        let text = format!("a record of volume {} may be there, and nobody wants the volume any more", view.handle);
        let action = Action::RemoveRecord { path: view.paths.record.clone(), volume: view.name.clone() };
        return Decision::Do(action, Why::waiting(Reason::RecordNotRemoved, text));
    }
    let node = match &view.node_side {
        NodeSide::Ours(node) if node.listed => node,
        NodeSide::Ours(_) => {
            // Nothing is reported of a volume in a pod's own spec, so this is the last of it.
            if view.ephemeral
                && memory.removed
                && let Some(sweep) = sweep(memory, &[(&view.paths.dir, false)])
            {
                let text = format!("nothing is left of volume {} but its directory", view.handle);
                return Decision::Do(sweep, Why::waiting(Reason::DirectoriesNotRemoved, text));
            }
            return Decision::Rest(Why::settled(Reason::NotHere, "the volume is not on this node"));
        }
        NodeSide::NotYet | NodeSide::Missing => {
            let text = format!("node {} does not carry this incarnation of its agent yet", view.node);
            return Decision::Rest(Why::waiting(Reason::NodeNotIntroduced, text));
        }
    };
    let text = format!("volume {} is no longer in use on node {}", view.handle, view.node);
    let action = match sweep(memory, &[(&view.paths.dir, false)]) {
        Some(sweep) => sweep,
        None => Action::ClearInUse(in_use(view, node)),
    };
    Decision::Do(action, Why::waiting(Reason::StillReportedInUse, text))
}

fn in_use(view: &VolumeView, node: &OnNode) -> InUse {
    InUse {
        node: view.node.clone(),
        incarnation: view.incarnation.clone(),
        volume: view.name.clone(),
        seen: node.in_use.clone(),
        version: node.version.clone(),
        attach_needed: view.attachment != AttachmentState::NotNeeded,
    }
}
