//! Where things are kept below the data directory.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// The name of the reference driver.
pub const DRIVER: &str = "local.csi.longshore";

/// The directory of the further nodes of a machine.
const NODES: &str = "nodes";

/// The data directory and what is where in it.
#[derive(Clone, Debug)]
pub struct Layout {
    root: PathBuf,
}

/// The longest path a Unix socket can have.
const SOCKET_PATH_LIMIT: usize = 107;

/// A directory as everybody else names it: absolute and without links.
pub fn place(given: &Path) -> Result<PathBuf> {
    let place = without_links(&std::path::absolute(given)?);
    if place.to_str().is_none() {
        bail!("the data directory {} is not valid UTF-8; choose another with --data-dir", place.display());
    }
    Ok(place)
}

impl Layout {
    /// The layout of the directory given, or of the usual one.
    pub fn new(given: Option<PathBuf>) -> Result<Layout> {
        let root = match given {
            Some(path) => path,
            None => default_root()?,
        };
        let layout = Layout { root: place(&root)? };
        let longest = layout.registration_socket();
        if longest.as_os_str().len() > SOCKET_PATH_LIMIT {
            let room = SOCKET_PATH_LIMIT + layout.root.as_os_str().len() - longest.as_os_str().len();
            bail!(
                "the data directory {} is too long for the sockets in it; choose one of at most {room} characters with --data-dir",
                layout.root.display()
            );
        }
        Ok(layout)
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The API server's own directory.
    pub fn api(&self) -> PathBuf {
        self.root.join("api")
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.root.join("kubeconfig")
    }

    /// The node agent's directory, laid out as a kubelet's.
    pub fn node(&self) -> PathBuf {
        self.root.join("node")
    }

    /// Where drivers put their registration sockets.
    pub fn registry(&self) -> PathBuf {
        self.node().join("plugins_registry")
    }

    /// The reference driver's socket.
    pub fn driver_socket(&self) -> PathBuf {
        self.socket_of(DRIVER)
    }

    /// The socket of a driver of this name.
    pub fn socket_of(&self, driver: &str) -> PathBuf {
        self.node().join("plugins").join(driver).join("csi.sock")
    }

    /// The reference driver's registration socket.
    pub fn registration_socket(&self) -> PathBuf {
        self.registration_of(DRIVER)
    }

    /// The registration socket of a driver of this name.
    pub fn registration_of(&self, driver: &str) -> PathBuf {
        self.registry().join(format!("{driver}-reg.sock"))
    }

    /// The reference driver's volumes.
    pub fn driver(&self) -> PathBuf {
        self.root.join("driver")
    }

    /// The layout of a further node of this machine, beside the first.
    pub fn further(&self, node: &str) -> Result<Layout> {
        Layout::new(Some(self.root.join(NODES).join(node)))
    }

    /// The further nodes that there are, or were, by name.
    pub fn all_further(&self) -> Vec<(String, Layout)> {
        let entries = std::fs::read_dir(self.root.join(NODES)).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut found: Vec<_> = names.filter_map(|name| Some((name.clone(), self.further(&name).ok()?))).collect();
        found.sort_by(|one, other| one.0.cmp(&other.0));
        found
    }

    /// Held by the node agent that works in this directory.
    pub fn agent_lock(&self) -> PathBuf {
        self.node().join("lock")
    }

    /// Processes of pods.
    pub fn processes(&self) -> PathBuf {
        self.root.join("processes")
    }
}

/// A path as the rules carry it. [`Layout::new`] made sure that it is UTF-8.
pub fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The same place with the symbolic links resolved that exist so far: below it none is followed.
fn without_links(path: &Path) -> PathBuf {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(real), _, _) => real,
        (Err(_), Some(parent), Some(name)) => without_links(parent).join(name),
        (Err(_), _, _) => path.to_path_buf(),
    }
}

fn default_root() -> Result<PathBuf> {
    if crate::machine::is_root() {
        return Ok(PathBuf::from("/var/lib/longshore"));
    }
    match std::env::var_os("HOME") {
        Some(home) => Ok(PathBuf::from(home).join(".local/share/longshore")),
        None => bail!("there is no HOME to keep data in; name a directory with --data-dir"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_above_the_data_directory_are_resolved_whether_it_exists_or_not() {
        let scratch = tempfile::tempdir().unwrap();
        let real = scratch.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("there")).unwrap();
        std::os::unix::fs::symlink(real.join("there"), real.join("link")).unwrap();
        assert_eq!(without_links(&real.join("link/new/data")), real.join("there/new/data"));
        assert_eq!(without_links(&real.join("link")), real.join("there"));
    }

    #[test]
    fn a_directory_too_long_for_sockets_is_refused_with_the_room_there_is() {
        let long = PathBuf::from(format!("/{}", "x".repeat(90)));
        let error = Layout::new(Some(long)).unwrap_err().to_string();
        assert!(error.contains("choose one of at most 5"), "{error}");
    }
}
