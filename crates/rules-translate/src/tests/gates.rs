//! Who serves a volume (seed 004).

use alloc::format;
use alloc::string::ToString;

use api::names;

use crate::{Migration, NodeSays, Phase, Plugin, Served};

const EBS: Plugin = Plugin::AwsEbs;

// TR-1, TR-2; sidecars 1.6.
#[test]
fn plugins_and_drivers_know_each_other() {
    for plugin in Plugin::ALL {
        assert_eq!(Plugin::named(plugin.name()), Some(plugin));
        assert_eq!(Plugin::of_driver(plugin.driver()), Some(plugin));
        assert!(plugin.name().starts_with("kubernetes.io/"));
    }
    assert_eq!(Plugin::named("ebs.csi.aws.com"), None);
    assert_eq!(Plugin::of_driver("kubernetes.io/aws-ebs"), None);
    // For any other driver nothing here applies, and for Ceph's only if somebody says so.
    assert_eq!(Migration::default().plugin_of("hostpath.csi.k8s.io"), None);
    assert_eq!(Migration::default().plugin_of(Plugin::Rbd.driver()), None);
    assert_eq!(Migration::default().plugin_of(EBS.driver()), Some(EBS));
}

// S4-9, S4-38: of a plugin and its driver one serves, and calls the volume by its name in CSI.
#[test]
fn s4_9_a_plugin_serves_under_its_own_name_until_its_driver_does() {
    let spec = serde_json::json!({ "awsElasticBlockStore": { "volumeID": "vol-1" } });
    let volume = serde_json::json!({ "metadata": { "name": "pv" }, "spec": spec });
    let volume: api::PersistentVolume = serde_json::from_value(volume).unwrap();
    for phase in [Phase::Off, Phase::On, Phase::Complete] {
        let migration = Migration::default().with(EBS, phase);
        for (name, serves) in [(EBS.name(), phase == Phase::Off), (EBS.driver(), phase != Phase::Off)] {
            assert_eq!(migration.plugin_of(name), serves.then_some(EBS), "{phase:?} {name}");
        }
        for name in [EBS.name(), EBS.driver()] {
            let seen = migration.seen_by(name, &volume).ok().map(|seen| seen.spec.csi.as_ref().unwrap().driver.clone());
            let sees = migration.plugin_of(name).is_some() || phase != Phase::Off;
            assert_eq!(seen.as_deref(), sees.then_some(EBS.driver()), "{phase:?} {name}");
        }
    }
}

// S4-1, S4-3, S4-5: the seed's gates, each plugin by itself.
#[test]
fn gates_set_the_phase_of_each_plugin() {
    let of = |gates: &[(&str, bool)]| Migration::of_gates(gates.iter().copied()).unwrap();
    assert_eq!(of(&[]), Migration::default());
    assert_eq!(of(&[("CSIMigration", false), ("CSIMigrationAWS", false)]), Migration::OFF);
    let on = of(&[("CSIMigrationInTreeOff", false), ("CSIMigrationGCE", false)]);
    assert_eq!((on.phase(EBS), on.phase(Plugin::GcePd)), (Phase::On, Phase::Off));
    for gate in [
        "CSIMigrationGCE",
        "CSIMigrationAWS",
        "CSIMigrationAzureDisk",
        "CSIMigrationAzureFile",
        "CSIMigrationOpenStack",
    ] {
        let without = of(&[(gate, false)]);
        let off = Plugin::ALL.into_iter().filter(|plugin| !without.is_migrated(*plugin) && *plugin != Plugin::Rbd);
        assert_eq!(off.map(Plugin::gate).collect::<alloc::vec::Vec<_>>(), [gate]);
    }
}

// S4-3, S4-5: Kubernetes later had a gate for the code of each plugin, under two names. It counts before that for all.
#[test]
fn the_code_of_each_plugin_has_a_gate_of_its_own() {
    let of = |gates: &[(&str, bool)]| Migration::of_gates(gates.iter().copied()).unwrap();
    for plugin in Plugin::ALL {
        let stem = plugin.gate().trim_start_matches("CSIMigration");
        for name in [format!("InTreePlugin{stem}Unregister"), format!("CSIMigration{stem}Complete")] {
            assert!(Migration::is_gate(&name), "{name}");
            let stays = of(&[(plugin.gate(), true), (&name, false)]);
            assert_eq!((stays.phase(plugin), stays.has_in_tree(plugin)), (Phase::On, true), "{name}");
            let goes = of(&[(plugin.gate(), true), ("CSIMigrationInTreeOff", false), (&name, true)]);
            assert_eq!(goes.phase(plugin), Phase::Complete, "{name}");
            let others = Plugin::ALL.into_iter().filter(|other| *other != plugin && *other != Plugin::Rbd);
            assert!(others.into_iter().all(|other| goes.phase(other) == Phase::On), "{name}");
        }
    }
    for name in ["CSIMigrationComplete", "InTreePluginUnregister", "InTreePluginNFSUnregister", "Topology", ""] {
        assert!(!Migration::is_gate(name), "{name}");
    }
}

// S4-1, S4-3, S4-5: each is one sentence.
#[test]
fn gates_that_cannot_be_followed_are_refused() {
    for (gates, sentence) in [
        (
            &[("CSIMigration", false), ("CSIMigrationAWS", true)][..],
            "CSIMigrationAWS=true and CSIMigration=false contradict each other; change one of them",
        ),
        (
            &[("CSIMigration", false), ("CSIMigrationInTreeOff", true)],
            "CSIMigrationInTreeOff=true and CSIMigration=false contradict each other; change one of them",
        ),
        (
            &[("InTreePluginGCEUnregister", true), ("CSIMigrationGCE", false)],
            "InTreePluginGCEUnregister=true and CSIMigrationGCE=false contradict each other; change one of them",
        ),
        (
            &[("CSIMigrationGCEComplete", true), ("CSIMigration", false)],
            "CSIMigrationGCEComplete=true and CSIMigration=false contradict each other; change one of them",
        ),
        (
            &[("InTreePluginRBDUnregister", true)],
            "InTreePluginRBDUnregister=true and CSIMigrationRBD=false contradict each other; change one of them",
        ),
        (
            &[("CSIMigrationGCE", true), ("CSIMigrationGCE", false)],
            "gate CSIMigrationGCE is said to be true and to be false; keep one",
        ),
        (
            &[("CSIMigrationGluster", true)],
            "there is no migration gate \"CSIMigrationGluster\"; the gates are CSIMigration, CSIMigrationInTreeOff, \
             CSIMigrationAWS, CSIMigrationAzureDisk, CSIMigrationAzureFile, CSIMigrationOpenStack, CSIMigrationGCE, \
             CSIMigrationPortworx, CSIMigrationRBD, CSIMigrationvSphere, and for one plugin \
             InTreePlugin…Unregister or CSIMigration…Complete",
        ),
    ] {
        assert_eq!(Migration::of_gates(gates.iter().copied()).unwrap_err().to_string(), sentence);
    }
    // The same said twice is no contradiction, and neither is a plugin that stays out of what all others do.
    let same = [("CSIMigrationGCE", false), ("CSIMigrationGCE", false), ("CSIMigrationInTreeOff", true)];
    assert_eq!(Migration::of_gates(same).unwrap().phase(Plugin::GcePd), Phase::Off);
}

// S4-32, S4-33, S4-39: the table of the attach/detach controller.
#[test]
fn the_node_has_its_say_until_the_migration_is_complete() {
    let lists = NodeSays::Annotation(Some("kubernetes.io/gce-pd,kubernetes.io/aws-ebs"));
    let others = NodeSays::Annotation(Some("kubernetes.io/gce-pd"));
    let silent = NodeSays::Annotation(None);
    let with = |phase| Migration::OFF.with(EBS, phase);
    for (phase, node, served) in [
        (Phase::On, NodeSays::Nothing, Served::ByPlugin),
        (Phase::Off, NodeSays::Nothing, Served::ByPlugin),
        (Phase::On, silent, Served::ByPlugin),
        (Phase::On, others, Served::ByPlugin),
        (Phase::Off, others, Served::ByPlugin),
        (Phase::On, lists, Served::ByDriver),
        (Phase::Off, lists, Served::Disputed),
        (Phase::Complete, NodeSays::Nothing, Served::ByDriver),
        (Phase::Complete, others, Served::ByDriver),
        (Phase::Complete, lists, Served::ByDriver),
    ] {
        assert_eq!(with(phase).served_by(EBS, node), served, "{phase:?} {node:?}");
    }
}

// S4-30, S4-35, S4-36 (KL-23): what a node says follows its own table; up and down again.
#[test]
fn nodes_say_what_they_have_left_to_drivers() {
    let seven = "kubernetes.io/aws-ebs,kubernetes.io/azure-disk,kubernetes.io/azure-file,kubernetes.io/cinder,\
                 kubernetes.io/gce-pd,kubernetes.io/portworx-volume,kubernetes.io/vsphere-volume";
    assert_eq!(Migration::default().annotation().as_deref(), Some(seven));
    assert_eq!(Migration::OFF.annotation(), None);
    assert_eq!(names::MIGRATED_PLUGINS, "storage.alpha.kubernetes.io/migrated-plugins");
    let (off, on) = (Migration::OFF, Migration::OFF.with(EBS, Phase::On));
    let mut path = alloc::vec::Vec::new();
    for (controller, node) in [(off, off), (on, off), (on, on), (on, off), (off, off)] {
        let says = node.annotation();
        path.push(controller.served_by(EBS, NodeSays::Annotation(says.as_deref())));
    }
    let (plugin, driver) = (Served::ByPlugin, Served::ByDriver);
    assert_eq!(path, [plugin, plugin, driver, plugin, plugin]);
}

// S4-46: on/on, on/off, off/on, off/off.
#[test]
fn the_skew_matrix() {
    let (off, on) = (Migration::OFF, Migration::OFF.with(EBS, Phase::On));
    let served = |controller: Migration, node: Migration| {
        let says = node.annotation();
        controller.served_by(EBS, NodeSays::Annotation(says.as_deref()))
    };
    assert_eq!(served(on, on), Served::ByDriver);
    assert_eq!(served(on, off), Served::ByPlugin);
    assert_eq!(served(off, on), Served::Disputed);
    assert_eq!(served(off, off), Served::ByPlugin);
}

// S4-2, S4-38: whether the plugin is there depends on the table alone.
#[test]
fn a_plugin_is_there_until_its_migration_is_complete() {
    for (phase, there) in [(Phase::Off, true), (Phase::On, true), (Phase::Complete, false)] {
        assert_eq!(Migration::OFF.with(EBS, phase).has_in_tree(EBS), there);
    }
}
