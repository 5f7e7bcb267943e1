//! Hearing of processes without asking again and again: one thread that sleeps until a supervisor ends.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use control::host::ProcessState;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::{Host, process, record};

/// Everybody who watches.
#[derive(Debug, Default)]
pub(crate) struct Watchers(Mutex<Vec<Weak<Inbox>>>);

/// How a watching thread is told which processes to look at.
#[derive(Debug)]
struct Inbox {
    names: Mutex<Vec<String>>,
    bell: OwnedFd,
    closed: AtomicBool,
}

impl Inbox {
    fn ring(&self) {
        // The only refusal is a bell that rings already as loud as it can.
        let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
    }
}

/// A running watch. It ends when this is dropped.
#[derive(Debug)]
pub struct Watch(Arc<Inbox>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::SeqCst);
        self.0.ring();
    }
}

impl Watchers {
    /// A process may have begun.
    pub(crate) fn look_at(&self, name: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|inbox| match inbox.upgrade() {
            None => false,
            Some(inbox) => {
                inbox.names.lock().unwrap_or_else(PoisonError::into_inner).push(name.to_owned());
                inbox.ring();
                true
            }
        });
    }
}

impl Host {
    /// Calls back, from a thread of its own, with every process there is, and then whenever one starts or ends, be it of
    /// this incarnation or of an earlier one. The callback may send into a channel; it should not block for long.
    pub fn watch_processes(&self, tell: impl FnMut(&str, ProcessState) + Send + 'static) -> io::Result<Watch> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let inbox = Arc::new(Inbox { names: Mutex::default(), bell, closed: AtomicBool::new(false) });
        // First listen, then look, so that nothing falls between.
        self.watchers.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&inbox));
        let present = self.processes()?.into_keys().collect();
        let (state_dir, heard) = (self.state_dir.clone(), inbox.clone());
        let thread = std::thread::Builder::new().name("process-watch".to_owned());
        thread.spawn(move || Watching { state_dir, inbox: heard, known: BTreeMap::new() }.run(present, tell))?;
        Ok(Watch(inbox))
    }
}

/// A process that was running when we last looked.
struct Known {
    supervisor: Option<OwnedFd>,
    told: Option<ProcessState>,
}

struct Watching {
    state_dir: PathBuf,
    inbox: Arc<Inbox>,
    known: BTreeMap<String, Known>,
}

impl Watching {
    fn run(mut self, mut look_at: BTreeSet<String>, mut tell: impl FnMut(&str, ProcessState)) {
        loop {
            for name in std::mem::take(&mut look_at) {
                if let Some(state) = self.look(&name) {
                    tell(&name, state);
                }
            }
            look_at = self.wait();
            if self.inbox.closed.load(Ordering::SeqCst) {
                return;
            }
        }
    }

    /// Sleeps until something may have changed, and says which processes to look at.
    fn wait(&self) -> BTreeSet<String> {
        let mut names: Vec<&String> = Vec::new();
        let mut fds = vec![PollFd::new(&self.inbox.bell, PollFlags::IN)];
        let mut unheard = Vec::new();
        for (name, known) in &self.known {
            match &known.supervisor {
                Some(fd) => {
                    names.push(name);
                    fds.push(PollFd::new(fd, PollFlags::IN));
                }
                // Its supervisor is gone and the rest is about to go. Nothing rings for that, so we look again soon.
                None => unheard.push(name.clone()),
            }
        }
        let soon = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        // An interruption is like a wake-up with nothing to look at.
        let _ = poll(&mut fds, (!unheard.is_empty()).then_some(&soon));
        let ended = fds.iter().skip(1).zip(names).filter(|(fd, _)| !fd.revents().is_empty());
        let mut look_at: BTreeSet<String> = ended.map(|(_, name)| name.clone()).chain(unheard).collect();
        let _ = rustix::io::read(&self.inbox.bell, &mut [0; 8]);
        look_at.append(&mut self.inbox.names.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect());
        look_at
    }

    /// Looks at one process; says its state if that is news.
    fn look(&mut self, name: &str) -> Option<ProcessState> {
        let dir = self.state_dir.join(name);
        let before = self.known.remove(name).and_then(|known| known.told);
        let state = match record::state(&dir) {
            Ok(state) => state?,
            // It cannot be told now (no descriptor is free, say), so we look again soon.
            Err(_) => {
                self.known.insert(name.to_owned(), Known { supervisor: None, told: before });
                return None;
            }
        };
        if let ProcessState::Running { .. } = state {
            let known = Known { supervisor: listen(&dir), told: Some(state.clone()) };
            self.known.insert(name.to_owned(), known);
        }
        (before.as_ref() != Some(&state)).then_some(state)
    }
}

/// A descriptor that can be read when the supervisor has ended.
fn listen(dir: &Path) -> Option<OwnedFd> {
    let started = record::read(dir, record::PID).ok().flatten()?;
    process::supervisor(dir, &started).ok().flatten()
}
