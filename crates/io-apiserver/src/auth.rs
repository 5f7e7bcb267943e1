//! Who is asking, and whether they may. The one place where rights are decided.

use std::sync::Arc;

use crate::refusal::Refusal;

/// The group whose members may do everything.
pub const MASTERS: &str = "system:masters";

/// An authenticated caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The user's name; the common name of a client certificate.
    pub user: Arc<str>,
    /// The groups; the organisations of a client certificate.
    pub groups: Arc<[String]>,
}

impl Identity {
    /// A caller of this name in these groups.
    pub fn new(user: &str, groups: &[&str]) -> Identity {
        Identity { user: user.into(), groups: groups.iter().map(|g| (*g).to_owned()).collect() }
    }

    /// A part of this very process, which may do everything.
    pub fn trusted(user: &str) -> Identity {
        Identity::new(user, &[MASTERS])
    }

    fn belongs_to(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }
}

/// What a request wants to do, in the words role-based rules use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes<'a> {
    pub verb: &'a str,
    pub group: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    /// The path, for requests that are about no resource.
    pub path: &'a str,
}

/// Paths anyone may read: what a load balancer or a first `kubectl version` asks before it can show a certificate.
pub(crate) fn is_open_to_all(path: &str) -> bool {
    matches!(path, "/healthz" | "/livez" | "/readyz" | "/version" | "/version/")
}

/// Decides whether a caller may do this. Role-based rules will be asked here.
pub(crate) fn authorize(identity: &Identity, wants: &Attributes<'_>) -> Result<(), Refusal> {
    if identity.belongs_to(MASTERS) {
        return Ok(());
    }
    let Attributes { verb, group, resource, subresource, namespace, name, path } = *wants;
    if resource.is_empty() {
        return Err(Refusal::forbidden(format!("user \"{}\" may not {verb} path \"{path}\"", identity.user)));
    }
    let slash = if subresource.is_empty() { "" } else { "/" };
    let place = match namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in namespace \"{namespace}\""),
    };
    let named = if name.is_empty() { String::new() } else { format!(" \"{name}\"") };
    Err(Refusal::forbidden(format!(
        "user \"{}\" may not {verb} {resource}{slash}{subresource}{named} in API group \"{group}\" {place}",
        identity.user
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants() -> Attributes<'static> {
        Attributes {
            verb: "get",
            group: "",
            resource: "pods",
            subresource: "",
            namespace: "default",
            name: "p",
            path: "",
        }
    }

    #[test]
    fn masters_may_and_others_get_403() {
        // reliability 126
        assert!(authorize(&Identity::trusted("admin"), &wants()).is_ok());
        let refused = authorize(&Identity::new("eve", &["people"]), &wants()).unwrap_err();
        assert_eq!(refused.code(), 403);
    }

    #[test]
    fn only_the_four_open_paths_need_no_identity() {
        assert!(is_open_to_all("/healthz") && is_open_to_all("/version"));
        assert!(!is_open_to_all("/api") && !is_open_to_all("/healthz/../api") && !is_open_to_all("/openapi/v3"));
    }
}
