//! Whose disappearance takes the capacity objects along: so many owners up from our own pod (P87).

use alloc::format;
use alloc::string::String;

use api::{Meta, OwnerReference};

/// An object on the way up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    /// Its `apiVersion`.
    pub api_version: String,
    /// Its `kind`.
    pub kind: String,
    pub meta: Meta,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnerStep {
    /// Nobody shall own them.
    Nobody,
    /// This one shall.
    Found(OwnerReference),
    /// Read this one and ask again, one level less.
    Read(OwnerReference),
}

/// `level` as in `--capacity-ownerref-level`: -1 nobody, 0 this object, 1 what controls it, and so on. The error says what
/// to do.
pub fn owner(level: i32, object: &Owned) -> Result<OwnerStep, String> {
    let controller = object.meta.owner_references.iter().find(|owner| owner.controller == Some(true));
    match (level, controller) {
        (..0, _) => Ok(OwnerStep::Nobody),
        (0, _) => Ok(OwnerStep::Found(OwnerReference {
            api_version: object.api_version.clone(),
            kind: object.kind.clone(),
            name: object.meta.name.clone(),
            uid: object.meta.uid.clone(),
            controller: Some(true),
        })),
        // What is known of the one above is all that is needed of it.
        (1, Some(owner)) => Ok(OwnerStep::Found(owner.clone())),
        (2.., Some(owner)) => Ok(OwnerStep::Read(owner.clone())),
        (1.., None) => Err(format!(
            "{} {} has no controller that could own capacity objects; use a smaller --capacity-ownerref-level",
            object.kind, object.meta.name
        )),
    }
}
