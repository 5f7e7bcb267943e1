//! A volume's way to a path on the node and back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use csi::{Code, ControllerRpc, NodeRpc, v1};

use crate::case::{fail, skip};
use crate::context::said;
use crate::requests::{detach, unpublish, unstage};
use crate::{CaseContext, CaseResult};

/// A volume that a case created.
#[derive(Clone)]
#[allow(missing_docs, reason = "the names say it all")]
pub(crate) struct Volume {
    pub id: String,
    pub context: BTreeMap<String, String>,
    /// The size that the driver reported.
    pub capacity: i64,
    /// The capability that the volume was created with.
    pub capability: v1::VolumeCapability,
    /// The volume in the response to CreateVolume.
    pub answer: v1::Volume,
}

/// A volume that is attached, staged or published. A field is empty as long as its step is not done.
#[derive(Clone)]
#[allow(missing_docs, reason = "the names say it all")]
pub(crate) struct Life {
    pub volume: Volume,
    pub publish_context: BTreeMap<String, String>,
    /// The staging path, if the driver stages volumes.
    pub staging: String,
    /// The target path.
    pub target: String,
}

impl Life {
    /// A path in the published volume.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.target).join(name)
    }

    /// The published path.
    pub(crate) fn target(&self) -> &Path {
        Path::new(&self.target)
    }
}

impl CaseContext {
    /// A new volume of files.
    pub(crate) async fn volume(&self) -> CaseResult<Volume> {
        self.volume_from(self.create_request()).await
    }

    /// A new volume.
    pub(crate) async fn volume_from(&self, request: v1::CreateVolumeRequest) -> CaseResult<Volume> {
        let capability = request.volume_capabilities.first().cloned().unwrap_or_default();
        let Some(answer) = self.ok(request).await?.volume else {
            return fail("CreateVolume was answered OK without a volume");
        };
        if answer.volume_id.is_empty() {
            return fail("CreateVolume was answered OK with an empty volume id");
        }
        Ok(volume(answer, capability))
    }

    /// A new volume of a kind that not every driver has.
    pub(crate) async fn volume_if_offered(&self, request: v1::CreateVolumeRequest, kind: &str) -> CaseResult<Volume> {
        let capability = request.volume_capabilities.first().cloned().unwrap_or_default();
        match self.ask(request).await {
            Ok(v1::CreateVolumeResponse { volume: Some(answer) }) => Ok(volume(answer, capability)),
            Ok(_) => fail("CreateVolume was answered OK without a volume"),
            Err(status) if status.from_driver && not_offered(status.code) => {
                skip(format!("the driver does not offer {kind} ({})", said(&status)))
            }
            Err(status) => fail(format!("CreateVolume of {kind} was refused: {}", said(&status))),
        }
    }

    /// Attaches, where the driver attaches.
    pub(crate) async fn attach(&self, volume: &Volume) -> CaseResult<BTreeMap<String, String>> {
        if !self.can(ControllerRpc::PublishUnpublishVolume) {
            return Ok(BTreeMap::new());
        }
        Ok(self.ok(self.attach_request(volume)).await?.publish_context)
    }

    /// Attaches and stages, where the driver does so.
    pub(crate) async fn staged(&self, volume: &Volume) -> CaseResult<Life> {
        let publish_context = self.attach(volume).await?;
        let staging = if self.can(NodeRpc::StageUnstageVolume) { self.staging_path()? } else { String::new() };
        if !staging.is_empty() {
            self.ok(self.stage_request(volume, &publish_context, &staging)).await?;
        }
        Ok(Life { volume: volume.clone(), publish_context, staging, target: String::new() })
    }

    /// Publishes a staged volume at a path of its own.
    pub(crate) async fn publish(&self, staged: &Life, readonly: bool) -> CaseResult<Life> {
        let life = Life { target: self.target_path()?, ..staged.clone() };
        self.ok(v1::NodePublishVolumeRequest { readonly, ..self.publish_request(&life) }).await?;
        Ok(life)
    }

    /// How a volume is published at its target.
    pub(crate) fn publish_request(&self, life: &Life) -> v1::NodePublishVolumeRequest {
        v1::NodePublishVolumeRequest {
            volume_id: life.volume.id.clone(),
            publish_context: life.publish_context.clone(),
            staging_target_path: life.staging.clone(),
            target_path: life.target.clone(),
            volume_capability: Some(life.volume.capability.clone()),
            volume_context: life.volume.context.clone(),
            ..Default::default()
        }
    }

    /// Brings an existing volume to a path.
    pub(crate) async fn bring(&self, volume: &Volume) -> CaseResult<Life> {
        let staged = self.staged(volume).await?;
        self.publish(&staged, false).await
    }

    /// A new volume of files at a path.
    pub(crate) async fn published(&self) -> CaseResult<Life> {
        let volume = self.volume().await?;
        self.bring(&volume).await
    }

    /// A new volume of blocks at a path.
    pub(crate) async fn published_blocks(&self) -> CaseResult<Life> {
        let volume = self.volume_if_offered(self.create_blocks(), "block volumes").await?;
        self.bring(&volume).await
    }

    /// Takes a volume from its path and from the node; it goes on existing.
    pub(crate) async fn take_down(&self, life: &Life) -> CaseResult {
        let id = &life.volume.id;
        if !life.target.is_empty() {
            self.ok(unpublish(id, &life.target)).await?;
        }
        if !life.staging.is_empty() {
            self.ok(unstage(id, &life.staging)).await?;
        }
        self.detached(&life.volume).await
    }

    /// Detaches, where the driver attaches.
    pub(crate) async fn detached(&self, volume: &Volume) -> CaseResult {
        if self.can(ControllerRpc::PublishUnpublishVolume) {
            self.ok(detach(&volume.id, &self.suite.node.node_id)).await?;
        }
        Ok(())
    }

    /// A snapshot of a volume, ready to be used.
    pub(crate) async fn snapshot(&self, volume: &Volume) -> CaseResult<v1::Snapshot> {
        let request = self.snapshot_request(&volume.id);
        for _ in 0..300 {
            let Some(snapshot) = self.ok(request.clone()).await?.snapshot else {
                return fail("CreateSnapshot was answered OK without a snapshot");
            };
            if snapshot.snapshot_id.is_empty() {
                return fail("CreateSnapshot was answered OK with an empty snapshot id");
            }
            if snapshot.ready_to_use {
                return Ok(snapshot);
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        fail("the snapshot did not become ready to use within 30 s")
    }
}

fn volume(answer: v1::Volume, capability: v1::VolumeCapability) -> Volume {
    Volume {
        id: answer.volume_id.clone(),
        context: answer.volume_context.clone(),
        capacity: answer.capacity_bytes,
        capability,
        answer,
    }
}

/// Codes by which a driver says that it has no such volumes.
pub fn not_offered(code: Code) -> bool {
    matches!(code, Code::InvalidArgument | Code::Unimplemented | Code::FailedPrecondition | Code::OutOfRange)
}
