//! What may stand in an object's name or a container's image. An error is a sentence that names the flag.

/// CSI driver names are at most this long.
const LONGEST_DRIVER: usize = 63;
const LONGEST_SUBDOMAIN: usize = 253;
const LONGEST_LABEL: usize = 63;
/// Pods are named after their set, with room for `-controller` and what the cluster adds.
const LONGEST_NAME: usize = 40;

/// A Secret the sidecars may read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretName {
    pub namespace: String,
    pub name: String,
}

/// A driver's name: it becomes the name of a CSIDriver and of a folder.
pub fn driver_name(name: &str) -> Result<String, String> {
    let name = subdomain("--driver-name", name)?;
    if name.len() > LONGEST_DRIVER {
        return Err(format!(
            "--driver-name {name} is longer than the {LONGEST_DRIVER} characters a driver's name may have"
        ));
    }
    Ok(name)
}

/// What objects are named after: as told, or the driver's name with dashes for dots.
pub fn object_name(given: Option<&str>, driver: &str) -> Result<String, String> {
    let name = match given {
        Some(name) => label("--name", name)?,
        None => driver.replace('.', "-"),
    };
    if name.len() > LONGEST_NAME {
        return Err(format!(
            "{name} is too long to name objects after; give at most {LONGEST_NAME} characters with --name"
        ));
    }
    Ok(name)
}

/// A word as a YAML scalar: quoted where it could be taken for something else than text.
pub fn scalar(word: &str) -> String {
    const MEANT: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let letter = word.starts_with(|c: char| c.is_ascii_alphabetic());
    let plain = word.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'.' | b'/'));
    if letter && plain && !MEANT.contains(&word.to_ascii_lowercase().as_str()) {
        return word.into();
    }
    quoted(word)
}

/// Any text as a YAML scalar.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Labels with dots between them.
pub fn subdomain(flag: &str, name: &str) -> Result<String, String> {
    if name.len() <= LONGEST_SUBDOMAIN && name.split('.').all(is_label) {
        return Ok(name.into());
    }
    Err(format!("{flag} {name:?} is no name; use lower-case letters, digits, dashes and dots, such as csi.example.com"))
}

/// Letters, digits and dashes.
pub fn label(flag: &str, name: &str) -> Result<String, String> {
    if name.len() <= LONGEST_LABEL && is_label(name) {
        return Ok(name.into());
    }
    Err(format!("{flag} {name:?} is no name; use lower-case letters, digits and dashes, such as storage-system"))
}

fn is_label(word: &str) -> bool {
    let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    let bytes = word.as_bytes();
    let ends = [bytes.first(), bytes.last()].into_iter().all(|end| end.is_some_and(|end| plain(*end)));
    ends && bytes.iter().all(|c| plain(*c) || *c == b'-')
}

/// An image reference; the cluster judges the rest.
pub fn image(flag: &str, image: &str) -> Result<String, String> {
    let fit = !image.is_empty() && image.bytes().all(|c| c.is_ascii_graphic() && !matches!(c, b'"' | b'\'' | b'\\'));
    if fit { Ok(image.into()) } else { Err(format!("{flag} {image:?} is no image; write it as example/driver:1.2")) }
}

/// What comes before the name of an image.
pub fn registry(given: &str) -> Result<String, String> {
    let bare = given.trim_end_matches('/');
    let bare = image("--registry", bare)
        .map_err(|_| format!("--registry {given:?} is no registry; write it as registry.example/storage"))?;
    if bare.contains("://") {
        return Err(format!(
            "--registry {given} is a URL; write {} alone",
            bare.split("://").last().unwrap_or_default()
        ));
    }
    Ok(bare)
}

/// An absolute path without tricks, and without a slash at its end.
pub fn folder(flag: &str, path: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.');
    let bare = path.trim_end_matches('/');
    if bare.starts_with('/') && bare.chars().all(plain) && !bare.split('/').any(|part| part == "..") {
        return Ok(bare.into());
    }
    Err(format!("{flag} {path:?} is no absolute path of a folder; write it as /var/lib/kubelet"))
}

/// One of these words.
pub fn one_of(flag: &str, word: &str, words: &[&str]) -> Result<String, String> {
    if words.contains(&word) {
        return Ok(word.into());
    }
    Err(format!("{flag} {word:?} is not known; choose from {}", words.join(", ")))
}

/// `namespace/name`, each once.
pub fn secrets(given: &[String]) -> Result<Vec<SecretName>, String> {
    let mut all = given
        .iter()
        .map(|text| {
            let (namespace, name) = text
                .split_once('/')
                .ok_or_else(|| format!("--secret {text:?} does not say where the Secret is; write NAMESPACE/NAME"))?;
            Ok(SecretName { namespace: label("--secret", namespace)?, name: subdomain("--secret", name)? })
        })
        .collect::<Result<Vec<_>, String>>()?;
    all.sort();
    all.dedup();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_the_api_server_takes() {
        assert!(driver_name("csi.example.com").is_ok() && label("-n", "kube-system").is_ok());
        for wrong in ["", "Csi.example", "a..b", "-a", "a-", "a b", "a\nb", "é"] {
            assert!(driver_name(wrong).is_err(), "{wrong:?}");
        }
        assert!(driver_name(&"x".repeat(64)).unwrap_err().contains("longer than the 63"));
        assert!(label("-n", "a.b").is_err());
    }

    #[test]
    fn nothing_that_could_leave_its_place_in_the_text_is_taken() {
        assert!(image("--image", "host:5000/a/b@sha256:00").is_ok());
        for wrong in ["", "a b", "a\"", "a\nkind: Pod"] {
            assert!(image("--image", wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(registry("registry.example:5000/storage/").unwrap(), "registry.example:5000/storage");
        assert!(registry("").is_err() && registry("a b").unwrap_err().contains("is no registry"));
        assert!(registry("https://registry.example").unwrap_err().ends_with("write registry.example alone"));
        assert_eq!(folder("-d", "/var/lib/kubelet/").unwrap(), "/var/lib/kubelet");
        for wrong in ["", "/", "var", "/a/../b", "/a: b"] {
            assert!(folder("-d", wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn words_that_yaml_takes_for_something_else_are_quoted() {
        assert_eq!(scalar("csi.example.com"), "csi.example.com");
        for word in ["true", "1.2", "1e3", "no", "0x1", "-", ""] {
            assert_eq!(scalar(word), format!("\"{word}\""));
        }
        assert_eq!(quoted("a\n\"b"), r#""a\n\"b""#);
    }

    #[test]
    fn objects_are_named_so_that_pods_can_be() {
        assert_eq!(object_name(None, "csi.example.com").unwrap(), "csi-example-com");
        assert_eq!(object_name(Some("short"), "csi.example.com").unwrap(), "short");
        assert!(object_name(None, &"x".repeat(41)).unwrap_err().contains("--name"));
    }

    #[test]
    fn secrets_are_named_with_their_namespace() {
        let named = secrets(&["b/y".into(), "a/x".into(), "b/y".into()]).unwrap();
        assert_eq!(named.iter().map(|one| one.namespace.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert!(secrets(&["x".into()]).unwrap_err().contains("NAMESPACE/NAME"));
        assert!(secrets(&["*/x".into()]).is_err());
    }
}
