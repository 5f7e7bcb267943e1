//! Batches of annotation patches, against the real embedded API server.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use api::{Kind, Note, Object, ObjectRef, Patch, Precondition, Write};
use control::{Outcome, Refusal, Reply};
use futures::StreamExt;
use io_apiserver::{ApiServer, Config};
use io_kube::Kube;
use serde_json::json;
use tokio::task::JoinSet;

struct Board {
    _folder: tempfile::TempDir,
    kube: Kube,
    lease: Object,
}

fn target() -> ObjectRef {
    ObjectRef::namespaced(Kind::Lease, "default", "board")
}

async fn board() -> Board {
    let folder = tempfile::tempdir().unwrap();
    let server = ApiServer::open(Config { data_dir: folder.path().join("api"), ..Config::default() }).unwrap();
    let kube = Kube::in_process(server.service_as("test"));
    let body =
        json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "board" }, "spec": {} });
    let Outcome::Done(Reply::Object(lease)) = kube.write(&Write::Create { target: target(), body }).await else {
        panic!("the board is there")
    };
    Board { _folder: folder, kube, lease }
}

impl Board {
    fn note(&self, name: &str, text: Option<&str>) -> Write {
        let meta = self.lease.meta();
        let annotations = [(name.to_string(), text.map(String::from))].into();
        let (uid, seen) = (meta.uid.clone(), meta.resource_version.clone());
        Write::Note(Note { target: target(), uid, seen, annotations })
    }

    async fn written(&self) -> Object {
        match self.kube.read(&target()).await {
            Outcome::Done(Reply::Object(lease)) => lease,
            other => panic!("{other:?}"),
        }
    }

    fn patches(&self) -> u64 {
        let counted = self.kube.counts().all();
        counted.iter().find(|(what, _)| *what == ("patch", Kind::Lease, "")).map_or(0, |(_, count)| *count)
    }

    /// All at once; how each ended.
    async fn all(&self, notes: Vec<Write>) -> Vec<Outcome> {
        let mut under_way = JoinSet::new();
        for (at, note) in notes.into_iter().enumerate() {
            let kube = self.kube.clone();
            under_way.spawn(async move { (at, kube.write(&note).await) });
        }
        let mut ended = under_way.join_all().await;
        ended.sort_by_key(|(at, _)| *at);
        ended.into_iter().map(|(_, outcome)| outcome).collect()
    }
}

#[tokio::test]
async fn notes_that_come_together_go_in_few_requests_and_everybody_is_told() {
    let board = board().await;
    let notes = (0..200).map(|at| board.note(&format!("example.org/{at}"), Some("x"))).collect();
    for outcome in board.all(notes).await {
        assert!(matches!(outcome, Outcome::Done(Reply::Object(_))), "{outcome:?}");
    }
    assert_eq!(board.written().await.meta().annotations.len(), 200);
    assert!(board.patches() < 20, "{} requests for 200 notes", board.patches());
    let notes = (0..200).map(|at| board.note(&format!("example.org/{at}"), None)).collect();
    board.all(notes).await;
    assert_eq!(board.written().await.meta().annotations.len(), 0);
}

// What the journal costs a volume: one note before it is made, one afterwards, a hundred volumes at once.
#[tokio::test]
async fn a_thousand_volumes_cost_a_fraction_of_a_write_each() {
    const VOLUMES: usize = 1000;
    let board = board().await;
    let volumes = futures::stream::iter(0..VOLUMES).map(|number| {
        let name = format!("example.org/{number}");
        let (kube, add, remove) = (board.kube.clone(), board.note(&name, Some("x")), board.note(&name, None));
        tokio::spawn(async move { (kube.write(&add).await, kube.write(&remove).await) })
    });
    let mut volumes = volumes.buffer_unordered(100);
    while let Some(ended) = volumes.next().await {
        let (added, removed) = ended.unwrap();
        assert!(matches!((&added, &removed), (Outcome::Done(_), Outcome::Done(_))), "{added:?} {removed:?}");
    }
    assert!(board.written().await.meta().annotations.is_empty());
    assert!(board.patches() < VOLUMES as u64 / 10, "{} requests for {VOLUMES} volumes", board.patches());
}

// What was seen is long out of date, by our own notes or by others': the note means the same.
#[tokio::test]
async fn a_note_lands_whatever_came_in_between() {
    let board = board().await;
    for round in 0..3 {
        let patch = Patch::merge(
            api::Precondition::default(),
            json!({ "metadata": { "labels": { "round": round.to_string() } } }),
        );
        board.kube.write(&Write::Patch { target: target(), subresource: None, patch }).await;
        let outcome = board.kube.write(&board.note(&format!("example.org/{round}"), Some("x"))).await;
        let Outcome::Done(Reply::Object(lease)) = outcome else { panic!("{outcome:?}") };
        assert_eq!(lease.meta().annotations.len(), round + 1);
    }
}

// A request that was given up and lands late carries a version that has passed.
#[tokio::test]
async fn a_note_is_sent_at_one_version_alone() {
    let board = board().await;
    let Write::Note(note) = board.note("example.org/a", Some("x")) else { unreachable!() };
    let late = Write::Patch { target: target(), subresource: None, patch: note.patch(Some(note.seen.clone())) };
    board.kube.write(&board.note("example.org/b", Some("x"))).await;
    assert_eq!(board.kube.write(&late).await, Outcome::Refused(Refusal::Conflict));
}

#[tokio::test]
async fn a_note_for_another_object_of_that_name_is_refused() {
    let board = board().await;
    let delete = Write::Delete { target: target(), only_if: Precondition::default(), grace_seconds: None };
    board.kube.write(&delete).await;
    let lost = board.note("example.org/a", Some("x"));
    assert_eq!(board.kube.write(&lost).await, Outcome::Refused(Refusal::NotFound));
    let body =
        json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "board" }, "spec": {} });
    board.kube.write(&Write::Create { target: target(), body }).await;
    assert_eq!(board.kube.write(&lost).await, Outcome::Refused(Refusal::Conflict));
    assert!(board.written().await.meta().annotations.is_empty());
}

#[tokio::test]
async fn a_note_the_server_will_not_have_does_not_take_the_others_along() {
    let board = board().await;
    let names = ["example.org/a", "no name at all", "example.org/b"];
    let ended = board.all(names.map(|name| board.note(name, Some("x"))).into()).await;
    assert!(matches!(ended[0], Outcome::Done(_)) && matches!(ended[2], Outcome::Done(_)), "{ended:?}");
    assert!(matches!(ended[1], Outcome::Refused(Refusal::Denied(_))), "{ended:?}");
    assert_eq!(board.written().await.meta().annotations.len(), 2);
}
