use std::collections::{BTreeMap, BTreeSet};

use api::{Kind, Object, ObjectRef, Patch, PatchBody, Value, Write};
use control::{
    Action, Cache, Change, Decision, Effect, Ended, Engine, Next, Outcome, Refusal, Reply, Rules, Timestamp, Why,
};
use rules_store::{Context, EventType, Failure, Request, Store};

use crate::Fault;

/// Rules under test, with the API they act on.
pub struct Lab<R: Rules> {
    pub store: Store,
    /// What the rules have seen of the store.
    pub cache: Cache,
    pub engine: Engine<R>,
    pub now: Timestamp,
    /// The namespace of objects that name none.
    pub namespace: &'static str,
    /// Kinds whose watch delivers nothing until [`Lab::sync`].
    pub frozen: BTreeSet<Kind>,
    /// Kinds the API lets nobody write to.
    pub forbidden: BTreeSet<Kind>,
    /// What happens to the next action of a name.
    pub faults: BTreeMap<&'static str, Fault>,
    /// Effects that nobody waits for any more, and that may still arrive.
    pub late: Vec<Effect>,
    /// The names of the actions begun.
    pub log: Vec<&'static str>,
    /// The same actions as they print.
    pub actions: Vec<String>,
    /// How many writes of the rules were done.
    pub writes: usize,
    uids: u64,
}

impl<R: Rules> Clone for Lab<R> {
    fn clone(&self) -> Self {
        Lab {
            store: self.store.clone(),
            cache: self.cache.clone(),
            engine: self.engine.clone(),
            now: self.now,
            namespace: self.namespace,
            frozen: self.frozen.clone(),
            forbidden: self.forbidden.clone(),
            faults: self.faults.clone(),
            late: self.late.clone(),
            log: self.log.clone(),
            actions: self.actions.clone(),
            writes: self.writes,
            uids: self.uids,
        }
    }
}

impl<R: Rules> Lab<R> {
    /// An empty cluster with one namespace, and rules that have just started and have listed everything they watch.
    pub fn new(namespace: &'static str, local: R::Local) -> Lab<R> {
        let mut lab = Lab {
            store: Store::new(),
            cache: Cache::of::<R>(),
            engine: Engine::new(local),
            now: Timestamp(1_900_000_000_000),
            namespace,
            frozen: BTreeSet::new(),
            forbidden: BTreeSet::new(),
            faults: BTreeMap::new(),
            late: Vec::new(),
            log: Vec::new(),
            actions: Vec::new(),
            writes: 0,
            uids: 0,
        };
        lab.create(Kind::Namespace, serde_json::json!({ "metadata": { "name": namespace } }));
        lab.sync();
        lab
    }

    /// What the rules want for a key.
    pub fn decide(&self, key: &R::Key) -> Decision<R::Action> {
        self.cache.checked::<R, _>(|cache| self.engine.decide(self.now, key, cache))
    }

    /// Why the rules leave the key as it is, or do what they do.
    pub fn why(&self, key: &R::Key) -> Why {
        self.decide(key).why().clone()
    }

    /// The code of why.
    pub fn code(&self, key: &R::Key) -> &'static str {
        self.decide(key).why().code
    }

    /// Decides on a key and begins what is to be done, unless something is under way. Answers with the action and its
    /// effect.
    pub fn begin(&mut self, key: &R::Key) -> Option<(R::Action, Effect)> {
        if self.engine.doing(key).is_some() {
            return None;
        }
        let Decision::Do(action, why) = self.decide(key) else { return None };
        let effect = self.engine.begin(key, action.clone(), why);
        self.begun(&action, &effect);
        Some((action, effect))
    }

    pub(crate) fn begun(&mut self, action: &R::Action, effect: &Effect) {
        assert_permitted(action, effect);
        self.log.push(action.name());
        self.actions.push(format!("{action:?}"));
    }

    /// Performs an effect, or what a fault makes of it. `outside` performs what is not the API's.
    pub fn perform(
        &mut self,
        action: &'static str,
        effect: &Effect,
        mut outside: impl FnMut(&Effect) -> Outcome,
    ) -> Outcome {
        let fault = self.faults.remove(action);
        let mut happen = |lab: &mut Lab<R>| lab.api(effect).unwrap_or_else(|| outside(effect));
        match fault {
            None => happen(self),
            Some(Fault::AnswerLost) => {
                happen(self);
                Outcome::Unknown("the answer was lost".into())
            }
            Some(fault) => self.fail(fault, effect),
        }
    }

    /// What the rules hear of an effect that does not happen, or not yet.
    pub fn fail(&mut self, fault: Fault, effect: &Effect) -> Outcome {
        match fault {
            Fault::AnswerLost => Outcome::Unknown("the answer was lost".into()),
            Fault::RequestLost => Outcome::Unknown("the request was lost".into()),
            Fault::Refused => Fault::refusal(effect),
            Fault::Late => {
                self.late.push(effect.clone());
                Outcome::Unknown("no answer in time".into())
            }
        }
    }

    /// The rules hear how the action under way on a key ended.
    pub fn finish(&mut self, key: &R::Key, outcome: &Outcome) -> Option<Ended<R::Action>> {
        self.engine.finish(self.now, key, outcome, &mut self.cache)
    }

    /// The rules, which may have begun this action in an earlier step, hear how it ended.
    pub fn hear(&mut self, key: &R::Key, action: &R::Action, outcome: &Outcome) {
        if self.engine.doing(key).is_none() {
            self.engine.begin(key, action.clone(), Why::waiting("Test", "it was begun"));
        }
        self.finish(key, outcome);
    }

    /// Everything that is remembered, printed.
    pub fn remembered(&self) -> String {
        format!("{:?}", self.engine.remembered().collect::<Vec<_>>())
    }

    /// One look at a key by rules that act on the API alone; the name of the action, if there was one.
    pub fn step(&mut self, key: &R::Key) -> Option<&'static str> {
        let (action, effect) = self.begin(key)?;
        let outcome = self.perform(action.name(), &effect, |effect| panic!("{effect:?} is not the API's"));
        self.finish(key, &outcome);
        Some(action.name())
    }

    /// Looks at a key until there is nothing to do for it now; the names of the actions.
    pub fn run(&mut self, key: &R::Key) -> Vec<&'static str> {
        self.run_with(|lab| lab.step(key))
    }

    /// Steps until there is nothing left to do now.
    pub fn run_with(&mut self, mut step: impl FnMut(&mut Self) -> Option<&'static str>) -> Vec<&'static str> {
        let mut done = Vec::new();
        self.sync();
        while let Some(name) = step(self) {
            done.push(name);
            self.sync();
            assert!(done.len() < 50, "it does not come to rest: {done:?}");
        }
        done
    }

    /// Follows the engine's own queue, letting time pass, until nothing is due or `most` actions were performed; `true` if
    /// nothing was left to do.
    pub fn follow(&mut self, most: usize, mut outside: impl FnMut(&Effect) -> Outcome) -> bool {
        let mut done = 0;
        loop {
            if done == most {
                let queued: Vec<R::Key> = self.engine.queued().cloned().collect();
                return queued.iter().all(|key| matches!(self.decide(key), Decision::Rest(_)));
            }
            match self.cache.checked::<R, _>(|cache| self.engine.next(self.now, cache)) {
                Next::Begin { key, effect } => {
                    done += 1;
                    let action = self.engine.doing(&key).unwrap().action.clone();
                    self.begun(&action, &effect);
                    let outcome = self.perform(action.name(), &effect, &mut outside);
                    self.finish(&key, &outcome);
                }
                Next::Rested { .. } | Next::Waiting { .. } => {}
                Next::Idle(Some(until)) => self.now = until.max(self.now),
                Next::Idle(None) => return true,
            }
        }
    }

    /// Follows the queue of rules that act on the API alone to its end, and makes sure that no key was overslept: woken by
    /// changes alone, the engine has come to everything there is to do.
    pub fn settle(&mut self) {
        let settled = self.follow(100, |effect| panic!("{effect:?} is not the API's"));
        assert!(settled, "it does not come to rest: {:?}", self.actions);
        self.assert_awake();
    }

    /// No key has something to do that nothing woke it for.
    pub fn assert_awake(&self) {
        for key in R::keys(&self.cache, self.engine.local()) {
            let decision = self.decide(&key);
            assert!(!matches!(decision, Decision::Do(..)), "{key} was not woken: {decision:?}");
        }
    }

    /// The process dies and comes back: what was remembered is gone, what was under way may still arrive.
    pub fn restart(&mut self, local: R::Local) {
        let under_way = self.engine.under_way().map(|(_, doing)| doing.action.effect());
        self.late.extend(under_way.filter(|effect| matches!(effect, Effect::Write(_) | Effect::Call { .. })));
        self.engine = Engine::new(local);
        self.cache = Cache::of::<R>();
        self.sync();
        self.cache.checked::<R, _>(|cache| self.engine.wake_all(self.now, cache));
    }

    /// Lets so many milliseconds pass.
    pub fn pass(&mut self, millis: u64) {
        self.now = self.now.after_millis(millis);
    }

    /// Memory and failures are erased, even of keys with an action under way; nothing else changes.
    pub fn forget(&mut self) {
        let known: Vec<R::Key> = self.engine.remembered().map(|(key, ..)| key.clone()).collect();
        known.iter().for_each(|key| self.engine.forget(self.now, key));
    }

    /// Facts from outside the API change.
    pub fn update_local<T>(&mut self, update: impl FnOnce(&mut R::Local) -> T) -> T {
        self.cache.checked::<R, _>(|cache| self.engine.update_local(self.now, cache, update))
    }

    /// The facts from outside the API.
    pub fn local(&self) -> &R::Local {
        self.engine.local()
    }

    /// Late effects on the API arrive, oldest first.
    pub fn land_late(&mut self) {
        for effect in std::mem::take(&mut self.late) {
            let _ = self.api(&effect);
        }
    }

    /// What the API does with an effect, whenever it arrives; `None` if it is not the API's.
    pub fn api(&mut self, effect: &Effect) -> Option<Outcome> {
        match effect {
            Effect::Read(target) => Some(Outcome::Done(self.object(target).map_or(Reply::Gone, Reply::Object))),
            Effect::List { kind, namespace } => Some(Outcome::Done(Reply::Objects(self.objects_in(*kind, namespace)))),
            Effect::Token(wish) => Some(self.token(wish)),
            Effect::Write(write) if self.forbidden.contains(&write.target().kind) => {
                Some(Outcome::Refused(Refusal::Denied("forbidden".into())))
            }
            Effect::Write(write) => {
                let before = self.store.revision();
                let outcome = match self.write(write) {
                    Ok(reply) => Outcome::Done(reply),
                    Err(failure) => Outcome::Refused(refusal(write, &failure)),
                };
                if let Outcome::Done(_) = outcome {
                    assert!(self.store.revision() > before, "{write:?} changed nothing (reliability 109)");
                    self.writes += 1;
                }
                Some(outcome)
            }
            Effect::Nothing => Some(Outcome::Done(Reply::Nothing)),
            Effect::Call { .. } | Effect::Host(_) => None,
        }
    }

    /// A token for a pod that is there, readable by whoever compares it.
    fn token(&self, wish: &control::TokenWish) -> Outcome {
        let pod = self.object(&ObjectRef { kind: Kind::Pod, key: wish.pod.clone() });
        let forbidden = self.forbidden.contains(&Kind::ServiceAccount);
        if forbidden || pod.is_none_or(|pod| pod.meta().uid != wish.uid) {
            return Outcome::Refused(Refusal::NotFound);
        }
        let seconds = wish.seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(3600);
        let until = api::Time::from_unix_millis(self.now.0 + seconds * 1000).0;
        let token = format!("token of {} for {} until {until}", wish.account, wish.audiences.join(","));
        Outcome::Done(Reply::Object(Object::Secret(std::sync::Arc::new(api::Secret::of_texts(&[
            (control::TokenWish::TOKEN, &token),
            (control::TokenWish::EXPIRES, &until),
        ])))))
    }

    /// Writes to the store, and lets the watches deliver what changed.
    pub fn write(&mut self, write: &Write) -> Result<Reply, Failure> {
        self.uids += 1;
        let uid = format!("uid-{}", self.uids);
        let context = Context { now_millis: self.now.0, new_uid: &uid, actor: "test" };
        let applied = self.store.apply(&context, Request::from_write(write))?;
        let mut gone = false;
        for change in &applied.changes {
            // What an object owns goes with it, whatever its kind.
            let (kind, deleted) = (change.object.key.kind, change.event == EventType::Deleted);
            if change.object.key == applied.reply.key {
                gone = deleted;
            }
            let Ok(object) = Object::from_json(kind, change.object.value.clone()) else { continue };
            if !self.frozen.contains(&kind) {
                let change = if deleted { self.cache.remove(&object) } else { self.cache.set(object) };
                change.into_iter().for_each(|change| self.tell(&change));
            }
        }
        if gone {
            return Ok(Reply::Gone);
        }
        Ok(match write {
            Write::Bind { .. } => Reply::Nothing,
            _ => self.object(write.target()).map_or(Reply::Nothing, Reply::Object),
        })
    }

    /// An object as it really is.
    pub fn object(&self, target: &ObjectRef) -> Option<Object> {
        let stored = self.store.get(target.kind, &target.key.namespace, &target.key.name)?;
        Object::from_json(target.kind, stored.value.clone()).ok()
    }

    /// Every object of a kind in a namespace, as the store has it.
    fn objects_in(&self, kind: Kind, namespace: &str) -> Vec<Object> {
        let stored = self.store.list(kind, (!namespace.is_empty()).then_some(namespace));
        stored.map(|stored| Object::from_json(kind, stored.value.clone()).unwrap()).collect()
    }

    /// Every watch catches up, the frozen ones too, by listing again.
    pub fn sync(&mut self) {
        Object::KINDS.iter().for_each(|kind| self.sync_kind(*kind));
    }

    /// The watch of one kind catches up by listing again.
    pub fn sync_kind(&mut self, kind: Kind) {
        let list = self.store.list(kind, None);
        let objects = list.map(|stored| Object::from_json(kind, stored.value.clone()).unwrap()).collect();
        for change in self.cache.replace(kind, self.store.revision(), objects) {
            self.tell(&change);
        }
    }

    fn tell(&mut self, change: &Change) {
        self.cache.checked::<R, _>(|cache| self.engine.changed(self.now, change, cache));
    }

    /// Every object of a kind as the store keeps it.
    pub fn list(&self, kind: Kind) -> Vec<Value> {
        self.store.list(kind, None).map(|stored| stored.value.clone()).collect()
    }

    /// An object as the store keeps it.
    pub fn stored(&self, target: &ObjectRef) -> Option<Value> {
        let stored = self.store.get(target.kind, &target.key.namespace, &target.key.name)?;
        Some(stored.value.clone())
    }
}

/// How the client of a real API server reads a failure.
pub fn refusal(write: &Write, failure: &Failure) -> Refusal {
    match failure {
        Failure::NotFound { .. } => Refusal::NotFound,
        Failure::AlreadyExists { .. } => Refusal::AlreadyExists,
        Failure::Conflict { .. } => Refusal::Conflict,
        // A failed `test` of a JSON patch: the belief it carried was wrong.
        Failure::Invalid { .. }
            if matches!(write, Write::Patch { patch: Patch { body: PatchBody::Json(_), .. }, .. }) =>
        {
            Refusal::Conflict
        }
        other => Refusal::Denied(other.to_string()),
    }
}

/// The printed role is complete.
pub fn assert_permitted<A: Action>(action: &A, effect: &Effect) {
    let needed = match effect {
        Effect::Read(target) => (target.kind, "", "get"),
        Effect::List { kind, .. } => (*kind, "", "list"),
        Effect::Token(_) => (Kind::ServiceAccount, "token", "create"),
        Effect::Write(write) => (write.target().kind, write.subresource().unwrap_or_default(), write.verb()),
        Effect::Call { .. } | Effect::Host(_) | Effect::Nothing => return,
    };
    let granted = A::permissions().iter().any(|right| (right.kind, right.subresource, right.verb) == needed);
    assert!(granted, "{action:?} needs a right that is not in the role: {needed:?}");
}
