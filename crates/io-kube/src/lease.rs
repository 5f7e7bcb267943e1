//! Campaigns for a lease: performs what [`control::Election`] asks, and tells everybody who leads.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use api::{Kind, Lease, LeaseSpec, Object, ObjectKey, Time};
use bytes::Bytes;
use control::{Ask, Election, Terms, Tick};
use http::{Method, StatusCode};
use serde_json::json;
use tokio::sync::watch;

use crate::answer::Answer;
use crate::{Kube, path};

/// Where this process stands in an election.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// It leads.
    pub leads: bool,
    /// Who holds the lease, as far as is known.
    pub holder: Option<String>,
    /// When it last renewed successfully, while it leads.
    pub renewed: Option<Instant>,
    /// Why the last try failed, if it did.
    pub failure: Option<String>,
}

/// A lease to campaign for.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Which.
    pub lease: ObjectKey,
    /// Put on the lease whenever this process writes it.
    pub labels: BTreeMap<String, String>,
    /// The rules of the game.
    pub terms: Terms,
}

impl Kube {
    /// Campaigns until `stop` ends, then gives the lease up if it is held.
    ///
    /// `standing` says `leads` only while it is certain that nobody else does: it says no at the very moment the terms
    /// end, even while a request is under way.
    pub async fn campaign(
        &self,
        campaign: &Campaign,
        standing: watch::Sender<Standing>,
        stop: impl Future<Output = ()>,
    ) {
        let began = Instant::now();
        let now = || Tick(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
        let mut election = Election::new(campaign.terms.clone());
        let mut failure = None;
        tokio::pin!(stop);
        loop {
            tell(&standing, &election, now(), began, failure.clone());
            let end = election.leads_until().filter(|_| election.leads(now()));
            let turn = self.turn(campaign, &mut election, now, &mut failure);
            tokio::select! {
                () = &mut stop => break,
                () = turn => {}
                () = at(began, end) => {
                    // Too late. Whatever the request under way brings, somebody else may lead by then.
                    let text = "the lease could not be renewed in time".to_string();
                    failure.get_or_insert(text);
                }
            }
        }
        let released = election.release(wall());
        tell(&standing, &election, now(), began, None);
        if let Some((spec, lease)) = released {
            // It runs out by itself if this fails.
            let _ = within(Duration::from_millis(campaign.terms.retry), self.give_up(campaign, spec, lease)).await;
        }
    }

    /// Gives the lease up, also where a renewal that was under way has made it newer than what was seen.
    async fn give_up(&self, campaign: &Campaign, spec: LeaseSpec, seen: Lease) -> Result<(), String> {
        if self.put(campaign, spec.clone(), Some(&seen)).await?.is_some() {
            return Ok(());
        }
        let newer = self.get_lease(&campaign.lease).await?;
        let ours = newer.filter(|lease| lease.spec.holder_identity.as_deref() == Some(&campaign.terms.identity));
        match ours {
            Some(lease) => self.put(campaign, spec, Some(&lease)).await.map(|_| ()),
            None => Ok(()),
        }
    }

    /// One question and its answer, or one wait.
    async fn turn(
        &self,
        campaign: &Campaign,
        election: &mut Election,
        now: impl Fn() -> Tick,
        failure: &mut Option<String>,
    ) {
        // No request may take longer than a leader has: the next try must still come in time.
        let patience = Duration::from_millis(campaign.terms.renew - campaign.terms.retry);
        match election.next(now(), wall()) {
            Ask::Wait(until) => {
                tokio::time::sleep(Duration::from_millis(until.0.saturating_sub(now().0))).await;
            }
            Ask::Read => {
                let found = within(patience, self.get_lease(&campaign.lease)).await;
                *failure = found.as_ref().err().cloned();
                election.read(now(), found.map_err(|_| ()));
            }
            Ask::Write { spec, based_on } => {
                let wrote = within(patience, self.put(campaign, spec, based_on.as_ref())).await;
                *failure = wrote.as_ref().err().cloned();
                election.wrote(now(), wrote.ok().flatten());
            }
        }
    }

    async fn get_lease(&self, key: &ObjectKey) -> Result<Option<Lease>, String> {
        self.counts.add("get", Kind::Lease, "");
        let path = path::object(Kind::Lease, key, None);
        let answer = self.send(Method::GET, &path, Some(Kind::Lease), "", Bytes::new()).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        understood(&answer).map(Some)
    }

    /// Makes or replaces the lease; nothing if somebody was faster.
    async fn put(
        &self,
        campaign: &Campaign,
        spec: LeaseSpec,
        based_on: Option<&Lease>,
    ) -> Result<Option<Lease>, String> {
        let key = &campaign.lease;
        let mut labels = based_on.map(|lease| lease.metadata.labels.clone()).unwrap_or_default();
        labels.extend(campaign.labels.clone());
        let mut metadata = json!({ "name": key.name, "namespace": key.namespace, "labels": labels });
        let (verb, method, path) = match based_on {
            None => ("create", Method::POST, path::collection(Kind::Lease, &key.namespace)),
            Some(lease) => {
                let seen = &lease.metadata;
                metadata["resourceVersion"] = json!(seen.resource_version);
                metadata["uid"] = json!(seen.uid);
                metadata["annotations"] = json!(seen.annotations);
                metadata["ownerReferences"] = json!(seen.owner_references);
                metadata["finalizers"] = json!(seen.finalizers);
                ("update", Method::PUT, path::object(Kind::Lease, key, None))
            }
        };
        self.counts.add(verb, Kind::Lease, "");
        let body =
            json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec });
        let answer = self.send_object(method, &path, Kind::Lease, &body).await?;
        if answer.status == StatusCode::CONFLICT || answer.status == StatusCode::NOT_FOUND && based_on.is_some() {
            return Ok(None);
        }
        understood(&answer).map(Some)
    }
}

fn understood(answer: &Answer) -> Result<Lease, String> {
    if !answer.status.is_success() {
        let said = answer.said();
        return Err(format!("the API server refused: {}", said.message().unwrap_or(answer.status.as_str())));
    }
    match answer.object(Kind::Lease) {
        Ok(Object::Lease(lease)) => Ok(Arc::unwrap_or_clone(lease)),
        Ok(other) => Err(format!("cannot understand the lease: it is a {}", other.kind())),
        Err(error) => Err(format!("cannot understand the lease: {error}")),
    }
}

async fn within<T>(patience: Duration, work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    match tokio::time::timeout(patience, work).await {
        Ok(done) => done,
        Err(_) => Err(format!("the API server did not answer within {} s", patience.as_secs_f32())),
    }
}

fn tell(standing: &watch::Sender<Standing>, election: &Election, now: Tick, began: Instant, failure: Option<String>) {
    let leads = election.leads(now);
    let renewed = election.renewed().filter(|_| leads).map(|tick| began + Duration::from_millis(tick.0));
    let told = Standing { leads, holder: election.holder().map(String::from), renewed, failure };
    standing.send_if_modified(|held| {
        let changed = *held != told;
        *held = told;
        changed
    });
}

/// Ends at a moment counted from the beginning, or never.
async fn at(began: Instant, end: Option<Tick>) {
    match end {
        Some(end) => tokio::time::sleep_until((began + Duration::from_millis(end.0)).into()).await,
        None => std::future::pending().await,
    }
}

fn wall() -> Time {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    Time::micro_from_unix_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}
