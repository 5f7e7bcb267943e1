use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use api::Object;
use control::{Action, Cache, Change, Effect, Engine, Explanation, Narrate, Next, Outcome, Reason, Rules, Timestamp};
use futures::FutureExt;
use tokio::sync::{Notify, watch};

use self::rests::Rests;
use self::turns::{Aside, Turns};
use crate::panics::{self, Panics};
use crate::{Acted, Clock, Events, Listener, Metrics, SharedCache};

mod rests;
mod tell;
mod turns;

/// Performs effects. The binary composes it from the hands it has.
pub trait Hands: Send + Sync + 'static {
    /// Does it, and says how it ended. Always ends. What panics counts as unknown.
    fn perform(&self, effect: Effect) -> Pin<Box<dyn Future<Output = Outcome> + Send + '_>>;
}

/// Keys worked on at once by one controller unless it is told otherwise. The API server and each driver see at most
/// this many requests from it, beside those that take long; more only queue up there instead of here.
const AT_ONCE: usize = 64;
/// How long a stopping controller waits for actions under way unless it is told otherwise, so that no answer is lost that
/// could have been had.
const LAST_WAIT: Duration = Duration::from_secs(10);

/// When users are first told of an action that takes long, and how long after that again: KL-85.
const FIRST_WORD: Duration = Duration::from_secs(30);
const NEXT_WORD: Duration = Duration::from_secs(60);

/// What the controllers of a process share.
#[derive(Clone)]
pub struct Parts {
    /// The API objects it has seen.
    pub cache: Arc<SharedCache>,
    /// Who performs effects.
    pub hands: Arc<dyn Hands>,
    pub clock: Arc<Clock>,
    /// Where users are told of failures.
    pub events: Option<Events>,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// Where tasks that panicked are told.
    pub panics: Arc<Panics>,
}

/// Hears of every action of one controller that has ended, before what the action wrote is in the cache.
pub type Observer<R> = Box<dyn Fn(&<R as Rules>::Key, &<R as Rules>::Action, &Acted) + Send + Sync>;

/// One set of rules at work: the [`Engine`] with real hands, real time, and somebody to tell.
pub struct Controller<R: Narrate> {
    parts: Parts,
    state: Mutex<State<R>>,
    woken: Notify,
    learned: watch::Sender<u64>,
    stopping: Notify,
    observer: OnceLock<Observer<R>>,
    turns: Turns,
}

struct State<R: Narrate> {
    engine: Engine<R>,
    stopping: bool,
    /// Something may be begun. False while another process leads.
    leading: bool,
    at_once: usize,
    /// Somebody has said how many at once: no action is more than that, however long others take.
    strict: bool,
    /// Actions under way that are not among those.
    aside: usize,
    last_wait: Duration,
    /// What keys wait for that users should know.
    rests: Rests<R::Key>,
}

impl<R: Narrate> Controller<R> {
    /// Sets up the controller and lets it hear of changes. Nothing is decided before [`Controller::run`].
    pub fn new(parts: &Parts, local: R::Local) -> Arc<Self> {
        let state = State {
            engine: Engine::new(local),
            stopping: false,
            leading: true,
            at_once: AT_ONCE,
            strict: false,
            aside: 0,
            last_wait: LAST_WAIT,
            rests: Rests::default(),
        };
        let controller = Arc::new(Controller {
            parts: parts.clone(),
            state: Mutex::new(state),
            woken: Notify::new(),
            learned: watch::Sender::new(0),
            stopping: Notify::new(),
            observer: OnceLock::new(),
            turns: Turns::default(),
        });
        let weak: Weak<Self> = Arc::downgrade(&controller);
        parts.cache.listen(weak);
        controller
    }

    /// Has every action that ends told to somebody; only the first one named hears of them.
    pub fn observe(&self, observer: Observer<R>) {
        let _ = self.observer.set(observer);
    }

    /// Works until [`Controller::stop`]. Starts once everything the rules watch has been listed.
    ///
    /// A decision that panics is told to [`Panics`]. Its key is left alone from then on; the other keys go on.
    pub async fn run(self: Arc<Self>) {
        tokio::select! {
            () = self.parts.cache.synced(R::watches()) => {}
            () = self.stopping.notified() => return,
        }
        self.with_engine(Engine::wake_all);
        while let Err(panic) = AssertUnwindSafe(self.decide_all()).catch_unwind().await {
            self.tell_of_panic("decided", &*panic);
        }
        self.finish().await;
    }

    /// Begins what is due, until it is told to stop.
    async fn decide_all(self: &Arc<Self>) {
        loop {
            let next = self.start_due();
            if self.state().stopping {
                return;
            }
            let pause = next.map(|at| Duration::from_millis(at.0.saturating_sub(self.parts.clock.now().0).max(1)));
            tokio::select! {
                () = self.woken.notified() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Begins nothing new; [`Controller::run`] returns when what is under way has ended.
    pub fn stop(&self) {
        self.state().stopping = true;
        self.stopping.notify_one();
        self.woken.notify_one();
    }

    /// Whether anything may be begun. A controller that does not lead keeps its cache and its queue up to date, so that it
    /// can begin at once when it does; what it remembers of failures is from another time, and forgotten.
    pub fn lead(&self, leads: bool) {
        let before = {
            let mut state = self.state();
            state.rests = Rests::default();
            std::mem::replace(&mut state.leading, leads)
        };
        if leads && !before {
            self.start_over();
        }
    }

    /// How many keys are worked on at once from now on, those included that hang.
    pub fn at_once(&self, keys: usize) {
        let mut state = self.state();
        (state.at_once, state.strict) = (keys.max(1), true);
        drop(state);
        self.woken.notify_one();
    }

    /// How long its end waits for actions under way: as long as one may take, or its answer is lost.
    pub fn wait_at_end(&self, longest: Duration) {
        self.state().last_wait = longest.max(LAST_WAIT);
    }

    /// Returns when [`Controller::stop`] was called; for work that precedes [`Controller::run`].
    pub async fn stopped(&self) {
        if !self.state().stopping {
            self.stopping.notified().await;
        }
    }

    /// Something outside the API changed.
    pub fn update_local(&self, update: impl FnOnce(&mut R::Local)) {
        self.with_engine(|engine, now, cache| engine.update_local(now, cache, update));
        self.learned.send_modify(|count| *count += 1);
    }

    /// Somebody this controller waits for is back: what failed before says nothing any more, so every key that is not
    /// being worked on is looked at anew, without its memory.
    pub fn start_over(&self) {
        self.with_engine(Engine::start_over);
    }

    /// Looks at what is known from outside the API.
    pub fn look_local<T>(&self, look: impl FnOnce(&R::Local) -> T) -> T {
        look(self.state().engine.local())
    }

    /// Counts outcomes and updates: each may have changed what is known from outside the API.
    pub fn learned(&self) -> watch::Receiver<u64> {
        self.learned.subscribe()
    }

    /// What the rules make of everything that concerns an object.
    pub fn explain(&self, object: &Object) -> Vec<Explanation> {
        let now = self.parts.clock.now();
        self.parts.cache.look(|cache| self.state().engine.explain(now, object, cache))
    }

    /// What the rules make of the keys that are about these objects and no others.
    pub fn explain_only(&self, objects: &[Object]) -> Vec<Explanation> {
        let now = self.parts.clock.now();
        self.parts.cache.look(|cache| self.state().engine.explain_only(now, objects, cache))
    }

    /// Changes the engine in the light of the cache, and looks at what is due. Locks are always taken in this order, the
    /// cache's before the state's.
    fn with_engine<T>(&self, change: impl FnOnce(&mut Engine<R>, Timestamp, &Cache) -> T) -> T {
        let now = self.parts.clock.now();
        let answer = self.parts.cache.look(|cache| change(&mut self.state().engine, now, cache));
        self.woken.notify_one();
        answer
    }

    /// Looks at every key that is due and begins what is to be done. Answers when the next one is due.
    fn start_due(self: &Arc<Self>) -> Option<Timestamp> {
        loop {
            let now = self.parts.clock.now();
            let next = self.parts.cache.look(|cache| {
                let mut state = self.state();
                // An action that ends, or the lease, wakes us.
                let counted = state.engine.busy().saturating_sub(state.aside);
                if state.stopping || !state.leading || counted >= state.at_once {
                    return Next::Idle(None);
                }
                state.engine.next(now, cache)
            });
            let (name, metrics) = (R::NAME, &self.parts.metrics);
            match next {
                Next::Idle(until) => return [until, self.tell_of_lasting_rests()].into_iter().flatten().min(),
                Next::Rested { key, why } => {
                    metrics.decided(name, "rest", why.code.name());
                    self.note_rest(key, &why);
                }
                Next::Waiting { key, why } => {
                    self.state().rests.over(&key);
                    metrics.decided(name, "wait", why.code);
                }
                Next::Begin { key, effect } => {
                    self.state().rests.over(&key);
                    self.tell_of_beginning(&key);
                    let (controller, aside) = (self.clone(), self.counted_by_driver(&effect));
                    tokio::spawn(async move {
                        let acting = AssertUnwindSafe(controller.clone().act(key, effect, aside));
                        if let Err(panic) = acting.catch_unwind().await {
                            controller.tell_of_panic("took in an outcome", &*panic);
                        }
                    });
                }
            }
        }
    }

    async fn act(self: Arc<Self>, key: Arc<R::Key>, effect: Effect, mut aside: Option<Aside<R>>) {
        let began = Instant::now();
        let outcome = self.in_turn(effect, &mut aside, async |effect| self.perform_and_tell(&key, effect).await).await;
        // No decision sees anything older than the answer to our own write (reliability 104).
        let fold = self.state().engine.fold(&key, &outcome);
        if let Some(fold) = fold {
            self.parts.cache.fold(fold);
        }
        let ended = self.with_engine(|engine, now, cache| engine.ended(now, &key, &outcome, cache));
        self.learned.send_modify(|count| *count += 1);
        let Some(ended) = ended else { return };
        let how = match &outcome {
            Outcome::Done(_) => "done",
            Outcome::Refused(_) => "refused",
            Outcome::Unknown(_) => "unknown",
        };
        let acted = Acted {
            controller: R::NAME,
            action: ended.action.name(),
            outcome: how,
            failed: ended.attempt.failure().is_some(),
            took: began.elapsed(),
        };
        self.parts.metrics.acted(&acted);
        if let Some(observe) = self.observer.get() {
            observe(&key, &ended.action, &acted);
        }
        self.tell_of_end(&key, &ended, &outcome);
    }

    /// Performs an effect. What takes long is told while it does, if its action has words for that.
    async fn perform_and_tell(&self, key: &R::Key, effect: Effect) -> Outcome {
        let mut performed = pin!(self.perform(effect));
        let mut patience = FIRST_WORD;
        loop {
            match tokio::time::timeout(patience, &mut performed).await {
                Ok(outcome) => return outcome,
                Err(_) => self.tell_of_slowness(key),
            }
            patience = NEXT_WORD;
        }
    }

    async fn perform(&self, effect: Effect) -> Outcome {
        // Hands may panic before their future is made, too.
        let performed = AssertUnwindSafe(async { self.parts.hands.perform(effect).await }).catch_unwind().await;
        performed.unwrap_or_else(|panic| {
            // The words of a panic stay in the log: an outcome reaches events and statuses.
            self.tell_of_panic("acted", &*panic);
            Outcome::Unknown("the action ended in a panic; the log says where".into())
        })
    }

    fn tell_of_panic(&self, did: &str, panic: &(dyn Any + Send)) {
        self.parts.panics.tell(format!("{} panicked while it {did}: {}", R::NAME, panics::message(panic)));
    }

    async fn finish(&self) {
        let finished = async {
            while self.state().engine.busy() > 0 {
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

async fn sleep(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}

impl<R: Narrate> Listener for Controller<R> {
    fn changed(&self, change: &Change, cache: &Cache) {
        // Once all is listed every key is looked at: until then finding out whom each object concerns would be work for
        // nothing, and in a large cluster most of the work of a restart.
        if R::watches().iter().any(|kind| !cache.is_synced(*kind)) {
            return;
        }
        let now = self.parts.clock.now();
        let mut state = self.state();
        let added = state.engine.changed(now, change, cache);
        self.parts.metrics.queued(R::NAME, state.engine.waiting(), added);
        drop(state);
        if added > 0 {
            self.woken.notify_one();
        }
    }
}
