//! The controllers that work for one driver: provisioner, attacher, resizer, and what the registrar writes on its
//! Node. Every process that serves a driver adds them here: `sidecar`, `controllers` and `up`.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use api::{Kind, ObjectKey};
use control::Timestamp;
use csi::{Call, Response, v1};
use io_csi::Profile;
use io_kube::{Kube, LeaderElector, Scope};
use io_run::{Leadership, Manager, Observer};
use rules_attacher::Attacher;
use rules_provisioner::{
    AttemptGoal, AttemptTally, Capacity, CapacityTally, EndedAttempt, Local as ProvisionerLocal, OwnNode, Provisioner,
    Sources,
};
use rules_registrar::{Marker, MarkerLocal};
use rules_resizer::Resizer;

use super::settings::{Cluster, Settings};
use super::table::{self, Flag};
use super::{Role, capacity, locals};

/// Keys at once where nobody gave a number: far more than requests are ever under way, and still a bound.
const UNLIMITED: usize = 512;
/// Volumes made at once where nobody gave a number. Each has an entry in the journal, which the server reads and
/// writes as a whole: with more of them every write costs it more, and large entries have no room; with fewer there is
/// nothing left to make while the next ones are written down.
const MADE_AT_ONCE: usize = 192;

/// Looks how far published capacities are from what they should be.
pub type Capacities = Box<dyn Fn() -> CapacityTally + Send + Sync>;

/// The cluster, as far as what was given says where it is: nobody is asked yet.
pub async fn connect(cluster: &Cluster) -> Result<Kube> {
    Ok(match (&cluster.kubeconfig, &cluster.master) {
        (Some(path), _) => Kube::from_kubeconfig(std::path::Path::new(path)).await?,
        (None, Some(url)) => Kube::from_url(url).await?,
        (None, None) => Kube::from_environment().await?,
    })
}

/// Adds the controllers of the roles that the settings name, for the driver with this profile. They are the group of
/// the driver's name. Answers with the count of capacity objects, where there are any to count.
pub async fn add(manager: &Manager, settings: &Settings, profile: &Profile) -> Result<Option<Capacities>> {
    let roles = Roles { manager, settings, profile };
    let mut capacities = None;
    for role in settings.controllers() {
        match role {
            Role::Provisioner => capacities = roles.provisioner().await?,
            Role::Attacher => roles.attacher(),
            Role::Resizer => roles.resizer()?,
            Role::Registrar | Role::Liveness => {}
        }
    }
    if settings.marks_node() {
        roles.marker();
    }
    Ok(capacities)
}

struct Roles<'a> {
    manager: &'a Manager,
    settings: &'a Settings,
    profile: &'a Profile,
}

impl Roles<'_> {
    fn group(&self) -> &str {
        &self.profile.name
    }

    /// The Lease of a role, if leaders are found for it.
    fn lease(&self, role: Role) -> Option<Leadership> {
        // Every node has a provisioner where there is one per node: none of them waits for another.
        let alone = role == Role::Provisioner && self.settings.per_node();
        let name = role.lease(&self.profile.name).filter(|_| !alone)?;
        let election = self.settings.election.as_ref()?;
        let lease = ObjectKey::new(&*self.settings.home, name);
        let elector = LeaderElector { lease, labels: election.labels.clone(), config: election.config.clone() };
        Some(self.manager.elect(self.group(), elector))
    }

    /// Not told how many, there is no limit to speak of: the pace of the requests adapts to the server's answers.
    fn limit(&self, role: Role, flag: Flag<i64>) -> usize {
        let flags = &self.settings.flags;
        match role {
            _ if flags.is_given(flag) => usize::try_from(flags.int(role, flag)).unwrap_or(1),
            Role::Provisioner => MADE_AT_ONCE,
            Role::Attacher | Role::Resizer | Role::Registrar | Role::Liveness => UNLIMITED,
        }
    }

    fn attacher(&self) {
        let (role, local) = (Role::Attacher, locals::attacher(self.settings, self.profile));
        let attacher = self.manager.add::<Attacher>(self.group(), local);
        let attacher = attacher.lease(self.lease(role).as_ref()).limit(self.limit(role, table::WORKER_THREADS));
        attacher.timeout(self.settings.timeout(role)).start();
    }

    fn resizer(&self) -> Result<()> {
        let (role, local) = (Role::Resizer, locals::resizer(self.settings, self.profile)?);
        let unseen = locals::unseen_by_resizer(&local);
        let resizer = self.manager.add::<Resizer>(self.group(), local).without(&unseen);
        let resizer = resizer.lease(self.lease(role).as_ref()).limit(self.limit(role, table::WORKERS));
        resizer.timeout(self.settings.timeout(role)).start();
        Ok(())
    }

    async fn provisioner(&self) -> Result<Option<Capacities>> {
        let role = Role::Provisioner;
        let node = if self.settings.per_node() { Some(self.own_node().await?) } else { None };
        let kube = self.manager.kube();
        let local = locals::provisioner(self.settings, self.profile, node, kube).await?;
        let (unseen, journal) = (locals::unseen_by_provisioner(&local), local.journal());
        let journal = Scope { namespace: journal.namespace, name: journal.name, ..Scope::default() };
        let (lease, timeout) = (self.lease(role), self.settings.timeout(role));
        let provisioner = self.manager.add::<Provisioner>(self.group(), local.clone()).lease(lease.as_ref());
        let provisioner = provisioner.limit(self.limit(role, table::WORKER_THREADS)).timeout(timeout).without(&unseen);
        provisioner.within(Kind::Lease, journal.clone()).observe(self.tally()).start();
        let sources = self.manager.add::<Sources>(self.group(), local.clone()).lease(lease.as_ref());
        sources.timeout(timeout).without(&unseen).within(Kind::Lease, journal).start();
        Ok(self.capacity(local, lease.as_ref(), &unseen))
    }

    /// Publishes capacities, where that was asked for.
    fn capacity(&self, local: ProvisionerLocal, lease: Option<&Leadership>, unseen: &[Kind]) -> Option<Capacities> {
        let (role, flags) = (Role::Provisioner, &self.settings.flags);
        let namespace = local.settings.capacity.as_ref()?.namespace.clone();
        let mine = Scope { namespace, labels: local.capacity_labels(), ..Scope::default() };
        let limited = flags.is_given(table::KUBE_API_CAPACITY_QPS) || flags.is_given(table::KUBE_API_CAPACITY_BURST);
        let kube = if limited {
            let burst = u32::try_from(flags.int(role, table::KUBE_API_CAPACITY_BURST)).unwrap_or(1);
            self.manager.kube().throttled(flags.float(role, table::KUBE_API_CAPACITY_QPS), burst)
        } else {
            self.manager.kube().clone()
        };
        let capacity = self.manager.add::<Capacity>(self.group(), local.clone()).lease(lease).kube(kube);
        let threads = usize::try_from(flags.int(role, table::CAPACITY_THREADS)).unwrap_or(1);
        let capacity = capacity.limit(threads).timeout(self.settings.timeout(role)).without_events();
        capacity.without(unseen).within(Kind::CSIStorageCapacity, mine).start();
        let cache = self.manager.cache().clone();
        Some(Box::new(move || cache.look(|cache| rules_provisioner::tally(cache, &local))))
    }

    /// Counts attempts to make and delete volumes.
    fn tally(&self) -> Observer<Provisioner> {
        let (cache, metrics) = (self.manager.cache().clone(), self.manager.metrics().clone());
        let (tally, started) = (Mutex::new(AttemptTally::default()), Instant::now());
        let tick = |since: Duration| Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        Box::new(move |key, action, acted| {
            let now = started.elapsed();
            let times = (tick(now.saturating_sub(acted.took)), tick(now));
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            let ended = cache.look(|cache| tally.ended(times, key, action, acted.failed, cache));
            let Some(EndedAttempt { goal, took }) = ended else { return };
            let took = took.map(Duration::from_millis);
            match goal {
                AttemptGoal::Provision { class, source } => metrics.provisioned(&class, &source, took),
                AttemptGoal::Delete { class } => metrics.deleted(&class, took),
            }
        })
    }

    /// P93: this node, as the driver on it describes it.
    async fn own_node(&self) -> Result<OwnNode> {
        let (settings, role) = (self.settings, Role::Provisioner);
        let client = &self.manager.drivers().at(&settings.socket).client;
        let call = Call::NodeGetInfo(v1::NodeGetInfoRequest {});
        let said = match client.call(&settings.socket, call, settings.timeout(role)).await {
            Ok(Response::NodeGetInfo(said)) => said,
            Ok(_) => bail!("the driver at {} does not say where its node is", settings.socket),
            Err(status) => bail!("the driver at {} does not say where its node is: {status}", settings.socket),
        };
        let millis = |flag: Flag<Duration>| {
            let given = settings.flags.duration(role, flag).as_millis();
            u64::try_from(given).with_context(|| format!("--{} is too long", flag.name()))
        };
        Ok(OwnNode {
            name: settings.identity.node.clone(),
            segments: said.accessible_topology.map(|place| place.segments).unwrap_or_default(),
            immediate_binding: settings.flags.is(role, table::NODE_DEPLOYMENT_IMMEDIATE_BINDING),
            base_delay_millis: millis(table::NODE_DEPLOYMENT_BASE_DELAY)?,
            max_delay_millis: millis(table::NODE_DEPLOYMENT_MAX_DELAY)?,
        })
    }

    /// The node's id and topology, written by us where nobody else does.
    fn marker(&self) {
        let local =
            MarkerLocal { node: self.settings.identity.node.clone(), driver: self.profile.name.clone(), place: None };
        let scope = Scope { name: local.node.clone(), ..Scope::default() };
        let marker = self.manager.add::<Marker>(self.group(), local).within(Kind::Node, scope);
        // A driver that is back may say something else of its node.
        marker.timeout(self.settings.timeout(Role::Registrar)).refresh(|local| local.place = None).start();
    }
}

/// Who owns the capacity objects, and how they are kept: asked of the cluster.
pub async fn capacity_settings(settings: &Settings, kube: &Kube) -> Result<rules_provisioner::CapacitySettings> {
    capacity::served(kube).await?;
    let every = settings.flags.duration(Role::Provisioner, table::CAPACITY_POLL_INTERVAL);
    let level = settings.flags.int(Role::Provisioner, table::CAPACITY_OWNERREF_LEVEL);
    Ok(rules_provisioner::CapacitySettings {
        namespace: settings.identity.namespace.clone(),
        immediate: settings.flags.is(Role::Provisioner, table::CAPACITY_FOR_IMMEDIATE_BINDING),
        poll_millis: u64::try_from(every.as_millis()).context("--capacity-poll-interval is too long")?,
        owner: capacity::owner(kube, level, &settings.identity).await?,
    })
}
