//! The node service, as csi-sanity judges it.

pub mod beyond;

use std::path::Path;

use csi::{Code, v1};
use v1::volume_capability::access_mode::Mode;

use crate::CaseResult;
use crate::case::{T, cases, ensure, fail};
use crate::context::said;
use crate::life::Life;
use crate::requests::{files, plain, unpublish, unstage};

pub fn stats(id: &str, path: &str) -> v1::NodeGetVolumeStatsRequest {
    v1::NodeGetVolumeStatsRequest { volume_id: id.into(), volume_path: path.into(), ..Default::default() }
}

/// Publishes a volume of one writer at two paths.
async fn second_path(t: &T, mode: Mode) -> CaseResult<Result<(), csi::Status>> {
    let request = v1::CreateVolumeRequest { volume_capabilities: vec![files(mode)], ..t.create_request() };
    let volume = t.volume_from(request).await?;
    let life = t.bring(&volume).await?;
    let second = Life { target: t.target_path()?, ..life };
    Ok(t.ask(t.publish_request(&second)).await.map(|_| ()))
}

cases! {
    parity "node/publish/no-id" []
    "A volume is published by its id."
    |t| {
        let request = v1::NodePublishVolumeRequest { target_path: t.target_path()?, volume_capability: Some(plain()), ..Default::default() };
        t.refused(request, &[Code::InvalidArgument], "without an id").await?;
    }
    parity "node/publish/no-target" [Controller(CreateDeleteVolume)]
    "A volume is published at a path."
    |t| {
        let volume = t.volume().await?;
        let life = t.staged(&volume).await?;
        t.refused(t.publish_request(&life), &[Code::InvalidArgument], "without a target path").await?;
    }
    parity "node/publish/no-capability" [Controller(CreateDeleteVolume)]
    "A volume is published for a use."
    |t| {
        let volume = t.volume().await?;
        let life = Life { target: t.target_path()?, ..t.staged(&volume).await? };
        let request = v1::NodePublishVolumeRequest { volume_capability: None, ..t.publish_request(&life) };
        t.refused(request, &[Code::InvalidArgument], "without a capability").await?;
    }
    parity "node/publish/one-writer-second-target"
    [Controller(CreateDeleteVolume), Controller(SingleNodeMultiWriter), Node(SingleNodeMultiWriter)]
    "A volume for a single writer is published once."
    |t| {
        match second_path(&t, Mode::SingleNodeSingleWriter).await? {
            Err(status) if status.code == Code::FailedPrecondition => {}
            Err(status) => return fail(format!("the second target was answered {}, expected FAILED_PRECONDITION", said(&status))),
            Ok(()) => return fail("a volume for a single writer was published at two targets"),
        }
    }
    beyond "node/publish/many-writers-second-target"
    [Controller(CreateDeleteVolume), Controller(SingleNodeMultiWriter), Node(SingleNodeMultiWriter)]
    "A volume for many writers on one node is published as often as they need."
    |t| {
        if let Err(status) = second_path(&t, Mode::SingleNodeMultiWriter).await? {
            return fail(format!("the second target was answered {}", said(&status)));
        }
    }
    parity "node/unpublish/no-id" []
    "A volume is unpublished by its id."
    |t| { t.refused(unpublish("", &t.target_path()?), &[Code::InvalidArgument], "without an id").await?; }
    parity "node/unpublish/no-target" [Controller(CreateDeleteVolume)]
    "A volume is unpublished from a path."
    |t| {
        let volume = t.volume().await?;
        t.refused(unpublish(&volume.id, ""), &[Code::InvalidArgument], "without a target path").await?;
    }
    parity "node/unpublish/target-removed" [Controller(CreateDeleteVolume)]
    "What the driver made at the target path it takes away."
    |t| {
        let life = t.published().await?;
        t.ok(unpublish(&life.volume.id, &life.target)).await?;
        ensure!(std::fs::symlink_metadata(&life.target).is_err(), "{} is still there", life.target);
    }
    parity "node/stage/no-id" [Node(StageUnstageVolume)]
    "A volume is staged by its id."
    |t| {
        let staging_target_path = t.staging_path()?;
        let request = v1::NodeStageVolumeRequest { staging_target_path, volume_capability: Some(plain()), ..Default::default() };
        t.refused(request, &[Code::InvalidArgument], "without an id").await?;
    }
    parity "node/stage/no-path" [Controller(CreateDeleteVolume), Node(StageUnstageVolume)]
    "A volume is staged at a path."
    |t| {
        let volume = t.volume().await?;
        let context = t.attach(&volume).await?;
        t.refused(t.stage_request(&volume, &context, ""), &[Code::InvalidArgument], "without a path").await?;
    }
    parity "node/stage/no-capability" [Controller(CreateDeleteVolume), Node(StageUnstageVolume)]
    "A volume is staged for a use."
    |t| {
        let volume = t.volume().await?;
        let context = t.attach(&volume).await?;
        let request = t.stage_request(&volume, &context, &t.staging_path()?);
        let request = v1::NodeStageVolumeRequest { volume_capability: None, ..request };
        t.refused(request, &[Code::InvalidArgument], "without a capability").await?;
    }
    parity "node/unstage/no-id" [Node(StageUnstageVolume)]
    "A volume is unstaged by its id."
    |t| { t.refused(unstage("", &t.staging_path()?), &[Code::InvalidArgument], "without an id").await?; }
    parity "node/unstage/no-path" [Controller(CreateDeleteVolume), Node(StageUnstageVolume)]
    "A volume is unstaged from a path."
    |t| {
        let volume = t.volume().await?;
        t.refused(unstage(&volume.id, ""), &[Code::InvalidArgument], "without a path").await?;
    }
    parity "node/stats/no-id" [Node(GetVolumeStats)]
    "Usage is asked of a volume."
    |t| { t.refused(stats("", &t.target_path()?), &[Code::InvalidArgument], "without an id").await?; }
    parity "node/stats/no-path" [Controller(CreateDeleteVolume), Node(GetVolumeStats)]
    "Usage is asked at a path."
    |t| {
        let volume = t.volume().await?;
        t.refused(stats(&volume.id, ""), &[Code::InvalidArgument], "without a path").await?;
    }
    parity "node/stats/unknown" [Node(GetVolumeStats)]
    "A volume that does not exist has no usage."
    |t| { t.refused(stats(&t.name("none"), &t.target_path()?), &[Code::NotFound], "of a volume that does not exist").await?; }
    parity "node/stats/wrong-path" [Controller(CreateDeleteVolume), Node(GetVolumeStats)]
    "A volume has no usage at a path where it is not."
    |t| {
        let life = t.published().await?;
        t.refused(stats(&life.volume.id, &t.target_path()?), &[Code::NotFound], "at a path where it is not").await?;
    }
    parity "node/flow/works" [Controller(CreateDeleteVolume)]
    "A volume goes its whole way and back."
    |t| {
        let life = t.published().await?;
        ensure!(Path::new(&life.target).exists(), "nothing is at {} after publishing", life.target);
        t.take_down(&life).await?;
        t.ok(crate::requests::delete(&life.volume.id)).await?;
    }
    parity "node/flow/each-step-ten-times" [Controller(CreateDeleteVolume)]
    "Every step of the way there can be repeated."
    |t| {
        let volume = t.volume().await?;
        let mut life = t.staged(&volume).await?;
        for _ in 0..9 {
            if !life.staging.is_empty() {
                t.ok(t.stage_request(&volume, &life.publish_context, &life.staging)).await?;
            }
        }
        life.target = t.target_path()?;
        for _ in 0..10 {
            t.ok(t.publish_request(&life)).await?;
        }
        t.take_down(&life).await?;
    }
}
