//! The three patch languages of the Kubernetes API, and apply.

mod budget;
mod json;
mod merge;
mod strategic;

use alloc::format;
use alloc::string::String;
use alloc::vec;

use api::Kind;
use serde_json::Value;

use crate::{Failure, FieldError, FieldProblem, schema};

pub use json::json_patch;
pub use merge::merge_patch;
pub use strategic::strategic_merge;

/// The language of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PatchKind {
    /// RFC 6902.
    Json,
    /// RFC 7396.
    Merge,
    /// Kubernetes' own: lists merge by the keys of their schema.
    Strategic,
    /// Server-side apply, simplified: a strategic merge that creates what is missing and records no ownership.
    Apply,
}

impl PatchKind {
    /// The language behind a media type; parameters such as `charset` are ignored.
    pub fn from_media_type(media_type: &str) -> Result<PatchKind, Failure> {
        match media_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Ok(PatchKind::Json),
            "application/merge-patch+json" => Ok(PatchKind::Merge),
            "application/strategic-merge-patch+json" => Ok(PatchKind::Strategic),
            "application/apply-patch+yaml" => Ok(PatchKind::Apply),
            other => Err(Failure::UnsupportedMediaType {
                message: format!(
                    "the patch has media type {other:?}; send application/json-patch+json, \
                     application/merge-patch+json, application/strategic-merge-patch+json or application/apply-patch+yaml"
                ),
            }),
        }
    }
}

/// Why a patch does not apply. The values in it are not repeated: they may be secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchError {
    /// It is not a patch.
    Malformed(String),
    /// It is one, but not of this object.
    Mismatch(String),
    /// It asks for more than a patch may.
    TooLarge(String),
}

impl PatchError {
    pub(crate) fn into_failure(self, kind: Kind, name: &str) -> Failure {
        match self {
            PatchError::Malformed(message) => Failure::BadRequest { message },
            PatchError::TooLarge(message) => Failure::TooLarge { message },
            PatchError::Mismatch(message) => Failure::Invalid {
                kind,
                name: name.into(),
                causes: vec![FieldError::new("patch", FieldProblem::Invalid, message)],
            },
        }
    }
}

pub(crate) fn apply(language: PatchKind, kind: Kind, object: &Value, patch: &Value) -> Result<Value, PatchError> {
    let mut object = object.clone();
    match language {
        PatchKind::Json => json_patch(&mut object, patch)?,
        PatchKind::Merge => {
            require_object(patch)?;
            merge_patch(&mut object, patch);
        }
        PatchKind::Strategic | PatchKind::Apply => {
            require_object(patch)?;
            strategic_merge(schema(kind), &mut object, patch)?;
        }
    }
    Ok(object)
}

fn require_object(patch: &Value) -> Result<(), PatchError> {
    if patch.is_object() { Ok(()) } else { Err(PatchError::Malformed("the patch must be an object".into())) }
}
