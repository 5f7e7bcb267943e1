use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, Weak};

use api::{Kind, Object, ObjectKey};
use control::{Cache, Change, Fold, Rules};
use tokio::sync::{Notify, oneshot};

/// The API objects this process has seen, and the controllers that hear of changes.
#[derive(Default)]
pub struct SharedCache {
    cache: RwLock<Cache>,
    listeners: RwLock<Vec<Weak<dyn Listener>>>,
    synced: Notify,
    awaited: Mutex<Awaited>,
}

/// Who waits until the watch of a kind has delivered a version.
type Awaited = BTreeMap<Kind, BTreeMap<u64, Vec<oneshot::Sender<()>>>>;

/// Somebody who wants to know of changes.
pub trait Listener: Send + Sync {
    /// Something changed. `cache` holds the change already.
    fn changed(&self, change: &Change, cache: &Cache);
}

impl SharedCache {
    /// Finds volumes as these rules do.
    pub fn read_as<R: Rules>(&self) {
        if let Some(handle_of) = R::HANDLE_OF {
            self.cache.write().unwrap_or_else(PoisonError::into_inner).translate(handle_of);
        }
    }

    /// Tells `listener` of every change from now on, until its last owner drops it.
    pub fn listen(&self, listener: Weak<dyn Listener>) {
        let mut listeners = self.listeners.write().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|known| known.strong_count() > 0);
        listeners.push(listener);
    }

    /// A watch listed a kind.
    pub fn replace(&self, kind: Kind, version: u64, objects: Vec<Object>) {
        self.replace_rest(kind, version, objects, BTreeSet::new());
    }

    /// A watch listed a part of a kind.
    pub fn part(&self, objects: Vec<Object>) {
        self.change(|cache| cache.part(objects));
    }

    /// A watch listed the last part of a kind; `before` are the objects of the other parts.
    pub fn replace_rest(&self, kind: Kind, version: u64, objects: Vec<Object>, before: BTreeSet<ObjectKey>) {
        self.change(|cache| cache.replace_rest(kind, version, objects, before));
        self.synced.notify_waiters();
        self.delivered(kind);
    }

    /// A watch saw an object.
    pub fn set(&self, object: Object) {
        let kind = object.kind();
        self.change(|cache| cache.set(object).into_iter().collect());
        self.delivered(kind);
    }

    /// A watch saw an object go.
    pub fn remove(&self, object: &Object) {
        self.change(|cache| cache.remove(object).into_iter().collect());
        self.delivered(object.kind());
    }

    /// One of our writes was answered.
    pub fn fold(&self, fold: Fold) {
        self.change(|cache| cache.fold(fold).into_iter().collect());
    }

    /// Looks at the cache. The look must be short: nothing changes meanwhile.
    pub fn look<T>(&self, look: impl FnOnce(&Cache) -> T) -> T {
        look(&self.cache.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits until the watch of a kind has delivered this version.
    pub async fn seen(&self, kind: Kind, version: u64) {
        let (delivered, waiting) = oneshot::channel();
        self.awaited().entry(kind).or_default().entry(version).or_default().push(delivered);
        // It may have been delivered just before.
        if self.look(|cache| cache.seen(kind)) < version {
            let _ = waiting.await;
        }
    }

    /// Wakes whoever waits for what the watch of a kind has delivered.
    fn delivered(&self, kind: Kind) {
        let mut awaited = self.awaited();
        let Some(of_kind) = awaited.get_mut(&kind) else { return };
        let seen = self.look(|cache| cache.seen(kind));
        let later = of_kind.split_off(&seen.saturating_add(1));
        let reached = std::mem::replace(of_kind, later);
        if of_kind.is_empty() {
            awaited.remove(&kind);
        }
        for one in reached.into_values().flatten() {
            // Whoever is gone waits no longer.
            let _ = one.send(());
        }
    }

    fn awaited(&self) -> MutexGuard<'_, Awaited> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until every one of these kinds has been listed once.
    pub async fn synced(&self, kinds: &[Kind]) {
        loop {
            let waiting = self.synced.notified();
            if self.look(|cache| kinds.iter().all(|kind| cache.is_synced(*kind))) {
                return;
            }
            waiting.await;
        }
    }

    fn change(&self, change: impl FnOnce(&mut Cache) -> Vec<Change>) {
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        let changes = change(&mut cache);
        let listeners = self.listeners.read().unwrap_or_else(PoisonError::into_inner);
        for change in &changes {
            for listener in listeners.iter().filter_map(Weak::upgrade) {
                listener.changed(change, &cache);
            }
        }
    }
}
