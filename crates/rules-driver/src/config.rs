use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use control::host::Op;

use crate::record::Kind;

/// Something the driver can do and can be told not to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Feature {
    /// Volumes are attached to a node before they are staged.
    Publish,
    /// Volumes are staged once per node before they are published.
    Stage,
    /// Volumes can be listed.
    List,
    /// The room that is left can be asked for.
    Capacity,
    /// Snapshots, and volumes made from them.
    Snapshots,
    /// Volumes made from other volumes.
    Clone,
    /// Volumes can grow.
    Expand,
    /// One volume can be asked for.
    Get,
    /// Whether a volume is well can be asked for.
    Health,
    /// Some parameters of a volume can be changed.
    Modify,
    /// Snapshots of several volumes at one moment.
    Groups,
    /// Volumes that live and die with a pod.
    Ephemeral,
    /// How full a volume is can be asked for.
    Stats,
    /// Volumes say where they can be reached from.
    Topology,
}

impl Feature {
    /// Every feature, in the order they are told to users.
    pub const ALL: &[Feature] = &[
        Feature::Publish,
        Feature::Stage,
        Feature::List,
        Feature::Capacity,
        Feature::Snapshots,
        Feature::Clone,
        Feature::Expand,
        Feature::Get,
        Feature::Health,
        Feature::Modify,
        Feature::Groups,
        Feature::Ephemeral,
        Feature::Stats,
        Feature::Topology,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Feature::Publish => "publish",
            Feature::Stage => "stage",
            Feature::List => "list",
            Feature::Capacity => "capacity",
            Feature::Snapshots => "snapshots",
            Feature::Clone => "clone",
            Feature::Expand => "expand",
            Feature::Get => "get",
            Feature::Health => "health",
            Feature::Modify => "modify",
            Feature::Groups => "groups",
            Feature::Ephemeral => "ephemeral",
            Feature::Stats => "stats",
            Feature::Topology => "topology",
        }
    }
}

/// Which services a process of the driver offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Services {
    /// Controller and node together.
    All,
    /// The controller alone; the node service runs in another process.
    Controller,
    /// The node service alone, beside a controller elsewhere.
    Node,
    /// The node service, and there is no controller at all.
    NodeWithoutController,
}

/// What the driver is told when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The driver's name, such as `local.csi.longshore`.
    pub name: String,
    /// The driver's version, for people.
    pub version: String,
    /// What this machine is called in calls to the controller.
    pub node_id: String,
    /// The directory that holds records and images: an absolute path without a slash at its end.
    pub state_dir: String,
    /// Which services are offered.
    pub services: Services,
    /// What is not offered.
    pub without: BTreeSet<Feature>,
    /// What a volume is made of that nobody asked anything for. Where that is a directory, all are, and what directories
    /// cannot do is not offered: read-ahead.
    pub kind: Kind,
    /// The filesystem of a volume nobody asked one for: `ext4`, `xfs` or `btrfs`.
    pub filesystem: String,
    /// How many bytes all volumes and snapshots together may promise.
    pub pool_bytes: u64,
    /// How many volumes the node takes at once; 0 means any number.
    pub max_volumes_per_node: u32,
}

impl Config {
    /// The controller's methods are answered here.
    pub fn controls(&self) -> bool {
        matches!(self.services, Services::All | Services::Controller)
    }

    /// The node's methods are answered here.
    pub fn hosts(&self) -> bool {
        matches!(self.services, Services::All | Services::Node | Services::NodeWithoutController)
    }

    /// A feature is offered.
    pub fn offers(&self, feature: Feature) -> bool {
        let of_images = feature == Feature::Modify;
        !(self.without.contains(&feature) || of_images && self.kind == Kind::Directory)
    }

    /// No other process of the driver works on the same state.
    pub fn alone(&self) -> bool {
        matches!(self.services, Services::All | Services::NodeWithoutController)
    }

    /// Volumes have to be attached before they are used here.
    pub(crate) fn attaches(&self) -> bool {
        self.offers(Feature::Publish) && self.services != Services::NodeWithoutController
    }

    /// The key of the one topology segment a volume of ours has.
    pub fn topology_key(&self) -> String {
        format!("topology.{}/node", self.name)
    }

    /// The directory of the volumes' records.
    pub fn records_dir(&self) -> String {
        format!("{}/volumes", self.state_dir)
    }

    /// The directory of the snapshots' records.
    pub fn snapshots_dir(&self) -> String {
        format!("{}/snapshots", self.state_dir)
    }

    /// The directory of the records of group snapshots.
    pub fn groups_dir(&self) -> String {
        format!("{}/groups", self.state_dir)
    }

    /// The directory of the images.
    pub fn images_dir(&self) -> String {
        format!("{}/images", self.state_dir)
    }

    /// A volume's record. Here and below the id must be one of ours: it is part of a path.
    pub fn record_path(&self, id: &str) -> String {
        format!("{}/volumes/{id}.json", self.state_dir)
    }

    /// A volume's image.
    pub fn image_path(&self, id: &str) -> String {
        format!("{}/images/{id}.img", self.state_dir)
    }

    /// The directory that is a volume.
    pub fn directory_path(&self, id: &str) -> String {
        format!("{}/directories/{id}", self.state_dir)
    }

    /// Where the bytes of a volume are.
    pub fn volume_path(&self, kind: Kind, id: &str) -> String {
        match kind {
            Kind::Image => self.image_path(id),
            Kind::Directory => self.directory_path(id),
        }
    }

    /// Where a volume is mounted that is not staged by its caller.
    pub fn inner_path(&self, id: &str) -> String {
        format!("{}/mounts/{id}", self.state_dir)
    }

    /// A snapshot's record.
    pub fn snapshot_record_path(&self, id: &str) -> String {
        format!("{}/snapshots/{id}.json", self.state_dir)
    }

    /// A snapshot's image, or the directory that is one.
    pub fn snapshot_path(&self, kind: Kind, id: &str) -> String {
        match kind {
            Kind::Image => format!("{}/snapshot-images/{id}.img", self.state_dir),
            Kind::Directory => format!("{}/snapshot-directories/{id}", self.state_dir),
        }
    }

    /// A group snapshot's record.
    pub fn group_record_path(&self, id: &str) -> String {
        format!("{}/groups/{id}.json", self.state_dir)
    }
}

/// Where the driver keeps what it writes.
pub fn folders(config: &Config) -> impl Iterator<Item = String> {
    const FOLDERS: [&str; 8] = [
        "volumes",
        "snapshots",
        "groups",
        "images",
        "snapshot-images",
        "directories",
        "snapshot-directories",
        "mounts",
    ];
    FOLDERS.into_iter().map(|name| format!("{}/{name}", config.state_dir))
}

/// What has to be there before the first call is answered.
pub fn prepare(config: &Config) -> Vec<Op> {
    folders(config).map(|path| Op::MakeDir { path }).collect()
}
