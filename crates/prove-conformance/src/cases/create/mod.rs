//! CreateVolume, as csi-sanity judges it and in its repeats.

pub mod limits;

use csi::{Code, v1};
use v1::volume_capability::access_mode::Mode;

use crate::case::{cases, ensure, fail, skip};
use crate::context::pair;
use crate::requests::{at_least, blocks, delete, files, of_snapshot, of_volume};

cases! {
    parity "controller/create/no-name" [Controller(CreateDeleteVolume)]
    "A volume is created under a name; without one the request is malformed."
    |t| {
        let request = v1::CreateVolumeRequest { name: String::new(), ..t.create_request() };
        t.refused(request, &[Code::InvalidArgument], "without a name").await?;
    }
    parity "controller/create/no-capabilities" [Controller(CreateDeleteVolume)]
    "A volume is created for a use; without one the request is malformed."
    |t| {
        let request = v1::CreateVolumeRequest { volume_capabilities: vec![], ..t.create_request() };
        t.refused(request, &[Code::InvalidArgument], "without capabilities").await?;
    }
    parity "controller/create/no-capacity" [Controller(CreateDeleteVolume)]
    "The size is optional: without it the driver chooses."
    |t| {
        let volume = t.volume_from(v1::CreateVolumeRequest { capacity_range: None, ..t.create_request() }).await?;
        ensure!(volume.capacity >= 0, "the capacity is {}", volume.capacity);
    }
    parity "controller/create/with-capacity" [Controller(CreateDeleteVolume)]
    "A volume is at least as large as required; zero means that the driver does not know."
    |t| {
        let volume = t.volume().await?;
        let size = t.suite.options.size;
        ensure!(volume.capacity == 0 || volume.capacity >= size, "{size} bytes were required, {} made", volume.capacity);
    }
    parity "controller/create/same-name-same-size" [Controller(CreateDeleteVolume)]
    "A repeated request answers with the volume that exists."
    |t| {
        let request = t.create_request();
        let first = t.volume_from(request.clone()).await?;
        let second = t.volume_from(request).await?;
        ensure!(first.id == second.id, "one name made two volumes, {} and {}", first.id, second.id);
    }
    parity "controller/create/same-name-other-size" [Controller(CreateDeleteVolume)]
    "A name that is taken by an incompatible volume is refused."
    |t| {
        let size = t.suite.options.size;
        let exactly = |bytes| Some(v1::CapacityRange { required_bytes: bytes, limit_bytes: bytes });
        let request = v1::CreateVolumeRequest { capacity_range: exactly(size), ..t.create_request() };
        t.volume_from(request.clone()).await?;
        let other = v1::CreateVolumeRequest { capacity_range: exactly(2 * size), ..request };
        t.refused(other, &[Code::AlreadyExists], "of a taken name with twice the size").await?;
    }
    parity "controller/create/long-name" [Controller(CreateDeleteVolume)]
    "Names may have 128 bytes."
    |t| {
        let mut name = t.name("long");
        name.extend(std::iter::repeat_n('x', 128 - name.len()));
        t.volume_from(v1::CreateVolumeRequest { name, ..t.create_request() }).await?;
    }
    parity "controller/create/from-snapshot" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A volume can be made from a snapshot."
    |t| {
        let source = t.volume().await?;
        let snapshot = t.snapshot(&source).await?;
        let volume_content_source = of_snapshot(&snapshot.snapshot_id);
        let volume = t.volume_from(v1::CreateVolumeRequest { volume_content_source, ..t.create_request() }).await?;
        ensure!(volume.id != source.id, "the new volume is its own source");
    }
    parity "controller/create/snapshot-unknown" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A source that does not exist is NOT_FOUND."
    |t| {
        let volume_content_source = of_snapshot(&t.name("no-such-snapshot"));
        let request = v1::CreateVolumeRequest { volume_content_source, ..t.create_request() };
        t.refused(request, &[Code::NotFound], "from a snapshot that does not exist").await?;
    }
    parity "controller/create/from-volume" [Controller(CreateDeleteVolume), Controller(CloneVolume)]
    "A volume can be made from a volume."
    |t| {
        let source = t.volume().await?;
        let volume_content_source = of_volume(&source.id);
        let volume = t.volume_from(v1::CreateVolumeRequest { volume_content_source, ..t.create_request() }).await?;
        ensure!(volume.id != source.id, "the clone is its own source");
    }
    parity "controller/create/source-unknown" [Controller(CreateDeleteVolume), Controller(CloneVolume)]
    "A source that does not exist is NOT_FOUND."
    |t| {
        let volume_content_source = of_volume(&t.name("no-such-volume"));
        let request = v1::CreateVolumeRequest { volume_content_source, ..t.create_request() };
        t.refused(request, &[Code::NotFound], "from a volume that does not exist").await?;
    }
    parity "controller/create/mutable-parameters"
    [Controller(CreateDeleteVolume), Controller(ModifyVolume), MutableParameters]
    "A volume can be created with mutable parameters."
    |t| {
        let mutable_parameters = t.suite.options.mutable_parameters.clone();
        t.volume_from(v1::CreateVolumeRequest { mutable_parameters, ..t.create_request() }).await?;
    }
    parity "controller/create/mutable-parameters-unknown" [Controller(CreateDeleteVolume), Controller(ModifyVolume)]
    "Mutable parameters the driver does not know are refused."
    |t| {
        let mutable_parameters = pair("longshore-no-such-parameter", "1");
        let request = v1::CreateVolumeRequest { mutable_parameters, ..t.create_request() };
        t.refused(request, &[Code::InvalidArgument], "with an unknown mutable parameter").await?;
    }
    beyond "controller/create/ten-times" [Controller(CreateDeleteVolume)]
    "However often a request is repeated, one volume exists and the answer stays the same."
    |t| {
        let request = t.create_request();
        let first = t.volume_from(request.clone()).await?;
        for round in 2..=10 {
            let again = t.volume_from(request.clone()).await?;
            ensure!(again.id == first.id, "time {round} made another volume, {}", again.id);
            ensure!(again.context == first.context, "time {round} answered with another volume context");
            ensure!(again.capacity == first.capacity, "time {round} answered with another capacity");
        }
    }
    beyond "controller/create/two-names-two-volumes" [Controller(CreateDeleteVolume)]
    "Different names make different volumes."
    |t| {
        let (first, second) = (t.volume().await?, t.volume().await?);
        ensure!(first.id != second.id, "two names made one volume, {}", first.id);
    }
    beyond "controller/create/long-names-differ-at-the-end" [Controller(CreateDeleteVolume)]
    "Names are not cut: two long ones that differ in the last byte are two volumes."
    |t| {
        let mut name = t.name("long");
        name.extend(std::iter::repeat_n('x', 127 - name.len()));
        let one = t.volume_from(v1::CreateVolumeRequest { name: format!("{name}1"), ..t.create_request() }).await?;
        let two = t.volume_from(v1::CreateVolumeRequest { name: format!("{name}2"), ..t.create_request() }).await?;
        ensure!(one.id != two.id, "names that differ in byte 128 made one volume");
    }
    beyond "controller/create/names-differ-in-case" [Controller(CreateDeleteVolume)]
    "Names are compared byte by byte."
    |t| {
        let name = t.name("case");
        let upper = name.to_uppercase();
        let one = t.volume_from(v1::CreateVolumeRequest { name, ..t.create_request() }).await?;
        let two = t.volume_from(v1::CreateVolumeRequest { name: upper, ..t.create_request() }).await?;
        ensure!(one.id != two.id, "names that differ in case made one volume");
    }
    beyond "controller/create/name-free-after-delete" [Controller(CreateDeleteVolume)]
    "A deleted volume's name can be used again."
    |t| {
        let request = t.create_request();
        let first = t.volume_from(request.clone()).await?;
        t.ok(delete(&first.id)).await?;
        let size = t.suite.options.size;
        t.volume_from(v1::CreateVolumeRequest { capacity_range: at_least(2 * size), ..request }).await?;
    }
    beyond "controller/create/same-name-blocks" [Controller(CreateDeleteVolume)]
    "A name that is taken by a volume of files does not answer for one of blocks."
    |t| {
        t.volume_if_offered(t.create_blocks(), "block volumes").await?;
        let request = t.create_request();
        t.volume_from(request.clone()).await?;
        let other = v1::CreateVolumeRequest { volume_capabilities: vec![blocks(Mode::SingleNodeWriter)], ..request };
        match t.ask(other).await {
            Err(status) if status.code == Code::AlreadyExists => {}
            Err(status) => return fail(format!("a taken name with blocks was answered {}", crate::context::said(&status))),
            // Some drivers make volumes that are good for both.
            Ok(_) => t.warn("the volume of files is answered for blocks as well"),
        }
    }
    beyond "controller/create/same-name-other-source" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A name that is taken by an empty volume does not answer for one with content."
    |t| {
        let source = t.volume().await?;
        let snapshot = t.snapshot(&source).await?;
        let request = t.create_request();
        t.volume_from(request.clone()).await?;
        let other = v1::CreateVolumeRequest { volume_content_source: of_snapshot(&snapshot.snapshot_id), ..request };
        t.refused(other, &[Code::AlreadyExists], "of a taken name from a snapshot").await?;
    }
    beyond "controller/create/same-name-source-repeated"
    [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A repeated request with a source answers with the volume that exists."
    |t| {
        let source = t.volume().await?;
        let snapshot = t.snapshot(&source).await?;
        let volume_content_source = of_snapshot(&snapshot.snapshot_id);
        let request = v1::CreateVolumeRequest { volume_content_source, ..t.create_request() };
        let first = t.volume_from(request.clone()).await?;
        let second = t.volume_from(request).await?;
        ensure!(first.id == second.id, "one name made two volumes");
    }
    beyond "controller/create/blocks" [Controller(CreateDeleteVolume)]
    "A driver with block volumes makes them like others."
    |t| {
        let volume = t.volume_if_offered(t.create_blocks(), "block volumes").await?;
        let size = t.suite.options.size;
        ensure!(volume.capacity == 0 || volume.capacity >= size, "{size} bytes were required, {} made", volume.capacity);
    }
    beyond "controller/create/many-nodes" [Controller(CreateDeleteVolume)]
    "A driver makes volumes for many nodes, or says that it cannot."
    |t| {
        let volume_capabilities = vec![files(Mode::MultiNodeMultiWriter)];
        let request = v1::CreateVolumeRequest { volume_capabilities, ..t.create_request() };
        t.volume_if_offered(request, "volumes for many writing nodes").await?;
    }
    beyond "controller/create/answer-of-parameters" [Controller(CreateDeleteVolume)]
    "Parameters that the driver does not know are refused or ignored, but never crash it."
    |t| {
        let mut request = t.create_request();
        request.parameters.insert("longshore-no-such-parameter".into(), "1".into());
        match t.ask(request).await {
            Ok(_) => {}
            Err(status) if status.code == Code::InvalidArgument => {}
            Err(status) => return skip(format!("refused with {}", crate::context::said(&status))),
        }
        t.alive("an unknown parameter").await?;
    }
}
