use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::vec::Vec;

use api::names;
use serde_json::{Value, json};
use wire::messages::{CSI_DRIVER, CSI_DRIVER_SPEC, DRIVER_TOKEN_REQUEST};

use super::{KindRules, Names, default};
use crate::fields::meta::META;
use crate::fields::tables;
use crate::table::{AGE, NAME, flag, text, texts};
use crate::validate::{Report, is_subdomain, items};
use crate::{FieldProblem, meta};

pub(super) static RULES: KindRules = KindRules {
    defaults: |driver| {
        let spec = meta::object_at(driver, "spec");
        default(spec, "attachRequired", true);
        default(spec, "podInfoOnMount", false);
        default(spec, "storageCapacity", false);
        default(spec, "requiresRepublish", false);
        default(spec, "seLinuxMount", false);
        default(spec, "preventPodSchedulingIfMissing", false);
        default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
        default(spec, "volumeLifecycleModes", json!(["Persistent"]));
    },
    validate,
    validate_update: |report, old, new| {
        report.immutable(old, new, "spec.attachRequired");
        report.immutable(old, new, "spec.volumeLifecycleModes");
    },
    columns: &[
        NAME,
        flag("AttachRequired", |row| row.object["spec"]["attachRequired"].as_bool().unwrap_or(true).into()),
        flag("PodInfoOnMount", |row| row.object["spec"]["podInfoOnMount"].as_bool().unwrap_or(false).into()),
        flag("StorageCapacity", |row| row.object["spec"]["storageCapacity"].as_bool().unwrap_or(false).into()),
        text("TokenRequests", |row| audiences(&row.object["spec"]["tokenRequests"])),
        flag("RequiresRepublish", |row| row.object["spec"]["requiresRepublish"].as_bool().unwrap_or(false).into()),
        text("Modes", |row| texts(&row.object["spec"]["volumeLifecycleModes"]).join(",").into()),
        AGE,
    ],
    names: Names { allowed: |name| is_subdomain(name) && names::is_driver_name(name), rule: NAME_RULE },
    ..KindRules::plain(&FIELDS)
};

/// The driver's own name must fit, and an object's is in lower case besides.
const NAME_RULE: &str = "be that of a driver: at most 63 lower case letters, digits, dashes or dots";

/// How long a token may be good, in seconds.
const SHORTEST_TOKEN: i64 = 600;
const LONGEST_TOKEN: i64 = 1 << 32;
/// The shortest period in which a driver may ask to be asked, in seconds.
const SHORTEST_PERIOD: i64 = 10;

/// API-6: each audience once, and times that make sense.
fn tokens(report: &mut Report, spec: &Value) {
    let requests = &spec["tokenRequests"];
    for (index, request) in items(requests).enumerate() {
        let seconds = request["expirationSeconds"].as_i64();
        if seconds.is_some_and(|seconds| !(SHORTEST_TOKEN..=LONGEST_TOKEN).contains(&seconds)) {
            let message = format!("it must be between {SHORTEST_TOKEN} (ten minutes) and {LONGEST_TOKEN} seconds");
            report.invalid(format!("spec.tokenRequests[{index}].expirationSeconds"), message);
        }
        let audience = |request: &Value| request["audience"].as_str().unwrap_or_default().to_owned();
        if items(requests).take(index).any(|earlier| audience(earlier) == audience(request)) {
            let message = format!("{:?} is there twice", audience(request));
            report.add(format!("spec.tokenRequests[{index}].audience"), FieldProblem::Duplicate, message);
        }
    }
    if spec["serviceAccountTokenInSecrets"].is_boolean() && items(requests).next().is_none() {
        report.invalid("spec.serviceAccountTokenInSecrets", "it says where tokens go; ask for one in tokenRequests");
    }
    if spec["nodeAllocatableUpdatePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < SHORTEST_PERIOD) {
        let message = format!("it must be at least {SHORTEST_PERIOD}");
        report.invalid("spec.nodeAllocatableUpdatePeriodSeconds", message);
    }
}

fn validate(report: &mut Report, object: &Value) {
    tokens(report, &object["spec"]);
    report.one_of(object, "spec.fsGroupPolicy", &["ReadWriteOnceWithFSType", "File", "None"]);
    for mode in items(&object["spec"]["volumeLifecycleModes"]).filter_map(Value::as_str) {
        if mode != "Persistent" && mode != "Ephemeral" {
            let message = format!("{mode:?} is not one of Persistent, Ephemeral");
            report.add("spec.volumeLifecycleModes", FieldProblem::NotSupported, message);
        }
    }
}

fn audiences(tokens: &Value) -> Value {
    let audiences: Vec<&str> = items(tokens).filter_map(|token| token["audience"].as_str()).collect();
    if audiences.is_empty() { "<unset>".into() } else { audiences.join(",").into() }
}

tables! {
    FIELDS = CSI_DRIVER {
        honoured metadata => META;
        honoured spec => DRIVER_SPEC;
    }
    DRIVER_SPEC = CSI_DRIVER_SPEC {
        honoured attachRequired: "Whether a volume is attached to a node before it is mounted there.";
        honoured podInfoOnMount: "Whether the driver is told for which pod it mounts.";
        honoured volumeLifecycleModes: "How the driver's volumes can be asked for: by claims, or by pods themselves.";
        honoured storageCapacity: "Whether pods go only where CSIStorageCapacity objects say there is room.";
        honoured fsGroupPolicy: "When the files of a volume are given to a pod's fsGroup.";
        honoured tokenRequests: "Tokens of a pod's service account that the driver gets with each volume." => TOKEN;
        honoured requiresRepublish: "Whether a volume is published again each minute while its pod runs.";
        warned seLinuxMount [false]: "volumes are mounted without SELinux labels";
        honoured nodeAllocatableUpdatePeriodSeconds: "How often a node asks the driver again how many volumes it \
            takes; at once after an attachment failed for want of room.";
        honoured serviceAccountTokenInSecrets: "Whether tokens go with the secrets instead of the volume's context.";
        honoured preventPodSchedulingIfMissing: "Whether pods go only to nodes that have the driver.";
    }
    TOKEN = DRIVER_TOKEN_REQUEST {
        honoured audience: "Whom the token is for; empty means the API server.";
        honoured expirationSeconds: "How long it is good.";
    }
}
