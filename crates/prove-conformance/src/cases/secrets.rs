//! Secrets are used and never shown: not in refusals, not in answers.

use std::collections::BTreeMap;

use csi::{Code, v1};

use super::snapshots::by_source;
use crate::CaseResult;
use crate::ask::Ask;
use crate::case::{T, cases, fail};
use crate::life::Life;
use crate::requests::{at_least, delete, delete_snapshot, detach, plain};

/// A value nobody has by chance.
const CANARY: &str = "longshore-canary-5f2d9c";
/// What our own client puts where it found a secret in a refusal.
const COVERED: &str = "[secret]";

/// Sends a request with a secret; it must not come back, neither in a refusal nor in what `shown` takes from an answer.
async fn hidden<R: Ask>(t: &T, request: R, shown: impl Fn(&R::Answer) -> Vec<BTreeMap<String, String>>) -> CaseResult {
    let mut call = request.clone().into_call();
    let Some(secrets) = call.secrets_mut() else { return fail("the call carries no secrets") };
    secrets.insert("password".into(), CANARY.into());
    let method = R::METHOD.name();
    let answer = t.suite.call(call, t.suite.options.call_timeout).await;
    // Afterwards, so that the first answer is one to the secret; and through `t`, so that what was made is remembered.
    let plain_answer = t.ask(request).await;
    match answer {
        Ok(response) => {
            let answer = R::read(response).map(|answer| shown(&answer)).unwrap_or_default();
            match answer.iter().flatten().any(|(k, v)| k.contains(CANARY) || v.contains(CANARY)) {
                true => fail(format!("the answer to {method} shows a secret of the request")),
                false => Ok(()),
            }
        }
        Err(status) => {
            // Our client covers secrets; a driver that writes the cover's text by itself shows nothing.
            let by_itself = plain_answer.err().is_some_and(|status| status.message.contains(COVERED));
            match status.message.contains(CANARY) || (status.message.contains(COVERED) && !by_itself) {
                true => fail(format!("the refusal of {method} shows a secret of the request: {}", status.message)),
                false => Ok(()),
            }
        }
    }
}

fn nothing<A>(_: &A) -> Vec<BTreeMap<String, String>> {
    Vec::new()
}

cases! {
    beyond "secrets/create/refusal" [Controller(CreateDeleteVolume)]
    "A refusal does not quote secrets."
    |t| {
        hidden(&t, v1::CreateVolumeRequest { volume_capabilities: vec![], ..t.create_request() }, nothing).await?;
        hidden(&t, v1::CreateVolumeRequest { capacity_range: at_least(i64::MAX), ..t.create_request() }, nothing).await?;
    }
    beyond "secrets/create/answer" [Controller(CreateDeleteVolume)]
    "The volume context, which everybody can read, holds no secrets."
    |t| {
        hidden(&t, t.create_request(), |answer| answer.volume.iter().map(|v| v.volume_context.clone()).collect()).await?;
    }
    beyond "secrets/delete/refusal" [Controller(CreateDeleteVolume)]
    "A refusal does not quote secrets."
    |t| { hidden(&t, delete(""), nothing).await?; }
    beyond "secrets/validate/answer" [Controller(CreateDeleteVolume)]
    "A confirmation holds no secrets."
    |t| {
        let volume = t.volume().await?;
        hidden(&t, t.validate_request(&volume), |answer| answer.confirmed.iter().map(|c| c.volume_context.clone()).collect()).await?;
    }
    beyond "secrets/validate/refusal" [Controller(CreateDeleteVolume)]
    "A refusal does not quote secrets."
    |t| {
        let volume_id = t.name("none");
        hidden(&t, v1::ValidateVolumeCapabilitiesRequest { volume_id, ..Default::default() }, nothing).await?;
    }
    beyond "secrets/attach/refusal" [Controller(PublishUnpublishVolume)]
    "A refusal does not quote secrets."
    |t| {
        let request = v1::ControllerPublishVolumeRequest {
            volume_id: t.name("none"), node_id: t.name("none"), volume_capability: Some(plain()), ..Default::default()
        };
        hidden(&t, request, nothing).await?;
    }
    beyond "secrets/attach/answer" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "The publish context holds no secrets."
    |t| {
        let volume = t.volume().await?;
        hidden(&t, t.attach_request(&volume), |answer| vec![answer.publish_context.clone()]).await?;
    }
    beyond "secrets/detach/refusal" [Controller(PublishUnpublishVolume)]
    "A refusal does not quote secrets."
    |t| { hidden(&t, detach("", ""), nothing).await?; }
    beyond "secrets/snapshot/refusal" [Controller(CreateDeleteSnapshot)]
    "A refusal does not quote secrets."
    |t| {
        hidden(&t, t.snapshot_request(&t.name("none")), nothing).await?;
        hidden(&t, delete_snapshot(""), nothing).await?;
    }
    beyond "secrets/list-snapshots/refusal" [Controller(ListSnapshots)]
    "A refusal does not quote secrets."
    |t| {
        hidden(&t, v1::ListSnapshotsRequest { starting_token: "none".into(), ..by_source("") }, nothing).await?;
    }
    beyond "secrets/expand/refusal" [Controller(ExpandVolume)]
    "A refusal does not quote secrets."
    |t| {
        let volume_id = t.name("none");
        hidden(&t, v1::ControllerExpandVolumeRequest { volume_id, capacity_range: at_least(1), ..Default::default() }, nothing).await?;
    }
    beyond "secrets/modify/refusal" [Controller(ModifyVolume)]
    "A refusal does not quote secrets."
    |t| { hidden(&t, v1::ControllerModifyVolumeRequest { volume_id: t.name("none"), ..Default::default() }, nothing).await?; }
    beyond "secrets/stage/refusal" [Node(StageUnstageVolume)]
    "A refusal does not quote secrets."
    |t| {
        let request = v1::NodeStageVolumeRequest {
            volume_id: t.name("none"), staging_target_path: t.staging_path()?, volume_capability: Some(plain()), ..Default::default()
        };
        hidden(&t, request, nothing).await?;
        hidden(&t, v1::NodeStageVolumeRequest::default(), nothing).await?;
    }
    beyond "secrets/publish/refusal" []
    "A refusal does not quote secrets."
    |t| {
        let request = v1::NodePublishVolumeRequest {
            volume_id: t.name("none"), target_path: t.target_path()?, volume_capability: Some(plain()), ..Default::default()
        };
        hidden(&t, request, nothing).await?;
        hidden(&t, v1::NodePublishVolumeRequest::default(), nothing).await?;
    }
    beyond "secrets/publish/not-in-the-mount-table" [Controller(CreateDeleteVolume), Root]
    "Secrets do not appear among the mount options, which everybody can read."
    |t| {
        let volume = t.volume().await?;
        let life = Life { target: t.target_path()?, ..t.staged(&volume).await? };
        let mut request = t.publish_request(&life);
        request.secrets.insert("password".into(), CANARY.into());
        t.ok(request).await?;
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        if table.contains(CANARY) {
            return fail("a secret is in the mount table");
        }
    }
    beyond "secrets/node-expand/refusal" [Node(ExpandVolume)]
    "A refusal does not quote secrets."
    |t| { hidden(&t, v1::NodeExpandVolumeRequest { volume_id: t.name("none"), ..Default::default() }, nothing).await?; }
    beyond "secrets/group/refusal" [Group(CreateDeleteGetVolumeGroupSnapshot)]
    "A refusal does not quote secrets."
    |t| {
        let request = v1::CreateVolumeGroupSnapshotRequest {
            name: t.name("group"), source_volume_ids: vec![t.name("none")], ..Default::default()
        };
        hidden(&t, request, nothing).await?;
    }
    beyond "secrets/create/wrong-code-for-wrong-secret" [Controller(CreateDeleteVolume)]
    "A secret the driver does not need is ignored or refused, and never a crash."
    |t| {
        let mut request = t.create_request();
        request.secrets.insert("a\0b\n".into(), "c\0d\n".repeat(1000));
        if let Err(status) = t.ask(request).await {
            let fine = matches!(status.code, Code::InvalidArgument | Code::Unauthenticated | Code::PermissionDenied);
            if !fine {
                t.warn(format!("answered {}", crate::context::grpc_name(status.code)));
            }
        }
        t.alive("an odd secret").await?;
    }
}
