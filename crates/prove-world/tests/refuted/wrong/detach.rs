use api::{Kind, Object, ObjectRef, Seen};
use control::{BackOff, Cache, Change, Decision, Effect, Outcome, Permission, Reply, Route, Rules, Timestamp};
use rules_attachdetach::{Action, AttachDetach, Key, Memory, Proof, Reason, View};

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
        | Action::CheckNode { .. }
        | Action::Delete(_) => &[],
    }
}

impl Astray for CachedInUse {
    type Real = AttachDetach;
    type Local = ();

    fn real(local: &()) -> &() {
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

/// Reads the node fresh before it detaches, and leaves the report standing while it does.
pub struct FreshReadOnly;

/// The real actions and the read that replaces taking the report back.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Wrong {
    Real(Action),
    Read { node: Seen, unique_name: String, attachments: Vec<Seen> },
}

impl control::Action for Wrong {
    fn name(&self) -> &'static str {
        match self {
            Wrong::Real(act) => act.name(),
            Wrong::Read { .. } => "ReadNode",
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Wrong::Real(act) => act.effect(),
            Wrong::Read { node, .. } => Effect::Read(node.object.clone()),
        }
    }

    fn permissions() -> &'static [Permission] {
        Action::permissions()
    }
}

impl Rules for FreshReadOnly {
    const NAME: &'static str = "attachdetach";
    type Key = Key;
    type Local = ();
    type View = View;
    type Action = Wrong;
    type Reason = Reason;
    type Memory = Memory;

    const ROUTES: &'static [Route<Self>] = &[];

    fn watches() -> &'static [Kind] {
        AttachDetach::watches()
    }

    fn wakes(change: &Change, cache: &Cache, local: &()) -> Vec<Key> {
        AttachDetach::wakes(change, cache, local)
    }

    fn keys(cache: &Cache, local: &()) -> Vec<Key> {
        AttachDetach::keys(cache, local)
    }

    fn view(key: &Key, cache: &Cache, local: &()) -> View {
        AttachDetach::view(key, cache, local)
    }

    fn decide(now: Timestamp, view: &View, memory: &Memory) -> Decision<Wrong, Reason> {
        match AttachDetach::decide(now, view, memory) {
            Decision::Do(Action::Unreport { node, unique_name, attachments, .. }, why)
            | Decision::Do(Action::Fence { node, unique_name, attachments }, why)
                if !attachments.is_empty() =>
            {
                match &memory.proof {
                    Some(_) => Decision::Do(Wrong::Real(Action::Delete(attachments[0].clone())), why),
                    None => Decision::Do(Wrong::Read { node, unique_name, attachments }, why),
                }
            }
            Decision::Do(act, why) => Decision::Do(Wrong::Real(act), why),
            Decision::Wait(until, why) => Decision::Wait(until, why),
            rest @ (Decision::Rest(_) | Decision::Either(..)) => Decision::Rest(rest.why().clone()),
        }
    }

    fn remember(now: Timestamp, mut memory: Memory, did: &Wrong, got: &Outcome) -> Memory {
        match (did, got) {
            (Wrong::Real(act), _) => AttachDetach::remember(now, memory, act, got),
            (Wrong::Read { unique_name, attachments, .. }, Outcome::Done(Reply::Object(Object::Node(node)))) => {
                let free = !node.reports_in_use(unique_name);
                let proof = Proof { node: Some(node.metadata.uid.clone()), attachments: attachments.clone() };
                memory.proof = free.then_some(proof);
                memory
            }
            (Wrong::Read { .. }, _) => memory,
        }
    }

    fn learn(_: &mut (), _: &Wrong, _: &Outcome, _: &Cache) -> Vec<Key> {
        Vec::new()
    }

    fn back_off(local: &()) -> BackOff {
        AttachDetach::back_off(local)
    }

    fn object(key: &Key) -> ObjectRef {
        AttachDetach::object(key)
    }
}
