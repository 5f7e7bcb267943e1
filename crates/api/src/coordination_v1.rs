use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::{Meta, Time};

/// Who leads, as the candidates agree on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields of the Kubernetes kind")]
pub struct Lease {
    pub metadata: Meta,
    pub spec: LeaseSpec,
}

/// What a lease says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields of the Kubernetes kind")]
pub struct LeaseSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder_identity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_duration_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acquire_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renew_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_transitions: Option<u32>,
}
