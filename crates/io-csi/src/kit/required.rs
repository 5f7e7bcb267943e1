//! What a request must hold before its author sees it: one table of the required fields, and what makes them well formed.

use csi::v1::volume_capability::access_mode::Mode;
use csi::v1::volume_content_source::Type as Source;
use csi::v1::{CapacityRange, VolumeCapability, VolumeContentSource};
use csi::{Call, Code, Status};

use crate::limits::Limits;

type Checked = Result<(), Status>;

fn invalid(text: impl Into<String>) -> Status {
    Status::from_driver(Code::InvalidArgument, text)
}

/// Refuses a request that is incomplete, malformed or too large.
pub fn check(call: &Call, stages: bool) -> Checked {
    Limits::SPEC.check_call(call).map_err(invalid)?;
    match call {
        Call::CreateVolume(r) => {
            name(&r.name)?;
            capabilities(&r.volume_capabilities)?;
            range(r.capacity_range.as_ref())?;
            source(r.volume_content_source.as_ref())
        }
        Call::DeleteVolume(r) => given("volume_id", &r.volume_id),
        Call::ControllerPublishVolume(r) => {
            given("volume_id", &r.volume_id)?;
            given("node_id", &r.node_id)?;
            capability(r.volume_capability.as_ref())
        }
        Call::ControllerUnpublishVolume(r) => given("volume_id", &r.volume_id),
        Call::ValidateVolumeCapabilities(r) => {
            given("volume_id", &r.volume_id)?;
            capabilities(&r.volume_capabilities)
        }
        Call::ListVolumes(r) => page(r.max_entries),
        Call::CreateSnapshot(r) => {
            given("source_volume_id", &r.source_volume_id)?;
            name(&r.name)
        }
        Call::DeleteSnapshot(r) => given("snapshot_id", &r.snapshot_id),
        Call::ListSnapshots(r) => page(r.max_entries),
        Call::GetSnapshot(r) => given("snapshot_id", &r.snapshot_id),
        Call::ControllerExpandVolume(r) => {
            given("volume_id", &r.volume_id)?;
            if r.capacity_range.is_none() {
                return Err(missing("capacity_range"));
            }
            range(r.capacity_range.as_ref())?;
            optional(r.volume_capability.as_ref())
        }
        Call::ControllerGetVolume(r) => given("volume_id", &r.volume_id),
        Call::ControllerModifyVolume(r) => given("volume_id", &r.volume_id),
        Call::ControllerGetVolumeHealth(r) => given("volume_id", &r.volume_id),
        Call::ControllerListVolumeHealth(r) => page(r.max_entries),
        Call::CreateVolumeGroupSnapshot(r) => {
            name(&r.name)?;
            if r.source_volume_ids.is_empty() {
                return Err(missing("source_volume_ids"));
            }
            r.source_volume_ids.iter().try_for_each(|id| given("source_volume_ids", id))
        }
        Call::DeleteVolumeGroupSnapshot(r) => given("group_snapshot_id", &r.group_snapshot_id),
        Call::GetVolumeGroupSnapshot(r) => given("group_snapshot_id", &r.group_snapshot_id),
        Call::NodeStageVolume(r) => {
            given("volume_id", &r.volume_id)?;
            path("staging_target_path", &r.staging_target_path)?;
            capability(r.volume_capability.as_ref())
        }
        Call::NodeUnstageVolume(r) => {
            given("volume_id", &r.volume_id)?;
            path("staging_target_path", &r.staging_target_path)
        }
        Call::NodePublishVolume(r) => {
            given("volume_id", &r.volume_id)?;
            path("target_path", &r.target_path)?;
            capability(r.volume_capability.as_ref())?;
            if stages && r.staging_target_path.is_empty() {
                let text = "staging_target_path is missing; stage the volume first";
                return Err(Status::from_driver(Code::FailedPrecondition, text));
            }
            Ok(())
        }
        Call::NodeUnpublishVolume(r) => {
            given("volume_id", &r.volume_id)?;
            path("target_path", &r.target_path)
        }
        Call::NodeGetVolumeStats(r) => {
            given("volume_id", &r.volume_id)?;
            path("volume_path", &r.volume_path)
        }
        Call::NodeExpandVolume(r) => {
            given("volume_id", &r.volume_id)?;
            path("volume_path", &r.volume_path)?;
            range(r.capacity_range.as_ref())?;
            optional(r.volume_capability.as_ref())
        }
        Call::NodeGetVolumeHealth(r) => given("volume_id", &r.volume_id),
        Call::GetCapacity(r) => r.volume_capabilities.iter().try_for_each(|one| capability(Some(one))),
        Call::GetPluginInfo(_)
        | Call::GetPluginCapabilities(_)
        | Call::Probe(_)
        | Call::ControllerGetCapabilities(_)
        | Call::GroupControllerGetCapabilities(_)
        | Call::NodeGetStorageHealth(_)
        | Call::NodeGetCapabilities(_)
        | Call::NodeGetInfo(_)
        | Call::GetCSIDriverInfo(_)
        | Call::GetInfo(_)
        | Call::NotifyRegistrationStatus(_) => Ok(()),
    }
}

fn missing(field: &str) -> Status {
    invalid(format!("{field} is missing"))
}

fn given(field: &str, value: &str) -> Checked {
    if value.is_empty() { Err(missing(field)) } else { Ok(()) }
}

/// A name may hold anything but control characters; tabs and line breaks are none to CSI.
fn name(value: &str) -> Checked {
    given("name", value)?;
    if value.chars().any(|c| c.is_control() && !matches!(c, '\t' | '\n' | '\r')) {
        return Err(invalid("name has control characters in it"));
    }
    Ok(())
}

fn path(field: &str, value: &str) -> Checked {
    given(field, value)?;
    if !value.starts_with('/') || value.contains('\0') || value.split('/').any(|part| part == "..") {
        return Err(invalid(format!("{field} must be an absolute path without ..")));
    }
    Ok(())
}

fn page(max_entries: i32) -> Checked {
    if max_entries < 0 { Err(invalid("max_entries is negative")) } else { Ok(()) }
}

fn capabilities(all: &[VolumeCapability]) -> Checked {
    if all.is_empty() {
        return Err(missing("volume_capabilities"));
    }
    all.iter().try_for_each(|one| capability(Some(one)))
}

fn optional(one: Option<&VolumeCapability>) -> Checked {
    if one.is_some() { capability(one) } else { Ok(()) }
}

fn capability(one: Option<&VolumeCapability>) -> Checked {
    let Some(one) = one else { return Err(missing("volume_capability")) };
    if one.access_type.is_none() {
        return Err(invalid("the volume capability says neither block nor mount"));
    }
    let mode = one.access_mode.as_ref().and_then(|mode| Mode::try_from(mode.mode).ok());
    match mode {
        Some(Mode::Unknown) | None => Err(invalid("the volume capability has no access mode that is known")),
        Some(_) => Ok(()),
    }
}

fn range(range: Option<&CapacityRange>) -> Checked {
    let Some(range) = range else { return Ok(()) };
    let impossible = range.limit_bytes != 0 && range.limit_bytes < range.required_bytes;
    if range.required_bytes < 0 || range.limit_bytes < 0 || impossible {
        return Err(Status::from_driver(Code::OutOfRange, "no size is in the capacity range"));
    }
    Ok(())
}

fn source(source: Option<&VolumeContentSource>) -> Checked {
    match source.map(|source| source.r#type.as_ref()) {
        None => Ok(()),
        Some(None) => Err(invalid("volume_content_source names neither a snapshot nor a volume")),
        Some(Some(Source::Snapshot(from))) => given("snapshot_id", &from.snapshot_id),
        Some(Some(Source::Volume(from))) => given("volume_id", &from.volume_id),
    }
}
