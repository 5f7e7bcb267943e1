//! What a call works on: the one place that says which calls must not run side by side.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{Call, for_each_method};

/// A kind of thing that a driver gives ids to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum Thing {
    Volume,
    Snapshot,
    Group,
}

/// A lock on one volume, snapshot or group snapshot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lock {
    /// The kind of thing that is locked.
    pub thing: Thing,
    /// The id of the thing.
    pub id: String,
    /// Whether other calls may hold the lock at the same time, as long as all of them share it.
    pub shared: bool,
}

impl Lock {
    /// A lock that excludes every other holder.
    pub fn alone(thing: Thing, id: impl Into<String>) -> Lock {
        Lock { thing, id: id.into(), shared: false }
    }

    /// A lock that others may share.
    pub fn shared(thing: Thing, id: impl Into<String>) -> Lock {
        Lock { shared: true, ..Lock::alone(thing, id) }
    }

    /// The name of the lock, the same in all processes and versions.
    pub fn key(&self) -> String {
        let thing = match self.thing {
            Thing::Volume => "volume",
            Thing::Snapshot => "snapshot",
            Thing::Group => "group snapshot",
        };
        format!("{thing} {}", self.id)
    }
}

type IdOf<'a> = &'a dyn Fn(Thing, &str) -> String;

/// One function for each kind of lock that the table names: it adds what the field's value stands for.
mod take {
    use super::*;
    use crate::v1::VolumeContentSource;
    use crate::v1::volume_content_source::Type as Source;

    macro_rules! by_id {
        ($($kind:ident => $lock:ident($thing:ident);)*) => {
            $(pub fn $kind(id: &str, _: IdOf<'_>, locks: &mut Vec<Lock>) {
                locks.push(Lock::$lock(Thing::$thing, id));
            })*
        };
    }
    by_id! {
        volume => alone(Volume);
        snapshot => alone(Snapshot);
        group_snapshot => alone(Group);
        source_volume => shared(Volume);
    }

    pub fn source_volumes(ids: &[String], id_of: IdOf<'_>, locks: &mut Vec<Lock>) {
        ids.iter().for_each(|id| source_volume(id, id_of, locks));
    }

    pub fn snapshots(ids: &[String], id_of: IdOf<'_>, locks: &mut Vec<Lock>) {
        ids.iter().for_each(|id| snapshot(id, id_of, locks));
    }

    pub fn content_source(source: &Option<VolumeContentSource>, _: IdOf<'_>, locks: &mut Vec<Lock>) {
        locks.extend(source.as_ref().and_then(|source| source.r#type.as_ref()).map(|source| match source {
            Source::Snapshot(from) => Lock::shared(Thing::Snapshot, &*from.snapshot_id),
            Source::Volume(from) => Lock::shared(Thing::Volume, &*from.volume_id),
        }));
    }

    macro_rules! by_name {
        ($($kind:ident => $thing:ident;)*) => {
            $(pub fn $kind(name: &str, id_of: IdOf<'_>, locks: &mut Vec<Lock>) {
                locks.push(Lock::alone(Thing::$thing, id_of(Thing::$thing, name)));
            })*
        };
    }
    by_name! {
        create_volume => Volume;
        create_snapshot => Snapshot;
        create_group_snapshot => Group;
    }
}

macro_rules! define {
    ($($service:ident.$name:ident($request:ty) -> $response:ty {
        capability: $capability:tt,
        volume: $volume:tt,
        locks: [$($kind:ident($field:ident)),*],
        request: $fields:tt,
        response: $answered:tt,
    })*) => {
        /// The locks that a call takes. A call that creates something locks the id that `id_of` gives to its name, so that
        /// it excludes the calls that name the thing by that id.
        ///
        /// Calls that only read (lists, usage, health, validation) take no lock: one that hangs on a dead filesystem must
        /// not keep a volume from being unpublished. Sources of copies are shared.
        #[allow(unused_variables, reason = "some calls take no lock")]
        pub fn locks(call: &Call, id_of: &dyn Fn(Thing, &str) -> String) -> Vec<Lock> {
            let mut locks = Vec::new();
            match call { $(Call::$name(request) => { $(take::$kind(&request.$field, id_of, &mut locks);)* })* }
            locks
        }
    };
}
for_each_method!(define);

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
