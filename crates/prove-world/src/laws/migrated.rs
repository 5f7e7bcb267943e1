//! The law of volumes that a plugin or a driver serves: never both.

use api::{Kind, Object, PersistentVolume, Write, names};
use control::Effect;
use csi::Call;
use rules_translate::{Plugin, plugin_of, plugin_volume_name};

use crate::laws::{Violation, handle};
use crate::world::World;

impl World {
    /// The node says that it leaves volumes of the plugin to the driver.
    pub(crate) fn leaves(&self, node: &str, plugin: Plugin) -> bool {
        self.cluster.all(Kind::CSINode).filter(|held| held.object.meta().name == node).any(|held| {
            let said = held.object.meta().annotation(names::MIGRATED_PLUGINS);
            said.is_some_and(|said| said.split(',').any(|name| name == plugin.name()))
        })
    }
}

/// What is decided on, at the moment it is decided: what a node says may be another when it has its effect.
pub(crate) fn check_decision(world: &World, actor: &str, effect: &Effect) -> Option<Violation> {
    match effect {
        Effect::Write(Write::Create { target, body }) if target.kind == Kind::VolumeAttachment => {
            let Ok(Object::VolumeAttachment(made)) = Object::from_json(target.kind, body.clone()) else { return None };
            let name = made.volume()?;
            let volume = world.cluster.volumes().find(|volume| volume.metadata.name == name)?;
            let (actor, node) = (actor.to_string(), made.spec.node_name.clone());
            check_served(world, volume, &actor, &node).or_else(|| {
                let used = volume.spec.in_tree.as_deref().and_then(plugin_volume_name)?;
                let holder = world.cluster.nodes().find(|holder| holder.reports_in_use(&used))?;
                let (volume, holder) = (volume.metadata.name.clone(), holder.metadata.name.clone());
                Some(Violation::AttachesHeld { actor, volume, node, holder })
            })
        }
        Effect::Call { call: Call::ControllerPublishVolume(request), .. } => {
            let volume = world.cluster.volumes().find(|volume| handle(volume) == request.volume_id)?;
            check_served(world, volume, actor, &request.node_id)
        }
        _ => None,
    }
}

/// By the gate that the controllers have now: what was decided on before it was switched is not judged, however late it
/// has its effect.
fn check_served(world: &World, volume: &PersistentVolume, actor: &str, node: &str) -> Option<Violation> {
    let plugin = plugin_of(volume)?;
    let (actor, volume, left) = (actor.into(), volume.metadata.name.clone(), world.leaves(node, plugin));
    let node = node.into();
    if world.is_switched_off(plugin) {
        return Some(Violation::AttachesSwitchedOff { actor, volume, node });
    }
    (!left).then_some(Violation::AttachesForPlugin { actor, volume, node })
}
