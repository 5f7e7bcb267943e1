use alloc::string::String;
use alloc::vec::Vec;

use api::Kind;
use control::{Action as _, Decision, Effect};
use csi::{Call, NodeRpc};
use serde_json::json;

use prove_lab::Fault;

use super::world::{HANDLE, World, unique};
use crate::{Action, DriverFacts, Paths, Record};

fn calls(done: &[String]) -> Vec<&str> {
    let csi = ["Stage", "Publish", "Unpublish", "Unstage"];
    done.iter().map(String::as_str).filter(|name| csi.contains(name)).collect()
}

/// A world in which pod `a` runs.
fn running() -> World {
    let mut world = World::new();
    world.pod("a");
    world.settle();
    world
}

// KL-38, KL-41, AD-42: in use from before the first step until after the last.
#[test]
fn the_straight_path_there_and_back() {
    let mut world = World::new();
    world.pod("a");
    let done = world.settle();
    let volume: Vec<&str> = done.iter().map(String::as_str).filter(|name| *name != "SetStatus").collect();
    assert_eq!(
        volume,
        ["ReportInUse", "WriteRecord", "MakeDir", "Stage", "MakeDir", "Publish", "Start"],
        "pipeline step 9"
    );
    assert_eq!(world.status("a")["phase"], "Running");
    world.delete_pod("a");
    let done = world.settle();
    assert_eq!(calls(&done), ["Unpublish", "Unstage"]);
    assert!(done.iter().position(|n| n == "Stop") < done.iter().position(|n| n == "Unpublish"), "43");
    assert!(done.iter().position(|n| n == "RemoveRecord") < done.iter().position(|n| n == "ClearInUse"), "30");
    assert!(world.get(Kind::Pod, "a").is_none());
    assert!(world.machine.files.is_empty() && world.machine.processes.is_empty());
    assert!(world.machine.dirs.is_empty(), "left behind: {:?}", world.machine.dirs);
    assert!(!world.node_lists("volumesInUse"));
}

// Reliability 114, 109.
#[test]
fn a_restart_at_rest_does_nothing() {
    let mut world = running();
    world.crash("life-2");
    assert_eq!(world.settle(), Vec::<String>::new());
}

// Reliability 29.
// KL-40, AD-43.
#[test]
fn nothing_is_staged_until_the_api_itself_says_attached() {
    let mut world = World::new();
    world.pod("a");
    world.patch_status(Kind::Node, "n", json!({ "volumesInUse": ["other"] }));
    // The controller un-reports; our cache does not see it, and our own write's answer does.
    world.freeze();
    world.report_attached(false);
    let done = world.settle();
    assert_eq!(calls(&done), Vec::<&str>::new());
    assert_eq!(world.why(&World::volume_key()).code, "NotReportedAttached");
    world.thaw();
    assert_eq!(calls(&world.settle()), Vec::<&str>::new());
    world.report_attached(true);
    assert_eq!(calls(&world.settle()), ["Stage", "Publish"]);
}

// Reliability 29: proof is of this incarnation of the agent.
// KL-58.
#[test]
fn another_life_on_the_node_object_stops_everything() {
    let mut world = World::new();
    world.patch(Kind::Node, "n", json!({ "metadata": { "annotations": { api::names::AGENT_INCARNATION: "other" } } }));
    world.pod("a");
    assert_eq!(calls(&world.settle()), Vec::<&str>::new());
    assert_eq!(world.why(&World::volume_key()).code, "NodeNotIntroduced");
}

// Reliability 29: a fresh read that shows another incarnation is no proof, even if the cache still shows ours.
#[test]
fn a_fresh_read_of_another_life_is_no_proof() {
    let mut world = World::new();
    world.pod("a");
    let key = World::volume_key();
    assert_eq!(world.step(&key), Some("ReportInUse"));
    world.forget();
    world.freeze();
    let other = json!({ "metadata": { "annotations": { api::names::AGENT_INCARNATION: "other" } } });
    world.patch(Kind::Node, "n", other);
    assert_eq!(world.step(&key), Some("ReadNode"));
    assert_eq!(world.step(&key), None);
}

#[test]
fn forgotten_proof_is_asked_for_again() {
    let mut world = World::new();
    world.pod("a");
    let key = World::volume_key();
    assert_eq!(world.step(&key), Some("ReportInUse"));
    world.forget();
    assert_eq!(world.step(&key), Some("ReadNode"));
    assert_eq!(world.step(&key), Some("WriteRecord"));
    world.forget();
    assert_eq!(world.step(&key), Some("ReadNode"));
    assert_eq!(world.step(&key), Some("MakeDir"));
    assert_eq!(world.step(&key), Some("Stage"));
    world.forget();
    assert_eq!(world.step(&key), Some("MakeDir"), "staged volumes need no proof");
    assert_eq!(world.step(&key), Some("Publish"));
}

// The staging directory goes although the machine did not say so, and then another pod wants the volume.
#[test]
fn a_directory_that_may_be_gone_is_made_again() {
    let mut world = running();
    let key = World::volume_key();
    world.delete_pod("a");
    world.faults.insert("Unstage", Fault::RequestLost);
    while world.faults.contains_key("Unstage") {
        for key in [World::pod_key("a"), key.clone()] {
            world.step(&key);
        }
    }
    world.pass(120_000);
    assert_eq!(world.step(&key), Some("Unstage"));
    world.faults.insert("Sweep", Fault::AnswerLost);
    assert_eq!(world.step(&key), Some("Sweep"));
    world.pod("b");
    world.settle();
    assert_eq!(world.status("b")["phase"], "Running");
}

// Reliability 45, 49: the machine did not say whether it wrote the record, and then nobody wants the volume any more.
#[test]
fn a_record_that_may_have_been_written_is_removed() {
    for fault in [Fault::AnswerLost, Fault::RequestLost] {
        let mut world = World::new();
        world.pod("a");
        let key = World::volume_key();
        assert_eq!(world.step(&key), Some("ReportInUse"));
        world.faults.insert("WriteRecord", fault);
        assert_eq!(world.step(&key), Some("WriteRecord"));
        world.force_delete_pod("a");
        let done = world.settle();
        assert_eq!(calls(&done), Vec::<&str>::new(), "nothing was mounted on the strength of it");
        assert!(world.machine.files.is_empty(), "{done:?}");
        assert!(!world.node_lists("volumesInUse"));
    }
}

// Pipeline step 9b, reliability 30: a clearing given up on must not land after the volume is mounted again.
#[test]
fn an_unanswered_clearing_is_settled_before_staging() {
    let mut world = running();
    world.delete_pod("a");
    world.faults.insert("ClearInUse", Fault::Late);
    let key = World::volume_key();
    while world.late.is_empty() {
        for key in [World::pod_key("a"), key.clone()] {
            world.step(&key);
        }
    }
    world.pod("b");
    world.forget();
    world.settle();
    assert_eq!(world.status("b")["phase"], "Running");
    world.land_late();
    assert!(world.node_lists("volumesInUse"));
}

// Reliability 30 with a dead incarnation's write.
#[test]
fn a_clearing_of_an_earlier_life_fails() {
    let mut world = running();
    world.delete_pod("a");
    world.faults.insert("ClearInUse", Fault::Late);
    while world.late.is_empty() {
        for key in [World::pod_key("a"), World::volume_key()] {
            world.step(&key);
        }
    }
    world.crash("life-2");
    world.pod("b");
    world.settle();
    world.land_late();
    assert!(world.node_lists("volumesInUse"));
}

// Reliability 47.
// KL-44, KL-47, KL-48.
#[test]
fn an_unanswered_stage_is_unstaged_and_a_refused_one_is_not() {
    for (fault, expected) in [
        (Fault::AnswerLost, ["Stage", "Unstage"].as_slice()),
        (Fault::RequestLost, ["Stage", "Unstage"].as_slice()),
        (Fault::Refused, ["Stage"].as_slice()),
    ] {
        let mut world = World::new();
        world.pod("a");
        let key = World::volume_key();
        world.faults.insert("Stage", fault);
        while world.log.last().copied() != Some("Stage") {
            world.step(&key);
        }
        world.delete_pod("a");
        world.settle();
        assert_eq!(calls(&world.log.iter().map(|name| String::from(*name)).collect::<Vec<_>>()), expected);
        assert!(world.machine.staged.is_empty() && !world.node_lists("volumesInUse"));
    }
}

// Reliability 39, 47: after a restart every publish in the record is uncertain.
// KL-56, AD-45: what the record names stays reported until it is taken down.
#[test]
fn after_a_restart_the_record_says_what_to_take_down() {
    let mut world = World::new();
    world.pod("a");
    let key = World::volume_key();
    world.faults.insert("Publish", Fault::RequestLost);
    while world.log.last().copied() != Some("Publish") {
        world.step(&key);
    }
    world.crash("life-2");
    world.force_delete_pod("a");
    assert!(world.node_lists("volumesInUse"));
    assert_eq!(calls(&world.settle()), ["Unpublish", "Unstage"]); // 49 as well: no pod object is left.
}

// KL-59.
#[test]
fn a_publish_in_the_record_but_not_mounted_is_repeated() {
    let mut world = World::new();
    world.pod_with("a", json!({ "restartPolicy": "Always" }));
    world.settle();
    // The machine was switched off and on: nothing runs, and the driver keeps only what it staged.
    world.machine.published.clear();
    world.machine.processes.clear();
    world.crash("life-2");
    // An unstage begun by the earlier incarnation could still be under way, so the driver is asked to stage again
    // first.
    assert_eq!(calls(&world.settle()), ["Stage", "Publish"]);
}

// Reliability 30: the list is put right whoever emptied it.
#[test]
fn a_mounted_volume_is_reported_again_if_the_report_is_lost() {
    let mut world = running();
    world.patch_status(Kind::Node, "n", json!({ "volumesInUse": null }));
    assert_eq!(world.settle(), ["ReportInUse"]);
}

// Reliability 48.
#[test]
fn an_unreadable_record_means_in_use() {
    let mut world = running();
    let path = Paths::of("/r", super::world::DRIVER, HANDLE).record;
    world.machine.files.insert(path, b"{\"torn".to_vec());
    world.crash("life-2");
    world.update_local(|local| {
        local.sealed.insert("nobody".into());
    });
    let view = world.why(&World::volume_key());
    assert_eq!(view.code, "RecordUnreadable");
    assert!(matches!(world.decide(&World::volume_key()), Decision::Rest(_)));
    assert!(world.node_lists("volumesInUse"));
}

// KL-57: never by force.
#[test]
fn a_mount_without_a_record_is_left_alone_and_stays_reported() {
    let mut world = running();
    world.exit("a", 0);
    world.update_local(|local| local.records.clear());
    world.patch_status(Kind::Pod, "a", json!({ "phase": "Succeeded" }));
    assert_eq!(world.why(&World::volume_key()).code, "MountedWithoutRecord");
}

// Reliability 42: neither a claim being deleted nor an unbound one takes a running pod's mount away.
// KL-28.
#[test]
fn a_running_pod_keeps_its_volume_whatever_becomes_of_the_claim() {
    let mut world = running();
    let target = api::ObjectRef::namespaced(Kind::PersistentVolumeClaim, "ns", "data");
    world.write(&api::Write::Delete { target, only_if: Default::default(), grace_seconds: None }).unwrap();
    assert_eq!(calls(&world.settle()), Vec::<&str>::new());
    let mut gone = World::new();
    gone.pod("a");
    gone.settle();
    let claim = gone.cache.claim(&api::ObjectKey::new("ns", "data")).unwrap().clone();
    gone.cache.remove(&api::PersistentVolumeClaim { metadata: claim.metadata.clone(), ..Default::default() }.into());
    assert_eq!(calls(&gone.settle()), Vec::<&str>::new());
}

// KL-42, KL-52: nothing is unstaged while the record names a pod.
#[test]
fn two_pods_share_the_staging_and_the_last_one_takes_it_away() {
    let mut world = running();
    world.pod("b");
    assert_eq!(calls(&world.settle()), ["Publish"]);
    world.delete_pod("a");
    assert_eq!(calls(&world.settle()), ["Unpublish"]);
    world.delete_pod("b");
    assert_eq!(calls(&world.settle()), ["Unpublish", "Unstage"]);
}

// Reliability 44, KL-49.
#[test]
fn a_one_pod_volume_waits_for_the_first_pod_to_go() {
    let mut world = World::new();
    let spec = json!({ "spec": { "accessModes": ["ReadWriteOncePod"] } });
    world.patch(Kind::PersistentVolume, "pv1", spec);
    world.pod("a");
    world.settle();
    world.pod("b");
    assert_eq!(calls(&world.settle()), Vec::<&str>::new());
    assert_eq!(world.why(&World::volume_key()).code, "UsedByAnotherPod");
    world.delete_pod("a");
    assert_eq!(calls(&world.settle()), ["Unpublish", "Publish"]);
}

// KL-65.
#[test]
fn a_driver_that_does_not_stage_is_only_asked_to_publish() {
    let mut world = World::new();
    world.update_local(|local| {
        local.drivers.values_mut().for_each(|driver| *driver = DriverFacts::new([NodeRpc::ExpandVolume]));
    });
    world.pod("a");
    let key = World::volume_key();
    while world.log.last().copied() != Some("MakeDir") {
        world.step(&key);
    }
    let Decision::Do(Action::Publish(publishing), _) = world.decide(&key) else { panic!("publishes") };
    assert_eq!(publishing.staging, None);
    assert_eq!(world.local().records[&unique()].staging_path, None);
}

// KL-66, KL-71, KL-73, KL-78.
#[test]
fn the_driver_is_told_what_the_objects_say() {
    let mut world = World::new();
    world.create(
        Kind::CSIDriver,
        json!({ "metadata": { "name": super::world::DRIVER },
        "spec": { "attachRequired": true, "podInfoOnMount": true } }),
    );
    let volumes = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "data", "readOnly": true } }]);
    world.pod_with("a", json!({ "volumes": volumes, "serviceAccountName": "worker" }));
    let key = World::volume_key();
    let publish = loop {
        match world.decide(&key) {
            Decision::Do(action @ Action::Publish(_), _) => break action,
            Decision::Do(..) => drop(world.step(&key)),
            other => panic!("{other:?}"),
        }
    };
    let Effect::Call { call: Call::NodePublishVolume(request), .. } = publish.effect() else { panic!("a call") };
    assert!(request.readonly);
    assert_eq!(request.volume_id, HANDLE);
    assert_eq!(request.publish_context["lun"], "3");
    assert_eq!(request.volume_context["made"], "here");
    assert_eq!(request.volume_context["csi.storage.k8s.io/pod.name"], "a");
    assert_eq!(request.volume_context["csi.storage.k8s.io/serviceAccount.name"], "worker");
    assert_eq!(request.staging_target_path, world.local().records[&unique()].staging_path.clone().unwrap());
    let capability = request.volume_capability.unwrap();
    assert_eq!(capability.access_mode.unwrap().mode, 1);
    let Some(csi::v1::volume_capability::AccessType::Mount(mount)) = capability.access_type else { panic!("mount") };
    assert_eq!((mount.fs_type.as_str(), mount.mount_flags), ("ext4", alloc::vec!["noatime".into()]));
}

#[test]
fn a_missing_driver_is_named() {
    let mut world = World::new();
    world.update_local(|local| local.drivers.clear());
    world.pod("a");
    world.settle();
    let why = world.why(&World::volume_key());
    assert_eq!(why.code, "DriverNotRegistered");
    assert!(why.text.contains("d.example") && why.text.contains("pv1"), "{why}");
}

// KL-67, KL-68.
#[test]
fn the_record_is_removed_only_after_the_last_unstage() {
    let mut world = running();
    world.delete_pod("a");
    world.faults.insert("Unstage", Fault::RequestLost);
    let done = world.settle();
    assert_eq!(calls(&done), ["Unpublish", "Unstage", "Unstage"]);
    assert!(done.iter().rposition(|n| n == "Unstage") < done.iter().position(|n| n == "RemoveRecord"), "45");
    assert_eq!(world.local().records.get(&unique()), None::<&Record>);
}

// KL-33.
#[test]
fn what_goes_wrong_with_a_volume_is_said_about_the_pods_that_use_it() {
    let world = running();
    let concerned = <crate::Node as control::Narrate>::event_targets(&World::volume_key(), &world.cache, world.local());
    assert_eq!(concerned, [api::ObjectRef::namespaced(Kind::Pod, "ns", "a")]);
    let nobody = <crate::Node as control::Narrate>::event_targets(
        &World::volume_key(),
        &World::new().cache,
        &world_without_pods(),
    );
    assert_eq!(nobody[0].kind, Kind::PersistentVolume);
}

fn world_without_pods() -> crate::Local {
    World::new().local().clone()
}
