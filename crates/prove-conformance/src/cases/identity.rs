//! Who the driver is and what it says it can do.

use std::collections::BTreeSet;

use csi::{Code, ControllerRpc, PluginService, v1};
use v1::controller_service_capability::rpc::Type as Rpc;
use v1::node_service_capability::rpc::Type as NodeRpc;

use crate::case::{cases, ensure, fail};
use crate::context::{said, same};
use crate::requests::page;

/// A capability that drivers of older versions of the specification still name, and which is reserved today.
const RETIRED_CONTROLLER: i32 = 11;
const RETIRED_NODE: i32 = 4;

cases! {
    parity "identity/info/name-valid" []
    "A driver's name is a domain name of at most 63 letters, digits, dots and dashes."
    |t| {
        let name = t.ok(v1::GetPluginInfoRequest {}).await?.name;
        ensure!(!name.is_empty() && name.len() <= 63, "the name «{name}» has {} bytes", name.len());
        let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        let inner = name.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
        ensure!(inner && edge(name.chars().next()) && edge(name.chars().last()), "«{name}» is no domain name");
    }
    parity "identity/capabilities/known" []
    "Plugin capabilities are among those the specification names."
    |t| {
        for capability in t.ok(v1::GetPluginCapabilitiesRequest {}).await?.capabilities {
            use v1::plugin_capability::Type;
            match capability.r#type {
                Some(Type::Service(s)) => ensure!((1..=5).contains(&s.r#type), "{} is no service", s.r#type),
                Some(Type::VolumeExpansion(e)) => ensure!((1..=2).contains(&e.r#type), "{} is no expansion", e.r#type),
                None => return fail("a plugin capability is empty"),
            }
        }
    }
    parity "identity/probe/ok" []
    "A healthy driver answers Probe with OK."
    |t| {
        let answer = t.ok(v1::ProbeRequest {}).await?;
        ensure!(answer.ready.unwrap_or(true), "the driver says that it is not ready");
    }
    beyond "identity/info/version-present" []
    "A driver says its version, so that operators know what runs."
    |t| {
        ensure!(!t.ok(v1::GetPluginInfoRequest {}).await?.vendor_version.is_empty(), "the version is empty");
    }
    beyond "identity/info/repeated" []
    "The same question gets the same answer."
    |t| {
        let first = t.ok(v1::GetPluginInfoRequest {}).await?;
        same(&first, &t.ok(v1::GetPluginInfoRequest {}).await?, "GetPluginInfo")?;
    }
    beyond "identity/info/both-endpoints-agree" [TwoEndpoints]
    "Controller and node of one driver have one name and version."
    |t| {
        let node = t.ok(v1::GetPluginInfoRequest {}).await?;
        match t.suite.controller_info().await {
            Ok(controller) => ensure!(
                (&controller.name, &controller.vendor_version) == (&node.name, &node.vendor_version),
                "the controller is {} {}, the node {} {}",
                controller.name, controller.vendor_version, node.name, node.vendor_version
            ),
            Err(status) => return fail(format!("the controller does not answer GetPluginInfo: {}", said(&status))),
        }
    }
    beyond "identity/capabilities/repeated" []
    "Capabilities do not change while a driver runs."
    |t| {
        let first = t.ok(v1::GetPluginCapabilitiesRequest {}).await?;
        same(&first, &t.ok(v1::GetPluginCapabilitiesRequest {}).await?, "GetPluginCapabilities")?;
    }
    beyond "identity/capabilities/named-once" []
    "Each capability is named once."
    |t| {
        let reported = &t.suite.reported;
        for (what, list) in [
            ("plugin services", &reported.services),
            ("controller capabilities", &reported.controller),
            ("node capabilities", &reported.node),
        ] {
            if list.iter().collect::<BTreeSet<_>>().len() != list.len() {
                t.warn(format!("some of the {what} are named twice"));
            }
        }
    }
    beyond "identity/capabilities/services-answer" []
    "A service that is named among the plugin capabilities exists."
    |t| {
        if t.can(PluginService::ControllerService) {
            t.ok(v1::ControllerGetCapabilitiesRequest {}).await?;
        }
        if t.can(PluginService::GroupControllerService) {
            t.ok(v1::GroupControllerGetCapabilitiesRequest {}).await?;
        }
    }
    beyond "identity/probe/many-at-once" []
    "Probe is called by several parties at the same time."
    |t| {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..32 {
            let t = t.clone();
            tasks.spawn(async move { t.ok(v1::ProbeRequest {}).await });
        }
        while let Some(done) = tasks.join_next().await {
            match done {
                Ok(answer) => drop(answer?),
                Err(_) => return fail("a call panicked"),
            }
        }
    }
    beyond "identity/socket/not-for-everybody" []
    "Whoever can reach the socket commands the storage, so other users should not."
    |t| {
        use std::os::unix::fs::PermissionsExt;
        let path = t.suite.options.endpoint.trim_start_matches("unix://").trim_start_matches("unix:").to_string();
        let Ok(found) = std::fs::metadata(&path) else { return crate::case::skip("the socket is not visible here") };
        let mode = found.permissions().mode() & 0o777;
        if mode & 0o002 != 0 {
            let parent = std::path::Path::new(&path).parent().and_then(|p| std::fs::metadata(p).ok());
            if parent.is_none_or(|p| p.permissions().mode() & 0o001 != 0) {
                t.warn(format!("every user of the machine can connect to the socket (mode {mode:03o})"));
            }
        }
    }
    parity "controller/capabilities/known" [Plugin(ControllerService)]
    "Controller capabilities are among those the specification names."
    |t| {
        for number in &t.suite.reported.controller {
            let known = *number == RETIRED_CONTROLLER || Rpc::try_from(*number).is_ok_and(|rpc| rpc != Rpc::Unknown);
            ensure!(known, "{number} is no controller capability");
        }
    }
    beyond "controller/capabilities/repeated" [Plugin(ControllerService)]
    "Capabilities do not change while a driver runs."
    |t| {
        let first = t.ok(v1::ControllerGetCapabilitiesRequest {}).await?;
        same(&first, &t.ok(v1::ControllerGetCapabilitiesRequest {}).await?, "ControllerGetCapabilities")?;
    }
    beyond "controller/capabilities/go-together" [Plugin(ControllerService)]
    "Some capabilities only make sense beside another."
    |t| {
        for (one, other) in [
            (ControllerRpc::PublishReadonly, ControllerRpc::PublishUnpublishVolume),
            (ControllerRpc::ListVolumesPublishedNodes, ControllerRpc::ListVolumes),
            (ControllerRpc::CloneVolume, ControllerRpc::CreateDeleteVolume),
            (ControllerRpc::GetSnapshot, ControllerRpc::CreateDeleteSnapshot),
        ] {
            let (name, needed) = (one.as_str_name(), other.as_str_name());
            ensure!(!t.can(one) || t.can(other), "{name} is offered without {needed}");
        }
    }
    beyond "controller/capabilities/not-offered-is-unimplemented" [Plugin(ControllerService)]
    "A call that is not offered is answered with UNIMPLEMENTED."
    |t| {
        let codes = [Code::Unimplemented];
        if !t.can(ControllerRpc::ListVolumes) {
            t.should_refuse(page(0, ""), &codes, "without the capability").await?;
        }
        if !t.can(ControllerRpc::GetCapacity) {
            t.should_refuse(v1::GetCapacityRequest::default(), &codes, "without the capability").await?;
        }
        if !t.can(ControllerRpc::ListSnapshots) {
            t.should_refuse(v1::ListSnapshotsRequest::default(), &codes, "without the capability").await?;
        }
        if !t.can(ControllerRpc::GetVolume) {
            t.should_refuse(v1::ControllerGetVolumeRequest::default(), &codes, "without the capability").await?;
        }
        if !t.can(ControllerRpc::ExpandVolume) {
            t.should_refuse(v1::ControllerExpandVolumeRequest::default(), &codes, "without the capability").await?;
        }
        if !t.can(ControllerRpc::ModifyVolume) {
            t.should_refuse(v1::ControllerModifyVolumeRequest::default(), &codes, "without the capability").await?;
        }
    }
    parity "node/capabilities/known" []
    "Node capabilities are among those the specification names."
    |t| {
        t.ok(v1::NodeGetCapabilitiesRequest {}).await?;
        for number in &t.suite.reported.node {
            let known = *number == RETIRED_NODE || NodeRpc::try_from(*number).is_ok_and(|rpc| rpc != NodeRpc::Unknown);
            ensure!(known, "{number} is no node capability");
        }
    }
    parity "node/info/complete" []
    "A node has an id, a limit that is not negative, and a place if places matter."
    |t| {
        let info = t.ok(v1::NodeGetInfoRequest {}).await?;
        ensure!(!info.node_id.is_empty(), "the node id is empty");
        ensure!(info.max_volumes_per_node >= 0, "the limit is {}", info.max_volumes_per_node);
        if t.can(PluginService::VolumeAccessibilityConstraints) {
            ensure!(info.accessible_topology.is_some(), "volumes are bound to places, but the node names none");
        }
    }
    beyond "node/info/id-fits" []
    "A node id has at most 256 bytes, so that it fits where orchestrators keep it."
    |t| {
        let id = t.ok(v1::NodeGetInfoRequest {}).await?.node_id;
        ensure!(id.len() <= 256, "the node id has {} bytes", id.len());
        ensure!(!id.chars().any(char::is_control), "the node id has control characters");
    }
    beyond "node/info/repeated" []
    "A node's id and place do not change while it runs."
    |t| {
        let first = t.ok(v1::NodeGetInfoRequest {}).await?;
        let second = t.ok(v1::NodeGetInfoRequest {}).await?;
        ensure!(first.node_id == second.node_id, "the node id changed from {} to {}", first.node_id, second.node_id);
        ensure!(first.accessible_topology == second.accessible_topology, "the node's place changed");
    }
    beyond "node/capabilities/repeated" []
    "Capabilities do not change while a driver runs."
    |t| {
        let first = t.ok(v1::NodeGetCapabilitiesRequest {}).await?;
        same(&first, &t.ok(v1::NodeGetCapabilitiesRequest {}).await?, "NodeGetCapabilities")?;
    }
}
