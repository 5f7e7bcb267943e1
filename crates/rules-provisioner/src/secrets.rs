//! Which secrets a class wants to be used, for whom (sidecars 2.6).

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{Meta, SecretReference, names};
use serde::{Deserialize, Serialize};

use crate::{Obstacle, Reason};

/// The secrets of one volume, by purpose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SecretRefs {
    /// CreateVolume and DeleteVolume.
    pub provision: Option<SecretReference>,
    /// ControllerPublishVolume.
    pub controller_publish: Option<SecretReference>,
    /// NodeStageVolume.
    pub node_stage: Option<SecretReference>,
    /// NodePublishVolume.
    pub node_publish: Option<SecretReference>,
    /// ControllerExpandVolume.
    pub controller_expand: Option<SecretReference>,
    /// NodeExpandVolume.
    pub node_expand: Option<SecretReference>,
    /// ControllerModifyVolume.
    pub controller_modify: Option<SecretReference>,
}

impl SecretRefs {
    /// It names none.
    pub(crate) fn is_empty(&self) -> bool {
        *self == SecretRefs::default()
    }
}

/// The parameters that name one secret.
struct Pair {
    name: &'static str,
    namespace: &'static str,
    /// The same under their oldest names.
    old: Option<(&'static str, &'static str)>,
}

const fn pair(name: &'static str, namespace: &'static str) -> Pair {
    Pair { name, namespace, old: None }
}

const DEFAULT: Pair = pair("csi.storage.k8s.io/secret-name", "csi.storage.k8s.io/secret-namespace");
const PROVISION: Pair = Pair {
    name: "csi.storage.k8s.io/provisioner-secret-name",
    namespace: "csi.storage.k8s.io/provisioner-secret-namespace",
    old: Some(("csiProvisionerSecretName", "csiProvisionerSecretNamespace")),
};
const CONTROLLER_PUBLISH: Pair = Pair {
    name: "csi.storage.k8s.io/controller-publish-secret-name",
    namespace: "csi.storage.k8s.io/controller-publish-secret-namespace",
    old: Some(("csiControllerPublishSecretName", "csiControllerPublishSecretNamespace")),
};
const NODE_STAGE: Pair = Pair {
    name: "csi.storage.k8s.io/node-stage-secret-name",
    namespace: "csi.storage.k8s.io/node-stage-secret-namespace",
    old: Some(("csiNodeStageSecretName", "csiNodeStageSecretNamespace")),
};
const NODE_PUBLISH: Pair = Pair {
    name: "csi.storage.k8s.io/node-publish-secret-name",
    namespace: "csi.storage.k8s.io/node-publish-secret-namespace",
    old: Some(("csiNodePublishSecretName", "csiNodePublishSecretNamespace")),
};
const CONTROLLER_EXPAND: Pair =
    pair("csi.storage.k8s.io/controller-expand-secret-name", "csi.storage.k8s.io/controller-expand-secret-namespace");
const NODE_EXPAND: Pair =
    pair("csi.storage.k8s.io/node-expand-secret-name", "csi.storage.k8s.io/node-expand-secret-namespace");
const CONTROLLER_MODIFY: Pair =
    pair("csi.storage.k8s.io/controller-modify-secret-name", "csi.storage.k8s.io/controller-modify-secret-namespace");

const ALL: [&Pair; 8] = [
    &DEFAULT,
    &PROVISION,
    &CONTROLLER_PUBLISH,
    &NODE_STAGE,
    &NODE_PUBLISH,
    &CONTROLLER_EXPAND,
    &NODE_EXPAND,
    &CONTROLLER_MODIFY,
];

/// A reserved parameter that names a secret.
pub(crate) fn is_secret_parameter(key: &str) -> bool {
    ALL.iter().any(|pair| pair.name == key || pair.namespace == key)
}

type Parameters = BTreeMap<String, String>;

/// Every secret the class names for this claim's volume.
pub(crate) fn secrets(parameters: &Parameters, volume: &str, claim: &Meta) -> Result<SecretRefs, Obstacle> {
    let of = |pair: &Pair| reference(pair, parameters, volume, claim);
    Ok(SecretRefs {
        provision: of(&PROVISION)?,
        controller_publish: of(&CONTROLLER_PUBLISH)?,
        node_stage: of(&NODE_STAGE)?,
        node_publish: of(&NODE_PUBLISH)?,
        controller_expand: of(&CONTROLLER_EXPAND)?,
        node_expand: of(&NODE_EXPAND)?,
        controller_modify: of(&CONTROLLER_MODIFY)?,
    })
}

/// The secret for deleting a volume, as its class would have it now. `claim` is all that is known of the claim.
pub(crate) fn deletion_secret(
    parameters: &Parameters,
    volume: &str,
    claim: &Meta,
) -> Result<Option<SecretReference>, Obstacle> {
    reference(&PROVISION, parameters, volume, claim)
}

fn reference(
    pair: &Pair,
    parameters: &Parameters,
    volume: &str,
    claim: &Meta,
) -> Result<Option<SecretReference>, Obstacle> {
    let found = match templates(pair, parameters)? {
        Some(found) => Some(found),
        None => templates(&DEFAULT, parameters)?,
    };
    let Some((name, namespace)) = found else { return Ok(None) };
    let mut tokens: Vec<(String, &str)> =
        alloc::vec![("pv.name".into(), volume), ("pvc.namespace".into(), claim.namespace.as_str())];
    let namespace = expand(namespace, &tokens)?;
    tokens.push(("pvc.name".into(), &claim.name));
    tokens.extend(claim.annotations.iter().map(|(key, value)| (format!("pvc.annotations['{key}']"), value.as_str())));
    let name = expand(name, &tokens)?;
    if !names::is_label(&namespace) {
        return Err(bad(
            Reason::BadSecretNamespace,
            format!("{:?} leads to {namespace:?}, which is no namespace", pair.namespace),
        ));
    }
    if !names::is_subdomain(&name) {
        return Err(bad(
            Reason::BadSecretName,
            format!("{:?} leads to {name:?}, which is no name of a secret", pair.name),
        ));
    }
    Ok(Some(SecretReference { name, namespace }))
}

fn bad(code: Reason, text: String) -> Obstacle {
    Obstacle { code, text: format!("the class's secrets cannot be used: {text}") }
}

/// The templates for name and namespace: both or neither, and never under two names.
fn templates<'a>(pair: &Pair, parameters: &'a Parameters) -> Result<Option<(&'a str, &'a str)>, Obstacle> {
    let (old_name, old_namespace) = pair.old.unzip();
    let name = one_of(parameters, pair.name, old_name)?;
    let namespace = one_of(parameters, pair.namespace, old_namespace)?;
    match (name, namespace) {
        (None, None) => Ok(None),
        (Some(name), Some(namespace)) if !name.is_empty() && !namespace.is_empty() => Ok(Some((name, namespace))),
        (Some(_), Some(_)) => {
            Err(bad(Reason::EmptySecret, format!("{} and {} must not be empty", pair.name, pair.namespace)))
        }
        (Some(_), None) | (None, Some(_)) => {
            Err(bad(Reason::IncompleteSecret, format!("{} and {} must be given together", pair.name, pair.namespace)))
        }
    }
}

fn one_of<'a>(parameters: &'a Parameters, key: &str, old: Option<&str>) -> Result<Option<&'a str>, Obstacle> {
    let now = parameters.get(key);
    match old.and_then(|old| parameters.get(old).map(|value| (old, value))) {
        Some((old, _)) if now.is_some() => {
            Err(bad(Reason::TwoSecrets, format!("{key} and {old} mean the same: give one of them")))
        }
        Some((_, value)) => Ok(Some(value)),
        None => Ok(now.map(String::as_str)),
    }
}

/// Replaces `${token}` and `$token` as a shell would. A dollar that names nothing stays; braces that do not close, or hold
/// nothing, vanish.
fn expand(template: &str, tokens: &[(String, &str)]) -> Result<String, Obstacle> {
    let (mut text, mut unknown) = (String::new(), Vec::new());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        let (name, length) = token(after);
        match tokens.iter().find(|(known, _)| known == name) {
            Some((_, value)) => text.push_str(value),
            None if !name.is_empty() => unknown.push(name),
            None if length == 0 => text.push('$'),
            None => {}
        }
        rest = &after[length..];
    }
    text.push_str(rest);
    if unknown.is_empty() {
        return Ok(text);
    }
    Err(bad(Reason::UnknownToken, format!("{template:?} uses what is not known there: {}", unknown.join(", "))))
}

/// The name behind a dollar, and how much of the text it takes.
fn token(text: &str) -> (&str, usize) {
    if let Some(inside) = text.strip_prefix('{') {
        return match inside.find('}') {
            Some(end) => (&inside[..end], end + 2),
            None => ("", 1),
        };
    }
    let special = |byte: u8| b"*#$@!?-0123456789".contains(&byte);
    if text.bytes().next().is_some_and(special) {
        return (&text[..1], 1);
    }
    let end = text.bytes().position(|byte| !byte.is_ascii_alphanumeric() && byte != b'_').unwrap_or(text.len());
    (&text[..end], end)
}
