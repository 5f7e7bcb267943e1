//! The fields of the served kinds: one table for decoding, strategic merge keys and OpenAPI documents.
//!
//! The tables list every field of Kubernetes 1.37 for these kinds. `Keyed` lists carry the key a strategic merge patch
//! uses; lists without one are replaced as a whole.

mod cluster;
mod container;
mod decode;
mod meta;
mod pod;
mod pod_volume;
mod rights;
mod snapshot;
mod storage;
mod volume;

pub(crate) use decode::decode;

use crate::Resource;

/// An object type.
#[derive(Debug)]
pub struct Type {
    /// Its Kubernetes name.
    pub name: &'static str,
    /// Its fields, in alphabetical order but for `apiVersion` and `kind`.
    pub fields: &'static [Field],
}

/// A field of an object type.
#[derive(Debug)]
pub struct Field {
    /// Its name in JSON.
    pub name: &'static str,
    /// What may stand there.
    pub shape: Shape,
}

/// What may stand in a field.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A string.
    Text,
    /// A string holding an RFC 3339 time.
    Time,
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
    /// A number with a unit; a string or a number.
    Quantity,
    /// A string or a whole number.
    IntOrText,
    /// A list of strings, replaced as a whole.
    Texts,
    /// A list of strings, united by a strategic merge.
    TextSet,
    /// A map to strings.
    TextMap,
    /// A map to quantities.
    QuantityMap,
    /// A map to base64 strings.
    BytesMap,
    /// An object of a known type.
    Object(&'static Type),
    /// A list of objects, replaced as a whole.
    Objects(&'static Type),
    /// A list of objects, merged by the value of a key.
    Keyed(&'static Type, &'static str),
    /// An object whose fields are not listed here.
    Opaque,
    /// A list whose items are not listed here.
    OpaqueList,
}

impl Type {
    /// What may stand in a field; nothing if the type has no such field.
    pub fn shape(&self, field: &str) -> Option<&'static Shape> {
        self.fields.iter().find(|f| f.name == field).map(|f| &f.shape)
    }
}

macro_rules! types {
    ($($id:ident = $name:literal { $($field:ident : $shape:expr),* $(,)? })*) => { $(
        pub(super) static $id: super::Type = super::Type {
            name: $name,
            fields: &[$(super::Field { name: stringify!($field), shape: $shape }),*],
        };
    )* };
}
use types;

/// The type of a resource's objects.
pub fn schema(resource: &Resource) -> &'static Type {
    ROOTS[resource.index]
}

/// In the order of the resource table; a test holds it to it.
static ROOTS: [&Type; crate::resource::COUNT] = [
    &cluster::NAMESPACE,
    &cluster::NODE,
    &pod::POD,
    &volume::PERSISTENT_VOLUME_CLAIM,
    &volume::PERSISTENT_VOLUME,
    &cluster::SECRET,
    &cluster::CONFIG_MAP,
    &cluster::SERVICE_ACCOUNT,
    &cluster::EVENT,
    &storage::STORAGE_CLASS,
    &storage::CSI_DRIVER,
    &storage::CSI_NODE,
    &storage::VOLUME_ATTACHMENT,
    &storage::CSI_STORAGE_CAPACITY,
    &storage::VOLUME_ATTRIBUTES_CLASS,
    &cluster::LEASE,
    &snapshot::VOLUME_SNAPSHOT,
    &snapshot::VOLUME_SNAPSHOT_CONTENT,
    &snapshot::REFERENCE_GRANT,
    &snapshot::VOLUME_SNAPSHOT_CLASS,
    &rights::CLUSTER_ROLE,
    &rights::CLUSTER_ROLE_BINDING,
    &rights::ROLE,
    &rights::ROLE_BINDING,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resource_has_the_type_of_its_kind() {
        for resource in crate::resources() {
            let of = schema(resource);
            assert_eq!(of.name, resource.kind);
            assert!(matches!(of.shape("metadata"), Some(Shape::Object(meta)) if meta.name == "ObjectMeta"));
            assert!(
                matches!(of.shape("kind"), Some(Shape::Text)) && matches!(of.shape("apiVersion"), Some(Shape::Text))
            );
        }
    }

    #[test]
    fn keys_of_keyed_lists_are_fields_of_their_items() {
        fn walk(of: &'static Type, depth: u8) {
            for field in of.fields {
                match field.shape {
                    Shape::Keyed(item, key) => {
                        assert!(item.shape(key).is_some(), "{}.{} by {key}", of.name, field.name);
                        walk(item, depth + 1);
                    }
                    Shape::Object(item) | Shape::Objects(item) => {
                        assert!(depth < 16, "{} contains itself", item.name);
                        walk(item, depth + 1);
                    }
                    Shape::Text | Shape::Time | Shape::Integer | Shape::Boolean | Shape::Quantity => {}
                    Shape::IntOrText | Shape::Texts | Shape::TextSet | Shape::TextMap => {}
                    Shape::QuantityMap | Shape::BytesMap | Shape::Opaque | Shape::OpaqueList => {}
                }
            }
        }
        for resource in crate::resources() {
            walk(schema(resource), 0);
        }
    }
}
