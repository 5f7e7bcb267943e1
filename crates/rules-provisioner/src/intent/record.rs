//! What is written down with an intent, and how it is read again.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use api::{
    AccessMode, ClaimSpec, Meta, ObjectKey, PersistentVolumeClaim, Quantity, ReclaimPolicy, Resources, Time,
    VolumeMode, names,
};
use serde::{Deserialize, Serialize};

use crate::terms::{requested, usage};
use crate::{ContentSource, Requirement, SecretRefs, Terms, VolumeRequest};

/// A requirement longer than this is not written down, because an object can carry only so much. It is made anew from the
/// nodes there are when it is needed again.
const LONGEST_TOPOLOGY: usize = 32 << 10;

/// What the class and the cluster said, so that every later attempt says the same.
///
/// All entries of the journal are written anew with every note, so that what nearly every record says has a short name, and
/// what it says nearly always is left out. The longer names are those of versions before this one, and still read.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    #[serde(rename = "c", alias = "claim", default, skip_serializing_if = "Option::is_none")]
    claim: Option<Asked>,
    /// Left out if it is the usual one of the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(rename = "u", alias = "class")]
    class_uid: String,
    #[serde(default = "usual_policy", skip_serializing_if = "is_usual_policy")]
    reclaim_policy: ReclaimPolicy,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    single_node_multi_writer: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    fs_type: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    mount_options: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    mutable_parameters: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attributes_class: Option<String>,
    #[serde(default, skip_serializing_if = "SecretRefs::is_empty")]
    secrets: SecretRefs,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<ContentSource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    topology: Option<Requirement>,
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    topology_left_out: bool,
}

/// What the claim says, where the record does not go with the claim.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    #[serde(rename = "ns", alias = "namespace")]
    namespace: String,
    #[serde(rename = "n", alias = "name")]
    name: String,
    #[serde(rename = "k", alias = "class", default, skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(rename = "s", alias = "storage")]
    storage: Quantity,
    #[serde(default = "usual_modes", skip_serializing_if = "is_usual_modes")]
    modes: Vec<AccessMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    volume_mode: Option<VolumeMode>,
}

/// As much of a record as tells whom it concerns. Nothing of it is copied unless it must be.
#[derive(Deserialize)]
struct Concerns<'a> {
    #[serde(rename = "c", alias = "claim", borrow)]
    claim: Option<ClaimName<'a>>,
    source: Option<ContentSource>,
}

#[derive(Deserialize)]
struct ClaimName<'a> {
    #[serde(rename = "ns", alias = "namespace", borrow)]
    namespace: Cow<'a, str>,
    #[serde(rename = "n", alias = "name", borrow)]
    name: Cow<'a, str>,
}

const USUAL_POLICY: ReclaimPolicy = ReclaimPolicy::Delete;
const USUAL_MODE: AccessMode = AccessMode::ReadWriteOnce;

fn usual_policy() -> ReclaimPolicy {
    USUAL_POLICY
}

fn is_usual_policy(policy: &ReclaimPolicy) -> bool {
    *policy == USUAL_POLICY
}

fn usual_modes() -> Vec<AccessMode> {
    alloc::vec![USUAL_MODE]
}

fn is_usual_modes(modes: &[AccessMode]) -> bool {
    modes == [USUAL_MODE]
}

/// What was recorded with an intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) terms: Terms,
    /// The topology was too long to be recorded.
    pub(crate) topology_left_out: bool,
}

/// The terms as they are recorded on the claim.
pub(crate) fn record(claim: &PersistentVolumeClaim, terms: &Terms) -> String {
    text(claim, terms, None)
}

/// The terms as they are recorded in the journal, with what undoing needs to know of the claim.
pub(crate) fn record_for(claim: &PersistentVolumeClaim, terms: &Terms) -> String {
    let asked = Asked {
        namespace: claim.metadata.namespace.clone(),
        name: claim.metadata.name.clone(),
        class: claim.class().map(String::from),
        storage: claim.requested().cloned().unwrap_or_default(),
        modes: claim.spec.access_modes.clone(),
        volume_mode: claim.spec.volume_mode.clone().filter(|mode| *mode != VolumeMode::Filesystem),
    };
    text(claim, terms, Some(asked))
}

fn text(claim: &PersistentVolumeClaim, terms: &Terms, asked: Option<Asked>) -> String {
    let request = &terms.request;
    let topology = request
        .topology
        .clone()
        .filter(|topology| serde_json::to_string(topology).is_ok_and(|text| text.len() <= LONGEST_TOPOLOGY));
    let record = Record {
        claim: asked,
        name: Some(&request.name).filter(|name| **name != usual_name(&claim.metadata.uid)).cloned(),
        class_uid: terms.class_uid.clone(),
        reclaim_policy: terms.reclaim_policy.clone(),
        single_node_multi_writer: request.single_node_multi_writer,
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
    // Text, numbers and lists of them always have a form in JSON.
    serde_json::to_string(&record).unwrap_or_default()
}

/// What the volume of a claim is called under the default settings.
fn usual_name(uid: &str) -> String {
    names::volume_name_for_claim(uid)
}

/// The claim an entry of the journal is about, as one that is being deleted: nothing more is made for it.
pub(crate) fn claim_in(uid: &str, record: &str) -> Option<PersistentVolumeClaim> {
    let record: Record = serde_json::from_str(record).ok()?;
    let asked = record.claim?;
    let mut claim = PersistentVolumeClaim {
        metadata: Meta {
            uid: uid.into(),
            deletion_timestamp: Some(Time::from_unix_millis(0)),
            ..Meta::in_namespace(asked.namespace, asked.name)
        },
        spec: ClaimSpec {
            access_modes: asked.modes,
            storage_class_name: asked.class,
            volume_mode: asked.volume_mode,
            resources: Resources::default(),
            ..ClaimSpec::default()
        },
        ..PersistentVolumeClaim::default()
    };
    claim.spec.resources.requests.insert("storage".into(), asked.storage);
    Some(claim)
}

/// What the volume of an entry is made from.
pub(crate) fn source_in(record: &str) -> Option<ContentSource> {
    // Most volumes are made from nothing, and looking for a word costs less than reading.
    let record: Option<Concerns> = record.contains("source").then(|| serde_json::from_str(record).ok()).flatten();
    record?.source
}

/// Where the claim of an entry was.
pub(crate) fn key_in(record: &str) -> Option<ObjectKey> {
    let record: Concerns = serde_json::from_str(record).ok()?;
    record.claim.map(|claim| ObjectKey::new(claim.namespace, claim.name))
}

/// Reads what was recorded. What is not in the record cannot change while the claim has no volume.
pub(crate) fn recorded(claim: &PersistentVolumeClaim, record: &str) -> Option<Recorded> {
    let record: Record = serde_json::from_str(record).ok()?;
    let (block, modes) = usage(claim, record.single_node_multi_writer).ok()?;
    let request = VolumeRequest {
        name: record.name.unwrap_or_else(|| usual_name(&claim.metadata.uid)),
        required_bytes: requested(claim).ok()?,
        modes,
        single_node_multi_writer: record.single_node_multi_writer,
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
        class_uid: record.class_uid,
        reclaim_policy: record.reclaim_policy,
        attributes_class: record.attributes_class,
        secrets: record.secrets,
        request,
    };
    Some(Recorded { terms, topology_left_out: record.topology_left_out })
}
