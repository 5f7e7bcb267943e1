//! The API server of a pretend world: the real object semantics of `rules-store`, one store per kind.
//!
//! Versions are only comparable within a kind, so each kind draws its own; two writes to different kinds then leave
//! the same state behind whatever their order.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use api::{Kind, Object, ObjectKey, ObjectRef, Patch, Write};
use control::{Refusal, Reply};
use rules_store::{Context, EventType, Failure, Request, Store};
use serde_json::json;

use crate::canon::{CLASS, Canon, FIRST, Piece};

/// When everything happens. Pauses are over as soon as they begin: see [`crate::world`].
pub(crate) const NOW_MILLIS: u64 = 1_900_000_000_000;
/// Uids begin here.
const UIDS: u64 = 90 * CLASS;
/// A pod's uid has the form that uids have: directories of other names are nobody's to sweep.
pub(crate) const POD_UID: &str = "-0000-4000-8000-000000000000";
/// The namespace of every pretend world.
pub(crate) const NAMESPACE: &str = "default";

/// One committed version of an object.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) object: Object,
    piece: OnceLock<Piece>,
}

impl Held {
    /// The object, hashed when somebody asks.
    pub(crate) fn piece(&self) -> &Piece {
        self.piece.get_or_init(|| Piece::of(&self.object))
    }
}

/// One watch event.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) held: Arc<Held>,
    pub(crate) gone: bool,
    /// Whoever it waits for knows already that the object is gone, from the answer to its own write.
    pub(crate) moot: bool,
}

impl Event {
    pub(crate) fn kind(&self) -> Kind {
        self.held.object.kind()
    }
}

/// What a write did.
pub(crate) struct Committed {
    pub(crate) reply: Reply,
    pub(crate) events: Vec<Event>,
}

/// All objects, and the counters numbers are drawn from.
#[derive(Clone)]
pub(crate) struct Cluster {
    stores: BTreeMap<Kind, Arc<Store>>,
    objects: Arc<BTreeMap<(Kind, ObjectKey), Arc<Held>>>,
    uids: u64,
    /// What is wrong with the store, in tests of the laws.
    wrong: Option<WrongStore>,
}

/// A way for the API server itself to be wrong, so that the laws about it can be seen to fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongStore {
    /// It takes every write as if it carried no precondition.
    IgnoresPreconditions,
    /// It removes what is deleted at once, whatever finalizers there are.
    IgnoresFinalizers,
    /// It gives every change the first version there was.
    ReusesVersions,
}

impl Cluster {
    /// An empty cluster with one namespace.
    pub(crate) fn new() -> Cluster {
        let mut cluster = Cluster { stores: BTreeMap::new(), objects: Arc::default(), uids: UIDS, wrong: None };
        // Nobody watches secrets; whoever needs one reads it.
        for (index, kind) in Object::KINDS.iter().chain(&[Kind::Secret]).enumerate() {
            let mut store = Store::restore(FIRST + CLASS * index as u64, std::iter::empty());
            if kind.namespaced() {
                let target = ObjectRef::cluster(Kind::Namespace, NAMESPACE);
                let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
                let request = Request::from_write(&Write::Create { target, body });
                let context = Context { now_millis: NOW_MILLIS, new_uid: "namespace", actor: "setup" };
                if let Err(failure) = store.apply(&context, request) {
                    unreachable!("an empty store takes its first namespace: {failure}");
                }
            }
            cluster.stores.insert(*kind, Arc::new(store));
        }
        cluster
    }

    /// Performs a write as the API server would.
    pub(crate) fn write(&mut self, actor: &str, write: &Write) -> Result<Committed, Refusal> {
        let kind = write.target().kind;
        let Some(store) = self.stores.get_mut(&kind) else {
            return Ok(Committed { reply: Reply::Nothing, events: Vec::new() }); // Events change nothing here.
        };
        let mut uid = (self.uids + 1).to_string();
        if kind == Kind::Pod {
            uid.push_str(POD_UID);
        }
        let context = Context { now_millis: NOW_MILLIS, new_uid: &uid, actor };
        let json_patch = matches!(write, Write::Patch { patch: Patch { body: api::PatchBody::Json(_), .. }, .. });
        let unguarded = (self.wrong == Some(WrongStore::IgnoresPreconditions)).then(|| without_precondition(write));
        let write = unguarded.as_ref().unwrap_or(write);
        let applied = Arc::make_mut(store)
            .apply(&context, Request::from_write(write))
            .map_err(|failure| refusal(failure, json_patch))?;
        if matches!(write, Write::Create { .. }) {
            self.uids += 1;
        }
        let mut events = Vec::new();
        for change in &applied.changes {
            events.push(self.commit(kind, change, matches!(write, Write::Delete { .. })));
        }
        let gone = events.last().is_some_and(|event| event.gone);
        let reply = match write {
            Write::Bind { .. } => Reply::Nothing,
            Write::Create { .. } | Write::Patch { .. } | Write::Delete { .. } | Write::Note(_) if gone => Reply::Gone,
            Write::Create { .. } | Write::Patch { .. } | Write::Delete { .. } | Write::Note(_) => {
                self.read(write.target()).map_or(Reply::Gone, |held| Reply::Object(held.object.clone()))
            }
        };
        Ok(Committed { reply, events })
    }

    /// Lets the store of one kind know an object of another, which it judges writes by.
    pub(crate) fn mirror(&mut self, into: Kind, write: &Write) {
        self.mirror_as(into, write, "mirrored");
    }

    /// The same for an object that others there name by its uid.
    pub(crate) fn mirror_as(&mut self, into: Kind, write: &Write, new_uid: &str) {
        let context = Context { now_millis: NOW_MILLIS, new_uid, actor: "setup" };
        let Some(store) = self.stores.get_mut(&into) else { return };
        if let Err(failure) = Arc::make_mut(store).apply(&context, Request::from_write(write)) {
            unreachable!("a store takes the object it is to judge by: {failure}");
        }
    }

    /// Makes the store wrong from here on.
    pub(crate) fn go_wrong(&mut self, how: WrongStore) {
        self.wrong = Some(how);
    }

    fn commit(&mut self, kind: Kind, change: &rules_store::Change, deleted: bool) -> Event {
        let mut value = change.object.value.clone();
        if self.wrong == Some(WrongStore::ReusesVersions) {
            value["metadata"]["resourceVersion"] = FIRST.to_string().into();
        }
        let object = match Object::from_json(kind, value) {
            Ok(object) => object,
            Err(error) => unreachable!("the store keeps only readable objects: {error}"),
        };
        let key = (kind, object.meta().key());
        let held = Arc::new(Held { piece: OnceLock::new(), object });
        let gone = match change.event {
            EventType::Modified if deleted && self.wrong == Some(WrongStore::IgnoresFinalizers) => {
                Arc::make_mut(&mut self.objects).remove(&key);
                true
            }
            EventType::Added | EventType::Modified => {
                Arc::make_mut(&mut self.objects).insert(key, held.clone());
                false
            }
            EventType::Deleted => {
                Arc::make_mut(&mut self.objects).remove(&key);
                true
            }
        };
        Event { held, gone, moot: false }
    }

    /// Reads an object past every cache.
    pub(crate) fn read(&self, target: &ObjectRef) -> Option<&Arc<Held>> {
        self.objects.get(&(target.kind, target.key.clone()))
    }

    /// Every object of a kind, by key.
    pub(crate) fn all(&self, kind: Kind) -> impl Iterator<Item = &Arc<Held>> {
        self.objects
            .range((kind, ObjectKey::default())..)
            .take_while(move |((k, _), _)| *k == kind)
            .map(|(_, held)| held)
    }

    /// The last version a kind drew.
    pub(crate) fn version(&self, kind: Kind) -> u64 {
        self.stores.get(&kind).map_or(0, |store| store.revision())
    }

    pub(crate) fn digest(&self, canon: &mut Canon) {
        for held in self.objects.values() {
            canon.add(held.piece());
        }
    }
}

macro_rules! typed {
    ($($name:ident, $kind:ident;)*) => {
        impl Cluster { $(
            pub(crate) fn $name(&self) -> impl Iterator<Item = &Arc<api::$kind>> {
                self.all(Kind::$kind).filter_map(|held| match &held.object { Object::$kind(object) => Some(object), _ => None })
            }
        )* }
    };
}
typed! {
    claims, PersistentVolumeClaim;
    volumes, PersistentVolume;
    attachments, VolumeAttachment;
    nodes, Node;
    pods, Pod;
    leases, Lease;
}

fn without_precondition(write: &Write) -> Write {
    let mut write = write.clone();
    match &mut write {
        Write::Patch { patch: Patch { only_if, .. }, .. } | Write::Delete { only_if, .. } => {
            *only_if = api::Precondition::default();
        }
        Write::Create { .. } | Write::Bind { .. } | Write::Note(_) => {}
    }
    write
}

/// The same reading of refusals as the HTTP client's.
fn refusal(failure: Failure, json_patch: bool) -> Refusal {
    match failure {
        Failure::NotFound { .. } => Refusal::NotFound,
        Failure::AlreadyExists { .. } => Refusal::AlreadyExists,
        Failure::Conflict { .. } => Refusal::Conflict,
        Failure::Invalid { .. } if json_patch => Refusal::Conflict,
        Failure::Invalid { .. }
        | Failure::Forbidden { .. }
        | Failure::BadRequest { .. }
        | Failure::Gone { .. }
        | Failure::TooLarge { .. }
        | Failure::UnsupportedMediaType { .. }
        | Failure::MethodNotAllowed { .. } => Refusal::Denied(failure.to_string()),
    }
}
