//! Label and field selectors, as lists and watches filter by them.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use api::Kind;
use serde_json::Value;

use crate::Failure;
use crate::kinds::rules;

/// A label selector: all requirements hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Missing,
    In(Vec<String>),
    /// Also true when there is no such label.
    NotIn(Vec<String>),
    Above(i64),
    Below(i64),
}

impl LabelSelector {
    /// Reads `a=b,c!=d,e in (x,y),f notin (z),g,!h`.
    pub fn parse(text: &str) -> Result<LabelSelector, Failure> {
        let requirements: Result<_, _> = split(text).into_iter().map(requirement).collect();
        Ok(LabelSelector { requirements: requirements? })
    }

    /// Nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The object's labels satisfy every requirement.
    pub fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.requirements.iter().all(|requirement| requirement.holds(labels[requirement.key.as_str()].as_str()))
    }
}

impl Requirement {
    fn holds(&self, label: Option<&str>) -> bool {
        let number = || label.and_then(|label| label.parse::<i64>().ok());
        match &self.test {
            Test::Exists => label.is_some(),
            Test::Missing => label.is_none(),
            Test::In(values) => label.is_some_and(|label| values.iter().any(|value| value == label)),
            Test::NotIn(values) => !label.is_some_and(|label| values.iter().any(|value| value == label)),
            Test::Above(bound) => number().is_some_and(|number| number > *bound),
            Test::Below(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

/// Cuts at the commas outside of parentheses.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut inside) = (Vec::new(), 0, false);
    for (at, byte) in text.bytes().enumerate() {
        inside = (inside || byte == b'(') && byte != b')';
        if byte == b',' && !inside {
            parts.push(text[start..at].trim());
            start = at + 1;
        }
    }
    parts.push(text[start..].trim());
    if parts == [""] { Vec::new() } else { parts }
}

fn requirement(text: &str) -> Result<Requirement, Failure> {
    let bad = || Failure::bad_request(format!("{text:?} is not a label requirement; write key=value or key in (a,b)"));
    let (key, test) = if let Some(key) = text.strip_prefix('!') {
        (key, Test::Missing)
    } else if let Some((key, value)) = text.split_once("!=") {
        (key, Test::NotIn(one(value).ok_or_else(bad)?))
    } else if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        (key, Test::In(one(value).ok_or_else(bad)?))
    } else if let Some((head, values)) = text.split_once('(') {
        let values = values.trim_end().strip_suffix(')').ok_or_else(bad)?;
        let values = values.split(',').map(|value| value.trim().to_string()).collect();
        let (key, word) = head.trim_end().rsplit_once(char::is_whitespace).ok_or_else(bad)?;
        match word {
            "in" => (key, Test::In(values)),
            "notin" => (key, Test::NotIn(values)),
            _neither => return Err(bad()),
        }
    } else if let Some((key, bound)) = text.split_once('>') {
        (key, Test::Above(bound.trim().parse().map_err(|_| bad())?))
    } else if let Some((key, bound)) = text.split_once('<') {
        (key, Test::Below(bound.trim().parse().map_err(|_| bad())?))
    } else {
        (text, Test::Exists)
    };
    let key = key.trim();
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    if key.is_empty() || !key.chars().all(legal) {
        return Err(bad());
    }
    Ok(Requirement { key: key.into(), test })
}

/// A single value, which may be empty but holds no operator.
fn one(value: &str) -> Option<Vec<String>> {
    let value = value.trim();
    let legal = value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if legal { Some([value.to_string()].into()) } else { None }
}

/// A field selector: all terms hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<FieldTerm>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldTerm {
    path: String,
    equal: bool,
    value: String,
}

impl FieldSelector {
    /// Reads `metadata.name=x,status.phase!=y`. A field the resource cannot be selected by is a bad request.
    pub fn parse(kind: Kind, text: &str) -> Result<FieldSelector, Failure> {
        let terms: Result<_, _> =
            text.split(',').filter(|term| !term.trim().is_empty()).map(|term| field_term(kind, term)).collect();
        Ok(FieldSelector { terms: terms? })
    }

    /// Nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Every term holds.
    pub fn matches(&self, object: &Value) -> bool {
        self.terms.iter().all(|term| (read(object, &term.path) == term.value) == term.equal)
    }

    /// The one name that can match, if the selector asks for one: a list then need not look at the rest.
    pub fn name(&self) -> Option<&str> {
        self.terms.iter().find(|term| term.equal && term.path == "metadata.name").map(|term| term.value.as_str())
    }
}

fn field_term(kind: Kind, text: &str) -> Result<FieldTerm, Failure> {
    let (path, equal, value) = if let Some((path, value)) = text.split_once("!=") {
        (path, false, value)
    } else if let Some((path, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        (path, true, value)
    } else {
        return Err(Failure::bad_request(format!("{text:?} is not a field requirement; write field=value")));
    };
    let path = path.trim();
    let meta = path == "metadata.name" || (path == "metadata.namespace" && kind.namespaced());
    if !meta && !rules(kind).selectable.contains(&path) {
        return Err(Failure::bad_request(format!("{} cannot be selected by the field {path:?}", kind.plural())));
    }
    Ok(FieldTerm { path: path.into(), equal, value: value.trim().into() })
}

fn read(object: &Value, path: &str) -> String {
    // The source of an event is selected by its component.
    let path = if path == "source" { "source.component" } else { path };
    let value = path.split('.').fold(object, |value, key| &value[key]);
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        // Booleans are left out when they are false.
        Value::Null if path == "spec.unschedulable" || path == "spec.hostNetwork" => "false".into(),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    }
}

/// Labels and fields together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    pub labels: LabelSelector,
    pub fields: FieldSelector,
}

impl Selector {
    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Both halves match.
    pub fn matches(&self, object: &Value) -> bool {
        self.labels.matches(object) && self.fields.matches(object)
    }
}

/// Reads the `labelSelector` and `fieldSelector` of a list or watch.
pub fn select(kind: Kind, labels: Option<&str>, fields: Option<&str>) -> Result<Selector, Failure> {
    Ok(Selector {
        labels: LabelSelector::parse(labels.unwrap_or_default())?,
        fields: FieldSelector::parse(kind, fields.unwrap_or_default())?,
    })
}
