//! The migration gates that the controllers were started with, in worlds in which somebody changes them: an object says
//! them, and whoever writes it starts the controllers again.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::{Kind, ObjectRef, Patch, Precondition, Write};
use rules_translate::Plugin;
use serde_json::json;

use crate::cluster::NAMESPACE;
use crate::world::{Stepped, World};

/// The object's name. It is a Secret because nobody here watches those.
const NAME: &str = "controllers";

/// The object in which gates are said.
pub(crate) fn object() -> ObjectRef {
    ObjectRef::namespaced(Kind::Secret, NAMESPACE, NAME)
}

/// The controllers are started again with the plugin's gate on, or off.
pub(crate) fn switch(plugin: Plugin, on: bool) -> Write {
    let body = json!({ "metadata": { "annotations": { plugin.gate(): on.to_string() } } });
    Write::Patch { target: object(), subresource: None, patch: Patch::merge(Precondition::default(), body) }
}

impl World {
    /// The controllers were last started with the plugin's gate off.
    pub(crate) fn is_switched_off(&self, plugin: Plugin) -> bool {
        self.truth.switched_off.contains(&plugin)
    }
}

impl Stepped {
    /// What they had begun and not done is not done: a crash, which may come just before, is a fault of its own.
    pub(crate) fn gates_follow(&mut self) {
        let said = self.world.cluster.all(Kind::Secret).find(|held| held.object.meta().name == NAME);
        let Some(said) = said.map(|held| held.object.meta()) else { return };
        let off = |plugin: &Plugin| said.annotation(plugin.gate()) == Some("false");
        let off: BTreeSet<Plugin> = Plugin::ALL.into_iter().filter(off).collect();
        if off == self.world.truth.switched_off {
            return;
        }
        Arc::make_mut(&mut self.world.truth).switched_off = off;
        let members = 0..self.world.members.len();
        for member in members.filter(|at| self.world.members[*at].node().is_empty()).collect::<Vec<_>>() {
            self.restart(member);
        }
    }
}
