//! ControllerModifyVolume.

use csi::{Code, v1};

use crate::case::{T, cases, ensure};
use crate::context::pair;
use crate::life::Volume;

fn modify(t: &T, volume: &Volume) -> v1::ControllerModifyVolumeRequest {
    v1::ControllerModifyVolumeRequest {
        volume_id: volume.id.clone(),
        mutable_parameters: t.suite.options.mutable_parameters.clone(),
        ..Default::default()
    }
}

fn nonsense(volume: &Volume) -> v1::ControllerModifyVolumeRequest {
    let mutable_parameters = pair("longshore-no-such-parameter", "1");
    v1::ControllerModifyVolumeRequest { volume_id: volume.id.clone(), mutable_parameters, ..Default::default() }
}

cases! {
    parity "controller/modify/no-id" [Controller(ModifyVolume)]
    "A volume is modified by its id."
    |t| {
        let request = v1::ControllerModifyVolumeRequest::default();
        t.refused(request, &[Code::InvalidArgument], "without an id").await?;
    }
    parity "controller/modify/unknown" [Controller(ModifyVolume)]
    "A volume that does not exist cannot be modified."
    |t| {
        let mutable_parameters = t.suite.options.mutable_parameters.clone();
        let request = v1::ControllerModifyVolumeRequest { volume_id: t.name("none"), mutable_parameters, ..Default::default() };
        t.refused(request, &[Code::NotFound], "of a volume that does not exist").await?;
    }
    parity "controller/modify/unsupported" [Controller(CreateDeleteVolume), Controller(ModifyVolume)]
    "Parameters the driver does not know are refused."
    |t| {
        let volume = t.volume().await?;
        t.refused(nonsense(&volume), &[Code::InvalidArgument], "with an unknown parameter").await?;
    }
    parity "controller/modify/works" [Controller(CreateDeleteVolume), Controller(ModifyVolume), MutableParameters]
    "A volume created without mutable parameters takes them."
    |t| {
        let volume = t.volume().await?;
        t.ok(modify(&t, &volume)).await?;
    }
    parity "controller/modify/works-again" [Controller(CreateDeleteVolume), Controller(ModifyVolume), MutableParameters]
    "A volume created with mutable parameters takes others."
    |t| {
        let mutable_parameters = t.suite.options.mutable_parameters.clone();
        let volume = t.volume_from(v1::CreateVolumeRequest { mutable_parameters, ..t.create_request() }).await?;
        t.ok(modify(&t, &volume)).await?;
    }
    parity "controller/modify/unsupported-later"
    [Controller(CreateDeleteVolume), Controller(ModifyVolume), MutableParameters]
    "A modified volume refuses unknown parameters too."
    |t| {
        let mutable_parameters = t.suite.options.mutable_parameters.clone();
        let volume = t.volume_from(v1::CreateVolumeRequest { mutable_parameters, ..t.create_request() }).await?;
        t.refused(nonsense(&volume), &[Code::InvalidArgument], "with an unknown parameter").await?;
    }
    beyond "controller/modify/ten-times" [Controller(CreateDeleteVolume), Controller(ModifyVolume), MutableParameters]
    "Modifying can be repeated."
    |t| {
        let volume = t.volume().await?;
        for _ in 0..10 {
            t.ok(modify(&t, &volume)).await?;
        }
    }
    beyond "controller/modify/half-known-is-refused-whole"
    [Controller(CreateDeleteVolume), Controller(ModifyVolume), MutableParameters]
    "One unknown parameter among known ones refuses them all."
    |t| {
        let volume = t.volume().await?;
        let mut request = modify(&t, &volume);
        request.mutable_parameters.insert("longshore-no-such-parameter".into(), "1".into());
        t.refused(request, &[Code::InvalidArgument], "with one unknown parameter among known").await?;
        t.ok(modify(&t, &volume)).await?;
    }
    beyond "controller/modify/of-a-published-volume"
    [Controller(CreateDeleteVolume), Controller(ModifyVolume), MutableParameters]
    "A volume in use can be modified, or the driver says that it cannot."
    |t| {
        let life = t.published().await?;
        if let Err(status) = t.ask(modify(&t, &life.volume)).await {
            ensure!(status.code == Code::FailedPrecondition, "answered {}", crate::context::said(&status));
        }
    }
}
