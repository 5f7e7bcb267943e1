use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Object, ObjectKey, ObjectRef, Patch, Subresource, Value, Write, names};
use control::host::ProcessState;
use control::{Action as _, Cache, Decision, Effect, Outcome, Refusal, Reply, Rules, Tick, Why};
use csi::Code;
use rules_store::{Context, EventType, Failure, Request, Store, find_kind};
use serde_json::json;

use crate::{DriverFacts, Key, Local, Memory, Node, ProcessName, Record};

pub const DRIVER: &str = "d.example";
pub const HANDLE: &str = "h1";
pub const ROOT: &str = "/r";
pub const START: u64 = 1_900_000_000_000;

pub fn unique() -> String {
    names::unique_volume_name(DRIVER, HANDLE)
}

/// What happens to an effect instead of its simply succeeding.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    AnswerLost,
    RequestLost,
    Refused,
    /// It happens only when the test says so, after its answer was given up on.
    Late,
}

/// What the machine really holds.
#[derive(Default)]
pub struct Machine {
    pub files: BTreeMap<String, Vec<u8>>,
    pub dirs: BTreeSet<String>,
    pub staged: BTreeSet<String>,
    pub published: BTreeSet<String>,
    pub processes: BTreeMap<String, (ProcessState, Vec<String>)>,
}

pub struct World {
    pub store: Store,
    pub cache: Cache,
    pub local: Local,
    pub memory: BTreeMap<Key, Memory>,
    pub machine: Machine,
    pub now: Tick,
    /// The watch shows nothing new while this is set.
    pub cache_frozen: bool,
    pub faults: BTreeMap<&'static str, Fault>,
    pub late: Vec<Write>,
    pub log: Vec<String>,
    /// Actions decided on and not carried out yet: keys are looked at independently of each other.
    held: Vec<(Key, crate::Action)>,
    made: u32,
}

impl World {
    /// A node with a registered driver, a bound claim `data`, and its volume attached and reported.
    pub fn new() -> World {
        let mut world = World {
            store: Store::new(),
            cache: Cache::default(),
            local: Local::new("n", "life-1", ROOT),
            memory: BTreeMap::new(),
            machine: Machine::default(),
            now: Tick(START),
            cache_frozen: false,
            faults: BTreeMap::new(),
            late: Vec::new(),
            log: Vec::new(),
            held: Vec::new(),
            made: 0,
        };
        world.local.drivers.insert(DRIVER.into(), DriverFacts { socket: "/d.sock".into(), stages: true });
        world.create(Kind::Namespace, "", json!({ "metadata": { "name": "ns" } }));
        world.create(
            Kind::Node,
            "",
            json!({ "metadata": { "name": "n", "annotations": { names::AGENT_LIFE: "life-1" } },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] } }),
        );
        world.volume();
        world.attach();
        world
    }

    fn volume(&mut self) {
        self.create(
            Kind::PersistentVolumeClaim,
            "ns",
            json!({ "metadata": { "name": "data" }, "spec": {
            "accessModes": ["ReadWriteOnce"], "volumeName": "pv1", "storageClassName": "",
            "resources": { "requests": { "storage": "1Gi" } } } }),
        );
        let uid = self.get(Kind::PersistentVolumeClaim, "ns", "data").unwrap()["metadata"]["uid"].clone();
        self.create(
            Kind::PersistentVolume,
            "",
            json!({ "metadata": { "name": "pv1" }, "spec": {
            "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "mountOptions": ["noatime"],
            "claimRef": { "namespace": "ns", "name": "data", "uid": uid },
            "csi": { "driver": DRIVER, "volumeHandle": HANDLE, "fsType": "ext4",
                     "volumeAttributes": { "made": "here" } } } }),
        );
    }

    /// The volume is attached and reported.
    pub fn attach(&mut self) {
        self.create(
            Kind::VolumeAttachment,
            "",
            json!({ "metadata": { "name": "va" }, "spec": {
            "attacher": DRIVER, "nodeName": "n", "source": { "persistentVolumeName": "pv1" } } }),
        );
        let status = json!({ "status": { "attached": true, "attachmentMetadata": { "lun": "3" } } });
        self.patch(Kind::VolumeAttachment, "", "va", Some(Subresource::Status), status);
        self.report_attached(true);
    }

    pub fn report_attached(&mut self, attached: bool) {
        let list = if attached { json!([{ "name": unique(), "devicePath": "" }]) } else { json!([]) };
        self.patch(Kind::Node, "", "n", Some(Subresource::Status), json!({ "status": { "volumesAttached": list } }));
    }

    /// A pod on this node that uses the claim.
    pub fn pod(&mut self, name: &str) {
        self.pod_with(name, json!({}));
    }

    /// The same with some of its spec replaced.
    pub fn pod_with(&mut self, name: &str, spec: Value) {
        let mut whole = json!({ "nodeName": "n", "restartPolicy": "Never",
            "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "data" } }],
            "containers": [{ "name": "c", "image": "i", "command": ["/bin/true"],
                             "volumeMounts": [{ "name": "v", "mountPath": "/data" }] }] });
        for (key, value) in spec.as_object().unwrap() {
            whole[key] = value.clone();
        }
        self.create(Kind::Pod, "ns", json!({ "metadata": { "name": name }, "spec": whole }));
    }

    pub fn delete_pod(&mut self, name: &str) {
        let target = ObjectRef::namespaced(Kind::Pod, "ns", name);
        self.write(&Write::Delete { target, only_if: Default::default(), grace_seconds: Some(30) }).unwrap();
    }

    /// The pod's object goes at once, whatever the node thinks.
    pub fn force_delete_pod(&mut self, name: &str) {
        let target = ObjectRef::namespaced(Kind::Pod, "ns", name);
        self.write(&Write::Delete { target, only_if: Default::default(), grace_seconds: Some(0) }).unwrap();
    }

    pub fn create(&mut self, kind: Kind, namespace: &str, mut body: Value) {
        body["kind"] = kind.name().into();
        body["apiVersion"] = kind.api_version().into();
        let name = body["metadata"]["name"].as_str().unwrap().to_string();
        let target = ObjectRef { kind, key: ObjectKey::new(namespace, name) };
        self.write(&Write::Create { target, body }).unwrap();
    }

    pub fn patch(&mut self, kind: Kind, namespace: &str, name: &str, part: Option<Subresource>, body: Value) {
        let target = ObjectRef { kind, key: ObjectKey::new(namespace, name) };
        self.write(&Write::Patch { target, subresource: part, patch: Patch::Merge(body) }).unwrap();
    }

    pub fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<Value> {
        self.store.get(find_kind(kind), namespace, name).map(|stored| stored.value.clone())
    }

    pub fn status(&self, pod: &str) -> Value {
        self.get(Kind::Pod, "ns", pod).unwrap()["status"].clone()
    }

    pub fn node_lists(&self, list: &str) -> bool {
        let node = self.get(Kind::Node, "", "n").unwrap();
        let name = unique();
        let lists = |entry: &Value| entry == &json!(name) || entry["name"] == json!(name);
        node["status"][list].as_array().is_some_and(|entries| entries.iter().any(lists))
    }

    pub fn write(&mut self, write: &Write) -> Result<Reply, Refusal> {
        self.made += 1;
        let uid = format!("uid-{}", self.made);
        let context = Context { now_millis: self.now.0, new_uid: &uid, actor: "test" };
        let kind = write.target().kind;
        let json_patch = matches!(write, Write::Patch { patch: Patch::Json(_), .. });
        let applied = self.store.apply(&context, Request::from_write(write)).map_err(|failure| match failure {
            Failure::NotFound { .. } => Refusal::NotFound,
            Failure::AlreadyExists { .. } => Refusal::AlreadyExists,
            Failure::Conflict { .. } => Refusal::Conflict,
            Failure::Invalid { .. } if json_patch => Refusal::Conflict,
            other => Refusal::Denied(other.to_string()),
        })?;
        let mut reply = None;
        for change in &applied.changes {
            let Ok(object) = Object::from_json(kind, change.object.value.clone()) else { continue };
            let gone = change.event == EventType::Deleted;
            if !self.cache_frozen {
                if gone {
                    self.cache.remove(&object)
                } else {
                    self.cache.set(object.clone())
                };
            }
            reply = Some(if gone { Reply::Gone } else { Reply::Object(object) });
        }
        let unchanged = || Object::from_json(kind, applied.reply.value.clone()).map_or(Reply::Nothing, Reply::Object);
        Ok(reply.unwrap_or_else(unchanged))
    }

    /// The watch catches up.
    pub fn thaw(&mut self) {
        self.cache_frozen = false;
        for kind in Object::KINDS {
            let listed = self.store.list(find_kind(kind), None);
            let objects = listed.map(|stored| Object::from_json(kind, stored.value.clone()).unwrap()).collect();
            self.cache.replace(kind, self.store.revision(), objects);
        }
    }

    pub fn decision(&self, key: &Key) -> Decision<crate::Action> {
        let view = Node::view(key, &self.cache, &self.local);
        Node::decide(self.now, &view, self.memory.get(key).unwrap_or(&Memory::default()))
    }

    pub fn why(&self, key: &Key) -> Why {
        self.decision(key).why().clone()
    }

    pub fn pod_key(name: &str) -> Key {
        Key::Pod(ObjectKey::new("ns", name))
    }

    pub fn volume_key() -> Key {
        Key::Volume(unique())
    }

    /// Takes one step for a key; the action's name if there was one.
    pub fn step(&mut self, key: &Key) -> Option<&'static str> {
        let action = self.begin(key)?;
        Some(self.finish(key, &action))
    }

    /// Decides on a step for a key, and leaves it for later.
    pub fn hold(&mut self, key: &Key) {
        if let Some(action) = self.begin(key) {
            self.held.push((key.clone(), action));
        }
    }

    /// Carries out the oldest step left for later.
    pub fn release(&mut self) {
        if !self.held.is_empty() {
            let (key, action) = self.held.remove(0);
            self.finish(&key, &action);
        }
    }

    fn begin(&self, key: &Key) -> Option<crate::Action> {
        match self.decision(key) {
            Decision::Do(action, _) if self.held.iter().all(|(held, _)| held != key) => Some(action),
            Decision::Do(..) | Decision::Wait(..) | Decision::Rest(_) => None,
        }
    }

    fn finish(&mut self, key: &Key, action: &crate::Action) -> &'static str {
        let effect = action.effect();
        self.log.push(action.name().into());
        let outcome = match self.faults.remove(action.name()) {
            None => self.perform(&effect),
            Some(Fault::AnswerLost) => {
                self.perform(&effect);
                Outcome::Unknown("the answer was lost".into())
            }
            Some(Fault::RequestLost) => Outcome::Unknown("the request was lost".into()),
            Some(Fault::Late) => {
                if let Effect::Write(write) = &effect {
                    self.late.push(write.clone());
                }
                Outcome::Unknown("no answer in time".into())
            }
            Some(Fault::Refused) => match &effect {
                Effect::Call { .. } => Outcome::Refused(Refusal::Driver(Code::Internal, "told to fail".into())),
                Effect::Host(_) => Outcome::Refused(Refusal::Host("told to fail".into())),
                Effect::Read(_) | Effect::Write(_) => Outcome::Refused(Refusal::Conflict),
            },
        };
        Node::learn(&mut self.local, action, &outcome);
        let memory = self.memory.remove(key).unwrap_or_default();
        self.memory.insert(key.clone(), Node::remember(self.now, memory, action, &outcome));
        self.now = self.now.after_millis(1);
        self.watch_processes();
        self.check_laws(action.name());
        action.name()
    }

    /// Steps until nothing is left to do, and answers with what was done.
    pub fn settle(&mut self) -> Vec<String> {
        let from = self.log.len();
        while !self.held.is_empty() {
            self.release();
        }
        for _ in 0..400 {
            let mut keys = Node::keys(&self.cache, &self.local);
            keys.extend(self.memory.keys().cloned());
            let stepped = keys.iter().filter(|key| self.step(key).is_some()).count();
            // Pauses are short in pretend time; restarts of containers are not waited for.
            let next = keys.iter().filter_map(|key| match self.decision(key) {
                Decision::Wait(until, why) if why.code != "CrashLoopBackOff" => Some(until),
                Decision::Wait(..) | Decision::Rest(_) | Decision::Do(..) => None,
            });
            match next.min() {
                Some(until) if stepped == 0 => self.now = until,
                None if stepped == 0 => return self.log[from..].to_vec(),
                Some(_) | None => {}
            }
        }
        panic!("never comes to rest: {:?}", &self.log[self.log.len() - 20..]);
    }

    fn watch_processes(&mut self) {
        for (name, (state, _)) in &self.machine.processes {
            self.local.processes.insert(name.clone(), state.clone());
        }
    }

    /// The pod's process ends by itself.
    pub fn exit(&mut self, pod: &str, code: i32) {
        let now = self.now.0;
        for (name, (state, _)) in &mut self.machine.processes {
            if let (true, ProcessState::Running { since_millis }) =
                (ProcessName::parse(name).unwrap().pod.name == pod, &state)
            {
                *state = ProcessState::Exited { code, since_millis: *since_millis, at_millis: now };
            }
        }
        self.watch_processes();
    }

    /// The agent dies and another life begins: memory is empty, local facts are those of the machine.
    pub fn crash(&mut self, life: &str) {
        self.memory.clear();
        // What was under way dies with the agent, save for writes that are already on the wire.
        for (_, action) in core::mem::take(&mut self.held) {
            if let Effect::Write(write) = action.effect() {
                self.late.push(write);
            }
        }
        let mut local = Local::new("n", life, ROOT);
        local.drivers = self.local.drivers.clone();
        for (path, bytes) in self.machine.files.iter() {
            match Record::parse(bytes) {
                Ok(record) => drop(local.records.insert(record.unique_name(), record)),
                Err(_) => drop(local.unreadable.insert(path.clone())),
            }
        }
        local.mounts = self.machine.staged.union(&self.machine.published).cloned().collect();
        self.local = local;
        self.watch_processes();
        self.thaw();
        self.patch(Kind::Node, "", "n", None, json!({ "metadata": { "annotations": { names::AGENT_LIFE: life } } }));
    }

    /// Writes of the past arrive.
    pub fn land_late(&mut self) {
        for write in core::mem::take(&mut self.late) {
            let _ = self.write(&write);
        }
        self.check_laws("a late write");
    }
}
