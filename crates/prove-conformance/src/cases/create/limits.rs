//! CreateVolume at its limits.

use csi::{Code, v1};
use v1::volume_capability::access_mode::Mode;

use crate::case::{cases, ensure, fail};
use crate::context::said;
use crate::requests::{at_least, files, of_snapshot, of_volume};

const TOO_MUCH: &[Code] = &[Code::OutOfRange, Code::ResourceExhausted, Code::InvalidArgument];

cases! {
    beyond "controller/create/limit-respected" [Controller(CreateDeleteVolume)]
    "A volume is never larger than the limit."
    |t| {
        let size = t.suite.options.size;
        let capacity_range = Some(v1::CapacityRange { required_bytes: size, limit_bytes: size });
        let volume = t.volume_from(v1::CreateVolumeRequest { capacity_range, ..t.create_request() }).await?;
        ensure!(volume.capacity <= size, "the limit is {size} bytes, {} were made", volume.capacity);
        ensure!(volume.capacity == 0 || volume.capacity >= size, "{size} were required, {} made", volume.capacity);
    }
    beyond "controller/create/only-a-limit" [Controller(CreateDeleteVolume)]
    "A limit without a requirement is a whole request."
    |t| {
        let size = t.suite.options.size;
        let capacity_range = Some(v1::CapacityRange { required_bytes: 0, limit_bytes: size });
        match t.ask(v1::CreateVolumeRequest { capacity_range, ..t.create_request() }).await {
            Ok(answer) => {
                let made = answer.volume.unwrap_or_default().capacity_bytes;
                ensure!(made <= size, "the limit is {size} bytes, {made} were made");
            }
            Err(status) if TOO_MUCH.contains(&status.code) => t.warn(format!("a limit alone is refused: {}", said(&status))),
            Err(status) => return fail(format!("a limit alone was answered {}", said(&status))),
        }
    }
    beyond "controller/create/limit-below-requirement" [Controller(CreateDeleteVolume)]
    "A size that contradicts itself is refused."
    |t| {
        let size = t.suite.options.size;
        let capacity_range = Some(v1::CapacityRange { required_bytes: size, limit_bytes: size / 2 });
        let request = v1::CreateVolumeRequest { capacity_range, ..t.create_request() };
        t.refused(request, &[Code::InvalidArgument, Code::OutOfRange], "with a limit below the requirement").await?;
    }
    beyond "controller/create/negative-size" [Controller(CreateDeleteVolume)]
    "Sizes are not negative."
    |t| {
        let request = v1::CreateVolumeRequest { capacity_range: at_least(-1), ..t.create_request() };
        t.refused(request, &[Code::InvalidArgument, Code::OutOfRange], "of -1 bytes").await?;
    }
    beyond "controller/create/negative-limit" [Controller(CreateDeleteVolume)]
    "Limits are not negative."
    |t| {
        let capacity_range = Some(v1::CapacityRange { required_bytes: 0, limit_bytes: -1 });
        let request = v1::CreateVolumeRequest { capacity_range, ..t.create_request() };
        t.refused(request, &[Code::InvalidArgument, Code::OutOfRange], "with a limit of -1 bytes").await?;
    }
    beyond "controller/create/largest-number" [Controller(CreateDeleteVolume)]
    "A size nobody has is refused, and not rounded over its end."
    |t| {
        let request = v1::CreateVolumeRequest { capacity_range: at_least(i64::MAX), ..t.create_request() };
        t.refused(request, TOO_MUCH, "of 2^63-1 bytes").await?;
    }
    beyond "controller/create/petabytes" [Controller(CreateDeleteVolume)]
    "What the backend does not have is refused."
    |t| {
        let request = v1::CreateVolumeRequest { capacity_range: at_least(1 << 60), ..t.create_request() };
        t.refused(request, TOO_MUCH, "of 2^60 bytes").await?;
    }
    beyond "controller/create/one-byte" [Controller(CreateDeleteVolume)]
    "The smallest size is rounded up or refused, never made smaller."
    |t| {
        match t.ask(v1::CreateVolumeRequest { capacity_range: at_least(1), ..t.create_request() }).await {
            Ok(answer) => {
                let made = answer.volume.unwrap_or_default().capacity_bytes;
                ensure!(made >= 0, "the capacity is {made}");
            }
            Err(status) if TOO_MUCH.contains(&status.code) => {}
            Err(status) => return fail(format!("a size of one byte was answered {}", said(&status))),
        }
    }
    beyond "controller/create/odd-size" [Controller(CreateDeleteVolume)]
    "A size that is no whole number of blocks is rounded up."
    |t| {
        let size = t.suite.options.size + 1;
        let volume = t.volume_from(v1::CreateVolumeRequest { capacity_range: at_least(size), ..t.create_request() }).await?;
        ensure!(volume.capacity == 0 || volume.capacity >= size, "{size} were required, {} made", volume.capacity);
    }
    beyond "controller/create/id-fits" [Controller(CreateDeleteVolume)]
    "Ids have at most 128 bytes."
    |t| {
        let volume = t.volume().await?;
        ensure!(volume.id.len() <= 128, "the id has {} bytes", volume.id.len());
    }
    beyond "controller/create/context-fits" [Controller(CreateDeleteVolume)]
    "The volume context has at most 4 KiB."
    |t| {
        let context = t.volume().await?.context;
        let bytes: usize = context.iter().map(|(key, value)| key.len() + value.len()).sum();
        ensure!(bytes <= 4096, "the context has {bytes} bytes");
        ensure!(context.iter().all(|(k, v)| k.len() <= 128 && v.len() <= 4096), "an entry is too long");
    }
    beyond "controller/create/no-access-type" [Controller(CreateDeleteVolume)]
    "A use is either files or blocks."
    |t| {
        let mut request = t.create_request();
        request.volume_capabilities[0].access_type = None;
        t.refused(request, &[Code::InvalidArgument], "for neither files nor blocks").await?;
    }
    beyond "controller/create/no-access-mode" [Controller(CreateDeleteVolume)]
    "A use has an access mode."
    |t| {
        let mut request = t.create_request();
        request.volume_capabilities[0].access_mode = None;
        t.refused(request, &[Code::InvalidArgument], "without an access mode").await?;
    }
    beyond "controller/create/unknown-access-mode" [Controller(CreateDeleteVolume)]
    "UNKNOWN is no access mode."
    |t| {
        let request = v1::CreateVolumeRequest { volume_capabilities: vec![files(Mode::Unknown)], ..t.create_request() };
        t.refused(request, &[Code::InvalidArgument], "with the access mode UNKNOWN").await?;
    }
    beyond "controller/create/source-empty" [Controller(CreateDeleteVolume)]
    "A source without a kind is malformed."
    |t| {
        let volume_content_source = Some(v1::VolumeContentSource { r#type: None });
        let request = v1::CreateVolumeRequest { volume_content_source, ..t.create_request() };
        t.should_refuse(request, &[Code::InvalidArgument], "from an empty source").await?;
    }
    beyond "controller/create/source-snapshot-without-id"
    [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A source without an id names nothing."
    |t| {
        let request = v1::CreateVolumeRequest { volume_content_source: of_snapshot(""), ..t.create_request() };
        t.refused(request, &[Code::InvalidArgument, Code::NotFound], "from a snapshot without id").await?;
    }
    beyond "controller/create/source-named-in-answer" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A volume with content says where it came from."
    |t| {
        let source = t.volume().await?;
        let snapshot = t.snapshot(&source).await?;
        let volume_content_source = of_snapshot(&snapshot.snapshot_id);
        let request = v1::CreateVolumeRequest { volume_content_source: volume_content_source.clone(), ..t.create_request() };
        let volume = t.volume_from(request).await?;
        ensure!(volume.answer.content_source == volume_content_source, "the answer does not name the snapshot");
    }
    beyond "controller/create/clone-named-in-answer" [Controller(CreateDeleteVolume), Controller(CloneVolume)]
    "A clone says where it came from."
    |t| {
        let source = t.volume().await?;
        let volume_content_source = of_volume(&source.id);
        let request = v1::CreateVolumeRequest { volume_content_source: volume_content_source.clone(), ..t.create_request() };
        let volume = t.volume_from(request).await?;
        ensure!(volume.answer.content_source == volume_content_source, "the answer does not name the source");
    }
    beyond "controller/create/clone-of-clone" [Controller(CreateDeleteVolume), Controller(CloneVolume)]
    "A clone is a volume like others: it can be cloned, and outlives its source."
    |t| {
        let source = t.volume().await?;
        let request = v1::CreateVolumeRequest { volume_content_source: of_volume(&source.id), ..t.create_request() };
        let clone = t.volume_from(request).await?;
        t.ok(crate::requests::delete(&source.id)).await?;
        let request = v1::CreateVolumeRequest { volume_content_source: of_volume(&clone.id), ..t.create_request() };
        t.volume_from(request).await?;
    }
    beyond "controller/create/restore-too-small" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A volume that cannot hold its content is refused."
    |t| {
        let size = t.suite.options.size;
        let source = t.volume_from(v1::CreateVolumeRequest { capacity_range: at_least(2 * size), ..t.create_request() }).await?;
        let snapshot = t.snapshot(&source).await?;
        let request = v1::CreateVolumeRequest {
            capacity_range: Some(v1::CapacityRange { required_bytes: size, limit_bytes: size }),
            volume_content_source: of_snapshot(&snapshot.snapshot_id),
            ..t.create_request()
        };
        t.refused(request, &[Code::OutOfRange, Code::InvalidArgument], "smaller than its snapshot").await?;
    }
    beyond "controller/create/restore-larger" [Controller(CreateDeleteVolume), Controller(CreateDeleteSnapshot)]
    "A volume may be larger than the snapshot it comes from, or the driver says that it cannot."
    |t| {
        let size = t.suite.options.size;
        let source = t.volume().await?;
        let snapshot = t.snapshot(&source).await?;
        let request = v1::CreateVolumeRequest {
            capacity_range: at_least(2 * size),
            volume_content_source: of_snapshot(&snapshot.snapshot_id),
            ..t.create_request()
        };
        let volume = t.volume_if_offered(request, "volumes larger than their snapshot").await?;
        ensure!(volume.capacity == 0 || volume.capacity >= 2 * size, "{} bytes were made, not {}", volume.capacity, 2 * size);
    }
    beyond "controller/create/refusals-have-words" [Controller(CreateDeleteVolume)]
    "A refusal says what is wrong."
    |t| {
        let request = v1::CreateVolumeRequest { name: String::new(), ..t.create_request() };
        if let Err(status) = t.ask(request).await {
            ensure!(!status.message.trim().is_empty(), "the refusal of a volume without name has no message");
        }
    }
    beyond "controller/create/refused-makes-nothing" [Controller(CreateDeleteVolume), Controller(ListVolumes), Alone]
    "A refused request leaves no volume behind."
    |t| {
        let count = crate::cases::list::ids(&t).await?.len();
        let request = v1::CreateVolumeRequest { capacity_range: at_least(i64::MAX), ..t.create_request() };
        let _ = t.ask(request).await;
        let request = v1::CreateVolumeRequest { volume_capabilities: vec![], ..t.create_request() };
        let _ = t.ask(request).await;
        let now = crate::cases::list::ids(&t).await?.len();
        ensure!(now == count, "{count} volumes became {now} by refused requests");
    }
}
