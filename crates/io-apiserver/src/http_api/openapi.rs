//! OpenAPI v3 documents, made from the table of fields the store decodes with.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

use rules_store::{Field, Resource, Shape, Type, resources, schema};
use serde_json::{Map, Value, json};

use super::discovery::members;

/// A document and the mark of its content.
struct Document {
    text: String,
    mark: u64,
}

fn documents() -> &'static BTreeMap<String, Document> {
    static DOCUMENTS: OnceLock<BTreeMap<String, Document>> = OnceLock::new();
    DOCUMENTS.get_or_init(|| {
        let mut documents = BTreeMap::new();
        for resource in resources() {
            documents.entry(relative_path(resource)).or_insert_with(|| document(resource.group, resource.version));
        }
        documents
    })
}

/// `api/v1` or `apis/{group}/{version}`.
fn relative_path(resource: &Resource) -> String {
    match resource.group {
        "" => format!("api/{}", resource.version),
        group => format!("apis/{group}/{}", resource.version),
    }
}

/// `/openapi/v3`: which documents there are.
pub(crate) fn index() -> Value {
    let paths: Map<String, Value> = documents()
        .iter()
        .map(|(path, document)| {
            let url = format!("/openapi/v3/{path}?hash={:016X}", document.mark);
            (path.clone(), json!({ "serverRelativeURL": url }))
        })
        .collect();
    json!({ "paths": paths })
}

/// One document as text.
pub(crate) fn text(group: &str, version: &str) -> Option<&'static str> {
    let path = members(group, version).first().map(|resource| relative_path(resource))?;
    documents().get(&path).map(|document| document.text.as_str())
}

fn document(group: &'static str, version: &'static str) -> Document {
    let mut schemas = Map::new();
    let mut paths = Map::new();
    for resource in members(group, version) {
        component(resource, schema(resource), &mut schemas);
        if let Some(root) = schemas.get_mut(&name_of(resource, schema(resource))) {
            root["x-kubernetes-group-version-kind"] = json!([kind_of(resource)]);
        }
        add_paths(resource, &mut paths);
    }
    let text = json!({
        "openapi": "3.0.0", "info": {"title": "Longshore", "version": "v1.37.0"},
        "paths": paths, "components": {"schemas": schemas},
    })
    .to_string();
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    Document { mark: hasher.finish(), text }
}

fn kind_of(resource: &Resource) -> Value {
    json!({"group": resource.group, "version": resource.version, "kind": resource.kind})
}

fn name_of(resource: &Resource, of: &Type) -> String {
    if matches!(of.name, "ObjectMeta" | "OwnerReference" | "LabelSelector" | "LabelSelectorRequirement") {
        return format!("io.k8s.apimachinery.pkg.apis.meta.v1.{}", of.name);
    }
    let group = match resource.group {
        "" => "core",
        group => group.split('.').next().unwrap_or(group),
    };
    format!("io.k8s.api.{group}.{}.{}", resource.version, of.name)
}

fn component(resource: &Resource, of: &'static Type, schemas: &mut Map<String, Value>) {
    let name = name_of(resource, of);
    if schemas.contains_key(&name) {
        return;
    }
    // Entered before its fields, should a type ever contain itself.
    schemas.insert(name.clone(), Value::Null);
    let properties: Map<String, Value> =
        of.fields.iter().map(|f| (f.name.to_owned(), property(resource, f, schemas))).collect();
    schemas.insert(name, json!({"type": "object", "properties": properties}));
}

fn property(resource: &Resource, field: &Field, schemas: &mut Map<String, Value>) -> Value {
    let text = || json!({"type": "string"});
    match field.shape {
        Shape::Text => text(),
        Shape::Time => json!({"type": "string", "format": "date-time"}),
        Shape::Integer => json!({"type": "integer", "format": "int64"}),
        Shape::Boolean => json!({"type": "boolean"}),
        Shape::Quantity => json!({"allOf": [quantity(schemas)]}),
        Shape::IntOrText => json!({"oneOf": [{"type": "integer"}, text()], "format": "int-or-string"}),
        Shape::Texts => json!({"type": "array", "items": text(), "x-kubernetes-list-type": "atomic"}),
        Shape::TextSet => json!({
            "type": "array", "items": text(), "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge",
        }),
        Shape::TextMap => json!({"type": "object", "additionalProperties": text()}),
        Shape::QuantityMap => json!({"type": "object", "additionalProperties": quantity(schemas)}),
        Shape::BytesMap => {
            json!({"type": "object", "additionalProperties": {"type": "string", "format": "byte"}})
        }
        Shape::Object(of) => json!({"allOf": [reference(resource, of, schemas)]}),
        Shape::Objects(of) => {
            json!({"type": "array", "items": reference(resource, of, schemas), "x-kubernetes-list-type": "atomic"})
        }
        Shape::Keyed(of, key) => json!({
            "type": "array", "items": reference(resource, of, schemas), "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": [key], "x-kubernetes-patch-merge-key": key,
            "x-kubernetes-patch-strategy": "merge",
        }),
        Shape::Opaque => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        Shape::OpaqueList => json!({"type": "array", "items": {"type": "object"}}),
    }
}

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

// A component of its own, so that clients can name it.
fn quantity(schemas: &mut Map<String, Value>) -> Value {
    schemas.entry(QUANTITY).or_insert_with(|| json!({"oneOf": [{"type": "string"}, {"type": "number"}]}));
    json!({"$ref": format!("#/components/schemas/{QUANTITY}")})
}

fn reference(resource: &Resource, of: &'static Type, schemas: &mut Map<String, Value>) -> Value {
    component(resource, of, schemas);
    json!({"$ref": format!("#/components/schemas/{}", name_of(resource, of))})
}

fn add_paths(resource: &Resource, paths: &mut Map<String, Value>) {
    let base = format!("/{}", relative_path(resource));
    let collection = if resource.namespaced {
        paths.insert(format!("{base}/{}", resource.plural), json!({"get": operation(resource, "list", &[])}));
        format!("{base}/namespaces/{{namespace}}/{}", resource.plural)
    } else {
        format!("{base}/{}", resource.plural)
    };
    paths.insert(
        collection.clone(),
        json!({
            "get": operation(resource, "list", &[]),
            "post": operation(resource, "post", &WRITE),
            "delete": operation(resource, "deletecollection", &[]),
        }),
    );
    let one = json!({
        "get": operation(resource, "get", &[]),
        "put": operation(resource, "put", &WRITE),
        "patch": operation(resource, "patch", &WRITE),
        "delete": operation(resource, "delete", &["dryRun"]),
    });
    paths.insert(format!("{collection}/{{name}}"), one.clone());
    if resource.status {
        paths.insert(format!("{collection}/{{name}}/status"), one);
    }
}

/// What every write takes in its query.
const WRITE: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];

fn operation(resource: &Resource, action: &str, query: &[&str]) -> Value {
    let parameters: Vec<Value> = query
        .iter()
        .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}}))
        .collect();
    let answer = json!({"$ref": format!("#/components/schemas/{}", name_of(resource, schema(resource)))});
    json!({
        "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind_of(resource), "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": answer}}}},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_patch_says_its_kind_and_takes_field_validation() {
        for resource in resources() {
            let document: Value = serde_json::from_str(text(resource.group, resource.version).unwrap()).unwrap();
            let patches = document["paths"].as_object().unwrap().values().filter_map(|p| p.get("patch"));
            let found = patches
                .filter(|patch| patch["x-kubernetes-group-version-kind"] == kind_of(resource))
                .any(|patch| patch["parameters"].as_array().unwrap().iter().any(|p| p["name"] == "fieldValidation"));
            assert!(found, "{resource:?}");
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn walk(value: &Value, schemas: &Value) {
            match value {
                Value::Object(map) => {
                    if let Some(target) = map.get("$ref").and_then(Value::as_str) {
                        let name = target.rsplit('/').next().unwrap();
                        assert!(schemas[name].is_object(), "{target}");
                    }
                    map.values().for_each(|v| walk(v, schemas));
                }
                Value::Array(items) => items.iter().for_each(|v| walk(v, schemas)),
                _ => {}
            }
        }
        for document in documents().values() {
            let document: Value = serde_json::from_str(&document.text).unwrap();
            walk(&document, &document["components"]["schemas"]);
        }
    }
}
