use alloc::collections::BTreeMap;
use alloc::collections::BTreeSet;
use alloc::collections::btree_map;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::array;
use core::borrow::Borrow;
use core::cmp::Ordering;
use core::fmt;
use core::ops::Bound;

use api::Kind;
use serde_json::Value;

use crate::collect::{Owned, owner_uids};
use crate::request::{Context, Request, Target};
use crate::{Failure, meta};

/// Where an object lives. Keys order by resource, then namespace, then name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreKey {
    /// What it is.
    pub kind: Kind,
    /// Its namespace; empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

impl StoreKey {
    /// The key of an object.
    pub fn new(kind: Kind, namespace: &str, name: &str) -> StoreKey {
        StoreKey { kind, namespace: namespace.into(), name: name.into() }
    }
}

/// Namespace and name, which tell objects of one resource apart. Lookups borrow them instead of building a key.
trait Place {
    fn place(&self) -> (&str, &str);
}

impl Place for StoreKey {
    fn place(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }
}

impl Place for (&str, &str) {
    fn place(&self) -> (&str, &str) {
        *self
    }
}

impl<'a> Borrow<dyn Place + 'a> for StoreKey {
    fn borrow(&self) -> &(dyn Place + 'a) {
        self
    }
}

impl PartialEq for dyn Place + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}
impl Eq for dyn Place + '_ {}
impl PartialOrd for dyn Place + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for dyn Place + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

impl fmt::Debug for StoreKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.kind.qualified(), self.namespace, self.name)
    }
}

/// An object as it was after one change. `value` carries `metadata.resourceVersion` equal to `revision`.
#[derive(Clone, PartialEq)]
pub struct Stored {
    /// Where it lives.
    pub key: StoreKey,
    /// The change that made it so.
    pub revision: u64,
    /// The whole object.
    pub value: Value,
}

/// The value is left out: it may be a secret.
impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}@{}", self.key, self.revision)
    }
}

impl Stored {
    /// The uid in its metadata; empty if there is none.
    pub fn uid(&self) -> &str {
        meta::text(&self.value, "uid")
    }

    /// Somebody asked for its deletion.
    pub fn is_deleting(&self) -> bool {
        meta::is_deleting(&self.value)
    }
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// It is new.
    Added,
    /// It is different.
    Modified,
    /// It is gone.
    Deleted,
}

impl EventType {
    /// The word in a watch event.
    pub const fn name(self) -> &'static str {
        match self {
            EventType::Added => "ADDED",
            EventType::Modified => "MODIFIED",
            EventType::Deleted => "DELETED",
        }
    }
}

/// One committed change.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Its number; one more than that of the change before it.
    pub revision: u64,
    pub event: EventType,
    /// The object afterwards; of a deleted one its last state, with the deletion's revision.
    pub object: Arc<Stored>,
    /// The object before, if there was one.
    pub before: Option<Arc<Stored>>,
}

/// What a request did.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The changes in revision order; none if everything was as wanted, or the run was dry.
    pub changes: Vec<Change>,
    /// The object to answer with.
    pub reply: Arc<Stored>,
    /// What the sender should know.
    pub warnings: Vec<String>,
}

/// The objects of one resource, shared between copies of the store until one of them writes.
type Shelf = Arc<BTreeMap<StoreKey, Arc<Stored>>>;

/// All objects of a cluster. A copy costs one reference count per resource.
#[derive(Clone)]
pub struct Store {
    shelves: [Shelf; Kind::ALL.len()],
    revision: u64,
    owned: Arc<Owned>,
    pub(crate) tolerance: Tolerance,
}

/// For how many seconds a pod that says nothing about it stays on a node that is not ready, or not heard of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tolerance {
    /// For `node.kubernetes.io/not-ready`.
    pub not_ready: u32,
    /// For `node.kubernetes.io/unreachable`.
    pub unreachable: u32,
}

impl Default for Tolerance {
    /// As kube-apiserver has it.
    fn default() -> Tolerance {
        Tolerance { not_ready: 300, unreachable: 300 }
    }
}

impl Default for Store {
    fn default() -> Self {
        Store::new()
    }
}

impl Store {
    /// An empty cluster at revision 0. It has no namespaces, not even `default`.
    pub fn new() -> Store {
        Store {
            shelves: array::from_fn(|_| Shelf::default()),
            revision: 0,
            owned: Arc::default(),
            tolerance: Tolerance::default(),
        }
    }

    /// The same with another tolerance of pods that are made from now on.
    #[must_use]
    pub fn with_tolerance(self, tolerance: Tolerance) -> Store {
        Store { tolerance, ..self }
    }

    /// The cluster as it was saved. `revision` is that of the last committed change, which may be a deletion.
    pub fn restore(revision: u64, objects: impl Iterator<Item = Stored>) -> Store {
        let mut store = Store::new();
        store.revision = revision;
        for object in objects {
            store.revision = store.revision.max(object.revision);
            store.put(Arc::new(object));
        }
        store
    }

    /// The number of the last change.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The object of a kind and name, as it is now.
    pub fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        self.shelves[kind as usize].get(&(namespace, name) as &dyn Place).cloned()
    }

    /// The objects of a resource, in order of namespace and name.
    pub fn list<'a>(&'a self, kind: Kind, namespace: Option<&'a str>) -> impl Iterator<Item = &'a Arc<Stored>> + 'a {
        self.list_from(kind, namespace.unwrap_or_default(), "")
            .take_while(move |object| namespace.is_none_or(|namespace| &*object.key.namespace == namespace))
    }

    /// The objects of a resource from a namespace and name on: what a chunked list continues with. Crosses into the
    /// namespaces behind the first.
    pub fn list_from<'a>(
        &'a self,
        kind: Kind,
        namespace: &str,
        name: &str,
    ) -> impl Iterator<Item = &'a Arc<Stored>> + use<'a> {
        let start: &dyn Place = &(namespace, name);
        let range = (Bound::Included(start), Bound::Unbounded);
        self.shelves[kind as usize].range::<dyn Place, _>(range).map(|(_, object)| object)
    }

    /// How many objects of a resource there are.
    pub fn count(&self, kind: Kind) -> usize {
        self.shelves[kind as usize].len()
    }

    /// Every object, by resource, namespace and name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Stored>> {
        self.shelves.iter().flat_map(|shelf: &Shelf| -> btree_map::Values<'_, StoreKey, Arc<Stored>> { shelf.values() })
    }

    /// Does what the request asks for, or nothing at all.
    pub fn apply(&mut self, context: &Context<'_>, request: Request) -> Result<Applied, Failure> {
        if request.dry_run() {
            return self.clone().rehearse(context, request);
        }
        let applied = match request {
            Request::Create { kind, namespace, body, options } => self.create(context, kind, &namespace, body, options),
            Request::Update { target, subresource, body, options } => {
                self.update(context, &target, subresource, body, options)
            }
            Request::Patch { target, subresource, kind, body, options } => {
                self.patch(context, &target, subresource, kind, body, options)
            }
            Request::Delete { target, preconditions, grace_seconds, propagation, .. } => {
                self.delete(context, &target, &preconditions, grace_seconds, propagation)
            }
            Request::Bind { target, uid, node, .. } => self.bind(context, &target, uid.as_deref(), &node),
        }?;
        Ok(self.collect(context, applied))
    }

    /// Runs the request on a copy and takes the numbers back out of the answer: they were never given.
    fn rehearse(mut self, context: &Context<'_>, mut request: Request) -> Result<Applied, Failure> {
        match &mut request {
            Request::Create { options, .. } | Request::Update { options, .. } | Request::Patch { options, .. } => {
                options.dry_run = false;
            }
            Request::Delete { dry_run, .. } | Request::Bind { dry_run, .. } => *dry_run = false,
        }
        let mut applied = self.apply(context, request)?;
        if let Some(last) = applied.changes.iter().rfind(|change| change.object.key == applied.reply.key) {
            let mut reply = Stored::clone(&applied.reply);
            reply.revision = last.before.as_ref().map_or(0, |before| before.revision);
            meta::set_revision(&mut reply.value, reply.revision);
            applied.reply = Arc::new(reply);
        }
        applied.changes.clear();
        Ok(applied)
    }

    /// Makes a committed change here as well. Changes come in order; one already seen is ignored.
    pub fn replay(&mut self, change: &Change) {
        if change.revision <= self.revision {
            return;
        }
        self.revision = change.revision;
        match change.event {
            EventType::Added | EventType::Modified => self.put(change.object.clone()),
            EventType::Deleted => self.take(&change.object.key),
        }
    }

    pub(crate) fn find(&self, target: &Target) -> Result<Arc<Stored>, Failure> {
        self.get(target.kind, &target.namespace, &target.name)
            .ok_or_else(|| Failure::NotFound { kind: target.kind, name: target.name.clone() })
    }

    /// Gives the value the next revision and makes it the truth. The caller has checked everything.
    pub(crate) fn commit(
        &mut self,
        event: EventType,
        key: StoreKey,
        mut value: Value,
        before: Option<Arc<Stored>>,
    ) -> Change {
        let revision = self.revision + 1;
        meta::set_revision(&mut value, revision);
        let object = Arc::new(Stored { key, revision, value });
        let change = Change { revision, event, object, before };
        self.replay(&change);
        change
    }

    /// Dependents by the uid of an owner.
    pub(crate) fn owned(&self) -> &Owned {
        &self.owned
    }

    fn put(&mut self, object: Arc<Stored>) {
        let shelf = Arc::make_mut(&mut self.shelves[object.key.kind as usize]);
        let before = shelf.insert(object.key.clone(), object.clone());
        self.index(before.as_deref(), Some(&object));
    }

    fn take(&mut self, key: &StoreKey) {
        let before = Arc::make_mut(&mut self.shelves[key.kind as usize]).remove(key);
        self.index(before.as_deref(), None);
    }

    /// Most objects have no owner and cost nothing here.
    fn index(&mut self, before: Option<&Stored>, after: Option<&Stored>) {
        let owners = |object: &Stored| -> BTreeSet<String> { owner_uids(&object.value).map(String::from).collect() };
        let (before, after) = (before.map(|one| (owners(one), &one.key)), after.map(|one| (owners(one), &one.key)));
        if before.as_ref().map(|(uids, _)| uids) == after.as_ref().map(|(uids, _)| uids) {
            return;
        }
        for (uids, key) in before.into_iter().filter(|(uids, _)| !uids.is_empty()) {
            let owned = Arc::make_mut(&mut self.owned);
            for uid in uids {
                owned.remove(&(uid, key.clone()));
            }
        }
        for (uids, key) in after.into_iter().filter(|(uids, _)| !uids.is_empty()) {
            let owned = Arc::make_mut(&mut self.owned);
            owned.extend(uids.into_iter().map(|uid| (uid, key.clone())));
        }
    }
}
