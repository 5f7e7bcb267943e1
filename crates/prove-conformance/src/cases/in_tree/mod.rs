//! A driver in the place of an in-tree plugin (S4-45, S4-47): what users wrote for the plugin is translated as all who
//! serve it translate it, and the driver has to serve that as the plugin did. Its volumes are the plugin's from the
//! moment they are made: recorded as the plugin's, attached, mounted and deleted by what the record says.

mod classes;
mod served;
mod volumes;

use rules_translate::Plugin;

use crate::Case;

/// The cases of one plugin.
pub fn of(plugin: Plugin) -> Vec<&'static Case> {
    let parameters = match plugin {
        Plugin::AwsEbs => classes::aws_ebs::CASES,
        Plugin::AzureDisk => classes::azure_disk::CASES,
        Plugin::AzureFile => classes::azure_file::CASES,
        Plugin::Cinder => classes::cinder::CASES,
        Plugin::GcePd => classes::gce_pd::CASES,
        Plugin::Portworx => classes::portworx::CASES,
        Plugin::Rbd => classes::rbd::CASES,
        Plugin::Vsphere => classes::vsphere::CASES,
    };
    let disks = if plugin == Plugin::AzureFile { [].iter() } else { volumes::disks::CASES.iter() };
    let zones = if plugin.zone_key().is_some() { classes::zones::CASES.iter() } else { [].iter() };
    let all = parameters.iter().chain(zones).chain(volumes::CASES).chain(disks);
    let mut all: Vec<&'static Case> = all.collect();
    // Options of mounts are among the disks'.
    all.sort_by_key(|case| !case.name.starts_with("in-tree/class/") && !case.name.starts_with("in-tree/mount-option/"));
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    // S4-47: each plugin has its suite, of everything that the plugin offered.
    #[test]
    fn every_plugin_has_cases_of_its_own() {
        for plugin in Plugin::ALL {
            let cases = of(plugin);
            let names: BTreeSet<&str> = cases.iter().map(|case| case.name).collect();
            assert_eq!(names.len(), cases.len(), "{plugin}");
            assert!(names.len() > 10, "{plugin} has {} cases", names.len());
            assert!(names.iter().all(|name| name.starts_with("in-tree/") && name.split('/').count() == 3), "{names:?}");
            assert!(cases.iter().all(|case| case.why.ends_with('.')), "{plugin}");
        }
    }

    // A parameter that the translation does not know would be lost, and its case would judge nothing.
    #[test]
    fn every_parameter_is_one_that_the_translation_carries_over() {
        for plugin in Plugin::ALL {
            for case in of(plugin) {
                let Some((key, value)) = classes::parameter(case.name) else { continue };
                let mut parameters = served::needed(plugin);
                parameters.insert(key.to_string(), value.to_string());
                let class =
                    api::StorageClass { provisioner: plugin.name().into(), parameters, ..api::StorageClass::default() };
                let seen = rules_translate::class_to_csi(&class).unwrap();
                assert_eq!(seen.lost, [], "{plugin}: {}", case.name);
            }
        }
    }
}
