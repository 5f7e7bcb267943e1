//! A node with a machine, a driver and a volume in the laboratory.

use alloc::collections::BTreeSet;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

use api::{Kind, Object, ObjectKey, Value, names};
use control::{Action as _, Cache, Decision, Effect, Engine, Outcome, Rules};
use csi::NodeRpc;
use prove_lab::{Fault, Lab};
use rules_translate::{Migration, Phase, Plugin};
use serde_json::json;

use crate::{DriverFacts, Key, Local, Node, ProcessName, paths};

pub const DRIVER: &str = "d.example";
pub const HANDLE: &str = "h1";
/// The driver that has taken over a plugin, and what it calls a disk of it.
pub const MIGRATED: (&str, &str) = ("pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk-1");
/// The plugin itself, at work on the node, and its disk.
pub const PLUGIN: (&str, &str) = ("kubernetes.io/gce-pd", "disk-1");
pub const ROOT: &str = "/r";

/// What a key waits for that has nothing left to do: a restart, or another look after a while.
const RESTS: [&str; 4] = ["CrashLoopBackOff", "SourceNotRead", "TokenNotHad", "ScratchNotMeasured"];

pub fn unique() -> String {
    names::unique_volume_name(DRIVER, HANDLE)
}

/// What the machine really holds, and what the driver mounted on it.
#[derive(Default)]
pub struct Machine {
    pub machine: prove_lab::ScriptedMachine,
    pub staged: BTreeSet<String>,
    pub published: BTreeSet<String>,
    /// How many bytes the filesystem has; what the claim was told must not be more.
    pub size: i64,
    /// How NodeExpandVolume is refused.
    pub refuses: Option<csi::Code>,
}

impl Deref for Machine {
    type Target = prove_lab::ScriptedMachine;

    fn deref(&self) -> &prove_lab::ScriptedMachine {
        &self.machine
    }
}

impl DerefMut for Machine {
    fn deref_mut(&mut self) -> &mut prove_lab::ScriptedMachine {
        &mut self.machine
    }
}

pub struct World {
    lab: Lab<Node>,
    pub machine: Machine,
    /// The driver of the volume and its handle there.
    pub served: (&'static str, &'static str),
    /// Actions begun and not carried out yet: keys are looked at independently of each other.
    held: Vec<(Key, crate::Action, Effect)>,
}

prove_lab::world_of!(World, lab: Node);

impl World {
    /// A node with a registered driver, a bound claim `data`, and its volume attached and reported.
    pub fn new() -> World {
        World::asking("1Gi", &json!({}))
    }

    /// The same with a claim that asks for this size, and more said about the volume's source.
    pub fn asking(size: &str, source: &Value) -> World {
        let mut world = World::bare((DRIVER, HANDLE));
        world.volume(size, source);
        world.attach();
        world
    }

    /// The same with a volume of an in-tree plugin, which this source describes.
    pub fn in_tree(size: &str, source: &Value) -> World {
        let mut world = World::bare(MIGRATED);
        world.volume_of(size, source);
        world.attach();
        world
    }

    /// The same served by the plugin itself, which has its gate off and needs no attachment.
    pub fn rehearsed(source: &Value) -> World {
        let mut world = World::bare(PLUGIN);
        world.update_local(|local| {
            local.migration = Migration::default().with(Plugin::GcePd, Phase::Off);
        });
        world.volume_of("1Gi", source);
        world
    }

    /// A node with a registered driver, and no volume yet.
    pub fn bare(served: (&'static str, &'static str)) -> World {
        let lab = Lab::new("ns", Local::new("n", "life-1", ROOT));
        let mut world = World { lab, machine: Machine::default(), served, held: Vec::new() };
        let facts = DriverFacts::new([NodeRpc::StageUnstageVolume, NodeRpc::ExpandVolume]);
        world.update_local(|local| {
            local.drivers.insert(served.0.into(), facts);
        });
        world.create(
            Kind::Node,
            json!({ "metadata": { "name": "n", "annotations": { names::AGENT_INCARNATION: "life-1" } },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] } }),
        );
        world
    }

    fn volume(&mut self, size: &str, source: &Value) {
        let mut csi = json!({ "driver": DRIVER, "volumeHandle": HANDLE, "fsType": "ext4",
            "volumeAttributes": { "made": "here" } });
        for (key, value) in source.as_object().unwrap() {
            csi[key] = value.clone();
        }
        self.volume_of(size, &json!({ "csi": csi }));
    }

    fn volume_of(&mut self, size: &str, source: &Value) {
        self.create(
            Kind::PersistentVolumeClaim,
            json!({ "metadata": { "name": "data" }, "spec": {
            "accessModes": ["ReadWriteOnce"], "volumeName": "pv1", "storageClassName": "",
            "resources": { "requests": { "storage": size } } } }),
        );
        let uid = self.get(Kind::PersistentVolumeClaim, "data").unwrap()["metadata"]["uid"].clone();
        let mut spec = json!({
            "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "mountOptions": ["noatime"],
            "claimRef": { "namespace": "ns", "name": "data", "uid": uid } });
        for (key, value) in source.as_object().unwrap() {
            spec[key] = value.clone();
        }
        self.create(Kind::PersistentVolume, json!({ "metadata": { "name": "pv1" }, "spec": spec }));
    }

    /// The volume is attached and reported.
    pub fn attach(&mut self) {
        let attacher = self.served.0;
        self.create(
            Kind::VolumeAttachment,
            json!({ "metadata": { "name": "va" }, "spec": {
            "attacher": attacher, "nodeName": "n", "source": { "persistentVolumeName": "pv1" } } }),
        );
        let status = json!({ "attached": true, "attachmentMetadata": { "lun": "3" } });
        self.patch_status(Kind::VolumeAttachment, "va", status);
        self.report_attached(true);
    }

    pub fn report_attached(&mut self, attached: bool) {
        let list = if attached { json!([{ "name": self.unique(), "devicePath": "" }]) } else { json!([]) };
        self.patch_status(Kind::Node, "n", json!({ "volumesAttached": list }));
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
        self.create(Kind::Pod, json!({ "metadata": { "name": name }, "spec": whole }));
    }

    pub fn delete_pod(&mut self, name: &str) {
        self.delete_within(Kind::Pod, name, 30);
    }

    /// The pod's object goes at once, whatever the node thinks.
    pub fn force_delete_pod(&mut self, name: &str) {
        self.delete(Kind::Pod, name);
    }

    pub fn status(&self, pod: &str) -> Value {
        self.get(Kind::Pod, pod).unwrap()["status"].clone()
    }

    pub fn node_lists(&self, list: &str) -> bool {
        let node = self.get(Kind::Node, "n").unwrap();
        let name = self.unique();
        let lists = |entry: &Value| entry == &json!(name) || entry["name"] == json!(name);
        node["status"][list].as_array().is_some_and(|entries| entries.iter().any(lists))
    }

    /// The watches show nothing new until [`World::thaw`].
    pub fn freeze(&mut self) {
        self.frozen = Object::KINDS.into();
    }

    /// The watches catch up.
    pub fn thaw(&mut self) {
        self.frozen.clear();
        self.sync();
    }

    pub fn pod_key(name: &str) -> Key {
        Key::Pod(ObjectKey::new("ns", name))
    }

    pub fn volume_key() -> Key {
        Key::Volume(unique())
    }

    /// The unique name of its volume.
    pub fn unique(&self) -> String {
        paths::unique_name(self.served.0, self.served.1)
    }

    /// Takes one step for a key; the action's name if there was one.
    pub fn step(&mut self, key: &Key) -> Option<&'static str> {
        let (action, effect) = self.begin(key)?;
        self.carry_out(key, &action, &effect);
        Some(action.name())
    }

    /// Begins a step for a key, and leaves it for later.
    pub fn hold(&mut self, key: &Key) {
        if let Some((action, effect)) = self.begin(key) {
            self.held.push((key.clone(), action, effect));
        }
    }

    /// Carries out the oldest step left for later.
    pub fn release(&mut self) {
        if !self.held.is_empty() {
            let (key, action, effect) = self.held.remove(0);
            self.carry_out(&key, &action, &effect);
        }
    }

    fn carry_out(&mut self, key: &Key, action: &crate::Action, effect: &Effect) {
        let outcome = match self.faults.remove(action.name()) {
            None => self.perform(effect),
            Some(Fault::AnswerLost) => {
                self.perform(effect);
                Outcome::Unknown("the answer was lost".into())
            }
            Some(fault) => self.fail(fault, effect),
        };
        self.finish(key, &outcome);
        self.pass(1);
        self.watch_processes();
        self.check_laws(action.name());
    }

    /// Steps until nothing is left to do, and answers with what was done.
    pub fn settle(&mut self) -> Vec<String> {
        let from = self.log.len();
        while !self.held.is_empty() {
            self.release();
        }
        for _ in 0..400 {
            let mut keys = Node::keys(&self.cache, self.local());
            keys.extend(self.engine.remembered().map(|(key, ..)| key.clone()));
            let stepped = keys.iter().filter(|key| self.step(key).is_some()).count();
            // Pauses are short in pretend time; restarts of containers are not waited for.
            let next = keys.iter().filter_map(|key| match self.decide(key) {
                Decision::Wait(until, why) if !RESTS.contains(&why.code) => Some(until),
                _ => None,
            });
            match next.min() {
                Some(until) if stepped == 0 => self.now = until,
                None if stepped == 0 => return self.log[from..].iter().map(ToString::to_string).collect(),
                Some(_) | None => {}
            }
        }
        panic!("never comes to rest: {:?}", &self.log[self.log.len() - 20..]);
    }

    pub fn watch_processes(&mut self) {
        let states = self.machine.states();
        if states.iter().any(|(name, state)| self.local().processes.get(name) != Some(state)) {
            self.update_local(|local| local.processes.extend(states));
        }
    }

    /// Time passes, and whatever that makes due is done.
    pub fn after_millis(&mut self, millis: u64) {
        self.now = self.now.after_millis(millis);
        self.settle();
    }

    /// The pod's process ends by itself.
    pub fn exit(&mut self, pod: &str, code: i32) {
        let now = self.now.0;
        let of_pod = |name: &&String| ProcessName::parse(name).unwrap().pod.name == pod;
        let names: Vec<String> = self.machine.processes.keys().filter(of_pod).cloned().collect();
        names.iter().for_each(|name| self.machine.end(name, code, now));
        self.watch_processes();
    }

    /// The agent dies and another incarnation begins: memory is empty, local facts are those of the machine.
    pub fn crash(&mut self, incarnation: &str) {
        // What was under way dies with the agent, save for writes that are already on the wire.
        for (_, _, effect) in core::mem::take(&mut self.held) {
            if let Effect::Write(_) = effect {
                self.late.push(effect);
            }
        }
        let mut local = Local::new("n", incarnation, ROOT);
        local.drivers = self.local().drivers.clone();
        local.migration = self.local().migration;
        for (path, bytes) in self.machine.files.iter() {
            let _ = local.load_record(path, Ok(bytes.clone()));
        }
        local.mounts = self.machine.staged.union(&self.machine.published).cloned().collect();
        local.mounts.extend(self.machine.memory.iter().cloned());
        self.engine = Engine::new(local);
        self.cache = Cache::of::<Node>();
        self.watch_processes();
        self.thaw();
        self.patch(
            Kind::Node,
            "n",
            json!({ "metadata": { "annotations": { names::AGENT_INCARNATION: incarnation } } }),
        );
    }

    /// Writes of the past arrive.
    pub fn land_late(&mut self) {
        self.lab.land_late();
        self.check_laws("a late write");
    }
}

impl World {
    /// The calls that were made of a driver while the world came to rest, and everything that was done.
    pub fn calls(&mut self) -> Vec<csi::Call> {
        let mut calls = Vec::new();
        for _ in 0..200 {
            let mut keys = Node::keys(&self.cache, self.local());
            keys.extend(self.engine.remembered().map(|(key, ..)| key.clone()));
            let mut stepped = false;
            for key in keys {
                let Some((action, effect)) = self.begin(&key) else { continue };
                stepped = true;
                if let Effect::Call { call, .. } = &effect {
                    calls.push(call.clone());
                }
                self.carry_out(&key, &action, &effect);
            }
            if !stepped {
                return calls;
            }
        }
        panic!("never comes to rest: {:?}", &self.log[self.log.len() - 20..]);
    }

    /// Changes the volume's object, which nobody may change once it is there: it is made anew.
    pub fn volume_with(&mut self, change: impl FnOnce(&mut Value)) {
        let mut volume = self.get(Kind::PersistentVolume, "pv1").unwrap();
        change(&mut volume["spec"]);
        let (spec, metadata) = (volume["spec"].clone(), json!({ "name": "pv1" }));
        self.patch(Kind::PersistentVolume, "pv1", json!({ "metadata": { "finalizers": null } }));
        self.delete(Kind::PersistentVolume, "pv1");
        self.create(Kind::PersistentVolume, json!({ "metadata": metadata, "spec": spec }));
    }

    /// The driver's object.
    pub fn driver(&mut self, spec: Value) {
        self.create(Kind::CSIDriver, json!({ "metadata": { "name": DRIVER }, "spec": spec }));
    }

    /// What the driver can do on this node.
    pub fn driver_can(&mut self, change: impl FnOnce(&mut DriverFacts)) {
        self.update_local(|local| change(local.drivers.get_mut(DRIVER).unwrap()));
    }

    pub fn uid(&self, pod: &str) -> String {
        self.get(Kind::Pod, pod).unwrap()["metadata"]["uid"].as_str().unwrap().into()
    }
}
