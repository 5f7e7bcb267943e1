//! Who owns the capacity objects of this process: so many owners up from its pod, whatever kinds they are.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use api::{Meta, OwnerReference, Value};
use io_kube::Kube;
use rules_provisioner::{Owned, OwnerStep};

use super::settings::Identity;

/// Between two tries while the cluster does not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// The only form of these objects that is spoken here.
const FORM: &str = "storage.k8s.io/v1";

/// Whether the server has capacity objects at all, in the form that is spoken here: one that has not would be written to
/// in vain for ever.
pub async fn served(kube: &Kube) -> Result<()> {
    let Ok((200, body)) = kube.get_raw(&root(FORM)).await else { return Ok(()) };
    let all: Value = serde_json::from_slice(&body)?;
    if named(&all, "CSIStorageCapacity").is_none() {
        bail!(
            "the API server has no CSIStorageCapacity in {FORM}, as Kubernetes has since 1.24; leave --enable-capacity out"
        );
    }
    Ok(())
}

/// The owner at this level (P87): -1 nobody, 0 the pod, 1 what controls it, and so on.
pub async fn owner(kube: &Kube, level: i64, identity: &Identity) -> Result<Option<OwnerReference>> {
    let mut level = i32::try_from(level)?;
    if level < 0 {
        return Ok(None);
    }
    let mut path = format!("/api/v1/namespaces/{}/pods/{}", identity.namespace, identity.pod);
    loop {
        let found = read(kube, &path).await?;
        let object = Owned {
            api_version: found["apiVersion"].as_str().unwrap_or_default().into(),
            kind: found["kind"].as_str().unwrap_or_default().into(),
            meta: serde_json::from_value::<Meta>(found["metadata"].clone())?,
        };
        match rules_provisioner::owner(level, &object).map_err(|sentence| anyhow!(sentence))? {
            OwnerStep::Nobody => return Ok(None),
            OwnerStep::Found(owner) => return Ok(Some(owner)),
            OwnerStep::Read(owner) => {
                let resource = resource(kube, &owner).await?;
                path =
                    format!("{}/namespaces/{}/{resource}/{}", root(&owner.api_version), identity.namespace, owner.name);
                level -= 1;
            }
        }
    }
}

fn root(version: &str) -> String {
    if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") }
}

/// The name of a kind in paths, as the server says it.
async fn resource(kube: &Kube, owner: &OwnerReference) -> Result<String> {
    let all = read(kube, &root(&owner.api_version)).await?;
    match named(&all, &owner.kind) {
        Some(name) => Ok(name.to_string()),
        None => bail!(
            "the API server does not know {} {}; use a smaller --capacity-ownerref-level",
            owner.api_version,
            owner.kind
        ),
    }
}

/// What a list of resources calls a kind.
fn named<'a>(all: &'a Value, kind: &str) -> Option<&'a str> {
    let found = all["resources"]
        .as_array()?
        .iter()
        .find(|resource| resource["kind"] == kind && !resource["name"].as_str().unwrap_or("/").contains('/'));
    found?["name"].as_str()
}

/// What is at a path. A cluster that does not answer is asked again.
async fn read(kube: &Kube, path: &str) -> Result<Value> {
    loop {
        match kube.get_raw(path).await {
            Ok((200, body)) => return Ok(serde_json::from_slice(&body)?),
            Ok((code @ (403 | 404), body)) => {
                let said: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
                let why = said["message"].as_str().unwrap_or("no reason given");
                bail!(
                    "cannot find the owner of capacity objects at {path} ({code}: {why}); check POD_NAME and NAMESPACE, \
                     grant the right to read it, or use --capacity-ownerref-level=-1"
                );
            }
            Ok((code, _)) => tracing::warn!("the API server answered {code} for {path}; asking again"),
            Err(why) => tracing::warn!("{why}; asking again"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use axum::{Json, Router};
    use serde_json::json;

    use super::*;

    async fn served_by(kinds: &[&str]) -> Result<()> {
        let resources: Vec<Value> =
            kinds.iter().map(|kind| json!({ "name": kind.to_lowercase(), "kind": kind })).collect();
        let answer = Json(json!({ "kind": "APIResourceList", "resources": resources }));
        served(&Kube::in_process(Router::new().fallback(move || async { answer }))).await
    }

    // Sidecars 2.11: instead of the older form there is a sentence.
    #[tokio::test]
    async fn a_server_from_before_capacity_objects_is_told_from_others() {
        served_by(&["StorageClass", "CSIStorageCapacity"]).await.unwrap();
        let said = served_by(&["StorageClass", "CSINode"]).await.unwrap_err().to_string();
        assert!(said.contains("1.24") && said.contains("--enable-capacity"), "{said}");
        // Who may not look finds out otherwise.
        let closed = Router::new().fallback(|| async { axum::http::StatusCode::FORBIDDEN });
        served(&Kube::in_process(closed)).await.unwrap();
    }
}
