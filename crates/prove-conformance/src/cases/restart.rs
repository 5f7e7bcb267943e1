//! A driver is restarted between calls and within them. What it acknowledged holds.

use std::collections::BTreeSet;
use std::time::Duration;

use csi::{Code, ControllerRpc, v1};

use super::data::{keep, pattern};
use super::snapshots::{by_id, listed};
use crate::case::{cases, ensure, fail};
use crate::host;
use crate::requests::{delete, delete_snapshot, get, grow, of_snapshot, unpublish, unstage};

cases! {
    beyond "restart/identity/the-same" [Restart, Alone]
    "A restarted driver has the same name, version and capabilities, and the node the same id and place."
    |t| {
        let (info, can) = (t.ok(v1::GetPluginInfoRequest {}).await?, t.ok(v1::GetPluginCapabilitiesRequest {}).await?);
        let node = t.ok(v1::NodeGetInfoRequest {}).await?;
        t.restart().await?;
        ensure!(t.ok(v1::GetPluginInfoRequest {}).await? == info, "GetPluginInfo is answered differently");
        ensure!(t.ok(v1::GetPluginCapabilitiesRequest {}).await? == can, "GetPluginCapabilities is answered differently");
        ensure!(t.ok(v1::NodeGetInfoRequest {}).await? == node, "NodeGetInfo is answered differently");
    }
    beyond "restart/create/found-again" [Controller(CreateDeleteVolume), Restart, Alone]
    "A repeated creation finds the volume made before the restart."
    |t| {
        let request = t.create_request();
        let volume = t.volume_from(request.clone()).await?;
        t.restart().await?;
        let again = t.volume_from(request).await?;
        ensure!(again.id == volume.id, "volume {} became {}", volume.id, again.id);
        ensure!(again.capacity == volume.capacity, "{} bytes became {}", volume.capacity, again.capacity);
    }
    beyond "restart/create/incompatible-still-refused" [Controller(CreateDeleteVolume), Restart, Alone]
    "A name that is taken stays taken."
    |t| {
        let size = t.suite.options.size;
        let exactly = |bytes| Some(v1::CapacityRange { required_bytes: bytes, limit_bytes: bytes });
        let request = v1::CreateVolumeRequest { capacity_range: exactly(size), ..t.create_request() };
        t.volume_from(request.clone()).await?;
        t.restart().await?;
        let other = v1::CreateVolumeRequest { capacity_range: exactly(2 * size), ..request };
        t.refused(other, &[Code::AlreadyExists], "of a taken name with twice the size after a restart").await?;
    }
    beyond "restart/create/within" [Controller(CreateDeleteVolume), Restart, Alone]
    "A creation that a restart cut off can be repeated, and makes one volume."
    |t| {
        let request = t.create_request();
        for pause in [0, 2, 10] {
            let (asking, suite) = (t.clone(), t.suite.clone());
            let cut = request.clone();
            let task = tokio::spawn(async move { asking.ask(cut).await });
            tokio::time::sleep(Duration::from_millis(pause)).await;
            suite.restart().await.or_else(fail)?;
            let _ = task.await;
        }
        let first = t.volume_from(request.clone()).await?;
        let second = t.volume_from(request).await?;
        ensure!(first.id == second.id, "one name made two volumes");
        let life = t.bring(&first).await?;
        t.take_down(&life).await?;
    }
    beyond "restart/create/no-orphans" [Controller(CreateDeleteVolume), Controller(ListVolumes), Restart, Alone]
    "Creations that restarts cut off leave one volume a name."
    |t| {
        let before = super::list::ids(&t).await?.len();
        let requests: Vec<_> = (0..4).map(|_| t.create_request()).collect();
        for request in &requests {
            let (asking, cut) = (t.clone(), request.clone());
            let task = tokio::spawn(async move { asking.ask(cut).await });
            tokio::time::sleep(Duration::from_millis(3)).await;
            t.restart().await?;
            let _ = task.await;
        }
        let mut ids = BTreeSet::new();
        for request in requests {
            ids.insert(t.volume_from(request).await?.id);
        }
        let after = super::list::ids(&t).await?.len();
        ensure!(ids.len() == 4 && after == before + 4, "4 names are {} volumes, and the list grew by {}", ids.len(), after - before);
    }
    beyond "restart/delete/afterwards" [Controller(CreateDeleteVolume), Restart, Alone]
    "A volume made before a restart can be deleted after it."
    |t| {
        let volume = t.volume().await?;
        t.restart().await?;
        t.ok(t.validate_request(&volume)).await?;
        t.ok(delete(&volume.id)).await?;
        t.refused(t.validate_request(&volume), &[Code::NotFound], "of a deleted volume").await?;
    }
    beyond "restart/delete/stays-deleted" [Controller(CreateDeleteVolume), Restart, Alone]
    "A deleted volume does not come back."
    |t| {
        let volume = t.volume().await?;
        t.ok(delete(&volume.id)).await?;
        t.restart().await?;
        t.refused(t.validate_request(&volume), &[Code::NotFound], "of a volume deleted before the restart").await?;
    }
    beyond "restart/delete/within" [Controller(CreateDeleteVolume), Restart, Alone]
    "A deletion that a restart cut off can be repeated."
    |t| {
        let volume = t.volume().await?;
        let (asking, id) = (t.clone(), volume.id.clone());
        let task = tokio::spawn(async move { asking.ask(delete(&id)).await });
        t.restart().await?;
        let _ = task.await;
        t.ok(delete(&volume.id)).await?;
        t.refused(t.validate_request(&volume), &[Code::NotFound], "of a deleted volume").await?;
    }
    beyond "restart/list/the-same" [Controller(CreateDeleteVolume), Controller(ListVolumes), Restart, Alone]
    "The list is the same before and after."
    |t| {
        for _ in 0..3 {
            t.volume().await?;
        }
        let before: BTreeSet<String> = super::list::ids(&t).await?.into_iter().collect();
        t.restart().await?;
        let after: BTreeSet<String> = super::list::ids(&t).await?.into_iter().collect();
        ensure!(before == after, "{} volumes became {}", before.len(), after.len());
    }
    beyond "restart/attach/kept" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume), Restart, Alone]
    "An attachment outlives a restart: the volume is not deleted, and attaching again answers the same."
    |t| {
        let volume = t.volume().await?;
        let context = t.attach(&volume).await?;
        t.restart().await?;
        t.refused(delete(&volume.id), &[Code::FailedPrecondition], "of a volume attached before the restart").await?;
        ensure!(t.attach(&volume).await? == context, "the publish context changed");
        t.detached(&volume).await?;
    }
    beyond "restart/attach/read-only-kept"
    [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume), Controller(PublishReadonly), Restart, Alone]
    "How a volume is attached outlives a restart."
    |t| {
        let volume = t.volume().await?;
        t.attach(&volume).await?;
        t.restart().await?;
        let request = v1::ControllerPublishVolumeRequest { readonly: true, ..t.attach_request(&volume) };
        t.refused(request, &[Code::AlreadyExists], "read-only after read-write and a restart").await?;
    }
    beyond "restart/attach/nodes-kept"
    [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume), Controller(GetVolume), Controller(ListVolumesPublishedNodes), Restart, Alone]
    "The nodes of a volume outlive a restart."
    |t| {
        let volume = t.volume().await?;
        t.attach(&volume).await?;
        t.restart().await?;
        let nodes = t.ok(get(&volume.id)).await?.status.unwrap_or_default().published_node_ids;
        ensure!(nodes == [t.suite.node.node_id.clone()], "attached to {}, reported {nodes:?}", t.suite.node.node_id);
    }
    beyond "restart/expand/kept" [Controller(CreateDeleteVolume), Controller(ExpandVolume), Restart, Alone]
    "A grown volume stays grown."
    |t| {
        let volume = t.volume().await?;
        let size = 2 * t.suite.options.size;
        let made = t.ok(grow(&volume, size)).await?.capacity_bytes;
        t.restart().await?;
        let again = t.ok(grow(&volume, size)).await?.capacity_bytes;
        ensure!(again == made, "{made} bytes became {again}");
    }
    beyond "restart/snapshot/kept" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot), Restart, Alone]
    "A snapshot outlives a restart and can be restored."
    |t| {
        let volume = t.volume().await?;
        let request = t.snapshot_request(&volume.id);
        let first = t.ok(request.clone()).await?.snapshot.unwrap_or_default();
        t.restart().await?;
        let again = t.ok(request).await?.snapshot.unwrap_or_default();
        ensure!(again.snapshot_id == first.snapshot_id, "snapshot {} became {}", first.snapshot_id, again.snapshot_id);
        ensure!(again.creation_time == first.creation_time, "the snapshot's time changed");
        let volume_content_source = of_snapshot(&first.snapshot_id);
        t.volume_from(v1::CreateVolumeRequest { volume_content_source, ..t.create_request() }).await?;
    }
    beyond "restart/snapshot/stays-deleted"
    [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot), Controller(ListSnapshots), Restart, Alone]
    "A deleted snapshot does not come back."
    |t| {
        let volume = t.volume().await?;
        let snapshot = t.snapshot(&volume).await?;
        t.ok(delete_snapshot(&snapshot.snapshot_id)).await?;
        t.restart().await?;
        ensure!(listed(&t, by_id(&snapshot.snapshot_id)).await?.is_empty(), "a deleted snapshot is listed");
    }
    beyond "restart/group/kept"
    [Controller(CreateDeleteVolume), Group(CreateDeleteGetVolumeGroupSnapshot), Restart, Alone]
    "A group outlives a restart."
    |t| {
        let volume = t.volume().await?;
        let request = t.group_request(&[&volume]);
        let first = t.ok(request.clone()).await?.group_snapshot.unwrap_or_default();
        t.restart().await?;
        let again = t.ok(request).await?.group_snapshot.unwrap_or_default();
        ensure!(again.group_snapshot_id == first.group_snapshot_id, "the group became another");
    }
    beyond "restart/publish/still-there" [Controller(CreateDeleteVolume), Restart, Root, Alone]
    "A published volume works on while its driver is away and after it is back."
    |t| {
        let life = t.published().await?;
        keep(&t, &life, "a", 1)?;
        t.restart().await?;
        host::holds(&life.path("a"), &pattern(1), "after the restart")?;
        keep(&t, &life, "b", 2)?;
        t.ok(t.publish_request(&life)).await?;
        host::holds(&life.path("b"), &pattern(2), "after publishing again")?;
        ensure!(host::times_mounted(life.target()) <= 1, "a second mount lies on {}", life.target);
    }
    beyond "restart/publish/taken-down-afterwards" [Controller(CreateDeleteVolume), Restart, Alone]
    "What was published before a restart can be taken down after it."
    |t| {
        let life = t.published().await?;
        t.restart().await?;
        t.take_down(&life).await?;
        ensure!(!host::is_mounted(life.target()), "{} is still mounted", life.target);
        t.ok(delete(&life.volume.id)).await?;
    }
    beyond "restart/publish/in-use-not-deleted" [Controller(CreateDeleteVolume), Restart, Alone]
    "A volume published before a restart is still in use after it."
    |t| {
        let life = t.published().await?;
        t.restart().await?;
        t.refused(delete(&life.volume.id), &[Code::FailedPrecondition], "of a volume published before the restart").await?;
    }
    beyond "restart/stage/goes-on" [Controller(CreateDeleteVolume), Node(StageUnstageVolume), Restart, Alone]
    "What was staged before a restart can be published after it."
    |t| {
        let volume = t.volume().await?;
        let staged = t.staged(&volume).await?;
        t.restart().await?;
        let life = t.publish(&staged, false).await?;
        t.take_down(&life).await?;
    }
    beyond "restart/stage/within" [Controller(CreateDeleteVolume), Node(StageUnstageVolume), Restart, Alone]
    "Staging that a restart cut off can be repeated, and undone."
    |t| {
        let volume = t.volume().await?;
        let context = t.attach(&volume).await?;
        let staging = t.staging_path()?;
        let request = t.stage_request(&volume, &context, &staging);
        for pause in [0, 5, 20] {
            let (asking, cut) = (t.clone(), request.clone());
            let task = tokio::spawn(async move { asking.ask(cut).await });
            tokio::time::sleep(Duration::from_millis(pause)).await;
            t.restart().await?;
            let _ = task.await;
        }
        t.ok(request).await?;
        ensure!(host::times_mounted(std::path::Path::new(&staging)) <= 1, "several mounts lie on {staging}");
        t.ok(unstage(&volume.id, &staging)).await?;
        ensure!(!host::is_mounted(std::path::Path::new(&staging)), "{staging} is still mounted");
    }
    beyond "restart/unpublish/within" [Controller(CreateDeleteVolume), Restart, Alone]
    "Unpublishing that a restart cut off can be repeated."
    |t| {
        let life = t.published().await?;
        let (asking, request) = (t.clone(), unpublish(&life.volume.id, &life.target));
        let cut = request.clone();
        let task = tokio::spawn(async move { asking.ask(cut).await });
        t.restart().await?;
        let _ = task.await;
        t.ok(request).await?;
        ensure!(!host::is_mounted(life.target()), "{} is still mounted", life.target);
    }
    beyond "restart/data/kept" [Controller(CreateDeleteVolume), Restart, Root, Alone]
    "Data outlives a restart while the volume is not in use."
    |t| {
        let life = t.published().await?;
        keep(&t, &life, "a", 3)?;
        t.take_down(&life).await?;
        t.restart().await?;
        let again = t.bring(&life.volume).await?;
        host::holds(&again.path("a"), &pattern(3), "after the restart")?;
    }
    beyond "restart/capacity/kept" [Controller(CreateDeleteVolume), Controller(GetCapacity), Restart, Alone]
    "What is promised stays taken from the capacity."
    |t| {
        t.volume().await?;
        let before = t.ok(v1::GetCapacityRequest::default()).await?.available_capacity;
        t.restart().await?;
        let after = t.ok(v1::GetCapacityRequest::default()).await?.available_capacity;
        if t.can(ControllerRpc::ListVolumes) && after > before + t.suite.options.size / 2 {
            t.warn(format!("{before} bytes were available, {after} after a restart"));
        }
    }
}
