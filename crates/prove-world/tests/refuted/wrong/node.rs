//! Agents that believe too much, or do things in the wrong order.

use control::{Cache, Decision, Outcome, Rules, Timestamp};
use rules_node::{
    Action, AttachProof, Expand, Key, Local, Memory, Node, NodeSide, Reason, RecordSide, UserState, View,
};

use super::Astray;

/// An agent led astray in its decisions alone: what it learns of its machine is what the real one learns.
pub trait Misled: 'static {
    /// What it takes its view for.
    fn believes(_view: &mut View) {}

    /// What it remembers without having been told.
    fn recalls(_memory: &mut Memory) {}

    /// What it does instead.
    fn instead(_view: &View, action: Action) -> Action {
        action
    }
}

/// An agent that is [`Misled`].
pub struct Agent<M>(std::marker::PhantomData<M>);

impl<M: Misled> Astray for Agent<M> {
    type Real = Node;
    type Local = Local;

    fn real(local: &Local) -> &Local {
        local
    }

    fn view(key: &Key, cache: &control::Cache, local: &Local) -> View {
        let mut view = Node::view(key, cache, local);
        M::believes(&mut view);
        view
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        let mut memory = memory.clone();
        M::recalls(&mut memory);
        match Node::decide(now, view, &memory) {
            Decision::Do(action, why) => Decision::Do(M::instead(view, action), why),
            idle => idle,
        }
    }

    fn learn(local: &mut Local, did: &Action, got: &Outcome, cache: &Cache) -> Vec<Key> {
        Node::learn(local, did, got, cache)
    }
}

/// What the agent believes the API itself has told it.
fn proved(memory: &mut Memory) {
    memory.proof = Some(AttachProof { version: u64::MAX, holds: true });
}

/// Mounts without waiting for the volume to be attached.
pub struct DoesNotWait;

impl Misled for DoesNotWait {
    fn believes(view: &mut View) {
        let View::Volume(volume) = view else { return };
        volume.attachment = rules_node::AttachmentState::NotNeeded;
        if let NodeSide::Ours(node) = &mut volume.node_side {
            node.listed = true;
        }
    }

    fn recalls(memory: &mut Memory) {
        proved(memory);
    }
}

/// Mounts what is attached without reporting it in use.
pub struct DoesNotReport;

impl Misled for DoesNotReport {
    fn believes(view: &mut View) {
        if let View::Volume(volume) = view
            && let NodeSide::Ours(node) = &mut volume.node_side
        {
            node.listed = true;
        }
    }

    fn recalls(memory: &mut Memory) {
        proved(memory);
    }
}

/// Removes the record before the volume is unstaged.
pub struct ForgetsFirst;

impl Misled for ForgetsFirst {
    fn instead(view: &View, action: Action) -> Action {
        match (view, action) {
            (View::Volume(volume), Action::Unstage(_)) => {
                Action::RemoveRecord { path: volume.paths.record.clone(), volume: volume.name.clone() }
            }
            (_, action) => action,
        }
    }
}

/// Unstages where it should unpublish first.
pub struct UnstagesFirst;

impl Misled for UnstagesFirst {
    fn instead(view: &View, action: Action) -> Action {
        match (view, action) {
            (View::Volume(volume), Action::Unpublish(mut there)) => {
                there.path = volume.paths.staging.clone();
                Action::Unstage(there)
            }
            (_, action) => action,
        }
    }
}

/// Takes volumes from pods that may still run.
pub struct TakesEarly;

impl Misled for TakesEarly {
    fn believes(view: &mut View) {
        let View::Volume(volume) = view else { return };
        for user in volume.users.values_mut().filter(|user| user.standing == UserState::Kept) {
            user.standing = UserState::Sealed;
        }
    }
}

/// Publishes for writing what a pod may only read.
pub struct LetsWrite;

impl Misled for LetsWrite {
    fn instead(_: &View, action: Action) -> Action {
        match action {
            Action::Publish(mut publishing) => {
                publishing.read_only = false;
                Action::Publish(publishing)
            }
            action => action,
        }
    }
}

/// Gives a volume for one pod to every pod.
pub struct Shares;

impl Misled for Shares {
    fn believes(view: &mut View) {
        if let View::Volume(volume) = view
            && let Some(spec) = &mut volume.spec
        {
            spec.one_pod = false;
        }
    }
}

/// Writes records that name no volume.
pub struct Scribbles;

impl Misled for Scribbles {
    fn instead(_: &View, action: Action) -> Action {
        match action {
            Action::WriteRecord { path, mut record, fresh } => {
                record.handle.clear();
                Action::WriteRecord { path, record, fresh }
            }
            action => action,
        }
    }
}

/// Takes a record that it cannot read for none.
pub struct ReadsNothing;

impl Misled for ReadsNothing {
    fn believes(view: &mut View) {
        if let View::Volume(volume) = view
            && volume.record == RecordSide::Unreadable
        {
            volume.record = RecordSide::Missing;
        }
    }
}

/// Writes down what it knows about a volume, secrets and all.
pub struct Tells;

impl Misled for Tells {
    fn instead(view: &View, action: Action) -> Action {
        match (view, action) {
            (View::Volume(volume), Action::Stage { secrets, .. }) => {
                let RecordSide::Present(record) = &volume.record else { unreachable!("staged without a record") };
                let mut record = record.clone();
                record.volume = secrets.0.values().cloned().collect();
                Action::WriteRecord { path: volume.paths.record.clone(), record, fresh: Default::default() }
            }
            (_, action) => action,
        }
    }
}

/// Does not tell the driver where it staged the volume that is to grow.
pub struct GrowsAnywhere;

impl Misled for GrowsAnywhere {
    fn instead(_: &View, action: Action) -> Action {
        match action {
            Action::Expand(mut step) => {
                if let Expand::Call(call) = &mut *step {
                    call.staging = None;
                }
                Action::Expand(step)
            }
            action => action,
        }
    }
}

/// Grows a filesystem as soon as its claim asks for more.
pub struct GrowsAtOnce;

impl Misled for GrowsAtOnce {
    fn believes(view: &mut View) {
        if let View::Volume(volume) = view
            && let Some(growth) = &mut volume.growth
        {
            growth.sizes.volume = growth.sizes.requested;
        }
    }
}

/// Calls a pod's own volume what its user calls it.
pub struct NamesVolumes;

impl Misled for NamesVolumes {
    fn instead(_: &View, action: Action) -> Action {
        match action {
            Action::Publish(mut publishing) => {
                publishing.handle = publishing.spec.volume.clone();
                Action::Publish(publishing)
            }
            action => action,
        }
    }
}

/// Does not look for directories of pods that nothing else remembers.
pub struct SweepsNothing;

impl Misled for SweepsNothing {
    fn believes(view: &mut View) {
        match view {
            View::Orphan(orphan) => orphan.holds = None,
            View::Orphans(_) | View::Volume(_) | View::Pod(_) | View::Check(_) => {}
        }
    }
}

/// Forgets a growth with the last pod.
pub struct TellsPodsOnly;

impl Misled for TellsPodsOnly {
    fn believes(view: &mut View) {
        if let View::Volume(volume) = view
            && volume.users.values().all(|user| user.standing != UserState::Wanted)
        {
            volume.growth = None;
        }
    }
}
