//! What each answer changes in what is kept in mind, as a table. Memory may be lost at any moment, so that no law
//! notices a wrong one: it costs a call that was not needed, or leaves one out that was.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use api::{Kind, Object, ObjectKey, SecretReference, names};
use control::{Action as _, Outcome, Refusal, Reply, Secrets, Timestamp};
use csi::v1::{CreateVolumeResponse, DeleteVolumeResponse, GetCapacityResponse, Volume};
use csi::{Code, Response};
use prove_lab::{Choices, check_table, object};
use serde_json::{Value, json};

use super::tables::{claim, made, terms};
use super::world::local;
use crate::memory::attempt;
use crate::{Action, Fresh, Headroom, InFlight, IntentLocation, Memory, OwnNode, Stage, VolumeRequest};

const NOW: Timestamp = Timestamp(1_000_000);

fn in_flight() -> Arc<InFlight> {
    Arc::new(InFlight { claim: claim(false), local: local(), terms: terms(), in_tree: None })
}

/// With something in every field, so that what is forgotten shows.
fn full(sure: bool, stage: Stage) -> Memory {
    Memory {
        uid: "u".into(),
        owned: true,
        sure,
        stage,
        fresh: Fresh::Wanted,
        secrets: Some(Secrets([("key".into(), "value".into())].into())),
        holds: true,
        hold_waived: true,
        infeasible: Some((Timestamp(7), "no".into())),
        conflicts: 3,
        headroom: Headroom::Enough,
        in_flight: Some(in_flight()),
    }
}

/// A field as far as the table tells it.
fn fields(memory: &Memory) -> Vec<(&'static str, String)> {
    let infeasible = memory.infeasible.as_ref().map(|(until, why)| format!("until {} {why}", until.0));
    vec![
        ("uid", memory.uid.clone()),
        ("owned", memory.owned.to_string()),
        ("sure", memory.sure.to_string()),
        ("stage", format!("{:?}", memory.stage)),
        ("fresh", format!("{:?}", memory.fresh)),
        ("secrets", memory.secrets.as_ref().map_or("none".into(), |secrets| format!("{} of them", secrets.0.len()))),
        ("holds", memory.holds.to_string()),
        ("hold_waived", memory.hold_waived.to_string()),
        ("infeasible", infeasible.unwrap_or_else(|| "no".into())),
        ("conflicts", memory.conflicts.to_string()),
        ("headroom", format!("{:?}", memory.headroom)),
        ("in_flight", if memory.in_flight.is_some() { "yes".into() } else { "no".into() }),
    ]
}

/// What is not as it was before.
fn difference(before: &Memory, after: &Memory) -> String {
    let (before, after) = (fields(before), fields(after));
    let changed = before.iter().zip(&after).filter(|(before, after)| before != after);
    let told: Vec<String> = changed.map(|(_, (name, value))| format!("{name} {value}")).collect();
    if told.is_empty() { "as before".into() } else { told.join(", ") }
}

pub(super) fn request() -> VolumeRequest {
    VolumeRequest { required_bytes: 10, ..terms().request }
}

fn secret() -> SecretReference {
    SecretReference { namespace: "n".into(), name: "s".into() }
}

pub(super) fn actions() -> Vec<(&'static str, Action)> {
    let (uid, name, driver): (String, String, Arc<str>) = ("u".into(), "pvc-u".into(), "d".into());
    let place = IntentLocation::Claim;
    let (claim, request) = (claim(false), request());
    let source = object(Kind::PersistentVolumeClaim, json!({ "metadata": { "name": "s", "namespace": "n" } }));
    let read = |needed| Action::ReadSecret { uid: "u".into(), secret: secret(), needed };
    let delete = |undo| Action::DeleteVolume {
        uid: "u".into(),
        driver: "d".into(),
        volume_id: "h".into(),
        secrets: Secrets::default(),
        undo,
    };
    let create = |in_flight| Action::CreateVolume {
        uid: "u".into(),
        driver: "d".into(),
        request: request.clone(),
        secrets: Secrets::default(),
        in_tree: None,
        in_flight,
    };
    let key = ObjectKey::new("n", "data");
    vec![
        ("RecordIntent", Action::RecordIntent { claim: claim.clone(), place: place.clone(), record: String::new() }),
        ("AdoptIntent", Action::AdoptIntent { claim: claim.clone(), place: place.clone() }),
        ("AddSourceFinalizer", Action::AddSourceFinalizer { uid: uid.clone(), source, finalizer: "f" }),
        ("ReadSecret", read(true)),
        ("ReadSecret-that-may-lack", read(false)),
        ("CreateVolume", create(None)),
        ("CreateVolume-in-memory", create(Some(in_flight()))),
        (
            "CreatePv",
            Action::CreatePv { claim: claim.clone(), local: local(), terms: terms(), made: made("h"), in_tree: None },
        ),
        ("AskCapacity", Action::AskCapacity { uid: uid.clone(), driver, request, node: OwnNode::default() }),
        ("TakeClaim", Action::TakeClaim { claim: claim.clone(), node: "n0".into() }),
        ("LookAtClaim", Action::LookAtClaim { key, uid: uid.clone() }),
        ("LookForPv", Action::LookForPv { uid: uid.clone(), name: name.clone() }),
        ("LookAtPv", Action::LookAtPv { uid: uid.clone(), name: name.clone() }),
        ("LookForAttachments", Action::LookForAttachments { name, uid }),
        ("DeleteVolume", delete(false)),
        ("DeleteVolume-undone", delete(true)),
        ("DropIntent", Action::DropIntent { claim: claim.clone(), place }),
        ("Reschedule", Action::Reschedule(claim)),
    ]
}

fn volume(spec: Value, deleting: bool, finalizers: &[&str]) -> Reply {
    let mut body = json!({
        "metadata": { "name": "pvc-u", "uid": "u", "finalizers": finalizers }, "spec": spec,
        "status": { "phase": "Released" },
    });
    if deleting {
        body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    Reply::Object(object(Kind::PersistentVolume, body))
}

fn held_by(uid: &str) -> Reply {
    let holder = json!({ "namespace": "n", "name": "data", "uid": uid });
    let spec = json!({
        "claimRef": holder, "persistentVolumeReclaimPolicy": "Delete",
        "csi": { "driver": "d", "volumeHandle": "theirs" },
    });
    volume(spec, false, &[])
}

fn condemned(finalizers: &[&str]) -> Reply {
    let holder = json!({ "namespace": "n", "name": "data", "uid": "gone" });
    let spec = json!({
        "claimRef": holder, "persistentVolumeReclaimPolicy": "Delete", "csi": { "driver": "d", "volumeHandle": "h" },
    });
    volume(spec, false, finalizers)
}

fn claim_read(uid: &str, volume: &str, deleting: bool) -> Reply {
    let mut body = json!({
        "metadata": { "namespace": "n", "name": "data", "uid": uid }, "spec": { "volumeName": volume },
    });
    if deleting {
        body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    Reply::Object(object(Kind::PersistentVolumeClaim, body))
}

fn attachment(volume: &str) -> Object {
    let source = json!({ "persistentVolumeName": volume });
    let spec = json!({ "attacher": "d", "nodeName": "x", "source": source });
    object(Kind::VolumeAttachment, json!({ "metadata": { "name": "a" }, "spec": spec }))
}

fn created(id: &str, capacity_bytes: i64) -> Reply {
    let volume = Volume { volume_id: id.into(), capacity_bytes, ..Volume::default() };
    Reply::Csi(Response::CreateVolume(CreateVolumeResponse { volume: Some(volume) }))
}

fn capacity(available_capacity: i64, maximum_volume_size: Option<i64>) -> Reply {
    Reply::Csi(Response::GetCapacity(GetCapacityResponse {
        available_capacity,
        maximum_volume_size,
        ..GetCapacityResponse::default()
    }))
}

/// The answers that an action can get if it is done.
fn replies(action: &str) -> Vec<(&'static str, Reply)> {
    match action.split('-').next().unwrap_or_default() {
        "ReadSecret" => {
            let body = json!({ "metadata": { "namespace": "n", "name": "s" }, "data": { "a": "Yg==", "c": "ZA==" } });
            vec![("found", Reply::Object(object(Kind::Secret, body))), ("gone", Reply::Gone)]
        }
        "CreateVolume" => vec![
            ("made", created("h", 10)),
            ("made-of-unknown-size", created("h", 0)),
            ("made-too-small", created("h", 9)),
            ("made-without-a-name", created("", 10)),
        ],
        "AskCapacity" => vec![
            ("room", capacity(10, None)),
            ("no-room", capacity(9, None)),
            ("room-for-one-as-large", capacity(10, Some(10))),
            ("room-for-smaller-ones", capacity(10, Some(9))),
        ],
        "LookAtClaim" => vec![
            ("wants-one", claim_read("u", "", false)),
            ("has-one", claim_read("u", "v", false)),
            ("is-another", claim_read("x", "", false)),
            ("is-being-deleted", claim_read("u", "", true)),
            ("gone", Reply::Gone),
        ],
        "LookForPv" => vec![("ours", held_by("u")), ("another's", held_by("x")), ("gone", Reply::Gone)],
        "LookAtPv" => vec![
            ("condemned", condemned(&[])),
            ("condemned-once-attached", condemned(&[&format!("{}d", names::ATTACHER_FINALIZERS)])),
            ("gone", Reply::Gone),
        ],
        "LookForAttachments" => vec![
            ("none", Reply::Objects(vec![])),
            ("of-others", Reply::Objects(vec![attachment("other")])),
            ("of-the-volume", Reply::Objects(vec![attachment("other"), attachment("pvc-u")])),
        ],
        "DeleteVolume" => vec![("deleted", Reply::Csi(Response::DeleteVolume(DeleteVolumeResponse {})))],
        _ => vec![("done", Reply::Nothing)],
    }
}

fn outcome(choices: &mut Choices, action: &str) -> Outcome {
    let refused = |code| Refusal::Driver(code, "no".into());
    let refusals = [
        ("conflict", Refusal::Conflict),
        ("not-found", Refusal::NotFound),
        ("already-exists", Refusal::AlreadyExists),
        ("denied", Refusal::Denied("no".into())),
        ("driver-invalid", refused(Code::InvalidArgument)),
        ("driver-exhausted", refused(Code::ResourceExhausted)),
        ("driver-exists", refused(Code::AlreadyExists)),
        ("driver-internal", refused(Code::Internal)),
    ];
    let mut answers: Vec<(&'static str, Outcome)> =
        replies(action).into_iter().map(|(name, reply)| (name, Outcome::Done(reply))).collect();
    answers.extend(refusals.map(|(name, refusal)| (name, Outcome::Refused(refusal))));
    answers.push(("unknown", Outcome::Unknown("no".into())));
    choices.one_of("answer", &answers)
}

fn chosen(choices: &mut Choices) -> (Action, Outcome) {
    let actions = actions();
    let names: Vec<(&'static str, usize)> = actions.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect();
    let (name, action) = actions[choices.one_of("did", &names)].clone();
    let got = outcome(choices, name);
    (action, got)
}

// P46: what the driver's code means for the volume; P21, P76; P33; P60; P94 to P96; reliability 7, 8, 105.
#[test]
fn what_each_answer_changes_in_what_is_kept_in_mind() {
    check_table(env!("CARGO_MANIFEST_DIR"), "memory", |choices| {
        let (action, got) = chosen(choices);
        let before = match action {
            Action::CreateVolume { .. } | Action::DropIntent { .. } | Action::Reschedule(_) => {
                let stages =
                    [("created", Stage::Created(made("h"))), ("exhausted", Stage::Refused { exhausted: true })];
                full(choices.flag("sure"), choices.one_of("stage", &stages))
            }
            _ => full(true, Stage::Nothing),
        };
        difference(&before, &before.clone().after(NOW, &action, &got))
    });
}

// Reliability 13: what is known of a namesake is nothing.
#[test]
fn a_namesake_starts_with_nothing_in_mind() {
    let of_another = Memory { uid: "x".into(), ..full(true, Stage::Committed) };
    let list = Action::LookForAttachments { uid: "u".into(), name: "pvc-u".into() };
    let after = of_another.after(NOW, &list, &Outcome::Unknown("no".into()));
    assert_eq!(after, Memory { uid: "u".into(), ..Memory::default() });
}

/// How each answer counts in the row of failures, by which the pause before the next attempt grows.
#[test]
fn how_each_answer_counts_in_a_row_of_failures() {
    check_table(env!("CARGO_MANIFEST_DIR"), "attempts", |choices| {
        let (action, got) = chosen(choices);
        format!("{:?}", attempt(&action, &got))
    });
}

// Sidecars 7.1: what users are told of each action, and under which reason if it fails.
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
