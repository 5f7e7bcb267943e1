//! Images of containers, made from programs of this machine: there is no registry to pull one from.

use crate::node::command::run;
use crate::{Error, Scratch};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Debian's busybox, which needs no library.
const BUSYBOX: &str = "/bin/busybox";

/// An image in the making: a root directory, and what is run in it.
#[derive(Debug)]
pub struct Image {
    scratch: Scratch,
    entrypoint: Vec<String>,
    arguments: Vec<String>,
}

impl Image {
    /// One with nothing but empty directories.
    pub fn empty() -> Result<Image, Error> {
        let image = Image { scratch: Scratch::new("image")?, entrypoint: Vec::new(), arguments: Vec::new() };
        for (directory, mode) in [("tmp", 0o1777), ("etc", 0o755), ("root", 0o700), ("bin", 0o755)] {
            let path = image.root().join(directory);
            fs::create_dir_all(&path)
                .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)))
                .map_err(Error::io(format!("make the directory {}", path.display())))?;
        }
        let top = fs::set_permissions(image.root(), fs::Permissions::from_mode(0o755));
        top.map_err(Error::io("open the root of an image"))?;
        image.text(
            "/etc/passwd",
            "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
            0o644,
        )?;
        image.text("/etc/group", "root:x:0:\nnogroup:x:65534:\n", 0o644)?;
        Ok(image)
    }

    /// One with a shell and its usual programs; it sleeps unless told otherwise.
    pub fn busybox() -> Result<Image, Error> {
        let image = Image::empty()?;
        image.program(Path::new(BUSYBOX), BUSYBOX)?;
        for applet in run(BUSYBOX, &["--list"])?.lines().filter(|applet| *applet != "busybox") {
            let at = image.root().join("bin").join(applet);
            symlink("busybox", &at).map_err(Error::io(format!("make {}", at.display())))?;
        }
        // Busybox' own does not know all that the tests of Kubernetes ask of it.
        image.program(Path::new("/bin/dd"), "/bin/dd")?;
        Ok(image.run(&["sleep"], &["infinity"]))
    }

    /// What is run where a pod names no command, and what it is told where a pod names no arguments.
    #[must_use]
    pub fn run(self, entrypoint: &[&str], arguments: &[&str]) -> Image {
        let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect();
        Image { entrypoint: words(entrypoint), arguments: words(arguments), ..self }
    }

    /// Puts a program into it, with the libraries it needs.
    pub fn program(&self, from: &Path, at: &str) -> Result<(), Error> {
        self.copy(from, at)?;
        // Of a static program it says that it is none to look into.
        let libraries = run("ldd", &[&from.display().to_string()]).unwrap_or_default();
        for library in libraries_of(&libraries) {
            self.copy(Path::new(&library), &library)?;
        }
        Ok(())
    }

    /// Puts a file into it.
    pub fn text(&self, at: &str, text: &str, mode: u32) -> Result<(), Error> {
        let path = self.inside(at)?;
        fs::write(&path, text)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(mode)))
            .map_err(Error::io(format!("write {}", path.display())))
    }

    /// Writes an archive as `docker save` does, for `ctr images import`, and returns where it is.
    pub(crate) fn archive(&self, names: &[&str]) -> Result<PathBuf, Error> {
        let at = |name: &str| self.scratch.path().join(name);
        let (layer, config, manifest, archive) =
            (at("layer.tar"), at("config.json"), at("manifest.json"), at("image.tar"));
        let root = self.root().display().to_string();
        run(
            "tar",
            &["--create", "--numeric-owner", "--file", &layer.display().to_string(), "--directory", &root, "."],
        )?;
        let digest = run("sha256sum", &[&layer.display().to_string()])?;
        let digest = digest.split_whitespace().next().unwrap_or_default();
        let quoted = |words: &[String]| words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ");
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        let texts = [
            (
                &config,
                format!(
                    r#"{{"architecture": "{}", "os": "linux",
"config": {{"Entrypoint": [{}], "Cmd": [{}], "Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]}},
"rootfs": {{"type": "layers", "diff_ids": ["sha256:{digest}"]}}}}"#,
                    architecture(),
                    quoted(&self.entrypoint),
                    quoted(&self.arguments),
                ),
            ),
            (
                &manifest,
                format!(r#"[{{"Config": "config.json", "RepoTags": [{}], "Layers": ["layer.tar"]}}]"#, quoted(&names)),
            ),
        ];
        for (path, text) in texts {
            fs::write(path, text).map_err(Error::io(format!("write {}", path.display())))?;
        }
        let directory = self.scratch.path().display().to_string();
        let file = archive.display().to_string();
        run(
            "tar",
            &["--create", "--file", &file, "--directory", &directory, "manifest.json", "config.json", "layer.tar"],
        )?;
        Ok(archive)
    }

    fn root(&self) -> PathBuf {
        self.scratch.path().join("root")
    }

    /// Where a path of the image is now; the directory it is in exists afterwards.
    fn inside(&self, at: &str) -> Result<PathBuf, Error> {
        let path = self.root().join(at.trim_start_matches('/'));
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(Error::io(format!("make the directory {}", parent.display())))?;
        }
        Ok(path)
    }

    fn copy(&self, from: &Path, at: &str) -> Result<(), Error> {
        let path = self.inside(at)?;
        // A link of busybox makes way.
        let _ = fs::remove_file(&path);
        fs::copy(from, &path).map(|_| ()).map_err(Error::io(format!("copy {} into an image", from.display())))
    }
}

/// The files that `ldd` names.
fn libraries_of(said: &str) -> BTreeSet<String> {
    let words = said.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    words.map(String::from).collect()
}

/// This machine's, in the words of images.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
