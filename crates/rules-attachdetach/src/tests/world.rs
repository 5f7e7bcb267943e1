//! A volume, its claim and two nodes, in the laboratory.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, Node, Object, ObjectRef, VolumeAttachment, names};
use control::{Action as _, Outcome};
use prove_lab::Lab;
use serde_json::{Value, json};

use crate::{Action, AttachDetach, Key};

pub const DRIVER: &str = "local.csi.longshore";
pub const HANDLE: &str = "h-1";
/// Attachments were called like this in the oldest design: `pv-<sha256(volume + node)>`, here of `v` and `a`.
pub const OLDEST_NAME: &str = "pv-198dea392afc21d070f8abfc7c06d11060f1b278e5d62501bd57f1159a72ebac";

pub fn unique_name() -> String {
    names::unique_volume_name(DRIVER, HANDLE)
}

pub fn on(node: &str) -> Key {
    Key::new("v", node)
}

/// The laboratory, with a volume and two nodes. The watches deliver only when told to.
#[derive(Clone)]
pub struct World(Lab<AttachDetach>);

prove_lab::world_of!(World, 0: AttachDetach);

impl World {
    /// A bound volume with these access modes, and two managed nodes, `a` and `b`.
    pub fn new(modes: &[&str]) -> World {
        let mut world = World(Lab::new("n", Default::default()));
        world.frozen = Object::KINDS.into();
        let modes = json!(modes);
        world.make(&format!(r#"claim c class="" volume=v modes={modes}"#));
        world.change("claim c status.phase=Bound");
        world.make(&format!("volume v driver={DRIVER} handle={HANDLE} modes={modes} policy=Delete claim=c"));
        world.node("a");
        world.node("b");
        world.sync();
        world
    }

    /// The same with pod `p` on node `a`, where its volume is attached and reported.
    pub fn attached() -> World {
        let mut world = World::new(&["ReadWriteOnce"]);
        world.pod("p", "a");
        world.run(&on("a"));
        world.attach("a");
        world.run(&on("a"));
        world
    }

    pub fn node(&mut self, name: &str) {
        self.make(&format!(r#"node {name} @{}="true""#, names::CONTROLLER_MANAGED_ATTACH));
    }

    pub fn pod(&mut self, name: &str, node: &str) {
        self.make(&format!("pod {name} node={node} claim=c spec.terminationGracePeriodSeconds=0"));
    }

    /// The node agent's report.
    pub fn in_use(&mut self, node: &str, used: bool) {
        let list = if used { json!([unique_name()]) } else { Value::Null };
        self.patch_status(Kind::Node, node, json!({ "volumesInUse": list }));
    }

    /// The attacher's finalizer and word.
    pub fn attach(&mut self, node: &str) {
        let name = attachment_name(node);
        self.patch(Kind::VolumeAttachment, &name, json!({ "metadata": { "finalizers": ["external-attacher/x"] } }));
        self.patch_status(Kind::VolumeAttachment, &name, json!({ "attached": true }));
    }

    /// The attacher lets an attachment go that is being deleted.
    pub fn release(&mut self, node: &str) {
        let body = json!({ "metadata": { "finalizers": null } });
        self.patch(Kind::VolumeAttachment, &attachment_name(node), body);
    }

    /// The node as it is, not as the controller sees it.
    pub fn real_node(&self, name: &str) -> Option<Node> {
        match self.object(&ObjectRef::cluster(Kind::Node, name))? {
            Object::Node(node) => Some((*node).clone()),
            other => panic!("{other:?}"),
        }
    }

    /// The attachment as it is.
    pub fn real_attachment(&self, node: &str) -> Option<VolumeAttachment> {
        match self.object(&ObjectRef::cluster(Kind::VolumeAttachment, attachment_name(node)))? {
            Object::VolumeAttachment(attachment) => Some((*attachment).clone()),
            other => panic!("{other:?}"),
        }
    }

    pub fn reported(&self, node: &str) -> bool {
        self.real_node(node).is_some_and(|node| node.reports_attached(&unique_name()))
    }

    /// What the API does with an action, whenever it arrives.
    pub fn land(&mut self, act: &Action) -> Outcome {
        self.api(&act.effect()).unwrap()
    }

    /// The same with a memory that is lost before every look.
    pub fn run_forgetful(&mut self, key: &Key) -> Vec<&'static str> {
        let mut done = Vec::new();
        self.sync();
        loop {
            self.forget();
            let Some(name) = self.step(key) else { return done };
            done.push(name);
            self.sync();
            assert!(done.len() < 20, "it does not come to rest: {done:?}");
        }
    }
}

pub fn attachment_name(node: &str) -> String {
    names::attachment_name(HANDLE, DRIVER, node)
}
