//! Checks a request before its author sees it: required fields, well-formed values, sizes. The table of RPCs in `csi` says
//! which field has which rule; this file says what the rules mean.

use csi::v1::volume_capability::access_mode::Mode;
use csi::v1::volume_content_source::Type as Source;
use csi::v1::{CapacityRange, VolumeCapability, VolumeContentSource};
use csi::{Call, Code, Field, Fields, Status};

use crate::limits::Limits;

type Checked = Result<(), Status>;

fn invalid(text: impl Into<String>) -> Status {
    Status::from_driver(Code::InvalidArgument, text)
}

/// Refuses a request that is incomplete, malformed or too large. `stages` says whether the driver has STAGE_UNSTAGE_VOLUME.
pub fn check(call: &Call, stages: bool) -> Checked {
    Limits::SPEC.check(call).map_err(|error| invalid(error.to_string()))?;
    let mut found = Ok(());
    call.visit(&mut |name, field| {
        if found.is_ok() {
            found = check_field(name, field);
        }
    });
    found?;
    match call {
        Call::NodePublishVolume(request) if stages && request.staging_target_path.is_empty() => {
            let text = "staging_target_path is missing; stage the volume first";
            Err(Status::from_driver(Code::FailedPrecondition, text))
        }
        _ => Ok(()),
    }
}

fn check_field(field: &str, value: Field<'_>) -> Checked {
    match value {
        Field::Name(value) => name(value),
        Field::Id(value) | Field::NodeId(value) => given(field, value),
        Field::Ids([]) => Err(missing(field)),
        Field::Ids(all) => all.iter().try_for_each(|id| given(field, id)),
        Field::Path(value) => path(field, value),
        Field::Range(value) => range(value),
        Field::RequiredRange(None) => Err(missing(field)),
        Field::RequiredRange(value) => range(value),
        Field::Capability(None) | Field::Capabilities([]) => Err(missing(field)),
        Field::Capability(Some(value)) | Field::OptionalCapability(Some(value)) => capability(value),
        Field::Capabilities(all) | Field::OptionalCapabilities(all) => all.iter().try_for_each(capability),
        Field::ContentSource(value) => source(value),
        Field::MaxEntries(value) if value < 0 => Err(invalid(format!("{field} is negative"))),
        Field::Text(_)
        | Field::Texts(_)
        | Field::Flags(_)
        | Field::OptionalNodeId(_)
        | Field::NodeIds(_)
        | Field::OptionalPath(_)
        | Field::Map(_)
        | Field::Context(_)
        | Field::Secrets(_)
        | Field::OptionalCapability(None)
        | Field::MaxEntries(_)
        | Field::Message(_) => Ok(()),
    }
}

fn missing(field: &str) -> Status {
    invalid(format!("{field} is missing"))
}

fn given(field: &str, value: &str) -> Checked {
    if value.is_empty() { Err(missing(field)) } else { Ok(()) }
}

/// A name may hold anything but control characters. CSI does not count tabs and line breaks among them.
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

fn capability(one: &VolumeCapability) -> Checked {
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
