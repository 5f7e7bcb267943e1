//! PV-58: a VolumeAttributesClass stays while something has it.

use api::{Kind, ObjectKey, names};
use prove_lab::Lab;
use serde_json::{Value, json};

use crate::AttributesProtection;

const CLASS: Kind = Kind::VolumeAttributesClass;

struct World(Lab<AttributesProtection>);

prove_lab::world_of!(World, 0: AttributesProtection);

impl World {
    fn new() -> World {
        let mut world = World(Lab::new("n", ()));
        world.create(CLASS, json!({ "metadata": { "name": "gold" }, "driverName": "d" }));
        world
    }
}

fn claim(name: &str, class: &str) -> Value {
    let requests = json!({ "requests": { "storage": "1Gi" } });
    let mut body = json!({ "metadata": { "name": name },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": requests } });
    if !class.is_empty() {
        body["spec"]["volumeAttributesClassName"] = class.into();
    }
    body
}

fn volume(class: &str) -> Value {
    json!({ "metadata": { "name": "v" }, "spec": { "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" },
        "csi": { "driver": "d", "volumeHandle": "v" }, "volumeAttributesClassName": class } })
}

#[test]
fn pv_58_a_class_stays_while_a_claim_or_volume_has_it_or_is_to_have_it() {
    for which in ["volume", "wanted", "current", "target"] {
        let mut world = World::new();
        match which {
            "volume" => world.create(Kind::PersistentVolume, volume("gold")),
            "wanted" => world.create(Kind::PersistentVolumeClaim, claim("data", "gold")),
            _status => world.create(Kind::PersistentVolumeClaim, claim("data", "")),
        };
        let told = match which {
            "current" => json!({ "currentVolumeAttributesClassName": "gold" }),
            _target => json!({ "modifyVolumeStatus":
                { "status": "InProgress", "targetVolumeAttributesClassName": "gold" } }),
        };
        if ["current", "target"].contains(&which) {
            world.patch_status(Kind::PersistentVolumeClaim, "data", told);
        }
        world.delete(CLASS, "gold");
        world.settle();
        assert_eq!(world.why(&"gold".into()).code, "ClassInUse", "{which}");
        match which {
            "volume" => {
                world.patch(Kind::PersistentVolume, "v", json!({ "metadata": { "finalizers": null } }));
                world.delete(Kind::PersistentVolume, "v");
            }
            _claim => {
                world.patch(Kind::PersistentVolumeClaim, "data", json!({ "metadata": { "finalizers": null } }));
                world.delete(Kind::PersistentVolumeClaim, "data");
            }
        }
        world.settle();
        assert!(world.get(CLASS, "gold").is_none(), "{which}");
    }
}

#[test]
fn pv_58_a_class_that_nothing_has_goes_at_once_and_one_without_protection_gets_it() {
    let mut world = World::new();
    world.create(Kind::PersistentVolumeClaim, claim("data", "silver"));
    world.patch(CLASS, "gold", json!({ "metadata": { "finalizers": null } }));
    world.settle();
    assert_eq!(world.actions, ["AddFinalizer(gold)"]);
    let class = world.cache.attributes_class(&ObjectKey::cluster("gold")).unwrap();
    assert!(class.metadata.has_finalizer(names::VAC_PROTECTION));
    world.delete(CLASS, "gold");
    world.settle();
    assert!(world.get(CLASS, "gold").is_none());
}
