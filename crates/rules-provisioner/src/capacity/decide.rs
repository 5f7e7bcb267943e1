use alloc::format;

use api::{CSIStorageCapacity, Quantity, StorageClass};
use control::{Decision, Timestamp, Why};

use super::memory::Said;
use super::{CapacityAction, CapacityMemory, CapacityReason, CapacityView};
use crate::{CapacitySettings, Local, Segments};

/// What was said this short a time ago is not asked for again yet.
const FRESH_MILLIS: u64 = 1_000;
/// A look this short a time after an answer is about that answer; a later one has been asked for by a change.
const ANSWER_MILLIS: u64 = 50;

pub(super) fn decide(
    now: Timestamp,
    view: &CapacityView,
    memory: &CapacityMemory,
) -> Decision<CapacityAction, CapacityReason> {
    match view {
        CapacityView::Unwanted => {
            Decision::Rest(Why::settled(CapacityReason::CapacityUnwanted, "nothing is published about it"))
        }
        CapacityView::InPlace => {
            Decision::Rest(Why::settled(CapacityReason::CapacityPublished, "it says what is to be said"))
        }
        CapacityView::Stray(object) => Decision::Do(
            CapacityAction::Withdraw(object.clone()),
            Why::waiting(
                CapacityReason::WithdrawingCapacity,
                "its class or place is gone, or another object says the same",
            ),
        ),
        CapacityView::Wanted { class, segments, published, local } => match &local.settings.capacity {
            None => Decision::Rest(Why::settled(CapacityReason::CapacityUnwanted, "capacities are not published")),
            Some(settings) => wanted(now, class, segments, published.as_deref(), local, settings, memory),
        },
    }
}

#[allow(clippy::too_many_arguments, reason = "the parts of one view")]
fn wanted(
    now: Timestamp,
    class: &StorageClass,
    segments: &Segments,
    published: Option<&CSIStorageCapacity>,
    local: &Local,
    settings: &CapacitySettings,
    memory: &CapacityMemory,
) -> Decision<CapacityAction, CapacityReason> {
    let name = &class.metadata.name;
    let poll_millis = settings.poll_millis.max(FRESH_MILLIS);
    // Whoever is looked at has been woken by something that may have changed what there is.
    let Some(said) = memory.said.filter(|said| now < said.at.after_millis(FRESH_MILLIS)) else {
        let action = CapacityAction::Ask {
            driver: local.driver.clone(),
            parameters: class.parameters.clone(),
            segments: segments.clone(),
        };
        let text = format!("asking driver {} what there is for class {name}", local.driver);
        return Decision::Do(action, Why::waiting(CapacityReason::AskingForCapacity, text));
    };
    let why = Why::waiting(CapacityReason::PublishingCapacity, format!("publishing what there is for class {name}"));
    match published {
        None => {
            let action = CapacityAction::Publish {
                local: local.clone(),
                class: name.clone(),
                segments: segments.clone(),
                available: said.available,
                largest: said.largest,
            };
            Decision::Do(action, why)
        }
        Some(object) if !is_said(object, said, settings) => {
            let action = CapacityAction::Update {
                object: object.clone().into(),
                owner: settings.owner.clone(),
                available: said.available,
                largest: said.largest,
            };
            Decision::Do(action, why)
        }
        Some(_) => {
            // A change that came while the driver was asked looks like the answer itself. So it is asked again soon, and
            // less and less often for as long as it says the same.
            let changed = now >= said.at.after_millis(ANSWER_MILLIS);
            let pause = if changed { FRESH_MILLIS } else { (FRESH_MILLIS << said.times.min(20)).min(poll_millis) };
            let why =
                Why::settled(CapacityReason::CapacityPublished, format!("what there is for class {name} is published"));
            Decision::Wait(said.at.after_millis(pause), why)
        }
    }
}

/// The object says what the driver said, and belongs to whom it should.
fn is_said(object: &CSIStorageCapacity, said: Said, settings: &CapacitySettings) -> bool {
    let bytes = |quantity: &Option<Quantity>| quantity.as_ref().and_then(|quantity| quantity.bytes().ok());
    let owned = settings.owner.as_ref().is_none_or(|owner| object.metadata.owner_references.contains(owner));
    bytes(&object.capacity) == Some(said.available) && bytes(&object.maximum_volume_size) == said.largest && owned
}
