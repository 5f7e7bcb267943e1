//! The journal: one Lease of the driver, with an annotation for every volume being made.
//!
//! Every entry has a name of its own, made of the claim's uid and of the version the journal had when it was recorded. So
//! entries of different claims, and earlier and later ones of the same claim, never touch each other: notes about them may
//! be written together, in any order, and land late, and each does what it was meant to or nothing. What is withdrawn
//! stays withdrawn; what is adopted gets a new name, which no earlier note knows.
//!
//! Unlike a finalizer on the claim, an entry keeps nobody from deleting the claim. It tells enough of the claim to undo
//! what was made for it when the claim is gone.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Bound;

use api::{Kind, Lease, Note, ObjectKey, ObjectRef, PersistentVolumeClaim, ResourceVersion, Write, names};
use control::{Cache, Effect, Sides};
use serde_json::json;

use crate::Local;

/// A journal of this length is full: nothing is recorded until entries have left it. The API takes 256 KiB of annotations,
/// so that what is being recorded at the same moment, and one long record, still fit.
const FULL_BYTES: usize = 200 << 10;
/// In a journal with more entries than this, nothing stays longer than it must.
const MANY: usize = 32;

/// The journal, as far as one claim goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct JournalView {
    /// Where the journal is.
    pub journal: ObjectKey,
    /// Its uid; empty if there is none yet.
    pub uid: String,
    /// The version it was seen at.
    pub version: ResourceVersion,
    /// Names and texts of the claim's entries. There is one, or none; several after a note that landed late.
    pub entries: Vec<(String, String)>,
    /// It has so many entries that none should stay longer than it must.
    pub crowded: bool,
}

/// The page of the claim with this uid.
pub(crate) fn page(uid: &str, cache: &Cache, local: &Local) -> JournalView {
    let journal = local.journal();
    let Some(lease) = cache.lease(&journal) else {
        return JournalView { journal, ..JournalView::default() };
    };
    let entries: Vec<(String, String)> =
        of_claim(&lease, uid).map(|(name, text)| (name.clone(), text.clone())).collect();
    JournalView {
        uid: lease.metadata.uid.clone(),
        version: lease.metadata.resource_version.clone(),
        entries,
        crowded: lease.metadata.annotations.len() > MANY,
        journal,
    }
}

/// The journal has no room for another entry. To be asked only by those who want to record one: it means adding up.
pub(crate) fn is_full(cache: &Cache, local: &Local) -> bool {
    cache.lease(&local.journal()).is_some_and(|lease| full(&lease))
}

fn full(lease: &Lease) -> bool {
    lease.metadata.annotations.iter().map(|(name, text)| name.len() + text.len()).sum::<usize>() >= FULL_BYTES
}

/// The journal was full, and is no longer: whoever waits for that can go on.
pub(crate) fn has_room_again(lease: &Sides<'_, Lease>, local: &Local) -> bool {
    let [before, after] = journals(lease, local);
    before.is_some_and(full) && !after.is_some_and(full)
}

/// Both sides of a Lease that changed, if it is the journal.
fn journals<'a>(lease: &Sides<'a, Lease>, local: &Local) -> [Option<&'a Lease>; 2] {
    [lease.before, lease.after].map(|lease| lease.filter(|lease| lease.metadata.key() == local.journal()))
}

fn of_claim<'a>(lease: &'a Lease, uid: &str) -> impl Iterator<Item = (&'a String, &'a String)> {
    let first = [names::JOURNAL_ENTRY, uid, "."].concat();
    let from = lease.metadata.annotations.range::<str, _>((Bound::Included(first.as_str()), Bound::Unbounded));
    from.take_while(move |(name, _)| name.starts_with(&first))
}

/// The claim has an entry.
pub(crate) fn has_entry(uid: &str, cache: &Cache, local: &Local) -> bool {
    cache.lease(&local.journal()).is_some_and(|lease| of_claim(&lease, uid).next().is_some())
}

/// What `read` makes of every entry: it is shown the claim's uid and what was recorded.
pub(crate) fn entries<T>(cache: &Cache, local: &Local, read: impl Fn(&str, &str) -> Option<T>) -> Vec<T> {
    let lease = cache.lease(&local.journal());
    lease.iter().flat_map(|lease| of_all(lease)).filter_map(|(uid, _, text)| read(uid, text)).collect()
}

/// Uid, name and text of every entry.
fn of_all(lease: &Lease) -> impl Iterator<Item = (&str, &str, &str)> {
    lease.metadata.annotations.iter().filter_map(|(name, text)| {
        let (uid, _) = name.strip_prefix(names::JOURNAL_ENTRY)?.rsplit_once('.')?;
        Some((uid, name.as_str(), text.as_str()))
    })
}

/// Uid and text of the entries that came, went or changed.
pub(crate) fn changed<'a>(lease: &Sides<'a, Lease>, local: &Local) -> Vec<(&'a str, &'a str)> {
    let [before, after] = journals(lease, local);
    let differs = |one: Option<&'a Lease>, other: Option<&'a Lease>| {
        let missing = move |name: &str, text: &str| {
            other.is_none_or(|other| other.metadata.annotation(name).is_none_or(|there| there != text))
        };
        one.into_iter().flat_map(of_all).filter(move |(_, name, text)| missing(name, text))
    };
    differs(before, after).chain(differs(after, before)).map(|(uid, _, text)| (uid, text)).collect()
}

impl JournalView {
    /// The first of the claim's entries.
    pub(crate) fn text(&self) -> Option<&str> {
        self.entries.first().map(|(_, text)| text.as_str())
    }

    /// Records the intent for a claim. Where there is no journal, one is made with the intent in it.
    pub(crate) fn record(&self, claim: &PersistentVolumeClaim, record: &str) -> Effect {
        let name = self.name(&claim.metadata.uid);
        if self.uid.is_empty() {
            let meta = json!({
                "name": self.journal.name, "namespace": self.journal.namespace, "annotations": { name: record },
            });
            let body =
                json!({ "apiVersion": Kind::Lease.api_version(), "kind": "Lease", "metadata": meta, "spec": {} });
            return Effect::Write(Write::Create { target: self.target(), body });
        }
        self.note([(name, Some(record.to_string()))].into())
    }

    /// Gives the entry a name that no earlier note can take away.
    pub(crate) fn adopt(&self, claim: &PersistentVolumeClaim) -> Effect {
        let mut annotations = self.without_entries();
        annotations.insert(self.name(&claim.metadata.uid), self.text().map(ToString::to_string));
        self.note(annotations)
    }

    /// Takes the claim's entries out.
    pub(crate) fn withdraw(&self) -> Effect {
        self.note(self.without_entries())
    }

    fn without_entries(&self) -> BTreeMap<String, Option<String>> {
        self.entries.iter().map(|(name, _)| (name.clone(), None)).collect()
    }

    fn name(&self, uid: &str) -> String {
        let version = if self.version.is_empty() { "0" } else { &self.version.0 };
        [names::JOURNAL_ENTRY, uid, ".", version].concat()
    }

    fn note(&self, annotations: BTreeMap<String, Option<String>>) -> Effect {
        let (target, uid, seen) = (self.target(), self.uid.clone(), self.version.clone());
        Effect::Write(Write::Note(Note { target, uid, seen, annotations }))
    }

    fn target(&self) -> ObjectRef {
        ObjectRef { kind: Kind::Lease, key: self.journal.clone() }
    }
}
