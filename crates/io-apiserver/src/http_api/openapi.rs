//! OpenAPI v3 documents, made from the table of fields the store decodes with.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

use rules_store::{FieldStanding, FieldTable, Kind, fields, schema};
use serde_json::{Map, Value, json};
use wire::{Message, Type};

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
        for kind in Kind::ALL {
            documents.entry(relative_path(kind)).or_insert_with(|| document(kind.group(), kind.version()));
        }
        documents
    })
}

/// `api/v1` or `apis/{group}/{version}`.
fn relative_path(kind: Kind) -> String {
    match kind.group() {
        "" => format!("api/{}", kind.version()),
        group => format!("apis/{group}/{}", kind.version()),
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
    let path = members(group, version).first().map(|kind| relative_path(*kind))?;
    documents().get(&path).map(|document| document.text.as_str())
}

fn document(group: &'static str, version: &'static str) -> Document {
    let mut schemas = Map::new();
    let mut paths = Map::new();
    for kind in members(group, version) {
        component(schema(kind), &mut schemas);
        if let Some(root) = schemas.get_mut(&name_of(schema(kind))) {
            root["x-kubernetes-group-version-kind"] = json!([kind_of(kind)]);
            for field in ["apiVersion", "kind"] {
                root["properties"][field] = json!({"type": "string"});
            }
        }
        add_paths(kind, &mut paths);
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

fn kind_of(kind: Kind) -> Value {
    json!({"group": kind.group(), "version": kind.version(), "kind": kind.name()})
}

/// `k8s.io.api.core.v1` and `Pod` make `io.k8s.api.core.v1.Pod`.
fn name_of(of: &Message) -> String {
    match of.package.strip_prefix("k8s.io.") {
        Some(package) => format!("io.k8s.{package}.{}", of.name),
        None => format!("{}.{}", of.package, of.name),
    }
}

/// What is said of a field, wherever its message is used.
fn description(of: &'static Message, field: &str) -> Option<String> {
    static TABLES: OnceLock<HashMap<usize, &'static FieldTable>> = OnceLock::new();
    let tables = TABLES.get_or_init(|| {
        let mut tables = HashMap::new();
        Kind::ALL.into_iter().for_each(|kind| note(fields(kind), &mut tables));
        tables
    });
    let entry = tables.get(&address(of))?.entry(field)?;
    let lead = match entry.standing {
        FieldStanding::Honoured if entry.sentence.is_empty() => return None,
        FieldStanding::Honoured => "",
        FieldStanding::Warned => "Does nothing here: ",
        FieldStanding::Refused => "Not taken here: ",
    };
    let words: Vec<&str> = entry.unless.iter().map(|word| word.trim_matches('"')).collect();
    let unless = if words.is_empty() { String::new() } else { format!(" (but {} passes)", words.join(", ")) };
    Some(format!("{lead}{}{unless}", entry.sentence))
}

fn note(table: &'static FieldTable, tables: &mut HashMap<usize, &'static FieldTable>) {
    if tables.insert(address(table.of), table).is_none() {
        table.entries.iter().filter_map(|entry| entry.within).for_each(|within| note(within, tables));
    }
}

/// Messages are told apart by where they are.
fn address(of: &'static Message) -> usize {
    std::ptr::from_ref(of).addr()
}

fn component(of: &'static Message, schemas: &mut Map<String, Value>) {
    let name = name_of(of);
    if schemas.contains_key(&name) {
        return;
    }
    // Entered before its fields, should a type ever contain itself.
    schemas.insert(name.clone(), Value::Null);
    let mut properties = Map::new();
    for field in of.json_fields() {
        let mut property = property(field.r#type, schemas);
        if let Some(description) = description(of, field.name) {
            property["description"] = description.into();
        }
        properties.insert(field.name.to_owned(), property);
    }
    schemas.insert(name, json!({"type": "object", "properties": properties}));
}

fn property(r#type: Type, schemas: &mut Map<String, Value>) -> Value {
    let text = || json!({"type": "string"});
    let numbers = |format: &str| {
        json!({
            "type": "array", "items": {"type": "integer", "format": format}, "x-kubernetes-list-type": "atomic",
        })
    };
    match r#type {
        Type::String => text(),
        Type::Time | Type::MicroTime => json!({"type": "string", "format": "date-time"}),
        Type::Int32 => json!({"type": "integer", "format": "int32"}),
        Type::Int64 => json!({"type": "integer", "format": "int64"}),
        Type::Bool => json!({"type": "boolean"}),
        Type::Quantity => json!({"allOf": [quantity(schemas)]}),
        Type::IntOrString => json!({"oneOf": [{"type": "integer"}, text()], "format": "int-or-string"}),
        Type::Int32s => numbers("int32"),
        Type::Int64s => numbers("int64"),
        Type::Strings => json!({"type": "array", "items": text(), "x-kubernetes-list-type": "atomic"}),
        Type::StringSet => json!({
            "type": "array", "items": text(), "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge",
        }),
        Type::StringMap => json!({"type": "object", "additionalProperties": text()}),
        Type::QuantityMap => json!({"type": "object", "additionalProperties": quantity(schemas)}),
        Type::BytesMap => {
            json!({"type": "object", "additionalProperties": {"type": "string", "format": "byte"}})
        }
        Type::Message(of) | Type::Inline(of) => json!({"allOf": [reference(of, schemas)]}),
        Type::Messages(of) => {
            json!({"type": "array", "items": reference(of, schemas), "x-kubernetes-list-type": "atomic"})
        }
        Type::Keyed(of, key) => json!({
            "type": "array", "items": reference(of, schemas), "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": [key], "x-kubernetes-patch-merge-key": key,
            "x-kubernetes-patch-strategy": "merge",
        }),
        Type::Unread => json!({"type": "array", "items": {"type": "object"}}),
    }
}

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

// A component of its own, so that clients can name it.
fn quantity(schemas: &mut Map<String, Value>) -> Value {
    schemas.entry(QUANTITY).or_insert_with(|| json!({"oneOf": [{"type": "string"}, {"type": "number"}]}));
    json!({"$ref": format!("#/components/schemas/{QUANTITY}")})
}

fn reference(of: &'static Message, schemas: &mut Map<String, Value>) -> Value {
    component(of, schemas);
    json!({"$ref": format!("#/components/schemas/{}", name_of(of))})
}

fn add_paths(kind: Kind, paths: &mut Map<String, Value>) {
    let base = format!("/{}", relative_path(kind));
    let collection = if kind.namespaced() {
        paths.insert(format!("{base}/{}", kind.plural()), json!({"get": operation(kind, "list", &[])}));
        format!("{base}/namespaces/{{namespace}}/{}", kind.plural())
    } else {
        format!("{base}/{}", kind.plural())
    };
    paths.insert(
        collection.clone(),
        json!({
            "get": operation(kind, "list", &[]),
            "post": operation(kind, "post", &WRITE),
            "delete": operation(kind, "deletecollection", &[]),
        }),
    );
    let one = json!({
        "get": operation(kind, "get", &[]),
        "put": operation(kind, "put", &WRITE),
        "patch": operation(kind, "patch", &WRITE),
        "delete": operation(kind, "delete", &["dryRun"]),
    });
    paths.insert(format!("{collection}/{{name}}"), one.clone());
    if kind.has_status() {
        paths.insert(format!("{collection}/{{name}}/status"), one);
    }
}

/// What every write takes in its query.
const WRITE: [&str; 3] = ["dryRun", "fieldManager", "fieldValidation"];

fn operation(kind: Kind, action: &str, query: &[&str]) -> Value {
    let parameters: Vec<Value> = query
        .iter()
        .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}}))
        .collect();
    let answer = json!({"$ref": format!("#/components/schemas/{}", name_of(schema(kind)))});
    json!({
        "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind_of(kind), "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": answer}}}},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_patch_says_its_kind_and_takes_field_validation() {
        for kind in Kind::ALL {
            let document: Value = serde_json::from_str(text(kind.group(), kind.version()).unwrap()).unwrap();
            let patches = document["paths"].as_object().unwrap().values().filter_map(|p| p.get("patch"));
            let found = patches
                .filter(|patch| patch["x-kubernetes-group-version-kind"] == kind_of(kind))
                .any(|patch| patch["parameters"].as_array().unwrap().iter().any(|p| p["name"] == "fieldValidation"));
            assert!(found, "{kind:?}");
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
