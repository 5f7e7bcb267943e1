//! Who owns the capacity objects of this process: so many owners up from its pod, whatever kinds they are.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use api::{Meta, OwnerReference, Value};
use io_kube::Kube;
use rules_provisioner::{Owned, OwnerStep};

use super::settings::Own;

/// Between two tries while the cluster does not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// The owner at this level (P87): -1 nobody, 0 the pod, 1 what controls it, and so on.
pub async fn owner(kube: &Kube, level: i64, own: &Own) -> Result<Option<OwnerReference>> {
    let mut level = i32::try_from(level)?;
    if level < 0 {
        return Ok(None);
    }
    let mut path = format!("/api/v1/namespaces/{}/pods/{}", own.namespace, own.pod);
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
                path = format!("{}/namespaces/{}/{resource}/{}", root(&owner.api_version), own.namespace, owner.name);
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
    let named = all["resources"].as_array().into_iter().flatten().find(|resource| {
        resource["kind"] == owner.kind.as_str() && !resource["name"].as_str().unwrap_or("/").contains('/')
    });
    match named.and_then(|resource| resource["name"].as_str()) {
        Some(name) => Ok(name.to_string()),
        None => bail!(
            "the API server does not know {} {}; use a smaller --capacity-ownerref-level",
            owner.api_version,
            owner.kind
        ),
    }
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
