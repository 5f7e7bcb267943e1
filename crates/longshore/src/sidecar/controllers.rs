//! The roles that work on the cluster's objects: provisioner, attacher, resizer, and what the registrar writes on its Node.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use api::{Kind, ObjectKey};
use control::{Narrate, Rules};
use io_csi::{Driver, Profile};
use io_kube::{Kube, LeaderElector, LeaderStatus, Scope, WatchEvent};
use io_run::{Clock, Controller, Events, Facts, Hands, Metrics, Parts};
use rules_attacher::Attacher;
use rules_provisioner::{Capacity, Provisioner, Sources};
use rules_registrar::{Marker, MarkerLocal};
use rules_resizer::Resizer;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::hands::RoleHands;
use super::run::Shared;
use super::secrets::Waiting;
use super::settings::Cluster;
use super::tally::Tally;
use super::{Role, locals};

/// News of watches waiting to be taken in. The watches wait when it is full; a piece may be a whole page of a list.
const NEWS: usize = 4;

/// Keys at once where nobody gave a number: far more than requests are ever under way, and still a bound.
const UNLIMITED: usize = 512;
/// Volumes made at once where nobody gave a number. Each has an entry in the journal, which the server reads and writes as a
/// whole: with more of them every write costs it more, and large entries have no room; with fewer there is nothing left to
/// make while the next ones are written down.
const MADE_AT_ONCE: usize = 192;

/// A controller, whatever its rules.
trait Worker: Send + Sync {
    fn wait_at_end(&self, longest: Duration);
    fn lead(&self, leads: bool);
    fn stop(&self);
    fn start_over(&self);
    fn run(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

impl<R: Narrate> Worker for Controller<R> {
    fn wait_at_end(&self, longest: Duration) {
        Controller::wait_at_end(self, longest);
    }

    fn lead(&self, leads: bool) {
        Controller::lead(self, leads);
    }

    fn stop(&self) {
        Controller::stop(self);
    }

    fn start_over(&self) {
        Controller::start_over(self);
    }

    fn run(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(Controller::run(self))
    }
}

/// The marker, which asks a driver that is back where its node is.
struct Marking(Arc<Controller<Marker>>);

impl Worker for Marking {
    fn wait_at_end(&self, longest: Duration) {
        self.0.wait_at_end(longest);
    }

    fn lead(&self, leads: bool) {
        self.0.lead(leads);
    }

    fn stop(&self) {
        self.0.stop();
    }

    fn start_over(&self) {
        self.0.update_local(|local| local.place = None);
        self.0.start_over();
    }

    fn run(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.0.clone().run())
    }
}

/// The controllers of one role.
struct Team {
    /// Leaders are found for this role, by the Lease of this name.
    lease: Option<String>,
    workers: Vec<Arc<dyn Worker>>,
}

/// What the teams watch.
#[derive(Default)]
struct Sight {
    /// What they name, whether they need it or not: it counts as listed.
    named: BTreeSet<Kind>,
    /// What they need, and of which objects.
    needed: BTreeMap<Kind, Scope>,
}

impl Sight {
    fn see(&mut self, named: &[Kind], unseen: &[Kind]) {
        self.named.extend(named);
        let needed = named.iter().filter(|kind| !unseen.contains(kind));
        self.needed.extend(needed.map(|kind| (*kind, Scope::default())));
    }

    /// Only these objects are needed, unless somebody needs more.
    fn narrow(&mut self, kind: Kind, scope: Scope) {
        self.named.insert(kind);
        self.needed.entry(kind).or_insert(scope);
    }
}

/// What the parts of the controllers are made of.
struct Workshop {
    shared: Arc<Shared>,
    driver: Arc<Driver>,
    profile: Profile,
    kube: Kube,
    facts: Arc<Facts>,
    clock: Arc<Clock>,
    waiting: Arc<Waiting>,
    events: Events,
    sight: Sight,
}

/// Runs the controllers until everything is to end; `lives` counts lives of the driver.
pub async fn work(
    shared: &Arc<Shared>,
    kube: Kube,
    driver: Arc<Driver>,
    profile: &Profile,
    mut lives: watch::Receiver<u64>,
) -> Result<()> {
    let limited = match shared.settings.cluster.limit {
        Some((rate, burst)) => kube.throttled(rate, burst),
        None => kube.paced(),
    };
    let waiting = Arc::<Waiting>::default();
    let speaking: Arc<dyn Hands> = Arc::new(RoleHands {
        kube: limited.clone(),
        driver: driver.clone(),
        timeout: shared.settings.timeout(Role::Provisioner),
        waiting: waiting.clone(),
    });
    let mut workshop = Workshop {
        shared: shared.clone(),
        driver,
        profile: profile.clone(),
        kube: limited.clone(),
        facts: Arc::default(),
        clock: Arc::new(Clock::default()),
        waiting: waiting.clone(),
        events: Events::start(speaking),
        sight: Sight::default(),
    };
    let mut teams = Vec::new();
    for role in shared.settings.controllers() {
        teams.push(workshop.team(role).await?);
    }
    if shared.settings.marks_node() {
        teams.push(workshop.marker());
    }
    let Workshop { facts, events, sight, .. } = workshop;
    feed(&limited, &facts, sight);
    let (working, worked) = watch::channel(true);
    let (mut workers, mut campaigns) = (JoinSet::new(), JoinSet::new());
    for team in &teams {
        for worker in &team.workers {
            workers.spawn(worker.clone().run());
        }
        if let (Some(election), Some(name)) = (&shared.settings.election, &team.lease) {
            team.workers.iter().for_each(|worker| worker.lead(false));
            let lease = ObjectKey::new(&*shared.settings.home, &**name);
            let elector = LeaderElector { lease, labels: election.labels.clone(), config: election.config.clone() };
            let metrics = shared.metrics.clone();
            campaigns.spawn(campaigning(metrics, kube.clone(), elector, team.workers.clone(), worked.clone()));
        }
    }
    let everybody: Vec<Arc<dyn Worker>> = teams.iter().flat_map(|team| team.workers.iter().cloned()).collect();
    let again = everybody.clone();
    let looking = tokio::spawn(waiting.look(limited, move || again.iter().for_each(|worker| worker.start_over())));
    loop {
        tokio::select! {
            () = shared.stopped() => break,
            changed = lives.changed() => {
                if changed.is_err() {
                    break;
                }
                // The driver is back: what failed before says nothing any more.
                everybody.iter().for_each(|worker| worker.start_over());
            }
        }
    }
    looking.abort();
    everybody.iter().for_each(|worker| worker.stop());
    while workers.join_next().await.is_some() {}
    // Only now: whoever leads next must not begin while something of ours is under way.
    let _ = working.send(false);
    while campaigns.join_next().await.is_some() {}
    events.settle().await;
    Ok(())
}

/// The cluster, as far as what was given says where it is: nobody is asked yet.
pub async fn connect(cluster: &Cluster) -> Result<Kube> {
    Ok(match (&cluster.kubeconfig, &cluster.master) {
        (Some(path), _) => Kube::from_kubeconfig(std::path::Path::new(path)).await?,
        (None, Some(url)) => Kube::from_url(url).await?,
        (None, None) => Kube::from_environment().await?,
    })
}

/// Watches what the rules need, and nothing else.
fn feed(kube: &Kube, facts: &Arc<Facts>, sight: Sight) {
    let (send, mut news) = mpsc::channel(NEWS);
    for kind in sight.named.iter().filter(|kind| !sight.needed.contains_key(kind)) {
        facts.replace(*kind, 0, Vec::new());
    }
    for (kind, scope) in sight.needed {
        tokio::spawn(kube.clone().watch_within(kind, scope, send.clone()));
    }
    let facts = facts.clone();
    tokio::spawn(async move {
        while let Some(feed) = news.recv().await {
            match feed {
                WatchEvent::InitApply(objects) => facts.part(objects),
                WatchEvent::InitDone { kind, version, objects, before } => {
                    facts.replace_rest(kind, version, objects, before);
                }
                WatchEvent::Apply(object) => facts.set(object),
                WatchEvent::Delete(object) => facts.remove(&object),
            }
        }
    });
}

/// Lets the controllers of a role work while this process leads; gives the lease up when `worked` says no.
async fn campaigning(
    metrics: Arc<Metrics>,
    kube: Kube,
    elector: LeaderElector,
    workers: Vec<Arc<dyn Worker>>,
    mut worked: watch::Receiver<bool>,
) {
    let (tell, mut standing) = watch::channel(LeaderStatus::default());
    let name = elector.lease.name.clone();
    metrics.leads(&name, false);
    let follow = async move {
        let mut leads = false;
        while standing.changed().await.is_ok() {
            let now = standing.borrow_and_update().clone();
            if let Some(failure) = &now.failure {
                tracing::warn!("the lease {name}: {failure}");
            }
            if now.leads != leads {
                leads = now.leads;
                metrics.leads(&name, leads);
                tracing::info!("{} under the lease {name}", if leads { "leading" } else { "no longer leading" });
                workers.iter().for_each(|worker| worker.lead(leads));
            }
        }
    };
    let end = async move {
        let _ = worked.wait_for(|working| !working).await;
    };
    tokio::join!(kube.elect(&elector, tell, end), follow);
}

impl Workshop {
    fn parts(&self, role: Role) -> Parts {
        self.parts_by(role, self.kube.clone())
    }

    fn parts_by(&self, role: Role, kube: Kube) -> Parts {
        let hands: Arc<dyn Hands> = Arc::new(RoleHands {
            kube,
            driver: self.driver.clone(),
            timeout: self.shared.settings.timeout(role),
            waiting: self.waiting.clone(),
        });
        Parts {
            facts: self.facts.clone(),
            clock: self.clock.clone(),
            // What an attacher has to say it says in the attachment, as upstream's does.
            events: (role != Role::Attacher).then(|| self.events.clone()),
            hands,
            metrics: self.shared.metrics.clone(),
        }
    }

    /// Not told how many, there is no limit to speak of: the pace of the requests adapts to the server's answers.
    fn limit(&self, role: Role, name: &str) -> usize {
        let flags = &self.shared.settings.flags;
        match role {
            _ if flags.is_given(name) => usize::try_from(flags.int(role, name)).unwrap_or(1),
            Role::Provisioner => MADE_AT_ONCE,
            Role::Attacher | Role::Resizer | Role::Registrar | Role::Liveness => UNLIMITED,
        }
    }

    /// The controllers of a role, and what they watch.
    async fn team(&mut self, role: Role) -> Result<Team> {
        let workers: Vec<Arc<dyn Worker>> = match role {
            Role::Provisioner => self.provisioners().await?,
            Role::Attacher => {
                self.sight.see(Attacher::watches(), &[]);
                let local = locals::attacher(&self.shared, &self.profile);
                let attacher = Controller::<Attacher>::new(&self.parts(role), local);
                attacher.at_once(self.limit(role, "worker-threads"));
                vec![attacher]
            }
            Role::Resizer => {
                let local = locals::resizer(&self.shared, &self.profile)?;
                self.sight.see(Resizer::watches(), &locals::unseen_by_resizer(&local));
                let resizer = Controller::<Resizer>::new(&self.parts(role), local);
                resizer.at_once(self.limit(role, "workers"));
                vec![resizer]
            }
            Role::Registrar | Role::Liveness => vec![],
        };
        workers.iter().for_each(|worker| worker.wait_at_end(self.shared.settings.timeout(role)));
        // Every node has a provisioner where there is one per node: none of them waits for another.
        let alone = role == Role::Provisioner && self.shared.settings.per_node();
        Ok(Team { lease: role.lease(&self.profile.name).filter(|_| !alone), workers })
    }

    async fn provisioners(&mut self) -> Result<Vec<Arc<dyn Worker>>> {
        let role = Role::Provisioner;
        let local = locals::provisioner(&self.shared, &self.profile, &self.kube).await?;
        let unseen = locals::unseen_by_provisioner(&local);
        let journal = local.journal();
        self.sight.narrow(Kind::Lease, Scope { namespace: journal.namespace, name: journal.name, ..Scope::default() });
        self.sight.see(Provisioner::watches(), &[&unseen[..], &[Kind::Lease]].concat());
        self.sight.see(Sources::watches(), &[&unseen[..], &[Kind::Lease]].concat());
        let parts = self.parts(role);
        self.shared.metrics.counted_by(Arc::new(Tally::new(self.facts.clone())));
        let provisioner = Controller::<Provisioner>::new(&parts, local.clone());
        provisioner.at_once(self.limit(role, "worker-threads"));
        let mut all: Vec<Arc<dyn Worker>> = vec![provisioner, Controller::<Sources>::new(&parts, local.clone())];
        let Some(capacity) = &local.settings.capacity else { return Ok(all) };
        let mine = Scope { namespace: capacity.namespace.clone(), labels: local.capacity_labels(), ..Scope::default() };
        self.sight.narrow(Kind::CSIStorageCapacity, mine);
        self.sight.see(Capacity::watches(), &[unseen, vec![Kind::CSIStorageCapacity]].concat());
        let flags = &self.shared.settings.flags;
        let limited = ["kube-api-capacity-qps", "kube-api-capacity-burst"].iter().any(|name| flags.is_given(name));
        let kube = if limited {
            let burst = u32::try_from(flags.int(role, "kube-api-capacity-burst")).unwrap_or(1);
            self.kube.throttled(flags.float(role, "kube-api-capacity-qps"), burst)
        } else {
            self.kube.clone()
        };
        let parts = Parts { events: None, ..self.parts_by(role, kube) };
        let (facts, counted) = (self.facts.clone(), local.clone());
        let look = move || facts.look(|cache| rules_provisioner::tally(cache, &counted));
        let _ = self.shared.capacities.set(Box::new(look));
        let capacity = Controller::<Capacity>::new(&parts, local);
        capacity.at_once(usize::try_from(flags.int(role, "capacity-threads")).unwrap_or(1));
        all.push(capacity);
        Ok(all)
    }

    /// The node's id and topology, written by us where nobody else does.
    fn marker(&mut self) -> Team {
        let settings = &self.shared.settings;
        let local = MarkerLocal {
            node: settings.own.node.clone(),
            driver: self.profile.name.clone(),
            socket: settings.socket.clone(),
            place: None,
        };
        self.sight.narrow(Kind::Node, Scope { name: local.node.clone(), ..Scope::default() });
        let marker = Controller::<Marker>::new(&self.parts(Role::Registrar), local);
        Team { lease: None, workers: vec![Arc::new(Marking(marker))] }
    }
}
