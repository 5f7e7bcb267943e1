//! What each answer changes in what is kept in mind, as a table. Memory may be lost at any moment, so that no law
//! notices a wrong one: it costs a call that was not needed, or leaves one out that was.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use api::{Kind, ObjectRef, SecretReference, Seen, Time};
use control::{Access, Action as _, BackOff, Capability, EventType, Mode, Narrate, Outcome, Refusal, Reply, Rules};
use control::{Secrets, Timestamp, Why};
use csi::v1::{ControllerExpandVolumeResponse, ControllerModifyVolumeResponse};
use csi::{Code, Response};
use prove_lab::{Choices, check_table, object};
use serde_json::json;

use crate::{
    Action, Begin, DriverVolume, GrowFailure, GrowMemory, Grown, GrowthReport, Local, Memory, ModifyFailure,
    ModifyMemory, ModifyReport, Reason, Resizer, Work,
};

const NOW: Timestamp = Timestamp(1_000_000);

fn seen() -> Seen {
    let object = ObjectRef::namespaced(Kind::PersistentVolumeClaim, "n", "c");
    Seen { object, uid: "u".into(), version: "1".into() }
}

/// With something in every field, so that what is forgotten shows. The size that was begun, refused and hopeless is 10.
fn full() -> Memory {
    let secrets = Some(Secrets([("key".into(), "value".into())].into()));
    let message = || String::from("no");
    let grow = GrowMemory {
        secrets: secrets.clone(),
        grown: Some(Grown { asked: 10, size: 10, node_goes_on: true }),
        sure: Some(10),
        refused: Some(10),
        hopeless: Some((10, Timestamp(7))),
        in_use: true,
        failure: Some(GrowFailure { size: 10, infeasible: true, message: message() }),
    };
    let failure = ModifyFailure { class: "gold".into(), infeasible: true, reason: "R".into(), message: message() };
    let modify = ModifyMemory {
        secrets,
        modified: Some("silver".into()),
        refused: Some("gold".into()),
        hopeless: Some(("gold".into(), Timestamp(7))),
        failure: Some(failure),
    };
    Memory { uid: "u".into(), owned: true, grow, modify }
}

/// A field as far as the table tells it.
fn fields(memory: &Memory) -> Vec<(&'static str, String)> {
    let (grow, modify) = (&memory.grow, &memory.modify);
    let secrets = |of: &Option<Secrets>| of.as_ref().map_or("none".into(), |secrets| secrets.0.len().to_string());
    let told = |failure: Option<(bool, &str, &str)>| failure.map_or("none".into(), |told| format!("{told:?}"));
    let grown = grow.failure.as_ref().map(|one| (one.infeasible, "", &*one.message));
    let modified = modify.failure.as_ref().map(|one| (one.infeasible, &*one.reason, &*one.message));
    vec![
        ("owned", memory.owned.to_string()),
        ("secrets", secrets(&grow.secrets)),
        ("grown", grow.grown.as_ref().map_or("none".into(), |grown| format!("{}/{}", grown.size, grown.node_goes_on))),
        ("sure", format!("{:?}", grow.sure)),
        ("refused", format!("{:?}", grow.refused)),
        ("hopeless", format!("{:?}", grow.hopeless)),
        ("in-use", grow.in_use.to_string()),
        ("failure", told(grown)),
        ("modify-secrets", secrets(&modify.secrets)),
        ("modified", format!("{:?}", modify.modified)),
        ("modify-refused", format!("{:?}", modify.refused)),
        ("modify-hopeless", format!("{:?}", modify.hopeless)),
        ("modify-failure", told(modified)),
    ]
}

/// What is not as it was before.
fn difference(before: &Memory, after: &Memory) -> String {
    let (before, after) = (fields(before), fields(after));
    let changed = before.iter().zip(&after).filter(|(before, after)| before != after);
    let told: Vec<String> = changed.map(|(_, (name, value))| format!("{name} {value}")).collect();
    if told.is_empty() { "as before".into() } else { told.join(", ") }
}

fn actions() -> Vec<(&'static str, Action)> {
    let claim = || String::from("u");
    let place = || DriverVolume { driver: "d".into(), handle: "h".into() };
    let access = Access::Mount { fs_type: String::new(), flags: vec![] };
    let capability = Capability { mode: Mode::SingleNodeWriter, access };
    let secret = || SecretReference { namespace: "n".into(), name: "s".into() };
    let at = || Time::from_unix_millis(0);
    let begin = |size| {
        let (gone, forget_not_required) = (vec![], false);
        Action::Begin(Begin { claim: seen(), size, recovers: true, gone, forget_not_required, at: at() })
    };
    let await_node = |again| Action::AwaitNode { claim: seen(), size: 10, recovers: true, again, at: at() };
    let expand = |size| Action::Expand {
        claim: claim(),
        place: place(),
        size,
        capability: capability.clone(),
        secrets: Secrets::default(),
    };
    let modify = |class: &str| Action::Modify {
        claim: claim(),
        place: place(),
        class: class.into(),
        parameters: BTreeMap::new(),
        secrets: Secrets::default(),
    };
    let report = GrowthReport { claim: seen(), infeasible: false, message: "no".into(), at: at() };
    let (class, reason, message) = (String::from("gold"), String::new(), String::new());
    let modified = ModifyReport { claim: seen(), class: class.clone(), infeasible: false, reason, message, at: at() };
    vec![
        ("ForgetBefore", Action::ForgetBefore { claim: claim(), volume: seen() }),
        ("Adopt", Action::Adopt { claim: seen(), of: Work::Growing }),
        ("Begin-the-same-size", begin(10)),
        ("Begin-another-size", begin(20)),
        ("ReadSecret", Action::ReadSecret { claim: claim(), of: Work::Growing, secret: secret() }),
        ("ReadSecret-to-modify", Action::ReadSecret { claim: claim(), of: Work::Modifying, secret: secret() }),
        ("Expand-to-the-size-begun", expand(10)),
        ("Expand-to-another-size", expand(9)),
        ("SetSize", Action::SetSize { claim: claim(), volume: seen(), size: 10, before: None }),
        ("AwaitNode", await_node(false)),
        ("AwaitNode-again", await_node(true)),
        ("Finish", Action::Finish { claim: seen(), size: 10, gone: vec![], recovers: true }),
        ("ReportGrowth", Action::ReportGrowth(report)),
        ("BeginModify", Action::BeginModify { claim: seen(), class: class.clone(), at: at() }),
        ("Pend", Action::Pend { claim: seen(), target: String::new() }),
        ("Modify-to-the-class-refused", modify("gold")),
        ("Modify-to-another-class", modify("bronze")),
        ("SetClass", Action::SetClass { claim: claim(), volume: seen(), class: class.clone() }),
        ("FinishModify", Action::FinishModify { claim: seen(), class, gone: vec![] }),
        ("ReportModify", Action::ReportModify(modified)),
        ("CancelModify", Action::CancelModify { claim: seen() }),
    ]
}

fn replies(action: &str) -> Vec<(&'static str, Reply)> {
    let grown = |capacity_bytes, node_expansion_required| {
        let answer = ControllerExpandVolumeResponse { capacity_bytes, node_expansion_required };
        Reply::Csi(Response::ControllerExpandVolume(answer))
    };
    match action.split('-').next().unwrap_or_default() {
        "ReadSecret" => {
            let body = json!({ "metadata": { "namespace": "n", "name": "s" }, "data": { "a": "Yg==", "c": "ZA==" } });
            vec![("found", Reply::Object(object(Kind::Secret, body))), ("gone", Reply::Gone)]
        }
        "Expand" => vec![
            ("grown", grown(10, false)),
            ("grown-and-the-node-goes-on", grown(11, true)),
            ("grown-without-a-size", grown(0, false)),
            ("too-small", grown(8, false)),
        ],
        "Modify" => {
            vec![("modified", Reply::Csi(Response::ControllerModifyVolume(ControllerModifyVolumeResponse {})))]
        }
        _ => vec![("done", Reply::Nothing)],
    }
}

fn outcome(choices: &mut Choices, action: &str) -> Outcome {
    let refused = |code| Refusal::Driver(code, "no".into());
    let refusals = [
        ("conflict", Refusal::Conflict),
        ("denied", Refusal::Denied("no".into())),
        ("driver-invalid", refused(Code::InvalidArgument)),
        ("driver-out-of-range", refused(Code::OutOfRange)),
        ("driver-not-found", refused(Code::NotFound)),
        ("driver-in-use", refused(Code::FailedPrecondition)),
        ("driver-internal", refused(Code::Internal)),
    ];
    let mut answers: Vec<(&'static str, Outcome)> =
        replies(action).into_iter().map(|(name, reply)| (name, Outcome::Done(reply))).collect();
    answers.extend(refusals.map(|(name, refusal)| (name, Outcome::Refused(refusal))));
    answers.push(("unknown", Outcome::Unknown("lost".into())));
    choices.one_of("answer", &answers)
}

// Sidecars 7.2: what can be tried again and what cannot; reliability 7: what an unknown answer still may have done.
#[test]
fn what_each_answer_changes_in_what_is_kept_in_mind() {
    let actions = actions();
    let names: Vec<(&'static str, usize)> = actions.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect();
    check_table(env!("CARGO_MANIFEST_DIR"), "memory", |choices| {
        let (name, action) = &actions[choices.one_of("did", &names)];
        let got = outcome(choices, name);
        let before = full();
        difference(&before, &Resizer::remember(NOW, before.clone(), action, &got))
    });
}

// Sidecars 4.4, 4.5.
#[test]
fn what_is_told_of_each_action() {
    let actions = actions();
    let names: Vec<(&'static str, usize)> = actions.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect();
    check_table(env!("CARGO_MANIFEST_DIR"), "news", |choices| {
        let news = actions[choices.one_of("action", &names)].1.news();
        let reason = |told: Option<(&'static str, String)>| told.map_or("nothing", |(reason, _)| reason);
        format!("begun {}, done {}, failed {}", reason(news.begun), reason(news.done), news.failed.unwrap_or("nothing"))
    });
}

// A claim that waits for a class that is not there says so in its events.
#[test]
fn what_lasts_is_told_on_the_claim() {
    let key = crate::Key(api::ObjectKey::new("n", "c"));
    let why = Why::waiting(Reason::AttributesClassMissing, "");
    assert_eq!(Resizer::rest_event(&key, &why), Some((EventType::Warning, "VolumeModifyFailed")));
}

// C5: --retry-interval-start and --retry-interval-max.
#[test]
fn the_flags_of_retrying_hold() {
    let pauses = BackOff { first: 7, longest: 8 };
    let mut local = Local::new("d", [csi::ControllerRpc::ExpandVolume]);
    local.pauses = pauses;
    assert_eq!(Resizer::back_off(&local), pauses);
}
