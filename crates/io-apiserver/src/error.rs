use std::path::PathBuf;

/// Why the server could not be opened or served. Each is one sentence that says what to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process holds the data directory.
    #[error(
        "the data directory {path} is in use by another process; stop that process or choose another directory",
        path = .0.display()
    )]
    InUse(PathBuf),
    /// The directory was written by a version this one does not read.
    #[error(
        "the data directory {path} has format {found} but this version of Longshore reads format {reads}; \
         use the version that wrote it, or start with an empty directory",
        path = .path.display()
    )]
    Format {
        /// The data directory.
        path: PathBuf,
        /// What its format file says.
        found: String,
        /// The only format this version reads.
        reads: u32,
    },
    /// The directory holds something that is not ours, so nothing in it is touched.
    #[error(
        "the directory {path} is not empty and holds no Longshore data; choose an empty or new directory",
        path = .0.display()
    )]
    Foreign(PathBuf),
    /// The database cannot be read as what we wrote.
    #[error("the store {path} cannot be read ({reason}); restore it from a backup or start with an empty directory", path = .path.display())]
    Damaged {
        /// The database file.
        path: PathBuf,
        /// What was wrong with it.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {path}: {source}", path = .path.display())]
    File {
        /// What was tried, as a verb.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Certificates could not be made or understood.
    #[error("cannot prepare the certificates in {path}: {reason}; remove that directory to have new ones made", path = .path.display())]
    Certificates {
        /// The directory of certificates.
        path: PathBuf,
        /// What went wrong; never holds key material.
        reason: String,
    },
    /// A thread could not be started.
    #[error("cannot start the writer thread: {0}")]
    Thread(std::io::Error),
    /// The namespaces every cluster has could not be created.
    #[error("cannot create namespace {name}: {reason}")]
    Namespace {
        name: &'static str,
        /// Why the store refused.
        reason: String,
    },
}

impl Error {
    pub(crate) fn file(action: &'static str, path: impl Into<PathBuf>, source: std::io::Error) -> Error {
        Error::File { action, path: path.into(), source }
    }
}
