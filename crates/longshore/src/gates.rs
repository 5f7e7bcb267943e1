//! `--feature-gates`: the switches of migration, as every component reads them.

use std::sync::Arc;

use api::names;
use clap::Args;
use control::Cache;
use io_run::{Controller, Manager};
use rules_node::Node;
use rules_translate::{Migration, Plugin};

/// The flag, for commands that know no other gates than those of migration.
#[derive(Args, Clone, Default)]
pub struct MigrationGates {
    /// How far the migration of in-tree plugins to CSI drivers has come, such as CSIMigrationAWS=false (the plugin
    /// serves) or CSIMigrationInTreeOff=false (its driver does where the node agrees); complete where nothing is said
    /// (docs/migration.md)
    #[arg(long = "feature-gates", value_name = "GATES")]
    given: Vec<String>,
}

impl MigrationGates {
    /// What they say of each plugin. An error is a sentence.
    pub fn migration(&self) -> Result<Migration, String> {
        let given = self.text();
        Migration::of_gates(pairs(&given)?).map_err(|error| format!("--feature-gates: {error}"))
    }

    /// As they are handed on to a part that reads them itself; none if nothing was said.
    pub fn flags(&self) -> Option<String> {
        Some(self.text()).filter(|given| !given.is_empty()).map(|given| format!("--feature-gates={given}"))
    }

    fn text(&self) -> String {
        self.given.join(",")
    }
}

/// Lets metrics tell the volumes that drivers have in the place of in-tree plugins: those of PersistentVolumes, and
/// what the records of a node name.
pub fn tell_migrated(manager: &Manager, node: Option<Arc<Controller<Node>>>) {
    let cache = manager.cache().clone();
    manager.drivers().tell_migrated(move |driver, handle| {
        let name = names::unique_volume_name(driver, handle);
        let recorded = |local: &rules_node::Local| local.records.get(&name).is_some_and(|record| record.migrated);
        let handles = || rules_translate::open_handles(driver, handle).into_iter();
        let listed = |handle: String| {
            let volumes = |cache: &Cache| cache.volumes_by_handle(&format!("{driver}^{handle}")).collect::<Vec<_>>();
            cache.look(volumes).iter().any(|volume| volume.spec.in_tree.is_some())
        };
        Plugin::of_driver(driver).is_some()
            && (node.as_ref().is_some_and(|node| node.look_local(recorded)) || handles().any(listed))
    });
}

/// MigrationGates by name, in the order they were given. An error is a sentence.
pub fn pairs(given: &str) -> Result<Vec<(&str, bool)>, String> {
    let words = given.split(',').map(str::trim).filter(|word| !word.is_empty());
    let pair = |word| {
        let (name, on) = str::split_once(word, '=').unwrap_or((word, ""));
        let on = crate::sidecar::boolean(on);
        let sentence = || format!("--feature-gates cannot read {word:?}; write it as {name}=true or {name}=false");
        on.map(|on| (name, on)).ok_or_else(sentence)
    };
    words.map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules_translate::Phase;

    fn gates(given: &[&str]) -> MigrationGates {
        MigrationGates { given: given.iter().map(|word| (*word).to_string()).collect() }
    }

    // S4-1 to S4-5: off, on, complete, each plugin by itself, in one flag or several.
    #[test]
    fn each_plugin_is_off_on_or_complete() {
        let said = gates(&["CSIMigrationInTreeOff=false,CSIMigrationGCE=false", "InTreePluginAWSUnregister=true"]);
        let migration = said.migration().unwrap();
        let phases = [Plugin::GcePd, Plugin::Cinder, Plugin::AwsEbs].map(|plugin| migration.phase(plugin));
        assert_eq!(phases, [Phase::Off, Phase::On, Phase::Complete]);
        let handed_on =
            "--feature-gates=CSIMigrationInTreeOff=false,CSIMigrationGCE=false,InTreePluginAWSUnregister=true";
        assert_eq!(said.flags().as_deref(), Some(handed_on));
        assert_eq!((gates(&[]).migration(), gates(&[]).flags()), (Ok(Migration::default()), None));
    }

    // S4-5: what cannot be followed is refused at the start.
    #[test]
    fn contradictions_and_unknown_gates_are_one_sentence() {
        for (given, words) in [
            (
                &["CSIMigration=false", "CSIMigrationAWS=true"][..],
                "--feature-gates: CSIMigrationAWS=true and CSIMigration",
            ),
            (
                &["CSIMigrationGCE=true,CSIMigrationGCE=false"],
                "--feature-gates: gate CSIMigrationGCE is said to be true",
            ),
            (&["CSIMigrationTape=true"], "--feature-gates: there is no migration gate \"CSIMigrationTape\""),
            (&["Topology=true"], "--feature-gates: there is no migration gate \"Topology\""),
            (&["CSIMigrationAWS"], "--feature-gates cannot read \"CSIMigrationAWS\"; write it as CSIMigrationAWS=true"),
        ] {
            let sentence = gates(given).migration().unwrap_err();
            assert!(sentence.starts_with(words) && !sentence.contains('\n'), "{sentence}");
        }
    }
}
