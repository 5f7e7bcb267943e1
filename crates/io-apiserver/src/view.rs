//! Objects as a client asked to see them: which ones, and how much of each.

use std::sync::Arc;

use rules_store::{Kind, Selector, StoreKey, Stored};
use serde_json::{Value, json};

use crate::http_api::{Options, ResourcePath};
use crate::hub::Kept;
use crate::refusal::Refusal;

/// Which objects of a resource are asked for.
pub(crate) struct Filter {
    pub kind: Kind,
    /// Only this namespace.
    pub namespace: Option<String>,
    /// Only this name: a watch of a single object by its path.
    name: Option<String>,
    selector: Selector,
}

impl Filter {
    pub(crate) fn new(path: &ResourcePath, options: &Options) -> Result<Filter, Refusal> {
        let text = |s: &str| if s.is_empty() { None } else { Some(s.to_owned()) };
        let (labels, fields) = (text(&options.label_selector), text(&options.field_selector));
        Ok(Filter {
            kind: path.kind,
            namespace: text(&path.namespace),
            name: text(&path.name),
            selector: rules_store::select(path.kind, labels.as_deref(), fields.as_deref())?,
        })
    }

    pub(crate) fn matches(&self, object: &Stored) -> bool {
        self.covers(&object.key) && (self.selector.is_empty() || self.selector.matches(&object.value))
    }

    /// The same of an object in the history, which is read only if it must be.
    pub(crate) fn matches_kept(&self, object: &Kept) -> bool {
        self.covers(object.key()) && (self.selector.is_empty() || self.selector.matches(&object.get().value))
    }

    fn covers(&self, key: &StoreKey) -> bool {
        self.namespace.as_deref().is_none_or(|namespace| namespace == &*key.namespace)
            && self.name.as_deref().is_none_or(|name| name == &*key.name)
    }
}

/// Rows and columns; each row carries as much of its object as was asked for.
pub(crate) fn table(kind: Kind, objects: &[Arc<Stored>], include: &str) -> Result<Value, Refusal> {
    let references: Vec<&Stored> = objects.iter().map(Arc::as_ref).collect();
    let mut table = rules_store::table(kind, &references, crate::writer::now_millis());
    let rows = table["rows"].as_array_mut().map(Vec::as_mut_slice).unwrap_or_default();
    for (row, object) in rows.iter_mut().zip(objects) {
        row["object"] = match include {
            "" | "Metadata" => metadata(object),
            "Object" => object.value.clone(),
            "None" => Value::Null,
            other => {
                let message = format!("includeObject must be None, Metadata or Object, not \"{other}\"");
                return Err(Refusal::bad_request(message));
            }
        };
    }
    Ok(table)
}

/// Only the metadata of an object.
pub(crate) fn metadata(object: &Arc<Stored>) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object.value["metadata"],
    })
}
