//! Where things are under the root directory (4.6), and what processes are called.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use api::{ObjectKey, names};
use rules_translate::Plugin;

/// The longest name the machine takes for a process.
const LONGEST_PROCESS_NAME: usize = 200;

/// The name of the record in a volume's directory.
pub const RECORD_FILE: &str = "vol_data.json";

/// The paths of one volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Paths {
    /// The directory that holds the other two.
    pub dir: String,
    /// Where it is staged.
    pub staging: String,
    pub record: String,
    /// The directory its published devices are in, if it is a raw device; otherwise empty.
    pub published: String,
}

impl Paths {
    /// The same for a volume used as a raw device, which is staged by its object's name.
    #[must_use]
    pub fn as_device(self, root: &str, driver: &str, volume: &str) -> Paths {
        let (staging, published) = (block_staging(root, driver, volume), block_publish_dir(root, driver, volume));
        Paths { staging, published, ..self }
    }

    /// The paths of a volume under a root directory.
    pub fn of(root: &str, driver: &str, handle: &str) -> Paths {
        let of_driver = match Plugin::named(driver) {
            Some(plugin) => plugin_dir(root, plugin),
            None => format!("{}/{driver}", volumes_dir(root)),
        };
        let dir = format!("{of_driver}/{}", names::staging_hash(handle));
        let (staging, record) = (format!("{dir}/globalmount"), format!("{dir}/{RECORD_FILE}"));
        Paths { staging, record, dir, published: String::new() }
    }
}

/// Where volumes have their directories, by driver and hash of the handle.
pub fn volumes_dir(root: &str) -> String {
    format!("{root}/plugins/{}", names::CSI_PLUGIN)
}

/// Where volumes have their directories that an in-tree plugin serves, by hash of the disk's name.
pub fn plugin_dir(root: &str, plugin: Plugin) -> String {
    format!("{root}/plugins/{plugin}/mounts")
}

/// Where a volume is published for a pod. `/` in the volume's name becomes `~` (KL-61).
pub fn target_path(root: &str, pod_uid: &str, volume: &str) -> String {
    format!("{root}/pods/{pod_uid}/volumes/kubernetes.io~csi/{}/mount", volume.replace('/', "~"))
}

/// The same of a volume that an in-tree plugin serves.
pub fn plugin_target(root: &str, pod_uid: &str, plugin: Plugin, volume: &str) -> String {
    format!("{root}/pods/{pod_uid}/volumes/{}/{}", plugin.name().replace('/', "~"), volume.replace('/', "~"))
}

/// Where raw block volumes are: those of all drivers, or those that an in-tree plugin serves.
fn devices_dir(root: &str, driver: &str) -> String {
    match Plugin::named(driver) {
        Some(plugin) => format!("{root}/plugins/{plugin}/volumeDevices"),
        None => format!("{}/volumeDevices", volumes_dir(root)),
    }
}

/// Where a raw block volume is staged. The volume's name is taken as it is (KL-61).
fn block_staging(root: &str, driver: &str, volume: &str) -> String {
    format!("{}/staging/{volume}", devices_dir(root, driver))
}

/// The directory that a raw block volume's published devices are in.
pub fn block_publish_dir(root: &str, driver: &str, volume: &str) -> String {
    format!("{}/publish/{volume}", devices_dir(root, driver))
}

/// Where a raw block volume is published for a pod.
pub fn block_target(root: &str, driver: &str, pod_uid: &str, volume: &str) -> String {
    format!("{}/{pod_uid}", block_publish_dir(root, driver, volume))
}

/// The directory a target's mount point is made in.
pub fn parent(path: &str) -> String {
    path.rsplit_once('/').map(|(parent, _)| parent).unwrap_or_default().into()
}

/// The directory of a pod's `emptyDir` volumes, which goes with all that is in it.
pub fn empty_dirs(root: &str, pod_uid: &str) -> String {
    own_dir(root, pod_uid, EMPTY_DIR)
}

/// The kinds of volumes that this agent makes itself, as their directories are called.
pub const CONFIG_MAP: &str = "kubernetes.io~configmap";
/// As above, for secrets.
pub const SECRET: &str = "kubernetes.io~secret";
/// As above, for several sources in one volume.
pub const PROJECTED: &str = "kubernetes.io~projected";
/// As above, for fields of the pod.
pub const DOWNWARD_API: &str = "kubernetes.io~downward-api";
/// As above, for directories that begin empty.
pub const EMPTY_DIR: &str = "kubernetes.io~empty-dir";

/// Where a volume is that this agent makes itself.
pub fn own_volume(root: &str, pod_uid: &str, kind: &str, volume: &str) -> String {
    format!("{}/{volume}", own_dir(root, pod_uid, kind))
}

/// The directory of a pod's volumes of one kind, which goes with all that is in it.
pub fn own_dir(root: &str, pod_uid: &str, kind: &str) -> String {
    format!("{root}/pods/{pod_uid}/volumes/{kind}")
}

/// All those kinds.
pub const OWN_KINDS: [&str; 5] = [EMPTY_DIR, CONFIG_MAP, SECRET, PROJECTED, DOWNWARD_API];

/// Those directories of all kinds.
pub fn own_dirs(root: &str, pod_uid: &str) -> Vec<String> {
    OWN_KINDS.iter().map(|kind| own_dir(root, pod_uid, kind)).collect()
}

/// Where pods have their directories, by uid.
pub fn pods_dir(root: &str) -> String {
    format!("{root}/pods")
}

/// The directory of a pod.
pub fn pod_dir(root: &str, pod_uid: &str) -> String {
    format!("{}/{pod_uid}", pods_dir(root))
}

/// The directories of a pod, innermost first: what is left to remove when its volumes are gone.
pub fn pod_dirs(root: &str, pod_uid: &str) -> Vec<String> {
    let pod = pod_dir(root, pod_uid);
    let csi = format!("{pod}/volumes/kubernetes.io~csi");
    Vec::from([csi, format!("{pod}/volumes"), pod])
}

/// The name under which nodes report a volume, by whoever serves it: a driver, or an in-tree plugin under its own name.
pub fn unique_name(driver: &str, handle: &str) -> String {
    match Plugin::named(driver) {
        Some(plugin) => format!("{plugin}/{handle}"),
        None => names::unique_volume_name(driver, handle),
    }
}

/// Who serves the volume of a unique name, and what it is called there.
pub fn split_unique_name(name: &str) -> Option<(&str, &str)> {
    let of_plugin =
        |plugin: &Plugin| name.strip_prefix(plugin.name())?.strip_prefix('/').map(|disk| (plugin.name(), disk));
    names::split_unique_volume_name(name).or_else(|| Plugin::ALL.iter().find_map(of_plugin))
}

/// What the name of a pod's process says. `_` parts the pieces, because no Kubernetes name contains it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessName {
    pub pod: ObjectKey,
    pub uid: String,
    pub container: String,
    /// How often the container was started before.
    pub restart: u32,
}

impl ProcessName {
    /// The name as it is used; `None` if it would be too long for a file name.
    pub fn print(&self) -> Option<String> {
        let ProcessName { pod, uid, container, restart } = self;
        let name = format!("{uid}_{}_{}_{container}_{restart}", pod.namespace, pod.name);
        (name.len() <= LONGEST_PROCESS_NAME).then_some(name)
    }

    /// Reads a name; `None` if it is no pod's.
    pub fn parse(name: &str) -> Option<ProcessName> {
        let mut parts = name.split('_');
        let (uid, namespace, pod) = (parts.next()?, parts.next()?, parts.next()?);
        let (container, restart) = (parts.next()?, parts.next()?.parse().ok()?);
        if parts.next().is_some() {
            return None;
        }
        Some(ProcessName { pod: ObjectKey::new(namespace, pod), uid: uid.into(), container: container.into(), restart })
    }
}

/// What a container's process is called; `None` if the names together are too long.
pub fn process_name(pod: &api::Meta, container: &str, restart: u32) -> Option<String> {
    ProcessName { pod: pod.key(), uid: pod.uid.clone(), container: container.into(), restart }.print()
}
