//! A world in words.

use std::fmt::Write as _;

use crate::world::World;

impl World {
    /// For people: objects, driver, machines, and what every controller thinks.
    pub fn describe(&self) -> String {
        let mut out = String::new();
        for kind in api::Object::KINDS {
            for held in self.cluster.all(kind) {
                let _ = writeln!(out, "  {}", describe_object(&held.object));
            }
        }
        let _ = writeln!(out, "  driver: volumes {:?}, attached {:?}", self.truth.volumes, self.truth.attached);
        for (name, host) in &self.truth.hosts {
            let _ = writeln!(
                out,
                "  machine {name}: life {}, staged {:?}, published {:?}, files {:?}, processes {:?}",
                host.life,
                host.staged,
                host.published,
                host.files.keys().collect::<Vec<_>>(),
                host.processes
            );
        }
        for late in &self.late {
            let _ = writeln!(out, "  still to come: {} of {}", late.intent.label, late.actor);
        }
        for ((member, kind), events) in &self.behind {
            let _ = writeln!(out, "  {} is {} {kind} events behind", self.members[*member].name(), events.len());
        }
        for member in &self.members {
            member.describe(&mut out);
        }
        out
    }
}

fn describe_object(object: &api::Object) -> String {
    let meta = object.meta();
    let mut text = format!("{}", object.reference());
    if meta.is_deleting() {
        text.push_str(" (deleting)");
    }
    if !meta.finalizers.is_empty() {
        let _ = write!(text, " finalizers {:?}", meta.finalizers);
    }
    match object {
        api::Object::Node(node) => {
            let attached: Vec<_> = node.status.volumes_attached.iter().flatten().map(|v| &v.name).collect();
            let _ = write!(text, " attached {attached:?} in use {:?}", node.status.volumes_in_use);
        }
        api::Object::VolumeAttachment(va) => {
            let _ = write!(text, " on {} attached {}", va.spec.node_name, va.status.attached);
        }
        api::Object::Pod(pod) => {
            let _ = write!(text, " on {} {}", pod.spec.node_name, pod.status.phase);
        }
        api::Object::PersistentVolumeClaim(claim) => {
            let _ = write!(text, " volume '{}' {}", claim.spec.volume_name, claim.status.phase);
        }
        api::Object::PersistentVolume(volume) => {
            let claim = volume.spec.claim_ref.as_ref().map_or("", |claim| claim.name.as_str());
            let _ = write!(text, " claim '{claim}' {}", volume.status.phase);
        }
        api::Object::StorageClass(_)
        | api::Object::CSIDriver(_)
        | api::Object::CSINode(_)
        | api::Object::Secret(_)
        | api::Object::VolumeAttributesClass(_)
        | api::Object::CSIStorageCapacity(_)
        | api::Object::VolumeSnapshot(_)
        | api::Object::VolumeSnapshotContent(_)
        | api::Object::ReferenceGrant(_)
        | api::Object::Lease(_) => {}
    }
    text
}
