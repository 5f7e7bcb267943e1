//! Owners and what they own: a dependent goes in the write that takes its last owner away.
//!
//! Upstream this is a controller that follows by watching. Here it is part of the write: there is no moment in which
//! the owner is gone and nobody has taken note of its dependents, whoever dies when.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::Kind;
use serde_json::Value;

use crate::delete::{Fate, fate};
use crate::meta;
use crate::request::Context;
use crate::store::{Applied, Change, EventType, Store, StoreKey, Stored};

/// Keeps an owner until those of its dependents are gone that block its deletion.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// Dependents by the uid of an owner.
pub(crate) type Owned = BTreeSet<(String, StoreKey)>;

/// The uids of an object's owners.
pub(crate) fn owner_uids(value: &Value) -> impl Iterator<Item = &str> {
    references(value).filter_map(|owner| owner["uid"].as_str())
}

fn references(value: &Value) -> impl Iterator<Item = &Value> {
    value["metadata"]["ownerReferences"].as_array().into_iter().flatten()
}

impl Store {
    /// Follows what a write took away, and what it made for owners that are gone.
    pub(crate) fn collect(&mut self, context: &Context<'_>, mut applied: Applied) -> Applied {
        let mut at = 0;
        while let Some(Change { event, object, .. }) = applied.changes.get(at).cloned() {
            at += 1;
            let more = match event {
                EventType::Deleted => {
                    let mut more = self.release(context, object.uid());
                    more.extend(self.unblock(&object));
                    more
                }
                EventType::Added if self.is_born_orphan(&object) => self.send_off(context, &object),
                EventType::Added | EventType::Modified => Vec::new(),
            };
            applied.changes.extend(more);
        }
        applied
    }

    /// The objects that name an owner, by its uid.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<Arc<Stored>> {
        let from = (String::from(uid), StoreKey::new(Kind::ALL[0], "", ""));
        let named = self.owned().range(from..).take_while(|(owner, _)| owner == uid);
        named.filter_map(|(_, key)| self.get(key.kind, &key.namespace, &key.name)).collect()
    }

    /// Takes an owner's name out of its dependents, which stay.
    pub(crate) fn orphan(&mut self, uid: &str) -> Vec<Change> {
        self.dependents(uid).iter().map(|dependent| self.forget_owner(dependent, uid)).collect()
    }

    /// Deletes the dependents of an owner that have no other; those that have lose its name.
    pub(crate) fn release(&mut self, context: &Context<'_>, uid: &str) -> Vec<Change> {
        let mut changes = Vec::new();
        for dependent in self.dependents(uid) {
            // It may have gone with one that was looked at before it.
            let Some(dependent) = self.get(dependent.key.kind, &dependent.key.namespace, &dependent.key.name) else {
                continue;
            };
            let others = references(&dependent.value).filter(|owner| owner["uid"] != *uid);
            if others.into_iter().any(|owner| self.is_there(owner, &dependent.key)) {
                changes.push(self.forget_owner(&dependent, uid));
            } else {
                changes.extend(self.send_off(context, &dependent));
            }
        }
        changes
    }

    /// An owner that waited for this dependent may go, unless it waits for another.
    pub(crate) fn unblock(&mut self, gone: &Stored) -> Vec<Change> {
        let mut changes = Vec::new();
        for owner in references(&gone.value).cloned().collect::<Vec<_>>() {
            if let Some(owner) = self.owner(&owner, &gone.key) {
                changes.extend(self.finish_foreground(&owner));
            }
        }
        changes
    }

    /// Lets an owner go that waits for dependents, if none of them blocks it any more.
    pub(crate) fn finish_foreground(&mut self, owner: &Arc<Stored>) -> Vec<Change> {
        let waits = meta::finalizers(&owner.value).contains(&FOREGROUND);
        let blocks = |dependent: &Arc<Stored>| {
            references(&dependent.value).any(|one| one["uid"] == *owner.uid() && one["blockOwnerDeletion"] == true)
        };
        if !waits || self.dependents(owner.uid()).iter().any(blocks) {
            return Vec::new();
        }
        let mut value = owner.value.clone();
        if let Some(list) = meta::of(&mut value).get_mut("finalizers").and_then(Value::as_array_mut) {
            list.retain(|finalizer| finalizer != FOREGROUND);
        }
        meta::tidy(&mut value);
        self.finish(owner, value, Vec::new()).map(|applied| applied.changes).unwrap_or_default()
    }

    fn forget_owner(&mut self, dependent: &Arc<Stored>, uid: &str) -> Change {
        let mut value = dependent.value.clone();
        if let Some(list) = meta::of(&mut value).get_mut("ownerReferences").and_then(Value::as_array_mut) {
            list.retain(|owner| owner["uid"] != *uid);
        }
        meta::tidy(&mut value);
        self.commit(EventType::Modified, dependent.key.clone(), value, Some(dependent.clone()))
    }

    fn send_off(&mut self, context: &Context<'_>, object: &Arc<Stored>) -> Vec<Change> {
        match fate(context, object, None) {
            Fate::Gone => self.remove(object, object.value.clone()).changes,
            Fate::Marked(value) => {
                Vec::from([self.commit(EventType::Modified, object.key.clone(), value, Some(object.clone()))])
            }
            Fate::AsItIs => Vec::new(),
        }
    }

    /// Every owner it names is gone: whoever made it did not know yet. It goes as it would have gone with them.
    fn is_born_orphan(&self, object: &Stored) -> bool {
        let mut owners = references(&object.value).peekable();
        owners.peek().is_some() && !owners.any(|owner| self.is_there(owner, &object.key))
    }

    /// Owners of kinds that are not served here count as being there: nobody here can say otherwise.
    fn is_there(&self, reference: &Value, dependent: &StoreKey) -> bool {
        kind_of(reference).is_none() || self.owner(reference, dependent).is_some()
    }

    fn owner(&self, reference: &Value, dependent: &StoreKey) -> Option<Arc<Stored>> {
        let kind = kind_of(reference)?;
        let namespace = if kind.namespaced() { &*dependent.namespace } else { "" };
        let found = self.get(kind, namespace, reference["name"].as_str()?)?;
        (reference["uid"] == *found.uid()).then_some(found)
    }
}

fn kind_of(reference: &Value) -> Option<Kind> {
    Kind::named(reference["apiVersion"].as_str()?, reference["kind"].as_str()?)
}
