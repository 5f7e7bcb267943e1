use alloc::collections::BTreeMap;
use alloc::string::String;

use api::Value;

/// Whether a node satisfies a volume's `nodeAffinity`: any of the required terms, each of them in full. A term, an
/// operator or a shape we do not understand is not satisfied, because the volume might be out of reach.
pub(crate) fn reaches(affinity: &Value, node: &str, labels: &BTreeMap<String, String>) -> bool {
    let Some(required) = affinity.get("required").filter(|required| !required.is_null()) else { return true };
    let terms = required.get("nodeSelectorTerms").and_then(Value::as_array);
    terms.is_some_and(|terms| terms.iter().any(|term| term_holds(term, node, labels)))
}

fn term_holds(term: &Value, node: &str, labels: &BTreeMap<String, String>) -> bool {
    let list = |field: &str| term.get(field).and_then(Value::as_array).map(|list| list.as_slice()).unwrap_or_default();
    let (expressions, fields) = (list("matchExpressions"), list("matchFields"));
    // An empty term selects nothing.
    !(expressions.is_empty() && fields.is_empty())
        && expressions.iter().all(|wanted| holds(wanted, |key| labels.get(key).map(String::as_str)))
        && fields.iter().all(|wanted| holds(wanted, |key| (key == "metadata.name").then_some(node)))
}

fn holds<'a>(wanted: &Value, value_of: impl Fn(&str) -> Option<&'a str>) -> bool {
    let Some(key) = wanted.get("key").and_then(Value::as_str) else { return false };
    let values = wanted.get("values").and_then(Value::as_array).map(|list| list.as_slice()).unwrap_or_default();
    let found = value_of(key);
    let listed = found.is_some_and(|found| values.iter().any(|value| value.as_str() == Some(found)));
    let number = |text: &str| text.parse::<i64>().ok();
    let bound = values.first().and_then(Value::as_str).and_then(number);
    let found_number = found.and_then(number);
    match wanted.get("operator").and_then(Value::as_str).unwrap_or("") {
        "In" => listed,
        "NotIn" => !listed,
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        "Gt" => matches!((found_number, bound), (Some(found), Some(bound)) if found > bound),
        "Lt" => matches!((found_number, bound), (Some(found), Some(bound)) if found < bound),
        _unknown => false,
    }
}
