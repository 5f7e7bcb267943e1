//! The laws of every effect, judged when it is begun and again when it happens.

use control::host::Op;
use control::{Effect, Endpoint, Permission};
use csi::Call;

use crate::laws::{Violation, attach, machine, node, provision, register, sizes};
use crate::truth::TIER;
use crate::world::World;

/// The laws of what one controller is about to do; `node` is the machine it acts on.
pub(crate) fn check_effect(world: &World, actor: &str, node: &str, effect: &Effect) -> Option<Violation> {
    let found = machine::check_unreadable(world, actor, node, effect);
    if let Some(found) = found.or_else(|| machine::check_secrets(world, actor, effect)) {
        return Some(found);
    }
    match effect {
        Effect::Call { to: Endpoint::Socket(at), call } => register::check_welcome(world, actor, node, at, call),
        Effect::Call { call, .. } => check_call(world, actor, node, call),
        Effect::Host(Op::RemoveFile { path }) => node::check_remove_file(world, actor, node, path),
        Effect::Host(Op::WriteFile { path, bytes }) => node::check_write_file(world, actor, node, path, bytes),
        // An agent speaks for its own node.
        Effect::Write(write) if node.is_empty() => attach::check_silent(world, actor, write),
        Effect::Host(_)
        | Effect::Read(_)
        | Effect::List { .. }
        | Effect::Token(_)
        | Effect::Write(_)
        | Effect::Nothing => None,
    }
}

fn check_call(world: &World, actor: &str, node: &str, call: &Call) -> Option<Violation> {
    match call {
        Call::ControllerUnpublishVolume(request) => {
            attach::check_unpublish(world, actor, &request.volume_id, &request.node_id)
        }
        Call::NodeStageVolume(request) => {
            let found = node::check_recorded(world, actor, node, &request.volume_id, &request.staging_target_path);
            found.or_else(|| machine::check_inline_stage(actor, &request.volume_id))
        }
        Call::NodePublishVolume(request) => {
            let found = machine::check_inline(world, actor, &request.volume_id, &request.target_path);
            found.or_else(|| node::check_recorded(world, actor, node, &request.volume_id, &request.target_path))
        }
        Call::NodeExpandVolume(request) => machine::check_grow(world, actor, node, request),
        Call::NodeUnstageVolume(request) => node::check_unstage(world, actor, node, &request.volume_id),
        Call::NodeUnpublishVolume(request) => node::check_unpublish(world, actor, node, &request.target_path),
        Call::CreateVolume(request) => provision::check_create(world, actor, &request.name),
        Call::DeleteVolume(request) => provision::check_delete(world, actor, &request.volume_id),
        Call::ControllerExpandVolume(request) => {
            let wanted = request.capacity_range.as_ref().map_or(0, |range| range.required_bytes);
            sizes::check_expand(world, actor, &request.volume_id, wanted)
        }
        Call::ControllerModifyVolume(request) => {
            let tier = request.mutable_parameters.get(TIER).cloned().unwrap_or_default();
            sizes::check_modify(world, actor, &request.volume_id, &tier)
        }
        _ => None,
    }
}

/// The law that no controller does what its role does not allow.
pub(crate) fn check_role(actor: &str, permissions: &[Permission], effect: &Effect) -> Option<Violation> {
    let (kind, subresource, verb) = match effect {
        Effect::Write(write) => (write.target().kind, write.subresource().unwrap_or(""), write.verb()),
        Effect::Read(target) => (target.kind, "", "get"),
        Effect::List { kind, .. } => (*kind, "", "list"),
        Effect::Token(_) => (api::Kind::ServiceAccount, "token", "create"),
        Effect::Call { .. } | Effect::Host(_) | Effect::Nothing => return None,
    };
    (!permissions.contains(&Permission { kind, subresource, verb })).then(|| Violation::NotAllowed {
        actor: actor.into(),
        verb: verb.into(),
        kind: kind.to_string(),
        subresource: subresource.into(),
    })
}
