//! A CSI driver that does nothing, at once, and counts how often.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::SystemTime;

use io_csi::kit::v1;
use io_csi::kit::{
    Capabilities, Controller, ControllerExpandVolumeError, ControllerPublishVolumeError, ControllerRpc,
    ControllerUnpublishVolumeError, CreateVolumeError, DeleteVolumeError, GroupController, Identity, Node,
};
use tokio::sync::oneshot;

/// The driver's name.
pub const NAME: &str = "nothing.bench.longshore";

/// Calls that were answered.
#[derive(Default)]
pub(crate) struct Seen(Mutex<Calls>);

/// How many of each, and when the first came.
#[derive(Clone, Default)]
pub struct Calls {
    pub by_name: BTreeMap<&'static str, u64>,
    pub first: Option<SystemTime>,
}

impl Seen {
    /// What was called since the last time this was asked.
    pub fn take(&self) -> Calls {
        std::mem::take(&mut *self.lock())
    }

    /// When the first call came since then.
    pub fn first(&self) -> Option<SystemTime> {
        self.lock().first
    }

    fn add(&self, name: &'static str) {
        let mut calls = self.lock();
        *calls.by_name.entry(name).or_default() += 1;
        calls.first.get_or_insert_with(SystemTime::now);
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Nothing {
    seen: Arc<Seen>,
}

/// The driver, as long as this is kept.
pub(crate) struct Driver {
    // Dropping it is the request to end.
    _stop: oneshot::Sender<()>,
}

/// Serves it from a thread of its own: a call waits for nothing that the benchmark does meanwhile.
pub fn serve(socket: &str, seen: Arc<Seen>) -> io::Result<Driver> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let (say, heard) = std::sync::mpsc::channel();
    let socket = socket.to_string();
    thread::spawn(move || {
        runtime.block_on(async move {
            let stopped = async move {
                let _ = stopped.await;
            };
            match io_csi::kit::serve(&socket, Nothing { seen }, stopped).await {
                Ok(serving) => {
                    serving.ready();
                    let _ = say.send(Ok(()));
                    let _ = serving.finished().await;
                }
                Err(error) => {
                    let _ = say.send(Err(error));
                }
            }
        });
    });
    heard.recv().map_err(|_| io::Error::other("the driver's thread ended"))??;
    Ok(Driver { _stop: stop })
}

impl Identity for Nothing {
    fn name(&self) -> String {
        NAME.into()
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").into()
    }

    fn capabilities(&self) -> Capabilities {
        [ControllerRpc::CreateDeleteVolume, ControllerRpc::PublishUnpublishVolume, ControllerRpc::ExpandVolume]
            .into_iter()
            .collect()
    }
}

impl Controller for Nothing {
    async fn create_volume(
        &self,
        request: v1::CreateVolumeRequest,
    ) -> Result<v1::CreateVolumeResponse, CreateVolumeError> {
        self.seen.add("CreateVolume");
        let capacity_bytes = request.capacity_range.map_or(0, |range| range.required_bytes);
        let volume = v1::Volume { volume_id: self.id_of(&request.name), capacity_bytes, ..Default::default() };
        Ok(v1::CreateVolumeResponse { volume: Some(volume) })
    }

    async fn delete_volume(&self, _: v1::DeleteVolumeRequest) -> Result<v1::DeleteVolumeResponse, DeleteVolumeError> {
        self.seen.add("DeleteVolume");
        Ok(v1::DeleteVolumeResponse {})
    }

    async fn controller_publish_volume(
        &self,
        _: v1::ControllerPublishVolumeRequest,
    ) -> Result<v1::ControllerPublishVolumeResponse, ControllerPublishVolumeError> {
        self.seen.add("ControllerPublishVolume");
        Ok(v1::ControllerPublishVolumeResponse { publish_context: [("device".into(), "/dev/null".into())].into() })
    }

    async fn controller_unpublish_volume(
        &self,
        _: v1::ControllerUnpublishVolumeRequest,
    ) -> Result<v1::ControllerUnpublishVolumeResponse, ControllerUnpublishVolumeError> {
        self.seen.add("ControllerUnpublishVolume");
        Ok(v1::ControllerUnpublishVolumeResponse {})
    }

    async fn controller_expand_volume(
        &self,
        request: v1::ControllerExpandVolumeRequest,
    ) -> Result<v1::ControllerExpandVolumeResponse, ControllerExpandVolumeError> {
        self.seen.add("ControllerExpandVolume");
        let capacity_bytes = request.capacity_range.map_or(0, |range| range.required_bytes);
        Ok(v1::ControllerExpandVolumeResponse { capacity_bytes, node_expansion_required: false })
    }
}

impl Node for Nothing {}
impl GroupController for Nothing {}
