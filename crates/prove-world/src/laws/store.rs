//! The laws of the API server: how objects may change, and what a write needs to be true.

use api::{Object, Patch, ResourceVersion, Write};
use control::Outcome;

use crate::cluster::Held;
use crate::laws::Violation;
use crate::laws::binding::check_used;
use crate::laws::sizes::bytes;
use crate::world::World;

/// The laws of every step: how objects may change.
pub(crate) fn check_passage(before: &World, after: &World) -> Option<Violation> {
    for kind in Object::KINDS {
        let (from, to) = (before.cluster.version(kind), after.cluster.version(kind));
        if from > to {
            return Some(Violation::WentBack { kind: kind.to_string(), from, to });
        }
        if from == to {
            continue;
        }
        for held in after.cluster.all(kind) {
            if let Some(violation) = check_kept(before, held, from).or_else(|| check_not_shrunk(before, held)) {
                return Some(violation);
            }
        }
        // Of several writes in one step only the sum is seen.
        if from + 1 == to
            && let Some(violation) = before.cluster.all(kind).find_map(|held| check_held(after, held))
        {
            return Some(violation);
        }
    }
    check_used(before, after)
}

fn check_held(after: &World, was: &Held) -> Option<Violation> {
    let meta = was.object.meta();
    let object = was.object.reference();
    let gone = after.cluster.read(&object).is_none_or(|now| now.object.meta().uid != meta.uid);
    // The write that takes the last finalizer off a deleting object makes it go.
    let guarded = meta.finalizers.len() > 1 || (!meta.finalizers.is_empty() && !meta.is_deleting());
    (gone && guarded).then(|| Violation::WentHeld { object: object.to_string(), finalizers: meta.finalizers.to_vec() })
}

fn check_kept(before: &World, held: &Held, old: u64) -> Option<Violation> {
    let object = held.object.reference().to_string();
    let now = held.object.meta();
    let was = before.cluster.read(&held.object.reference());
    let Some(was) = was.map(|was| was.object.meta()).filter(|was| was.uid == now.uid) else {
        return (now.version() <= old).then_some(Violation::NewUnderOldVersion { object });
    };
    if was.resource_version == now.resource_version {
        return None;
    }
    if now.version() <= old {
        return Some(Violation::ChangedUnderOldVersion { object });
    }
    let changed = was.creation_timestamp != now.creation_timestamp || (was.is_deleting() && !now.is_deleting());
    changed.then_some(Violation::ChangedForGood { object })
}

fn check_not_shrunk(before: &World, held: &Held) -> Option<Violation> {
    let Object::PersistentVolume(now) = &held.object else { return None };
    let was = before.cluster.volumes().find(|was| was.metadata.uid == now.metadata.uid)?;
    let (from, to) = (bytes(&was.spec.capacity), bytes(&now.spec.capacity));
    (to < from).then(|| Violation::Shrank { volume: now.metadata.name.clone(), from, to })
}

/// The law of every write: what it believed was so, or it did nothing.
pub(crate) fn check_write(before: &World, after: &World, write: &Write, outcome: &Outcome) -> Option<Violation> {
    let kind = write.target().kind;
    let (uid, version) = belief(write);
    let true_still = before.cluster.read(write.target()).is_some_and(|held| {
        let meta = held.object.meta();
        uid.as_ref().is_none_or(|uid| *uid == meta.uid) && version.as_ref().is_none_or(|v| *v == meta.resource_version)
    });
    let touched = before.cluster.version(kind) != after.cluster.version(kind);
    let refused = matches!(outcome, Outcome::Refused(_));
    let wrong_belief = (uid.is_some() || version.is_some()) && !true_still;
    ((wrong_belief && !refused) || (refused && touched)).then(|| {
        let (verb, object) = (write.verb().to_string(), write.target().to_string());
        Violation::WroteOnStale { verb, object, uid, version: version.map(|version| version.0) }
    })
}

fn belief(write: &Write) -> (Option<String>, Option<ResourceVersion>) {
    match write {
        Write::Patch { patch: Patch { only_if, .. }, .. } | Write::Delete { only_if, .. } => {
            (only_if.uid.clone(), only_if.resource_version.clone())
        }
        Write::Bind { uid, .. } => (Some(uid.clone()), None),
        // Whatever came in between: a note may land at any time.
        Write::Note(note) => (Some(note.uid.clone()), None),
        Write::Create { .. } => (None, None),
    }
}
