//! Facts that decide by themselves, one at a time.

use alloc::format;
use alloc::string::ToString;
use alloc::vec;

use api::{ObjectKey, Write, names};
use control::{Action as _, BackOff, Decision, Effect, Lane, Rules, Timestamp};
use serde_json::{Value, json};

use super::memory::{actions, request};
use super::request as requests;
use super::tables::{claim, made, terms, work};
use super::world::{VOLUME, World, local};
use crate::intent::{claim_in, record_for};
use crate::topology::{Places as _, spread};
use crate::{
    Action, Capacity, CapacityKey, ClaimView, ClassTerms, Goal, Headroom, Intent, IntentLocation, JournalView, Key,
    Local, Memory, OwnNode, Provisioner, Settings, SourceKey, Sources, Stage, Terms, View, VolumeRequest,
};

fn own() -> OwnNode {
    OwnNode { name: "n0".into(), base_delay_millis: 20_000, max_delay_millis: 60_000, ..OwnNode::default() }
}

/// A local of which one thing is set.
fn set(change: impl FnOnce(&mut Settings)) -> Local {
    let mut settings = Settings::clone(&local().settings);
    change(&mut settings);
    Local { settings: settings.into(), ..local() }
}

// P94: the delay doubles with each conflict up to the longest, less a share that is another one for each node.
#[test]
fn a_node_that_was_outrun_comes_later_each_time() {
    let from = Timestamp(1_000);
    let share = own().share("u", 20_000);
    assert!(share > 0);
    for (conflicts, delay) in [(0, None), (1, Some(40_000)), (2, Some(60_000)), (3, Some(60_000)), (99, Some(60_000))] {
        let mut work = work(Intent::OnClaim);
        work.local = set(|settings| settings.node = Some(own()));
        work.goal = Goal::Contest { from };
        let memory = Memory { uid: "u".into(), conflicts, ..Memory::default() };
        let view = View::Claim(ClaimView::Ours(work));
        let turn = delay.map_or(from.0, |delay| from.0 + delay - share);
        let before = Provisioner::decide(Timestamp(turn - 1), &view, &memory);
        assert!(matches!(before, Decision::Wait(until, _) if until.0 == turn), "{conflicts}: {before:?}");
        let then = Provisioner::decide(Timestamp(turn), &view, &memory);
        assert!(matches!(then, Decision::Do(Action::AskCapacity { .. }, _)), "{conflicts}: {then:?}");
        let late = Memory { headroom: Headroom::TooLittle { again: Timestamp(turn) }, ..memory };
        let then = Provisioner::decide(Timestamp(turn), &view, &late);
        assert!(matches!(then, Decision::Do(Action::TakeClaim { .. }, _)), "{conflicts}: {then:?}");
    }
}

// A node whose driver has said nothing of where it is has no topology keys, and knows of no other node.
#[test]
fn a_nodes_provisioner_knows_its_own_place_alone() {
    assert_eq!(own().any_keys(), None);
    let placed = OwnNode { segments: [("zone".into(), "a".into())].into(), ..own() };
    assert_eq!(placed.any_keys(), Some(vec!["zone".to_string()]));
    assert_eq!((placed.keys_on("n0"), placed.keys_on("n1")), (Some(vec!["zone".to_string()]), None));
}

// P41: only what a StatefulSet appends is an ordinal.
#[test]
fn only_digits_behind_the_last_dash_are_an_ordinal() {
    for name in ["data-+1", "data-1a", "data-"] {
        let whole = u64::from(names::fnv1_32(name));
        for places in [2, 3, 5, 7] {
            assert_eq!(spread(name, places) as u64, whole % places as u64, "{name} over {places}");
        }
    }
}

// P86.
#[test]
fn capacity_objects_are_known_again_by_the_driver_and_the_node() {
    let labels = |local: &Local| serde_json::to_value(local.capacity_labels()).unwrap();
    let cluster = json!({ names::CAPACITY_DRIVER: "d", names::CAPACITY_MANAGER: names::capacity_manager(None) });
    assert_eq!(labels(&local()), cluster);
    let node = json!({ names::CAPACITY_DRIVER: "d", names::CAPACITY_MANAGER: names::capacity_manager(Some("n0")) });
    assert_eq!(labels(&set(|settings| settings.node = Some(own()))), node);
    assert_ne!(cluster, node);
}

fn recorded(local: Local, terms: Terms) -> Value {
    let action = Action::CreatePv { claim: claim(false), local, terms, made: made("h"), in_tree: None };
    let Effect::Write(Write::Create { body, .. }) = action.effect() else { panic!("{:?}", action.effect()) };
    body
}

// S0-54: read-only to the attacher only where the operator wants it and nobody may write.
#[test]
fn a_volume_is_recorded_read_only_only_where_nobody_may_write_and_the_flag_says_so() {
    use control::Mode::{MultiNodeReader, SingleNodeWriter};
    for (flag, modes, read_only) in [
        (true, vec![MultiNodeReader], true),
        (true, vec![SingleNodeWriter], false),
        (true, vec![MultiNodeReader, SingleNodeWriter], false),
        (false, vec![MultiNodeReader], false),
    ] {
        let terms = Terms { request: VolumeRequest { modes: modes.clone(), ..request() }, ..terms() };
        let body = recorded(set(|settings| settings.controller_publish_readonly = flag), terms);
        assert_eq!(body["spec"]["csi"]["readOnly"].as_bool().unwrap_or(false), read_only, "{flag} {modes:?}");
    }
}

// P16: the volume says by which attributes class it was made.
#[test]
fn a_volume_names_its_attributes_class() {
    let gold = Terms { attributes_class: Some("gold".into()), ..terms() };
    assert_eq!(recorded(local(), gold)["spec"]["volumeAttributesClassName"], "gold");
    assert!(recorded(local(), terms())["spec"]["volumeAttributesClassName"].is_null());
}

// Reliability 14: a claim that is gone is undone by what its entry says.
#[test]
fn an_entry_gives_back_the_class_and_size_of_its_claim() {
    let claim = requests::claim(json!({ "storageClassName": "fast" }));
    let back = claim_in("u", &record_for(&claim, &requests::good(&[]))).unwrap();
    assert_eq!(back.class(), Some("fast"));
    assert_eq!((back.requested(), back.metadata.is_deleting()), (claim.requested(), true));
}

// Calls for one volume go one after the other, whichever they are; those for different volumes do not wait.
#[test]
fn every_action_for_a_claim_is_in_its_lane() {
    for (name, action) in actions() {
        assert!(action.lane() == Lane::about("u"), "{name}");
    }
}

// C5: --retry-interval-start and --retry-interval-max are those of every controller of the role.
#[test]
fn the_flags_of_retrying_hold_for_volumes_sources_and_capacities() {
    let pauses = BackOff { first: 7, longest: 8 };
    let local = set(|settings| settings.pauses = pauses);
    let all = [Provisioner::back_off(&local), Sources::back_off(&local), Capacity::back_off(&local)];
    assert!(all.iter().all(|one| *one == pauses));
}

#[test]
fn keys_are_told_in_words() {
    let key = ObjectKey::new("n", "snap");
    assert_eq!(SourceKey::Snapshot(key.clone()).to_string(), "snapshot n/snap");
    assert_eq!(SourceKey::Claim(key.clone()).to_string(), "claim n/snap");
    assert_eq!(CapacityKey::Object(key).to_string(), "capacity object n/snap");
}

// P31: a secret is named by both annotations or not at all, whatever the class says.
#[test]
fn a_deletion_secret_without_a_namespace_is_none() {
    for (name, namespace) in [("s", ""), ("", "n"), ("", "")] {
        let mut world = World::asked();
        world.run();
        let volume = world.pv_name();
        let annotations = json!({ names::DELETION_SECRET_NAME: name, names::DELETION_SECRET_NAMESPACE: namespace });
        world.patch(VOLUME, &volume, json!({ "metadata": { "annotations": annotations } }));
        world.delete_claim();
        world.run_to_the_end();
        assert!(world.is_empty(), "{name:?} {namespace:?}: {:?}", world.log);
        assert!(!world.log.iter().any(|did| did.starts_with("ReadSecret")), "{:?}", world.log);
    }
}

// Reliability 6: as long as an entry tells of the claim, a call may be on its way that would make the volume again.
#[test]
fn a_volume_stays_while_the_journal_tells_of_its_claim() {
    let mut world = World::asked().in_journal();
    world.run_for(3);
    let (volume, uid) = (world.pv_name(), world.uid());
    world.delete_claim();
    world.release_volumes();
    let key = Key::Volume(volume);
    assert!(world.entries().keys().any(|name| name.contains(&uid)));
    assert_eq!(world.code(&key), "IntentNotSettled");
    world.run();
    assert!(world.entries().is_empty());
    assert_ne!(world.code(&key), "IntentNotSettled");
}

// An intent that nobody can use says what an operator has to remove, by name.
#[test]
fn an_intent_that_cannot_be_used_names_what_to_remove() {
    let page = JournalView {
        entries: vec![("intent/u.1".into(), "x".into()), ("intent/u.2".into(), "x".into())],
        journal: ObjectKey::new("n", "journal"),
        ..JournalView::default()
    };
    for (place, what) in [
        (IntentLocation::Journal(page.into()), "annotation intent/u.1 and intent/u.2 from Lease n/journal"),
        (IntentLocation::Claim, names::PROVISIONING_INTENT),
    ] {
        let mut work = work(Intent::InJournal);
        work.intent = Some(place);
        work.goal = Goal::Deleted;
        work.offer = ClassTerms::Withdrawn { class: "fast".into(), replaced: false, recorded: None };
        let memory = Memory { uid: "u".into(), owned: true, stage: Stage::Nothing, ..Memory::default() };
        let told = format!("{:?}", Provisioner::decide(Timestamp(1), &View::Claim(ClaimView::Ours(work)), &memory));
        assert!(told.contains("CannotUndo") && told.contains(what), "{told}");
    }
}
