use alloc::format;

use serde_json::Value;
use wire::messages::{VOLUME_ATTACHMENT, VOLUME_ATTACHMENT_SOURCE, VOLUME_ATTACHMENT_SPEC};

use super::{KindRules, default};
use crate::fields::meta::META;
use crate::fields::tables;
use crate::fields::volume::VOLUME_SPEC;
use crate::table::{AGE, NAME, flag, show, text};
use crate::validate::Report;
use crate::{FieldProblem, meta};

pub(super) static RULES: KindRules = KindRules {
    defaults: |attachment| default(meta::object_at(attachment, "status"), "attached", false),
    validate,
    validate_update: |report, old, new| {
        report.immutable(old, new, "spec");
        status(report, old, new);
    },
    columns: &[
        NAME,
        text("Attacher", |row| show(&row.object["spec"]["attacher"])),
        text("PV", |row| show(&row.object["spec"]["source"]["persistentVolumeName"])),
        text("Node", |row| show(&row.object["spec"]["nodeName"])),
        flag("Attached", |row| row.object["status"]["attached"].as_bool().unwrap_or(false).into()),
        AGE,
    ],
    ..KindRules::plain(&FIELDS)
};

/// The longest message of an error, and the most that a driver's answer may hold, in bytes.
const LONGEST_MESSAGE: usize = 1024;
const MOST_METADATA: usize = 256 * 1024;

/// API-5: what is reported about an attachment. What an older version let in may stay.
fn status(report: &mut Report, old: &Value, new: &Value) {
    for side in ["attachError", "detachError"] {
        let error = &new["status"][side];
        if *error == old["status"][side] {
            continue;
        }
        let length = error["message"].as_str().unwrap_or_default().len();
        if length > LONGEST_MESSAGE {
            let message = format!("it has {length} bytes; at most {LONGEST_MESSAGE} are allowed");
            report.add(format!("status.{side}.message"), FieldProblem::TooLong, message);
        }
        if error["errorCode"].as_i64().is_some_and(|code| code < 0) {
            report.invalid(format!("status.{side}.errorCode"), "it must not be negative");
        }
    }
    if new["status"]["attachmentMetadata"] != old["status"]["attachmentMetadata"] {
        report.within(&new["status"]["attachmentMetadata"], "status.attachmentMetadata", MOST_METADATA);
    }
}

fn validate(report: &mut Report, object: &Value) {
    report.driver(&object["spec"]["attacher"], "spec.attacher");
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

tables! {
    FIELDS = VOLUME_ATTACHMENT {
        honoured metadata => META;
        honoured spec => ATTACHMENT_SPEC;
        honoured status;
    }
    ATTACHMENT_SPEC = VOLUME_ATTACHMENT_SPEC {
        honoured attacher, nodeName;
        honoured source => ATTACHMENT_SOURCE;
    }
    ATTACHMENT_SOURCE = VOLUME_ATTACHMENT_SOURCE {
        honoured persistentVolumeName;
        honoured inlineVolumeSpec => VOLUME_SPEC;
    }
}
