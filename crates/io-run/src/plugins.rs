//! In-tree plugins: code in this process that serves volumes as Kubernetes' own plugins did, with no driver behind a
//! socket.

use std::future::Future;
use std::pin::Pin;

use csi::{Call, Response, Status};

/// How what a plugin was asked for ends.
pub type PluginAnswer<'a> = Pin<Box<dyn Future<Output = Result<Response, Status>> + Send + 'a>>;

/// An in-tree plugin.
pub trait InTreePlugin: Send + Sync {
    /// Does what the rules ask of whoever serves a volume. It has the words of CSI, since the same rules ask it. A node
    /// calls a volume by the plugin's own name, controllers by the name that it has in CSI.
    fn asked(&self, call: Call) -> PluginAnswer<'_>;
}
