//! Tokens of a pod's service account that a driver asks for (`tokenRequests`, KL-79).

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use api::{DriverSpec, Object, ObjectKey};
use control::{Outcome, Reply, Secrets, TokenWish};
use serde_json::json;

/// The key that drivers find them under.
const TOKENS: &str = "csi.storage.k8s.io/serviceAccount.tokens";

/// Which tokens a driver wants, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TokenWishes {
    /// The audiences, and how long each token is to be good.
    pub wanted: Vec<(String, Option<i64>)>,
    /// They go with the secrets of the call instead of its context.
    pub in_secrets: bool,
}

impl TokenWishes {
    /// What the driver's object says.
    pub fn of(spec: &DriverSpec) -> TokenWishes {
        let wanted = spec.token_requests.iter().map(|one| (one.audience.clone(), one.expiration_seconds));
        TokenWishes { wanted: wanted.collect(), in_secrets: spec.service_account_token_in_secrets == Some(true) }
    }

    /// The next token to ask for, if one is missing.
    pub fn missing(&self, had: &HeldTokens, pod: &ObjectKey, uid: &str, account: &str) -> Option<(String, TokenWish)> {
        let (audience, seconds) = self.wanted.iter().find(|(audience, _)| !had.0.contains_key(audience))?;
        let named = (!audience.is_empty()).then(|| audience.clone());
        let wish = TokenWish {
            pod: pod.clone(),
            uid: uid.into(),
            account: if account.is_empty() { "default".into() } else { account.into() },
            audiences: named.into_iter().collect(),
            seconds: *seconds,
        };
        Some((audience.clone(), wish))
    }
}

/// Tokens for the next call, by audience. Nothing of them is printed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HeldTokens(BTreeMap<String, Secrets>);

impl HeldTokens {
    /// Takes in the answer to a wish.
    pub fn add(&mut self, audience: &str, got: &Outcome) {
        if let Outcome::Done(Reply::Object(Object::Secret(secret))) = got
            && let Ok(texts) = secret.texts()
        {
            self.0.insert(audience.into(), Secrets(texts));
        }
    }

    /// As drivers read them: JSON, by audience.
    pub fn told(&self) -> Secrets {
        if self.0.is_empty() {
            return Secrets::default();
        }
        let by_audience: BTreeMap<&String, api::Value> = self.0.iter().map(|(a, token)| (a, json!(token.0))).collect();
        Secrets([(TOKENS.into(), json!(by_audience).to_string())].into())
    }
}
