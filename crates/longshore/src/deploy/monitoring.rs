//! How Prometheus finds the sidecars of a driver, and a dashboard of what they tell.

use serde_json::{Value, json};

use super::check::scalar;
use super::objects::Plan;
use super::workload::PORT_NAME;

/// A panel: its title, the unit of its axis, and its query.
type Panel = (&'static str, &'static str, &'static str);

/// Each in a row of its own.
const PANELS: [Panel; 8] = [
    (
        "Calls to the driver",
        "reqps",
        "sum by (method_name, grpc_status_code) \
         (rate(csi_sidecar_operations_seconds_count{driver_name=\"$driver\"}[5m]))",
    ),
    (
        "Calls to the driver, 99 of 100 take less",
        "s",
        "histogram_quantile(0.99, sum by (le, method_name) \
         (rate(csi_sidecar_operations_seconds_bucket{driver_name=\"$driver\"}[5m])))",
    ),
    (
        "Volumes made, 99 of 100 take less",
        "s",
        "histogram_quantile(0.99, sum by (le, class) \
         (rate(controller_persistentvolumeclaim_provision_duration_seconds_bucket[5m])))",
    ),
    (
        "Attempts to make a volume that failed",
        "ops",
        "sum by (class) (rate(controller_persistentvolumeclaim_provision_failed_total[5m]))",
    ),
    (
        "Attempts to delete a volume that failed",
        "ops",
        "sum by (class) (rate(controller_persistentvolume_delete_failed_total[5m]))",
    ),
    ("Claims without a volume", "short", "sum by (namespace, storage_class) (pv_collector_unbound_pvc_count)"),
    ("Volumes attached and to be attached", "short", "sum by (state) (attachdetach_controller_total_volumes)"),
    ("Who leads", "short", "leader_election_master_status"),
];

/// What finds the sidecars, and a ConfigMap with a dashboard, where Grafana's sidecar looks for them.
pub fn objects(plan: &Plan) -> String {
    let (name, namespace) = (scalar(&plan.name), scalar(&plan.namespace));
    let dashboard = serde_json::to_string_pretty(&dashboard(&plan.driver)).unwrap_or_default();
    let dashboard = dashboard.replace('\n', "\n    ");
    let found = scraped(&plan.name, &plan.namespace);
    format!(
        "{found}---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}-dashboard\n  namespace: {namespace}\n  \
         labels: {{app.kubernetes.io/name: {name}, grafana_dashboard: \"1\"}}\n\
         data:\n  longshore.json: |\n    {dashboard}\n"
    )
}

/// A Service and a ServiceMonitor, so that the Prometheus operator scrapes the pods of this name.
pub fn scraped(name: &str, namespace: &str) -> String {
    let (name, namespace) = (scalar(name), scalar(namespace));
    let labels = format!("app.kubernetes.io/name: {name}");
    format!(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}-metrics\n  namespace: {namespace}\n  \
         labels: {{{labels}}}\nspec:\n  clusterIP: None\n  selector: {{{labels}}}\n  \
         ports:\n  - {{name: {PORT_NAME}, port: 80, targetPort: {PORT_NAME}}}\n---\n\
         apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata:\n  name: {name}\n  \
         namespace: {namespace}\n  labels: {{{labels}}}\nspec:\n  selector:\n    matchLabels: {{{labels}}}\n  \
         endpoints:\n  - {{port: {PORT_NAME}, path: /metrics}}\n"
    )
}

/// The dashboard of one driver.
pub fn dashboard(driver: &str) -> Value {
    let panel = |(at, (title, unit, query)): (usize, &Panel)| {
        json!({
            "id": at + 1, "type": "timeseries", "title": title,
            "gridPos": { "x": 12 * (at % 2), "y": 8 * (at / 2), "w": 12, "h": 8 },
            "datasource": { "type": "prometheus", "uid": "${datasource}" },
            "fieldConfig": { "defaults": { "unit": unit }, "overrides": [] },
            "targets": [{ "refId": "A", "expr": query }],
        })
    };
    json!({
        "title": format!("CSI driver {driver}"), "uid": null, "schemaVersion": 39, "editable": true, "refresh": "30s",
        "time": { "from": "now-1h", "to": "now" },
        "templating": { "list": [
            { "name": "datasource", "type": "datasource", "query": "prometheus" },
            { "name": "driver", "type": "constant", "query": driver },
        ] },
        "panels": PANELS.iter().enumerate().map(panel).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Words of a query that are followed by neither a bracket nor an equals sign, and are no label or function.
    fn named(query: &str) -> BTreeSet<String> {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words =
            query.split(|c: char| !word(c)).filter(|word| word.contains('_') && word.contains(char::is_alphabetic));
        let labels = ["method_name", "grpc_status_code", "driver_name", "storage_class", "histogram_quantile"];
        words.filter(|word| !labels.contains(word)).map(String::from).collect()
    }

    #[test]
    fn what_is_printed_is_yaml_with_a_dashboard_in_json() {
        use clap::Parser as _;
        let words = ["longshore", "deploy", "--driver-name=csi.example.com", "--driver-image=x", "--monitoring"];
        let crate::args::Command::Deploy(args) = crate::args::Cli::try_parse_from(words).unwrap().command else {
            panic!()
        };
        let text = crate::deploy::manifests(&args.driver).unwrap();
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        let of = |kind: &str| objects.iter().find(|object| object["kind"] == kind).unwrap();
        let monitor = &of("ServiceMonitor")["spec"];
        assert_eq!(monitor["endpoints"][0]["path"], "/metrics");
        // The Service, the pods it selects and the monitor mean each other.
        let (service, labels) = (of("Service"), &monitor["selector"]["matchLabels"]);
        assert_eq!(&service["metadata"]["labels"], labels);
        let pods = &of("StatefulSet")["spec"]["template"];
        let selected = service["spec"]["selector"].as_object().unwrap();
        assert!(selected.iter().all(|(key, value)| pods["metadata"]["labels"][key] == *value));
        assert_eq!(service["spec"]["ports"][0]["name"], monitor["endpoints"][0]["port"]);
        let dashboard: Value =
            serde_json::from_str(of("ConfigMap")["data"]["longshore.json"].as_str().unwrap()).unwrap();
        assert_eq!(dashboard["panels"].as_array().unwrap().len(), PANELS.len());
    }

    #[test]
    fn every_metric_of_the_dashboard_is_told_by_somebody() {
        let known = crate::metrics_told::served();
        let mut looked_at = 0;
        for (title, _, query) in PANELS {
            for name in named(query) {
                let base = ["_bucket", "_count"].iter().find_map(|end| name.strip_suffix(end));
                assert!(
                    known.contains(&name) || base.is_some_and(|base| known.contains(base)),
                    "{title}: nobody tells {name}; there are {known:?}"
                );
                looked_at += 1;
            }
        }
        assert_eq!(looked_at, PANELS.len());
    }
}
