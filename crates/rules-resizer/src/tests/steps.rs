//! What stays true between the steps of a growth: EX-4, EX-13.

use api::names;
use control::{Decision, Outcome};
use csi::Code;
use serde_json::json;

use super::world::*;
use crate::{Action, Expansion};

fn controller() -> World {
    World::new(Expansion::Controller)
}

// EX-4: nobody else's condition is touched, and one that holds already keeps the time at which it came true.
#[test]
fn ex_4_conditions_are_merged() {
    let mut world = controller();
    let other = json!({ "type": "Unused", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" });
    world.status(json!({ "conditions": [other] }));
    world.request("2Gi");
    world.backend.answers.push_back(refused(Code::OutOfRange));
    world.run();
    assert_eq!(world.conditions(), ["Unused", names::RESIZING, names::CONTROLLER_RESIZE_ERROR]);
    let since = |world: &World, of: &str| {
        let told = world.claim().status.conditions.into_iter().find(|told| told.r#type == of);
        told.and_then(|told| told.last_transition_time).unwrap()
    };
    let (resizing, failed) = (since(&world, names::RESIZING), since(&world, names::CONTROLLER_RESIZE_ERROR));
    world.pass(300_000);
    world.backend.answers.push_back(refused(Code::OutOfRange));
    assert_eq!(world.run(), ["BeginResize", "ControllerExpandVolume", "ReportResizeError"]);
    assert_eq!(since(&world, names::RESIZING), resizing, "it has been resizing all the time");
    assert_ne!(since(&world, names::CONTROLLER_RESIZE_ERROR), failed, "it was taken back in between");
    world.pass(300_000);
    world.run();
    assert_eq!(world.conditions(), ["Unused"]);
}

// EX-13: the volume could not be written; the claim still says what is under way, and the same size is tried again.
#[test]
fn ex_13_a_volume_that_cannot_be_written_keeps_the_resize_open() {
    let mut world = controller();
    world.request("2Gi");
    world.sync();
    while world.step() != Some("ControllerExpandVolume") {
        world.sync();
    }
    let Decision::Do(set @ Action::SetSize { .. }, _) = world.look() else { panic!("{:?}", world.look()) };
    world.hear(&set, &Outcome::Unknown("no answer".into()));
    assert_eq!(world.progress(), names::CONTROLLER_RESIZE_IN_PROGRESS);
    assert_eq!(bytes(&world.claim().status.allocated_resources), 2 * GI);
    world.pass(100_000);
    assert_eq!(world.run(), ["SetVolumeSize", "FinishResize"]);
    assert_eq!(bytes(&world.claim().status.capacity), 2 * GI);
}
