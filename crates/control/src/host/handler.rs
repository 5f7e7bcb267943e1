//! What is done at a process by a probe or a hook.

use alloc::string::String;
use alloc::vec::Vec;

/// One way to ask a process something.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Handler {
    /// A command beside it, which must end with status 0.
    Exec {
        /// The program and its arguments.
        command: Vec<String>,
    },
    /// A request over HTTP in its network, which must be answered with a status from 200 to 399.
    HttpGet {
        /// The address; empty means its own.
        host: String,
        /// The port it listens at.
        port: u16,
        /// What is asked for.
        path: String,
        /// More headers: name and value.
        headers: Vec<(String, String)>,
    },
    /// A connection over TCP in its network.
    TcpSocket {
        /// The address; empty means its own.
        host: String,
        /// The port it listens at.
        port: u16,
    },
    /// Time that passes.
    Sleep {
        /// How much of it.
        millis: u64,
    },
}
