//! Busy times: the connections beside the shared one.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

mod stand;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use api::Kind;
use axum::Router;
use control::{Outcome, Reply};
use http::{Method, Uri};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use io_kube::Kube;
use stand::{Authority, BOTH, Ledger, cluster, create, kubeconfig, tls};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// What the server does with an HTTP/1.1 connection.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// Serves it.
    Serve,
    /// Waits for a request and ends the connection.
    Swallow,
    /// Ends it at once.
    Close,
}

/// A server that speaks both, and knows how many connections of HTTP/1.1 there are and were.
#[derive(Clone)]
struct Server {
    port: u16,
    manner: Arc<Mutex<Manner>>,
    /// HTTP/1.1: connections there were, there now, most at any time, requests answered, requests swallowed.
    came: watch::Sender<usize>,
    there: watch::Sender<usize>,
    most: Arc<Mutex<usize>>,
    answered: watch::Sender<usize>,
    swallowed: watch::Sender<usize>,
    /// HTTP/2 connections there were.
    shared: watch::Sender<usize>,
    /// Answers to HTTP/2 wait for this.
    open: watch::Sender<bool>,
    ledger: Ledger,
    /// Watches that were asked for over HTTP/2, and over HTTP/1.1.
    watches: watch::Sender<(usize, usize)>,
}

impl Server {
    async fn start() -> (Server, Kube) {
        let authority = Authority::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server {
            port: listener.local_addr().unwrap().port(),
            manner: Arc::new(Mutex::new(Manner::Serve)),
            came: watch::Sender::new(0),
            there: watch::Sender::new(0),
            most: Arc::default(),
            answered: watch::Sender::new(0),
            swallowed: watch::Sender::new(0),
            shared: watch::Sender::new(0),
            open: watch::Sender::new(true),
            ledger: Ledger::default(),
            watches: watch::Sender::new((0, 0)),
        };
        let acceptor = TlsAcceptor::from(Arc::new(tls(&authority.sign(&["127.0.0.1"]), None, &BOTH)));
        let accepting = server.clone();
        tokio::spawn(async move {
            loop {
                let stream = listener.accept().await.unwrap().0;
                let (server, acceptor) = (accepting.clone(), acceptor.clone());
                tokio::spawn(async move { server.meet(acceptor.accept(stream).await.unwrap()).await });
            }
        });
        let folder = tempfile::tempdir().unwrap();
        let path = kubeconfig(folder.path(), &cluster(server.port, &authority), &["{}".into()]);
        (server, Kube::from_kubeconfig(&path).await.unwrap())
    }

    async fn meet(&self, mut stream: TlsStream<TcpStream>) {
        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
            self.shared.send_modify(|count| *count += 1);
            return self.serve(stream, true).await;
        }
        self.came.send_modify(|count| *count += 1);
        self.there.send_modify(|count| *count += 1);
        let now = *self.there.borrow();
        {
            let mut most = self.most.lock().unwrap();
            *most = now.max(*most);
        }
        let manner = *self.manner.lock().unwrap();
        match manner {
            Manner::Serve => self.serve(stream, false).await,
            Manner::Swallow => {
                if stream.read_u8().await.is_ok() {
                    self.swallowed.send_modify(|count| *count += 1);
                }
            }
            Manner::Close => {}
        }
        self.there.send_modify(|count| *count -= 1);
    }

    async fn serve(&self, stream: TlsStream<TcpStream>, shared: bool) {
        let server = self.clone();
        let router = Router::new().fallback(move |method: Method, uri: Uri, body: String| async move {
            if uri.query().unwrap_or_default().contains("watch=true") {
                let count = |(two, one): &mut (usize, usize)| *(if shared { two } else { one }) += 1;
                server.watches.send_modify(count);
            }
            if shared {
                server.open.subscribe().wait_for(|open| *open).await.unwrap();
            } else {
                server.answered.send_modify(|count| *count += 1);
            }
            server.ledger.answer(&method, &body)
        });
        let service = TowerToHyperService::new(router);
        let _ = auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
    }
}

/// Writes in the background.
fn writing(kube: &Kube, name: &str) -> tokio::task::JoinHandle<Outcome> {
    let (kube, write) = (kube.clone(), create(name));
    tokio::spawn(async move { kube.write(&write).await })
}

/// As many requests as share a connection, and one more: none is answered, and there is a connection beside it.
async fn crowd(server: &Server, kube: &Kube) -> Vec<tokio::task::JoinHandle<Outcome>> {
    server.open.send_replace(false);
    let crowd = (0..5).map(|number| writing(kube, &format!("c{number}"))).collect();
    seen(&server.came, |came| *came > 0).await;
    crowd
}

async fn seen(count: &watch::Sender<usize>, wanted: impl FnMut(&usize) -> bool) {
    tokio::time::timeout(Duration::from_secs(60), count.subscribe().wait_for(wanted)).await.unwrap().unwrap();
}

// Connections cost the server memory: in a rush there are many, but never one for each request of it.
#[tokio::test]
async fn a_rush_gets_connections_of_its_own_but_not_too_many() {
    let (server, kube) = Server::start().await;
    kube.greet().await.unwrap();
    let rushing: Vec<_> = (0..100)
        .map(|_| {
            let (kube, server) = (kube.clone(), server.clone());
            tokio::spawn(async move {
                while *server.most.lock().unwrap() < 32 || *server.answered.borrow() < 2_000 {
                    kube.list(Kind::StorageClass).await.unwrap();
                }
            })
        })
        .collect();
    let all = futures::future::join_all(rushing);
    tokio::time::timeout(Duration::from_secs(120), all).await.unwrap();
    assert_eq!((*server.most.lock().unwrap(), *server.shared.borrow()), (32, 1));
}

#[tokio::test]
async fn connections_that_are_not_needed_any_more_are_closed() {
    let (server, kube) = Server::start().await;
    let crowd = crowd(&server, &kube).await;
    server.open.send_replace(true);
    for one in crowd {
        assert!(matches!(one.await.unwrap(), Outcome::Done(Reply::Object(_))));
    }
    tokio::time::pause();
    for _ in 0..40 {
        tokio::time::advance(Duration::from_secs(1)).await;
        tokio::task::yield_now().await;
    }
    tokio::time::resume();
    seen(&server.there, |there| *there == 0).await;
}

// A watch has no end: it would keep a connection from everybody else.
#[tokio::test]
async fn a_watch_shares_however_crowded_it_is() {
    let (server, kube) = Server::start().await;
    let mut all = crowd(&server, &kube).await;
    // The connection is there for the server before it is for us.
    while *server.answered.borrow() == 0 {
        all.push(writing(&kube, &format!("c{}", all.len())));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let kinds = [Kind::StorageClass, Kind::Node, Kind::CSINode, Kind::CSIDriver];
    for kind in kinds {
        let (send, mut news) = tokio::sync::mpsc::channel(1);
        tokio::spawn(kube.clone().watch(kind, send));
        // Its list needs no connection that is held up.
        let listed = tokio::time::timeout(Duration::from_secs(60), news.recv()).await;
        assert!(listed.unwrap().is_some());
    }
    let mut watches = server.watches.subscribe();
    let all = watches.wait_for(|(two, one)| two + one == kinds.len());
    let (two, one) = *tokio::time::timeout(Duration::from_secs(60), all).await.unwrap().unwrap();
    assert_eq!((two, one), (kinds.len(), 0));
}

// Reliability 1 to 3: what may have happened is not repeated behind the rules' back.
#[tokio::test]
async fn a_write_whose_own_connection_ends_is_unknown_and_not_made_again() {
    let (server, kube) = Server::start().await;
    *server.manner.lock().unwrap() = Manner::Swallow;
    let mut all = crowd(&server, &kube).await;
    // The connection is there for the server before it is for us.
    while *server.swallowed.borrow() == 0 {
        all.push(writing(&kube, &format!("c{}", all.len())));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    server.open.send_replace(true);
    let mut lost = 0;
    for (number, one) in all.into_iter().enumerate() {
        let outcome = one.await.unwrap();
        let created = server.ledger.of(&format!("c{number}"));
        match outcome {
            Outcome::Unknown(_) if created == 0 => lost += 1,
            Outcome::Done(Reply::Object(_)) if created == 1 => {}
            other => panic!("c{number} was created {created} times: {other:?}"),
        }
    }
    assert_eq!(lost, *server.swallowed.borrow());
}

#[tokio::test]
async fn a_connection_that_ended_while_nobody_had_it_costs_nobody_anything() {
    let (server, kube) = Server::start().await;
    *server.manner.lock().unwrap() = Manner::Close;
    let mut all = crowd(&server, &kube).await;
    seen(&server.there, |there| *there == 0).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    *server.manner.lock().unwrap() = Manner::Serve;
    for number in 0..50 {
        all.push(writing(&kube, &format!("more{number}")));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(*server.answered.borrow() > 0);
    server.open.send_replace(true);
    for one in all {
        let outcome = one.await.unwrap();
        assert!(matches!(outcome, Outcome::Done(Reply::Object(_))), "{outcome:?}");
    }
    assert!(server.ledger.0.lock().unwrap().values().all(|times| *times == 1));
}
