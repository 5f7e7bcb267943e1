//! A real API store, a pretend driver, and the rules, woken by changes alone. After every step the laws are checked.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Object, ObjectKey, Value, names};
use control::{Action as _, Cache, Decision, Effect, Outcome, Permission, Refusal, Reply, Rules, Tick, Why};
use csi::v1;
use rules_store::{
    Context, EventType, Failure, PatchKind, Request, Store, Subresource, Target, WriteOptions, find_kind,
};
use serde_json::json;

use super::driver::{Driver, id_of};
use super::sides::Side;
use crate::{Capacity, Intent, Key, Local, Memory, Provisioner, Settings, Sources};

pub(super) const CLAIM: Kind = Kind::PersistentVolumeClaim;
pub(super) const VOLUME: Kind = Kind::PersistentVolume;

pub(super) struct World {
    pub(super) store: Store,
    pub(super) sources: Side<Sources>,
    pub(super) capacity: Side<Capacity>,
    pub(super) driver: Driver,
    pub(super) cache: Cache,
    pub(super) local: Local,
    /// Kinds the API will not let us write.
    pub(super) forbidden: Vec<Kind>,
    memory: BTreeMap<Key, Memory>,
    due: BTreeSet<Key>,
    pub(super) now: Tick,
    /// Every action done.
    pub(super) log: Vec<String>,
    /// Decisions made.
    pub(super) looks: usize,
    /// What the driver answers to CreateVolume, whatever its mood.
    pub(super) answer: Option<Outcome>,
    /// The action with this number happens, and its answer is lost.
    pub(super) lose_answer: Option<usize>,
}

/// Intents are on the claims; `in_journal` has them in the journal.
pub(super) fn local() -> Local {
    let settings = Settings { intent: Intent::OnClaim, namespace: "n".into(), ..Settings::default() };
    Local { settings: settings.into(), ..Local::new("d", "/csi.sock") }
}

impl World {
    pub(super) fn new() -> World {
        let mut world = World {
            store: Store::new(),
            sources: Side::default(),
            capacity: Side::default(),
            driver: Driver::default(),
            cache: Cache::default(),
            local: local(),
            forbidden: Vec::new(),
            memory: BTreeMap::new(),
            due: BTreeSet::new(),
            now: Tick(1_000_000),
            log: Vec::new(),
            looks: 0,
            answer: None,
            lose_answer: None,
        };
        world.create(Kind::Namespace, json!({ "metadata": { "name": "n" } }));
        world
    }

    fn apply(&mut self, request: Request) -> Result<rules_store::Applied, Failure> {
        let uid = format!("u{}", self.store.revision() + 1);
        let context = Context { now_millis: self.now.0, new_uid: &uid, actor: "test" };
        let applied = self.store.apply(&context, request);
        self.sync();
        applied
    }

    fn write(&mut self, write: &api::Write, permissions: &[Permission]) -> Result<rules_store::Applied, Failure> {
        allowed(permissions, write.target().kind, write.subresource().unwrap_or(""), write.verb());
        self.apply(Request::from_write(write))
    }

    /// Shows the rules what is there now, and wakes whom that concerns.
    pub(super) fn sync(&mut self) {
        for kind in Object::KINDS {
            let objects = self.store.list(find_kind(kind), None);
            let objects = objects.map(|stored| Object::from_json(kind, stored.value.clone()).unwrap()).collect();
            for change in self.cache.replace(kind, self.store.revision(), objects) {
                self.due.extend(Provisioner::wakes(&change, &self.cache, &self.local));
                self.sources.due.extend(Sources::wakes(&change, &self.cache, &self.local));
                self.capacity.due.extend(Capacity::wakes(&change, &self.cache, &self.local));
            }
        }
    }

    pub(super) fn create(&mut self, kind: Kind, body: Value) {
        let namespace = if kind.namespaced() { "n" } else { "" };
        let (resource, options) = (find_kind(kind), WriteOptions::default());
        self.apply(Request::Create { resource, namespace: namespace.into(), body, options }).unwrap();
    }

    pub(super) fn patch(&mut self, kind: Kind, name: &str, status: bool, body: Value) {
        let namespace = if kind.namespaced() { "n" } else { "" };
        self.apply(Request::Patch {
            target: Target::new(find_kind(kind), namespace, name),
            subresource: status.then_some(Subresource::Status),
            kind: PatchKind::Merge,
            body,
            options: WriteOptions::default(),
        })
        .unwrap();
    }

    pub(super) fn delete(&mut self, kind: Kind, name: &str) {
        let namespace = if kind.namespaced() { "n" } else { "" };
        self.apply(Request::Delete {
            target: Target::new(find_kind(kind), namespace, name),
            preconditions: api::Precondition::default(),
            grace_seconds: Some(0),
            dry_run: false,
        })
        .unwrap();
    }

    pub(super) fn get(&self, kind: Kind, name: &str) -> Option<Value> {
        let namespace = if kind.namespaced() { "n" } else { "" };
        self.store.get(find_kind(kind), namespace, name).map(|stored| stored.value.clone())
    }

    pub(super) fn claim(&self, name: &str) -> Value {
        self.get(Kind::PersistentVolumeClaim, name).unwrap()
    }

    pub(super) fn volume(&self, name: &str) -> Value {
        self.get(Kind::PersistentVolume, name).unwrap()
    }

    /// Why the rules do what they do about a key now.
    pub(super) fn why(&self, key: &Key) -> Why {
        self.decide(key).why().clone()
    }

    pub(super) fn why_claim(&self) -> &'static str {
        self.why(&self.key()).code
    }

    /// The claim there is.
    pub(super) fn key(&self) -> Key {
        let uid = self.get(CLAIM, "data").map(|claim| claim["metadata"]["uid"].as_str().unwrap().into());
        Key::Claim { key: ObjectKey::new("n", "data"), uid: uid.unwrap_or_default() }
    }

    pub(super) fn in_journal(self) -> World {
        self.with(|settings| settings.intent = Intent::InJournal)
    }

    /// Names and texts of the journal's entries.
    pub(super) fn entries(&self) -> BTreeMap<String, String> {
        self.cache.lease(&self.local.journal()).map(|lease| lease.metadata.annotations.clone()).unwrap_or_default()
    }

    /// An intent for the volume of this name is recorded somewhere.
    pub(super) fn is_intended(&self, name: &str) -> bool {
        let on_claim = self.store.list(find_kind(CLAIM), None).any(|claim| {
            let finalizers = claim.value["metadata"]["finalizers"].to_string();
            finalizers.contains(names::PROVISIONING_INTENT) && *name == self.local.volume_name(claim.uid())
        });
        let entry =
            |entry: &String| entry.strip_prefix(names::JOURNAL_ENTRY)?.rsplit_once('.').map(|(uid, _)| uid.to_string());
        on_claim || self.entries().keys().filter_map(entry).any(|uid| self.local.volume_name(&uid) == name)
    }

    pub(super) fn memory(&self, key: &Key) -> Memory {
        self.memory.get(key).cloned().unwrap_or_default()
    }

    pub(super) fn decide(&self, key: &Key) -> Decision<crate::Action> {
        let memory = self.memory.get(key).cloned().unwrap_or_default();
        Provisioner::decide(self.now, &Provisioner::view(key, &self.cache, &self.local), &memory)
    }

    /// Performs at most `most` actions, letting time pass; true if there was nothing left to do.
    pub(super) fn run_for(&mut self, most: usize) -> bool {
        let mut done = 0;
        while let Some(key) = self.due.pop_first() {
            self.looks += 1;
            match self.decide(&key) {
                Decision::Rest(_) => {}
                Decision::Wait(..) if done == most => {
                    self.due.insert(key);
                    return false;
                }
                Decision::Wait(until, _) => {
                    self.now = self.now.max(until);
                    self.due.insert(key);
                }
                Decision::Do(..) if done == most => {
                    self.due.insert(key);
                    return false;
                }
                Decision::Do(action, _) => {
                    done += 1;
                    let lost = self.lose_answer == Some(self.log.len());
                    self.log.push(format!("{action:?}"));
                    let mut got = self.perform(action.effect(), crate::Action::permissions());
                    if lost {
                        got = Outcome::Unknown("the answer was lost".into());
                    }
                    Provisioner::learn(&mut self.local, &action, &got);
                    let memory = self.memory.remove(&key).unwrap_or_default();
                    self.memory.insert(key.clone(), Provisioner::remember(self.now, memory, &action, &got));
                    self.due.insert(key);
                    self.check_laws();
                }
            }
        }
        true
    }

    pub(super) fn run(&mut self) {
        assert!(self.run_for(100), "no rest after {:?}", self.log);
        for key in Provisioner::keys(&self.cache, &self.local) {
            assert!(!matches!(self.decide(&key), Decision::Do(..)), "{key} was not woken: {:?}", self.decide(&key));
        }
    }

    /// Reliability 1, 4, 5: every volume is accounted for, none twice, and what is recorded is there.
    fn check_laws(&self) {
        let volumes: Vec<Value> = self.store.list(find_kind(VOLUME), None).map(|v| v.value.clone()).collect();
        let handle = |volume: &Value| {
            let spec = &volume["spec"];
            let handle = spec["csi"]["volumeHandle"].as_str().or(spec["awsElasticBlockStore"]["volumeID"].as_str());
            handle.unwrap_or_default().to_string()
        };
        for name in self.driver.volumes.keys() {
            let recorded = volumes.iter().filter(|volume| handle(volume) == id_of(name)).count();
            // Upstream's protocol keeps no such promise.
            let promised = self.local.settings.intent != Intent::InMemory;
            let intended = !promised || self.is_intended(name);
            assert!(recorded <= 1, "{name} is recorded twice");
            assert!(recorded == 1 || intended, "{name} is an orphan after {:?}", self.log);
        }
        let ours = |volume: &&Value| !volume["metadata"]["annotations"][names::PROVISIONED_BY].is_null();
        for volume in volumes.iter().filter(ours) {
            let deleting = !volume["metadata"]["deletionTimestamp"].is_null();
            let released = volume["status"]["phase"] == "Released";
            let there = self.driver.volumes.keys().any(|name| id_of(name) == handle(volume));
            assert!(there || deleting || released, "{} is recorded and not there", volume["metadata"]["name"]);
        }
    }

    /// The process dies and comes back: memory and wakes are gone.
    pub(super) fn restart(&mut self) {
        self.memory.clear();
        self.due = Provisioner::keys(&self.cache, &self.local).into_iter().collect();
    }

    pub(super) fn perform(&mut self, effect: Effect, permissions: &[Permission]) -> Outcome {
        match effect {
            Effect::Read(target) => {
                allowed(permissions, target.kind, "", "get");
                let found = self.store.get(find_kind(target.kind), &target.key.namespace, &target.key.name);
                let object = |value: Value| Reply::Object(Object::from_json(target.kind, value).unwrap());
                Outcome::Done(found.map_or(Reply::Gone, |stored| object(stored.value.clone())))
            }
            Effect::Write(write) if self.forbidden.contains(&write.target().kind) => {
                Outcome::Refused(Refusal::Denied("forbidden".into()))
            }
            Effect::Write(write) => match self.write(&write, permissions) {
                Ok(applied) => {
                    assert!(!applied.changes.is_empty(), "a write that changed nothing: {write:?}"); // reliability 109
                    match applied.changes.iter().any(|change| change.event == EventType::Deleted) {
                        true => Outcome::Done(Reply::Gone),
                        false => Outcome::Done(Reply::Nothing),
                    }
                }
                Err(Failure::Conflict { .. }) => Outcome::Refused(Refusal::Conflict),
                Err(Failure::NotFound { .. }) => Outcome::Refused(Refusal::NotFound),
                Err(Failure::AlreadyExists { .. }) => Outcome::Refused(Refusal::AlreadyExists),
                Err(other) => panic!("the API refused {write:?}: {other:?}"),
            },
            Effect::Call { socket, call } => {
                assert_eq!(socket, "/csi.sock");
                self.call(call)
            }
            Effect::Host(_) => panic!("the provisioner does nothing on the machine"),
        }
    }

    /// Under other settings, and with a driver that can do everything.
    pub(super) fn with(mut self, change: impl FnOnce(&mut Settings)) -> World {
        let mut settings = Settings::clone(&self.local.settings);
        change(&mut settings);
        self.local.settings = settings.into();
        self.capacity.due.extend(Capacity::keys(&self.cache, &self.local));
        self
    }

    pub(super) fn able(mut self) -> World {
        let all = crate::Abilities {
            topology: true,
            snapshots: true,
            clones: true,
            modifies: true,
            tells_writers_apart: true,
            ..crate::Abilities::plain()
        };
        self.local.abilities = all;
        self
    }

    /// A node with these labels, on which driver `d` uses them as topology keys.
    pub(super) fn node(&mut self, name: &str, labels: &[(&str, &str)]) {
        let keys: Vec<&str> = labels.iter().map(|(key, _)| *key).collect();
        let labels: BTreeMap<&str, &str> = labels.iter().copied().collect();
        self.create(Kind::Node, json!({ "metadata": { "name": name, "labels": labels } }));
        let driver = json!({ "name": "d", "nodeID": name, "topologyKeys": keys });
        self.create(Kind::CSINode, json!({ "metadata": { "name": name }, "spec": { "drivers": [driver] } }));
    }

    /// What the driver was asked for.
    pub(super) fn request(&self) -> &v1::CreateVolumeRequest {
        self.driver.volumes.values().next().unwrap()
    }

    /// The claim, asked of driver `d`, of class `fast`.
    pub(super) fn asked() -> World {
        World::new().class("fast", "d", json!({})).with_claim("data", json!({}))
    }

    pub(super) fn uid(&self) -> String {
        self.claim("data")["metadata"]["uid"].as_str().unwrap().into()
    }

    pub(super) fn pv_name(&self) -> String {
        self.local.volume_name(&self.uid())
    }

    /// What binding does when a user deletes a claim no pod uses: protection goes, and the volume is released.
    pub(super) fn delete_claim(&mut self) {
        self.delete(CLAIM, "data");
        let Some(claim) = self.get(CLAIM, "data") else { return };
        let finalizers: Vec<&Value> = claim["metadata"]["finalizers"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|f| *f != names::PVC_PROTECTION)
            .collect();
        self.patch(CLAIM, "data", false, json!({ "metadata": { "finalizers": finalizers } }));
    }

    pub(super) fn release_volumes(&mut self) {
        let volumes: Vec<String> = self.store.list(find_kind(VOLUME), None).map(|v| v.key.name.to_string()).collect();
        for name in volumes {
            if self.get(CLAIM, "data").is_none() && self.volume(&name)["status"]["phase"] != "Released" {
                self.patch(VOLUME, &name, true, json!({ "status": { "phase": "Released" } }));
            }
        }
    }

    /// What binding does for a volume being deleted that is not bound.
    pub(super) fn unprotect_volumes(&mut self) {
        let volumes: Vec<Value> = self.store.list(find_kind(VOLUME), None).map(|v| v.value.clone()).collect();
        for volume in volumes.iter().filter(|volume| !volume["metadata"]["deletionTimestamp"].is_null()) {
            let rest: Vec<&Value> = volume["metadata"]["finalizers"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|f| *f != names::PV_PROTECTION)
                .collect();
            let name = volume["metadata"]["name"].as_str().unwrap();
            self.patch(VOLUME, name, false, json!({ "metadata": { "finalizers": rest } }));
        }
    }

    /// Until nothing is left of the claim but what policy keeps.
    pub(super) fn run_to_the_end(&mut self) {
        for _ in 0..4 {
            self.run();
            self.release_volumes();
            self.unprotect_volumes();
        }
        self.run();
    }

    pub(super) fn is_empty(&self) -> bool {
        let unrecorded = self.get(CLAIM, "data").is_none() && self.store.count(find_kind(VOLUME)) == 0;
        unrecorded && self.driver.volumes.is_empty() && self.entries().is_empty()
    }

    pub(super) fn class(mut self, name: &str, provisioner: &str, more: Value) -> World {
        let mut body = json!({ "metadata": { "name": name }, "provisioner": provisioner });
        rules_store::merge_patch(&mut body, &more);
        self.create(Kind::StorageClass, body);
        self
    }

    pub(super) fn with_claim(mut self, name: &str, more: Value) -> World {
        let requests = json!({ "requests": { "storage": "1Gi" } });
        let asked = json!({ names::STORAGE_PROVISIONER: "d", names::STORAGE_PROVISIONER_BETA: "d" });
        let mut body = json!({
            "metadata": { "name": name, "annotations": asked },
            "spec": { "accessModes": ["ReadWriteOnce"], "resources": requests, "storageClassName": "fast" },
        });
        rules_store::merge_patch(&mut body, &more);
        self.create(CLAIM, body);
        self
    }
}

/// The role printed from the rules covers what they do.
fn allowed(permissions: &[Permission], kind: Kind, subresource: &str, verb: &str) {
    let found = permissions.iter().any(|p| p.kind == kind && p.subresource == subresource && p.verb == verb);
    assert!(found, "no permission to {verb} {kind} {subresource}");
}
