//! The schema tables say what Kubernetes publishes: `make record-protos` records it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use std::collections::{BTreeMap, BTreeSet};

use api::Kind;
use rules_store::schema;
use wire::messages::{LIST_META, STATUS, request};
use wire::{Field, Message, Presence, Type};

/// Published fields that no table has; a request with one of them is refused.
const LEFT_OUT: [&str; 2] =
    ["k8s.io.api.authentication.v1.TokenRequestSpec.attestations", "k8s.io.api.authentication.v1.UserInfo.extra"];

/// A field as it is recorded: number, name, presence, type.
type Recorded<'a> = (u32, &'a str, &'a str, &'a str);

fn recorded() -> BTreeMap<&'static str, Vec<Recorded<'static>>> {
    let mut messages: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in include_str!("protos.txt").lines() {
        let mut words = line.splitn(5, ' ');
        let mut word = || words.next().unwrap();
        let (message, number) = (word(), word().parse().unwrap());
        messages.entry(message).or_default().push((number, word(), word(), word()));
    }
    messages
}

fn gather(of: &'static Message, found: &mut BTreeMap<String, &'static Message>) {
    if found.insert(format!("{}.{}", of.package, of.name), of).is_none() {
        for field in of.fields {
            if let Type::Message(inner) | Type::Messages(inner) | Type::Keyed(inner, _) | Type::Inline(inner) =
                field.r#type
            {
                gather(inner, found);
            }
        }
    }
}

fn tables() -> BTreeMap<String, &'static Message> {
    let mut found = BTreeMap::new();
    Kind::ALL.into_iter().filter(|kind| kind.has_protobuf()).for_each(|kind| gather(schema(kind), &mut found));
    for (api_version, kind) in [
        ("v1", "Binding"),
        ("v1", "DeleteOptions"),
        ("authentication.k8s.io/v1", "TokenRequest"),
        ("authentication.k8s.io/v1", "SelfSubjectReview"),
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview"),
        ("authorization.k8s.io/v1", "SelfSubjectRulesReview"),
    ] {
        gather(request(api_version, kind).unwrap(), &mut found);
    }
    gather(&LIST_META, &mut found);
    gather(&STATUS, &mut found);
    found
}

fn proto_type(r#type: Type) -> String {
    match r#type {
        Type::Bool => "bool".into(),
        Type::Int32 => "int32".into(),
        Type::Int64 => "int64".into(),
        Type::String => "string".into(),
        Type::Time => "Time".into(),
        Type::MicroTime => "MicroTime".into(),
        Type::Quantity => "Quantity".into(),
        Type::IntOrString => "IntOrString".into(),
        Type::Int32s => "repeated int32".into(),
        Type::Int64s => "repeated int64".into(),
        Type::Strings | Type::StringSet => "repeated string".into(),
        Type::StringMap => "map<string, string>".into(),
        Type::QuantityMap => "map<string, Quantity>".into(),
        Type::BytesMap => "map<string, bytes>".into(),
        Type::Message(of) | Type::Inline(of) => of.name.into(),
        Type::Messages(of) | Type::Keyed(of, _) => format!("repeated {}", of.name),
        Type::Unread => "repeated ManagedFieldsEntry".into(),
    }
}

/// How Go leaves the field out, as far as that makes a difference for its type.
fn same_presence(field: &Field, recorded: &str) -> bool {
    match field.r#type {
        Type::Bool | Type::Int32 | Type::Int64 | Type::String => {
            recorded
                == match field.presence {
                    Presence::OmitEmpty => ":",
                    Presence::Pointer => "?",
                    Presence::Required => "!",
                }
        }
        Type::Time | Type::MicroTime | Type::Quantity | Type::IntOrString | Type::Message(_) => {
            (recorded == "?") == (field.presence == Presence::Pointer)
        }
        _list_or_map => true,
    }
}

#[test]
fn every_field_of_every_table_is_as_published_and_none_is_missing() {
    let (recorded, tables) = (recorded(), tables());
    assert_eq!(
        recorded.keys().copied().collect::<BTreeSet<_>>(),
        tables.keys().map(String::as_str).collect(),
        "run make record-protos after a message came or went"
    );
    for (name, message) in tables {
        let published = &recorded[name.as_str()];
        for field in message.fields {
            let found = published.iter().find(|(number, ..)| *number == field.number);
            let (_, named, presence, r#type) = found.unwrap_or_else(|| panic!("{name} has no {}", field.number));
            assert_eq!((field.name, proto_type(field.r#type).as_str()), (*named, *r#type), "{name}.{}", field.name);
            assert!(same_presence(field, presence), "{name}.{} is marked {presence}", field.name);
        }
        for (number, field, ..) in published {
            let known = message.fields.iter().any(|known| known.number == *number);
            assert!(known || LEFT_OUT.contains(&format!("{name}.{field}").as_str()), "{name}.{field} = {number}");
        }
    }
}
