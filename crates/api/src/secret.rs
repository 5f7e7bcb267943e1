//! Secrets. Their values never reach a log: neither a value nor a whole secret prints them.

use alloc::collections::BTreeMap;
use alloc::string::String;
use core::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::Meta;
use crate::core_v1::part;

part! {
    /// Values for a driver, each under a name.
    Secret { metadata: Meta, data: BTreeMap<String, SecretValue> }
}

/// A value as it is written: base64.
#[derive(Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretValue(pub String);

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A value that a driver cannot be given. It names the entry, never the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSecret {
    pub entry: String,
}

impl fmt::Display for BadSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {} of the secret is not text; drivers take text only", self.entry)
    }
}

impl Secret {
    /// A secret with these values.
    pub fn of_texts(texts: &[(&str, &str)]) -> Secret {
        let data = texts.iter().map(|(entry, text)| (String::from(*entry), SecretValue(STANDARD.encode(text))));
        Secret { data: data.collect(), ..Secret::default() }
    }

    /// The values as a driver gets them.
    pub fn texts(&self) -> Result<BTreeMap<String, String>, BadSecret> {
        let text = |(entry, value): (&String, &SecretValue)| {
            let bytes = STANDARD.decode(&value.0).ok();
            let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
            text.map(|text| (entry.clone(), text)).ok_or_else(|| BadSecret { entry: entry.clone() })
        };
        self.data.iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    fn secret(value: &str) -> Secret {
        Secret { data: [("key".into(), SecretValue(value.into()))].into(), ..Secret::default() }
    }

    #[test]
    fn values_are_decoded() {
        assert_eq!(secret("Y2FuYXJ5").texts(), Ok([("key".into(), "canary".into())].into()));
        for bad in ["not base64", "/w=="] {
            assert_eq!(secret(bad).texts(), Err(BadSecret { entry: "key".into() }), "{bad}");
        }
    }

    #[test]
    fn values_are_never_printed() {
        let printed = format!("{:?}", secret("Y2FuYXJ5"));
        assert!(printed.contains("***") && !printed.contains("Y2FuYXJ5"), "{printed}");
    }
}
