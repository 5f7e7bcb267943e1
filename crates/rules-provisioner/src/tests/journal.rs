//! Intents in the journal: what differs from intents on the claims.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, ObjectKey, names};
use control::{Action as _, Decision, Effect, EventType, Narrate, Rules};
use csi::Code;
use serde_json::json;

use super::driver::Mood;
use super::sources::{cloning, restoring, with_snapshot, with_source};
use super::world::{CLAIM, VOLUME, World};
use crate::{Intent, IntentLocation, Key, Provisioner, Reason};

const JOURNAL: &str = "longshore-journal-d";
/// An entry that nobody can read.
const STUCK: &str = "intent.longshore.dev/a.1";

fn asked() -> World {
    World::asked().in_journal()
}

fn apply(world: &mut World, action: &crate::Action) {
    let Effect::Write(write) = action.effect() else { panic!("{action:?} is no write") };
    world.write(&write).unwrap();
}

/// What the rules would do now, which must be something.
fn next(world: &World, key: &Key) -> crate::Action {
    match world.decide(key) {
        Decision::Do(action, _) => action,
        other => panic!("{other:?}"),
    }
}

// Reliability 6: the same steps, and the claim is never touched.
#[test]
fn a_volume_is_made_without_a_word_on_the_claim() {
    let mut world = asked();
    let (name, before) = (world.pv_name(), world.claim("data"));
    world.run();
    let steps = ["RecordIntent(n/data)", &format!("CreateVolume({name})"), "CreatePv(n/data)", "DropIntent(n/data)"];
    assert_eq!(world.log, steps);
    assert_eq!(world.claim("data"), before);
    assert!(world.entries().is_empty());
    assert!(world.get(Kind::Lease, JOURNAL).is_some());
}

// Looks cost more than anything else that these rules do, so that nothing is looked at that cannot have changed.
#[test]
fn a_claim_is_looked_at_once_for_every_step() {
    let mut world = asked();
    world.run();
    let steps = world.log.len();
    // The entry lingers, the claim rests, and so does its volume, once more when the entry goes.
    assert_eq!((steps, world.looks), (4, steps + 4));
}

// The entry that has served leaves with others that served in the same second, unless there are many.
#[test]
fn an_entry_that_has_served_lingers_in_a_small_journal_only() {
    let mut world = asked();
    world.run_for(3);
    assert_eq!(world.why_claim(), "EntryServed");
    assert!(matches!(world.decide(&world.key()), Decision::Wait(until, _) if until.0 == world.now.0 + 1_000));
    let more: serde_json::Map<_, _> = (0..40).map(|at| (format!("example.org/{at}"), json!("x"))).collect();
    world.patch(Kind::Lease, JOURNAL, json!({ "metadata": { "annotations": more } }));
    assert!(matches!(next(&world, &world.key()), crate::Action::DropIntent { .. }));
}

// The deletion of its volume waits for the entry, so it leaves at once.
#[test]
fn the_entry_of_a_claim_that_goes_does_not_linger() {
    let mut world = asked();
    world.run_for(3);
    assert_eq!(world.why_claim(), "EntryServed");
    let key = world.key();
    world.delete_claim();
    assert!(matches!(next(&world, &key), crate::Action::DropIntent { .. }));
}

// The claim, its class and its node are gone, and the driver is asked for the very same volume (reliability 14, 69).
#[test]
fn what_was_made_for_a_claim_that_is_gone_is_found_by_its_record_alone() {
    let class = json!({ "parameters": { "pool": "p" }, "mountOptions": ["ro"] });
    let mut world = World::new().class("fast", "d", class).with_claim("data", json!({})).in_journal();
    world.run_for(2);
    world.delete(Kind::StorageClass, "fast");
    world.delete_claim();
    world.restart();
    world.run_to_the_end();
    assert!(world.is_empty(), "{:?}", world.log);
}

// Reliability 13: a namesake gets its volume while that of the one before it is undone.
#[test]
fn a_namesake_is_another_claim() {
    let mut world = asked();
    world.run_for(2);
    let (first, before) = (world.pv_name(), world.key());
    world.driver.mood = Mood::Down;
    world.delete_claim();
    world.restart();
    assert!(!world.run_for(5));
    world = world.with_claim("data", json!({}));
    let second = world.pv_name();
    world.driver.mood = Mood::Well;
    world.run();
    assert_ne!(world.key(), before);
    assert!(!world.driver.volumes.contains_key(&first) && world.driver.volumes.contains_key(&second));
    assert!(world.get(VOLUME, &first).is_none() && world.get(VOLUME, &second).is_some());
    assert!(world.entries().is_empty());
}

// Reliability 1, 6: a note on its way from an earlier incarnation takes nothing away that this one relies on.
#[test]
fn an_entry_found_gets_a_name_that_no_earlier_note_knows() {
    let mut world = asked();
    world.run_for(1);
    let claim = world.cache.claim(&ObjectKey::new("n", "data")).unwrap().clone();
    let page = crate::intent::journal::page(&world.uid(), &world.cache, world.engine.local()).into();
    let earlier = crate::Action::DropIntent { claim, place: IntentLocation::Journal(page) };
    world.restart();
    world.run_for(1);
    assert_eq!(world.log.last().unwrap(), "AdoptIntent(n/data)");
    apply(&mut world, &earlier);
    assert_eq!(world.entries().len(), 1);
    world.run();
    assert_eq!(world.driver.volumes.len(), 1);
    assert!(world.entries().is_empty());
}

// A recording that lands when everything is over is found, and undone without harm.
#[test]
fn a_late_recording_is_garbage_that_goes() {
    for deleted in [false, true] {
        let mut world = asked();
        let record = next(&world, &world.key());
        world.run();
        let record = match record {
            crate::Action::RecordIntent { claim, record, .. } => {
                let page = crate::intent::journal::page("nobody", &world.cache, world.engine.local()).into();
                crate::Action::RecordIntent { claim, record, place: IntentLocation::Journal(page) }
            }
            other => panic!("{other:?}"),
        };
        if deleted {
            world.delete_claim();
            world.run_to_the_end();
            assert!(world.is_empty(), "{:?}", world.log);
        }
        apply(&mut world, &record);
        assert_eq!(world.entries().len(), 1);
        world.run_to_the_end();
        assert!(world.entries().is_empty(), "{:?}", world.log);
        assert_eq!(world.driver.volumes.len(), usize::from(!deleted));
    }
}

// Reliability 7: silence keeps the entry, a refusal of the first attempt lets it go, and nobody waits for either.
#[test]
fn an_entry_stays_while_there_may_be_a_volume() {
    let mut world = asked();
    world.driver.mood = Mood::Down;
    world.run_for(2);
    world.delete_claim();
    assert!(!world.run_for(20));
    assert_eq!(world.entries().len(), 1);
    world.driver.mood = Mood::Refusing(Code::ResourceExhausted, "full".into());
    world.run();
    assert!(world.is_empty());
}

/// A journal that two unreadable entries fill; the second alone does not.
fn full() -> World {
    let mut world = asked();
    world.create(Kind::Lease, json!({ "metadata": { "name": JOURNAL } }));
    let entries = json!({ STUCK: "x".repeat(199 << 10), "intent.longshore.dev/b.1": "y".repeat(1_000) });
    world.patch(Kind::Lease, JOURNAL, json!({ "metadata": { "annotations": entries } }));
    world
}

fn make_room(world: &mut World) {
    world.patch(Kind::Lease, JOURNAL, json!({ "metadata": { "annotations": { STUCK: null } } }));
}

// The wait names its reason and where to look, the claim stays as it is, and users hear of it.
#[test]
fn a_full_journal_is_waited_for_and_said() {
    let mut world = full();
    let before = world.claim("data");
    world.run();
    assert!(world.log.is_empty(), "{:?}", world.log);
    assert_eq!(world.claim("data"), before);
    let why = world.why(&world.key());
    assert_eq!(why.code, "JournalFull");
    assert_eq!(why.text, "the journal is full: waiting until entries leave Lease n/longshore-journal-d");
    let view = Provisioner::view(&world.key(), &world.cache, world.engine.local());
    let wanted = Provisioner::decide(world.now, &view, &world.engine.memory(&world.key()));
    assert_eq!(Provisioner::rest_event(&world.key(), wanted.why()), Some((EventType::Warning, "ProvisioningFailed")));
    assert_eq!(world.entries().len(), 2, "what cannot be read is nobody's to take away");
}

// Nobody but the change of the journal ends the wait, for all who wait, and the claims are not written to.
#[test]
fn whoever_waits_for_room_goes_on_when_entries_leave() {
    let mut world = full().with_claim("more", json!({}));
    world.run();
    let before = world.claim("data");
    make_room(&mut world);
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade");
    assert_eq!(world.driver.volumes.len(), 2);
    assert_eq!(world.claim("data"), before);
    assert_eq!(world.entries().len(), 1);
}

// Volumes being made leave a full journal like any other, and the next ones follow.
#[test]
fn a_full_journal_drains_by_itself() {
    let mut world = asked();
    world.run_for(1);
    world.patch(
        Kind::Lease,
        JOURNAL,
        json!({ "metadata": { "annotations": { STUCK: "x".repeat((200 << 10) - 40) } } }),
    );
    world = world.with_claim("more", json!({}));
    let more = world.claim("more")["metadata"]["uid"].as_str().unwrap().to_string();
    let more = Key::Claim { key: ObjectKey::new("n", "more"), uid: more };
    assert_eq!(world.code(&more), "JournalFull");
    world.run();
    assert_eq!((world.why_claim(), world.code(&more)), ("VolumeMade", "VolumeMade"));
    assert_eq!(world.driver.volumes.len(), 2);
}

// Reliability 1, 6: a crash while waiting, and another after the room was made, at any step.
#[test]
fn a_crash_while_waiting_for_room_loses_nothing() {
    for steps in 0..5 {
        let mut world = full();
        world.run();
        world.restart();
        world.run();
        assert_eq!(world.why_claim(), "JournalFull");
        assert!(world.driver.volumes.is_empty());
        make_room(&mut world);
        world.restart();
        world.run_for(steps);
        world.restart();
        world.run();
        assert_eq!(world.why_claim(), "VolumeMade", "{steps}: {:?}", world.log);
        assert_eq!((world.driver.volumes.len(), world.entries().len()), (1, 1), "{steps}: {:?}", world.log);
    }
}

// A claim that is deleted while it waits leaves nothing; one that had its intent before goes on.
#[test]
fn a_full_journal_holds_back_nothing_but_recording() {
    let mut world = full();
    world.run();
    world.delete_claim();
    world.run();
    assert!(world.get(CLAIM, "data").is_none() && world.driver.volumes.is_empty());
    let mut world = asked();
    world.run_for(1);
    world.patch(Kind::Lease, JOURNAL, json!({ "metadata": { "annotations": { STUCK: "x".repeat(200 << 10) } } }));
    world.restart();
    world.run();
    assert_eq!(world.why_claim(), "VolumeMade", "{:?}", world.log);
    assert_eq!(world.entries().len(), 1, "adopting and withdrawing need no room");
}

// Earlier versions recorded on the claim what a full journal had no room for: it is read, and removed in the end.
#[test]
fn an_intent_on_a_claim_is_seen_to_its_end_beside_a_full_journal() {
    for deleted in [false, true] {
        let mut world = full().with(|settings| settings.intent = Intent::OnClaim);
        world.run_for(2);
        assert!(world.claim("data")["metadata"]["finalizers"].to_string().contains(names::PROVISIONING_INTENT));
        world = world.in_journal();
        world.restart();
        if deleted {
            world.delete_claim();
        }
        world.run_to_the_end();
        assert_eq!(world.get(CLAIM, "data").is_none(), deleted);
        assert_eq!(world.driver.volumes.len(), usize::from(!deleted), "{:?}", world.log);
        if !deleted {
            assert_eq!(world.claim("data")["metadata"]["finalizers"], json!([names::PVC_PROTECTION]));
        }
    }
}

// Whatever the setting is now, what was begun under another is seen to its end.
#[test]
fn an_intent_is_honoured_wherever_it_is() {
    let all = [Intent::InJournal, Intent::OnClaim, Intent::InMemory];
    for (before, after) in all.into_iter().flat_map(|one| all.map(|other| (one, other))) {
        if before == Intent::InMemory {
            continue;
        }
        let mut world = World::asked().with(|settings| settings.intent = before);
        world.run_for(2);
        world = world.with(|settings| settings.intent = after);
        world.restart();
        world.delete_claim();
        world.run_to_the_end();
        assert!(world.is_empty(), "{before:?} {after:?}: {:?}", world.log);
    }
}

// Reliability 12: a claim that is gone while its copy is uncertain still holds the source.
#[test]
fn what_a_gone_claims_volume_may_have_been_made_from_is_held() {
    let snapshot = restoring(with_snapshot(json!({}), json!({})), json!({}));
    let clone = cloning(with_source(json!({}), json!({})), json!({}));
    for (world, kind, name) in [(snapshot, Kind::VolumeSnapshot, "snap"), (clone, CLAIM, "src")] {
        let mut world = world.in_journal();
        world.lose_answer = Some(2);
        world.run_for(3);
        world.delete_claim();
        assert!(world.get(CLAIM, "data").is_none());
        world.delete(kind, name);
        let held: Vec<String> = world.run_sources();
        assert!(held.is_empty(), "{held:?}");
        world.run_to_the_end();
        assert!(world.driver.volumes.is_empty(), "{:?}", world.log);
        assert_eq!(world.run_sources(), [format!("RemoveSourceFinalizer({kind} n/{name})")]);
    }
}

/// The volume of a claim is recorded, and then seen to go, while the claim looks as it did before.
fn stale() -> World {
    let mut world = asked();
    world.run();
    let volume = world.cache.volume(&ObjectKey::cluster(world.pv_name())).unwrap().clone();
    world.cache.remove(&api::Object::PersistentVolume(volume));
    world
}

// Reliability 13, 105, ep#1469: a journal does not notice that the claim is bound or gone by now; a read does.
#[test]
fn a_claim_that_had_its_volume_is_looked_at_before_it_gets_another() {
    let mut world = stale();
    let uid = world.uid();
    let look = next(&world, &world.key());
    assert_eq!(format!("{look:?}"), "LookAtClaim(n/data)");
    let key = world.key();
    let memory = |world: &mut World| {
        let got = world.perform(&look, &look.effect());
        let memory = crate::Memory { uid: uid.clone(), ..crate::Memory::default() };
        Provisioner::remember(world.now, memory, &look, &got)
    };
    let view = Provisioner::view(&key, &world.cache, world.engine.local());
    let wanted = memory(&mut world);
    let Decision::Do(again, _) = Provisioner::decide(world.now, &view, &wanted) else { panic!("{wanted:?}") };
    assert_eq!(format!("{again:?}"), "RecordIntent(n/data)");
    let bound = json!({ "spec": { "volumeName": world.pv_name() } });
    for gone in [false, true] {
        if gone {
            world.delete(CLAIM, "data")
        } else {
            world.patch(CLAIM, "data", bound.clone())
        }
        let spared = memory(&mut world);
        let Decision::Wait(_, why) = Provisioner::decide(world.now, &view, &spared) else { panic!("{spared:?}") };
        assert_eq!(why.code, Reason::ClaimChanged);
    }
}

// Two provisioners of two nodes never write into each other's journal.
#[test]
fn a_provisioner_of_one_node_has_a_journal_of_its_own() {
    let on = |name: &str| {
        let own = crate::OwnNode { name: name.into(), ..crate::OwnNode::default() };
        World::new().with(|settings| settings.node = Some(own)).engine.local().journal().name
    };
    assert_eq!(on("a"), "longshore-journal-d-a");
    assert_ne!(on("a"), on("b"));
}
