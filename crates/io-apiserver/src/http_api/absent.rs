//! What users of Kubernetes will ask for and do not find here: one sentence that says what to do instead.

use serde_json::{Value, json};

use super::path::{AbsentPath, ResourcePath};
use crate::refusal::Refusal;

/// A kind that users of Kubernetes know and this server does not have. Discovery names it, without a verb, so that
/// kubectl sends what it is about and hears the sentence, instead of saying that it never heard of it.
pub(crate) struct AbsentKind {
    pub group: &'static str,
    pub version: &'static str,
    pub kind: &'static str,
    pub plural: &'static str,
    pub short: &'static [&'static str],
    pub namespaced: bool,
    instead: &'static str,
}

const WORKLOAD: &str = "it runs Pods, so write the pod of the template itself (kubectl run, or kind: Pod)";
const SET: &str = "it runs Pods, so write each pod itself, and a PersistentVolumeClaim for each";
const JOB: &str = "it runs Pods, so write a pod with restartPolicy Never or OnFailure";
const NETWORK: &str = "a pod has a loopback device only, or with hostNetwork the network of this machine";
const COUNT: &str = "nothing is counted or limited by namespace";
const HAND: &str = "every pod is written by hand, and each one runs as it is";
const FIXED: &str = "its kinds are fixed; kubectl api-resources lists them";
const WEBHOOK: &str = "nobody is asked before a write";
const CERTIFICATE: &str = "certificates are made by the server; use a service account and its token";

macro_rules! absent {
    ($(
        $scope:ident $group:literal $version:literal $kind:literal $plural:literal [$($short:literal),*] $instead:ident;
    )*) => {
        &[$(AbsentKind {
            group: $group, version: $version, kind: $kind, plural: $plural, short: &[$($short),*],
            namespaced: absent!($scope), instead: $instead,
        }),*]
    };
    (namespaced) => { true };
    (cluster) => { false };
}

/// The kinds, in the order that discovery has them.
pub(crate) static KINDS: &[AbsentKind] = absent! {
    namespaced "" "v1" "Service" "services" ["svc"] NETWORK;
    namespaced "" "v1" "Endpoints" "endpoints" ["ep"] NETWORK;
    namespaced "" "v1" "ReplicationController" "replicationcontrollers" ["rc"] WORKLOAD;
    namespaced "" "v1" "PodTemplate" "podtemplates" [] WORKLOAD;
    namespaced "" "v1" "ResourceQuota" "resourcequotas" ["quota"] COUNT;
    namespaced "" "v1" "LimitRange" "limitranges" ["limits"] COUNT;
    namespaced "apps" "v1" "Deployment" "deployments" ["deploy"] WORKLOAD;
    namespaced "apps" "v1" "ReplicaSet" "replicasets" ["rs"] WORKLOAD;
    namespaced "apps" "v1" "DaemonSet" "daemonsets" ["ds"] WORKLOAD;
    namespaced "apps" "v1" "StatefulSet" "statefulsets" ["sts"] SET;
    namespaced "batch" "v1" "Job" "jobs" [] JOB;
    namespaced "batch" "v1" "CronJob" "cronjobs" ["cj"] JOB;
    namespaced "autoscaling" "v2" "HorizontalPodAutoscaler" "horizontalpodautoscalers" ["hpa"] HAND;
    namespaced "policy" "v1" "PodDisruptionBudget" "poddisruptionbudgets" ["pdb"] HAND;
    cluster "scheduling.k8s.io" "v1" "PriorityClass" "priorityclasses" ["pc"] HAND;
    namespaced "networking.k8s.io" "v1" "Ingress" "ingresses" ["ing"] NETWORK;
    cluster "networking.k8s.io" "v1" "IngressClass" "ingressclasses" [] NETWORK;
    namespaced "networking.k8s.io" "v1" "NetworkPolicy" "networkpolicies" ["netpol"] NETWORK;
    namespaced "discovery.k8s.io" "v1" "EndpointSlice" "endpointslices" [] NETWORK;
    cluster "apiextensions.k8s.io" "v1" "CustomResourceDefinition" "customresourcedefinitions" ["crd", "crds"] FIXED;
    cluster "apiregistration.k8s.io" "v1" "APIService" "apiservices" [] FIXED;
    cluster "certificates.k8s.io" "v1" "CertificateSigningRequest" "certificatesigningrequests" ["csr"] CERTIFICATE;
    cluster "admissionregistration.k8s.io" "v1" "ValidatingWebhookConfiguration" "validatingwebhookconfigurations" []
        WEBHOOK;
    cluster "admissionregistration.k8s.io" "v1" "MutatingWebhookConfiguration" "mutatingwebhookconfigurations" []
        WEBHOOK;
    cluster "admissionregistration.k8s.io" "v1" "ValidatingAdmissionPolicy" "validatingadmissionpolicies" [] WEBHOOK;
};

/// The refusal of a resource that is not served.
pub(crate) fn resource(path: &AbsentPath) -> Refusal {
    let AbsentPath { group, plural, name } = path;
    let told = match instead(plural) {
        Some(instead) => {
            format!(
                "Longshore's embedded server has no {plural}: {instead}; on a real cluster they are as you know them"
            )
        }
        // The words that tools look for.
        None => "the server could not find the requested resource".to_owned(),
    };
    Refusal::absent(group, plural, name, told)
}

/// `kubectl cluster-info` asks which services the cluster itself runs, and shows where the server is once it has heard:
/// none.
pub(crate) fn own_services(path: &AbsentPath, query: Option<&str>) -> Option<Value> {
    let asked = path.group.is_empty() && path.plural == "services" && path.name.is_empty();
    let own = query.is_some_and(|query| query.contains("kubernetes.io%2Fcluster-service%3Dtrue"));
    if asked && own {
        return Some(json!({"kind": "ServiceList", "apiVersion": "v1", "metadata": {}, "items": []}));
    }
    None
}

fn instead(plural: &str) -> Option<&'static str> {
    if let Some(known) = KINDS.iter().find(|known| known.plural == plural) {
        return Some(known.instead);
    }
    match plural {
        "subjectaccessreviews" | "localsubjectaccessreviews" => {
            Some("ask for yourself, or for others with kubectl --as")
        }
        "tokenreviews" => Some("tokens are checked by this server alone"),
        _others => None,
    }
}

/// The refusal of a part of an object that is not served.
pub(crate) fn part(path: &ResourcePath) -> Refusal {
    let told = match (path.kind.plural(), path.subresource.as_str()) {
        ("pods", "exec") => "this server runs no containers, so no command can be run in one".to_owned(),
        ("pods", "attach") => {
            "Longshore's embedded server has no attach: read what a pod writes with kubectl logs -f, and run a command \
             in it with kubectl exec"
                .to_owned()
        }
        ("pods", "portforward") => {
            "Longshore's embedded server has no port-forward: a pod with hostNetwork is at this machine's addresses"
                .to_owned()
        }
        ("pods", "ephemeralcontainers") => {
            "Longshore's embedded server has no ephemeral containers: add a container to the pod and make it anew"
                .to_owned()
        }
        ("pods", "eviction") => "Longshore's embedded server has no eviction: delete the pod".to_owned(),
        ("pods" | "nodes", "proxy") => {
            "Longshore's embedded server has no proxy to pods or nodes but for a node's stats/summary and metrics"
                .to_owned()
        }
        (_, _) => "the server could not find the requested resource".to_owned(),
    };
    // Without a name, as Kubernetes says of a part it does not know: kubectl tells that from a pod that is not there.
    Refusal::absent("", "", "", told)
}
