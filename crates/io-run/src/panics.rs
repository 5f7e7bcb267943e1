//! Tasks that panicked, or ended while they should work. The process goes on without them, and its health check says
//! so.

use std::any::Any;
use std::panic::{AssertUnwindSafe, PanicHookInfo};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use futures::FutureExt;
use tokio::task::AbortHandle;

/// How many failures are kept in words; more are counted.
const KEPT: usize = 8;

/// Where something of this process panicked, whoever noticed: a task nobody waits for, a thread, a library.
static PLACES: Mutex<Failures> = Mutex::new(Failures { count: 0, texts: Vec::new() });

/// The tasks of a process that failed so far.
#[derive(Default)]
pub struct Panics {
    failures: Mutex<Failures>,
    /// The process is ending, and with it the tasks that work as long as it does.
    ending: Mutex<bool>,
}

#[derive(Default)]
struct Failures {
    count: usize,
    texts: Vec<String>,
}

impl Failures {
    fn add(&mut self, text: String) {
        self.count += 1;
        if self.texts.len() < KEPT {
            self.texts.push(text);
        }
    }

    fn say(&self, of: &str) -> Option<String> {
        (self.count > 0).then(|| format!("{} {of} since the start: {}", self.count, self.texts.join("; ")))
    }
}

/// Tasks of the process have failed or panicked, in these words, so that it should be started again when that suits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Panicked(pub String);

impl Panics {
    /// Logs that a task failed and remembers it.
    pub fn tell(&self, text: String) {
        tracing::error!("{text}; report this as a defect");
        lock(&self.failures).add(text);
    }

    /// Starts a task that is to work for as long as the process, and tells if it panics or ends before. `what` is who
    /// is missed then: `the watch of mounts`.
    pub fn keep(
        self: &Arc<Panics>,
        what: impl Into<String>,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> AbortHandle {
        let (panics, what) = (self.clone(), what.into());
        let kept = async move {
            let ended = AssertUnwindSafe(task).catch_unwind().await;
            match ended {
                Err(panic) => panics.tell(format!("{what} panicked: {}", message(&*panic))),
                Ok(()) if !*lock(&panics.ending) => panics.tell(format!("{what} has ended")),
                Ok(()) => {}
            }
        };
        tokio::spawn(kept).abort_handle()
    }

    /// From now on tasks may end.
    pub fn end(&self) {
        *lock(&self.ending) = true;
    }

    /// What a health check answers: `Err` with what failed once something has, so that whoever watches the process
    /// starts it again when that suits.
    pub fn health(&self) -> Result<(), Panicked> {
        lock(&self.failures).say("tasks failed").map_or(Ok(()), |told| Err(Panicked(told)))
    }
}

/// Notes every panic of this process from now on, also of tasks and threads that nobody waits for. What was done about
/// a panic before is done as well.
pub fn watch_process() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            before(panic);
            note(panic);
        }));
    });
}

/// What a health check says of panics anywhere in this process.
pub fn health_of_process() -> Result<(), Panicked> {
    lock(&PLACES).say("panics").map_or(Ok(()), |told| Err(Panicked(told)))
}

// Not the words: they may quote what only the log may hold.
fn note(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map_or_else(|| "an unknown place".into(), |at| format!("{}:{}", at.file(), at.line()));
    lock(&PLACES).add(place);
}

/// What a panic said.
pub fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it said nothing")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn finished(task: &AbortHandle) {
        while !task.is_finished() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_task_that_panics_or_ends_before_its_time_is_told_by_name() {
        let panics = Arc::<Panics>::default();
        finished(&panics.keep("the watch of sockets", async { panic!("out of sockets") })).await;
        finished(&panics.keep("the watch of mounts", async {})).await;
        let stopped = panics.keep("what was stopped", std::future::pending());
        stopped.abort();
        finished(&stopped).await;
        panics.end();
        finished(&panics.keep("what ends with the process", async {})).await;
        let Panicked(told) = panics.health().unwrap_err();
        let sockets = "the watch of sockets panicked: out of sockets";
        assert_eq!(told, format!("2 tasks failed since the start: {sockets}; the watch of mounts has ended"));
    }

    #[test]
    fn words_are_bounded_and_the_count_is_not() {
        let panics = Panics::default();
        assert_eq!(panics.health(), Ok(()));
        (0..KEPT + 3).for_each(|at| panics.tell(format!("number {at}")));
        let Panicked(told) = panics.health().unwrap_err();
        assert!(told.starts_with("11 tasks failed") && told.ends_with("number 7"), "{told}");
    }
}
