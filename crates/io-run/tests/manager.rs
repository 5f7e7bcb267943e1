//! Controllers of one process or of two, on the embedded API server.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

mod marking;

use std::sync::Arc;
use std::time::Duration;

use api::{Kind, Meta, ObjectKey, ObjectRef, PersistentVolumeClaim, Write};
use control::{LeaseConfig, Outcome, Reply};
use io_apiserver::{ApiServer, Config};
use io_kube::{Kube, LeaderElector};
use io_run::Manager;

use marking::{MARK, Marking};

struct World {
    kube: Kube,
    server: ApiServer,
    _data: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let data = tempfile::tempdir().unwrap();
        let server = ApiServer::open(Config { data_dir: data.path().join("api"), ..Config::default() }).unwrap();
        World { kube: Kube::in_process(server.service_as("system:longshore")), server, _data: data }
    }

    fn manager(&self) -> Arc<Manager> {
        Manager::new(self.kube.clone(), self.kube.clone(), Arc::default(), None)
    }

    async fn claim(&self, name: &str) {
        let claim = PersistentVolumeClaim { metadata: Meta::in_namespace("default", name), ..Default::default() };
        let mut body = api::Object::from(claim).to_json();
        body["spec"] = serde_json::json!({
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } }
        });
        let target = ObjectRef::namespaced(Kind::PersistentVolumeClaim, "default", name);
        let made = self.kube.write(&Write::Create { target, body }).await;
        assert!(matches!(made, Outcome::Done(_)), "{made:?}");
    }

    async fn is_marked(&self, name: &str) -> bool {
        let target = ObjectRef::namespaced(Kind::PersistentVolumeClaim, "default", name);
        match self.kube.read(&target).await {
            Outcome::Done(Reply::Object(object)) => object.meta().has_finalizer(MARK),
            other => panic!("{other:?}"),
        }
    }

    async fn until_marked(&self, name: &str) {
        let marked = async {
            while !self.is_marked(name).await {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), marked).await.unwrap();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.server.close();
    }
}

#[tokio::test]
async fn controllers_come_and_go_while_the_process_runs() {
    let world = World::new();
    let manager = world.manager();
    world.claim("a").await;
    manager.add::<Marking>("one", true).start();
    world.until_marked("a").await;
    manager.stop_group("one").await;
    assert!(!manager.has("one"));
    world.claim("b").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!world.is_marked("b").await, "its controller is gone");
    manager.add::<Marking>("two", true).start();
    world.until_marked("b").await;
    let claim = manager.cache().look(|cache| cache.get(Kind::PersistentVolumeClaim, &ObjectKey::new("default", "b")));
    let said = manager.explain(&[claim.unwrap().clone()], &[]);
    assert_eq!(said.iter().map(|one| one.controller).collect::<Vec<_>>(), ["marking"], "the one that is there");
    manager.stop().await;
}

// Reliability 35, sidecars 2.2: what a controller has no use for need not be listed, and is not asked for.
#[tokio::test]
async fn kinds_that_nobody_needs_count_as_listed_and_are_not_watched() {
    let world = World::new();
    let manager = world.manager();
    manager.add::<Marking>("one", true).without(&[Kind::PersistentVolumeClaim]).start();
    let listed = || manager.cache().look(|cache| cache.is_synced(Kind::PersistentVolumeClaim));
    assert!(listed());
    world.claim("a").await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!world.is_marked("a").await, "nobody told it");
    // Another controller needs them: it waits for the list, and then both see them.
    manager.add::<Marking>("two", true).start();
    world.until_marked("a").await;
    manager.stop().await;
}

// C6: one of two processes leads; the Lease goes last.
#[tokio::test]
async fn only_the_leader_begins_and_its_end_lets_the_other_lead() {
    let world = World::new();
    let start = |identity: &str| {
        let manager = world.manager();
        let config = LeaseConfig { identity: identity.into(), duration: 3000, renew: 2000, retry: 100 };
        let lease = ObjectKey::new("default", "marking");
        let lease = manager.elect("one", LeaderElector { lease, labels: Default::default(), config });
        manager.add::<Marking>("one", true).lease(Some(&lease)).start();
        manager
    };
    let first = start("first");
    world.claim("a").await;
    world.until_marked("a").await;
    let second = start("second");
    first.stop().await;
    world.claim("b").await;
    world.until_marked("b").await;
    assert!(second.metrics().text().contains(r#"leader_election_master_status{name="marking"} 1"#));
    assert!(first.metrics().text().contains(r#"leader_election_master_status{name="marking"} 0"#));
    second.stop().await;
}
