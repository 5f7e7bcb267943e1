//! Tokens of the pod's service account that its volumes show.
//!
//! One is asked for when a volume needs it, and again long before it is worth nothing. Like all that is secret it is in
//! the memory of the pod's key and in the volume, which is in memory too.

use alloc::collections::BTreeMap;
use alloc::string::String;

use api::{Object, Pod, Time, TokenProjection};
use control::host::{ContentBytes, ShownFile};
use control::{Outcome, Reply, Timestamp, TokenWish};

/// How long a token is good for if nobody says, in seconds.
const USUAL_SECONDS: i64 = 3600;
/// The oldest a token may get, however long it is good for.
const OLDEST_MILLIS: u64 = 24 * 3_600_000;
/// The shortest pause between two tokens: clocks may differ, and the server chooses how long one is good for.
const PAUSE_MILLIS: u64 = 30_000;

/// One token among those of a pod. Volumes that want the same show the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodToken {
    /// Whom it is for; nobody named means the API server.
    pub audience: String,
    /// How long it is to be good.
    pub seconds: i64,
}

impl PodToken {
    /// The token that a volume asks for.
    pub(super) fn of(asked: &TokenProjection) -> PodToken {
        let seconds = asked.expiration_seconds.unwrap_or(USUAL_SECONDS);
        PodToken { audience: asked.audience.clone(), seconds }
    }

    /// The request for it: one of the pod's own account, which dies with the pod.
    pub fn wish(&self, pod: &Pod) -> TokenWish {
        let (meta, account) = (&pod.metadata, &pod.spec.service_account_name);
        let named = (!self.audience.is_empty()).then(|| self.audience.clone());
        TokenWish {
            pod: api::ObjectKey::new(meta.namespace.clone(), meta.name.clone()),
            uid: meta.uid.clone(),
            account: if account.is_empty() { "default".into() } else { account.clone() },
            audiences: named.into_iter().collect(),
            seconds: Some(self.seconds),
        }
    }
}

/// A token as it was given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenRead {
    /// When the next one is asked for.
    pub due: Timestamp,
    /// The token itself.
    pub bytes: ContentBytes,
}

/// All tokens that a pod has.
pub type ReadTokens = BTreeMap<PodToken, TokenRead>;

impl TokenRead {
    /// What an answer brought; `None` if it brought no token. As with kubelet, four fifths of its life are enough.
    pub fn after(now: Timestamp, got: &Outcome) -> Option<TokenRead> {
        let Outcome::Done(Reply::Object(Object::Secret(secret))) = got else { return None };
        let mut texts = secret.texts().ok()?;
        let until = Time(texts.remove(TokenWish::EXPIRES)?).unix_millis()?;
        let life = until.saturating_sub(now.0).min(OLDEST_MILLIS / 4 * 5);
        let due = now.after_millis((life / 5 * 4).max(PAUSE_MILLIS));
        Some(TokenRead { due, bytes: texts.remove(TokenWish::TOKEN)?.into_bytes().into() })
    }
}

/// The tokens that a volume shows.
pub fn of_volume(volume: &api::PodVolume) -> impl Iterator<Item = PodToken> {
    let sources = volume.projected.iter().flat_map(|projected| &projected.sources);
    sources.filter_map(|source| source.service_account_token.as_ref()).map(PodToken::of)
}

/// The file of a token. Where the pod says who its users are, nobody else may read it.
pub(super) fn file(pod: &Pod, bytes: ContentBytes, default: u32) -> ShownFile {
    let (user, group) = (only_user(pod), pod.spec.security_context.fs_group);
    let mode = if user.is_some() || group.is_some() { 0o600 } else { default };
    ShownFile { bytes, mode, user }
}

/// The user of all containers, if each says one and all the same.
fn only_user(pod: &Pod) -> Option<u32> {
    let shared = pod.spec.security_context.run_as_user;
    let mut users = super::containers(pod).map(|container| container.security_context.run_as_user.or(shared));
    let first = users.next()??;
    let all = users.all(|user| user == Some(first));
    u32::try_from(first).ok().filter(|_| all)
}
