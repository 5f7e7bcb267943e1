//! What is decided on every shape of a view, as tables. Growing and modifying are two halves of one decision, each
//! with a table of its own.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use api::{Kind, ObjectKey, ObjectRef, SecretReference, Seen, names};
use control::{Access, Capability, Decision, Mode, Rules, Secrets, Timestamp};
use prove_lab::{Choices, check_table, verdict};

use crate::{
    BeforeSize, Bound, Class, DriverVolume, Expansion, Grow, GrowFailure, GrowMemory, Grown, Memory, Modify,
    ModifyFailure, ModifyMemory, ModifyState, ResizeProgress, Resizer, Sizes, Told, View,
};

const NOW: Timestamp = Timestamp(1_000_000);
const SLOW: u64 = 300_000;

fn seen(kind: Kind, name: &str) -> Seen {
    Seen { object: ObjectRef::namespaced(kind, "n", name), uid: name.into(), version: "1".into() }
}

fn secret(choices: &mut Choices, read: &mut Option<Secrets>) -> Option<SecretReference> {
    let reference = || SecretReference { namespace: "n".into(), name: "s".into() };
    match choices.word("secret", &["none", "unread", "read"]) {
        "none" => return None,
        "read" => *read = Some(Secrets::default()),
        _unread => {}
    }
    Some(reference())
}

fn condition(choices: &mut Choices, of: &'static str, conditions: &mut Vec<Told>) {
    let told = |holds, message: &str| Some(Told { r#type: of.into(), holds, message: message.into(), since: None });
    let states = [("no", None), ("false", told(false, "no")), ("true", told(true, "no")), ("other", told(true, "x"))];
    conditions.extend(choices.one_of(of, &states));
}

fn flagged(choices: &mut Choices, of: &'static str, conditions: &mut Vec<Told>) {
    if choices.flag(of) {
        conditions.push(Told { r#type: of.into(), holds: true, message: String::new(), since: None });
    }
}

fn bound(grow: Grow, modify: Modify) -> View {
    let place = DriverVolume { driver: "d".into(), handle: "h".into() };
    let (claim, volume) = (seen(Kind::PersistentVolumeClaim, "c"), seen(Kind::PersistentVolume, "v"));
    View::Claim(Box::new(Bound { claim, volume, place, grow, modify, slow_millis: SLOW }))
}

/// A claim that has what it asks for.
fn still() -> (Grow, Modify) {
    let access = Access::Mount { fs_type: String::new(), flags: vec![] };
    let grow = Grow {
        by: Expansion::Controller,
        recovers: true,
        sizes: Sizes { requested: 10, volume: 10, had: 10, allocated: None },
        progress: ResizeProgress::None,
        conditions: vec![],
        not_required: false,
        before: BeforeSize::Unused,
        capability: Ok(Capability { mode: Mode::SingleNodeWriter, access }),
        secret: None,
        user: None,
    };
    let modify = Modify {
        supported: true,
        wanted: None,
        current: None,
        volume_class: None,
        status: ModifyState::Nothing,
        wanted_class: Class::Unnamed,
        target_class: Class::Unnamed,
        conditions: vec![],
        secret: None,
        extra: BTreeMap::new(),
    };
    (grow, modify)
}

/// One half of what is decided: growing is the first, modifying the second.
fn half(view: &View, memory: &Memory, first: bool) -> String {
    match Resizer::decide(NOW, view, memory) {
        Decision::Either(growing, modifying) => verdict(if first { &growing } else { &modifying }),
        whole => verdict(&whole),
    }
}

fn progress(choices: &mut Choices) -> ResizeProgress {
    choices.one_of(
        "progress",
        &[
            ("None", ResizeProgress::None),
            ("ControllerInProgress", ResizeProgress::ControllerInProgress),
            ("ControllerInfeasible", ResizeProgress::ControllerInfeasible),
            ("NodePending", ResizeProgress::NodePending),
            ("NodeInProgress", ResizeProgress::NodeInProgress),
            ("NodeInfeasible", ResizeProgress::NodeInfeasible),
        ],
    )
}

/// 10 are asked for.
fn sizes(choices: &mut Choices) -> Sizes {
    let had = choices.one_of("claim-has", &[("enough", 10), ("less", 1)]);
    let volume = choices.one_of("volume-has", &[("less", 1), ("what-was-begun", 7), ("enough", 10)]);
    let allocated =
        choices.one_of("allocated", &[("nothing", None), ("less", Some(7)), ("this", Some(10)), ("more", Some(12))]);
    Sizes { requested: 10, volume, had, allocated }
}

fn before(choices: &mut Choices) -> BeforeSize {
    let absent = BeforeSize::Absent("1Gi".into());
    choices.one_of("before", &[("unused", BeforeSize::Unused), ("absent", absent), ("present", BeforeSize::Present)])
}

// Sidecars 4.4, with an empty memory: what follows from the objects alone.
#[test]
fn every_shape_of_a_size() {
    check_table(env!("CARGO_MANIFEST_DIR"), "sizes", |choices| {
        let (mut grow, modify) = still();
        grow.before = before(choices);
        grow.by = choices.one_of(
            "by",
            &[("nobody", Expansion::None), ("node", Expansion::NodeOnly), ("controller", Expansion::Controller)],
        );
        grow.recovers = choices.flag("recovers");
        grow.sizes = sizes(choices);
        grow.progress = progress(choices);
        flagged(choices, names::FILE_SYSTEM_RESIZE_PENDING, &mut grow.conditions);
        flagged(choices, names::RESIZING, &mut grow.conditions);
        let mut memory = Memory { uid: "c".into(), owned: choices.flag("owned"), ..Memory::default() };
        if !choices.flag("usable") {
            grow.capability = Err("no mode".into());
        }
        grow.secret = secret(choices, &mut memory.grow.secrets);
        half(&bound(grow, modify), &memory, true)
    });
}

/// What the driver said, as remembered.
fn answers(choices: &mut Choices, memory: &mut GrowMemory) {
    let grown = |asked, node_goes_on| Some(Grown { asked, size: asked, node_goes_on });
    memory.refused = choices.one_of("refused", &[("no", None), ("this", Some(10)), ("another", Some(7))]);
    memory.grown = choices.one_of(
        "grown",
        &[("no", None), ("yes", grown(10, false)), ("node-goes-on", grown(10, true)), ("another", grown(7, false))],
    );
    memory.hopeless = choices.one_of(
        "hopeless",
        &[
            ("no", None),
            ("lately", Some((10, NOW))),
            ("long-ago", Some((10, Timestamp(1)))),
            ("another", Some((7, NOW))),
        ],
    );
    memory.in_use = choices.flag("driver-says-in-use");
}

fn failure(choices: &mut Choices) -> Option<GrowFailure> {
    let failure = |size, infeasible| Some(GrowFailure { size, infeasible, message: "no".into() });
    choices.one_of(
        "failed",
        &[("no", None), ("yes", failure(10, false)), ("for-ever", failure(10, true)), ("another", failure(7, true))],
    )
}

// Sidecars 4.4: what follows from what is remembered of the driver's answers.
#[test]
fn every_memory_of_a_resize() {
    check_table(env!("CARGO_MANIFEST_DIR"), "resize-memory", |choices| {
        let ((mut grow, modify), mut memory) = (still(), GrowMemory::default());
        memory.failure = failure(choices);
        grow.recovers = choices.flag("recovers");
        let (under_way, never) = (ResizeProgress::ControllerInProgress, ResizeProgress::ControllerInfeasible);
        grow.progress = choices
            .one_of("progress", &[("None", ResizeProgress::None), ("InProgress", under_way), ("Infeasible", never)]);
        let allocated = choices.one_of("allocated", &[("nothing", None), ("this", Some(10)), ("less", Some(7))]);
        if memory.failure.is_some() {
            condition(choices, names::CONTROLLER_RESIZE_ERROR, &mut grow.conditions);
            // What is reported is the next step; the rest is the same as without a failure.
            grow.sizes = Sizes { requested: 10, volume: 1, had: 1, allocated };
        } else {
            let volume = choices.one_of("volume-has", &[("less", 1), ("enough", 10)]);
            grow.sizes = Sizes { requested: 10, volume, had: 1, allocated };
            answers(choices, &mut memory);
            grow.user = choices.flag("used").then(|| "app".into());
        }
        let memory = Memory { uid: "c".into(), owned: true, grow: memory, ..Memory::default() };
        half(&bound(grow, modify), &memory, true)
    });
}

fn class(choices: &mut Choices, field: &'static str) -> Class {
    choices.one_of(field, &[("missing", Class::Missing("x".into())), ("ready", Class::Ready(BTreeMap::new()))])
}

fn modify_memory(choices: &mut Choices) -> ModifyMemory {
    let failure = |class: &str, infeasible| {
        Some(ModifyFailure { class: class.into(), infeasible, reason: "r".into(), message: "no".into() })
    };
    let failure = choices.one_of(
        "failed",
        &[("no", None), ("yes", failure("x", false)), ("for-ever", failure("x", true)), ("y", failure("y", true))],
    );
    let modified = choices.one_of("modified", &[("no", None), ("x", Some("x".into())), ("y", Some("y".into()))]);
    let refused = choices.one_of("refused", &[("no", None), ("x", Some("x".into()))]);
    let hopeless = |since| Some((String::from("x"), since));
    let hopeless = choices
        .one_of("hopeless", &[("no", None), ("x-lately", hopeless(NOW)), ("x-long-ago", hopeless(Timestamp(1)))]);
    ModifyMemory { modified, refused, hopeless, failure, ..ModifyMemory::default() }
}

fn modify_state(choices: &mut Choices) -> ModifyState {
    choices.one_of(
        "status",
        &[
            ("Nothing", ModifyState::Nothing),
            ("Pending", ModifyState::Pending(String::new())),
            ("InProgress-x", ModifyState::InProgress("x".into())),
            ("InProgress-y", ModifyState::InProgress("y".into())),
            ("Infeasible-x", ModifyState::Infeasible("x".into())),
        ],
    )
}

// Sidecars 4.5.
#[test]
fn every_shape_of_attributes() {
    check_table(env!("CARGO_MANIFEST_DIR"), "attributes", |choices| {
        let ((grow, mut modify), mut memory) = (still(), ModifyMemory::default());
        modify.supported = choices.flag("supported");
        if modify.supported {
            modify.status = modify_state(choices);
            modify.wanted = choices.one_of("wanted", &[("none", None), ("x", Some("x".into()))]);
            modify.current = choices.one_of("current", &[("none", None), ("x", Some("x".into()))]);
            memory = modify_memory(choices);
            flagged(choices, names::MODIFYING_VOLUME, &mut modify.conditions);
            if memory.failure.is_some() {
                condition(choices, names::MODIFY_VOLUME_ERROR, &mut modify.conditions);
            }
            if modify.wanted.is_some() {
                modify.wanted_class = class(choices, "wanted-class");
            }
            if matches!(modify.status, ModifyState::InProgress(_)) {
                modify.target_class = class(choices, "target-class");
                modify.volume_class = choices.one_of("volume-class", &[("none", None), ("x", Some("x".into()))]);
                modify.secret = secret(choices, &mut memory.secrets);
            }
        }
        let memory = Memory { uid: "c".into(), owned: true, modify: memory, ..Memory::default() };
        half(&bound(grow, modify), &memory, false)
    });
}

#[test]
fn every_other_shape() {
    check_table(env!("CARGO_MANIFEST_DIR"), "others", |choices| {
        let claim = || ObjectKey::new("n", "c");
        let view = match choices.word("view", &["Gone", "NotBound", "VolumeMissing", "NotOurs", "Unreadable"]) {
            "Gone" => View::Gone(claim()),
            "NotBound" => View::NotBound(claim()),
            "VolumeMissing" => View::VolumeMissing("v".into()),
            "NotOurs" => View::NotOurs("v".into()),
            _unreadable => View::Unreadable("no size".into()),
        };
        verdict(&Resizer::decide(NOW, &view, &Memory::default()))
    });
}
