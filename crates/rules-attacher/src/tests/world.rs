//! A volume, two nodes and a driver that keeps a table, in the laboratory.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, Object, ObjectRef, PersistentVolume, VolumeAttachment, names};
use control::{Action as _, Effect, Endpoint, Outcome, Reply};
use csi::{Call, ControllerRpc, Response, v1};
use prove_lab::Lab;
use serde_json::{Value, json};

use crate::{Action, Attacher, Key, Local};

pub const DRIVER: &str = "local.csi.longshore";
pub const HANDLE: &str = "h-1";

/// The attachment to a node.
pub fn on(node: &str) -> Key {
    Key::Attachment(attachment_name(node))
}

pub fn attachment_name(node: &str) -> String {
    names::attachment_name(HANDLE, DRIVER, node)
}

pub fn finalizer() -> String {
    names::attacher_finalizer(DRIVER)
}

/// The laboratory and a driver. The watches deliver only when told to.
#[derive(Clone)]
pub struct World {
    lab: Lab<Attacher>,
    pub driver: Driver,
}

/// A driver that keeps a table.
#[derive(Clone, Default)]
pub struct Driver {
    /// The node ids the volume is attached to, in truth.
    pub attached: BTreeSet<String>,
    /// Every call it got.
    pub calls: Vec<Call>,
}

prove_lab::world_of!(World, lab: Attacher);

impl World {
    /// A volume with these access modes and two nodes, `a` and `b`, on which the driver is registered.
    pub fn new(modes: &[&str]) -> World {
        World::with(modes, json!({}))
    }

    /// The same, with more said about the volume's source.
    pub fn with(modes: &[&str], csi: Value) -> World {
        let mut world = World::empty(DRIVER);
        let mut source =
            json!({ "driver": DRIVER, "volumeHandle": HANDLE, "fsType": "ext4", "volumeAttributes": { "k": "v" } });
        rules_store::merge_patch(&mut source, &csi);
        world.create(
            Kind::PersistentVolume,
            json!({ "metadata": { "name": "v" }, "spec": {
            "capacity": { "storage": "1Gi" }, "accessModes": modes, "persistentVolumeReclaimPolicy": "Retain",
            "mountOptions": ["noatime"], "csi": source } }),
        );
        for node in ["a", "b"] {
            world.create(Kind::Node, json!({ "metadata": { "name": node } }));
            world.create(
                Kind::CSINode,
                json!({ "metadata": { "name": node }, "spec": {
                "drivers": [{ "name": DRIVER, "nodeID": format!("id-{node}"), "topologyKeys": null }] } }),
            );
        }
        world.sync();
        world
    }

    /// A cluster without volumes and nodes, and the attacher of this driver.
    pub fn empty(driver: &str) -> World {
        let local = Local::new(driver, [ControllerRpc::PublishUnpublishVolume]);
        let mut lab = Lab::new("n", local);
        lab.frozen = Object::KINDS.into();
        World { lab, driver: Driver::default() }
    }

    pub fn want(&mut self, node: &str) {
        let source = json!({ "persistentVolumeName": "v" });
        let spec = json!({ "attacher": DRIVER, "nodeName": node, "source": source });
        self.create(Kind::VolumeAttachment, json!({ "metadata": { "name": attachment_name(node) }, "spec": spec }));
    }

    pub fn unwant(&mut self, node: &str) {
        self.delete(Kind::VolumeAttachment, &attachment_name(node));
    }

    /// The attachment as it is, not as the controller sees it.
    pub fn real_attachment(&self, node: &str) -> Option<VolumeAttachment> {
        match self.object(&ObjectRef::cluster(Kind::VolumeAttachment, attachment_name(node)))? {
            Object::VolumeAttachment(attachment) => Some((*attachment).clone()),
            other => panic!("{other:?}"),
        }
    }

    pub fn real_volume(&self) -> Option<PersistentVolume> {
        real_volume(&self.lab)
    }

    /// What the API and the driver do with an action, whenever it arrives.
    pub fn land(&mut self, action: &Action) -> Outcome {
        self.land_effect(&action.effect())
    }

    pub fn land_effect(&mut self, effect: &Effect) -> Outcome {
        let World { lab, driver } = self;
        driver.land(lab, effect)
    }

    /// One look, and the action performed; its name, if there was one.
    pub fn step(&mut self, key: &Key) -> Option<&'static str> {
        let World { lab, driver } = self;
        driver.step(lab, key)
    }

    /// Looks until there is nothing to do, the cache always fresh.
    pub fn run(&mut self, key: &Key) -> Vec<&'static str> {
        let World { lab, driver } = self;
        lab.run_with(|lab| driver.step(lab, key))
    }
}

impl Driver {
    fn step(&mut self, lab: &mut Lab<Attacher>, key: &Key) -> Option<&'static str> {
        let (action, effect) = lab.begin(key)?;
        let outcome = self.land(lab, &effect);
        lab.finish(key, &outcome);
        Some(action.name())
    }

    fn land(&mut self, lab: &mut Lab<Attacher>, effect: &Effect) -> Outcome {
        if let Some(outcome) = lab.api(effect) {
            return outcome;
        }
        let Effect::Call { to, call } = effect else { panic!("{effect:?}") };
        assert_eq!(*to, Endpoint::Driver(lab.local().driver.clone()));
        self.calls.push(call.clone());
        Outcome::Done(Reply::Csi(self.answer(call, is_shared(lab))))
    }

    fn answer(&mut self, call: &Call, shared: bool) -> Response {
        match call {
            Call::ControllerPublishVolume(request) => {
                let publish_context = [("at".to_string(), request.node_id.clone())].into();
                self.attached.insert(request.node_id.clone());
                // Reliability 24.
                assert!(self.attached.len() == 1 || shared, "attached to two nodes: {:?}", self.attached);
                Response::ControllerPublishVolume(v1::ControllerPublishVolumeResponse { publish_context })
            }
            Call::ControllerUnpublishVolume(request) => {
                self.attached.remove(&request.node_id);
                Response::ControllerUnpublishVolume(v1::ControllerUnpublishVolumeResponse {})
            }
            Call::ListVolumes(request) => Response::ListVolumes(self.page(request)),
            other => panic!("{other:?}"),
        }
    }

    /// One volume a page: first one that says nothing about itself, then ours.
    fn page(&self, request: &v1::ListVolumesRequest) -> v1::ListVolumesResponse {
        use v1::list_volumes_response::{Entry, VolumeStatus};
        if request.starting_token.is_empty() {
            let silent = v1::Volume { volume_id: "silent".into(), ..Default::default() };
            let entries = alloc::vec![Entry { volume: Some(silent), status: None }, Entry::default()];
            return v1::ListVolumesResponse { entries, next_token: "2".into() };
        }
        let volume = v1::Volume { volume_id: HANDLE.into(), ..Default::default() };
        let status = VolumeStatus { published_node_ids: self.attached.iter().cloned().collect() };
        let entries = alloc::vec![Entry { volume: Some(volume), status: Some(status) }];
        v1::ListVolumesResponse { entries, next_token: String::new() }
    }
}

fn real_volume(lab: &Lab<Attacher>) -> Option<PersistentVolume> {
    match lab.object(&ObjectRef::cluster(Kind::PersistentVolume, "v"))? {
        Object::PersistentVolume(volume) => Some((*volume).clone()),
        other => panic!("{other:?}"),
    }
}

fn is_shared(lab: &Lab<Attacher>) -> bool {
    real_volume(lab).is_some_and(|volume| volume.spec.access_modes.iter().any(|mode| mode.as_str().ends_with("Many")))
}
