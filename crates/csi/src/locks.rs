//! What a call works on: the one table that says which calls must not run beside each other.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::Call;
use crate::v1::volume_content_source::Type as Source;

/// What has an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Thing {
    /// A volume.
    Volume,
    /// A snapshot.
    Snapshot,
    /// A group snapshot.
    Group,
}

/// Something a call needs to itself, or beside others that only read it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lock {
    /// What it is.
    pub thing: Thing,
    /// Which one.
    pub id: String,
    /// Others may hold it too, as long as all of them only read.
    pub shared: bool,
}

impl Lock {
    /// Nobody else may hold it.
    pub fn alone(thing: Thing, id: impl Into<String>) -> Lock {
        Lock { thing, id: id.into(), shared: false }
    }

    /// Others may hold it like this as well.
    pub fn shared(thing: Thing, id: impl Into<String>) -> Lock {
        Lock { shared: true, ..Lock::alone(thing, id) }
    }

    /// What is held, in one word for all processes and versions.
    pub fn key(&self) -> String {
        let thing = match self.thing {
            Thing::Volume => "volume",
            Thing::Snapshot => "snapshot",
            Thing::Group => "group snapshot",
        };
        format!("{thing} {}", self.id)
    }
}

/// What a call works on. One that makes something holds it under the id that `id_of` gives to its name, so that it excludes
/// the calls that name it by that id.
///
/// Calls that only look (lists, usage, health, validation) hold nothing: one that hangs on a dead filesystem must not keep
/// a volume from being unpublished. Sources of copies are shared.
pub fn locks(call: &Call, id_of: &dyn Fn(Thing, &str) -> String) -> Vec<Lock> {
    let volume = |id: &str| Lock::alone(Thing::Volume, id);
    let made = |thing: Thing, name: &str| Lock::alone(thing, id_of(thing, name));
    match call {
        Call::CreateVolume(r) => {
            let source = r.volume_content_source.as_ref().and_then(|source| source.r#type.as_ref());
            let source = source.map(|source| match source {
                Source::Snapshot(from) => Lock::shared(Thing::Snapshot, &*from.snapshot_id),
                Source::Volume(from) => Lock::shared(Thing::Volume, &*from.volume_id),
            });
            [Some(made(Thing::Volume, &r.name)), source].into_iter().flatten().collect()
        }
        Call::CreateSnapshot(r) => {
            vec![Lock::shared(Thing::Volume, &*r.source_volume_id), made(Thing::Snapshot, &r.name)]
        }
        Call::DeleteSnapshot(r) => vec![Lock::alone(Thing::Snapshot, &*r.snapshot_id)],
        Call::CreateVolumeGroupSnapshot(r) => {
            let sources = r.source_volume_ids.iter().map(|id| Lock::shared(Thing::Volume, &**id));
            sources.chain([made(Thing::Group, &r.name)]).collect()
        }
        Call::DeleteVolumeGroupSnapshot(r) => {
            let snapshots = r.snapshot_ids.iter().map(|id| Lock::alone(Thing::Snapshot, &**id));
            snapshots.chain([Lock::alone(Thing::Group, &*r.group_snapshot_id)]).collect()
        }
        Call::DeleteVolume(_)
        | Call::ControllerPublishVolume(_)
        | Call::ControllerUnpublishVolume(_)
        | Call::ControllerExpandVolume(_)
        | Call::ControllerModifyVolume(_)
        | Call::NodeStageVolume(_)
        | Call::NodeUnstageVolume(_)
        | Call::NodePublishVolume(_)
        | Call::NodeUnpublishVolume(_)
        | Call::NodeExpandVolume(_) => vec![volume(call.volume())],
        Call::GetPluginInfo(_)
        | Call::GetPluginCapabilities(_)
        | Call::Probe(_)
        | Call::ValidateVolumeCapabilities(_)
        | Call::ListVolumes(_)
        | Call::GetCapacity(_)
        | Call::ControllerGetCapabilities(_)
        | Call::ListSnapshots(_)
        | Call::GetSnapshot(_)
        | Call::ControllerGetVolume(_)
        | Call::ControllerGetVolumeHealth(_)
        | Call::ControllerListVolumeHealth(_)
        | Call::GroupControllerGetCapabilities(_)
        | Call::GetVolumeGroupSnapshot(_)
        | Call::NodeGetVolumeStats(_)
        | Call::NodeGetVolumeHealth(_)
        | Call::NodeGetStorageHealth(_)
        | Call::NodeGetCapabilities(_)
        | Call::NodeGetInfo(_)
        | Call::GetCSIDriverInfo(_)
        | Call::GetInfo(_)
        | Call::NotifyRegistrationStatus(_) => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1;

    // Reliability 81: whoever makes a volume excludes whoever names it by its id.
    #[test]
    fn a_name_and_its_id_are_one_thing() {
        let create = Call::CreateVolume(v1::CreateVolumeRequest { name: "n".into(), ..Default::default() });
        let delete = Call::DeleteVolume(v1::DeleteVolumeRequest { volume_id: "id-n".into(), ..Default::default() });
        let id_of = |_: Thing, name: &str| format!("id-{name}");
        assert_eq!(locks(&create, &id_of), locks(&delete, &id_of));
        // A snapshot of the same id is another thing.
        let drop = v1::DeleteSnapshotRequest { snapshot_id: "id-n".into(), ..Default::default() };
        assert_ne!(locks(&Call::DeleteSnapshot(drop), &id_of)[0].key(), locks(&delete, &id_of)[0].key());
    }
}
