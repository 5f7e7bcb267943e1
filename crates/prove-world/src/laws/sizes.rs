//! The laws of growing and changing volumes.

use api::{PersistentVolume, PersistentVolumeClaim};
use control::Effect;
use csi::Call;

use crate::laws::{Violation, handle};
use crate::world::World;
pub(crate) use crate::worlds::resize::bytes;

/// The volume of this handle and its claim.
fn pair<'a>(world: &'a World, id: &str) -> Option<(&'a PersistentVolume, &'a PersistentVolumeClaim)> {
    let volume = world.cluster.volumes().find(|volume| handle(volume) == id)?;
    let claim = world.cluster.claims().find(|claim| claim.spec.volume_name == volume.metadata.name)?;
    Some((volume, claim))
}

/// Before the driver is asked to grow a volume.
pub(super) fn check_expand(world: &World, actor: &str, id: &str, asked: i64) -> Option<Violation> {
    let (_, claim) = pair(world, id)?;
    let recorded = bytes(&claim.status.allocated_resources);
    let (actor, volume) = (actor.to_string(), id.to_string());
    if recorded < asked {
        return Some(Violation::AsksUnrecorded { actor, volume, asked, recorded });
    }
    let has = world.truth.sizes.get(id).copied().unwrap_or_default().volume;
    (asked < has).then_some(Violation::AsksForLess { actor, volume, asked, has })
}

/// Before the driver is asked for other attributes.
pub(super) fn check_modify(world: &World, actor: &str, id: &str, tier: &str) -> Option<Violation> {
    let (_, claim) = pair(world, id)?;
    let target = claim.status.modify_volume_status.as_ref();
    let recorded = target.is_some_and(|status| status.target_volume_attributes_class_name == tier);
    // Done already, and asked for once more by a controller whose view is older.
    let repeated = world.truth.tiers.get(id).is_some_and(|now| now == tier);
    (!recorded && !repeated).then(|| Violation::AsksUnrecordedTier { actor: actor.into(), tier: tier.into() })
}

/// What claim and volume say of sizes is true.
pub(super) fn check_sizes(world: &World) -> Option<Violation> {
    for (id, size) in &world.truth.sizes {
        let Some((object, claim)) = pair(world, id) else { continue };
        let (volume, had) = (bytes(&object.spec.capacity), bytes(&claim.status.capacity));
        if volume > size.volume || had > volume {
            return Some(Violation::SaysTooMuch { claim: had, volume, there: size.volume });
        }
        if had > size.filesystem {
            return Some(Violation::FilesystemSmaller { claim: had, filesystem: size.filesystem });
        }
        let recorded = bytes(&claim.status.allocated_resources);
        if let Some(late) = still_coming(world, id).find(|late| *late > recorded) {
            return Some(Violation::MayStillCome { late, recorded });
        }
    }
    None
}

/// What claim and volume say of attributes is true.
pub(super) fn check_attributes(world: &World) -> Option<Violation> {
    for (id, tier) in &world.truth.tiers {
        let Some((volume, claim)) = pair(world, id) else { continue };
        if claim.status.modify_volume_status.is_some() {
            continue;
        }
        let named = [&claim.status.current_volume_attributes_class_name, &volume.spec.volume_attributes_class_name];
        if let Some(wrong) = named.into_iter().flatten().find(|named| *named != tier) {
            return Some(Violation::NamesTier { named: wrong.clone(), tier: tier.clone() });
        }
    }
    None
}

/// Sizes of calls that were given up and may still take effect.
fn still_coming<'a>(world: &'a World, id: &'a str) -> impl Iterator<Item = i64> + 'a {
    world.late.iter().filter_map(move |late| match &late.intent.effect {
        Effect::Call { call: Call::ControllerExpandVolume(request), .. } if request.volume_id == id => {
            request.capacity_range.as_ref().map(|range| range.required_bytes)
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
