use api::{Kind, Object, ObjectRef, Precondition, Seen, Write};
use control::{
    BackOff, Cache, Change, Decision, Effect, HandleOf, Outcome, Permission, Pulse, Reply, Route, Rules, Timestamp,
};
use prove_world::worlds::node::dead::Patient;
use rules_attachdetach::{Action, AttachDetach, Key, Local, Memory, Proof, Reason, View, Want};

use super::Astray;

/// Believes the cache: no in-use report seen means not in use, so the attachment can go.
pub struct CachedInUse;

/// The attachments an action wants a proof for.
fn sought(act: &Action) -> &[Seen] {
    match act {
        Action::Unreport { attachments, .. } | Action::Fence { attachments, .. } => attachments,
        Action::Create { .. }
        | Action::Adopt(_)
        | Action::Report { .. }
        | Action::ReadLease { .. }
        | Action::ForceRelease { .. }
        | Action::AskNode { .. }
        | Action::CheckNode { .. }
        | Action::Delete(_) => &[],
    }
}

impl Astray for CachedInUse {
    type Real = AttachDetach;
    type Local = Local;

    fn real(local: &Local) -> &Local {
        local
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        match AttachDetach::decide(now, view, memory) {
            Decision::Do(act, why) => match sought(&act).first() {
                Some(attachment) => Decision::Do(Action::Delete(attachment.clone()), why),
                None => Decision::Do(act, why),
            },
            idle => idle,
        }
    }
}

/// Takes the volumes of a node that is said to be out of service, whatever its Lease says.
pub struct TrustsTaint;

impl Astray for TrustsTaint {
    type Real = Patient;
    type Local = Local;

    fn real(local: &Local) -> &Local {
        local
    }

    fn decide(_: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        match Patient::decide(view, memory) {
            Decision::Do(Action::ReadLease { .. }, _) => {
                let (since, read) = (Timestamp(0), Timestamp(1));
                let dead = Pulse { version: None, renewed: None, lease_millis: 0, since, read, beats: false };
                AttachDetach::decide(read, view, &Memory { pulse: Some(dead), ..memory.clone() })
            }
            other => other,
        }
    }
}

/// Believes the cache about who serves a volume on a node.
pub struct TrustsCsiNode;

impl Astray for TrustsCsiNode {
    type Real = AttachDetach;
    type Local = Local;

    fn real(local: &Local) -> &Local {
        local
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        let mut memory = memory.clone();
        if let View::Pair(pair) = view {
            memory.asked_for = pair.asks.as_ref().map(|(_, pod)| pod.clone());
        }
        AttachDetach::decide(now, view, &memory)
    }
}

/// Attaches what the node expects of the driver, whether its own gate is on or off.
pub struct ForgetsGate;

impl Astray for ForgetsGate {
    type Real = AttachDetach;
    type Local = Local;

    fn real(local: &Local) -> &Local {
        local
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Action, Reason> {
        let mut view = view.clone();
        if let View::Pair(pair) = &mut view
            && let Want::Disputed(pod, _) = &pair.want
        {
            pair.want = Want::Wanted(pod.clone());
        }
        AttachDetach::decide(now, &view, memory)
    }
}

/// Reads the node fresh before it detaches, and leaves the report standing while it does.
pub struct ReadsFresh;
/// Deletes attachments by their names, whichever has the name by then.
pub struct ByName;

/// The real actions, the read that replaces taking the report back, and a deletion without a precondition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Wrong {
    Real(Action),
    Read { node: Seen, names: Vec<String>, attachments: Vec<Seen> },
    Delete(Seen),
}

impl control::Action for Wrong {
    fn name(&self) -> &'static str {
        match self {
            Wrong::Real(act) => act.name(),
            Wrong::Read { .. } => "ReadNode",
            Wrong::Delete(_) => "DeleteByName",
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Wrong::Real(act) => act.effect(),
            Wrong::Read { node, .. } => Effect::Read(node.object.clone()),
            Wrong::Delete(attachment) => Effect::Write(Write::Delete {
                target: attachment.object.clone(),
                only_if: Precondition::default(),
                grace_seconds: None,
            }),
        }
    }

    fn permissions() -> &'static [Permission] {
        Action::permissions()
    }
}

/// What is done instead of an action, and what is made of its outcome.
pub trait Mistake: 'static {
    fn instead(memory: &Memory, act: Action) -> Wrong;
    fn remember(now: Timestamp, memory: Memory, did: &Wrong, got: &Outcome) -> Memory;
}

impl Mistake for ReadsFresh {
    fn instead(memory: &Memory, act: Action) -> Wrong {
        match act {
            Action::Unreport { node, names, attachments, .. } | Action::Fence { node, names, attachments }
                if !attachments.is_empty() =>
            {
                match &memory.proof {
                    Some(_) => Wrong::Real(Action::Delete(attachments[0].clone())),
                    None => Wrong::Read { node, names, attachments },
                }
            }
            act => Wrong::Real(act),
        }
    }

    fn remember(now: Timestamp, mut memory: Memory, did: &Wrong, got: &Outcome) -> Memory {
        match (did, got) {
            (Wrong::Real(act), _) => AttachDetach::remember(now, memory, act, got),
            (Wrong::Read { names, attachments, .. }, Outcome::Done(Reply::Object(Object::Node(node)))) => {
                let free = !names.iter().any(|name| node.reports_in_use(name));
                let proof = Proof { node: Some(node.metadata.uid.clone()), attachments: attachments.clone() };
                memory.proof = free.then_some(proof);
                memory
            }
            (Wrong::Read { .. } | Wrong::Delete(_), _) => memory,
        }
    }
}

impl Mistake for ByName {
    fn instead(_: &Memory, act: Action) -> Wrong {
        match act {
            Action::Delete(attachment) => Wrong::Delete(attachment),
            act => Wrong::Real(act),
        }
    }

    fn remember(now: Timestamp, memory: Memory, did: &Wrong, got: &Outcome) -> Memory {
        match did {
            Wrong::Real(act) => AttachDetach::remember(now, memory, act, got),
            Wrong::Delete(attachment) => AttachDetach::remember(now, memory, &Action::Delete(attachment.clone()), got),
            Wrong::Read { .. } => memory,
        }
    }
}

/// The attach/detach controller with a mistake.
pub struct Mistaken<M>(std::marker::PhantomData<M>);

impl<M: Mistake> Rules for Mistaken<M> {
    const NAME: &'static str = "attachdetach";
    const HANDLE_OF: Option<HandleOf> = AttachDetach::HANDLE_OF;
    type Key = Key;
    type Local = Local;
    type View = View;
    type Action = Wrong;
    type Reason = Reason;
    type Memory = Memory;

    const ROUTES: &'static [Route<Self>] = &[];

    fn watches() -> &'static [Kind] {
        AttachDetach::watches()
    }

    fn wakes(change: &Change, cache: &Cache, local: &Local) -> Vec<Key> {
        AttachDetach::wakes(change, cache, local)
    }

    fn keys(cache: &Cache, local: &Local) -> Vec<Key> {
        AttachDetach::keys(cache, local)
    }

    fn view(key: &Key, cache: &Cache, local: &Local) -> View {
        AttachDetach::view(key, cache, local)
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Wrong, Reason> {
        match AttachDetach::decide(now, view, memory) {
            Decision::Do(act, why) => Decision::Do(M::instead(memory, act), why),
            Decision::Wait(until, why) => Decision::Wait(until, why),
            rest @ (Decision::Rest(_) | Decision::Either(..)) => Decision::Rest(rest.why().clone()),
        }
    }

    fn remember(now: Timestamp, memory: Memory, did: &Wrong, got: &Outcome) -> Memory {
        M::remember(now, memory, did, got)
    }

    fn learn(_: &mut Local, _: &Wrong, _: &Outcome, _: &Cache) -> Vec<Key> {
        Vec::new()
    }

    fn back_off(local: &Local) -> BackOff {
        AttachDetach::back_off(local)
    }

    fn object(key: &Key) -> ObjectRef {
        AttachDetach::object(key)
    }
}
