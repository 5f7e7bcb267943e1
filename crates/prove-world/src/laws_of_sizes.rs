//! The laws of growing and changing volumes.

use api::{PersistentVolume, PersistentVolumeClaim};
use control::Effect;
use csi::Call;

use crate::laws::{ATTRIBUTES_TRUE, Broken, NEVER_SMALLER, NODE_FIRST, SIZE_ON_RECORD, SIZES_TRUE, handle};
use crate::world::World;
pub(crate) use crate::worlds::resize::bytes;

/// The volume of this handle and its claim.
fn pair<'a>(world: &'a World, id: &str) -> Option<(&'a PersistentVolume, &'a PersistentVolumeClaim)> {
    let volume = world.cluster.volumes().find(|volume| handle(volume) == id)?;
    let claim = world.cluster.claims().find(|claim| claim.spec.volume_name == volume.metadata.name)?;
    Some((volume, claim))
}

/// Before the driver is asked to grow a volume.
pub(crate) fn expand(world: &World, actor: &str, id: &str, wanted: i64) -> Option<Broken> {
    let (_, claim) = pair(world, id)?;
    let recorded = bytes(&claim.status.allocated_resources);
    if recorded < wanted {
        let text = format!("{actor} asks for {wanted} bytes of {id}, and the claim says {recorded}");
        return Some(Broken::new(SIZE_ON_RECORD, text));
    }
    let size = world.truth.sizes.get(id).copied().unwrap_or_default();
    (wanted < size.volume).then(|| {
        Broken::new(NEVER_SMALLER, format!("{actor} asks for {wanted} bytes of {id}, which has {}", size.volume))
    })
}

/// Before the driver is asked for other attributes.
pub(crate) fn modify(world: &World, actor: &str, id: &str, tier: &str) -> Option<Broken> {
    let (_, claim) = pair(world, id)?;
    let target = claim.status.modify_volume_status.as_ref();
    let recorded = target.is_some_and(|status| status.target_volume_attributes_class_name == tier);
    // Done already, and asked for once more by somebody whose view is older.
    let repeated = world.truth.tiers.get(id).is_some_and(|now| now == tier);
    (!recorded && !repeated)
        .then(|| Broken::new(ATTRIBUTES_TRUE, format!("{actor} asks for {tier}, which is not on record")))
}

/// What is said of sizes and attributes is true.
pub(crate) fn sizes(world: &World) -> Option<Broken> {
    for (id, size) in &world.truth.sizes {
        let Some((volume, claim)) = pair(world, id) else { continue };
        let (said, had) = (bytes(&volume.spec.capacity), bytes(&claim.status.capacity));
        if said > size.volume || had > said {
            let text = format!("the claim says {had}, its volume {said}, and there are {}", size.volume);
            return Some(Broken::new(SIZES_TRUE, text));
        }
        if had > size.filesystem {
            let text = format!("the claim says {had} and its filesystem has {}", size.filesystem);
            return Some(Broken::new(NODE_FIRST, text));
        }
        let allocated = bytes(&claim.status.allocated_resources);
        if let Some(late) = still_coming(world, id).find(|late| *late > allocated) {
            let text = format!("{late} bytes may still come and the claim says {allocated}");
            return Some(Broken::new(SIZE_ON_RECORD, text));
        }
        let tier = world.truth.tiers.get(id).map(String::as_str);
        let named = [&claim.status.current_volume_attributes_class_name, &volume.spec.volume_attributes_class_name];
        let under_way = claim.status.modify_volume_status.is_some();
        if let Some(wrong) = named.into_iter().flatten().find(|named| !under_way && Some(named.as_str()) != tier) {
            return Some(Broken::new(ATTRIBUTES_TRUE, format!("{wrong} is named and the volume is {tier:?}")));
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
        Effect::Call { .. } | Effect::Read(_) | Effect::Write(_) | Effect::Host(_) => None,
    })
}
