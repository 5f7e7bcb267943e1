//! Drivers put what they were given into their error texts, and those texts reach events, logs and statuses. So the
//! secrets of a request are taken out of its answer's text (reliability 121).

use std::collections::BTreeMap;

use csi::Call;

/// Shorter values would blot out ordinary words, and are no secrets worth the name.
const SHORTEST: usize = 4;
/// Pieces of a token document that are worth hiding; shorter ones are names and dates.
const SHORTEST_TOKEN: usize = 24;
/// The context entry that carries service account tokens although it is not marked secret.
const TOKENS: &str = "csi.storage.k8s.io/serviceAccount.tokens";
const COVER: &str = "[secret]";

/// The values of a request that must not be shown. It cannot be printed.
pub struct Secrets(Vec<String>);

impl Secrets {
    /// The secrets a call carries.
    pub fn of(call: &Call) -> Secrets {
        let (secrets, context) = maps(call);
        let mut values: Vec<String> =
            secrets.into_iter().flat_map(|map| map.values()).filter(|v| v.len() >= SHORTEST).cloned().collect();
        if let Some(document) = context.and_then(|map| map.get(TOKENS)) {
            values.extend(document.split('"').filter(|piece| piece.len() >= SHORTEST_TOKEN).map(String::from));
        }
        // A value that contains another must be covered first, or its rest stays visible.
        values.sort_by_key(|value| core::cmp::Reverse(value.len()));
        Secrets(values)
    }

    /// The text without them.
    pub fn cover(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| if text.contains(secret) { text.replace(secret, COVER) } else { text })
    }
}

type Map = BTreeMap<String, String>;

/// The secret map of a call, and the context that may hold tokens.
fn maps(call: &Call) -> (Option<&Map>, Option<&Map>) {
    match call {
        Call::CreateVolume(r) => (Some(&r.secrets), None),
        Call::DeleteVolume(r) => (Some(&r.secrets), None),
        Call::ControllerPublishVolume(r) => (Some(&r.secrets), Some(&r.volume_context)),
        Call::ControllerUnpublishVolume(r) => (Some(&r.secrets), None),
        Call::ValidateVolumeCapabilities(r) => (Some(&r.secrets), Some(&r.volume_context)),
        Call::CreateSnapshot(r) => (Some(&r.secrets), None),
        Call::DeleteSnapshot(r) => (Some(&r.secrets), None),
        Call::ListSnapshots(r) => (Some(&r.secrets), None),
        Call::ControllerExpandVolume(r) => (Some(&r.secrets), None),
        Call::ControllerModifyVolume(r) => (Some(&r.secrets), None),
        Call::NodeStageVolume(r) => (Some(&r.secrets), Some(&r.volume_context)),
        Call::NodePublishVolume(r) => (Some(&r.secrets), Some(&r.volume_context)),
        Call::NodeExpandVolume(r) => (Some(&r.secrets), None),
        Call::ControllerGetVolumeHealth(r) => (Some(&r.secrets), None),
        Call::ControllerListVolumeHealth(r) => (Some(&r.secrets), None),
        Call::GetSnapshot(r) => (Some(&r.secrets), None),
        Call::CreateVolumeGroupSnapshot(r) => (Some(&r.secrets), None),
        Call::DeleteVolumeGroupSnapshot(r) => (Some(&r.secrets), None),
        Call::GetVolumeGroupSnapshot(r) => (Some(&r.secrets), None),
        Call::NodeGetStorageHealth(r) => (Some(&r.secrets), None),
        Call::GetPluginInfo(_)
        | Call::GetPluginCapabilities(_)
        | Call::Probe(_)
        | Call::ListVolumes(_)
        | Call::GetCapacity(_)
        | Call::ControllerGetCapabilities(_)
        | Call::ControllerGetVolume(_)
        | Call::NodeUnstageVolume(_)
        | Call::NodeUnpublishVolume(_)
        | Call::GroupControllerGetCapabilities(_)
        | Call::NodeGetVolumeStats(_)
        | Call::NodeGetVolumeHealth(_)
        | Call::NodeGetCapabilities(_)
        | Call::NodeGetInfo(_)
        | Call::GetCSIDriverInfo(_)
        | Call::GetInfo(_)
        | Call::NotifyRegistrationStatus(_) => (None, None),
    }
}

#[cfg(test)]
#[path = "secrets_tests.rs"]
mod tests;
