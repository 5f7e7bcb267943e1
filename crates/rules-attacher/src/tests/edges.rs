//! Edges that the tables and lives do not come to.

use alloc::format;

use api::Kind;
use control::{Decision, Rules, Timestamp};
use serde_json::json;

use super::world::{World, on};
use crate::{Action, Attacher, ListingView, Memory, PublishContext, View};

// A14: what was never compared is compared at once, also by a clock that has just begun.
#[test]
fn a_driver_that_was_never_listed_is_not_waited_for() {
    let driver = "d".into();
    let view = View::Listing(ListingView::On { driver, token: "".into(), max_entries: 0, every_millis: 60_000 });
    let first = Attacher::decide(Timestamp(1), &view, &Memory::default());
    assert!(matches!(first, Decision::Do(Action::List { .. }, _)), "{}", first.why().text);
    let listed = Memory { listed_at: Timestamp(1), ..Memory::default() };
    for (now, waits) in [(60_000, true), (60_001, false)] {
        let decision = Attacher::decide(Timestamp(now), &view, &listed);
        assert_eq!(matches!(decision, Decision::Wait(Timestamp(60_001), _)), waits, "{now}");
    }
}

// An attachment that names us for a volume of another CSI driver: its handle means nothing to ours.
#[test]
fn a_volume_of_another_driver_is_not_published() {
    let mut world = World::with(&["ReadWriteOnce"], json!({ "driver": "other" }));
    world.want("a");
    world.sync();
    assert_eq!(world.run(&on("a")), ["ReportAttachError"]);
    assert!(world.driver.calls.is_empty());
    let name = super::world::attachment_name("a");
    let told = world.json(Kind::VolumeAttachment, &name)["status"]["attachError"]["message"].clone();
    assert!(told.as_str().unwrap().contains("does not"), "{told}");
}

// What a driver says for the node's use may hold secrets: a log shows how much it was.
#[test]
fn a_publish_context_is_not_printed() {
    let context = PublishContext([("key".into(), "secret".into())].into());
    assert_eq!(format!("{context:?}"), "1 entries");
}
