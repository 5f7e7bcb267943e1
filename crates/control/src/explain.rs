//! Why an object is where it is: which objects its state hangs on, and which of all explanations is its own.
//!
//! A neighbour is never told about: another pod on the same claim, another claim that names the same volume.

use alloc::string::String;
use alloc::vec::Vec;

use api::{ClaimPhase, Kind, Object, ObjectKey, ObjectRef, PersistentVolume, PersistentVolumeClaim, Pod, names};

use crate::{Cache, Explanation};

/// What there is to tell about an object.
#[derive(Clone, Debug)]
pub enum Telling<'a> {
    /// This is what it waits for, or what is being done about it.
    Waits(&'a Explanation),
    /// The rules have nothing left to do, and these finalizers of others keep it from going.
    Held(&'a [String]),
    /// Nothing remains to be done about it.
    Settled(&'a Explanation),
    /// No rule is about it.
    Nothing,
}

/// The object and everything its state hangs on; the object itself comes first. `None` if there is no such object.
pub fn hangs_on(cache: &Cache, asked: &ObjectRef) -> Option<Vec<Object>> {
    let first = cache.get(asked.kind, &asked.key)?;
    let mut chain = Vec::from([first.clone()]);
    match &first {
        Object::Pod(pod) => pod_hangs_on(pod, cache, &mut chain),
        Object::PersistentVolumeClaim(claim) => chain.extend(volume_of(claim, cache)),
        Object::PersistentVolume(volume) => chain.extend(claim_of(volume, cache)),
        Object::VolumeAttachment(attachment) => {
            let volume =
                attachment.volume().and_then(|name| cache.get(Kind::PersistentVolume, &ObjectKey::cluster(name)));
            chain.extend(volume.filter(|volume| !volume.meta().is_deleting()));
            chain.extend(node(&attachment.spec.node_name, cache));
        }
        _ => {}
    }
    Some(chain)
}

fn pod_hangs_on(pod: &Pod, cache: &Cache, chain: &mut Vec<Object>) {
    let here = &pod.spec.node_name;
    for name in pod.claim_names() {
        let Some(claim) = cache.claim(&ObjectKey::new(&*pod.metadata.namespace, name)) else { continue };
        // Such a claim hangs on the pod: it goes when the pod has ended, or gets its volume when the pod has a node.
        if claim.metadata.is_deleting() || waits_for_pod(&claim, cache) {
            continue;
        }
        let volume = volume_of(&claim, cache);
        chain.push(Object::PersistentVolumeClaim(claim));
        let Some(volume) = volume.filter(|_| !here.is_empty()) else { continue };
        let attachments = cache.attachments_by_volume(&volume.meta().name);
        chain.push(volume);
        chain.extend(attachments.filter(|one| one.spec.node_name == *here).map(Object::VolumeAttachment));
    }
    chain.extend(node(here, cache));
}

/// Its class waits for a pod to have a node, and none has one yet.
fn waits_for_pod(claim: &PersistentVolumeClaim, cache: &Cache) -> bool {
    let class = cache.class(&ObjectKey::cluster(claim.class().unwrap_or_default()));
    claim.status.phase != ClaimPhase::Bound
        && claim.spec.volume_name.is_empty()
        && claim.metadata.annotation(names::SELECTED_NODE).is_none_or(str::is_empty)
        && class.is_some_and(|class| class.waits_for_consumer())
}

/// The volume that is the claim's own, unless it is going: then it waits for the claim.
fn volume_of(claim: &PersistentVolumeClaim, cache: &Cache) -> Option<Object> {
    let volume = cache.volume(&ObjectKey::cluster(&*claim.spec.volume_name))?;
    (is_for(&volume, claim) && !volume.metadata.is_deleting()).then_some(Object::PersistentVolume(volume))
}

/// The claim that the volume is for.
fn claim_of(volume: &PersistentVolume, cache: &Cache) -> Option<Object> {
    let owner = volume.spec.claim_ref.as_ref()?;
    let claim = cache.claim(&ObjectKey::new(&*owner.namespace, &*owner.name))?;
    is_for(volume, &claim).then_some(Object::PersistentVolumeClaim(claim))
}

fn is_for(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let meta = &claim.metadata;
    volume.spec.claim_ref.as_ref().is_some_and(|owner| {
        let named = owner.namespace == meta.namespace && owner.name == meta.name;
        named && (owner.uid.is_empty() || owner.uid == meta.uid)
    })
}

fn node(name: &str, cache: &Cache) -> Option<Object> {
    cache.get(Kind::Node, &ObjectKey::cluster(name))
}

/// What to tell of all that is said, which comes from cause to consequence. An object that its own rules call settled
/// is settled, whatever becomes of what it hangs on; otherwise the deepest cause is told. Of settled ones the first of
/// `voices` speaks.
pub fn tell<'a>(asked: &'a Object, said: &'a [Explanation], voices: &[&str]) -> Telling<'a> {
    let this = asked.reference();
    let own: Vec<&Explanation> = said.iter().filter(|one| one.about.contains(&this)).collect();
    let waiting = said.iter().find(|one| !one.why.settled);
    if let Some(waiting) = waiting.filter(|_| own.is_empty() || own.iter().any(|one| !one.why.settled)) {
        return Telling::Waits(waiting);
    }
    let meta = asked.meta();
    if meta.is_deleting() && !meta.finalizers.is_empty() {
        return Telling::Held(&meta.finalizers);
    }
    let place = |one: &&&Explanation| voices.iter().position(|voice| *voice == one.controller).unwrap_or(voices.len());
    own.iter().min_by_key(place).map_or(Telling::Nothing, |one| Telling::Settled(one))
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
