//! Volumes of in-tree plugins that CSI drivers have taken over: who attaches them to which node.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Kind, Value, names};
use control::Rules as _;
use prove_lab::Lab;
use rules_translate::{Migration, Phase, Plugin};
use serde_json::json;

use crate::{AttachDetach, Key, Local};

const PD: &str = "pd.csi.storage.gke.io";
const PLUGIN: &str = "kubernetes.io/gce-pd";
const HANDLE: &str = "projects/UNSPECIFIED/zones/z/disks/disk-1";
/// Of a pod's own volume nobody says the zone.
const OWN: &str = "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk-1";

fn local(phase: Phase) -> Local {
    Local { migration: Migration::OFF.with(Plugin::GcePd, phase), ..Local::default() }
}

/// Volume `v` of the plugin, bound to claim `c`, and managed nodes `a` and `b` that say nothing of plugins.
struct World(Lab<AttachDetach>);

prove_lab::world_of!(World, 0: AttachDetach);

impl World {
    fn new(phase: Phase) -> World {
        let disk = json!({ "gcePersistentDisk": { "pdName": "disk-1", "fsType": "ext4" } });
        World::with(phase, disk)
    }

    fn with(phase: Phase, source: Value) -> World {
        let mut world = World(Lab::new("n", local(phase)));
        world.make(r#"claim c class="" volume=v modes=["ReadWriteOnce"]"#);
        world.change("claim c status.phase=Bound");
        let claim = world.json(Kind::PersistentVolumeClaim, "c");
        let held = json!({ "namespace": "n", "name": "c", "uid": claim["metadata"]["uid"] });
        let mut spec = json!({ "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "claimRef": held });
        spec.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
        let labels = json!({ names::ZONE: "z" });
        world.create(Kind::PersistentVolume, json!({ "metadata": { "name": "v", "labels": labels }, "spec": spec }));
        for node in ["a", "b"] {
            world.make(&format!(r#"node {node} @{}="true""#, names::CONTROLLER_MANAGED_ATTACH));
        }
        world.sync();
        world
    }

    fn pod(&mut self, name: &str, node: &str) {
        self.make(&format!("pod {name} node={node} claim=c spec.terminationGracePeriodSeconds=0"));
    }

    /// A pod that holds the disk itself.
    fn holder(&mut self, name: &str, node: &str, disk: &str) {
        let volume = json!({ "name": "data", "gcePersistentDisk": { "pdName": disk, "fsType": "ext4" } });
        let spec = json!({ "nodeName": node, "terminationGracePeriodSeconds": 0, "volumes": [volume],
            "containers": [{ "name": "main", "image": "i" }] });
        self.create(Kind::Pod, json!({ "metadata": { "name": name }, "spec": spec }));
    }

    /// What the node's CSINode says of the plugins that it leaves to drivers.
    fn says(&mut self, node: &str, plugins: Value) {
        let metadata = json!({ "name": node, "annotations": { names::MIGRATED_PLUGINS: plugins } });
        if self.list(Kind::CSINode).iter().any(|one| one["metadata"]["name"] == *node) {
            return self.patch(Kind::CSINode, node, json!({ "metadata": metadata }));
        }
        self.create(Kind::CSINode, json!({ "metadata": metadata, "spec": { "drivers": [] } }));
    }

    fn in_use(&mut self, node: &str, used: &[&str]) {
        self.patch_status(Kind::Node, node, json!({ "volumesInUse": used }));
    }

    fn attached(&mut self, node: &str, handle: &str) {
        let name = names::attachment_name(handle, PD, node);
        self.patch(Kind::VolumeAttachment, &name, json!({ "metadata": { "finalizers": ["external-attacher/x"] } }));
        self.patch_status(Kind::VolumeAttachment, &name, json!({ "attached": true }));
    }

    fn released(&mut self, node: &str, handle: &str) {
        let name = names::attachment_name(handle, PD, node);
        self.patch(Kind::VolumeAttachment, &name, json!({ "metadata": { "finalizers": null } }));
    }

    fn attachments(&self) -> Vec<Value> {
        self.list(Kind::VolumeAttachment)
    }

    fn text(&self, key: &Key) -> String {
        self.why(key).text
    }

    fn reports(&self, node: &str) -> Value {
        self.json(Kind::Node, node)["status"]["volumesAttached"].clone()
    }

    /// Attached to node `a` for pod `p` by the driver, and reported.
    fn served() -> World {
        let mut world = World::new(Phase::On);
        world.says("a", json!(PLUGIN));
        world.pod("p", "a");
        world.run(&on("a"));
        world.attached("a", HANDLE);
        assert_eq!(world.run(&on("a")), ["ReportAttached"]);
        world
    }
}

fn on(node: &str) -> Key {
    Key::new("v", node)
}

fn own(node: &str) -> Key {
    Key::new(names::unique_volume_name(PD, OWN), node)
}

// S4-32, S4-39, S4-46, AD-46, AD-47: every row of the decision table, and the phase in which there is no plugin.
#[test]
fn s4_32_who_attaches_is_decided_by_the_node_and_the_gate() {
    let lists = || json!(format!("kubernetes.io/aws-ebs,{PLUGIN}"));
    for (phase, says, expected) in [
        (Phase::On, None, "ServedByPlugin"),
        (Phase::On, Some(Value::Null), "ServedByPlugin"),
        (Phase::On, Some(json!("kubernetes.io/aws-ebs")), "ServedByPlugin"),
        (Phase::On, Some(lists()), "AskingNode"),
        (Phase::Off, None, "ServedByPlugin"),
        (Phase::Off, Some(json!("kubernetes.io/aws-ebs")), "ServedByPlugin"),
        (Phase::Off, Some(lists()), "Disputed"),
        (Phase::Complete, None, "Attaching"),
        (Phase::Complete, Some(lists()), "Attaching"),
    ] {
        let mut world = World::new(phase);
        if let Some(says) = says.clone() {
            world.says("a", says);
        }
        world.pod("p", "a");
        world.sync();
        assert_eq!(world.code(&on("a")), expected, "{phase:?} {says:?}");
        world.run(&on("a"));
        let driver = matches!(expected, "Attaching" | "AskingNode");
        assert_eq!(world.attachments().len(), usize::from(driver), "{phase:?} {says:?}");
    }
}

// S4-33: a node that was switched while the cache still tells what it said before is asked itself, for every pod that
// comes, and nothing is attached to it by the driver.
#[test]
fn s4_33_a_node_is_asked_past_the_cache_before_the_driver_attaches() {
    let mut world = World::new(Phase::On);
    world.says("a", json!(PLUGIN));
    world.pod("p", "a");
    world.sync();
    world.frozen.insert(Kind::CSINode);
    world.says("a", json!(""));
    assert_eq!(world.step(&on("a")), Some("AskNode"));
    assert_eq!(world.code(&on("a")), "BackOff", "the cache is behind");
    world.frozen.clear();
    world.sync();
    assert_eq!(world.code(&on("a")), "ServedByPlugin");
    assert!(world.attachments().is_empty());

    // The answer is for one pod: with another the node may have been drained and switched.
    world.says("a", json!(PLUGIN));
    world.sync();
    world.pass(60_000);
    assert_eq!(world.step(&on("a")), Some("AskNode"));
    assert_eq!(world.code(&on("a")), "Attaching");
    world.delete(Kind::Pod, "p");
    world.pod("p", "a");
    world.sync();
    assert_eq!(world.code(&on("a")), "AskingNode");
}

// S4-12, S4-17, S4-39: the attachment is the driver's, under the translated name, and names the volume as it is; the
// node is told the driver's name for the volume.
#[test]
fn s4_39_what_is_wanted_is_the_translated_volume() {
    let world = World::served();
    let made = &world.attachments()[0];
    assert_eq!(made["metadata"]["name"], names::attachment_name(HANDLE, PD, "a"));
    assert_eq!(made["spec"]["attacher"], PD);
    assert_eq!(made["spec"]["source"], json!({ "persistentVolumeName": "v" }));
    assert_eq!(world.reports("a")[0]["name"], names::unique_volume_name(PD, HANDLE));
    let volume = world.json(Kind::PersistentVolume, "v");
    assert!(volume["spec"]["csi"].is_null() && volume["spec"]["gcePersistentDisk"]["pdName"] == "disk-1");
}

// S4-32: the row of errors tells the pod what to switch, and what is attached already stays until nobody needs it.
#[test]
fn s4_32_a_dispute_is_told_and_takes_nothing_away() {
    let mut world = World::new(Phase::Off);
    world.says("a", json!(PLUGIN));
    world.pod("p", "a");
    world.sync();
    let text = world.text(&on("a"));
    for part in ["node a", PLUGIN, PD, "CSIMigrationGCE off", "switch it on for the controllers", "drain the node"] {
        assert!(text.contains(part), "{text}");
    }
    let event = <AttachDetach as control::Narrate>::rest_event(&on("a"), &world.why_of(&on("a")));
    assert_eq!(event.map(|(_, reason)| reason), Some("FailedAttachVolume"));

    let mut world = World::served();
    world.in_use("a", &[&names::unique_volume_name(PD, HANDLE)]);
    world.restart(local(Phase::Off));
    assert!(world.run(&on("a")).is_empty());
    assert_eq!(world.code(&on("a")), "Attached");
    world.delete(Kind::Pod, "p");
    world.in_use("a", &[]);
    world.sync();
    assert_eq!(world.run(&on("a")), ["TakeReportBack", "DeleteAttachment"]);
}

// S4-15, S4-33: what migration attached is detached though the plugin serves the node now, or the gate is off, and not
// while the node uses it, under whichever name.
#[test]
fn s4_15_what_migration_attached_is_detached() {
    let names = [names::unique_volume_name(PD, HANDLE), format!("{PLUGIN}/disk-1")];
    for (gate, used) in [(Phase::On, 0), (Phase::Off, 0), (Phase::On, 1), (Phase::Off, 1)] {
        let mut world = World::served();
        world.says("a", Value::Null);
        world.in_use("a", &[&names[used]]);
        world.restart(local(gate));
        world.run(&on("a"));
        assert_eq!(world.code(&on("a")), "InUse", "{gate:?} {used}");
        assert!(world.attachments()[0]["metadata"]["deletionTimestamp"].is_null());
        world.in_use("a", &[]);
        world.sync();
        let done = world.run(&on("a"));
        assert_eq!(done.last(), Some(&"DeleteAttachment"), "{gate:?} {used} {done:?}");
        world.released("a", HANDLE);
        world.sync();
        assert_eq!(world.code(&on("a")), "ServedByPlugin");
        assert!(world.text(&on("a")).contains(PLUGIN) && world.decide(&on("a")).why().settled);
    }
}

// S4-33, S4-34: a node that was switched without being drained is not attached to by the driver while its plugin has
// the volume, and no other node is.
#[test]
fn s4_33_a_volume_that_a_plugin_holds_is_left_to_it() {
    let by_plugin = format!("{PLUGIN}/disk-1");
    for (holder, expected) in [("a", "PluginHolds"), ("b", "InUseElsewhere")] {
        let mut world = World::new(Phase::On);
        world.says("a", json!(PLUGIN));
        world.in_use(holder, &[&by_plugin]);
        world.pod("p", "a");
        world.sync();
        assert!(world.run(&on("a")).is_empty(), "{holder}");
        assert_eq!(world.code(&on("a")), expected);
        // Once it is let go, nobody has to look again by himself.
        let before = world.woken_by(Kind::Node, holder, |world| world.in_use(holder, &[]));
        assert!(before.contains(&on("a")), "{before:?}");
        assert_eq!(world.run(&on("a")), ["AskNode", "CreateAttachment"]);
    }
}

// A volume that cannot be translated is told in the words of the translation, where a driver is to attach it.
#[test]
fn s4_11_what_cannot_be_translated_waits_with_a_sentence() {
    let odd = || json!({ "awsElasticBlockStore": { "volumeID": "aws://z/snap-1" } });
    let mut world = World::with(Phase::On, odd());
    world.restart(Local { migration: Migration::default(), ..Local::default() });
    assert_eq!(world.code(&on("a")), "NotWanted");
    world.pod("p", "a");
    world.sync();
    assert_eq!(world.code(&on("a")), "Unattachable");
    assert!(world.text(&on("a")).contains("it should be vol-ID"), "{}", world.text(&on("a")));
    world.restart(Local { migration: Migration::OFF, ..Local::default() });
    assert_eq!(world.code(&on("a")), "ServedByPlugin");
    // S4-37: no plugin and no driver is another matter.
    let mut world = World::with(Phase::On, json!({ "nfs": { "server": "s", "path": "/" } }));
    world.pod("p", "a");
    world.sync();
    assert_eq!(world.code(&on("a")), "NotCsi");
}

// S4-16, S4-17: a pod's own volume is held by its attachment, which is found again by its name when the pod is gone and
// the controller began anew. S4-19: so that nothing stays attached, where Kubernetes would leave it.
#[test]
fn s4_16_a_pods_own_volume_is_attached_and_detached() {
    let mut world = World::new(Phase::On);
    world.says("a", json!(PLUGIN));
    world.holder("p", "a", "disk-1");
    world.sync();
    let keys = AttachDetach::keys(&world.cache, &local(Phase::On));
    assert_eq!(keys, [own("a")]);
    assert_eq!(world.run(&own("a")), ["AskNode", "CreateAttachment"]);
    let made = &world.attachments()[0];
    assert_eq!(made["metadata"]["name"], names::attachment_name(OWN, PD, "a"));
    let source = &made["spec"]["source"];
    assert!(source["persistentVolumeName"].is_null(), "both are never set");
    assert_eq!(source["inlineVolumeSpec"]["csi"]["volumeHandle"], OWN);
    assert_eq!(source["inlineVolumeSpec"]["accessModes"], json!(["ReadWriteOnce"]));
    world.attached("a", OWN);
    assert_eq!(world.run(&own("a")), ["ReportAttached"]);
    assert_eq!(world.reports("a")[0]["name"], names::unique_volume_name(PD, OWN));

    world.in_use("a", &[&names::unique_volume_name(PD, OWN)]);
    world.delete(Kind::Pod, "p");
    world.restart(local(Phase::On));
    assert_eq!(AttachDetach::keys(&world.cache, &local(Phase::On)), [own("a")]);
    world.run(&own("a"));
    assert_eq!(world.code(&own("a")), "InUse");
    world.in_use("a", &[]);
    world.sync();
    let done = world.run(&own("a"));
    assert_eq!(done.last(), Some(&"DeleteAttachment"), "{done:?}");
    world.released("a", OWN);
    world.sync();
    assert!(world.attachments().is_empty() && world.reports("a").is_null());
}

// A pod's own disk is for one node, too; and one that the plugin serves, or that cannot be told apart, is not attached.
#[test]
fn s4_16_a_pods_own_volume_is_for_one_node_and_one_server() {
    let mut world = World::new(Phase::On);
    world.says("a", json!(PLUGIN));
    world.holder("p", "a", "disk-1");
    world.holder("q", "b", "disk-1");
    world.sync();
    assert_eq!(world.code(&own("b")), "ServedByPlugin");
    world.says("b", json!(PLUGIN));
    world.sync();
    assert_eq!(world.run(&own("a")), ["AskNode", "CreateAttachment"]);
    assert!(world.run(&own("b")).is_empty());
    assert_eq!(world.code(&own("b")), "AttachedElsewhere");

    let mut world = World::new(Phase::On);
    let volume = json!({ "name": "data", "awsElasticBlockStore": { "volumeID": "aws://z/snap-1" } });
    let spec = json!({ "nodeName": "a", "volumes": [volume], "containers": [{ "name": "main", "image": "i" }] });
    world.create(Kind::Pod, json!({ "metadata": { "name": "odd" }, "spec": spec }));
    world.restart(Local { migration: Migration::default(), ..Local::default() });
    let keys = AttachDetach::keys(&world.cache, &Local::default());
    assert_eq!(keys, [Key::new("n/odd/data", "a")]);
    assert_eq!(world.code(&keys[0]), "Unattachable");
    let told = <AttachDetach as control::Narrate>::event_targets(&keys[0], &world.cache, &Local::default());
    assert_eq!((told[0].kind, told[0].key.name.as_str()), (Kind::Pod, "odd"));
}

// A disk that is a PersistentVolume as well is attached as one of both.
#[test]
fn s4_16_a_disk_is_not_attached_under_two_names() {
    let mut world = World::new(Phase::On);
    world.patch(Kind::PersistentVolume, "v", json!({ "metadata": { "labels": null } }));
    world.says("a", json!(PLUGIN));
    world.holder("p", "a", "disk-1");
    world.pod("q", "a");
    world.sync();
    assert_eq!(world.code(&own("a")), "Unattachable");
    assert!(world.text(&own("a")).contains("use a claim of volume v"), "{}", world.text(&own("a")));
    assert_eq!(world.run(&on("a")), ["AskNode", "CreateAttachment"]);
}

// S4-35, S4-36: what the node says of its plugins wakes what is on it, and nothing else it says does.
#[test]
fn s4_35_a_node_that_is_switched_wakes_its_volumes() {
    let mut world = World::new(Phase::On);
    world.says("a", json!(""));
    world.pod("p", "a");
    world.holder("q", "a", "disk-2");
    world.sync();
    let woken = world.woken_by(Kind::CSINode, "a", |world| world.says("a", json!(PLUGIN)));
    assert_eq!(woken.len(), 2, "{woken:?}");
    assert!(woken.contains(&on("a")));
    let woken = world.woken_by(Kind::CSINode, "a", |world| {
        let drivers = json!({ "drivers": [{ "name": "d", "nodeID": "a" }] });
        world.patch(Kind::CSINode, "a", json!({ "spec": drivers }));
    });
    assert!(woken.is_empty(), "{woken:?}");
}

impl World {
    fn why_of(&self, key: &Key) -> control::Why<crate::Reason> {
        let view = AttachDetach::view(key, &self.cache, self.local());
        AttachDetach::decide(control::Timestamp(0), &view, &Default::default()).why().clone()
    }

    /// The keys that a change of an object wakes.
    fn woken_by(&mut self, kind: Kind, name: &str, change: impl FnOnce(&mut World)) -> Vec<Key> {
        let object = |world: &World| {
            let found = world.list(kind).into_iter().find(|one| one["metadata"]["name"] == *name);
            found.map(|found| api::Object::from_json(kind, found).unwrap())
        };
        let before = object(self);
        change(self);
        self.sync();
        let change = control::Change { before, after: object(self) };
        AttachDetach::wakes(&change, &self.cache, self.local())
    }
}

// A pod's own disk that is a PersistentVolume as well: whichever of them is attached, the other waits and hears of its
// end by itself, the volume when the attachment of the pod's own goes, the pod's own when the volume does.
#[test]
fn whoever_waits_for_the_same_disk_is_woken_when_it_is_let_go() {
    // Without a zone the disk of the volume has the name that a pod's own has.
    let unprotected = |world: &mut World| {
        world.patch(Kind::PersistentVolume, "v", json!({ "metadata": { "finalizers": null } }));
    };
    let without_zone = |world: &mut World| {
        unprotected(world);
        let mut body = world.json(Kind::PersistentVolume, "v");
        world.delete(Kind::PersistentVolume, "v");
        body["metadata"] = json!({ "name": "v" });
        world.create(Kind::PersistentVolume, body);
        unprotected(world);
    };
    let mut world = World::new(Phase::On);
    world.says("a", json!(PLUGIN));
    world.holder("p", "a", "disk-1");
    world.sync();
    assert_eq!(world.run(&own("a")), ["AskNode", "CreateAttachment"]);
    world.attached("a", OWN);
    world.run(&own("a"));
    without_zone(&mut world);
    world.pod("q", "a");
    world.sync();
    assert_eq!(world.code(&on("a")), "Unattachable");
    world.delete(Kind::Pod, "p");
    world.sync();
    assert_eq!(world.run(&own("a")).last(), Some(&"DeleteAttachment"));
    let attachment = names::attachment_name(OWN, PD, "a");
    let woken = world.woken_by(Kind::VolumeAttachment, &attachment, |world| world.released("a", OWN));
    assert!(woken.contains(&on("a")), "{woken:?}");
    assert_eq!(world.run(&on("a")).last(), Some(&"CreateAttachment"));

    let mut world = World::new(Phase::On);
    world.says("a", json!(PLUGIN));
    without_zone(&mut world);
    world.holder("p", "a", "disk-1");
    world.sync();
    assert_eq!(world.code(&own("a")), "Unattachable");
    let woken = world.woken_by(Kind::PersistentVolume, "v", |world| world.delete(Kind::PersistentVolume, "v"));
    assert!(woken.contains(&own("a")), "{woken:?}");
    assert_eq!(world.run(&own("a")).last(), Some(&"CreateAttachment"));
}
