//! Whatever is asked is answered: with a translation that keeps its laws, or with a sentence; never with a panic.
//!
//! Inputs are grown from the recorded cases by seeded dice, so a failing seed fails again:
//! `LONGSHORE_FUZZ_SEED=7 make fuzz`. `LONGSHORE_FUZZ_SECONDS` says how long each target runs.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fmt::Display;
use std::time::{Duration, Instant};

use api::{PersistentVolume, PodVolume, StorageClass, VolumeMode};
use prove_lab::Dice;
use rules_translate::{
    Error, Plugin, Translated, as_csi, class_into_csi, class_into_in_tree, class_to_csi, class_to_in_tree, handle_of,
    inline_to_csi, inline_to_in_tree, open_handles, plugin_of, repair_handle, same_volume, volume_into_csi,
    volume_into_in_tree, volume_to_csi, volume_to_in_tree,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

const CASES: &str = include_str!("../src/tests/golden.jsonl");
/// Words that mean something here, pieces of them, and what should mean nothing.
const PIECES: [&str; 40] = [
    "",
    "/",
    "//",
    "#",
    "-",
    "__",
    "aws://",
    "vol-",
    "aws:///vol-1",
    "UNSPECIFIED",
    "projects/p/zones/z/disks/d",
    "projects/UNSPECIFIED/regions/UNSPECIFIED/disks/d",
    "us-east1-a",
    "us-west-2-lax-1a",
    "us-east-1-wl1-bos-wlz-1",
    "a-b-é",
    "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/d",
    "http://a/vhds/b",
    "httpé://",
    "g#a#s#d#ns",
    "azure-storage-account--secret",
    "azure-storage-account-é-secret",
    "partition",
    "-2147483649",
    "2147483647",
    "fstype",
    "FSTYPE",
    "csi.storage.k8s.io/fstype",
    "zone",
    "zones",
    "topology.kubernetes.io/zone",
    "topology.gke.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
    "iopsPerGB",
    "\u{212a}ind",
    "Managed",
    "\u{0}\n",
    "ü",
    "ǅ",
    "ReadOnlyMany",
];

/// What dice are rolled for here.
trait Spoil {
    fn text(&mut self) -> String;
    fn value(&mut self, depth: usize) -> Value;
    /// Changes a few places of a value: another text, another value, a key more, a key less, or one called differently.
    fn spoil(&mut self, value: &mut Value);
}

impl Spoil for Dice {
    fn text(&mut self) -> String {
        (0..=self.index(3)).map(|_| *self.pick(&PIECES)).collect()
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.index(if depth == 0 { 4 } else { 6 }) {
            0 => Value::Null,
            1 => json!(self.index(2) == 0),
            2 => json!(self.bits() as i64 >> self.index(63)),
            3 => json!(self.text()),
            4 => (0..self.index(4)).map(|_| self.value(depth - 1)).collect(),
            _ => Value::Object((0..self.index(4)).map(|_| (self.text(), self.value(depth - 1))).collect()),
        }
    }

    fn spoil(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) if !fields.is_empty() && self.index(8) > 0 => {
                let keys: Vec<String> = fields.keys().cloned().collect();
                let key = self.pick(&keys).clone();
                match self.index(12) {
                    0 => drop(fields.remove(&key)),
                    1 => drop(fields.insert(self.text(), json!(self.text()))),
                    2 => {
                        let moved = fields.remove(&key).unwrap_or_default();
                        fields.insert(if self.index(2) == 0 { key.to_uppercase() } else { self.text() }, moved);
                    }
                    _ => self.spoil(fields.entry(key).or_insert(Value::Null)),
                }
            }
            Value::Array(items) if !items.is_empty() && self.index(6) > 0 => {
                let at = self.index(items.len());
                match self.index(6) {
                    0 => drop(items.remove(at)),
                    1 => items.extend_from_within(at..),
                    _ => self.spoil(&mut items[at]),
                }
            }
            Value::String(text) if self.index(8) > 0 => {
                let mut letters: Vec<char> = text.chars().collect();
                let at = self.index(letters.len() + 1);
                match self.index(4) {
                    0 => letters.truncate(at),
                    1 => drop(letters.drain(..at)),
                    _ => drop(letters.splice(at..at, self.text().chars()).collect::<Vec<_>>()),
                }
                *text = letters.into_iter().collect();
            }
            other => *other = self.value(2),
        }
    }
}

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Recorded inputs of these operations, spoilt, for a while. What cannot be read as an object never comes to us.
fn fuzz<T: DeserializeOwned>(target: &str, operations: &[&str], mut check: impl FnMut(&mut Dice, T)) {
    let (long, seed) =
        (Duration::from_secs(setting("LONGSHORE_FUZZ_SECONDS", 1)), setting("LONGSHORE_FUZZ_SEED", 0x10_5517_04e5));
    let cases = CASES.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let cases: Vec<Value> = cases.filter(|case| operations.iter().any(|op| case["op"] == *op)).collect();
    let (began, mut dice, mut read, mut all) = (Instant::now(), Dice::new(seed), 0_u64, 0_u64);
    while began.elapsed() < long {
        let mut input = dice.pick(&cases)["in"].clone();
        // Two cases in one have more than one source.
        if let (0, Value::Object(fields)) = (dice.index(20), &mut input["spec"]) {
            fields.append(&mut dice.pick(&cases)["in"]["spec"].as_object().cloned().unwrap_or_else(Map::new));
        }
        (0..dice.index(5)).for_each(|_| dice.spoil(&mut input));
        all += 1;
        if let Ok(object) = serde_json::from_value(input.clone()) {
            read += 1;
            println_on_panic(seed, &input, || check(&mut dice, object));
        }
    }
    assert!(read > 0, "{target}: none of {all} inputs could be read");
    println!("{target}: {all} inputs, {read} of them objects");
}

/// A panic is told with the input that made it.
fn println_on_panic(seed: u64, input: &Value, check: impl FnOnce()) {
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
    assert!(done.is_ok(), "seed {seed}: {input}");
}

/// A translation, or nothing if it was refused with a sentence. Done twice it is the same, and so it is with an object
/// that is given away.
fn the_same<T: PartialEq + std::fmt::Debug>(
    one: Result<Translated<T>, Error>,
    again: Result<Translated<T>, Error>,
    given_away: Result<Translated<T>, Error>,
) -> Option<Translated<T>> {
    assert_eq!(one, again);
    assert_eq!(one, given_away);
    one.map_err(|error| sentence(&error)).ok().inspect(|made| made.lost.iter().for_each(sentence))
}

fn sentence(told: &impl Display) {
    let told = told.to_string();
    assert!(told.len() > 10 && !told.ends_with('.'), "{told:?} is no sentence");
}

fn to_csi(volume: &PersistentVolume) -> Option<Translated<PersistentVolume>> {
    the_same(volume_to_csi(volume), volume_to_csi(volume), volume_into_csi(volume.clone()))
}

fn to_in_tree(volume: &PersistentVolume) -> Option<Translated<PersistentVolume>> {
    the_same(volume_to_in_tree(volume), volume_to_in_tree(volume), volume_into_in_tree(volume.clone()))
}

/// With something in the fields that no recorded case has.
fn full(mut volume: PersistentVolume) -> PersistentVolume {
    let spec = &mut volume.spec;
    spec.mount_options.push("noatime".into());
    spec.storage_class_name.push_str("class");
    let policy = format!("{}Retain", spec.persistent_volume_reclaim_policy);
    spec.persistent_volume_reclaim_policy = policy.as_str().into();
    spec.volume_attributes_class_name.get_or_insert_with(|| "gold".into());
    spec.capacity.entry("storage".into()).or_insert_with(|| api::Quantity("1Gi".into()));
    volume.status.reason.push_str("because");
    volume.metadata.finalizers.push("kubernetes.io/pv-protection".into());
    volume
}

/// What a translation leaves alone.
fn kept(volume: &PersistentVolume) -> impl PartialEq + std::fmt::Debug + use<> {
    let (meta, spec) = (&volume.metadata, &volume.spec);
    let claim = (spec.claim_ref.clone(), spec.capacity.clone(), spec.mount_options.clone(), spec.volume_mode.clone());
    let policy = (spec.persistent_volume_reclaim_policy.clone(), spec.storage_class_name.clone());
    (meta.name.clone(), meta.uid.clone(), meta.finalizers.clone(), meta.owner_references.clone(), claim, policy)
}

#[test]
fn volumes_of_plugins() {
    fuzz("volumes of plugins", &["pv_to_csi"], |_, volume: PersistentVolume| {
        let volume = full(volume);
        let before = volume.clone();
        let _ = (as_csi(&volume), plugin_of(&volume));
        let seen = to_csi(&volume);
        assert_eq!(volume, before, "what goes in is never changed");
        assert_eq!(handle_of(&volume).is_some(), seen.is_some());
        let Some(there) = seen else { return };
        let csi = there.object.spec.csi.clone().unwrap();
        assert!(there.object.spec.in_tree.is_none() && kept(&there.object) == kept(&volume));
        let Some(plugin) = Plugin::of_driver(&csi.driver) else { panic!("{} is no plugin's driver", csi.driver) };
        assert_eq!(plugin_of(&volume), Some(plugin));
        assert!(open_handles(&csi.driver, &csi.volume_handle).contains(&csi.volume_handle));
        let Some(back) = to_in_tree(&there.object) else { return };
        assert_eq!(plugin_of(&back.object), Some(plugin));
        // The driver finds the same disk by what comes back, unless something was said to be lost.
        let Some(again) = to_csi(&back.object) else { return };
        let same = again.object.spec.csi.unwrap().volume_handle == csi.volume_handle;
        let lost = [&there.lost, &back.lost, &again.lost].into_iter().any(|lost| !lost.is_empty());
        let excused = match plugin {
            // The handle has more in it than the share itself.
            Plugin::AzureFile => true,
            // A zone label comes from the places of a volume that has none, and a name with a slash is no name.
            Plugin::GcePd => {
                let whole = csi.volume_handle.split('/').count() == 6;
                !whole || volume.metadata.labels != back.object.metadata.labels
            }
            _other => false,
        };
        assert!(same || lost || excused, "another disk");
    });
}

#[test]
fn volumes_of_drivers() {
    fuzz("volumes of drivers", &["pv_to_in_tree"], |_, volume: PersistentVolume| {
        let volume = full(volume);
        let before = volume.clone();
        let seen = to_in_tree(&volume);
        let _ = inline_to_in_tree("v", &volume);
        assert_eq!(volume, before, "what goes in is never changed");
        let Some(there) = seen else { return };
        assert!(there.object.spec.csi.is_none() && kept(&there.object) == kept(&volume));
        // What comes out can be asked for again.
        let _ = to_csi(&there.object);
    });
}

#[test]
fn volumes_of_pods() {
    fuzz("volumes of pods", &["inline"], |dice, volume: PodVolume| {
        let (before, namespace) = (volume.clone(), dice.text());
        let made = inline_to_csi(&volume, &namespace);
        let made = the_same(made, inline_to_csi(&volume, &namespace), inline_to_csi(&volume.clone(), &namespace));
        assert_eq!(volume, before, "what goes in is never changed");
        let Some(made) = made else { return };
        assert!(made.object.spec.csi.is_some() && made.object.spec.volume_mode == Some(VolumeMode::Filesystem));
        let _ = inline_to_in_tree(&volume.name, &made.object);
    });
}

#[test]
fn classes() {
    fuzz("classes", &["class"], |dice, mut class: StorageClass| {
        if dice.index(3) == 0 {
            let plugin = *dice.pick(&Plugin::ALL);
            class.provisioner = if dice.index(2) == 0 { plugin.name() } else { plugin.driver() }.into();
        }
        let before = class.clone();
        let there = the_same(class_to_csi(&class), class_to_csi(&class), class_into_csi(class.clone()));
        let back = the_same(class_to_in_tree(&class), class_to_in_tree(&class), class_into_in_tree(class.clone()));
        assert_eq!(class, before, "what goes in is never changed");
        assert!(there.is_none() || back.is_none(), "a plugin is no driver");
        let Some(there) = there else { return };
        assert_eq!(Plugin::of_driver(&there.object.provisioner).map(Plugin::name), Some(class.provisioner.as_str()));
        if let Some(back) = the_same(
            class_to_in_tree(&there.object),
            class_to_in_tree(&there.object),
            class_into_in_tree(there.object.clone()),
        ) {
            assert_eq!(back.object.provisioner, class.provisioner);
        }
    });
}

#[test]
fn handles() {
    fuzz("handles", &["repair"], |dice, case: Map<String, Value>| {
        let mut text = |key: &str| match case.get(key).and_then(Value::as_str) {
            Some(text) if dice.index(4) > 0 => text.to_string(),
            Some(_) | None => dice.text(),
        };
        let (driver, handle, node, other) = (text("driver"), text("handle"), text("node"), text("handle"));
        assert!(same_volume(&driver, &handle, &handle));
        assert_eq!(same_volume(&driver, &handle, &other), same_volume(&driver, &other, &handle));
        assert!(open_handles(&driver, &handle).contains(&handle));
        match repair_handle(&driver, &handle, &node) {
            Ok(whole) => {
                assert_eq!(repair_handle(&driver, &whole, &node).as_ref(), Ok(&whole), "repaired twice");
            }
            Err(error) => sentence(&error),
        }
    });
}
