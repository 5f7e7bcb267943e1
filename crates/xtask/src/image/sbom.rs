//! What an image is made of, as CycloneDX: the crates in the binary, and Debian's packages.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::debian::Taken;
use super::{Platform, said};
use crate::tree;

/// The crates that the binary is linked with on a platform, as Cargo.lock has them.
pub fn crates(platform: &Platform) -> io::Result<Vec<Value>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let target = format!("{}-unknown-linux-gnu", platform.rust());
    let words = ["metadata", "--format-version=1", "--locked", "--filter-platform", &target];
    let output = Command::new(cargo).args(words).current_dir(tree::root()).stdin(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("cargo cannot tell what the binary is made of: {}", said(&output))));
    }
    linked(&serde_json::from_slice(&output.stdout)?, "longshore")
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
    let mut found: Vec<Value> =
        packages.iter().filter(|package| seen.contains(&name(&package["id"]))).map(component).collect();
    found.sort_by_key(|one| one["purl"].to_string());
    Ok(found)
}

fn component(package: &Value) -> Value {
    let (name, version) =
        (package["name"].as_str().unwrap_or_default(), package["version"].as_str().unwrap_or_default());
    let purl = format!("pkg:cargo/{name}@{version}");
    let mut one = json!({ "type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl });
    if let Some(licence) = package["license"].as_str() {
        // The old way to write a choice, which SPDX does not know.
        one["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
    }
    one
}

/// The C library, which is in the binary; nothing where nobody tells its version.
pub fn c_library() -> Option<Value> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").stdin(Stdio::null()).output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?.trim().strip_prefix("glibc ")?.to_string();
    let purl = format!("pkg:generic/glibc@{version}");
    Some(json!({ "type": "library", "bom-ref": purl, "name": "glibc", "version": version, "purl": purl,
        "licenses": [{ "expression": "LGPL-2.1-or-later" }] }))
}

/// A package of Debian's.
pub fn package(taken: &Taken) -> Value {
    let Taken { package, version, architecture } = taken;
    let purl = format!("pkg:deb/debian/{package}@{}?arch={architecture}", version.replace('+', "%2B"));
    json!({ "type": "library", "bom-ref": purl, "name": package, "version": version, "purl": purl })
}

/// The whole bill, of an image of this name.
pub fn bill(name: &str, version: &str, created: &str, components: &[Value]) -> Value {
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": created,
            "component": { "type": "container", "bom-ref": name, "name": name, "version": version },
        },
        "components": components,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_counted_and_what_builds_or_tests_is_not() {
        let package = |name: &str| json!({ "name": name, "version": "1.0.0", "id": name, "license": "MIT/Apache-2.0" });
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
            ["deep", "linked", "top"]
        );
        assert_eq!(found[0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert!(linked(&metadata, "nobody").is_err());
    }
}
