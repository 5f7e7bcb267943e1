//! The mount table as it changes, told to the node's rules: a volume is ready only while it is mounted (reliability
//! 41).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use io_run::Controller;
use rules_node::Node;
use tokio::sync::mpsc;

/// Changes come in rows; whoever made one tells the rules himself in the meantime.
const PAUSE: Duration = Duration::from_millis(50);
/// The kernel tells of every change. Looking now and then as well costs little and needs no trust.
const LOOK: Duration = Duration::from_secs(10);

/// A task that tells the node's rules of mounts below their root directory that come and go, from now on.
pub fn follow(root: &str, node: Arc<Controller<Node>>) -> Result<impl Future<Output = ()> + Send + 'static> {
    let (send, mut heard) = mpsc::channel(1);
    // A change that comes while another is waiting to be looked at is looked at with it; the thread ends with us.
    io_host::watch_mounts(LOOK, move || !matches!(send.try_send(()), Err(mpsc::error::TrySendError::Closed(()))))
        .context("cannot watch the mount table")?;
    let mut seen = read(root).context("cannot read the mount table")?;
    let root = root.to_owned();
    Ok(async move {
        while heard.recv().await.is_some() {
            tokio::time::sleep(PAUSE).await;
            look(&root, &mut seen, &node);
        }
    })
}

/// A table that cannot be read says nothing: what was known stays.
fn look(root: &str, seen: &mut BTreeSet<String>, node: &Controller<Node>) {
    let Ok(now) = read(root) else { return };
    let knows = |local: &rules_node::Local| now.is_subset(&local.mounts);
    if seen.is_subset(&now) && node.look_local(knows) {
        *seen = now;
        return;
    }
    // Read again where no outcome of a call can come between: what is told is what is there.
    node.update_local(|local| {
        if let Ok(now) = read(root) {
            local.remounted(seen, &now);
            *seen = now;
        }
    });
}

fn read(root: &str) -> std::io::Result<BTreeSet<String>> {
    Ok(io_host::mounts_beneath(root)?.into_iter().map(|mount| mount.target).collect())
}
