//! Reads what came back on a connection, and says who made it.

use bytes::{Bytes, BytesMut};
use csi::{Code, Method, Response, Status};
use http::HeaderMap;
use http_body_util::BodyExt;
use tonic::body::Body;

use crate::wire;

/// Reads an answer to its end. The outer error is one of the connection, which broke on the way.
pub async fn read(
    socket: &str,
    method: Method,
    answer: http::Response<Body>,
) -> Result<Result<Response, Status>, tonic::Status> {
    let (head, mut body) = answer.into_parts();
    // A refusal without a message comes in the head.
    if let Some(status) = sent_status(&head.headers)
        && status.code != Code::Ok
    {
        return Ok(Err(status));
    }
    if head.status != http::StatusCode::OK {
        return Ok(Err(odd(socket, method, &format!("answered with HTTP status {}", head.status.as_u16()))));
    }
    let mut message = BytesMut::new();
    let mut trailers = None;
    while let Some(frame) = body.frame().await {
        match frame?.into_data() {
            Ok(data) if message.len() + data.len() > wire::LARGEST_MESSAGE + 5 => {
                return Ok(Err(odd(socket, method, "sent more than 16 MiB")));
            }
            Ok(data) => message.extend_from_slice(&data),
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    let status = trailers.as_ref().and_then(sent_status).or_else(|| sent_status(&head.headers));
    Ok(judge(socket, method, status, &message.freeze()))
}

fn judge(socket: &str, method: Method, status: Option<Status>, body: &Bytes) -> Result<Response, Status> {
    match status {
        None => Err(odd(socket, method, "ended its answer without a status")),
        Some(status) if status.code != Code::Ok => Err(status),
        // From here on the driver says that it did it; if we cannot read what it says, that is our trouble.
        Some(_) => match wire::unframe(body).map(|message| wire::decode_response(method, message)) {
            Some(Ok(response)) => Ok(response),
            Some(Err(_)) | None => Err(odd(socket, method, "sent a message that cannot be read")),
        },
    }
}

/// The status the other side put into headers or trailers. The gRPC library is not asked for the code: it puts in a
/// code of its own where it cannot read the text.
fn sent_status(headers: &HeaderMap) -> Option<Status> {
    let number = headers.get("grpc-status")?.to_str().ok()?.parse().ok()?;
    let text = tonic::Status::from_header_map(headers).map(|status| status.message().to_owned()).unwrap_or_default();
    Some(Status::from_driver(Code::from_number(number), text))
}

fn odd(socket: &str, method: Method, what: &str) -> Status {
    let text = format!("the driver at {socket} {what} when asked for {}; is it a CSI driver?", method.name());
    Status::local(Code::Internal, text)
}
