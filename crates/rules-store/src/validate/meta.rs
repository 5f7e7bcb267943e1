use alloc::format;
use alloc::string::String;

use api::Kind;
use serde_json::{Map, Value};

use super::{Report, items};
use crate::kinds::{Names, rules};
use crate::{FieldProblem, meta};

const LONGEST_LABEL: usize = 63;
const LONGEST_NAME: usize = 253;
/// All annotations of an object together.
const MOST_ANNOTATION_BYTES: usize = 256 * 1024;

/// The name fits its kind.
pub(super) fn name(report: &mut Report, kind: Kind, object: &Value) {
    let name = meta::text(object, "name");
    if name.is_empty() {
        return report.required("metadata.name", "name or generateName is required");
    }
    let Names { allowed, rule } = &rules(kind).names;
    if !allowed(name) {
        let ends = "every part between dots must start and end with a letter or digit";
        report.invalid("metadata.name", format!("{name:?} must {rule}; {ends}"));
    }
}

/// Rules on metadata that hold for every kind.
pub(super) fn common(report: &mut Report, object: &Value) {
    let meta = &object["metadata"];
    for (key, value) in meta["labels"].as_object().into_iter().flat_map(Map::iter) {
        if !is_qualified(key) {
            report.invalid("metadata.labels", format!("{key:?} is not a label key; write name or prefix/name"));
        }
        if !value.as_str().is_some_and(is_label_value) {
            report.invalid("metadata.labels", format!("the value of {key:?} must be at most 63 letters, digits, '-', '_' or '.', and start and end with a letter or digit"));
        }
    }
    let mut bytes = 0;
    for (key, value) in meta["annotations"].as_object().into_iter().flat_map(Map::iter) {
        bytes += key.len() + value.as_str().unwrap_or_default().len();
        if !is_qualified(&key.to_ascii_lowercase()) {
            report.invalid(
                "metadata.annotations",
                format!("{key:?} is not an annotation key; write name or prefix/name"),
            );
        }
    }
    if bytes > MOST_ANNOTATION_BYTES {
        report.invalid("metadata.annotations", "all annotations together must be smaller than 256 KiB");
    }
    for finalizer in meta::finalizers(object) {
        if !is_qualified(finalizer) {
            report.invalid("metadata.finalizers", format!("{finalizer:?} is not a finalizer; write prefix/name"));
        }
    }
    owners(report, &meta["ownerReferences"]);
}

fn owners(report: &mut Report, owners: &Value) {
    for (at, owner) in items(owners).enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner[field].as_str().unwrap_or_default().is_empty() {
                report.required(format!("metadata.ownerReferences[{at}].{field}"), "it must be set");
            }
        }
    }
    if items(owners).filter(|owner| owner["controller"].as_bool() == Some(true)).count() > 1 {
        report.invalid("metadata.ownerReferences", "only one owner can be the controller");
    }
}

/// reliability 99: what identifies an object never changes, and a deletion cannot be held up by new finalizers.
pub(super) fn unchanged(report: &mut Report, old: &Value, new: &Value) {
    for field in ["metadata.name", "metadata.namespace", "metadata.uid", "metadata.creationTimestamp"] {
        report.immutable(old, new, field);
    }
    if !meta::is_deleting(old) {
        return;
    }
    let had: alloc::collections::BTreeSet<&str> = meta::finalizers(old).into_iter().collect();
    for finalizer in meta::finalizers(new) {
        if !had.contains(&finalizer) {
            report.add(
                "metadata.finalizers",
                FieldProblem::Forbidden,
                format!("{finalizer:?} cannot be added while the object is being deleted"),
            );
        }
    }
}

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

pub(crate) fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    !bytes.is_empty()
        && bytes.len() <= LONGEST_LABEL
        && bytes.iter().all(|byte| is_alphanumeric(*byte) || *byte == b'-')
        && bytes.first().is_some_and(|byte| is_alphanumeric(*byte))
        && bytes.last().is_some_and(|byte| is_alphanumeric(*byte))
}

/// A DNS-1123 subdomain. Its parts may be longer than a label, as in Kubernetes.
pub(crate) fn is_subdomain(text: &str) -> bool {
    let part = |part: &str| {
        let bytes = part.as_bytes();
        bytes.iter().all(|byte| is_alphanumeric(*byte) || *byte == b'-')
            && bytes.first().is_some_and(|byte| is_alphanumeric(*byte))
            && bytes.last().is_some_and(|byte| is_alphanumeric(*byte))
    };
    text.len() <= LONGEST_NAME && text.split('.').all(part)
}

pub(crate) fn is_path_segment(text: &str) -> bool {
    text != "." && text != ".." && !text.contains(['/', '%'])
}

fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_plain_name(text)
}

/// Letters, digits, `-`, `_`, `.`, at most 63, a letter or digit at both ends.
fn is_plain_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() <= LONGEST_LABEL
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
}

/// `name` or `prefix/name` with a DNS prefix.
pub(crate) fn is_qualified(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_plain_name(name),
        None => is_plain_name(text),
    }
}

/// Checks what a selector asks of labels, if there is one.
pub(crate) fn check_selector(report: &mut Report, selector: &Value, field: &str) {
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        let at = format!("{field}.matchLabels");
        if !is_qualified(key) {
            report.invalid(at.as_str(), format!("{key:?} cannot be the name of a label"));
        }
        if !is_label_value(value.as_str().unwrap_or_default()) {
            report.invalid(at, format!("{value} cannot be the value of a label"));
        }
    }
    for (index, asked) in items(&selector["matchExpressions"]).enumerate() {
        let at = |part: &str| format!("{field}.matchExpressions[{index}].{part}");
        let key = asked["key"].as_str().unwrap_or_default();
        if !is_qualified(key) {
            report.invalid(at("key"), format!("{key:?} cannot be the name of a label"));
        }
        let values = items(&asked["values"]).count();
        match asked["operator"].as_str().unwrap_or_default() {
            "In" | "NotIn" if values == 0 => {
                report.required(at("values"), "In and NotIn compare with at least one value")
            }
            "Exists" | "DoesNotExist" if values > 0 => {
                report.add(at("values"), FieldProblem::Forbidden, "Exists and DoesNotExist compare with no value");
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => report.invalid(at("operator"), format!("{other:?} is not one of In, NotIn, Exists, DoesNotExist")),
        }
    }
}

/// The items of a list of objects that carry a name already used, with their positions.
pub(crate) fn duplicates(list: &Value, key: &str, mut found: impl FnMut(usize, String)) {
    let mut seen = alloc::collections::BTreeSet::new();
    for (at, item) in items(list).enumerate() {
        let name = item[key].as_str().unwrap_or_default();
        if !name.is_empty() && !seen.insert(name) {
            found(at, name.into());
        }
    }
}
