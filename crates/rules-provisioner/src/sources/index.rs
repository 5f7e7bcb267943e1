use alloc::collections::BTreeSet;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{ClaimPhase, Lease, Object, ObjectKey, PersistentVolumeClaim, VolumeSnapshot, names};
use control::{Cache, Route, Sides, Woken, routes};
use csi::ControllerRpc;

use super::{SourceKey, SourceView, Sources};
use crate::intent::{self, journal};
use crate::wakes::begun_from;
use crate::{Intent, Key, Local, SourceKind};

pub(super) fn keys(cache: &Cache) -> Vec<SourceKey> {
    let snapshots = cache.snapshots().map(|snapshot| SourceKey::Snapshot(snapshot.metadata.key()));
    let claims = cache.claims().filter(|claim| claim.metadata.has_finalizer(names::CLONE_PROTECTION));
    snapshots.chain(claims.map(|claim| SourceKey::Claim(claim.metadata.key()))).collect()
}

/// The source itself, and what a claim that changed is made from.
pub(super) const ROUTES: &[Route<Sources>] = routes![
    PersistentVolumeClaim => each(claim_wakes),
    VolumeSnapshot => each(|snapshot, woken| woken.wake(SourceKey::Snapshot(snapshot.metadata.key()))),
    Lease => both(journal_wakes),
];

fn claim_wakes(claim: &PersistentVolumeClaim, woken: &mut Woken<'_, Sources>) {
    if claim.metadata.has_finalizer(names::CLONE_PROTECTION) {
        woken.wake(SourceKey::Claim(claim.metadata.key()));
    }
    woken.wake_all(source_of(claim));
}

fn journal_wakes(lease: Sides<'_, Lease>, woken: &mut Woken<'_, Sources>) {
    for (_, record) in journal::changed(&lease, woken.local) {
        woken.wake_all(intent::source_in(record).map(|source| {
            let key = ObjectKey::new(source.namespace, source.name);
            match source.kind {
                SourceKind::Snapshot => SourceKey::Snapshot(key),
                SourceKind::Volume => SourceKey::Claim(key),
            }
        }));
    }
}

fn source_of(claim: &PersistentVolumeClaim) -> Option<SourceKey> {
    let (source, namespace) = claim.source()?;
    let key = ObjectKey::new(namespace, source.name.as_str());
    match source.kind.as_str() {
        "VolumeSnapshot" => Some(SourceKey::Snapshot(key)),
        "PersistentVolumeClaim" => Some(SourceKey::Claim(key)),
        _other => None,
    }
}

pub(super) fn view(key: &SourceKey, cache: &Cache, local: &Local) -> SourceView {
    match key {
        SourceKey::Snapshot(key) => {
            let Some(snapshot) = cache.snapshot(key) else { return SourceView::Gone };
            if !snapshot.metadata.has_finalizer(names::SNAPSHOT_SOURCE_PROTECTION)
                || !local.can(ControllerRpc::CreateDeleteSnapshot)
            {
                return SourceView::Free;
            }
            SourceView::Held {
                object: Object::VolumeSnapshot(snapshot),
                finalizer: names::SNAPSHOT_SOURCE_PROTECTION,
                users: users("VolumeSnapshot", key, cache, local, |_| true),
            }
        }
        SourceKey::Claim(key) => {
            let Some(claim) = cache.claim(key) else { return SourceView::Gone };
            if !claim.metadata.has_finalizer(names::CLONE_PROTECTION) || !local.can(ControllerRpc::CloneVolume) {
                return SourceView::Free;
            }
            if !claim.metadata.is_deleting() {
                return SourceView::Standing;
            }
            SourceView::Held {
                object: Object::PersistentVolumeClaim(claim),
                finalizer: names::CLONE_PROTECTION,
                users: users("PersistentVolumeClaim", key, cache, local, |claim| has_begun(claim, cache, local)),
            }
        }
    }
}

/// Claims that have no volume yet and want one made from this, and those that are gone while theirs was being made.
fn users(
    kind: &str,
    key: &ObjectKey,
    cache: &Cache,
    local: &Local,
    counts: impl Fn(&PersistentVolumeClaim) -> bool,
) -> Vec<ObjectKey> {
    let term = format!("{kind}/{}/{}", key.namespace, key.name);
    let waiting = |claim: &Arc<PersistentVolumeClaim>| match &claim.status.phase {
        ClaimPhase::Pending => true,
        ClaimPhase::Other(word) => word.is_empty(),
        ClaimPhase::Bound | ClaimPhase::Lost => false,
    };
    let claims = cache.claims_by_source(&term).filter(waiting).filter(|claim| counts(claim));
    let mut users: BTreeSet<ObjectKey> = claims.map(|claim| claim.metadata.key()).collect();
    for user in begun_from(kind, key, cache, local) {
        if let Key::Claim { key, uid } = user
            && cache.claim(&key).is_none_or(|claim| claim.metadata.uid != uid)
        {
            users.insert(key);
        }
    }
    users.into_iter().collect()
}

/// Nobody begins to copy a claim that is being deleted, so only those who have begun keep it from going.
fn has_begun(claim: &PersistentVolumeClaim, cache: &Cache, local: &Local) -> bool {
    match local.settings.intent {
        Intent::InJournal | Intent::OnClaim => intent::is_held(claim, cache, local),
        Intent::InMemory => true,
    }
}
