//! Leader election: performs the reads and writes of the Lease that [`control::Election`] asks for, and publishes who
//! leads.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use api::{Kind, Lease, LeaseSpec, Object, ObjectKey, Time};
use bytes::Bytes;
use control::{Election, ElectionStep, LeaseConfig, LeaseRead, Timestamp};
use http::{Method, StatusCode};
use serde_json::json;
use tokio::sync::watch;

use crate::error::{DecodeError, RequestError, TransportError};
use crate::negotiation::Answer;
use crate::{Kube, path};

/// What this process knows of the election.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaderStatus {
    /// This process leads.
    pub leads: bool,
    /// The holder of the Lease, as far as is known.
    pub holder: Option<String>,
    /// When this process last renewed the Lease, while it leads.
    pub renewed: Option<Instant>,
    /// Why the last request failed, if it did.
    pub failure: Option<String>,
}

/// A candidate in a leader election.
#[derive(Clone, Debug)]
pub struct LeaderElector {
    /// The Lease that the candidates share.
    pub lease: ObjectKey,
    /// Labels that this process puts on the Lease whenever it writes it.
    pub labels: BTreeMap<String, String>,
    /// The candidate's identity, and the durations that all candidates agree on.
    pub config: LeaseConfig,
}

impl Kube {
    /// Takes part in an election until `stop` ends, then releases the Lease if it is held.
    ///
    /// `status` says `leads` only while it is certain that nobody else leads: it says no at the very moment the renew
    /// deadline passes, even while a request is under way.
    pub async fn elect(
        &self,
        elector: &LeaderElector,
        status: watch::Sender<LeaderStatus>,
        stop: impl Future<Output = ()>,
    ) {
        let began = Instant::now();
        let now = || Timestamp(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX));
        let mut election = Election::new(elector.config.clone());
        let mut failure = None;
        tokio::pin!(stop);
        loop {
            publish(&status, &election, now(), began, failure.clone());
            let end = election.leads_until().filter(|_| election.leads(now()));
            let step = self.step(elector, &mut election, now, &mut failure);
            tokio::select! {
                () = &mut stop => break,
                () = step => {}
                () = at(began, end) => {
                    // Too late. Whatever the request under way brings, another process may lead by then.
                    failure.get_or_insert_with(|| "the lease could not be renewed in time".to_string());
                }
            }
        }
        let released = election.release(wall());
        publish(&status, &election, now(), began, None);
        if let Some((spec, lease)) = released {
            // The Lease expires by itself if this fails.
            let _ = within(Duration::from_millis(elector.config.retry), self.release(elector, spec, lease)).await;
        }
    }

    /// Releases the Lease, also where a renewal that was under way has made it newer than `seen`.
    async fn release(&self, elector: &LeaderElector, spec: LeaseSpec, seen: Lease) -> Result<(), RequestError> {
        if self.put_lease(elector, spec.clone(), Some(&seen)).await?.is_some() {
            return Ok(());
        }
        let newer = self.get_lease(&elector.lease).await?;
        let ours = newer.filter(|lease| lease.spec.holder_identity.as_deref() == Some(&elector.config.identity));
        match ours {
            Some(lease) => self.put_lease(elector, spec, Some(&lease)).await.map(|_| ()),
            None => Ok(()),
        }
    }

    /// One request and its answer, or one wait.
    async fn step(
        &self,
        elector: &LeaderElector,
        election: &mut Election,
        now: impl Fn() -> Timestamp,
        failure: &mut Option<String>,
    ) {
        // A leader must have time for another try after a request that got no answer.
        let timeout = Duration::from_millis(elector.config.renew - elector.config.retry);
        match election.next(now(), wall()) {
            ElectionStep::Wait(until) => {
                tokio::time::sleep(Duration::from_millis(until.0.saturating_sub(now().0))).await;
            }
            ElectionStep::Read => {
                let found = within(timeout, self.get_lease(&elector.lease)).await;
                *failure = found.as_ref().err().map(ToString::to_string);
                election.read(
                    now(),
                    match found {
                        Ok(Some(lease)) => LeaseRead::Found(lease),
                        Ok(None) => LeaseRead::NotFound,
                        Err(_) => LeaseRead::Failed,
                    },
                );
            }
            ElectionStep::Write { spec, based_on } => {
                let wrote = within(timeout, self.put_lease(elector, spec, based_on.as_ref())).await;
                *failure = wrote.as_ref().err().map(ToString::to_string);
                election.wrote(now(), wrote.ok().flatten());
            }
        }
    }

    async fn get_lease(&self, key: &ObjectKey) -> Result<Option<Lease>, RequestError> {
        self.counts.add("get", Kind::Lease, "");
        let path = path::object(Kind::Lease, key, None);
        let answer = self.send(Method::GET, &path, Some(Kind::Lease), "", Bytes::new()).await?;
        if answer.code == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        decode(&answer, "read").map(Some)
    }

    /// Creates or replaces the Lease; `None` if another candidate was faster.
    async fn put_lease(
        &self,
        elector: &LeaderElector,
        spec: LeaseSpec,
        based_on: Option<&Lease>,
    ) -> Result<Option<Lease>, RequestError> {
        let key = &elector.lease;
        let mut labels = based_on.map(|lease| lease.metadata.labels.clone()).unwrap_or_default();
        labels.extend(elector.labels.clone());
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
        if answer.code == StatusCode::CONFLICT || answer.code == StatusCode::NOT_FOUND && based_on.is_some() {
            return Ok(None);
        }
        decode(&answer, verb).map(Some)
    }
}

fn decode(answer: &Answer, verb: &str) -> Result<Lease, RequestError> {
    if !answer.code.is_success() {
        return Err(answer.refusal(format!("{verb} the lease")));
    }
    let reason = match answer.object(Kind::Lease) {
        Ok(Object::Lease(lease)) => return Ok(Arc::unwrap_or_clone(lease)),
        Ok(other) => DecodeError::Malformed(format!("it is a {}", other.kind())),
        Err(reason) => reason,
    };
    Err(RequestError::Undecodable { what: "the lease".into(), reason })
}

async fn within<T>(
    timeout: Duration,
    request: impl Future<Output = Result<T, RequestError>>,
) -> Result<T, RequestError> {
    let late = |_| Err(RequestError::Unknown(TransportError::Timeout(timeout)));
    tokio::time::timeout(timeout, request).await.unwrap_or_else(late)
}

fn publish(
    status: &watch::Sender<LeaderStatus>,
    election: &Election,
    now: Timestamp,
    began: Instant,
    failure: Option<String>,
) {
    let leads = election.leads(now);
    let renewed = election.renewed().filter(|_| leads).map(|tick| began + Duration::from_millis(tick.0));
    let new = LeaderStatus { leads, holder: election.holder().map(String::from), renewed, failure };
    status.send_if_modified(|held| {
        let changed = *held != new;
        *held = new;
        changed
    });
}

/// Ends at this moment after `began`, or never.
async fn at(began: Instant, end: Option<Timestamp>) {
    match end {
        Some(end) => tokio::time::sleep_until((began + Duration::from_millis(end.0)).into()).await,
        None => std::future::pending().await,
    }
}

fn wall() -> Time {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    Time::micro_from_unix_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}
