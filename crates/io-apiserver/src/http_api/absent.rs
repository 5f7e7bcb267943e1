//! What users of Kubernetes will ask for and do not find here: one sentence that says what to do instead.

use super::path::{AbsentPath, ResourcePath};
use crate::refusal::Refusal;

/// The refusal of a resource that is not served.
pub(crate) fn resource(path: &AbsentPath) -> Refusal {
    let AbsentPath { group, plural, name } = path;
    let known = instead(plural);
    let told = match known {
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

fn instead(plural: &str) -> Option<&'static str> {
    Some(match plural {
        "deployments" | "replicasets" | "replicationcontrollers" | "daemonsets" => {
            "it runs Pods, so write the pod of the template itself (kubectl run, or kind: Pod)"
        }
        "statefulsets" => "it runs Pods, so write each pod itself, and a PersistentVolumeClaim for each",
        "jobs" | "cronjobs" => "it runs Pods, so write a pod with restartPolicy Never or OnFailure",
        "services" | "endpoints" | "endpointslices" | "ingresses" | "ingressclasses" | "networkpolicies" => {
            "a pod has a loopback device only, or with hostNetwork the network of this machine"
        }
        "resourcequotas" | "limitranges" => "nothing is counted or limited by namespace",
        "horizontalpodautoscalers" | "poddisruptionbudgets" | "priorityclasses" => {
            "every pod is written by hand, and each one runs as it is"
        }
        "customresourcedefinitions" | "apiservices" => "its kinds are fixed; kubectl api-resources lists them",
        "validatingwebhookconfigurations"
        | "mutatingwebhookconfigurations"
        | "validatingadmissionpolicies"
        | "validatingadmissionpolicybindings"
        | "mutatingadmissionpolicies" => "nobody is asked before a write",
        "certificatesigningrequests" => "certificates are made by the server; use a service account and its token",
        "subjectaccessreviews" | "localsubjectaccessreviews" => "ask for yourself, or for others with kubectl --as",
        "tokenreviews" => "tokens are checked by this server alone",
        _others => return None,
    })
}

/// The refusal of a part of an object that is not served.
pub(crate) fn part(path: &ResourcePath) -> Refusal {
    let told = match (path.kind.plural(), path.subresource.as_str()) {
        ("pods", "exec" | "attach") => {
            let verb = &path.subresource;
            format!(
                "Longshore's embedded server has no {verb}: read what a pod writes with kubectl logs, and put what it \
                 should do into its command"
            )
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
        ("pods" | "nodes", "proxy") => "Longshore's embedded server has no proxy to pods or nodes".to_owned(),
        (_, _) => "the server could not find the requested resource".to_owned(),
    };
    // Without a name, as Kubernetes says of a part it does not know: kubectl tells that from a pod that is not there.
    Refusal::absent("", "", "", told)
}
