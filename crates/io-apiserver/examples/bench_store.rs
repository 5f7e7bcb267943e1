//! How fast the store is: durable writes with 1 and 64 writers, reads, and the way of a change to many watchers.
//!
//! `cargo run --release -p io-apiserver --example bench_store [-- DIRECTORY]`; without a directory, a temporary one.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for a terminal")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use futures::future::join_all;
use http::Request;
use http_body_util::BodyExt;
use io_apiserver::{ApiServer, Config};
use serde_json::json;
use tower::ServiceExt;

const VOLUMES: &str = "/api/v1/persistentvolumes";

fn main() {
    let given = std::env::args().nth(1).map(PathBuf::from);
    let temporary = tempfile::tempdir().unwrap();
    let base = given.unwrap_or_else(|| temporary.path().to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let open = |name: &str| ApiServer::open(Config { data_dir: base.join(name), ..Config::default() }).unwrap();
        let start = Instant::now();
        let server = open("bench");
        println!("first start: {:?}", start.elapsed());
        let service = server.service_as("bench");
        for writers in [1, 64] {
            writes(&service, writers).await;
        }
        reads(&service).await;
        fan_out(&service, 1).await;
        fan_out(&service, 100).await;
        server.close();
        drop((service, server));
        let start = Instant::now();
        let server = open("bench");
        let ready = start.elapsed();
        println!("start with {} objects: {ready:?}", count(&server).await);
        server.close();
    });
}

fn volume(name: &str) -> Body {
    let body = json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": "local.csi.longshore"}},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
            "persistentVolumeReclaimPolicy": "Delete",
            "csi": {"driver": "local.csi.longshore", "volumeHandle": name, "fsType": "ext4",
                    "volumeAttributes": {"pool": "a", "made": "by a benchmark"}},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "topology.longshore/node", "operator": "In", "values": ["n1"]}]}]}},
        },
    });
    Body::from(body.to_string())
}

async fn call(service: &Router, method: &str, path: &str, body: Body) -> axum::response::Response {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    service.clone().oneshot(request.body(body).unwrap()).await.unwrap()
}

async fn create(service: &Router, name: &str) {
    let response = call(service, "POST", VOLUMES, volume(name)).await;
    let code = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(code, 201, "{}", String::from_utf8_lossy(&body));
}

async fn writes(service: &Router, writers: usize) {
    let next = Arc::new(AtomicUsize::new(0));
    let start = Instant::now();
    let limit = Duration::from_secs(3);
    let work = (0..writers).map(|_| {
        let next = next.clone();
        async move {
            let mut slowest = Duration::ZERO;
            while start.elapsed() < limit {
                let began = Instant::now();
                create(service, &format!("w{writers}-{}", next.fetch_add(1, Ordering::Relaxed))).await;
                slowest = slowest.max(began.elapsed());
            }
            slowest
        }
    });
    let slowest = join_all(work).await.into_iter().max().unwrap_or_default();
    let done = next.load(Ordering::Relaxed) as f64;
    println!(
        "{writers} writers: {:.0} acknowledged writes/s, slowest {slowest:?}",
        done / start.elapsed().as_secs_f64()
    );
}

async fn reads(service: &Router) {
    let start = Instant::now();
    let mut done = 0_u32;
    while start.elapsed() < Duration::from_secs(1) {
        let response = call(service, "GET", &format!("{VOLUMES}/w64-0"), Body::empty()).await;
        assert_eq!(response.status(), 200);
        response.into_body().collect().await.unwrap();
        done += 1;
    }
    println!("gets: {:.0}/s", f64::from(done) / start.elapsed().as_secs_f64());
    let start = Instant::now();
    let list = call(service, "GET", VOLUMES, Body::empty()).await.into_body().collect().await.unwrap().to_bytes();
    println!("list: {} MB in {:?}", list.len() >> 20, start.elapsed());
}

/// The time from sending a write until the last watcher has its event.
async fn fan_out(service: &Router, watchers: usize) {
    const ROUNDS: usize = 200;
    let (told, mut hears) = tokio::sync::mpsc::unbounded_channel::<Instant>();
    let current = call(service, "GET", &format!("{VOLUMES}?limit=1"), Body::empty()).await;
    let current: serde_json::Value =
        serde_json::from_slice(&current.into_body().collect().await.unwrap().to_bytes()).unwrap();
    let version = current["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let mut tasks = Vec::new();
    for _ in 0..watchers {
        let path = format!("{VOLUMES}?watch=1&resourceVersion={version}");
        let mut body = call(service, "GET", &path, Body::empty()).await.into_body();
        let told = told.clone();
        tasks.push(tokio::spawn(async move {
            while let Some(Ok(_)) = body.frame().await {
                let _ = told.send(Instant::now());
            }
        }));
    }
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let start = Instant::now();
        create(service, &format!("f{watchers}-{round}")).await;
        let mut last = start;
        for _ in 0..watchers {
            last = last.max(hears.recv().await.unwrap());
        }
        times.push(last - start);
    }
    for task in tasks {
        task.abort();
    }
    times.sort();
    let (median, late) = (times[ROUNDS / 2], times[ROUNDS * 99 / 100]);
    println!("write to the last of {watchers} watchers: median {median:?}, 99th {late:?}");
}

async fn count(server: &ApiServer) -> usize {
    let list = call(&server.service_as("bench"), "GET", VOLUMES, Body::empty()).await;
    let list: serde_json::Value =
        serde_json::from_slice(&list.into_body().collect().await.unwrap().to_bytes()).unwrap();
    list["items"].as_array().map_or(0, Vec::len)
}
