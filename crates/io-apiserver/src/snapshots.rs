//! States kept for lists that are read in pages.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rules_store::{Kind, Stored};
use serde::{Deserialize, Serialize};

/// States kept at most; the oldest goes first and its readers get 410.
const KEPT: usize = 16;
const LIFE: Duration = Duration::from_secs(300);

/// The objects of one list request that did not fit its first page.
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub revision: u64,
    pub objects: Arc<[Arc<Stored>]>,
}

struct Kept {
    id: u64,
    list: String,
    since: Instant,
    snapshot: Snapshot,
}

#[derive(Default)]
struct Shelf {
    last_id: u64,
    kept: VecDeque<Kept>,
}

/// All snapshots of a server.
#[derive(Default)]
pub(crate) struct Snapshots(Mutex<Shelf>);

/// What a continue token says. The boot number keeps tokens of another process from meaning anything here.
#[derive(Serialize, Deserialize)]
pub(crate) struct Token {
    pub boot: u32,
    pub id: u64,
    pub offset: usize,
}

impl Token {
    pub(crate) fn text(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    pub(crate) fn read(text: &str) -> Option<Token> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
    }
}

/// The number of this process's life, for tokens. Random: in a container the process id is the same after a restart,
/// and an old token would continue another list's state.
pub(crate) fn boot() -> u32 {
    static BOOT: OnceLock<u32> = OnceLock::new();
    *BOOT.get_or_init(|| uuid::Uuid::new_v4().as_fields().0)
}

/// What a list is of: a token is only good for the same question.
pub(crate) fn list_name(kind: Kind, namespace: &str, labels: &str, fields: &str) -> String {
    format!("{}/{namespace}?{labels}&{fields}", kind.qualified())
}

impl Snapshots {
    pub(crate) fn keep(&self, list: String, snapshot: Snapshot) -> u64 {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        shelf.kept.retain(|k| now.duration_since(k.since) < LIFE);
        while shelf.kept.len() >= KEPT {
            shelf.kept.pop_front();
        }
        shelf.last_id += 1;
        let id = shelf.last_id;
        shelf.kept.push_back(Kept { id, list, since: now, snapshot });
        id
    }

    pub(crate) fn find(&self, id: u64, list: &str) -> Option<Snapshot> {
        let shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = shelf.kept.iter().find(|k| k.id == id && k.list == list)?;
        if kept.since.elapsed() < LIFE { Some(kept.snapshot.clone()) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_state_goes_first_and_a_token_answers_only_its_own_question() {
        let snapshots = Snapshots::default();
        let keep = || snapshots.keep("a".into(), Snapshot { revision: 1, objects: Arc::new([]) });
        let first = keep();
        assert!(snapshots.find(first, "a").is_some());
        assert!(snapshots.find(first, "b").is_none());
        for _ in 0..KEPT {
            keep();
        }
        assert!(snapshots.find(first, "a").is_none());
    }

    #[test]
    fn tokens_survive_the_journey_and_rubbish_is_none() {
        let text = Token { boot: 1, id: 2, offset: 3 }.text();
        let token = Token::read(&text).unwrap();
        assert_eq!((token.boot, token.id, token.offset), (1, 2, 3));
        assert!(Token::read("!!").is_none() && Token::read("e30").is_none());
    }
}
