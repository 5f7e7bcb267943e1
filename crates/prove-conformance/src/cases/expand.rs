//! ControllerExpandVolume and NodeExpandVolume: what they answer, and what the device and the filesystem show.

use std::path::Path;

use csi::{Code, ControllerRpc, NodeRpc, VolumeExpansion, v1};

use crate::CaseResult;
use crate::case::{T, cases, ensure, fail, skip};
use crate::context::said;
use crate::host;
use crate::life::Life;
use crate::requests::{at_least, get, grow, page};

/// What filesystems keep for themselves, as a share of ten.
const OVERHEAD: i64 = 2;

fn node_request(life: &Life, bytes: i64) -> v1::NodeExpandVolumeRequest {
    v1::NodeExpandVolumeRequest {
        volume_id: life.volume.id.clone(),
        volume_path: life.target.clone(),
        capacity_range: at_least(bytes),
        staging_target_path: life.staging.clone(),
        volume_capability: Some(life.volume.capability.clone()),
        ..Default::default()
    }
}

/// Grows a volume where it is published. A refusal that is the machine's and not the driver's cannot be judged.
pub(crate) async fn grow_here(t: &T, life: &Life, bytes: i64) -> CaseResult<v1::NodeExpandVolumeResponse> {
    match t.ask(node_request(life, bytes)).await {
        Ok(answer) => Ok(answer),
        Err(status) if status.from_driver && status.code == Code::FailedPrecondition => {
            match host::forbids_growth(life.target()) {
                Some(why) => skip(format!("{why}; the driver says so: {}", said(&status))),
                None => fail(format!("NodeExpandVolume was refused: {}", said(&status))),
            }
        }
        // Asked again by the one rule for that.
        Err(_) => t.ok(node_request(life, bytes)).await,
    }
}

/// The filesystem of a volume that has grown is as large, but for what filesystems keep for themselves.
pub(crate) async fn has_grown_to(life: &Life, size: i64) -> CaseResult {
    let after = host::filesystem_size(&life.target).await?;
    ensure!(after >= size / 10 * (10 - OVERHEAD), "grown to {size} bytes, the filesystem has {after}");
    Ok(())
}

/// Grows a volume in use, as far as the driver takes part, and says what it answered last.
async fn grow_in_use(t: &T, life: &Life, bytes: i64) -> CaseResult<i64> {
    let mut made = bytes;
    let mut on_node = t.can(NodeRpc::ExpandVolume);
    if t.can(ControllerRpc::ExpandVolume) {
        let answer = t.ok(grow(&life.volume, bytes)).await?;
        made = answer.capacity_bytes;
        on_node = answer.node_expansion_required;
    }
    if on_node {
        grow_here(t, life, bytes).await?;
    }
    Ok(made)
}

cases! {
    parity "controller/expand/no-id" [Controller(ExpandVolume)]
    "A volume is grown by its id."
    |t| {
        let request = v1::ControllerExpandVolumeRequest { capacity_range: at_least(1 << 30), ..Default::default() };
        t.refused(request, &[Code::InvalidArgument], "without an id").await?;
    }
    parity "controller/expand/no-range" [Controller(CreateDeleteVolume), Controller(ExpandVolume)]
    "A volume is grown to a size."
    |t| {
        let volume = t.volume().await?;
        let request = v1::ControllerExpandVolumeRequest { capacity_range: None, ..grow(&volume, 0) };
        t.refused(request, &[Code::InvalidArgument], "without a size").await?;
    }
    parity "controller/expand/works" [Controller(CreateDeleteVolume), Controller(ExpandVolume)]
    "A grown volume is at least as large as required."
    |t| {
        let volume = t.volume().await?;
        let size = 2 * t.suite.options.size;
        let made = t.ok(grow(&volume, size)).await?.capacity_bytes;
        ensure!(made >= size, "{size} bytes were required, {made} made");
    }
    beyond "controller/expand/unknown" [Controller(ExpandVolume)]
    "A volume that does not exist cannot grow."
    |t| {
        let volume_id = t.name("none");
        let capacity_range = at_least(1 << 30);
        let request = v1::ControllerExpandVolumeRequest { volume_id, capacity_range, ..Default::default() };
        t.refused(request, &[Code::NotFound], "of a volume that does not exist").await?;
    }
    beyond "controller/expand/ten-times" [Controller(CreateDeleteVolume), Controller(ExpandVolume)]
    "Growing to a size can be repeated and answers the same."
    |t| {
        let volume = t.volume().await?;
        let size = 2 * t.suite.options.size;
        let first = t.ok(grow(&volume, size)).await?.capacity_bytes;
        for _ in 0..9 {
            let again = t.ok(grow(&volume, size)).await?.capacity_bytes;
            ensure!(again == first, "the repeat made {again} bytes of {first}");
        }
    }
    beyond "controller/expand/never-shrinks" [Controller(CreateDeleteVolume), Controller(ExpandVolume)]
    "A volume that is larger already is left as it is."
    |t| {
        let volume = t.volume().await?;
        let size = t.suite.options.size;
        let large = t.ok(grow(&volume, 2 * size)).await?.capacity_bytes;
        match t.ask(grow(&volume, size)).await {
            Ok(answer) => ensure!(answer.capacity_bytes >= large, "{large} bytes shrank to {}", answer.capacity_bytes),
            Err(status) if matches!(status.code, Code::OutOfRange | Code::InvalidArgument) => {
                t.warn(format!("a size that is met already is refused: {}", said(&status)));
            }
            Err(status) => return fail(format!("a smaller size was answered {}", said(&status))),
        }
    }
    beyond "controller/expand/largest-number" [Controller(CreateDeleteVolume), Controller(ExpandVolume)]
    "A size nobody has is refused."
    |t| {
        let volume = t.volume().await?;
        let codes = [Code::OutOfRange, Code::ResourceExhausted, Code::InvalidArgument];
        t.refused(grow(&volume, i64::MAX), &codes, "to 2^63-1 bytes").await?;
    }
    beyond "controller/expand/negative-size" [Controller(CreateDeleteVolume), Controller(ExpandVolume)]
    "Sizes are not negative."
    |t| {
        let volume = t.volume().await?;
        t.refused(grow(&volume, -1), &[Code::OutOfRange, Code::InvalidArgument], "to -1 bytes").await?;
    }
    beyond "controller/expand/limit-below-requirement" [Controller(CreateDeleteVolume), Controller(ExpandVolume)]
    "A size that contradicts itself is refused."
    |t| {
        let volume = t.volume().await?;
        let size = t.suite.options.size;
        let capacity_range = Some(v1::CapacityRange { required_bytes: 3 * size, limit_bytes: 2 * size });
        let request = v1::ControllerExpandVolumeRequest { capacity_range, ..grow(&volume, 0) };
        t.refused(request, &[Code::OutOfRange, Code::InvalidArgument], "with a limit below the requirement").await?;
    }
    beyond "controller/expand/refused-changes-nothing"
    [Controller(CreateDeleteVolume), Controller(ExpandVolume), Controller(GetVolume)]
    "A refused growth leaves the volume as it was."
    |t| {
        let volume = t.volume().await?;
        let _ = t.ask(grow(&volume, i64::MAX)).await;
        let now = t.ok(get(&volume.id)).await?.volume.unwrap_or_default().capacity_bytes;
        ensure!(now == volume.capacity, "{} bytes became {now} by a refused growth", volume.capacity);
    }
    beyond "controller/expand/listed"
    [Controller(CreateDeleteVolume), Controller(ExpandVolume), Controller(ListVolumes)]
    "A grown volume is listed with its new size."
    |t| {
        let volume = t.volume().await?;
        let made = t.ok(grow(&volume, 2 * t.suite.options.size)).await?.capacity_bytes;
        let listed = t.ok(page(0, "")).await?.entries.into_iter().filter_map(|e| e.volume).find(|v| v.volume_id == volume.id);
        let listed = listed.unwrap_or_default().capacity_bytes;
        ensure!(listed == made, "grown to {made} bytes, listed with {listed}");
    }
    beyond "controller/expand/create-repeated" [Controller(CreateDeleteVolume), Controller(ExpandVolume)]
    "The request that created a volume still finds it after it has grown."
    |t| {
        let request = t.create_request();
        let volume = t.volume_from(request.clone()).await?;
        t.ok(grow(&volume, 2 * t.suite.options.size)).await?;
        ensure!(t.volume_from(request).await?.id == volume.id, "the repeat made another volume");
    }
    parity "node/expand/no-id" [Node(ExpandVolume)]
    "A volume is grown by its id."
    |t| {
        let request = v1::NodeExpandVolumeRequest { volume_path: t.target_path()?, ..Default::default() };
        t.refused(request, &[Code::InvalidArgument], "without an id").await?;
    }
    parity "node/expand/no-path" [Controller(CreateDeleteVolume), Node(ExpandVolume)]
    "A volume is grown at a path."
    |t| {
        let volume_id = t.volume().await?.id;
        let request = v1::NodeExpandVolumeRequest { volume_id, ..Default::default() };
        t.refused(request, &[Code::InvalidArgument], "without a path").await?;
    }
    parity "node/expand/unknown" [Node(ExpandVolume)]
    "A volume that does not exist cannot grow."
    |t| {
        let (volume_id, volume_path) = (t.name("none"), t.target_path()?);
        let request = v1::NodeExpandVolumeRequest { volume_id, volume_path, ..Default::default() };
        t.refused(request, &[Code::NotFound], "of a volume that does not exist").await?;
    }
    parity "node/expand/works" [Controller(CreateDeleteVolume), Node(ExpandVolume), Controller(ExpandVolume)]
    "A published volume grows on its node."
    |t| {
        let life = t.published().await?;
        let size = 2 * t.suite.options.size;
        t.ok(grow(&life.volume, size)).await?;
        let made = grow_here(&t, &life, size).await?.capacity_bytes;
        ensure!(made == 0 || made >= size, "{size} bytes were required, {made} made");
    }
    beyond "node/expand/ten-times" [Controller(CreateDeleteVolume), Node(ExpandVolume), Controller(ExpandVolume)]
    "Growing on the node can be repeated."
    |t| {
        let life = t.published().await?;
        let size = 2 * t.suite.options.size;
        t.ok(grow(&life.volume, size)).await?;
        for _ in 0..10 {
            grow_here(&t, &life, size).await?;
        }
    }
    beyond "node/expand/wrong-path" [Controller(CreateDeleteVolume), Node(ExpandVolume)]
    "A volume is not grown at a path where it is not."
    |t| {
        let life = t.published().await?;
        let elsewhere = Life { target: t.target_path()?, staging: String::new(), ..life };
        let request = node_request(&elsewhere, t.suite.options.size);
        t.should_refuse(request, &[Code::NotFound, Code::InvalidArgument], "at a path where it is not").await?;
    }
    beyond "node/expand/filesystem-grows" [Controller(CreateDeleteVolume), Controller(ExpandVolume), Root]
    "After growth of a volume in use its filesystem is larger."
    |t| {
        if !t.can(VolumeExpansion::Online) {
            return skip("the driver does not offer online expansion");
        }
        let life = t.published().await?;
        let size = 2 * t.suite.options.size;
        let before = host::filesystem_size(&life.target).await?;
        host::write(&life.path("kept"), b"kept")?;
        t.remember_path(&life.path("kept"));
        grow_in_use(&t, &life, size).await?;
        let after = host::filesystem_size(&life.target).await?;
        ensure!(after >= size / 10 * (10 - OVERHEAD), "grown to {size} bytes, the filesystem has {after} (before: {before})");
        host::holds(&life.path("kept"), b"kept", "after growth")?;
    }
    beyond "node/expand/filesystem-grows-when-used-again"
    [Controller(CreateDeleteVolume), Controller(ExpandVolume), Root]
    "A volume that has grown while unused is larger when it is used again, with its data."
    |t| {
        let life = t.published().await?;
        host::write(&life.path("kept"), b"kept")?;
        t.remember_path(&life.path("kept"));
        t.take_down(&life).await?;
        let size = 2 * t.suite.options.size;
        let on_node = t.ok(grow(&life.volume, size)).await?.node_expansion_required;
        let life = t.bring(&life.volume).await?;
        if on_node && t.can(NodeRpc::ExpandVolume) {
            t.ok(node_request(&life, size)).await?;
        }
        has_grown_to(&life, size).await?;
        host::holds(&life.path("kept"), b"kept", "after growth")?;
    }
    beyond "node/expand/device-grows" [Controller(CreateDeleteVolume), Controller(ExpandVolume), Root]
    "After growth a block device is larger and holds what it held."
    |t| {
        let life = t.published_blocks().await?;
        host::write_at(life.target(), 8192, b"kept")?;
        let size = 2 * t.suite.options.size;
        let life = if t.can(VolumeExpansion::Online) {
            grow_in_use(&t, &life, size).await?;
            life
        } else {
            t.take_down(&life).await?;
            t.ok(grow(&life.volume, size)).await?;
            t.bring(&life.volume).await?
        };
        let after = host::device_size(Path::new(&life.target))?;
        ensure!(after >= size, "grown to {size} bytes, the device has {after}");
        ensure!(host::read_at(life.target(), 8192, 4)? == b"kept", "the device holds other bytes after growth");
    }
}
