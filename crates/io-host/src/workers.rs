//! Operations in threads of their own, each with a deadline, so that a hung filesystem blocks nothing but itself.
//!
//! One operation at a time on one thing ([`Op::works_on`]); others on it wait for it, and once it is given up on they are
//! refused until it ends. A hung thread cannot be ended, only waited for, so their number has a bound.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use control::host::{Op, Reply};

use crate::error::os;
use crate::{Host, HostError};

/// Told how an operation ended.
type Answer = Box<dyn FnOnce(Result<Reply, HostError>) + Send>;

/// How long a thread without work stays for the next operation.
const IDLE: Duration = Duration::from_secs(10);
/// How many operations may wait. More than any sound machine has; a broken one is told so instead of growing.
const WAITING: usize = 4096;
/// Enough for every operation, and small, since there may be many threads.
const STACK: usize = 512 << 10;

/// Threads that perform operations.
#[derive(Debug, Clone)]
pub struct Workers {
    shared: Arc<Shared>,
}

/// An operation that was given up on and has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hung {
    /// What it works on.
    pub works_on: String,
    /// The operation, in words.
    pub op: String,
    /// When it was begun.
    pub since: Instant,
}

/// An operation begun or waiting to begin.
#[derive(Debug)]
pub struct Pending {
    shared: Arc<Shared>,
    number: u64,
    works_on: String,
    op: String,
    since: Instant,
}

#[derive(Debug)]
struct Shared {
    host: Arc<Host>,
    limit: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    threads: usize,
    idle: usize,
    next: u64,
    waiting: VecDeque<Job>,
    /// What is under way, by what it works on.
    running: BTreeMap<String, Running>,
}

struct Job {
    number: u64,
    op: Op,
    answer: Answer,
}

#[derive(Debug)]
struct Running {
    number: u64,
    op: String,
    since: Instant,
    given_up: bool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} threads, {} waiting, running: {:?}", self.threads, self.waiting.len(), self.running)
    }
}

impl State {
    fn hung(&self) -> usize {
        self.running.values().filter(|running| running.given_up).count()
    }

    /// Takes the first operation out whose thing nobody works on.
    fn take(&mut self) -> Option<Job> {
        let free = |job: &Job| !self.running.contains_key(job.op.works_on());
        let at = self.waiting.iter().position(free)?;
        let job = self.waiting.remove(at)?;
        let running =
            Running { number: job.number, op: format!("{:?}", job.op), since: Instant::now(), given_up: false };
        self.running.insert(job.op.works_on().to_owned(), running);
        Some(job)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workers {
    /// At most so many threads work on this machine at once. None is started before there is work.
    pub fn new(host: Arc<Host>, limit: usize) -> Workers {
        let state = Mutex::new(State::default());
        Workers { shared: Arc::new(Shared { host, limit: limit.max(1), state, changed: Condvar::new() }) }
    }

    /// Begins an operation, or has it wait for an earlier one on the same thing. `answer` is told how it ended, whenever
    /// that is, in another thread. Refused while an earlier operation on the same thing hangs.
    pub fn begin(
        &self,
        op: Op,
        answer: impl FnOnce(Result<Reply, HostError>) + Send + 'static,
    ) -> Result<Pending, HostError> {
        let shared = &self.shared;
        let mut state = shared.lock();
        if let Some(earlier) = state.running.get(op.works_on()).filter(|earlier| earlier.given_up) {
            return Err(HostError::Hung { what: op.works_on().to_owned(), op: earlier.op.clone() });
        }
        let hung = state.hung();
        if hung >= shared.limit || state.waiting.len() >= WAITING {
            return Err(HostError::NoWorker { workers: shared.limit, hung });
        }
        if state.waiting.len() >= state.idle && state.threads < shared.limit {
            let of_thread = shared.clone();
            let started = std::thread::Builder::new().name("host-op".into()).stack_size(STACK);
            match started.spawn(move || work(&of_thread)) {
                Ok(_) => state.threads += 1,
                // Others will come to it.
                Err(_) if state.threads > hung => {}
                Err(error) => return Err(os("start a thread for", op.works_on(), error, false)),
            }
        }
        state.next += 1;
        let pending = Pending {
            shared: shared.clone(),
            number: state.next,
            works_on: op.works_on().to_owned(),
            op: format!("{op:?}"),
            since: Instant::now(),
        };
        state.waiting.push_back(Job { number: pending.number, op, answer: Box::new(answer) });
        drop(state);
        shared.changed.notify_one();
        Ok(pending)
    }

    /// Performs an operation and waits for it, but not longer than this.
    pub fn perform(&self, op: &Op, deadline: Duration) -> Result<Reply, HostError> {
        let (say, heard) = channel();
        let pending = self.begin(op.clone(), move |answer| drop(say.send(answer)))?;
        match heard.recv_timeout(deadline) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => Err(pending.give_up()),
            Err(RecvTimeoutError::Disconnected) => {
                let died = io::Error::other("its thread ended without an answer");
                Err(os("finish", &pending.op, died, true))
            }
        }
    }

    /// The operations that were given up on and have not ended.
    pub fn hung(&self) -> Vec<Hung> {
        let state = self.shared.lock();
        let given_up = state.running.iter().filter(|(_, running)| running.given_up);
        let told = |(works_on, running): (&String, &Running)| Hung {
            works_on: works_on.clone(),
            op: running.op.clone(),
            since: running.since,
        };
        given_up.map(told).collect()
    }

    /// How many operations are begun and have not ended.
    pub fn under_way(&self) -> usize {
        self.shared.lock().running.len()
    }

    /// How many threads there are now.
    pub fn threads(&self) -> usize {
        self.shared.lock().threads
    }
}

impl Pending {
    /// Nobody waits for the operation any more. Answers what to tell: one that has not begun never will, and one that
    /// has begun goes on, and whatever else waits for its thing is refused.
    pub fn give_up(self) -> HostError {
        let mut state = self.shared.lock();
        let waited = self.since.elapsed();
        if let Some(at) = state.waiting.iter().position(|job| job.number == self.number) {
            state.waiting.remove(at);
            return match state.running.get(&self.works_on) {
                Some(earlier) => HostError::Hung { what: self.works_on.clone(), op: earlier.op.clone() },
                None => HostError::NoWorker { workers: self.shared.limit, hung: state.hung() },
            };
        }
        let mut refused = Vec::new();
        if let Some(running) = state.running.get_mut(&self.works_on).filter(|running| running.number == self.number) {
            running.given_up = true;
            let same = |job: &Job| job.op.works_on() == self.works_on;
            let (behind, others) = state.waiting.drain(..).partition::<VecDeque<_>, _>(same);
            (refused, state.waiting) = (behind.into(), others);
        }
        drop(state);
        for job in refused {
            (job.answer)(Err(HostError::Hung { what: self.works_on.clone(), op: self.op.clone() }));
        }
        HostError::UnderWay { op: self.op, waited }
    }
}

/// The life of a thread: operations until there are none for a while.
fn work(shared: &Shared) {
    let mut state = shared.lock();
    loop {
        if let Some(job) = state.take() {
            drop(state);
            let under_way = UnderWay { shared, works_on: job.op.works_on().to_owned() };
            let answer = shared.host.perform(&job.op);
            // Before it is told, so that who hears of the end can begin the next at once.
            drop(under_way);
            (job.answer)(answer);
            state = shared.lock();
            continue;
        }
        state.idle += 1;
        let (next, idle) = shared.changed.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
        state = next;
        state.idle -= 1;
        if idle.timed_out() && state.waiting.is_empty() {
            state.threads -= 1;
            return;
        }
    }
}

/// Something is worked on until this is dropped, also by a panic.
struct UnderWay<'a> {
    shared: &'a Shared,
    works_on: String,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.running.remove(&self.works_on);
        if std::thread::panicking() {
            state.threads -= 1;
        }
        drop(state);
        // Any thread may take what waited for it.
        self.shared.changed.notify_all();
    }
}
