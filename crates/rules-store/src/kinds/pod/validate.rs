use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};

use serde_json::{Value, json};

use super::{container, sources};
use crate::FieldProblem;
use crate::meta::carry_part;
use crate::validate::{Report, is_label, items};

pub(super) fn pod(report: &mut Report, object: &Value) {
    let spec = &object["spec"];
    if items(&spec["containers"]).next().is_none() {
        report.required("spec.containers", "a pod needs at least one container");
    }
    report.one_of(object, "spec.restartPolicy", &["Always", "OnFailure", "Never"]);
    volumes(report, &spec["volumes"]);
    let volumes: BTreeSet<&str> = items(&spec["volumes"]).filter_map(|volume| volume["name"].as_str()).collect();
    let mut names = BTreeSet::new();
    for list in ["containers", "initContainers"] {
        for (at, container) in items(&spec[list]).enumerate() {
            let path = format!("spec.{list}[{at}]");
            // Containers and init containers share their names.
            name(report, &mut names, format!("{path}.name"), &container["name"], label);
            container::check(report, &path, container, &volumes);
        }
    }
}

/// A name that must be there, be well formed and stand there once.
pub(super) fn name<'a>(
    report: &mut Report,
    seen: &mut BTreeSet<&'a str>,
    path: String,
    name: &'a Value,
    wrong: fn(&str) -> Option<&'static str>,
) {
    let name = name.as_str().unwrap_or_default();
    if name.is_empty() {
        return report.required(path, "it must be set");
    }
    if let Some(wrong) = wrong(name) {
        report.invalid(path, format!("{name:?}: {wrong}"));
    } else if !seen.insert(name) {
        report.add(path, FieldProblem::Duplicate, format!("{name:?}"));
    }
}

/// What Kubernetes says of a name that is no DNS label.
fn label(name: &str) -> Option<&'static str> {
    match name {
        name if is_label(name) => None,
        name if name.len() > 63 => Some("must be no more than 63 characters"),
        _others => Some(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
             end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        ),
    }
}

fn volumes(report: &mut Report, volumes: &Value) {
    let mut names = BTreeSet::new();
    for (at, volume) in items(volumes).enumerate() {
        name(report, &mut names, format!("spec.volumes[{at}].name"), &volume["name"], label);
        if volume.as_object().is_some_and(|fields| fields.len() > 2) {
            let message = "a volume has exactly one source";
            report.add(format!("spec.volumes[{at}]"), FieldProblem::Forbidden, message);
        }
        let claim = &volume["persistentVolumeClaim"];
        if claim.is_object() && claim["claimName"].as_str().unwrap_or_default().is_empty() {
            report.required(format!("spec.volumes[{at}].persistentVolumeClaim.claimName"), "it must be set");
        }
        sources::volume(report, &format!("spec.volumes[{at}]"), volume);
        let csi = &volume["csi"];
        if csi.is_object() {
            report.driver(&csi["driver"], format!("spec.volumes[{at}].csi.driver"));
        }
    }
}

/// A pod's spec stays, but for images, a deadline, more tolerations and fewer scheduling gates.
pub(super) fn update(report: &mut Report, old: &Value, new: &Value) {
    let (before, mut after) = (&old["spec"], new["spec"].clone());
    for list in ["containers", "initContainers"] {
        carry_images(&before[list], &mut after[list]);
        // Indexing puts a null where there was nothing.
        if after[list].is_null()
            && let Value::Object(map) = &mut after
        {
            map.remove(list);
        }
    }
    carry_part(before, &mut after, "activeDeadlineSeconds");
    let kept = |list: &str, fewer: &Value, more: &Value| -> bool {
        let more: BTreeSet<String> = items(&more[list]).map(Value::to_string).collect();
        items(&fewer[list]).all(|item| more.contains(&item.to_string()))
    };
    if kept("tolerations", before, &after) {
        carry_part(before, &mut after, "tolerations");
    }
    if kept("schedulingGates", &after, before) {
        carry_part(before, &mut after, "schedulingGates");
    }
    // A grace that means "at once, but through the node" may be turned into the second it stands for.
    if before["terminationGracePeriodSeconds"].as_i64().is_some_and(|s| s < 0)
        && after["terminationGracePeriodSeconds"] == json!(1)
    {
        carry_part(before, &mut after, "terminationGracePeriodSeconds");
    }
    if *before != after {
        report.add(
            "spec",
            FieldProblem::Forbidden,
            "a pod's spec cannot change, except container images, activeDeadlineSeconds and more tolerations; \
             nodeName is set by binding",
        );
    }
}

fn carry_images(before: &Value, after: &mut Value) {
    let Value::Array(after) = after else { return };
    for (old, new) in items(before).zip(after) {
        if new["name"] == old["name"] && new["image"].as_str().is_some_and(|image| !image.is_empty()) {
            let image: String = old["image"].as_str().unwrap_or_default().into();
            new["image"] = image.into();
        }
    }
}
