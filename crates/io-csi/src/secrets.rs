//! Drivers quote their requests in error messages, and those messages reach events, logs and statuses. Therefore the
//! client and the kit remove the secrets of a request from the message of its error (reliability 121).

use csi::Call;

/// Shorter values are not removed: they would blot out ordinary words, and protect nothing.
const SHORTEST: usize = 4;
/// The shortest string in a token document that is removed; shorter ones are names and dates.
const SHORTEST_TOKEN: usize = 24;
/// The key of the volume context that holds service account tokens, although CSI does not mark it secret.
const TOKENS: &str = "csi.storage.k8s.io/serviceAccount.tokens";
const COVER: &str = "[secret]";

/// The values of a request that must not be printed. The type has no `Debug`.
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// The secrets a call carries.
    pub fn of(call: &Call) -> Secrets {
        let secrets = call.secrets().into_iter().flat_map(|map| map.values());
        let mut values: Vec<String> = secrets.filter(|value| value.len() >= SHORTEST).cloned().collect();
        if let Some(document) = call.volume_context().and_then(|map| map.get(TOKENS)) {
            values.extend(document.split('"').filter(|piece| piece.len() >= SHORTEST_TOKEN).map(String::from));
        }
        // A value that contains another must be covered first, or its rest stays visible.
        values.sort_by_key(|value| core::cmp::Reverse(value.len()));
        Secrets(values)
    }

    /// The text with each secret replaced.
    pub fn cover(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| if text.contains(secret) { text.replace(secret, COVER) } else { text })
    }
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
