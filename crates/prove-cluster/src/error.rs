//! What can go wrong, in sentences that say what to do.

use std::fmt;
use std::io;

/// A program that `make peers` has not built yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPeer {
    /// The program asked for.
    pub name: String,
    /// The version the project pins, if it lists the program at all.
    pub version: Option<String>,
}

impl fmt::Display for MissingPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Some(version) => write!(f, "{} {version} is not built; build it with: make peers", self.name),
            None => write!(f, "{} is not a peer; add it to tools/peers/list, then run: make peers", self.name),
        }
    }
}

impl std::error::Error for MissingPeer {}

/// Why a control plane did not start, or a command to it failed.
#[derive(Debug)]
pub enum Error {
    /// A peer is missing.
    Missing(MissingPeer),
    /// The machine refused something.
    Io {
        /// What was being done.
        doing: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A program of the control plane ended by itself.
    Ended {
        program: String,
        /// How it ended.
        status: String,
        /// The last lines of its log.
        log: String,
    },
    /// Something did not happen in time.
    Late {
        /// What was waited for.
        what: String,
        /// The last answer, or the last lines of a log.
        last: String,
    },
    /// A command said no.
    Command {
        /// The command line.
        command: String,
        /// What it wrote to its standard error.
        stderr: String,
    },
}

impl Error {
    /// Wraps a system's answer with what was being done.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let doing = doing.into();
        move |source| Error::Io { doing, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Missing(missing) => missing.fmt(f),
            Error::Io { doing, source } => write!(f, "cannot {doing}: {source}"),
            Error::Ended { program, status, log } => {
                write!(f, "{program} ended by itself ({status}); the end of its log:\n{log}")
            }
            Error::Late { what, last } => write!(f, "waited too long for {what}; last seen:\n{last}"),
            Error::Command { command, stderr } => write!(f, "`{command}` failed: {}", stderr.trim_end()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Missing(missing) => Some(missing),
            Error::Io { source, .. } => Some(source),
            Error::Ended { .. } | Error::Late { .. } | Error::Command { .. } => None,
        }
    }
}

impl From<MissingPeer> for Error {
    fn from(missing: MissingPeer) -> Self {
        Error::Missing(missing)
    }
}
