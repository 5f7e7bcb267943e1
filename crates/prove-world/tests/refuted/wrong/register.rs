//! Registrars that give a driver more, or less, than it may have.

use control::{Cache, Decision, Outcome, Rules, Timestamp, Why};
use rules_registrar::{Action, CsiNodeSide, Key, Local, NodeObject, Reason, Registrar, RegistrationProgress, View};

use prove_world::worlds::register;
use prove_world::{Seat, Truth};

use super::{Astray, Led};

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
                $name::believes(&mut view, local);
                view
            }

            fn decide(now: Timestamp, view: &View, (): &()) -> Decision<Action, Reason> {
                $name::instead(view).unwrap_or_else(|| Registrar::decide(now, view, &()))
            }

            fn learn(local: &mut Local, did: &Action, got: &Outcome, cache: &Cache) -> Vec<Key> {
                let woken = Registrar::learn(local, did, got, cache);
                $name::heard(local, did, got);
                woken
            }
        }
    };
}

/// Welcomes a driver of a higher version beside the one it is to replace.
pub struct Crowds;
registrar!(Crowds);

impl Crowds {
    fn believes(view: &mut View, _: &Local) {
        let View::Socket(socket) = view else { return };
        socket.rival = None;
        socket.socket.holds = socket.socket.progress.plugin().map(|plugin| plugin.name.clone());
    }

    fn instead(_: &View) -> Option<Decision<Action, Reason>> {
        None
    }

    fn heard(_: &mut Local, _: &Action, _: &Outcome) {}
}

/// Takes no notice of what the node reports in use.
pub struct Evicts;
registrar!(Evicts);

impl Evicts {
    fn believes(view: &mut View, _: &Local) {
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

    fn heard(_: &mut Local, _: &Action, _: &Outcome) {}
}

/// Welcomes a driver before its node id is in CSINode.
pub struct Flatters;
registrar!(Flatters);

impl Flatters {
    fn believes(_: &mut View, _: &Local) {}

    fn instead(view: &View) -> Option<Decision<Action, Reason>> {
        let View::Socket(view) = view else { return None };
        let CsiNodeSide::Ours(_) = &view.csi_node else { return None };
        if !matches!(view.socket.progress, RegistrationProgress::Able(..)) || view.socket.holds.is_none() {
            return None;
        }
        let at = rules_registrar::At { path: view.path.clone(), incarnation: view.socket.incarnation };
        Some(Decision::Do(Action::Welcome(at), Why::waiting(Reason::DriverNotTold, "telling the driver at once")))
    }

    fn heard(_: &mut Local, _: &Action, _: &Outcome) {}
}

/// Takes a driver off CSINode when its socket goes, or comes anew, as kubelet deregisters it: k/k#71424.
pub struct Deregisters;
registrar!(Deregisters);

impl Deregisters {
    fn believes(view: &mut View, local: &Local) {
        let View::SelfNode(view) = view else { return };
        let CsiNodeSide::Ours(csi_node) = &view.csi_node else { return };
        let speaks = |name: &String| {
            local.sockets.values().any(|socket| {
                let known = matches!(socket.progress, RegistrationProgress::Able(..) | RegistrationProgress::Told(..));
                known && socket.holds.as_ref() == Some(name)
            })
        };
        let listed = csi_node.spec.drivers.iter().map(|driver| driver.name.clone());
        view.absent = listed.filter(|name| !speaks(name)).map(|name| (name, Timestamp(0))).collect();
        if let Some(node) = view.node.as_mut() {
            std::sync::Arc::make_mut(node).status.volumes_in_use = None;
        }
    }

    fn instead(_: &View) -> Option<Decision<Action, Reason>> {
        None
    }

    fn heard(_: &mut Local, _: &Action, _: &Outcome) {}
}

/// Is done with a driver when one question of its registration is not answered: k/k#118317.
pub struct GivesUp;
registrar!(GivesUp);

const FAILED: &str = "its registration failed";

impl GivesUp {
    fn believes(_: &mut View, _: &Local) {}

    fn instead(view: &View) -> Option<Decision<Action, Reason>> {
        let View::Socket(view) = view else { return None };
        let failed = view.socket.turned_away.as_ref().is_some_and(|(why, _)| why == FAILED);
        failed.then(|| Decision::Rest(Why::waiting(Reason::DriverTurnedAway, FAILED)))
    }

    fn heard(local: &mut Local, did: &Action, got: &Outcome) {
        let (Action::AskWho(at) | Action::AskPlace(at, _) | Action::AskAbilities(at, _)) = did else { return };
        let socket = local.sockets.get_mut(&at.path).filter(|socket| socket.incarnation == at.incarnation);
        if let (Some(socket), Outcome::Refused(_) | Outcome::Unknown(_)) = (socket, got) {
            socket.turned_away = Some((FAILED.into(), Timestamp(0)));
        }
    }
}

/// The registrar's rules as they are, which notice a driver that went and one that came, and none that came anew at the
/// path of another: registrar#139.
pub struct Oblivious;
registrar!(Oblivious);

impl Oblivious {
    fn believes(_: &mut View, _: &Local) {}

    fn instead(_: &View) -> Option<Decision<Action, Reason>> {
        None
    }

    fn heard(_: &mut Local, _: &Action, _: &Outcome) {}

    /// How it learns which sockets are there.
    pub fn seat() -> Seat<Led<Oblivious>> {
        let refresh = |local: &mut Local, truth: &Truth, node: &str| {
            let same = local.sockets.keys().eq(truth.plugins.running.keys());
            !same && (register::seat::<Led<Oblivious>>().refresh)(local, truth, node)
        };
        Seat { refresh, ..register::seat() }
    }
}
