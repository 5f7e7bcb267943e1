//! `POST` or `GET /api/v1/namespaces/{namespace}/pods/{name}/exec`: a command in a container over a WebSocket.
//!
//! The protocol is `v5.channel.k8s.io`: every message begins with the number of a channel, which are the three streams,
//! how the command ended, and the size of the terminal; a message on channel 255 says that another one is closed.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::FromRequestParts as _;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::IntoResponse as _;
use bytes::{BufMut as _, Bytes, BytesMut};
use http::Response;
use http::request::Parts;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::read::{self, End};
use super::{RequestInfo, read::choose_container};
use crate::Core;
use crate::exec::{ExecError, ExecRequest, ExecSession};
use crate::refusal::Refusal;
use crate::tls::Closing;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
const CLOSED: u8 = 255;
const PROTOCOL: &str = "v5.channel.k8s.io";
/// The largest message a client may send; clients send 32 KiB at once.
const LARGEST: usize = 1 << 20;
/// How long output may still come after the command has ended: something it left behind may hold its streams.
const DRAIN: Duration = Duration::from_secs(2);
/// How long a client may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(2);

/// Runs a command. What is wrong with the request is said before it is asked which protocol the client speaks: kubectl
/// asks again in an older one after any refusal, and shows what it hears then.
pub(crate) async fn exec(
    core: &Arc<Core>,
    parts: &Parts,
    info: &RequestInfo,
    end: End,
) -> Result<Response<Body>, Refusal> {
    let Some(source) = &core.exec else { return Err(super::absent::part(&info.path)) };
    let pod = read::find(core, &info.path)?;
    let options = &info.options;
    let container = choose_container(&pod, options.container.as_deref())?;
    if options.command.is_empty() {
        return Err(Refusal::bad_request("exec needs a command; give one after `--`"));
    }
    let mut own = parts.clone();
    let upgrade = WebSocketUpgrade::from_request_parts(&mut own, &()).await.map_err(|_| old_protocol())?;
    if !upgrade.requested_protocols().any(|asked| asked.as_bytes() == PROTOCOL.as_bytes()) {
        return Err(old_protocol());
    }
    let request = ExecRequest {
        namespace: info.path.namespace.clone(),
        name: info.path.name.clone(),
        uid: pod.uid().to_owned(),
        container,
        command: options.command.clone(),
        stdin: options.stdin,
        tty: options.tty,
    };
    let session = source.exec(request).await.map_err(|error| Refusal::bad_request(error.to_string()))?;
    let upgrade = upgrade.protocols([PROTOCOL]).max_message_size(LARGEST);
    Ok(upgrade.on_upgrade(move |socket| carry(socket, session, end)).into_response())
}

fn old_protocol() -> Refusal {
    Refusal::bad_request(
        "exec is served over WebSocket (v5.channel.k8s.io) alone; use kubectl 1.31 or newer, or set \
         KUBECTL_REMOTE_COMMAND_WEBSOCKETS=true for 1.29 and 1.30",
    )
}

/// Carries everything both ways until the command has ended, the client is gone, or neither may go on.
async fn carry(mut socket: WebSocket, mut session: ExecSession, end: End) {
    // Tells the client that it is connected.
    if send(&mut socket, STDOUT, &[]).await.is_none() {
        return;
    }
    let stop = async move {
        let closing = async {
            match end.closing {
                Some(Closing(mut closing)) => drop(closing.wait_for(|closing| *closing).await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = closing => "the server stops",
            _refusal = end.rights => "the caller may no longer run commands here",
        }
    };
    let status = tokio::select! {
        status = talk(&mut socket, &mut session) => status,
        why = stop => Some(failure(why)),
    };
    let Some(status) = status else { return };
    if send(&mut socket, ERROR, status.to_string().as_bytes()).await.is_none() {
        return;
    }
    let goodbye = CloseFrame { code: close_code::NORMAL, reason: "".into() };
    let _ = socket.send(Message::Close(Some(goodbye))).await;
    let _ = tokio::time::timeout(GOODBYE, async { while let Some(Ok(_)) = socket.recv().await {} }).await;
}

/// The status that is told at the end; `None` when nobody is there to hear it.
async fn talk(socket: &mut WebSocket, session: &mut ExecSession) -> Option<Value> {
    let (mut out, mut err) = (true, true);
    let mut ended = None;
    let far = tokio::time::Instant::now() + Duration::from_secs(100 * 365 * 24 * 3600);
    let mut until = far;
    loop {
        if let (Some(status), false, false) = (&ended, out, err) {
            return Some(Value::clone(status));
        }
        tokio::select! {
            biased;
            some = session.stdout.recv(), if out => match some {
                Some(bytes) => send(socket, STDOUT, &bytes).await?,
                None => out = false,
            },
            some = session.stderr.recv(), if err => match some {
                Some(bytes) => send(socket, STDERR, &bytes).await?,
                None => err = false,
            },
            got = &mut session.ended, if ended.is_none() => {
                ended = Some(status(got.unwrap_or(Err(ExecError::Unheard))));
                until = tokio::time::Instant::now() + DRAIN;
            }
            () = tokio::time::sleep_until(until), if ended.is_some() => (out, err) = (false, false),
            message = socket.recv() => match message? {
                Ok(Message::Binary(message)) => take(&message, session).await,
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_others) => {}
            },
        }
    }
}

/// Takes in what a client sent.
async fn take(message: &Bytes, session: &mut ExecSession) {
    match message.split_first() {
        Some((&STDIN, bytes)) if !bytes.is_empty() => {
            let sent = match &session.stdin {
                Some(stdin) => stdin.send(message.slice(1..)).await.is_ok(),
                None => true,
            };
            if !sent {
                session.stdin = None;
            }
        }
        Some((&CLOSED, [STDIN])) => session.stdin = None,
        Some((&RESIZE, bytes)) => resize(bytes, &session.size),
        // What no client sends means nothing.
        Some(_) | None => {}
    }
}

fn resize(bytes: &[u8], size: &mpsc::Sender<(u16, u16)>) {
    let told: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let number = |name: &str| told[name].as_u64().and_then(|number| u16::try_from(number).ok());
    if let (Some(columns), Some(rows)) = (number("Width"), number("Height")) {
        // One that does not fit in the queue is followed by others.
        let _ = size.try_send((columns, rows));
    }
}

async fn send(socket: &mut WebSocket, channel: u8, bytes: &[u8]) -> Option<()> {
    let mut message = BytesMut::with_capacity(bytes.len() + 1);
    message.put_u8(channel);
    message.put_slice(bytes);
    socket.send(Message::Binary(message.freeze())).await.ok()
}

fn status(ended: Result<i32, ExecError>) -> Value {
    match ended {
        Ok(0) => json!({ "metadata": {}, "status": "Success" }),
        Ok(code) => json!({
            "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
            "message": format!("command terminated with exit code {code}"),
            "details": { "causes": [{ "reason": "ExitCode", "message": code.to_string() }] },
        }),
        Err(error) => failure(&error.to_string()),
    }
}

fn failure(why: &str) -> Value {
    json!({ "metadata": {}, "status": "Failure", "reason": "InternalError", "message": why, "code": 500,
            "details": { "causes": [{ "message": why }] } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_command_is_told_as_kubernetes_tells_it() {
        assert_eq!(status(Ok(0))["status"], "Success");
        let three = status(Ok(3));
        assert_eq!(
            (&three["reason"], &three["details"]["causes"][0]["message"]),
            (&json!("NonZeroExitCode"), &json!("3"))
        );
        assert_eq!(status(Err(ExecError::Failed("no".into())))["message"], "no");
    }

    #[tokio::test]
    async fn what_a_client_sends_is_sorted_by_channel() {
        let (stdin, mut input) = mpsc::channel(4);
        let (size, mut sizes) = mpsc::channel(4);
        let (_, nothing) = mpsc::channel(1);
        let (_, none) = mpsc::channel(1);
        let (_keep, ended) = tokio::sync::oneshot::channel();
        let mut session = ExecSession { stdin: Some(stdin), stdout: nothing, stderr: none, size, ended };
        for message in
            [&b"\x00ab"[..], b"\x00", b"", b"\x01x", b"\x04{\"Width\":80,\"Height\":24}", b"\x04{}", b"\xff\x01"]
        {
            take(&Bytes::copy_from_slice(message), &mut session).await;
        }
        assert_eq!(input.recv().await.as_deref(), Some(&b"ab"[..]));
        assert_eq!(sizes.recv().await, Some((80, 24)));
        assert!(session.stdin.is_some() && sizes.try_recv().is_err());
        take(&Bytes::from_static(b"\xff\x00"), &mut session).await;
        assert!(session.stdin.is_none() && input.recv().await.is_none());
    }
}
