//! Every configuration a user can choose by flags.

use rules_driver::Feature;

use crate::stand::Stand;

/// One way to run the driver, and what the Go suite is told about it.
pub struct Configuration {
    pub name: String,
    flags: Vec<String>,
    split: bool,
    /// Further arguments of csi-sanity.
    pub arguments: Vec<String>,
    /// Parameters of volumes, as csi-sanity's file has them.
    pub parameters: Option<&'static str>,
    /// How many cases must pass. The rest needs what is left out; the suite is of one version, so the number is known.
    pub passes: u32,
}

/// What csi-sanity asks of a controller, by its own words: it takes a volume from one without asking whether there is
/// one.
const NEEDS_CONTROLLER: &str = r"\[Controller Server\]|NodeUnpublishVolume should remove target path|NodeStageVolume should fail when no volume capability|already mounted at a different target path|volume does not exist on the specified path|NodeExpandVolume should fail when no volume path|called after node-publish|NodeGetVolumeHealth should return health for a valid volume";

fn with(name: &str, flags: &[&str], passes: u32) -> Configuration {
    Configuration {
        name: name.into(),
        flags: flags.iter().map(|flag| flag.to_string()).collect(),
        split: false,
        arguments: Vec::new(),
        parameters: None,
        passes,
    }
}

/// How many cases pass without a feature.
fn passes_without(feature: Feature) -> u32 {
    match feature {
        Feature::Publish => 91,
        Feature::Stage => 95,
        Feature::List => 97,
        Feature::Capacity => 99,
        Feature::Snapshots => 80,
        Feature::Clone => 98,
        Feature::Expand => 93,
        Feature::Health | Feature::Groups => 94,
        Feature::Modify => 92,
        Feature::Stats => 96,
        // The Go suite has no case that needs these.
        Feature::Get | Feature::Ephemeral | Feature::Topology => 100,
    }
}

pub fn all() -> Vec<Configuration> {
    let argument = |argument: &str| vec![argument.to_string()];
    let mut all = vec![
        with("ext4", &[], 100),
        with("xfs", &["--filesystem", "xfs"], 100),
        with("btrfs", &["--filesystem", "btrfs"], 100),
        Configuration { arguments: argument("--csi.testvolumeaccesstype=block"), ..with("block", &[], 100) },
        Configuration { parameters: Some("kind: directory\n"), ..with("directories", &[], 100) },
        with("nothing but directories", &["--kind", "directory"], 92),
        Configuration { split: true, ..with("controller and node apart", &[], 100) },
        Configuration {
            arguments: vec![format!("--ginkgo.skip={NEEDS_CONTROLLER}")],
            ..with("no controller", &["--no-controller"], 21)
        },
        Configuration {
            arguments: argument("--csi.testnodevolumeattachlimit"),
            ..with("three volumes a node", &["--max-volumes", "3"], 101)
        },
        with("neither attached nor staged", &["--without", "publish,stage"], 86),
    ];
    for feature in Feature::ALL {
        let name = format!("without {}", feature.name());
        all.push(with(&name, &["--without", feature.name()], passes_without(*feature)));
    }
    let names: Vec<&str> = Feature::ALL.iter().map(|feature| feature.name()).collect();
    all.push(with("without everything", &["--without", &names.join(",")], 29));
    all
}

impl Configuration {
    pub fn start(&self) -> Stand {
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        if self.split { Stand::split() } else { Stand::ours(&flags) }
    }
}
