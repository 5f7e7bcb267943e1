//! Two ways to write down that a volume is being made, measured as the writes they are.
//!
//! On the claim: one write adds a finalizer and the terms, another takes both off later. In a journal: one object holds the
//! entries of all volumes being made; whoever comes while a write is under way goes into the next one together, and entries
//! leave with a later write. Both are made durable before anybody goes on.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::{Kind, ObjectKey, ObjectRef};
use io_kube::Kube;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::objects::{self, create, patch, write};

/// The terms of a usual claim, as the provisioner records them.
const TERMS: &str = r#"{"name":"pvc-00000000-0000-0000-0000-000000000000","class":"00000000-0000-0000-0000-000000000000","reclaimPolicy":"Delete","tellsWritersApart":false,"fsType":"ext4","secrets":{},"topologyLeftOut":false}"#;
const FINALIZER: &str = "longshore.dev/provisioning";
const ANNOTATION: &str = "longshore.dev/provisioning-terms";
const JOURNAL: &str = "bench-journal";

/// What a way cost at one number of claims at once.
pub struct Cost {
    /// Volumes a second, the intent alone.
    pub rate: f64,
    /// Milliseconds until the intent is durable: the middle, and all but one of a hundred.
    pub middle: f64,
    pub most: f64,
    /// Writes, and bytes of requests, a volume; with the removal.
    pub writes: f64,
    pub bytes: f64,
}

/// Intents on the claims themselves.
pub async fn on_claims(kube: &Kube, claims: usize, at_once: usize) -> io::Result<Cost> {
    let names: Vec<String> = (0..claims).map(|number| format!("intent-{number}")).collect();
    let kept = kube.clone();
    objects::for_each(names.clone(), |name| {
        let kube = kept.clone();
        async move { write(&kube, objects::claim(&name)).await }
    })
    .await?;
    let add = json!({ "metadata": { "finalizers": [FINALIZER], "annotations": { ANNOTATION: TERMS } } });
    let drop = json!({ "metadata": { "finalizers": null, "annotations": { ANNOTATION: null } } });
    let bytes = (add.to_string().len() + drop.to_string().len()) as f64;
    let (began, kube) = (Instant::now(), kube.clone());
    let waits = crowd(names, at_once, move |name| {
        let (kube, add, drop) = (kube.clone(), add.clone(), drop.clone());
        async move {
            let target = ObjectRef::namespaced(Kind::PersistentVolumeClaim, "default", name.as_str());
            let began = Instant::now();
            write(&kube, patch(target.clone(), false, add)).await?;
            let waited = began.elapsed();
            // The removal is waited for by nobody, but it is made.
            write(&kube, patch(target, false, drop)).await?;
            Ok(waited)
        }
    })
    .await?;
    Ok(cost(&waits, began.elapsed(), 2.0, bytes))
}

/// One entry on its way into the journal.
type Entry = (String, oneshot::Sender<()>);

/// Intents in one object, written together.
pub async fn in_journal(kube: &Kube, claims: usize, at_once: usize) -> io::Result<Cost> {
    let target = ObjectRef { kind: Kind::Lease, key: ObjectKey::new("default", JOURNAL) };
    write(kube, create(Kind::Lease, "default", JOURNAL, json!({ "metadata": {}, "spec": {} }))).await?;
    let (send, entries) = mpsc::unbounded_channel::<Entry>();
    let (leave, left) = mpsc::unbounded_channel::<String>();
    let journal = tokio::spawn(keep(kube.clone(), target.clone(), entries, left));
    let names: Vec<String> = (0..claims).map(|number| format!("00000000-0000-0000-0000-{number:012}")).collect();
    let began = Instant::now();
    let senders = Arc::new((send, leave));
    let waits = crowd(names, at_once, move |name| {
        let senders = senders.clone();
        async move {
            let gone = || io::Error::other("the journal ended");
            let began = Instant::now();
            let (say, heard) = oneshot::channel();
            senders.0.send((name.clone(), say)).map_err(|_| gone())?;
            heard.await.map_err(|_| gone())?;
            let waited = began.elapsed();
            senders.1.send(name).map_err(|_| gone())?;
            Ok(waited)
        }
    })
    .await?;
    let took = began.elapsed();
    let (writes, bytes) = journal.await??;
    write(kube, objects::delete(target)).await?;
    let each = claims as f64;
    Ok(cost(&waits, took, writes as f64 / each, bytes as f64 / each))
}

/// Writes whatever has come together, one write at a time. Answers how many writes and bytes it took.
async fn keep(
    kube: Kube,
    target: ObjectRef,
    mut entries: mpsc::UnboundedReceiver<Entry>,
    mut left: mpsc::UnboundedReceiver<String>,
) -> io::Result<(usize, usize)> {
    let (mut writes, mut bytes) = (0, 0);
    while let Some(first) = entries.recv().await {
        // Those that are ready to run have their say before the write.
        tokio::task::yield_now().await;
        let (mut change, mut waiting) = (Map::new(), Vec::new());
        while let Ok(name) = left.try_recv() {
            change.insert(format!("longshore.dev/{name}"), Value::Null);
        }
        let mut next = Some(first);
        while let Some((name, say)) = next {
            change.insert(format!("longshore.dev/{name}"), TERMS.into());
            waiting.push(say);
            next = entries.try_recv().ok();
        }
        let body = json!({ "metadata": { "annotations": change } });
        (writes, bytes) = (writes + 1, bytes + body.to_string().len());
        write(&kube, patch(target.clone(), false, body)).await?;
        for say in waiting {
            let _ = say.send(());
        }
    }
    Ok((writes, bytes))
}

/// Does something for each, so many at once, and says how long each waited.
async fn crowd<F>(
    names: Vec<String>,
    at_once: usize,
    act: impl Fn(String) -> F + Send + 'static,
) -> io::Result<Vec<Duration>>
where
    F: Future<Output = io::Result<Duration>> + Send + 'static,
{
    let (mut running, mut waits) = (JoinSet::new(), Vec::new());
    for name in names {
        if running.len() >= at_once
            && let Some(ended) = running.join_next().await
        {
            waits.push(ended??);
        }
        running.spawn(act(name));
    }
    while let Some(ended) = running.join_next().await {
        waits.push(ended??);
    }
    Ok(waits)
}

fn cost(waits: &[Duration], took: Duration, writes: f64, bytes: f64) -> Cost {
    let mut sorted: Vec<f64> = waits.iter().map(|wait| wait.as_secs_f64() * 1000.0).collect();
    sorted.sort_by(f64::total_cmp);
    let at = |share: usize| sorted.get(sorted.len() * share / 100).copied().unwrap_or(f64::NAN);
    Cost { rate: waits.len() as f64 / took.as_secs_f64(), middle: at(50), most: at(99), writes, bytes }
}
