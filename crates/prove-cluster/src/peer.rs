//! Where the programs are that `make peers` built.

use crate::MissingPeer;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The list that `make peers` builds from: name, folder, module, package.
const LIST: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/peers/list"));
const FOLDERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/peers");

/// The folder of built peers: `LONGSHORE_PEERS`, else the project's folder in the user's cache.
pub fn peers_folder() -> PathBuf {
    if let Some(folder) = env::var_os("LONGSHORE_PEERS") {
        return PathBuf::from(folder);
    }
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    home.join(".cache/longshore/peers")
}

/// The built program of that name, in the version the project pins.
pub fn peer(name: &str) -> Result<PathBuf, MissingPeer> {
    find(name, &peers_folder())
}

fn find(name: &str, folder: &Path) -> Result<PathBuf, MissingPeer> {
    let version = pinned(name);
    let built = version.as_ref().map(|version| folder.join(format!("{name}-{version}")));
    match built {
        Some(path) if path.is_file() => Ok(path),
        Some(_) | None => Err(MissingPeer { name: name.to_string(), version }),
    }
}

/// The version in the go.mod of the folder that the list gives for the name.
fn pinned(name: &str) -> Option<String> {
    let (_, folder, module) = entries().find(|(listed, ..)| *listed == name)?;
    let manifest = fs::read_to_string(Path::new(FOLDERS).join(folder).join("go.mod")).ok()?;
    manifest.lines().find_map(|line| required(line, module))
}

fn required(line: &str, module: &str) -> Option<String> {
    let mut words = line.split_whitespace().skip_while(|word| *word == "require");
    (words.next()? == module).then(|| words.next()).flatten().filter(|word| word.starts_with('v')).map(str::to_string)
}

fn entries() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    LIST.lines().filter(|line| !line.starts_with('#')).filter_map(|line| {
        let mut words = line.split_whitespace();
        Some((words.next()?, words.next()?, words.next()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scratch;

    #[test]
    fn every_listed_peer_is_pinned_to_a_version() {
        assert!(entries().count() >= 11);
        for (name, ..) in entries() {
            assert!(pinned(name).is_some_and(|version| version.starts_with('v')), "{name} has no version");
        }
    }

    #[test]
    fn a_peer_that_is_not_built_names_the_command_that_builds_it() {
        let empty = Scratch::new("no-peers").unwrap();
        let missing = find("csi-sanity", empty.path()).unwrap_err();
        let said = missing.to_string();
        assert!(said.starts_with("csi-sanity v") && said.ends_with("make peers"), "{said}");
    }

    #[test]
    fn a_name_that_is_no_peer_says_where_peers_are_listed() {
        let said = find("minikube", Path::new("/")).unwrap_err().to_string();
        assert!(said.contains("tools/peers/list"), "{said}");
    }

    #[test]
    fn a_peer_of_another_version_is_not_taken() {
        let folder = Scratch::new("old-peers").unwrap();
        fs::write(folder.path().join("csi-sanity-v0.0.1"), "").unwrap();
        assert!(find("csi-sanity", folder.path()).is_err());
        fs::write(folder.path().join(format!("csi-sanity-{}", pinned("csi-sanity").unwrap())), "").unwrap();
        assert!(find("csi-sanity", folder.path()).is_ok());
    }
}
