//! What holds for any input.

use alloc::string::String;
use alloc::vec::Vec;

use api::{
    AccessMode, AwsElasticBlockStore, AzureDisk, AzureFile, Cinder, CsiSource, GcePersistentDisk, InTreeSource, Meta,
    NodeRequirement, NodeSelector, NodeSelectorTerm, PersistentVolume, PodVolume, PortworxVolume, Rbd, StorageClass,
    VolumeNodeAffinity, VolumeSpec, VsphereVolume, names,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use crate::{Plugin, class_to_csi, class_to_in_tree, inline_to_csi, repair_handle, volume_to_csi, volume_to_in_tree};

/// Words that mean something here, pieces of them, and anything at all.
fn text() -> BoxedStrategy<String> {
    prop_oneof![
        "\\PC{0,8}",
        "(aws://)?[a-z/]{0,3}/?vol-[a-z0-9/]{0,3}",
        "(projects|x)/(p|UNSPECIFIED)/(zones|regions)/(us-east1-a|UNSPECIFIED)/disks/[a-z]{0,2}",
        "(/subscriptions/s)?/resourceGroups/g/providers/Microsoft.Compute/disks/[a-zé]{0,2}",
        "https?://[a-z]{0,2}/vhds/[a-z]{0,2}",
        "[a-z]{0,2}#[a-z]{0,2}#[a-z]{0,2}",
        "(us|eu)-(west|east)-?[12][ab]?(__us-west-2a)?",
        "azure-storage-account-[a-z]{0,2}-secret",
    ]
    .boxed()
}

fn key() -> BoxedStrategy<String> {
    let zones = Plugin::ALL.into_iter().filter_map(Plugin::zone_key);
    let known: Vec<String> =
        [names::ZONE, names::ZONE_BETA, names::REGION, names::REGION_BETA, "partition", "fstype", "fsType"]
            .into_iter()
            .chain(["zone", "zones", "iopsPerGB", "monitors", "adminSecretName", names::FSTYPE_PARAMETER, "sharename"])
            .chain(zones)
            .map(String::from)
            .collect();
    prop_oneof![4 => proptest::sample::select(known), 1 => text()].boxed()
}

fn source() -> BoxedStrategy<InTreeSource> {
    (0..8u8, text(), text(), any::<i32>(), any::<bool>(), proptest::option::of(text()))
        .prop_map(|(kind, id, other, partition, read_only, maybe)| match kind {
            0 => InTreeSource::AwsElasticBlockStore(AwsElasticBlockStore {
                volume_id: id,
                fs_type: other,
                partition,
                read_only,
                ..Default::default()
            }),
            1 => InTreeSource::GcePersistentDisk(GcePersistentDisk {
                pd_name: id,
                fs_type: other,
                partition,
                read_only,
                ..Default::default()
            }),
            2 => InTreeSource::AzureDisk(AzureDisk {
                disk_uri: id,
                disk_name: other,
                fs_type: maybe.clone(),
                caching_mode: maybe,
                ..Default::default()
            }),
            3 => InTreeSource::AzureFile(AzureFile {
                share_name: id,
                secret_name: other,
                secret_namespace: maybe,
                read_only,
                ..Default::default()
            }),
            4 => InTreeSource::Cinder(Cinder { volume_id: id, fs_type: other, read_only, ..Default::default() }),
            5 => InTreeSource::VsphereVolume(VsphereVolume { volume_path: id, fs_type: other, ..Default::default() }),
            6 => InTreeSource::PortworxVolume(PortworxVolume {
                volume_id: id,
                fs_type: other,
                read_only,
                ..Default::default()
            }),
            _rbd => InTreeSource::Rbd(Rbd { image: id, pool: other, read_only, ..Default::default() }),
        })
        .boxed()
}

fn csi() -> BoxedStrategy<CsiSource> {
    let driver = proptest::sample::select(Plugin::ALL.map(Plugin::driver).to_vec());
    (driver, text(), text(), any::<bool>(), btree_map(key(), text(), 0..4))
        .prop_map(|(driver, volume_handle, fs_type, read_only, volume_attributes)| CsiSource {
            driver: driver.into(),
            volume_handle,
            fs_type,
            read_only,
            volume_attributes,
            ..CsiSource::default()
        })
        .boxed()
}

fn affinity() -> BoxedStrategy<Option<VolumeNodeAffinity>> {
    let wanted =
        (key(), vec(text(), 0..3)).prop_map(|(key, values)| NodeRequirement { key, operator: "In".into(), values });
    let term =
        vec(wanted, 0..3).prop_map(|match_expressions| NodeSelectorTerm { match_expressions, ..Default::default() });
    let terms = vec(term, 0..3)
        .prop_map(|node_selector_terms| VolumeNodeAffinity { required: Some(NodeSelector { node_selector_terms }) });
    proptest::option::of(terms).boxed()
}

fn volume(spec: BoxedStrategy<VolumeSpec>) -> BoxedStrategy<PersistentVolume> {
    let labels = btree_map(key(), text(), 0..3);
    let modes = vec(text().prop_map(|word| AccessMode::from(word.as_str())), 0..2);
    (text(), labels, spec, affinity(), modes)
        .prop_map(|(name, labels, spec, node_affinity, access_modes)| PersistentVolume {
            metadata: Meta { labels, ..Meta::named(name) }.into(),
            spec: VolumeSpec { node_affinity, access_modes, ..spec },
            ..PersistentVolume::default()
        })
        .boxed()
}

fn in_tree_volume() -> BoxedStrategy<PersistentVolume> {
    volume(source().prop_map(|source| VolumeSpec { in_tree: Some(source.into()), ..VolumeSpec::default() }).boxed())
}

fn csi_volume() -> BoxedStrategy<PersistentVolume> {
    volume(csi().prop_map(|csi| VolumeSpec { csi: Some(csi), ..VolumeSpec::default() }).boxed())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    // reliability 130: the source is the same again, or something was said to be lost, or it was refused.
    #[test]
    fn there_and_back_is_the_same_or_says_why_not(there in in_tree_volume()) {
        let before = there.clone();
        if let Ok(seen) = volume_to_csi(&there) {
            prop_assert!(seen.object.spec.in_tree.is_none() && seen.object.spec.csi.is_some());
            prop_assert_eq!(volume_to_csi(&there).unwrap(), seen.clone());
            if let Ok(back) = volume_to_in_tree(&seen.object) {
                // A share without a name, or without a secret, is none.
                let same = kept(&there).is_none_or(|source| kept(&back.object) == Some(source));
                prop_assert!(same || !seen.lost.is_empty() || !back.lost.is_empty(), "{:?}", back.object.spec.in_tree);
            }
        }
        prop_assert_eq!(there, before);
    }

    #[test]
    fn nothing_makes_it_panic(
        volume in csi_volume(), source in source(), name in text(), namespace in text(), parameters in btree_map(key(), text(), 0..5),
        handle in text(), node in text(), provisioner in 0..16usize,
    ) {
        if let Ok(back) = volume_to_in_tree(&volume) {
            let _ = volume_to_csi(&back.object);
        }
        let _ = inline_to_csi(&PodVolume { name, in_tree: Some(source.into()), ..PodVolume::default() }, &namespace);
        let plugin = Plugin::ALL[provisioner % 8];
        let provisioner = if provisioner < 8 { plugin.name() } else { plugin.driver() };
        let class = StorageClass { provisioner: provisioner.into(), parameters, ..StorageClass::default() };
        if let Ok(seen) = class_to_csi(&class).or_else(|_| class_to_in_tree(&class)) {
            prop_assert_ne!(seen.object.provisioner, class.provisioner);
        }
        for plugin in Plugin::ALL {
            let _ = repair_handle(plugin.driver(), &handle, &node);
        }
    }
}

/// What both forms have. Amazon's ids lose their zone, Azure's optional fields become plain ones, and the namespace of a
/// secret that only the claim tells is written out.
fn kept(volume: &PersistentVolume) -> Option<InTreeSource> {
    let mut source = *volume.spec.in_tree.clone()?;
    match &mut source {
        InTreeSource::AwsElasticBlockStore(disk) => {
            if let Some((_, id)) = disk.volume_id.strip_prefix("aws://").and_then(|rest| rest.split_once('/')) {
                disk.volume_id = id.trim_matches('/').into();
            }
        }
        InTreeSource::AzureDisk(disk) => {
            disk.kind = None;
            disk.read_only = Some(disk.read_only.unwrap_or_default());
            disk.fs_type = Some(disk.fs_type.clone().unwrap_or_default());
            disk.caching_mode = disk.caching_mode.clone().filter(|mode| !mode.is_empty());
        }
        InTreeSource::GcePersistentDisk(disk) => {
            // A name with a slash is no name; only what is before it comes back.
            disk.pd_name = disk.pd_name.split('/').next().unwrap_or_default().into();
        }
        InTreeSource::AzureFile(share) if share.share_name.is_empty() || share.secret_name.is_empty() => return None,
        InTreeSource::AzureFile(_)
        | InTreeSource::Cinder(_)
        | InTreeSource::VsphereVolume(_)
        | InTreeSource::PortworxVolume(_)
        | InTreeSource::Rbd(_)
        | InTreeSource::Several(_) => {}
    }
    Some(source)
}
