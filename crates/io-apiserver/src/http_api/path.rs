//! Paths, read by hand: what a URL is about.

use rules_store::Kind;

/// What a path asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Health,
    Version,
    CoreVersions,
    Groups,
    Group(String),
    GroupVersion {
        group: String,
        version: String,
    },
    OpenApiV2,
    OpenApiIndex,
    OpenApi {
        group: String,
        version: String,
    },
    /// A question about the caller.
    Review(Review),
    Resource(ResourcePath),
    /// A path as Kubernetes has it, to a resource that is not served.
    Absent(AbsentPath),
    Unknown,
}

/// What callers may ask about themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Review {
    /// Who am I?
    Who,
    /// May I do this?
    Access,
    /// What may I do?
    Rules,
}

/// Where a resource would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AbsentPath {
    pub group: String,
    pub plural: String,
    /// Empty for a collection.
    pub name: String,
}

/// A collection, an object or a subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResourcePath {
    pub kind: Kind,
    /// Empty for cluster resources and for a collection over all namespaces.
    pub namespace: String,
    /// Empty for a collection.
    pub name: String,
    /// Empty for the object itself.
    pub subresource: String,
    /// The deprecated `/watch/` prefix.
    pub watch: bool,
}

/// Reads a path; anything not served is [`Route::Unknown`].
pub(crate) fn parse(path: &str) -> Route {
    let Some(segments) = split(path) else { return Route::Unknown };
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match segments.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => Route::Health,
        ["version"] => Route::Version,
        ["api"] => Route::CoreVersions,
        ["apis"] => Route::Groups,
        ["openapi", "v2"] => Route::OpenApiV2,
        ["openapi", "v3"] => Route::OpenApiIndex,
        ["openapi", "v3", "api", version] => open_api("", version),
        ["openapi", "v3", "apis", group, version] => open_api(group, version),
        ["apis", "authentication.k8s.io", "v1", "selfsubjectreviews"] => Route::Review(Review::Who),
        ["apis", "authorization.k8s.io", "v1", "selfsubjectaccessreviews"] => Route::Review(Review::Access),
        ["apis", "authorization.k8s.io", "v1", "selfsubjectrulesreviews"] => Route::Review(Review::Rules),
        ["api", version] => group_version("", version),
        ["apis", group] => Route::Group((*group).to_owned()),
        ["apis", group, version] => group_version(group, version),
        ["api", version, rest @ ..] => resource("", version, rest),
        ["apis", group, version, rest @ ..] => resource(group, version, rest),
        _ => Route::Unknown,
    }
}

fn open_api(group: &str, version: &str) -> Route {
    Route::OpenApi { group: group.to_owned(), version: version.to_owned() }
}

fn group_version(group: &str, version: &str) -> Route {
    Route::GroupVersion { group: group.to_owned(), version: version.to_owned() }
}

fn resource(group: &str, version: &str, rest: &[&str]) -> Route {
    let (watch, rest) = match rest {
        ["watch", rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let found = match rest {
        // A namespace's own subresources look like collections inside it, but no resource has these names.
        ["namespaces", name, subresource @ ("status" | "finalize")] => {
            at(group, version, "namespaces", "", name, subresource)
        }
        ["namespaces", namespace, plural, tail @ ..] => within(group, version, namespace, plural, tail),
        [plural] => at(group, version, plural, "", "", ""),
        [plural, name] => at(group, version, plural, "", name, "").filter(|p| !p.kind.namespaced()),
        [plural, name, subresource] => {
            at(group, version, plural, "", name, subresource).filter(|p| !p.kind.namespaced())
        }
        _ => None,
    };
    match found {
        Some(path) => Route::Resource(ResourcePath { watch, ..path }),
        None => absent(group, version, rest),
    }
}

/// A resource that this server does not have, whose kind it does not know either.
fn absent(group: &str, version: &str, rest: &[&str]) -> Route {
    let (plural, name) = match rest {
        ["namespaces", _, plural] | [plural] => (plural, ""),
        ["namespaces", _, plural, name, ..] | [plural, name, ..] => (plural, *name),
        [] => return Route::Unknown,
    };
    if Kind::at_path(group, version, plural).is_some() || *plural == "namespaces" {
        return Route::Unknown;
    }
    Route::Absent(AbsentPath { group: group.to_owned(), plural: (*plural).to_owned(), name: name.to_owned() })
}

fn within(group: &str, version: &str, namespace: &str, plural: &str, tail: &[&str]) -> Option<ResourcePath> {
    let (name, subresource) = match tail {
        [] => ("", ""),
        [name] => (*name, ""),
        [name, subresource] => (*name, *subresource),
        _ => return None,
    };
    at(group, version, plural, namespace, name, subresource).filter(|p| p.kind.namespaced())
}

fn at(group: &str, version: &str, plural: &str, namespace: &str, name: &str, sub: &str) -> Option<ResourcePath> {
    Some(ResourcePath {
        kind: Kind::at_path(group, version, plural)?,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        subresource: sub.to_owned(),
        watch: false,
    })
}

// One slash at the end is forgiven, empty segments within are not: they would shift the meaning of what follows.
fn split(path: &str) -> Option<Vec<String>> {
    let path = path.strip_prefix('/')?;
    let path = path.strip_suffix('/').unwrap_or(path);
    path.split('/').map(|s| if s.is_empty() { None } else { percent_decode(s) }).collect()
}

/// A segment without its escapes. A slash hidden in one is no part of any name.
fn percent_decode(segment: &str) -> Option<String> {
    unescape(segment).filter(|decoded| !segment.contains('%') || !decoded.contains('/'))
}

/// A text without its escapes.
pub(crate) fn unescape(segment: &str) -> Option<String> {
    if !segment.contains('%') {
        return Some(segment.to_owned());
    }
    let mut bytes = segment.bytes();
    let mut decoded = Vec::with_capacity(segment.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let hex = |b: u8| char::from(b).to_digit(16);
        let (high, low) = (hex(bytes.next()?)?, hex(bytes.next()?)?);
        decoded.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &str) -> String {
        match parse(path) {
            Route::Resource(p) => {
                format!("{} ns={} name={} sub={}", p.kind.qualified(), p.namespace, p.name, p.subresource)
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn resource_paths_are_understood() {
        assert_eq!(text("/api/v1/pods"), "pods ns= name= sub=");
        assert_eq!(text("/api/v1/namespaces/a/pods/p/log"), "pods ns=a name=p sub=log");
        assert_eq!(text("/api/v1/namespaces/a"), "namespaces ns= name=a sub=");
        assert_eq!(text("/api/v1/namespaces/a/status"), "namespaces ns= name=a sub=status");
        assert_eq!(text("/apis/storage.k8s.io/v1/storageclasses/x"), "storageclasses.storage.k8s.io ns= name=x sub=");
        assert_eq!(text("/api/v1/nodes/a%3Ab/status"), "nodes ns= name=a:b sub=status");
    }

    #[test]
    fn what_is_not_served_is_unknown() {
        for path in [
            "",
            "/",
            "/x",
            "/api/v1/pods/p",
            "/api/v1//pods",
            "/api/v1/namespaces/a/nodes/n",
            "/api/v1/namespaces/a%2Fb/pods",
            "/api/v1/nodes/%zz",
            "/api/v1/nodes/%",
            "/api/v1/namespaces/a/pods/p/log/x",
        ] {
            assert_eq!(parse(path), Route::Unknown, "{path}");
        }
        for (path, group, plural, name) in [
            ("/api/v2/pods", "", "pods", ""),
            ("/apis/storage.k8s.io/v1/pods", "storage.k8s.io", "pods", ""),
            ("/apis/apps/v1/namespaces/a/deployments", "apps", "deployments", ""),
            ("/apis/apps/v1/namespaces/a/deployments/d/scale", "apps", "deployments", "d"),
            ("/api/v1/namespaces/a/services/s", "", "services", "s"),
        ] {
            let [group, plural, name] = [group, plural, name].map(str::to_owned);
            assert_eq!(parse(path), Route::Absent(AbsentPath { group, plural, name }), "{path}");
        }
    }
}
