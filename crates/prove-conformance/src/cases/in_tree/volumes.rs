//! What a volume of any plugin could do.

use csi::{ControllerRpc, NodeRpc};
use v1::volume_capability::access_mode::Mode;

use csi::v1;

use super::served::{Served, Wish, brought, deleted, made, plugin, taken_down};
use crate::CaseResult;
use crate::case::{T, cases, ensure, fail, skip};
use crate::cases::data::{keep, pattern};
use crate::cases::expand::{grow_here, has_grown_to};
use crate::host;
use crate::life::Life;
use crate::requests::grow;

/// From the class to the path in a pod.
async fn in_use(t: &T, wish: Wish) -> CaseResult<(Served, Life)> {
    let served = made(t, &wish).await?;
    let life = brought(t, &served).await?;
    Ok((served, life))
}

async fn ended(t: &T, served: &Served, life: &Life) -> CaseResult {
    taken_down(t, served, life).await?;
    deleted(t, served).await
}

/// A class with a mount option, which the mount has to have.
async fn mounted_with(t: &T, option: &str) -> CaseResult {
    let (served, life) = in_use(t, Wish { mount_options: vec![option.into()], ..Wish::plain() }).await?;
    if t.suite.options.root {
        let options = host::mount_at(life.target()).map(|mount| mount.options).unwrap_or_default();
        ensure!(options.iter().any(|one| one == option), "{option} was asked for, the mount has {}", options.join(","));
    }
    ended(t, &served, &life).await
}

cases! {
    beyond "in-tree/volume/its-whole-life" [Controller(CreateDeleteVolume)]
    "A volume of a class of the plugin is recorded as the plugin's, and served and deleted by that record."
    |t| {
        let (served, life) = in_use(&t, Wish::plain()).await?;
        ended(&t, &served, &life).await?;
    }
    beyond "in-tree/volume/keeps-data" [Controller(CreateDeleteVolume), Root]
    "What one pod wrote, the next one reads."
    |t| {
        let (served, life) = in_use(&t, Wish::plain()).await?;
        keep(&t, &life, "a", 11)?;
        taken_down(&t, &served, &life).await?;
        let again = brought(&t, &served).await?;
        host::holds(&again.path("a"), &pattern(11), "after the whole way again")?;
        ended(&t, &served, &again).await?;
    }
    beyond "in-tree/volume/of-a-pod" [Controller(CreateDeleteVolume)]
    "A disk that a pod names itself is served like any other (S4-16)."
    |t| {
        let (served, life) = in_use(&t, Wish { inline: true, ..Wish::plain() }).await?;
        taken_down(&t, &served, &life).await?;
        // Nobody asks a driver to delete what a pod names itself: it goes by the driver's own name.
        let end = made_over(&t, &served)?;
        deleted(&t, &end).await?;
    }
    beyond "in-tree/volume/read-only" [Controller(CreateDeleteVolume), Root]
    "A source that says readOnly cannot be written."
    |t| {
        use rules_translate::Plugin;
        if let plugin @ (Plugin::Vsphere | Plugin::Portworx | Plugin::Rbd) = plugin(&t)? {
            return skip(format!("a translated volume of {plugin} does not say that it is read-only"));
        }
        let (served, life) = in_use(&t, Wish { read_only: true, ..Wish::plain() }).await?;
        t.remember_path(&life.path("a"));
        if std::fs::write(life.path("a"), "written").is_ok() {
            return fail("the source says readOnly, and a file was written");
        }
        ended(&t, &served, &life).await?;
    }
    beyond "in-tree/volume/many-readers" [Controller(CreateDeleteVolume)]
    "A volume for many readers is made and mounted."
    |t| {
        let mode = Mode::MultiNodeReaderOnly;
        let (served, life) = in_use(&t, Wish { mode, read_only: true, ..Wish::plain() }).await?;
        ended(&t, &served, &life).await?;
    }
    beyond "in-tree/volume/grows" [Controller(CreateDeleteVolume), Controller(ExpandVolume)]
    "A claim of the plugin's class grows, and its filesystem with it, by the handle that the plugin's record gives."
    |t| {
        let served = made(&t, &Wish::plain()).await?;
        let size = 2 * t.suite.options.size;
        let grown = t.ok(grow(&served.seen, size)).await?;
        ensure!(grown.capacity_bytes >= size, "{size} bytes were required, {} made", grown.capacity_bytes);
        let life = brought(&t, &served).await?;
        if grown.node_expansion_required && t.can(NodeRpc::ExpandVolume) {
            grow_here(&t, &life, size).await?;
        }
        if t.suite.options.root {
            has_grown_to(&life, size).await?;
        }
        ended(&t, &served, &life).await?;
    }
    beyond "in-tree/volume/found-by-its-record" [Controller(CreateDeleteVolume)]
    "The driver knows the volume by the handle that the plugin's record gives."
    |t| {
        let served = made(&t, &Wish::plain()).await?;
        let request = t.validate_request(&served.seen);
        let answer = t.ok(request).await?;
        ensure!(answer.confirmed.is_some(), "the driver does not confirm {}: {}", served.seen.id, answer.message);
        deleted(&t, &served).await?;
    }
    beyond "in-tree/volume/attached-by-its-record" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "Attached and detached twice by the record, it is free in the end."
    |t| {
        let served = made(&t, &Wish::plain()).await?;
        for _ in 0..2 {
            let life = brought(&t, &served).await?;
            taken_down(&t, &served, &life).await?;
        }
        ensure!(t.can(ControllerRpc::PublishUnpublishVolume), "the driver attaches no more");
        deleted(&t, &served).await?;
    }
}

/// The same volume by the driver's own name.
fn made_over(t: &T, served: &Served) -> CaseResult<Served> {
    let seen = served.made.clone();
    let attached = rules_translate::repair_handle(plugin(t)?.driver(), &seen.id, &t.suite.node.node_id)
        .or_else(|error| fail(format!("the driver's own handle is none: {error}")))?;
    Ok(served.renamed(seen, attached))
}

/// What only disks could do.
pub mod disks {
    use super::{Wish, cases, ended, ensure, host, in_use, mounted_with, pattern, taken_down};
    use crate::cases::in_tree::served::brought;

    cases! {
        beyond "in-tree/volume/raw-device" [Controller(CreateDeleteVolume), Root]
        "A claim of the plugin's class may ask for a raw device, which keeps its bytes (S4-23)."
        |t| {
            let (served, life) = in_use(&t, Wish { block: true, ..Wish::plain() }).await?;
            host::device_size(life.target())?;
            host::write_at(life.target(), 4096, &pattern(12))?;
            taken_down(&t, &served, &life).await?;
            let again = brought(&t, &served).await?;
            let found = host::read_at(again.target(), 4096, 100_000)?;
            ensure!(found == pattern(12), "other bytes are read after the whole way again");
            ended(&t, &served, &again).await?;
        }
        beyond "in-tree/mount-option/noatime" [Controller(CreateDeleteVolume)]
        "The class's mountOptions are the mount's."
        |t| {
            mounted_with(&t, "noatime").await?;
        }
        beyond "in-tree/mount-option/nodev" [Controller(CreateDeleteVolume)]
        "The class's mountOptions are the mount's."
        |t| {
            mounted_with(&t, "nodev").await?;
        }
        beyond "in-tree/mount-option/debug" [Controller(CreateDeleteVolume)]
        "The class's mountOptions are the mount's, those of its filesystem too."
        |t| {
            mounted_with(&t, "debug").await?;
        }
    }
}
