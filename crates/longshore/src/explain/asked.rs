//! What is asked about, and whom to ask: the words of the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Result, bail};
use api::{Kind, ObjectKey, ObjectRef};

use crate::layout::Layout;

/// The kinds that can be explained, and the words for them beside those `kubectl api-resources` lists.
const KINDS: [(Kind, &str); 12] = [
    (Kind::PersistentVolumeClaim, "claim"),
    (Kind::PersistentVolume, "volume"),
    (Kind::VolumeAttachment, "va"),
    (Kind::Pod, "pod"),
    (Kind::Node, "node"),
    (Kind::StorageClass, "class"),
    (Kind::VolumeAttributesClass, "vac"),
    (Kind::CSIDriver, "driver"),
    (Kind::CSINode, "csinode"),
    (Kind::VolumeSnapshot, "snapshot"),
    (Kind::VolumeSnapshotContent, "vsc"),
    (Kind::Namespace, "namespace"),
];

/// The kind a person means, also as kubectl prints it (`storageclass.storage.k8s.io`).
pub fn kind_named(word: &str) -> Option<Kind> {
    let word = word.to_ascii_lowercase();
    let word = word.split('.').next().unwrap_or_default();
    let is = |kind: Kind, ours: &str| {
        [ours, kind.singular(), kind.plural()].contains(&word) || kind.short_names().contains(&word)
    };
    KINDS.iter().find(|(kind, ours)| is(*kind, ours)).map(|(kind, _)| *kind)
}

/// The object that `KIND/NAME` or `KIND NAME` is.
pub fn object_named(words: &[String], namespace: &str) -> Result<ObjectRef> {
    let named = match words {
        [one] => one.split_once('/'),
        [kind, name] if !kind.contains('/') && !name.contains('/') => Some((kind.as_str(), name.as_str())),
        _ => None,
    };
    let Some((word, name)) = named.filter(|(_, name)| !name.is_empty()) else {
        bail!("{} is not one object; write it as KIND/NAME or KIND NAME, such as pvc/data", words.join(" "));
    };
    let Some(kind) = kind_named(word) else {
        bail!(
            "{word} is not something to explain; there are pvc, pod, pv, va, node, sc, vac, csidriver, csinode, \
                 volumesnapshot and namespace"
        );
    };
    let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':'));
    if let Some(odd) = [name, namespace].into_iter().find(|text| !plain(text)) {
        bail!("{odd:?} is not a name of Kubernetes; `kubectl get {word}` lists those there are");
    }
    let namespace = if kind.namespaced() { namespace } else { "" };
    Ok(ObjectRef { kind, key: ObjectKey::new(namespace, name) })
}

/// Whom to ask.
#[derive(Debug, PartialEq, Eq)]
pub enum AskedServer {
    /// The server of a kubeconfig.
    Kubeconfig(PathBuf),
    /// The `longshore up` of a data directory; without one, of the usual directory.
    DataDir(Option<PathBuf>),
}

impl AskedServer {
    /// What was said on the command line, or else in the environment.
    pub fn chosen(kubeconfig: Option<PathBuf>, data_dir: Option<PathBuf>) -> AskedServer {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        AskedServer::first(kubeconfig, data_dir, variable("KUBECONFIG"), variable("LONGSHORE_DATA"))
    }

    /// Flags come before variables, and of both the kubeconfig before the data directory.
    fn first(
        kubeconfig: Option<PathBuf>,
        data_dir: Option<PathBuf>,
        kubeconfig_variable: Option<OsString>,
        data_variable: Option<OsString>,
    ) -> AskedServer {
        // As kubectl reads it, the variable may name several files.
        let file = |value: OsString| std::env::split_paths(&value).find(|path| !path.as_os_str().is_empty());
        match (kubeconfig, data_dir, kubeconfig_variable.and_then(file)) {
            (Some(path), _, _) | (None, None, Some(path)) => AskedServer::Kubeconfig(path),
            (None, Some(dir), _) => AskedServer::DataDir(Some(dir)),
            (None, None, None) => AskedServer::DataDir(data_variable.map(PathBuf::from)),
        }
    }

    /// The kubeconfig that reaches it.
    pub fn kubeconfig(self) -> Result<PathBuf> {
        match self {
            AskedServer::Kubeconfig(path) => Ok(path),
            AskedServer::DataDir(dir) => Ok(Layout::new(dir)?.kubeconfig()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &str) -> Result<ObjectRef> {
        object_named(&words.split(' ').map(String::from).collect::<Vec<_>>(), "demo")
    }

    #[test]
    fn people_may_use_the_names_they_know() {
        assert_eq!(kind_named("PVC"), Some(Kind::PersistentVolumeClaim));
        assert_eq!(kind_named("volumeattachments"), Some(Kind::VolumeAttachment));
        assert_eq!(kind_named("storageclass.storage.k8s.io"), Some(Kind::StorageClass));
        assert_eq!(kind_named("vs"), Some(Kind::VolumeSnapshot));
        assert_eq!(kind_named("ns"), Some(Kind::Namespace));
        assert_eq!(kind_named("service"), None);
    }

    #[test]
    fn an_object_is_named_with_a_slash_or_with_two_words() {
        let data = ObjectRef::namespaced(Kind::PersistentVolumeClaim, "demo", "data");
        assert_eq!(asked("pvc/data").unwrap(), data);
        assert_eq!(asked("pvc data").unwrap(), data);
        assert_eq!(asked("sc local").unwrap(), ObjectRef::cluster(Kind::StorageClass, "local"));
        for bad in ["pvc", "pvc/", "pvc/a pod/b", "pvc a b", "service/x", "pvc/a&name=b", "/x"] {
            assert!(asked(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn flags_come_before_variables_and_the_kubeconfig_before_the_data_directory() {
        let path = |text: &str| Some(PathBuf::from(text));
        let variable = |text: &str| Some(OsString::from(text));
        let kubeconfig = |text: &str| AskedServer::Kubeconfig(text.into());
        assert_eq!(AskedServer::first(path("k"), path("d"), variable("K"), variable("D")), kubeconfig("k"));
        assert_eq!(AskedServer::first(None, path("d"), variable("K"), variable("D")), AskedServer::DataDir(path("d")));
        assert_eq!(AskedServer::first(None, None, variable("K"), variable("D")), kubeconfig("K"));
        assert_eq!(AskedServer::first(None, None, variable(":K:L"), None), kubeconfig("K"));
        assert_eq!(AskedServer::first(None, None, None, variable("D")), AskedServer::DataDir(path("D")));
        assert_eq!(AskedServer::first(None, None, None, None), AskedServer::DataDir(None));
    }
}
