//! A pretend driver behind a real socket.
#![allow(dead_code, clippy::unwrap_used, reason = "shared by tests that each use a part")]

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use csi::{Call, Code, Method, Response, Status, v1};
use io_csi::{Answers, Server};
use tokio::sync::{Notify, oneshot};

pub const SOON: Duration = Duration::from_secs(20);

/// What the driver does with a volume is written in its id.
#[derive(Clone, Default)]
pub struct Driver {
    pub begun: Arc<Notify>,
    pub go_on: Arc<Notify>,
    pub ended: Arc<Notify>,
}

impl Answers for Driver {
    fn answer(&self, call: Call) -> impl Future<Output = Result<Response, Status>> + Send {
        let driver = self.clone();
        async move {
            match call {
                Call::GetPluginInfo(_) => Ok(Response::GetPluginInfo(v1::GetPluginInfoResponse {
                    name: "test.driver".into(),
                    ..Default::default()
                })),
                Call::DeleteVolume(request) => match request.volume_id.as_str() {
                    "wait" => {
                        driver.begun.notify_one();
                        driver.go_on.notified().await;
                        driver.ended.notify_one();
                        Ok(Response::DeleteVolume(v1::DeleteVolumeResponse {}))
                    }
                    "echo secrets" => {
                        let secrets: Vec<String> = request.secrets.into_values().collect();
                        Err(Status::from_driver(Code::Internal, format!("bad login: {}", secrets.join(","))))
                    }
                    "panic" => panic!("the secrets are {:?}", request.secrets),
                    "long" => Err(Status::from_driver(Code::Internal, "ä".repeat(100_000))),
                    "mixed up" => Ok(Response::NodeStageVolume(v1::NodeStageVolumeResponse {})),
                    code => {
                        let code = Code::from_number(code.parse().unwrap());
                        Err(Status::from_driver(code, "schön: 100% of «it»\n"))
                    }
                },
                other => Err(Status::from_driver(Code::Unimplemented, other.method().name())),
            }
        }
    }
}

pub const METHODS: &[Method] = &[Method::GetPluginInfo, Method::DeleteVolume];

/// A served driver; it stops when told.
pub struct Running {
    pub path: PathBuf,
    pub driver: Driver,
    stop: oneshot::Sender<()>,
    server: Server,
}

impl Running {
    pub async fn at(path: PathBuf) -> Running {
        let driver = Driver::default();
        let (stop, stopped) = oneshot::channel::<()>();
        let server = io_csi::serve(&path, METHODS, driver.clone(), async move { drop(stopped.await) }).await.unwrap();
        Running { path, driver, stop, server }
    }

    pub fn socket(&self) -> &str {
        self.path.to_str().unwrap()
    }

    pub async fn stop(self) {
        self.begin_stop().finished().await.unwrap();
    }

    pub fn begin_stop(self) -> Server {
        self.stop.send(()).unwrap();
        self.server
    }
}

pub fn info() -> Call {
    Call::GetPluginInfo(v1::GetPluginInfoRequest {})
}

pub fn delete(id: &str) -> Call {
    let request = v1::DeleteVolumeRequest { volume_id: id.into(), ..Default::default() };
    Call::DeleteVolume(request)
}
