//! What is decided on every shape of a view, as tables.

use alloc::vec;
use alloc::vec::Vec;

use api::{AttachedVolume, Kind, ObjectKey, ObjectRef, Seen};
use control::{Outcome, Reply, Rules, Timestamp};
use prove_lab::{Choices, check_table, verdict};

use crate::{
    Action, AttachDetach, Attachment, HolderEvidence, Key, Memory, NodeFacts, Pair, Proof, Rival, Unwanted, View, Want,
};

fn seen(kind: Kind, name: &str, version: &str) -> Seen {
    Seen { object: ObjectRef::cluster(kind, name), uid: name.into(), version: version.into() }
}

fn node(choices: &mut Choices) -> Option<NodeFacts> {
    let reports = |name: &str| AttachedVolume { name: name.into(), ..AttachedVolume::default() };
    if !choices.flag("node") {
        return None;
    }
    let mut reported = vec![reports("other")];
    if choices.flag("reported") {
        reported.push(reports("v"));
    }
    let (in_use, managed) = (choices.flag("in-use"), choices.flag("managed"));
    Some(NodeFacts { seen: seen(Kind::Node, "a", "1"), managed, reported, in_use })
}

fn attachment(choices: &mut Choices, name: &str) -> Attachment {
    let deleting = choices.flag("deleting");
    let (attached, error) = match choices.word("attacher-says", &["attached", "nothing", "error"]) {
        "attached" => (true, None),
        "error" => (false, Some("no".into())),
        _nothing => (false, None),
    };
    Attachment { seen: seen(Kind::VolumeAttachment, name, "1"), deleting, attached, error }
}

fn attachments(choices: &mut Choices) -> Vec<Attachment> {
    match choices.word("attachments", &["none", "proper", "improper", "both"]) {
        "proper" => vec![attachment(choices, "va")],
        "improper" => vec![attachment(choices, "odd")],
        "both" => vec![attachment(choices, "odd"), attachment(choices, "va")],
        _none => vec![],
    }
}

fn rival(choices: &mut Choices) -> Option<Rival> {
    let holder = |holder| Some(Rival::Holder { node: "b".into(), holder });
    let attachment = |deleting| Some(Rival::Attachment { node: "b".into(), deleting });
    choices.one_of(
        "rival",
        &[
            ("none", None),
            ("attachment", attachment(false)),
            ("attachment-leaving", attachment(true)),
            ("reported", holder(HolderEvidence::Reported)),
            ("in-use", holder(HolderEvidence::InUse)),
            ("earlier", Some(Rival::Earlier { node: "b".into() })),
        ],
    )
}

fn memory(choices: &mut Choices) -> Memory {
    let proof = |node: Option<&str>, version| {
        let attachments = vec![seen(Kind::VolumeAttachment, "va", version)];
        Some(Proof { node: node.map(Into::into), attachments })
    };
    let proof = choices.one_of(
        "proof",
        &[
            ("none", None),
            ("this-node", proof(Some("a"), "1")),
            ("another-node", proof(Some("x"), "1")),
            ("node-gone", proof(None, "1")),
            ("older-attachment", proof(Some("a"), "0")),
        ],
    );
    let safe = choices.one_of("safe", &[("none", vec![]), ("proper", vec!["va"]), ("all", vec!["va", "odd"])]);
    Memory { safe: safe.into_iter().map(Into::into).collect(), proof }
}

#[test]
fn every_shape_of_a_volume_on_a_node() {
    check_table(env!("CARGO_MANIFEST_DIR"), "pairs", |choices| {
        let unwanted = |reason| Want::Unwanted(reason);
        let want = choices.one_of(
            "want",
            &[
                ("Wanted", Want::Wanted(ObjectKey::new("n", "p"))),
                ("NoPod", unwanted(Unwanted::NoPod)),
                ("NoAttachRequired", unwanted(Unwanted::NoAttachRequired)),
                ("NodeGone", unwanted(Unwanted::NodeGone)),
            ],
        );
        let node = node(choices);
        let pair = Pair {
            key: Key::new("v", "a"),
            driver: "d".into(),
            unique_name: "v".into(),
            attachment_name: "va".into(),
            want,
            node,
            attachments: attachments(choices),
            rival: rival(choices),
            rival_pods: vec![],
            driver_known: true,
        };
        verdict(&AttachDetach::decide(Timestamp(0), &View::Pair(pair), &memory(choices)))
    });
}

#[test]
fn every_other_shape() {
    check_table(env!("CARGO_MANIFEST_DIR"), "others", |choices| {
        let key = Key::new("v", "a");
        let view = match choices.word("view", &["VolumeMissing", "NotCsi"]) {
            "NotCsi" => View::NotCsi(key),
            _missing => View::VolumeMissing { key, attachment: choices.flag("attachment").then(|| "va".into()) },
        };
        verdict(&AttachDetach::decide(Timestamp(0), &view, &Memory::default()))
    });
}

// Reliability 28: a proof is about attachments; without any there is nothing it could allow.
#[test]
fn an_answer_about_no_attachment_is_no_proof() {
    let node = seen(Kind::Node, "a", "1");
    let did = Action::Fence { node, unique_name: "v".into(), attachments: vec![] };
    let got = Outcome::Done(Reply::Object(api::Node::default().into()));
    assert_eq!(AttachDetach::remember(Timestamp(0), Memory::default(), &did, &got), Memory::default());
}
