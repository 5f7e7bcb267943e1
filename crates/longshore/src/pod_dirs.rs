//! Directories of pods that nothing else remembers, told to the node's rules (KL-99).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use io_run::{Controller, Manager};
use rules_node::{Node, PodDir};

/// Between two looks. A pod whose directory nobody remembers is no hurry.
const LOOK: Duration = Duration::from_secs(30);

/// What the directories of pods hold, by their names. One that cannot be listed is not told of, and stays.
pub fn find(root: &str, wanted: impl Fn(&str) -> bool) -> BTreeMap<String, PodDir> {
    let pods = rules_node::pods_dir(root);
    let listed = |uid: String| match io_host::list_tree(
        &format!("{pods}/{uid}"),
        rules_node::POD_DIR_DEPTH,
        rules_node::is_listed,
    ) {
        Ok(holds) => Some((uid, holds)),
        Err(error) => {
            tracing::warn!("the directory {pods}/{uid} is left alone: {error}");
            None
        }
    };
    names(root).into_iter().filter(|uid| wanted(uid)).filter_map(listed).collect()
}

fn names(root: &str) -> Vec<String> {
    let pods = rules_node::pods_dir(root);
    io_host::list_dir(Path::new(&pods)).unwrap_or_else(|error| {
        tracing::warn!("{pods} cannot be listed, so nobody knows what pods left there: {error}");
        Vec::new()
    })
}

/// Tells the node's rules now and then of directories that no pod, record or process accounts for.
pub async fn follow(manager: Arc<Manager>, node: Arc<Controller<Node>>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let (manager, node) = (manager.clone(), node.clone());
        // A disk that hangs holds up nobody but the next look; the next one comes also after one that panicked.
        let _ = tokio::task::spawn_blocking(move || look(&manager, &node)).await;
    }
}

fn look(manager: &Manager, node: &Controller<Node>) {
    let local = node.look_local(Clone::clone);
    let names = names(&local.root);
    let unknown: BTreeSet<String> =
        manager.cache().look(|cache| rules_node::unknown_pods(names, cache, &local).collect());
    let found = find(&local.root, |uid| unknown.contains(uid));
    if found != local.pod_dirs {
        node.update_local(|local| local.pod_dirs = found);
    }
}
