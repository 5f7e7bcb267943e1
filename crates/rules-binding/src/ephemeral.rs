//! Claims that are made from the templates in a pod (PV-59 to PV-61). They go with the pod, which owns them: that is
//! the store's work.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::{Kind, ObjectKey, ObjectRef, Pod, Value, Write};
use control::{Cache, Decision, Effect, Why};
use serde_json::json;

use crate::{Action, Reason};

/// A pod with volumes whose claims are made from templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplatePod {
    /// The pod; `None` if it is gone, has ended or is being deleted.
    pub pod: Option<Arc<Pod>>,
    /// What there is of the claims of its volumes with a template, by the names of the volumes.
    pub claims: Vec<(String, TemplateClaim)>,
}

/// What there is of a claim that is made from a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateClaim {
    /// Nobody has made it yet.
    Missing,
    /// It is the pod's.
    Made,
    /// Somebody else has a claim of its name.
    Foreign,
}

pub(crate) fn view(key: &ObjectKey, cache: &Cache) -> TemplatePod {
    let pod = cache.pod(key).filter(|pod| !pod.metadata.is_deleting() && !pod.is_terminal());
    let volumes = pod.iter().flat_map(|pod| pod.spec.volumes.iter().map(move |volume| (pod, volume)));
    let claims = volumes.filter(|(_, volume)| volume.ephemeral.is_some()).map(|(pod, volume)| {
        let name = pod.ephemeral_claim(&volume.name);
        let claim = match cache.claim(&ObjectKey::new(key.namespace.clone(), name)) {
            None => TemplateClaim::Missing,
            Some(claim) if claim.metadata.is_controlled_by(&pod.metadata.uid) => TemplateClaim::Made,
            Some(_) => TemplateClaim::Foreign,
        };
        (volume.name.clone(), claim)
    });
    TemplatePod { claims: claims.collect(), pod }
}

pub(crate) fn decide(view: &TemplatePod) -> Decision<Action, Reason> {
    let Some(pod) = &view.pod else {
        return Decision::Rest(Why::settled(Reason::PodGone, "the pod needs no claims"));
    };
    let of = |wanted: TemplateClaim| view.claims.iter().find(|(_, claim)| *claim == wanted).map(|(volume, _)| volume);
    if let Some(volume) = of(TemplateClaim::Missing) {
        let text = format!("making claim {} from the template of volume {volume}", pod.ephemeral_claim(volume));
        let action = Action::MakeClaim { pod: pod.clone(), volume: volume.clone() };
        return Decision::Do(action, Why::waiting(Reason::MakingClaim, text));
    }
    if let Some(volume) = of(TemplateClaim::Foreign) {
        let claim = pod.ephemeral_claim(volume);
        let text = format!(
            "claim {claim}, which volume {volume} would make from its template, is there already and is not the pod's; \
             delete it, or call the pod or the volume something else"
        );
        return Decision::Rest(Why::waiting(Reason::ClaimNotOwned, text));
    }
    Decision::Rest(Why::settled(Reason::ClaimsMade, "the pod has the claims it makes from templates"))
}

/// PV-59. If the pod is gone by the time it arrives, the claim goes at once, because its owner is not there.
pub(crate) fn make_claim(pod: &Pod, volume: &str) -> Effect {
    let source = pod.spec.volumes.iter().find(|one| one.name == volume).and_then(|one| one.ephemeral.as_ref());
    let template = source.map(|source| &source["volumeClaimTemplate"]).cloned().unwrap_or_default();
    let name = pod.ephemeral_claim(volume);
    let namespace = pod.metadata.namespace.as_str();
    let owner = json!({ "apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": pod.metadata.uid,
        "controller": true, "blockOwnerDeletion": true });
    let mut metadata = json!({ "name": name, "namespace": namespace, "ownerReferences": [owner] });
    for part in ["labels", "annotations"] {
        if let said @ Value::Object(_) = &template["metadata"][part] {
            metadata[part] = said.clone();
        }
    }
    Effect::Write(Write::Create {
        target: ObjectRef::namespaced(Kind::PersistentVolumeClaim, namespace, name),
        body: json!({ "metadata": metadata, "spec": template["spec"] }),
    })
}
