//! Every controller of one machine, and the facts they share.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use api::{Kind, Object, ObjectKey};
use csi::{Call, Response, v1};
use io_csi::CsiClient;
use io_host::{Host, Watch};
use io_kube::{Kube, WatchEvent};
use io_run::{Clock, Controller, Events, Explanation, Facts, Hands, Parts, Verdict};
use rules_attachdetach::AttachDetach;
use rules_attacher::{Attacher, Local as AttacherLocal};
use rules_binding::Binding;
use rules_node::Node as NodeAgent;
use rules_provisioner::{Local as ProvisionerLocal, Provisioner};
use rules_registrar::{Local as RegistrarLocal, Registrar};
use rules_scheduler::Scheduler;
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinSet;

use crate::args::Part;
use crate::explain;
use crate::hands::{AllHands, workers};
use crate::layout::{DRIVER, Layout, text};
use crate::up::node;

/// News of watches waiting to be taken in. The watches wait when it is full.
const NEWS: usize = 256;

/// The controllers at work.
pub struct Roles {
    facts: Arc<Facts>,
    hands: Arc<AllHands>,
    binding: Arc<Controller<Binding>>,
    provisioner: Arc<Controller<Provisioner>>,
    scheduler: Arc<Controller<Scheduler>>,
    attachdetach: Arc<Controller<AttachDetach>>,
    attacher: Arc<Controller<Attacher>>,
    registrar: Arc<Controller<Registrar>>,
    node: Arc<Controller<NodeAgent>>,
    /// Why the driver has not said yet what it can do; `None` once it has.
    unheard: watch::Receiver<Option<String>>,
    tasks: Mutex<JoinSet<()>>,
    _processes: Watch,
}

impl Roles {
    /// Starts them all. They begin to decide when the first lists have arrived.
    pub fn start(
        kube: Kube,
        host: Arc<Host>,
        layout: &Layout,
        node_name: &str,
        without: &[Part],
    ) -> Result<Arc<Roles>> {
        let hands = Arc::new(AllHands {
            kube,
            csi: CsiClient::new(),
            workers: Some(workers(host.clone())),
            calls: Default::default(),
        });
        let clock = Arc::new(Clock::default());
        let events = Events::start(hands.clone() as Arc<dyn Hands>);
        let metrics = Arc::default();
        let parts =
            Parts { facts: Arc::default(), hands: hands.clone(), clock: clock.clone(), events: Some(events), metrics };
        let incarnation = format!("{:x}", clock.now().0);
        let socket = text(&layout.driver_socket());

        let mut tasks = JoinSet::new();
        let (tell, unheard) = watch::channel(Some("it has not been asked yet".to_string()));
        let node_local = node::found(&host, layout, node_name, &incarnation)?;
        let node = Controller::<NodeAgent>::new(&parts, node_local);
        let roles = Roles {
            facts: parts.facts.clone(),
            hands: hands.clone(),
            binding: Controller::new(&parts, ()),
            provisioner: Controller::new(&parts, ProvisionerLocal::new(DRIVER, socket.as_str())),
            scheduler: Controller::new(&parts, ()),
            attachdetach: Controller::new(&parts, ()),
            attacher: Controller::new(
                &parts,
                AttacherLocal {
                    driver: DRIVER.into(),
                    socket: socket.clone(),
                    publish_unpublish: true,
                    ..AttacherLocal::default()
                },
            ),
            registrar: Controller::new(&parts, RegistrarLocal::new(node_name, incarnation)),
            _processes: node::follow_processes(&host, node.clone())?,
            node,
            unheard,
            tasks: Mutex::new(JoinSet::new()),
        };
        std::fs::create_dir_all(layout.registry())?;
        // A driver registers once it can be called: nobody should go on waiting because of what failed before.
        let (provisioner, attacher, agent) = (roles.provisioner.clone(), roles.attacher.clone(), roles.node.clone());
        node::follow_sockets(&layout.registry(), roles.registrar.clone(), move || {
            provisioner.start_over();
            attacher.start_over();
            agent.start_over();
        })?;
        tasks.spawn(roles.binding.clone().run());
        // A part that is left out decides nothing here, but can still be asked what it would do.
        if !without.contains(&Part::Provisioner) {
            tasks.spawn(roles.provisioner.clone().run());
        }
        tasks.spawn(roles.scheduler.clone().run());
        tasks.spawn(roles.attachdetach.clone().run());
        let attaches = !without.contains(&Part::Attacher);
        tasks.spawn(attach_when_able(roles.attacher.clone(), hands.clone(), socket, tell, attaches));
        tasks.spawn(roles.registrar.clone().run());
        tasks.spawn(roles.node.clone().run());
        tokio::spawn(node::follow_drivers(roles.registrar.clone(), roles.node.clone()));
        feed(&hands.kube, &roles.facts);
        let roles = Arc::new(Roles { tasks: Mutex::new(tasks), ..roles });
        Ok(roles)
    }

    /// Returns when the reference driver is registered on this node and has said what it can do.
    pub async fn driver_registered(&self) {
        let mut unheard = self.unheard.clone();
        let _ = unheard.wait_for(Option::is_none).await;
        let mut learned = self.registrar.learned();
        while !self.registrar.look_local(|local| local.drivers().contains_key(DRIVER)) {
            if learned.changed().await.is_err() {
                return;
            }
        }
    }

    /// The hands, with what they have counted.
    pub fn hands(&self) -> &AllHands {
        &self.hands
    }

    /// Begins nothing new, and waits for what is under way.
    pub async fn stop(&self) {
        self.binding.stop();
        self.provisioner.stop();
        self.scheduler.stop();
        self.attachdetach.stop();
        self.attacher.stop();
        self.registrar.stop();
        self.node.stop();
        let mut tasks = self.tasks.lock().await;
        while tasks.join_next().await.is_some() {}
    }

    /// What every rule makes of an object and what hangs on it, from cause to consequence; `None` if there is no such object.
    pub fn explain(&self, kind: Kind, key: &ObjectKey) -> Option<Vec<Explanation>> {
        let chain = self.facts.look(|cache| explain::chain(cache, kind, key))?;
        let mut said: Vec<Explanation> = Vec::new();
        let mut add = |explain: &dyn Fn(&Object) -> Vec<Explanation>| {
            for explanation in chain.iter().flat_map(explain) {
                if !said.iter().any(|e| e.controller == explanation.controller && e.key == explanation.key) {
                    said.push(explanation);
                }
            }
        };
        add(&|object| self.provisioner.explain(object));
        add(&|object| self.binding.explain(object));
        add(&|object| self.scheduler.explain(object));
        add(&|object| self.attacher_explains(object));
        add(&|object| self.attachdetach.explain(object));
        add(&|object| self.node.explain(object));
        // What was asked about comes first when everything is settled.
        said.sort_by_key(|e| e.why.settled && e.key != key.to_string());
        Some(said)
    }

    fn attacher_explains(&self, object: &Object) -> Vec<Explanation> {
        let mut said = self.attacher.explain(object);
        if let Some(failure) = &*self.unheard.borrow() {
            for explanation in &mut said {
                explanation.verdict = Verdict::Rests;
                explanation.why = control::Why::waiting(
                    "DriverUnheard",
                    format!("driver {DRIVER} has not said what it can do: {failure}"),
                );
            }
        }
        said
    }
}

/// Watches everything the rules keep.
fn feed(kube: &Kube, facts: &Arc<Facts>) {
    let (send, mut news) = mpsc::channel(NEWS);
    for kind in Object::KINDS {
        tokio::spawn(kube.clone().watch(kind, send.clone()));
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

/// The attacher must know whether the driver publishes at all before it does anything.
async fn attach_when_able(
    attacher: Arc<Controller<Attacher>>,
    hands: Arc<AllHands>,
    socket: String,
    tell: watch::Sender<Option<String>>,
    attaches: bool,
) {
    let mut pause = Duration::from_millis(5);
    let publishes = loop {
        let call = Call::ControllerGetCapabilities(v1::ControllerGetCapabilitiesRequest {});
        let failure = match hands.csi.call(&socket, call, Duration::from_secs(10)).await {
            Ok(Response::ControllerGetCapabilities(said)) => break publishes(&said),
            Ok(_) => "it answered something else".to_string(),
            Err(status) => status.message,
        };
        tell.send_replace(Some(failure));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = attacher.stopped() => return,
        }
        pause = (pause * 2).min(Duration::from_secs(2));
    };
    attacher.update_local(|local| local.publish_unpublish = publishes);
    tell.send_replace(None);
    if attaches {
        attacher.run().await;
    }
}

fn publishes(said: &v1::ControllerGetCapabilitiesResponse) -> bool {
    use v1::controller_service_capability::{Type, rpc};
    let wanted = rpc::Type::PublishUnpublishVolume as i32;
    said.capabilities.iter().any(|c| matches!(&c.r#type, Some(Type::Rpc(rpc)) if rpc.r#type == wanted))
}
