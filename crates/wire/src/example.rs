use api::Value;
use serde_json::{Map, json};

use crate::{Message, Type};

/// An object in which every field is set, for tests that must try them all.
pub fn example(message: &Message) -> Value {
    let fields = message.json_fields().filter(|field| !matches!(field.r#type, Type::Unread));
    Value::Object(fields.map(|field| (field.name.into(), value(field.r#type))).collect::<Map<_, _>>())
}

fn value(r#type: Type) -> Value {
    match r#type {
        Type::Bool => json!(true),
        Type::Int32 => json!(7),
        Type::Int64 => json!(1_i64 << 40),
        Type::String => json!("text"),
        Type::Time => json!("2027-01-15T08:00:00Z"),
        Type::MicroTime => json!("2027-01-15T08:00:00.000001Z"),
        Type::Quantity => json!("1Gi"),
        Type::IntOrString => json!("http"),
        Type::Int32s | Type::Int64s => json!([-1, 8]),
        Type::Strings | Type::StringSet => json!(["a", "b"]),
        Type::StringMap => json!({ "key": "value" }),
        Type::QuantityMap => json!({ "storage": "1Gi" }),
        Type::BytesMap => json!({ "key": "Y2FuYXJ5" }),
        Type::Message(of) => example(of),
        Type::Messages(of) | Type::Keyed(of, _) => json!([example(of)]),
        Type::Inline(_) | Type::Unread => Value::Null,
    }
}
