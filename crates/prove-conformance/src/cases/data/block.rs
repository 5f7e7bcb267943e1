//! Bytes of block volumes, of groups, and of volumes without a controller.

use csi::v1;

use super::{keep, pattern};
use crate::case::{cases, ensure, fail};
use crate::host;
use crate::requests::{delete, of_snapshot, of_volume, unpublish};

const MIB: u64 = 1 << 20;

cases! {
    beyond "data/blocks/read-after-write" [Controller(CreateDeleteVolume), Root]
    "What is written at an offset is read there, and nowhere else."
    |t| {
        let life = t.published_blocks().await?;
        let end = u64::try_from(host::device_size(life.target())?).unwrap_or_default();
        for (offset, seed) in [(0, 1), (MIB + 512, 2), (end - 100_000, 3)] {
            host::write_at(life.target(), offset, &pattern(seed))?;
        }
        for (offset, seed) in [(0, 1), (MIB + 512, 2), (end - 100_000, 3)] {
            let found = host::read_at(life.target(), offset, 100_000)?;
            ensure!(found == pattern(seed), "other bytes are read at {offset} than were written");
        }
    }
    beyond "data/blocks/zeros-at-first" [Controller(CreateDeleteVolume), Root]
    "A new block volume holds nothing of anybody."
    |t| {
        let life = t.published_blocks().await?;
        for offset in [0, MIB, 8 * MIB] {
            let found = host::read_at(life.target(), offset, 65_536)?;
            ensure!(found.iter().all(|byte| *byte == 0), "a new volume holds bytes at {offset}");
        }
    }
    beyond "data/blocks/not-in-later-volumes" [Controller(CreateDeleteVolume), Root]
    "A new block volume holds nothing of a deleted one."
    |t| {
        let life = t.published_blocks().await?;
        host::write_at(life.target(), MIB, &pattern(4))?;
        t.take_down(&life).await?;
        t.ok(delete(&life.volume.id)).await?;
        let life = t.published_blocks().await?;
        let found = host::read_at(life.target(), MIB, 100_000)?;
        ensure!(found.iter().all(|byte| *byte == 0), "a new volume holds bytes of a deleted one");
    }
    beyond "data/blocks/kept-over-republish" [Controller(CreateDeleteVolume), Root]
    "Blocks outlive the path they were published at."
    |t| {
        let life = t.published_blocks().await?;
        host::write_at(life.target(), MIB, &pattern(5))?;
        t.ok(unpublish(&life.volume.id, &life.target)).await?;
        let again = t.publish(&life, false).await?;
        ensure!(host::read_at(again.target(), MIB, 100_000)? == pattern(5), "other bytes are read after publishing again");
    }
    beyond "data/blocks/kept-over-restage" [Controller(CreateDeleteVolume), Root]
    "Blocks outlive the whole way back and there."
    |t| {
        let life = t.published_blocks().await?;
        host::write_at(life.target(), MIB, &pattern(6))?;
        t.take_down(&life).await?;
        let again = t.bring(&life.volume).await?;
        ensure!(host::read_at(again.target(), MIB, 100_000)? == pattern(6), "other bytes are read after the whole way again");
    }
    beyond "data/blocks/read-only" [Controller(CreateDeleteVolume), Root]
    "Blocks that are published read-only cannot be written."
    |t| {
        let volume = t.volume_if_offered(t.create_blocks(), "block volumes").await?;
        let life = t.publish(&t.staged(&volume).await?, true).await?;
        if host::write_at(life.target(), 0, b"written").is_ok() {
            return fail("blocks that are published read-only were written");
        }
    }
    beyond "data/blocks/snapshot" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot), Root]
    "A snapshot of blocks holds what they held then."
    |t| {
        let life = t.published_blocks().await?;
        host::write_at(life.target(), MIB, &pattern(7))?;
        t.take_down(&life).await?;
        let snapshot = t.snapshot(&life.volume).await?;
        let volume_content_source = of_snapshot(&snapshot.snapshot_id);
        let restored = t.volume_from(v1::CreateVolumeRequest { volume_content_source, ..t.create_blocks() }).await?;
        let restored = t.bring(&restored).await?;
        ensure!(host::read_at(restored.target(), MIB, 100_000)? == pattern(7), "the restored volume holds other bytes");
    }
    beyond "data/blocks/clone" [Controller(CreateDeleteVolume), Controller(CloneVolume), Root]
    "A clone of blocks holds what its source held."
    |t| {
        let life = t.published_blocks().await?;
        host::write_at(life.target(), MIB, &pattern(8))?;
        t.take_down(&life).await?;
        let volume_content_source = of_volume(&life.volume.id);
        let clone = t.volume_from(v1::CreateVolumeRequest { volume_content_source, ..t.create_blocks() }).await?;
        let clone = t.bring(&clone).await?;
        ensure!(host::read_at(clone.target(), MIB, 100_000)? == pattern(8), "the clone holds other bytes");
    }
    beyond "data/blocks/beyond-the-end" [Controller(CreateDeleteVolume), Root]
    "Nothing can be written beyond the end of a block volume."
    |t| {
        let life = t.published_blocks().await?;
        let end = u64::try_from(host::device_size(life.target())?).unwrap_or_default();
        if host::write_at(life.target(), end, &[1; 4096]).is_ok() {
            return fail("4096 bytes were written beyond the end");
        }
    }
    beyond "data/group/is-of-one-moment"
    [Controller(CreateDeleteVolume), Group(CreateDeleteGetVolumeGroupSnapshot), Controller(CreateDeleteSnapshot), Root]
    "Members of a group hold what their volumes held then."
    |t| {
        let (one, two) = (t.published().await?, t.published().await?);
        keep(&t, &one, "a", 9)?;
        keep(&t, &two, "a", 10)?;
        t.take_down(&one).await?;
        t.take_down(&two).await?;
        let group = t.ok(t.group_request(&[&one.volume, &two.volume])).await?.group_snapshot.unwrap_or_default();
        for snapshot in &group.snapshots {
            let volume_content_source = of_snapshot(&snapshot.snapshot_id);
            let restored = t.volume_from(v1::CreateVolumeRequest { volume_content_source, ..t.create_request() }).await?;
            let restored = t.bring(&restored).await?;
            let seed = if snapshot.source_volume_id == one.volume.id { 9 } else { 10 };
            host::holds(&restored.path("a"), &pattern(seed), "in the restored member")?;
        }
    }
    beyond "data/delete/only-its-own" [Controller(CreateDeleteVolume), Root]
    "Deleting one volume leaves the data of others."
    |t| {
        let (one, other) = (t.published().await?, t.published().await?);
        keep(&t, &other, "a", 11)?;
        t.take_down(&one).await?;
        t.ok(delete(&one.volume.id)).await?;
        host::holds(&other.path("a"), &pattern(11), "after another volume was deleted")?;
    }
    beyond "data/delete/refused-keeps-data" [Controller(CreateDeleteVolume), Root]
    "A volume in use whose deletion is asked for keeps its data."
    |t| {
        let life = t.published().await?;
        keep(&t, &life, "a", 12)?;
        let _ = t.ask(delete(&life.volume.id)).await;
        host::holds(&life.path("a"), &pattern(12), "after its deletion was asked for while in use")?;
    }
}
