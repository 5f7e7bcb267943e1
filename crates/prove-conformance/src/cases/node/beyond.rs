//! The node service beyond csi-sanity: repeats, crossed orders, and what the mount table shows.

use std::path::Path;

use csi::{Code, v1};
use v1::volume_capability::access_mode::Mode;
use v1::volume_usage::Unit;

use super::stats;
use crate::case::{cases, ensure, fail, skip};
use crate::context::said;
use crate::host;
use crate::life::Life;
use crate::requests::{blocks, files, unpublish, unstage};

cases! {
    beyond "node/publish/unknown" [Controller(CreateDeleteVolume)]
    "A volume that does not exist cannot be published."
    |t| {
        let volume = t.volume().await?;
        let life = Life { target: t.target_path()?, ..t.staged(&volume).await? };
        let request = v1::NodePublishVolumeRequest { volume_id: t.name("none"), ..t.publish_request(&life) };
        t.refused(request, &[Code::NotFound, Code::FailedPrecondition, Code::InvalidArgument], "of a volume that does not exist").await?;
        ensure!(!host::is_mounted(Path::new(&life.target)), "something is mounted although it was refused");
    }
    beyond "node/publish/not-staged" [Controller(CreateDeleteVolume), Node(StageUnstageVolume)]
    "A volume is staged before it is published."
    |t| {
        let volume = t.volume().await?;
        let publish_context = t.attach(&volume).await?;
        let life = Life { volume, publish_context, staging: t.staging_path()?, target: t.target_path()? };
        t.refused(t.publish_request(&life), &[Code::FailedPrecondition, Code::NotFound], "of a volume that is not staged").await?;
    }
    beyond "node/publish/no-staging-path" [Controller(CreateDeleteVolume), Node(StageUnstageVolume)]
    "A driver that stages is told where the volume is staged."
    |t| {
        let volume = t.volume().await?;
        let life = Life { target: t.target_path()?, ..t.staged(&volume).await? };
        let request = v1::NodePublishVolumeRequest { staging_target_path: String::new(), ..t.publish_request(&life) };
        t.refused(request, &[Code::FailedPrecondition, Code::InvalidArgument], "without a staging path").await?;
    }
    beyond "node/publish/repeat-mounts-once" [Controller(CreateDeleteVolume), Root]
    "However often publishing is repeated, one mount lies at the target."
    |t| {
        let life = t.published().await?;
        for _ in 0..4 {
            t.ok(t.publish_request(&life)).await?;
        }
        let times = host::times_mounted(Path::new(&life.target));
        ensure!(times <= 1, "{times} mounts lie on {}", life.target);
    }
    beyond "node/stage/repeat-mounts-once" [Controller(CreateDeleteVolume), Node(StageUnstageVolume), Root]
    "However often staging is repeated, one mount lies at the staging path."
    |t| {
        let volume = t.volume().await?;
        let life = t.staged(&volume).await?;
        for _ in 0..4 {
            t.ok(t.stage_request(&volume, &life.publish_context, &life.staging)).await?;
        }
        let times = host::times_mounted(Path::new(&life.staging));
        ensure!(times <= 1, "{times} mounts lie on {}", life.staging);
    }
    beyond "node/publish/target-exists" [Controller(CreateDeleteVolume)]
    "An empty directory at the target is no obstacle."
    |t| {
        let volume = t.volume().await?;
        let life = Life { target: t.target_path()?, ..t.staged(&volume).await? };
        std::fs::create_dir(&life.target).or_else(|error| fail(format!("cannot make {}: {error}", life.target)))?;
        t.ok(t.publish_request(&life)).await?;
    }
    beyond "node/publish/read-only-changed" [Controller(CreateDeleteVolume)]
    "A published volume does not become read-only by asking again."
    |t| {
        let life = t.published().await?;
        let request = v1::NodePublishVolumeRequest { readonly: true, ..t.publish_request(&life) };
        t.refused(request, &[Code::AlreadyExists], "read-only after read-write at the same path").await?;
    }
    beyond "node/publish/two-targets" [Controller(CreateDeleteVolume)]
    "A volume of one writing node may be published at two paths there, or the driver says that it may not."
    |t| {
        let life = t.published().await?;
        let second = Life { target: t.target_path()?, ..life.clone() };
        match t.ask(t.publish_request(&second)).await {
            Ok(_) => {
                t.ok(unpublish(&life.volume.id, &second.target)).await?;
                ensure!(Path::new(&life.target).exists(), "unpublishing one target took the other away");
            }
            Err(status) if status.code == Code::FailedPrecondition => {}
            Err(status) => return fail(format!("a second target was answered {}", said(&status))),
        }
    }
    beyond "node/publish/target-of-another-volume" [Controller(CreateDeleteVolume)]
    "A target that another volume has is not taken over."
    |t| {
        let life = t.published().await?;
        let other = t.volume().await?;
        let other = Life { target: life.target.clone(), ..t.staged(&other).await? };
        if t.ask(t.publish_request(&other)).await.is_ok() {
            return fail("two volumes were published at one target");
        }
    }
    beyond "node/publish/blocks-of-files" [Controller(CreateDeleteVolume)]
    "A volume made for files is not published as blocks."
    |t| {
        let volume = t.volume().await?;
        let life = Life { target: t.target_path()?, ..t.staged(&volume).await? };
        let volume_capability = Some(blocks(Mode::SingleNodeWriter));
        let request = v1::NodePublishVolumeRequest { volume_capability, ..t.publish_request(&life) };
        if t.ask(request).await.is_ok() {
            return fail("a volume staged for files was published as blocks");
        }
    }
    beyond "node/unpublish/ten-times" [Controller(CreateDeleteVolume)]
    "Unpublishing can be repeated."
    |t| {
        let life = t.published().await?;
        for _ in 0..10 {
            t.ok(unpublish(&life.volume.id, &life.target)).await?;
        }
    }
    beyond "node/unpublish/never-published" [Controller(CreateDeleteVolume)]
    "A volume that was never published is unpublished already."
    |t| {
        let volume = t.volume().await?;
        t.ok(unpublish(&volume.id, &t.target_path()?)).await?;
    }
    beyond "node/unpublish/unknown" []
    "A volume that does not exist is published nowhere."
    |t| {
        if let Err(status) = t.ask(unpublish(&t.name("none"), &t.target_path()?)).await {
            ensure!(status.code == Code::NotFound, "answered {}, expected OK or NOT_FOUND", said(&status));
        }
    }
    beyond "node/unpublish/foreign-files-stay" [Controller(CreateDeleteVolume)]
    "What the driver did not make at a path it leaves there."
    |t| {
        let volume = t.volume().await?;
        let target = t.target_path()?;
        std::fs::create_dir(&target).or_else(|error| fail(format!("cannot make {target}: {error}")))?;
        let file = Path::new(&target).join("not-the-drivers");
        host::write(&file, b"mine")?;
        t.remember_path(&file);
        let _ = t.ask(unpublish(&volume.id, &target)).await;
        host::holds(&file, b"mine", "after NodeUnpublishVolume of a volume that was not there")?;
    }
    beyond "node/unpublish/mount-gone" [Controller(CreateDeleteVolume), Root]
    "After unpublishing nothing is mounted at the target."
    |t| {
        let life = t.published().await?;
        t.ok(unpublish(&life.volume.id, &life.target)).await?;
        ensure!(!host::is_mounted(Path::new(&life.target)), "{} is still mounted", life.target);
    }
    beyond "node/unpublish/publish-again" [Controller(CreateDeleteVolume)]
    "A volume is published again where it was."
    |t| {
        let life = t.published().await?;
        for _ in 0..3 {
            t.ok(unpublish(&life.volume.id, &life.target)).await?;
            t.ok(t.publish_request(&life)).await?;
        }
    }
    beyond "node/stage/unknown" [Controller(CreateDeleteVolume), Node(StageUnstageVolume)]
    "A volume that does not exist cannot be staged."
    |t| {
        let volume = t.volume().await?;
        let request = t.stage_request(&volume, &Default::default(), &t.staging_path()?);
        let request = v1::NodeStageVolumeRequest { volume_id: t.name("none"), ..request };
        t.refused(request, &[Code::NotFound, Code::FailedPrecondition, Code::InvalidArgument], "of a volume that does not exist").await?;
    }
    beyond "node/stage/other-capability" [Controller(CreateDeleteVolume), Node(StageUnstageVolume)]
    "A staged volume does not answer for another use."
    |t| {
        let volume = t.volume().await?;
        let life = t.staged(&volume).await?;
        let request = t.stage_request(&volume, &life.publish_context, &life.staging);
        let volume_capability = Some(blocks(Mode::SingleNodeWriter));
        let request = v1::NodeStageVolumeRequest { volume_capability, ..request };
        t.should_refuse(request, &[Code::AlreadyExists, Code::InvalidArgument, Code::FailedPrecondition], "as blocks after files").await?;
    }
    beyond "node/stage/not-attached"
    [Controller(CreateDeleteVolume), Node(StageUnstageVolume), Controller(PublishUnpublishVolume)]
    "A volume is attached before it is staged."
    |t| {
        let volume = t.volume().await?;
        let request = t.stage_request(&volume, &Default::default(), &t.staging_path()?);
        t.should_refuse(request, &[Code::FailedPrecondition, Code::InvalidArgument, Code::NotFound], "of a volume that is not attached").await?;
    }
    beyond "node/unstage/ten-times" [Controller(CreateDeleteVolume), Node(StageUnstageVolume)]
    "Unstaging can be repeated."
    |t| {
        let volume = t.volume().await?;
        let life = t.staged(&volume).await?;
        for _ in 0..10 {
            t.ok(unstage(&volume.id, &life.staging)).await?;
        }
    }
    beyond "node/unstage/never-staged" [Controller(CreateDeleteVolume), Node(StageUnstageVolume)]
    "A volume that was never staged is unstaged already."
    |t| {
        let volume = t.volume().await?;
        t.ok(unstage(&volume.id, &t.staging_path()?)).await?;
    }
    beyond "node/unstage/unknown" [Node(StageUnstageVolume)]
    "A volume that does not exist is staged nowhere."
    |t| {
        if let Err(status) = t.ask(unstage(&t.name("none"), &t.staging_path()?)).await {
            ensure!(status.code == Code::NotFound, "answered {}, expected OK or NOT_FOUND", said(&status));
        }
    }
    beyond "node/unstage/while-published" [Controller(CreateDeleteVolume), Node(StageUnstageVolume)]
    "A volume is unstaged after it was unpublished everywhere; before, the driver refuses or the target lives on."
    |t| {
        let life = t.published().await?;
        match t.ask(unstage(&life.volume.id, &life.staging)).await {
            Err(status) if status.code == Code::FailedPrecondition => {}
            Err(status) => t.warn(format!("answered {}, expected FAILED_PRECONDITION", said(&status))),
            Ok(_) => t.warn("a published volume was unstaged"),
        }
        ensure!(Path::new(&life.target).exists(), "the target vanished under its user");
    }
    beyond "node/unstage/mount-gone" [Controller(CreateDeleteVolume), Node(StageUnstageVolume), Root]
    "After unstaging nothing is mounted at the staging path."
    |t| {
        let life = t.published().await?;
        t.take_down(&life).await?;
        ensure!(!host::is_mounted(Path::new(&life.staging)), "{} is still mounted", life.staging);
    }
    beyond "node/stats/plausible" [Controller(CreateDeleteVolume), Node(GetVolumeStats)]
    "Usage is not negative, and no more is used than there is."
    |t| {
        let life = t.published().await?;
        let usage = t.ok(stats(&life.volume.id, &life.target)).await?.usage;
        ensure!(usage.iter().any(|u| u.unit == Unit::Bytes as i32), "no usage in bytes is reported");
        for u in usage {
            ensure!(u.total >= 0 && u.used >= 0 && u.available >= 0, "negative usage: {} of {}", u.used, u.total);
            ensure!(u.total == 0 || u.used <= u.total, "{} of {} are used", u.used, u.total);
        }
    }
    beyond "node/stats/grows-with-data" [Controller(CreateDeleteVolume), Node(GetVolumeStats), Root]
    "What is written is counted."
    |t| {
        let life = t.published().await?;
        let used = |answer: v1::NodeGetVolumeStatsResponse| {
            answer.usage.iter().find(|u| u.unit == Unit::Bytes as i32).map_or(0, |u| u.used)
        };
        let before = used(t.ok(stats(&life.volume.id, &life.target)).await?);
        host::write(&life.path("big"), &vec![7; 4 << 20])?;
        t.remember_path(&life.path("big"));
        let after = used(t.ok(stats(&life.volume.id, &life.target)).await?);
        if after < before + (2 << 20) {
            t.warn(format!("4 MiB were written, and {before} used bytes became {after}"));
        }
    }
    beyond "node/stats/blocks" [Controller(CreateDeleteVolume), Node(GetVolumeStats)]
    "A block volume reports its whole size."
    |t| {
        let life = t.published_blocks().await?;
        match t.ask(stats(&life.volume.id, &life.target)).await {
            Ok(answer) => {
                let total = answer.usage.iter().find(|u| u.unit == Unit::Bytes as i32).map_or(0, |u| u.total);
                ensure!(total >= t.suite.options.size, "the volume has {} bytes, {total} are reported", t.suite.options.size);
            }
            Err(status) => t.warn(format!("usage of a block volume was answered {}", said(&status))),
        }
    }
    beyond "node/stats/after-unpublish" [Controller(CreateDeleteVolume), Node(GetVolumeStats)]
    "A path from which a volume was taken has no usage."
    |t| {
        let life = t.published().await?;
        t.take_down(&life).await?;
        t.refused(stats(&life.volume.id, &life.target), &[Code::NotFound], "after unpublishing").await?;
    }
    beyond "node/health/healthy" [Controller(CreateDeleteVolume), Node(GetVolumeHealth)]
    "A volume in use is healthy."
    |t| {
        let life = t.published().await?;
        let request = v1::NodeGetVolumeHealthRequest {
            volume_id: life.volume.id.clone(),
            volume_publish_path: life.target.clone(),
            staging_target_path: life.staging.clone(),
        };
        let health = t.ok(request).await?.volume_health.unwrap_or_default();
        ensure!(health.health_statuses.is_empty(), "a volume in use is reported as unhealthy");
    }
    beyond "node/health/storage" [Node(GetStorageHealth)]
    "The node's storage is healthy."
    |t| {
        let troubles = t.ok(v1::NodeGetStorageHealthRequest::default()).await?.backend_health;
        ensure!(troubles.is_empty(), "{} troubles of the storage are reported", troubles.len());
    }
    beyond "node/publish/blocks-is-a-device" [Controller(CreateDeleteVolume), Root]
    "A block volume appears as a device of its size."
    |t| {
        let life = t.published_blocks().await?;
        let size = host::device_size(Path::new(&life.target))?;
        ensure!(size >= t.suite.options.size, "{} bytes were required, the device has {size}", t.suite.options.size);
    }
    beyond "node/publish/many-modes" [Controller(CreateDeleteVolume)]
    "Every access mode a volume was made for can be published."
    |t| {
        let mut tried = 0;
        for mode in [Mode::SingleNodeReaderOnly, Mode::MultiNodeReaderOnly, Mode::MultiNodeSingleWriter, Mode::MultiNodeMultiWriter] {
            let request = v1::CreateVolumeRequest { volume_capabilities: vec![files(mode)], ..t.create_request() };
            let Ok(answer) = t.ask(request.clone()).await else { continue };
            if answer.volume.is_some() {
                let volume = t.volume_from(request).await?;
                let life = t.bring(&volume).await?;
                t.take_down(&life).await?;
                tried += 1;
            }
        }
        if tried == 0 {
            return skip("the driver offers no further access modes");
        }
    }
    beyond "node/publish/mount-group" [Controller(CreateDeleteVolume), Node(VolumeMountGroup), Root]
    "A group that is asked for owns the files."
    |t| {
        use std::os::unix::fs::MetadataExt;
        let mount = v1::volume_capability::MountVolume { volume_mount_group: "4242".into(), ..Default::default() };
        let capability = crate::requests::files_with(Mode::SingleNodeWriter, mount);
        let request = v1::CreateVolumeRequest { volume_capabilities: vec![capability], ..t.create_request() };
        let volume = t.volume_from(request).await?;
        let life = t.bring(&volume).await?;
        let gid = std::fs::metadata(&life.target).map(|m| m.gid()).unwrap_or_default();
        ensure!(gid == 4242, "group 4242 was asked for, {gid} owns the files");
    }
}
