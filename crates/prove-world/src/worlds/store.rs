//! The store alone: two writers that read late and write on what they read.
//!
//! Each writer keeps a finalizer on one claim and adds its letter to a journal kept in an annotation. Whatever the
//! order and however stale their sight, no letter may be lost, and the claim goes when, and only when, both finalizers
//! have gone.

use std::fmt;
use std::sync::Arc;

use api::{Kind, ObjectKey, ObjectRef, Patch, PersistentVolumeClaim, Precondition, Write};
use control::{Action, BackOff, Cache, Decision, Effect, Outcome, Permission, Route, Rules, Timestamp, Why, routes};
use serde_json::json;

use crate::cluster::{Cluster, NAMESPACE};
use crate::explore::Scenario;
use crate::laws::Violation;
use crate::member::{Instance, Seat};
use crate::truth::Truth;
use crate::world::{UserMove, World};
use crate::worlds::put;

/// Two writers and one claim.
pub const SCENARIO: Scenario = Scenario {
    name: "store",
    about: "the store, two writers on one claim, a user who deletes it",
    start,
    user,
    rest,
    waives: &[],
};

const CLAIM: &str = "journal";
const ANNOTATION: &str = "prove/journal";
/// Letters each writer adds.
const LETTERS: usize = 1;

/// A writer known by its letter.
struct Writer;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Journal;

impl fmt::Display for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(CLAIM)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Entry {
    Hold(Arc<PersistentVolumeClaim>, String),
    Append(Arc<PersistentVolumeClaim>, String),
    RemoveFinalizer(Arc<PersistentVolumeClaim>, String),
}

fn finalizer(letter: &str) -> String {
    format!("prove.example/{letter}")
}

fn journal(claim: &PersistentVolumeClaim) -> &str {
    claim.metadata.annotation(ANNOTATION).unwrap_or_default()
}

impl Action for Entry {
    fn name(&self) -> &'static str {
        match self {
            Entry::Hold(..) => "Hold",
            Entry::Append(..) => "Append",
            Entry::RemoveFinalizer(..) => "RemoveFinalizer",
        }
    }

    fn effect(&self) -> Effect {
        let target = ObjectRef::namespaced(Kind::PersistentVolumeClaim, NAMESPACE, CLAIM);
        let patch = match self {
            Entry::Hold(claim, letter) => Patch::add_finalizer(&claim.metadata, &finalizer(letter)),
            Entry::RemoveFinalizer(claim, letter) => Patch::remove_finalizer(&claim.metadata, &finalizer(letter)),
            Entry::Append(claim, letter) => {
                let text = format!("{}{letter}", journal(claim));
                let body = json!({ "metadata": { "annotations": { ANNOTATION: text } } });
                Patch::merge(Precondition::unchanged(&claim.metadata), body)
            }
        };
        Effect::Write(Write::Patch { target, subresource: None, patch })
    }

    fn permissions() -> &'static [Permission] {
        &[Permission { kind: Kind::PersistentVolumeClaim, subresource: "", verb: "patch" }]
    }
}

control::reasons! {
    /// Why a letter is written or not.
    pub enum WriterReason {
        Writing,
        Written,
        Gone,
        NoFinalizer,
    }
}

impl Rules for Writer {
    const NAME: &'static str = "writer";
    type Key = Journal;
    type Local = String;
    type View = (Option<Arc<PersistentVolumeClaim>>, String);
    type Action = Entry;
    type Reason = WriterReason;
    type Memory = ();

    const ROUTES: &'static [Route<Self>] = routes![PersistentVolumeClaim => both(|_, woken| woken.wake(Journal))];

    fn keys(_: &Cache, _: &String) -> Vec<Journal> {
        vec![Journal]
    }

    fn view(_: &Journal, cache: &Cache, letter: &String) -> Self::View {
        (cache.claim(&ObjectKey::new(NAMESPACE, CLAIM)), letter.clone())
    }

    fn decide(_: Timestamp, (claim, letter): &Self::View, (): &()) -> Decision<Entry, WriterReason> {
        let why = Why::waiting(WriterReason::Writing, "writing");
        let Some(claim) = claim else { return Decision::Rest(Why::settled(WriterReason::Gone, "the claim is gone")) };
        let held = claim.metadata.has_finalizer(&finalizer(letter));
        let mine = journal(claim).matches(letter.as_str()).count();
        match (claim.metadata.is_deleting(), held) {
            (true, true) => Decision::Do(Entry::RemoveFinalizer(claim.clone(), letter.clone()), why),
            (true, false) => Decision::Rest(Why::settled(WriterReason::NoFinalizer, "nothing is left to do")),
            (false, false) => Decision::Do(Entry::Hold(claim.clone(), letter.clone()), why),
            (false, true) if mine < LETTERS => Decision::Do(Entry::Append(claim.clone(), letter.clone()), why),
            (false, true) => Decision::Rest(Why::settled(WriterReason::Written, "everything is written")),
        }
    }

    fn remember(_: Timestamp, (): (), _: &Entry, _: &Outcome) {}

    fn learn(_: &mut String, _: &Entry, _: &Outcome, _: &Cache) -> Vec<Journal> {
        Vec::new()
    }

    fn back_off(_: &String) -> BackOff {
        BackOff::default()
    }

    fn object(_: &Journal) -> ObjectRef {
        ObjectRef::namespaced(Kind::PersistentVolumeClaim, NAMESPACE, CLAIM)
    }
}

fn claim_body() -> serde_json::Value {
    json!({
        "metadata": {},
        "spec": {
            "storageClassName": "",
            "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } },
        },
    })
}

fn target() -> ObjectRef {
    ObjectRef::namespaced(Kind::PersistentVolumeClaim, NAMESPACE, CLAIM)
}

fn start() -> World {
    let mut cluster = Cluster::new();
    put(&mut cluster, target(), claim_body());
    let truth = Arc::new(Truth::default());
    let seat = |build: fn(&Truth, &str) -> String| Seat::<Writer> {
        build,
        refresh: |_, _, _| false,
        digest: |local, hasher| hasher.write(local.as_bytes()),
    };
    let members = vec![
        Instance::start("anna", "", seat(|_, _| "a".into()), &cluster, &truth),
        Instance::start("bert", "", seat(|_, _| "b".into()), &cluster, &truth),
    ];
    World::of(cluster, truth, members)
}

fn user(world: &World) -> Vec<UserMove> {
    let claim = world.cluster.claims().next();
    let only_if = Precondition::default();
    let delete = Write::Delete { target: target(), only_if: only_if.clone(), grace_seconds: None };
    let mut create = claim_body();
    create["apiVersion"] = "v1".into();
    create["kind"] = "PersistentVolumeClaim".into();
    match claim {
        None => vec![UserMove {
            label: "create the claim anew".into(),
            writes: vec![Write::Create { target: target(), body: create }],
        }],
        Some(claim) if claim.metadata.is_deleting() => Vec::new(),
        // The protection finalizer is nobody's business here, so the user takes it off as well.
        Some(claim) => {
            let rest: Vec<_> = claim.metadata.finalizers.iter().filter(|f| f.starts_with("prove")).collect();
            let patch = Patch::merge(api::Precondition::default(), json!({ "metadata": { "finalizers": rest } }));
            let strip = Write::Patch { target: target(), subresource: None, patch };
            vec![UserMove { label: "delete the claim".into(), writes: vec![strip, delete] }]
        }
    }
}

fn rest(world: &World) -> Option<Violation> {
    let claim = world.cluster.claims().next()?;
    let mut letters: Vec<char> = journal(claim).chars().collect();
    letters.sort_unstable();
    let wanted: Vec<char> = "ab".chars().flat_map(|letter| std::iter::repeat_n(letter, LETTERS)).collect();
    if claim.metadata.is_deleting() {
        return Some(Violation::ClaimLeft { claim: CLAIM.into() });
    }
    (letters != wanted).then(|| Violation::JournalReads { text: journal(claim).into() })
}
