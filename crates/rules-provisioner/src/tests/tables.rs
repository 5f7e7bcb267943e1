//! What is decided on every shape of a view, as tables.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;

use api::{PersistentVolumeClaim, SecretReference, names};
use control::{Mode, Rules, Secrets, Timestamp};
use csi::{Capabilities, ControllerRpc};
use prove_lab::{Choices, check_table, verdict};
use serde_json::json;

use super::world::local;
use crate::{
    ClaimView, ClassTerms, ContentSource, Fresh, Goal, Intent, IntentLocation, JournalView, Local, Made, Memory,
    NameSlot, Obstacle, Provision, Provisioner, SecretRefs, Settings, SourceKind, SourceProtection, Stage, Terms, View,
    VolumeRequest, VolumeView,
};

const NOW: Timestamp = Timestamp(1_000_000);

fn decide(view: &View, memory: &Memory) -> String {
    verdict(&Provisioner::decide(NOW, view, memory))
}

pub(super) fn claim(deleting: bool) -> Arc<PersistentVolumeClaim> {
    let mut body = json!({ "metadata": { "name": "data", "namespace": "n", "uid": "u" } });
    if deleting {
        body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    Arc::new(serde_json::from_value(body).unwrap())
}

pub(super) fn terms() -> Terms {
    let request = VolumeRequest {
        name: "pvc-u".into(),
        required_bytes: 1,
        modes: vec![Mode::SingleNodeWriter],
        single_node_multi_writer: false,
        block: false,
        fs_type: String::new(),
        mount_options: vec![],
        parameters: BTreeMap::new(),
        mutable_parameters: BTreeMap::new(),
        source: None,
        topology: None,
    };
    Terms {
        class: "fast".into(),
        class_uid: "c".into(),
        reclaim_policy: "Delete".into(),
        attributes_class: None,
        secrets: SecretRefs::default(),
        request,
    }
}

pub(super) fn work(intent: Intent) -> Provision {
    let settings = Settings { intent, ..Settings::clone(&local().settings) };
    Provision {
        claim: claim(false),
        local: Local { settings: settings.into(), ..local() },
        recently_provisioned: false,
        name: "pvc-u".into(),
        intent: None,
        page: Arc::default(),
        journal_full: false,
        goal: Goal::Provide,
        name_slot: NameSlot::Empty,
        offer: ClassTerms::Standing(terms()),
        source_protection: SourceProtection::NotNeeded,
        in_tree: None,
    }
}

pub(super) fn made(id: &str) -> Made {
    Made { volume_id: id.into(), capacity_bytes: 1, context: BTreeMap::new(), topology: vec![] }
}

fn stage(choices: &mut Choices) -> Stage {
    choices.one_of(
        "stage",
        &[
            ("nothing", Stage::Nothing),
            ("created", Stage::Created(made("h"))),
            ("faulty", Stage::Faulty(made("h"))),
            ("refused", Stage::Refused { exhausted: false }),
            ("exhausted", Stage::Refused { exhausted: true }),
            ("committed", Stage::Committed),
            ("deleted", Stage::Deleted),
        ],
    )
}

fn fresh(choices: &mut Choices) -> Fresh {
    choices.one_of(
        "read",
        &[
            ("nothing", Fresh::Unread),
            ("needed", Fresh::Wanted),
            ("absent", Fresh::Absent),
            ("this-volume", Fresh::Taken { handle: "h".into() }),
            ("another-volume", Fresh::Taken { handle: "x".into() }),
            ("condemned", Fresh::Condemned),
            ("maybe-attached", Fresh::MaybeAttached),
            ("still-wanted", Fresh::StillWanted),
            ("spared-lately", Fresh::Spared { again: Timestamp(NOW.0 + 1) }),
            ("spared-long-ago", Fresh::Spared { again: NOW }),
        ],
    )
}

fn goal(choices: &mut Choices) -> Goal {
    choices.one_of(
        "course",
        &[
            ("provide", Goal::Provide),
            ("await-node", Goal::AwaitNode),
            ("deleted", Goal::Deleted),
            ("bound", Goal::Bound("v".into())),
            ("contest", Goal::Contest { from: NOW }),
        ],
    )
}

fn offer(choices: &mut Choices) -> ClassTerms {
    let withdrawn = |replaced, recorded| ClassTerms::Withdrawn { class: "fast".into(), replaced, recorded };
    choices.one_of(
        "offer",
        &[
            ("standing", ClassTerms::Standing(terms())),
            ("changed", ClassTerms::Changed(terms())),
            ("unfit", ClassTerms::Unfit(Obstacle { code: crate::Reason::NoRoom, text: "no".into() })),
            ("misplaced", ClassTerms::Misplaced("no".into())),
            ("class-gone", withdrawn(false, Some(terms()))),
            ("class-replaced", withdrawn(true, Some(terms()))),
            ("class-gone-unreadable", withdrawn(false, None)),
            ("class-replaced-unreadable", withdrawn(true, None)),
        ],
    )
}

/// Reliability 5 to 7: a claim with an intent.
#[test]
fn every_shape_of_a_claim_with_an_intent() {
    check_table(env!("CARGO_MANIFEST_DIR"), "with-intent", |choices| {
        let mut work = work(Intent::InJournal);
        let place =
            [("claim", IntentLocation::Claim), ("journal", IntentLocation::Journal(Arc::new(JournalView::default())))];
        work.intent = Some(choices.one_of("intent", &place));
        work.goal = goal(choices);
        let taken = NameSlot::Taken("claim n/other".into());
        work.name_slot = choices.one_of("name", &[("free", NameSlot::Empty), ("taken", taken)]);
        work.offer = offer(choices);
        let stage = stage(choices);
        let fresh = fresh(choices);
        let owned = choices.flag("owned");
        let memory = Memory { uid: "u".into(), owned, stage, fresh, ..Memory::default() };
        decide(&View::Claim(ClaimView::Ours(work)), &memory)
    });
}

#[test]
fn every_shape_of_a_claim_without_an_intent() {
    check_table(env!("CARGO_MANIFEST_DIR"), "without-intent", |choices| {
        let intents = [("journal", Intent::InJournal), ("claim", Intent::OnClaim), ("memory", Intent::InMemory)];
        let mut work = work(choices.one_of("recorded-in", &intents));
        work.goal = goal(choices);
        let taken = NameSlot::Taken("claim n/other".into());
        work.name_slot = choices.one_of("name", &[("free", NameSlot::Empty), ("taken", taken)]);
        work.offer = offer(choices);
        work.journal_full = choices.flag("journal-full");
        work.recently_provisioned = choices.flag("recorded-lately");
        let (stage, fresh) = match work.local.settings.intent {
            Intent::InMemory => (stage(choices), fresh(choices)),
            Intent::InJournal | Intent::OnClaim => (Stage::Nothing, fresh(choices)),
        };
        let memory = Memory { uid: "u".into(), stage, fresh, ..Memory::default() };
        decide(&View::Claim(ClaimView::Ours(work)), &memory)
    });
}

/// What CreateVolume needs before it is called (P33, P48, reliability 9).
#[test]
fn every_shape_of_what_a_call_needs() {
    check_table(env!("CARGO_MANIFEST_DIR"), "create", |choices| {
        let (mut work, mut terms) = (work(Intent::InJournal), terms());
        let mut memory = Memory { uid: "u".into(), owned: true, ..Memory::default() };
        work.intent = Some(IntentLocation::Claim);
        let infeasible = |until| Some((until, String::from("no")));
        memory.infeasible = choices.one_of(
            "infeasible",
            &[("no", None), ("lately", infeasible(Timestamp(NOW.0 + 1))), ("long-ago", infeasible(NOW))],
        );
        if choices.flag("source") {
            let (kind, namespace, name) = (SourceKind::Volume, "n".into(), "from".into());
            terms.request.source = Some(ContentSource { kind, namespace, name, handle: "f".into() });
            let source = api::Object::from(PersistentVolumeClaim::clone(&claim(false)));
            work.source_protection = choices.one_of(
                "hold",
                &[
                    ("not-needed", SourceProtection::NotNeeded),
                    ("missing", SourceProtection::Missing(source.clone())),
                    ("found", SourceProtection::Held(source)),
                    ("lost", SourceProtection::Lost { going: false }),
                    ("going", SourceProtection::Lost { going: true }),
                ],
            );
            (memory.holds, memory.hold_waived) = (choices.flag("held-by-us"), choices.flag("waived"));
        }
        if choices.flag("secret") {
            terms.secrets.provision = Some(SecretReference { namespace: "n".into(), name: "s".into() });
            memory.secrets = choices.flag("read").then(Secrets::default);
        }
        work.offer = ClassTerms::Standing(terms);
        decide(&View::Claim(ClaimView::Ours(work)), &memory)
    });
}

#[test]
fn every_other_shape_of_a_claim() {
    check_table(env!("CARGO_MANIFEST_DIR"), "other-claims", |choices| {
        let views = [
            "Gone",
            "NobodyAsked",
            "AnotherAsked",
            "ClassOfAnother",
            "Bound",
            "NotForNodes",
            "OnAnotherNode",
            "Recorded",
        ];
        let view = match choices.word("view", &views) {
            "Gone" => ClaimView::Gone,
            "NobodyAsked" => ClaimView::NobodyAsked,
            "AnotherAsked" => ClaimView::AnotherAsked("e".into()),
            "ClassOfAnother" => ClaimView::ClassOfAnother { class: "fast".into(), provisioner: "e".into() },
            "Bound" => ClaimView::Bound("v".into()),
            "NotForNodes" => ClaimView::OnAnotherNode(String::new()),
            "OnAnotherNode" => ClaimView::OnAnotherNode("b".into()),
            _recorded => {
                let page =
                    |crowded| IntentLocation::Journal(Arc::new(JournalView { crowded, ..JournalView::default() }));
                let places = [("none", None), ("claim", Some(IntentLocation::Claim)), ("journal", Some(page(false)))];
                let places = [&places[..], &[("crowded-journal", Some(page(true)))]].concat();
                let intent = choices.one_of("intent", &places);
                let since =
                    choices.one_of("since", &[("now", NOW), ("long", Timestamp(1)), ("later", Timestamp(NOW.0 + 1))]);
                ClaimView::Recorded { claim: claim(choices.flag("deleting")), intent, since }
            }
        };
        decide(&View::Claim(view), &Memory::default())
    });
}

// P81 to P84, reliability 8.
#[test]
fn every_shape_of_a_volume() {
    check_table(env!("CARGO_MANIFEST_DIR"), "volumes", |choices| {
        let mut volume = json!({ "metadata": { "name": "v", "uid": "u" }, "spec": {}, "status": {} });
        if choices.flag("deleting") {
            volume["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        if choices.flag("held") {
            volume["metadata"]["finalizers"] = json!([names::PROVISIONER_FINALIZER]);
        }
        volume["spec"]["persistentVolumeReclaimPolicy"] = choices.word("policy", &["Delete", "Retain"]).into();
        if choices.flag("csi") {
            volume["spec"]["csi"] = json!({ "driver": "d", "volumeHandle": "h" });
        }
        volume["status"]["phase"] = choices.word("phase", &["Available", "Bound", "Released", "Failed"]).into();
        let mut memory = Memory { uid: "u".into(), ..Memory::default() };
        memory.stage = choices.one_of("driver", &[("has-it", Stage::Nothing), ("deleted-it", Stage::Deleted)]);
        let makes = Capabilities::from_iter([ControllerRpc::CreateDeleteVolume]);
        let capabilities = if choices.flag("able") { Local::PLAIN } else { Local::PLAIN.difference(makes) };
        let attachments = if choices.flag("attached") { vec!["va".into()] } else { vec![] };
        let reference = SecretReference { namespace: "n".into(), name: "s".into() };
        let secret = choices.one_of(
            "secret",
            &[
                ("none", Ok(None)),
                ("named", Ok(Some(reference))),
                ("unknown", Err(Obstacle { code: crate::Reason::NoRoom, text: "no".into() })),
            ],
        );
        memory.secrets = choices.flag("read").then(Secrets::default);
        memory.fresh = fresh(choices);
        let volume = Arc::new(serde_json::from_value(volume).unwrap());
        let local = Local { capabilities, ..local() };
        decide(&View::Volume(VolumeView::Ours { volume, local, attachments, secret }), &memory)
    });
}
