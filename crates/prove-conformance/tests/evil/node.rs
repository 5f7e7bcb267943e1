use std::path::Path;
use std::process::Command;

use csi::{Call, Code, Response, v1};
use v1::volume_capability::AccessType;

use super::controller::{NODE, place};
use super::{Answer, Defect, Evil, no};

impl Evil {
    pub fn on_node(&self, call: &Call) -> Answer {
        match call {
            Call::NodeGetInfo(_) => Ok(Response::NodeGetInfo(v1::NodeGetInfoResponse {
                node_id: NODE.into(),
                max_volumes_per_node: 0,
                accessible_topology: Some(place("z1")),
            })),
            Call::NodeGetCapabilities(_) => {
                use v1::node_service_capability::{Rpc, Type};
                let capability = |r#type| v1::NodeServiceCapability { r#type: Some(Type::Rpc(Rpc { r#type })) };
                let capabilities = [1, 2, 3].into_iter().map(capability).collect();
                Ok(Response::NodeGetCapabilities(v1::NodeGetCapabilitiesResponse { capabilities }))
            }
            Call::NodeStageVolume(r) => self.stage(r),
            Call::NodeUnstageVolume(r) => self.unstage(r),
            Call::NodePublishVolume(r) => self.publish(r),
            Call::NodeUnpublishVolume(r) => self.unpublish(r),
            Call::NodeGetVolumeStats(r) => {
                if r.volume_id.is_empty() || r.volume_path.is_empty() {
                    return no(Code::InvalidArgument, "no id or no path");
                }
                match self.state().volumes.get(&r.volume_id) {
                    Some(v) if v.targets.contains_key(&r.volume_path) => {
                        let usage = vec![v1::VolumeUsage { available: v.size, total: v.size, used: 0, unit: 1 }];
                        Ok(Response::NodeGetVolumeStats(v1::NodeGetVolumeStatsResponse { usage }))
                    }
                    Some(_) | None => no(Code::NotFound, "the volume is not there"),
                }
            }
            Call::NodeExpandVolume(r) => {
                if r.volume_id.is_empty() || r.volume_path.is_empty() {
                    return no(Code::InvalidArgument, "no id or no path");
                }
                match self.state().volumes.get(&r.volume_id) {
                    Some(_) if self.has(Defect::NeverGrowsOnNode) => no(Code::Internal, "the filesystem stays small"),
                    Some(v) if v.targets.contains_key(&r.volume_path) => {
                        let capacity_bytes = v.size;
                        Ok(Response::NodeExpandVolume(v1::NodeExpandVolumeResponse { capacity_bytes }))
                    }
                    Some(_) | None => no(Code::NotFound, "the volume is not there"),
                }
            }
            _ => no(Code::Unimplemented, "not offered"),
        }
    }

    fn stage(&self, r: &v1::NodeStageVolumeRequest) -> Answer {
        if r.volume_id.is_empty() || r.staging_target_path.is_empty() {
            return no(Code::InvalidArgument, "no id or no path");
        }
        let Some(capability) = &r.volume_capability else { return no(Code::InvalidArgument, "no capability") };
        let mut state = self.state();
        let Some(v) = state.volumes.get_mut(&r.volume_id) else { return no(Code::NotFound, "no such volume") };
        if v.attached.is_none() {
            return no(Code::FailedPrecondition, "the volume is not attached");
        }
        if !matches!(capability.access_type, Some(AccessType::Mount(_))) {
            return no(Code::AlreadyExists, "only files are offered");
        }
        if self.has(Defect::NeedsItsContext) && !r.volume_context.contains_key("shelf") {
            return no(Code::InvalidArgument, "the shelf is not told");
        }
        v.staged.insert(r.staging_target_path.clone(), capability.clone());
        Ok(Response::NodeStageVolume(v1::NodeStageVolumeResponse {}))
    }

    fn unstage(&self, r: &v1::NodeUnstageVolumeRequest) -> Answer {
        if r.volume_id.is_empty() || r.staging_target_path.is_empty() {
            return no(Code::InvalidArgument, "no id or no path");
        }
        if let Some(v) = self.state().volumes.get_mut(&r.volume_id) {
            if !v.targets.is_empty() {
                return no(Code::FailedPrecondition, "the volume is published");
            }
            v.staged.remove(&r.staging_target_path);
        }
        Ok(Response::NodeUnstageVolume(v1::NodeUnstageVolumeResponse {}))
    }

    fn publish(&self, r: &v1::NodePublishVolumeRequest) -> Answer {
        if r.volume_id.is_empty() || r.target_path.is_empty() {
            return no(Code::InvalidArgument, "no id or no path");
        }
        let Some(capability) = &r.volume_capability else { return no(Code::InvalidArgument, "no capability") };
        if !r.target_path.starts_with('/') || r.target_path.contains('\0') {
            return no(Code::InvalidArgument, "no absolute path");
        }
        if self.has(Defect::EphemeralByPath) && r.volume_context.contains_key("csi.storage.k8s.io/ephemeral") {
            let _ = std::fs::create_dir_all(self.folder.join(r.volume_id.replace('\0', "")));
        }
        let mut state = self.state();
        let taken = state.volumes.iter().any(|(id, v)| *id != r.volume_id && v.targets.contains_key(&r.target_path));
        let Some(v) = state.volumes.get_mut(&r.volume_id) else { return no(Code::NotFound, "no such volume") };
        if !v.staged.contains_key(&r.staging_target_path) && !self.has(Defect::PublishesUnstaged) {
            return no(Code::FailedPrecondition, "the volume is not staged");
        }
        if taken || !matches!(capability.access_type, Some(AccessType::Mount(_))) {
            return no(Code::FailedPrecondition, "another volume is there, or other than files are asked for");
        }
        let target = Path::new(&r.target_path);
        match v.targets.get(&r.target_path) {
            Some(readonly) if *readonly != r.readonly => return no(Code::AlreadyExists, "published otherwise"),
            Some(_) if !self.has(Defect::MountsAgain) => {}
            Some(_) | None => {
                if std::fs::symlink_metadata(target).is_ok_and(|found| !found.is_dir()) {
                    return no(Code::FailedPrecondition, "something else is there");
                }
                std::fs::create_dir_all(target).unwrap();
                self.mount(&r.volume_id, target, r.readonly && !self.has(Defect::IgnoresReadOnly));
                v.targets.insert(r.target_path.clone(), r.readonly);
            }
        }
        Ok(Response::NodePublishVolume(v1::NodePublishVolumeResponse {}))
    }

    fn unpublish(&self, r: &v1::NodeUnpublishVolumeRequest) -> Answer {
        if r.volume_id.is_empty() || r.target_path.is_empty() {
            return no(Code::InvalidArgument, "no id or no path");
        }
        let known = self.state().volumes.get_mut(&r.volume_id).and_then(|v| v.targets.remove(&r.target_path));
        if known.is_some() {
            let target = Path::new(&r.target_path);
            if self.root {
                while Command::new("umount").arg(target).output().unwrap().status.success() {}
            }
            if !self.has(Defect::LeavesTarget) {
                let _ = std::fs::remove_dir(target);
            }
        } else if self.has(Defect::UnpublishOnce) {
            return no(Code::NotFound, "the volume is not there");
        }
        Ok(Response::NodeUnpublishVolume(v1::NodeUnpublishVolumeResponse {}))
    }

    fn mount(&self, id: &str, target: &Path, readonly: bool) {
        if !self.root {
            return;
        }
        let run = |args: &[&str], last: &[&Path]| {
            assert!(Command::new("mount").args(args).args(last).status().unwrap().success(), "cannot mount");
        };
        run(&["--bind"], &[&self.files(id), target]);
        if readonly {
            run(&["-o", "remount,ro,bind"], &[target]);
        }
    }
}
