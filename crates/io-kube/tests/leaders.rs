//! Leader election on the real embedded API server.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use std::time::Duration;

use api::ObjectKey;
use control::LeaseConfig;
use io_apiserver::{ApiServer, Config};
use io_kube::{Kube, LeaderElector, LeaderStatus};
use tokio::sync::{oneshot, watch};

struct Candidate {
    status: watch::Receiver<LeaderStatus>,
    stop: oneshot::Sender<()>,
    ended: tokio::task::JoinHandle<()>,
}

impl Candidate {
    fn start(kube: Kube, identity: &str) -> Candidate {
        let config = LeaseConfig { identity: identity.into(), duration: 3_000, renew: 2_000, retry: 200 };
        let labels = [("team".to_string(), "storage".to_string())].into();
        let elector = LeaderElector { lease: ObjectKey::new("default", "the-lease"), labels, config };
        let (tell, status) = watch::channel(LeaderStatus::default());
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(async move {
            kube.elect(&elector, tell, async {
                let _ = stopped.await;
            })
            .await;
        });
        Candidate { status, stop, ended }
    }

    async fn until(&mut self, wanted: impl Fn(&LeaderStatus) -> bool) -> LeaderStatus {
        let heard = tokio::time::timeout(Duration::from_secs(60), self.status.wait_for(|status| wanted(status)));
        heard.await.expect("it never came").unwrap().clone()
    }
}

async fn lease(kube: &Kube) -> serde_json::Value {
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/the-lease";
    let (status, body) = kube.get_raw(path).await.unwrap();
    assert_eq!(status, 200);
    serde_json::from_slice(&body).unwrap()
}

fn kube(folder: &tempfile::TempDir) -> Kube {
    let server = ApiServer::open(Config { data_dir: folder.path().join("api"), ..Config::default() }).unwrap();
    Kube::in_process(server.service_as("test"))
}

// C5: a standby is well; reliability of the lease: released on exit, so the next one need not wait for it to run out.
#[tokio::test]
async fn a_leader_that_stops_hands_over_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let kube = kube(&folder);
    let mut first = Candidate::start(kube.clone(), "first");
    first.until(|status| status.leads).await;
    let mut second = Candidate::start(kube.clone(), "second");
    let seen = second.until(|status| status.holder.is_some()).await;
    assert_eq!((seen.leads, seen.holder.as_deref(), seen.failure), (false, Some("first"), None));
    let held = lease(&kube).await;
    assert_eq!(held["spec"]["holderIdentity"], "first");
    assert_eq!(held["metadata"]["labels"]["team"], "storage");

    first.stop.send(()).unwrap();
    first.ended.await.unwrap();
    assert!(!first.status.borrow().leads, "it stops leading before it lets go");
    second.until(|status| status.leads).await;
    assert_eq!(lease(&kube).await["spec"]["leaseTransitions"], 1);
    second.stop.send(()).unwrap();
    second.ended.await.unwrap();
    assert_eq!(lease(&kube).await["spec"]["holderIdentity"], "");
}

#[tokio::test]
async fn a_lease_that_goes_to_somebody_else_is_not_led_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let kube = kube(&folder);
    let mut first = Candidate::start(kube.clone(), "first");
    first.until(|status| status.leads).await;
    // Somebody takes it away by hand, as an operator may.
    let mut second = Candidate::start(kube.clone(), "first-again");
    first.ended.abort();
    second.until(|status| status.leads).await;
    assert_eq!(lease(&kube).await["spec"]["holderIdentity"], "first-again");
    second.stop.send(()).unwrap();
    second.ended.await.unwrap();
}
