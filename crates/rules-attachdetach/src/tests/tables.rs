//! What is decided on every shape of a view, as tables.

use alloc::vec;
use alloc::vec::Vec;

use api::{AttachedVolume, AttachmentSource, Kind, ObjectKey, ObjectRef, Seen};
use control::{Outcome, Pulse, Reply, Rules, Timestamp};
use prove_lab::{Choices, check_table, verdict};
use rules_translate::Plugin;

use crate::{
    Action, AttachDetach, Attachment, ForcePolicy, HolderEvidence, Key, Memory, NodeFacts, Pair, Proof, Rival,
    Unwanted, View, Want,
};

const NOW: Timestamp = Timestamp(10_000_000);

fn seen(kind: Kind, name: &str, version: &str) -> Seen {
    Seen { object: ObjectRef::cluster(kind, name), uid: name.into(), version: version.into() }
}

fn reports(name: &str) -> AttachedVolume {
    AttachedVolume { name: name.into(), ..AttachedVolume::default() }
}

fn node(choices: &mut Choices) -> Option<NodeFacts> {
    if !choices.flag("node") {
        return None;
    }
    let mut reported = vec![reports("other")];
    if choices.flag("reported") {
        reported.push(reports("v"));
    }
    let (in_use, managed) = (choices.flag("in-use"), choices.flag("managed"));
    let used = if in_use { vec!["other".into(), "v".into()] } else { vec![] };
    Some(NodeFacts {
        seen: seen(Kind::Node, "a", "1"),
        managed,
        reported,
        used,
        in_use,
        held_by_plugin: false,
        unheard: false,
    })
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
    let attachment = |deleting| Some(Rival::Attachment { node: "b".into(), deleting, error: None });
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
    Memory { safe: safe.into_iter().map(Into::into).collect(), proof, ..Memory::default() }
}

/// Whether the volume may be taken from the node, and what its Lease said.
fn force(choices: &mut Choices) -> (ForcePolicy, Option<Pulse>) {
    let policies = [
        ("never", ForcePolicy::Never(None)),
        ("out-of-service", ForcePolicy::OutOfService),
        ("after-a-while", ForcePolicy::After(300_000)),
    ];
    let policy = choices.one_of("force", &policies);
    let pulse = |since: u64, read: u64, beats: bool| {
        let (since, read) = (Timestamp(NOW.0 - since), Timestamp(NOW.0 - read));
        Some(Pulse { version: Some("1".into()), renewed: Some(since.0), lease_millis: 40_000, since, read, beats })
    };
    let pulses = [
        ("unread", None),
        ("renewed", pulse(10_000, 0, true)),
        ("not-yet-expired", pulse(10_000, 0, false)),
        ("expired-a-minute-ago", pulse(100_000, 0, false)),
        ("expired-long-ago", pulse(400_000, 0, false)),
        ("read-long-ago", pulse(400_000, 60_000, false)),
    ];
    (policy, choices.one_of("lease", &pulses))
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
                ("VolumeGone", unwanted(Unwanted::VolumeGone)),
            ],
        );
        let node = node(choices);
        let pair = Pair {
            key: Key::new("v", "a"),
            driver: "d".into(),
            unique_name: "v".into(),
            plugin_name: None,
            asks: None,
            source: AttachmentSource::default(),
            attachment_name: "va".into(),
            want,
            node,
            attachments: attachments(choices),
            rival: rival(choices),
            rival_pods: vec![],
            driver_known: true,
            force: ForcePolicy::Never(None),
        };
        verdict(&AttachDetach::decide(NOW, &View::Pair(pair), &memory(choices)))
    });
}

// AD-16 to AD-21: when a volume is taken from a node that says it uses it.
#[test]
fn every_shape_of_a_node_that_may_be_dead() {
    check_table(env!("CARGO_MANIFEST_DIR"), "dead-nodes", |choices| {
        let unwanted = [
            ("NoPod", Unwanted::NoPod),
            ("NoAttachRequired", Unwanted::NoAttachRequired),
            ("VolumeGone", Unwanted::VolumeGone),
        ];
        let want = Want::Unwanted(choices.one_of("why-not", &unwanted));
        let (force, pulse) = force(choices);
        let (unheard, used) = (choices.flag("unheard-of"), vec!["v".into()]);
        let reported = if choices.flag("reported") { vec![reports("v")] } else { vec![] };
        let node = NodeFacts {
            seen: seen(Kind::Node, "a", "1"),
            managed: true,
            reported,
            used,
            in_use: true,
            held_by_plugin: false,
            unheard,
        };
        let attachment = |deleting| Attachment {
            seen: seen(Kind::VolumeAttachment, "va", "1"),
            deleting,
            attached: true,
            error: None,
        };
        let attachments = [("none", vec![]), ("staying", vec![attachment(false)]), ("leaving", vec![attachment(true)])];
        let pair = Pair {
            key: Key::new("v", "a"),
            driver: "d".into(),
            unique_name: "v".into(),
            plugin_name: None,
            asks: None,
            source: AttachmentSource::default(),
            attachment_name: "va".into(),
            want,
            node: Some(node),
            attachments: choices.one_of("attachment", &attachments),
            rival: None,
            rival_pods: vec![],
            driver_known: true,
            force,
        };
        let memory = Memory { pulse, ..Memory::default() };
        verdict(&AttachDetach::decide(NOW, &View::Pair(pair), &memory))
    });
}

// S4-32, S4-33: a volume of an in-tree plugin that a driver serves, that nobody may, and that the plugin does.
#[test]
fn every_shape_of_a_volume_of_a_plugin() {
    check_table(env!("CARGO_MANIFEST_DIR"), "plugins", |choices| {
        let wants = [
            ("Wanted", Want::Wanted(ObjectKey::new("n", "p"))),
            ("Disputed", Want::Disputed(ObjectKey::new("n", "p"), Plugin::GcePd)),
            ("ServedByPlugin", Want::Unwanted(Unwanted::ServedByPlugin(Plugin::GcePd))),
        ];
        let want = choices.one_of("want", &wants);
        let holds = choices.word("node-holds-it", &["not", "by-driver", "by-plugin"]);
        let reported = if choices.flag("reported") { vec![reports("v")] } else { vec![] };
        let node = choices.flag("node").then(|| NodeFacts {
            seen: seen(Kind::Node, "a", "1"),
            managed: true,
            reported,
            used: vec![],
            in_use: holds != "not",
            held_by_plugin: holds == "by-plugin",
            unheard: false,
        });
        let pair = Pair {
            key: Key::new("v", "a"),
            driver: "d".into(),
            unique_name: "v".into(),
            plugin_name: Some("kubernetes.io/gce-pd/v".into()),
            asks: None,
            source: AttachmentSource::default(),
            attachment_name: "va".into(),
            want,
            node,
            attachments: if choices.flag("attachment") { vec![attachment(choices, "va")] } else { vec![] },
            rival: None,
            rival_pods: vec![],
            driver_known: true,
            force: ForcePolicy::Never(None),
        };
        verdict(&AttachDetach::decide(NOW, &View::Pair(pair), &Memory::default()))
    });
}

#[test]
fn every_other_shape() {
    check_table(env!("CARGO_MANIFEST_DIR"), "others", |choices| {
        let key = Key::new("v", "a");
        let view = match choices.word("view", &["VolumeMissing", "Known", "NotCsi", "Unattachable", "ServedByPlugin"]) {
            "NotCsi" => View::NotCsi(key),
            "Known" => View::Known { key, by: "w".into() },
            "Unattachable" => View::Unattachable { key, problem: "no".into(), wanted: choices.flag("wanted") },
            "ServedByPlugin" => View::ServedByPlugin(key, Plugin::GcePd),
            _missing => View::VolumeMissing { key, attachment: choices.flag("attachment").then(|| "va".into()) },
        };
        verdict(&AttachDetach::decide(Timestamp(0), &view, &Memory::default()))
    });
}

// Reliability 28: a proof is about attachments; without any there is nothing it could allow.
#[test]
fn an_answer_about_no_attachment_is_no_proof() {
    let node = seen(Kind::Node, "a", "1");
    let did = Action::Fence { node, names: vec!["v".into()], attachments: vec![] };
    let got = Outcome::Done(Reply::Object(api::Node::default().into()));
    assert_eq!(AttachDetach::remember(Timestamp(0), Memory::default(), &did, &got), Memory::default());
}
