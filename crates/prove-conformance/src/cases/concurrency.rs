//! Calls at the same time, calls that are given up, and calls that cross each other.

use std::collections::BTreeSet;
use std::future::Future;
use std::path::Path;
use std::time::Duration;

use csi::{Code, ControllerRpc, Status, v1};
use tokio::task::JoinSet;

use super::snapshots::{by_source, listed};
use crate::CaseResult;
use crate::ask::Ask;
use crate::case::{T, cases, ensure, fail};
use crate::context::said;
use crate::host;
use crate::life::Life;
use crate::requests::{delete, delete_snapshot, grow, unpublish, unstage};

/// How many call at the same time.
const CROWD: usize = 8;

/// Sends one request many times at once.
async fn crowd<R: Ask>(t: &T, request: R) -> CaseResult<Vec<Result<R::Answer, Status>>> {
    let mut tasks = JoinSet::new();
    for _ in 0..CROWD {
        let (t, request) = (t.clone(), request.clone());
        tasks.spawn(async move { t.ask(request).await });
    }
    gather(tasks).await
}

async fn gather<A: Send + 'static>(mut tasks: JoinSet<A>) -> CaseResult<Vec<A>> {
    let mut answers = Vec::new();
    while let Some(done) = tasks.join_next().await {
        match done {
            Ok(answer) => answers.push(answer),
            Err(_) => return fail("a call panicked"),
        }
    }
    Ok(answers)
}

/// Of calls at once, some succeed, and the others are told to come again.
fn ok_or_aborted<A>(answers: &[Result<A, Status>], what: &str) -> CaseResult {
    for status in answers.iter().filter_map(|answer| answer.as_ref().err()) {
        if status.code != Code::Aborted {
            return fail(format!("{what} at once was answered {}, expected OK or ABORTED", said(status)));
        }
    }
    if answers.iter().all(Result::is_err) {
        return fail(format!("{CROWD} × {what} at once: all were ABORTED, and none was done"));
    }
    Ok(())
}

/// Does something with many volumes at the same time.
async fn each<F>(t: &T, count: usize, life: impl Fn(T) -> F) -> CaseResult
where
    F: Future<Output = CaseResult> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for _ in 0..count {
        tasks.spawn(life(t.clone()));
    }
    gather(tasks).await?.into_iter().collect()
}

cases! {
    beyond "concurrency/create/one-name" [Controller(CreateDeleteVolume)]
    "One name asked for many times at once is one volume."
    |t| {
        let request = t.create_request();
        let answers = crowd(&t, request.clone()).await?;
        ok_or_aborted(&answers, "CreateVolume of one name")?;
        let mut ids: BTreeSet<String> = answers.into_iter().flatten().filter_map(|a| a.volume).map(|v| v.volume_id).collect();
        ids.insert(t.volume_from(request).await?.id);
        ensure!(ids.len() == 1, "one name made {} volumes", ids.len());
    }
    beyond "concurrency/create/many-names" [Controller(CreateDeleteVolume)]
    "Volumes are made beside each other."
    |t| {
        let mut tasks = JoinSet::new();
        for _ in 0..16 {
            let t = t.clone();
            tasks.spawn(async move { t.volume().await.map(|v| v.id) });
        }
        let ids: BTreeSet<String> = gather(tasks).await?.into_iter().collect::<CaseResult<_>>()?;
        ensure!(ids.len() == 16, "16 names made {} volumes", ids.len());
    }
    beyond "concurrency/create/no-orphans" [Controller(CreateDeleteVolume), Controller(ListVolumes), Alone]
    "Many requests for one name leave one volume in the list."
    |t| {
        let before = super::list::ids(&t).await?.len();
        crowd(&t, t.create_request()).await?;
        let after = super::list::ids(&t).await?.len();
        ensure!(after == before + 1, "one name added {} volumes to the list", after - before);
    }
    beyond "concurrency/delete/one-volume" [Controller(CreateDeleteVolume)]
    "One volume deleted many times at once is deleted."
    |t| {
        let volume = t.volume().await?;
        ok_or_aborted(&crowd(&t, delete(&volume.id)).await?, "DeleteVolume")?;
        t.ok(delete(&volume.id)).await?;
        t.refused(t.validate_request(&volume), &[Code::NotFound], "of a deleted volume").await?;
    }
    beyond "concurrency/create/crossed-with-delete" [Controller(CreateDeleteVolume)]
    "Creating and deleting one volume at once ends in one of the two."
    |t| {
        let request = t.create_request();
        let volume = t.volume_from(request.clone()).await?;
        let (created, deleted) = tokio::join!(t.ask(request.clone()), t.ask(delete(&volume.id)));
        for status in [created.err(), deleted.err()].into_iter().flatten() {
            ensure!(status.code == Code::Aborted, "answered {}, expected OK or ABORTED", said(&status));
        }
        let volume = t.volume_from(request).await?;
        t.ok(t.validate_request(&volume)).await?;
        t.ok(delete(&volume.id)).await?;
    }
    beyond "concurrency/create/given-up" [Controller(CreateDeleteVolume)]
    "A caller that gives up and asks again gets the volume of its first request."
    |t| {
        let request = t.create_request();
        for millis in [1, 2, 5, 10] {
            let _ = t.ask_within(request.clone(), Duration::from_millis(millis)).await;
        }
        let first = t.volume_from(request.clone()).await?;
        let second = t.volume_from(request).await?;
        ensure!(first.id == second.id, "one name made two volumes");
    }
    beyond "concurrency/create/given-up-leaves-no-orphans"
    [Controller(CreateDeleteVolume), Controller(ListVolumes), Alone]
    "A caller that gives up often leaves one volume at most."
    |t| {
        let before = super::list::ids(&t).await?.len();
        let request = t.create_request();
        for millis in [1, 1, 2, 3, 5, 8] {
            let _ = t.ask_within(request.clone(), Duration::from_millis(millis)).await;
        }
        t.volume_from(request).await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
        let after = super::list::ids(&t).await?.len();
        ensure!(after == before + 1, "one name added {} volumes to the list", after - before);
    }
    beyond "concurrency/delete/given-up" [Controller(CreateDeleteVolume)]
    "A deletion whose caller gave up can be repeated."
    |t| {
        let volume = t.volume().await?;
        let _ = t.ask_within(delete(&volume.id), Duration::from_millis(1)).await;
        t.ok(delete(&volume.id)).await?;
        t.refused(t.validate_request(&volume), &[Code::NotFound], "of a deleted volume").await?;
    }
    beyond "concurrency/attach/one-volume" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "One volume attached many times at once is attached once."
    |t| {
        let volume = t.volume().await?;
        ok_or_aborted(&crowd(&t, t.attach_request(&volume)).await?, "ControllerPublishVolume")?;
        t.attach(&volume).await?;
        t.detached(&volume).await?;
        t.ok(delete(&volume.id)).await?;
    }
    beyond "concurrency/attach/crossed-with-detach" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "Attaching and detaching at once ends in one of the two."
    |t| {
        let volume = t.volume().await?;
        let request = crate::requests::detach(&volume.id, &t.suite.node.node_id);
        for _ in 0..4 {
            let (on, off) = tokio::join!(t.ask(t.attach_request(&volume)), t.ask(request.clone()));
            for status in [on.err(), off.err()].into_iter().flatten() {
                ensure!(status.code == Code::Aborted, "answered {}, expected OK or ABORTED", said(&status));
            }
        }
        t.attach(&volume).await?;
        t.detached(&volume).await?;
    }
    beyond "concurrency/snapshot/one-name" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "One snapshot asked for many times at once is one snapshot."
    |t| {
        let volume = t.volume().await?;
        let request = t.snapshot_request(&volume.id);
        let answers = crowd(&t, request.clone()).await?;
        ok_or_aborted(&answers, "CreateSnapshot of one name")?;
        let mut ids: BTreeSet<String> = answers.into_iter().flatten().filter_map(|a| a.snapshot).map(|s| s.snapshot_id).collect();
        ids.insert(t.ok(request).await?.snapshot.unwrap_or_default().snapshot_id);
        ensure!(ids.len() == 1, "one name made {} snapshots", ids.len());
        if t.can(ControllerRpc::ListSnapshots) {
            let found = listed(&t, by_source(&volume.id)).await?.len();
            ensure!(found == 1, "one name is listed as {found} snapshots");
        }
    }
    beyond "concurrency/snapshot/deleted-at-once" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "One snapshot deleted many times at once is deleted."
    |t| {
        let volume = t.volume().await?;
        let snapshot = t.snapshot(&volume).await?;
        ok_or_aborted(&crowd(&t, delete_snapshot(&snapshot.snapshot_id)).await?, "DeleteSnapshot")?;
        t.ok(delete_snapshot(&snapshot.snapshot_id)).await?;
    }
    beyond "concurrency/expand/one-volume" [Controller(CreateDeleteVolume), Controller(ExpandVolume)]
    "One volume grown many times at once has the size that was asked for."
    |t| {
        let volume = t.volume().await?;
        let size = 2 * t.suite.options.size;
        ok_or_aborted(&crowd(&t, grow(&volume, size)).await?, "ControllerExpandVolume")?;
        let made = t.ok(grow(&volume, size)).await?.capacity_bytes;
        ensure!(made >= size, "{size} bytes were required, {made} made");
    }
    beyond "concurrency/expand/two-sizes" [Controller(CreateDeleteVolume), Controller(ExpandVolume)]
    "Of two sizes asked for at once the larger stays."
    |t| {
        let volume = t.volume().await?;
        let size = t.suite.options.size;
        let _ = tokio::join!(t.ask(grow(&volume, 3 * size)), t.ask(grow(&volume, 2 * size)));
        t.ok(grow(&volume, 3 * size)).await?;
        if let Ok(answer) = t.ask(grow(&volume, 2 * size)).await {
            ensure!(answer.capacity_bytes >= 3 * size, "the volume shrank to {}", answer.capacity_bytes);
        }
    }
    beyond "concurrency/stage/one-volume" [Controller(CreateDeleteVolume), Node(StageUnstageVolume)]
    "One volume staged many times at once is staged once."
    |t| {
        let volume = t.volume().await?;
        let context = t.attach(&volume).await?;
        let staging = t.staging_path()?;
        let request = t.stage_request(&volume, &context, &staging);
        ok_or_aborted(&crowd(&t, request.clone()).await?, "NodeStageVolume")?;
        t.ok(request).await?;
        ensure!(host::times_mounted(Path::new(&staging)) <= 1, "several mounts lie on {staging}");
    }
    beyond "concurrency/stage/crossed-with-unstage" [Controller(CreateDeleteVolume), Node(StageUnstageVolume)]
    "Staging and unstaging at once ends in one of the two, and both work afterwards."
    |t| {
        let volume = t.volume().await?;
        let life = t.staged(&volume).await?;
        let request = t.stage_request(&volume, &life.publish_context, &life.staging);
        for _ in 0..4 {
            let (on, off) = tokio::join!(t.ask(request.clone()), t.ask(unstage(&volume.id, &life.staging)));
            for status in [on.err(), off.err()].into_iter().flatten() {
                ensure!(status.code == Code::Aborted, "answered {}, expected OK or ABORTED", said(&status));
            }
        }
        t.ok(request).await?;
        t.ok(unstage(&volume.id, &life.staging)).await?;
        ensure!(!host::is_mounted(Path::new(&life.staging)), "{} stayed mounted", life.staging);
    }
    beyond "concurrency/stage/given-up" [Controller(CreateDeleteVolume), Node(StageUnstageVolume)]
    "Staging whose caller gave up can be repeated."
    |t| {
        let volume = t.volume().await?;
        let context = t.attach(&volume).await?;
        let request = t.stage_request(&volume, &context, &t.staging_path()?);
        let _ = t.ask_within(request.clone(), Duration::from_millis(2)).await;
        t.ok(request.clone()).await?;
        let times = host::times_mounted(Path::new(&request.staging_target_path));
        ensure!(times <= 1, "{times} mounts lie on the staging path");
    }
    beyond "concurrency/publish/one-target" [Controller(CreateDeleteVolume)]
    "One target published many times at once has one mount."
    |t| {
        let volume = t.volume().await?;
        let life = Life { target: t.target_path()?, ..t.staged(&volume).await? };
        ok_or_aborted(&crowd(&t, t.publish_request(&life)).await?, "NodePublishVolume")?;
        t.ok(t.publish_request(&life)).await?;
        ensure!(host::times_mounted(Path::new(&life.target)) <= 1, "several mounts lie on {}", life.target);
    }
    beyond "concurrency/publish/unpublished-at-once" [Controller(CreateDeleteVolume)]
    "One target unpublished many times at once is empty."
    |t| {
        let life = t.published().await?;
        ok_or_aborted(&crowd(&t, unpublish(&life.volume.id, &life.target)).await?, "NodeUnpublishVolume")?;
        t.ok(unpublish(&life.volume.id, &life.target)).await?;
        ensure!(!host::is_mounted(Path::new(&life.target)), "{} stayed mounted", life.target);
    }
    beyond "concurrency/publish/crossed-with-unpublish" [Controller(CreateDeleteVolume)]
    "Publishing and unpublishing at once ends in one of the two, and both work afterwards."
    |t| {
        let life = t.published().await?;
        for _ in 0..4 {
            let (on, off) = tokio::join!(t.ask(t.publish_request(&life)), t.ask(unpublish(&life.volume.id, &life.target)));
            for status in [on.err(), off.err()].into_iter().flatten() {
                ensure!(status.code == Code::Aborted, "answered {}, expected OK or ABORTED", said(&status));
            }
        }
        t.ok(t.publish_request(&life)).await?;
        t.ok(unpublish(&life.volume.id, &life.target)).await?;
        ensure!(!host::is_mounted(Path::new(&life.target)), "{} stayed mounted", life.target);
    }
    beyond "concurrency/lives/eight-at-once" [Controller(CreateDeleteVolume)]
    "Eight volumes go their whole way and back beside each other."
    |t| {
        each(&t, 8, |t| async move {
            let life = t.published().await?;
            t.take_down(&life).await?;
            t.ok(delete(&life.volume.id)).await.map(|_| ())
        }).await?;
    }
    beyond "concurrency/lives/questions-meanwhile" [Controller(CreateDeleteVolume)]
    "A driver at work still answers who it is."
    |t| {
        let work = each(&t, 4, |t| async move {
            let life = t.published().await?;
            t.take_down(&life).await
        });
        let questions = async {
            for _ in 0..20 {
                t.ok(v1::ProbeRequest {}).await?;
                t.ok(v1::NodeGetInfoRequest {}).await?;
            }
            Ok(())
        };
        let (work, questions): (CaseResult, CaseResult) = tokio::join!(work, questions);
        work?;
        questions?;
    }
}
