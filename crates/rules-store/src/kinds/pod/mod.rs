mod automount;
mod container;
mod defaults;
mod security;
mod sources;
mod table;
mod tolerate;
mod validate;

pub(super) use sources::in_tree;

use serde_json::Value;

use super::{KindRules, default};
use crate::{fields, meta};

pub(super) static RULES: KindRules = KindRules {
    admit: |store, pod| {
        automount::admit(store, pod);
        tolerate::admit(store, pod);
        let class = defaults::quality_of_service(pod);
        let status = meta::object_at(pod, "status");
        default(status, "phase", "Pending");
        default(status, "qosClass", class);
    },
    admit_create: security::admit,
    stamp: |_, old, pod| tolerate::keep(old, pod),
    defaults: |pod: &mut Value| defaults::spec(meta::object_at(pod, "spec")),
    validate: validate::pod,
    validate_update: validate::update,
    selectable: &[
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ],
    columns: table::COLUMNS,
    ..KindRules::plain(&fields::pod::POD)
};
