//! Secrets that somebody failed for.
//!
//! A key whose Secret is missing, may not be read, or made the driver refuse a call pauses longer and longer. When the
//! Secret changes the key should be tried at once. Watching Secrets needs a right that shows all of them. Reading one
//! by its name is granted anyway: so those that somebody failed for are read again every few seconds, one request for
//! each whatever the number of keys, and only for as long as somebody fails for them.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use api::{Object, ObjectKey, ResourceVersion};

use crate::{Outcome, Refusal, Reply, Timestamp};

/// After so many milliseconds without a failure nobody waits for a Secret any more: longer than any pause between two
/// tries is by default.
const PATIENCE_MILLIS: u64 = 15 * 60 * 1000;
/// Secrets known or waited for at once, to bound the memory of a long life and the requests of a bad day.
const MOST: usize = 256;

/// What is known of Secrets: their versions and traces, never what is in them.
#[derive(Debug, Default)]
pub struct FailedSecrets {
    /// Where what calls take along came from: a trace of the contents, and the Secret with its version.
    read: BTreeMap<u64, (ObjectKey, ResourceVersion)>,
    /// Those somebody failed for: the version that failed (none if it could not be had), and when that was last.
    failed: BTreeMap<ObjectKey, (Option<ResourceVersion>, Timestamp)>,
}

impl FailedSecrets {
    /// Between two looks at the Secrets somebody failed for.
    pub const LOOK: Duration = Duration::from_secs(2);

    /// A Secret was read, or could not be; `trace` makes a trace of contents.
    pub fn read(
        &mut self,
        now: Timestamp,
        key: &ObjectKey,
        got: &Outcome,
        trace: impl FnOnce(&BTreeMap<String, String>) -> u64,
    ) {
        let secret = match got {
            Outcome::Done(Reply::Object(Object::Secret(secret))) => secret,
            Outcome::Unknown(_) => return,
            Outcome::Done(_) | Outcome::Refused(_) => return self.failed(now, key, None),
        };
        let version = secret.metadata.resource_version.clone();
        let Ok(texts) = secret.texts() else { return self.failed(now, key, Some(version)) };
        if self.read.len() >= MOST {
            self.read.clear();
        }
        self.read.insert(trace(&texts), (key.clone(), version));
    }

    /// The driver answered a call; `trace` is that of the secrets it took along.
    pub fn answered(&mut self, now: Timestamp, trace: u64, got: &Outcome) {
        let Outcome::Refused(Refusal::Driver(..)) = got else { return };
        if let Some((key, version)) = self.read.get(&trace).cloned() {
            self.failed(now, &key, Some(version));
        }
    }

    fn failed(&mut self, now: Timestamp, key: &ObjectKey, version: Option<ResourceVersion>) {
        if self.failed.len() < MOST || self.failed.contains_key(key) {
            self.failed.insert(key.clone(), (version, now));
        }
    }

    /// The Secrets to read again.
    pub fn due(&mut self, now: Timestamp) -> Vec<ObjectKey> {
        self.failed.retain(|_, (_, at)| now.0.saturating_sub(at.0) < PATIENCE_MILLIS);
        self.failed.keys().cloned().collect()
    }

    /// Whether a Secret that was read again is another than the one that failed. If so nobody has failed for it yet.
    pub fn changed(&mut self, key: &ObjectKey, found: &Outcome) -> bool {
        let Outcome::Done(Reply::Object(object)) = found else { return false };
        let Some((failed, _)) = self.failed.get(key) else { return false };
        let changed = failed.as_ref() != Some(&object.meta().resource_version);
        if changed {
            self.failed.remove(key);
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::sync::Arc;

    use super::*;
    use api::{Meta, Secret, SecretValue};
    use csi::Code;

    const NOW: Timestamp = Timestamp(5);

    fn secret(version: &str) -> Outcome {
        let metadata = Meta { resource_version: version.into(), ..Meta::in_namespace("n", "s") };
        let data = [("k".to_string(), SecretValue("YQ==".into()))].into();
        Outcome::Done(Reply::Object(Object::Secret(Arc::new(Secret { metadata, data }))))
    }

    fn key() -> ObjectKey {
        ObjectKey::new("n", "s")
    }

    #[test]
    fn one_that_is_missing_is_waited_for_until_it_is_there() {
        let mut secrets = FailedSecrets::default();
        secrets.read(NOW, &key(), &Outcome::Done(Reply::Gone), |_| 1);
        assert_eq!(secrets.due(NOW), [key()]);
        assert!(!secrets.changed(&key(), &Outcome::Done(Reply::Gone)));
        assert!(secrets.changed(&key(), &secret("5")));
        assert!(secrets.due(NOW).is_empty());
    }

    #[test]
    fn one_that_made_the_driver_refuse_is_waited_for_until_it_is_another() {
        let mut secrets = FailedSecrets::default();
        secrets.read(NOW, &key(), &secret("5"), |_| 1);
        assert!(secrets.due(NOW).is_empty(), "what works is not looked at again");
        let refused = Outcome::Refused(Refusal::Driver(Code::Unauthenticated, "no".into()));
        secrets.answered(NOW, 2, &refused);
        secrets.answered(NOW, 1, &Outcome::Unknown("no answer".into()));
        assert!(secrets.due(NOW).is_empty());
        secrets.answered(NOW, 1, &refused);
        assert_eq!(secrets.due(NOW), [key()]);
        assert!(!secrets.changed(&key(), &secret("5")));
        assert!(secrets.changed(&key(), &secret("6")));
    }

    #[test]
    fn nobody_waits_for_ever() {
        let mut secrets = FailedSecrets::default();
        secrets.read(NOW, &key(), &Outcome::Refused(Refusal::Denied("no".into())), |_| 1);
        secrets.read(NOW, &ObjectKey::new("n", "other"), &Outcome::Unknown("no answer".into()), |_| 1);
        assert_eq!(secrets.due(Timestamp(NOW.0 + PATIENCE_MILLIS - 1)), [key()]);
        assert!(secrets.due(Timestamp(NOW.0 + PATIENCE_MILLIS)).is_empty());
    }
}
