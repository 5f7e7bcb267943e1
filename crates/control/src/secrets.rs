use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use core::fmt;

use api::{Kind, Object, ObjectRef, SecretReference};

use crate::{Attempt, Effect, Outcome, Reply};

/// What a driver needs to know and nobody else: read from the API just before the call, passed on, and forgotten. It is
/// never printed.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Secrets(pub BTreeMap<String, String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secret entries", self.0.len())
    }
}

impl Secrets {
    /// The effect that reads them.
    pub fn read(secret: &SecretReference) -> Effect {
        Effect::Read(ObjectRef::namespaced(Kind::Secret, secret.namespace.clone(), secret.name.clone()))
    }

    /// What the read brought. The error says in words why there is nothing; it names the secret and never what is in it.
    pub fn of(secret: &SecretReference, got: &Outcome) -> Result<Secrets, String> {
        let SecretReference { namespace, name, .. } = secret;
        let failed = |why: String| Err(format!("secret {namespace}/{name} {why}"));
        match got {
            Outcome::Done(Reply::Object(Object::Secret(secret))) => match secret.texts() {
                Ok(texts) => Ok(Secrets(texts)),
                Err(bad) => failed(format!("cannot be used: {bad}")),
            },
            Outcome::Done(Reply::Gone) => failed("does not exist; create it".into()),
            Outcome::Done(Reply::Nothing | Reply::Object(_) | Reply::Objects(_) | Reply::Csi(_) | Reply::Host(_)) => {
                failed("could not be read: the answer makes no sense".into())
            }
            Outcome::Refused(refusal) => failed(format!("could not be read: {refusal}")),
            Outcome::Unknown(why) => failed(format!("could not be read: {why}")),
        }
    }

    /// How the read counts: it prepares a call, so success ends no row of failures.
    pub fn attempt(secret: &SecretReference, got: &Outcome) -> Attempt {
        Secrets::of(secret, got).map_or_else(Attempt::Failed, |_| Attempt::Neutral)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Refusal;
    use alloc::sync::Arc;
    use api::{Secret, SecretValue};

    fn reference() -> SecretReference {
        SecretReference { namespace: "n".into(), name: "s".into() }
    }

    // Sidecars C8: what is in a secret is never printed.
    #[test]
    fn secrets_are_passed_on_and_never_printed() {
        let secret = Secret { data: [("k".into(), SecretValue("Y2FuYXJ5".into()))].into(), ..Secret::default() };
        let got = Outcome::Done(Reply::Object(Object::Secret(Arc::new(secret))));
        let secrets = Secrets::of(&reference(), &got).unwrap();
        assert_eq!(secrets.0["k"], "canary");
        assert!(!format!("{secrets:?} {got:?}").contains("canary"));
    }

    #[test]
    fn a_secret_that_cannot_be_had_is_named() {
        let denied = Outcome::Refused(Refusal::Denied("forbidden".into()));
        for got in [Outcome::Done(Reply::Gone), denied, Outcome::Unknown("timeout".into())] {
            let failure = Secrets::of(&reference(), &got).unwrap_err();
            assert!(failure.contains("secret n/s"), "{failure}");
        }
    }
}
