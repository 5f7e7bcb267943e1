//! Whether the driver is alive, as kubelet's HTTP probe asks it.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use csi::{Call, Response, v1};
use io_csi::CsiClient;

/// Asks the driver now: `ok` only if it answers that it is ready.
pub async fn health(client: &Arc<CsiClient>, socket: &str, timeout: Duration) -> Result<(), (StatusCode, String)> {
    let wrong = |why: String| Err((StatusCode::INTERNAL_SERVER_ERROR, why));
    match client.call(socket, Call::Probe(v1::ProbeRequest {}), timeout).await {
        Ok(Response::Probe(said)) if said.ready.unwrap_or(true) => Ok(()),
        Ok(_) => wrong("the driver says that it is not ready".into()),
        Err(status) => wrong(status.message),
    }
}
