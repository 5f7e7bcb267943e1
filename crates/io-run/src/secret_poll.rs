//! Reads the Secrets that somebody failed for until they change. Which, and when, decides [`control::FailedSecrets`].

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::{Kind, ObjectKey, ObjectRef};
use control::{FailedSecrets, Outcome};
use csi::Call;
use io_kube::Kube;
use tokio::sync::Notify;

use crate::Clock;

/// The Secrets that controllers of this process failed for.
pub struct SecretPoll {
    state: Mutex<FailedSecrets>,
    clock: Arc<Clock>,
    /// Traces of contents are worth nothing outside this process.
    hasher: RandomState,
    some: Notify,
}

impl SecretPoll {
    /// Nobody has failed yet.
    pub fn new(clock: Arc<Clock>) -> SecretPoll {
        SecretPoll { state: Mutex::default(), clock, hasher: RandomState::new(), some: Notify::new() }
    }

    /// A Secret was read, or could not be.
    pub fn read(&self, key: &ObjectKey, got: &Outcome) {
        self.state().read(self.clock.now(), key, got, |texts| self.hasher.hash_one(texts));
        self.some.notify_one();
    }

    /// The trace of the secrets that a call takes along.
    pub fn trace(&self, call: &Call) -> Option<u64> {
        call.secrets().filter(|taken| !taken.is_empty()).map(|taken| self.hasher.hash_one(taken))
    }

    /// The driver answered a call; `trace` is that of the secrets it took along.
    pub fn answered(&self, trace: Option<u64>, got: &Outcome) {
        let Some(trace) = trace else { return };
        self.state().answered(self.clock.now(), trace, got);
        self.some.notify_one();
    }

    /// Reads for as long as somebody waits, and calls `changed` when a Secret has changed. Never ends.
    pub async fn run(self: Arc<Self>, kube: Kube, changed: impl Fn()) {
        loop {
            let due = self.state().due(self.clock.now());
            if due.is_empty() {
                self.some.notified().await;
                continue;
            }
            tokio::time::sleep(FailedSecrets::LOOK).await;
            let mut news = false;
            for key in due {
                let found = kube.read(&ObjectRef { kind: Kind::Secret, key: key.clone() }).await;
                news |= self.state().changed(&key, &found);
            }
            if news {
                changed();
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, FailedSecrets> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
