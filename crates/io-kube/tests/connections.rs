//! Our connections to the server: who shares one, and what happens when it ends.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

mod stand;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::Kind;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json, Router};
use control::{Outcome, Reply};
use futures::StreamExt;
use http::Version;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use io_kube::{Kube, WatchEvent};
use serde_json::{Value, json};
use stand::{Authority, BOTH, Ledger, Peer, cluster, create, empty_list, kubeconfig, serve, tls};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Barrier, mpsc, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

async fn connect(port: u16, authority: &Authority) -> Kube {
    let folder = tempfile::tempdir().unwrap();
    let path = kubeconfig(folder.path(), &cluster(port, authority), &["{}".into()]);
    Kube::from_kubeconfig(&path).await.unwrap()
}

fn speaking(authority: &Authority, protocols: &[&str]) -> rustls::ServerConfig {
    tls(&authority.sign(&["127.0.0.1"]), None, protocols)
}

#[tokio::test]
async fn watches_and_a_hundred_requests_at_once_share_one_connection() {
    const WATCHED: [Kind; 4] = [Kind::Node, Kind::CSINode, Kind::CSIDriver, Kind::VolumeAttachment];
    let authority = Authority::new();
    let (all, used) = (Arc::new(Barrier::new(100)), Arc::<Mutex<Vec<(usize, bool)>>>::default());
    let (tell, mut watching) = mpsc::unbounded_channel();
    let seen = used.clone();
    let router = Router::new().fallback(move |Extension(peer): Extension<Peer>, request: Request| async move {
        seen.lock().unwrap().push((peer.connection, request.version() == Version::HTTP_2));
        if request.uri().query().unwrap_or_default().contains("watch=true") {
            tell.send(()).unwrap();
            return flood(0);
        }
        if request.uri().path().ends_with("/storageclasses") {
            // Nobody is answered before everybody has asked.
            all.wait().await;
        }
        empty_list()
    });
    let port = serve(speaking(&authority, &BOTH), router).await;
    let kube = connect(port, &authority).await;
    kube.greet().await.unwrap();
    let (send, _news) = mpsc::channel(16);
    for kind in WATCHED {
        tokio::spawn(kube.clone().watch(kind, send.clone()));
        watching.recv().await.unwrap();
    }
    let asking: Vec<_> = (0..100)
        .map(|_| {
            let kube = kube.clone();
            tokio::spawn(async move { kube.list(Kind::StorageClass).await })
        })
        .collect();
    for asked in asking {
        asked.await.unwrap().unwrap();
    }
    let used = used.lock().unwrap();
    assert_eq!(used.len(), 1 + 2 * WATCHED.len() + 100);
    assert!(used.iter().all(|one| *one == (0, true)), "{used:?}");
}

#[tokio::test]
async fn a_server_that_speaks_only_http1_is_served_too() {
    let authority = Authority::new();
    let (ledger, all) = (Ledger::default(), Arc::new(Barrier::new(5)));
    let waiting = all.clone();
    let router =
        ledger.router().layer(axum::middleware::from_fn(move |request: Request, next: axum::middleware::Next| {
            let all = waiting.clone();
            async move {
                assert_eq!(request.version(), Version::HTTP_11);
                all.wait().await;
                next.run(request).await
            }
        }));
    let kube = connect(serve(speaking(&authority, &["http/1.1"]), router).await, &authority).await;
    let writing: Vec<_> = (0..5)
        .map(|number| {
            let kube = kube.clone();
            tokio::spawn(async move { kube.write(&create(&format!("c{number}"))).await })
        })
        .collect();
    for written in writing {
        assert!(matches!(written.await.unwrap(), Outcome::Done(Reply::Object(_))));
    }
    assert!((0..5).all(|number| ledger.of(&format!("c{number}")) == 1));
}

// Reliability 1 to 3, over HTTP/1.1: the server takes a second request on the connection and ends it without an answer.
#[tokio::test]
async fn a_write_whose_http1_connection_ends_is_unknown_and_not_made_again() {
    let authority = Authority::new();
    let ledger = Ledger::default();
    let acceptor = TlsAcceptor::from(Arc::new(speaking(&authority, &["http/1.1"])));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let router = ledger.router();
    tokio::spawn(async move {
        let mut stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
        read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
        read_head(&mut stream).await;
        drop(stream);
        loop {
            let stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
            let service = TowerToHyperService::new(router.clone());
            tokio::spawn(async move {
                let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    let kube = connect(port, &authority).await;
    assert_eq!(kube.get_raw("/version").await.unwrap().0, 200);
    let lost = kube.write(&create("c")).await;
    assert!(matches!(lost, Outcome::Unknown(_)) && ledger.of("c") == 0, "{lost:?}");
    assert!(matches!(kube.write(&create("next")).await, Outcome::Done(Reply::Object(_))));
}

/// Reads the head of an HTTP/1.1 request, and what else comes with it.
async fn read_head(stream: &mut TlsStream<TcpStream>) {
    let mut read = Vec::new();
    while !read.windows(4).any(|end| end == b"\r\n\r\n") {
        assert_ne!(stream.read_buf(&mut read).await.unwrap(), 0);
    }
}

// The API server says goodbye now and then so that connections spread over its replicas (--goaway-chance).
#[tokio::test]
async fn a_goodbye_loses_no_request_and_repeats_none() {
    let authority = Authority::new();
    let ledger = Ledger::default();
    let acceptor = TlsAcceptor::from(Arc::new(speaking(&authority, &BOTH)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (goodbye, heard) = watch::channel(0);
    let router = ledger.router();
    let (connected, mut connections) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        loop {
            let stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
            let (router, mut heard) = (router.clone(), heard.clone());
            connected.send(()).unwrap();
            tokio::spawn(async move {
                let builder = auto::Builder::new(TokioExecutor::new());
                let serving = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
                tokio::pin!(serving);
                heard.mark_unchanged();
                tokio::select! {
                    _ = serving.as_mut() => return,
                    _ = heard.changed() => serving.as_mut().graceful_shutdown(),
                }
                let _ = serving.await;
            });
        }
    });
    let kube = connect(port, &authority).await;
    let writing = futures::stream::iter(0..200).map(|number| {
        let (kube, goodbye) = (kube.clone(), goodbye.clone());
        async move {
            if number % 20 == 19 {
                goodbye.send(number).unwrap();
                tokio::task::yield_now().await;
            }
            kube.write(&create(&format!("c{number}"))).await
        }
    });
    let mut writing = writing.buffer_unordered(16);
    while let Some(outcome) = writing.next().await {
        assert!(matches!(outcome, Outcome::Done(Reply::Object(_))), "{outcome:?}");
    }
    goodbye.send(1000).unwrap();
    assert!(matches!(kube.write(&create("last")).await, Outcome::Done(Reply::Object(_))));
    let created = ledger.0.lock().unwrap().clone();
    assert!(created.len() == 201 && created.values().all(|times| *times == 1), "{created:?}");
    let mut connected = 0;
    while connections.try_recv().is_ok() {
        connected += 1;
    }
    assert!(connected > 1, "goodbyes lead to new connections");
}

/// What a server does with the first request of a connection.
#[derive(Clone, Copy)]
enum First {
    /// Goodbye, and this was the last stream it looked at.
    Goodbye(u32),
    /// Resets the stream, for this reason.
    Reset(u32),
    /// Ends the connection without a word.
    Silence,
}

const REFUSED_STREAM: u32 = 7;
const INTERNAL_ERROR: u32 = 2;

fn frame(kind: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, 0], &stream.to_be_bytes(), payload].concat()
}

/// Begins to speak, as a server.
async fn begin(stream: &mut TlsStream<TcpStream>) {
    let mut preface = [0; 24];
    stream.read_exact(&mut preface).await.unwrap();
    stream.write_all(&frame(4, 0, &[])).await.unwrap();
}

/// Reads frames until a request comes, and answers its stream; nothing if none comes any more.
async fn next_request(stream: &mut TlsStream<TcpStream>) -> Option<u32> {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await.ok()?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload).await.ok()?;
        if head[3] == 1 {
            return Some(u32::from_be_bytes([head[5], head[6], head[7], head[8]]));
        }
    }
}

/// Waits for the first request, then does what it is told.
async fn misbehave(stream: &mut TlsStream<TcpStream>, first: First) {
    begin(stream).await;
    let id = next_request(stream).await.unwrap();
    match first {
        First::Goodbye(last) => {
            stream.write_all(&frame(7, 0, &[last.to_be_bytes(), [0; 4]].concat())).await.unwrap();
        }
        First::Reset(reason) => stream.write_all(&frame(3, id, &reason.to_be_bytes())).await.unwrap(),
        First::Silence => {}
    }
    stream.flush().await.unwrap();
}

/// The outcome of one write on a server that does this with it first and works from then on, and how often it created it.
async fn written_to(first: First) -> (Outcome, usize) {
    let authority = Authority::new();
    let ledger = Ledger::default();
    let acceptor = TlsAcceptor::from(Arc::new(speaking(&authority, &["h2"])));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (router, again) = (ledger.router(), ledger.clone());
    tokio::spawn(async move {
        let mut stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
        misbehave(&mut stream, first).await;
        if matches!(first, First::Reset(_)) {
            // A reset is about one stream: whoever tries again does so on the same connection.
            while next_request(&mut stream).await.is_some() {
                *again.0.lock().unwrap().entry("c".into()).or_default() += 1;
            }
        }
        drop(stream);
        loop {
            let stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
            let service = TowerToHyperService::new(router.clone());
            tokio::spawn(async move {
                let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    let kube = connect(port, &authority).await;
    // Whoever is not answered at once never is.
    let writing = tokio::time::timeout(Duration::from_secs(5), kube.write(&create("c"))).await;
    (writing.unwrap_or(Outcome::Unknown("no answer".into())), ledger.of("c"))
}

// A server that says it has not looked at a request is asked again, whatever the request was.
#[tokio::test]
async fn a_request_the_server_has_not_begun_is_made_again() {
    let (outcome, created) = written_to(First::Goodbye(0)).await;
    assert!(matches!(outcome, Outcome::Done(Reply::Object(_))) && created == 1, "{outcome:?} {created}");
}

// Reliability 1 to 3: what may have happened is not repeated behind the rules' back.
#[tokio::test]
async fn a_write_the_server_may_have_begun_is_unknown_and_not_made_again() {
    for first in [First::Goodbye(1), First::Reset(INTERNAL_ERROR), First::Silence] {
        let (outcome, created) = written_to(first).await;
        assert!(matches!(outcome, Outcome::Unknown(_)) && created == 0, "{outcome:?} {created}");
    }
}

// On the same connection, which may stay as busy as it is: so only a few times.
#[tokio::test]
async fn a_stream_that_is_refused_again_and_again_is_unknown_in_the_end() {
    let authority = Authority::new();
    let acceptor = TlsAcceptor::from(Arc::new(speaking(&authority, &["h2"])));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let refused = Arc::<Mutex<usize>>::default();
    let counting = refused.clone();
    tokio::spawn(async move {
        let mut stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
        begin(&mut stream).await;
        while let Some(id) = next_request(&mut stream).await {
            *counting.lock().unwrap() += 1;
            stream.write_all(&frame(3, id, &REFUSED_STREAM.to_be_bytes())).await.unwrap();
            stream.flush().await.unwrap();
        }
    });
    let outcome = connect(port, &authority).await.write(&create("c")).await;
    assert!(matches!(outcome, Outcome::Unknown(_)), "{outcome:?}");
    assert_eq!(*refused.lock().unwrap(), 4);
}

/// Events of this many kilobytes in all, and then silence.
fn flood(kilobytes: usize) -> Response {
    let line = |number: usize| {
        let meta = json!({ "name": format!("c{number}"), "resourceVersion": (number + 10).to_string(),
                           "annotations": { "padding": "x".repeat(1000) } });
        let object = json!({ "metadata": meta, "provisioner": "p" });
        format!("{}\n", json!({ "type": "ADDED", "object": object }))
    };
    let lines: Vec<Result<String, std::io::Error>> = (0..kilobytes).map(|number| Ok(line(number))).collect();
    let stream = futures::stream::iter(lines);
    axum::body::Body::from_stream(stream.chain(futures::stream::pending())).into_response()
}

// Flow control is per stream and per connection: one watch that nobody reads must not use up what others need.
#[tokio::test]
async fn a_long_list_comes_whole_while_watches_that_nobody_reads_are_full() {
    let authority = Authority::new();
    let router = Router::new().fallback(|request: Request| async move {
        if request.uri().query().unwrap_or_default().contains("watch=true") {
            return flood(2_500);
        }
        if request.uri().path().ends_with("storageclasses") {
            return empty_list();
        }
        let item = |number: usize| json!({ "metadata": { "name": format!("n{number}"), "annotations": { "p": "x".repeat(20_000) } } });
        let items: Vec<Value> = (0..250).map(item).collect();
        Json(json!({ "kind": "NodeList", "metadata": { "resourceVersion": "7" }, "items": items })).into_response()
    });
    let kube = connect(serve(speaking(&authority, &BOTH), router).await, &authority).await;
    let mut unread = Vec::new();
    for _ in 0..4 {
        let (send, mut news) = mpsc::channel(1);
        tokio::spawn(kube.clone().watch(Kind::StorageClass, send));
        assert!(matches!(news.recv().await, Some(WatchEvent::InitDone { .. })));
        assert!(matches!(news.recv().await, Some(WatchEvent::Apply(_))));
        unread.push(news);
    }
    let listed = tokio::time::timeout(Duration::from_secs(60), kube.list(Kind::Node)).await.unwrap();
    assert_eq!(listed.unwrap().1.len(), 250);
    // And what waited is still there, in order.
    let mut news = unread.pop().unwrap();
    for number in 1..2_500 {
        let Some(WatchEvent::Apply(object)) = news.recv().await else { panic!("a gap after {number}") };
        assert_eq!(object.meta().name, format!("c{number}"));
    }
}

/// Leads to this port until it is frozen: then nothing passes any more on connections there are, and nobody is told.
async fn line_to(port: u16) -> (u16, watch::Sender<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let here = listener.local_addr().unwrap().port();
    let (freeze, frozen) = watch::channel(false);
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut frozen = frozen.clone();
            frozen.mark_unchanged();
            tokio::spawn(async move {
                let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                tokio::select! {
                    _ = copy_bidirectional(&mut client, &mut server) => {}
                    _ = frozen.changed() => std::future::pending().await,
                }
            });
        }
    });
    (here, freeze)
}

// Reliability 96: a watch on a connection that is dead would be quiet for ever.
#[tokio::test]
async fn a_dead_connection_is_noticed_and_its_watch_goes_on_over_another() {
    let authority = Authority::new();
    let (tell, mut told) = mpsc::unbounded_channel();
    let router = Router::new().fallback(move |Extension(peer): Extension<Peer>, request: Request| async move {
        if request.uri().query().unwrap_or_default().contains("watch=true") {
            tell.send(peer.connection).unwrap();
            return flood(1);
        }
        empty_list()
    });
    let (port, freeze) = line_to(serve(speaking(&authority, &BOTH), router).await).await;
    let kube = connect(port, &authority).await;
    let (send, mut news) = mpsc::channel(16);
    tokio::spawn(kube.watch(Kind::StorageClass, send));
    assert!(matches!(news.recv().await, Some(WatchEvent::InitDone { .. })));
    assert!(matches!(news.recv().await, Some(WatchEvent::Apply(_))));
    let before = told.recv().await.unwrap();
    freeze.send(true).unwrap();
    // Asked after half a minute, given up a quarter of a minute later.
    tokio::time::pause();
    for _ in 0..50 {
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    tokio::time::resume();
    let after = tokio::time::timeout(Duration::from_secs(20), told.recv()).await.unwrap().unwrap();
    assert_ne!(before, after);
}
