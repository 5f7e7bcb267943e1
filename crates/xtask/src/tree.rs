//! The project's files, as the checks see them.

use std::fs;
use std::io;
use std::path::PathBuf;

/// The root of the workspace.
pub fn root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root.pop();
    root
}

/// The crates' names, in order.
pub fn crates() -> io::Result<Vec<String>> {
    let mut names: Vec<String> = fs::read_dir(root().join("crates"))?
        .filter_map(Result::ok)
        .filter(|entry| entry.path().join("Cargo.toml").exists())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

/// The folders of everything that is built: the crates and the examples.
pub fn packages() -> io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for family in ["crates", "examples"] {
        for entry in fs::read_dir(root().join(family))? {
            folders.push(entry?.path());
        }
    }
    folders.retain(|folder| folder.join("Cargo.toml").exists());
    folders.sort();
    Ok(folders)
}

/// Names under a section of a crate's manifest.
pub fn dependencies(krate: &str, section: &str) -> io::Result<Vec<String>> {
    let manifest = fs::read_to_string(root().join("crates").join(krate).join("Cargo.toml"))?;
    let mut inside = false;
    let mut names = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.trim() == format!("[{section}]");
        } else if inside
            && let Some((name, _)) = line.split_once(['.', '=', ' '])
            && !name.is_empty()
            && !name.starts_with('#')
        {
            names.push(name.trim().to_string());
        }
    }
    Ok(names)
}

/// Every Rust file of the crates and the examples, with its text.
pub fn sources() -> io::Result<Vec<(PathBuf, String)>> {
    files("rs")
}

/// Every script of a test, with its text.
pub fn scripts() -> io::Result<Vec<(PathBuf, String)>> {
    let of_test = |path: &PathBuf| path.components().any(|part| part.as_os_str() == "scripts");
    Ok(files("txt")?.into_iter().filter(|(path, _)| of_test(path)).collect())
}

fn files(wanted: &str) -> io::Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    let mut folders = packages()?;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == wanted) {
                let text = fs::read_to_string(&path)?;
                found.push((path, text));
            }
        }
    }
    found.sort();
    Ok(found)
}
