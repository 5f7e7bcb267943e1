//! Who works on what. A volume has one mutating call at a time; what calls only read they share.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use csi::Call;
use csi::v1::volume_content_source::Type as Source;
use tokio::sync::Notify;

/// Something a call needs to itself, or beside others that only read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    key: String,
    shared: bool,
}

impl Wanted {
    /// Nobody else may hold it.
    pub fn alone(key: impl Into<String>) -> Wanted {
        Wanted { key: key.into(), shared: false }
    }

    /// Others may hold it like this as well.
    pub fn shared(key: impl Into<String>) -> Wanted {
        Wanted { key: key.into(), shared: true }
    }
}

/// How something is held by calls under way.
enum Hold {
    Alone,
    Shared(usize),
}

/// The table of everything that is held.
#[derive(Default)]
pub struct Locks {
    held: Mutex<BTreeMap<String, Hold>>,
    freed: Notify,
}

/// Everything one call holds, until it is dropped.
pub struct Held<'a> {
    locks: &'a Locks,
    keys: Vec<String>,
}

impl Locks {
    /// Takes all of it, or nothing if somebody is in the way.
    pub fn take(&self, wanted: impl IntoIterator<Item = Wanted>) -> Option<Held<'_>> {
        // The same thing may be named twice in one call; held alone once is enough.
        let mut merged: BTreeMap<String, bool> = BTreeMap::new();
        for want in wanted {
            *merged.entry(want.key).or_insert(true) &= want.shared;
        }
        let mut held = self.lock();
        let free = |(key, shared): (&String, &bool)| match held.get(key) {
            None => true,
            Some(Hold::Shared(_)) => *shared,
            Some(Hold::Alone) => false,
        };
        if !merged.iter().all(free) {
            return None;
        }
        for (key, shared) in &merged {
            match held.get_mut(key) {
                Some(Hold::Shared(count)) => *count += 1,
                Some(Hold::Alone) | None => {
                    held.insert(key.clone(), if *shared { Hold::Shared(1) } else { Hold::Alone });
                }
            }
        }
        Some(Held { locks: self, keys: merged.into_keys().collect() })
    }

    /// Takes all of it as soon as nobody is in the way. Whoever waits holds nothing, so nobody waits in a circle.
    pub async fn wait(&self, wanted: &[Wanted]) -> Held<'_> {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // Listening begins before looking, or what is freed in between goes unnoticed.
            freed.as_mut().enable();
            if let Some(held) = self.take(wanted.iter().cloned()) {
                return held;
            }
            freed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Hold>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut held = self.locks.lock();
        for key in &self.keys {
            match held.get_mut(key) {
                Some(Hold::Shared(count)) if *count > 1 => *count -= 1,
                Some(Hold::Shared(_) | Hold::Alone) | None => {
                    held.remove(key);
                }
            }
        }
        drop(held);
        self.locks.freed.notify_waiters();
    }
}

fn volume(id: &str) -> Wanted {
    Wanted::alone(format!("volume/{id}"))
}

fn snapshot(id: &str) -> Wanted {
    Wanted::alone(format!("snapshot/{id}"))
}

fn group(id: &str) -> Wanted {
    Wanted::alone(format!("group/{id}"))
}

/// What a call needs to itself. A call that makes something holds it under the id that `id_of` gives to its name, so
/// that it excludes the calls that name it by that id.
///
/// Calls that only look (lists, usage, health, validation) hold nothing: one that hangs on a dead filesystem must not keep
/// a volume from being unpublished. Sources of copies are shared.
pub fn wanted(call: &Call, id_of: &dyn Fn(&str) -> String) -> Vec<Wanted> {
    match call {
        Call::CreateVolume(r) => {
            let source = r.volume_content_source.as_ref().and_then(|source| source.r#type.as_ref());
            let source = source.map(|source| match source {
                Source::Snapshot(from) => Wanted { shared: true, ..snapshot(&from.snapshot_id) },
                Source::Volume(from) => Wanted { shared: true, ..volume(&from.volume_id) },
            });
            [Some(volume(&id_of(&r.name))), source].into_iter().flatten().collect()
        }
        Call::CreateSnapshot(r) => {
            vec![Wanted { shared: true, ..volume(&r.source_volume_id) }, snapshot(&id_of(&r.name))]
        }
        Call::DeleteSnapshot(r) => vec![snapshot(&r.snapshot_id)],
        Call::CreateVolumeGroupSnapshot(r) => {
            let sources = r.source_volume_ids.iter().map(|id| Wanted { shared: true, ..volume(id) });
            sources.chain([group(&id_of(&r.name))]).collect()
        }
        Call::DeleteVolumeGroupSnapshot(r) => {
            r.snapshot_ids.iter().map(|id| snapshot(id)).chain([group(&r.group_snapshot_id)]).collect()
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

/// Whether a call changes anything.
pub fn mutates(call: &Call) -> bool {
    !wanted(call, &str::to_owned).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use csi::v1;

    #[test]
    fn what_is_held_alone_is_held_once_and_what_is_shared_often() {
        let locks = Locks::default();
        let first = locks.take([Wanted::alone("a"), Wanted::shared("s")]).unwrap();
        assert!(locks.take([Wanted::alone("a")]).is_none());
        assert!(locks.take([Wanted::shared("a")]).is_none());
        assert!(locks.take([Wanted::alone("s")]).is_none());
        // All or nothing: `b` is not taken when `a` is not free.
        assert!(locks.take([Wanted::alone("b"), Wanted::alone("a")]).is_none());
        let second = locks.take([Wanted::alone("b"), Wanted::shared("s")]).unwrap();
        drop(first);
        assert!(locks.take([Wanted::alone("s")]).is_none());
        drop(second);
        drop(locks.take([Wanted::alone("a"), Wanted::alone("b"), Wanted::alone("s")]).unwrap());
        assert!(locks.lock().is_empty());
    }

    #[test]
    fn a_thing_named_twice_in_one_call_is_held_in_the_stronger_way() {
        let locks = Locks::default();
        let _both = locks.take([Wanted::shared("a"), Wanted::alone("a")]).unwrap();
        assert!(locks.take([Wanted::shared("a")]).is_none());
    }

    #[tokio::test]
    async fn who_waits_gets_it_when_it_is_freed() {
        let locks = std::sync::Arc::new(Locks::default());
        let held = locks.take([Wanted::alone("a")]).unwrap();
        let waiting = tokio::spawn({
            let locks = locks.clone();
            async move { drop(locks.wait(&[Wanted::alone("a")]).await) }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(held);
        waiting.await.unwrap();
    }

    // Reliability 81: whoever makes a volume excludes whoever names it by its id.
    #[test]
    fn a_name_and_its_id_are_one_thing() {
        let create = Call::CreateVolume(v1::CreateVolumeRequest { name: "n".into(), ..Default::default() });
        let delete = Call::DeleteVolume(v1::DeleteVolumeRequest { volume_id: "id-n".into(), ..Default::default() });
        let id_of = |name: &str| format!("id-{name}");
        assert_eq!(wanted(&create, &id_of), wanted(&delete, &id_of));
    }
}
