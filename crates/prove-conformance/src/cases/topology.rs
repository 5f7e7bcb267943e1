//! Places: where a volume can be reached from.

use csi::{Code, v1};

use crate::case::{cases, ensure, skip};
use crate::context::pair;

fn elsewhere() -> v1::Topology {
    v1::Topology { segments: pair("longshore.test/no-such-place", "nowhere") }
}

fn within(outer: &v1::Topology, inner: &v1::Topology) -> bool {
    outer.segments.iter().all(|(key, value)| inner.segments.get(key) == Some(value))
}

cases! {
    beyond "topology/node/segments-valid" [Plugin(VolumeAccessibilityConstraints)]
    "A node's place is made of keys and values that are valid labels."
    |t| {
        let place = t.suite.node.accessible_topology.clone().unwrap_or_default();
        ensure!(!place.segments.is_empty(), "the node has no segments");
        for (key, value) in &place.segments {
            let name = key.rsplit('/').next().unwrap_or_default();
            ensure!(!name.is_empty() && name.len() <= 63 && key.len() <= 317, "the key {key} is no label");
            ensure!(value.len() <= 63, "the value {value} is longer than 63 bytes");
            let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
            ensure!(plain(name) && plain(value), "{key}={value} is no label");
        }
    }
    beyond "topology/create/reachable-from-the-node"
    [Controller(CreateDeleteVolume), Plugin(VolumeAccessibilityConstraints)]
    "A volume made for the node's place is reachable from the node."
    |t| {
        let Some(place) = t.suite.node.accessible_topology.clone() else { return skip("the node has no place") };
        let accessibility_requirements = Some(v1::TopologyRequirement { requisite: vec![place.clone()], preferred: vec![place.clone()] });
        let volume = t.volume_from(v1::CreateVolumeRequest { accessibility_requirements, ..t.create_request() }).await?;
        let places = &volume.answer.accessible_topology;
        ensure!(!places.is_empty(), "the volume says not where it is reachable");
        ensure!(places.iter().any(|p| within(p, &place)), "the volume is not reachable from the node it was made for");
    }
    beyond "topology/create/without-wishes" [Controller(CreateDeleteVolume), Plugin(VolumeAccessibilityConstraints)]
    "A volume without wishes says where it is reachable."
    |t| {
        let volume = t.volume().await?;
        if volume.answer.accessible_topology.is_empty() {
            t.warn("the volume does not say where it is reachable");
        }
    }
    beyond "topology/create/nowhere" [Controller(CreateDeleteVolume), Plugin(VolumeAccessibilityConstraints)]
    "A place that does not exist has room for nothing."
    |t| {
        let accessibility_requirements = Some(v1::TopologyRequirement { requisite: vec![elsewhere()], preferred: vec![] });
        let request = v1::CreateVolumeRequest { accessibility_requirements, ..t.create_request() };
        t.refused(request, &[Code::ResourceExhausted, Code::InvalidArgument], "in a place that does not exist").await?;
    }
    beyond "topology/create/repeated" [Controller(CreateDeleteVolume), Plugin(VolumeAccessibilityConstraints)]
    "A repeated request answers with the same place."
    |t| {
        let Some(place) = t.suite.node.accessible_topology.clone() else { return skip("the node has no place") };
        let accessibility_requirements = Some(v1::TopologyRequirement { requisite: vec![place], preferred: vec![] });
        let request = v1::CreateVolumeRequest { accessibility_requirements, ..t.create_request() };
        let (first, second) = (t.volume_from(request.clone()).await?, t.volume_from(request).await?);
        ensure!(first.answer.accessible_topology == second.answer.accessible_topology, "the volume moved");
    }
    beyond "topology/create/one-of-several" [Controller(CreateDeleteVolume), Plugin(VolumeAccessibilityConstraints)]
    "Of several places one that exists is taken."
    |t| {
        let Some(place) = t.suite.node.accessible_topology.clone() else { return skip("the node has no place") };
        let requisite = vec![elsewhere(), place.clone()];
        let accessibility_requirements = Some(v1::TopologyRequirement { requisite, preferred: vec![] });
        let volume = t.volume_from(v1::CreateVolumeRequest { accessibility_requirements, ..t.create_request() }).await?;
        let places = &volume.answer.accessible_topology;
        ensure!(places.iter().any(|p| within(p, &place)), "the volume is in none of the places that exist");
    }
    beyond "topology/capacity/here" [Plugin(VolumeAccessibilityConstraints), Controller(GetCapacity)]
    "The node's place has a capacity."
    |t| {
        let request = v1::GetCapacityRequest { accessible_topology: t.suite.node.accessible_topology.clone(), ..Default::default() };
        let here = t.ok(request).await?.available_capacity;
        ensure!(here >= 0, "the node's place has {here} bytes");
    }
    beyond "topology/capacity/nowhere" [Plugin(VolumeAccessibilityConstraints), Controller(GetCapacity)]
    "A place that does not exist has no capacity."
    |t| {
        let request = v1::GetCapacityRequest { accessible_topology: Some(elsewhere()), ..Default::default() };
        if let Ok(answer) = t.ask(request).await {
            ensure!(answer.available_capacity == 0, "a place that does not exist has {} bytes", answer.available_capacity);
        }
    }
    beyond "topology/list/as-created"
    [Controller(CreateDeleteVolume), Plugin(VolumeAccessibilityConstraints), Controller(ListVolumes)]
    "A volume is listed with the place its creation was answered with."
    |t| {
        let volume = t.volume().await?;
        let listed = t.ok(crate::requests::page(0, "")).await?.entries.into_iter().filter_map(|e| e.volume).find(|v| v.volume_id == volume.id);
        if listed.unwrap_or_default().accessible_topology != volume.answer.accessible_topology {
            t.warn("the volume is listed with another place than it was created with");
        }
    }
}
