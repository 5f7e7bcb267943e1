use api::{Kind, Patch, Write, names};
use control::{Action as _, Decision, Effect, Narrate as _, Outcome, Refusal, Reply};
use serde_json::json;

use super::world::*;
use crate::{Action, AttachDetach, Key};

/// A world where the volume is attached to `a`, reported, and its pod just gone.
fn to_be_detached() -> World {
    let mut world = World::attached();
    world.delete(Kind::Pod, "p");
    world.sync();
    world
}

fn act(world: &World, key: &Key) -> Action {
    match world.decide(key) {
        Decision::Do(act, _) => act,
        other => panic!("{other:?}"),
    }
}

// Reliability 28, AD-20, AD-32: the cached in-use list is never enough. The answer to the un-report counts, and one
// that fails detaches nothing.
#[test]
fn a_volume_taken_into_use_meanwhile_is_not_detached() {
    let mut world = to_be_detached();
    let unreport = act(&world, &on("a"));
    world.in_use("a", true); // The agent is faster; the un-report meets a newer node.
    let outcome = world.land(&unreport);
    assert_eq!(outcome, Outcome::Refused(Refusal::Conflict));
    world.hear(&on("a"), &unreport, &outcome);
    world.pass(10_000);
    world.sync();
    assert_eq!(world.code(&on("a")), "InUse");
    // Even an answer that shows the volume in use without a conflict is no proof.
    let mut world = to_be_detached();
    let unreport = act(&world, &on("a"));
    world.land(&unreport);
    world.in_use("a", true);
    let node = world.real_node("a").unwrap();
    world.forget();
    world.hear(&on("a"), &unreport, &Outcome::Done(Reply::Object(node.into())));
    assert!(world.engine.memory(&on("a")).proof.is_none());
}

// AD-32: a node that turns out not to be there uses nothing, whether it is gone from the cache already or is found gone
// when its report is to be taken back.
#[test]
fn ad_32_a_node_that_is_gone_holds_nothing() {
    for seen in [false, true] {
        let mut world = to_be_detached();
        world.in_use("a", true);
        world.sync();
        assert_eq!(world.code(&on("a")), "InUse");
        world.in_use("a", false);
        world.sync();
        let unreport = act(&world, &on("a"));
        world.delete(Kind::Node, "a");
        if !seen {
            let outcome = world.land(&unreport);
            assert_eq!(outcome, Outcome::Refused(Refusal::NotFound));
            world.hear(&on("a"), &unreport, &outcome);
            world.pass(10_000);
        }
        assert_eq!(world.run(&on("a")), ["CheckNode", "DeleteAttachment"], "{seen}");
        assert!(world.real_attachment("a").unwrap().metadata.is_deleting());
    }
}

// AD-32: the cache says that the node is gone, and it is there again, with the volume in use: nothing is detached.
#[test]
fn ad_32_a_node_that_is_only_said_to_be_gone_keeps_its_volume() {
    let mut world = to_be_detached();
    world.delete(Kind::Node, "a");
    world.sync();
    let check = act(&world, &on("a"));
    assert!(matches!(check, Action::CheckNode { .. }), "{check:?}");
    world.node("a");
    world.in_use("a", true);
    let outcome = world.land(&check);
    world.hear(&on("a"), &check, &outcome);
    assert!(world.engine.memory(&on("a")).proof.is_none());
    assert!(world.run(&on("a")).is_empty());
    assert_eq!(world.code(&on("a")), "InUse");
}

// AD-32: a detach that failed leaves it open whether the volume is attached. It is not reported to the node, though the
// attachment says `attached` and a pod wants it again, until it was attached anew; and no pod that is gone is told.
#[test]
fn ad_32_a_detach_that_failed_is_no_attachment_any_more() {
    let mut world = to_be_detached();
    assert_eq!(world.run(&on("a")), ["TakeReportBack", "DeleteAttachment"]);
    let error = json!({ "detachError": { "message": "busy" } });
    world.patch_status(Kind::VolumeAttachment, &attachment_name("a"), error);
    world.sync();
    assert_eq!(world.code(&on("a")), "DetachFailing");
    let told = AttachDetach::event_targets(&on("a"), &world.cache, &Default::default());
    assert!(told.iter().all(|target| target.kind == Kind::PersistentVolume), "{told:?}");
    let left = world.real_attachment("a").unwrap();
    assert!(left.status.attached && left.metadata.is_deleting());
    world.pod("q", "a");
    assert!(world.run(&on("a")).is_empty() && !world.reported("a"));
    assert_eq!(world.code(&on("a")), "AttachmentLeaving");
    world.release("a");
    assert_eq!(world.run(&on("a")), ["CreateAttachment"]);
    assert!(!world.reported("a"));
    world.attach("a");
    assert_eq!(world.run(&on("a")), ["ReportAttached"]);
}

// Reliability 26, AD-4: an answer that did not arrive proves nothing, and what is not proved unused counts as used.
#[test]
fn an_unanswered_unreport_is_no_proof() {
    let mut world = to_be_detached();
    let unreport = act(&world, &on("a"));
    world.land(&unreport);
    world.hear(&on("a"), &unreport, &Outcome::Unknown("no answer".into()));
    world.pass(10_000);
    world.sync();
    assert!(matches!(act(&world, &on("a")), Action::Fence { .. }));
}

// Reliability 27: a healthy node keeps what it uses, however long it takes.
#[test]
fn time_detaches_nothing() {
    let mut world = to_be_detached();
    world.in_use("a", true);
    world.sync();
    for _ in 0..50 {
        world.pass(3_600_000);
        assert!(matches!(world.decide(&on("a")), Decision::Rest(_)));
    }
}

// Reliability 28, AD-15: the deletion names the very object and version that were proved.
#[test]
fn a_deletion_carries_uid_and_version() {
    let mut world = to_be_detached();
    assert_eq!(world.step(&on("a")), Some("TakeReportBack"));
    let attachment = world.real_attachment("a").unwrap();
    match act(&world, &on("a")).effect() {
        Effect::Write(Write::Delete { only_if, .. }) => {
            assert_eq!(only_if, api::Precondition::unchanged(&attachment.metadata));
        }
        other => panic!("{other:?}"),
    }
    // Somebody changed the attachment since: the proof is about another version and counts no more.
    world.patch(Kind::VolumeAttachment, &attachment_name("a"), json!({ "metadata": { "labels": { "x": "y" } } }));
    world.sync();
    assert!(matches!(act(&world, &on("a")), Action::Fence { .. }));
}

// A deletion of an earlier incarnation must not reach an attachment that is reported again.
#[test]
fn a_late_deletion_fails_after_adoption() {
    let mut world = to_be_detached();
    assert_eq!(world.step(&on("a")), Some("TakeReportBack"));
    let late = act(&world, &on("a"));
    assert!(matches!(late, Action::Delete(_)));
    world.forget(); // The controller dies with the deletion on its way, and starts anew.
    world.pod("q", "a");
    assert_eq!(world.run(&on("a")), ["AdoptAttachment", "ReportAttached"]);
    assert_eq!(world.land(&late), Outcome::Refused(Refusal::Conflict));
    assert!(!world.real_attachment("a").unwrap().metadata.is_deleting());
}

// The same within one incarnation, when the answer to the deletion was lost. AD-22: wanted again, it is reported again.
#[test]
fn an_unanswered_deletion_is_fenced_off_when_the_want_returns() {
    let mut world = to_be_detached();
    assert_eq!(world.step(&on("a")), Some("TakeReportBack"));
    let late = act(&world, &on("a"));
    world.hear(&on("a"), &late, &Outcome::Unknown("no answer".into()));
    world.pass(10_000);
    world.pod("q", "a");
    assert_eq!(world.run(&on("a")), ["AdoptAttachment", "ReportAttached"]);
    assert_eq!(world.land(&late), Outcome::Refused(Refusal::Conflict));
}

// The proof is dropped when the want returns.
#[test]
fn a_returning_want_drops_the_proof() {
    let mut world = to_be_detached();
    assert_eq!(world.step(&on("a")), Some("TakeReportBack"));
    assert!(world.engine.memory(&on("a")).proof.is_some());
    world.pod("q", "a");
    world.sync();
    assert_eq!(world.step(&on("a")), Some("AdoptAttachment"));
    assert!(world.engine.memory(&on("a")).proof.is_none());
    world.delete(Kind::Pod, "q");
    world.sync();
    assert!(matches!(act(&world, &on("a")), Action::Fence { .. }));
}

// The same before the attacher has said a word: the old proof must not serve the next detach.
#[test]
fn a_returning_want_drops_the_proof_of_an_unattached_volume() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    world.run(&on("a"));
    world.delete(Kind::Pod, "p");
    world.sync();
    assert_eq!(world.step(&on("a")), Some("FenceNode"));
    world.pod("q", "a");
    assert_eq!(world.run(&on("a")), ["AdoptAttachment"]);
    world.delete(Kind::Pod, "q");
    world.sync();
    assert!(matches!(act(&world, &on("a")), Action::Fence { .. }));
}

// A report of an earlier incarnation must not come through once the volume may be detached.
#[test]
fn a_late_report_fails_after_the_fence() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    world.run(&on("a"));
    world.attach("a");
    world.sync();
    let late = act(&world, &on("a"));
    assert!(matches!(late, Action::Report { .. }));
    world.forget();
    world.delete(Kind::Pod, "p");
    assert_eq!(world.run(&on("a")), ["FenceNode", "DeleteAttachment"]);
    assert_eq!(world.land(&late), Outcome::Refused(Refusal::Conflict));
    assert!(!world.reported("a"));
}

// AD-37: an attachment on its way out is waited for, is not reported, and is made anew.
#[test]
fn a_leaving_attachment_is_made_anew() {
    let mut world = to_be_detached();
    world.run(&on("a"));
    world.pod("q", "a");
    assert!(world.run(&on("a")).is_empty());
    assert_eq!(world.code(&on("a")), "AttachmentLeaving");
    let old = world.real_attachment("a").unwrap().metadata.uid;
    world.release("a");
    assert_eq!(world.run(&on("a")), ["CreateAttachment"]);
    assert_ne!(world.real_attachment("a").unwrap().metadata.uid, old);
}

// Reported and yet on its way out, deleted by hand: the report goes.
#[test]
fn a_leaving_attachment_is_not_reported() {
    let mut world = World::attached();
    world.delete(Kind::VolumeAttachment, &attachment_name("a"));
    assert_eq!(world.run(&on("a")), ["TakeReportBack"]);
    assert_eq!(world.code(&on("a")), "AttachmentLeaving");
    world.release("a");
    assert_eq!(world.run(&on("a")), ["CreateAttachment"]);
}

// Reliability 24 and 34, AD-3: one attachment elsewhere, in whatever state, is one too many.
#[test]
fn a_single_node_volume_waits_for_every_other_attachment() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "b");
    world.run(&on("b"));
    world.pod("q", "a");
    assert!(world.run(&on("a")).is_empty(), "not even attached yet");
    assert_eq!(world.code(&on("a")), "AttachedElsewhere");
    world.attach("b");
    assert!(world.run(&on("a")).is_empty(), "attached");
    world.run(&on("b"));
    world.delete(Kind::Pod, "p");
    world.run(&on("b"));
    assert!(world.real_attachment("b").unwrap().metadata.is_deleting());
    assert!(world.run(&on("a")).is_empty(), "being detached");
    assert_eq!(world.code(&on("a")), "DetachingElsewhere");
    world.release("b");
    assert_eq!(world.run(&on("a")), ["CreateAttachment"]);
}

// Reliability 25: a node that still uses the volume holds it, attachment or not.
#[test]
fn a_single_node_volume_waits_for_a_node_that_uses_it() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.in_use("b", true);
    world.pod("q", "a");
    assert!(world.run(&on("a")).is_empty());
    assert_eq!(world.code(&on("a")), "InUseElsewhere");
    world.in_use("b", false);
    assert_eq!(world.run(&on("a")), ["CreateAttachment"]);
}

#[test]
fn two_waiting_nodes_do_not_block_each_other() {
    let mut world = World::new(&["ReadWriteOnce"]);
    for (pod, node) in [("p", "a"), ("q", "b")] {
        world.pod(pod, node);
        world.in_use(node, true); // Agents say so as soon as they want the volume.
    }
    world.sync();
    assert_eq!(world.code(&on("b")), "WantedElsewhere");
    assert_eq!(world.code(&on("a")), "Attaching");
    // The pod on b runs: it is not merely waiting.
    world.patch_status(Kind::Pod, "q", json!({ "phase": "Running", "containerStatuses": [
        { "name": "main", "image": "none", "imageID": "", "ready": true, "restartCount": 0, "state": { "running": {} } }] }));
    world.sync();
    assert_eq!(world.code(&on("a")), "InUseElsewhere");
    assert_eq!(world.code(&on("b")), "Attaching");
}

// AD-29: a volume for many nodes is attached to many.
#[test]
fn a_shared_volume_is_attached_everywhere() {
    for mode in ["ReadWriteMany", "ReadOnlyMany"] {
        let mut world = World::new(&[mode]);
        world.pod("p", "a");
        world.pod("q", "b");
        assert_eq!(world.run(&on("a")), ["CreateAttachment"]);
        assert_eq!(world.run(&on("b")), ["CreateAttachment"]);
    }
}

// Two attachments of a single-node volume, both said to be attached: only one is reported.
#[test]
fn only_one_of_two_attachments_is_reported() {
    let mut world = World::new(&["ReadWriteOnce"]);
    world.pod("p", "a");
    world.sync();
    let late = act(&world, &on("a"));
    world.delete(Kind::Pod, "p");
    world.pod("q", "b");
    world.run(&on("b"));
    world.attach("b");
    world.pod("p2", "a");
    assert!(matches!(world.land(&late), Outcome::Done(_)));
    world.attach("a");
    assert_eq!(world.run(&on("a")), ["AdoptAttachment", "ReportAttached"]);
    assert!(world.run(&on("b")).is_empty());
    assert_eq!(world.code(&on("b")), "ReportedElsewhere");
}

// Reliability 37: a node that was deleted gives its volumes free, once that is certain.
#[test]
fn a_deleted_node_gives_its_volumes_free() {
    let mut world = to_be_detached();
    world.pod("q", "a");
    world.in_use("a", true);
    world.delete(Kind::Node, "a");
    assert_eq!(world.run(&on("a")), ["CheckNode", "DeleteAttachment"]);
}

#[test]
fn a_node_that_is_back_is_not_taken_for_gone() {
    let mut world = to_be_detached();
    world.in_use("a", true);
    let was = world.store.clone();
    world.delete(Kind::Node, "a");
    world.sync_kind(Kind::Node);
    world.store = was; // The node is there again, the cache does not know yet.
    assert_eq!(world.step(&on("a")), Some("CheckNode"));
    assert!(world.engine.memory(&on("a")).proof.is_none());
    assert!(matches!(world.decide(&on("a")), Decision::Wait(..)), "it does not read again and again");
}

// Every write that touches an existing object carries its precondition.
#[test]
fn every_write_carries_its_precondition() {
    let mut world = to_be_detached();
    for _ in 0..2 {
        match act(&world, &on("a")).effect() {
            Effect::Write(Write::Patch { patch: Patch { only_if, .. }, .. } | Write::Delete { only_if, .. }) => {
                assert!(only_if.uid.is_some() && only_if.resource_version.is_some());
            }
            other => panic!("{other:?}"),
        }
        world.step(&on("a"));
    }
    assert!(!world.reported("a"));
    let adopted = names::ATTACHMENT_ADOPTED;
    assert!(world.real_attachment("a").unwrap().metadata.annotation(adopted).is_none());
}
