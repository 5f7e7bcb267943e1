//! The write-ahead intent: how it is recorded, found again, taken over and withdrawn. Nothing else in these rules knows
//! that it is an entry in the driver's journal (`journal.rs`), or a finalizer and two annotations on the claim.

pub(crate) mod journal;
mod record;

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{Kind, ObjectRef, Patch, PersistentVolumeClaim, Precondition, Value, Write, names};
use control::{Cache, Effect};
use serde_json::json;

use crate::Local;
use journal::JournalView;

pub(crate) use record::{Recorded, claim_in, key_in, record, record_for, recorded, source_in};

/// Where an intent is recorded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum IntentLocation {
    /// On the claim itself, which cannot go before the intent does.
    Claim,
    /// In the driver's journal.
    Journal(Arc<JournalView>),
}

/// Where the claim's intent is, if there is one, and what was recorded.
pub(crate) fn find(
    claim: &PersistentVolumeClaim,
    page: &Arc<JournalView>,
) -> (Option<IntentLocation>, Option<Recorded>) {
    if is_on(claim) {
        let record = claim.metadata.annotation(names::PROVISIONING_TERMS);
        return (Some(IntentLocation::Claim), record.and_then(|record| recorded(claim, record)));
    }
    match page.text() {
        Some(record) => (Some(IntentLocation::Journal(page.clone())), recorded(claim, record)),
        None => (None, None),
    }
}

/// The claim has an intent, wherever it is.
pub(crate) fn is_held(claim: &PersistentVolumeClaim, cache: &Cache, local: &Local) -> bool {
    is_on(claim) || journal::has_entry(&claim.metadata.uid, cache, local)
}

fn is_on(claim: &PersistentVolumeClaim) -> bool {
    claim.metadata.has_finalizer(names::PROVISIONING_INTENT)
}

/// Records it. On the claim, it is refused if the claim has changed.
pub(crate) fn write(claim: &PersistentVolumeClaim, place: &IntentLocation, record: &str) -> Effect {
    match place {
        IntentLocation::Journal(page) => page.record(claim, record),
        IntentLocation::Claim => {
            let mut finalizers = claim.metadata.finalizers.clone();
            finalizers.push(names::PROVISIONING_INTENT.into());
            let annotations = json!({ names::PROVISIONING_TERMS: record });
            patch(claim, json!({ "metadata": { "finalizers": finalizers, "annotations": annotations } }))
        }
    }
}

/// Takes it over: one write after which no earlier one can take it away.
pub(crate) fn adopt(claim: &PersistentVolumeClaim, place: &IntentLocation) -> Effect {
    match place {
        IntentLocation::Journal(page) => page.adopt(claim),
        IntentLocation::Claim => {
            let annotations = json!({ names::PROVISIONING_ADOPTED: claim.metadata.resource_version });
            patch(claim, json!({ "metadata": { "annotations": annotations } }))
        }
    }
}

/// Withdraws it, with all that was written along with it.
pub(crate) fn withdraw(claim: &PersistentVolumeClaim, place: &IntentLocation) -> Effect {
    match place {
        IntentLocation::Journal(page) => page.withdraw(),
        IntentLocation::Claim => {
            let finalizers = without_intent(claim);
            let annotations = json!({ names::PROVISIONING_TERMS: null, names::PROVISIONING_ADOPTED: null });
            patch(claim, json!({ "metadata": { "finalizers": finalizers, "annotations": annotations } }))
        }
    }
}

/// Gives the choice of a node back to the scheduler, and withdraws an intent on the claim in the same write.
pub(crate) fn reschedule(claim: &PersistentVolumeClaim) -> Effect {
    let mut metadata = json!({ "annotations": { names::SELECTED_NODE: null } });
    if is_on(claim) {
        metadata["finalizers"] = without_intent(claim);
        metadata["annotations"][names::PROVISIONING_TERMS] = Value::Null;
        metadata["annotations"][names::PROVISIONING_ADOPTED] = Value::Null;
    }
    patch(claim, json!({ "metadata": metadata }))
}

fn without_intent(claim: &PersistentVolumeClaim) -> Value {
    let rest = claim.metadata.finalizers.iter().filter(|finalizer| *finalizer != names::PROVISIONING_INTENT);
    let rest: Vec<&String> = rest.collect();
    if rest.is_empty() { Value::Null } else { json!(rest) }
}

fn patch(claim: &PersistentVolumeClaim, body: Value) -> Effect {
    let target = ObjectRef { kind: Kind::PersistentVolumeClaim, key: claim.metadata.key() };
    let patch = Patch::merge(Precondition::unchanged(&claim.metadata), body);
    Effect::Write(Write::Patch { target, subresource: None, patch })
}
