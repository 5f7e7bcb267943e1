//! What happens to every call before its author sees it, and to every answer before its caller does.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use csi::{Call, Capabilities, Code, Method, NodeRpc, Response, Service, Status, v1};

use super::ledger::Finding;
use super::services::{controller, group_controller, node};
use super::{Ledger, Plugin, required, shelf};
use crate::limits::Limits;
use crate::locks::CallLocks;
use crate::secrets::Secrets;
use crate::server::Answers;

/// A driver behind its door.
pub struct Door<P> {
    plugin: P,
    capabilities: Capabilities,
    ready: Arc<AtomicBool>,
    busy: CallLocks,
}

fn refuse<T>(code: Code, text: impl Into<String>) -> Result<T, Status> {
    Err(Status::from_driver(code, text))
}

impl<P: Plugin> Door<P> {
    pub fn new(plugin: P, ready: Arc<AtomicBool>) -> Door<P> {
        let capabilities = plugin.capabilities().with_implied_services();
        Door { plugin, capabilities, ready, busy: CallLocks::default() }
    }

    /// The calls about the driver itself, which need nothing to be ready.
    async fn about(&self, method: Method) -> Option<Result<Response, Status>> {
        Some(Ok(match method {
            Method::GetPluginInfo => Response::GetPluginInfo(v1::GetPluginInfoResponse {
                name: self.plugin.name(),
                vendor_version: self.plugin.version(),
                ..Default::default()
            }),
            Method::GetPluginCapabilities => Response::GetPluginCapabilities(self.capabilities.into()),
            Method::ControllerGetCapabilities => Response::ControllerGetCapabilities(self.capabilities.into()),
            Method::GroupControllerGetCapabilities => {
                Response::GroupControllerGetCapabilities(self.capabilities.into())
            }
            Method::NodeGetCapabilities => Response::NodeGetCapabilities(self.capabilities.into()),
            Method::Probe => match self.is_ready().await {
                Ok(ready) => Response::Probe(v1::ProbeResponse { ready: Some(ready) }),
                Err(status) => return Some(Err(status)),
            },
            _ => return None,
        }))
    }

    async fn is_ready(&self) -> Result<bool, Status> {
        Ok(self.ready.load(Ordering::Acquire) && self.plugin.probe().await?)
    }

    async fn judge(&self, call: Call) -> Result<Response, Status> {
        let method = call.method();
        if !self.capabilities.serves(method) {
            return refuse(Code::Unimplemented, format!("this driver does not offer {}", method.name()));
        }
        if let Some(answer) = self.about(method).await {
            return answer;
        }
        required::check(&call, self.capabilities.has(NodeRpc::StageUnstageVolume))?;
        // An unknown volume is known to be unknown only once everything is loaded (reliability 79).
        if !self.ready.load(Ordering::Acquire) {
            return refuse(Code::Unavailable, "the driver is starting; call again");
        }
        let wanted = csi::locks(&call, &|_, name| self.plugin.id_of(name));
        let Some(_held) = self.busy.take(&wanted) else {
            return refuse(Code::Aborted, "another call is at work on the same volume or snapshot; call again");
        };
        let response = self.work(call).await?;
        match Limits::SPEC.check(&response) {
            Ok(()) => Ok(response),
            // What was done is done, so this must not read as a refusal.
            Err(what) if method.changes_state() => {
                refuse(Code::Unavailable, format!("the driver's answer is too large: {what}"))
            }
            Err(what) => refuse(Code::Internal, format!("the driver's answer is too large: {what}")),
        }
    }

    async fn work(&self, call: Call) -> Result<Response, Status> {
        match (self.plugin.ledger().cloned(), call) {
            (Some(ledger), Call::CreateVolume(request)) => self.create(ledger, request).await,
            (Some(ledger), Call::DeleteVolume(request)) => self.delete(ledger, request).await,
            (Some(ledger), call) => match self.dispatch(call.clone()).await {
                // What the author does not write, the ledger may know.
                Err(status) if status.code == Code::Unimplemented => {
                    shelf::answer(&ledger, &call).unwrap_or(Err(status))
                }
                answer => answer,
            },
            (None, call) => self.dispatch(call).await,
        }
    }

    /// Makes a volume that is new. Its beginning is recorded before it is made and its end before it is answered, so that a
    /// crash leaves nothing that is not on record.
    async fn create(&self, ledger: Ledger, request: v1::CreateVolumeRequest) -> Result<Response, Status> {
        let id = self.plugin.id_of(&request.name);
        let (begun, key, asked) = (ledger.clone(), id.clone(), request.clone());
        match blocking(move || begun.begin(&key, &asked)).await? {
            Finding::New => {}
            Finding::Same(volume) => {
                return Ok(Response::CreateVolume(v1::CreateVolumeResponse { volume: Some(volume) }));
            }
            Finding::Incompatible(why) => {
                return refuse(Code::AlreadyExists, format!("a volume of that name exists, and {why}"));
            }
        }
        let made = self.dispatch(Call::CreateVolume(request)).await;
        match made {
            Ok(Response::CreateVolume(v1::CreateVolumeResponse { volume: Some(mut volume) })) => {
                if volume.volume_id.is_empty() {
                    volume.volume_id.clone_from(&id);
                }
                if volume.volume_id != id {
                    return refuse(Code::Unavailable, "the driver gave a volume another id than its name has");
                }
                let answer = Response::CreateVolume(v1::CreateVolumeResponse { volume: Some(volume.clone()) });
                blocking(move || ledger.finish(&id, volume)).await?;
                Ok(answer)
            }
            Ok(_) => refuse(Code::Unavailable, "the driver made a volume and did not describe it"),
            Err(status) => {
                if csi::classify(Method::CreateVolume, &status) == csi::Finality::Refused {
                    // Nothing was made, says its author.
                    blocking(move || ledger.forget(&id)).await?;
                }
                Err(status)
            }
        }
    }

    /// Deletes a volume that is known; one that is not known is deleted.
    async fn delete(&self, ledger: Ledger, request: v1::DeleteVolumeRequest) -> Result<Response, Status> {
        let id = request.volume_id.clone();
        if ledger.knows(&id) {
            self.dispatch(Call::DeleteVolume(request)).await?;
            blocking(move || ledger.forget(&id)).await?;
        }
        Ok(Response::DeleteVolume(v1::DeleteVolumeResponse {}))
    }

    async fn dispatch(&self, call: Call) -> Result<Response, Status> {
        match call.method().service() {
            Service::Controller => controller::controller(&self.plugin, call).await,
            Service::GroupController => group_controller::group_controller(&self.plugin, call).await,
            Service::Node | Service::Identity | Service::Registration | Service::CSIRegistration => {
                node::node(&self.plugin, call).await
            }
        }
    }
}

/// Work on the disk, beside the threads that answer.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T, Status> {
    let done = tokio::task::spawn_blocking(work).await.map_err(io::Error::other).and_then(|done| done);
    done.map_err(|error| Status::from_driver(Code::Unavailable, format!("cannot write the volume's record: {error}")))
}

impl<P: Plugin> Answers for Door<P> {
    async fn answer(&self, call: Call) -> Result<Response, Status> {
        let secrets = Secrets::of(&call);
        self.judge(call).await.map_err(|status| Status { message: secrets.cover(status.message), ..status })
    }
}

#[cfg(test)]
#[path = "door_tests.rs"]
mod tests;
