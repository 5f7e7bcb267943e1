//! What the Go programs do, or did, where it matters.

use std::sync::LazyLock;

use api::{ObjectKey, names};
use control::{Cache, Decision, Outcome, Rules, Timestamp, Why};
use rules_attachdetach::{AttachDetach, Local, Rival, View, Want};
use rules_attacher::{AttachObstacle, Attacher, Detach};
use rules_provisioner::{Action, Provisioner, Reason, SourceKey, SourceView, Sources, VolumeView};

use super::Astray;

/// Nothing is taken from nodes here.
static NEVER: LazyLock<Local> = LazyLock::new(Local::default);

/// Knows of a detach under way only what it began in this incarnation: a volume whose detach failed before is taken for
/// detached.
pub struct ForgetsDetaching;

impl Astray for ForgetsDetaching {
    type Real = AttachDetach;
    /// A detach was begun in this incarnation.
    type Local = bool;

    fn real(_: &bool) -> &Local {
        &NEVER
    }

    fn view(key: &rules_attachdetach::Key, cache: &Cache, began: &bool) -> View {
        match AttachDetach::view(key, cache, &Default::default()) {
            View::Pair(mut pair) => {
                if !began && matches!(pair.rival, Some(Rival::Attachment { deleting: true, .. })) {
                    pair.rival = None;
                }
                View::Pair(pair)
            }
            other => other,
        }
    }

    fn learn(
        began: &mut bool,
        did: &rules_attachdetach::Action,
        _: &Outcome,
        _: &Cache,
    ) -> Vec<rules_attachdetach::Key> {
        *began |= matches!(did, rules_attachdetach::Action::Delete(_));
        Vec::new()
    }
}

/// Detaches what no pod wants when its time is up, whatever the node says. Here time is always up.
pub struct DetachesOnTime;

impl Astray for DetachesOnTime {
    type Real = AttachDetach;
    type Local = Local;

    fn real(local: &Local) -> &Local {
        local
    }

    fn decide(
        now: Timestamp,
        view: &View,
        memory: &rules_attachdetach::Memory,
    ) -> Decision<rules_attachdetach::Action, rules_attachdetach::Reason> {
        let decision = AttachDetach::decide(now, view, memory);
        let View::Pair(pair) = view else { return decision };
        let standing = pair.attachments.iter().find(|attachment| !attachment.deleting);
        match (&pair.want, standing) {
            (Want::Unwanted(_), Some(attachment)) => {
                Decision::Do(rules_attachdetach::Action::Delete(attachment.seen.clone()), decision.why().clone())
            }
            (Want::Wanted(_) | Want::Disputed(..) | Want::Unwanted(_), _) => decision,
        }
    }
}

/// Takes a node that its cache does not have yet for one that uses nothing, which it does until it has done something.
pub struct EmptyCache;

impl Astray for EmptyCache {
    type Real = AttachDetach;
    /// Something was done in this incarnation.
    type Local = bool;

    fn real(_: &bool) -> &Local {
        &NEVER
    }

    fn view(key: &rules_attachdetach::Key, cache: &Cache, full: &bool) -> View {
        let mut view = AttachDetach::view(key, cache, &Default::default());
        if let View::Pair(pair) = &mut view
            && let Some(node) = &mut pair.node
            && !full
        {
            (node.in_use, node.unheard) = (false, true);
            node.used.clear();
        }
        view
    }

    fn decide(
        now: Timestamp,
        view: &View,
        memory: &rules_attachdetach::Memory,
    ) -> Decision<rules_attachdetach::Action, rules_attachdetach::Reason> {
        let decision = AttachDetach::decide(now, view, memory);
        let View::Pair(pair) = view else { return decision };
        let unseen = pair.node.as_ref().is_some_and(|node| node.unheard && !node.in_use);
        let standing = pair.attachments.iter().find(|attachment| !attachment.deleting);
        match (&pair.want, standing) {
            (Want::Unwanted(_), Some(attachment)) if unseen => {
                Decision::Do(rules_attachdetach::Action::Delete(attachment.seen.clone()), decision.why().clone())
            }
            (Want::Wanted(_) | Want::Disputed(..) | Want::Unwanted(_), _) => decision,
        }
    }

    fn learn(full: &mut bool, _: &rules_attachdetach::Action, _: &Outcome, _: &Cache) -> Vec<rules_attachdetach::Key> {
        *full = true;
        Vec::new()
    }
}

/// Publishes wherever it is told to.
pub struct Unguarded;

impl Astray for Unguarded {
    type Real = Attacher;
    type Local = rules_attacher::Local;

    fn real(local: &rules_attacher::Local) -> &rules_attacher::Local {
        local
    }

    fn view(key: &rules_attacher::Key, cache: &Cache, local: &rules_attacher::Local) -> rules_attacher::View {
        match Attacher::view(key, cache, local) {
            rules_attacher::View::Attach(mut attach) => {
                attach.rival = None;
                rules_attacher::View::Attach(attach)
            }
            other => other,
        }
    }
}

/// Asks the node what the driver calls it, whenever it needs to know.
pub struct NodeMustExist;

impl Astray for NodeMustExist {
    type Real = Attacher;
    type Local = rules_attacher::Local;

    fn real(local: &rules_attacher::Local) -> &rules_attacher::Local {
        local
    }

    fn view(key: &rules_attacher::Key, cache: &Cache, local: &rules_attacher::Local) -> rules_attacher::View {
        let view = Attacher::view(key, cache, local);
        let rules_attacher::View::Detach(Detach::Ready { attachment, place, error, .. }) = &view else { return view };
        if cache.csi_node(&ObjectKey::cluster(place.node_id.clone())).is_some() {
            return view;
        }
        let obstacle = AttachObstacle::NodeIdUnknown(place.node_id.clone());
        rules_attacher::View::Detach(Detach::Stuck { attachment: attachment.clone(), obstacle, error: error.clone() })
    }
}

/// Puts no finalizer on the volumes it makes, or takes it off again.
pub struct NeverHolds;

impl Astray for NeverHolds {
    type Real = Provisioner;
    type Local = rules_provisioner::Local;

    fn real(local: &rules_provisioner::Local) -> &rules_provisioner::Local {
        local
    }

    fn decide(
        now: Timestamp,
        view: &rules_provisioner::View,
        memory: &rules_provisioner::Memory,
    ) -> Decision<Action, Reason> {
        if let rules_provisioner::View::Volume(VolumeView::Ours { volume, .. }) = view
            && volume.metadata.has_finalizer(names::PROVISIONER_FINALIZER)
            && !volume.metadata.is_deleting()
            && !rules_provisioner::is_condemned(volume)
        {
            let why = Why::waiting(Reason::RemovingFinalizer, "a volume is its own master");
            let finalizers = vec![names::PROVISIONER_FINALIZER.into()];
            return Decision::Do(Action::RemoveFinalizer { volume: volume.clone(), finalizers }, why);
        }
        match Provisioner::decide(now, view, memory) {
            Decision::Do(Action::AddFinalizer { .. }, why) => Decision::Rest(why),
            other => other,
        }
    }
}

/// Lets a source go as soon as its deletion is asked for, whoever copies it.
pub struct LetsGoEarly;

impl Astray for LetsGoEarly {
    type Real = Sources;
    type Local = rules_provisioner::Local;

    fn real(local: &rules_provisioner::Local) -> &rules_provisioner::Local {
        local
    }

    fn view(key: &SourceKey, cache: &Cache, local: &rules_provisioner::Local) -> SourceView {
        match Sources::view(key, cache, local) {
            SourceView::Held { object, finalizer, .. } => SourceView::Held { object, finalizer, users: Vec::new() },
            other => other,
        }
    }
}
