//! What is decided on every shape of a view, as tables.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use api::fit::Fit;
use api::{ObjectKey, PersistentVolume, PersistentVolumeClaim, names};
use control::{Rules, Timestamp};
use prove_lab::{Choices, check_table, verdict};
use serde_json::{Value, json};

use crate::{
    AttributesProtection, AttributesView, Binding, BindingState, Candidate, ClaimFacts, ClaimView, Looked, Memory,
    MigrationMark, NamedVolume, Prospect, View, VolumeFacts, VolumeOwner, VolumeView,
};

const NOW: Timestamp = Timestamp(1_000);

fn metadata(choices: &mut Choices, name: &str, finalizer: &str) -> Value {
    let mut meta = json!({ "name": name, "namespace": "n", "uid": name, "annotations": {}, "finalizers": [] });
    if choices.flag("deleting") {
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    if choices.flag("protected") {
        meta["finalizers"] = json!([finalizer]);
    }
    meta
}

/// What the last fresh read of the pair found.
fn memory(choices: &mut Choices) -> Memory {
    let pair = || (String::from("v"), String::from("data"));
    let (volume, claim) = pair();
    let looked = match choices.word("read", &["nothing", "gone", "there", "there-long-ago", "gone-of-others"]) {
        "gone" => Looked::Gone { volume, claim },
        "there" => Looked::There { volume, claim, again: Timestamp(NOW.0 + 1) },
        "there-long-ago" => Looked::There { volume, claim, again: NOW },
        "gone-of-others" => Looked::Gone { volume, claim: "other".into() },
        _nothing => Looked::Nothing,
    };
    Memory { looked }
}

/// What is to be said about the driver that has taken over a plugin.
fn mark(choices: &mut Choices) -> MigrationMark {
    choices.one_of(
        "migration",
        &[("told", MigrationMark::Right), ("not-told", MigrationMark::Set("d")), ("undone", MigrationMark::Remove)],
    )
}

/// A volume, as far as binding it goes.
fn candidate(choices: &mut Choices, name: &str) -> Arc<PersistentVolume> {
    let refers = choices.one_of("refers", &[("yes", "data"), ("by-name", ""), ("no", "none")]);
    let phase = choices.word("volume-phase", &["Available", "Bound"]);
    let mut volume = json!({
        "metadata": { "name": name, "uid": name },
        "spec": { "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" } },
        "status": { "phase": phase },
    });
    if refers != "none" {
        volume["spec"]["claimRef"] = json!({ "namespace": "n", "name": "data", "uid": refers });
    }
    Arc::new(serde_json::from_value(volume).unwrap())
}

fn fit(choices: &mut Choices) -> Fit {
    choices.one_of(
        "fit",
        &[
            ("yes", Fit::Fits),
            ("deleting", Fit::Deleting),
            ("released", Fit::Released),
            ("bad-size", Fit::BadSize("is unreadable".into())),
            ("small", Fit::TooSmall),
            ("mode", Fit::OtherMode),
            ("access", Fit::OtherAccess),
            ("attributes", Fit::OtherAttributes),
            ("class", Fit::OtherClass),
        ],
    )
}

/// How far the claim's own half of a binding has come.
fn claim_half(choices: &mut Choices, claim: &mut Value) {
    match choices.word("claim", &["unbound", "points", "points-elsewhere", "Bound", "Bound-other-modes", "Lost"]) {
        "points-elsewhere" => {
            claim["spec"]["volumeName"] = "w".into();
            return;
        }
        "unbound" => return,
        "points" => {}
        "Bound" => claim["status"] = json!({ "phase": "Bound", "accessModes": ["ReadWriteOnce"] }),
        "Bound-other-modes" => claim["status"] = json!({ "phase": "Bound", "accessModes": ["ReadOnlyMany"] }),
        _lost => claim["status"] = json!({ "phase": "Lost" }),
    }
    claim["spec"]["volumeName"] = "v".into();
    claim["metadata"]["annotations"][names::BIND_COMPLETED] = "yes".into();
}

fn prospect(choices: &mut Choices, claim: &mut Value) -> Prospect {
    let (class, provisioner) = (String::from("fast"), String::from("d"));
    let prospects = [
        "Reserved",
        "Free",
        "BadRequest",
        "DefaultClass",
        "NoClass",
        "ClassMissing",
        "MadeByHand",
        "InTree",
        "AwaitsConsumer",
        "Provision",
    ];
    match choices.word("prospect", &prospects) {
        "Reserved" => {
            let fit = fit(choices);
            claim_half(choices, claim);
            Prospect::Reserved(Candidate { volume: candidate(choices, "v"), fit })
        }
        "Free" => Prospect::Free(candidate(choices, "v")),
        "BadRequest" => Prospect::BadRequest("is unreadable".into()),
        "DefaultClass" => Prospect::DefaultClass(class),
        "NoClass" => Prospect::NoClass,
        "ClassMissing" => Prospect::ClassMissing(class),
        "MadeByHand" => Prospect::MadeByHand(class),
        "InTree" => Prospect::InTree { class, provisioner },
        "AwaitsConsumer" => {
            let pods = if choices.flag("pods") { vec!["app".into()] } else { vec![] };
            Prospect::AwaitsConsumer { class, pods }
        }
        _provision => {
            match choices.word("called", &["nobody", "it", "another"]) {
                "it" => claim["metadata"]["annotations"][names::STORAGE_PROVISIONER] = "d".into(),
                "another" => claim["metadata"]["annotations"][names::STORAGE_PROVISIONER] = "e".into(),
                _nobody => {}
            }
            if choices.flag("intent") {
                let finalizers = claim["metadata"]["finalizers"].as_array_mut().unwrap();
                finalizers.push(names::PROVISIONING_INTENT.into());
            }
            Prospect::Provision { class, provisioner }
        }
    }
}

fn target(choices: &mut Choices, claim: &mut Value) -> NamedVolume {
    match choices.word("target", &["Nameless", "Missing", "Foreign", "Free", "Ours"]) {
        "Nameless" => {
            claim_half(choices, claim);
            NamedVolume::Nameless
        }
        "Missing" => {
            claim_half(choices, claim);
            NamedVolume::Missing("v".into())
        }
        "Foreign" => {
            claim_half(choices, claim);
            NamedVolume::Foreign { volume: "v".into(), holder: "n/other".into() }
        }
        free_or_ours => {
            let fit = fit(choices);
            let volume = candidate(choices, "v");
            claim_half(choices, claim);
            let candidate = Candidate { volume, fit };
            if free_or_ours == "Free" { NamedVolume::Free(candidate) } else { NamedVolume::Ours(candidate) }
        }
    }
}

#[test]
fn every_shape_of_a_claim() {
    check_table(env!("CARGO_MANIFEST_DIR"), "claims", |choices| {
        let mut claim = json!({ "metadata": metadata(choices, "data", names::PVC_PROTECTION),
            "spec": { "accessModes": ["ReadWriteOnce"] }, "status": { "phase": "Pending" } });
        let mark = mark(choices);
        if mark != MigrationMark::Right {
            let claim = Arc::new(serde_json::from_value(claim).unwrap());
            let standing = BindingState::Unbound(Prospect::NoClass);
            let facts = ClaimFacts { claim, used: Some(false), holders: vec![], mark, grown_by: None, standing };
            return verdict(&Binding::decide(NOW, &View::Claim(ClaimView::Here(facts)), &Memory::default()));
        }
        let (used, holders) = match choices.word("used", &["no", "by-a-pod", "by-a-pod-on-a-node"]) {
            "no" => (false, vec![]),
            "by-a-pod" => (true, vec![]),
            _on_a_node => (true, vec!["app".into()]),
        };
        let standing = match choices.word("standing", &["Unbound", "Named", "Completed"]) {
            "Unbound" => BindingState::Unbound(prospect(choices, &mut claim)),
            "Named" => BindingState::Named(target(choices, &mut claim)),
            _completed => BindingState::Completed(target(choices, &mut claim)),
        };
        // Where it matters: of a claim that says it is bound.
        if claim["status"]["phase"] == "Bound" {
            let told = choices.one_of("told", &[("nothing", None), ("used", Some("False")), ("unused", Some("True"))]);
            let told: Vec<Value> = told.iter().map(|word| json!({ "type": names::UNUSED, "status": word })).collect();
            claim["status"]["conditions"] = told.into();
        }
        let memory = memory(choices);
        let claim: PersistentVolumeClaim = serde_json::from_value(claim).unwrap();
        let grown_by = None;
        let facts = ClaimFacts { claim: Arc::new(claim), used: Some(used), holders, mark, grown_by, standing };
        verdict(&Binding::decide(NOW, &View::Claim(ClaimView::Here(facts)), &memory))
    });
}

fn holder(choices: &mut Choices) -> VolumeOwner {
    let claim = || ObjectKey::new("n", "data");
    choices.one_of(
        "holder",
        &[
            ("Nobody", VolumeOwner::Nobody),
            ("Reserved", VolumeOwner::Reserved(claim())),
            ("Unseen", VolumeOwner::Unseen { claim: claim(), uid: "data".into() }),
            ("Unbound", VolumeOwner::Unbound(claim())),
            ("Mismatched", VolumeOwner::Mismatched(claim())),
            ("Bound", VolumeOwner::Bound(claim())),
            ("Elsewhere", VolumeOwner::Elsewhere { claim: claim(), volume: "w".into() }),
        ],
    )
}

#[test]
fn every_shape_of_a_volume() {
    check_table(env!("CARGO_MANIFEST_DIR"), "volumes", |choices| {
        let mut volume = json!({ "metadata": metadata(choices, "v", names::PV_PROTECTION), "spec": {} });
        let mark = mark(choices);
        if mark != MigrationMark::Right {
            let volume = Arc::new(serde_json::from_value(volume).unwrap());
            let facts = VolumeFacts { volume, holder: VolumeOwner::Nobody, mark, served: false, pods: Vec::new() };
            return verdict(&Binding::decide(NOW, &View::Volume(VolumeView::Here(facts)), &Memory::default()));
        }
        let holder = holder(choices);
        volume["status"]["phase"] = choices.word("phase", &["", "Available", "Bound", "Released", "Failed"]).into();
        let policy = choices.word("policy", &["Retain", "Delete", "Recycle"]);
        volume["spec"]["persistentVolumeReclaimPolicy"] = policy.into();
        match choices.word("provisioner", &["none", "d", "in-tree"]) {
            "d" => volume["metadata"]["annotations"][names::PROVISIONED_BY] = "d".into(),
            "in-tree" => volume["metadata"]["annotations"][names::PROVISIONED_BY] = "kubernetes.io/rbd".into(),
            _none => {}
        }
        if choices.flag("csi") {
            volume["spec"]["csi"] = json!({ "driver": "d", "volumeHandle": "h" });
        }
        let memory = memory(choices);
        let volume: PersistentVolume = serde_json::from_value(volume).unwrap();
        // Only of a volume that is to be scrubbed is it asked.
        let pods = if policy == "Recycle" && choices.flag("used") { vec!["p".into()] } else { Vec::new() };
        let facts = VolumeFacts { volume: Arc::new(volume), holder, mark, served: false, pods };
        verdict(&Binding::decide(NOW, &View::Volume(VolumeView::Here(facts)), &memory))
    });
}

// PV-58.
#[test]
fn every_shape_of_an_attributes_class() {
    check_table(env!("CARGO_MANIFEST_DIR"), "attributes", |choices| {
        if choices.flag("gone") {
            return verdict(&AttributesProtection::decide(NOW, &AttributesView::Gone, &()));
        }
        let class = json!({ "metadata": metadata(choices, "gold", names::VAC_PROTECTION), "driverName": "d" });
        let user = choices.one_of("user", &[("nobody", None), ("a-claim", Some("claim n/data"))]).map(String::from);
        let view = AttributesView::Here { class: Arc::new(serde_json::from_value(class).unwrap()), user };
        verdict(&AttributesProtection::decide(NOW, &view, &()))
    });
}

#[test]
fn nothing_is_done_for_what_is_gone() {
    for view in [View::Claim(ClaimView::Gone), View::Volume(VolumeView::Gone)] {
        let decision = Binding::decide(NOW, &view, &Memory::default());
        assert!(decision.why().settled && verdict(&decision).starts_with("Rest "), "{decision:?}");
    }
}
