use alloc::format;

use api::{Kind, names};
use control::{Decision, Outcome, Reply};
use csi::{Call, Code, ControllerRpc, Response, v1};
use serde_json::json;

use super::world::*;
use crate::{Action, Expansion};

fn controller() -> World {
    World::new(Expansion::Controller)
}

// EX-10: on record, asked for, written on the volume, finished. EX-3: under the names that users look for.
#[test]
fn the_straight_path_without_a_node() {
    let mut world = controller();
    world.request("2Gi");
    let path = ["BeginResize", "ControllerExpandVolume", "SetVolumeSize", "FinishResize"];
    assert_eq!(world.run(), path);
    let claim = world.claim();
    assert_eq!(bytes(&claim.status.capacity), 2 * GI);
    assert_eq!(bytes(&world.volume().spec.capacity), 2 * GI);
    // R14: the node is told that nothing is left for it; sidecars 9.44: what was allocated stays.
    assert_eq!(claim.metadata.annotation(names::NODE_EXPANSION_NOT_REQUIRED), Some("true"));
    assert_eq!(bytes(&claim.status.allocated_resources), 2 * GI);
    assert!(world.progress().is_empty() && world.conditions().is_empty());
    assert_eq!(world.code(), "SizeAsRequested");
    assert_eq!(world.writes, 3, "no more than the Go resizer writes");
}

// EX-3, EX-12: handed over to the node.
#[test]
fn the_straight_path_with_a_node() {
    let mut world = controller();
    world.backend.needs_node = true;
    world.request("2Gi");
    let path = ["BeginResize", "ControllerExpandVolume", "SetVolumeSize", "AwaitNodeResize"];
    assert_eq!(world.run(), path);
    assert_eq!(world.progress(), names::NODE_RESIZE_PENDING);
    assert_eq!(world.conditions(), [names::RESIZING, names::FILE_SYSTEM_RESIZE_PENDING]);
    assert_eq!(bytes(&world.claim().status.capacity), GI);
    assert_eq!(world.code(), "FileSystemResizeRequired");
    world.node();
    assert_eq!(world.run(), ["ForgetPreResizeCapacity"]);
    assert_eq!(bytes(&world.claim().status.capacity), 2 * GI);
    assert_eq!(world.code(), "SizeAsRequested");
}

// R14: the word about an earlier resize goes when the next one begins.
#[test]
fn r14_node_expansion_not_required_is_written_and_taken_back() {
    let mut world = controller();
    world.request("2Gi");
    world.run();
    world.backend.needs_node = true;
    world.request("3Gi");
    world.run();
    assert_eq!(world.claim().metadata.annotation(names::NODE_EXPANSION_NOT_REQUIRED), None);
}

// R9: a record that is there already is neither written again nor changed.
#[test]
fn r9_what_is_on_record_is_not_written_again() {
    let mut world = controller();
    world.request("2Gi");
    world.backend.answers.extend([Outcome::Unknown("lost".into()), Outcome::Unknown("lost".into())]);
    assert_eq!(world.run(), ["BeginResize", "ControllerExpandVolume"]);
    world.pass(100_000);
    assert_eq!(world.run(), ["ControllerExpandVolume"]);
    assert_eq!(world.writes, 1, "an unknown outcome is not written down");
    assert!(matches!(world.look(), Decision::Wait(..)));
    assert_eq!(world.code(), "BackOff");
    assert_eq!(world.conditions(), [names::RESIZING]);
}

// R10: what the driver calls impossible is left alone until the slow time ends, exactly then it is tried again.
#[test]
fn r10_an_infeasible_size_is_tried_again_when_the_slow_time_ends() {
    for code in [Code::InvalidArgument, Code::OutOfRange, Code::NotFound] {
        let mut world = controller();
        world.request("2Gi");
        world.backend.answers.push_back(refused(code));
        assert_eq!(world.run(), ["BeginResize", "ControllerExpandVolume", "ReportResizeError"], "{code:?}");
        assert_eq!(world.progress(), names::CONTROLLER_RESIZE_INFEASIBLE);
        assert_eq!(world.conditions(), [names::RESIZING, names::CONTROLLER_RESIZE_ERROR]);
        let asked_at = world.now;
        world.pass(200_000); // Long after any back-off.
        let Decision::Wait(until, why) = world.look() else { panic!("{:?}", world.look()) };
        assert_eq!((until, why.code), (asked_at.after_millis(300_000), "ResizeInfeasible"));
        world.now = until;
        assert_eq!(world.run(), ["BeginResize", "ControllerExpandVolume", "SetVolumeSize", "FinishResize"]);
    }
}

// R10: a new incarnation has not called it impossible yet, and asks once.
#[test]
fn r10_a_new_life_asks_once_for_an_infeasible_size() {
    let mut world = controller();
    world.request("2Gi");
    world.backend.answers.extend([refused(Code::OutOfRange), refused(Code::OutOfRange)]);
    world.run();
    world.forget();
    assert_eq!(world.run(), ["BeginResize", "ControllerExpandVolume", "ReportResizeError"]);
    world.pass(100_000);
    assert!(world.run().is_empty());
}

// R11: after a refusal because it is in use, nothing is asked while a pod that has not ended uses the claim.
#[test]
fn r11_in_use_blocks_only_while_a_live_pod_uses_it() {
    let mut world = controller();
    let spec = json!({ "containers": [{ "name": "a", "image": "i" }],
        "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "c" } }] });
    world.create(Kind::Pod, json!({ "metadata": { "name": "p" }, "spec": spec }));
    world.request("2Gi");
    world.backend.answers.push_back(refused(Code::FailedPrecondition));
    assert_eq!(world.run(), ["BeginResize", "ControllerExpandVolume", "ReportResizeError"]);
    assert_eq!(world.progress(), names::CONTROLLER_RESIZE_IN_PROGRESS, "the driver may do it later");
    world.pass(1_000_000);
    assert!(world.run().is_empty());
    assert_eq!(world.code(), "VolumeInUse");
    assert!(world.look().why().text.contains("n/p"));
    world.patch_status(Kind::Pod, "p", json!({ "phase": "Succeeded" }));
    assert_eq!(world.run(), ["ControllerExpandVolume", "SetVolumeSize", "FinishResize"]);
}

#[test]
fn r11_the_block_can_be_switched_off() {
    let mut world = controller();
    world.update_local(|local| local.asks_pods = false);
    let spec = json!({ "containers": [{ "name": "a", "image": "i" }],
        "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "c" } }] });
    world.create(Kind::Pod, json!({ "metadata": { "name": "p" }, "spec": spec }));
    world.request("2Gi");
    world.backend.answers.push_back(refused(Code::FailedPrecondition));
    world.run();
    world.pass(1_000_000);
    assert_eq!(world.run(), ["ControllerExpandVolume", "SetVolumeSize", "FinishResize"]);
}

// R12 and reliability 55: losing everything between the two writes leaves the volume ahead, never the claim.
#[test]
fn r12_the_volume_is_written_before_the_claim() {
    let mut world = controller();
    world.request("2Gi");
    world.sync();
    while world.step() != Some("SetVolumeSize") {
        world.sync();
    }
    assert_eq!(bytes(&world.volume().spec.capacity), 2 * GI);
    assert_eq!(bytes(&world.claim().status.capacity), GI);
    world.forget();
    assert_eq!(world.run(), ["AdoptResize", "ControllerExpandVolume", "FinishResize"]);
}

// R13, EX-9, EX-12: set once, with the size the claim had, and removed when the node has done its part.
#[test]
fn r13_the_size_from_before_is_set_once_and_removed() {
    let mut world = controller();
    world.backend.needs_node = true;
    world.request("2Gi");
    world.run();
    assert_eq!(world.volume().metadata.annotation(names::PRE_RESIZE_CAPACITY), Some("1Gi"));
    world.request("3Gi");
    world.run();
    assert_eq!(world.volume().metadata.annotation(names::PRE_RESIZE_CAPACITY), Some("1Gi"));
    world.node();
    world.run();
    // The second resize began when the first was through, and the node had 2Gi by then.
    assert_eq!(world.volume().metadata.annotation(names::PRE_RESIZE_CAPACITY), Some("2Gi"));
    world.node();
    assert_eq!(world.run(), ["ForgetPreResizeCapacity"]);
    assert_eq!(world.volume().metadata.annotation(names::PRE_RESIZE_CAPACITY), None);
}

// Sidecars 9.42 the other way round: other drivers' volumes are left alone.
#[test]
fn r13_volumes_of_other_drivers_keep_their_annotation() {
    let mut world = controller();
    world.annotate_volume(names::PRE_RESIZE_CAPACITY, "1Gi");
    world.update_local(|local| local.driver = "other".into());
    assert!(world.run().is_empty());
    assert_eq!(world.code(), "NotOurs");
}

#[test]
fn r13_nodes_can_be_left_untold() {
    let mut world = controller();
    world.update_local(|local| local.tells_size_before = false);
    world.backend.needs_node = true;
    world.request("2Gi");
    world.run();
    assert_eq!(world.volume().metadata.annotation(names::PRE_RESIZE_CAPACITY), None);
}

// R15: a driver whose nodes expand alone is not called, and two writes are enough.
#[test]
fn r15_trivial_resize_hands_over_to_the_node_at_once() {
    let mut world = World::new(Expansion::NodeOnly);
    world.request("2Gi");
    assert_eq!(world.run(), ["SetVolumeSize", "AwaitNodeResize"]);
    assert!(world.backend.calls.is_empty());
    assert_eq!(world.progress(), names::NODE_RESIZE_PENDING);
    assert_eq!(bytes(&world.claim().status.allocated_resources), 2 * GI);
    world.node();
    world.run();
    assert_eq!(bytes(&world.claim().status.capacity), 2 * GI);
    assert_eq!(world.writes, 3, "the third takes the size from before away");
}

// R15 and reliability 55: the node failed for good and the user asks for less; the volume keeps its size.
#[test]
fn r15_trivial_resize_never_shrinks_a_volume() {
    let mut world = World::new(Expansion::NodeOnly);
    world.request("4Gi");
    world.run();
    world.status(json!({ "allocatedResourceStatuses": { "storage": names::NODE_RESIZE_INFEASIBLE } }));
    world.request("2Gi");
    assert_eq!(world.run(), ["AwaitNodeResize"]);
    assert_eq!(bytes(&world.volume().spec.capacity), 4 * GI);
}

#[test]
fn a_driver_that_cannot_resize_is_not_asked() {
    let mut world = World::new(Expansion::None);
    world.request("2Gi");
    assert!(world.run().is_empty());
    assert_eq!(world.code(), "ResizeUnsupported");
}

// R16, EX-14: the record of progress is written only on the claim that was seen.
#[test]
fn r16_progress_is_refused_on_a_changed_claim() {
    let mut world = controller();
    world.request("2Gi");
    world.sync();
    world.patch(Kind::PersistentVolumeClaim, "c", json!({ "metadata": { "labels": { "a": "b" } } }));
    let Decision::Do(act, _) = world.look() else { panic!() };
    assert_eq!(world.land(&act), Outcome::Refused(control::Refusal::Conflict));
}

// R16, more strictly than upstream: the failure too is written only on the claim that was seen, so that one which arrives
// late says nothing about a later attempt (57). It is told on the claim as it is by then.
#[test]
fn r16_a_failure_is_told_on_a_changed_claim_by_looking_again() {
    let mut world = controller();
    world.request("2Gi");
    world.backend.answers.push_back(refused(Code::OutOfRange));
    world.sync();
    while world.step() != Some("ControllerExpandVolume") {
        world.sync();
    }
    let Decision::Do(report @ Action::ReportGrowth(_), _) = world.look() else { panic!() };
    world.patch(Kind::PersistentVolumeClaim, "c", json!({ "metadata": { "labels": { "a": "b" } } }));
    let outcome = world.land(&report);
    assert_eq!(outcome, Outcome::Refused(control::Refusal::Conflict));
    world.hear(&report, &outcome);
    world.pass(10);
    assert_eq!(world.run(), ["ReportResizeError"]);
    assert_eq!(world.progress(), names::CONTROLLER_RESIZE_INFEASIBLE);
}

// Reliability 57: a word of an earlier incarnation that arrives late is not believed about a call of this one.
#[test]
fn a_late_report_of_an_earlier_life_is_fenced_off() {
    let mut world = controller();
    world.request("6Gi");
    world.backend.answers.push_back(refused(Code::OutOfRange));
    world.sync();
    while world.step() != Some("ControllerExpandVolume") {
        world.sync();
    }
    let Decision::Do(report @ Action::ReportGrowth(_), _) = world.look() else { panic!() };
    world.forget();
    assert_eq!(world.step(), Some("AdoptResize"));
    world.sync();
    let Decision::Do(expand @ Action::Expand { .. }, _) = world.look() else { panic!() };
    world.land(&expand);
    world.hear(&expand, &Outcome::Unknown("lost".into()));
    assert_eq!(world.land(&report), Outcome::Refused(control::Refusal::Conflict));
    world.request("4Gi");
    world.pass(100_000);
    world.run();
    assert_eq!(bytes(&world.claim().status.capacity), 6 * GI);
    assert!(world.claim().metadata.annotation(names::RESIZE_ADOPTED).is_none(), "the mark goes with the work");
}

// R17: while the size under way is infeasible the user may ask for less, and gets it.
#[test]
fn r17_shrinking_the_request_recovers_from_an_infeasible_size() {
    let mut world = controller();
    world.request("100Gi");
    world.backend.answers.push_back(refused(Code::OutOfRange));
    world.run();
    world.request("2Gi"); // At once: the pause was for the other size.
    let path = ["BeginResize", "ControllerExpandVolume", "SetVolumeSize", "FinishResize"];
    assert_eq!(world.run(), path);
    assert_eq!(bytes(&world.claim().status.capacity), 2 * GI);
    assert!(world.conditions().is_empty());
}

// Reliability 57 and 58: what may have taken effect is asked for again, however the request changes, until it is known.
#[test]
fn an_uncertain_size_is_not_given_up() {
    let mut world = controller();
    world.request("4Gi");
    // The first answer is lost, the second proves nothing about it.
    world.backend.answers.extend([Outcome::Unknown("lost".into()), refused(Code::Internal)]);
    world.run();
    world.request("2Gi");
    world.pass(100_000);
    world.run();
    world.pass(100_000);
    world.run();
    assert_eq!(bytes(&world.claim().status.allocated_resources), 4 * GI);
    assert_eq!(bytes(&world.claim().status.capacity), 4 * GI);
}

// R3: a refusal with nothing uncertain before it sets the size free.
#[test]
fn a_refused_size_is_given_up_when_the_request_changes() {
    let mut world = controller();
    world.request("4Gi");
    world.backend.answers.push_back(refused(Code::Internal));
    assert_eq!(world.run(), ["BeginResize", "ControllerExpandVolume", "ReportResizeError"]);
    assert_eq!(world.progress(), names::CONTROLLER_RESIZE_IN_PROGRESS);
    world.request("2Gi");
    world.pass(100_000);
    assert_eq!(world.run(), ["BeginResize", "ControllerExpandVolume", "SetVolumeSize", "FinishResize"]);
    assert_eq!(bytes(&world.claim().status.capacity), 2 * GI);
}

// Sidecars 7.2: which answers are written down, and as what.
#[test]
fn every_code_is_told_as_what_it_is() {
    for code in Code::ALL.into_iter().filter(|code| *code != Code::Ok) {
        let mut world = controller();
        world.request("2Gi");
        let status = csi::Status::from_driver(code, "no");
        let answer = match csi::classify(csi::Method::ControllerExpandVolume, &status) {
            csi::Finality::Done => panic!("{code:?}"),
            csi::Finality::Refused => refused(code),
            csi::Finality::Unknown => Outcome::Unknown(format!("{status}")),
        };
        world.backend.answers.push_back(answer);
        world.run();
        let infeasible = [Code::InvalidArgument, Code::OutOfRange, Code::NotFound].contains(&code);
        let open = [Code::Cancelled, Code::DeadlineExceeded, Code::Unavailable, Code::ResourceExhausted, Code::Aborted];
        assert_eq!(world.progress() == names::CONTROLLER_RESIZE_INFEASIBLE, infeasible, "{code:?}");
        let told = world.conditions().iter().any(|condition| condition == names::CONTROLLER_RESIZE_ERROR);
        assert_eq!(told, !open.contains(&code), "{code:?}");
    }
}

#[test]
fn the_same_refusal_is_written_once() {
    let mut world = controller();
    world.request("2Gi");
    world.backend.answers.extend((0..5).map(|_| refused(Code::Internal)));
    for _ in 0..5 {
        world.run();
        world.pass(1_000_000);
    }
    assert_eq!(world.writes, 2);
}

// Sidecars 9.49: a driver that names no size, more than was asked for, or less.
#[test]
fn the_size_the_driver_names_is_recorded_if_it_makes_sense() {
    let answer = |capacity_bytes| {
        let response = v1::ControllerExpandVolumeResponse { capacity_bytes, node_expansion_required: false };
        Outcome::Done(Reply::Csi(Response::ControllerExpandVolume(response)))
    };
    for (named, recorded) in [(0, 2 * GI), (2 * GI, 2 * GI), (3 * GI, 3 * GI)] {
        let mut world = controller();
        world.request("2Gi");
        world.backend.size = recorded.min(2 * GI);
        world.backend.answers.push_back(answer(named));
        world.sync();
        while world.step() != Some("ControllerExpandVolume") {
            world.sync();
        }
        world.backend.size = recorded;
        world.run();
        assert_eq!(bytes(&world.claim().status.capacity), recorded, "{named}");
    }
    let mut world = controller();
    world.request("2Gi");
    world.backend.answers.push_back(answer(GI));
    world.run();
    assert_eq!(bytes(&world.claim().status.capacity), GI);
    assert!(world.look().why().text.contains("were asked for"), "{}", world.look().why().text);
}

// The node failed for good: the controller has a look before the node tries again, once per slow time.
#[test]
fn a_node_that_failed_for_good_is_given_another_turn_slowly() {
    let mut world = controller();
    world.backend.needs_node = true;
    world.request("2Gi");
    world.run();
    for _ in 0..3 {
        world.status(json!({ "allocatedResourceStatuses": { "storage": names::NODE_RESIZE_INFEASIBLE } }));
        assert_eq!(world.run(), ["ControllerExpandVolume", "AwaitNodeResize"]);
        world.status(json!({ "allocatedResourceStatuses": { "storage": names::NODE_RESIZE_INFEASIBLE } }));
        assert!(world.run().is_empty());
        world.pass(300_000);
    }
}

#[test]
fn what_the_driver_is_told() {
    let mut world = World::with_secret(Expansion::Controller);
    let data = json!({ "password": "Y2FuYXJ5" });
    world.create(Kind::Secret, json!({ "metadata": { "name": "s" }, "data": data }));
    world.update_local(|local| local.capabilities.extend([ControllerRpc::SingleNodeMultiWriter]));
    world.request("1500M");
    assert_eq!(world.run()[1], "ReadSecret");
    let Call::ControllerExpandVolume(request) = &world.backend.calls[0] else { panic!() };
    assert_eq!(request.volume_id, "h");
    assert_eq!(request.secrets["password"], "canary");
    let range = request.capacity_range.as_ref().unwrap();
    assert_eq!((range.required_bytes, range.limit_bytes), (1_500_000_000, 0));
    let capability = request.volume_capability.as_ref().unwrap();
    let mode = v1::volume_capability::access_mode::Mode::SingleNodeMultiWriter;
    assert_eq!(capability.access_mode.as_ref().unwrap().mode, mode as i32);
    let Some(v1::volume_capability::AccessType::Mount(mount)) = &capability.access_type else { panic!() };
    assert_eq!((mount.fs_type.as_str(), mount.mount_flags.as_slice()), ("ext4", &["noatime".into()][..]));
}

// A secret is read for every attempt, never printed, and waited for.
#[test]
fn a_missing_secret_is_named_and_waited_for() {
    let mut world = World::with_secret(Expansion::Controller);
    world.request("2Gi");
    assert_eq!(world.run(), ["BeginResize", "ReadSecret"]);
    assert!(world.backend.calls.is_empty());
    assert!(world.look().why().text.contains("secret n/s does not exist"), "{}", world.look().why().text);
    let data = json!({ "password": "Y2FuYXJ5" });
    world.create(Kind::Secret, json!({ "metadata": { "name": "s" }, "data": data }));
    world.pass(100_000);
    world.backend.answers.push_back(Outcome::Unknown("lost".into()));
    assert_eq!(world.run(), ["ReadSecret", "ControllerExpandVolume"]);
    world.pass(100_000);
    world.step();
    assert!(!format!("{} {:?}", world.remembered(), world.look()).contains("canary"));
    assert_eq!(world.run(), ["ControllerExpandVolume", "SetVolumeSize", "FinishResize"]);
}

// Both sides must name each other.
#[test]
fn a_volume_of_another_claim_is_not_grown() {
    let mut world = controller();
    let spec = json!({ "claimRef": { "uid": "another" } });
    world.patch(Kind::PersistentVolume, "v", json!({ "spec": spec }));
    world.request("2Gi");
    assert!(world.run().is_empty());
    assert_eq!(world.code(), "NotOurs");
}

// The older way, without a record of the size under way.
#[test]
fn without_recovery_only_the_conditions_tell() {
    let mut world = controller();
    world.update_local(|local| local.recovers = false);
    world.backend.needs_node = true;
    world.request("2Gi");
    let path = ["BeginResize", "ControllerExpandVolume", "SetVolumeSize", "AwaitNodeResize"];
    assert_eq!(world.run(), path);
    let status = world.claim().status;
    assert!(status.allocated_resources.is_empty() && status.allocated_resource_statuses.is_empty());
    assert_eq!(world.code(), "FileSystemResizeRequired");
}
