//! The laboratory with a pretend driver: rules woken by changes alone. After every step the laws are checked.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, ObjectKey, ObjectRef, Value, names};
use control::{Action, Decision, Effect, Next, Outcome, Rules};
use csi::{Call, ControllerRpc, PluginService, v1};
use prove_lab::{Fault, Lab, assert_permitted};
use serde_json::json;

use super::driver::{Driver, id_of};
use super::sides::Side;
use crate::{Capacity, Intent, Key, Local, Provisioner, Settings, Sources};

pub(super) const CLAIM: Kind = Kind::PersistentVolumeClaim;
pub(super) const VOLUME: Kind = Kind::PersistentVolume;

pub(super) struct World {
    lab: Lab<Provisioner>,
    pub(super) sources: Side<Sources>,
    pub(super) capacity: Side<Capacity>,
    pub(super) driver: Driver,
    /// Every action done, with its object.
    pub(super) log: Vec<String>,
    pub(super) looks: usize,
    /// The action with this number happens, and its answer is lost.
    pub(super) lose_answer: Option<usize>,
}

prove_lab::world_of!(World, lab: Provisioner);

/// Intents are on the claims; `in_journal` has them in the journal.
pub(super) fn local() -> Local {
    let settings = Settings { intent: Intent::OnClaim, namespace: "n".into(), ..Settings::default() };
    Local { settings: settings.into(), ..Local::new("d") }
}

impl World {
    pub(super) fn new() -> World {
        World {
            lab: Lab::new("n", local()),
            sources: Side::new(local()),
            capacity: Side::new(local()),
            driver: Driver::default(),
            log: Vec::new(),
            looks: 0,
            lose_answer: None,
        }
    }

    pub(super) fn claim(&self, name: &str) -> Value {
        self.get(CLAIM, name).unwrap()
    }

    pub(super) fn volume(&self, name: &str) -> Value {
        self.get(VOLUME, name).unwrap()
    }

    pub(super) fn why_claim(&self) -> &'static str {
        self.code(&self.key())
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
        let journal = self.object(&ObjectRef { kind: Kind::Lease, key: self.engine.local().journal() });
        journal.map(|lease| lease.meta().annotations.clone()).unwrap_or_default()
    }

    /// An intent for the volume of this name is recorded somewhere.
    pub(super) fn is_intended(&self, name: &str) -> bool {
        let names_it = |uid: &str| self.engine.local().volume_name(uid) == name;
        let on_claim = self.list(CLAIM).iter().any(|claim| {
            let meta = &claim["metadata"];
            let held = meta["finalizers"].to_string().contains(names::PROVISIONING_INTENT);
            held && names_it(meta["uid"].as_str().unwrap())
        });
        let uid = |entry: &String| Some(entry.strip_prefix(names::JOURNAL_ENTRY)?.rsplit_once('.')?.0.to_string());
        on_claim || self.entries().keys().filter_map(uid).any(|uid| names_it(&uid))
    }

    /// Performs at most `most` actions, letting time pass; true if there was nothing left to do.
    pub(super) fn run_for(&mut self, most: usize) -> bool {
        let mut done = 0;
        loop {
            if done == most && !self.is_at_rest() {
                return false;
            }
            let lab = &mut self.lab;
            match lab.engine.next(lab.now, &lab.cache) {
                Next::Idle(None) => return true,
                Next::Idle(Some(until)) => self.now = self.now.max(until),
                Next::Rested { .. } | Next::Waiting { .. } => self.looks += 1,
                Next::Begin { key, effect } => {
                    (done, self.looks) = (done + 1, self.looks + 1);
                    self.carry_out(&key, &effect);
                }
            }
        }
    }

    /// No key in the queue has anything to do, now or later.
    fn is_at_rest(&self) -> bool {
        self.engine.queued().all(|key| matches!(self.decide(key), Decision::Rest(_)))
    }

    /// Performs the action just begun, and checks what must hold whatever happens.
    fn carry_out(&mut self, key: &Key, effect: &Effect) {
        let action = self.engine.doing(key).unwrap().action.clone();
        if self.lose_answer == Some(self.log.len()) {
            self.faults.insert(action.name(), Fault::AnswerLost);
        }
        self.log.push(format!("{action:?}"));
        let got = self.perform(&action, effect);
        self.finish(key, &got);
        self.check_laws();
    }

    /// Performs an action of any controller of this crate.
    pub(super) fn perform<A: Action>(&mut self, action: &A, effect: &Effect) -> Outcome {
        assert_permitted(action, effect);
        if let Effect::Call { call: Call::CreateVolume(request), .. } = effect {
            self.check_intent(&request.name);
        }
        let World { lab, driver, .. } = self;
        let name = lab.local().driver.clone();
        lab.perform(action.name(), effect, |effect| driver.answer_to(&name, effect))
    }

    pub(super) fn run(&mut self) {
        assert!(self.run_for(100), "no rest after {:?}", self.log);
        for key in Provisioner::keys(&self.cache, self.engine.local()) {
            assert!(!matches!(self.decide(&key), Decision::Do(..)), "{key} was not woken: {:?}", self.decide(&key));
        }
    }

    /// Reliability 6: CreateVolume begins only after the intent is durable.
    fn check_intent(&self, name: &str) {
        let promised = self.engine.local().settings.intent != Intent::InMemory;
        assert!(!promised || self.is_intended(name), "CreateVolume without an intent after {:?}", self.log);
    }

    /// Reliability 1, 4, 5: every volume is accounted for, none twice, and what is recorded is there.
    fn check_laws(&self) {
        let volumes = self.list(VOLUME);
        let handle = |volume: &Value| {
            let spec = &volume["spec"];
            let handle = spec["csi"]["volumeHandle"].as_str().or(spec["awsElasticBlockStore"]["volumeID"].as_str());
            handle.unwrap_or_default().to_string()
        };
        for name in self.driver.volumes.keys() {
            let recorded = volumes.iter().filter(|volume| handle(volume) == id_of(name)).count();
            // Upstream's protocol keeps no such promise.
            let promised = self.engine.local().settings.intent != Intent::InMemory;
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

    /// The process dies and comes back: whatever it kept in mind is gone.
    pub(super) fn restart(&mut self) {
        let local = self.engine.local().in_view();
        self.lab.restart(local);
    }

    /// What every controller of this crate knows of the driver and of the operator's wishes.
    pub(super) fn update_local(&mut self, change: impl Fn(&mut Local)) {
        let lab = &mut self.lab;
        lab.engine.update_local(lab.now, &lab.cache, &change);
        self.sources.update_local(lab.now, &change);
        self.capacity.update_local(lab.now, &change);
    }

    /// Under other settings.
    pub(super) fn with(mut self, change: impl FnOnce(&mut Settings)) -> World {
        let mut settings = Settings::clone(&self.engine.local().settings);
        change(&mut settings);
        let settings = alloc::sync::Arc::new(settings);
        self.update_local(|local| local.settings = settings.clone());
        self
    }

    /// With a driver that can do everything.
    pub(super) fn able(mut self) -> World {
        self.update_local(|local| {
            local.capabilities.extend([PluginService::VolumeAccessibilityConstraints]);
            local.capabilities.extend([
                ControllerRpc::CreateDeleteSnapshot,
                ControllerRpc::CloneVolume,
                ControllerRpc::ModifyVolume,
                ControllerRpc::SingleNodeMultiWriter,
            ]);
        });
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
        self.engine.local().volume_name(&self.uid())
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
        self.patch(CLAIM, "data", json!({ "metadata": { "finalizers": finalizers } }));
    }

    pub(super) fn release_volumes(&mut self) {
        for volume in self.list(VOLUME) {
            let name = volume["metadata"]["name"].as_str().unwrap();
            if self.get(CLAIM, "data").is_none() && volume["status"]["phase"] != "Released" {
                self.patch_status(VOLUME, name, json!({ "phase": "Released" }));
            }
        }
    }

    /// What binding does for a volume being deleted that is not bound.
    pub(super) fn unprotect_volumes(&mut self) {
        for volume in self.list(VOLUME).iter().filter(|volume| !volume["metadata"]["deletionTimestamp"].is_null()) {
            let rest: Vec<&Value> = volume["metadata"]["finalizers"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|f| *f != names::PV_PROTECTION)
                .collect();
            let name = volume["metadata"]["name"].as_str().unwrap();
            self.patch(VOLUME, name, json!({ "metadata": { "finalizers": rest } }));
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
        let unrecorded = self.get(CLAIM, "data").is_none() && self.list(VOLUME).is_empty();
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
