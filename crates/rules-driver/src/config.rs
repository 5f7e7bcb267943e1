use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use control::host::Op;

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
    /// Volumes are attached before they are staged (`PUBLISH_UNPUBLISH_VOLUME` is offered).
    pub attach: bool,
    /// How many bytes all volumes together may promise.
    pub pool_bytes: u64,
    /// How many volumes the node takes at once; 0 means any number.
    pub max_volumes_per_node: u32,
}

impl Config {
    /// The directory of the records.
    pub fn records_dir(&self) -> String {
        format!("{}/volumes", self.state_dir)
    }

    /// The directory of the images.
    pub fn images_dir(&self) -> String {
        format!("{}/images", self.state_dir)
    }

    /// A volume's record. The id must be one of ours: it is part of a path.
    pub fn record_path(&self, id: &str) -> String {
        format!("{}/volumes/{id}.json", self.state_dir)
    }

    /// A volume's image. The id must be one of ours: it is part of a path.
    pub fn image_path(&self, id: &str) -> String {
        format!("{}/images/{id}.img", self.state_dir)
    }
}

/// What has to be there before the first call is answered.
pub fn prepare(config: &Config) -> Vec<Op> {
    [config.records_dir(), config.images_dir()].into_iter().map(|path| Op::MakeDir { path }).collect()
}
