//! Two ways to write down that a volume is being made, measured as the writes they are.
//!
//! On the claim: one write adds a finalizer and the terms, another takes both off later. In a journal: one object holds the
//! entries of all volumes being made; whoever comes while a write is under way goes into the next one together. Both are made
//! durable before anybody goes on.

use std::io;
use std::time::{Duration, Instant};

use api::names::JOURNAL_ENTRY;
use api::{Kind, Note, ObjectKey, ObjectRef, Write};
use control::{Outcome, Reply};
use io_kube::Kube;
use serde_json::json;
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

/// Intents in one object, written together by the hands the provisioner has.
pub async fn in_journal(kube: &Kube, claims: usize, at_once: usize) -> io::Result<Cost> {
    let target = ObjectRef { kind: Kind::Lease, key: ObjectKey::new("default", JOURNAL) };
    write(kube, create(Kind::Lease, "default", JOURNAL, json!({ "metadata": {}, "spec": {} }))).await?;
    let Outcome::Done(Reply::Object(journal)) = kube.read(&target).await else {
        return Err(io::Error::other("the journal cannot be read"));
    };
    let (uid, seen) = (journal.meta().uid.clone(), journal.meta().resource_version.clone());
    let note = |name: &str, text: Option<&str>| {
        let annotations = [(format!("{JOURNAL_ENTRY}{name}.{seen}"), text.map(String::from))].into();
        Note { target: target.clone(), uid: uid.clone(), seen: seen.clone(), annotations }
    };
    let names: Vec<String> = (0..claims).map(|number| format!("00000000-0000-0000-0000-{number:012}")).collect();
    let notes: Vec<(Note, Note)> = names.iter().map(|name| (note(name, Some(TERMS)), note(name, None))).collect();
    let bytes: usize = notes.iter().map(|(add, drop)| length(add) + length(drop)).sum();
    let (began, before) = (Instant::now(), patches(kube));
    let kept = kube.clone();
    let waits = crowd(notes, at_once, move |(add, drop)| {
        let kube = kept.clone();
        async move {
            let began = Instant::now();
            write(&kube, Write::Note(add)).await?;
            let waited = began.elapsed();
            // The removal is waited for by nobody, but it is made.
            write(&kube, Write::Note(drop)).await?;
            Ok(waited)
        }
    })
    .await?;
    let (took, written) = (began.elapsed(), patches(kube) - before);
    write(kube, objects::delete(target)).await?;
    let each = claims as f64;
    Ok(cost(&waits, took, written as f64 / each, bytes as f64 / each))
}

fn length(note: &Note) -> usize {
    note.patch(None).to_json()["metadata"]["annotations"].to_string().len()
}

fn patches(kube: &Kube) -> u64 {
    let counted = kube.counts().all();
    counted.iter().find(|(what, _)| *what == ("patch", Kind::Lease, "")).map_or(0, |(_, count)| *count)
}

/// Does something for each, so many at once, and says how long each waited.
async fn crowd<T, F>(each: Vec<T>, at_once: usize, act: impl Fn(T) -> F + Send + 'static) -> io::Result<Vec<Duration>>
where
    F: Future<Output = io::Result<Duration>> + Send + 'static,
{
    let (mut running, mut waits) = (JoinSet::new(), Vec::new());
    for one in each {
        if running.len() >= at_once
            && let Some(ended) = running.join_next().await
        {
            waits.push(ended??);
        }
        running.spawn(act(one));
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
