use alloc::format;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use wire::messages::SECRET;

use super::{KindRules, default};
use crate::fields::meta::META;
use crate::fields::tables;
use crate::table::{AGE, NAME, entries, number, show, text};
use crate::validate::{Report, sealed};

pub(super) static RULES: KindRules = KindRules {
    defaults,
    validate,
    validate_update: |report, old, new| {
        report.immutable(old, new, "type");
        sealed(report, old, new, &["data"]);
    },
    selectable: &["type"],
    columns: &[
        NAME,
        text("Type", |row| show(&row.object["type"])),
        number("Data", |row| entries(&row.object["data"]).into()),
        AGE,
    ],
    ..KindRules::plain(&FIELDS)
};

/// `stringData` is a way to write `data` without encoding it; it is never read back.
fn defaults(secret: &mut Value) {
    let Value::Object(secret) = secret else { return };
    default(secret, "type", "Opaque");
    if let Some(Value::Object(plain)) = secret.remove("stringData") {
        let data = secret.entry("data").or_insert_with(|| json!({}));
        for (key, value) in plain {
            data[key] = STANDARD.encode(value.as_str().unwrap_or_default()).into();
        }
    }
}

fn validate(report: &mut Report, object: &Value) {
    for (key, value) in object["data"].as_object().into_iter().flatten() {
        if value.as_str().is_none_or(|text| STANDARD.decode(text).is_err()) {
            report.invalid(format!("data[{key}]"), "it must be base64; use stringData for plain text");
        }
    }
}

tables! {
    FIELDS = SECRET {
        honoured metadata => META;
        honoured data: "Bytes by name, in base64.";
        honoured stringData: "Texts by name, which become data.";
        honoured type: "What the data is for.";
        honoured immutable: "Whether the data stays as it is for good.";
    }
}
