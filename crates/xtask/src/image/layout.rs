//! An image as a folder (the OCI image layout) and as an archive of that folder.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tar::{Builder, Header};

use super::layer::Packed;
use super::{Platform, failed};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// What an image is on one platform.
pub struct PlatformImage {
    /// What it runs on.
    pub platform: Platform,
    /// From the lowest to the uppermost, each with a word on what it is.
    pub layers: Vec<(&'static str, Packed)>,
    /// Who its program runs as, where nobody says otherwise.
    pub user: &'static str,
    /// What is told of it.
    pub labels: BTreeMap<&'static str, String>,
}

/// What an image is called, as runtimes look it up: `docker.io/library/longshore` and `0.1.0`.
pub struct Name {
    pub repository: String,
    pub tag: String,
}

impl Name {
    /// As containerd knows it.
    pub fn full(&self) -> String {
        format!("{}:{}", self.repository, self.tag)
    }
}

/// `sha256:` and the sum.
pub fn digest(bytes: &[u8]) -> String {
    let sum: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{sum}")
}

/// Where blobs are put, and in what order they were.
struct Blobs<'a> {
    folder: &'a Path,
}

impl Blobs<'_> {
    /// Keeps a blob and returns what refers to it.
    fn put(&self, kind: &str, bytes: &[u8]) -> io::Result<Value> {
        let sum = digest(bytes);
        let path = self.folder.join("blobs").join(sum.replace(':', "/"));
        fs::write(&path, bytes).map_err(|error| failed("write", &path, error))?;
        Ok(json!({ "mediaType": kind, "digest": sum, "size": bytes.len() }))
    }

    fn put_json(&self, kind: &str, value: &Value) -> io::Result<Value> {
        self.put(kind, value.to_string().as_bytes())
    }
}

/// Writes the layout of one name into a folder, in place of what was there: an index of the platforms there are.
pub fn write(folder: &Path, name: &Name, images: &[PlatformImage], date: u64) -> io::Result<()> {
    let sums = folder.join("blobs/sha256");
    fs::create_dir_all(&sums).map_err(|error| failed("make", &sums, error))?;
    for old in fs::read_dir(&sums).map_err(|error| failed("read", &sums, error))? {
        let old = old?.path();
        fs::remove_file(&old).map_err(|error| failed("remove", &old, error))?;
    }
    let blobs = Blobs { folder };
    let mut manifests = Vec::new();
    // What `docker load` reads, which knows one platform.
    let mut first = None;
    for image in images {
        let (manifest, known) = put_image(&blobs, image, date)?;
        first.get_or_insert(known);
        manifests.push(manifest);
    }
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests });
    let mut index = blobs.put_json(INDEX, &index)?;
    index["annotations"] = json!({
        "io.containerd.image.name": name.full(),
        "org.opencontainers.image.ref.name": name.tag,
        "org.opencontainers.image.created": time(date),
    });
    let top = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [index] });
    let mut docker = first.unwrap_or_default();
    docker["RepoTags"] = json!([name.full()]);
    let files = [
        ("index.json", top.to_string()),
        ("oci-layout", json!({ "imageLayoutVersion": "1.0.0" }).to_string()),
        ("manifest.json", json!([docker]).to_string()),
    ];
    for (file, text) in files {
        let path = folder.join(file);
        fs::write(&path, text).map_err(|error| failed("write", &path, error))?;
    }
    Ok(())
}

/// The manifest of one platform, and the same for Docker.
fn put_image(blobs: &Blobs<'_>, image: &PlatformImage, date: u64) -> io::Result<(Value, Value)> {
    let mut layers = Vec::new();
    for (_, layer) in &image.layers {
        layers.push(blobs.put(LAYER, &layer.bytes)?);
    }
    let history = |what: &str| json!({ "created": time(date), "created_by": what });
    let config = json!({
        "created": time(date),
        "architecture": image.platform.architecture,
        "os": image.platform.os,
        "config": {
            "User": image.user,
            "Entrypoint": ["/usr/bin/longshore"],
            "Env": ["PATH=/usr/sbin:/usr/bin"],
            "WorkingDir": "/",
            "Labels": image.labels,
        },
        "rootfs": {
            "type": "layers",
            "diff_ids": image.layers.iter().map(|(_, layer)| &layer.diff_id).collect::<Vec<_>>(),
        },
        "history": image.layers.iter().map(|(what, _)| history(what)).collect::<Vec<_>>(),
    });
    let config = blobs.put_json(CONFIG, &config)?;
    let path = |blob: &Value| format!("blobs/{}", blob["digest"].as_str().unwrap_or_default().replace(':', "/"));
    let docker = json!({ "Config": path(&config), "Layers": layers.iter().map(path).collect::<Vec<_>>() });
    let manifest = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers,
        "annotations": image.labels });
    let mut manifest = blobs.put_json(MANIFEST, &manifest)?;
    manifest["platform"] = json!({ "os": image.platform.os, "architecture": image.platform.architecture });
    Ok((manifest, docker))
}

/// Packs a layout into one file, as `ctr images import` and `docker load` take it; returns how large it is.
pub fn archive(folder: &Path, file: &Path, date: u64) -> io::Result<u64> {
    let mut found = BTreeMap::new();
    list(folder, "", &mut found)?;
    let out = File::create(file).map_err(|error| failed("write", file, error))?;
    let mut archive = Builder::new(BufWriter::new(out));
    for (path, size) in found {
        let mut header = Header::new_gnu();
        header.set_mtime(date);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mode(0o644);
        header.set_size(size);
        let at = folder.join(&path);
        archive.append_data(&mut header, &path, File::open(&at).map_err(|error| failed("read", &at, error))?)?;
    }
    archive.into_inner()?.flush()?;
    Ok(fs::metadata(file)?.len())
}

fn list(folder: &Path, prefix: &str, found: &mut BTreeMap<String, u64>) -> io::Result<()> {
    for entry in fs::read_dir(folder).map_err(|error| failed("read", folder, error))? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let about = entry.metadata()?;
        if about.is_dir() {
            list(&entry.path(), &format!("{path}/"), found)?;
        } else {
            found.insert(path, about.len());
        }
    }
    Ok(())
}

/// Seconds since 1970 as RFC 3339 writes them.
pub fn time(seconds: u64) -> String {
    api::Time::from_unix_millis(seconds * 1000).0
}
