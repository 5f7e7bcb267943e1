//! What an image is made of, as CycloneDX: the binary, the crates and other libraries in it, and Debian's packages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::debian::Taken;
use super::layout::digest;
use super::{Platform, VERSION, failed, said};
use crate::tree;

/// Where crates come from that are not of this project.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The crates that the binary is linked with on a platform, as Cargo.lock has them, and the C libraries they bring.
pub fn crates(platform: &Platform) -> io::Result<Vec<Value>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let target = format!("{}-unknown-linux-gnu", platform.rust());
    let words = ["metadata", "--format-version=1", "--locked", "--filter-platform", &target];
    let output = Command::new(cargo).args(words).current_dir(tree::root()).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("cargo cannot tell what the binary is made of: {}", said(&output))));
    }
    let lock = tree::root().join("Cargo.lock");
    let lock = fs::read_to_string(&lock).map_err(|error| failed("read", &lock, error))?;
    let (sums, mut found) = (sums(&lock), Vec::new());
    for package in linked(&serde_json::from_slice(&output.stdout)?, "longshore")? {
        found.push(component(&package, &sums));
        found.extend(bundled(&package)?);
    }
    found.sort_by_key(|one| one["bom-ref"].to_string());
    Ok(found)
}

/// The sums of the crates' archives that a Cargo.lock has, by name and version.
fn sums(lock: &str) -> BTreeMap<(String, String), String> {
    let mut sums = BTreeMap::new();
    for block in lock.split("[[package]]") {
        let field = |name: &str| {
            let mut fields = block.lines().filter_map(|line| line.split_once(" = "));
            fields.find(|(key, _)| *key == name).map(|(_, value)| value.trim_matches('"').to_string())
        };
        if let (Some(name), Some(version), Some(sum)) = (field("name"), field("version"), field("checksum")) {
            sums.insert((name, version), sum);
        }
    }
    sums
}

/// The packages that one is linked with, itself among them. What only builds or tests need is not.
fn linked(metadata: &Value, root: &str) -> io::Result<Vec<Value>> {
    let all = |of: &Value| of.as_array().cloned().unwrap_or_default();
    let packages = all(&metadata["packages"]);
    let nodes = all(&metadata["resolve"]["nodes"]);
    let name = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let nodes: BTreeMap<String, &Value> = nodes.iter().map(|node| (name(&node["id"]), node)).collect();
    let start = packages.iter().find(|package| package["name"] == root).map(|package| name(&package["id"]));
    let start = start.ok_or_else(|| io::Error::other(format!("cargo knows no package {root}")))?;
    let (mut seen, mut next) = (BTreeSet::new(), vec![start]);
    while let Some(id) = next.pop() {
        let Some(node) = nodes.get(&id) else { continue };
        if !seen.insert(id) {
            continue;
        }
        for dependency in all(&node["deps"]) {
            if all(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null()) {
                next.push(name(&dependency["pkg"]));
            }
        }
    }
    Ok(packages.into_iter().filter(|package| seen.contains(&name(&package["id"]))).collect())
}

/// A crate. One of this project is in no registry, where its name may be somebody else's.
fn component(package: &Value, sums: &BTreeMap<(String, String), String>) -> Value {
    let text = |field: &str| package[field].as_str().unwrap_or_default().to_string();
    let (name, version) = (text("name"), text("version"));
    let mut one = if package["source"] == REGISTRY {
        library(&name, &version, &format!("pkg:cargo/{name}@{version}"))
    } else {
        let reference = format!("longshore/{name}@{version}");
        json!({ "type": "library", "bom-ref": reference, "group": "longshore", "name": name, "version": version })
    };
    if let Some(sum) = sums.get(&(name, version)) {
        one["hashes"] = hashes(sum);
    }
    if let Some(licence) = package["license"].as_str() {
        // The old way to write a choice, which SPDX does not know.
        one["licenses"] = licenses(&licence.replace('/', " OR "));
    }
    one
}

/// The C library whose source a crate brings and builds. A crate that links one and is not known here is refused, so
/// that none is forgotten.
fn bundled(package: &Value) -> io::Result<Option<Value>> {
    let text = |field: &str| package[field].as_str().unwrap_or_default();
    match (text("name"), package["links"].as_str()) {
        // They say so to be linked once; what ring builds is its own.
        (_, None) | ("k8s-openapi" | "ring" | "defmt", Some(_)) => Ok(None),
        ("libsqlite3-sys", Some(_)) => {
            let folder = Path::new(text("manifest_path")).parent().unwrap_or_else(|| Path::new(""));
            let header = folder.join("sqlite3/sqlite3.h");
            let words = fs::read_to_string(&header).map_err(|error| failed("read", &header, error))?;
            let version = words
                .lines()
                .find_map(|line| line.strip_prefix("#define SQLITE_VERSION "))
                .ok_or_else(|| io::Error::other(format!("{} tells no version of SQLite", header.display())))?;
            let version = version.trim().trim_matches('"');
            let mut one = library("sqlite", version, &format!("pkg:generic/sqlite@{version}"));
            one["licenses"] = licenses("blessing");
            Ok(Some(one))
        }
        (name, Some(library)) => Err(io::Error::other(format!(
            "the crate {name} links {library}; say in the bill's source whether it brings that library"
        ))),
    }
}

/// The program itself, as it is in the image of a platform.
pub fn binary(platform: &Platform, bytes: &[u8]) -> Value {
    let Platform { os, architecture } = platform;
    let sum = digest(bytes);
    json!({ "type": "file", "bom-ref": format!("usr/bin/longshore {os}/{architecture}"), "name": "usr/bin/longshore",
        "version": VERSION, "description": format!("for {os}/{architecture}"), "hashes": hashes(&sum),
        "licenses": licenses("Apache-2.0") })
}

/// Rust's standard library, which is in each binary; the compiler leaves its version there.
pub fn standard_library(binary: &[u8]) -> Option<Value> {
    let words = between(binary, b"rustc version ", b'\0')?;
    let version = words.split(' ').next()?;
    let mut one = library("rust-std", version, &format!("pkg:generic/rust-std@{version}"));
    one["licenses"] = licenses("MIT OR Apache-2.0");
    Some(one)
}

/// The C library of an archive that programs are linked with, by what it prints of itself. Debian and Ubuntu say there
/// which of their versions it is, with what they mended in it.
pub fn c_library(archive: &[u8]) -> Option<Value> {
    let words = between(archive, b"GNU C Library (", b'\n')?;
    let (vendor, rest) = words.split_once(") stable release version ")?;
    let mut one = match vendor.split_once(" GLIBC ") {
        Some((vendor @ ("Debian" | "Ubuntu"), version)) => {
            let (vendor, escaped) = (vendor.to_lowercase(), version.replace('+', "%2B"));
            library("glibc", version, &format!("pkg:deb/{vendor}/glibc@{escaped}?arch=source"))
        }
        Some(_) | None => {
            let version = rest.trim_end_matches('.');
            library("glibc", version, &format!("pkg:generic/glibc@{version}"))
        }
    };
    one["licenses"] = licenses("LGPL-2.1-or-later");
    Some(one)
}

/// What follows some words in a file, up to this byte.
fn between(bytes: &[u8], words: &[u8], end: u8) -> Option<String> {
    let start = bytes.windows(words.len()).position(|window| window == words)? + words.len();
    let size = bytes[start..].iter().take(200).position(|byte| *byte == end)?;
    String::from_utf8(bytes[start..start + size].to_vec()).ok()
}

/// A package of Debian's.
pub fn package(taken: &Taken) -> Value {
    let Taken { package, version, architecture, digest } = taken;
    let purl = format!("pkg:deb/debian/{package}@{}?arch={architecture}", version.replace('+', "%2B"));
    let mut one = library(package, version, &purl);
    one["hashes"] = hashes(digest);
    one
}

fn library(name: &str, version: &str, purl: &str) -> Value {
    json!({ "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl })
}

fn licenses(expression: &str) -> Value {
    json!([{ "expression": expression }])
}

/// Of a SHA-256, with or without what says so.
fn hashes(sum: &str) -> Value {
    json!([{ "alg": "SHA-256", "content": sum.trim_start_matches("sha256:") }])
}

/// The whole bill, of an image of this name. Its number is of what it says, so that the same bill has the same.
pub fn bill(name: &str, version: &str, created: &str, components: &[Value]) -> Value {
    let mut bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": created,
            "component": { "type": "container", "bom-ref": name, "name": name, "version": version },
        },
        "components": components,
    });
    let sum = digest(bill.to_string().as_bytes());
    let sum = sum.trim_start_matches("sha256:");
    // Version 8 of RFC 9562, which leaves all but two digits to whoever makes it.
    bill["serialNumber"] =
        format!("urn:uuid:{}-{}-8{}-8{}-{}", &sum[..8], &sum[8..12], &sum[12..15], &sum[15..18], &sum[18..30]).into();
    bill
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_counted_and_what_builds_or_tests_is_not() {
        let package = |name: &str| json!({ "name": name, "version": "1.0.0", "id": name });
        let needs = |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let packages = ["top", "linked", "deep", "builds", "tests", "other"].map(package);
        let metadata = json!({
            "packages": packages,
            "resolve": { "nodes": [
                { "id": "top", "deps": [
                    needs("linked", Value::Null), needs("builds", "build".into()), needs("tests", "dev".into()),
                ] },
                { "id": "linked", "deps": [needs("deep", Value::Null), needs("top", Value::Null)] },
                { "id": "deep", "deps": [] },
            ] },
        });
        let found = linked(&metadata, "top").unwrap();
        assert_eq!(
            found.iter().map(|one| one["name"].as_str().unwrap()).collect::<Vec<_>>(),
            ["top", "linked", "deep"]
        );
        assert!(linked(&metadata, "nobody").is_err());
    }

    #[test]
    fn a_crate_of_the_registry_has_its_address_and_sum_and_one_of_ours_has_not() {
        let lock = "version = 4\n\n[[package]]\nname = \"api\"\nversion = \"0.1.0\"\n\n\
                    [[package]]\nname = \"api\"\nversion = \"2.0.0\"\nsource = \"s\"\nchecksum = \"ab12\"\n";
        let of = |version: &str, source: Value| {
            let package = json!({ "name": "api", "version": version, "source": source, "license": "MIT/Apache-2.0" });
            component(&package, &sums(lock))
        };
        let theirs = of("2.0.0", REGISTRY.into());
        assert_eq!(theirs["purl"], "pkg:cargo/api@2.0.0");
        assert_eq!(theirs["hashes"], json!([{ "alg": "SHA-256", "content": "ab12" }]));
        assert_eq!(theirs["licenses"][0]["expression"], "MIT OR Apache-2.0");
        let ours = of("0.1.0", Value::Null);
        assert_eq!((&ours["purl"], &ours["hashes"]), (&Value::Null, &Value::Null));
        assert_eq!((&ours["group"], &ours["bom-ref"]), (&"longshore".into(), &"longshore/api@0.1.0".into()));
    }

    #[test]
    fn a_crate_that_links_what_nobody_knows_is_refused() {
        let of = |name: &str, links: Value| bundled(&json!({ "name": name, "links": links }));
        assert!(of("serde", Value::Null).unwrap().is_none());
        assert!(of("ring", "ring_core".into()).unwrap().is_none());
        assert!(of("openssl-sys", "openssl".into()).unwrap_err().to_string().contains("openssl-sys links openssl"));
    }

    #[test]
    fn libraries_that_no_crate_brings_say_themselves_what_they_are() {
        let purl = |one: Option<Value>| one.map(|one| one["purl"].as_str().unwrap().to_string());
        let glibc = |vendor: &str| {
            purl(c_library(format!("\0GNU C Library ({vendor}) stable release version 2.36.\nmore").as_bytes()))
        };
        assert_eq!(glibc("Debian GLIBC 2.36-9+b1").unwrap(), "pkg:deb/debian/glibc@2.36-9%2Bb1?arch=source");
        assert_eq!(glibc("Ubuntu GLIBC 2.39-0ubuntu8").unwrap(), "pkg:deb/ubuntu/glibc@2.39-0ubuntu8?arch=source");
        assert_eq!(glibc("GNU libc").unwrap(), "pkg:generic/glibc@2.36");
        assert_eq!(c_library(b"musl"), None);
        let std = purl(standard_library(b"\0rustc version 1.95.0 (59807616e 2026-04-14)\0"));
        assert_eq!(std.unwrap(), "pkg:generic/rust-std@1.95.0");
        assert_eq!(standard_library(b"C"), None);
    }

    #[test]
    fn the_number_of_a_bill_is_of_what_it_says() {
        let number = |created: &str| bill("x", "1", created, &[])["serialNumber"].as_str().unwrap().to_string();
        assert_eq!(number("then"), number("then"));
        assert_ne!(number("then"), number("now"));
        let digits = number("now").replacen("urn:uuid:", "", 1);
        let sizes: Vec<usize> = digits.split('-').map(str::len).collect();
        assert_eq!(sizes, [8, 4, 4, 4, 12], "{digits}");
    }
}
