use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use api::{Kind, Meta, Object, Patch, Precondition, Value, Write};
use control::{Effect, Permission};
use serde_json::json;

/// The one thing this controller does: remove the finalizer of a source that is not copied any more.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RemoveSourceFinalizer {
    /// The snapshot or claim.
    pub object: Object,
    /// The finalizer that held it.
    pub finalizer: &'static str,
}

impl control::Action for RemoveSourceFinalizer {
    fn name(&self) -> &'static str {
        "RemoveSourceFinalizer"
    }

    fn effect(&self) -> Effect {
        let patch = without(self.object.meta(), self.finalizer);
        Effect::Write(Write::Patch { target: self.object.reference(), subresource: None, patch })
    }

    fn permissions() -> &'static [Permission] {
        const PERMISSIONS: &[Permission] = &[
            Permission::new(Kind::PersistentVolumeClaim, "", "patch"),
            Permission::new(Kind::VolumeSnapshot, "", "patch"),
        ];
        PERMISSIONS
    }
}

/// On an unchanged object only: whoever begins to copy it writes to it first.
fn without(meta: &Meta, finalizer: &str) -> Patch {
    let rest: Vec<&String> = meta.finalizers.iter().filter(|held| *held != finalizer).collect();
    let rest = if rest.is_empty() { Value::Null } else { json!(rest) };
    Patch::merge(Precondition::unchanged(meta), json!({ "metadata": { "finalizers": rest } }))
}

impl fmt::Debug for RemoveSourceFinalizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RemoveSourceFinalizer({})", self.object.reference())
    }
}
