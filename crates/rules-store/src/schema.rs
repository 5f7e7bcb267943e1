use api::Kind;
use wire::Message;

use crate::kinds::rules;

/// The fields of a kind's objects.
pub fn schema(kind: Kind) -> &'static Message {
    rules(kind).schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Type;

    /// Every message within another, itself included.
    fn walk(of: &'static Message, depth: u8, look: &mut impl FnMut(&'static Message)) {
        assert!(depth < 16, "{} contains itself", of.name);
        look(of);
        for field in of.fields {
            if let Type::Message(inner) | Type::Messages(inner) | Type::Keyed(inner, _) | Type::Inline(inner) =
                field.r#type
            {
                walk(inner, depth + 1, look);
            }
        }
    }

    #[test]
    fn every_kind_has_the_schema_of_its_name_and_clients_the_same() {
        for kind in Kind::ALL {
            let of = schema(kind);
            assert_eq!(of.name, kind.name());
            assert!(
                matches!(of.field("metadata").map(|field| field.r#type), Some(Type::Message(meta)) if meta.name == "ObjectMeta")
            );
            if let Some(message) = wire::message(kind) {
                assert!(core::ptr::eq(message, of), "{kind}");
            }
        }
    }

    #[test]
    fn keys_of_keyed_lists_are_fields_of_their_items() {
        for kind in Kind::ALL {
            walk(schema(kind), 0, &mut |of| {
                for field in of.fields {
                    if let Type::Keyed(item, key) = field.r#type {
                        assert!(item.field(key).is_some(), "{}.{} by {key}", of.name, field.name);
                    }
                }
            });
        }
    }

    #[test]
    fn kinds_that_speak_protobuf_have_a_number_for_every_field() {
        for kind in Kind::ALL {
            let mut numbered = true;
            walk(schema(kind), 0, &mut |of| numbered &= of.fields.iter().all(|field| field.number > 0));
            assert_eq!(numbered, kind.has_protobuf(), "{kind}");
        }
    }
}
