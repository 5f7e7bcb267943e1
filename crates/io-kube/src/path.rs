use api::{Kind, ObjectKey};

/// The path of a kind's collection: `/api/v1/…` or `/apis/group/version/…`.
pub(crate) fn collection(kind: Kind, namespace: &str) -> String {
    let root = if kind.group().is_empty() { "/api" } else { "/apis" };
    let version = kind.api_version();
    if kind.namespaced() && !namespace.is_empty() {
        format!("{root}/{version}/namespaces/{namespace}/{}", kind.plural())
    } else {
        format!("{root}/{version}/{}", kind.plural())
    }
}

/// The path of one object or its subresource.
pub(crate) fn object(kind: Kind, key: &ObjectKey, subresource: Option<&str>) -> String {
    let mut path = format!("{}/{}", collection(kind, &key.namespace), key.name);
    if let Some(subresource) = subresource {
        path.push('/');
        path.push_str(subresource);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_api() {
        let key = ObjectKey::new("ns", "x");
        assert_eq!(object(Kind::Pod, &key, Some("status")), "/api/v1/namespaces/ns/pods/x/status");
        assert_eq!(collection(Kind::Pod, ""), "/api/v1/pods");
        assert_eq!(
            object(Kind::VolumeAttachment, &ObjectKey::cluster("va"), None),
            "/apis/storage.k8s.io/v1/volumeattachments/va"
        );
    }
}
