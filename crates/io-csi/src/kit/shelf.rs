//! What can be answered from a ledger alone.

use std::ops::Bound;

use csi::v1::validate_volume_capabilities_response::Confirmed;
use csi::{Call, Code, Response, Status, v1};

use super::Ledger;

/// The answer, if the ledger is enough for it.
pub fn answer(ledger: &Ledger, call: &Call) -> Option<Result<Response, Status>> {
    Some(match call {
        Call::ListVolumes(request) => list(ledger, request).map(Response::ListVolumes),
        Call::ControllerGetVolume(request) => known(ledger, &request.volume_id).map(|volume| {
            Response::ControllerGetVolume(v1::ControllerGetVolumeResponse { volume: Some(volume), status: None })
        }),
        Call::ValidateVolumeCapabilities(request) => {
            validate(ledger, request.clone()).map(Response::ValidateVolumeCapabilities)
        }
        _ => return None,
    })
}

fn known(ledger: &Ledger, id: &str) -> Result<v1::Volume, Status> {
    ledger.get(id).ok_or_else(|| Status::from_driver(Code::NotFound, "there is no such volume"))
}

/// A page ends with a token that is the last id on it. Volumes that come and go between pages move nothing.
fn list(ledger: &Ledger, request: &v1::ListVolumesRequest) -> Result<v1::ListVolumesResponse, Status> {
    let after = match request.starting_token.as_str() {
        "" => Bound::Unbounded,
        token => match token.strip_prefix("after-").filter(|id| super::is_id(id)) {
            Some(id) => Bound::Excluded(id),
            None => {
                let text = "the list cannot be continued from that token; begin anew";
                return Err(Status::from_driver(Code::Aborted, text));
            }
        },
    };
    let later = |volume: &v1::Volume| match after {
        Bound::Excluded(id) => volume.volume_id.as_str() > id,
        Bound::Included(_) | Bound::Unbounded => true,
    };
    let most = usize::try_from(request.max_entries).ok().filter(|most| *most > 0).unwrap_or(usize::MAX);
    let mut volumes: Vec<v1::Volume> = ledger.volumes().into_iter().filter(later).collect();
    let more = volumes.len() > most;
    volumes.truncate(most);
    let next_token = volumes.last().filter(|_| more).map(|last| format!("after-{}", last.volume_id));
    let entry = |volume| v1::list_volumes_response::Entry { volume: Some(volume), status: None };
    Ok(v1::ListVolumesResponse {
        entries: volumes.into_iter().map(entry).collect(),
        next_token: next_token.unwrap_or_default(),
    })
}

/// A volume can do what it was made for.
fn validate(
    ledger: &Ledger,
    request: v1::ValidateVolumeCapabilitiesRequest,
) -> Result<v1::ValidateVolumeCapabilitiesResponse, Status> {
    let volume = known(ledger, &request.volume_id)?;
    let made_for = ledger.request(&volume.volume_id).unwrap_or_default();
    let wrong = if !request.volume_capabilities.iter().all(|one| made_for.volume_capabilities.contains(one)) {
        "the volume was made for other capabilities"
    } else if !request.volume_context.is_empty() && request.volume_context != volume.volume_context {
        "the volume has another context"
    } else if !request.parameters.is_empty() && request.parameters != made_for.parameters {
        "the volume was made with other parameters"
    } else {
        let confirmed = Confirmed {
            volume_context: request.volume_context,
            volume_capabilities: request.volume_capabilities,
            parameters: request.parameters,
            mutable_parameters: request.mutable_parameters,
        };
        return Ok(v1::ValidateVolumeCapabilitiesResponse { confirmed: Some(confirmed), message: String::new() });
    };
    Ok(v1::ValidateVolumeCapabilitiesResponse { confirmed: None, message: wrong.to_owned() })
}
