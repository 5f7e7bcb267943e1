//! Strings that reach for what is not theirs. Whatever is answered, nothing outside the volume may be touched, and the
//! driver lives on.

use std::path::Path;

use csi::v1;
use v1::volume_capability::MountVolume;
use v1::volume_capability::access_mode::Mode;

use super::node::stats;
use crate::CaseResult;
use crate::ask::Ask;
use crate::case::{T, cases, ensure, fail};
use crate::context::pair;
use crate::life::{Life, Volume};
use crate::requests::{
    at_least, delete, delete_snapshot, detach, files_with, get, of_snapshot, of_volume, plain, unpublish, unstage,
};

/// Climbs to the root from any directory.
const UP: &str = "../../../../../../../../../../../..";

/// Strings that lead to a canary, break lines, end strings, or are longer than they may be.
fn corpus(t: &T) -> CaseResult<Vec<String>> {
    let canary = t.canary()?;
    let shown = canary.display();
    Ok(vec![
        format!("{UP}{shown}"),
        format!("{UP}{shown}/stray"),
        format!("{shown}"),
        format!("{shown}/stray"),
        format!("x/{UP}{shown}/stray"),
        "..".to_string(),
        ".".to_string(),
        "../x".to_string(),
        "/".to_string(),
        "a\nb".to_string(),
        "a\0b".to_string(),
        "a,b=c".to_string(),
        format!("$(touch {shown}/stray)"),
        format!("x; touch {shown}/stray"),
        format!("`touch {shown}/stray`"),
        "-rf".to_string(),
        "%2e%2e%2fx".to_string(),
        "ünï\u{202e}cødé".to_string(),
        "x".repeat(129),
        "x".repeat(5000),
        " ".to_string(),
    ])
}

/// Sends every string; nothing may be touched. With `never`, none may be answered OK either.
async fn throw<R: Ask>(t: &T, never: bool, make: impl Fn(String) -> R) -> CaseResult {
    for text in corpus(t)? {
        let answer = t.ask(make(text.clone())).await;
        let what = format!("{} with «{}»", R::METHOD.name(), short(&text));
        t.canaries_live(&what)?;
        match answer {
            Ok(_) if never => return fail(format!("{what} was answered OK")),
            Ok(_) => {}
            Err(status) if !status.from_driver => {
                return fail(format!("{what} got no answer: {}", status.message));
            }
            Err(_) => {}
        }
    }
    t.alive("hostile strings").await
}

fn short(text: &str) -> String {
    let escaped: String = text.escape_debug().collect();
    if escaped.chars().count() > 80 { escaped.chars().take(77).collect::<String>() + "…" } else { escaped }
}

/// A name is either refused, or makes a volume like others.
async fn as_name(t: &T, name: String) -> CaseResult {
    let canary = t.canary()?;
    let name = name.replace("CANARY", &canary.display().to_string());
    let unique = format!("{}{name}", t.name("h"));
    for name in [name, unique] {
        let request = v1::CreateVolumeRequest { name: name.clone(), ..t.create_request() };
        let what = format!("CreateVolume of the name «{}»", short(&name));
        match t.ask(request.clone()).await {
            Ok(answer) => {
                let id = answer.volume.unwrap_or_default().volume_id;
                let volume = t.volume_from(request).await?;
                ensure!(volume.id == id, "{what}: the repeat made another volume");
                t.canaries_live(&what)?;
                let life = t.bring(&volume).await?;
                t.take_down(&life).await?;
                t.ok(delete(&volume.id)).await?;
            }
            Err(status) if !status.from_driver => return fail(format!("{what} got no answer: {}", status.message)),
            Err(_) => {}
        }
        t.canaries_live(&what)?;
    }
    t.alive("a hostile name").await
}

async fn any(t: &T) -> CaseResult<(Volume, Life)> {
    let volume = t.volume().await?;
    let life = Life { target: t.target_path()?, ..t.staged(&volume).await? };
    Ok((volume, life))
}

cases! {
    beyond "hostile/id/delete" [Controller(CreateDeleteVolume)]
    "Deleting reaches nothing that is no volume."
    |t| { throw(&t, false, |id| delete(&id)).await?; }
    beyond "hostile/id/validate" [Controller(CreateDeleteVolume)]
    "No volume is found under an id the driver did not give."
    |t| {
        let volume = t.volume().await?;
        let request = t.validate_request(&volume);
        throw(&t, true, |id| v1::ValidateVolumeCapabilitiesRequest { volume_id: id, ..request.clone() }).await?;
    }
    beyond "hostile/id/get" [Controller(GetVolume)]
    "No volume is found under an id the driver did not give."
    |t| { throw(&t, true, |id| get(&id)).await?; }
    beyond "hostile/id/attach" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "Nothing is attached under an id the driver did not give."
    |t| {
        let volume = t.volume().await?;
        let request = t.attach_request(&volume);
        throw(&t, true, |id| v1::ControllerPublishVolumeRequest { volume_id: id, ..request.clone() }).await?;
    }
    beyond "hostile/id/attach-node" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "Nothing is attached to a node that does not exist."
    |t| {
        let volume = t.volume().await?;
        let request = t.attach_request(&volume);
        throw(&t, true, |id| v1::ControllerPublishVolumeRequest { node_id: id, ..request.clone() }).await?;
    }
    beyond "hostile/id/detach" [Controller(PublishUnpublishVolume)]
    "Detaching reaches nothing that is no volume."
    |t| {
        let node = t.suite.node.node_id.clone();
        throw(&t, false, |id| detach(&id, &node)).await?;
    }
    beyond "hostile/id/expand" [Controller(ExpandVolume)]
    "Nothing grows under an id the driver did not give."
    |t| {
        throw(&t, true, |id| v1::ControllerExpandVolumeRequest {
            volume_id: id, capacity_range: at_least(1 << 20), volume_capability: Some(plain()), ..Default::default()
        }).await?;
    }
    beyond "hostile/id/modify" [Controller(ModifyVolume)]
    "Nothing is modified under an id the driver did not give."
    |t| { throw(&t, true, |id| v1::ControllerModifyVolumeRequest { volume_id: id, ..Default::default() }).await?; }
    beyond "hostile/id/snapshot" [Controller(CreateDeleteSnapshot)]
    "No snapshot is made of what is no volume."
    |t| {
        let request = t.snapshot_request("");
        throw(&t, true, |id| v1::CreateSnapshotRequest { source_volume_id: id, ..request.clone() }).await?;
    }
    beyond "hostile/id/delete-snapshot" [Controller(CreateDeleteSnapshot)]
    "Deleting a snapshot reaches nothing that is none."
    |t| { throw(&t, false, |id| delete_snapshot(&id)).await?; }
    beyond "hostile/id/list-snapshots" [Controller(ListSnapshots)]
    "Filters reach nothing that is no snapshot."
    |t| {
        throw(&t, false, |id| v1::ListSnapshotsRequest { snapshot_id: id.clone(), source_volume_id: id, ..Default::default() }).await?;
    }
    beyond "hostile/id/restore" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "Nothing is restored from what is no snapshot."
    |t| {
        let request = t.create_request();
        throw(&t, true, |id| v1::CreateVolumeRequest { volume_content_source: of_snapshot(&id), ..request.clone() }).await?;
    }
    beyond "hostile/id/clone" [Controller(CreateDeleteVolume), Controller(CloneVolume)]
    "Nothing is cloned from what is no volume."
    |t| {
        let request = t.create_request();
        throw(&t, true, |id| v1::CreateVolumeRequest { volume_content_source: of_volume(&id), ..request.clone() }).await?;
    }
    beyond "hostile/id/group" [Group(CreateDeleteGetVolumeGroupSnapshot)]
    "No group is made of what is no volume."
    |t| {
        let name = t.name("group");
        throw(&t, true, |id| v1::CreateVolumeGroupSnapshotRequest {
            name: name.clone(), source_volume_ids: vec![id], ..Default::default()
        }).await?;
    }
    beyond "hostile/id/stage" [Controller(CreateDeleteVolume), Node(StageUnstageVolume)]
    "Nothing is staged under an id the driver did not give."
    |t| {
        let (volume, life) = any(&t).await?;
        let request = t.stage_request(&volume, &life.publish_context, &t.staging_path()?);
        throw(&t, true, |id| v1::NodeStageVolumeRequest { volume_id: id, ..request.clone() }).await?;
    }
    beyond "hostile/id/unstage" [Node(StageUnstageVolume)]
    "Unstaging reaches nothing that is no volume."
    |t| {
        let path = t.staging_path()?;
        throw(&t, false, |id| unstage(&id, &path)).await?;
    }
    beyond "hostile/id/publish" [Controller(CreateDeleteVolume)]
    "Nothing is published under an id the driver did not give."
    |t| {
        let (_, life) = any(&t).await?;
        let request = t.publish_request(&life);
        throw(&t, true, |id| v1::NodePublishVolumeRequest { volume_id: id, ..request.clone() }).await?;
    }
    beyond "hostile/id/publish-ephemeral" []
    "A volume that is made as it is published reaches nothing outside, neither when it comes nor when it goes."
    |t| {
        for text in corpus(&t)? {
            let target = t.target_path()?;
            let request = v1::NodePublishVolumeRequest {
                volume_id: text.clone(),
                target_path: target.clone(),
                volume_capability: Some(plain()),
                volume_context: pair("csi.storage.k8s.io/ephemeral", "true"),
                ..Default::default()
            };
            let published = t.ask(request).await;
            t.canaries_live(&format!("NodePublishVolume of the ephemeral volume «{}»", short(&text)))?;
            if published.is_ok() {
                let _ = t.ask(unpublish(&text, &target)).await;
                t.canaries_live(&format!("NodeUnpublishVolume of the ephemeral volume «{}»", short(&text)))?;
            }
        }
        t.alive("hostile ephemeral volumes").await?;
    }
    beyond "hostile/id/unpublish" []
    "Unpublishing reaches nothing that is no volume."
    |t| {
        let target = t.target_path()?;
        throw(&t, false, |id| unpublish(&id, &target)).await?;
    }
    beyond "hostile/id/stats" [Node(GetVolumeStats)]
    "Nothing is measured under an id the driver did not give."
    |t| {
        let target = t.target_path()?;
        throw(&t, true, |id| stats(&id, &target)).await?;
    }
    beyond "hostile/id/node-expand" [Node(ExpandVolume)]
    "Nothing grows under an id the driver did not give."
    |t| {
        let target = t.target_path()?;
        throw(&t, true, |id| v1::NodeExpandVolumeRequest {
            volume_id: id, volume_path: target.clone(), capacity_range: at_least(1 << 20), ..Default::default()
        }).await?;
    }
    beyond "hostile/name/traversal" [Controller(CreateDeleteVolume)]
    "A name is no path."
    |t| { as_name(&t, format!("{UP}CANARY/stray")).await?; }
    beyond "hostile/name/absolute" [Controller(CreateDeleteVolume)]
    "A name is no path."
    |t| { as_name(&t, "CANARY/stray".into()).await?; }
    beyond "hostile/name/dots" [Controller(CreateDeleteVolume)]
    "A name of dots is a name or refused."
    |t| { as_name(&t, "..".into()).await?; }
    beyond "hostile/name/slash" [Controller(CreateDeleteVolume)]
    "A name with a slash is a name or refused."
    |t| { as_name(&t, "a/b".into()).await?; }
    beyond "hostile/name/nul" [Controller(CreateDeleteVolume)]
    "A name does not end in its middle."
    |t| { as_name(&t, "a\0b".into()).await?; }
    beyond "hostile/name/newline" [Controller(CreateDeleteVolume)]
    "A name does not begin a new line."
    |t| { as_name(&t, "a\nb".into()).await?; }
    beyond "hostile/name/comma" [Controller(CreateDeleteVolume)]
    "A name is no list of options."
    |t| { as_name(&t, "a,exec,suid".into()).await?; }
    beyond "hostile/name/shell" [Controller(CreateDeleteVolume)]
    "A name is no command."
    |t| { as_name(&t, "$(touch CANARY/stray)`touch CANARY/stray`;touch CANARY/stray".into()).await?; }
    beyond "hostile/name/dash" [Controller(CreateDeleteVolume)]
    "A name is no option of a command."
    |t| { as_name(&t, "--help".into()).await?; }
    beyond "hostile/name/unicode" [Controller(CreateDeleteVolume)]
    "A name in any language is a name or refused."
    |t| { as_name(&t, "größe\u{202e}名前😀".into()).await?; }
    beyond "hostile/name/too-long" [Controller(CreateDeleteVolume)]
    "A name that is too long is refused or kept whole, and crashes nothing."
    |t| {
        as_name(&t, "x".repeat(4096)).await?;
        let name = t.name("l") + &"x".repeat(1 << 20);
        let _ = t.ask(v1::CreateVolumeRequest { name, ..t.create_request() }).await;
        t.alive("a name of one mebibyte").await?;
    }
    beyond "hostile/name/snapshot" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A snapshot's name is no path, no command and no list."
    |t| {
        let volume = t.volume().await?;
        throw(&t, false, |name| v1::CreateSnapshotRequest {
            source_volume_id: volume.id.clone(), name, ..Default::default()
        }).await?;
    }
    beyond "hostile/map/too-large" [Controller(CreateDeleteVolume)]
    "Parameters beyond all limits crash nothing."
    |t| {
        let mut request = t.create_request();
        for n in 0..500 {
            request.parameters.insert(format!("k{n}"), "v".repeat(5000));
        }
        let _ = t.ask(request).await;
        t.alive("parameters of 2.5 MB").await?;
    }
    beyond "hostile/map/parameters" [Controller(CreateDeleteVolume)]
    "Values of parameters are no paths and no commands."
    |t| {
        let request = t.create_request();
        throw(&t, false, |value| {
            let mut request = v1::CreateVolumeRequest { name: t.name("p"), ..request.clone() };
            request.parameters.insert("longshore-no-such-parameter".into(), value);
            request
        }).await?;
    }
    beyond "hostile/map/volume-context" [Controller(CreateDeleteVolume)]
    "The volume context is no path and no command."
    |t| {
        let volume = t.volume().await?;
        let staged = t.staged(&volume).await?;
        let canary = t.canary()?;
        for value in [format!("{UP}{}", canary.display()), "a,b".to_string(), "a\nb".to_string()] {
            let life = Life { target: t.target_path()?, ..staged.clone() };
            let mut request = t.publish_request(&life);
            for entry in request.volume_context.values_mut() {
                entry.clone_from(&value);
            }
            request.volume_context.insert("path".into(), value.clone());
            let answer = t.ask(request).await;
            t.canaries_live("NodePublishVolume with a hostile volume context")?;
            if answer.is_ok() {
                t.ok(unpublish(&volume.id, &life.target)).await?;
            }
        }
        t.canaries_live("NodeUnpublishVolume with a hostile volume context")?;
    }
    beyond "hostile/options/mount-flags" [Controller(CreateDeleteVolume)]
    "A mount flag is one flag, and none that opens a way."
    |t| {
        for flag in ["noatime,suid,dev", "--bind", "-o", "bind", "remount", "a\nb", "loop=/dev/null", "x=$(id)"] {
            let mount = MountVolume { mount_flags: vec![flag.into()], ..Default::default() };
            let volume_capabilities = vec![files_with(Mode::SingleNodeWriter, mount)];
            let request = v1::CreateVolumeRequest { volume_capabilities, ..t.create_request() };
            let Ok(answer) = t.ask(request.clone()).await else { continue };
            if answer.volume.is_none() {
                continue;
            }
            let volume = t.volume_from(request).await?;
            let Ok(life) = t.bring(&volume).await else { continue };
            if let Some(mount) = crate::host::mount_at(Path::new(&life.target)) {
                let opened = flag.contains(',') && !mount.options.iter().any(|o| o == "nosuid") && mount.options.iter().any(|o| o == "noatime");
                if opened {
                    t.warn(format!("the flag «{flag}» was split at its commas"));
                }
            }
        }
        t.alive("hostile mount flags").await?;
    }
    beyond "hostile/options/filesystem" [Controller(CreateDeleteVolume)]
    "A filesystem's name is no path and no command."
    |t| {
        let canary = t.canary()?;
        for fs_type in ["../ext4", "ext4,suid", "-h", "ext4\0", "ext4; touch x", &format!("$(touch {}/stray)", canary.display())] {
            let mount = MountVolume { fs_type: fs_type.into(), ..Default::default() };
            let volume_capabilities = vec![files_with(Mode::SingleNodeWriter, mount)];
            let request = v1::CreateVolumeRequest { volume_capabilities, ..t.create_request() };
            if t.ask(request.clone()).await.is_ok() {
                let volume = t.volume_from(request).await?;
                let _ = t.bring(&volume).await;
            }
            t.canaries_live(&format!("a volume with the filesystem «{}»", short(fs_type)))?;
        }
        t.alive("hostile filesystem names").await?;
    }
    beyond "hostile/path/relative-target" [Controller(CreateDeleteVolume)]
    "A target path is absolute."
    |t| {
        let (_, life) = any(&t).await?;
        // A driver that takes it mounts somewhere; not where another run looks for its own.
        let life = Life { target: t.name("relative-target"), ..life };
        t.remember_path(life.target());
        t.should_refuse(t.publish_request(&life), &[csi::Code::InvalidArgument, csi::Code::NotFound, csi::Code::FailedPrecondition, csi::Code::Internal], "at a relative path").await?;
    }
    beyond "hostile/path/nul-in-target" [Controller(CreateDeleteVolume)]
    "A target path does not end in its middle."
    |t| {
        let (volume, life) = any(&t).await?;
        let life = Life { target: format!("{}\0/x", life.target), ..life };
        if t.ask(t.publish_request(&life)).await.is_ok() {
            return fail("a target path with a NUL was published");
        }
        let _ = t.ask(unpublish(&volume.id, &life.target)).await;
        t.alive("a path with a NUL").await?;
    }
    beyond "hostile/path/unpublish-elsewhere" [Controller(CreateDeleteVolume)]
    "Unpublishing a volume from a path where it is not touches nothing there."
    |t| {
        let life = t.published().await?;
        let canary = t.canary()?;
        let _ = t.ask(unpublish(&life.volume.id, &canary.to_string_lossy())).await;
        t.canaries_live("NodeUnpublishVolume at a foreign directory")?;
        let _ = t.ask(unpublish(&life.volume.id, &canary.join("alive").to_string_lossy())).await;
        t.canaries_live("NodeUnpublishVolume at a foreign file")?;
    }
    beyond "hostile/path/unstage-elsewhere" [Controller(CreateDeleteVolume), Node(StageUnstageVolume)]
    "Unstaging a volume from a path where it is not touches nothing there."
    |t| {
        let life = t.published().await?;
        let canary = t.canary()?;
        let _ = t.ask(unstage(&life.volume.id, &canary.to_string_lossy())).await;
        t.canaries_live("NodeUnstageVolume at a foreign directory")?;
    }
    beyond "hostile/path/target-is-a-link" [Controller(CreateDeleteVolume)]
    "A link at the target leads nobody out."
    |t| {
        let (volume, life) = any(&t).await?;
        let canary = t.canary()?;
        std::os::unix::fs::symlink(&canary, &life.target).or_else(|error| fail(format!("cannot make a link: {error}")))?;
        let published = t.ask(t.publish_request(&life)).await.is_ok();
        if published && crate::host::is_mounted(&canary) {
            t.warn("a link at the target was followed, and the volume mounted where it leads");
        }
        let _ = t.ask(unpublish(&volume.id, &life.target)).await;
        t.canaries_live("publishing at a link and back")?;
    }
}
