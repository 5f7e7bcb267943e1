//! The roles that work on the cluster's objects: provisioner, attacher, resizer.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use api::{Kind, ObjectKey};
use control::{Effect, Outcome, Refusal, Rules};
use csi::v1::plugin_capability::service::Type as Service;
use csi::v1::{controller_service_capability::rpc::Type as Can, node_service_capability::rpc::Type as NodeCan};
use io_csi::{Ability, Driver, Profile};
use io_kube::{Campaign, Feed, Kube, Standing};
use io_run::{Clock, Controller, Events, Facts, Hands, Parts};
use rules_attacher::Attacher;
use rules_provisioner::{Intent, Provisioner, Sources};
use rules_resizer::{Expansion, Resizer};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::Role;
use super::run::Shared;
use super::settings::Cluster;

/// News of watches waiting to be taken in. The watches wait when it is full; a piece may be a whole page of a list.
const NEWS: usize = 4;

/// Keys at once where nobody gave a number: far more than requests are ever under way, and still a bound.
const UNLIMITED: usize = 512;

/// The hands of one role.
struct RoleHands {
    kube: Kube,
    driver: Arc<Driver>,
    timeout: Duration,
}

impl Hands for RoleHands {
    fn perform(&self, effect: Effect) -> Pin<Box<dyn Future<Output = Outcome> + Send + '_>> {
        Box::pin(async move {
            match effect {
                Effect::Read(target) => self.kube.read(&target).await,
                Effect::Write(write) => self.kube.write(&write).await,
                Effect::Call { call, .. } => {
                    let method = call.method();
                    io_csi::outcome(method, self.driver.call(call, self.timeout).await)
                }
                Effect::Host(_) => Outcome::Refused(Refusal::Host(
                    "a sidecar has no machine to work on; report this as a defect".into(),
                )),
            }
        })
    }
}

/// A controller, whatever its rules.
trait Worker: Send + Sync {
    fn lead(&self, leads: bool);
    fn stop(&self);
    fn start_over(&self);
    fn run(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

impl<R> Worker for Controller<R>
where
    R: Rules + 'static,
    R::Key: Send + Sync,
    R::Local: Send,
    R::Memory: Send,
    R::Action: Send + Sync,
{
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

/// The controllers of one role.
struct Team {
    role: Role,
    workers: Vec<Arc<dyn Worker>>,
}

/// Runs the controllers until everything is to end; `lives` counts lives of the driver.
pub async fn work(
    shared: &Arc<Shared>,
    driver: Arc<Driver>,
    profile: &Profile,
    mut lives: watch::Receiver<u64>,
) -> Result<()> {
    let kube = connect(&shared.settings.cluster).await?;
    let limited = match shared.settings.cluster.limit {
        Some((rate, burst)) => kube.throttled(rate, burst),
        None => kube.paced(),
    };
    let facts: Arc<Facts> = Arc::default();
    let (mut teams, mut kinds) = (Vec::new(), BTreeSet::new());
    for role in shared.settings.controllers() {
        let timeout = shared.settings.timeout(role);
        let hands: Arc<dyn Hands> = Arc::new(RoleHands { kube: limited.clone(), driver: driver.clone(), timeout });
        let parts = Parts {
            facts: facts.clone(),
            clock: Arc::new(Clock::default()),
            events: Some(Events::start(hands.clone())),
            hands,
            metrics: shared.metrics.clone(),
        };
        teams.push(Team { role, workers: team(shared, role, &parts, profile, &mut kinds)? });
    }
    feed(&limited, &facts, kinds);
    let mut tasks = JoinSet::new();
    for team in &teams {
        for worker in &team.workers {
            tasks.spawn(worker.clone().run());
        }
        if let Some(election) = &shared.settings.election {
            let Some(name) = team.role.lease(&profile.name) else { continue };
            team.workers.iter().for_each(|worker| worker.lead(false));
            let lease = ObjectKey::new(&*election.namespace, &*name);
            let campaign = Campaign { lease, labels: election.labels.clone(), terms: election.terms.clone() };
            tasks.spawn(campaigning(shared.clone(), kube.clone(), campaign, team.workers.clone()));
        }
    }
    loop {
        tokio::select! {
            () = shared.stopped() => break,
            changed = lives.changed() => {
                if changed.is_err() {
                    break;
                }
                // The driver is back: what failed before says nothing any more.
                teams.iter().flat_map(|team| &team.workers).for_each(|worker| worker.start_over());
            }
        }
    }
    teams.iter().flat_map(|team| &team.workers).for_each(|worker| worker.stop());
    while tasks.join_next().await.is_some() {}
    Ok(())
}

async fn connect(cluster: &Cluster) -> Result<Kube> {
    Ok(match (&cluster.kubeconfig, &cluster.master) {
        (Some(path), _) => Kube::from_kubeconfig(std::path::Path::new(path)).await?,
        (None, Some(url)) => Kube::from_url(url)?,
        (None, None) => Kube::from_environment().await?,
    })
}

/// Watches what the rules look at, and nothing else.
fn feed(kube: &Kube, facts: &Arc<Facts>, kinds: BTreeSet<Kind>) {
    let (send, mut news) = mpsc::channel(NEWS);
    for kind in kinds {
        tokio::spawn(kube.clone().watch(kind, send.clone()));
    }
    let facts = facts.clone();
    tokio::spawn(async move {
        while let Some(feed) = news.recv().await {
            match feed {
                Feed::Part(objects) => facts.part(objects),
                Feed::Replace { kind, version, objects, before } => facts.replace_rest(kind, version, objects, before),
                Feed::Set(object) => facts.set(object),
                Feed::Remove(object) => facts.remove(&object),
            }
        }
    });
}

/// Lets the controllers of a role work while this process leads.
async fn campaigning(shared: Arc<Shared>, kube: Kube, campaign: Campaign, workers: Vec<Arc<dyn Worker>>) {
    let (tell, mut standing) = watch::channel(Standing::default());
    let (metrics, name) = (shared.metrics.clone(), campaign.lease.name.clone());
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
    tokio::join!(kube.campaign(&campaign, tell, shared.stopped()), follow);
}

/// The controllers of a role, and what they watch.
fn team(
    shared: &Shared,
    role: Role,
    parts: &Parts,
    profile: &Profile,
    kinds: &mut BTreeSet<Kind>,
) -> Result<Vec<Arc<dyn Worker>>> {
    // Not told how many, there is no limit to speak of: the pace of the requests adapts to the server's answers.
    let limit = |name: &str| match shared.settings.flags.is_given(name) {
        true => usize::try_from(shared.settings.flags.int(role, name)).unwrap_or(1),
        false => UNLIMITED,
    };
    Ok(match role {
        Role::Provisioner => {
            if !profile.can(Ability::Controller(Can::CreateDeleteVolume)) {
                bail!("the driver {} makes no volumes, so there is nothing to provision", profile.name);
            }
            let local = provisioner(shared, profile)?;
            kinds.extend(Provisioner::watches());
            kinds.extend(Sources::watches());
            let provisioner = Controller::<Provisioner>::new(parts, local.clone());
            provisioner.at_once(limit("worker-threads"));
            vec![provisioner, Controller::<Sources>::new(parts, local)]
        }
        Role::Attacher => {
            kinds.extend(Attacher::watches());
            let attacher = Controller::<Attacher>::new(parts, attacher(shared, profile));
            attacher.at_once(limit("worker-threads"));
            vec![attacher]
        }
        Role::Resizer => {
            kinds.extend(Resizer::watches());
            let resizer = Controller::<Resizer>::new(parts, resizer(shared, profile)?);
            resizer.at_once(limit("workers"));
            vec![resizer]
        }
        Role::Registrar | Role::Liveness => vec![],
    })
}

fn provisioner(shared: &Shared, profile: &Profile) -> Result<rules_provisioner::Local> {
    let flags = &shared.settings.flags;
    let is = |name: &str| flags.is(Role::Provisioner, name);
    let can = |one: Can| profile.can(Ability::Controller(one));
    let uuid_length = flags.int(Role::Provisioner, "volume-name-uuid-length");
    let intent = match flags.text(Role::Provisioner, "intent") {
        "claim" => Intent::OnClaim,
        "upstream" => Intent::InMemory,
        other => bail!("--intent {other} is not known; write --intent=claim or --intent=upstream"),
    };
    let settings = rules_provisioner::Settings {
        intent,
        volume_name_prefix: flags.text(Role::Provisioner, "volume-name-prefix").to_string(),
        volume_name_uuid_length: usize::try_from(uuid_length).ok(),
        strict_topology: is("strict-topology"),
        immediate_topology: is("immediate-topology"),
        extra_create_metadata: is("extra-create-metadata"),
        default_fstype: flags.text(Role::Provisioner, "default-fstype").to_string(),
        controller_publish_readonly: is("controller-publish-readonly"),
        prevent_volume_mode_conversion: is("prevent-volume-mode-conversion"),
        topology: flags.gate("Topology").unwrap_or(true),
        cross_namespace_sources: flags.gate("CrossNamespaceVolumeDataSource").unwrap_or(false),
        attributes_classes: flags.gate("VolumeAttributesClass").unwrap_or(true),
        ..rules_provisioner::Settings::default()
    };
    Ok(rules_provisioner::Local {
        driver: profile.name.clone(),
        socket: shared.settings.socket.clone(),
        abilities: rules_provisioner::Abilities {
            controller: profile.can(Ability::Plugin(Service::ControllerService)),
            topology: profile.can(Ability::Plugin(Service::VolumeAccessibilityConstraints)),
            volumes: can(Can::CreateDeleteVolume),
            snapshots: can(Can::CreateDeleteSnapshot),
            clones: can(Can::CloneVolume),
            modifies: can(Can::ModifyVolume),
            publishes: can(Can::PublishUnpublishVolume),
            tells_writers_apart: can(Can::SingleNodeMultiWriter),
        },
        settings: Arc::new(settings),
    })
}

fn resizer(shared: &Shared, profile: &Profile) -> Result<rules_resizer::Local> {
    let flags = &shared.settings.flags;
    let is = |name: &str| flags.is(Role::Resizer, name);
    let can = |one: Can| profile.can(Ability::Controller(one));
    let expansion = if can(Can::ExpandVolume) {
        Expansion::Controller
    } else if profile.can(Ability::Node(NodeCan::ExpandVolume)) {
        Expansion::NodeOnly
    } else {
        Expansion::None
    };
    let modifies = can(Can::ModifyVolume) && flags.gate("VolumeAttributesClass").unwrap_or(true);
    if expansion == Expansion::None && !modifies {
        bail!("the driver {} neither grows nor modifies volumes, so there is nothing to resize", profile.name);
    }
    let slow = flags.duration(Role::Resizer, "retry-interval-max");
    Ok(rules_resizer::Local {
        driver: profile.name.clone(),
        socket: shared.settings.socket.clone(),
        expansion,
        modifies,
        tells_writers_apart: can(Can::SingleNodeMultiWriter),
        recovers: flags.gate("RecoverVolumeExpansionFailure").unwrap_or(true),
        tells_size_before: flags.gate("AnnotateFsResize").unwrap_or(true),
        asks_pods: is("handle-volume-inuse-error"),
        extra_metadata: is("extra-modify-metadata"),
        slow_millis: u64::try_from(slow.as_millis()).context("--retry-interval-max is too long")?,
    })
}

fn attacher(shared: &Shared, profile: &Profile) -> rules_attacher::Local {
    let flags = &shared.settings.flags;
    let can = |one: Can| profile.can(Ability::Controller(one));
    let lists = can(Can::ListVolumes) && can(Can::ListVolumesPublishedNodes);
    let every = flags.duration(Role::Attacher, "reconcile-sync");
    rules_attacher::Local {
        driver: profile.name.clone(),
        socket: shared.settings.socket.clone(),
        publishes: can(Can::PublishUnpublishVolume),
        passes_readonly: can(Can::PublishReadonly),
        tells_writers_apart: can(Can::SingleNodeMultiWriter),
        default_fs_type: flags.text(Role::Attacher, "default-fstype").to_string(),
        // Never unless the driver can say where its volumes are.
        list_every_millis: if lists { u64::try_from(every.as_millis()).unwrap_or(u64::MAX) } else { 0 },
        max_entries: i32::try_from(flags.int(Role::Attacher, "max-entries")).unwrap_or(0),
        ..rules_attacher::Local::default()
    }
}
