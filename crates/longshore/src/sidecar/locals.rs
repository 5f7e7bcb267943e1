//! What the rules of each role are told at the start: flags, the driver's capabilities, and where the process runs.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use api::Kind;
use control::Rules;
use csi::{ControllerRpc as Can, NodeRpc as NodeCan};
use io_csi::Profile;
use io_kube::Kube;
use rules_provisioner::{Intent, OwnNode, Provisioner};
use rules_resizer::{Expansion, Resizer};

use super::Role;
use super::controllers::capacity_settings;
use super::settings::Settings;
use super::table::{self, Flag, Text};

/// The provisioner's, with what only the driver or the cluster can say.
pub async fn provisioner(
    settings: &Settings,
    profile: &Profile,
    node: Option<OwnNode>,
    kube: &Kube,
) -> Result<rules_provisioner::Local> {
    if !profile.can(Can::CreateDeleteVolume) {
        bail!("the driver {} makes no volumes, so there is nothing to provision", profile.name);
    }
    let flags = &settings.flags;
    let is = |flag: Flag<bool>| flags.is(Role::Provisioner, flag);
    let text = |flag: Flag<Text>| flags.text(Role::Provisioner, flag).to_string();
    let wanted = rules_provisioner::Settings {
        volume_name_prefix: text(table::VOLUME_NAME_PREFIX),
        volume_name_uuid_length: usize::try_from(flags.int(Role::Provisioner, table::VOLUME_NAME_UUID_LENGTH)).ok(),
        strict_topology: is(table::STRICT_TOPOLOGY),
        immediate_topology: is(table::IMMEDIATE_TOPOLOGY),
        extra_create_metadata: is(table::EXTRA_CREATE_METADATA),
        default_fstype: text(table::DEFAULT_FSTYPE),
        controller_publish_readonly: is(table::CONTROLLER_PUBLISH_READONLY),
        prevent_volume_mode_conversion: is(table::PREVENT_VOLUME_MODE_CONVERSION),
        topology: flags.gate("Topology").unwrap_or(true),
        cross_namespace_sources: flags.gate("CrossNamespaceVolumeDataSource").unwrap_or(false),
        attributes_classes: flags.gate("VolumeAttributesClass").unwrap_or(true),
        pauses: settings.pauses(Role::Provisioner),
        intent: match text(table::PROVISIONING_INTENT).as_str() {
            "memory" => Intent::InMemory,
            "claim" => Intent::OnClaim,
            _journal => Intent::InJournal,
        },
        namespace: settings.home.clone(),
        attaches: settings.roles.contains(&Role::Attacher),
        identity: identity(&profile.name, node.as_ref()),
        node,
        capacity: if is(table::ENABLE_CAPACITY) { Some(capacity_settings(settings, kube).await?) } else { None },
        migration: settings.migration,
    };
    Ok(rules_provisioner::Local {
        driver: profile.name.as_str().into(),
        capabilities: profile.capabilities,
        settings: Arc::new(wanted),
        recently_provisioned: rules_provisioner::RecentlyProvisioned::default(),
    })
}

/// Who made a volume, as the Go provisioner writes it into volumes: the time of its start, a number, the driver, the node.
fn identity(driver: &str, node: Option<&OwnNode>) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let node = node.map(|node| format!("-{}", node.name)).unwrap_or_default();
    format!("{}-{}-{driver}{node}", since.as_millis(), since.subsec_nanos() % 10_000)
}

/// Kinds the provisioner need not see, because the driver or the flags leave no use for them: who runs it need not grant
/// them, and nobody keeps them in memory (sidecars 2.2).
pub fn unseen_by_provisioner(local: &rules_provisioner::Local) -> Vec<Kind> {
    let settings = &local.settings;
    let cluster_topology = local.uses_topology() && settings.node.is_none();
    let uses = |kind: Kind| match kind {
        Kind::VolumeAttachment => local.can(Can::PublishUnpublishVolume),
        Kind::CSINode | Kind::Node => cluster_topology,
        Kind::VolumeAttributesClass => local.can(Can::ModifyVolume) && settings.attributes_classes,
        Kind::VolumeSnapshot | Kind::VolumeSnapshotContent => local.can(Can::CreateDeleteSnapshot),
        Kind::ReferenceGrant => settings.cross_namespace_sources,
        _ => true,
    };
    Provisioner::watches().iter().copied().filter(|kind| !uses(*kind)).collect()
}

/// Whether a resizer has anything to do for a driver.
pub fn resizes(profile: &Profile) -> bool {
    profile.can(Can::ExpandVolume) || profile.can(NodeCan::ExpandVolume) || profile.can(Can::ModifyVolume)
}

/// What the resizer knows of its driver and from its flags.
pub fn resizer(settings: &Settings, profile: &Profile) -> Result<rules_resizer::Local> {
    let flags = &settings.flags;
    let is = |flag: Flag<bool>| flags.is(Role::Resizer, flag);
    let slow = flags.duration(Role::Resizer, table::RETRY_INTERVAL_MAX);
    let local = rules_resizer::Local {
        driver: profile.name.clone(),
        capabilities: profile.capabilities,
        attributes_classes: flags.gate("VolumeAttributesClass").unwrap_or(true),
        recovers: flags.gate("RecoverVolumeExpansionFailure").unwrap_or(true),
        tells_size_before: flags.gate("AnnotateFsResize").unwrap_or(true),
        asks_pods: is(table::HANDLE_VOLUME_INUSE_ERROR),
        extra_metadata: is(table::EXTRA_MODIFY_METADATA),
        slow_millis: u64::try_from(slow.as_millis()).context("--retry-interval-max is too long")?,
        pauses: settings.pauses(Role::Resizer),
        migration: settings.migration,
    };
    if local.expansion() == Expansion::None && !local.modifies() {
        bail!("the driver {} neither grows nor modifies volumes, so there is nothing to resize", profile.name);
    }
    Ok(local)
}

/// Kinds the resizer need not see.
pub fn unseen_by_resizer(local: &rules_resizer::Local) -> Vec<Kind> {
    let uses = |kind: Kind| match kind {
        Kind::Pod => local.asks_pods,
        Kind::VolumeAttributesClass => local.modifies(),
        _ => true,
    };
    Resizer::watches().iter().copied().filter(|kind| !uses(*kind)).collect()
}

/// What the attacher knows of its driver and from its flags.
pub fn attacher(settings: &Settings, profile: &Profile) -> rules_attacher::Local {
    let flags = &settings.flags;
    let lists = profile.can(Can::ListVolumes) && profile.can(Can::ListVolumesPublishedNodes);
    let every = flags.duration(Role::Attacher, table::RECONCILE_SYNC);
    rules_attacher::Local {
        driver: profile.name.clone(),
        capabilities: profile.capabilities,
        default_fs_type: flags.text(Role::Attacher, table::DEFAULT_FSTYPE).to_string(),
        // Never unless the driver can say where its volumes are.
        list_every_millis: if lists { u64::try_from(every.as_millis()).unwrap_or(u64::MAX) } else { 0 },
        max_entries: i32::try_from(flags.int(Role::Attacher, table::MAX_ENTRIES)).unwrap_or(0),
        provisions: settings.roles.contains(&Role::Provisioner),
        pauses: settings.pauses(Role::Attacher),
        migration: settings.migration,
        ..rules_attacher::Local::default()
    }
}
