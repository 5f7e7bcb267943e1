//! How large the fields of messages may be. The table of RPCs in `csi` says which fields are bounded. Paths are bounded by
//! the operating system, and texts for people not at all.

use std::collections::BTreeMap;

use csi::{Field, Fields};

/// The largest sizes of fields, in bytes (reliability 73).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For a name, an id or a token.
    pub text: usize,
    /// For the id of a node.
    pub node_id: usize,
    /// For all keys and values of a map together, and for all entries of a list of mount flags.
    pub map: usize,
}

/// A field is larger than allowed. The error does not hold the field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} has {bytes} bytes, and at most {most} are allowed")]
#[allow(missing_docs, reason = "the names say it all")]
pub struct TooLarge {
    pub field: &'static str,
    pub bytes: usize,
    pub most: usize,
}

impl Limits {
    /// The limits of the CSI specification.
    pub const SPEC: Limits = Limits { text: 128, node_id: 256, map: 4 << 10 };

    /// Finds the first field of a request or response that is too large, at any depth.
    pub fn check(self, message: &dyn Fields) -> Result<(), TooLarge> {
        let mut found = Ok(());
        message.visit(&mut |name, field| {
            if found.is_ok() {
                found = self.check_field(name, field);
            }
        });
        found
    }

    fn check_field(self, name: &'static str, field: Field<'_>) -> Result<(), TooLarge> {
        let at_most = |most: usize, bytes: usize| match bytes > most {
            true => Err(TooLarge { field: name, bytes, most }),
            false => Ok(()),
        };
        match field {
            Field::Name(text) | Field::Id(text) | Field::Text(text) => at_most(self.text, text.len()),
            Field::Ids(texts) | Field::Texts(texts) => texts.iter().try_for_each(|text| at_most(self.text, text.len())),
            Field::NodeId(id) | Field::OptionalNodeId(id) => at_most(self.node_id, id.len()),
            Field::NodeIds(ids) => ids.iter().try_for_each(|id| at_most(self.node_id, id.len())),
            Field::Flags(flags) => at_most(self.map, flags.iter().map(String::len).sum()),
            Field::Map(map) | Field::Context(map) | Field::Secrets(map) => at_most(self.map, size(map)),
            Field::Capability(one) | Field::OptionalCapability(one) => one.map_or(Ok(()), |one| self.check(one)),
            Field::Capabilities(all) | Field::OptionalCapabilities(all) => {
                all.iter().try_for_each(|one| self.check(one))
            }
            Field::ContentSource(source) => source.map_or(Ok(()), |source| self.check(source)),
            Field::Message(message) => self.check(message),
            Field::Path(_)
            | Field::OptionalPath(_)
            | Field::Range(_)
            | Field::RequiredRange(_)
            | Field::MaxEntries(_) => Ok(()),
        }
    }
}

fn size(map: &BTreeMap<String, String>) -> usize {
    map.iter().map(|(key, value)| key.len() + value.len()).sum()
}

#[cfg(test)]
#[path = "limits_tests.rs"]
pub(crate) mod tests;
