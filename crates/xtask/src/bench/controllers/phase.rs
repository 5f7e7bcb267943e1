//! The phases of a round: claims to Bound, pods that come, move and go, claims deleted to volumes gone.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::{Duration, Instant, SystemTime};

use api::{ClaimPhase, Kind, Object, ObjectRef, Precondition, Write, names};
use control::{Outcome, Reply};
use io_kube::Kube;
use serde_json::json;
use tokio::task::JoinSet;

use super::super::sidecars::audit::{Asked, moment};
use super::super::sidecars::nothing::NAME;
use super::super::sidecars::objects::{CLASS, create, delete, for_each, list, write};
use super::super::sidecars::usage::Spent;
use super::stand::{CONTROLLERS, Crew, NODES, Stand};

/// Nothing measured takes longer than this.
const PATIENCE: Duration = Duration::from_secs(600);
/// How often the server's record is read.
const GLANCE: Duration = Duration::from_millis(50);
/// How often a node is asked for what it is told.
const LOOK: Duration = Duration::from_millis(20);
/// What is not waited for by anybody, such as events, gets this long to be counted.
const QUIET: Duration = Duration::from_millis(1500);
/// The benchmark's own requests at once.
const AT_ONCE: usize = 48;

/// What one phase cost.
pub(crate) struct Measured {
    /// A second, from the first wish to the last one fulfilled.
    pub rate: f64,
    /// Milliseconds from wish to fulfilment: the middle, and all but one of a hundred.
    pub middle: f64,
    pub most: f64,
    /// Writes each, without events, and of those the controllers' alone.
    pub writes: f64,
    pub writes_of_controllers: f64,
    /// Writes each that the server refused.
    pub refused: f64,
    pub events: f64,
    pub reads: f64,
    /// Milliseconds of processor time each.
    pub spent: Spent,
    /// Writes each, by sort.
    pub sorts: BTreeMap<String, f64>,
}

/// A claim and the name its volume will have.
#[derive(Clone)]
pub(crate) struct Claim {
    pub name: String,
    pub volume: String,
}

impl Claim {
    fn target(&self) -> ObjectRef {
        ObjectRef::namespaced(Kind::PersistentVolumeClaim, "default", self.name.as_str())
    }

    fn unique_name(&self) -> String {
        names::unique_volume_name(NAME, &io_csi::kit::id_of(&self.volume))
    }
}

/// Makes claims, and waits until all are Bound.
pub(crate) async fn bind(stand: &mut Stand, crew: &mut Crew, names: Vec<String>) -> io::Result<(Vec<Claim>, Measured)> {
    let begin = Begin::of(stand, crew)?;
    let (kube, count) = (stand.kube.clone(), names.len());
    let made = crowd(names, |name| make_claim(kube.clone(), name)).await?;
    let claims: Vec<Claim> = made.iter().map(|(claim, _)| claim.clone()).collect();
    let wished = made.into_iter().map(|(claim, at)| (claim.name, at)).collect();
    let status = |one: &Asked| one.resource == Kind::PersistentVolumeClaim.plural() && one.subresource == "status";
    let (asked, done, looking) = follow(stand, crew, &wished, status, Until::Bound).await?;
    let measured = begin.after(looking).end(stand, crew, asked, &wished, &done, count).await?;
    Ok((claims, measured))
}

/// Deletes claims, and waits until their volumes are gone.
pub(crate) async fn release(stand: &mut Stand, crew: &mut Crew, claims: Vec<Claim>) -> io::Result<Measured> {
    let begin = Begin::of(stand, crew)?;
    let (kube, count) = (stand.kube.clone(), claims.len());
    let asked_for = crowd(claims, |claim| {
        let kube = kube.clone();
        async move {
            write(&kube, delete(claim.target())).await?;
            Ok((claim.volume, now()))
        }
    })
    .await?;
    let wished: BTreeMap<String, f64> = asked_for.into_iter().collect();
    let about = |one: &Asked| one.resource == Kind::PersistentVolume.plural();
    let (asked, done, looking) = follow(stand, crew, &wished, about, Until::Gone).await?;
    begin.after(looking).end(stand, crew, asked, &wished, &done, count).await
}

/// Puts a pod for each claim on the first node, and waits until that is told that all volumes are attached.
pub(crate) async fn attach(stand: &mut Stand, crew: &mut Crew, claims: &[Claim]) -> io::Result<Measured> {
    let begin = Begin::of(stand, crew)?;
    let kube = stand.kube.clone();
    let pods = crowd(claims.to_vec(), |claim| {
        let kube = kube.clone();
        async move {
            write(&kube, pod(&claim, NODES[0])).await?;
            Ok((claim.unique_name(), now()))
        }
    });
    let wished = pods.await?.into_iter().collect();
    let done = reported(&stand.kube, crew, NODES[0], &wished).await?;
    begin.end(stand, crew, Vec::new(), &wished, &done, claims.len()).await
}

/// Deletes each pod and makes another on the second node, and waits until that is told that all volumes are attached.
pub(crate) async fn transfer(stand: &mut Stand, crew: &mut Crew, claims: &[Claim]) -> io::Result<Measured> {
    let begin = Begin::of(stand, crew)?;
    let kube = stand.kube.clone();
    let pods = crowd(claims.to_vec(), |claim| {
        let kube = kube.clone();
        async move {
            write(&kube, end_pod(&claim, NODES[0])).await?;
            let left = now();
            write(&kube, pod(&claim, NODES[1])).await?;
            Ok((claim.unique_name(), left))
        }
    });
    let wished = pods.await?.into_iter().collect();
    let done = reported(&stand.kube, crew, NODES[1], &wished).await?;
    begin.end(stand, crew, Vec::new(), &wished, &done, claims.len()).await
}

/// Deletes the pods on the second node, and waits until there are no attachments.
pub(crate) async fn detach(stand: &mut Stand, crew: &mut Crew, claims: &[Claim]) -> io::Result<Measured> {
    let begin = Begin::of(stand, crew)?;
    let kube = stand.kube.clone();
    let pods = crowd(claims.to_vec(), |claim| {
        let kube = kube.clone();
        async move {
            write(&kube, end_pod(&claim, NODES[1])).await?;
            Ok((claim.volume, now()))
        }
    });
    let wished: BTreeMap<String, f64> = pods.await?.into_iter().collect();
    let (mut done, began) = (BTreeMap::new(), Instant::now());
    while done.len() < wished.len() {
        tokio::time::sleep(LOOK).await;
        crew.check()?;
        let there: BTreeSet<String> = list(&stand.kube, Kind::VolumeAttachment).await?.iter().filter_map(of).collect();
        note(&wished, |volume| !there.contains(volume), &mut done);
        late(began, done.len(), wished.len(), crew)?;
    }
    begin.end(stand, crew, Vec::new(), &wished, &done, claims.len()).await
}

fn of(object: &Object) -> Option<String> {
    match object {
        Object::VolumeAttachment(attachment) => attachment.volume().map(String::from),
        _ => None,
    }
}

/// Asks a node again and again until its status names all these volumes as attached, and says when each came.
async fn reported(
    kube: &Kube,
    crew: &mut Crew,
    node: &str,
    wished: &BTreeMap<String, f64>,
) -> io::Result<BTreeMap<String, f64>> {
    let (mut done, began) = (BTreeMap::new(), Instant::now());
    while done.len() < wished.len() {
        tokio::time::sleep(LOOK).await;
        crew.check()?;
        let Outcome::Done(Reply::Object(Object::Node(node))) = kube.read(&ObjectRef::cluster(Kind::Node, node)).await
        else {
            return Err(io::Error::other("the node cannot be read"));
        };
        note(wished, |name| node.reports_attached(name), &mut done);
        late(began, done.len(), wished.len(), crew)?;
    }
    Ok(done)
}

fn note(wished: &BTreeMap<String, f64>, is_done: impl Fn(&str) -> bool, done: &mut BTreeMap<String, f64>) {
    let at = now();
    for name in wished.keys().filter(|name| is_done(name)) {
        done.entry(name.clone()).or_insert(at);
    }
}

fn late(began: Instant, done: usize, all: usize, crew: &Crew) -> io::Result<()> {
    if began.elapsed() < PATIENCE {
        return Ok(());
    }
    let (secs, said) = (PATIENCE.as_secs(), crew.controllers.said());
    Err(io::Error::other(format!("{done} of {all} after {secs} s; the controllers said last:\n{said}")))
}

/// What the last write to each object leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    Bound,
    Gone,
}

/// Reads the server's record until there is nothing left to do; gives all of it, when each was last written to, and
/// what it cost the servers to make sure: a list of all there is, which the programs did not ask for.
async fn follow(
    stand: &mut Stand,
    crew: &mut Crew,
    wished: &BTreeMap<String, f64>,
    concerns: impl Fn(&Asked) -> bool,
    until: Until,
) -> io::Result<(Vec<Asked>, BTreeMap<String, f64>, Spent)> {
    let (mut asked, mut done, mut looking) = (Vec::new(), BTreeMap::new(), Spent::default());
    let (began, mut heard) = (Instant::now(), Instant::now());
    loop {
        tokio::time::sleep(GLANCE).await;
        crew.check()?;
        let news = stand.audit.news()?;
        for one in news.iter().filter(|one| one.is_write() && one.is_done() && concerns(one)) {
            if wished.contains_key(&one.name) {
                done.insert(one.name.clone(), one.answered);
                heard = Instant::now();
            }
        }
        asked.extend(news);
        if done.len() == wished.len() && heard.elapsed() >= 4 * GLANCE {
            let before = stand.spent(crew)?;
            let is_done = is_done(&stand.kube, wished, until).await?;
            let look = stand.spent(crew)?.since(before, 1);
            (looking.server, looking.store) = (looking.server + look.server, looking.store + look.store);
            if is_done {
                return Ok((asked, done, looking));
            }
            heard = Instant::now();
        }
        late(began, done.len(), wished.len(), crew)?;
    }
}

async fn is_done(kube: &Kube, wished: &BTreeMap<String, f64>, until: Until) -> io::Result<bool> {
    Ok(match until {
        Until::Bound => list(kube, Kind::PersistentVolumeClaim).await?.iter().all(|object| match object {
            Object::PersistentVolumeClaim(claim) => {
                claim.status.phase == ClaimPhase::Bound || !wished.contains_key(&claim.metadata.name)
            }
            _ => true,
        }),
        Until::Gone => {
            let left = list(kube, Kind::PersistentVolume).await?;
            !left.iter().any(|object| wished.contains_key(&object.meta().name))
        }
    })
}

/// How things were before a phase.
struct Begin {
    spent: Spent,
}

impl Begin {
    fn of(stand: &mut Stand, crew: &Crew) -> io::Result<Begin> {
        stand.audit.news()?;
        Ok(Begin { spent: stand.spent(crew)? })
    }

    /// What the benchmark itself has spent since then does not count.
    fn after(self, own: Spent) -> Begin {
        let Spent { program, server, store } = self.spent;
        Begin { spent: Spent { program, server: server + own.server, store: store + own.store } }
    }

    async fn end(
        self,
        stand: &mut Stand,
        crew: &Crew,
        mut asked: Vec<Asked>,
        wished: &BTreeMap<String, f64>,
        done: &BTreeMap<String, f64>,
        count: usize,
    ) -> io::Result<Measured> {
        tokio::time::sleep(QUIET).await;
        asked.extend(stand.audit.news()?);
        let spent = stand.spent(crew)?.since(self.spent, count);
        Ok(told(&asked, wished, done, spent, count))
    }
}

fn told(
    asked: &[Asked],
    wished: &BTreeMap<String, f64>,
    done: &BTreeMap<String, f64>,
    spent: Spent,
    count: usize,
) -> Measured {
    const DAY: f64 = 86_400.0;
    let each = |number: usize| number as f64 / count as f64;
    let took = |(name, at): (&String, &f64)| (at - wished.get(name).unwrap_or(at)).rem_euclid(DAY);
    // A volume that was there before its wish was answered was there at once.
    let mut waits: Vec<f64> = done.iter().map(took).map(|wait| if wait > DAY / 2.0 { 0.0 } else { wait }).collect();
    waits.sort_by(f64::total_cmp);
    let at = |share: usize| waits.get((waits.len() * share / 100).min(waits.len().saturating_sub(1))).copied();
    let first = wished.values().copied().fold(f64::INFINITY, f64::min);
    let last = done.values().copied().fold(f64::NEG_INFINITY, f64::max);
    // The election's Leases are renewed whether there is work or not.
    let writes: Vec<&Asked> = asked.iter().filter(|one| one.is_write()).collect();
    let mut sorts = BTreeMap::new();
    for one in &writes {
        *sorts.entry(format!("{} {}", one.user, one.sort())).or_default() += 1.0 / count as f64;
    }
    Measured {
        rate: count as f64 / (last - first).rem_euclid(DAY),
        middle: at(50).unwrap_or(f64::NAN) * 1000.0,
        most: at(99).unwrap_or(f64::NAN) * 1000.0,
        writes: each(writes.len()),
        writes_of_controllers: each(writes.iter().filter(|one| one.user == CONTROLLERS).count()),
        refused: each(writes.iter().filter(|one| !one.is_done()).count()),
        events: each(asked.iter().filter(|one| one.resource == "events").count()),
        reads: each(asked.iter().filter(|one| one.is_read() || one.verb == "list").count()),
        spent,
        sorts,
    }
}

fn now() -> f64 {
    moment(SystemTime::now())
}

async fn make_claim(kube: Kube, name: String) -> io::Result<(Claim, f64)> {
    let spec = json!({ "accessModes": ["ReadWriteOnce"], "storageClassName": CLASS,
        "resources": { "requests": { "storage": "1Gi" } } });
    let claim = create(Kind::PersistentVolumeClaim, "default", &name, json!({ "metadata": {}, "spec": spec }));
    let begun = now();
    match kube.write(&claim).await {
        Outcome::Done(Reply::Object(made)) => Ok((Claim { name, volume: format!("pvc-{}", made.meta().uid) }, begun)),
        other => Err(io::Error::other(format!("the benchmark could not make a claim: {other:?}"))),
    }
}

fn pod_name(claim: &Claim, node: &str) -> String {
    format!("{}-on-{node}", claim.name)
}

fn pod(claim: &Claim, node: &str) -> Write {
    let volume = json!({ "name": "v", "persistentVolumeClaim": { "claimName": claim.name } });
    let spec = json!({ "nodeName": node, "containers": [{ "name": "c", "image": "none" }], "volumes": [volume] });
    create(Kind::Pod, "default", &pod_name(claim, node), json!({ "metadata": {}, "spec": spec }))
}

fn end_pod(claim: &Claim, node: &str) -> Write {
    let target = ObjectRef::namespaced(Kind::Pod, "default", pod_name(claim, node));
    Write::Delete { target, only_if: Precondition::default(), grace_seconds: Some(0) }
}

/// Does something for each, some at a time, and gives what came of it.
async fn crowd<T, R, F>(items: Vec<T>, act: impl Fn(T) -> F) -> io::Result<Vec<R>>
where
    R: Send + 'static,
    F: Future<Output = io::Result<R>> + Send + 'static,
{
    let (mut running, mut all) = (JoinSet::new(), Vec::new());
    for item in items {
        if running.len() >= AT_ONCE
            && let Some(ended) = running.join_next().await
        {
            all.push(ended??);
        }
        running.spawn(act(item));
    }
    while let Some(ended) = running.join_next().await {
        all.push(ended??);
    }
    Ok(all)
}

/// Everything gone, also what nobody is there to let go of.
pub(crate) async fn clear(kube: &Kube) -> io::Result<()> {
    for kind in [Kind::Pod, Kind::VolumeAttachment, Kind::PersistentVolumeClaim, Kind::PersistentVolume] {
        let all = list(kube, kind).await?;
        for_each(all.iter().map(Object::reference), |target| {
            let kube = kube.clone();
            async move {
                let none = json!({ "metadata": { "finalizers": null } });
                // It may be gone between the two, or before.
                let _ = kube.write(&super::super::sidecars::objects::patch(target.clone(), false, none)).await;
                let grace_seconds = (target.kind == Kind::Pod).then_some(0);
                let gone = Write::Delete { target, only_if: Precondition::default(), grace_seconds };
                let _ = kube.write(&gone).await;
                Ok(())
            }
        })
        .await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(user: &str, verb: &str, resource: &str, code: u64) -> Asked {
        let text = String::from;
        let (came, answered) = (0.0, 1.0);
        let (subresource, name) = (text(""), text("c"));
        Asked { user: text(user), verb: text(verb), resource: text(resource), subresource, name, code, came, answered }
    }

    #[test]
    fn waits_and_writes_are_told_for_each() {
        let log = [
            asked("controllers", "patch", "persistentvolumeclaims", 200),
            asked("controllers", "patch", "nodes", 409),
            asked("sidecar", "create", "persistentvolumes", 201),
            asked("sidecar", "create", "events", 201),
            asked("sidecar", "get", "nodes", 200),
        ];
        let at = |pairs: &[(&str, f64)]| pairs.iter().map(|(name, at)| (name.to_string(), *at)).collect();
        let (wished, done) = (at(&[("a", 1.0), ("b", 2.0)]), at(&[("a", 2.0), ("b", 5.0)]));
        let told = told(&log, &wished, &done, Spent::default(), 2);
        assert_eq!((told.rate, told.middle, told.most), (0.5, 3000.0, 3000.0));
        assert_eq!((told.writes, told.writes_of_controllers, told.refused, told.events), (1.5, 1.0, 0.5, 0.5));
        assert_eq!(told.sorts["sidecar create persistentvolumes"], 0.5);
    }

    #[test]
    fn what_ends_after_midnight_has_a_length() {
        let at = |at: f64| BTreeMap::from([("a".to_string(), at)]);
        let told = told(&[], &at(86_399.0), &at(1.0), Spent::default(), 1);
        assert_eq!((told.rate, told.middle), (0.5, 2000.0));
    }
}
