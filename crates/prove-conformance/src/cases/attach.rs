//! ControllerPublishVolume and ControllerUnpublishVolume.

use csi::{Code, v1};
use v1::volume_capability::access_mode::Mode;

use crate::case::{cases, ensure, skip};
use crate::requests::{detach, files, get, page};

cases! {
    parity "controller/attach/no-volume" [Controller(PublishUnpublishVolume)]
    "A volume is attached by its id."
    |t| {
        let node_id = t.suite.node.node_id.clone();
        let volume_capability = Some(crate::requests::plain());
        let request = v1::ControllerPublishVolumeRequest { node_id, volume_capability, ..Default::default() };
        t.refused(request, &[Code::InvalidArgument], "without a volume id").await?;
    }
    parity "controller/attach/no-node" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "A volume is attached to a node."
    |t| {
        let volume = t.volume().await?;
        let request = v1::ControllerPublishVolumeRequest { node_id: String::new(), ..t.attach_request(&volume) };
        t.refused(request, &[Code::InvalidArgument], "without a node id").await?;
    }
    parity "controller/attach/no-capability" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "A volume is attached for a use."
    |t| {
        let volume = t.volume().await?;
        let request = v1::ControllerPublishVolumeRequest { volume_capability: None, ..t.attach_request(&volume) };
        t.refused(request, &[Code::InvalidArgument], "without a capability").await?;
    }
    parity "controller/attach/beyond-the-limit"
    [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume), Alone]
    "A node takes as many volumes as it says, and no more."
    |t| {
        let limit = t.suite.node.max_volumes_per_node;
        if limit == 0 || limit > 64 {
            return skip(format!("the node's limit is {limit}; only 1 to 64 are tried"));
        }
        for _ in 0..limit {
            let volume = t.volume().await?;
            t.attach(&volume).await?;
        }
        let one_more = t.volume().await?;
        t.refused(t.attach_request(&one_more), &[Code::ResourceExhausted], "beyond the node's limit").await?;
    }
    parity "controller/attach/volume-unknown" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "A volume that does not exist cannot be attached."
    |t| {
        let volume = t.volume().await?;
        let volume_id = t.name("no-such-volume");
        let request = v1::ControllerPublishVolumeRequest { volume_id, ..t.attach_request(&volume) };
        t.refused(request, &[Code::NotFound], "of a volume that does not exist").await?;
    }
    parity "controller/attach/node-unknown" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "A volume cannot be attached to a node that does not exist."
    |t| {
        let volume = t.volume().await?;
        let request = v1::ControllerPublishVolumeRequest { node_id: t.name("no-such-node"), ..t.attach_request(&volume) };
        t.refused(request, &[Code::NotFound], "to a node that does not exist").await?;
    }
    parity "controller/attach/read-only-changed"
    [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume), Controller(PublishReadonly)]
    "An attachment does not become read-only by asking again."
    |t| {
        let volume = t.volume().await?;
        t.attach(&volume).await?;
        let request = v1::ControllerPublishVolumeRequest { readonly: true, ..t.attach_request(&volume) };
        t.refused(request, &[Code::AlreadyExists], "read-only after read-write").await?;
    }
    parity "controller/attach/lifecycle" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "A volume is attached and detached."
    |t| {
        let volume = t.volume().await?;
        t.attach(&volume).await?;
        t.detached(&volume).await?;
    }
    parity "controller/attach/ten-times" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "Attaching can be repeated and answers the same."
    |t| {
        let volume = t.volume().await?;
        let first = t.attach(&volume).await?;
        for _ in 0..9 {
            ensure!(t.attach(&volume).await? == first, "the publish context changed");
        }
    }
    parity "controller/detach/no-volume" [Controller(PublishUnpublishVolume)]
    "A volume is detached by its id."
    |t| { t.refused(detach("", &t.suite.node.node_id), &[Code::InvalidArgument], "without a volume id").await?; }
    beyond "controller/detach/ten-times" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "Detaching can be repeated."
    |t| {
        let volume = t.volume().await?;
        t.attach(&volume).await?;
        for _ in 0..10 {
            t.detached(&volume).await?;
        }
    }
    beyond "controller/detach/never-attached" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "A volume that was never attached is detached already."
    |t| {
        let volume = t.volume().await?;
        t.detached(&volume).await?;
    }
    beyond "controller/detach/volume-unknown" [Controller(PublishUnpublishVolume)]
    "A volume that does not exist is attached nowhere."
    |t| {
        let request = detach(&t.name("no-such-volume"), &t.suite.node.node_id);
        if let Err(status) = t.ask(request).await {
            ensure!(status.code == Code::NotFound, "answered {}, expected OK or NOT_FOUND", crate::context::said(&status));
        }
    }
    beyond "controller/detach/node-unknown" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "A volume is not attached to a node that does not exist."
    |t| {
        let volume = t.volume().await?;
        if let Err(status) = t.ask(detach(&volume.id, &t.name("no-such-node"))).await {
            ensure!(status.code == Code::NotFound, "answered {}, expected OK or NOT_FOUND", crate::context::said(&status));
        }
    }
    beyond "controller/detach/other-node-stays" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "Detaching from another node leaves this attachment alone."
    |t| {
        let volume = t.volume().await?;
        t.attach(&volume).await?;
        let _ = t.ask(detach(&volume.id, &t.name("no-such-node"))).await;
        t.refused(crate::requests::delete(&volume.id), &[Code::FailedPrecondition], "of a still attached volume").await?;
    }
    beyond "controller/detach/from-all-nodes" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "Without a node id a volume is detached from all nodes."
    |t| {
        let volume = t.volume().await?;
        t.attach(&volume).await?;
        t.ok(detach(&volume.id, "")).await?;
        t.ok(crate::requests::delete(&volume.id)).await?;
    }
    beyond "controller/attach/again-after-detach" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "A detached volume can be attached again."
    |t| {
        let volume = t.volume().await?;
        for _ in 0..3 {
            t.attach(&volume).await?;
            t.detached(&volume).await?;
        }
    }
    beyond "controller/attach/read-only-first"
    [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume), Controller(PublishReadonly)]
    "A read-only attachment does not become writable by asking again."
    |t| {
        let volume = t.volume().await?;
        t.ok(v1::ControllerPublishVolumeRequest { readonly: true, ..t.attach_request(&volume) }).await?;
        t.refused(t.attach_request(&volume), &[Code::AlreadyExists], "read-write after read-only").await?;
    }
    beyond "controller/attach/other-mode" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "An attachment for one use does not answer for another."
    |t| {
        let volume = t.volume().await?;
        t.attach(&volume).await?;
        let volume_capability = Some(files(Mode::MultiNodeReaderOnly));
        let request = v1::ControllerPublishVolumeRequest { volume_capability, ..t.attach_request(&volume) };
        t.should_refuse(request, &[Code::AlreadyExists, Code::InvalidArgument], "for another access mode").await?;
    }
    beyond "controller/attach/context-fits" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "The publish context has at most 4 KiB."
    |t| {
        let volume = t.volume().await?;
        let bytes: usize = t.attach(&volume).await?.iter().map(|(key, value)| key.len() + value.len()).sum();
        ensure!(bytes <= 4096, "the publish context has {bytes} bytes");
    }
    beyond "controller/attach/two-volumes" [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume)]
    "Attachments of different volumes are independent."
    |t| {
        let (one, other) = (t.volume().await?, t.volume().await?);
        t.attach(&one).await?;
        t.attach(&other).await?;
        t.detached(&one).await?;
        t.refused(crate::requests::delete(&other.id), &[Code::FailedPrecondition], "of the other, attached volume").await?;
    }
    beyond "controller/attach/listed-nodes"
    [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume), Controller(ListVolumes), Controller(ListVolumesPublishedNodes)]
    "Lists name the nodes of each volume."
    |t| {
        let volume = t.volume().await?;
        let nodes = |entries: Vec<v1::list_volumes_response::Entry>| {
            let of = |e: &v1::list_volumes_response::Entry| e.volume.as_ref().is_some_and(|v| v.volume_id == volume.id);
            entries.into_iter().find(of).and_then(|e| e.status).unwrap_or_default().published_node_ids
        };
        ensure!(nodes(t.ok(page(0, "")).await?.entries).is_empty(), "a new volume is listed with nodes");
        t.attach(&volume).await?;
        let listed = nodes(t.ok(page(0, "")).await?.entries);
        ensure!(listed == [t.suite.node.node_id.clone()], "attached to {}, listed {listed:?}", t.suite.node.node_id);
        t.detached(&volume).await?;
        ensure!(nodes(t.ok(page(0, "")).await?.entries).is_empty(), "a detached volume is listed with nodes");
    }
    beyond "controller/attach/list-and-get-agree"
    [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume), Controller(ListVolumes), Controller(GetVolume)]
    "A volume is described the same in a list and alone."
    |t| {
        let volume = t.volume().await?;
        t.attach(&volume).await?;
        let listed = t.ok(page(0, "")).await?.entries.into_iter()
            .find(|e| e.volume.as_ref().is_some_and(|v| v.volume_id == volume.id)).unwrap_or_default();
        let got = t.ok(get(&volume.id)).await?;
        ensure!(listed.volume == got.volume, "the volume is described differently");
        let nodes = |ids: Option<Vec<String>>| ids.unwrap_or_default();
        let (one, other) = (nodes(listed.status.map(|s| s.published_node_ids)), nodes(got.status.map(|s| s.published_node_ids)));
        ensure!(one == other, "listed on {one:?}, got on {other:?}");
    }
    beyond "controller/detach/while-staged"
    [Controller(CreateDeleteVolume), Controller(PublishUnpublishVolume), Node(StageUnstageVolume)]
    "A volume is taken from a node only after it was unstaged there; a driver that knows refuses."
    |t| {
        let volume = t.volume().await?;
        let life = t.staged(&volume).await?;
        let request = detach(&volume.id, &t.suite.node.node_id);
        t.should_refuse(request, &[Code::FailedPrecondition], "of a staged volume").await?;
        t.ok(t.attach_request(&volume)).await?;
        t.take_down(&life).await?;
    }
}
