//! What the containers of a pod do with one of its volumes.

use api::{Pod, VolumeMode};

/// How containers use a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContainerUses {
    /// Some container has it in `volumeMounts`.
    pub mounted: bool,
    /// Some container has it in `volumeDevices`.
    pub device: bool,
}

impl ContainerUses {
    /// KL-30: by any container, init containers too.
    pub fn of(pod: &Pod, volume: &str) -> ContainerUses {
        let mut uses = ContainerUses::default();
        for container in pod.spec.init_containers.iter().chain(&pod.spec.containers) {
            uses.mounted |= container.volume_mounts.iter().any(|mount| mount.name == volume);
            uses.device |= container.volume_devices.iter().any(|device| device.name == volume);
        }
        uses
    }

    /// Some container uses it. A volume that none uses is not mounted at all.
    pub fn any(self) -> bool {
        self.mounted || self.device
    }

    /// KL-31: filesystems are for `volumeMounts` and raw devices for `volumeDevices`. Otherwise a clause says what is
    /// wrong and what to do.
    pub fn check(self, volume: &str, mode: &VolumeMode) -> Result<(), alloc::string::String> {
        let (wrong, right) = match mode {
            VolumeMode::Block => (self.mounted, "volumeDevices"),
            VolumeMode::Filesystem | VolumeMode::Other(_) => (self.device, "volumeMounts"),
        };
        if wrong {
            return Err(alloc::format!(
                "volume {volume} has volumeMode {mode}, so containers must name it in {right} alone"
            ));
        }
        Ok(())
    }
}
