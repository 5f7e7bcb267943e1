//! Makes and removes the socket a server listens on.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::Mode;
use tokio::net::{UnixListener, UnixSocket, UnixStream};

/// What fits into a socket address.
const LONGEST_PATH: usize = 107;
/// How many callers may wait to be let in.
const BACKLOG: u32 = 1024;
/// A socket at which somebody, or nobody, lets us in for so long is taken to be served.
const PATIENCE: Duration = Duration::from_secs(1);
/// The pause before a socket that is served is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A socket file of ours, and how to recognise it.
pub struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl SocketFile {
    /// Removes the file, unless it was replaced by someone else's.
    pub fn remove(&self) -> io::Result<()> {
        match fs::symlink_metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == self.identity => fs::remove_file(&self.path),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Listens at a path that only our own user can reach.
pub async fn listen(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let shown = path.display();
    if !path.is_absolute() || path.as_os_str().len() > LONGEST_PATH {
        let text = format!("cannot listen at {shown}: a socket needs an absolute path of at most {LONGEST_PATH} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    make_directory(path)?;
    make_way(path).await?;
    let socket = UnixSocket::new_stream()?;
    // The file gets the mode the socket has when it is bound, so it is private from its first moment and the umask,
    // which all threads share, is left alone.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    socket.bind(path).map_err(|error| said(&error, format!("cannot listen at {shown}: {error}")))?;
    let listener = socket.listen(BACKLOG)?;
    let made = fs::symlink_metadata(path)?;
    Ok((listener, SocketFile { path: path.to_owned(), identity: (made.dev(), made.ino()) }))
}

fn make_directory(path: &Path) -> io::Result<()> {
    let Some(directory) = path.parent() else { return Ok(()) };
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|error| said(&error, format!("cannot make the socket's directory {}: {error}", directory.display())))
}

/// Removes a socket that a process of ours left behind, and nothing else.
async fn make_way(path: &Path) -> io::Result<()> {
    let shown = path.display();
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(said(&error, format!("cannot look at {shown}: {error}"))),
    };
    let refuse =
        |why: &str| Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("cannot listen at {shown}: {why}")));
    if !found.file_type().is_socket() {
        return refuse("something that is no socket is in the way; remove it or choose another path");
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return refuse("another user's socket is in the way; remove it or choose another path");
    }
    // A program that a killed process was just starting holds its sockets until it has begun.
    let until = Instant::now() + PATIENCE;
    loop {
        match tokio::time::timeout(PATIENCE, UnixStream::connect(path)).await {
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => return fs::remove_file(path),
            Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Ok(Ok(_)) if Instant::now() < until => tokio::time::sleep(LOOK_AGAIN).await,
            Ok(Ok(_)) | Ok(Err(_)) | Err(_) => {
                return refuse("another process serves there; stop it or choose another path");
            }
        }
    }
}

fn said(error: &io::Error, text: String) -> io::Error {
    io::Error::new(error.kind(), text)
}
