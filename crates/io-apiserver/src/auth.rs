//! Authentication and authorization: who asks, and whether RBAC allows it. Nothing else decides that.

use std::collections::BTreeMap;
use std::sync::Arc;

use rules_store::{Attributes, Store, Subject};
use serde_json::{Value, json};

use crate::refusal::Refusal;

/// The group whose members may do everything.
pub const MASTERS: &str = "system:masters";
/// The group everybody is in who has proved a name.
const AUTHENTICATED: &str = "system:authenticated";

/// An authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user's name; the common name of a client certificate.
    pub user: Arc<str>,
    /// The groups; the organisations of a client certificate, and the one everybody is in.
    pub groups: Arc<[String]>,
    /// What is known besides, which counts for no right and is told to whoever asks who they are.
    particulars: Option<Arc<Particulars>>,
}

/// What an identity may have besides a name and groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Particulars {
    pub uid: String,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    /// A caller of this name in these groups.
    pub fn new(user: &str, groups: &[&str]) -> Identity {
        let groups = groups.iter().copied().chain([AUTHENTICATED]).map(str::to_owned).collect();
        Identity { user: user.into(), groups, particulars: None }
    }

    pub(crate) fn with(self, particulars: Particulars) -> Identity {
        Identity { particulars: Some(Arc::new(particulars)), ..self }
    }

    /// The caller as Kubernetes tells it.
    pub(crate) fn user_info(&self) -> Value {
        let mut told = json!({"username": &*self.user, "groups": &*self.groups});
        let Particulars { uid, extra } = self.particulars.as_deref().cloned().unwrap_or_default();
        if !uid.is_empty() {
            told["uid"] = uid.into();
        }
        if !extra.is_empty() {
            told["extra"] = json!(extra);
        }
        told
    }

    /// A part of this very process, which may do everything.
    pub fn trusted(user: &str) -> Identity {
        Identity::new(user, &[MASTERS])
    }

    fn belongs_to(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }
}

/// Paths anyone may read: what a load balancer or a first `kubectl version` asks before it can show a certificate.
pub(crate) fn is_open_to_all(path: &str) -> bool {
    matches!(path, "/healthz" | "/livez" | "/readyz" | "/version" | "/version/")
}

/// Decides whether a caller may do this: the masters everything, others what roles and bindings say.
pub(crate) fn authorize(store: &Store, identity: &Identity, attributes: &Attributes<'_>) -> Result<(), Refusal> {
    let Attributes { verb, group, resource, subresource, namespace, name, path } = *attributes;
    let part = if subresource.is_empty() { resource.to_owned() } else { format!("{resource}/{subresource}") };
    let user = &*identity.user;
    if allowed(store, identity, attributes) {
        // What the masters do is no news: they may do everything.
        if !identity.belongs_to(MASTERS) {
            tracing::debug!(user, verb, group, resource = part, namespace, name, path, "granted");
        }
        return Ok(());
    }
    tracing::info!(user, verb, group, resource = part, namespace, name, path, "refused");
    Err(forbidden(identity, attributes))
}

/// The same without the words.
pub(crate) fn allowed(store: &Store, identity: &Identity, attributes: &Attributes<'_>) -> bool {
    if identity.belongs_to(MASTERS) {
        return true;
    }
    let subject = Subject { name: &identity.user, groups: &identity.groups };
    store.allows(subject, attributes) && (!can_escalate(attributes) || may_escalate(store, subject, attributes))
}

/// The rules that hold for a caller in a namespace.
pub(crate) fn rules(store: &Store, identity: &Identity, namespace: &str) -> Vec<Value> {
    if identity.belongs_to(MASTERS) {
        let everything = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
        return vec![everything, json!({"verbs": ["*"], "nonResourceURLs": ["*"]})];
    }
    store.rules(Subject { name: &identity.user, groups: &identity.groups }, namespace)
}

/// Whether this could give the caller, or anybody, more permissions than the caller has.
fn can_escalate(attributes: &Attributes<'_>) -> bool {
    attributes.group == "rbac.authorization.k8s.io" && matches!(attributes.verb, "create" | "update" | "patch")
}

/// Stricter than Kubernetes, which also looks whether the caller has every right it hands on: here only the verbs that
/// say so in general count.
fn may_escalate(store: &Store, subject: Subject<'_>, attributes: &Attributes<'_>) -> bool {
    match attributes.resource {
        "roles" | "clusterroles" => store.allows(subject, &Attributes { verb: "escalate", ..*attributes }),
        _bindings => {
            store.allows(subject, &Attributes { verb: "bind", resource: "clusterroles", name: "", ..*attributes })
        }
    }
}

/// The sentence and the details every Kubernetes client knows: tools look for its words.
fn forbidden(identity: &Identity, attributes: &Attributes<'_>) -> Refusal {
    let Attributes { verb, group, resource, subresource, namespace, name, path } = *attributes;
    let user = &identity.user;
    if resource.is_empty() {
        return Refusal::forbidden("", "", "", format!("forbidden: User \"{user}\" cannot {verb} path \"{path}\""));
    }
    let place = match namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace \"{namespace}\""),
    };
    let part = if subresource.is_empty() { resource.to_owned() } else { format!("{resource}/{subresource}") };
    let qualified = if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") };
    let named = if name.is_empty() { String::new() } else { format!(" \"{name}\"") };
    let message = format!(
        "{qualified}{named} is forbidden: User \"{user}\" cannot {verb} resource \"{part}\" in API group \"{group}\" {place}"
    );
    Refusal::forbidden(group, resource, name, message)
}

#[cfg(test)]
mod tests {
    use rules_store::{Context, Kind, Request, WriteOptions};

    use super::*;

    fn attributes() -> Attributes<'static> {
        Attributes { verb: "get", resource: "pods", namespace: "default", name: "p", ..Attributes::default() }
    }

    /// A store in which everybody has one role.
    fn store(rules: Value) -> Store {
        let mut store = Store::new();
        let role = json!({"metadata": {"name": "r"}, "rules": rules});
        let subject = json!({"kind": "Group", "name": AUTHENTICATED});
        let binding = json!({
            "metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [subject],
        });
        for (plural, body) in [("clusterroles", role), ("clusterrolebindings", binding)] {
            let kind = Kind::at_path("rbac.authorization.k8s.io", "v1", plural).unwrap();
            let context = Context { now_millis: 1, new_uid: plural, actor: "t" };
            let request = Request::Create { kind, namespace: String::new(), body, options: WriteOptions::default() };
            store.apply(&context, request).unwrap();
        }
        store
    }

    #[test]
    fn masters_may_and_others_get_403_unless_a_role_says_so() {
        // reliability 126
        let (nobody, eve) = (Store::new(), Identity::new("eve", &["people"]));
        assert!(authorize(&nobody, &Identity::trusted("admin"), &attributes()).is_ok());
        let refused = authorize(&nobody, &eve, &attributes()).unwrap_err();
        assert_eq!(refused.code(), 403);
        assert_eq!(
            refused.message(),
            "pods \"p\" is forbidden: User \"eve\" cannot get resource \"pods\" in API group \"\" in the namespace \"default\""
        );
        assert_eq!(refused.status()["details"], json!({"name": "p", "kind": "pods"}));
        let store = store(json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]));
        assert!(authorize(&store, &eve, &attributes()).is_ok());
        assert!(authorize(&store, &eve, &Attributes { verb: "delete", ..attributes() }).is_err());
    }

    #[test]
    fn whoever_may_write_roles_cannot_give_itself_rights() {
        let group = "rbac.authorization.k8s.io";
        let all = json!([{"apiGroups": [group], "resources": ["*"], "verbs": ["create", "get", "patch", "update"]}]);
        let (store, eve) = (store(all), Identity::new("eve", &[]));
        for (resource, namespace) in [("clusterroles", ""), ("clusterrolebindings", ""), ("rolebindings", "default")] {
            for verb in ["create", "update", "patch"] {
                let attributes = Attributes { verb, group, resource, namespace, ..Attributes::default() };
                assert!(!allowed(&store, &eve, &attributes), "{verb} {resource}");
            }
            assert!(allowed(
                &store,
                &eve,
                &Attributes { verb: "get", group, resource, namespace, ..Attributes::default() }
            ));
        }
        let more = json!([{"apiGroups": [group], "resources": ["*"], "verbs": ["create", "bind", "escalate"]}]);
        let trusted = self::store(more);
        for resource in ["clusterroles", "clusterrolebindings"] {
            assert!(allowed(&trusted, &eve, &Attributes { verb: "create", group, resource, ..Attributes::default() }));
        }
    }

    #[test]
    fn only_the_four_open_paths_need_no_identity() {
        assert!(is_open_to_all("/healthz") && is_open_to_all("/version"));
        assert!(!is_open_to_all("/api") && !is_open_to_all("/healthz/../api") && !is_open_to_all("/openapi/v3"));
    }
}
