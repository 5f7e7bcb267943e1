use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use api::{Kind, Precondition, Time};
use serde_json::Value;

use crate::collect::FOREGROUND;
use crate::request::{Context, DeletePropagation, Target};
use crate::store::{Applied, Change, EventType, Store, StoreKey, Stored};
use crate::{Failure, meta};

/// What a pod gets that says nothing else.
const POD_GRACE: i64 = 30;
/// A cluster does not work without these.
const KEPT_NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// How an object meets a delete request.
pub(crate) enum Fate {
    Gone,
    /// It stays for now, in this state.
    Marked(Value),
    /// It is on its way already, and nothing gets faster.
    AsItIs,
}

impl Store {
    pub(crate) fn delete(
        &mut self,
        context: &Context<'_>,
        target: &Target,
        preconditions: &Precondition,
        grace_seconds: Option<i64>,
        propagation: DeletePropagation,
    ) -> Result<Applied, Failure> {
        let old = self.find(target)?;
        check(&old, preconditions)?;
        if old.key.kind == Kind::Namespace {
            return self.delete_namespace(context, &old);
        }
        match propagation {
            DeletePropagation::Background => {}
            DeletePropagation::Orphan => {
                let mut changes = self.orphan(old.uid());
                let mut applied =
                    self.delete(context, target, preconditions, grace_seconds, DeletePropagation::Background)?;
                changes.append(&mut applied.changes);
                return Ok(Applied { changes, ..applied });
            }
            DeletePropagation::Foreground if self.dependents(old.uid()).is_empty() => {}
            DeletePropagation::Foreground => return self.delete_foreground(context, &old, grace_seconds),
        }
        match fate(context, &old, grace_seconds) {
            Fate::Gone => Ok(self.remove(&old, old.value.clone())),
            Fate::Marked(value) => self.finish(&old, value, vec![]),
            Fate::AsItIs => Ok(Applied { changes: vec![], reply: old, warnings: vec![] }),
        }
    }

    /// The object waits, with a finalizer, for those of its dependents that block its deletion.
    fn delete_foreground(
        &mut self,
        context: &Context<'_>,
        old: &Arc<Stored>,
        grace_seconds: Option<i64>,
    ) -> Result<Applied, Failure> {
        let mut held = Stored::clone(old);
        let list = meta::of(&mut held.value).entry("finalizers").or_insert_with(|| Value::Array(vec![]));
        if let Some(list) = list.as_array_mut().filter(|list| !list.iter().any(|one| one == FOREGROUND)) {
            list.push(FOREGROUND.into());
        }
        let wanted = match fate(context, &held, grace_seconds) {
            Fate::Marked(value) => value,
            Fate::Gone | Fate::AsItIs => held.value,
        };
        let mut applied = self.finish(old, wanted, vec![])?;
        applied.changes.extend(self.release(context, old.uid()));
        if let Some(owner) = self.get(old.key.kind, &old.key.namespace, &old.key.name) {
            applied.changes.extend(self.finish_foreground(&owner));
        }
        Ok(applied)
    }

    /// First everything in it, then the namespace; it waits, terminating, for what has finalizers or runs.
    fn delete_namespace(&mut self, context: &Context<'_>, old: &Arc<Stored>) -> Result<Applied, Failure> {
        let name = &*old.key.name;
        if KEPT_NAMESPACES.contains(&name) {
            let message = String::from("this namespace may not be deleted");
            return Err(Failure::Forbidden { kind: Kind::Namespace, name: name.into(), message });
        }
        let mut changes = Vec::new();
        for object in self.contents(name) {
            changes.extend(self.sweep(context, &object));
        }
        let mut wanted = old.value.clone();
        if !old.is_deleting() {
            mark(context, &mut wanted, 0);
            meta::object_at(&mut wanted, "status").insert("phase".into(), "Terminating".into());
        }
        let mut applied =
            if self.may_go(&old.key, &wanted) { self.remove(old, wanted) } else { self.finish(old, wanted, vec![])? };
        changes.append(&mut applied.changes);
        Ok(Applied { changes, ..applied })
    }

    /// Deletes one object of a namespace that goes.
    fn sweep(&mut self, context: &Context<'_>, object: &Arc<Stored>) -> Option<Change> {
        match fate(context, object, None) {
            Fate::Gone => {
                let (key, value) = (object.key.clone(), object.value.clone());
                Some(self.commit(EventType::Deleted, key, value, Some(object.clone())))
            }
            Fate::Marked(value) => {
                Some(self.commit(EventType::Modified, object.key.clone(), value, Some(object.clone())))
            }
            Fate::AsItIs => None,
        }
    }

    fn contents(&self, namespace: &str) -> Vec<Arc<Stored>> {
        let namespaced = Kind::ALL.into_iter().filter(|kind| kind.namespaced());
        namespaced.flat_map(|kind| self.list(kind, Some(namespace)).cloned()).collect()
    }

    fn is_empty_namespace(&self, namespace: &str) -> bool {
        let mut namespaced = Kind::ALL.into_iter().filter(|kind| kind.namespaced());
        namespaced.all(|kind| self.list(kind, Some(namespace)).next().is_none())
    }

    /// A deleted object without finalizers goes, once its grace is over and, for a namespace, it is empty.
    pub(crate) fn may_go(&self, key: &StoreKey, value: &Value) -> bool {
        meta::is_deleting(value)
            && meta::finalizers(value).is_empty()
            && value["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
            && (key.kind != Kind::Namespace || self.is_empty_namespace(&key.name))
    }

    /// Commits a deletion. If it was the last object of a terminating namespace, the namespace goes with it.
    pub(crate) fn remove(&mut self, old: &Arc<Stored>, last: Value) -> Applied {
        let change = self.commit(EventType::Deleted, old.key.clone(), last, Some(old.clone()));
        let reply = change.object.clone();
        let mut changes = vec![change];
        if old.key.kind.namespaced()
            && let Some(home) = self.get(Kind::Namespace, "", &old.key.namespace)
            && self.may_go(&home.key, &home.value)
        {
            changes.extend(self.remove(&home, home.value.clone()).changes);
        }
        Applied { changes, reply, warnings: vec![] }
    }
}

/// reliability 86.
fn check(old: &Stored, preconditions: &Precondition) -> Result<(), Failure> {
    let refuse = |message| Failure::Conflict { kind: old.key.kind, name: (&*old.key.name).into(), message };
    if let Some(uid) = preconditions.uid.as_deref()
        && uid != old.uid()
    {
        return Err(refuse(format!("its uid is {}, not {uid}: another object now has this name", old.uid())));
    }
    let current = meta::text(&old.value, "resourceVersion");
    if let Some(version) = preconditions.resource_version.as_ref().map(|version| version.0.as_str())
        && version != current
    {
        return Err(refuse(format!("it is at version {current}, not {version}; read it again and decide anew")));
    }
    Ok(())
}

pub(crate) fn fate(context: &Context<'_>, old: &Stored, asked: Option<i64>) -> Fate {
    let grace = grace(old, asked);
    let held = !meta::finalizers(&old.value).is_empty();
    if !old.is_deleting() {
        if grace == 0 && !held {
            return Fate::Gone;
        }
        let mut value = old.value.clone();
        mark(context, &mut value, grace);
        return Fate::Marked(value);
    }
    let current = old.value["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    // Only an explicit wish, or a pod that has ended by now, shortens the grace once given.
    if (asked.is_none() && grace > 0) || grace >= current {
        return Fate::AsItIs;
    }
    if grace == 0 && !held {
        return Fate::Gone;
    }
    Fate::Marked(shortened(context, &old.value, current, grace))
}

/// Only pods that run somewhere need time to end.
fn grace(old: &Stored, asked: Option<i64>) -> i64 {
    if old.key.kind != Kind::Pod {
        return 0;
    }
    let (spec, status) = (&old.value["spec"], &old.value["status"]);
    let placed = spec["nodeName"].as_str().is_some_and(|node| !node.is_empty());
    let ended = matches!(status["phase"].as_str(), Some("Succeeded" | "Failed"));
    if !placed || ended {
        return 0;
    }
    let seconds = asked.or(spec["terminationGracePeriodSeconds"].as_i64()).unwrap_or(POD_GRACE);
    // A negative grace means "at once, but through the node".
    if seconds < 0 { 1 } else { seconds }
}

fn mark(context: &Context<'_>, value: &mut Value, grace: i64) {
    let at = context.now_millis.saturating_add(u64::try_from(grace).unwrap_or(0).saturating_mul(1000));
    let meta = meta::of(value);
    meta.insert("deletionTimestamp".into(), Time::from_unix_millis(at).0.into());
    meta.insert("deletionGracePeriodSeconds".into(), grace.into());
}

/// reliability 99: the time of deletion is set once; a shorter grace may bring it nearer, never push it back.
fn shortened(context: &Context<'_>, old: &Value, current: i64, grace: i64) -> Value {
    let mut value = old.clone();
    let due = Time(meta::text(old, "deletionTimestamp").into()).unix_millis().unwrap_or(context.now_millis);
    let earlier = u64::try_from(current - grace).unwrap_or(0).saturating_mul(1000);
    let meta = meta::of(&mut value);
    meta.insert("deletionTimestamp".into(), Time::from_unix_millis(due.saturating_sub(earlier)).0.into());
    meta.insert("deletionGracePeriodSeconds".into(), grace.into());
    value
}
