//! `xtask image`: container images without a daemon.
//!
//! An image is a folder of JSON and archives (the OCI image layout). There are two: `longshore`, the static binary on
//! an empty base, and `longshore-driver`, the same with the programs that make, check and grow filesystems.

pub mod debian;
pub mod elf;
pub mod layer;
pub mod layout;
pub mod sbom;
mod settings;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use layer::{Entry, FOLDER, Layer, Packed};
use layout::PlatformImage;
pub use settings::Settings;

/// The version of everything.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Who needs no rights runs as this.
const NOBODY: &str = "65532:65532";
/// Users there are: programs ask for their own name.
const PASSWD: &str = "root:x:0:0:root:/:/sbin/nologin\nlongshore:x:65532:65532:longshore:/:/sbin/nologin\n";
const GROUP: &str = "root:x:0:\nlongshore:x:65532:\n";

/// What a binary runs on, as `linux/amd64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    pub os: String,
    pub architecture: String,
}

impl Platform {
    fn read(text: &str) -> io::Result<Platform> {
        match text.split_once('/') {
            Some((os @ "linux", architecture @ ("amd64" | "arm64"))) => {
                Ok(Platform { os: os.into(), architecture: architecture.into() })
            }
            Some(_) | None => Err(io::Error::other(format!("{text:?} is not known; write linux/amd64 or linux/arm64"))),
        }
    }

    /// As Debian calls the architecture.
    fn debian(&self) -> &str {
        &self.architecture
    }

    /// As Rust calls it.
    fn rust(&self) -> &'static str {
        if self.architecture == "arm64" { "aarch64" } else { "x86_64" }
    }
}

/// Makes the images and returns what was made, with sizes.
pub fn run(settings: &Settings) -> io::Result<String> {
    let mut report = String::new();
    let mut binaries = Vec::new();
    for (platform, file) in &settings.binaries {
        let binary = fs::read(file).map_err(|error| failed("read", file, error))?;
        elf::check(file, platform, &binary)?;
        let made_of = settings.made_of(platform, &binary, &mut report)?;
        binaries.push((platform, binary_layer(binary).pack(settings.date)?, made_of));
    }
    let sidecar = binaries.iter().map(|(platform, binary, made_of)| {
        let layers = vec![("the longshore binary", binary.clone())];
        ((*platform).clone(), layers, made_of.clone())
    });
    make(settings, "longshore", NOBODY, "The CSI sidecars as one process", sidecar.collect(), &mut report)?;
    let Some(list) = &settings.debian else { return Ok(report) };
    let text = fs::read_to_string(list).map_err(|error| failed("read", list, error))?;
    let list = debian::list(&text)?;
    let mut parts = Vec::new();
    for (platform, binary, made_of) in &binaries {
        let (tools, taken, remarks) = debian::layer(&list, platform, &settings.cache)?;
        for remark in remarks {
            let _ = writeln!(report, "image: {remark}");
        }
        let layers = vec![
            ("programs for filesystems, from Debian", tools.pack(settings.date)?),
            ("the longshore binary", binary.clone()),
        ];
        let components = made_of.iter().cloned().chain(taken.iter().map(sbom::package)).collect();
        parts.push(((*platform).clone(), layers, components));
    }
    // It mounts.
    make(
        settings,
        "longshore-driver",
        "0:0",
        "The reference CSI driver, with what makes filesystems",
        parts,
        &mut report,
    )?;
    Ok(report)
}

/// A platform, its layers with what each is, and what they are made of.
type Part = (Platform, Vec<(&'static str, Packed)>, Vec<Value>);

/// Writes the layout, the archive and the bill of one image.
fn make(
    settings: &Settings,
    image: &str,
    user: &'static str,
    title: &str,
    parts: Vec<Part>,
    report: &mut String,
) -> io::Result<()> {
    let (name, created) = (settings.name(image), layout::time(settings.date));
    let mut components: Vec<Value> = Vec::new();
    let mut images = Vec::new();
    for (platform, layers, made_of) in parts {
        for one in made_of {
            if !components.contains(&one) {
                components.push(one);
            }
        }
        let compressed: usize = layers.iter().map(|(_, layer)| layer.bytes.len()).sum();
        let unpacked: u64 = layers.iter().map(|(_, layer)| layer.unpacked).sum();
        let what = format!("{} {}/{}", name.full(), platform.os, platform.architecture);
        let _ = writeln!(report, "{what}: {} to pull, {} unpacked", megabytes(compressed as u64), megabytes(unpacked));
        let labels = BTreeMap::from([
            ("org.opencontainers.image.title", image.to_string()),
            ("org.opencontainers.image.description", title.to_string()),
            ("org.opencontainers.image.version", VERSION.to_string()),
            ("org.opencontainers.image.licenses", "Apache-2.0".to_string()),
            ("org.opencontainers.image.created", created.clone()),
        ]);
        images.push(PlatformImage { platform, layers, user, labels });
    }
    let folder = settings.out.join(image);
    layout::write(&folder, &name, &images, settings.date)?;
    let archive = settings.out.join(format!("{image}.tar"));
    layout::archive(&folder, &archive, settings.date)?;
    let bill = settings.out.join(format!("{image}.cdx.json"));
    let text = serde_json::to_string_pretty(&sbom::bill(&name.full(), VERSION, &created, &components))?;
    fs::write(&bill, text + "\n").map_err(|error| failed("write", &bill, error))?;
    for path in [&folder, &archive, &bill] {
        let _ = writeln!(report, "  {}", path.display());
    }
    Ok(())
}

/// The binary, the users there are, and the places that a runtime mounts on.
fn binary_layer(binary: Vec<u8>) -> Layer {
    let mut layer = Layer::default();
    for folder in ["dev", "proc", "sys", "run", "etc"] {
        layer.put(folder, FOLDER);
    }
    // Everybody may write here, and nobody removes what is another's.
    layer.put("tmp", Entry::Folder { mode: 0o1777 });
    layer.put("etc/passwd", Entry::File { mode: 0o644, data: PASSWD.into() });
    layer.put("etc/group", Entry::File { mode: 0o644, data: GROUP.into() });
    layer.put("usr/bin/longshore", Entry::File { mode: 0o755, data: binary });
    layer
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}

fn failed(what: &str, path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {what} {}: {error}", path.display()))
}

/// What a program said last, or how it ended.
fn said(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    said.lines().map(str::trim).rfind(|line| !line.is_empty()).map_or_else(|| output.status.to_string(), String::from)
}

#[cfg(test)]
mod tests {
    use super::elf::tests::program;
    use super::*;
    use std::collections::BTreeSet;
    use std::io::Read as _;
    use std::path::PathBuf;

    fn made(place: &Path) -> String {
        let binary = place.join("binary");
        fs::create_dir_all(place).unwrap();
        fs::write(&binary, program(62, 1)).unwrap();
        let library = place.join("libc.a");
        fs::write(&library, "\0GNU C Library (Debian GLIBC 2.36-9+deb12u14) stable release version 2.36.\n").unwrap();
        let [binary, library] = [binary, library].map(|file| format!("linux/amd64={}", file.display()));
        let out = place.join("out").display().to_string();
        let words = ["--binary", &binary, "--libc", &library, "--out", &out, "--date", "1000000000"];
        run(&Settings::read(&words).unwrap()).unwrap()
    }

    fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![folder.to_path_buf()];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(&next).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(folder).unwrap().display().to_string();
                    found.insert(name, fs::read(&path).unwrap());
                }
            }
        }
        found
    }

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            Place(std::env::temp_dir().join(format!("longshore-image-{name}-{}", std::process::id())))
        }
    }

    impl Drop for Place {
        #[allow(clippy::disallowed_methods, reason = "nothing is mounted in it")]
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn an_image_made_twice_is_the_same_to_the_byte() {
        let (one, two) = (Place::new("one"), Place::new("two"));
        assert!(made(&one.0).contains("docker.io/library/longshore:0.1.0 linux/amd64"));
        made(&two.0);
        let (first, second) = (files(&one.0), files(&two.0));
        assert!(first.len() > 8, "{:?}", first.keys());
        for (name, bytes) in &first {
            assert!(Some(bytes) == second.get(name), "{name}");
        }
        // Nothing of an image that was there before is left in it.
        fs::write(one.0.join("out/longshore/blobs/sha256/old"), "x").unwrap();
        made(&one.0);
        assert_eq!(files(&one.0).keys().collect::<Vec<_>>(), first.keys().collect::<Vec<_>>());
    }

    /// As the image specification has it: from the index to the last layer, each is what its digest and size say.
    #[test]
    fn everything_that_is_referred_to_is_there() {
        let place = Place::new("whole");
        made(&place.0);
        let folder = place.0.join("out/longshore");
        let files = files(&folder);
        let json = |bytes: &[u8]| -> Value { serde_json::from_slice(bytes).unwrap() };
        let blob = |about: &Value| -> Vec<u8> {
            let sum = about["digest"].as_str().unwrap();
            let bytes = &files[&format!("blobs/{}", sum.replace(':', "/"))];
            assert_eq!((layout::digest(bytes).as_str(), bytes.len() as u64), (sum, about["size"].as_u64().unwrap()));
            bytes.clone()
        };
        assert_eq!(json(&files["oci-layout"])["imageLayoutVersion"], "1.0.0");
        let top = json(&files["index.json"]);
        let named = &top["manifests"][0];
        assert_eq!(named["annotations"]["io.containerd.image.name"], "docker.io/library/longshore:0.1.0");
        let manifest = json(&blob(named))["manifests"][0].clone();
        assert_eq!(manifest["platform"]["architecture"], "amd64");
        let manifest = json(&blob(&manifest));
        let config = json(&blob(&manifest["config"]));
        assert_eq!((&config["config"]["User"], &config["os"]), (&NOBODY.into(), &"linux".into()));
        assert_eq!(config["created"], "2001-09-09T01:46:40Z");
        let layers = manifest["layers"].as_array().unwrap();
        assert_eq!(layers.len(), config["rootfs"]["diff_ids"].as_array().unwrap().len());
        for (layer, diff) in layers.iter().zip(config["rootfs"]["diff_ids"].as_array().unwrap()) {
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(blob(layer).as_slice()).read_to_end(&mut plain).unwrap();
            assert_eq!(*diff, layout::digest(&plain));
        }
        // And the archive holds the same files.
        let mut archive = tar::Archive::new(fs::File::open(place.0.join("out/longshore.tar")).unwrap());
        let mut inside = BTreeMap::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            inside.insert(entry.path().unwrap().display().to_string(), bytes);
        }
        assert!(inside == files);
        let bill = json(&fs::read(place.0.join("out/longshore.cdx.json")).unwrap());
        let components = bill["components"].as_array().unwrap();
        let has = |prefix: &str| components.iter().any(|one| one["bom-ref"].as_str().unwrap().starts_with(prefix));
        assert!(has("pkg:cargo/rustls@") && has("longshore/longshore@") && has("pkg:generic/sqlite@3."));
        assert!(has("pkg:deb/debian/glibc@2.36-9%2Bdeb12u14?arch=source"), "the one of the binary, told by --libc");
        assert!(!has("pkg:cargo/proptest@"), "what tests need is not in the image");
        let references: BTreeSet<_> = components.iter().map(|one| one["bom-ref"].as_str().unwrap()).collect();
        assert_eq!(references.len(), components.len(), "each is named once");
        let binary = components.iter().find(|one| one["name"] == "usr/bin/longshore").unwrap();
        let sum = layout::digest(&fs::read(place.0.join("binary")).unwrap());
        assert_eq!(format!("sha256:{}", binary["hashes"][0]["content"].as_str().unwrap()), sum);
    }

    #[test]
    fn the_index_names_each_platform_that_has_a_binary() {
        let place = Place::new("platforms");
        fs::create_dir_all(&place.0).unwrap();
        let out = place.0.join("out").display().to_string();
        let binaries = [("amd64", 62), ("arm64", 183)].map(|(architecture, machine)| {
            let file = place.0.join(architecture);
            fs::write(&file, program(machine, 1)).unwrap();
            format!("linux/{architecture}={}", file.display())
        });
        let words = ["--binary", &binaries[0], "--binary", &binaries[1], "--out", &out];
        let report = run(&Settings::read(&words).unwrap()).unwrap();
        assert!(report.contains("the bill of linux/arm64 names no C library"), "{report}");
        let files = files(&place.0.join("out/longshore"));
        let json = |name: &str| -> Value { serde_json::from_slice(&files[name]).unwrap() };
        let index = json("index.json")["manifests"][0]["digest"].as_str().unwrap().replace(':', "/");
        let index = json(&format!("blobs/{index}"));
        let known: Vec<_> = index["manifests"].as_array().unwrap().iter().map(|one| &one["platform"]).collect();
        assert_eq!(
            known.iter().map(|one| one["architecture"].as_str().unwrap()).collect::<Vec<_>>(),
            ["amd64", "arm64"]
        );
    }
}
