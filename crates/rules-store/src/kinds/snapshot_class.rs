use wire::Type::{Message, String, StringMap};
use wire::messages;
use wire::messages::OBJECT_META;

use super::KindRules;
use crate::fields::meta::META;
use crate::fields::tables;
use crate::table::{AGE, NAME, show, text};

pub(super) static RULES: KindRules = KindRules {
    validate: |report, class| {
        report.need(class, "driver");
        report.need(class, "deletionPolicy");
        report.one_of(class, "deletionPolicy", &["Delete", "Retain"]);
    },
    validate_update: |report, old, new| {
        for field in ["driver", "deletionPolicy", "parameters"] {
            report.immutable(old, new, field);
        }
    },
    columns: &[
        NAME,
        text("Driver", |row| show(&row.object["driver"])),
        text("DeletionPolicy", |row| show(&row.object["deletionPolicy"])),
        AGE,
    ],
    ..KindRules::plain(&FIELDS)
};

// A CustomResourceDefinition declares it, so it has no protobuf form and no field numbers.
messages! {
    in "io.k8s.storage.snapshot.v1";

    VOLUME_SNAPSHOT_CLASS = "VolumeSnapshotClass" {
        metadata: Message(&OBJECT_META), driver! String, parameters: StringMap, deletionPolicy! String,
    }
}

tables! {
    FIELDS = VOLUME_SNAPSHOT_CLASS {
        honoured metadata => META;
        honoured driver, parameters, deletionPolicy;
    }
}
