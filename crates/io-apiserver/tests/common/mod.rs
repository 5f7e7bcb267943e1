//! A real server on a real socket, and the real kubectl.
#![allow(dead_code, clippy::unwrap_used, reason = "each test program uses a part of this, and may fail loudly")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use axum::Router;
use axum::body::Body;
use futures::StreamExt;
use http::Request;
use http_body_util::BodyExt;
use io_apiserver::{ApiServer, CallerLimits, Config, LogRequest, LogSource, OpeningLog};
use serde_json::Value;
use tempfile::TempDir;
use tower::ServiceExt;

/// Log lines that say what was asked for.
struct Echo;

impl LogSource for Echo {
    fn open(&self, request: LogRequest) -> OpeningLog {
        let text = format!(
            "log of {}/{} container {} tail {:?} follow {}\n",
            request.namespace, request.name, request.container, request.tail_lines, request.follow
        );
        Box::pin(async move {
            let lines = [Ok(text.into()), Ok("second line\n".into())];
            Ok(futures::stream::iter(lines).boxed() as io_apiserver::LogStream)
        })
    }
}

pub struct Harbor {
    pub dir: TempDir,
    pub server: ApiServer,
    pub port: u16,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Harbor {
    /// Opens a server in a new directory and serves it from a thread with a single-threaded runtime.
    pub fn start() -> Harbor {
        Harbor::start_with(CallerLimits::default())
    }

    pub fn start_with(limits: CallerLimits) -> Harbor {
        let dir = tempfile::tempdir().unwrap();
        let hello = axum::routing::get(|| async { "hello from the binary" });
        let config = Config {
            data_dir: dir.path().join("data"),
            logs: Some(Arc::new(Echo)),
            extra: Router::new().route("/longshore/hello", hello),
            limits,
            ..Config::default()
        };
        let server = ApiServer::open(config).unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = server.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                let shutdown = async {
                    let _ = stopped.await;
                };
                serving.serve_tls(listener, shutdown).await;
            });
        });
        let harbor = Harbor { dir, server, port, stop: Some(stop), thread: Some(thread) };
        harbor.server.write_kubeconfig(&harbor.kubeconfig(), port).unwrap();
        harbor
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.path().join("kubeconfig")
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// Runs kubectl; the test fails if kubectl is not there.
    pub fn kubectl(&self, arguments: &[&str]) -> Said {
        self.kubectl_with(arguments, "")
    }

    pub fn kubectl_with(&self, arguments: &[&str], input: &str) -> Said {
        let mut child = self.start_kubectl(arguments);
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        Said {
            ok: output.status.success(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub fn start_kubectl(&self, arguments: &[&str]) -> Child {
        Command::new("kubectl")
            .args(arguments)
            .env("KUBECONFIG", self.kubeconfig())
            // A cache of its own: ports are used again by other servers with other objects.
            .env("HOME", self.dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("these tests need the real kubectl in PATH, which cannot be run: {error}"))
    }
}

impl Drop for Harbor {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

pub struct Said {
    pub ok: bool,
    pub out: String,
    pub err: String,
}

impl Said {
    /// What kubectl printed; it must have succeeded.
    pub fn fine(self) -> String {
        assert!(self.ok, "kubectl failed: {}{}", self.out, self.err);
        self.out
    }

    /// What kubectl complained about; it must have failed.
    pub fn complaint(self) -> String {
        assert!(!self.ok, "kubectl should have failed but said: {}", self.out);
        self.err
    }
}

/// Opens a server. A child that another test starts at this moment holds the lock of a server that was closed until it
/// runs its own program, so a directory that is in use is tried again.
pub fn open(directory: &Path) -> ApiServer {
    for _ in 0..500 {
        match ApiServer::open(Config { data_dir: directory.to_owned(), ..Config::default() }) {
            Err(io_apiserver::Error::InUse(_)) => std::thread::sleep(std::time::Duration::from_millis(20)),
            opened => return opened.unwrap(),
        }
    }
    panic!("{} stays in use", directory.display());
}

/// One request to a service in this process.
pub async fn call(service: &Router, method: &str, path: &str, body: &str) -> (u16, Value) {
    call_as(service, method, path, "application/json", body).await
}

pub async fn call_as(service: &Router, method: &str, path: &str, media_type: &str, body: &str) -> (u16, Value) {
    let request = Request::builder().method(method).uri(path).header("content-type", media_type);
    let response = service.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_else(|_| panic!("not JSON: {}", String::from_utf8_lossy(&bytes))))
}

pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub fn config_map(name: &str, text: &str) -> String {
    serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": text},
    })
    .to_string()
}

pub fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}
