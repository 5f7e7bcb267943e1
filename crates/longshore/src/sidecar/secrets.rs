//! Secrets somebody waits for.
//!
//! A key whose Secret is missing, may not be read, or made the driver refuse a call pauses longer and longer. When the
//! Secret changes it should be tried at once. Watching Secrets needs a right that shows all of them, and that nobody should
//! have to grant for this. Reading one by its name is granted anyway: so those that somebody failed for are read again every
//! few seconds, one request for each whatever the number of keys, and only for as long as somebody fails for them.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use api::{Kind, Object, ObjectKey, ObjectRef};
use control::{Outcome, Refusal, Reply};
use csi::Call;
use io_kube::Kube;
use tokio::sync::Notify;

/// Between two looks at the Secrets somebody failed for.
const LOOK: Duration = Duration::from_secs(2);
/// After so long without a failure nobody waits for it any more: longer than any pause between two tries is by default.
const PATIENCE: Duration = Duration::from_secs(15 * 60);
/// Secrets known or waited for at once, to bound the memory of a long life and the requests of a bad day.
const MOST: usize = 256;

/// What is known of Secrets: their versions and traces, never what is in them.
#[derive(Default)]
pub struct Waiting {
    state: Mutex<State>,
    /// Traces of contents are worth nothing outside this process.
    hasher: RandomState,
    some: Notify,
}

#[derive(Default)]
struct State {
    /// Where what calls take along came from: a trace of the contents, and the Secret with its version.
    read: BTreeMap<u64, (ObjectKey, String)>,
    /// Those somebody failed for: the version that failed (none if it could not be had), and when that was last.
    failed: BTreeMap<ObjectKey, (Option<String>, Instant)>,
}

impl Waiting {
    /// A Secret was read, or could not be.
    pub fn read(&self, target: &ObjectRef, got: &Outcome) {
        let key = &target.key;
        let mut state = self.state();
        let Outcome::Done(Reply::Object(Object::Secret(secret))) = got else {
            if !matches!(got, Outcome::Unknown(_)) {
                self.failed(&mut state, key, None);
            }
            return;
        };
        let version = secret.metadata.resource_version.clone();
        let Ok(texts) = secret.texts() else {
            self.failed(&mut state, key, Some(version));
            return;
        };
        if state.read.len() >= MOST {
            state.read.clear();
        }
        state.read.insert(self.hasher.hash_one(&texts), (key.clone(), version));
    }

    /// The driver refused a call; `trace` is that of what it took along.
    pub fn refused(&self, trace: Option<u64>, got: &Outcome) {
        let Outcome::Refused(Refusal::Driver(..)) = got else { return };
        let mut state = self.state();
        let came_from = trace.and_then(|trace| state.read.get(&trace).cloned());
        if let Some((key, version)) = came_from {
            self.failed(&mut state, &key, Some(version));
        }
    }

    /// The trace of what a call takes along.
    pub fn trace(&self, call: &Call) -> Option<u64> {
        let taken = match call {
            Call::CreateVolume(request) => &request.secrets,
            Call::DeleteVolume(request) => &request.secrets,
            Call::ControllerPublishVolume(request) => &request.secrets,
            Call::ControllerUnpublishVolume(request) => &request.secrets,
            Call::ControllerExpandVolume(request) => &request.secrets,
            Call::ControllerModifyVolume(request) => &request.secrets,
            _ => return None,
        };
        (!taken.is_empty()).then(|| self.hasher.hash_one(taken))
    }

    fn failed(&self, state: &mut State, key: &ObjectKey, version: Option<String>) {
        if state.failed.len() < MOST || state.failed.contains_key(key) {
            state.failed.insert(key.clone(), (version, Instant::now()));
            self.some.notify_one();
        }
    }

    /// Looks for as long as somebody waits, and calls `changed` when one of them has changed. Never ends.
    pub async fn look(self: Arc<Self>, kube: Kube, changed: impl Fn()) {
        loop {
            let waited_for = self.waited_for();
            if waited_for.is_empty() {
                self.some.notified().await;
                continue;
            }
            tokio::time::sleep(LOOK).await;
            let mut news = false;
            for (key, version) in waited_for {
                let found = kube.read(&ObjectRef { kind: Kind::Secret, key: key.clone() }).await;
                news |= self.compare(&key, version.as_ref(), &found);
            }
            if news {
                changed();
            }
        }
    }

    fn waited_for(&self) -> Vec<(ObjectKey, Option<String>)> {
        let mut state = self.state();
        state.failed.retain(|_, (_, at)| at.elapsed() < PATIENCE);
        state.failed.iter().map(|(key, (version, _))| (key.clone(), version.clone())).collect()
    }

    /// Whether it is another than the one that failed. If so nobody has failed for it yet.
    fn compare(&self, key: &ObjectKey, failed: Option<&String>, found: &Outcome) -> bool {
        let Outcome::Done(Reply::Object(object)) = found else { return false };
        let changed = failed != Some(&object.meta().resource_version);
        if changed {
            self.state().failed.remove(key);
        }
        changed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::{Meta, Secret, SecretValue};
    use csi::{Code, v1};

    fn secret(version: &str, value: &str) -> Outcome {
        let metadata = Meta { resource_version: version.into(), ..Meta::in_namespace("n", "s") };
        let data = [("k".to_string(), SecretValue(value.into()))].into();
        Outcome::Done(Reply::Object(Object::Secret(Arc::new(Secret { metadata, data }))))
    }

    fn target() -> ObjectRef {
        ObjectRef::namespaced(Kind::Secret, "n", "s")
    }

    #[test]
    fn one_that_is_missing_is_waited_for_until_it_is_there() {
        let waiting = Waiting::default();
        waiting.read(&target(), &Outcome::Done(Reply::Gone));
        assert_eq!(waiting.waited_for(), [(target().key, None)]);
        assert!(!waiting.compare(&target().key, None, &Outcome::Done(Reply::Gone)));
        assert!(waiting.compare(&target().key, None, &secret("5", "YQ==")));
        assert!(waiting.waited_for().is_empty());
    }

    #[test]
    fn one_that_made_the_driver_refuse_is_waited_for_until_it_is_another() {
        let waiting = Waiting::default();
        waiting.read(&target(), &secret("5", "YQ=="));
        assert!(waiting.waited_for().is_empty(), "what works is not looked at again");
        let call = |value: &str| {
            let secrets = [("k".to_string(), value.to_string())].into();
            Call::DeleteVolume(v1::DeleteVolumeRequest { secrets, ..Default::default() })
        };
        let refused = Outcome::Refused(Refusal::Driver(Code::Unauthenticated, "no".into()));
        waiting.refused(waiting.trace(&call("another")), &refused);
        waiting.refused(waiting.trace(&call("a")), &Outcome::Unknown("no answer".into()));
        assert!(waiting.waited_for().is_empty());
        waiting.refused(waiting.trace(&call("a")), &refused);
        assert_eq!(waiting.waited_for(), [(target().key, Some("5".to_string()))]);
        assert!(!waiting.compare(&target().key, Some(&"5".to_string()), &secret("5", "YQ==")));
        assert!(waiting.compare(&target().key, Some(&"5".to_string()), &secret("6", "Yg==")));
    }
}
