//! The facts about one key.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;

use api::{Meta, ObjectKey, PersistentVolume, PersistentVolumeClaim, SecretReference, StorageClass, Time, names};
use control::{Cache, Timestamp};
use csi::ControllerRpc;

use crate::intent::{self, Recorded, journal};
use crate::source::hold;
use crate::terms::terms;
use crate::wakes::{asked, is_asked, is_ours};
use crate::{
    ClaimView, ClassTerms, Goal, JournalView, Local, NameSlot, Obstacle, OwnNode, Provision, Reason, Terms, Unfit,
    VolumeView, secrets,
};

pub(crate) fn claim(key: &ObjectKey, uid: &str, cache: &Cache, local: &Local) -> ClaimView {
    let page = Arc::new(journal::page(uid, cache, local));
    match cache.claim(key).filter(|claim| claim.metadata.uid == uid) {
        Some(claim) => asked_for(&claim, page, cache, local),
        // What was begun for a claim that is gone is in the journal alone.
        None => match page.text().and_then(|record| intent::claim_in(uid, record)) {
            Some(claim) => ours(&Arc::new(claim), page, cache, local),
            None => ClaimView::Gone,
        },
    }
}

fn asked_for(claim: &Arc<PersistentVolumeClaim>, page: Arc<JournalView>, cache: &Cache, local: &Local) -> ClaimView {
    match asked(claim) {
        None => return ClaimView::NobodyAsked,
        Some(other) if !is_asked(claim, local) => {
            return finished(claim, &page, cache).unwrap_or(ClaimView::AnotherAsked(other.into()));
        }
        Some(_) => {}
    }
    ours(claim, page, cache, local)
}

/// Another was asked after us, as when a migration is switched, and made the volume that has our name for it: what is
/// in our journal must not outlive that one.
fn finished(claim: &Arc<PersistentVolumeClaim>, page: &Arc<JournalView>, cache: &Cache) -> Option<ClaimView> {
    page.text()?;
    let (intent, record) = intent::find(claim, page);
    match name_slot(claim, &record?.terms.request.name, cache) {
        Found::Ours { since } => Some(ClaimView::Recorded { claim: claim.clone(), intent, since }),
        Found::Other(_) => None,
    }
}

fn ours(claim: &Arc<PersistentVolumeClaim>, page: Arc<JournalView>, cache: &Cache, local: &Local) -> ClaimView {
    let (intent, record) = intent::find(claim, &page);
    let name = claim.class().unwrap_or("");
    let class = cache.class(&ObjectKey::cluster(name));
    if let Some(class) = &class
        && intent.is_none()
        && !local.answers_to(&class.provisioner)
    {
        return ClaimView::ClassOfAnother { class: name.into(), provisioner: class.provisioner.clone() };
    }
    let selected = selected_node(claim);
    // The journal of a provisioner of one node is that node's own.
    let elsewhere = on_another_node(selected, class.as_deref(), local);
    if let (Some(elsewhere), None) = (elsewhere, page.text()) {
        return ClaimView::OnAnotherNode(elsewhere);
    }
    let volume = match &record {
        Some(recorded) => recorded.terms.request.name.clone(),
        None => local.volume_name(&claim.metadata.uid),
    };
    let goal = goal(claim, class.as_deref(), &volume, local);
    if let (Goal::Bound(volume), None) = (&goal, &intent) {
        return ClaimView::Bound(volume.clone());
    }
    let name_slot = match name_slot(claim, &volume, cache) {
        Found::Ours { since } => return ClaimView::Recorded { claim: claim.clone(), intent, since },
        Found::Other(name_slot) => name_slot,
    };
    let own = local.settings.node.as_ref().map(|own| own.name.as_str());
    let node = match &goal {
        Goal::Contest { .. } => own,
        Goal::Provide | Goal::AwaitNode | Goal::Deleted | Goal::Bound(_) => selected,
    };
    let offer = offer(claim, class.as_deref(), node, record, cache, local);
    let source = terms_in(&offer).and_then(|terms| terms.request.source.as_ref());
    ClaimView::Ours(Provision {
        claim: claim.clone(),
        local: local.in_view(),
        // Only who has no intent yet asks.
        recently_provisioned: intent.is_none() && local.recently_provisioned.has(&claim.metadata.uid),
        name_slot,
        name: volume,
        // Who has an intent needs no room for another.
        journal_full: intent.is_none() && journal::is_full(cache, local),
        intent,
        page,
        goal,
        source_protection: hold(source, cache),
        in_tree: class.and_then(|class| local.in_tree(&class.provisioner)),
        offer,
    })
}

/// The node the scheduler chose, under its present or its oldest name.
pub(crate) fn selected_node(claim: &PersistentVolumeClaim) -> Option<&str> {
    let now = claim.metadata.annotation(names::SELECTED_NODE);
    now.or(claim.metadata.annotation(names::SELECTED_NODE_ALPHA)).filter(|node| !node.is_empty())
}

/// P93: a provisioner of one node leaves alone what is not for that node.
fn on_another_node(selected: Option<&str>, class: Option<&StorageClass>, local: &Local) -> Option<String> {
    let own = local.settings.node.as_ref()?;
    match selected {
        Some(node) if node == own.name => None,
        Some(node) => Some(node.into()),
        None if class.is_some_and(StorageClass::waits_for_consumer) => None,
        None => (!own.immediate_binding).then(String::new),
    }
}

fn goal(claim: &PersistentVolumeClaim, class: Option<&StorageClass>, ours: &str, local: &Local) -> Goal {
    let late = class.is_some_and(StorageClass::waits_for_consumer);
    let placed = selected_node(claim).is_some();
    if !claim.spec.volume_name.is_empty() && claim.spec.volume_name != ours {
        Goal::Bound(claim.spec.volume_name.clone())
    } else if claim.metadata.is_deleting() {
        Goal::Deleted
    } else if !claim.spec.volume_name.is_empty() {
        Goal::Bound(ours.into())
    } else if late && !placed {
        Goal::AwaitNode // P4
    } else {
        match &local.settings.node {
            Some(own) if !placed => Goal::Contest { from: turn(claim, own) },
            Some(_) | None => Goal::Provide,
        }
    }
}

/// P94: when this node may first try to take a claim that any node could take. Upstream rolls a die for every try; the
/// claim's uid and the node's name give each node a turn of its own.
fn turn(claim: &PersistentVolumeClaim, own: &OwnNode) -> Timestamp {
    let created = claim.metadata.creation_timestamp.as_ref().and_then(Time::unix_millis).unwrap_or(0);
    Timestamp(created).after_millis(own.share(&claim.metadata.uid, own.base_delay_millis))
}

impl OwnNode {
    /// Some part of a time span, another one for every node and claim.
    pub(crate) fn share(&self, uid: &str, span: u64) -> u64 {
        let roll = u64::from(names::fnv1a_32(&format!("{uid}/{}", self.name)));
        (span * roll) >> 32
    }
}

/// What has the name of a claim's volume.
enum Found {
    /// The volume made for this very claim.
    Ours {
        since: Timestamp,
    },
    Other(NameSlot),
}

fn name_slot(claim: &PersistentVolumeClaim, name: &str, cache: &Cache) -> Found {
    let Some(volume) = cache.volume(&ObjectKey::cluster(name)) else { return Found::Other(NameSlot::Empty) };
    match &volume.spec.claim_ref {
        Some(holder) if holder.uid == claim.metadata.uid => {
            let recorded = volume.metadata.creation_timestamp.as_ref().and_then(Time::unix_millis);
            Found::Ours { since: Timestamp(recorded.unwrap_or(0)) }
        }
        Some(holder) => {
            Found::Other(NameSlot::Taken(format!("claim {}/{} with another uid", holder.namespace, holder.name)))
        }
        None => Found::Other(NameSlot::Taken("nobody".into())),
    }
}

/// What the class that has the name offers, if there is one.
fn offer(
    claim: &PersistentVolumeClaim,
    named: Option<&StorageClass>,
    node: Option<&str>,
    record: Option<Recorded>,
    cache: &Cache,
    local: &Local,
) -> ClassTerms {
    let class = named.filter(|class| local.answers_to(&class.provisioner));
    let withdrawn = |replaced: bool, record: Option<Recorded>| {
        let recorded = record.map(|recorded| recorded.terms);
        ClassTerms::Withdrawn { class: claim.class().unwrap_or("").into(), replaced, recorded }
    };
    match (class, record) {
        (None, record) => withdrawn(named.is_some(), record),
        (Some(class), Some(recorded)) if recorded.terms.class_uid != class.metadata.uid => {
            withdrawn(true, Some(recorded))
        }
        (Some(class), record) => {
            let said = in_csi_terms(class, local).map_err(Unfit::from);
            in_light_of(record, said.and_then(|class| terms(claim, &class, node, cache, local)))
        }
    }
}

/// A class of the plugin says the same in other words.
fn in_csi_terms<'a>(class: &'a StorageClass, local: &Local) -> Result<Cow<'a, StorageClass>, Obstacle> {
    if local.in_tree(&class.provisioner).is_none() {
        return Ok(Cow::Borrowed(class));
    }
    match rules_translate::class_to_csi(class) {
        Ok(translated) => Ok(Cow::Owned(translated.object)),
        Err(error) => Err(Obstacle { code: Reason::ClassUntranslatable, text: error.to_string() }),
    }
}

/// What was recorded holds until the driver has refused it, whatever would be recorded now (reliability 14, 69).
fn in_light_of(record: Option<Recorded>, now: Result<Terms, Unfit>) -> ClassTerms {
    match (record, now) {
        (None, Ok(terms)) => ClassTerms::Standing(terms),
        (None, Err(Unfit::Obstacle(obstacle))) => ClassTerms::Unfit(obstacle),
        (None, Err(Unfit::Reschedule(text))) => ClassTerms::Misplaced(text),
        (Some(mut recorded), Ok(now)) => {
            if recorded.topology_left_out {
                recorded.terms.request.topology = now.request.topology.clone();
            }
            if recorded.terms == now { ClassTerms::Standing(now) } else { ClassTerms::Changed(recorded.terms) }
        }
        (Some(recorded), Err(_)) => ClassTerms::Changed(recorded.terms),
    }
}

fn terms_in(offer: &ClassTerms) -> Option<&Terms> {
    match offer {
        ClassTerms::Standing(terms) | ClassTerms::Changed(terms) => Some(terms),
        ClassTerms::Withdrawn { recorded, .. } => recorded.as_ref(),
        ClassTerms::Unfit(_) | ClassTerms::Misplaced(_) => None,
    }
}

pub(crate) fn volume(name: &str, cache: &Cache, local: &Local) -> VolumeView {
    let Some(volume) = cache.volume(&ObjectKey::cluster(name)) else { return VolumeView::Gone };
    if !is_ours(&volume, local) {
        return VolumeView::NotOurs;
    }
    if let (Some(own), Some(affinity)) = (&local.settings.node, &volume.spec.node_affinity)
        && !affinity.admits(&own.name, &own.segments)
    {
        return VolumeView::OnAnotherNode;
    }
    // A driver that does not publish volumes has no attachments worth waiting for.
    let attachments = cache.attachments_by_volume(name).filter(|_| local.can(ControllerRpc::PublishUnpublishVolume));
    VolumeView::Ours {
        local: local.in_view(),
        attachments: attachments.map(|attachment| attachment.metadata.name.clone()).collect(),
        secret: match under_way(&volume, cache, local) {
            Some(obstacle) => Err(obstacle),
            None => deletion_secret(&volume, cache, local),
        },
        volume,
    }
}

/// While an intent for the volume's claim stands, a CreateVolume may be under way that would make the volume again after it
/// was deleted, and nothing would tell that it exists.
fn under_way(volume: &PersistentVolume, cache: &Cache, local: &Local) -> Option<Obstacle> {
    let claim = volume.spec.claim_ref.as_ref()?;
    journal::has_entry(&claim.uid, cache, local).then(|| Obstacle {
        code: Reason::IntentNotSettled,
        text: "the volume is deleted once the journal no longer tells of its claim".into(),
    })
}

/// P31, P34: the annotations say which; without them the class does, as far as it still can.
fn deletion_secret(
    volume: &PersistentVolume,
    cache: &Cache,
    local: &Local,
) -> Result<Option<SecretReference>, Obstacle> {
    let annotation = |key| volume.metadata.annotation(key);
    if let (Some(name), Some(namespace)) =
        (annotation(names::DELETION_SECRET_NAME), annotation(names::DELETION_SECRET_NAMESPACE))
    {
        let there = !name.is_empty() && !namespace.is_empty();
        return Ok(there.then(|| SecretReference { name: name.into(), namespace: namespace.into() }));
    }
    let Some(class) = cache.class(&ObjectKey::cluster(volume.class())) else { return Ok(None) };
    let class =
        if local.answers_to(&class.provisioner) { in_csi_terms(&class, local)? } else { Cow::Borrowed(&*class) };
    let claim = volume.spec.claim_ref.as_ref();
    let claim = claim.map(|claim| Meta::in_namespace(claim.namespace.as_str(), claim.name.as_str()));
    secrets::deletion_secret(&class.parameters, &volume.metadata.name, &claim.unwrap_or_default())
}
