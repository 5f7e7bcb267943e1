//! The embedded API server under load: how long a claim takes to be bound while others write, watch, hold connections
//! open and send bodies that are far too large, beside the same claims on a quiet server.

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use api::{ClaimPhase, Kind, Object, ObjectRef, Patch, Precondition, Write};
use control::{Outcome, Reply};
use io_kube::{Kube, Scope, WatchEvent};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::life::{Scratch, memory, stop, up};

const WRITERS: usize = 64;
const WATCHERS: usize = 100;
const IDLE: usize = 1000;
const FLOODERS: usize = 4;
const BODY: usize = 3_000_000;
/// Claims measured on the quiet server, and as many under load.
const CLAIMS: usize = 30;
/// The pause before a request that was not answered is sent again.
const AGAIN: Duration = Duration::from_millis(200);
/// How long the load runs before the first claim.
const WARM_UP: Duration = Duration::from_secs(3);

/// What the load did while claims were measured.
#[derive(Default)]
struct Done {
    writes: AtomicU64,
    events: AtomicU64,
    reopened: AtomicU64,
    refused: AtomicU64,
    /// Writes that were not answered, and were tried again.
    again: AtomicU64,
}

/// Measures and reports.
pub fn run(binary: &str) -> io::Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let scratch = Scratch::new()?;
    let data = scratch.0.join("d");
    let (mut server, _) = up(binary, &data, Path::new("/dev/null"), &["--without", "driver"])?;
    let kubeconfig = data.join("kubeconfig");
    let report = runtime.block_on(async {
        let calm = claims(&kubeconfig, "calm").await?;
        let (before, _) = memory(&server)?;
        let done = Arc::new(Done::default());
        let mut load = start(&kubeconfig, &done).await?;
        tokio::time::sleep(WARM_UP).await;
        let began = Instant::now();
        let busy = claims(&kubeconfig, "busy").await?;
        let took = began.elapsed().as_secs_f64();
        let (during, _) = memory(&server)?;
        load.shutdown().await;
        Ok::<_, io::Error>(tell(&calm, &busy, &done, took, before, during))
    });
    stop(&mut server)?;
    report
}

fn tell(calm: &[f64], busy: &[f64], done: &Done, took: f64, before: f64, during: f64) -> String {
    let mut report = String::new();
    let _ = writeln!(
        report,
        "{WRITERS} writers, {WATCHERS} watchers, {IDLE} idle unauthenticated connections, {FLOODERS} senders of 3 MB \
         bodies"
    );
    for (name, times) in [("quiet server", calm), ("under load", busy)] {
        let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
        let _ =
            writeln!(report, "claim created to Bound, {name:<13} {median:>7.1} ms  (worst of {CLAIMS}: {worst:.1} ms)");
    }
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
    let _ = writeln!(
        report,
        "meanwhile, in {took:.1} s: {} writes, {} tried again, {} watch events, {} connections closed by the server \
         and opened again, {} bodies refused",
        count(&done.writes),
        count(&done.again),
        count(&done.events),
        count(&done.reopened),
        count(&done.refused)
    );
    let _ = writeln!(report, "resident memory: {before:.1} MB before, {during:.1} MB under load");
    report
}

/// Creates claims, one after the other, each with a volume made by hand that fits it, and waits until it is bound. The
/// times are sorted, in milliseconds.
async fn claims(kubeconfig: &Path, prefix: &str) -> io::Result<Vec<f64>> {
    let kube = connect(kubeconfig).await?;
    let (events, mut seen) = mpsc::channel(1024);
    let watch = tokio::spawn(kube.clone().watch(Kind::PersistentVolumeClaim, events));
    let mut times = Vec::new();
    for number in 0..CLAIMS {
        let name = format!("{prefix}-{number}");
        let modes = ["ReadWriteOnce"];
        let volume = json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": name },
            "spec": {
                "capacity": { "storage": "1Gi" }, "accessModes": modes, "storageClassName": "hand",
                "claimRef": { "namespace": "default", "name": name },
                "persistentVolumeReclaimPolicy": "Retain",
                "csi": { "driver": "local.csi.longshore", "volumeHandle": name },
            },
        });
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": name, "namespace": "default" },
            "spec": {
                "accessModes": modes, "storageClassName": "hand", "volumeName": name,
                "resources": { "requests": { "storage": "1Gi" } },
            },
        });
        create(&kube, ObjectRef::cluster(Kind::PersistentVolume, name.as_str()), volume).await?;
        let began = Instant::now();
        create(&kube, ObjectRef::namespaced(Kind::PersistentVolumeClaim, "default", name.as_str()), claim).await?;
        let bound = async {
            while let Some(event) = seen.recv().await {
                if is_bound(&event, &name) {
                    return;
                }
            }
        };
        let late = |_| io::Error::other(format!("claim {name} was not bound within a minute"));
        tokio::time::timeout(Duration::from_secs(60), bound).await.map_err(late)?;
        times.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    watch.abort();
    times.sort_by(f64::total_cmp);
    Ok(times)
}

fn is_bound(event: &WatchEvent, name: &str) -> bool {
    let bound = |object: &Object| {
        matches!(object, Object::PersistentVolumeClaim(claim)
            if claim.metadata.name == name && claim.status.phase == ClaimPhase::Bound)
    };
    match event {
        WatchEvent::Apply(object) => bound(object),
        WatchEvent::InitApply(objects) | WatchEvent::InitDone { objects, .. } => objects.iter().any(bound),
        WatchEvent::Delete(_) => false,
    }
}

async fn start(kubeconfig: &Path, done: &Arc<Done>) -> io::Result<JoinSet<()>> {
    let mut load = JoinSet::new();
    for number in 0..WRITERS {
        load.spawn(write(connect(kubeconfig).await?, number, done.clone()));
    }
    for _ in 0..WATCHERS {
        let (kube, done) = (connect(kubeconfig).await?, done.clone());
        let (events, mut seen) = mpsc::channel(64);
        let scope = Scope { namespace: "default".into(), ..Scope::default() };
        load.spawn(kube.watch_within(Kind::Lease, scope, events));
        load.spawn(async move {
            while seen.recv().await.is_some() {
                done.events.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let address = address(kubeconfig)?;
    for _ in 0..IDLE {
        load.spawn(stay(address.clone(), done.clone()));
    }
    for number in 0..FLOODERS {
        load.spawn(flood(connect(kubeconfig).await?, number, done.clone()));
    }
    Ok(load)
}

/// Creates a Lease and changes it again and again.
async fn write(kube: Kube, number: usize, done: Arc<Done>) {
    let name = format!("writer-{number}");
    let target = ObjectRef::namespaced(Kind::Lease, "default", name.as_str());
    let body = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": name, "namespace": "default" }, "spec": {},
    });
    // Strangers of the same address push out whoever has not finished its handshake; clients try again.
    while create(&kube, target.clone(), body.clone()).await.is_err() {
        done.again.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(AGAIN).await;
    }
    for turn in 0_u64.. {
        let body = json!({ "metadata": { "annotations": { "turn": turn.to_string() } } });
        let patch = Patch::merge(Precondition::default(), body);
        let write = Write::Patch { target: target.clone(), subresource: None, patch };
        match kube.write(&write).await {
            Outcome::Done(_) => done.writes.fetch_add(1, Ordering::Relaxed),
            Outcome::Refused(_) | Outcome::Unknown(_) => done.again.fetch_add(1, Ordering::Relaxed),
        };
    }
}

/// Opens a connection and says nothing; opens another when the server closes it.
async fn stay(address: String, done: Arc<Done>) {
    loop {
        if let Ok(stream) = tokio::net::TcpStream::connect(&address).await {
            let _ = stream.readable().await;
            done.reopened.fetch_add(1, Ordering::Relaxed);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Sends an object that is far too large, again and again.
async fn flood(kube: Kube, number: usize, done: Arc<Done>) {
    let name = format!("flood-{number}");
    let target = ObjectRef::namespaced(Kind::ConfigMap, "default", name.as_str());
    let body = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "namespace": "default" },
        "data": { "x": "x".repeat(BODY) },
    });
    loop {
        let write = Write::Create { target: target.clone(), body: body.clone() };
        if !matches!(kube.write(&write).await, Outcome::Done(_)) {
            done.refused.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn connect(kubeconfig: &Path) -> io::Result<Kube> {
    Kube::from_kubeconfig(kubeconfig).await.map_err(io::Error::other)
}

async fn create(kube: &Kube, target: ObjectRef, body: serde_json::Value) -> io::Result<()> {
    match kube.write(&Write::Create { target: target.clone(), body }).await {
        Outcome::Done(Reply::Object(_) | Reply::Nothing) => Ok(()),
        other => Err(io::Error::other(format!("cannot create {target}: {other:?}"))),
    }
}

/// Where the server listens.
fn address(kubeconfig: &Path) -> io::Result<String> {
    let text = std::fs::read_to_string(kubeconfig)?;
    let url = text.lines().find_map(|line| line.trim().strip_prefix("server: https://"));
    url.map(|url| url.trim().trim_end_matches('/').to_string())
        .ok_or_else(|| io::Error::other("the kubeconfig names no server"))
}
