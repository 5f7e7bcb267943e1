use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use api::{Object, Write};
use control::{Action, BEGUN, Cache, Change, Decision, Effect, Outcome, Queue, Reply, Rules, Tick, Why};
use tokio::sync::{Notify, watch};

use crate::{Clock, Ended, Events, Facts, Listener, Metrics};

mod tell;

/// Performs effects. The binary composes it from the hands it has.
pub trait Hands: Send + Sync + 'static {
    /// Does it, and says how it ended. Never panics, always ends.
    fn perform(&self, effect: Effect) -> Pin<Box<dyn Future<Output = Outcome> + Send + '_>>;
}

/// Keys worked on at once by one controller unless it is told otherwise. The API server and the driver see at most this
/// many requests from it; more only queue up there instead of here.
const AT_ONCE: usize = 64;
/// How long a stopping controller waits for actions under way unless it is told otherwise, so that no answer is lost that
/// could have been had.
const LAST_WAIT: Duration = Duration::from_secs(10);

/// What the controllers of a process share.
#[derive(Clone)]
pub struct Parts {
    /// The API objects it has seen.
    pub facts: Arc<Facts>,
    /// Who performs effects.
    pub hands: Arc<dyn Hands>,
    /// The time.
    pub clock: Arc<Clock>,
    /// Where users are told of failures.
    pub events: Option<Events>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
}

/// One set of rules at work.
pub struct Controller<R: Rules> {
    parts: Parts,
    state: Mutex<State<R>>,
    woken: Notify,
    learned: watch::Sender<u64>,
    stopping: Notify,
}

/// Keys are shared by all who have to do with them.
struct State<R: Rules> {
    local: R::Local,
    queue: Queue<Arc<R::Key>>,
    memory: BTreeMap<Arc<R::Key>, R::Memory>,
    /// What is being done, and why, for `explain`.
    doing: BTreeMap<Arc<R::Key>, Why>,
    stopping: bool,
    /// Something may be begun. False while another process leads.
    leading: bool,
    at_once: usize,
    /// How many of the keys being worked on wait for a note to be written.
    noting: usize,
    last_wait: Duration,
}

/// What one controller makes of one key, right now.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The controller.
    pub controller: &'static str,
    /// The key, as it prints.
    pub key: String,
    /// What it is doing about it.
    pub verdict: Verdict,
    /// Why.
    pub why: Why,
}

/// The sort of decision behind an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing until a fact changes.
    Rests,
    /// Nothing until a fact changes or so many milliseconds have passed.
    Waits(u64),
    /// Something is about to be done.
    WillDo(&'static str),
    /// Something is being done.
    Doing,
}

impl<R> Controller<R>
where
    R: Rules + 'static,
    R::Key: Send + Sync,
    R::Local: Send,
    R::Memory: Send,
    R::Action: Send + Sync,
{
    /// Sets up the controller and lets it hear of changes. Nothing is decided before [`Controller::run`].
    pub fn new(parts: &Parts, local: R::Local) -> Arc<Self> {
        let (queue, memory, doing) = (Queue::default(), BTreeMap::new(), BTreeMap::new());
        let state = State {
            local,
            queue,
            memory,
            doing,
            stopping: false,
            leading: true,
            at_once: AT_ONCE,
            noting: 0,
            last_wait: LAST_WAIT,
        };
        let controller = Arc::new(Controller {
            parts: parts.clone(),
            state: Mutex::new(state),
            woken: Notify::new(),
            learned: watch::Sender::new(0),
            stopping: Notify::new(),
        });
        parts.facts.listen(controller.clone());
        controller
    }

    /// Works until [`Controller::stop`]. Starts once everything the rules watch has been listed.
    pub async fn run(self: Arc<Self>) {
        tokio::select! {
            () = self.parts.facts.synced(R::watches()) => {}
            () = self.stopping.notified() => return,
        }
        self.wake_all();
        loop {
            let next = self.start_due();
            if self.state().stopping {
                break;
            }
            let pause = next.map(|at| Duration::from_millis(at.0.saturating_sub(self.parts.clock.now().0).max(1)));
            tokio::select! {
                () = self.woken.notified() => {}
                () = sleep(pause) => {}
            }
        }
        self.finish().await;
    }

    /// Begins nothing new; [`Controller::run`] returns when what is under way has ended.
    pub fn stop(&self) {
        self.state().stopping = true;
        self.stopping.notify_one();
        self.woken.notify_one();
    }

    /// Whether anything may be begun. A controller that does not lead keeps its facts and its queue up to date, so that it
    /// can begin at once when it does; what it remembers of failures is from another time, and forgotten.
    pub fn lead(&self, leads: bool) {
        let before = std::mem::replace(&mut self.state().leading, leads);
        if leads && !before {
            self.start_over();
        }
    }

    /// How many keys are worked on at once from now on.
    pub fn at_once(&self, keys: usize) {
        self.state().at_once = keys.max(1);
        self.woken.notify_one();
    }

    /// How long its end waits for actions under way: as long as one may take, or its answer is lost.
    pub fn wait_at_end(&self, longest: Duration) {
        self.state().last_wait = longest.max(LAST_WAIT);
    }

    /// Returns when everything begun has ended.
    pub async fn quiet(&self) {
        let mut learned = self.learned();
        while self.state().queue.busy() > 0 {
            let _ = tokio::time::timeout(Duration::from_millis(50), learned.changed()).await;
        }
    }

    /// Returns when [`Controller::stop`] was called; for work that precedes [`Controller::run`].
    pub async fn stopped(&self) {
        if !self.state().stopping {
            self.stopping.notified().await;
        }
    }

    /// Something outside the API changed.
    pub fn update_local(&self, update: impl FnOnce(&mut R::Local)) {
        update(&mut self.state().local);
        self.wake_all();
    }

    /// Somebody this controller waits for is back: what failed before says nothing any more, so every key that is not
    /// being worked on is looked at anew, without its memory.
    pub fn start_over(&self) {
        {
            let mut state = self.state();
            let State { memory, doing, .. } = &mut *state;
            memory.retain(|key, _| doing.contains_key(key));
        }
        self.wake_all();
    }

    /// Looks at what is known from outside the API.
    pub fn look_local<T>(&self, look: impl FnOnce(&R::Local) -> T) -> T {
        look(&self.state().local)
    }

    /// Counts outcomes: each may have changed what is known from outside the API.
    pub fn learned(&self) -> watch::Receiver<u64> {
        self.learned.subscribe()
    }

    /// What the rules make of everything that concerns an object.
    pub fn explain(&self, object: &Object) -> Vec<Explanation> {
        let now = self.parts.clock.now();
        self.parts.facts.look(|cache| {
            let state = self.state();
            let change = Change { before: None, after: Some(object.clone()) };
            let mut keys = R::wakes(&change, cache, &state.local);
            keys.sort();
            keys.dedup();
            keys.into_iter().map(|key| explain_key::<R>(now, &state, cache, &key)).collect()
        })
    }

    fn wake_all(&self) {
        let now = self.parts.clock.now();
        self.parts.facts.look(|cache| {
            let mut state = self.state();
            for key in R::keys(cache, &state.local) {
                state.queue.wake(Arc::new(key), now);
            }
        });
        self.woken.notify_one();
    }

    /// Looks at every key that is due and begins what is to be done. Answers when the next one is due.
    fn start_due(self: &Arc<Self>) -> Option<Tick> {
        loop {
            self.parts.facts.tidy();
            let now = self.parts.clock.now();
            let (key, action, why) = {
                // Locks are always taken in this order, facts before state.
                let decided = self.parts.facts.look(|cache| {
                    let mut state = self.state();
                    if state.stopping || !state.leading {
                        return None;
                    }
                    let key = state.take(now)?;
                    let decision = state.decide(now, &key, cache);
                    Some((key, decision))
                });
                let Some((key, decision)) = decided else { break };
                let (name, metrics) = (R::NAME, &self.parts.metrics);
                match &decision {
                    Decision::Rest(why) => metrics.decided(name, "rest", why.code),
                    Decision::Wait(_, why) => metrics.decided(name, "wait", why.code),
                    Decision::Do(_, why) => metrics.decided(name, "do", why.code),
                }
                match decision {
                    Decision::Rest(why) => {
                        self.tell_of_plight(&key, &why);
                        self.state().queue.done(key);
                        continue;
                    }
                    Decision::Wait(until, _) => {
                        let mut state = self.state();
                        state.queue.done(key.clone());
                        state.queue.wake(key, until);
                        continue;
                    }
                    Decision::Do(action, why) => (key, action, why),
                }
            };
            tracing::debug!(controller = R::NAME, %key, action = action.name(), "{why}");
            self.tell_of_beginning(&key, &action);
            let effect = action.effect();
            {
                let mut state = self.state();
                state.doing.insert(key.clone(), why.clone());
                state.noting += usize::from(is_note(&effect));
            }
            tokio::spawn(self.clone().act(key, action, effect, why));
        }
        let state = self.state();
        // Nothing could be begun however much is due: an action that ends, or the lease, wakes us.
        let blocked = !state.leading || state.is_full();
        if blocked { None } else { state.queue.next() }
    }

    async fn act(self: Arc<Self>, key: Arc<R::Key>, action: R::Action, effect: Effect, why: Why) {
        let (noted, written) = (is_note(&effect), matches!(effect, Effect::Write(_)));
        let began = Instant::now();
        let outcome = self.parts.hands.perform(effect).await;
        let how = match &outcome {
            Outcome::Done(_) => "done",
            Outcome::Refused(_) => "refused",
            Outcome::Unknown(_) => "unknown",
        };
        self.parts.metrics.acted(&Ended {
            controller: R::NAME,
            about: &R::about(&key),
            action: action.name(),
            outcome: how,
            failed: action.failure(&outcome).is_some(),
            took: began.elapsed(),
        });
        if written {
            self.fold(&action, &outcome);
        }
        self.tell_of_end(&key, &action, &why, &outcome);
        let now = self.parts.clock.now();
        {
            let mut state = self.state();
            R::learn(&mut state.local, &action, &outcome);
            let memory = state.memory.remove(&key).unwrap_or_default();
            let memory = R::paced(R::remember(now, memory, &action, &outcome), &state.local);
            if memory != R::Memory::default() {
                state.memory.insert(key.clone(), memory);
            }
            state.doing.remove(&key);
            state.noting -= usize::from(noted);
            state.queue.go_on(key);
        }
        self.parts.facts.look(|cache| {
            let mut state = self.state();
            for key in R::stirs(&action, &outcome, cache, &state.local) {
                state.queue.wake(Arc::new(key), now);
            }
        });
        self.learned.send_modify(|count| *count += 1);
        self.woken.notify_one();
    }

    /// The answer to our own write is a fact at once: no decision sees anything older (reliability 104).
    fn fold(&self, action: &R::Action, outcome: &Outcome) {
        match outcome {
            Outcome::Done(Reply::Object(object)) => self.parts.facts.fold(object.clone()),
            Outcome::Done(Reply::Gone) => {
                // The same action always gives the same effect, so that nobody has to keep what was written.
                let Effect::Write(write) = action.effect() else { return };
                // A namesake may have been created since: only the very object written to is gone.
                if let Some(uid) = write.uid() {
                    self.parts.facts.fold_gone(write.target().kind, &write.target().key, uid);
                }
            }
            Outcome::Done(Reply::Nothing | Reply::Csi(_) | Reply::Host(_))
            | Outcome::Refused(_)
            | Outcome::Unknown(_) => {}
        }
    }

    async fn finish(&self) {
        let finished = async {
            while self.state().queue.busy() > 0 {
                self.woken.notified().await;
            }
        };
        let last_wait = self.state().last_wait;
        if tokio::time::timeout(last_wait, finished).await.is_err() {
            tracing::warn!(
                controller = R::NAME,
                "stopped with actions under way; they will be looked at again at the next start"
            );
        }
    }

    fn state(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Rules> State<R> {
    /// The next key to look at, if one may be. Notes are carried together, so that whoever waits for one takes no place
    /// from those who ask for something of their own: while these are being done, the next ones are noted. When enough are
    /// noted, only what was begun goes on.
    fn take(&mut self, now: Tick) -> Option<Arc<R::Key>> {
        match (self.queue.busy() - self.noting < self.at_once, self.noting < self.at_once) {
            (true, true) => self.queue.take(now),
            (true, false) => self.queue.take(BEGUN),
            (false, _) => None,
        }
    }

    fn decide(&self, now: Tick, key: &R::Key, cache: &Cache) -> Decision<R::Action> {
        let view = R::view(key, cache, &self.local);
        match self.memory.get(key) {
            Some(memory) => R::decide(now, &view, memory),
            None => R::decide(now, &view, &R::Memory::default()),
        }
    }

    /// Nothing new can be begun before something ends.
    fn is_full(&self) -> bool {
        self.noting >= self.at_once || self.queue.busy() - self.noting >= self.at_once
    }
}

/// It goes along with others, in one request.
fn is_note(effect: &Effect) -> bool {
    matches!(effect, Effect::Write(Write::Note(_)))
}

fn explain_key<R: Rules>(now: Tick, state: &State<R>, cache: &Cache, key: &R::Key) -> Explanation {
    let controller = R::NAME;
    let printed = key.to_string();
    if let Some(why) = state.doing.get(key) {
        return Explanation { controller, key: printed, verdict: Verdict::Doing, why: why.clone() };
    }
    let (verdict, why) = match state.decide(now, key, cache) {
        Decision::Rest(why) => (Verdict::Rests, why),
        Decision::Wait(until, why) => (Verdict::Waits(until.0.saturating_sub(now.0)), why),
        Decision::Do(action, why) => (Verdict::WillDo(action.name()), why),
    };
    Explanation { controller, key: printed, verdict, why }
}

async fn sleep(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}

impl<R> Listener for Controller<R>
where
    R: Rules + 'static,
    R::Key: Send + Sync,
    R::Local: Send,
    R::Memory: Send,
    R::Action: Send + Sync,
{
    fn changed(&self, change: &Change, cache: &Cache) {
        let now = self.parts.clock.now();
        let mut state = self.state();
        let woken = R::wakes(change, cache, &state.local);
        let added = woken.len();
        for key in woken {
            state.queue.wake(Arc::new(key), now);
        }
        self.parts.metrics.queued(R::NAME, state.queue.waiting(), added);
        drop(state);
        if added > 0 {
            self.woken.notify_one();
        }
    }
}
