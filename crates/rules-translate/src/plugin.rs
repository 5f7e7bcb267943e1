use alloc::format;
use alloc::string::String;
use core::fmt;

use api::InTreeSource;

/// A volume plugin that lived inside Kubernetes and that a CSI driver has taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "each variant is the plugin of the same name")]
pub enum Plugin {
    AwsEbs,
    AzureDisk,
    AzureFile,
    Cinder,
    GcePd,
    Portworx,
    Rbd,
    Vsphere,
}

impl Plugin {
    /// All of them, by name.
    pub const ALL: [Plugin; 8] = [
        Plugin::AwsEbs,
        Plugin::AzureDisk,
        Plugin::AzureFile,
        Plugin::Cinder,
        Plugin::GcePd,
        Plugin::Portworx,
        Plugin::Rbd,
        Plugin::Vsphere,
    ];

    /// The plugin's name: the provisioner of its classes.
    pub const fn name(self) -> &'static str {
        match self {
            Plugin::AwsEbs => "kubernetes.io/aws-ebs",
            Plugin::AzureDisk => "kubernetes.io/azure-disk",
            Plugin::AzureFile => "kubernetes.io/azure-file",
            Plugin::Cinder => "kubernetes.io/cinder",
            Plugin::GcePd => "kubernetes.io/gce-pd",
            Plugin::Portworx => "kubernetes.io/portworx-volume",
            Plugin::Rbd => "kubernetes.io/rbd",
            Plugin::Vsphere => "kubernetes.io/vsphere-volume",
        }
    }

    /// The driver that has taken it over.
    pub const fn driver(self) -> &'static str {
        match self {
            Plugin::AwsEbs => "ebs.csi.aws.com",
            Plugin::AzureDisk => "disk.csi.azure.com",
            Plugin::AzureFile => "file.csi.azure.com",
            Plugin::Cinder => "cinder.csi.openstack.org",
            Plugin::GcePd => "pd.csi.storage.gke.io",
            Plugin::Portworx => "pxd.portworx.com",
            Plugin::Rbd => "rbd.csi.ceph.com",
            Plugin::Vsphere => "csi.vsphere.vmware.com",
        }
    }

    /// The label by which the driver knows zones; vSphere has one for regions too.
    pub const fn zone_key(self) -> Option<&'static str> {
        match self {
            Plugin::AwsEbs => Some("topology.ebs.csi.aws.com/zone"),
            Plugin::AzureDisk => Some("topology.disk.csi.azure.com/zone"),
            Plugin::Cinder => Some("topology.cinder.csi.openstack.org/zone"),
            Plugin::GcePd => Some("topology.gke.io/zone"),
            Plugin::Vsphere => Some("topology.csi.vmware.com/zone"),
            Plugin::AzureFile | Plugin::Portworx | Plugin::Rbd => None,
        }
    }

    /// The field that holds its source in a volume.
    pub const fn field(self) -> &'static str {
        match self {
            Plugin::AwsEbs => "awsElasticBlockStore",
            Plugin::AzureDisk => "azureDisk",
            Plugin::AzureFile => "azureFile",
            Plugin::Cinder => "cinder",
            Plugin::GcePd => "gcePersistentDisk",
            Plugin::Portworx => "portworxVolume",
            Plugin::Rbd => "rbd",
            Plugin::Vsphere => "vsphereVolume",
        }
    }

    /// The switch for this plugin alone (S4-5).
    pub const fn gate(self) -> &'static str {
        match self {
            Plugin::AwsEbs => "CSIMigrationAWS",
            Plugin::AzureDisk => "CSIMigrationAzureDisk",
            Plugin::AzureFile => "CSIMigrationAzureFile",
            Plugin::Cinder => "CSIMigrationOpenStack",
            Plugin::GcePd => "CSIMigrationGCE",
            Plugin::Portworx => "CSIMigrationPortworx",
            Plugin::Rbd => "CSIMigrationRBD",
            Plugin::Vsphere => "CSIMigrationvSphere",
        }
    }

    /// The plugin of this name.
    pub fn named(name: &str) -> Option<Plugin> {
        Plugin::ALL.into_iter().find(|plugin| plugin.name() == name)
    }

    /// The plugin that this driver has taken over.
    pub fn of_driver(driver: &str) -> Option<Plugin> {
        Plugin::ALL.into_iter().find(|plugin| plugin.driver() == driver)
    }

    /// The plugin under whose name a node reports this volume, as [`plugin_volume_name`] writes it.
    pub fn of_volume_name(name: &str) -> Option<Plugin> {
        let begins = |plugin: &Plugin| name.strip_prefix(plugin.name()).is_some_and(|rest| rest.starts_with('/'));
        Plugin::ALL.into_iter().find(begins)
    }

    /// The plugin a source belongs to; `None` if there is more than one.
    pub const fn of(source: &InTreeSource) -> Option<Plugin> {
        match source {
            InTreeSource::AwsElasticBlockStore(_) => Some(Plugin::AwsEbs),
            InTreeSource::GcePersistentDisk(_) => Some(Plugin::GcePd),
            InTreeSource::AzureDisk(_) => Some(Plugin::AzureDisk),
            InTreeSource::AzureFile(_) => Some(Plugin::AzureFile),
            InTreeSource::Cinder(_) => Some(Plugin::Cinder),
            InTreeSource::VsphereVolume(_) => Some(Plugin::Vsphere),
            InTreeSource::PortworxVolume(_) => Some(Plugin::Portworx),
            InTreeSource::Rbd(_) => Some(Plugin::Rbd),
            InTreeSource::Several(_) => None,
        }
    }
}

/// The name under which a node whose plugin serves a volume reports it, as kubelets do; `None` if there is more than
/// one source.
pub fn plugin_volume_name(source: &InTreeSource) -> Option<String> {
    let name = match source {
        InTreeSource::AwsElasticBlockStore(disk) => disk.volume_id.clone(),
        InTreeSource::GcePersistentDisk(disk) => disk.pd_name.clone(),
        InTreeSource::AzureDisk(disk) => disk.disk_uri.clone(),
        InTreeSource::AzureFile(share) => share.share_name.clone(),
        InTreeSource::Cinder(disk) => disk.volume_id.clone(),
        InTreeSource::VsphereVolume(disk) => disk.volume_path.clone(),
        InTreeSource::PortworxVolume(disk) => disk.volume_id.clone(),
        InTreeSource::Rbd(image) => format!("{}:{}", image.pool, image.image),
        InTreeSource::Several(_) => return None,
    };
    Plugin::of(source).map(|plugin| format!("{}/{name}", plugin.name()))
}

impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
