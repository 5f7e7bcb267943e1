//! Bytes: what was written is read again, by the same volume and by no other.

pub mod block;

use std::path::Path;

use csi::{Code, NodeRpc, v1};
use v1::volume_capability::MountVolume;
use v1::volume_capability::access_mode::Mode;

use crate::CaseResult;
use crate::case::{T, cases, ensure, fail, skip};
use crate::context::said;
use crate::host;
use crate::life::Life;
use crate::requests::{delete, files_with, of_snapshot, of_volume, unpublish};

/// Bytes that nobody else writes.
pub fn pattern(seed: u8) -> Vec<u8> {
    (0..100_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8 ^ seed).collect()
}

/// Writes a file into a published volume, to be removed at the end in case it was no mount at all.
pub fn keep(t: &T, life: &Life, name: &str, seed: u8) -> CaseResult {
    t.remember_path(&life.path(name));
    host::write(&life.path(name), &pattern(seed))
}

/// Opening for writing must fail.
fn closed(path: &Path) -> CaseResult {
    match std::fs::write(path, "written") {
        Ok(()) => {
            let _ = std::fs::remove_file(path);
            fail(format!("{} was written although it is read-only", path.display()))
        }
        Err(_) => Ok(()),
    }
}

cases! {
    beyond "data/files/read-after-write" [Controller(CreateDeleteVolume), Root]
    "What is written is read."
    |t| {
        let life = t.published().await?;
        keep(&t, &life, "a", 1)?;
        host::holds(&life.path("a"), &pattern(1), "after writing")?;
    }
    beyond "data/files/mounted" [Controller(CreateDeleteVolume), Root]
    "A published volume is a filesystem of its own, not a directory of the machine."
    |t| {
        let life = t.published().await?;
        ensure!(host::is_mounted(life.target()), "nothing is mounted at {}", life.target);
    }
    beyond "data/files/empty-at-first" [Controller(CreateDeleteVolume), Root]
    "A new volume is empty."
    |t| {
        let life = t.published().await?;
        let found = host::names(life.target())?;
        ensure!(found.is_empty(), "a new volume holds {found:?}");
    }
    beyond "data/files/kept-over-republish" [Controller(CreateDeleteVolume), Root]
    "Data outlives the path it was published at."
    |t| {
        let life = t.published().await?;
        keep(&t, &life, "a", 2)?;
        t.ok(unpublish(&life.volume.id, &life.target)).await?;
        let again = t.publish(&life, false).await?;
        host::holds(&again.path("a"), &pattern(2), "after publishing again")?;
    }
    beyond "data/files/kept-over-restage" [Controller(CreateDeleteVolume), Root]
    "Data outlives the whole way back and there."
    |t| {
        let life = t.published().await?;
        keep(&t, &life, "a", 3)?;
        t.take_down(&life).await?;
        let again = t.bring(&life.volume).await?;
        host::holds(&again.path("a"), &pattern(3), "after the whole way again")?;
    }
    beyond "data/files/not-in-other-volumes" [Controller(CreateDeleteVolume), Root]
    "Volumes do not share data."
    |t| {
        let (one, other) = (t.published().await?, t.published().await?);
        keep(&t, &one, "a", 4)?;
        ensure!(host::names(other.target())?.is_empty(), "data of one volume appears in another");
    }
    beyond "data/files/not-in-later-volumes" [Controller(CreateDeleteVolume), Root]
    "A new volume holds nothing of a deleted one."
    |t| {
        let request = t.create_request();
        let volume = t.volume_from(request.clone()).await?;
        let life = t.bring(&volume).await?;
        keep(&t, &life, "a", 5)?;
        t.take_down(&life).await?;
        t.ok(delete(&volume.id)).await?;
        let volume = t.volume_from(request).await?;
        let life = t.bring(&volume).await?;
        let found = host::names(life.target())?;
        ensure!(found.is_empty(), "the new volume of the same name holds {found:?}");
    }
    beyond "data/files/two-targets-one-volume" [Controller(CreateDeleteVolume), Root]
    "Two paths of one volume show the same data."
    |t| {
        let life = t.published().await?;
        let second = Life { target: t.target_path()?, ..life.clone() };
        if let Err(status) = t.ask(t.publish_request(&second)).await {
            return skip(format!("a second target is refused: {}", said(&status)));
        }
        keep(&t, &life, "a", 6)?;
        host::holds(&second.path("a"), &pattern(6), "at the other target")?;
    }
    beyond "data/files/unpublish-one-of-two" [Controller(CreateDeleteVolume), Root]
    "Taking a volume from one path leaves the other working."
    |t| {
        let life = t.published().await?;
        let second = Life { target: t.target_path()?, ..life.clone() };
        if let Err(status) = t.ask(t.publish_request(&second)).await {
            return skip(format!("a second target is refused: {}", said(&status)));
        }
        keep(&t, &life, "a", 7)?;
        t.ok(unpublish(&life.volume.id, &second.target)).await?;
        host::holds(&life.path("a"), &pattern(7), "after the other target was unpublished")?;
    }
    beyond "data/files/tree-kept" [Controller(CreateDeleteVolume), Root]
    "Directories, links and modes are kept."
    |t| {
        use std::os::unix::fs::PermissionsExt;
        let life = t.published().await?;
        for name in ["d", "d/e", "d/link"] {
            t.remember_path(&life.path(name));
        }
        let made = std::fs::create_dir_all(life.path("d/e"))
            .and_then(|()| std::os::unix::fs::symlink("../a", life.path("d/link")))
            .and_then(|()| std::fs::set_permissions(life.path("d/e"), std::fs::Permissions::from_mode(0o750)));
        made.or_else(|error| fail(format!("cannot make a tree: {error}")))?;
        t.take_down(&life).await?;
        let again = t.bring(&life.volume).await?;
        let mode = std::fs::metadata(again.path("d/e")).map(|m| m.permissions().mode() & 0o777).unwrap_or_default();
        ensure!(mode == 0o750, "the mode of a directory became {mode:o}");
        let link = std::fs::read_link(again.path("d/link")).unwrap_or_default();
        ensure!(link == Path::new("../a"), "a link leads to {}", link.display());
        for name in ["d", "d/e", "d/link"] {
            t.remember_path(&again.path(name));
        }
    }
    beyond "data/files/capacity-is-there" [Controller(CreateDeleteVolume), Root]
    "A volume holds about what was required."
    |t| {
        let life = t.published().await?;
        let size = t.suite.options.size;
        let found = host::filesystem_size(&life.target).await?;
        ensure!(found >= size / 10 * 7, "{size} bytes were required, the filesystem has {found}");
    }
    beyond "data/files/capacity-is-enforced" [Controller(CreateDeleteVolume), Root]
    "A volume does not take what belongs to others."
    |t| {
        let life = t.published().await?;
        let found = host::filesystem_size(&life.target).await?;
        let size = t.suite.options.size;
        if found > 2 * size {
            t.warn(format!("{size} bytes were required, but the filesystem lets {found} be written"));
        }
    }
    beyond "data/read-only/refuses-writes" [Controller(CreateDeleteVolume), Root]
    "What is published read-only cannot be written, not even by root."
    |t| {
        let volume = t.volume().await?;
        let life = t.publish(&t.staged(&volume).await?, true).await?;
        closed(&life.path("a"))?;
    }
    beyond "data/read-only/still-reads" [Controller(CreateDeleteVolume), Root]
    "What is published read-only can be read."
    |t| {
        let life = t.published().await?;
        keep(&t, &life, "a", 8)?;
        t.ok(unpublish(&life.volume.id, &life.target)).await?;
        let again = t.publish(&life, true).await?;
        host::holds(&again.path("a"), &pattern(8), "when published read-only")?;
        closed(&again.path("a"))?;
    }
    beyond "data/read-only/beside-read-write" [Controller(CreateDeleteVolume), Root]
    "A read-only path does not make the others read-only, nor the other way."
    |t| {
        let life = t.published().await?;
        let second = Life { target: t.target_path()?, ..life.clone() };
        let request = v1::NodePublishVolumeRequest { readonly: true, ..t.publish_request(&second) };
        if let Err(status) = t.ask(request).await {
            return skip(format!("a second target is refused: {}", said(&status)));
        }
        keep(&t, &life, "a", 9)?;
        host::holds(&second.path("a"), &pattern(9), "at the read-only target")?;
        closed(&second.path("a"))?;
        keep(&t, &life, "b", 9)?;
    }
    beyond "data/read-only/then-read-write" [Controller(CreateDeleteVolume), Root]
    "A volume published read-only is writable when it is published again."
    |t| {
        let volume = t.volume().await?;
        let staged = t.staged(&volume).await?;
        let life = t.publish(&staged, true).await?;
        t.ok(unpublish(&volume.id, &life.target)).await?;
        let life = t.publish(&staged, false).await?;
        keep(&t, &life, "a", 10)?;
    }
    beyond "data/read-only/attached-read-only"
    [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume), Controller(PublishReadonly), Root]
    "What is attached read-only cannot be written."
    |t| {
        let volume = t.volume().await?;
        let context = t.ok(v1::ControllerPublishVolumeRequest { readonly: true, ..t.attach_request(&volume) }).await?.publish_context;
        let mut life = Life { volume: volume.clone(), publish_context: context, staging: String::new(), target: t.target_path()? };
        if t.can(NodeRpc::StageUnstageVolume) {
            life.staging = t.staging_path()?;
            t.ok(t.stage_request(&volume, &life.publish_context, &life.staging)).await?;
        }
        t.ok(v1::NodePublishVolumeRequest { readonly: true, ..t.publish_request(&life) }).await?;
        closed(&life.path("a"))?;
    }
    beyond "data/mount/flags-applied" [Controller(CreateDeleteVolume), Root]
    "Mount flags that are asked for are set, or refused."
    |t| {
        let mount = MountVolume { mount_flags: vec!["noatime".into()], ..Default::default() };
        let volume_capabilities = vec![files_with(Mode::SingleNodeWriter, mount)];
        let request = v1::CreateVolumeRequest { volume_capabilities, ..t.create_request() };
        let volume = t.volume_if_offered(request, "mount flags").await?;
        let life = t.bring(&volume).await?;
        let options = host::mount_at(life.target()).map(|m| m.options).unwrap_or_default();
        if !options.iter().any(|o| o == "noatime") {
            t.warn(format!("noatime was asked for, the mount has {}", options.join(",")));
        }
    }
    beyond "data/mount/unknown-filesystem" [Controller(CreateDeleteVolume), Root]
    "A filesystem nobody knows is refused."
    |t| {
        let mount = MountVolume { fs_type: "longshorefs".into(), ..Default::default() };
        let volume_capabilities = vec![files_with(Mode::SingleNodeWriter, mount)];
        let request = v1::CreateVolumeRequest { volume_capabilities, ..t.create_request() };
        let volume = t.volume_if_offered(request, "filesystems nobody knows").await;
        let Ok(volume) = volume else { return Ok(()) };
        if t.bring(&volume).await.is_ok() {
            t.warn("a filesystem nobody knows was asked for, and another was given");
        }
    }
    beyond "data/mount/filesystem-as-asked" [Controller(CreateDeleteVolume), Root]
    "A filesystem that is asked for is the one that is mounted."
    |t| {
        let mount = MountVolume { fs_type: "ext4".into(), ..Default::default() };
        let volume_capabilities = vec![files_with(Mode::SingleNodeWriter, mount)];
        let request = v1::CreateVolumeRequest { volume_capabilities, ..t.create_request() };
        let volume = t.volume_if_offered(request, "ext4").await?;
        let life = t.bring(&volume).await?;
        let found = host::mount_at(life.target()).map(|m| m.fstype).unwrap_or_default();
        if found != "ext4" {
            t.warn(format!("ext4 was asked for, {found} is mounted"));
        }
    }
    beyond "data/clone/has-the-data" [Controller(CreateDeleteVolume), Controller(CloneVolume), Root]
    "A clone holds what its source held."
    |t| {
        let life = t.published().await?;
        keep(&t, &life, "a", 11)?;
        t.take_down(&life).await?;
        let volume_content_source = of_volume(&life.volume.id);
        let clone = t.volume_from(v1::CreateVolumeRequest { volume_content_source, ..t.create_request() }).await?;
        let clone = t.bring(&clone).await?;
        host::holds(&clone.path("a"), &pattern(11), "in the clone")?;
    }
    beyond "data/clone/goes-its-own-way" [Controller(CreateDeleteVolume), Controller(CloneVolume), Root]
    "What is written to a clone is not in its source, nor the other way."
    |t| {
        let life = t.published().await?;
        keep(&t, &life, "a", 12)?;
        t.take_down(&life).await?;
        let volume_content_source = of_volume(&life.volume.id);
        let clone = t.volume_from(v1::CreateVolumeRequest { volume_content_source, ..t.create_request() }).await?;
        let (clone, source) = (t.bring(&clone).await?, t.bring(&life.volume).await?);
        keep(&t, &clone, "a", 13)?;
        keep(&t, &source, "b", 14)?;
        host::holds(&source.path("a"), &pattern(12), "in the source")?;
        ensure!(!clone.path("b").exists(), "what was written to the source appears in the clone");
    }
    beyond "data/snapshot/is-of-its-moment" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot), Root]
    "A snapshot holds what the volume held then, and nothing later."
    |t| {
        let life = t.published().await?;
        keep(&t, &life, "a", 15)?;
        t.take_down(&life).await?;
        let snapshot = t.snapshot(&life.volume).await?;
        let again = t.bring(&life.volume).await?;
        keep(&t, &again, "a", 16)?;
        keep(&t, &again, "b", 16)?;
        let volume_content_source = of_snapshot(&snapshot.snapshot_id);
        let restored = t.volume_from(v1::CreateVolumeRequest { volume_content_source, ..t.create_request() }).await?;
        let restored = t.bring(&restored).await?;
        host::holds(&restored.path("a"), &pattern(15), "in the restored volume")?;
        ensure!(!restored.path("b").exists(), "the snapshot holds what was written after it");
        host::holds(&again.path("a"), &pattern(16), "in the volume after its snapshot was restored")?;
    }
    beyond "data/snapshot/source-unchanged" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot), Root]
    "Taking a snapshot changes nothing in the volume."
    |t| {
        let life = t.published().await?;
        keep(&t, &life, "a", 17)?;
        match t.ask(t.snapshot_request(&life.volume.id)).await {
            Ok(_) => {}
            Err(status) if status.code == Code::FailedPrecondition => return skip("a volume in use is not snapshotted"),
            Err(status) => return fail(format!("a volume in use was answered {}", said(&status))),
        }
        host::holds(&life.path("a"), &pattern(17), "after the snapshot")?;
        keep(&t, &life, "b", 18)?;
    }
}
