//! What the kubelet does, or did, where it matters.

use control::{Cache, Decision, Outcome, Rules, Timestamp};
use rules_node::{Action, Key, Local, Memory, MountState, Node, Reason, RecordSide, UserState, View};

use super::Astray;

/// The agent has started anew: the first incarnations of the worlds end in 1.
fn has_restarted(local: &Local) -> bool {
    !local.incarnation.ends_with('1')
}

/// After a restart it knows of volumes what the directories of pods show: one that is staged and published nowhere is
/// forgotten.
pub struct ForgetsStaged;

impl Astray for ForgetsStaged {
    type Real = Node;
    type Local = Local;

    fn real(local: &Local) -> &Local {
        local
    }

    fn view(key: &Key, cache: &Cache, local: &Local) -> View {
        let mut view = Node::view(key, cache, local);
        if let View::Volume(volume) = &mut view
            && has_restarted(local)
            && volume.users.values().all(|user| !user.recorded && user.mounted == MountState::No)
        {
            volume.record = RecordSide::Missing;
            volume.staged = MountState::No;
            volume.stray = None;
        }
        view
    }

    fn learn(local: &mut Local, did: &Action, got: &Outcome, cache: &Cache) -> Vec<Key> {
        Node::learn(local, did, got, cache)
    }
}

/// After a restart it takes down what it finds before it has heard of the pods that use it.
pub struct TakesDownFirst;

impl Astray for TakesDownFirst {
    type Real = Node;
    type Local = Local;

    fn real(local: &Local) -> &Local {
        local
    }

    fn view(key: &Key, cache: &Cache, local: &Local) -> View {
        let mut view = Node::view(key, cache, local);
        if let View::Volume(volume) = &mut view
            && has_restarted(local)
        {
            volume.users.values_mut().for_each(|user| user.standing = UserState::Sealed);
        }
        view
    }

    fn learn(local: &mut Local, did: &Action, got: &Outcome, cache: &Cache) -> Vec<Key> {
        Node::learn(local, did, got, cache)
    }
}

/// Removes a volume's record when NodePublishVolume fails, though the volume is staged.
pub struct DropsRecord;

impl Astray for DropsRecord {
    type Real = Node;
    type Local = Local;

    fn real(local: &Local) -> &Local {
        local
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        match (Node::decide(now, view, memory), view) {
            (Decision::Do(Action::Publish(_), why), View::Volume(volume)) if memory.turn > 0 => {
                let (path, volume) = (volume.paths.record.clone(), volume.name.clone());
                Decision::Do(Action::RemoveRecord { path, volume }, why)
            }
            (decision, _) => decision,
        }
    }

    fn learn(local: &mut Local, did: &Action, got: &Outcome, cache: &Cache) -> Vec<Key> {
        Node::learn(local, did, got, cache)
    }
}

/// Leaves the directories of pods that are gone.
pub struct LeavesDirectories;

impl Astray for LeavesDirectories {
    type Real = Node;
    type Local = Local;

    fn real(local: &Local) -> &Local {
        local
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        match Node::decide(now, view, memory) {
            Decision::Do(Action::Sweep { .. }, why) => Decision::Rest(why),
            other => other,
        }
    }

    fn learn(local: &mut Local, did: &Action, got: &Outcome, cache: &Cache) -> Vec<Key> {
        Node::learn(local, did, got, cache)
    }
}
