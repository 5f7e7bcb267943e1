use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use api::{Kind, Object};
use control::Narrate;
use io_kube::{Kube, Scope};

use super::{AnyController, Leadership, Manager, Member, lock};
use crate::{Controller, Explanation, Observer, Parts, SharedHands};

/// A controller that is about to be added: how it works, until [`Addition::start`].
#[must_use = "nothing works before it is started"]
pub struct Addition<'a, R: Narrate> {
    manager: &'a Manager,
    group: String,
    local: R::Local,
    kube: Kube,
    timeout: Duration,
    limit: Option<usize>,
    leadership: Option<Leadership>,
    events: bool,
    unseen: BTreeSet<Kind>,
    scopes: BTreeMap<Kind, Scope>,
    observer: Option<Observer<R>>,
    refresh: Option<fn(&mut R::Local)>,
}

impl<'a, R: Narrate> Addition<'a, R> {
    pub(super) fn new(manager: &'a Manager, group: &str, local: R::Local) -> Addition<'a, R> {
        Addition {
            group: group.into(),
            local,
            kube: manager.kube.clone(),
            timeout: super::CALL_DEADLINE,
            limit: None,
            leadership: None,
            events: true,
            unseen: BTreeSet::new(),
            scopes: BTreeMap::new(),
            observer: None,
            refresh: None,
            manager,
        }
    }

    /// It begins nothing while another process leads.
    pub fn lease(mut self, leadership: Option<&Leadership>) -> Self {
        self.leadership = leadership.cloned();
        self
    }

    /// It works on at most so many keys at once.
    pub fn limit(mut self, keys: usize) -> Self {
        self.limit = Some(keys);
        self
    }

    /// The deadline of its calls to drivers. Its end waits as long for what is under way.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Its requests go through this connection instead of the manager's.
    pub fn kube(mut self, kube: Kube) -> Self {
        self.kube = kube;
        self
    }

    /// It writes no events.
    pub fn without_events(mut self) -> Self {
        self.events = false;
        self
    }

    /// Kinds among its watches that it has no use for: they count as listed and empty.
    pub fn without(mut self, kinds: &[Kind]) -> Self {
        self.unseen.extend(kinds);
        self
    }

    /// It needs only these objects of a kind.
    pub fn within(mut self, kind: Kind, scope: Scope) -> Self {
        self.scopes.insert(kind, scope);
        self
    }

    /// Tells somebody of its actions.
    pub fn observe(mut self, observer: Observer<R>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Changes its facts from outside the API whenever it starts over.
    pub fn refresh(mut self, refresh: fn(&mut R::Local)) -> Self {
        self.refresh = Some(refresh);
        self
    }

    /// Watches what it needs, and sets it to work once that was listed.
    pub fn start(mut self) -> Arc<Controller<R>> {
        let needed = self.watch();
        let manager = self.manager;
        manager.cache.read_as::<R>();
        let hands = SharedHands {
            kube: self.kube,
            drivers: manager.drivers.clone(),
            timeout: self.timeout,
            machine: manager.machine.clone(),
            secrets: manager.secrets.clone(),
            looks: manager.looks.clone(),
        };
        let parts = Parts {
            cache: manager.cache.clone(),
            hands: Arc::new(hands),
            clock: manager.clock.clone(),
            events: self.events.then(|| manager.events.clone()),
            metrics: manager.metrics.clone(),
            panics: manager.panics.clone(),
        };
        let controller = Controller::<R>::new(&parts, self.local);
        controller.wait_at_end(self.timeout);
        if let Some(limit) = self.limit {
            controller.at_once(limit);
        }
        if let Some(observer) = self.observer.take() {
            controller.observe(observer);
        }
        if let Some(leadership) = &self.leadership {
            leadership.govern(&controller);
        }
        let any: Arc<dyn AnyController> = match self.refresh {
            Some(refresh) => Arc::new(Refreshing { controller: controller.clone(), refresh }),
            None => controller.clone(),
        };
        let (watches, works) = (manager.watches.clone(), controller.clone());
        let running = tokio::spawn(async move {
            tokio::select! {
                () = watches.listed(&needed) => {}
                () = works.stopped() => return,
            }
            works.run().await;
        });
        lock(&manager.groups).entry(self.group).or_default().members.push(Member { controller: any, running });
        controller
    }

    /// Watches what it needs, and has the rest count as listed. Answers with what it needs.
    fn watch(&mut self) -> BTreeSet<Kind> {
        let (needed, unseen): (BTreeSet<Kind>, BTreeSet<Kind>) =
            R::watches().iter().partition(|kind| !self.unseen.contains(kind));
        for kind in &needed {
            let scope = self.scopes.remove(kind).unwrap_or_default();
            self.manager.watches.need(&self.manager.kube, *kind, scope);
        }
        for kind in unseen {
            let watched = lock(&self.manager.watches.set).has(kind);
            if !watched && !self.manager.cache.look(|cache| cache.is_synced(kind)) {
                self.manager.cache.replace(kind, 0, Vec::new());
            }
        }
        needed
    }
}

/// A controller whose facts from outside the API are refreshed when it starts over.
struct Refreshing<R: Narrate> {
    controller: Arc<Controller<R>>,
    refresh: fn(&mut R::Local),
}

impl<R: Narrate> AnyController for Refreshing<R> {
    fn name(&self) -> &'static str {
        R::NAME
    }

    fn stop(&self) {
        self.controller.stop();
    }

    fn start_over(&self) {
        self.controller.update_local(self.refresh);
        self.controller.start_over();
    }

    fn explain_only(&self, objects: &[Object]) -> Vec<Explanation> {
        self.controller.explain_only(objects)
    }
}
