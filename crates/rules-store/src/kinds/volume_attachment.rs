use serde_json::Value;

use super::{KindRules, default};
use crate::meta;
use crate::table::{AGE, NAME, flag, show, text};
use crate::validate::Report;

pub(super) static RULES: KindRules = KindRules {
    defaults: |attachment| default(meta::object_at(attachment, "status"), "attached", false),
    validate,
    validate_update: |report, old, new| report.immutable(old, new, "spec"),
    columns: &[
        NAME,
        text("Attacher", |row| show(&row.object["spec"]["attacher"])),
        text("PV", |row| show(&row.object["spec"]["source"]["persistentVolumeName"])),
        text("Node", |row| show(&row.object["spec"]["nodeName"])),
        flag("Attached", |row| row.object["status"]["attached"].as_bool().unwrap_or(false).into()),
        AGE,
    ],
    ..KindRules::plain(&wire::messages::VOLUME_ATTACHMENT)
};

fn validate(report: &mut Report, object: &Value) {
    report.need(object, "spec.attacher");
    report.need(object, "spec.nodeName");
    let source = &object["spec"]["source"];
    let inline = source["inlineVolumeSpec"].is_object();
    let named = !source["persistentVolumeName"].as_str().unwrap_or_default().is_empty();
    match (named, inline) {
        (true, true) => report.invalid("spec.source", "name a volume or describe one, not both"),
        (false, false) => report.required("spec.source.persistentVolumeName", "name a volume, or describe one inline"),
        (true, false) | (false, true) => {}
    }
}
