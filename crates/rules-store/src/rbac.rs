//! RBAC: access by the roles and bindings in the store.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use api::Kind;
use serde_json::Value;

use crate::{Store, Stored};

/// An authenticated user.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The user's name.
    pub name: &'a str,
    /// The groups the user is in.
    pub groups: &'a [String],
}

/// What a request wants to do, in the words of roles.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes<'a> {
    /// `get`, `list`, `create` and so on.
    pub verb: &'a str,
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The plural name; empty if it is done to a path.
    pub resource: &'a str,
    /// Empty for the object itself.
    pub subresource: &'a str,
    /// Empty for cluster-scoped objects and for all namespaces at once.
    pub namespace: &'a str,
    /// Empty for a collection.
    pub name: &'a str,
    /// The path, for requests that are about no resource.
    pub path: &'a str,
}

impl Store {
    /// Whether any binding grants the user a role that allows this. Looks at every binding that could.
    pub fn allows(&self, user: Subject<'_>, attributes: &Attributes<'_>) -> bool {
        let everywhere = self
            .list(Kind::ClusterRoleBinding, None)
            .any(|binding| names(&binding.value, user) && self.role_allows(&binding.value["roleRef"], "", attributes));
        // A role in a namespace says nothing about what lies outside of it.
        everywhere
            || (!attributes.namespace.is_empty()
                && self.list(Kind::RoleBinding, Some(attributes.namespace)).any(|binding| {
                    names(&binding.value, user)
                        && self.role_allows(&binding.value["roleRef"], attributes.namespace, attributes)
                }))
    }

    /// The rules that hold for the user in a namespace, those of the whole cluster among them.
    pub fn rules(&self, user: Subject<'_>, namespace: &str) -> Vec<Value> {
        let bindings = self.list(Kind::ClusterRoleBinding, None).map(|binding| ("", binding));
        let bindings =
            bindings.chain(self.list(Kind::RoleBinding, Some(namespace)).map(|binding| (namespace, binding)));
        let roles = bindings
            .filter(|(_, binding)| names(&binding.value, user))
            .filter_map(|(place, binding)| self.role(&binding.value["roleRef"], place));
        roles.flat_map(|role| items(&role.value["rules"]).cloned().collect::<Vec<_>>()).collect()
    }

    fn role_allows(&self, reference: &Value, namespace: &str, attributes: &Attributes<'_>) -> bool {
        let role = self.role(reference, namespace);
        role.is_some_and(|role| items(&role.value["rules"]).any(|rule| allows(rule, attributes)))
    }

    fn role(&self, reference: &Value, namespace: &str) -> Option<Arc<Stored>> {
        let name = reference["name"].as_str().unwrap_or_default();
        match reference["kind"].as_str() {
            Some("ClusterRole") => self.get(Kind::ClusterRole, "", name),
            Some("Role") if !namespace.is_empty() => self.get(Kind::Role, namespace, name),
            // Validation lets no other kind in.
            Some(_) | None => None,
        }
    }
}

/// Whether a binding names the user among its subjects.
fn names(binding: &Value, user: Subject<'_>) -> bool {
    items(&binding["subjects"]).any(|subject| {
        let name = subject["name"].as_str().unwrap_or_default();
        match subject["kind"].as_str() {
            Some("User") => name == user.name,
            Some("Group") => user.groups.iter().any(|group| group == name),
            Some("ServiceAccount") => {
                let namespace = subject["namespace"].as_str().unwrap_or_default();
                user.name == format!("system:serviceaccount:{namespace}:{name}")
            }
            Some(_) | None => false,
        }
    })
}

fn allows(rule: &Value, attributes: &Attributes<'_>) -> bool {
    if !lists(&rule["verbs"], attributes.verb) {
        return false;
    }
    if attributes.resource.is_empty() {
        return items(&rule["nonResourceURLs"])
            .filter_map(Value::as_str)
            .any(|pattern| path_fits(pattern, attributes.path));
    }
    lists(&rule["apiGroups"], attributes.group)
        && items(&rule["resources"]).filter_map(Value::as_str).any(|pattern| resource_fits(pattern, attributes))
        && (items(&rule["resourceNames"]).next().is_none()
            || items(&rule["resourceNames"])
                .any(|name| !attributes.name.is_empty() && name.as_str() == Some(attributes.name)))
}

/// The list holds the word, or the star that stands for all.
fn lists(list: &Value, word: &str) -> bool {
    items(list).filter_map(Value::as_str).any(|item| item == word || item == "*")
}

/// `pods`, `pods/log`, `*/status`, or `*` for everything with all its parts.
fn resource_fits(pattern: &str, attributes: &Attributes<'_>) -> bool {
    match pattern.split_once('/') {
        None => pattern == "*" || (pattern == attributes.resource && attributes.subresource.is_empty()),
        Some((resource, part)) => {
            (resource == "*" || resource == attributes.resource) && part == attributes.subresource
        }
    }
}

/// A path, or the beginning of paths before a star.
fn path_fits(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => path.starts_with(start),
        None => path == pattern,
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
