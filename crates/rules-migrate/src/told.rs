//! What was found, as programs read it.

use alloc::string::String;
use alloc::vec::Vec;

use api::ObjectRef;
use serde::{Serialize, Serializer};

/// An obstacle or inconsistency: one word for programs, the objects, and the sentence for people.
#[derive(Serialize)]
pub(crate) struct Told {
    pub(crate) reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) blocks: Option<bool>,
    #[serde(serialize_with = "each_named")]
    pub(crate) objects: Vec<ObjectRef>,
    pub(crate) text: String,
}

#[derive(Serialize)]
struct Named<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    name: &'a str,
}

fn each_named<S: Serializer>(objects: &[ObjectRef], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(objects.iter().map(|object| Named {
        kind: object.kind.name(),
        namespace: &object.key.namespace,
        name: &object.key.name,
    }))
}
