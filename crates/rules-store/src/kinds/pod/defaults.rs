use alloc::string::String;

use api::Quantity;
use serde_json::{Map, Value, json};

use super::default;
use crate::kinds::claim;

pub(super) fn spec(spec: &mut Map<String, Value>) {
    default(spec, "restartPolicy", "Always");
    default(spec, "terminationGracePeriodSeconds", 30);
    default(spec, "dnsPolicy", "ClusterFirst");
    default(spec, "schedulerName", "default-scheduler");
    default(spec, "serviceAccountName", "default");
    default(spec, "enableServiceLinks", true);
    default(spec, "securityContext", json!({}));
    for list in ["containers", "initContainers"] {
        for item in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(item) = item {
                container(item);
            }
        }
    }
    for item in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(item) = item {
            volume(item);
        }
    }
}

fn container(container: &mut Map<String, Value>) {
    default(container, "terminationMessagePath", "/dev/termination-log");
    default(container, "terminationMessagePolicy", "File");
    default(container, "resources", json!({}));
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let (name, tag) =
        image.rsplit_once('/').map_or(image, |(_, name)| name).split_once(':').unwrap_or((image, "latest"));
    let moving = !name.contains('@') && tag == "latest" && !image.contains('@');
    default(container, "imagePullPolicy", if moving { "Always" } else { "IfNotPresent" });
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(Value::Object(probe)) = container.get_mut(name) {
            for (field, value) in
                [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
            {
                default(probe, field, value);
            }
            http_get(probe);
        }
    }
    for name in ["postStart", "preStop"] {
        if let Some(Value::Object(hook)) = container.get_mut("lifecycle").and_then(|hooks| hooks.get_mut(name)) {
            http_get(hook);
        }
    }
    for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(port) = port {
            default(port, "protocol", "TCP");
        }
    }
}

fn http_get(handler: &mut Map<String, Value>) {
    if let Some(Value::Object(get)) = handler.get_mut("httpGet") {
        default(get, "path", "/");
        default(get, "scheme", "HTTP");
    }
}

fn volume(volume: &mut Map<String, Value>) {
    // A volume that names no source is an empty directory.
    if volume.len() <= 1 {
        volume.insert("emptyDir".into(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(Value::Object(source)) = volume.get_mut(source) {
            default(source, "defaultMode", 0o644);
        }
    }
    for source in volume.get_mut("projected").and_then(|p| p["sources"].as_array_mut()).into_iter().flatten() {
        if let Some(Value::Object(token)) = source.get_mut("serviceAccountToken") {
            default(token, "expirationSeconds", 3600);
        }
    }
    if let Some(Value::Object(host)) = volume.get_mut("hostPath") {
        default(host, "type", "");
    }
    if let Some(ephemeral) = volume.get_mut("ephemeral").filter(|e| e["volumeClaimTemplate"]["spec"].is_object())
        && let Value::Object(spec) = &mut ephemeral["volumeClaimTemplate"]["spec"]
    {
        claim::spec_defaults(spec);
    }
}

/// The pod's quality of service: none asked for, everything asked for and limited alike, or something between.
pub(super) fn quality_of_service(pod: &Value) -> &'static str {
    let containers = || {
        ["containers", "initContainers"].into_iter().flat_map(|list| pod["spec"][list].as_array().into_iter().flatten())
    };
    let amount = |resources: &Value, part: &str, what: &str| {
        resources[part][what].as_str().map(|text| Quantity(text.into())).and_then(|quantity| quantity.bytes().ok())
    };
    let (mut any, mut full) = (false, true);
    for container in containers() {
        for what in ["cpu", "memory"] {
            let resources = &container["resources"];
            let (request, limit) = (amount(resources, "requests", what), amount(resources, "limits", what));
            any |= request.is_some() || limit.is_some();
            full &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, full) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
