//! Peers that misbehave, die, or speak in a way of their own.
#![allow(clippy::unwrap_used)]

mod common;

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use common::{Driver, METHODS, Running, SOON, delete, info};
use csi::{Code, Finality, Method, classify};
use http_body_util::{BodyExt, Full};
use io_csi::CsiClient;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tonic::body::Body;

const SERVE_AT: &str = "IO_CSI_TEST_SERVE_AT";

/// Not a behaviour of its own: it is the process the next test kills. Without its variable there is nothing to serve.
#[tokio::test]
async fn serve_in_a_process_of_its_own() {
    if let Some(path) = std::env::var_os(SERVE_AT) {
        let server = io_csi::serve(Path::new(&path), METHODS, Driver::default(), std::future::pending()).await.unwrap();
        server.finished().await.unwrap();
    }
}

fn spawn_driver(path: &Path) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "serve_in_a_process_of_its_own"])
        .env(SERVE_AT, path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

async fn until_it_serves(client: &CsiClient, socket: &str) {
    while client.call(socket, info(), SOON).await.is_err() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

// Reliability 0.3 and 70: a driver killed in the middle of a call has said nothing; its successor answers the next one.
#[tokio::test]
async fn a_driver_killed_in_the_middle_of_a_call_has_said_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("csi.sock");
    let socket = path.to_str().unwrap().to_owned();
    let client = std::sync::Arc::new(CsiClient::new());
    for _ in 0..3 {
        let mut driver = spawn_driver(&path);
        until_it_serves(&client, &socket).await;
        let call = tokio::spawn({
            let (client, socket) = (client.clone(), socket.clone());
            async move { client.call(&socket, delete("wait"), SOON).await }
        });
        // Long enough to be under way; if it is not, the outcome must be the same.
        tokio::time::sleep(Duration::from_millis(50)).await;
        driver.kill().unwrap();
        driver.wait().unwrap();
        let status = call.await.unwrap().unwrap_err();
        assert!(!status.from_driver, "{status}");
        assert_eq!(classify(Method::DeleteVolume, &status), Finality::Unknown);
        assert!(status.message.contains("broke before it answered DeleteVolume"), "{status}");
    }
}

#[tokio::test]
async fn a_peer_that_hangs_up_at_once_has_said_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("csi.sock");
    let listener = UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        loop {
            drop(listener.accept().await);
        }
    });
    let status = CsiClient::new().call(path.to_str().unwrap(), delete("1"), SOON).await.unwrap_err();
    assert!(!status.from_driver, "{status}");
}

type Answer = fn() -> http::Response<Body>;

/// A server that answers everything with one and the same HTTP answer.
async fn odd_driver(path: PathBuf, answer: Answer) {
    let listener = UnixListener::bind(path).unwrap();
    tokio::spawn(async move {
        let service = tower::service_fn(move |_: http::Request<Body>| async move { Ok::<_, Infallible>(answer()) });
        let incoming = tokio_stream::wrappers::UnixListenerStream::new(listener);
        tonic::transport::Server::builder().serve_with_incoming(service, incoming).await.unwrap();
    });
}

fn answer(status: u16, trailer: Option<&'static str>, body: Vec<u8>) -> http::Response<Body> {
    let body = Full::new(Bytes::from(body)).with_trailers(async move {
        trailer.map(|status| {
            let mut trailers = http::HeaderMap::new();
            trailers.insert("grpc-status", http::HeaderValue::from_static(status));
            Ok(trailers)
        })
    });
    let mut answer = http::Response::new(Body::new(body));
    *answer.status_mut() = http::StatusCode::from_u16(status).unwrap();
    answer
}

// Reliability 70: a proxy's error page, a cut answer, a message too large or unreadable are nobody's final word, though
// a gRPC library makes a status without a cause from each of them.
#[tokio::test]
async fn an_answer_that_cannot_be_understood_is_not_the_drivers_word() {
    let odd: [(&str, Answer); 7] = [
        ("HTTP status 503", || answer(503, None, vec![])),
        ("without a status", || answer(200, None, vec![0, 0, 0, 0, 0])),
        ("without a status", || answer(200, Some("nonsense"), vec![0, 0, 0, 0, 0])),
        ("cannot be read", || answer(200, Some("0"), vec![])),
        ("cannot be read", || answer(200, Some("0"), vec![0, 0, 0, 0, 2, 0xff, 0xff])),
        ("cannot be read", || answer(200, Some("0"), vec![1, 0, 0, 0, 0])),
        ("more than 16 MiB", || answer(200, Some("0"), vec![0; 17 << 20])),
    ];
    let dir = tempfile::tempdir().unwrap();
    let client = CsiClient::new();
    for (number, (words, answer)) in odd.into_iter().enumerate() {
        let path = dir.path().join(number.to_string());
        odd_driver(path.clone(), answer).await;
        let status = client.call(path.to_str().unwrap(), delete("1"), SOON).await.unwrap_err();
        assert!(!status.from_driver && status.message.contains(words), "{status}");
    }
}

#[tokio::test]
async fn codes_nobody_assigned_and_texts_that_cannot_be_read_keep_their_meaning() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("csi.sock");
    odd_driver(path.clone(), || {
        let mut answer = answer(200, None, vec![]);
        answer.headers_mut().insert("grpc-status", http::HeaderValue::from_static("10"));
        answer.headers_mut().insert("grpc-message", http::HeaderValue::from_static("%ff%fe"));
        answer
    })
    .await;
    let status = CsiClient::new().call(path.to_str().unwrap(), delete("1"), SOON).await.unwrap_err();
    assert_eq!((status.code, status.from_driver), (Code::Aborted, true));
}

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

fn field(first: &[u8], value: &str) -> Vec<u8> {
    [first, &[u8::try_from(value.len()).unwrap()], value.as_bytes()].concat()
}

// A caller that puts the percent-encoded path into `:authority`, as the kubelet's plugin manager does: three calls on
// one connection, the later ones referring to the first one's authority through the table.
#[tokio::test]
async fn a_caller_with_a_path_as_authority_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let running = Running::at(dir.path().join("csi.sock")).await;
    let authority = running.socket().replace('/', "%2F");
    let mut stream = UnixStream::connect(&running.path).await.unwrap();
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    let first = [
        &[0x83, 0x86][..],
        &field(&[0x44], Method::GetPluginInfo.path()),
        &field(&[0x41], &authority),
        &field(&[0x5f], "application/grpc"),
        &field(&[&[0x40, 2][..], b"te"].concat(), "trailers"),
    ]
    .concat();
    // The table now holds, newest first: te, content-type, authority, path.
    let later = [0x83, 0x86, 0xc1, 0xc0, 0xbf, 0xbe];
    for (stream, block) in [(1, &first[..]), (3, &later), (5, &later)] {
        bytes.extend(frame(1, 4, stream, block));
        bytes.extend(frame(0, 1, stream, &[0, 0, 0, 0, 0]));
    }
    stream.write_all(&bytes).await.unwrap();

    let (mut served, mut ended) = (0, 0);
    while ended < 3 {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.unwrap();
        let mut payload = vec![0; usize::try_from(u32::from_be_bytes([0, head[0], head[1], head[2]])).unwrap()];
        stream.read_exact(&mut payload).await.unwrap();
        let (kind, flags) = (head[3], head[4]);
        assert!(kind != 3 && kind != 7, "refused: {head:?}");
        if kind == 0 && payload.windows(11).any(|window| window == b"test.driver") {
            served += 1;
        }
        if flags & 1 != 0 && kind <= 1 {
            ended += 1;
        }
    }
    assert_eq!(served, 3);
}
