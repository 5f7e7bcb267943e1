//! Who may do what, by the roles and bindings in the store.

use alloc::format;
use alloc::string::String;

use serde_json::Value;

use crate::Store;
use crate::resource::{CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES};

/// Somebody whose name has been proved.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// The user's name.
    pub user: &'a str,
    /// The groups the user is in.
    pub groups: &'a [String],
}

/// What is to be done, in the words of roles.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deed<'a> {
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
    /// Does any binding give the asker a role that allows this? Costs a look at every binding that could.
    pub fn allows(&self, asker: Asker<'_>, deed: &Deed<'_>) -> bool {
        let everywhere = self
            .list(CLUSTER_ROLE_BINDINGS, None)
            .any(|binding| names(&binding.value, asker) && self.role_allows(&binding.value["roleRef"], "", deed));
        // A role in a namespace says nothing about what lies outside of it.
        everywhere
            || (!deed.namespace.is_empty()
                && self.list(ROLE_BINDINGS, Some(deed.namespace)).any(|binding| {
                    names(&binding.value, asker) && self.role_allows(&binding.value["roleRef"], deed.namespace, deed)
                }))
    }

    fn role_allows(&self, reference: &Value, namespace: &str, deed: &Deed<'_>) -> bool {
        let name = reference["name"].as_str().unwrap_or_default();
        let role = match reference["kind"].as_str() {
            Some("ClusterRole") => self.get(CLUSTER_ROLES, "", name),
            Some("Role") if !namespace.is_empty() => self.get(ROLES, namespace, name),
            // Validation lets no other kind in.
            Some(_) | None => None,
        };
        role.is_some_and(|role| items(&role.value["rules"]).any(|rule| allows(rule, deed)))
    }
}

/// Is the asker among the subjects of a binding?
fn names(binding: &Value, asker: Asker<'_>) -> bool {
    items(&binding["subjects"]).any(|subject| {
        let name = subject["name"].as_str().unwrap_or_default();
        match subject["kind"].as_str() {
            Some("User") => name == asker.user,
            Some("Group") => asker.groups.iter().any(|group| group == name),
            Some("ServiceAccount") => {
                let namespace = subject["namespace"].as_str().unwrap_or_default();
                asker.user == format!("system:serviceaccount:{namespace}:{name}")
            }
            Some(_) | None => false,
        }
    })
}

fn allows(rule: &Value, deed: &Deed<'_>) -> bool {
    if !lists(&rule["verbs"], deed.verb) {
        return false;
    }
    if deed.resource.is_empty() {
        return items(&rule["nonResourceURLs"]).filter_map(Value::as_str).any(|pattern| path_fits(pattern, deed.path));
    }
    lists(&rule["apiGroups"], deed.group)
        && items(&rule["resources"]).filter_map(Value::as_str).any(|pattern| resource_fits(pattern, deed))
        && (items(&rule["resourceNames"]).next().is_none()
            || items(&rule["resourceNames"]).any(|name| !deed.name.is_empty() && name.as_str() == Some(deed.name)))
}

/// The list holds the word, or the star that stands for all.
fn lists(list: &Value, word: &str) -> bool {
    items(list).filter_map(Value::as_str).any(|item| item == word || item == "*")
}

/// `pods`, `pods/log`, `*/status`, or `*` for everything with all its parts.
fn resource_fits(pattern: &str, deed: &Deed<'_>) -> bool {
    match pattern.split_once('/') {
        None => pattern == "*" || (pattern == deed.resource && deed.subresource.is_empty()),
        Some((resource, part)) => (resource == "*" || resource == deed.resource) && part == deed.subresource,
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
