//! Registrars that give a driver more, or less, than it may have.

use control::{Cache, Decision, Outcome, Rules, Timestamp, Why};
use rules_registrar::{Action, CsiNodeSide, Key, Local, NodeObject, Reason, Registrar, RegistrationProgress, View};

use super::Astray;

macro_rules! registrar {
    ($name:ident) => {
        impl Astray for $name {
            type Real = Registrar;
            type Local = Local;

            fn real(local: &Local) -> &Local {
                local
            }

            fn view(key: &Key, cache: &Cache, local: &Local) -> View {
                let mut view = Registrar::view(key, cache, local);
                $name::believes(&mut view);
                view
            }

            fn decide(now: Timestamp, view: &View, (): &()) -> Decision<Action, Reason> {
                $name::instead(view).unwrap_or_else(|| Registrar::decide(now, view, &()))
            }

            fn learn(local: &mut Local, did: &Action, got: &Outcome, cache: &Cache) -> Vec<Key> {
                Registrar::learn(local, did, got, cache)
            }
        }
    };
}

/// Welcomes a driver of a higher version beside the one it is to replace.
pub struct Crowds;
registrar!(Crowds);

impl Crowds {
    fn believes(view: &mut View) {
        let View::Socket(socket) = view else { return };
        socket.rival = None;
        socket.socket.holds = socket.socket.progress.plugin().map(|plugin| plugin.name.clone());
    }

    fn instead(_: &View) -> Option<Decision<Action, Reason>> {
        None
    }
}

/// Takes no notice of what the node reports in use.
pub struct Evicts;
registrar!(Evicts);

impl Evicts {
    fn believes(view: &mut View) {
        let node = match view {
            View::SelfNode(view) => view.node.as_mut(),
            View::Socket(view) => match &mut view.node {
                NodeObject::Ours(node) => Some(node),
                NodeObject::NotYet => None,
            },
            View::NoSocket | View::Lease(_) => None,
        };
        if let Some(node) = node {
            std::sync::Arc::make_mut(node).status.volumes_in_use = None;
        }
    }

    fn instead(_: &View) -> Option<Decision<Action, Reason>> {
        None
    }
}

/// Welcomes a driver before its node id is in CSINode.
pub struct Flatters;
registrar!(Flatters);

impl Flatters {
    fn believes(_: &mut View) {}

    fn instead(view: &View) -> Option<Decision<Action, Reason>> {
        let View::Socket(view) = view else { return None };
        let CsiNodeSide::Ours(_) = &view.csi_node else { return None };
        if !matches!(view.socket.progress, RegistrationProgress::Able(..)) || view.socket.holds.is_none() {
            return None;
        }
        let at = rules_registrar::At { path: view.path.clone(), incarnation: view.socket.incarnation };
        Some(Decision::Do(Action::Welcome(at), Why::waiting(Reason::DriverNotTold, "telling the driver at once")))
    }
}
