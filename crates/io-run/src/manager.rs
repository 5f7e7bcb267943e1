//! The one composition root: what the controllers of a process share, and everything that is done to all of them.

mod add;
mod lead;
mod looks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::{Kind, Object};
use control::Narrate;
use io_host::Workers;
use io_kube::{Kube, Scope, WatchEvent};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinHandle};

pub use add::Addition;
pub use lead::Leadership;
pub use looks::Looks;

use crate::panics;
use crate::watch_set::WatchSet;
use crate::{
    Clock, Controller, Drivers, Events, Explanation, Metrics, Panicked, Panics, SecretPoll, SharedCache, SharedHands,
};

/// Watch events waiting to be taken in. The watches wait when it is full; one event may be a whole page of a list.
const EVENTS: usize = 4;
/// The deadline of a call whose controller has none of its own.
const CALL_DEADLINE: std::time::Duration = std::time::Duration::from_secs(120);

/// What the controllers of a process share.
///
/// ```no_run
/// # use std::sync::Arc;
/// # async fn example<R: control::Narrate>(kube: io_kube::Kube, local: R::Local) {
/// let manager = io_run::Manager::new(kube.clone(), kube, Arc::default(), None);
/// let controller = manager.add::<R>("driver.example", local).limit(16).start();
/// manager.stop().await;
/// # }
/// ```
pub struct Manager {
    /// The API, at the pace of this process.
    kube: Kube,
    /// The API for Leases, which wait for nothing else.
    unpaced: Kube,
    machine: Option<Workers>,
    cache: Arc<SharedCache>,
    clock: Arc<Clock>,
    events: Events,
    metrics: Arc<Metrics>,
    drivers: Arc<Drivers>,
    secrets: Arc<SecretPoll>,
    panics: Arc<Panics>,
    watches: Arc<Watches>,
    looks: Arc<Looks>,
    groups: Arc<Mutex<BTreeMap<String, Group>>>,
    polling: AbortHandle,
}

/// The watches of a process, and what they have listed.
struct Watches {
    set: Mutex<WatchSet>,
    running: Mutex<BTreeMap<Kind, AbortHandle>>,
    feed: mpsc::Sender<WatchEvent>,
    changed: watch::Sender<u64>,
    panics: Arc<Panics>,
}

/// Controllers that come and go together.
#[derive(Default)]
struct Group {
    members: Vec<Member>,
    elections: Vec<lead::Running>,
}

struct Member {
    controller: Arc<dyn AnyController>,
    running: JoinHandle<()>,
}

/// A controller, whatever its rules.
trait AnyController: Send + Sync {
    fn name(&self) -> &'static str;
    fn stop(&self);
    fn start_over(&self);
    fn explain_only(&self, objects: &[Object]) -> Vec<Explanation>;
}

impl<R: Narrate> AnyController for Controller<R> {
    fn name(&self) -> &'static str {
        R::NAME
    }

    fn stop(&self) {
        Controller::stop(self);
    }

    fn start_over(&self) {
        Controller::start_over(self);
    }

    fn explain_only(&self, objects: &[Object]) -> Vec<Explanation> {
        Controller::explain_only(self, objects)
    }
}

impl Manager {
    /// A process without controllers. `unpaced` is the same connection without a limit, for Leases; `machine` performs
    /// what is to be done on this machine, if anything is.
    pub fn new(kube: Kube, unpaced: Kube, drivers: Arc<Drivers>, machine: Option<Workers>) -> Arc<Manager> {
        let (clock, metrics, cache) = (Arc::new(Clock::default()), drivers.metrics().clone(), Arc::default());
        let secrets = Arc::new(SecretPoll::new(clock.clone()));
        let groups = Arc::<Mutex<BTreeMap<String, Group>>>::default();
        panics::watch_process();
        let panics = Arc::<Panics>::default();
        let watches = Watches::start(&cache, &panics);
        let looks = Looks::new(&cache, &watches);
        let again = groups.clone();
        let start_over = move || all(&again).iter().for_each(|controller| controller.start_over());
        let polling = panics.keep("the poll of Secrets", secrets.clone().run(kube.clone(), start_over));
        let hands = SharedHands {
            kube: kube.clone(),
            drivers: drivers.clone(),
            timeout: CALL_DEADLINE,
            machine: None,
            secrets: secrets.clone(),
            looks: looks.clone(),
        };
        Arc::new(Manager {
            events: Events::start(Arc::new(hands)),
            panics,
            kube,
            unpaced,
            machine,
            cache,
            clock,
            metrics,
            drivers,
            secrets,
            watches,
            looks,
            groups,
            polling,
        })
    }

    /// Adds a controller to the group of this name; [`Addition::start`] sets it to work.
    pub fn add<R: Narrate>(&self, group: &str, local: R::Local) -> Addition<'_, R> {
        Addition::new(self, group, local)
    }

    /// The API objects this process has seen.
    pub fn cache(&self) -> &Arc<SharedCache> {
        &self.cache
    }

    /// The time, as controllers are told it.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// What is counted.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The drivers that are called.
    pub fn drivers(&self) -> &Arc<Drivers> {
        &self.drivers
    }

    /// The API, at the pace of this process.
    pub fn kube(&self) -> &Kube {
        &self.kube
    }

    /// What a health check answers: `Err` once a task has failed, or anything in this process has panicked.
    pub fn health(&self) -> Result<(), Panicked> {
        let told = [self.panics.health(), panics::health_of_process()].into_iter().filter_map(Result::err);
        let told: Vec<String> = told.map(|Panicked(text)| text).collect();
        if told.is_empty() { Ok(()) } else { Err(Panicked(told.join(". "))) }
    }

    /// Starts a task that is to work until [`Manager::stop`]. That it panicked, or ended before, is told as
    /// [`Panics::keep`] says.
    pub fn keep(&self, what: &str, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.panics.keep(what, task)
    }

    /// Whether a group has controllers.
    pub fn has(&self, group: &str) -> bool {
        lock(&self.groups).contains_key(group)
    }

    /// Somebody whom a group waits for is back: what failed before says nothing any more.
    pub fn start_over(&self, group: &str) {
        let members: Vec<_> = match lock(&self.groups).get(group) {
            Some(group) => group.members.iter().map(|member| member.controller.clone()).collect(),
            None => Vec::new(),
        };
        members.iter().for_each(|controller| controller.start_over());
    }

    /// Stops the controllers of a group: begins nothing new, waits for what is under way, then gives the Leases up.
    /// Whoever leads next must not begin while something of ours is under way.
    pub async fn stop_group(&self, group: &str) {
        let group = lock(&self.groups).remove(group);
        if let Some(group) = group {
            group.stop().await;
        }
    }

    /// Stops every controller, as [`Manager::stop_group`] does, and writes the last events.
    pub async fn stop(&self) {
        self.panics.end();
        self.polling.abort();
        let groups = std::mem::take(&mut *lock(&self.groups));
        futures::future::join_all(groups.into_values().map(Group::stop)).await;
        self.events.settle().await;
        self.watches.stop();
    }

    /// What every controller makes of these objects and no others, the controllers in this order; those that are not
    /// named come last.
    pub fn explain(&self, objects: &[Object], order: &[&str]) -> Vec<Explanation> {
        let mut controllers = all(&self.groups);
        let place = |name: &str| order.iter().position(|named| *named == name).unwrap_or(order.len());
        controllers.sort_by_key(|controller| place(controller.name()));
        controllers.iter().flat_map(|one| one.explain_only(objects)).collect()
    }

    /// The controllers at work, by group: those of the cluster, of the node, of a driver by its name.
    pub fn controllers(&self) -> BTreeMap<String, Vec<&'static str>> {
        let names = |group: &Group| group.members.iter().map(|member| member.controller.name()).collect();
        lock(&self.groups).iter().map(|(name, group)| (name.clone(), names(group))).collect()
    }
}

impl Group {
    async fn stop(self) {
        self.members.iter().for_each(|member| member.controller.stop());
        for member in self.members {
            let _ = member.running.await;
        }
        futures::future::join_all(self.elections.into_iter().map(lead::Running::end)).await;
    }
}

impl Watches {
    /// Takes the events of watches into the cache.
    fn start(cache: &Arc<SharedCache>, panics: &Arc<Panics>) -> Arc<Watches> {
        let (feed, mut events) = mpsc::channel(EVENTS);
        let watches = Arc::new(Watches {
            set: Mutex::default(),
            running: Mutex::default(),
            feed,
            changed: watch::Sender::new(0),
            panics: panics.clone(),
        });
        let (cache, weak) = (cache.clone(), Arc::downgrade(&watches));
        let taking = async move {
            while let Some(event) = events.recv().await {
                match event {
                    WatchEvent::InitApply(objects) => cache.part(objects),
                    WatchEvent::InitDone { kind, version, objects, before } => {
                        cache.replace_rest(kind, version, objects, before);
                        if let Some(watches) = weak.upgrade() {
                            lock(&watches.set).listed(kind);
                            watches.changed.send_modify(|count| *count += 1);
                        }
                    }
                    WatchEvent::Apply(object) => cache.set(object),
                    WatchEvent::Delete(object) => cache.remove(&object),
                }
            }
        };
        panics.keep("the cache", taking);
        watches
    }

    /// Watches a kind within a scope too.
    fn need(&self, kube: &Kube, kind: Kind, scope: Scope) {
        let Some(scope) = lock(&self.set).need(kind, scope) else { return };
        let watch = kube.clone().watch_within(kind, scope, self.feed.clone());
        let watching = self.panics.keep(format!("the watch of {}", kind.plural()), watch);
        if let Some(narrower) = lock(&self.running).insert(kind, watching) {
            narrower.abort();
        }
    }

    /// Waits until all of these kinds have been listed.
    async fn listed(&self, kinds: &BTreeSet<Kind>) {
        let mut changed = self.changed.subscribe();
        while !lock(&self.set).all_listed(kinds) {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    fn stop(&self) {
        lock(&self.running).values().for_each(AbortHandle::abort);
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        self.panics.end();
        self.stop();
    }
}

/// Every controller there is.
fn all(groups: &Mutex<BTreeMap<String, Group>>) -> Vec<Arc<dyn AnyController>> {
    let groups = lock(groups);
    groups.values().flat_map(|group| group.members.iter().map(|member| member.controller.clone())).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
