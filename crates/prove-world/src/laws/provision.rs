//! The laws of making and deleting volumes: each has an owner or an intent at every moment.

use api::{Kind, ObjectRef, ReclaimPolicy, names};
use control::Effect;
use csi::Call;

use crate::laws::{Violation, handle};
use crate::truth::source_of;
use crate::world::World;

pub(super) fn check_volumes(world: &World) -> Option<Violation> {
    let unknown =
        world.truth.volumes.iter().find(|(name, id)| {
            !world.cluster.volumes().any(|object| handle(object) == **id) && !is_intended(world, name)
        });
    unknown.map(|(_, id)| Violation::Unaccounted { volume: id.clone() })
}

pub(super) fn check_create(world: &World, actor: &str, name: &str) -> Option<Violation> {
    if is_intended(world, name) {
        return None;
    }
    let (actor, volume) = (actor.into(), name.into());
    if world.cluster.claims().all(|claim| names::volume_name_for_claim(&claim.metadata.uid) != name) {
        return Some(Violation::CreatesForNobody { actor, volume });
    }
    Some(Violation::CreatesWithoutIntent { actor, volume })
}

pub(super) fn check_delete(world: &World, actor: &str, id: &str) -> Option<Violation> {
    let (actor, volume) = (actor.to_string(), id.to_string());
    if let Some(nodes) = world.truth.attached.get(id) {
        return Some(Violation::DeletesAttached { actor, volume, nodes: nodes.iter().cloned().collect() });
    }
    if let Some(copy) = being_made_from(world, id) {
        return Some(Violation::DeletesSource { actor, volume, copy });
    }
    for object in world.cluster.volumes().filter(|object| handle(object) == id) {
        if let Some(attachment) = world.cluster.attachments().find(|a| a.volume() == Some(&object.metadata.name)) {
            return Some(Violation::DeletesWanted { actor, volume, node: attachment.spec.node_name.clone() });
        }
        if let Some(claim) = world.cluster.claims().find(|c| c.spec.volume_name == object.metadata.name) {
            return Some(Violation::DeletesBound { actor, volume, claim: claim.metadata.key().to_string() });
        }
    }
    None
}

/// Whether the user keeps a volume at the moment at which it is asked for past the cache.
pub(crate) fn note_question(world: &mut World, effect: &Effect) {
    let Effect::Read(target) = effect else { return };
    let named = |name: &str| ObjectRef::cluster(Kind::PersistentVolume, name) == *target;
    let asked = world.cluster.volumes().find(|object| named(&object.metadata.name));
    let Some((id, keeps)) = asked.map(|object| {
        (handle(object).to_string(), object.spec.persistent_volume_reclaim_policy != ReclaimPolicy::Delete)
    }) else {
        return;
    };
    match keeps {
        true => world.kept.insert(id),
        false => world.kept.remove(&id),
    };
}

/// What the user does after the last question comes too late, and nobody can know of it.
pub(super) fn check_kept(world: &World, actor: &str, effect: &Effect) -> Option<Violation> {
    let Effect::Call { call: Call::DeleteVolume(request), .. } = effect else { return None };
    let (actor, volume) = (actor.to_string(), request.volume_id.clone());
    world.kept.contains(&volume).then_some(Violation::DeletesKept { actor, volume })
}

/// The volume that a call under way makes from this one.
fn being_made_from(world: &World, volume: &str) -> Option<String> {
    let begun = world.members.iter().flat_map(|member| (0..member.held()).map(move |at| member.held_intent(at)));
    begun.chain(world.late.iter().map(|late| &late.intent)).find_map(|intent| match &intent.effect {
        Effect::Call { call: Call::CreateVolume(request), .. } if source_of(request) == Some(volume) => {
            Some(request.name.clone())
        }
        Effect::Call { .. }
        | Effect::Read(_)
        | Effect::List { .. }
        | Effect::Token(_)
        | Effect::Write(_)
        | Effect::Host(_)
        | Effect::Nothing => None,
    })
}

/// An intent is on the claim, or in a journal, where it may outlive the claim.
fn is_intended(world: &World, name: &str) -> bool {
    let on_claim = world.cluster.claims().any(|claim| {
        names::volume_name_for_claim(&claim.metadata.uid) == name
            && claim.metadata.has_finalizer(names::PROVISIONING_INTENT)
    });
    on_claim || entries(world).any(|uid| names::volume_name_for_claim(uid) == name)
}

/// The uids of the claims that journals tell of.
pub(crate) fn entries(world: &World) -> impl Iterator<Item = &str> {
    let annotations = world.cluster.leases().flat_map(|lease| lease.metadata.annotations.keys());
    annotations.filter_map(|name| Some(name.strip_prefix(names::JOURNAL_ENTRY)?.rsplit_once('.')?.0))
}
