//! The write-ahead intent: how it is recorded, found again, taken over and withdrawn. Nothing else in these rules knows
//! that it is a finalizer and two annotations on the claim.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::{Kind, ObjectRef, Patch, PersistentVolumeClaim, Precondition, Value, Write, names};
use control::Effect;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::terms::{requested, usage};
use crate::{ContentSource, Request, Requirement, SecretRefs, Terms};

/// A requirement longer than this is not written down, because an object can carry only so much. It is made anew from the
/// nodes there are when it is needed again.
const LONGEST_TOPOLOGY: usize = 32 << 10;

/// What the class and the cluster said, so that every later attempt says the same.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    name: String,
    class: String,
    reclaim_policy: String,
    tells_writers_apart: bool,
    fs_type: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    mount_options: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    mutable_parameters: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attributes_class: Option<String>,
    #[serde(default)]
    secrets: SecretRefs,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<ContentSource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    topology: Option<Requirement>,
    #[serde(default)]
    topology_left_out: bool,
}

/// What was recorded with an intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) terms: Terms,
    /// The topology was too long to be recorded.
    pub(crate) topology_left_out: bool,
}

/// The claim carries an intent.
pub(crate) fn is_held(claim: &PersistentVolumeClaim) -> bool {
    claim.metadata.has_finalizer(names::PROVISIONING_INTENT)
}

/// The terms as they are recorded.
pub(crate) fn record(terms: &Terms) -> String {
    let request = &terms.request;
    let topology = request
        .topology
        .clone()
        .filter(|topology| serde_json::to_string(topology).is_ok_and(|text| text.len() <= LONGEST_TOPOLOGY));
    let record = Record {
        name: request.name.clone(),
        class: terms.class_uid.clone(),
        reclaim_policy: terms.reclaim_policy.clone(),
        tells_writers_apart: request.tells_writers_apart,
        fs_type: request.fs_type.clone(),
        mount_options: request.mount_options.clone(),
        parameters: request.parameters.clone(),
        mutable_parameters: request.mutable_parameters.clone(),
        attributes_class: terms.attributes_class.clone(),
        secrets: terms.secrets.clone(),
        source: request.source.clone(),
        topology_left_out: topology.is_none() && request.topology.is_some(),
        topology,
    };
    serde_json::to_value(record).unwrap_or(Value::Null).to_string()
}

/// Reads what was recorded. What is not in the record cannot change while the claim has no volume.
pub(crate) fn recorded(claim: &PersistentVolumeClaim) -> Option<Recorded> {
    let record: Record = serde_json::from_str(claim.metadata.annotation(names::PROVISIONING_TERMS)?).ok()?;
    let (block, modes) = usage(claim, record.tells_writers_apart).ok()?;
    let request = Request {
        name: record.name,
        required_bytes: requested(claim).ok()?,
        modes,
        tells_writers_apart: record.tells_writers_apart,
        block,
        fs_type: record.fs_type,
        mount_options: record.mount_options,
        parameters: record.parameters,
        mutable_parameters: record.mutable_parameters,
        source: record.source,
        topology: record.topology,
    };
    let terms = Terms {
        class: claim.class().unwrap_or_default().into(),
        class_uid: record.class,
        reclaim_policy: record.reclaim_policy,
        attributes_class: record.attributes_class,
        secrets: record.secrets,
        request,
    };
    Some(Recorded { terms, topology_left_out: record.topology_left_out })
}

/// Records it. Refused if the claim has changed.
pub(crate) fn write(claim: &PersistentVolumeClaim, record: &str) -> Effect {
    let mut finalizers = claim.metadata.finalizers.clone();
    finalizers.push(names::PROVISIONING_INTENT.into());
    let annotations = json!({ names::PROVISIONING_TERMS: record });
    patch(claim, json!({ "metadata": { "finalizers": finalizers, "annotations": annotations } }))
}

/// Takes it over: one write that makes every earlier one fail.
pub(crate) fn adopt(claim: &PersistentVolumeClaim) -> Effect {
    let annotations = json!({ names::PROVISIONING_ADOPTED: claim.metadata.resource_version });
    patch(claim, json!({ "metadata": { "annotations": annotations } }))
}

/// Withdraws it, with all that was written along with it.
pub(crate) fn withdraw(claim: &PersistentVolumeClaim) -> Effect {
    let finalizers = without_intent(claim);
    let annotations = json!({ names::PROVISIONING_TERMS: null, names::PROVISIONING_ADOPTED: null });
    patch(claim, json!({ "metadata": { "finalizers": finalizers, "annotations": annotations } }))
}

/// Withdraws it, if there is one, and gives the choice of a node back to the scheduler in the same write.
pub(crate) fn withdraw_and_reschedule(claim: &PersistentVolumeClaim) -> Effect {
    let mut metadata = json!({ "annotations": { names::SELECTED_NODE: null } });
    if is_held(claim) {
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
