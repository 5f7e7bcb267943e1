//! Rights as RBAC objects.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::check::{SecretName, scalar};
use super::rights::{Journal, Rights, Verbs};
use crate::commands::controllers::CLUSTER;
use crate::sidecar::Role;

/// Who gets rights.
pub(crate) struct Holder {
    /// The service account, and the name of the roles made for it.
    pub account: String,
    /// Where it is.
    pub namespace: String,
    /// The driver it serves, if that is known.
    pub driver: Option<String>,
}

/// The account and everything it may do.
pub fn document(holder: &Holder, roles: &BTreeSet<Role>, rights: &Rights, secrets: &[SecretName]) -> String {
    let mut text = String::new();
    let (account, namespace) = (&holder.account, &holder.namespace);
    let _ = write!(
        text,
        "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {}\n  namespace: {}\n\
         automountServiceAccountToken: false # the container that needs it mounts it\n",
        scalar(account),
        scalar(namespace)
    );
    if !rights.cluster.is_empty() {
        let rules = rules(&rights.cluster);
        let _ = write!(
            text,
            "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: {}\nrules:\n{rules}",
            scalar(account)
        );
        text.push_str(&binding(holder, "ClusterRole", account, None));
    }
    let mut own = rules(&rights.own_namespace);
    own.push_str(&leases(holder, roles, rights));
    if !own.is_empty() {
        text.push_str(&role(namespace, account, &own));
        text.push_str(&binding(holder, "Role", account, Some(namespace)));
    }
    if rights.secrets {
        let places: BTreeSet<&str> = secrets.iter().map(|secret| secret.namespace.as_str()).collect();
        for place in places {
            let names: Vec<&str> =
                secrets.iter().filter(|secret| secret.namespace == place).map(|secret| secret.name.as_str()).collect();
            let name = format!("{account}-secrets");
            let rule = rule("", "secrets", Some(&names), &["get"]);
            text.push_str(&role(place, &name, &rule));
            text.push_str(&binding(holder, "Role", &name, Some(place)));
        }
    }
    text
}

/// Leases, by name where the names are known; making one cannot be narrowed so.
fn leases(holder: &Holder, roles: &BTreeSet<Role>, rights: &Rights) -> String {
    const GROUP: &str = "coordination.k8s.io";
    const KEEPING: [&str; 4] = ["get", "list", "patch", "watch"];
    let on = |names: Option<&[&str]>, verbs: &[&str]| rule(GROUP, "leases", names, verbs);
    if !rights.leases && !rights.cluster_lease && rights.journal.is_none() {
        return String::new();
    }
    let mut text = on(None, &["create"]);
    if rights.cluster_lease {
        text.push_str(&on(Some(&[CLUSTER]), &["get", "update"]));
    }
    if rights.leases {
        let names: Option<Vec<String>> =
            holder.driver.as_ref().map(|driver| roles.iter().filter_map(|role| role.lease(driver)).collect());
        let names: Option<Vec<&str>> = names.as_ref().map(|names| names.iter().map(String::as_str).collect());
        text.push_str(&on(names.as_deref(), &["get", "update"]));
    }
    match (rights.journal, &holder.driver) {
        (Some(Journal::Driver), Some(driver)) => {
            text.push_str(&on(Some(&[&api::names::journal(driver, None)]), &KEEPING));
        }
        (Some(Journal::Nodes), _) | (Some(Journal::Driver), None) => text.push_str(&on(None, &KEEPING)),
        (None, _) => {}
    }
    text
}

fn role(namespace: &str, name: &str, rules: &str) -> String {
    let (name, namespace) = (scalar(name), scalar(namespace));
    format!(
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: {name}\n  namespace: {namespace}\nrules:\n{rules}"
    )
}

fn binding(holder: &Holder, kind: &str, name: &str, place: Option<&str>) -> String {
    let place = place.map(|place| format!("  namespace: {}\n", scalar(place))).unwrap_or_default();
    let (name, account, namespace) = (scalar(name), scalar(&holder.account), scalar(&holder.namespace));
    format!(
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}Binding\nmetadata:\n  name: {name}\n{place}\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: {name}}}\n\
         subjects:\n- {{kind: ServiceAccount, name: {account}, namespace: {namespace}}}\n"
    )
}

/// Rules, one for each resource.
pub fn rules(verbs: &Verbs) -> String {
    let one = |((group, resource), verbs): (&(&'static str, String), &BTreeSet<&'static str>)| {
        rule(group, resource, None, &verbs.iter().copied().collect::<Vec<_>>())
    };
    verbs.iter().map(one).collect()
}

fn rule(group: &str, resource: &str, names: Option<&[&str]>, verbs: &[&str]) -> String {
    let group = if group.is_empty() { "\"\"" } else { group };
    let listed = |names: &[&str]| names.iter().map(|name| scalar(name)).collect::<Vec<_>>().join(", ");
    let names = names.map(|names| format!(", resourceNames: [{}]", listed(names))).unwrap_or_default();
    format!("- {{apiGroups: [{group}], resources: [{resource}]{names}, verbs: [{}]}}\n", verbs.join(", "))
}
