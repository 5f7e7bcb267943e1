//! What is decided about pods and volumes where one fact of several decides alone.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, Value, names};
use control::host::Usage;
use control::{Action as _, Decision, Narrate as _, Outcome, Refusal, Reply, Rules as _, Secrets, Timestamp, Why};
use prove_lab::object;
use serde_json::json;

use super::plain::{cache, local, volume, volume_view};
use super::world::{DRIVER, World};
use crate::{Action, Key, Memory, MountState, Node, OrphansView, Reason, View, VolumeView};

fn running(spec: Value) -> World {
    let mut world = World::new();
    world.pod_with("a", spec);
    world.settle();
    world
}

fn of_volume(world: &World) -> VolumeView {
    match Node::view(&World::volume_key(), &world.cache, world.local()) {
        View::Volume(view) => *view,
        other => panic!("{other:?}"),
    }
}

fn with_claim(name: &str, other: Value) -> Value {
    let claimed = json!({ "name": "v", "persistentVolumeClaim": { "claimName": name } });
    let mounts = json!([{ "name": "v", "mountPath": "/v" }, { "name": "w", "mountPath": "/w" }]);
    json!({ "volumes": [claimed, other],
        "containers": [{ "name": "c", "image": "i", "command": ["x"], "volumeMounts": mounts }] })
}

// KL-101: the deletion's moment counts for whoever asks late, as an agent that was away.
#[test]
fn kl_101_a_pod_that_is_asked_late_has_what_is_left_of_its_grace() {
    let mut world = running(json!({}));
    world.machine.deaf = true;
    world.delete_pod("a");
    let deleted = world.now.0;
    world.pass(20_000);
    assert_eq!(world.step(&World::pod_key("a")), Some("Ask"));
    let Decision::Wait(until, _) = world.decide(&World::pod_key("a")) else { panic!("waits") };
    assert!(until.0.abs_diff(deleted + 30_000) <= 1_000, "{} s", (until.0 - deleted) / 1_000);
}

#[test]
fn kl_101_a_pod_with_finalizers_is_deleted_before_they_are_waited_for() {
    let mut world = running(json!({}));
    world.patch(Kind::Pod, "a", json!({ "metadata": { "finalizers": ["example.com/hold"] } }));
    world.delete_pod("a");
    let done = world.settle();
    assert_eq!(done.iter().filter(|name| *name == "DeletePod").count(), 1, "{done:?}");
    assert_eq!(world.get(Kind::Pod, "a").unwrap()["metadata"]["deletionGracePeriodSeconds"], 0);
    let why = world.why(&World::pod_key("a"));
    assert!(why.code == "PodHasFinalizers" && why.text.contains("example.com/hold"), "{why}");
}

// KL-27: the cache gets a second to catch up, and then the API is asked again.
#[test]
fn kl_27_a_pod_that_the_cache_still_lacks_is_asked_for_again_after_a_second() {
    let mut world = running(json!({}));
    world.crash("life-2");
    let pod = world.cache.pod(&api::ObjectKey::new("ns", "a")).unwrap();
    world.cache.remove(&api::Object::Pod(pod));
    let key = World::pod_key("a");
    assert_eq!(world.step(&key), Some("ReadPod"));
    let Decision::Wait(until, why) = world.decide(&key) else { panic!("waits") };
    assert_eq!(why.code, "CacheBehind");
    world.now = Timestamp(until.0 - 1);
    assert_eq!(world.step(&key), None);
    world.now = until;
    assert_eq!(world.step(&key), Some("ReadPod"));
}

// What cannot run is given nothing, secrets least of all.
#[test]
fn nothing_is_read_for_a_pod_that_cannot_run() {
    let mut world = World::new();
    world.create(Kind::Secret, json!({ "metadata": { "name": "key" }, "stringData": { "p": "1" } }));
    let mounts = json!([{ "name": "v", "mountPath": "/v" }]);
    world.pod_with(
        "a",
        json!({ "volumes": [{ "name": "v", "secret": { "secretName": "key" } }],
            "containers": [{ "name": "c", "image": "i", "volumeMounts": mounts }] }),
    );
    assert_eq!(world.settle(), ["SetStatus"]);
    assert_eq!(world.status("a")["reason"], "CommandMissing");
}

#[test]
fn what_a_pod_waits_for_is_told_although_its_other_volumes_are_looked_at_again() {
    let mut world = World::new();
    world.create(Kind::ConfigMap, json!({ "metadata": { "name": "app" }, "data": { "k": "1" } }));
    let map = json!({ "name": "w", "configMap": { "name": "app" } });
    world.pod_with("a", with_claim("missing", map.clone()));
    assert!(world.settle().contains(&"ReadSource".into()));
    let why = world.why(&World::pod_key("a"));
    assert!(why.code == "VolumesNotReady" && why.text.contains("claim missing does not exist"), "{why}");

    let mut world = World::new();
    world.create(Kind::ConfigMap, json!({ "metadata": { "name": "app" }, "data": { "k": "1" } }));
    world.pod_with("a", with_claim("data", map));
    world.settle();
    assert_eq!(world.status("a")["phase"], "Running");
    let decided = world.decide(&World::pod_key("a"));
    assert!(matches!(&decided, Decision::Wait(_, why) if why.settled), "nothing is wrong: {decided:?}");
}

#[test]
fn what_a_pod_waits_for_is_told_rather_than_what_an_earlier_one_of_its_name_left() {
    let mut world = running(json!({}));
    // Without its driver the volume of the earlier pod cannot be taken down.
    world.update_local(|local| local.drivers.clear());
    world.force_delete_pod("a");
    world.settle();
    assert_eq!(world.why(&World::pod_key("a")).code, "VolumesNotGone");
    world.pod_with("a", json!({ "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "missing" } }] }));
    world.settle();
    let why = world.why(&World::pod_key("a"));
    assert!(why.code == "VolumesNotReady" && why.text.contains("missing"), "{why}");
}

#[test]
fn an_empty_dir_with_a_limit_of_zero_has_none() {
    let mut world = running(json!({ "volumes": [{ "name": "v", "emptyDir": { "sizeLimit": "0" } }] }));
    world.machine.usage = Usage { bytes_used: 1 << 20, ..Usage::default() };
    world.after_millis(11_000);
    assert_eq!(world.status("a")["phase"], "Running");
    assert!(!world.log.contains(&"MeasureScratch"), "{:?}", world.log);
}

// KL-50: a pod that has the volume keeps it, and what else it needs is done; whoever has not gets nothing.
#[test]
fn kl_50_out_of_reach_is_what_a_pod_has_not_yet() {
    let world = running(json!({}));
    for (recorded, mounted, refused) in
        [(true, true, false), (true, false, true), (false, true, true), (false, false, true)]
    {
        let mut view = of_volume(&world);
        view.out_of_reach = Some("it is far away".into());
        (view.staged, view.staged_by_us) = (MountState::No, false);
        for user in view.users.values_mut() {
            (user.recorded, user.mounted) = (recorded, MountState::from(mounted));
        }
        let decided = Node::decide(world.now, &View::Volume(Box::new(view)), &Memory::default());
        let why = decided.why();
        assert_eq!(why.code == Reason::NodeAffinityMismatch, refused, "{recorded} {mounted}: {why}");
    }
}

// KL-80: what was read for one call is told in no other.
#[test]
fn kl_80_a_secret_is_told_in_the_call_it_was_read_for_alone() {
    let mut world = World::new();
    world.volume_with(|spec| spec["csi"]["nodePublishSecretRef"] = json!({ "name": "key", "namespace": "ns" }));
    world.create(Kind::Secret, json!({ "metadata": { "name": "key" }, "stringData": { "p": "1" } }));
    world.pod("a");
    let key = World::volume_key();
    let purpose = loop {
        match world.decide(&key) {
            Decision::Do(Action::ReadSecret { purpose, .. }, _) => break purpose,
            _other => assert!(world.step(&key).is_some(), "{}", world.why(&key)),
        }
    };
    for (of, next) in [(purpose.as_str(), "Publish"), ("/elsewhere", "ReadSecret")] {
        let secrets = Secrets([("p".into(), "1".into())].into());
        let memory = Memory { secrets: Some((of.into(), secrets)), ..world.engine.memory(&key) };
        match Node::decide(world.now, &Node::view(&key, &world.cache, world.local()), &memory) {
            Decision::Do(action, _) => assert_eq!(action.name(), next, "read for {of}"),
            other => panic!("{other:?}"),
        }
    }
}

// KL-102.
#[test]
fn kl_102_a_volume_is_published_again_after_a_minute_and_not_before() {
    let mut world = World::new();
    world.driver(json!({ "attachRequired": true, "requiresRepublish": true }));
    world.pod("a");
    world.calls();
    let key = World::volume_key();
    let Decision::Wait(until, why) = world.decide(&key) else { panic!("waits") };
    assert!(why.settled && until.0 - world.now.0 <= 60_000);
    world.now = Timestamp(until.0 - 1);
    assert!(matches!(world.decide(&key), Decision::Wait(..)));
    world.now = until;
    assert_eq!(world.step(&key), Some("Publish"));
}

fn staged_for_two_pods() -> World {
    let mut world = World::new();
    ["a", "b"].iter().for_each(|name| world.pod(name));
    while world.log.last().copied() != Some("Stage") {
        world.step(&World::volume_key()).unwrap();
    }
    world
}

// A pod that cannot be served takes its turn like all others.
#[test]
fn kl_43_a_pod_that_cannot_be_served_holds_up_no_other() {
    let (world, key) = (staged_for_two_pods(), World::volume_key());
    let view = Node::view(&key, &world.cache, world.local());
    let next = |memory: &Memory| match Node::decide(world.now, &view, memory) {
        Decision::Do(Action::MakeDir { path }, _) => path,
        other => panic!("{other:?}"),
    };
    let after = |memory: &Memory, path: &str, got: &Outcome| {
        Node::remember(world.now, memory.clone(), &Action::MakeDir { path: path.into() }, got)
    };
    let before = world.engine.memory(&key);
    let first = next(&before);
    for got in [Outcome::Refused(Refusal::Host("full".into())), Outcome::Unknown("no answer".into())] {
        let failed = after(&before, &first, &got);
        let second = next(&failed);
        assert_ne!(first, second, "it is the other pod's turn");
        assert_eq!(next(&after(&failed, &second, &Outcome::Done(Reply::Nothing))), first, "and then its own again");
    }
}

// KL-99: a pod that the API has is looked for again after ten minutes.
#[test]
fn kl_99_a_directory_whose_pod_exists_is_looked_at_again_after_ten_minutes() {
    let view = OrphansView { unsure: ["x".into()].into(), gone: Default::default() };
    let memory = Memory { alive: [("x".into(), Timestamp(1_000))].into(), ..Memory::default() };
    let at = |now| Node::decide(Timestamp(now), &View::Orphans(Box::new(view.clone())), &memory);
    assert!(matches!(at(600_999), Decision::Wait(until, _) if until.0 == 601_000));
    assert!(matches!(at(601_000), Decision::Do(Action::ListPods { .. }, _)));
}

// KL-103: the last of a volume in a pod's own spec is its directory; of others nothing is left by then.
#[test]
fn kl_103_only_the_directory_of_a_pods_own_volume_whose_record_went_is_swept_in_the_end() {
    let metadata = json!({ "name": "n", "annotations": { names::AGENT_INCARNATION: "life-1" } });
    let cache = cache([object(Kind::Node, json!({ "metadata": metadata })), volume(json!({}))]);
    for (ephemeral, removed) in [(false, false), (false, true), (true, false), (true, true)] {
        let view = VolumeView { ephemeral, ..volume_view("d", "h", &cache, &local()) };
        let memory = Memory { removed, ..Memory::default() };
        let decided = Node::decide(Timestamp(1), &View::Volume(Box::new(view)), &memory);
        let swept = matches!(decided, Decision::Do(Action::Sweep { .. }, _));
        assert_eq!(swept, ephemeral && removed, "{decided:?}");
        assert!(swept || decided.why().settled);
    }
}

#[test]
fn kl_103_nothing_is_left_of_a_pods_own_volume() {
    let mut world = World::new();
    world.driver(json!({ "attachRequired": true, "volumeLifecycleModes": ["Ephemeral"] }));
    world.pod_with("a", json!({ "volumes": [{ "name": "v", "csi": { "driver": DRIVER } }] }));
    world.settle();
    assert_eq!(world.status("a")["phase"], "Running");
    // The machine made it for the record.
    let record = world.machine.files.keys().next().unwrap().clone();
    let dir = crate::paths::parent(&record);
    world.machine.dirs.insert(dir);
    world.delete_pod("a");
    world.settle();
    assert!(world.machine.files.is_empty() && world.machine.dirs.is_empty(), "left: {:?}", world.machine.dirs);
}

#[test]
fn what_lasts_is_an_event_and_what_passes_is_told_late() {
    let said = |code: Reason| {
        let why = Why::waiting(code, "x");
        let reason = Node::rest_event(&World::volume_key(), &why).map(|(_, reason)| reason);
        (reason, Node::patience(&why))
    };
    for (code, reason, patience) in [
        (Reason::NodeNotDrained, Some("NodeNotDrained"), 2_000),
        (Reason::ResizeReadOnly, Some("FileSystemResizeFailed"), 2_000),
        (Reason::ResizeNeedsRestart, Some("FileSystemResizeFailed"), 2_000),
        (Reason::ResizeUnsupported, Some("FileSystemResizeFailed"), 2_000),
        (Reason::OrphanedPods, Some("OrphanedPods"), 10_000),
        (Reason::PodInitializing, None, 2_000),
    ] {
        assert_eq!(said(code), (reason, patience), "{code:?}");
    }
    let told: Option<String> = Some("its liveness probe failed".into());
    for told in [told, None] {
        let ask = Action::Ask { name: "p".into(), told };
        assert_eq!(ask.news().failed, Some("FailedKillPod"));
    }
}

// What a process was asked goes with it, and with no other.
#[test]
fn a_forgotten_process_takes_what_its_probes_said_along() {
    let mut here = local();
    let said = crate::Checked { passed: Some(true), ..crate::Checked::default() };
    for name in ["p", "q"] {
        here.checks.insert((name.into(), crate::CheckKind::Liveness), said.clone());
        here.ending.insert(name.into());
    }
    let woken =
        Node::learn(&mut here, &Action::Forget { name: "p".into() }, &Outcome::Done(Reply::Nothing), &cache([]));
    assert_eq!(woken, Vec::<Key>::new());
    let left: Vec<&str> = here.checks.keys().map(|(name, _)| name.as_str()).collect();
    assert_eq!((left, here.ending), (alloc::vec!["q"], ["q".into()].into()));
}

// Reliability 47: what must go and does not is the driver's again; what may stay counts as done.
#[test]
fn a_directory_that_does_not_go_is_asked_of_the_driver_again_if_it_must_go() {
    let after = |must: bool, got: Outcome| {
        let path = || String::from("/r/x");
        let memory = Memory { clean: [path()].into(), ..Memory::default() };
        let after = Node::remember(Timestamp(1), memory, &Action::Sweep { path: path(), must }, &got);
        (after.clean.contains("/r/x"), after.swept.contains("/r/x"))
    };
    let refused = || Outcome::Refused(Refusal::Host("it is not empty".into()));
    for (must, got, clean, swept) in [
        (true, Outcome::Done(Reply::Nothing), true, true),
        (false, Outcome::Done(Reply::Nothing), true, true),
        (true, refused(), false, false),
        (false, refused(), true, true),
        (true, Outcome::Unknown("no answer".into()), true, false),
        (false, Outcome::Unknown("no answer".into()), true, false),
    ] {
        assert_eq!(after(must, got.clone()), (clean, swept), "{must} {got:?}");
    }
}
