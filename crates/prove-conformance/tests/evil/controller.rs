use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use csi::{Call, Code, Response, v1};
use v1::volume_capability::AccessType;
use v1::volume_content_source::Type as Source;

use super::{Answer, Defect, Evil, Volume, no};

pub const NODE: &str = "n1";
const ZONE: &str = "evil.test/zone";
const LARGEST: i64 = 1 << 40;
const POOL: i64 = 1 << 45;

pub fn place(value: &str) -> v1::Topology {
    v1::Topology { segments: [(ZONE.to_string(), value.to_string())].into() }
}

fn numbers<C>(list: &[i32], make: impl Fn(i32) -> C) -> Vec<C> {
    list.iter().copied().map(make).collect()
}

fn page<E: Clone>(
    all: &[E],
    max: i32,
    token: &str,
    overlap: bool,
    any_token: bool,
) -> Result<(Vec<E>, String), csi::Status> {
    if max < 0 {
        return no(Code::InvalidArgument, "max_entries is negative");
    }
    let start: usize = match token.parse() {
        Ok(start) if start <= all.len() => start,
        _ if token.is_empty() || any_token => 0,
        _ => return no(Code::Aborted, "this token was not given; begin again"),
    };
    let end = if max == 0 { all.len() } else { all.len().min(start + max as usize) };
    let next = if overlap && max > 1 { end - 1 } else { end };
    let token = if end < all.len() { next.to_string() } else { String::new() };
    Ok((all[start..end].to_vec(), token))
}

impl Evil {
    pub fn at_once(&self, call: &Call) -> Answer {
        match call {
            Call::GetPluginInfo(_) => Ok(Response::GetPluginInfo(v1::GetPluginInfoResponse {
                name: "evil.test".into(),
                vendor_version: "1".into(),
                ..Default::default()
            })),
            Call::Probe(_) => Ok(Response::Probe(v1::ProbeResponse { ready: Some(true) })),
            Call::GetPluginCapabilities(_) => {
                use v1::plugin_capability::{Service, Type, VolumeExpansion};
                let mut capabilities = numbers(&[1, 2, 3], |r#type| v1::PluginCapability {
                    r#type: Some(Type::Service(Service { r#type })),
                });
                capabilities
                    .push(v1::PluginCapability { r#type: Some(Type::VolumeExpansion(VolumeExpansion { r#type: 1 })) });
                Ok(Response::GetPluginCapabilities(v1::GetPluginCapabilitiesResponse { capabilities }))
            }
            Call::ControllerGetCapabilities(_) => {
                use v1::controller_service_capability::{Rpc, Type};
                let capabilities = numbers(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15], |r#type| {
                    v1::ControllerServiceCapability { r#type: Some(Type::Rpc(Rpc { r#type })) }
                });
                Ok(Response::ControllerGetCapabilities(v1::ControllerGetCapabilitiesResponse { capabilities }))
            }
            Call::GroupControllerGetCapabilities(_) => {
                use v1::group_controller_service_capability::{Rpc, Type};
                let capabilities = numbers(&[1], |r#type| v1::GroupControllerServiceCapability {
                    r#type: Some(Type::Rpc(Rpc { r#type })),
                });
                Ok(Response::GroupControllerGetCapabilities(v1::GroupControllerGetCapabilitiesResponse {
                    capabilities,
                }))
            }
            Call::CreateVolume(r) => self.create(r),
            Call::DeleteVolume(r) => self.delete(&r.volume_id),
            Call::ValidateVolumeCapabilities(r) => self.validate(r),
            Call::ControllerPublishVolume(r) => self.attach(r),
            Call::ControllerUnpublishVolume(r) => self.detach(r),
            Call::ListVolumes(r) => self.list(r),
            Call::ControllerGetVolume(r) => self.get(&r.volume_id),
            Call::GetCapacity(r) => {
                let here = r.accessible_topology.as_ref().is_none_or(|t| *t == place("z1"));
                let used: i64 = self.state().volumes.values().map(|v| v.size).sum();
                Ok(Response::GetCapacity(v1::GetCapacityResponse {
                    available_capacity: if here { POOL - used } else { 0 },
                    maximum_volume_size: Some(LARGEST),
                    minimum_volume_size: Some(1),
                }))
            }
            Call::ControllerExpandVolume(r) => self.expand(r),
            Call::ControllerModifyVolume(r) => {
                if r.volume_id.is_empty() {
                    return no(Code::InvalidArgument, "no id");
                }
                if !self.state().volumes.contains_key(&r.volume_id) {
                    return no(Code::NotFound, "no such volume");
                }
                match r.mutable_parameters.keys().all(|key| key == "speed") {
                    true => Ok(Response::ControllerModifyVolume(v1::ControllerModifyVolumeResponse {})),
                    false => no(Code::InvalidArgument, "unknown parameter"),
                }
            }
            Call::CreateSnapshot(r) => self.snapshot(r),
            Call::DeleteSnapshot(r) => {
                if r.snapshot_id.is_empty() {
                    return no(Code::InvalidArgument, "no id");
                }
                let mut state = self.state();
                if state.snapshots.get(&r.snapshot_id).is_some_and(|(_, s)| !s.group_snapshot_id.is_empty()) {
                    return no(Code::InvalidArgument, "the snapshot belongs to a group");
                }
                state.snapshots.remove(&r.snapshot_id);
                Ok(Response::DeleteSnapshot(v1::DeleteSnapshotResponse {}))
            }
            Call::ListSnapshots(r) => self.list_snapshots(r),
            Call::GetSnapshot(r) => match (r.snapshot_id.is_empty(), self.state().snapshots.get(&r.snapshot_id)) {
                (true, _) => no(Code::InvalidArgument, "no id"),
                (false, None) => no(Code::NotFound, "no such snapshot"),
                (false, Some((_, s))) => {
                    Ok(Response::GetSnapshot(v1::GetSnapshotResponse { snapshot: Some(s.clone()) }))
                }
            },
            Call::CreateVolumeGroupSnapshot(r) => self.group(r),
            Call::DeleteVolumeGroupSnapshot(r) => {
                if r.group_snapshot_id.is_empty() {
                    return no(Code::InvalidArgument, "no id");
                }
                let mut state = self.state();
                let known = state.groups.get(&r.group_snapshot_id).map(|(_, g)| g.clone());
                if let Some(group) = known {
                    let own: Vec<&str> = group.snapshots.iter().map(|s| s.snapshot_id.as_str()).collect();
                    if r.snapshot_ids.iter().any(|id| !own.contains(&id.as_str())) {
                        return no(Code::InvalidArgument, "not a member");
                    }
                    state.snapshots.retain(|id, _| !own.contains(&id.as_str()));
                    state.groups.remove(&r.group_snapshot_id);
                }
                Ok(Response::DeleteVolumeGroupSnapshot(v1::DeleteVolumeGroupSnapshotResponse {}))
            }
            Call::GetVolumeGroupSnapshot(r) => match self.state().groups.get(&r.group_snapshot_id) {
                _ if r.group_snapshot_id.is_empty() => no(Code::InvalidArgument, "no id"),
                None => no(Code::NotFound, "no such group"),
                Some((_, g)) => Ok(Response::GetVolumeGroupSnapshot(v1::GetVolumeGroupSnapshotResponse {
                    group_snapshot: Some(g.clone()),
                })),
            },
            other => self.on_node(other),
        }
    }

    fn create(&self, r: &v1::CreateVolumeRequest) -> Answer {
        if r.name.is_empty() {
            return no(if self.has(Defect::WrongCode) { Code::Internal } else { Code::InvalidArgument }, "no name");
        }
        if r.name.len() > 4096 || r.volume_capabilities.is_empty() {
            return no(Code::InvalidArgument, "no capabilities, or too long a name");
        }
        for capability in &r.volume_capabilities {
            let mode = capability.access_mode.as_ref().map_or(0, |m| m.mode);
            match &capability.access_type {
                Some(AccessType::Mount(m)) if mode == 1 && m.fs_type.is_empty() && m.mount_flags.is_empty() => {}
                _ => return no(Code::InvalidArgument, "only plain files for one writing node are offered"),
            }
        }
        if self.has(Defect::KnowsFewParameters) && r.parameters.contains_key("encrypted") {
            return no(Code::InvalidArgument, "unknown parameter encrypted");
        }
        if !r.mutable_parameters.keys().all(|key| key == "speed") {
            return no(Code::InvalidArgument, "unknown mutable parameter");
        }
        let range = r.capacity_range.unwrap_or_default();
        let (least, most) = (range.required_bytes, range.limit_bytes);
        if least < 0 || most < 0 || (most > 0 && least > most) || least > LARGEST {
            return no(Code::OutOfRange, "this size is not offered");
        }
        if let Some(wish) = &r.accessibility_requirements
            && !wish.requisite.is_empty()
            && !wish.requisite.contains(&place("z1"))
        {
            return no(Code::ResourceExhausted, "no room there");
        }
        let name = if self.has(Defect::CutsNames) { r.name.chars().take(100).collect() } else { r.name.clone() };
        let known =
            self.state().volumes.iter().find(|(_, v)| v.request.name == name).map(|(id, v)| (id.clone(), v.clone()));
        match known {
            Some((id, v)) if !self.has(Defect::MakesTwoOfOneName) => {
                if v.size < least
                    || (most > 0 && v.size > most)
                    || v.request.volume_content_source != r.volume_content_source
                {
                    return no(Code::AlreadyExists, "the name is taken");
                }
                Ok(self.described(&id, &v))
            }
            Some(_) | None => self.make(v1::CreateVolumeRequest { name, ..r.clone() }),
        }
    }

    pub fn make(&self, r: v1::CreateVolumeRequest) -> Answer {
        let size = r.capacity_range.unwrap_or_default().required_bytes.max(1);
        let from = match r.volume_content_source.as_ref().map(|s| s.r#type.as_ref()) {
            None => None,
            Some(None) => return no(Code::InvalidArgument, "an empty source"),
            Some(Some(Source::Snapshot(s))) => match self.state().snapshots.get(&s.snapshot_id) {
                None => return no(Code::NotFound, "no such snapshot"),
                Some((_, found)) if found.size_bytes > size => {
                    return no(Code::OutOfRange, "smaller than the snapshot");
                }
                Some((_, found)) if self.has(Defect::LiveSnapshots) => Some(found.source_volume_id.clone()),
                Some(_) => Some(s.snapshot_id.clone()),
            },
            Some(Some(Source::Volume(v))) => match self.state().volumes.contains_key(&v.volume_id) {
                false => return no(Code::NotFound, "no such volume"),
                true => Some(v.volume_id.clone()),
            },
        };
        let id = self.next(if self.has(Defect::CallsDisksByUrl) { "aws://z1/disks/vol" } else { "vol" });
        self.copy(from.as_deref(), &id);
        let made = if self.has(Defect::MakesTooSmall) { size / 2 } else { size };
        let volume = Volume { request: r, size: made, ..Default::default() };
        self.state().volumes.insert(id.clone(), volume.clone());
        Ok(self.described(&id, &volume))
    }

    fn next(&self, what: &str) -> String {
        let mut state = self.state();
        state.made += 1;
        format!("{what}-{}-{}", std::process::id(), state.made)
    }

    fn copy(&self, from: Option<&str>, to: &str) {
        let to = self.files(to);
        std::fs::create_dir_all(&to).unwrap();
        if let Some(from) = from.map(|id| self.files(id)).filter(|from| *from != to) {
            let done = Command::new("cp").arg("-a").arg(from.join(".")).arg(&to).status().unwrap();
            assert!(done.success());
        }
    }

    fn volume(&self, id: &str, v: &Volume) -> v1::Volume {
        let mut volume_context = BTreeMap::new();
        if self.has(Defect::SecretsInContext) {
            volume_context.clone_from(&v.request.secrets);
        }
        if self.has(Defect::NeedsItsContext) {
            volume_context.insert("shelf".into(), "7".into());
        }
        v1::Volume {
            capacity_bytes: v.size,
            volume_id: id.into(),
            volume_context,
            content_source: if self.has(Defect::ForgetsSource) {
                None
            } else {
                v.request.volume_content_source.clone()
            },
            accessible_topology: match self.placed {
                true => vec![place(if self.has(Defect::ElsewherePlaced) { "z2" } else { "z1" })],
                false => Vec::new(),
            },
        }
    }

    fn described(&self, id: &str, v: &Volume) -> Response {
        Response::CreateVolume(v1::CreateVolumeResponse { volume: Some(self.volume(id, v)) })
    }

    fn delete(&self, id: &str) -> Answer {
        if id.is_empty() {
            return no(Code::InvalidArgument, "no id");
        }
        if self.has(Defect::DeletesByPath) {
            let _ = std::fs::remove_file(Path::new(&self.folder).join(id).join("alive"));
        }
        if self.has(Defect::KeepsDeleted) {
            return Ok(Response::DeleteVolume(v1::DeleteVolumeResponse {}));
        }
        let known = self.state().volumes.get(id).cloned();
        let Some(v) = known else { return Ok(Response::DeleteVolume(v1::DeleteVolumeResponse {})) };
        let used = v.attached.is_some() || !v.staged.is_empty() || !v.targets.is_empty();
        if used && !self.has(Defect::DeletesInUse) {
            return no(Code::FailedPrecondition, "the volume is in use");
        }
        self.state().volumes.remove(id);
        Ok(Response::DeleteVolume(v1::DeleteVolumeResponse {}))
    }

    fn validate(&self, r: &v1::ValidateVolumeCapabilitiesRequest) -> Answer {
        if r.volume_id.is_empty() || r.volume_capabilities.is_empty() {
            return no(Code::InvalidArgument, "no id or no capabilities");
        }
        if !self.state().volumes.contains_key(&r.volume_id) {
            return no(Code::NotFound, "no such volume");
        }
        let fits = |c: &v1::VolumeCapability| {
            matches!(c.access_type, Some(AccessType::Mount(_))) && c.access_mode.as_ref().is_some_and(|m| m.mode == 1)
        };
        let confirmed =
            r.volume_capabilities.iter().all(fits).then(|| v1::validate_volume_capabilities_response::Confirmed {
                volume_capabilities: r.volume_capabilities.clone(),
                ..Default::default()
            });
        let message = if confirmed.is_none() { "not offered".to_string() } else { String::new() };
        Ok(Response::ValidateVolumeCapabilities(v1::ValidateVolumeCapabilitiesResponse { confirmed, message }))
    }

    fn attach(&self, r: &v1::ControllerPublishVolumeRequest) -> Answer {
        if r.volume_id.is_empty() || r.node_id.is_empty() {
            return no(Code::InvalidArgument, "no id");
        }
        let Some(capability) = &r.volume_capability else { return no(Code::InvalidArgument, "no capability") };
        let mut state = self.state();
        let Some(v) = state.volumes.get_mut(&r.volume_id) else { return no(Code::NotFound, "no such volume") };
        if r.node_id != NODE && !self.has(Defect::AttachesUnknownNode) {
            return no(Code::NotFound, "no such node");
        }
        if v.request.volume_capabilities.first() != Some(capability) || v.attached.is_some_and(|ro| ro != r.readonly) {
            return no(Code::AlreadyExists, "attached otherwise");
        }
        v.attached = Some(r.readonly);
        Ok(Response::ControllerPublishVolume(v1::ControllerPublishVolumeResponse::default()))
    }

    fn detach(&self, r: &v1::ControllerUnpublishVolumeRequest) -> Answer {
        if r.volume_id.is_empty() {
            return no(Code::InvalidArgument, "no id");
        }
        if let Some(v) = self.state().volumes.get_mut(&r.volume_id)
            && (r.node_id.is_empty() || r.node_id == NODE)
        {
            if !v.staged.is_empty() {
                return no(Code::FailedPrecondition, "the volume is staged");
            }
            v.attached = None;
        }
        Ok(Response::ControllerUnpublishVolume(v1::ControllerUnpublishVolumeResponse {}))
    }

    fn nodes(&self, v: &Volume) -> Vec<String> {
        if v.attached.is_some() && !self.has(Defect::ForgetsNodes) { vec![NODE.to_string()] } else { vec![] }
    }

    fn list(&self, r: &v1::ListVolumesRequest) -> Answer {
        use v1::list_volumes_response::{Entry, VolumeStatus};
        let state = self.state();
        let entries: Vec<Entry> = state
            .volumes
            .iter()
            .map(|(id, v)| Entry {
                volume: Some(self.volume(id, v)),
                status: Some(VolumeStatus { published_node_ids: self.nodes(v) }),
            })
            .collect();
        let (overlap, any) = (self.has(Defect::PagesOverlap), self.has(Defect::TakesAnyToken));
        if self.has(Defect::DiesOfNegativePages) && r.max_entries < 0 {
            drop(state);
            panic!("makeslice: len out of range");
        }
        let (entries, next_token) = page(&entries, r.max_entries, &r.starting_token, overlap, any)?;
        Ok(Response::ListVolumes(v1::ListVolumesResponse { entries, next_token }))
    }

    fn get(&self, id: &str) -> Answer {
        if id.is_empty() {
            return no(Code::InvalidArgument, "no id");
        }
        match self.state().volumes.get(id) {
            None => no(Code::NotFound, "no such volume"),
            Some(v) => Ok(Response::ControllerGetVolume(v1::ControllerGetVolumeResponse {
                volume: Some(self.volume(id, v)),
                status: Some(v1::controller_get_volume_response::VolumeStatus { published_node_ids: self.nodes(v) }),
            })),
        }
    }

    fn expand(&self, r: &v1::ControllerExpandVolumeRequest) -> Answer {
        let Some(range) = r.capacity_range else { return no(Code::InvalidArgument, "no size") };
        if r.volume_id.is_empty() {
            return no(Code::InvalidArgument, "no id");
        }
        let mut state = self.state();
        let Some(v) = state.volumes.get_mut(&r.volume_id) else { return no(Code::NotFound, "no such volume") };
        let (least, most) = (range.required_bytes, range.limit_bytes);
        if !(0..=LARGEST).contains(&least) || (most > 0 && (least > most || v.size > most)) {
            return no(Code::OutOfRange, "this size is not offered");
        }
        v.size = if self.has(Defect::Shrinks) { least } else { v.size.max(least) };
        let capacity_bytes = v.size;
        Ok(Response::ControllerExpandVolume(v1::ControllerExpandVolumeResponse {
            capacity_bytes,
            node_expansion_required: true,
        }))
    }

    fn snapshot(&self, r: &v1::CreateSnapshotRequest) -> Answer {
        if r.name.is_empty() || r.source_volume_id.is_empty() {
            return no(Code::InvalidArgument, "no name or no source");
        }
        let known = self.state().snapshots.values().find(|(name, _)| *name == r.name).map(|(_, s)| s.clone());
        let snapshot = match known {
            Some(mut s) if s.source_volume_id == r.source_volume_id => {
                if self.has(Defect::NewTimeEachTime) {
                    s.creation_time = s.creation_time.map(|t| prost_types::Timestamp { nanos: t.nanos + 1, ..t });
                    self.state().snapshots.insert(s.snapshot_id.clone(), (r.name.clone(), s.clone()));
                }
                s
            }
            Some(_) => return no(Code::AlreadyExists, "the name is taken"),
            None => self.take(&r.name, &r.source_volume_id, "")?,
        };
        Ok(Response::CreateSnapshot(v1::CreateSnapshotResponse { snapshot: Some(snapshot) }))
    }

    fn take(&self, name: &str, volume: &str, group: &str) -> Result<v1::Snapshot, csi::Status> {
        let size = self.state().volumes.get(volume).map(|v| v.size);
        let Some(size_bytes) = size else { return no(Code::NotFound, "no such volume") };
        let id = self.next("snap");
        self.copy(Some(volume), &id);
        let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        let snapshot = v1::Snapshot {
            size_bytes,
            snapshot_id: id.clone(),
            source_volume_id: volume.into(),
            creation_time: Some(prost_types::Timestamp { seconds: i64::try_from(seconds).unwrap(), nanos: 0 }),
            ready_to_use: true,
            group_snapshot_id: group.into(),
            ..Default::default()
        };
        self.state().snapshots.insert(id, (name.into(), snapshot.clone()));
        Ok(snapshot)
    }

    fn list_snapshots(&self, r: &v1::ListSnapshotsRequest) -> Answer {
        use v1::list_snapshots_response::Entry;
        let state = self.state();
        let wanted = |s: &v1::Snapshot| {
            (r.snapshot_id.is_empty() || s.snapshot_id == r.snapshot_id)
                && (r.source_volume_id.is_empty() || s.source_volume_id == r.source_volume_id)
        };
        let all: Vec<Entry> = state
            .snapshots
            .values()
            .filter(|(_, s)| wanted(s))
            .map(|(_, s)| Entry { snapshot: Some(s.clone()) })
            .collect();
        let (entries, next_token) = page(&all, r.max_entries, &r.starting_token, false, false)?;
        Ok(Response::ListSnapshots(v1::ListSnapshotsResponse { entries, next_token }))
    }

    fn group(&self, r: &v1::CreateVolumeGroupSnapshotRequest) -> Answer {
        if r.name.is_empty() || r.source_volume_ids.is_empty() {
            return no(Code::InvalidArgument, "no name or no volumes");
        }
        let known = self.state().groups.values().find(|(old, _)| old.name == r.name).cloned();
        if let Some((old, group)) = known {
            return match old.source_volume_ids == r.source_volume_ids {
                true => Ok(Response::CreateVolumeGroupSnapshot(v1::CreateVolumeGroupSnapshotResponse {
                    group_snapshot: Some(group),
                })),
                false => no(Code::AlreadyExists, "the name is taken"),
            };
        }
        if r.source_volume_ids.iter().any(|id| !self.state().volumes.contains_key(id)) {
            return no(Code::NotFound, "no such volume");
        }
        let id = self.next("group");
        let mut snapshots = Vec::new();
        let leave = usize::from(self.has(Defect::GroupWithoutMember));
        for volume in r.source_volume_ids.iter().skip(leave) {
            snapshots.push(self.take(&format!("{id}/{volume}"), volume, &id)?);
        }
        let creation_time = snapshots.first().and_then(|s| s.creation_time);
        let group =
            v1::VolumeGroupSnapshot { group_snapshot_id: id.clone(), snapshots, creation_time, ready_to_use: true };
        self.state().groups.insert(id, (r.clone(), group.clone()));
        Ok(Response::CreateVolumeGroupSnapshot(v1::CreateVolumeGroupSnapshotResponse { group_snapshot: Some(group) }))
    }
}
