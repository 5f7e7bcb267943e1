//! The folder in which drivers register: which sockets come and go in it, and in the folders below (KL-1 to KL-4).

use std::collections::{BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use control::Timestamp;
use futures::StreamExt;
use inotify::{Event, EventMask, EventStream, Inotify, WatchDescriptor, WatchMask, Watches};
use io_run::Controller;
use rules_registrar::Registrar;

use crate::layout::text;

/// No folder of the registry is deeper than this: a link cannot be followed, so only a mistake is.
const DEEPEST: usize = 8;

/// Tells the registrar's rules of registration sockets that are there, and in the future it answers with of those that
/// come and go; calls `came` for each that comes.
pub fn follow(
    folder: &Path,
    registrar: Arc<Controller<Registrar>>,
    now: impl Fn() -> Timestamp + Send + Sync + 'static,
    came: impl Fn() + Send + Sync + 'static,
) -> Result<impl Future<Output = ()> + Send + 'static> {
    let inotify = Inotify::init().context("cannot watch for drivers")?;
    let mut folders = Folders { watches: inotify.watches(), paths: HashMap::new() };
    let mut news = inotify.into_event_stream(vec![0; 4096])?;
    // First listen, then look, so that no socket falls between.
    let there = folders.look(folder, 0).with_context(|| format!("cannot watch {}", folder.display()))?;
    registrar.update_local(|local| local.found(&there, now()));
    let root = folder.to_path_buf();
    Ok(async move { listen(&mut news, &mut folders, &root, &registrar, &now, &came).await })
}

async fn listen(
    news: &mut EventStream<Vec<u8>>,
    folders: &mut Folders,
    root: &Path,
    registrar: &Controller<Registrar>,
    now: &(impl Fn() -> Timestamp + Send + Sync),
    came: &(impl Fn() + Send + Sync),
) {
    while let Some(event) = news.next().await {
        // The kernel had more news than it keeps: some are lost, so we look for ourselves.
        let lost = event.as_ref().map_or(true, |event| event.mask.contains(EventMask::Q_OVERFLOW));
        if lost && let Ok(there) = folders.look(root, 0) {
            registrar.update_local(|local| local.found(&there, now()));
            came();
        }
        let Ok(event) = event else { continue };
        match folders.read(&event) {
            News::Nothing => {}
            News::Gone(path) => registrar.update_local(|local| local.gone(&path, now())),
            News::Came(paths) => {
                registrar.update_local(|local| paths.iter().for_each(|path| local.seen(path.clone())));
                came();
            }
        }
    }
}

/// What an event says of sockets.
enum News {
    Nothing,
    /// A socket, or a folder with all that was in it.
    Gone(String),
    Came(BTreeSet<String>),
}

/// The folders that are watched.
struct Folders {
    watches: Watches,
    paths: HashMap<WatchDescriptor, (PathBuf, usize)>,
}

impl Folders {
    /// Watches a folder and those in it. Answers the sockets that are there.
    fn look(&mut self, folder: &Path, depth: usize) -> std::io::Result<BTreeSet<String>> {
        let events = WatchMask::CREATE | WatchMask::MOVED_TO | WatchMask::DELETE | WatchMask::MOVED_FROM;
        let watch = self.watches.add(folder, events | WatchMask::DONT_FOLLOW | WatchMask::ONLYDIR)?;
        self.paths.insert(watch, (folder.to_path_buf(), depth));
        let mut sockets = BTreeSet::new();
        for name in io_host::list_dir(folder)? {
            sockets.extend(self.look_at(&folder.join(name), depth));
        }
        Ok(sockets)
    }

    /// The sockets at a path: itself if it is one, or those in it. What cannot be read is told and left out.
    fn look_at(&mut self, path: &Path, depth: usize) -> BTreeSet<String> {
        let hidden = path.file_name().is_none_or(|name| name.as_bytes().starts_with(b"."));
        let Ok(found) = std::fs::symlink_metadata(path) else { return BTreeSet::new() };
        if hidden || !found.is_dir() {
            return if !hidden && found.file_type().is_socket() { [text(path)].into() } else { BTreeSet::new() };
        }
        if depth >= DEEPEST {
            tracing::warn!("{} is too deep to look for drivers in", path.display());
            return BTreeSet::new();
        }
        self.look(path, depth + 1).unwrap_or_else(|error| {
            tracing::warn!("cannot look for drivers in {}: {error}", path.display());
            BTreeSet::new()
        })
    }

    fn read(&mut self, event: &Event<std::ffi::OsString>) -> News {
        if event.mask.contains(EventMask::IGNORED) {
            self.paths.remove(&event.wd);
            return News::Nothing;
        }
        let (Some((folder, depth)), Some(name)) = (self.paths.get(&event.wd).cloned(), &event.name) else {
            return News::Nothing;
        };
        let path = folder.join(name);
        if event.mask.intersects(EventMask::DELETE | EventMask::MOVED_FROM) {
            // A folder that was moved away is watched no more: its news would carry the wrong path.
            let moved = self.paths.iter().filter(|(_, (watched, _))| watched.starts_with(&path));
            let moved: Vec<WatchDescriptor> = moved.map(|(watch, _)| watch.clone()).collect();
            for watch in moved {
                self.paths.remove(&watch);
                // Already gone with its folder, unless that was moved.
                let _ = self.watches.remove(watch);
            }
            return News::Gone(text(&path));
        }
        let sockets = self.look_at(&path, depth);
        if sockets.is_empty() { News::Nothing } else { News::Came(sockets) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    struct Scene {
        inotify: Inotify,
        folders: Folders,
        root: PathBuf,
        scratch: tempfile::TempDir,
    }

    impl Scene {
        fn new() -> Scene {
            let scratch = tempfile::tempdir().unwrap();
            let root = scratch.path().join("registry");
            std::fs::create_dir_all(root.join("old/deep")).unwrap();
            UnixListener::bind(root.join("a.sock")).unwrap();
            UnixListener::bind(root.join("old/deep/b")).unwrap();
            UnixListener::bind(root.join(".hidden.sock")).unwrap();
            std::fs::write(root.join("file.sock"), "").unwrap();
            let inotify = Inotify::init().unwrap();
            let folders = Folders { watches: inotify.watches(), paths: HashMap::new() };
            Scene { inotify, folders, root, scratch }
        }

        /// All news up to the one of the file that is made now, which marks the end.
        fn news(&mut self) -> (BTreeSet<String>, BTreeSet<String>) {
            std::fs::write(self.root.join("mark"), "").unwrap();
            let (mut came, mut gone) = (BTreeSet::new(), BTreeSet::new());
            loop {
                let mut buffer = vec![0; 4096];
                let events: Vec<_> =
                    self.inotify.read_events_blocking(&mut buffer).unwrap().map(|e| e.to_owned()).collect();
                for event in &events {
                    if event.name.as_deref() == Some("mark".as_ref()) && event.mask.contains(EventMask::CREATE) {
                        std::fs::remove_file(self.root.join("mark")).unwrap();
                        return (came, gone);
                    }
                    match self.folders.read(event) {
                        News::Nothing => {}
                        News::Gone(path) => drop(gone.insert(path)),
                        News::Came(paths) => came.extend(paths),
                    }
                }
            }
        }

        fn paths(&self, names: &[&str]) -> BTreeSet<String> {
            names.iter().map(|name| text(&self.root.join(name))).collect()
        }
    }

    // KL-1, KL-2: sockets by any name but hidden ones, in any folder, also those that were there before.
    #[test]
    fn sockets_that_are_there_are_found() {
        let mut scene = Scene::new();
        let found = scene.folders.look(&scene.root.clone(), 0).unwrap();
        assert_eq!(found, scene.paths(&["a.sock", "old/deep/b"]));
    }

    // KL-1, KL-3: in folders made or moved here later, with what was in them before anybody listened.
    #[test]
    fn sockets_that_come_and_go_are_told() {
        let mut scene = Scene::new();
        scene.folders.look(&scene.root.clone(), 0).unwrap();
        let aside = scene.scratch.path().join("aside");
        std::fs::create_dir_all(&aside).unwrap();
        UnixListener::bind(aside.join("c.sock")).unwrap();
        std::fs::rename(&aside, scene.root.join("new")).unwrap();
        UnixListener::bind(scene.root.join("old/d.sock")).unwrap();
        std::fs::write(scene.root.join("old/plain"), "").unwrap();
        assert_eq!(scene.news(), (scene.paths(&["new/c.sock", "old/d.sock"]), BTreeSet::new()));
        UnixListener::bind(scene.root.join("new/e.sock")).unwrap();
        std::fs::remove_file(scene.root.join("a.sock")).unwrap();
        let (came, gone) = scene.news();
        assert!(came.is_superset(&scene.paths(&["new/e.sock"])), "{came:?}");
        assert!(gone.is_superset(&scene.paths(&["a.sock"])), "{gone:?}");
        std::fs::rename(scene.root.join("new"), &aside).unwrap();
        UnixListener::bind(aside.join("f.sock")).unwrap();
        let (came, gone) = scene.news();
        assert!(came.is_empty() && gone.is_superset(&scene.paths(&["new"])), "{came:?} {gone:?}");
    }
}
