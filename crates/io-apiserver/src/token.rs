//! Tokens of service accounts: who holds one is that account, until it ends or the account goes.
//!
//! A token is a JSON Web Token signed with a key that never leaves the data directory. Nobody but this server has to
//! check it, so one secret key is enough, and no token is kept anywhere.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Value, json};

use crate::auth::{Identity, Particulars};
use crate::{Error, files};

const KEY_BYTES: usize = 32;
/// The only header we write, and so the only one we read: nobody chooses how a token is checked.
const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;
/// Whom a token is for if it does not say: this server.
pub(crate) const AUDIENCE: &str = "https://kubernetes.default.svc";
/// No longer than any token we make.
const LONGEST: usize = 4096;

/// A service account, as its object has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// The pod that the token was made for, by name and uid: it dies with it.
    pub pod: Option<(String, String)>,
}

impl Account {
    /// The account as a caller.
    pub(crate) fn identity(&self) -> Identity {
        let user = format!("system:serviceaccount:{}:{}", self.namespace, self.name);
        let place = format!("system:serviceaccounts:{}", self.namespace);
        let particulars = Particulars { uid: self.uid.clone(), ..Particulars::default() };
        Identity::new(&user, &["system:serviceaccounts", &place]).with(particulars)
    }
}

/// What makes and checks tokens.
pub(crate) struct Signer {
    key: hmac::Key,
}

impl Signer {
    /// Reads the key in this directory; makes one if there is none.
    pub(crate) fn open(directory: &Path) -> Result<Signer, Error> {
        let path = directory.join("token.key");
        let reason = |reason: &str| Error::Certificates { path: directory.to_owned(), reason: reason.to_owned() };
        let bytes = match std::fs::read(&path) {
            Ok(bytes) if bytes.len() == KEY_BYTES => {
                files::narrow_rights(&path)?;
                bytes
            }
            Ok(_) => return Err(reason("token.key is not a key")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let mut bytes = vec![0; KEY_BYTES];
                SystemRandom::new().fill(&mut bytes).map_err(|_| reason("the system gives no random numbers"))?;
                files::write_private(&path, &bytes)?;
                bytes
            }
            Err(error) => return Err(Error::file("read", &path, error)),
        };
        Ok(Signer { key: hmac::Key::new(hmac::HMAC_SHA256, &bytes) })
    }

    /// A token for an account, good for these audiences until a time (seconds after 1970).
    pub(crate) fn issue(&self, account: &Account, audiences: &[String], now: i64, until: i64) -> String {
        let mut claims = json!({
            "iss": AUDIENCE, "sub": &*account.identity().user, "aud": audiences, "iat": now, "nbf": now, "exp": until,
            "kubernetes.io": {
                "namespace": account.namespace,
                "serviceaccount": {"name": account.name, "uid": account.uid},
            },
        });
        if let Some((name, uid)) = &account.pod {
            claims["kubernetes.io"]["pod"] = json!({"name": name, "uid": uid});
        }
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(HEADER), URL_SAFE_NO_PAD.encode(claims.to_string()));
        let mark = hmac::sign(&self.key, signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mark))
    }

    /// Whose token this is and when it ends, if it is one of ours and good at this time. Whether the account still
    /// exists is another question.
    pub(crate) fn read(&self, token: &str, now: i64) -> Option<(Account, i64)> {
        if token.len() > LONGEST {
            return None;
        }
        let (signed, mark) = token.rsplit_once('.')?;
        hmac::verify(&self.key, signed.as_bytes(), &URL_SAFE_NO_PAD.decode(mark).ok()?).ok()?;
        let (header, claims) = signed.split_once('.')?;
        if URL_SAFE_NO_PAD.decode(header).ok()? != HEADER.as_bytes() {
            return None;
        }
        let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
        let until = claims["exp"].as_i64()?;
        let good = claims["nbf"].as_i64()? <= now && now < until;
        if !good || !claims["aud"].as_array()?.iter().any(|audience| audience == AUDIENCE) {
            return None;
        }
        let of = &claims["kubernetes.io"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let account = Account {
            namespace: text(&of["namespace"])?,
            name: text(&of["serviceaccount"]["name"])?,
            uid: text(&of["serviceaccount"]["uid"])?,
            pod: match &of["pod"] {
                Value::Null => None,
                pod => Some((text(&pod["name"])?, text(&pod["uid"])?)),
            },
        };
        Some((account, until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Account {
        Account { namespace: "default".into(), name: "side".into(), uid: "1".into(), pod: None }
    }

    #[test]
    fn a_token_is_good_for_its_time_and_its_audience_across_restarts() {
        let dir = tempfile::tempdir().unwrap();
        let us = [AUDIENCE.to_owned()];
        let token = Signer::open(dir.path()).unwrap().issue(&account(), &us, 100, 200);
        let signer = Signer::open(dir.path()).unwrap();
        assert_eq!(signer.read(&token, 100), Some((account(), 200)));
        assert_eq!((signer.read(&token, 99), signer.read(&token, 200)), (None, None));
        let elsewhere = signer.issue(&account(), &["vault".to_owned()], 100, 200);
        assert_eq!(signer.read(&elsewhere, 150), None);
        assert_eq!(&*account().identity().user, "system:serviceaccount:default:side");
    }

    #[test]
    fn a_token_of_somebody_else_or_spoilt_in_any_letter_is_none() {
        // reliability 126
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let signer = Signer::open(dir.path()).unwrap();
        let us = [AUDIENCE.to_owned()];
        let foreign = Signer::open(other.path()).unwrap().issue(&account(), &us, 0, 200);
        assert_eq!(signer.read(&foreign, 100), None);
        let token = signer.issue(&account(), &us, 0, 200);
        for at in 0..token.len() {
            let mut spoilt = token.clone().into_bytes();
            spoilt[at] = if spoilt[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(signer.read(&String::from_utf8(spoilt).unwrap(), 100), None, "at {at}");
        }
        // Without a signature, under a header that says there is none.
        let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
        let claims = token.split('.').nth(1).unwrap();
        for text in ["", ".", "..", &format!("{none}.{claims}."), &"x".repeat(LONGEST + 1)] {
            assert_eq!(signer.read(text, 100), None);
        }
    }

    #[test]
    fn the_key_is_private_and_a_spoilt_one_is_one_sentence() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        Signer::open(dir.path()).unwrap();
        let path = dir.path().join("token.key");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, "hunter2").unwrap();
        let sentence = Signer::open(dir.path()).err().unwrap().to_string();
        assert!(sentence.contains("token.key") && !sentence.contains("hunter2"), "{sentence}");
    }
}
