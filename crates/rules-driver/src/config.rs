use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use control::host::Op;

use crate::facts::RecordKind;
use crate::feature::Feature;
use crate::record::Kind;

/// The services that a process of the driver serves.
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

/// The configuration of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The driver's name, such as `local.csi.longshore`.
    pub name: String,
    /// The driver's version, for people.
    pub version: String,
    /// The id of this node in calls to the controller.
    pub node_id: String,
    /// The directory that holds records and images: an absolute path without a slash at its end.
    pub state_dir: String,
    /// The services of this process.
    pub services: Services,
    /// The features that are turned off.
    pub without: BTreeSet<Feature>,
    /// The kind of a volume whose class asks for none. If it is a directory, all volumes are directories, and the driver does
    /// not offer what directories cannot do: read-ahead.
    pub kind: Kind,
    /// The filesystem of a volume whose class asks for none: `ext4`, `xfs` or `btrfs`.
    pub filesystem: String,
    /// How many bytes all volumes and snapshots together may promise.
    pub pool_bytes: u64,
    /// How many volumes the node takes at once; 0 means any number.
    pub max_volumes_per_node: u32,
    /// The zone of this node; empty for none. Volumes that are made in a zone can be attached to any node in it.
    pub zone: String,
    /// Further nodes of this machine and their zones. Each has a process of its own for its node service, which works
    /// on the same state.
    pub peers: BTreeMap<String, String>,
}

/// The key of the topology segment that names a zone.
pub const ZONE: &str = "topology.kubernetes.io/zone";

impl Config {
    /// Whether this process serves the controller's methods.
    pub fn controls(&self) -> bool {
        matches!(self.services, Services::All | Services::Controller)
    }

    /// Whether this process serves the node's methods.
    pub fn hosts(&self) -> bool {
        matches!(self.services, Services::All | Services::Node | Services::NodeWithoutController)
    }

    /// Whether the driver has a feature.
    pub fn offers(&self, feature: Feature) -> bool {
        let of_images = feature == Feature::Modify;
        !(self.without.contains(&feature) || of_images && self.kind == Kind::Directory)
    }

    /// Whether no other process of the driver works on the same state.
    pub fn alone(&self) -> bool {
        matches!(self.services, Services::All | Services::NodeWithoutController) && self.peers.is_empty()
    }

    /// Every node that uses this state, as far as this process knows, with its zone.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = core::iter::once((self.node_id.as_str(), self.zone.as_str()));
        own.chain(self.peers.iter().map(|(node, zone)| (node.as_str(), zone.as_str())))
    }

    /// The zone of a node; `None` if there is no such node.
    pub(crate) fn zone_of(&self, node: &str) -> Option<&str> {
        self.nodes().find(|(name, _)| *name == node).map(|(_, zone)| zone)
    }

    /// Whether volumes must be attached before they are used here.
    pub(crate) fn attaches(&self) -> bool {
        self.offers(Feature::Publish) && self.services != Services::NodeWithoutController
    }

    /// The key of the topology segment that names a node. A volume that is in no zone has this one alone.
    pub fn topology_key(&self) -> String {
        format!("topology.{}/node", self.name)
    }

    /// The directory of the records of a kind.
    pub fn record_dir(&self, kind: RecordKind) -> String {
        let name = match kind {
            RecordKind::Volume => "volumes",
            RecordKind::Snapshot => "snapshots",
            RecordKind::Group => "groups",
        };
        format!("{}/{name}", self.state_dir)
    }

    /// Whether an operation writes or removes a record. Records are durable before a call is answered.
    pub fn is_on_record(&self, op: &Op) -> bool {
        let (Op::WriteFile { path, .. } | Op::RemoveFile { path }) = op else { return false };
        RecordKind::ALL
            .into_iter()
            .any(|kind| path.strip_prefix(self.record_dir(kind).as_str()).is_some_and(|file| file.starts_with('/')))
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
