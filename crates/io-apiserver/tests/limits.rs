//! H10: what callers may take of time and connections, over real sockets.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use common::{Harbor, MAPS, call, config_map};
use io_apiserver::CallerLimits;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

fn run(limits: CallerLimits, test: impl AsyncFnOnce(&Harbor)) {
    let harbor = Harbor::start_with(limits);
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test(&harbor));
}

/// A part of the administrator's kubeconfig.
fn credential(harbor: &Harbor, key: &str) -> Vec<u8> {
    let kubeconfig = std::fs::read_to_string(harbor.kubeconfig()).unwrap();
    let line = kubeconfig.lines().find(|line| line.contains(key)).unwrap();
    STANDARD.decode(line.split(": ").nth(1).unwrap()).unwrap()
}

async fn tcp(harbor: &Harbor) -> TcpStream {
    TcpStream::connect(("127.0.0.1", harbor.port)).await.unwrap()
}

async fn tls(harbor: &Harbor, administrator: bool) -> TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&credential(harbor, "certificate-authority-data")).unwrap()).unwrap();
    let builder = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = if administrator {
        let certificate = CertificateDer::from_pem_slice(&credential(harbor, "client-certificate-data")).unwrap();
        let key = PrivateKeyDer::from_pem_slice(&credential(harbor, "client-key-data")).unwrap();
        builder.with_client_auth_cert(vec![certificate], key).unwrap()
    } else {
        builder.with_no_client_auth()
    };
    let name = ServerName::try_from("127.0.0.1").unwrap();
    tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, tcp(harbor).await).await.unwrap()
}

/// What is still to be read until the server closes, which must be soon.
async fn rest(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut text = Vec::new();
    let _ = timeout(Duration::from_secs(20), stream.read_to_end(&mut text)).await.expect("the server does not close");
    String::from_utf8_lossy(&text).into_owned()
}

const SHORT: Duration = Duration::from_millis(400);

#[test]
fn h10_a_handshake_and_headers_have_to_come() {
    run(CallerLimits { handshake: SHORT, headers: SHORT, ..CallerLimits::default() }, async |harbor| {
        rest(&mut tcp(harbor).await).await;
        for administrator in [false, true] {
            let mut slow = tls(harbor, administrator).await;
            slow.write_all(b"GET /api HTTP/1.1\r\nHost: x\r\nX: ").await.unwrap();
            let said = rest(&mut slow).await;
            assert!(!said.contains("200 OK"), "{said}");
        }
    });
}

#[test]
fn h10_whoever_does_not_say_who_it_is_goes_and_whoever_does_stays() {
    run(CallerLimits { unproven: SHORT, ..CallerLimits::default() }, async |harbor| {
        let began = Instant::now();
        let mut stranger = tls(harbor, false).await;
        // A health check answers, and proves nothing.
        stranger.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        assert!(rest(&mut stranger).await.contains("200 OK"));
        assert!(began.elapsed() < Duration::from_secs(10));
        let mut known = tls(harbor, true).await;
        tokio::time::sleep(2 * SHORT).await;
        known.write_all(b"GET /api HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
        assert!(rest(&mut known).await.contains("200 OK"));
    });
}

#[test]
fn h10_strangers_in_numbers_keep_nobody_out() {
    run(CallerLimits { strangers: 8, connections: 128, ..CallerLimits::default() }, async |harbor| {
        let mut crowd = Vec::new();
        for _ in 0..300 {
            crowd.push(tcp(harbor).await);
        }
        let mut first = crowd.remove(0);
        rest(&mut first).await;
        let began = Instant::now();
        let mut known = tls(harbor, true).await;
        known.write_all(b"GET /api HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
        assert!(rest(&mut known).await.contains("200 OK"));
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        let mut open = 0;
        for stream in &mut crowd {
            open += usize::from(timeout(Duration::from_millis(5), stream.read_u8()).await.is_err());
        }
        assert!(open <= 8, "{open} strangers are still connected");
    });
}

// A client with a token is a stranger until its first request: the silent do not push it out.
#[test]
fn h10_who_has_sent_a_client_hello_goes_after_the_silent() {
    run(CallerLimits { strangers: 8, connections: 128, ..CallerLimits::default() }, async |harbor| {
        let mut greeted = tls(harbor, false).await;
        let mut crowd = Vec::new();
        for _ in 0..100 {
            crowd.push(tcp(harbor).await);
        }
        rest(&mut crowd.remove(0)).await;
        greeted.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
        assert!(rest(&mut greeted).await.contains("200 OK"));
    });
}

#[test]
fn h10_a_body_has_to_come() {
    run(CallerLimits { body: SHORT, ..CallerLimits::default() }, async |harbor| {
        let mut slow = tls(harbor, true).await;
        let head = format!(
            "POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
        );
        slow.write_all(head.as_bytes()).await.unwrap();
        let said = rest(&mut slow).await;
        assert!(said.starts_with("HTTP/1.1 408") && said.contains("did not arrive within"), "{said}");
    });
}

#[test]
fn h10_whoever_takes_nothing_of_a_watch_goes() {
    run(CallerLimits { stalled: SHORT, ..CallerLimits::default() }, async |harbor| {
        let mut watcher = tls(harbor, true).await;
        let ask = format!("GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n");
        watcher.write_all(ask.as_bytes()).await.unwrap();
        let service = harbor.server.service_as("test");
        for number in 0..80 {
            let (code, _) =
                call(&service, "POST", MAPS, &config_map(&format!("m{number}"), &"x".repeat(500_000))).await;
            assert_eq!(code, 201);
        }
        tokio::time::sleep(4 * SHORT).await;
        // What had been sent before is read; then the connection is over, and a watch that is read would go on.
        let said = rest(&mut watcher).await;
        assert!(said.contains("ADDED") && said.len() < 80 * 500_000, "{}", said.len());
    });
}

#[test]
fn h10_whoever_takes_nothing_of_a_list_goes() {
    run(CallerLimits { stalled: SHORT, ..CallerLimits::default() }, async |harbor| {
        let service = harbor.server.service_as("test");
        for number in 0..40 {
            let map = config_map(&format!("m{number}"), &"x".repeat(500_000));
            assert_eq!(call(&service, "POST", MAPS, &map).await.0, 201);
        }
        let mut reader = tls(harbor, true).await;
        reader.write_all(format!("GET {MAPS} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await.unwrap();
        tokio::time::sleep(6 * SHORT).await;
        let said = rest(&mut reader).await;
        assert!(said.contains("200 OK") && said.len() < 40 * 500_000, "{}", said.len());
    });
}

#[test]
fn h10_long_bodies_that_do_not_come_keep_no_short_one_out_and_are_few_at_a_time() {
    let patience = Duration::from_secs(4);
    run(CallerLimits { body: patience, ..CallerLimits::default() }, async |harbor| {
        let head = format!(
            "POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 3000000\r\n\r\n"
        );
        let mut crowd = Vec::new();
        for _ in 0..48 {
            let mut slow = tls(harbor, true).await;
            slow.write_all(head.as_bytes()).await.unwrap();
            slow.write_all(&[b' '; 200_000]).await.unwrap();
            crowd.push(slow);
        }
        let short = config_map("short", "x");
        let mut known = tls(harbor, true).await;
        let ask = format!(
            "POST {MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n{short}",
            short.len()
        );
        known.write_all(ask.as_bytes()).await.unwrap();
        assert!(rest(&mut known).await.starts_with("HTTP/1.1 201"));
        for slow in &mut crowd {
            let said = rest(slow).await;
            assert!(said.starts_with("HTTP/1.1 408"), "{said}");
        }
        // Their places are free again.
        let service = harbor.server.service_as("test");
        assert_eq!(call(&service, "POST", MAPS, &config_map("long", &"x".repeat(1_000_000))).await.0, 201);
    });
}

const CHILD: &str = "LONGSHORE_TEST_DESCRIPTORS";

/// Not a test of its own: a server in a process with few descriptors, which opens files when it is told to.
#[test]
fn child_with_few_descriptors() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let harbor = Harbor::start();
    println!("port {}", harbor.port);
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let opened: Vec<_> = (0..60).map_while(|_| std::fs::File::open("/dev/null").ok()).collect();
    println!("opened {}", opened.len());
}

#[test]
fn h10_connections_leave_descriptors_to_disks_and_drivers() {
    use std::io::{BufRead as _, Write as _};
    let mut child = std::process::Command::new("sh")
        .args(["-c", "ulimit -n 200 && exec \"$0\" child_with_few_descriptors --exact --nocapture --test-threads=1"])
        .arg(std::env::current_exe().unwrap())
        .env(CHILD, "1")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let word = |line: &str, key: &str| line.split(key).nth(1).and_then(|rest| rest.trim().parse::<u16>().ok());
    let port = lines.by_ref().find_map(|line| word(&line, "port ")).unwrap();
    let crowd: Vec<_> = (0..300).map_while(|_| std::net::TcpStream::connect(("127.0.0.1", port)).ok()).collect();
    assert!(crowd.len() > 200, "{}", crowd.len());
    std::thread::sleep(Duration::from_secs(1));
    child.stdin.take().unwrap().write_all(b"now\n").unwrap();
    assert_eq!(lines.find_map(|line| word(&line, "opened ")), Some(60));
    child.wait().unwrap();
}
