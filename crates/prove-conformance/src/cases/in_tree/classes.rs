//! What classes of the plugins could say: each parameter makes a volume that lives to its end.

use csi::v1;

use super::served::{Wish, brought, deleted, made, plugin, taken_down};
use crate::CaseResult;
use crate::case::{T, cases, ensure, fail, skip};
use crate::host;

/// The beginning of the names of cases of one parameter.
const BEFORE: &str = "in-tree/class/";

/// The parameter that a case is for, if it is for one; a value that only its user knows is told in capitals.
#[cfg(test)]
pub fn parameter(case: &'static str) -> Option<(&'static str, &'static str)> {
    case.strip_prefix(BEFORE)?.split_once('=')
}

/// The whole life of a volume of a class that says this.
async fn lives(t: T, name: &'static str) -> CaseResult {
    let Some((key, value)) = name.strip_prefix(BEFORE).and_then(|told| told.split_once('=')) else {
        return fail(format!("{name} names no parameter"));
    };
    let given = t.suite.options.parameters.iter().find(|(given, _)| given.eq_ignore_ascii_case(key));
    let own = value.starts_with(|first: char| first.is_ascii_uppercase()) && value.ends_with('…');
    let wish = match given {
        Some(_) if own => Wish::plain(),
        None if own => return skip(format!("its value is your own: --parameters {key}=…")),
        Some((given, other)) if given != key || other != value => {
            return skip(format!("--parameters says {given}={other} already"));
        }
        Some(_) | None => Wish::with(key, value),
    };
    let served = made(&t, &wish).await?;
    let life = brought(&t, &served).await?;
    if key.eq_ignore_ascii_case("fstype") && t.suite.options.root {
        let found = host::mount_at(life.target()).map(|mount| mount.fstype).unwrap_or_default();
        ensure!(found == value, "the class asks for {value}, mounted is {found:?}");
    }
    taken_down(&t, &served, &life).await?;
    deleted(&t, &served).await
}

/// A table of cases: each parameter with the values that plugins knew. OWN… stands for a value that only users know.
macro_rules! parameters {
    ($module:ident { $($key:literal: $($value:literal)|+;)* }) => {
        /// What the classes of this plugin could say.
        pub mod $module {
            /// The cases of this plugin.
            pub const CASES: &[$crate::Case] = &[$($($crate::Case {
                name: concat!("in-tree/class/", $key, "=", $value),
                needs: &[$crate::need::need!(Controller(CreateDeleteVolume))],
                why: concat!("A class with ", $key, " makes volumes as the plugin did."),
                parity: false,
                run: |t| Box::pin(super::lives(t, concat!("in-tree/class/", $key, "=", $value))),
            }),+),*];
        }
    };
}

parameters! {
    aws_ebs {
        "type": "gp2" | "gp3" | "io1" | "st1" | "sc1";
        "iopsPerGB": "10";
        "encrypted": "true" | "false";
        "kmsKeyId": "OWN…";
        "fstype": "ext4" | "ext3" | "ext2" | "xfs";
    }
}
parameters! {
    azure_disk {
        "skuName": "Standard_LRS" | "StandardSSD_LRS" | "Premium_LRS";
        "storageaccounttype": "Standard_LRS";
        "kind": "Managed";
        "cachingmode": "None" | "ReadOnly" | "ReadWrite";
        "resourceGroup": "OWN…";
        "diskEncryptionSetID": "OWN…";
        "tags": "OWN…";
        "fstype": "ext4" | "ext3" | "ext2" | "xfs";
    }
}
parameters! {
    azure_file {
        "skuName": "Standard_LRS" | "Standard_GRS" | "Premium_LRS";
        "secretNamespace": "default";
        "location": "OWN…";
        "storageAccount": "OWN…";
        "resourceGroup": "OWN…";
        "shareName": "OWN…";
    }
}
parameters! {
    cinder {
        "type": "OWN…";
        "availability": "OWN…";
        "fstype": "ext4" | "ext3" | "xfs";
    }
}
parameters! {
    gce_pd {
        "type": "pd-standard" | "pd-balanced" | "pd-ssd";
        "replication-type": "none" | "regional-pd";
        "disk-encryption-kms-key": "OWN…";
        "fstype": "ext4" | "ext3" | "ext2" | "xfs";
    }
}
parameters! {
    portworx {
        "repl": "1" | "2";
        "priority_io": "high" | "low";
        "io_profile": "db";
        "snap_interval": "60";
        "aggregation_level": "1";
        "shared": "true";
        "fs": "ext4" | "xfs";
    }
}
parameters! {
    rbd {
        "pool": "OWN…";
        "imageFormat": "2";
        "imageFeatures": "layering";
        "adminId": "OWN…";
        "adminSecretNamespace": "OWN…";
        "fstype": "ext4" | "xfs";
    }
}
parameters! {
    vsphere {
        "diskformat": "thin" | "zeroedthick" | "eagerzeroedthick";
        "storagePolicyName": "OWN…";
        "datastore": "OWN…";
        "hostFailuresToTolerate": "1";
        "forceProvisioning": "true";
        "cacheReservation": "20";
        "diskStripes": "1";
        "objectSpaceReservation": "100";
        "iopsLimit": "100";
        "fstype": "ext4" | "xfs";
    }
}

/// The zone of this node, as the driver tells it.
fn here(t: &T) -> CaseResult<(&'static str, String)> {
    let Some(key) = plugin(t)?.zone_key() else { return skip("the plugin knows no zones") };
    let place: v1::Topology = t.suite.node.accessible_topology.clone().unwrap_or_default();
    match place.segments.get(key) {
        Some(zone) => Ok((key, zone.clone())),
        None => fail(format!("the driver does not tell its node's zone as {key}")),
    }
}

/// A volume of a class for the zone of this node is there, and the plugin's record says so.
async fn placed(t: &T, wish: Wish, zone: &str, key: &str) -> CaseResult {
    let served = made(t, &wish).await?;
    let places = &served.made.answer.accessible_topology;
    let found: Vec<&String> = places.iter().filter_map(|place| place.segments.get(key)).collect();
    ensure!(found.iter().any(|found| *found == zone), "the class asks for zone {zone}, the volume is in {found:?}");
    let label = served.record.metadata.labels.get(api::names::ZONE).cloned().unwrap_or_default();
    ensure!(label.split("__").any(|one| one == zone), "the plugin's record has zone {label:?}, asked for was {zone}");
    let life = brought(t, &served).await?;
    taken_down(t, &served, &life).await?;
    deleted(t, &served).await
}

/// The ways in which a class names its zones.
pub mod zones {
    use api::{TopologyRequirement, TopologySelectorTerm, names};

    use super::{Wish, cases, here, placed};

    cases! {
        beyond "in-tree/zone/parameter"
        [Controller(CreateDeleteVolume), Plugin(VolumeAccessibilityConstraints)]
        "A class with the parameter zone makes its volumes there."
        |t| {
            let (key, zone) = here(&t)?;
            placed(&t, Wish::with("zone", &zone), &zone, key).await?;
        }
        beyond "in-tree/zone/parameter-of-several"
        [Controller(CreateDeleteVolume), Plugin(VolumeAccessibilityConstraints)]
        "A class with the parameter zones makes its volumes in one of them."
        |t| {
            let (key, zone) = here(&t)?;
            placed(&t, Wish::with("zones", &zone), &zone, key).await?;
        }
        beyond "in-tree/zone/allowed-topologies"
        [Controller(CreateDeleteVolume), Plugin(VolumeAccessibilityConstraints)]
        "Places that a class allows by the common label are those of the driver's own."
        |t| {
            let (key, zone) = here(&t)?;
            for label in [names::ZONE, names::ZONE_BETA] {
                let one = TopologyRequirement { key: label.into(), values: vec![zone.clone()] };
                let allowed_topologies = vec![TopologySelectorTerm { match_label_expressions: vec![one] }];
                placed(&t, Wish { allowed_topologies, ..Wish::plain() }, &zone, key).await?;
            }
        }
    }
}
