//! `longshore migrate plan` on the dump of a large cluster: how long it takes, and how much memory.

use std::fmt::Write;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::figures::Figures;
use super::life::Scratch;
use super::process::peak;

/// What a large cluster has.
const VOLUMES: usize = 50_000;
const NODES: usize = 500;
const ROUNDS: usize = 3;
const TIME: &str = "time, s";
const MEMORY: &str = "most memory, MB";

/// Measures and reports.
pub fn run(binary: &str) -> io::Result<String> {
    let scratch = Scratch::new()?;
    let mut figures = Figures::default();
    let mut report = format!("{VOLUMES} volumes and {NODES} nodes; median of {ROUNDS}\n");
    for format in ["yaml", "json"] {
        let path = scratch.0.join(format!("dump.{format}"));
        write_dump(&path, format == "json")?;
        for _ in 0..ROUNDS {
            let began = Instant::now();
            let done = plan(binary, &path).stdout(Stdio::null()).status()?;
            figures.add(TIME, format, began.elapsed().as_secs_f64());
            if !done.success() {
                return Err(io::Error::other(format!("longshore migrate plan ended with {done}")));
            }
        }
        figures.add(MEMORY, format, peak(&mut plan(binary, &path))? / 1024.0);
        let size = fs::metadata(&path)?.len() as f64 / 1e6;
        let (time, memory) = (figures.shown(TIME, format), figures.shown(MEMORY, format));
        let _ = writeln!(report, "{format}, {size:.0} MB: {TIME} {time}; {MEMORY} {memory}");
        fs::remove_file(&path)?;
    }
    Ok(report)
}

fn plan(binary: &str, dump: &Path) -> Command {
    let mut command = Command::new(binary);
    command.args(["migrate", "plan"]).arg(dump);
    command
}

/// As kubectl prints it: one list of everything.
fn write_dump(path: &Path, json: bool) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let objects = (0..NODES).map(node).chain((0..VOLUMES).map(volume));
    if json {
        writeln!(out, "{{\n\"apiVersion\": \"v1\",\n\"items\": [")?;
        for (index, object) in objects.enumerate() {
            let comma = if index == 0 { "" } else { "," };
            writeln!(out, "{comma}{}", serde_json::to_string_pretty(&object)?)?;
        }
        writeln!(out, "],\n\"kind\": \"List\"\n}}")?;
    } else {
        let list = json!({ "apiVersion": "v1", "items": objects.collect::<Vec<_>>(), "kind": "List" });
        let mut text = String::new();
        print(&mut text, &list, 0);
        out.write_all(text.as_bytes())?;
    }
    out.flush()
}

/// Collections as kubectl prints them in YAML: keys in order, lists as far left as their key.
fn print(text: &mut String, value: &Value, indent: usize) {
    let margin = " ".repeat(indent);
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let _ = write!(text, "{margin}{key}:");
                match value {
                    Value::Object(_) => {
                        text.push('\n');
                        print(text, value, indent + 2);
                    }
                    Value::Array(_) => {
                        text.push('\n');
                        print(text, value, indent);
                    }
                    scalar => {
                        let _ = writeln!(text, " {}", word(scalar));
                    }
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                let start = text.len();
                match item {
                    Value::Object(_) | Value::Array(_) => print(text, item, indent + 2),
                    scalar => {
                        let _ = writeln!(text, "{margin}  {}", word(scalar));
                    }
                }
                text.replace_range(start + indent..=start + indent, "-");
            }
        }
        scalar => {
            let _ = writeln!(text, "{margin}{}", word(scalar));
        }
    }
}

/// Without quotes where none are needed.
fn word(value: &Value) -> String {
    let plain = |text: &&str| {
        let letters = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"./:-".contains(&byte));
        letters && *text != "yes" && text.bytes().any(|byte| byte.is_ascii_alphabetic()) && !text.contains('T')
    };
    value.as_str().filter(plain).map_or_else(|| value.to_string(), String::from)
}

fn zone(index: usize) -> char {
    ['a', 'b', 'c'][index % 3]
}

fn volume(index: usize) -> Value {
    let zone = format!("us-west-2{}", zone(index));
    let is = |key: &str, value: &str| json!({ "key": key, "operator": "In", "values": [value] });
    let places = [is("topology.kubernetes.io/zone", &zone), is("topology.kubernetes.io/region", "us-west-2")];
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "annotations": {
                "kubernetes.io/createdby": "aws-ebs-dynamic-provisioner",
                "pv.kubernetes.io/bound-by-controller": "yes",
                "pv.kubernetes.io/provisioned-by": "kubernetes.io/aws-ebs",
            },
            "creationTimestamp": "2021-03-04T05:06:07Z",
            "finalizers": ["kubernetes.io/pv-protection"],
            "labels": { "topology.kubernetes.io/region": "us-west-2", "topology.kubernetes.io/zone": zone },
            "name": format!("pvc-{index:08x}-1b1b-4c2c-8d3d-4e4e4e4e4e4e"),
            "resourceVersion": index.to_string(),
            "uid": format!("{index:08x}-5b1b-4c2c-8d3d-5f5f5f5f5f5f"),
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "awsElasticBlockStore": { "fsType": "ext4", "volumeID": format!("aws://{zone}/vol-{index:017x}") },
            "capacity": { "storage": "10Gi" },
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": format!("data-app-{index}"),
                "namespace": format!("shop-{}", index % 100),
                "resourceVersion": index.to_string(),
                "uid": format!("{index:08x}-1b1b-4c2c-8d3d-6a6a6a6a6a6a"),
            },
            "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": places }] } },
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": "gp2",
            "volumeMode": "Filesystem",
        },
        "status": { "phase": "Bound" },
    })
}

fn node(index: usize) -> Value {
    let driver = json!({
        "name": "ebs.csi.aws.com",
        "nodeID": format!("i-{}{index:017x}", zone(index)),
        "topologyKeys": ["topology.ebs.csi.aws.com/zone"],
    });
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {
            "annotations": { "storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd" },
            "name": format!("node-{index}"),
        },
        "spec": { "drivers": [driver] },
    })
}
