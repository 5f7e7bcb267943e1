//! Against the real embedded API server, in process and over HTTPS.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use std::time::Duration;

use api::{JsonOp, Kind, Meta, Object, ObjectRef, Patch, Precondition, StorageClass, Subresource, Write};
use control::{Outcome, Refusal, Reply};
use io_apiserver::{ApiServer, Config};
use io_kube::{Kube, WatchEvent};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

fn open(folder: &std::path::Path) -> ApiServer {
    ApiServer::open(Config { data_dir: folder.join("api"), ..Config::default() }).unwrap()
}

fn class(name: &str) -> Object {
    StorageClass { metadata: Meta::named(name).into(), provisioner: "p".into(), ..Default::default() }.into()
}

fn create(object: &Object) -> Write {
    Write::Create { target: object.reference(), body: object.to_json() }
}

async fn created(kube: &Kube, object: &Object) -> Object {
    match kube.write(&create(object)).await {
        Outcome::Done(Reply::Object(object)) => object,
        other => panic!("{other:?}"),
    }
}

fn annotate(object: &Object, only_if: Precondition, value: &str) -> Write {
    let patch = Patch::merge(only_if, json!({ "metadata": { "annotations": { "a": value } } }));
    Write::Patch { target: object.reference(), subresource: None, patch }
}

// Reliability 86: a write whose belief is wrong is refused and changes nothing.
#[tokio::test]
async fn every_write_is_refused_when_its_belief_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let server = open(folder.path());
    let kube = Kube::in_process(server.service_as("test"));
    let first = created(&kube, &class("a")).await;
    assert_eq!(kube.write(&create(&class("a"))).await, Outcome::Refused(Refusal::AlreadyExists));

    let changed = kube.write(&annotate(&first, Precondition::unchanged(first.meta()), "1")).await;
    assert!(matches!(changed, Outcome::Done(Reply::Object(_))), "{changed:?}");
    let stale = annotate(&first, Precondition::unchanged(first.meta()), "2");
    assert_eq!(kube.write(&stale).await, Outcome::Refused(Refusal::Conflict));
    let namesake = Precondition { uid: Some("another".into()), resource_version: None };
    assert_eq!(kube.write(&annotate(&first, namesake.clone(), "3")).await, Outcome::Refused(Refusal::Conflict));
    let tested = Patch::json(
        Precondition::default(),
        vec![
            JsonOp::Test { path: "/metadata/annotations/a".into(), value: json!("9") },
            JsonOp::Replace { path: "/metadata/annotations/a".into(), value: json!("4") },
        ],
    );
    let tested = Write::Patch { target: first.reference(), subresource: None, patch: tested };
    assert_eq!(kube.write(&tested).await, Outcome::Refused(Refusal::Conflict));
    let delete = |only_if| Write::Delete { target: first.reference(), only_if, grace_seconds: None };
    assert_eq!(kube.write(&delete(namesake)).await, Outcome::Refused(Refusal::Conflict));

    let Outcome::Done(Reply::Object(now)) = kube.read(&first.reference()).await else { panic!("it is still there") };
    assert_eq!(now.meta().annotation("a"), Some("1"));
    assert_eq!(kube.write(&delete(Precondition::same(first.meta()))).await, Outcome::Done(Reply::Gone));
    assert_eq!(kube.read(&first.reference()).await, Outcome::Done(Reply::Gone));
    assert_eq!(kube.write(&annotate(&first, Precondition::default(), "5")).await, Outcome::Refused(Refusal::NotFound));
}

#[tokio::test]
async fn a_held_object_stays_until_its_finalizer_goes_and_a_pod_is_placed_once() {
    let folder = tempfile::tempdir().unwrap();
    let kube = Kube::in_process(open(folder.path()).service_as("test"));
    let held = created(&kube, &class("held")).await;
    let finalize = Patch::add_finalizer(held.meta(), "test/hold");
    let Outcome::Done(Reply::Object(held)) =
        kube.write(&Write::Patch { target: held.reference(), subresource: None, patch: finalize }).await
    else {
        panic!("the finalizer is on")
    };
    let delete = Write::Delete { target: held.reference(), only_if: Precondition::default(), grace_seconds: None };
    let Outcome::Done(Reply::Object(going)) = kube.write(&delete).await else { panic!("something holds it") };
    assert!(going.meta().is_deleting());
    let release = Patch::remove_finalizer(going.meta(), "test/hold");
    let release = Write::Patch { target: going.reference(), subresource: None, patch: release };
    assert_eq!(kube.write(&release).await, Outcome::Done(Reply::Gone));

    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p", "namespace": "default" },
        "spec": { "containers": [{ "name": "c", "image": "i" }] },
    });
    let target = ObjectRef::namespaced(Kind::Pod, "default", "p");
    let Outcome::Done(Reply::Object(pod)) = kube.write(&Write::Create { target: target.clone(), body: pod }).await
    else {
        panic!("the pod is there")
    };
    let bind = |uid: &str| Write::Bind { target: target.clone(), uid: uid.into(), node: "n".into() };
    assert_eq!(kube.write(&bind("another")).await, Outcome::Refused(Refusal::Conflict));
    assert_eq!(kube.write(&bind(&pod.meta().uid)).await, Outcome::Done(Reply::Nothing));
    assert_eq!(kube.write(&bind(&pod.meta().uid)).await, Outcome::Refused(Refusal::Conflict));
    let status = Patch::merge(Precondition::same(pod.meta()), json!({ "status": { "phase": "Running" } }));
    let status = Write::Patch { target: target.clone(), subresource: Some(Subresource::Status), patch: status };
    assert!(
        matches!(kube.write(&status).await, Outcome::Done(Reply::Object(Object::Pod(pod))) if pod.status.phase == api::PodPhase::Running)
    );
    let counted = kube.counts().all();
    assert!(counted.contains(&(("create", Kind::Pod, "binding"), 3)), "{counted:?}");
}

async fn next(news: &mut mpsc::Receiver<WatchEvent>) -> WatchEvent {
    tokio::time::timeout(Duration::from_secs(20), news.recv())
        .await
        .expect("news in time")
        .expect("a watch that goes on")
}

// Reliability 93, 96, 108: nothing is missed, across a restart of the server too.
#[tokio::test]
async fn a_watch_over_https_goes_on_when_the_server_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = open(folder.path());
    let kubeconfig = folder.path().join("kubeconfig");
    server.write_kubeconfig(&kubeconfig, port).unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = {
        let server = server.clone();
        tokio::spawn(async move { server.serve_tls(listener, async { drop(stopped.await) }).await })
    };
    let kube = Kube::from_kubeconfig(&kubeconfig).await.unwrap();
    created(&kube, &class("before")).await;
    let (send, mut news) = mpsc::channel(16);
    tokio::spawn(kube.clone().watch(Kind::StorageClass, send));
    assert!(matches!(next(&mut news).await, WatchEvent::InitDone { objects, .. } if objects.len() == 1));
    let during = created(&kube, &class("during")).await;
    assert!(matches!(next(&mut news).await, WatchEvent::Apply(object) if object == during));

    stop.send(()).unwrap();
    serving.await.unwrap();
    server.close();
    drop(server);
    let lost = kube.write(&create(&class("nobody"))).await;
    assert!(matches!(lost, Outcome::Unknown(_)), "{lost:?}");
    let server = open(folder.path());
    Kube::in_process(server.service_as("test")).write(&create(&class("after"))).await;
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    tokio::spawn(async move { server.serve_tls(listener, std::future::pending()).await });
    loop {
        match next(&mut news).await {
            WatchEvent::InitDone { objects, .. } if objects.iter().any(|o| o.meta().name == "after") => {
                assert!(objects.iter().any(|o| o.meta().name == "before"));
                break;
            }
            WatchEvent::Apply(object) if object.meta().name == "after" => break,
            WatchEvent::InitApply(_) | WatchEvent::InitDone { .. } | WatchEvent::Apply(_) | WatchEvent::Delete(_) => {}
        }
    }
}

#[tokio::test]
async fn a_bad_kubeconfig_is_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    for content in ["", "not: [yaml", "apiVersion: v1\nkind: Config\ncurrent-context: gone\n", "\u{0}\u{1}"] {
        std::fs::write(&path, content).unwrap();
        let Err(error) = Kube::from_kubeconfig(&path).await else { panic!("{content:?} is no kubeconfig") };
        let said = error.to_string();
        assert!(said.contains(path.to_str().unwrap()) && said.contains("--kubeconfig"), "{said}");
    }
}

#[tokio::test]
async fn a_kubeconfig_that_is_no_yaml_is_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, "apiVersion: v1\nclusters: [\n").unwrap();
    let Err(error) = Kube::from_kubeconfig(&path).await else { panic!("nobody can read it") };
    let said = error.to_string();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("unclosed") && said.ends_with("name another with --kubeconfig"), "{said}");
}
