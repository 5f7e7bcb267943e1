//! The careful caller against real sockets.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{SOON, delete};
use csi::{
    Call, Capabilities, Code, ControllerRpc, DriverCapability, Finality, Method, NodeRpc, PluginService, Response,
    classify, v1,
};
use io_csi::kit::{self, CreateVolumeError, DeleteVolumeError, NodeGetInfoError, ProbeError};
use io_csi::{Caller, CsiClient, Driver, Observation, Observe};
use tokio::sync::{Notify, oneshot};

/// A driver on the kit whose behaviour the tests steer from outside.
#[derive(Clone, Default)]
struct Steered {
    capabilities: Capabilities,
    asked_for_its_name: Arc<AtomicUsize>,
    probes: Arc<Mutex<Vec<Result<bool, ProbeError>>>>,
    at_once: Arc<AtomicUsize>,
    most_at_once: Arc<AtomicUsize>,
    deletions: Arc<AtomicUsize>,
    begun: Arc<Notify>,
    go_on: Arc<Notify>,
    caller: Arc<Mutex<Option<Caller>>>,
}

impl kit::Identity for Steered {
    fn name(&self) -> String {
        self.asked_for_its_name.fetch_add(1, Ordering::SeqCst);
        "steered.example".into()
    }
    fn version(&self) -> String {
        "7".into()
    }
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }
    async fn probe(&self) -> Result<bool, ProbeError> {
        self.probes.lock().unwrap().pop().unwrap_or(Ok(true))
    }
}

impl kit::Controller for Steered {
    async fn create_volume(&self, r: v1::CreateVolumeRequest) -> Result<v1::CreateVolumeResponse, CreateVolumeError> {
        Ok(v1::CreateVolumeResponse { volume: Some(v1::Volume { volume_id: r.name, ..Default::default() }) })
    }

    async fn delete_volume(&self, r: v1::DeleteVolumeRequest) -> Result<v1::DeleteVolumeResponse, DeleteVolumeError> {
        let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(now, Ordering::SeqCst);
        if r.volume_id == "slow" {
            self.begun.notify_one();
            self.go_on.notified().await;
        }
        self.at_once.fetch_sub(1, Ordering::SeqCst);
        self.deletions.fetch_add(1, Ordering::SeqCst);
        Ok(v1::DeleteVolumeResponse {})
    }
}

impl kit::Node for Steered {
    async fn node_get_info(&self, _: v1::NodeGetInfoRequest) -> Result<v1::NodeGetInfoResponse, NodeGetInfoError> {
        *self.caller.lock().unwrap() = kit::caller();
        Ok(v1::NodeGetInfoResponse { node_id: "n".into(), ..Default::default() })
    }
}

impl kit::GroupController for Steered {}

struct Running {
    stop: oneshot::Sender<()>,
    serving: kit::Serving,
}

impl Running {
    async fn at(path: &Path, steered: &Steered) -> Running {
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async move { drop(stopped.await) };
        let serving = kit::serve(path.to_str().unwrap(), steered.clone(), stopped).await.unwrap();
        serving.ready();
        Running { stop, serving }
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.serving.finished().await.unwrap();
    }
}

const CREATES: DriverCapability = DriverCapability::Controller(ControllerRpc::CreateDeleteVolume);
const LISTS: DriverCapability = DriverCapability::Controller(ControllerRpc::ListVolumes);
const STAGES: DriverCapability = DriverCapability::Node(NodeRpc::StageUnstageVolume);

fn steered(capabilities: &[DriverCapability]) -> Steered {
    Steered { capabilities: capabilities.iter().copied().collect(), ..Default::default() }
}

fn socket() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("csi.sock");
    (dir, path)
}

fn driver(path: &Path) -> Driver {
    Driver::new(Arc::new(CsiClient::new()), format!("unix://{}", path.display()))
}

// Reliability 72. S3-9: what a driver offers is what the three lists of capabilities say.
#[tokio::test]
async fn a_driver_is_asked_once_and_again_when_it_came_back() {
    let (_dir, path) = socket();
    let driver = driver(&path);
    let rich = steered(&[CREATES, LISTS, STAGES]);
    let running = Running::at(&path, &rich).await;
    for _ in 0..3 {
        let profile = driver.profile(SOON).await.unwrap();
        assert_eq!((profile.name.as_str(), profile.version.as_str()), ("steered.example", "7"));
        let all = [DriverCapability::Plugin(PluginService::ControllerService), CREATES, LISTS, STAGES];
        assert_eq!(profile.capabilities, Capabilities::from_iter(all));
        driver.call(delete("a"), SOON).await.unwrap();
    }
    // Once when it was served, once by us.
    assert_eq!(rich.asked_for_its_name.load(Ordering::SeqCst), 2);
    running.stop().await;

    // It comes back with less: what it does not offer any more is not sent, at the latest when it has answered so once.
    let poor = steered(&[CREATES]);
    let running = Running::at(&path, &poor).await;
    let list = Call::ListVolumes(v1::ListVolumesRequest::default());
    assert_eq!(driver.call(list.clone(), SOON).await.unwrap_err().code, Code::Unimplemented);
    let status = driver.call(list, SOON).await.unwrap_err();
    assert_eq!((status.code, status.from_driver), (Code::Unimplemented, false));
    assert!(status.message.contains("does not offer controller LIST_VOLUMES any more"), "{status}");
    let profile = driver.profile(SOON).await.unwrap();
    assert_eq!(profile.lost, Capabilities::from_iter([LISTS, STAGES]));
    assert!(poor.asked_for_its_name.load(Ordering::SeqCst) <= 3);
    running.stop().await;
}

// Reliability 72: nobody calls what an old incarnation did not offer, so only the end of its connection can tell.
#[tokio::test]
async fn a_driver_that_comes_back_with_more_is_asked_before_a_call_is_refused() {
    let (_dir, path) = socket();
    let driver = driver(&path);
    let running = Running::at(&path, &steered(&[CREATES])).await;
    let list = Call::ListVolumes(v1::ListVolumesRequest::default());
    let status = driver.call(list.clone(), SOON).await.unwrap_err();
    assert_eq!((status.code, status.from_driver), (Code::Unimplemented, false));
    running.stop().await;
    let running = Running::at(&path, &steered(&[CREATES, LISTS])).await;
    let served = async {
        // It is written nowhere, so the driver itself says that it has no list.
        while !driver.call(list.clone(), SOON).await.unwrap_err().from_driver {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, served).await.unwrap();
    running.stop().await;
}

// Reliability 70 and 72, for a driver of which nothing is known yet.
#[tokio::test]
async fn a_driver_that_is_not_there_leaves_every_outcome_unknown() {
    let (_dir, path) = socket();
    let driver = driver(&path);
    let stage = Call::NodePublishVolume(v1::NodePublishVolumeRequest { volume_id: "a".into(), ..Default::default() });
    for call in [delete("a"), stage] {
        let method = call.method();
        let status = driver.call(call, Duration::from_secs(1)).await.unwrap_err();
        assert_eq!((status.code, status.from_driver), (Code::Unavailable, false), "{status}");
        assert_eq!(classify(method, &status), Finality::Unknown);
    }
    assert_eq!(driver.capabilities(Duration::from_secs(1)).await.unwrap_err().code, Code::Unavailable);
    let running = Running::at(&path, &steered(&[CREATES])).await;
    assert!(driver.capabilities(SOON).await.unwrap().has(ControllerRpc::CreateDeleteVolume));
    driver.call(delete("a"), SOON).await.unwrap();
    running.stop().await;
}

#[tokio::test]
async fn a_follower_hears_of_every_coming_and_going() {
    let (_dir, path) = socket();
    let driver = Arc::new(driver(&path));
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let following = tokio::spawn({
        let driver = driver.clone();
        async move { driver.follow(SOON, |heard| drop(tell.send(heard.map(|profile| profile.capabilities)))).await }
    });
    let next = async |told: &mut tokio::sync::mpsc::UnboundedReceiver<_>| {
        tokio::time::timeout(SOON, told.recv()).await.unwrap().unwrap()
    };
    let gone = next(&mut told).await.unwrap_err();
    assert_eq!((gone.code, gone.from_driver), (Code::Unavailable, false));
    for lists in [false, true] {
        let steered = steered(if lists { &[CREATES, LISTS] } else { &[CREATES] });
        let running = Running::at(&path, &steered).await;
        let capabilities: Capabilities = next(&mut told).await.unwrap();
        assert_eq!(capabilities.has(ControllerRpc::ListVolumes), lists);
        // Nobody calls it; the end of its connection is news enough.
        running.stop().await;
        assert_eq!(next(&mut told).await.unwrap_err().code, Code::Unavailable);
    }
    // A driver that contradicts itself is asked again as well.
    let running = Running::at(&path, &steered(&[CREATES, LISTS])).await;
    assert!(next(&mut told).await.is_ok());
    let list = Call::ListVolumes(v1::ListVolumesRequest::default());
    assert!(driver.call(list, SOON).await.unwrap_err().from_driver);
    assert!(next(&mut told).await.is_ok());
    following.abort();
    running.stop().await;
}

// Reliability 73, on the way out.
#[tokio::test]
async fn a_request_that_is_too_large_is_not_sent() {
    let (_dir, path) = socket();
    let status = driver(&path).call(delete(&"x".repeat(129)), SOON).await.unwrap_err();
    assert_eq!((status.code, status.from_driver), (Code::InvalidArgument, false));
    assert_eq!(status.message, "DeleteVolume is not sent: volume_id has 129 bytes, and at most 128 are allowed");
}

/// A driver that is not written on the kit: it says at first that it makes volumes, and makes them with ids that are too
/// long. It never deletes one, and says so when it is asked again.
#[derive(Default)]
struct Large {
    told: AtomicUsize,
}

impl io_csi::Answers for Large {
    async fn answer(&self, call: Call) -> Result<Response, csi::Status> {
        use v1::controller_service_capability::{Rpc, Type};
        Ok(match call {
            Call::GetPluginInfo(_) => Response::GetPluginInfo(v1::GetPluginInfoResponse {
                name: "large.example".into(),
                ..Default::default()
            }),
            Call::GetPluginCapabilities(_) => {
                let service = v1::plugin_capability::Service { r#type: PluginService::ControllerService as i32 };
                let r#type = Some(v1::plugin_capability::Type::Service(service));
                let capabilities = vec![v1::PluginCapability { r#type }];
                Response::GetPluginCapabilities(v1::GetPluginCapabilitiesResponse { capabilities })
            }
            Call::ControllerGetCapabilities(_) => {
                let r#type = Some(Type::Rpc(Rpc { r#type: ControllerRpc::CreateDeleteVolume as i32 }));
                let first = self.told.fetch_add(1, Ordering::SeqCst) == 0;
                let capabilities = Vec::from_iter(first.then_some(v1::ControllerServiceCapability { r#type }));
                Response::ControllerGetCapabilities(v1::ControllerGetCapabilitiesResponse { capabilities })
            }
            Call::CreateVolume(_) => {
                let volume = Some(v1::Volume { volume_id: "x".repeat(170), ..Default::default() });
                Response::CreateVolume(v1::CreateVolumeResponse { volume })
            }
            other => return Err(csi::Status::from_driver(Code::Unimplemented, other.method().name())),
        })
    }
}

// Reliability 73, on the way in: the volume exists, so nobody may take this for a refusal.
#[tokio::test]
async fn an_answer_that_is_too_large_leaves_the_outcome_unknown() {
    let (_dir, path) = socket();
    let _server = io_csi::serve(&path, Method::ALL, Large::default(), std::future::pending()).await.unwrap();
    let create = Call::CreateVolume(v1::CreateVolumeRequest { name: "a".into(), ..Default::default() });
    let status = driver(&path).call(create, SOON).await.unwrap_err();
    assert_eq!(classify(Method::CreateVolume, &status), Finality::Unknown);
    assert!(status.message.contains("volume_id has 170 bytes, and at most 128 are allowed"), "{status}");
}

// Reliability 72, without a restart.
#[tokio::test]
async fn a_driver_that_contradicts_itself_is_asked_again() {
    let (_dir, path) = socket();
    let _server = io_csi::serve(&path, Method::ALL, Large::default(), std::future::pending()).await.unwrap();
    let driver = driver(&path);
    assert!(driver.call(delete("a"), SOON).await.unwrap_err().from_driver);
    let status = driver.call(delete("a"), SOON).await.unwrap_err();
    assert!(!status.from_driver && status.message.contains("CREATE_DELETE_VOLUME any more"), "{status}");
}

// Reliability 68.
#[tokio::test]
async fn a_second_call_for_a_volume_waits_for_the_first() {
    let (_dir, path) = socket();
    let steered = steered(&[CREATES]);
    let running = Running::at(&path, &steered).await;
    let driver = Arc::new(driver(&path));
    let call = |id: &str| {
        let (driver, call) = (driver.clone(), delete(id));
        tokio::spawn(async move { driver.call(call, SOON).await })
    };
    let first = call("slow");
    steered.begun.notified().await;
    let second = call("slow");
    // Others are not kept waiting.
    call("quick").await.unwrap().unwrap();
    // One that has no time to wait was not sent.
    let status = driver.call(delete("slow"), Duration::from_millis(50)).await.unwrap_err();
    assert_eq!((status.code, status.from_driver), (Code::DeadlineExceeded, false));
    assert!(status.message.contains("another call for slow is under way"), "{status}");
    steered.go_on.notify_one();
    first.await.unwrap().unwrap();
    steered.begun.notified().await;
    steered.go_on.notify_one();
    second.await.unwrap().unwrap();
    assert_eq!(steered.most_at_once.load(Ordering::SeqCst), 2, "the slow one and the quick one");
    assert_eq!(steered.deletions.load(Ordering::SeqCst), 3);
    running.stop().await;
}

// C2.
#[tokio::test]
async fn a_driver_that_is_not_ready_is_probed_again_and_a_sick_one_is_not() {
    let (_dir, path) = socket();
    let driver = driver(&path);
    let gone = driver.connected(Duration::from_millis(1)).await.unwrap_err();
    assert!(gone.message.contains("is it running?"), "{gone}");
    assert!(driver.ready(SOON).await.unwrap_err().message.contains("is it running?"));

    let steered = steered(&[]);
    *steered.probes.lock().unwrap() = vec![Err(ProbeError::Unhealthy("the disk is gone".into())), Ok(true), Ok(false)];
    let (connected, running) = tokio::join!(driver.connected(SOON), Running::at(&path, &steered));
    connected.unwrap();
    driver.ready(SOON).await.unwrap();
    assert_eq!(steered.probes.lock().unwrap().len(), 1, "it was asked twice");
    let sick = driver.ready(SOON).await.unwrap_err();
    assert_eq!((sick.code, sick.message.as_str()), (Code::FailedPrecondition, "the disk is gone"));
    running.stop().await;
}

#[tokio::test]
async fn an_author_can_see_who_calls() {
    let (_dir, path) = socket();
    let steered = steered(&[]);
    let running = Running::at(&path, &steered).await;
    driver(&path).call(Call::NodeGetInfo(v1::NodeGetInfoRequest {}), SOON).await.unwrap();
    let caller = steered.caller.lock().unwrap().unwrap();
    assert_eq!(caller.uid, rustix::process::geteuid().as_raw());
    assert_eq!(caller.pid, Some(std::process::id().try_into().unwrap()));
    assert_eq!(io_csi::caller(), None);
    running.stop().await;
}

#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Observe for Notes {
    fn observed(&self, call: &Observation<'_>) {
        // Every field, by name: a new one has to be thought about here.
        let Observation { method, volume, node, code, took } = *call;
        assert!(took > Duration::ZERO);
        self.0.lock().unwrap().push(format!("{} {volume} {node} {code:?}", method.name()));
    }
}

#[tokio::test]
async fn calls_are_observed_by_an_allow_list() {
    let (_dir, path) = socket();
    let notes = Arc::new(Notes::default());
    let client = CsiClient::new().observed_by(notes.clone());
    let call = Call::ControllerPublishVolume(v1::ControllerPublishVolumeRequest {
        volume_id: "v".into(),
        node_id: "n".into(),
        secrets: [("password".to_string(), "canary-aa01".to_string())].into(),
        volume_context: [("path".to_string(), "canary-aa01".to_string())].into(),
        ..Default::default()
    });
    client.call(path.to_str().unwrap(), call.clone(), SOON).await.unwrap_err();
    let running = Running::at(&path, &steered(&[])).await;
    client.call(path.to_str().unwrap(), call, SOON).await.unwrap_err();
    client.call(path.to_str().unwrap(), common::info(), SOON).await.unwrap();
    running.stop().await;
    let seen = notes.0.lock().unwrap();
    assert_eq!(
        *seen,
        ["ControllerPublishVolume v n Unavailable", "ControllerPublishVolume v n Unimplemented", "GetPluginInfo   Ok"]
    );
}
