//! What is decided on every shape of a view, as tables.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;

use api::{ObjectKey, Pod};
use control::host::ProcessState;
use control::{Decision, Rules, Timestamp};
use csi::NodeRpc;
use prove_lab::{Choices, check_table, verdict};
use serde_json::json;

use crate::paths::{Paths, own_dirs, pod_dirs};
use crate::{
    Action, AttachProof, AttachmentState, ContainerView, DriverFacts, Memory, MountState, Node, NodeSide, OnNode,
    PodView, PodVolumeView, Publish, Record, RecordSide, Remains, ToldOfNode, User, UserState, View, VolumeSpec,
    VolumeView,
};

const NOW: Timestamp = Timestamp(1_000_000);
const TARGET: &str = "/r/pods/u/t/mount";

fn decide(view: &View, memory: &Memory) -> String {
    verdict(&Node::decide(NOW, view, memory))
}

/// A volume that nobody wants and nothing is known of.
fn volume() -> VolumeView {
    VolumeView {
        node: "n".into(),
        incarnation: "life-1".into(),
        name: "v".into(),
        driver: "d".into(),
        handle: "h".into(),
        paths: Paths {
            dir: "/r/d".into(),
            staging: "/r/d/globalmount".into(),
            record: "/r/d/record".into(),
            published: String::new(),
        },
        node_side: NodeSide::Missing,
        spec: None,
        attachment: AttachmentState::Attached,
        facts: None,
        record: RecordSide::Missing,
        ephemeral: false,
        staged: MountState::No,
        staged_by_us: false,
        users: BTreeMap::new(),
        out_of_reach: None,
        undrained: None,
        stray: None,
        growth: None,
        clearing: None,
        maybe_recorded: false,
    }
}

fn node_side(choices: &mut Choices) -> NodeSide {
    match choices.word("node", &["missing", "another-life", "ours"]) {
        "missing" => NodeSide::Missing,
        "another-life" => NodeSide::NotYet,
        _ours => {
            let (attached, listed) = (choices.flag("reported-attached"), choices.flag("reported-in-use"));
            NodeSide::Ours(OnNode { version: "5".into(), in_use: None, listed, attached })
        }
    }
}

fn facts(choices: &mut Choices) -> Option<DriverFacts> {
    let facts = |stages: bool| Some(DriverFacts::new(stages.then_some(NodeRpc::StageUnstageVolume)));
    choices.one_of("driver", &[("stages", facts(true)), ("does-not-stage", facts(false)), ("missing", None)])
}

fn user(standing: UserState, mounted: bool, recorded: bool) -> User {
    User {
        pod: ObjectKey::new("ns", "a"),
        service_account: String::new(),
        target: TARGET.into(),
        read_only: false,
        standing,
        mounted: MountState::from(mounted),
        recorded,
        mount_group: None,
        group: None,
        grouped: false,
        vanished: false,
        health: None,
        recovered: false,
    }
}

/// What the record says: of staging where the driver stages, and of the pod where it is recorded.
fn record(staging: bool, published: bool) -> Record {
    let mut record = Record::of("pv", "d", "h", "n");
    record.staging_path = staging.then(|| "/r/d/globalmount".into());
    if published {
        let publish =
            Publish { target: TARGET.into(), pod_namespace: "ns".into(), pod_name: "a".into(), read_only: false };
        record.publishes.insert("u".into(), publish);
    }
    record
}

fn proof(choices: &mut Choices) -> Option<AttachProof> {
    let proof = |version, holds| Some(AttachProof { version, holds });
    choices.one_of(
        "proof",
        &[
            ("none", None),
            ("holds", proof(5, true)),
            ("fails", proof(5, false)),
            ("failed-before", proof(4, false)),
            ("held-before", proof(4, true)),
        ],
    )
}

// Reliability 29, 40, 45: the way up for one pod.
#[test]
fn every_shape_of_a_volume_that_is_wanted() {
    check_table(env!("CARGO_MANIFEST_DIR"), "mount", |choices| {
        let mut view = volume();
        let body = json!({ "metadata": { "name": "pv" }, "spec": { "accessModes": ["ReadWriteOnce"] } });
        let spec = VolumeSpec::of(&serde_json::from_value(body).unwrap(), None);
        view.spec = choices.one_of(
            "spec",
            &[
                ("plain", Some(spec.clone())),
                ("unsupported", Some(VolumeSpec { refused: Some("raw".into()), ..spec })),
                ("unknown", None),
            ],
        );
        view.facts = facts(choices);
        view.node_side = node_side(choices);
        let waiting = AttachmentState::Waiting("not yet".into());
        view.attachment = choices.one_of(
            "attachment",
            &[
                ("attached", AttachmentState::Attached),
                ("waiting", waiting),
                ("not-needed", AttachmentState::NotNeeded),
            ],
        );
        let stages = view.facts.as_ref().is_some_and(|facts| facts.can(NodeRpc::StageUnstageVolume));
        let written = choices.word("record", &["none", "without-pod", "with-pod"]);
        let recorded = written == "with-pod";
        if written != "none" {
            view.record = RecordSide::Present(record(stages, recorded));
        }
        let staged = choices.word("staged", &["no", "found", "by-us"]);
        (view.staged, view.staged_by_us) = (MountState::from(staged != "no"), staged == "by-us");
        view.users.insert("u".into(), user(UserState::Wanted, choices.flag("mounted"), recorded));
        view.clearing = choices.one_of("clearing", &[("no", None), ("may-land", Some(5)), ("settled", Some(4))]);
        let mut memory = Memory { proof: proof(choices), ..Memory::default() };
        if choices.flag("directories-made") {
            memory.made = ["/r/d/globalmount".into(), "/r/pods/u/t".into()].into();
        }
        decide(&View::Volume(Box::new(view)), &memory)
    });
}

// Reliability 39, 43, 46, 48: the way down.
#[test]
fn every_shape_of_a_volume_that_is_not_wanted() {
    check_table(env!("CARGO_MANIFEST_DIR"), "unmount", |choices| {
        let (mut view, mut memory) = (volume(), Memory::default());
        view.node_side = node_side(choices);
        let written = choices.word("record", &["none", "unreadable", "staged", "plain"]);
        let pod = choices.word("pod", &["none", "sealed", "kept"]);
        view.record = match written {
            "none" => RecordSide::Missing,
            "unreadable" => RecordSide::Unreadable,
            written => RecordSide::Present(record(written == "staged", pod != "none")),
        };
        view.facts = facts(choices);
        let mounted = pod != "none" && choices.flag("mounted");
        match pod {
            "sealed" => drop(view.users.insert("u".into(), user(UserState::Sealed, mounted, true))),
            "kept" => drop(view.users.insert("u".into(), user(UserState::Kept, mounted, true))),
            _none => {}
        }
        view.staged = MountState::from(choices.flag("staged"));
        if choices.flag("driver-has-nothing") {
            memory.clean = [TARGET.into(), "/r/d/globalmount".into()].into();
        }
        let (target, parent) = (String::from(TARGET), String::from("/r/pods/u/t"));
        memory.swept = choices
            .one_of(
                "swept",
                &[
                    ("nothing", vec![]),
                    ("target", vec![target.clone()]),
                    ("all", vec![target, parent, "/r/d/globalmount".into(), "/r/d".into()]),
                ],
            )
            .into_iter()
            .collect();
        view.stray = choices.flag("stray-mount").then(|| "/r/x".into());
        decide(&View::Volume(Box::new(view)), &memory)
    });
}

fn process(choices: &mut Choices, field: &'static str) -> Option<ProcessState> {
    let exited = |code| Some(ProcessState::Exited { code, since_millis: 1, at_millis: 2, out_of_memory: false });
    choices.one_of(
        field,
        &[
            ("none", None),
            ("runs", Some(ProcessState::Running { since_millis: 1 })),
            ("ended", exited(0)),
            ("failed", exited(1)),
            ("not-started", Some(ProcessState::NotStarted("no".into()))),
            ("lost", Some(ProcessState::Lost)),
        ],
    )
}

fn pod(choices: &mut Choices) -> Option<Pod> {
    let stage = choices.word("pod", &["none", "alive", "ended", "deleting", "deleting-with-finalizer"]);
    let mut pod = json!({ "metadata": { "name": "a", "namespace": "ns", "uid": "u" }, "spec": {
        "containers": [{ "name": "c", "image": "i", "command": ["/bin/true"],
                         "volumeMounts": [{ "name": "v", "mountPath": "/data" }] }] } });
    match stage {
        "none" => return None,
        "alive" => {
            pod["spec"]["restartPolicy"] = choices.word("restart", &["Never", "OnFailure", "Always"]).into();
        }
        "ended" => pod["status"]["phase"] = "Succeeded".into(),
        deleting => {
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            if deleting == "deleting-with-finalizer" {
                pod["metadata"]["finalizers"] = json!(["x"]);
                pod["metadata"]["deletionGracePeriodSeconds"] = 0.into();
            }
        }
    }
    Some(serde_json::from_value(pod).unwrap())
}

fn pod_volume(choices: &mut Choices) -> PodVolumeView {
    choices.one_of(
        "volume",
        &[
            ("ready", PodVolumeView::Ready { path: TARGET.into(), read_only: false }),
            ("waiting", PodVolumeView::Waiting("not yet".into())),
            ("directory", PodVolumeView::Directory("/r/e".into())),
            ("unsupported", PodVolumeView::Unsupported),
        ],
    )
}

/// How far the end of a process has come.
fn told(choices: &mut Choices, name: &str, memory: &mut Memory) {
    match choices.word("told-to-end", &["no", "asked", "asked-long-ago", "made-to"]) {
        "asked" => drop(memory.asked.insert(name.into(), NOW)),
        "asked-long-ago" => drop(memory.asked.insert(name.into(), Timestamp(1))),
        "made-to" => drop(memory.stopped.insert(name.into())),
        _no => {}
    }
}

/// What is decided once the pod's status says how it fares.
fn after_status(mut view: PodView, memory: &Memory) -> String {
    let decision = Node::decide(NOW, &View::Pod(Box::new(view.clone())), memory);
    let (Decision::Do(Action::SetStatus { status, .. }, _), Some(pod)) = (&decision, &view.pod) else {
        return verdict(&decision);
    };
    view.pod = Some(Arc::new(Pod { status: status.clone(), ..Pod::clone(pod) }));
    alloc::format!("{}, then {}", verdict(&decision), decide(&View::Pod(Box::new(view)), memory))
}

// KL-101, reliability 43.
#[test]
fn every_shape_of_a_pod() {
    check_table(env!("CARGO_MANIFEST_DIR"), "pods", |choices| {
        let pod = pod(choices);
        let (mut containers, mut volumes, mut memory) = (vec![], BTreeMap::new(), Memory::default());
        if pod.is_some() {
            volumes.insert("v".into(), pod_volume(choices));
            let state = process(choices, "process");
            let latest = state.map(|state| (0, "u_ns_a_c_0".into(), state));
            containers.push(ContainerView {
                latest,
                earlier: vec![],
                started: true,
                ready: true,
                unwell: None,
                pre_stop: None,
            });
            told(choices, "u_ns_a_c_0", &mut memory);
        }
        let (recorded, sealed) = (choices.flag("volumes-recorded"), choices.flag("sealed"));
        if choices.flag("directories-made") {
            memory.made.insert("/r/e".into());
        }
        if choices.flag("directories-swept") {
            memory.swept = pod_dirs("/r", "u").into_iter().chain(own_dirs("/r", "u")).collect();
        }
        let (key, root) = (ObjectKey::new("ns", "a"), "/r".into());
        let pod = pod.map(Arc::new);
        after_status(
            PodView {
                key,
                root,
                pod,
                sealed,
                recorded,
                init: vec![],
                containers,
                volumes,
                volume_groups: vec![],
                own_mounts: vec![],
                node: ToldOfNode::default(),
                remains: vec![],
            },
            &memory,
        )
    });
}

// Reliability 43, 105: what is left of a pod whose object is gone.
#[test]
fn every_shape_of_remains() {
    check_table(env!("CARGO_MANIFEST_DIR"), "remains", |choices| {
        let mut memory = Memory::default();
        match choices.word("api-says", &["nothing", "gone", "there", "there-long-ago"]) {
            "gone" => drop(memory.gone.insert("old".into())),
            "there" => memory.alive_at = Some(NOW),
            "there-long-ago" => memory.alive_at = Some(Timestamp(1)),
            _nothing => {}
        }
        let (sealed, recorded) = (choices.flag("sealed"), choices.flag("volumes-recorded"));
        let processes = process(choices, "process").into_iter().map(|state| ("p".into(), state)).collect();
        told(choices, "p", &mut memory);
        if choices.flag("directories-swept") {
            memory.swept = pod_dirs("/r", "old").into_iter().chain(own_dirs("/r", "old")).collect();
        }
        let remains = vec![Remains { uid: "old".into(), sealed, recorded, processes, own_mounts: vec![] }];
        let (key, root) = (ObjectKey::new("ns", "a"), "/r".into());
        let (init, containers, volumes) = (vec![], vec![], BTreeMap::new());
        let view = PodView {
            key,
            root,
            pod: None,
            sealed: false,
            recorded: false,
            init,
            containers,
            volumes,
            volume_groups: vec![],
            own_mounts: vec![],
            node: ToldOfNode::default(),
            remains,
        };
        decide(&View::Pod(Box::new(view)), &memory)
    });
}
