//! Wrong rules, planted on purpose: for every law one that breaks it. The explorer must refute each of them, with the
//! shortest history there is, and by that very law.

use std::hash::Hash;

use crate::page;
use crate::upstream;
use crate::wrong::{
    Agent, AsksForLittle, Astray, BindsTwice, CachedInUse, DoesNotReport, DoesNotWait, ForgetsDetaching, ForgetsFirst,
    ForgetsGate, Greets, GrowsAnywhere, GrowsAtOnce, GrowsOnPaper, Habit, Led, LetsGoEarly, LetsWrite, Misled,
    Mistaken, NamesVolumes, NeverHolds, NodeIsSwift, ReadsFresh, ReadsNothing, ReleasesBound, SaysAttached,
    SaysDetached, Scribbles, Shares, Sleeps, SweepsNothing, TakesEarly, Tells, TellsPodsOnly, Tiny, Trespasses,
    Trusting, TrustsCachedPods, TrustsCsiNode, TrustsWatch, Unguarded, UnknownIsNo, UnstagesFirst, Wavers,
};
use crate::wrong::{Crowds, Evicts, Flatters};
use api::{Kind, ObjectRef, Precondition, Write};
use prove_world::world::{UserMove, World};
use prove_world::worlds::node::{self, ONE, Shape, TWO_PODS, evicted, gates};
use prove_world::worlds::{attach, copy, growth, protect, provision, reclaim, register, resize, store};
use prove_world::{Bounds, Budget, Law, Report, Scenario, Seat, Violation, WrongStore, explore};
use rules_attachdetach::AttachDetach;
use rules_attacher::Attacher;
use rules_provisioner::{Intent, Local, Provisioner, Settings, Sources};
use rules_resizer::Resizer;

/// A world with one wrong rule in it, and the trouble that it takes to see it.
pub struct Plant {
    pub scenario: Scenario,
    pub budget: Budget,
}

fn plant(name: &'static str, base: Scenario, start: fn() -> World, budget: Budget) -> Plant {
    Plant { scenario: Scenario { name, start, ..base }, budget }
}

/// One test for every law, and one match over all of them: a law without a wrong rule that breaks it does not compile,
/// and one whose wrong rule does not break it fails.
macro_rules! planted {
    ($($(#[doc = $doc:literal])* $law:ident $test:ident => $plant:expr;)+) => {
        fn planted(law: Law) -> Plant {
            match law { $(Law::$law => $plant,)+ }
        }

        $($(#[doc = $doc])* #[test]
        fn $test() {
            refuted(Law::$law);
        })+
    };
}

planted! {
    /// Reliability 24, 25.
    OneNode forgetting_a_detach_over_a_restart_is_refuted => forgetting_what_is_being_detached();
    /// Reliability 26, 29.
    MountedIsAttached mounting_without_waiting_is_refuted
        => plant("attach, not waiting", attach::SCENARIO, misled::<DoesNotWait>, Budget::calm(0));
    /// Reliability 28: a cached report is never enough.
    NoDetachWhileMounted detaching_on_a_cached_in_use_report_is_refuted => detaching_on_a_cached_report();
    /// Reliability 30.
    MountedIsInUse mounting_without_a_report_is_refuted
        => plant("attach, not reporting", attach::SCENARIO, misled::<DoesNotReport>, Budget::calm(0));
    /// Reliability 45.
    MountedIsRecorded removing_the_record_first_is_refuted
        => plant("attach, forgetting first", attach::SCENARIO, misled_later::<ForgetsFirst>, Budget::calm(1));
    /// Reliability 39, 40.
    StageOrder unstaging_before_unpublishing_is_refuted
        => plant("attach, unstaging first", attach::SCENARIO, misled_later::<UnstagesFirst>, Budget::calm(1));
    /// Reliability 41, 42.
    RunningHasVolumes taking_a_volume_from_a_pod_that_may_run_is_refuted
        => plant("attach, taking volumes early", attach::SCENARIO, misled_later::<TakesEarly>, one_slow_agent());
    /// Reliability 41.
    RightVolume letting_a_reader_write_is_refuted => agents("node, letting readers write", node::SCENARIO, || {
        node::start::<Led<Agent<LetsWrite>>>(TWO_PODS, attach::agent_seat())
    });
    /// Reliability 44.
    OnePod sharing_a_volume_for_one_pod_is_refuted => agents("node-one-pod, sharing", node::ONE_POD, || {
        let shape = Shape { mode: "ReadWriteOncePod", ..TWO_PODS };
        node::start::<Led<Agent<Shares>>>(shape, attach::agent_seat())
    });
    /// Reliability 46.
    RecordsWhole writing_half_a_record_is_refuted => agents("node, scribbling", node::SCENARIO, || {
        node::start::<Led<Agent<Scribbles>>>(ONE, attach::agent_seat())
    });
    /// Reliability 48.
    UnreadableInUse taking_an_unreadable_record_for_none_is_refuted
        => agents("node-unreadable, reading nothing", node::UNREADABLE, || {
            node::spoiled::<Led<Agent<ReadsNothing>>>(attach::agent_seat())
        });
    SecretsKept writing_a_secret_down_is_refuted => agents("node-secret, telling secrets", node::SECRET, || {
        node::start::<Led<Agent<Tells>>>(Shape { secret: true, ..ONE }, attach::agent_seat())
    });
    /// Reliability 52.
    InlineOwn naming_a_pods_own_volume_by_its_name_is_refuted
        => agents("node-inline, naming volumes", node::INLINE, || {
            node::start::<Led<Agent<NamesVolumes>>>(Shape { inline: true, ..ONE }, attach::agent_seat())
        });
    /// Reliability 54.
    GrowsInPlace growing_without_the_staging_path_is_refuted
        => growers::<GrowsAnywhere>("node-growth, growing anywhere");
    /// Reliability 59.
    ControllerFirst growing_the_filesystem_before_the_volume_is_refuted
        => growers::<GrowsAtOnce>("node-growth, growing at once");
    /// S4-33: who serves a volume on a node is asked of the node.
    OneServer attaching_on_a_cached_word_of_the_node_is_refuted => plant(
        "node-gates-switched, trusting the cache",
        gates::SWITCHED_EARLY,
        || gates::empty::<Led<TrustsCsiNode>>(gates::gate()),
        Budget::troubled(2, 0, 1),
    );
    /// S4-32: switched off, the controllers leave what the node expects of the driver to nobody.
    GateObeyed attaching_with_the_gate_off_is_refuted => plant(
        "controllers-gate, forgetting the gate",
        gates::controllers::SCENARIO,
        || gates::controllers::start::<Led<ForgetsGate>>(gates::gate()),
        Budget::calm(1),
    );
    /// Reliability 32.
    AttachedIsAttached saying_attached_without_asking_the_driver_is_refuted
        => plant("attach, saying attached", attach::SCENARIO, saying::<SaysAttached>, Budget::calm(0));
    /// Reliability 33.
    FinalizerAfterDetach saying_detached_without_asking_the_driver_is_refuted
        => plant("attach, saying detached", attach::SCENARIO, saying::<SaysDetached>, Budget::calm(1));
    /// Reliability 1, 6: an entry found in the journal gets a new name before anything relies on it.
    Accounted relying_on_an_entry_that_an_earlier_note_may_still_take_away_is_refuted => trusting_what_is_found();
    /// Reliability 6.
    IntentFirst creating_without_an_intent_is_refuted
        => plant("provision, without intent", provision::SCENARIO, no_intent, Budget::calm(0));
    /// Reliability 8.
    NoDeleteInUse releasing_what_is_bound_is_refuted
        => plant("provision, releasing what is bound", provision::SCENARIO, releasing, Budget::calm(0));
    /// Reliability 8, 105: of the looks that many share, one that began before the question is never enough.
    KeptStays deleting_on_a_look_that_began_before_is_refuted
        => plant("reclaim, hasty looks", reclaim::SCENARIO, hasty_looks, one_slow_look());
    /// Reliability 21, H8: the cached pods are never enough.
    UsedClaimStays letting_a_claim_go_on_cached_pods_is_refuted
        => plant("protect, trusting cached pods", protect::SCENARIO, trusting_cached_pods, one_slow_watch());
    /// A watch that does not tell of renewals makes no node Unknown.
    SilentFirst calling_a_node_unknown_on_the_word_of_the_cache_is_refuted
        => plant("node-evicted, trusting the watch", evicted::SCENARIO, trusting_the_watch, Budget::calm(0));
    /// Reliability 4, 16.
    OneToOne binding_a_volume_twice_is_refuted
        => plant("copy, binding twice", copy::SCENARIO, binding_twice, Budget::calm(0));
    /// Reliability 13.
    ForAClaim creating_for_a_claim_that_is_gone_is_refuted => without_intent_on_a_slow_watch();
    /// Reliability 12.
    SourceStays letting_a_source_go_early_is_refuted => letting_sources_go_early();
    /// Reliability 55.
    SizesTrue recording_a_size_before_the_driver_has_it_is_refuted
        => resizers::<GrowsOnPaper>("resize, growing on paper", asks_for_a_size);
    /// Reliability 56.
    NodeFirst telling_a_size_before_the_filesystem_has_it_is_refuted
        => resizers::<NodeIsSwift>("resize, not waiting for the node", resize::user);
    /// Reliability 57, 58: what may have happened is not undone by asking for less.
    SizeOnRecord taking_an_unknown_answer_for_a_no_is_refuted => taking_unknown_for_no();
    /// Reliability 58.
    NeverSmaller asking_for_less_than_there_is_is_refuted
        => resizers::<AsksForLittle>("resize, asking for little", asks_for_a_size);
    /// Reliability 60.
    AttributesTrue naming_a_class_before_the_driver_has_it_is_refuted
        => resizers::<GrowsOnPaper>("resize, modifying on paper", asks_for_a_class);
    /// Reliability 63.
    ListedAsRegistered welcoming_a_driver_that_is_not_listed_is_refuted
        => registrars("register, flattering", register::SCENARIO, || {
            register::start(false, register::seat::<Led<Flatters>>())
        });
    /// Reliability 64.
    EntryStaysInUse taking_the_entry_from_a_volume_in_use_is_refuted
        => registrars("register, evicting", register::IN_USE, || {
            register::start(true, register::seat::<Led<Evicts>>())
        });
    /// Reliability 65.
    OneRegistered registering_a_second_driver_of_a_name_is_refuted
        => registrars("register, crowding", register::SCENARIO, || {
            register::start(false, register::seat::<Led<Crowds>>())
        });
    /// Reliability 115.
    AsAsked leaving_a_volume_unheld_is_refuted => volumes_not_held();
    /// Reliability 114.
    SilentRestart greeting_in_every_incarnation_is_refuted => tiny::<Greets>("resize, greeting");
    NobodyOversleeps hearing_of_no_change_is_refuted => tiny::<Sleeps>("resize, asleep");
    /// Reliability 109, 115.
    ComesToRest wavering_is_refuted => tiny::<Wavers>("resize, wavering");
    /// Reliability 85, 99.
    VersionsGrow a_store_that_reuses_versions_is_refuted
        => stores("store, reusing versions", || wrong_store(WrongStore::ReusesVersions));
    /// Reliability 86.
    StaleIsRefused a_store_that_ignores_preconditions_is_refuted
        => stores("store, unguarded", || wrong_store(WrongStore::IgnoresPreconditions));
    /// Reliability 99.
    FinalizersHold a_store_that_ignores_finalizers_is_refuted
        => deleting_at_once();
    WithinItsRole writing_without_a_right_is_refuted => tiny::<Trespasses>("resize, trespassing");
}

fn refuted(law: Law) -> Report {
    let Plant { scenario, budget } = planted(law);
    let report = page::refuted(&scenario, budget);
    let found = report.broken.as_ref().unwrap();
    assert_eq!(found.violation.law(), law, "{report}");
    report
}

/// KL-99: what a pod leaves that was deleted by force is found by a look at the directories alone.
#[test]
fn leaving_the_directories_of_pods_deleted_by_force_is_refuted() {
    let start = || node::start::<Led<Agent<SweepsNothing>>>(TWO_PODS, attach::agent_seat());
    let scenario = Scenario { name: "node-tidy, sweeping nothing", start, ..node::TIDY };
    let report = page::refuted(&scenario, Budget::calm(2));
    let found = report.broken.as_ref().unwrap();
    assert!(matches!(found.violation, Violation::PathLeft { .. }), "{report}");
}

/// Reliability 56: the record knows what the filesystem has when its pod does not ask any more.
#[test]
fn forgetting_a_growth_with_its_pod_is_refuted() {
    let start = || {
        let resizer = Seat::<Resizer>::fixed(|_, _| resize::local());
        growth::start::<Resizer, Led<Agent<TellsPodsOnly>>>(resizer, attach::agent_seat())
    };
    let scenario = Scenario { name: "node-growth-left, telling of pods only", start, ..growth::LEFT };
    let report = page::refuted(&scenario, Budget::calm(2));
    let found = report.broken.as_ref().unwrap();
    assert!(matches!(found.violation, Violation::NotGrown { .. }), "{report}");
}

fn trusting_the_watch() -> World {
    evicted::start::<Led<TrustsWatch>>(none())
}

pub fn none<R: control::Rules<Local: Default>>() -> Seat<R> {
    Seat::fixed(|_, _| Default::default())
}

fn binding<R: control::Rules<Local = rules_binding::Local>>() -> Seat<R> {
    Seat::fixed(|_, _| rules_binding::Local::default())
}

pub fn attacher<R: control::Rules<Local = rules_attacher::Local>>() -> Seat<R> {
    Seat::fixed(|_, _| attach::attacher())
}

/// Misled agents from the very beginning, and after a pod runs.
fn misled<M: Misled>() -> World {
    attach::start_all::<AttachDetach, Attacher, Led<Agent<M>>>(none(), attacher(), attach::agent_seat())
}

fn misled_later<M: Misled>() -> World {
    attach::running(misled::<M>())
}

/// A misled registrar, and a user who starts or stops one driver.
fn registrars(name: &'static str, base: Scenario, start: fn() -> World) -> Plant {
    plant(name, base, start, Budget::calm(1))
}

/// Misled agents on a machine with a kernel, with nothing going wrong.
pub fn agents(name: &'static str, base: Scenario, start: fn() -> World) -> Plant {
    plant(name, base, start, Budget::calm(0))
}

/// A misled agent beside the real resizer.
pub fn growers<M: Misled>(name: &'static str) -> Plant {
    let start = || {
        let resizer = Seat::<Resizer>::fixed(|_, _| resize::local());
        growth::start::<Resizer, Led<Agent<M>>>(resizer, attach::agent_seat())
    };
    plant(name, Scenario { user: asks_for_a_size, ..growth::SCENARIO }, start, Budget::calm(1))
}

fn saying<A: Astray<Real = Attacher, Local = rules_attacher::Local>>() -> World {
    attach::start_with::<AttachDetach, Led<A>>(none(), attacher())
}

/// Upstream's protocol: nothing is written down before the volume is made.
pub fn no_intent() -> World {
    provision::start::<Provisioner>(provision::seat(|_, _| {
        let settings = Settings { intent: Intent::InMemory, ..Settings::default() };
        Local { settings: settings.into(), ..provision::local() }
    }))
}

fn trusting_cached_pods() -> World {
    protect::start::<Led<TrustsCachedPods>>(binding())
}

/// A user who starts a pod and deletes its claim, and one watch that is behind.
fn one_slow_watch() -> Budget {
    Budget::troubled(2, 0, 1)
}

fn hasty_looks() -> World {
    (reclaim::SCENARIO.start)().with_hasty_looks()
}

/// A user who keeps a volume, a watch that is behind, and a look that is held up.
fn one_slow_look() -> Budget {
    Budget { delays: 2, behind: 1, held: 1, ..Budget::calm(1) }
}

// Reliability 8, 105: under the very trouble that refutes the hasty ones, looks that begin after the question keep the
// law.
#[test]
fn deleting_on_a_look_that_began_after_the_question_holds() {
    let ours = explore(&reclaim::SCENARIO, &Bounds::of(one_slow_look()));
    assert!(ours.holds(), "{ours}");
}

fn releasing() -> World {
    provision::start_with::<Led<ReleasesBound>, Provisioner>(binding(), provision::seat(|_, _| provision::local()))
}

fn not_held() -> World {
    provision::start::<Led<NeverHolds>>(provision::seat(|_, _| provision::local()))
}

/// Looking past the first symptom, a user who also deletes volumes finds one left.
pub fn volumes_not_held() -> Plant {
    let base = Scenario { waives: &[Law::Accounted], ..upstream::DELETES_VOLUMES_TOO };
    plant("provision, volumes not held", base, not_held, Budget::calm(2))
}

// ep#1469.
pub fn without_intent_on_a_slow_watch() -> Plant {
    let base = Scenario { waives: &[Law::IntentFirst, Law::Accounted], ..provision::SCENARIO };
    let one_slow_watch = Budget { delays: 1, behind: 1, ..Budget::calm(1) };
    plant("provision, without intent", base, no_intent, one_slow_watch)
}

fn binding_twice() -> World {
    copy::start_all::<Led<BindsTwice>, Sources>(binding(), provision::seat(|_, _| copy::local()), |_, _| copy::local())
}

fn resizer<A: Astray<Real = Resizer, Local = rules_resizer::Local>>() -> World {
    resize::start::<Led<A>>(Seat::fixed(|_, _| resize::local()))
}

fn resizers<A: Astray<Real = Resizer, Local = rules_resizer::Local>>(
    name: &'static str,
    user: fn(&World) -> Vec<UserMove>,
) -> Plant {
    plant(name, Scenario { user, ..resize::SCENARIO }, resizer::<A>, Budget::calm(1))
}

pub fn asks_for_a_size(world: &World) -> Vec<UserMove> {
    resize::user(world).into_iter().filter(|one| one.label.ends_with('i')).collect()
}

fn asks_for_a_class(world: &World) -> Vec<UserMove> {
    resize::user(world).into_iter().filter(|one| !one.label.ends_with('i')).collect()
}

/// A tiny controller in the place of the resizer; whether the claim gets what it asks for is not looked at.
fn tiny<H: Habit>(name: &'static str) -> Plant {
    let start = || resize::start::<Tiny<H>>(seat());
    let base = Scenario { user: asks_for_a_class, rest: |_| None, ..resize::SCENARIO };
    plant(name, base, start, Budget::calm(1))
}

fn seat<H: Habit>() -> Seat<Tiny<H>> {
    Seat { build: |_, _| false, refresh: |_, _, _| false, digest: |wrote, mut hasher| wrote.hash(&mut hasher) }
}

fn wrong_store(wrong: WrongStore) -> World {
    (store::SCENARIO.start)().with_store(wrong)
}

/// The process would be stopped first, if the agent did not dawdle.
fn one_slow_agent() -> Budget {
    Budget { delays: 1, held: 1, ..Budget::calm(1) }
}

fn deleting_at_once() -> Plant {
    let user = |_: &World| {
        let target = ObjectRef::namespaced(Kind::PersistentVolumeClaim, "default", "journal");
        let delete = Write::Delete { target, only_if: Precondition::default(), grace_seconds: None };
        vec![UserMove { label: "delete the claim".into(), writes: vec![delete] }]
    };
    let start = || wrong_store(WrongStore::IgnoresFinalizers);
    plant("store, deleting at once", Scenario { user, ..store::SCENARIO }, start, Budget::calm(1))
}

/// Two writers, one of which reads late, and a user who deletes what they write to.
fn stores(name: &'static str, start: fn() -> World) -> Plant {
    plant(name, store::SCENARIO, start, Budget { delays: 1, behind: 1, ..Budget::calm(1) })
}

pub fn detaching_on_a_cached_report() -> Plant {
    let start = || attach::start_reported::<Led<CachedInUse>>(none());
    let one_slow_watch = Budget { delays: 1, behind: 1, ..Budget::calm(1) };
    plant("attach, detaching on a cached report", attach::SCENARIO, start, one_slow_watch)
}

// k/k#120571 and k/k#81097: the driver fails to detach, the controller restarts, the pod comes up elsewhere.
pub fn forgetting_what_is_being_detached() -> Plant {
    let start = || {
        let detach = Seat {
            build: |_, _| false,
            refresh: |_, _, _| false,
            digest: |began: &bool, mut hasher| began.hash(&mut hasher),
        };
        attach::running(attach::start_with::<Led<ForgetsDetaching>, Led<Unguarded>>(detach, attacher()))
    };
    let budget = Budget { faults: 2, refused: 1, crashes: 1, ..Budget::calm(1) };
    plant("attach, forgetting what is being detached", attach::SCENARIO, start, budget)
}

// ep#1449.
pub fn letting_sources_go_early() -> Plant {
    let start = || copy::start::<Led<LetsGoEarly>>(provision::seat(|_, _| copy::local()));
    let one_slow_call = Budget { faults: 1, late: 1, ..Budget::calm(1) };
    plant("copy, letting sources go early", copy::SCENARIO, start, one_slow_call)
}

fn taking_unknown_for_no() -> Plant {
    let one_late_call = Budget { faults: 1, late: 1, ..Budget::calm(2) };
    let base = Scenario { user: asks_for_a_size, ..resize::SCENARIO };
    plant("resize, taking unknown for no", base, resizer::<UnknownIsNo>, one_late_call)
}

// The first call is refused, the claim deleted, and the note that forgets it is still on its way when a new incarnation
// asks the driver again what it may have made.
fn trusting_what_is_found() -> Plant {
    let start = || provision::start::<Led<Trusting>>(provision::seat(|_, _| provision::local()));
    let budget = Budget { faults: 3, refused: 1, late: 1, crashes: 1, ..Budget::calm(1) };
    plant("provision, trusting what is found", provision::SCENARIO, start, budget)
}

/// The agent does not hear of the pod's deletion in time, and the detach is decided before its report arrives.
pub fn reading_fresh_alone() -> Plant {
    let start = || attach::start_reported::<Mistaken<ReadsFresh>>(none());
    let budget = Budget { delays: 2, behind: 1, held: 1, ..Budget::calm(1) };
    plant("attach, reading fresh without taking the report back", attach::SCENARIO, start, budget)
}

// Reliability 28: nor is a fresh read, unless the report was taken back before it.
#[test]
fn reading_in_use_fresh_without_taking_the_report_back_is_refuted() {
    let Plant { scenario, budget } = reading_fresh_alone();
    let report = page::refuted(&scenario, budget);
    assert_eq!(report.broken.as_ref().unwrap().violation.law(), Law::NoDetachWhileMounted);
}

// Reliability 1, 6: ours keeps every law under the trouble that refutes the trusting one.
#[test]
fn giving_an_entry_a_new_name_before_relying_on_it_holds() {
    let plant = trusting_what_is_found();
    let ours = explore(&provision::SCENARIO, &Bounds::of(plant.budget));
    println!("{ours}");
    assert!(ours.holds() && ours.resting > 0, "{ours}");
}
