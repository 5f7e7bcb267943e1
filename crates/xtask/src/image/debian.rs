//! What the driver calls, out of Debian's packages: the programs that are named and the libraries they need. No script
//! of a package is run.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tar::{Archive, EntryType};

use super::layer::{Entry, FOLDER, Layer};
use super::layout::digest;
use super::{Platform, failed, said};

/// One line of the list: a package, the version of it that is wanted, and which of its files beside libraries.
#[derive(Debug, PartialEq, Eq)]
pub struct Wanted {
    pub package: String,
    pub version: String,
    pub files: Vec<String>,
}

/// A package as it was taken.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taken {
    pub package: String,
    pub version: String,
    pub architecture: String,
    /// Of the package's file, as Debian's own lists of packages have it.
    pub digest: String,
}

/// Reads the list: package, version, and paths of files; `#` begins a remark.
pub fn list(text: &str) -> io::Result<Vec<Wanted>> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let of = |line: &str| {
        let mut words = line.split_whitespace().map(String::from);
        match (words.next(), words.next()) {
            (Some(package), Some(version)) => Ok(Wanted { package, version, files: words.collect() }),
            _ => Err(io::Error::other(format!("{line:?} names no version; write PACKAGE VERSION [FILE…]"))),
        }
    };
    lines.filter(|line| !line.is_empty()).map(of).collect()
}

/// Puts the list's files into one layer. What was another version than the list says is told.
pub fn layer(list: &[Wanted], platform: &Platform, cache: &Path) -> io::Result<(Layer, Vec<Taken>, Vec<String>)> {
    fs::create_dir_all(cache).map_err(|error| failed("make", cache, error))?;
    let (mut layer, mut all, mut remarks) = (Layer::default(), Vec::new(), Vec::new());
    // Programs and libraries are under /usr, and found where they once were.
    for old in ["bin", "sbin", "lib", "lib64"] {
        layer.put(old, Entry::Link(format!("usr/{old}")));
        layer.put(&format!("usr/{old}"), FOLDER);
    }
    layer.put("etc/os-release", Entry::Link("../usr/lib/os-release".into()));
    for wanted in list {
        let file = fetch(wanted, platform.debian(), cache)?;
        let about = control(&file)?;
        let field = |name: &str| {
            let lines = about.lines().filter_map(|line| line.split_once(": "));
            lines.clone().find(|(key, _)| *key == name).map(|(_, value)| value.to_string()).unwrap_or_default()
        };
        let taken = Taken {
            package: field("Package"),
            version: field("Version"),
            architecture: field("Architecture"),
            digest: digest(&fs::read(&file).map_err(|error| failed("read", &file, error))?),
        };
        if taken.version != wanted.version {
            let (name, version) = (&taken.package, &taken.version);
            remarks.push(format!("{name} {} is not offered here any more; taken is {version}", wanted.version));
        }
        unpack(&file, wanted, &mut layer)?;
        // Where scanners of images look for what is installed.
        let status = format!("var/lib/dpkg/status.d/{}", wanted.package);
        layer.put(&status, Entry::File { mode: 0o644, data: about.into_bytes() });
        all.push(taken);
    }
    all.sort();
    Ok((layer, all, remarks))
}

/// The package's file, in the version of the list or, where apt has that no longer, in the one it offers.
fn fetch(wanted: &Wanted, architecture: &str, cache: &Path) -> io::Result<PathBuf> {
    let Wanted { package, version, .. } = wanted;
    // An epoch's colon is written so in a file's name.
    let file = cache.join(format!("{package}_{}_{architecture}.deb", version.replace(':', "%3a")));
    if file.exists() {
        return Ok(file);
    }
    let place = cache.join(format!(".{package}.{}", std::process::id()));
    fs::create_dir_all(&place).map_err(|error| failed("make", &place, error))?;
    let asked = [format!("{package}:{architecture}={version}"), format!("{package}:{architecture}")];
    let mut trouble = String::new();
    for name in &asked {
        let mut apt = Command::new("apt-get");
        apt.args(["download", "--quiet", "-o", "APT::Sandbox::User=root", name]).current_dir(&place);
        let output = apt.stdin(Stdio::null()).output().map_err(|error| {
            io::Error::other(format!(
                "cannot run apt-get: {error}; the image of the driver is made on Debian or Ubuntu"
            ))
        })?;
        if output.status.success() {
            break;
        }
        trouble = said(&output);
    }
    let found = fs::read_dir(&place)?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"));
    let Some(found) = found else {
        let _ = fs::remove_dir(&place);
        return Err(io::Error::other(format!(
            "apt-get gives out no {package} for {architecture}: {trouble}; run apt-get update, for another \
             architecture dpkg --add-architecture {architecture} before it, or mend the list"
        )));
    };
    let kept = cache.join(found.file_name().unwrap_or_default());
    fs::rename(&found, &kept).map_err(|error| failed("write", &kept, error))?;
    let _ = fs::remove_dir(&place);
    Ok(kept)
}

fn control(file: &Path) -> io::Result<String> {
    let output = Command::new("dpkg-deb").arg("--field").arg(file).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("{} is no package: {}", file.display(), said(&output))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn unpack(file: &Path, wanted: &Wanted, layer: &mut Layer) -> io::Result<()> {
    let output = Command::new("dpkg-deb").arg("--fsys-tarfile").arg(file).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("cannot unpack {}: {}", file.display(), said(&output))));
    }
    let missing = put(&output.stdout, wanted, layer)?;
    if let Some(path) = missing.first() {
        return Err(io::Error::other(format!(
            "there is no {path} in {} {}; mend the list of packages",
            wanted.package, wanted.version
        )));
    }
    Ok(())
}

/// Puts what is kept of a package's archive into the layer, and returns what was wanted and is not there.
fn put(archive: &[u8], wanted: &Wanted, layer: &mut Layer) -> io::Result<Vec<String>> {
    let mut missing = wanted.files.clone();
    for entry in Archive::new(archive).entries()? {
        let mut entry = entry?;
        let path = merged(&entry.path()?.to_string_lossy());
        if !is_kept(&path, wanted) {
            continue;
        }
        missing.retain(|file| *file != path);
        let (kind, mode) = (entry.header().entry_type(), entry.header().mode()?);
        let target = entry.link_name()?.map(|target| target.to_string_lossy().into_owned());
        match (kind, target) {
            (EntryType::Symlink, Some(target)) => layer.put(&path, Entry::Link(target)),
            // Another name of a file of the same package, which is told from the root.
            (EntryType::Link, Some(target)) => layer.put(&path, Entry::Link(format!("/{}", merged(&target)))),
            (EntryType::Regular, _) => {
                let mut data = Vec::new();
                entry.read_to_end(&mut data)?;
                layer.put(&path, Entry::File { mode: mode & 0o755, data });
            }
            (_, _) => {}
        }
    }
    Ok(missing)
}

/// A path of an archive as it is once everything is under /usr.
fn merged(path: &str) -> String {
    let path = path.trim_start_matches("./").trim_matches('/');
    let moved = ["bin/", "sbin/", "lib/", "lib64/"].iter().any(|old| path.starts_with(old));
    if moved { format!("usr/{path}") } else { path.to_string() }
}

/// The files that are named, libraries that a program can be linked with, and the licence.
fn is_kept(path: &str, wanted: &Wanted) -> bool {
    let Some((folder, name)) = path.rsplit_once('/') else { return false };
    let of_libraries = matches!(folder, "usr/lib" | "usr/lib64")
        || folder.strip_prefix("usr/lib/").is_some_and(|rest| rest.ends_with("-linux-gnu"));
    let library = of_libraries && (name.ends_with(".so") || name.contains(".so."));
    let licence = folder == format!("usr/share/doc/{}", wanted.package) && name == "copyright";
    library || licence || wanted.files.iter().any(|file| file == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_a_version_of_every_package() {
        let read = list("# a remark\ne2fsprogs 1:2-3 usr/sbin/mke2fs etc/mke2fs.conf # why\n\nlibc6 2\n").unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!((read[0].version.as_str(), read[0].files.len()), ("1:2-3", 2));
        assert!(list("e2fsprogs\n").unwrap_err().to_string().contains("names no version"));
    }

    #[test]
    fn programs_that_are_named_libraries_and_the_licence_are_kept_and_nothing_else() {
        let wanted = Wanted { package: "p".into(), version: "1".into(), files: vec!["usr/sbin/mke2fs".into()] };
        for kept in ["./sbin/mke2fs", "./lib/x86_64-linux-gnu/libe.so.2", "./lib64/ld-linux-x86-64.so.2"] {
            assert!(is_kept(&merged(kept), &wanted), "{kept}");
        }
        assert!(is_kept("usr/share/doc/p/copyright", &wanted));
        for left in
            ["./sbin/e2scrub", "./usr/lib/x86_64-linux-gnu/gconv/X.so", "./usr/share/doc/p/README", "./etc/cron.d/x"]
        {
            assert!(!is_kept(&merged(left), &wanted), "{left}");
        }
    }

    #[test]
    fn what_the_list_names_and_the_package_lacks_is_told() {
        let mut archive = tar::Builder::new(Vec::new());
        for (path, target) in [("./sbin/mke2fs", None), ("./sbin/mkfs.ext4", Some("./sbin/mke2fs"))] {
            let mut header = tar::Header::new_gnu();
            header.set_size(if target.is_some() { 0 } else { 1 });
            header.set_mode(0o4755);
            header.set_entry_type(if target.is_some() { EntryType::Link } else { EntryType::Regular });
            match target {
                None => archive.append_data(&mut header, path, &b"x"[..]).unwrap(),
                Some(target) => archive.append_link(&mut header, path, target).unwrap(),
            }
        }
        let archive = archive.into_inner().unwrap();
        let files = ["usr/sbin/mke2fs", "usr/sbin/mkfs.ext4", "usr/sbin/gone"].map(String::from).to_vec();
        let wanted = Wanted { package: "p".into(), version: "1".into(), files };
        let mut layer = Layer::default();
        assert_eq!(put(&archive, &wanted, &mut layer).unwrap(), ["usr/sbin/gone"]);
        // Whoever runs it becomes nobody else.
        assert_eq!(layer.entries()["usr/sbin/mke2fs"], Entry::File { mode: 0o755, data: b"x".to_vec() });
        assert_eq!(layer.entries()["usr/sbin/mkfs.ext4"], Entry::Link("/usr/sbin/mke2fs".into()));
    }
}
