//! A CSI driver whose volumes are plain directories, shown at their targets by bind mounts.
//!
//! It reads three variables: `CSI_ENDPOINT` (where to listen), `STATE_DIR` (where volumes are kept) and `NODE_ID`.
//! Directories are on one machine and bound no size; all else is as in a large driver.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use control::host::Op;
use io_csi::kit::v1::volume_capability::{AccessType, access_mode::Mode};
use io_csi::kit::v1::{self, VolumeCapability};
use io_csi::kit::{
    Capabilities, Controller, ControllerRpc, CreateVolumeError, DeleteVolumeError, GroupController, Identity, Ledger,
    Node, NodeGetInfoError, NodePublishVolumeError, NodeUnpublishVolumeError, signalled,
};
use io_host::{Holder, Host};

/// No directory is promised more than this.
const LARGEST: i64 = 1 << 40;

struct Tiny {
    /// Where the volumes' directories are.
    volumes: PathBuf,
    ledger: Ledger,
    host: Arc<Host>,
    node_id: String,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let variable = |name: &str| std::env::var(name).with_context(|| format!("set {name}"));
    let state = PathBuf::from(variable("STATE_DIR")?);
    std::fs::create_dir_all(&state)?;
    let state = state.canonicalize()?;
    let driver = Tiny {
        volumes: state.join("volumes"),
        ledger: Ledger::open(state.join("ledger"))?,
        host: Arc::new(Host::new(state.join("host"))?),
        node_id: variable("NODE_ID")?,
    };
    let serving = io_csi::kit::serve(&variable("CSI_ENDPOINT")?, driver, signalled()).await?;
    serving.ready();
    Ok(serving.finished().await?)
}

impl Tiny {
    fn home(&self, id: &str) -> String {
        self.volumes.join(id).display().to_string()
    }

    /// Does something with the kernel on a thread of its own.
    async fn act(&self, op: Op) -> io::Result<()> {
        let host = self.host.clone();
        tokio::task::spawn_blocking(move || host.perform(&op)).await?.map(drop).map_err(io::Error::other)
    }

    /// Where which of our directories are shown, and whether read-only.
    fn shown(&self) -> io::Result<Vec<(String, Option<String>, bool)>> {
        let all = io_host::mounts()?;
        let volumes = self.volumes.display().to_string();
        let holder = Holder::of(&volumes, &all);
        let home = |entry: &io_host::MountEntry| holder.as_ref().and_then(|holder| holder.shown_by(entry));
        Ok(all.iter().map(|entry| (entry.target.clone(), home(entry), entry.read_only)).collect())
    }
}

/// Why a volume cannot be used like this, if it cannot.
fn unfit(capability: &VolumeCapability) -> Option<&'static str> {
    match &capability.access_type {
        Some(AccessType::Mount(mount)) if !mount.fs_type.is_empty() => {
            return Some("directories have no filesystem type");
        }
        Some(AccessType::Mount(mount)) if !mount.mount_flags.is_empty() => return Some("no mount flags are offered"),
        Some(AccessType::Mount(mount)) if !mount.volume_mount_group.is_empty() => return Some("no groups are offered"),
        Some(AccessType::Mount(_)) => {}
        Some(AccessType::Block(_)) | None => return Some("directories are no block devices"),
    }
    match mode(capability) {
        Mode::SingleNodeWriter | Mode::SingleNodeReaderOnly => None,
        _ => Some("directories are on one node; ask for SINGLE_NODE_WRITER or SINGLE_NODE_READER_ONLY"),
    }
}

fn mode(capability: &VolumeCapability) -> Mode {
    capability.access_mode.as_ref().map_or(Mode::Unknown, |mode| mode.mode())
}

impl Identity for Tiny {
    fn name(&self) -> String {
        "tiny.csi.example".into()
    }

    fn version(&self) -> String {
        env!("CARGO_PKG_VERSION").into()
    }

    fn capabilities(&self) -> Capabilities {
        [ControllerRpc::CreateDeleteVolume, ControllerRpc::ListVolumes, ControllerRpc::GetVolume].into_iter().collect()
    }
}

// The kit asks the ledger before it asks us: what comes here is a volume that is new, or one that is known. Lists and
// descriptions it answers without us.
impl Controller for Tiny {
    fn ledger(&self) -> Option<&Ledger> {
        Some(&self.ledger)
    }

    async fn create_volume(
        &self,
        request: v1::CreateVolumeRequest,
    ) -> Result<v1::CreateVolumeResponse, CreateVolumeError> {
        if let Some(why) = request.volume_capabilities.iter().find_map(unfit) {
            return Err(CreateVolumeError::Invalid(why.into()));
        }
        if request.volume_content_source.is_some() || !request.mutable_parameters.is_empty() {
            return Err(CreateVolumeError::Invalid("volumes begin empty and have no mutable parameters".into()));
        }
        let capacity_bytes = request.capacity_range.map_or(0, |range| range.required_bytes);
        if capacity_bytes > LARGEST {
            return Err(CreateVolumeError::Size(format!("volumes have at most {LARGEST} bytes")));
        }
        let volume_id = self.id_of(&request.name);
        self.act(Op::MakeDir { path: self.home(&volume_id) }).await?;
        let volume = v1::Volume { volume_id, capacity_bytes, ..Default::default() };
        Ok(v1::CreateVolumeResponse { volume: Some(volume) })
    }

    async fn delete_volume(
        &self,
        request: v1::DeleteVolumeRequest,
    ) -> Result<v1::DeleteVolumeResponse, DeleteVolumeError> {
        let home = self.home(&request.volume_id);
        if let Some((target, ..)) = self.shown()?.iter().find(|(_, shown, _)| shown.as_ref() == Some(&home)) {
            return Err(DeleteVolumeError::InUse(format!("the volume is published at {target}")));
        }
        self.act(Op::RemoveTree { path: home }).await?;
        Ok(v1::DeleteVolumeResponse {})
    }
}

impl Node for Tiny {
    async fn node_get_info(&self, _: v1::NodeGetInfoRequest) -> Result<v1::NodeGetInfoResponse, NodeGetInfoError> {
        Ok(v1::NodeGetInfoResponse { node_id: self.node_id.clone(), ..Default::default() })
    }

    async fn node_publish_volume(
        &self,
        request: v1::NodePublishVolumeRequest,
    ) -> Result<v1::NodePublishVolumeResponse, NodePublishVolumeError> {
        let capability = request.volume_capability.unwrap_or_default();
        if let Some(why) = unfit(&capability) {
            return Err(NodePublishVolumeError::Invalid(why.into()));
        }
        if self.ledger.get(&request.volume_id).is_none() {
            return Err(NodePublishVolumeError::VolumeNotFound("there is no such volume on this node".into()));
        }
        let (source, target) = (self.home(&request.volume_id), request.target_path);
        if Path::new(&target).starts_with(&self.volumes) || self.volumes.starts_with(&target) {
            return Err(NodePublishVolumeError::Invalid("the target path is the driver's own".into()));
        }
        let read_only = request.readonly || mode(&capability) == Mode::SingleNodeReaderOnly;
        match self.shown()?.into_iter().rfind(|(place, ..)| *place == target) {
            Some((_, shown, as_is)) if shown.as_ref() == Some(&source) && as_is == read_only => {}
            Some(_) => return Err(NodePublishVolumeError::Incompatible("something else is at the target path".into())),
            None => {
                self.act(Op::MakeDir { path: target.clone() }).await?;
                self.act(Op::Bind { source, target, read_only }).await?;
            }
        }
        Ok(v1::NodePublishVolumeResponse {})
    }

    async fn node_unpublish_volume(
        &self,
        request: v1::NodeUnpublishVolumeRequest,
    ) -> Result<v1::NodeUnpublishVolumeResponse, NodeUnpublishVolumeError> {
        let (home, target) = (self.home(&request.volume_id), request.target_path);
        if self.shown()?.iter().any(|(place, shown, _)| *place == target && shown.as_ref() == Some(&home)) {
            self.act(Op::Unmount { target: target.clone() }).await?;
        }
        if self.ledger.get(&request.volume_id).is_some() {
            self.act(Op::RemoveTarget { path: target }).await?;
        }
        Ok(v1::NodeUnpublishVolumeResponse {})
    }
}

impl GroupController for Tiny {}
