//! DeleteVolume, ValidateVolumeCapabilities and ControllerGetVolume.

use csi::{Code, v1};
use v1::volume_capability::access_mode::Mode;

use crate::case::{cases, ensure, fail};
use crate::context::said;
use crate::requests::{blocks, delete, files, get, of_snapshot};

cases! {
    parity "controller/delete/no-id" [Controller(CreateDeleteVolume)]
    "A volume is deleted by its id."
    |t| { t.refused(delete(""), &[Code::InvalidArgument], "without an id").await?; }
    parity "controller/delete/unknown" [Controller(CreateDeleteVolume)]
    "A volume that does not exist is deleted already."
    |t| { t.ok(delete(&t.name("no-such-volume"))).await?; }
    parity "controller/delete/existing" [Controller(CreateDeleteVolume)]
    "A volume can be deleted."
    |t| {
        let volume = t.volume().await?;
        t.ok(delete(&volume.id)).await?;
    }
    beyond "controller/delete/ten-times" [Controller(CreateDeleteVolume)]
    "A deletion can be repeated."
    |t| {
        let volume = t.volume().await?;
        for _ in 0..10 {
            t.ok(delete(&volume.id)).await?;
        }
    }
    beyond "controller/delete/really-gone" [Controller(CreateDeleteVolume)]
    "A deleted volume is not known any more."
    |t| {
        let volume = t.volume().await?;
        t.ok(delete(&volume.id)).await?;
        t.refused(t.validate_request(&volume), &[Code::NotFound], "of a deleted volume").await?;
    }
    beyond "controller/delete/attached" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "A volume in use is not deleted."
    |t| {
        let volume = t.volume().await?;
        t.attach(&volume).await?;
        t.refused(delete(&volume.id), &[Code::FailedPrecondition], "of an attached volume").await?;
        t.detached(&volume).await?;
        t.ok(delete(&volume.id)).await?;
    }
    beyond "controller/delete/staged" [Controller(CreateDeleteVolume), Node(StageUnstageVolume)]
    "A volume in use is not deleted."
    |t| {
        let volume = t.volume().await?;
        let life = t.staged(&volume).await?;
        t.refused(delete(&volume.id), &[Code::FailedPrecondition], "of a staged volume").await?;
        t.take_down(&life).await?;
        t.ok(delete(&volume.id)).await?;
    }
    beyond "controller/delete/published" [Controller(CreateDeleteVolume)]
    "A volume in use is not deleted."
    |t| {
        let life = t.published().await?;
        t.refused(delete(&life.volume.id), &[Code::FailedPrecondition], "of a published volume").await?;
        t.take_down(&life).await?;
        t.ok(delete(&life.volume.id)).await?;
    }
    beyond "controller/delete/others-stay" [Controller(CreateDeleteVolume)]
    "Deleting one volume leaves the others."
    |t| {
        let (one, other) = (t.volume().await?, t.volume().await?);
        t.ok(delete(&one.id)).await?;
        t.ok(t.validate_request(&other)).await?;
    }
    beyond "controller/delete/with-snapshot" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A volume with snapshots is refused, or its snapshots outlive it."
    |t| {
        let volume = t.volume().await?;
        let snapshot = t.snapshot(&volume).await?;
        match t.ask(delete(&volume.id)).await {
            Err(status) if status.code == Code::FailedPrecondition => {}
            Err(status) => return fail(format!("deleting a volume with a snapshot was answered {}", said(&status))),
            Ok(_) => {
                let volume_content_source = of_snapshot(&snapshot.snapshot_id);
                t.volume_from(v1::CreateVolumeRequest { volume_content_source, ..t.create_request() }).await?;
            }
        }
    }
    parity "controller/validate/no-id" [Controller(CreateDeleteVolume)]
    "Capabilities are asked of a volume."
    |t| {
        let volume = t.volume().await?;
        let request = v1::ValidateVolumeCapabilitiesRequest { volume_id: String::new(), ..t.validate_request(&volume) };
        t.refused(request, &[Code::InvalidArgument], "without an id").await?;
    }
    parity "controller/validate/no-capabilities" [Controller(CreateDeleteVolume)]
    "Without capabilities there is nothing to validate."
    |t| {
        let volume = t.volume().await?;
        let request = v1::ValidateVolumeCapabilitiesRequest { volume_capabilities: vec![], ..t.validate_request(&volume) };
        t.refused(request, &[Code::InvalidArgument], "without capabilities").await?;
    }
    parity "controller/validate/confirmed" [Controller(CreateDeleteVolume)]
    "A volume can do what it was created for."
    |t| {
        let volume = t.volume().await?;
        let answer = t.ok(t.validate_request(&volume)).await?;
        ensure!(answer.confirmed.is_some(), "what the volume was created for is not confirmed: {}", answer.message);
    }
    parity "controller/validate/unknown" [Controller(CreateDeleteVolume)]
    "A volume that does not exist can do nothing."
    |t| {
        let volume = t.volume().await?;
        let volume_id = t.name("no-such-volume");
        let request = v1::ValidateVolumeCapabilitiesRequest { volume_id, ..t.validate_request(&volume) };
        t.refused(request, &[Code::NotFound], "of a volume that does not exist").await?;
    }
    beyond "controller/validate/names-what-it-confirms" [Controller(CreateDeleteVolume)]
    "A confirmation names the capabilities it confirms."
    |t| {
        let volume = t.volume().await?;
        let request = t.validate_request(&volume);
        if let Some(confirmed) = t.ok(request.clone()).await?.confirmed {
            ensure!(confirmed.volume_capabilities == request.volume_capabilities, "other capabilities are confirmed");
        }
    }
    beyond "controller/validate/words-when-not" [Controller(CreateDeleteVolume)]
    "What is not confirmed is explained."
    |t| {
        let volume = t.volume().await?;
        let volume_capabilities = vec![files(Mode::MultiNodeMultiWriter), blocks(Mode::MultiNodeMultiWriter)];
        let request = v1::ValidateVolumeCapabilitiesRequest { volume_capabilities, ..t.validate_request(&volume) };
        match t.ask(request).await {
            Ok(answer) if answer.confirmed.is_none() && answer.message.is_empty() => {
                t.warn("capabilities were not confirmed, and no message says why");
            }
            Ok(_) => {}
            Err(status) if status.code == Code::InvalidArgument => {}
            Err(status) => return fail(format!("other capabilities were answered {}", said(&status))),
        }
    }
    beyond "controller/validate/changes-nothing" [Controller(CreateDeleteVolume)]
    "Asking changes nothing: the same question gets the same answer, ten times."
    |t| {
        let volume = t.volume().await?;
        let first = t.ok(t.validate_request(&volume)).await?;
        for _ in 0..9 {
            crate::context::same(&first, &t.ok(t.validate_request(&volume)).await?, "ValidateVolumeCapabilities")?;
        }
    }
    beyond "controller/get/no-id" [Controller(GetVolume)]
    "A volume is got by its id."
    |t| { t.refused(get(""), &[Code::InvalidArgument], "without an id").await?; }
    beyond "controller/get/unknown" [Controller(GetVolume)]
    "A volume that does not exist is NOT_FOUND."
    |t| { t.refused(get(&t.name("no-such-volume")), &[Code::NotFound], "of a volume that does not exist").await?; }
    beyond "controller/get/as-created" [Controller(CreateDeleteVolume), Controller(GetVolume)]
    "A volume is described as its creation was answered."
    |t| {
        let volume = t.volume().await?;
        let found = t.ok(get(&volume.id)).await?.volume.unwrap_or_default();
        ensure!(found.volume_id == volume.id, "volume {} was asked for, {} answered", volume.id, found.volume_id);
        ensure!(found.capacity_bytes == volume.capacity, "{} bytes were made, {} found", volume.capacity, found.capacity_bytes);
    }
    beyond "controller/get/after-delete" [Controller(CreateDeleteVolume), Controller(GetVolume)]
    "A deleted volume is NOT_FOUND."
    |t| {
        let volume = t.volume().await?;
        t.ok(delete(&volume.id)).await?;
        t.refused(get(&volume.id), &[Code::NotFound], "of a deleted volume").await?;
    }
    beyond "controller/get/attached-nodes"
    [Controller(CreateDeleteVolume), Controller(GetVolume), Controller(PublishUnpublishVolume), Controller(ListVolumesPublishedNodes)]
    "A volume names the nodes it is attached to, from the first moment to the last."
    |t| {
        let volume = t.volume().await?;
        t.attach(&volume).await?;
        let nodes = t.ok(get(&volume.id)).await?.status.unwrap_or_default().published_node_ids;
        ensure!(nodes == [t.suite.node.node_id.clone()], "attached to {}, reported {nodes:?}", t.suite.node.node_id);
        t.detached(&volume).await?;
        let nodes = t.ok(get(&volume.id)).await?.status.unwrap_or_default().published_node_ids;
        ensure!(nodes.is_empty(), "detached, but {nodes:?} are reported");
    }
    beyond "controller/health/healthy" [Controller(CreateDeleteVolume), Controller(GetVolumeHealth)]
    "A new volume is healthy."
    |t| {
        let volume = t.volume().await?;
        let request = v1::ControllerGetVolumeHealthRequest { volume_id: volume.id.clone(), ..Default::default() };
        let health = t.ok(request).await?.volume_health.unwrap_or_default();
        ensure!(health.volume_id == volume.id, "the health of {} is reported for {}", health.volume_id, volume.id);
        ensure!(health.health_statuses.is_empty(), "a new volume is reported as unhealthy");
    }
    beyond "controller/health/unknown" [Controller(GetVolumeHealth)]
    "A volume that does not exist is NOT_FOUND."
    |t| {
        let volume_id = t.name("no-such-volume");
        let request = v1::ControllerGetVolumeHealthRequest { volume_id, ..Default::default() };
        t.refused(request, &[Code::NotFound], "of a volume that does not exist").await?;
    }
    beyond "controller/health/listed" [Controller(CreateDeleteVolume), Controller(ListVolumeHealth)]
    "The list of troubles names no healthy volume."
    |t| {
        let volume = t.volume().await?;
        let entries = t.ok(v1::ControllerListVolumeHealthRequest::default()).await?.entries;
        let sick = entries.iter().any(|e| e.volume_id == volume.id && !e.health_statuses.is_empty());
        ensure!(!sick, "a new volume is listed as unhealthy");
    }
}
